/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * proof.h - harnesses that state what holds for every value: CBMC proves them within the bounds
 * that run.py gives. Builds without CBMC compile the same sources as programs that try all
 * combinations of small choices, or random values (random.c).
 *
 *     PROOF(padding_reaches_a_multiple)
 *     {
 *         uint64_t value = any_u64(), alignment = any_power_of_two(64);
 *         PROVE((value + qi_padding(value, alignment)) % alignment == 0);
 *     }
 *
 * A harness assumes before it allocates anything: outside CBMC a failed assumption leaves it
 * immediately.
 */
#ifndef QUIRE_TESTS_CBMC_PROOF_H
#define QUIRE_TESTS_CBMC_PROOF_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __CPROVER__

uint64_t nondet_u64(void);

#define ASSUME(condition) __CPROVER_assume(condition)
#define PROVE(condition) __CPROVER_assert((condition), #condition)

/* The last assertion must fail: this shows that the end of the harness is reached and the proof is
   not vacuous. */
#define PROOF(name)                                                                                \
    static void name(void);                                                                        \
    void prove_##name(void);                                                                       \
    void prove_##name(void)                                                                        \
    {                                                                                              \
        name();                                                                                    \
        __CPROVER_assert(0, "the end is reached");                                                 \
    }                                                                                              \
    static void name(void)

static inline uint64_t any_u64(void)
{
    return nondet_u64();
}

static inline uint64_t any_below(uint64_t n)
{
    uint64_t value = nondet_u64();
    ASSUME(value < n);
    return value;
}

#else

#include "tests/support/check.h"

#define ASSUME(condition) ((condition) ? (void)0 : proof_leave())
#define PROVE(condition) CHECK(condition)

#define PROOF(name)                                                                                \
    static void name(void);                                                                        \
    __attribute__((constructor)) static void register_##name(void)                                 \
    {                                                                                              \
        proof_register(#name, name);                                                               \
    }                                                                                              \
    static void name(void)

void proof_register(const char *name, void (*body)(void));
_Noreturn void proof_leave(void);

uint64_t any_u64(void);
uint64_t any_below(uint64_t n); /* one of few: all combinations are tried if they are few enough */

#endif

static inline uint32_t any_u32(void)
{
    return (uint32_t)any_u64();
}

/* One of 2^0 to 2^(exponents - 1). */
static inline uint64_t any_power_of_two(uint32_t exponents)
{
    return UINT64_C(1) << any_below(exponents);
}

#endif
