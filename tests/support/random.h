/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * random.h - the random numbers of the tests: the printed seed reproduces a run.
 */
#ifndef QUIRE_TESTS_SUPPORT_RANDOM_H
#define QUIRE_TESTS_SUPPORT_RANDOM_H

#include <stdint.h>
#include <string.h>

typedef struct test_random {
    uint64_t state;
} test_random;

/* SplitMix64. */
static inline uint64_t random_next(test_random *r)
{
    r->state += UINT64_C(0x9E3779B97F4A7C15);
    uint64_t z = r->state;
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

/* 0 to n - 1; the slight bias does not matter to tests. */
static inline uint64_t random_below(test_random *r, uint64_t n)
{
    return random_next(r) % n;
}

/* 1 to `max`; small and large ones are equally likely by magnitude. */
static inline uint64_t random_size(test_random *r, uint64_t max)
{
    uint32_t bits = 1 + (uint32_t)random_below(r, 64 - (uint64_t)__builtin_clzll(max));
    uint64_t size =
        1 + random_below(r, UINT64_C(1) << (bits - 1)) + (UINT64_C(1) << (bits - 1)) - 1;
    return size > max ? max : size;
}

/* Contents that a key reproduces. */
static inline void random_bytes(unsigned char *bytes, uint64_t size, uint64_t key)
{
    test_random r = {key};
    for (uint64_t i = 0; i < size; i += 8) {
        const uint64_t word = random_next(&r);
        memcpy(bytes + i, &word, size - i < 8 ? size - i : 8);
    }
}

#endif
