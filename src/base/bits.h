/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * bits.h - powers of two, bit positions and overflow-checked arithmetic on 64-bit sizes.
 *
 * Every sum or product of sizes that come from a caller uses the checked forms (_overflows). They
 * return true if the exact result does not fit 64 bits; the output is then undefined.
 */
#ifndef QUIRE_SRC_BASE_BITS_H
#define QUIRE_SRC_BASE_BITS_H

#include <stdbool.h>
#include <stdint.h>

/* For steps of the hot path that the compiler considers too large to inline. */
#define QI_ALWAYS_INLINE static inline __attribute__((always_inline))

/* For hot code: moves the code after a rare condition out of the straight path. */
#define qi_unlikely(condition) __builtin_expect(!!(condition), 0)

static inline bool qi_is_power_of_two(uint64_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

/* Position of the highest set bit; value must not be 0. */
static inline uint32_t qi_highest_bit(uint64_t value)
{
    return 63u ^ (uint32_t)__builtin_clzll(value); /* one instruction; 63 - clz takes three */
}

/* Position of the lowest set bit; value must not be 0. */
static inline uint32_t qi_lowest_bit(uint64_t value)
{
    return (uint32_t)__builtin_ctzll(value);
}

static inline uint32_t qi_count_bits(uint64_t value)
{
    return (uint32_t)__builtin_popcountll(value);
}

static inline bool qi_add_overflows(uint64_t a, uint64_t b, uint64_t *sum)
{
    return __builtin_add_overflow(a, b, sum);
}

static inline bool qi_multiply_overflows(uint64_t a, uint64_t b, uint64_t *product)
{
    return __builtin_mul_overflow(a, b, product);
}

/* Distance from value up to the next multiple of alignment, a power of two. Cannot overflow. */
static inline uint64_t qi_padding(uint64_t value, uint64_t alignment)
{
    return (UINT64_C(0) - value) & (alignment - 1);
}

static inline uint64_t qi_align_down(uint64_t value, uint64_t alignment)
{
    return value & ~(alignment - 1);
}

/* Requires that the result fits. */
static inline uint64_t qi_align_up(uint64_t value, uint64_t alignment)
{
    return value + qi_padding(value, alignment);
}

/* value rounded up to a multiple of alignment, a power of two. */
static inline bool qi_align_up_overflows(uint64_t value, uint64_t alignment, uint64_t *aligned)
{
    return qi_add_overflows(value, qi_padding(value, alignment), aligned);
}

/* The greatest common divisor; of 0 and a number it is the number. */
static inline uint64_t qi_gcd(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Raises a peak. */
static inline void qi_raise(uint64_t *value, uint64_t to)
{
    if (to > *value)
        *value = to;
}

/* Whether [offset, offset + size) lies in [0, limit). Does not overflow. */
static inline bool qi_range_fits(uint64_t offset, uint64_t size, uint64_t limit)
{
    return offset <= limit && size <= limit - offset;
}

#endif
