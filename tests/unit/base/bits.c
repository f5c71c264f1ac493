/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * bits.c - the arithmetic of bits.h at every border: 0, 1, each power of two and its neighbours,
 * and 2^64 - 1.
 */
#include "src/base/bits.h"

#include "tests/support/random.h"
#include "tests/support/unit.h"

static uint64_t power(uint32_t exponent)
{
    return UINT64_C(1) << exponent;
}

UNIT(bits, a_power_of_two_has_exactly_one_bit)
{
    CHECK(!qi_is_power_of_two(0));
    CHECK(qi_is_power_of_two(1));
    CHECK(!qi_is_power_of_two(UINT64_MAX));
    for (uint32_t k = 1; k < 64; k++) {
        CHECK(qi_is_power_of_two(power(k)));
        CHECK(!qi_is_power_of_two(power(k) + 1));
        CHECK(k == 1 || !qi_is_power_of_two(power(k) - 1));
    }
}

UNIT(bits, the_highest_bit_ignores_all_below_it)
{
    CHECK_EQ(qi_highest_bit(1), 0);
    CHECK_EQ(qi_highest_bit(UINT64_MAX), 63);
    for (uint32_t k = 1; k < 64; k++) {
        CHECK_EQ(qi_highest_bit(power(k)), k);
        CHECK_EQ(qi_highest_bit(power(k) + 1), k);
        CHECK_EQ(qi_highest_bit(power(k) - 1), k - 1);
    }
}

UNIT(bits, the_lowest_bit_ignores_all_above_it)
{
    for (uint32_t k = 0; k < 64; k++) {
        CHECK_EQ(qi_lowest_bit(power(k)), k);
        CHECK_EQ(qi_lowest_bit(UINT64_MAX << k), k);
        CHECK_EQ(qi_lowest_bit(power(63) | power(k)), k);
    }
}

UNIT(bits, set_bits_are_counted_in_all_64)
{
    CHECK_EQ(qi_count_bits(0), 0);
    CHECK_EQ(qi_count_bits(UINT64_MAX), 64);
    for (uint32_t k = 1; k < 64; k++) {
        CHECK_EQ(qi_count_bits(power(k)), 1);
        CHECK_EQ(qi_count_bits(power(k) - 1), k);
        CHECK_EQ(qi_count_bits(power(k) + 1), 2);
    }
}

UNIT(bits, a_sum_overflows_exactly_above_2_to_the_64)
{
    uint64_t sum = 7;
    CHECK(!qi_add_overflows(0, 0, &sum));
    CHECK_EQ(sum, 0);
    CHECK(!qi_add_overflows(UINT64_MAX, 0, &sum));
    CHECK_EQ(sum, UINT64_MAX);
    CHECK(qi_add_overflows(UINT64_MAX, 1, &sum));
    CHECK(qi_add_overflows(UINT64_MAX, UINT64_MAX, &sum));
    for (uint32_t k = 0; k < 64; k++) {
        CHECK(!qi_add_overflows(power(k), UINT64_MAX - power(k), &sum));
        CHECK_EQ(sum, UINT64_MAX);
        CHECK(qi_add_overflows(power(k), UINT64_MAX - power(k) + 1, &sum));
    }
}

UNIT(bits, a_product_overflows_exactly_above_2_to_the_64)
{
    uint64_t product = 7;
    CHECK(!qi_multiply_overflows(0, UINT64_MAX, &product));
    CHECK_EQ(product, 0);
    CHECK(!qi_multiply_overflows(UINT64_MAX, 1, &product));
    CHECK_EQ(product, UINT64_MAX);
    CHECK(!qi_multiply_overflows(UINT32_MAX, UINT64_C(0x100000001), &product));
    CHECK_EQ(product, UINT64_MAX);
    for (uint32_t k = 1; k < 64; k++) {
        CHECK(!qi_multiply_overflows(power(k), power(63 - k), &product));
        CHECK_EQ(product, power(63));
        CHECK(qi_multiply_overflows(power(k), power(64 - k), &product));
    }
}

UNIT(bits, padding_is_the_distance_to_the_next_multiple)
{
    for (uint64_t alignment = 1; alignment <= 64; alignment *= 2) {
        for (uint64_t value = 0; value < 300; value++) {
            uint64_t least = 0;
            while ((value + least) % alignment)
                least++;
            CHECK_EQ(qi_padding(value, alignment), least);
            CHECK_EQ(qi_align_down(value, alignment), value - value % alignment);
        }
    }
}

UNIT(bits, padding_is_right_for_the_largest_numbers)
{
    for (uint32_t k = 0; k < 64; k++) {
        CHECK_EQ(qi_padding(UINT64_MAX, power(k)), k ? 1 : 0);
        CHECK_EQ(qi_padding(0, power(k)), 0);
        CHECK_EQ(qi_padding(1, power(k)), power(k) - 1);
        CHECK_EQ(qi_padding(power(63), power(k)), 0);
        CHECK_EQ(qi_align_down(UINT64_MAX, power(k)), UINT64_MAX - (power(k) - 1));
        CHECK_EQ(qi_align_down(power(k) - 1, power(k)), 0);
    }
}

UNIT(bits, aligning_up_overflows_only_above_the_last_multiple)
{
    uint64_t aligned = 7;
    for (uint32_t k = 1; k < 64; k++) {
        uint64_t last = UINT64_MAX - (power(k) - 1);
        CHECK(!qi_align_up_overflows(last, power(k), &aligned));
        CHECK_EQ(aligned, last);
        CHECK(!qi_align_up_overflows(last - 1, power(k), &aligned));
        CHECK_EQ(aligned, last);
        CHECK(qi_align_up_overflows(last + 1, power(k), &aligned));
        CHECK(qi_align_up_overflows(UINT64_MAX, power(k), &aligned));
        CHECK(!qi_align_up_overflows(1, power(k), &aligned));
        CHECK_EQ(aligned, power(k));
        CHECK(!qi_align_up_overflows(0, power(k), &aligned));
        CHECK_EQ(aligned, 0);
    }
    CHECK(!qi_align_up_overflows(UINT64_MAX, 1, &aligned));
    CHECK_EQ(aligned, UINT64_MAX);
}

UNIT(bits, the_greatest_common_divisor_of_0_is_the_other)
{
    CHECK_EQ(qi_gcd(12, 18), 6);
    CHECK_EQ(qi_gcd(18, 12), 6);
    CHECK_EQ(qi_gcd(0, 7), 7);
    CHECK_EQ(qi_gcd(7, 0), 7);
    CHECK_EQ(qi_gcd(0, 0), 0);
    CHECK_EQ(qi_gcd(UINT64_MAX, UINT64_MAX), UINT64_MAX);
}

UNIT(bits, a_range_fits_up_to_the_last_byte_of_the_limit)
{
    CHECK(qi_range_fits(0, 0, 0));
    CHECK(!qi_range_fits(0, 1, 0));
    CHECK(!qi_range_fits(1, 0, 0));
    CHECK(qi_range_fits(10, 90, 100));
    CHECK(!qi_range_fits(10, 91, 100));
    CHECK(qi_range_fits(100, 0, 100));
    CHECK(!qi_range_fits(101, 0, 100));
    CHECK(qi_range_fits(0, UINT64_MAX, UINT64_MAX));
    CHECK(qi_range_fits(UINT64_MAX, 0, UINT64_MAX));
    CHECK(!qi_range_fits(1, UINT64_MAX, UINT64_MAX)); /* the sum would wrap to 0 */
    CHECK(!qi_range_fits(UINT64_MAX, UINT64_MAX, 100));
}
