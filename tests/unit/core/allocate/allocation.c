/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * allocation.c - allocations: refusals, places, and what the info reports. Their states are in
 * allocation_state.c, neighbours of different types in allocation_neighbour.c.
 */
#include "tests/support/fixture.h"

#include <stdio.h>

/* ---- refusals ----------------------------------------------------------------------------- */

/* Both functions that allocate refuse with the same code and create nothing. */
static void expect_refused(fixture *b, const quire_allocation_options *options, quire_result code,
                           const char *says)
{
    quire_allocation none = {1};
    uint64_t pages = b->fake.pages;
    fixture_allocate_fails(b, code, options);
    CHECK_HAS(quire_last_error(), says);
    CHECK_FAILS(quire_reserve(b->memory, options, &none), code);
    CHECK_EQ(none.id, 0);
    CHECK_EQ(b->fake.pages, pages);
}

UNIT(allocation, each_wrong_request_is_refused_with_its_message)
{
    static char longer[QUIRE_MAX_NAME + 2];
    memset(longer, 'n', sizeof longer - 1);
    const quire_memory_options plain = {.name = "private"},
                               small = {.name = "small", .fit.max_alignment = 1024},
                               padded = {.pages = {.extra_padding = 100, .size_granularity = 48}};
    const quire_result invalid = QUIRE_ERROR_INVALID_ARGUMENT,
                       full = QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                       hidden = QUIRE_ERROR_NOT_HOST_VISIBLE;
    const struct {
        const quire_memory_options *memory;
        quire_allocation_options options;
        quire_result code;
        const char *says;
    } rows[] = {
        {&plain, {.size = 0}, invalid, "size 0"},                                  /* D6 */
        {&plain, {.size = UINT64_MAX - 2, .alignment = 16}, full, "1 GiB in all"}, /* D4 */
        {&plain, {.size = (UINT64_C(1) << 30) + 1, .dedicated = true}, full, "1 GiB in all"},
        {&padded, {.size = UINT64_MAX - 15}, full, "18446744073709551600 bytes requested"},
        {&padded, {.size = UINT64_MAX - 101}, full, "rounded up, that exceeds 64 bits"},
        {&plain, {.size = 1, .alignment = 96}, invalid, "alignment 96 is not a power"}, /* D3 */
        {&plain, {.size = 1, .alignment = UINT64_MAX}, invalid, "is not a power of two"},
        {&small,
         {.size = 1, .alignment = 2048},
         invalid,
         "alignment 2048 exceeds the maximum of memory 'small', 1024"},
        {&small, {.size = 1, .alignment = 2048, .dedicated = true}, invalid, "2048"},
        {&plain,
         {.size = 1, .alignment = UINT64_C(1) << 63},
         invalid,
         "alignment 9223372036854775808 exceeds"},
        {&plain, {.size = 1, .name = longer}, invalid, "256 bytes: 255 are allowed"},
        {&plain, {.size = 1, .unused = {0, 7}}, invalid, "quire_allocation_options.unused[1]"},
        {&plain,
         {.size = 1, .host_read = true},
         hidden,
         "memory 'private' of kind 0 is not host-visible (DEVICE_LOCAL)"},
        {&plain, {.size = 1, .host_write = true}, hidden, "not host-visible"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fixture b;
        printf("# %s\n", rows[i].says);
        fixture_make(&b, rows[i].memory);
        expect_refused(&b, &rows[i].options, rows[i].code, rows[i].says);
        CHECK_EQ(fixture_stats(&b).failures, rows[i].code == full ? 2 : 0);
        fixture_end(&b);
    }
}

#define CASE(name, ...) UNIT_MEMORY(allocation, name, b, __VA_ARGS__)

CASE(the_limits_of_a_request_are_accepted, .kind.required = QUIRE_HOST_VISIBLE,
     .fit.max_alignment = 1024)
{
    char longest[QUIRE_MAX_NAME + 1] = "";
    memset(longest, 'n', sizeof longest - 1);
    ALLOCATE(b, .size = 1, .alignment = 1024, .name = longest, .host_read = true,
             .host_write = true);
}

/* ---- places ------------------------------------------------------------------------------- */

CASE(the_info_of_a_new_allocation_is_complete, .pages = {.page_size = 65536})
{
    ALLOCATE(b, .size = 300);
    quire_allocation allocation =
        ALLOCATE(b, .size = 1000, .alignment = 1024, .user_data = UINT64_MAX);
    quire_allocation_info info = fixture_info(b, allocation);
    CHECK_EQ(info.page, 0);
    CHECK(!info.dedicated);
    CHECK(info.committed);
    CHECK_EQ(info.offset, 1024);
    CHECK_EQ(info.left_padding, 0); /* the gap is a free range */
    CHECK_EQ(info.size, 1024);
    CHECK_EQ(info.requested, 1000);
    CHECK_EQ(info.address, (UINT64_C(4) << 30) + 1024);
    CHECK_EQ(info.user_data, UINT64_MAX);
    CHECK_EQ(info.map_count, 0);
    CHECK_EQ(info.object, QUIRE_OBJECT_NONE);
    CHECK_EQ(info.native, 0);
}

CASE(an_alignment_of_0_is_1, .fit.algorithm = QUIRE_FIT_FIRST)
{
    ALLOCATE(b, .size = 3);
    CHECK_EQ(fixture_info(b, ALLOCATE(b, .size = 3)).offset, 3);
    CHECK_EQ(fixture_info(b, ALLOCATE(b, .size = 3, .alignment = 1)).offset, 6);
}

/*
 * The search is bounded. With many misaligned holes it must still find the page created for the
 * request.
 */
CASE(a_request_is_placed_in_the_page_created_for_it, .pages = {.page_size = 65536})
{
    for (uint32_t i = 0; i < 100; i++) { /* each takes the start of a page and leaves a hole */
        quire_allocation_info info = fixture_info(b, ALLOCATE(b, .size = 1, .alignment = 1 << 20));
        CHECK_EQ(info.page, i);
        CHECK_EQ(info.offset, 0);
    }
}

CASE(left_padding_is_reported_if_it_belongs_to_the_allocation, .fit.algorithm = QUIRE_FIT_FIRST)
{
    ALLOCATE(b, .size = 100);
    quire_allocation aligned = ALLOCATE(b, .size = 100, .alignment = 64);
    quire_allocation_info info = fixture_info(b, aligned);
    CHECK_EQ(info.offset, 128);
    CHECK_EQ(info.left_padding, 28);
    CHECK_EQ(info.size, 100);
    CHECK_OK(quire_free(b->memory, aligned)); /* the padding is freed with it: L5 */
    CHECK_EQ(fixture_info(b, ALLOCATE(b, .size = 10)).offset, 100);
}

CASE(padding_and_rounding_of_the_policy_are_reported_apart_from_the_request,
     .fit.algorithm = QUIRE_FIT_FIRST, .pages = {.extra_padding = 32, .size_granularity = 100})
{
    quire_allocation first = ALLOCATE(b, .size = 68), second = ALLOCATE(b, .size = 69);
    CHECK_EQ(fixture_info(b, first).size, 100);
    CHECK_EQ(fixture_info(b, first).requested, 68);
    CHECK_EQ(fixture_info(b, second).offset, 100);
    CHECK_EQ(fixture_info(b, second).size, 200);
    CHECK_EQ(fixture_info(b, second).requested, 69);
    quire_memory_stats stats = fixture_stats(b);
    CHECK_EQ(stats.live_bytes, 300);
    CHECK_EQ(stats.requested_bytes, 137);
    CHECK_EQ(stats.fragmentation.internal, 163);
}

/* ---- names and user data ------------------------------------------------------------------ */

static void expect_name(fixture *b, quire_allocation allocation, size_t room, const char *expected)
{
    char name[300];
    memset(name, '?', sizeof name);
    CHECK_OK(quire_allocation_get_name(b->memory, allocation, name, room));
    CHECK_STR(name, expected);
    CHECK_EQ(name[room], '?'); /* no byte after the given room was written */
}

CASE(a_name_is_copied_cut_and_replaced, 0)
{
    char given[] = "layer 7";
    quire_allocation named = ALLOCATE(b, .size = 1, .name = given);
    quire_allocation unnamed = ALLOCATE(b, .size = 1);
    memset(given, 'x', sizeof given - 1);
    expect_name(b, named, 200, "layer 7");
    expect_name(b, named, 8, "layer 7");
    expect_name(b, named, 7, "layer ");
    expect_name(b, named, 1, "");
    expect_name(b, unnamed, 200, "");
    CHECK_OK(quire_allocation_set_name(b->memory, unnamed, "now"));
    expect_name(b, unnamed, 200, "now");
    CHECK_OK(quire_allocation_set_name(b->memory, unnamed, "a much longer one than before"));
    expect_name(b, unnamed, 200, "a much longer one than before");
    CHECK_OK(quire_allocation_set_name(b->memory, unnamed, NULL));
    expect_name(b, unnamed, 200, "");
    CHECK_OK(quire_allocation_set_name(b->memory, unnamed, NULL));
    CHECK_OK(quire_allocation_set_name(b->memory, named, ""));
    expect_name(b, named, 200, "");
}

CASE(a_name_too_long_keeps_the_old_one, 0)
{
    char longest[QUIRE_MAX_NAME + 1], name[300];
    memset(longest, 'l', QUIRE_MAX_NAME);
    longest[QUIRE_MAX_NAME] = '\0';
    quire_allocation allocation = ALLOCATE(b, .size = 1, .name = "old");
    snprintf(name, sizeof name, "%s!", longest);
    CHECK_FAILS(quire_allocation_set_name(b->memory, allocation, name),
                QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_HAS(quire_last_error(), "256 bytes");
    expect_name(b, allocation, 200, "old");
    CHECK_OK(quire_allocation_set_name(b->memory, allocation, longest));
    expect_name(b, allocation, 256, longest);
}

CASE(user_data_is_any_64_bit_value_and_can_be_changed, 0)
{
    quire_allocation allocation = ALLOCATE(b, .size = 1, .user_data = UINT64_C(1) << 63);
    CHECK_EQ(fixture_info(b, allocation).user_data, UINT64_C(1) << 63);
    CHECK_OK(quire_allocation_set_user_data(b->memory, allocation, UINT64_MAX));
    CHECK_EQ(fixture_info(b, allocation).user_data, UINT64_MAX);
    CHECK_OK(quire_allocation_set_user_data(b->memory, allocation, 0));
    CHECK_EQ(fixture_info(b, allocation).user_data, 0);
}
