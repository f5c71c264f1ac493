/*
 * play.h - plays the steps of a workload on a subject, timed in groups.
 *
 * A group is steps of one kind that follow each other. Handles are copied out of the slots before
 * it is timed and into them after it, so that the harness's own misses are not counted.
 */
#ifndef QUIRE_BENCH_PLAY_H
#define QUIRE_BENCH_PLAY_H

#include <stdbool.h>

#include "bench/subject.h"
#include "src/cli/workload.h"

enum { MAX_GROUP = 16 };

typedef struct play {
    const subject *subject;
    void *state;
    const workload *workload;
    uint64_t *slots; /* handles, 0: none */
    size_t group;    /* most steps in a group, 1 to MAX_GROUP */
    /* of the steps played so far */
    uint64_t allocate_ticks, free_ticks;
    uint64_t allocations, frees, refused;
    uint32_t *least; /* by step: least ticks seen so far, groups of 1; NULL: not wanted */
} play;

/* An empty arena for the workload, of `arena` bytes; false when there is no memory. */
bool play_begin(play *p, const subject *s, const workload *w, uint64_t arena);
void play_end(play *p);

/* Plays steps [begin, end). The figures are of this call. */
void play_steps(play *p, size_t begin, size_t end);

/* Ranges that are live. */
uint64_t play_live(const play *p);

#endif
