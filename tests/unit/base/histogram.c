/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * histogram.c - percentiles against the sorted numbers themselves, for streams of many shapes.
 */
#include "src/base/histogram.h"

#include <math.h>
#include <stdlib.h>

#include "tests/support/random.h"
#include "tests/support/unit.h"

enum { MOST = 20000 };

static qi_histogram histogram;
static uint64_t numbers[MOST];

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The smallest number such that the share of numbers lies at or below it. */
static uint64_t exact_percentile(uint32_t count, double share)
{
    uint32_t i = 0;
    while (i + 1 < count && (double)(i + 1) < share * (double)count)
        i++;
    return numbers[i];
}

static void expect_close(uint32_t count, double share)
{
    uint64_t exact = exact_percentile(count, share);
    uint64_t given = qi_histogram_percentile(&histogram, share);
    if (given < exact || given - exact > exact / 64)
        check_failed(__FILE__, __LINE__, "percentile %g is %" PRIu64 ", exactly %" PRIu64, share,
                     given, exact);
}

/* Adds the numbers and compares every percentile, fine ones at the end too. */
static void expect_percentiles(uint32_t count)
{
    histogram = (qi_histogram){0};
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        qi_histogram_add(&histogram, numbers[i]);
        sum += numbers[i];
    }
    qsort(numbers, count, sizeof *numbers, compare);
    CHECK_EQ(histogram.count, count);
    CHECK_EQ(histogram.sum, sum);
    CHECK_EQ(histogram.max, numbers[count - 1]);
    for (int i = 0; i <= 100; i++)
        expect_close(count, i / 100.0);
    expect_close(count, 0.999);
    expect_close(count, 0.9999);
    CHECK_EQ(qi_histogram_percentile(&histogram, 1.0), numbers[count - 1]);
}

UNIT(histogram, an_empty_histogram_returns_0)
{
    CHECK_EQ(qi_histogram_percentile(&histogram, 0.0), 0);
    CHECK_EQ(qi_histogram_percentile(&histogram, 0.5), 0);
    CHECK_EQ(qi_histogram_percentile(&histogram, 1.0), 0);
}

UNIT(histogram, a_single_number_is_every_percentile_exactly)
{
    test_random r = {2};
    for (int i = 0; i < 300; i++) {
        uint64_t number = random_size(&r, UINT64_MAX);
        histogram = (qi_histogram){0};
        qi_histogram_add(&histogram, number);
        CHECK_EQ(qi_histogram_percentile(&histogram, 0.0), number);
        CHECK_EQ(qi_histogram_percentile(&histogram, 0.5), number);
        CHECK_EQ(qi_histogram_percentile(&histogram, 1.0), number);
    }
}

UNIT(histogram, numbers_of_every_magnitude)
{
    test_random r = {4};
    for (uint32_t i = 0; i < MOST; i++)
        numbers[i] = random_size(&r, UINT64_MAX);
    expect_percentiles(MOST);
}

UNIT(histogram, many_short_times_and_a_long_tail)
{
    test_random r = {5};
    for (uint32_t i = 0; i < MOST; i++) {
        double even = (double)(1 + random_below(&r, 1000000)) / 1000001.0;
        numbers[i] = (uint64_t)(50.0 / pow(even, 1.5));
    }
    expect_percentiles(MOST);
}

UNIT(histogram, all_numbers_the_same)
{
    for (uint32_t i = 0; i < MOST; i++)
        numbers[i] = 123456789;
    expect_percentiles(MOST);
    CHECK_EQ(qi_histogram_percentile(&histogram, 0.5), 123456789);
}

UNIT(histogram, powers_of_two_and_their_neighbours)
{
    uint32_t count = 0;
    for (uint32_t k = 1; k < 64; k++)
        for (uint64_t delta = 0; delta < 3; delta++)
            numbers[count++] = (UINT64_C(1) << k) + delta - 1;
    numbers[count++] = 0;
    expect_percentiles(count);
}

UNIT(histogram, numbers_near_two_to_the_64)
{
    uint32_t count = 0;
    for (uint64_t i = 0; i < 1000; i++)
        numbers[count++] = UINT64_MAX - i * i * UINT64_C(0x100000000);
    expect_percentiles(count);
    CHECK_EQ(histogram.max, UINT64_MAX);
}
