/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * play.h - runs the steps of a workload on a subject and times them in groups.
 *
 * A group is a run of successive allocations or successive frees. Handles are copied out of the
 * slots before the timed part and into them after it, so that cache misses of the harness are not
 * measured.
 */
#ifndef QUIRE_BENCH_PLAY_H
#define QUIRE_BENCH_PLAY_H

#include <stdbool.h>

#include "bench/subject.h"
#include "bench/workload.h"

enum { MAX_GROUP = 16 };

typedef struct play {
    const subject *subject;
    void *state;
    const workload *workload;
    uint64_t *slots; /* handles; 0 means none */
    size_t group;    /* maximum number of steps in a group, 1 to MAX_GROUP */
    /* results of the last play_steps */
    uint64_t allocate_ticks, free_ticks;
    uint64_t allocations, frees, refused;
    uint32_t *min_ticks; /* minimum per step over all calls, with groups of 1; NULL: not recorded */
} play;

/* Creates an empty arena of `arena` bytes. Returns false if host memory is exhausted. */
bool play_begin(play *p, const subject *s, const workload *w, uint64_t arena);
void play_end(play *p);

/* Runs steps [begin, end) and replaces the results by those of this call. */
void play_steps(play *p, size_t begin, size_t end);

/* The number of live ranges. */
uint64_t play_live(const play *p);

#endif
