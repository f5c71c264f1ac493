/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * workload.h - reproducible lists of allocations and frees: a name gives the same list on every
 * machine. docs/benchmarks.md defines them.
 *
 *   aN  random sizes from 256 B to 1 MiB; frees 16 random ranges, then allocates 16
 *   bN  small sizes, many alignments
 *   cN  last in, first out
 *   dN  first in, first out
 *   e_dnn, e_dyn  training steps of a layered network, with fixed and changing sizes
 *   m_*  short variants of a, b and e
 */
#ifndef QUIRE_BENCH_WORKLOAD_H
#define QUIRE_BENCH_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An allocation into a slot or, with size 0, a free of the allocation in the slot. */
typedef struct workload_step {
    uint64_t size;
    uint32_t slot;
    uint32_t alignment;
} workload_step;

typedef struct workload {
    const char *name;
    workload_step *steps;
    size_t count, room;
    size_t timed_from; /* the steps before this index warm up */
    uint32_t slots;
    uint64_t arena;   /* bytes of the space to run in */
    uint64_t granule; /* smallest useful granule of that space */
    bool broken;      /* host memory was exhausted while the list was built */
} workload;

/* The name of a workload, or NULL beyond the last one. */
const char *workload_name(size_t index);

/*
 * Builds the workload of a name. Each variant has other random numbers. Returns false if the name
 * is unknown or host memory is exhausted. Free *out in any case.
 */
bool workload_make(const char *name, uint64_t variant, workload *out);
void workload_free(workload *w);

/* The random number generator of all workloads: SplitMix64. */
typedef struct rng {
    uint64_t state;
} rng;

uint64_t rng_next(rng *r);
double rng_unit(rng *r);                /* [0, 1) */
uint64_t rng_below(rng *r, uint64_t n); /* [0, n) */
uint64_t rng_log_uniform(rng *r, double low,
                         double high); /* [low, high), uniform in the logarithm */

#endif
