/*
 * workload.h - lists of allocations and frees that can be made again anywhere: the same name gives
 * the same list on every machine. docs/benchmarks.md defines them.
 *
 *   aN  random sizes 256 B to 1 MiB, random victims, 16 at a time
 *   bN  small sizes, many alignments
 *   cN  last in, first out
 *   dN  first in, first out
 *   e_dnn, e_dyn  training steps of a layered network, fixed and changing sizes
 *   m_*  short ones of a, b and e
 */
#ifndef QUIRE_SRC_CLI_WORKLOAD_H
#define QUIRE_SRC_CLI_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A step: an allocation into a slot, or, with size 0, the free of what is in it. */
typedef struct workload_step {
    uint64_t size;
    uint32_t slot;
    uint32_t alignment;
} workload_step;

typedef struct workload {
    const char *name;
    workload_step *steps;
    size_t count, room;
    size_t timed_from; /* the steps before warm up */
    uint32_t slots;
    uint64_t arena;   /* bytes of the space to run it in */
    uint64_t granule; /* smallest unit worth having there */
    bool broken;      /* memory ran out while the list was made */
} workload;

/* The names, one after the other; NULL ends them. */
const char *workload_name(size_t index);

/*
 * Makes the workload of a name, another one of its kind for each variant; false when there is none
 * of that name or no memory for it. Free it in any case.
 */
bool workload_make(const char *name, uint64_t variant, workload *out);
void workload_free(workload *w);

/* The generator behind all of it (SplitMix64) and what is drawn from it. */
typedef struct rng {
    uint64_t state;
} rng;

uint64_t rng_next(rng *r);
double rng_unit(rng *r);                                   /* [0, 1) */
uint64_t rng_below(rng *r, uint64_t n);                    /* [0, n) */
uint64_t rng_log_uniform(rng *r, double low, double high); /* as many per octave everywhere */

#endif
