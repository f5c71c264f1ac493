/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * classes.c - the rule of classes.h: a range of a list whose class and fraction suffice is large
 * enough, for every size up to 2^20 and around every power of two up to 2^32 - 1.
 */
#include "src/space/segregated/classes.h"

#include "tests/support/random.h"
#include "tests/support/unit.h"

/* Returns whether the search takes a range of this size for the request without examining it. */
static bool is_taken(uint32_t range, uint32_t request)
{
    qi_class have = qi_class_of_range(range), want = qi_class_of_request(request);
    return have.index > want.index || (have.index == want.index && have.fraction >= want.fraction);
}

/*
 * The rule between a size and the size below it. Class and fraction never fall when the size rises.
 * Therefore no range below a request is taken if the one just below is not.
 */
static void expect_rule(uint32_t size)
{
    qi_class at = qi_class_of_range(size), below = qi_class_of_range(size - 1);
    qi_class asked = qi_class_of_request(size);
    CHECK(at.index > below.index || (at.index == below.index && at.fraction >= below.fraction));
    uint32_t have = at.index << 8 | at.fraction, want = asked.index << 8 | asked.fraction;
    CHECK(want == have || want == have + 1);
    CHECK(at.fraction < 256 && asked.fraction < 256);
    CHECK(at.index < QI_CLASS_LIMIT);
    CHECK(!is_taken(size - 1, size));
}

UNIT(classes, the_rule_holds_for_every_size_up_to_two_to_the_20)
{
    for (uint32_t size = 2; size <= 1u << 20; size++)
        expect_rule(size);
}

UNIT(classes, the_rule_holds_around_every_power_of_two)
{
    for (uint32_t k = 12; k < 32; k++)
        for (uint32_t size = (1u << k) - 1000; size != (1u << k) + 1000; size++)
            expect_rule(size);
    for (uint32_t size = UINT32_MAX - 1000; size; size++)
        expect_rule(size);
}

/* Here no later check depends on the step from one size to the next. */
UNIT(classes, the_rule_holds_for_random_pairs)
{
    test_random r = {7};
    for (int i = 0; i < 1000000; i++) {
        uint32_t request = (uint32_t)random_size(&r, UINT32_MAX);
        uint64_t near = request + random_below(&r, request / 16 + 2) - request / 32;
        uint32_t range = near < 1 || near > UINT32_MAX ? 1 : (uint32_t)near;
        CHECK(range >= request || !is_taken(range, request));
        qi_class have = qi_class_of_range(range), want = qi_class_of_request(request);
        CHECK(have.index <= want.index || range >= request);
        CHECK(have.index >= want.index || range <= request + (uint64_t)(request >> 13) + 1);
    }
}

UNIT(classes, up_to_32_every_size_has_its_own_class)
{
    for (uint32_t size = 1; size <= 32; size++) {
        CHECK_EQ(qi_class_of_range(size).index, size);
        CHECK_EQ(qi_class_of_range(size).fraction, 0);
        CHECK_EQ(qi_class_of_request(size).index, size);
        CHECK_EQ(qi_class_of_request(size).fraction, 0);
    }
    CHECK_EQ(qi_class_of_range(33).index, 32);
    CHECK_EQ(qi_class_of_range(34).index, 33);
}

UNIT(classes, a_power_of_two_is_cut_into_32)
{
    for (uint32_t k = 5; k < 31; k++) {
        uint32_t first = qi_class_of_range((1u << k) - 32).index;
        CHECK_EQ(qi_class_of_range((2u << k) - 32).index, first + 32);
        for (uint32_t i = 0; i < 32; i++)
            CHECK_EQ(qi_class_of_range((1u << k) + (i << (k - 5)) - 32).index, first + i);
    }
}

UNIT(classes, sizes_of_up_to_13_bits_are_exact)
{
    for (uint32_t size = 1; size <= (1u << 14) - 32; size++)
        CHECK(is_taken(size, size));
    CHECK_EQ(qi_class_of_request((1u << 14) - 31).fraction, 1);
    CHECK_EQ(qi_class_of_range((1u << 14) - 31).fraction, 0);
}

UNIT(classes, larger_sizes_lose_little)
{
    test_random r = {8};
    for (int i = 0; i < 200000; i++) {
        uint32_t request = (uint32_t)random_size(&r, UINT32_MAX - (1u << 20));
        CHECK(is_taken(request + (request >> 13) + 1, request));
    }
}

UNIT(classes, a_request_just_below_the_next_class_fits_no_list_of_its_class)
{
    uint32_t request = (1u << 20) + (1u << 15) - 33;
    qi_class next = qi_class_of_range(request + 1);
    CHECK_EQ(qi_class_of_request(request).index, next.index);
    CHECK_EQ(qi_class_of_request(request).fraction, 0);
    CHECK_EQ(qi_class_of_range(request).index, next.index - 1);
    CHECK_EQ(qi_class_of_range(request).fraction, 255);
    CHECK(!is_taken(request, request));
    CHECK(is_taken(request + 1, request));
}

UNIT(classes, the_last_size_is_below_the_limit)
{
    CHECK(qi_class_of_range(UINT32_MAX).index < QI_CLASS_LIMIT);
    CHECK(qi_class_of_request(UINT32_MAX).index < QI_CLASS_LIMIT);
    CHECK_EQ(QI_CLASS_LIMIT % 64, 0);
}
