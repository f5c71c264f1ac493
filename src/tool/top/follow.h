/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * follow.h - what lives at the end of a recording that grows, and the totals so far.
 *
 * A follower has the ranges that live and no list of events: its memory does not grow with the time
 * that a program runs. Not thread-safe.
 */
#ifndef QUIRE_SRC_TOOL_TOP_FOLLOW_H
#define QUIRE_SRC_TOOL_TOP_FOLLOW_H

#include "src/tool/top/names.h"
#include "src/trace/recording.h"

typedef struct followed_range {
    uint64_t size;
    uint32_t name; /* number of its sum */
} followed_range;

/* The recording points into its follower, which must not move. */
typedef struct follower {
    qi_recording recording; /* the first member: follower_of gets a pointer to it */
    quire_trace trace;      /* its host memory and info; it has no events */
    name_sums names;
    followed_range *ranges; /* by the numbers of the recording's ranges */
    uint64_t range_room;
} follower;

/* Begins at the first byte of a recording. `name` is the prefix of errors. */
QUIRE_MUST_USE quire_result begin_follower(follower *f, const char *name);

/*
 * Reads the complete blocks of bytes that begin at f->recording.offset in the file. *used receives
 * their size. Errors: BAD_FILE "NAME: byte N: what is wrong", OUT_OF_HOST_MEMORY; the follower can
 * only be finished then.
 */
QUIRE_MUST_USE quire_result follow(follower *f, const char *bytes, size_t size, size_t *used);

void finish_follower(follower *f);

#endif
