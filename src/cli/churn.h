/*
 * churn.h - how full a space can be kept: allocations of one distribution of sizes, with random
 * victims freed to stay at a target occupancy. docs/benchmarks.md defines the distributions.
 *
 * The space is whatever the caller hands over, empty and of the arena's size; it stays the
 * caller's.
 */
#ifndef QUIRE_SRC_CLI_CHURN_H
#define QUIRE_SRC_CLI_CHURN_H

#include "src/cli/workload.h"

enum { CHURN_SEEDS = 5, CHURN_SEED_STEP = 1000 }; /* what a mean of several ramps is taken over */

typedef struct churn_sizes {
    const char *name;
    uint64_t seed;
    uint64_t arena; /* bytes */
    uint64_t unit;  /* sizes are rounded up to it, and it is the alignment and the granule */
    uint64_t (*draw)(rng *r);
} churn_sizes;

/* What is filled. A handle of 0 is a refusal. */
typedef struct churn_space {
    void *state;
    uint64_t (*allocate)(void *state, uint64_t size, uint64_t alignment, uint64_t *offset);
    void (*free)(void *state, uint64_t handle);
} churn_space;

typedef struct churn_filled {
    double failures_per_1000; /* requests at the target */
    double external;          /* 1 - largest gap / all gaps, mean of samples of the second half */
    double full; /* share that is live when it is filled on, without a free, to the first refusal */
    int samples;
} churn_filled;

/* The names of the distributions, one after the other; NULL ends them. */
const char *churn_name(size_t index);

/* NULL when there is no such distribution. */
const churn_sizes *churn_find(const char *name);

/*
 * The share of the arena that is live at the first failure while the target rises, or after
 * `max_steps` requests; below 0 when there is no memory for the list of live ranges.
 */
double churn_ramp(const churn_sizes *sizes, uint64_t seed, uint64_t max_steps,
                  const churn_space *space);

/* What happens at a constant target in 100,000 requests or `max_steps`; false: no memory. */
bool churn_fill(const churn_sizes *sizes, double target, uint64_t max_steps,
                const churn_space *space, churn_filled *out);

#endif
