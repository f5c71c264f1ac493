/*
 * churn_fit.h - churn.h on a bare space with one of the fits.
 */
#ifndef QUIRE_SRC_CLI_CHURN_FIT_H
#define QUIRE_SRC_CLI_CHURN_FIT_H

#include "quire/space.h"

/*
 * The share of the arena that is live at the first failure, mean of the seeds; below 0 when there
 * is no such distribution or the space cannot be made.
 */
double churn_ramp_fit(const char *name, quire_fit fit);

/* Failures in a thousand requests at a constant target; likewise. */
double churn_fill_fit(const char *name, quire_fit fit, double target);

#endif
