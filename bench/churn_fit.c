/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * churn_fit.c - see churn_fit.h.
 */
#include "bench/churn_fit.h"

#include "src/base/result.h"
#include "bench/churn.h"

static uint64_t allocate(void *state, uint64_t size, uint64_t alignment, uint64_t *offset)
{
    quire_placement at;
    qi_ignore(quire_space_allocate(state, size, alignment, 0, &at));
    *offset = at.offset;
    return at.range.id; /* 0 on failure */
}

static void release(void *state, uint64_t handle)
{
    quire_space_free(state, (quire_range){handle});
}

static quire_space *make_space(const churn_sizes *sizes, quire_fit fit)
{
    quire_space_options options = {.fit.algorithm = fit, .size = sizes->arena};
    if (fit != QUIRE_FIT_FIRST && fit != QUIRE_FIT_LINEAR) /* those are byte-exact */
        options.fit.granule = sizes->unit;
    quire_space *space = NULL;
    qi_ignore(quire_space_create(&options, &space));
    return space;
}

double churn_ramp_fit(const char *name, quire_fit fit)
{
    const churn_sizes *sizes = churn_find(name);
    double sum = 0;
    for (uint64_t k = 0; sizes && k < CHURN_SEEDS; k++) {
        quire_space *space = make_space(sizes, fit);
        double reached = !space ? -1
                                : churn_ramp(sizes, sizes->seed + k * CHURN_SEED_STEP, UINT64_MAX,
                                             &(churn_space){space, allocate, release});
        quire_space_destroy(&space);
        if (reached < 0)
            return -1;
        sum += reached;
    }
    return sizes ? sum / (double)CHURN_SEEDS : -1;
}

double churn_fill_fit(const char *name, quire_fit fit, double target)
{
    const churn_sizes *sizes = churn_find(name);
    quire_space *space = sizes ? make_space(sizes, fit) : NULL;
    churn_filled filled;
    bool good = space && churn_fill(sizes, target, UINT64_MAX,
                                    &(churn_space){space, allocate, release}, &filled);
    quire_space_destroy(&space);
    return good ? filled.failures_per_1000 : -1;
}
