/*
 * bench_run.h - runs a workload for quire bench (bench.c) and measures it.
 *
 * Steps of one kind that follow each other are timed in groups of at most BENCH_GROUP, so that the
 * cost of reading the clock does not dominate the measurement.
 */
#ifndef QUIRE_SRC_TOOL_BENCH_RUN_H
#define QUIRE_SRC_TOOL_BENCH_RUN_H

#include "quire/space.h"
#include "src/base/histogram.h"

enum { BENCH_GROUP = 16, MAX_REPEATS = 99, MAX_THREADS = 256 };

/* The options of the command. */
typedef struct bench_options {
    const char *workload;
    quire_fit fit;
    uint64_t threads; /* 0 means one thread on a bare space */
    uint64_t repeats; /* 1 to MAX_REPEATS */
    bool json;
} bench_options;

/* The measurements of all repeats. */
typedef struct outcome {
    double pair_ns[MAX_REPEATS]; /* one value per repeat, in the order of the repeats */
    uint64_t pairs;              /* timed allocations per repeat, summed over all threads */
    uint64_t failures;           /* failed allocations and frees, over all repeats */
    uint64_t live_count;         /* at the end of the last repeat, as is metadata_bytes */
    uint64_t metadata_bytes;
    qi_histogram alloc_ns, free_ns; /* empty unless the workload ran on a bare space */
} outcome;

/*
 * Runs the workload on a new space for each repeat. Returns false if host memory is exhausted or
 * the space cannot be created. *o must be zeroed.
 */
bool run_on_space(const bench_options *b, outcome *o);

/*
 * Runs a variant of the workload per thread, all on one memory of the host backend that is new for
 * each repeat. Returns false likewise, and exits the process if a thread cannot be started.
 */
bool run_on_memory(const bench_options *b, outcome *o);

#endif
