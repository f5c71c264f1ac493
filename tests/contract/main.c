/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * main.c - runs the contract with every subject of one backend: see contract.h.
 *
 *     contract-NAME [SUBJECT...]     the subjects whose names begin so; all if none is given
 *     contract-NAME --items FROM SECONDS [SUBJECT...]     each scenario is an item of items.h
 */
#include <stdio.h>

#include "tests/contract/contract.h"
#include "tests/support/items.h"

extern const contract_subject *const CONTRACT_SUBJECTS[]; /* defined by the build */

static bool is_wanted(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (!strncmp(name, argv[i], strlen(argv[i])))
            return true;
    return argc < 2;
}

int main(int argc, char **argv)
{
    argc = items_take(argc, argv);
    for (const contract_subject *const *s = CONTRACT_SUBJECTS; *s; s++)
        if (is_wanted((*s)->name, argc, argv))
            contract_run(*s, NULL);
    return plain_end();
}
