/*
 * clock.h - the monotonic clock in nanoseconds.
 */
#ifndef QUIRE_SRC_BASE_CLOCK_H
#define QUIRE_SRC_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t qi_clock(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

#endif
