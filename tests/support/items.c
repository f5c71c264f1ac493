/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * items.c - see items.h.
 */
#include "tests/support/items.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_used;
static unsigned long from, next;
static unsigned seconds, ran;

int items_take(int argc, char **argv)
{
    if (argc < 4 || strcmp(argv[1], "--items"))
        return argc;
    is_used = true;
    from = strtoul(argv[2], NULL, 10);
    seconds = (unsigned)strtoul(argv[3], NULL, 10);
    memmove(&argv[1], &argv[4], (size_t)(argc - 3) * sizeof *argv); /* with the last NULL */
    return argc - 3;
}

bool items_begin(const char *name)
{
    unsigned long number = next++;
    if (!is_used)
        return true;
    if (number < from)
        return false;
    ran++;
    printf("# item %lu %s\n", number, name);
    fflush(stdout);
    alarm(seconds);
    return true;
}

bool items_ran(void)
{
    return ran > 0;
}

_Noreturn void items_renew(void)
{
    fflush(stdout);
    exit(ITEMS_RENEW);
}
