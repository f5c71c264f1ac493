/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * same_limits.h - compares two quire_limits by their members. The bytes between the flag and the
 * words after it have no value, and compilers copy them or not.
 */
#ifndef QUIRE_TESTS_SUPPORT_SAME_LIMITS_H
#define QUIRE_TESTS_SUPPORT_SAME_LIMITS_H

#include <stddef.h>
#include <string.h>

#include "quire/device.h"

static inline bool same_limits(const quire_limits *a, const quire_limits *b)
{
    size_t words = offsetof(quire_limits, max_pages_is_advice); /* uint64_t alone, without gaps */
    return !memcmp(a, b, words) && a->max_pages_is_advice == b->max_pages_is_advice &&
           a->elastic_unmapped == b->elastic_unmapped &&
           a->max_elastic_page == b->max_elastic_page && a->elastic_missing == b->elastic_missing &&
           !memcmp(a->unused, b->unused, sizeof a->unused);
}

#endif
