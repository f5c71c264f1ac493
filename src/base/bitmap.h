/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * bitmap.h - a set of numbers below a size, as a bitmap with summary levels: finding the next or
 * the previous number of the set takes a few steps for any size.
 *
 * Level 0 has a bit per number. Each level above has a bit per word of the level below, set if that
 * word is not 0. The last level is one word. The words of all levels lie one after the other, level
 * 0 first, in an array of qi_bitmap_words(size) words, which the caller owns and zeroes before the
 * first use. The size is above 0. No lock: the caller serializes all calls.
 */
#ifndef QUIRE_SRC_BASE_BITMAP_H
#define QUIRE_SRC_BASE_BITMAP_H

#include "src/base/bits.h"

enum { QI_BITMAP_LEVELS = 6 }; /* enough for 2^32 numbers */

/* Words of a level with `bits` bits; equals the bits of the level above. */
static inline uint32_t qi_level_words(uint32_t bits)
{
    return (bits - 1) / 64 + 1;
}

static inline uint32_t qi_bitmap_words(uint32_t size)
{
    uint32_t level = qi_level_words(size), words = level;
    while (level > 1) {
        level = qi_level_words(level);
        words += level;
    }
    return words;
}

static inline bool qi_bitmap_has(const uint64_t *words, uint32_t number)
{
    return words[number / 64] >> number % 64 & 1;
}

/* Adds a number. Requires that it is not in the set. */
static inline void qi_bitmap_add(uint64_t *words, uint32_t size, uint32_t number)
{
    for (;;) {
        uint64_t before = words[number / 64];
        uint32_t above = qi_level_words(size);
        words[number / 64] = before | UINT64_C(1) << number % 64;
        if (before || above == 1)
            return;
        words += above;
        size = above;
        number /= 64;
    }
}

/* Removes a number. Requires that it is in the set. Returns whether the set is now empty. */
static inline bool qi_bitmap_remove(uint64_t *words, uint32_t size, uint32_t number)
{
    for (;;) {
        uint64_t after = words[number / 64] & ~(UINT64_C(1) << number % 64);
        uint32_t above = qi_level_words(size);
        words[number / 64] = after;
        if (after || above == 1)
            return !after;
        words += above;
        size = above;
        number /= 64;
    }
}

/* The lowest number of the set that is not below `from`; `size` if none is. */
static inline uint32_t qi_bitmap_next(const uint64_t *words, uint32_t size, uint32_t from)
{
    const uint64_t *levels[QI_BITMAP_LEVELS] = {words};
    uint32_t level = 0, bits = size;
    for (;;) {
        if (from >= bits)
            return size;
        uint64_t rest = levels[level][from / 64] >> from % 64;
        if (rest) {
            from += qi_lowest_bit(rest);
            break;
        }
        uint32_t above = qi_level_words(bits);
        if (above == 1)
            return size;
        from = from / 64 + 1; /* the next word, as a bit of the level above */
        levels[level + 1] = levels[level] + above;
        level++;
        bits = above;
    }
    while (level-- > 0)
        from = from * 64 + qi_lowest_bit(levels[level][from]);
    return from;
}

/* The highest number of the set that is not above `from`, a number below the size; `size` if none
   is. */
static inline uint32_t qi_bitmap_previous(const uint64_t *words, uint32_t size, uint32_t from)
{
    const uint64_t *levels[QI_BITMAP_LEVELS] = {words};
    uint32_t level = 0, bits = size;
    for (;;) {
        uint64_t rest = levels[level][from / 64] << (63 - from % 64);
        if (rest) {
            from -= 63 - qi_highest_bit(rest);
            break;
        }
        uint32_t above = qi_level_words(bits);
        if (above == 1 || from < 64)
            return size;
        from = from / 64 - 1; /* the previous word, as a bit of the level above */
        levels[level + 1] = levels[level] + above;
        level++;
        bits = above;
    }
    while (level-- > 0)
        from = from * 64 + qi_highest_bit(levels[level][from]);
    return from;
}

#endif
