/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * ticks.h - the finest clock of the machine: the processor's time-stamp counter if its rate is
 * constant, otherwise the monotonic clock.
 *
 * Fences keep the processor from moving instructions across a reading. A pair of readings costs
 * about as much as a short call. ticks_init measures that cost and ticks_spent subtracts it.
 */
#ifndef QUIRE_BENCH_TICKS_H
#define QUIRE_BENCH_TICKS_H

#include <stdbool.h>

#include "src/base/system.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

typedef struct ticks_clock {
    bool is_counter; /* true for the time-stamp counter */
    double ns;       /* nanoseconds per tick */
    uint64_t empty;  /* ticks between two successive readings */
} ticks_clock;

extern ticks_clock the_clock;

/* Chooses and calibrates the clock in about 50 ms. Call it once, before the first measurement. */
void ticks_init(void);

static inline uint64_t ticks_now(void)
{
#if defined(__x86_64__)
    if (the_clock.is_counter) {
        _mm_lfence();
        uint64_t now = __rdtsc();
        _mm_lfence();
        return now;
    }
#endif
    return qi_clock();
}

/* Ticks since a reading, minus the cost of reading. */
static inline uint64_t ticks_spent(uint64_t since)
{
    uint64_t spent = ticks_now() - since;
    return spent > the_clock.empty ? spent - the_clock.empty : 0;
}

#endif
