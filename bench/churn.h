/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * churn.h - measures fragmentation: allocates sizes of one distribution and frees random live
 * ranges to stay at a target occupancy. docs/benchmarks.md defines the distributions.
 *
 * The caller provides the space, which is empty and has the arena's size, and keeps ownership.
 */
#ifndef QUIRE_BENCH_CHURN_H
#define QUIRE_BENCH_CHURN_H

#include "bench/workload.h"

/* A ramp is repeated with CHURN_SEEDS seeds, which differ by CHURN_SEED_STEP; results are means. */
enum { CHURN_SEEDS = 5, CHURN_SEED_STEP = 1000 };

typedef struct churn_sizes {
    const char *name;
    uint64_t seed;
    uint64_t arena; /* bytes */
    uint64_t unit;  /* alignment and granule; sizes are rounded up to it */
    uint64_t (*draw)(rng *r);
} churn_sizes;

/* The space under test. `allocate` returns a handle, or 0 if the request fails. */
typedef struct churn_space {
    void *state; /* passed to both functions */
    uint64_t (*allocate)(void *state, uint64_t size, uint64_t alignment, uint64_t *offset);
    void (*free)(void *state, uint64_t handle);
} churn_space;

typedef struct churn_filled {
    double failures_per_1000; /* failed requests at the target */
    double external; /* 1 - largest gap / all gaps, mean over `samples` in the second half */
    double full;     /* live share after filling up to the first failure without a free */
    int samples;
} churn_filled;

/* The name of a distribution, or NULL beyond the last one. */
const char *churn_name(size_t index);

/* Returns NULL if no distribution has the name. */
const churn_sizes *churn_find(const char *name);

/*
 * Raises the target until a request fails and returns the live share of the arena then, or after
 * `max_steps` requests. Returns a value below 0 if host memory is exhausted.
 */
double churn_ramp(const churn_sizes *sizes, uint64_t seed, uint64_t max_steps,
                  const churn_space *space);

/*
 * Sends 100,000 requests, or `max_steps` if that is less, at a constant target. Returns false if
 * host memory is exhausted.
 */
bool churn_fill(const churn_sizes *sizes, double target, uint64_t max_steps,
                const churn_space *space, churn_filled *out);

#endif
