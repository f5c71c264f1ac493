/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * bits.c - bits.h against simple definitions, for all 64-bit values.
 */
#include "src/base/bits.h"

#include "tests/cbmc/proof.h"

static uint32_t count_slowly(uint64_t value)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < 64; i++)
        count += (uint32_t)(value >> i & 1);
    return count;
}

PROOF(a_power_of_two_has_one_bit)
{
    uint64_t value = any_u64();
    PROVE(qi_is_power_of_two(value) == (count_slowly(value) == 1));
    PROVE(qi_count_bits(value) == count_slowly(value));
}

PROOF(the_highest_and_lowest_bit_bound_the_set_bits)
{
    uint64_t value = any_u64();
    ASSUME(value != 0);
    uint32_t high = qi_highest_bit(value), low = qi_lowest_bit(value);
    PROVE(high < 64 && low <= high);
    PROVE(value >> high == 1);
    PROVE(value >> low & 1);
    PROVE((value & ((UINT64_C(1) << low) - 1)) == 0);
}

PROOF(a_sum_overflows_when_it_exceeds_64_bits)
{
    uint64_t a = any_u64(), b = any_u64(), sum = 0;
    bool overflows = qi_add_overflows(a, b, &sum);
    PROVE(overflows == (a > UINT64_MAX - b));
    PROVE(overflows || (sum >= a && sum - a == b));
}

/* One factor is a granule or a small count: CBMC cannot decide products of two arbitrary words. */
PROOF(a_product_overflows_when_it_exceeds_64_bits)
{
    uint64_t a = any_u64(), product = 0;
    uint32_t shift = (uint32_t)any_below(64);
    bool overflows = qi_multiply_overflows(a, UINT64_C(1) << shift, &product);
    PROVE(overflows == (a << shift >> shift != a));
    PROVE(overflows || product == a << shift);
    overflows = qi_multiply_overflows(a, 3, &product);
    PROVE(overflows == (a > UINT64_MAX / 3));
    PROVE(overflows || product == a + a + a);
}

PROOF(padding_is_the_least_that_reaches_a_multiple)
{
    uint64_t value = any_u64(), alignment = any_power_of_two(64);
    uint64_t padding = qi_padding(value, alignment), less = any_u64();
    PROVE(padding < alignment);
    PROVE(((value + padding) & (alignment - 1)) == 0);
    ASSUME(less < padding);
    PROVE(((value + less) & (alignment - 1)) != 0);
}

PROOF(aligned_values_are_multiples_next_to_the_value)
{
    uint64_t value = any_u64(), alignment = any_power_of_two(64), up = 0;
    uint64_t down = qi_align_down(value, alignment);
    PROVE((down & (alignment - 1)) == 0 && down <= value && value - down < alignment);
    bool overflows = qi_align_up_overflows(value, alignment, &up);
    PROVE(overflows == (down != value && down > UINT64_MAX - alignment));
    PROVE(overflows || up == (down == value ? value : down + alignment));
}

PROOF(a_peak_only_rises)
{
    uint64_t peak = any_u64(), to = any_u64(), before = peak;
    qi_raise(&peak, to);
    PROVE(peak >= before && peak >= to);
    PROVE(peak == before || peak == to);
}

PROOF(a_range_fits_when_its_end_does)
{
    uint64_t offset = any_u64(), size = any_u64(), limit = any_u64();
    bool wraps = offset + size < offset;
    PROVE(qi_range_fits(offset, size, limit) == (!wraps && offset + size <= limit));
}
