/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * random_policy.h - a random policy for pages, within what every memory accepts.
 */
#ifndef QUIRE_TESTS_SUPPORT_RANDOM_POLICY_H
#define QUIRE_TESTS_SUPPORT_RANDOM_POLICY_H

#include "quire/quire.h"
#include "tests/support/random.h"

static inline quire_page_policy random_policy(test_random *r)
{
    quire_page_policy policy = {
        .page_size = UINT64_C(1024) << random_below(r, 8),
        .growth_percent = random_below(r, 3) ? 0 : 100,
        .max_page = UINT64_C(1) << 20,
        .page_granularity = UINT64_C(1) << random_below(r, 15),
        .dedicated_threshold = random_below(r, 3) ? 0 : 20000,
    };
    policy.growth = (quire_growth)random_below(r, policy.growth_percent ? 3 : 2);
    if (policy.growth_percent && policy.growth != QUIRE_GROWTH_RESERVED)
        policy.request_factor = (uint32_t)random_below(r, 4);
    if (random_below(r, 3) == 0) {
        policy.classes[0] = (quire_page_class){.max_request = 5000, .page_size = 8192};
        policy.classes[1] = (quire_page_class){.max_request = 9000, .page_size = 65536};
    }
    if (random_below(r, 2))
        policy.retained_empty_bytes = random_below(r, 3) ? random_size(r, 1 << 20) : 1;
    if (random_below(r, 2))
        policy.retention_nanoseconds = 1 + random_below(r, 2000);
    return policy;
}

#endif
