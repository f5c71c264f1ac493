/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * example.c - the contract's subject for docs/examples/backend.c, compiled without changes.
 */
#include <stdlib.h>

#include "tests/contract/contract.h"

#define main example_main
int example_main(void);
#include "docs/examples/backend.c"
#undef main

static quire_result open_pool(const contract_subject *subject, const quire_host_memory *host,
                              contract_opened *opened)
{
    (void)subject;
    pool *state = calloc(1, sizeof *state);
    CHECK(state);
    opened->own = state;
    return quire_device_create(&POOL_BACKEND, state, &(quire_device_options){.host_memory = host},
                               &opened->device);
}

static void close_pool(void *own)
{
    pool *state = own;
    CHECK_EQ(state->used, 0);
    free(state);
}

static const contract_subject subject_pool = {
    .name = "docs/examples/backend.c",
    .open = open_pool,
    .close = close_pool,
    .one_thread = true,
};

extern const contract_subject *const example_subjects[];

const contract_subject *const example_subjects[] = {&subject_pool, NULL};
