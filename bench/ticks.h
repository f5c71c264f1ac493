/*
 * ticks.h - the finest clock there is: the processor's time-stamp counter where it runs at a
 * constant rate, else the monotonic clock.
 *
 * Nothing is moved over a reading by the processor. A pair of readings costs about as much as one
 * short call, which ticks_init measures; ticks_spent takes it off.
 */
#ifndef QUIRE_BENCH_TICKS_H
#define QUIRE_BENCH_TICKS_H

#include <stdbool.h>

#include "src/base/clock.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

typedef struct ticks_clock {
    bool is_counter; /* the time-stamp counter */
    double ns;       /* nanoseconds a tick */
    uint64_t empty;  /* ticks between two readings with nothing between them */
} ticks_clock;

extern ticks_clock the_clock;

/* Chooses and measures the clock, in some 50 ms. Once, before anything is timed. */
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

/* Ticks since a reading, without what reading costs. */
static inline uint64_t ticks_spent(uint64_t since)
{
    uint64_t spent = ticks_now() - since;
    return spent > the_clock.empty ? spent - the_clock.empty : 0;
}

#endif
