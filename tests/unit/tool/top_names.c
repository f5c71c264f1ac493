/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * top_names.c - sums of live ranges by name: first parts, the order, names that leave the table,
 * and names with one hash.
 */
#include <stdio.h>
#include <stdlib.h>

#include "src/tool/top/names.h"
#include "tests/support/unit.h"

static qi_host host;
static name_sums names;

static void begin(void)
{
    CHECK_OK(qi_host_init(&host, NULL));
    names = (name_sums){.host = &host};
}

static uint32_t add(const char *name, uint64_t bytes)
{
    uint32_t number = 0;
    CHECK(add_named_range(&names, name, bytes, &number));
    return number;
}

static void check_sum(size_t place, const char *name, uint64_t bytes, uint64_t ranges)
{
    const name_sum **sorted = sort_names(&names);
    CHECK(sorted && place < names.count);
    CHECK_STR(sorted[place]->name, name);
    CHECK_EQ(sorted[place]->bytes, bytes);
    CHECK_EQ(sorted[place]->ranges, ranges);
    free(sorted);
}

UNIT(top_names, first_parts_are_summed_the_most_bytes_first)
{
    begin();
    add("weights/conv1", 100);
    add("activations", 250);
    add("weights.conv2", 200);
    add("", 7);
    add("b", 7);
    CHECK_EQ(names.count, 4);
    check_sum(0, "weights", 300, 2);
    check_sum(1, "activations", 250, 1);
    check_sum(2, "", 7, 1);
    check_sum(3, "b", 7, 1);
    finish_names(&names);
}

UNIT(top_names, names_without_ranges_leave_the_table)
{
    begin();
    uint32_t kept = add("kept", 1);
    for (uint32_t i = 0; i < 10000; i++) {
        char name[32];
        snprintf(name, sizeof name, "name%u", i);
        uint32_t number = add(name, i + 1);
        check_sum(i ? 0 : 1, i ? name : "name0", i + 1, 1);
        remove_named_range(&names, number, i + 1);
    }
    CHECK(names.count == 1 && names.used == 2 && names.by_hash.count == 1);
    CHECK(add("kept", 2) == kept);
    check_sum(0, "kept", 3, 2);
    remove_named_range(&names, kept, 2);
    check_sum(0, "kept", 1, 1);
    remove_named_range(&names, kept, 1);
    CHECK(names.count == 0 && names.by_hash.count == 0);
    finish_names(&names);
}

UNIT(top_names, many_names_keep_their_numbers)
{
    enum { COUNT = 1000 };
    uint32_t numbers[COUNT];
    char name[32];
    begin();
    for (uint32_t i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "n%u", i);
        numbers[i] = add(name, COUNT - i);
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        snprintf(name, sizeof name, "n%u", i);
        check_sum(i, name, COUNT - i, 1);
        CHECK(add(name, 0) == numbers[i]);
    }
    finish_names(&names);
}

/* Both texts have the same FNV-1a hash of 64 bits. */
UNIT(top_names, names_with_one_hash_are_apart)
{
    static const char *const same[] = {"8yn0iYCKYHlIj4-BwPqk", "GReLUrM4wMqfg9yzV3KQ"};
    for (int first = 0; first < 2; first++) {
        begin();
        uint32_t numbers[] = {add(same[0], 5), add(same[1], 6)};
        CHECK(numbers[0] != numbers[1] && names.by_hash.count == 1);
        CHECK(add(same[0], 0) == numbers[0] && add(same[1], 0) == numbers[1]);
        check_sum(0, same[1], 6, 2);
        check_sum(1, same[0], 5, 2);
        remove_named_range(&names, numbers[first], 0);
        remove_named_range(&names, numbers[first], first ? 6 : 5);
        CHECK(names.count == 1 && names.by_hash.count == 1);
        check_sum(0, same[!first], first ? 5 : 6, 2);
        CHECK(add(same[!first], 0) == numbers[!first]);
        finish_names(&names);
    }
}
