/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * buckets.h - selects the address buckets of a class, up to 16, whose first free range is large
 * enough.
 *
 * Compares 16 fractions at once if the processor can, otherwise one by one; the result is the same.
 * A class with fewer buckets is also read as 16; the caller masks the rest.
 */
#ifndef QUIRE_SRC_SPACE_SEGREGATED_BUCKETS_H
#define QUIRE_SRC_SPACE_SEGREGATED_BUCKETS_H

#include <stdint.h>

#if defined(__SSE2__) && !defined(QUIRE_PORTABLE)
#define QI_BUCKETS_SSE2 1
#include <emmintrin.h>
#endif

enum { QI_MAX_BUCKETS = 16 };

/* Sets bit i if fractions[i] >= fraction. Portable, and the definition of the faster form. */
static inline uint32_t qi_buckets_at_least_portable(const uint8_t *fractions, uint32_t fraction)
{
    uint32_t mask = 0;
    for (uint32_t i = 0; i < QI_MAX_BUCKETS; i++)
        mask |= (uint32_t)(fractions[i] >= fraction) << i;
    return mask;
}

/* As above. Reads 16 bytes at any alignment; the fraction is at most 255. */
static inline uint32_t qi_buckets_at_least(const uint8_t *fractions, uint32_t fraction)
{
#ifdef QI_BUCKETS_SSE2
    __m128i have = _mm_loadu_si128((const __m128i *)(const void *)fractions);
    __m128i want = _mm_set1_epi8((char)fraction);
    return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_max_epu8(have, want), have));
#else
    return qi_buckets_at_least_portable(fractions, fraction);
#endif
}

#endif
