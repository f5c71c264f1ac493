/*
 * memory_lists.h - steps for a memory: as many ranges live all the time, random ones freed and
 * allocated again with fresh sizes, a group at a time. docs/benchmarks.md defines the sizes.
 */
#ifndef QUIRE_BENCH_MEMORY_LISTS_H
#define QUIRE_BENCH_MEMORY_LISTS_H

#include "src/cli/workload.h"

typedef enum list_sizes {
    SIZES_MIXED, /* log(256 B, 64 KiB), multiples of 256 */
    SIZES_SMALL, /* 64 B to 4 KiB in 13 steps, alignments of 16 to 256 */
    SIZES_EQUAL, /* 64 KiB */
    SIZES_LARGE  /* log(64 KiB, 16 MiB), multiples of 256 */
} list_sizes;

typedef struct list_spec {
    list_sizes sizes;
    uint64_t seed;
    uint32_t slots;
    uint64_t warm_pairs, timed_pairs;
} list_spec;

/* Pairs that are freed and then allocated again at a time. */
uint32_t list_group(uint32_t slots);

/* False: no memory. Free it with workload_free in any case. */
bool list_make(const list_spec *spec, workload *out);

#endif
