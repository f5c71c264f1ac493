/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * buckets.c - comparing 16 fractions at once sets the same bits as comparing one by one, for every
 * possible fraction.
 */
#include "src/space/segregated/buckets.h"

#include "tests/support/random.h"
#include "tests/support/unit.h"

static _Alignas(16) uint8_t fractions[QI_MAX_BUCKETS];

static void expect_both(uint32_t fraction)
{
    uint32_t expected = 0;
    for (uint32_t i = 0; i < QI_MAX_BUCKETS; i++)
        expected += fractions[i] >= fraction ? 1u << i : 0;
    CHECK_EQ(qi_buckets_at_least_portable(fractions, fraction), expected);
    CHECK_EQ(qi_buckets_at_least(fractions, fraction), expected);
}

UNIT(buckets, fractions_are_compared_as_unsigned)
{
    for (uint32_t value = 0; value < 256; value++) {
        memset(fractions, (int)value, sizeof fractions);
        for (uint32_t fraction = 0; fraction <= 255; fraction++)
            expect_both(fraction);
    }
}

UNIT(buckets, each_bucket_has_its_own_bit)
{
    for (uint32_t i = 0; i < QI_MAX_BUCKETS; i++) {
        memset(fractions, 0, sizeof fractions);
        fractions[i] = 200;
        CHECK_EQ(qi_buckets_at_least(fractions, 200), 1u << i);
        CHECK_EQ(qi_buckets_at_least(fractions, 201), 0);
        CHECK_EQ(qi_buckets_at_least_portable(fractions, 200), 1u << i);
    }
}

UNIT(buckets, any_address_can_be_read_from)
{
    _Alignas(16) uint8_t wider[2 * QI_MAX_BUCKETS];
    for (uint32_t i = 0; i < sizeof wider; i++)
        wider[i] = (uint8_t)(i * 37);
    for (uint32_t at = 0; at < QI_MAX_BUCKETS; at++)
        CHECK_EQ(qi_buckets_at_least(wider + at, 100),
                 qi_buckets_at_least_portable(wider + at, 100));
}

UNIT(buckets, random_fractions)
{
    test_random r = {9};
    for (int i = 0; i < 20000; i++) {
        for (uint32_t j = 0; j < QI_MAX_BUCKETS; j++)
            fractions[j] = (uint8_t)random_next(&r);
        expect_both((uint32_t)random_below(&r, 256));
        expect_both(fractions[random_below(&r, QI_MAX_BUCKETS)]);
        expect_both((uint8_t)(fractions[0] + 1u));
    }
}
