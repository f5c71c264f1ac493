/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * memory_lists.h - lists of steps for a memory. The number of live ranges is constant: each group
 * of steps frees random ranges and allocates as many with new sizes. docs/benchmarks.md defines the
 * sizes.
 */
#ifndef QUIRE_BENCH_MEMORY_LISTS_H
#define QUIRE_BENCH_MEMORY_LISTS_H

#include "bench/workload.h"

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

/* The number of pairs in a group: that many frees, then that many allocations. */
uint32_t list_group(uint32_t slots);

/* Returns false if host memory is exhausted. Free *out with workload_free in any case. */
bool list_make(const list_spec *spec, workload *out);

#endif
