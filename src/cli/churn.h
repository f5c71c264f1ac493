/*
 * churn.h - how full a space can be kept: allocations of one distribution of sizes, with random
 * victims freed to stay at a target occupancy.
 */
#ifndef QUIRE_SRC_CLI_CHURN_H
#define QUIRE_SRC_CLI_CHURN_H

#include "quire/space.h"

/* The names of the distributions, one after the other; NULL ends them. */
const char *churn_name(size_t index);

/*
 * The share of the arena that is live at the first failure while the target rises, mean of five
 * seeds; below 0 when there is no such distribution or no memory.
 */
double churn_ramp(const char *name, quire_fit fit);

/* Failures in a thousand requests at a constant target; likewise. */
double churn_fill(const char *name, quire_fit fit, double target);

#endif
