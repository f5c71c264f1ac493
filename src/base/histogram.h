/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * histogram.h - percentiles of a stream of numbers in constant memory: 64 buckets per power of two,
 * so that a percentile is at most 1.6 % above the exact one. The maximum is exact. No lock: the
 * owner serializes all calls.
 */
#ifndef QUIRE_SRC_BASE_HISTOGRAM_H
#define QUIRE_SRC_BASE_HISTOGRAM_H

#include <stdint.h>

enum { QI_HISTOGRAM_STEPS = 64, QI_HISTOGRAM_ROWS = 59 };

typedef struct qi_histogram {
    uint64_t count;
    uint64_t sum;
    uint64_t max;
    uint64_t buckets[QI_HISTOGRAM_ROWS * QI_HISTOGRAM_STEPS];
} qi_histogram;

void qi_histogram_add(qi_histogram *histogram, uint64_t value);

/* The value that `share` (0 to 1) of the numbers do not exceed; 0 if there are no numbers. */
uint64_t qi_histogram_percentile(const qi_histogram *histogram, double share);

#endif
