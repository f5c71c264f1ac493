/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * crew.h - runs several threads, each with its own list of steps, on one memory or on a memory per
 * thread. Threads can hand some of their allocations to another thread, which frees them.
 */
#ifndef QUIRE_BENCH_CREW_H
#define QUIRE_BENCH_CREW_H

#include <stdbool.h>

#include "bench/memories.h"
#include "bench/workload.h"

enum { MAX_CREW = 64, HANDED_EVERY = 10 };

typedef struct crew_result {
    bool good;
    bool disturbed; /* other programs preempted the threads, which hardly ran at the same time */
    double pair_ns; /* wall time divided by the pairs of all threads */
    uint64_t pairs;
} crew_result;

/*
 * Runs lists[i] on thread i. The steps before `timed_from` warm up. Then all threads start together
 * and stop when the first has finished its list. With `handed` the next thread frees every tenth
 * range. A single thread hands ranges to itself, so that both cases contain the cost of handing.
 */
crew_result crew_run(const subject *on, const workload *lists, uint32_t threads, bool handed);

#endif
