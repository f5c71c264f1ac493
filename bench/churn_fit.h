/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * churn_fit.h - runs churn.h on a space of quire with one of the fits.
 */
#ifndef QUIRE_BENCH_CHURN_FIT_H
#define QUIRE_BENCH_CHURN_FIT_H

#include "quire/space.h"

/*
 * The live share of the arena at the first failure, as a mean over the seeds. Returns a value below
 * 0 if the distribution is unknown or the space cannot be created.
 */
double churn_ramp_fit(const char *name, quire_fit fit);

/* Failures per 1000 requests at a constant target; below 0 likewise. */
double churn_fill_fit(const char *name, quire_fit fit, double target);

#endif
