/*
 * buckets.c - the comparison of 16 fractions at once gives the same bits as the one by one, for
 * all fractions that can be asked for.
 */
#include "src/space/buckets.h"

#include "tests/support/random.h"
#include "tests/support/unit.h"

static _Alignas(16) uint8_t fractions[QI_BUCKETS];

static void expect_both(uint32_t fraction)
{
    uint32_t expected = 0;
    for (uint32_t i = 0; i < QI_BUCKETS; i++)
        expected += fractions[i] >= fraction ? 1u << i : 0;
    CHECK_EQ(qi_buckets_at_least_portable(fractions, fraction), expected);
    CHECK_EQ(qi_buckets_at_least(fractions, fraction), expected);
}

UNIT(buckets, equal_fractions_of_every_value_are_compared_without_sign)
{
    for (uint32_t value = 0; value < 256; value++) {
        memset(fractions, (int)value, sizeof fractions);
        for (uint32_t fraction = 0; fraction <= 256; fraction++)
            expect_both(fraction);
    }
}

UNIT(buckets, each_bucket_has_its_own_bit)
{
    for (uint32_t i = 0; i < QI_BUCKETS; i++) {
        memset(fractions, 0, sizeof fractions);
        fractions[i] = 200;
        CHECK_EQ(qi_buckets_at_least(fractions, 200), 1u << i);
        CHECK_EQ(qi_buckets_at_least(fractions, 201), 0);
        CHECK_EQ(qi_buckets_at_least_portable(fractions, 200), 1u << i);
    }
}

UNIT(buckets, nothing_reaches_the_fraction_that_means_none)
{
    memset(fractions, 255, sizeof fractions);
    CHECK_EQ(qi_buckets_at_least(fractions, 255), 0xffff);
    CHECK_EQ(qi_buckets_at_least(fractions, 256), 0);
    CHECK_EQ(qi_buckets_at_least_portable(fractions, 256), 0);
    CHECK_EQ(qi_buckets_at_least(fractions, 0), 0xffff);
}

UNIT(buckets, random_fractions)
{
    test_random r = {9};
    for (int i = 0; i < 20000; i++) {
        for (uint32_t j = 0; j < QI_BUCKETS; j++)
            fractions[j] = (uint8_t)random_next(&r);
        expect_both((uint32_t)random_below(&r, 257));
        expect_both(fractions[random_below(&r, QI_BUCKETS)]);
        expect_both(fractions[0] + 1u);
    }
}
