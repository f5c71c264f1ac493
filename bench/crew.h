/*
 * crew.h - several threads that play a list each, on one memory or on one of their own, and hand
 * some of what they allocated to each other to be freed.
 */
#ifndef QUIRE_BENCH_CREW_H
#define QUIRE_BENCH_CREW_H

#include <stdbool.h>

#include "bench/memories.h"
#include "src/cli/workload.h"

enum { MAX_CREW = 64, HANDED_EVERY = 10 };

typedef struct crew_result {
    bool good;
    bool disturbed; /* others took the processor away: the threads hardly met */
    double pair_ns; /* wall time by the pairs of all threads */
    uint64_t pairs;
} crew_result;

/*
 * Plays lists[i] on the i-th of the threads. What lies before `timed_from` warms up; then all begin
 * together and stop when the first is done. With `handed` every tenth range is freed by the next
 * thread: one thread alone hands them to itself, so that what the handing costs is in both.
 */
crew_result crew_run(const subject *on, const workload *lists, uint32_t threads, bool handed);

#endif
