/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * elastic_churn.h - allocations of whole chunks in a memory that is always nearly full: none may be
 * refused as long as the sum fits.
 */
#ifndef QUIRE_TESTS_SUPPORT_ELASTIC_CHURN_H
#define QUIRE_TESTS_SUPPORT_ELASTIC_CHURN_H

#include "quire/quire.h"
#include "tests/support/check.h"
#include "tests/support/random.h"

enum { CHURN_CHUNKS = 200, CHURN_FULL = 198, CHURN_MAX = 9 };

/* The memory may have CHURN_CHUNKS chunks; between 97 and 99 percent of them are used. */
static inline void elastic_churn(quire_memory *memory, uint64_t chunk, uint32_t steps)
{
    quire_allocation live[CHURN_FULL];
    uint64_t sizes[CHURN_FULL], used = 0;
    uint32_t count = 0;
    test_random random = {11};
    for (uint32_t i = 0; i < steps; i++) {
        const uint64_t size = 1 + random_below(&random, CHURN_MAX);
        while (used + size > CHURN_FULL) {
            uint32_t at = (uint32_t)random_below(&random, count);
            CHECK_OK(quire_free(memory, live[at]));
            used -= sizes[at];
            live[at] = live[--count];
            sizes[at] = sizes[count];
        }
        const quire_allocation_options options = {.size = size * chunk};
        CHECK_OK(quire_allocate(memory, &options, &live[count]));
        sizes[count++] = size;
        used += size;
    }
    CHECK_OK(quire_memory_check(memory));
    while (count)
        CHECK_OK(quire_free(memory, live[--count]));
}

#endif
