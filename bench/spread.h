/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * spread.h - minimum and median of a few repeats.
 */
#ifndef QUIRE_BENCH_SPREAD_H
#define QUIRE_BENCH_SPREAD_H

#include <stddef.h>
#include <stdlib.h>

typedef struct spread {
    double min, median;
} spread;

static inline int spread_compare(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

/* Sorts the values. `count` is at least 1. */
static inline spread spread_of(double *values, size_t count)
{
    qsort(values, count, sizeof *values, spread_compare);
    double middle = count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
    return (spread){values[0], middle};
}

#endif
