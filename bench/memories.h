/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * memories.h - complete memories as subjects: the calls of a program that allocates device memory,
 * with handles, locks, pages and statistics. All use the same driver, the mock one or a real one.
 *
 * The arena size of such a subject is its page size, 0 for its default. The arena unit is the
 * smallest size that is worth serving.
 */
#ifndef QUIRE_BENCH_MEMORIES_H
#define QUIRE_BENCH_MEMORIES_H

#include <stdbool.h>

#include "bench/subject.h"

/* How several threads share memories. */
typedef enum memory_sharing {
    SHARE_ONE,     /* one memory for all; its number of shards is adaptive */
    SHARE_LOCK,    /* one memory with one shard for all */
    SHARE_SHARDS,  /* one memory with a shard per thread */
    SHARE_NOTHING, /* a memory per thread */
    SHARE_STREAM   /* one thread, in the order of a stream whose work completes immediately */
} memory_sharing;

/* The options of a memory; subject.how points to it. */
typedef struct memory_how {
    memory_sharing sharing;
    uint32_t shards;   /* 0 means adaptive */
    bool dedicated;    /* a dedicated page for each allocation */
    bool slabs;        /* quire's option for small ranges */
    bool elastic;      /* quire's option for a page with memory in the chunks in use */
    bool unlocked;     /* without locks: one thread does all allocations and frees */
    uint32_t strategy; /* of VMA; 0 means its default */
} memory_how;

/* The first entry represents its project where one is enough. */
extern const subject QUIRE_MEMORIES[];
extern const size_t QUIRE_MEMORY_COUNT;
/* Only for an instruction counter: the harness alone, and memories that describe allocations. */
extern const subject QUIRE_DESCRIBED[];
extern const size_t QUIRE_DESCRIBED_COUNT;
extern const subject VMA_MEMORIES[];
extern const size_t VMA_MEMORY_COUNT;

static inline const memory_how *how_of(const subject *s)
{
    return s->how;
}

/* A copy of a subject with other options; `how` must outlive it. */
static inline subject subject_with(const subject *s, const memory_how *how)
{
    subject changed = *s;
    changed.how = how;
    return changed;
}

#endif
