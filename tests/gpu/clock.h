/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * clock.h - the clock of the programs that measure the calls of a driver.
 */
#ifndef QUIRE_TESTS_GPU_CLOCK_H
#define QUIRE_TESTS_GPU_CLOCK_H

#include <time.h>

/* Microseconds since an unspecified moment. */
static inline double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

#endif
