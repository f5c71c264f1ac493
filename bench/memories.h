/*
 * memories.h - whole memories as subjects: what a program calls to have device memory, with
 * handles, locks, pages and figures, over the same driver: the mock one, or Vulkan's. The arena of
 * such a subject is the size of its pages, 0 for what it takes by itself; its unit is the smallest
 * size worth having.
 */
#ifndef QUIRE_BENCH_MEMORIES_H
#define QUIRE_BENCH_MEMORIES_H

#include <stdbool.h>

#include "bench/subject.h"

/* How several threads come by a memory. */
typedef enum memory_sharing {
    SHARE_ONE,     /* all have one */
    SHARE_SHARDS,  /* all have one with a shard for each */
    SHARE_NOTHING, /* each has one of its own */
    SHARE_STREAM   /* one thread's, in the order of a stream whose work is done at once */
} memory_sharing;

/* What `how` of each of these subjects points to. */
typedef struct memory_how {
    memory_sharing sharing;
    uint32_t shards;   /* 0: one */
    bool dedicated;    /* each allocation gets a page of its own */
    bool slabs;        /* this project's option for small ranges */
    bool unlocked;     /* no locks: a thread must have it alone, frees included */
    uint32_t strategy; /* VMA's */
} memory_how;

/* The first of each stands for its project wherever one of them is enough. */
extern const subject QUIRE_MEMORIES[];
extern const size_t QUIRE_MEMORY_COUNT;
extern const subject VMA_MEMORIES[];
extern const size_t VMA_MEMORY_COUNT;

/* On a Vulkan device: ranges, and as many subjects of the same names that make buffers. */
extern const subject VULKAN_RANGES[], VULKAN_BUFFERS[];
extern const size_t VULKAN_SUBJECT_COUNT;

static inline const memory_how *how_of(const subject *s)
{
    return s->how;
}

/* A subject made otherwise; `how` must live as long as it is used. */
static inline subject subject_with(const subject *s, const memory_how *how)
{
    subject changed = *s;
    changed.how = how;
    return changed;
}

#endif
