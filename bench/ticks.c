/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * ticks.c - see ticks.h.
 */
#include "bench/ticks.h"

#include <stdlib.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum { READINGS = 10001, CALIBRATION_NS = 50000000 };

ticks_clock the_clock = {.ns = 1};

/* CPUID's invariant TSC bit: the counter runs at a constant rate in all power states. */
static bool has_steady_counter(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8);
#else
    return false;
#endif
}

/* Nanoseconds per tick, from the monotonic clock over CALIBRATION_NS. */
static double measure_tick(void)
{
    uint64_t from_ns = qi_clock(), from = ticks_now();
    while (qi_clock() - from_ns < CALIBRATION_NS) {
    }
    uint64_t to_ns = qi_clock(), to = ticks_now();
    return (double)(to_ns - from_ns) / (double)(to - from);
}

static int compare(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

/*
 * The mean of the lower half of many readings. A minimum would be too low, because the counter can
 * advance in steps that are wider than the measured time.
 */
static uint64_t measure_empty(void)
{
    static uint64_t readings[READINGS];
    for (int i = 0; i < READINGS; i++) {
        uint64_t since = ticks_now();
        readings[i] = ticks_now() - since;
    }
    qsort(readings, READINGS, sizeof *readings, compare);
    uint64_t sum = 0;
    for (int i = 0; i < READINGS / 2; i++)
        sum += readings[i];
    return sum / (READINGS / 2);
}

void ticks_init(void)
{
    the_clock.is_counter = has_steady_counter();
    if (the_clock.is_counter)
        the_clock.ns = measure_tick();
    the_clock.empty = measure_empty();
}
