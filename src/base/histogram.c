/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * histogram.c - the bucket of a value is its power of two and its next 6 bits.
 */
#include "src/base/histogram.h"

#include "src/base/bits.h"

/*
 * Values below 64 have one bucket each. Above, the row is the power of two and the step within the
 * row is the next 6 bits.
 */
static uint32_t bucket_of(uint64_t value)
{
    if (value < QI_HISTOGRAM_STEPS)
        return (uint32_t)value;
    uint32_t shift = qi_highest_bit(value) - 6;
    return (shift + 1) * QI_HISTOGRAM_STEPS + (uint32_t)(value >> shift) - QI_HISTOGRAM_STEPS;
}

/* The largest value of a bucket. */
static uint64_t top_of(uint32_t bucket)
{
    uint32_t row = bucket / QI_HISTOGRAM_STEPS, step = bucket % QI_HISTOGRAM_STEPS;
    if (!row)
        return step;
    uint32_t shift = row - 1;
    return ((uint64_t)(step + QI_HISTOGRAM_STEPS) << shift) + ((UINT64_C(1) << shift) - 1);
}

void qi_histogram_add(qi_histogram *histogram, uint64_t value)
{
    histogram->count++;
    histogram->sum += value;
    histogram->max = value > histogram->max ? value : histogram->max;
    histogram->buckets[bucket_of(value)]++;
}

uint64_t qi_histogram_percentile(const qi_histogram *histogram, double share)
{
    double wanted = share * (double)histogram->count;
    uint64_t seen = 0;
    for (uint32_t i = 0; i < QI_HISTOGRAM_ROWS * QI_HISTOGRAM_STEPS; i++) {
        seen += histogram->buckets[i];
        if (seen && (double)seen >= wanted)
            return top_of(i) < histogram->max ? top_of(i) : histogram->max;
    }
    return histogram->max;
}
