/*
 * allocation.c - allocations: refusals, places, and what the info reports. Their states are in
 * allocation_state.c, neighbours of different types in allocation_neighbour.c.
 */
#include "tests/support/fixture.h"

#include <stdio.h>

/* Both functions that allocate refuse with the same code and create nothing. */
#define EXPECT_REFUSED(b, code, says, ...)                                                         \
    expect_refused((b), &(quire_allocation_options){__VA_ARGS__}, (code), (says))

static void expect_refused(fixture *b, const quire_allocation_options *options, quire_result code,
                           const char *says)
{
    quire_allocation none = {1}, neither = {1};
    uint64_t pages = b->fake.pages;
    CHECK_FAILS(quire_allocate(b->memory, options, &none), code);
    CHECK_HAS(quire_last_error(), says);
    CHECK_FAILS(quire_reserve(b->memory, options, &neither), code);
    CHECK_EQ(none.id, 0);
    CHECK_EQ(neither.id, 0);
    CHECK_EQ(b->fake.pages, pages);
}

/* ---- refusals ----------------------------------------------------------------------------- */

UNIT(allocation, invalid_sizes_are_refused)
{
    static const quire_fit fits[] = {QUIRE_FIT_SEGREGATED, QUIRE_FIT_FIRST, QUIRE_FIT_BUDDY,
                                     QUIRE_FIT_LINEAR};
    for (int i = 0; i < 4; i++) {
        fixture b;
        fixture_make(
            &b, &(quire_memory_options){.fit.algorithm = fits[i], .pages = {.page_size = 4096}});
        ALLOCATE(&b, .size = 10);
        EXPECT_REFUSED(&b, QUIRE_ERROR_INVALID_ARGUMENT, "size 0", .size = 0); /* D6 */
        static const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - 2, UINT64_C(1) << 63,
                                         (UINT64_C(1) << 30) + 1, UINT64_C(1000000000000000000)};
        for (int k = 0; k < 5; k++) { /* D4 */
            EXPECT_REFUSED(&b, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, "1 GiB in all", .size = sizes[k],
                           .alignment = 16);
            EXPECT_REFUSED(&b, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, "1 GiB in all", .size = sizes[k],
                           .dedicated = true);
        }
        fixture_end(&b);
    }
}

#define CASE(name, ...) UNIT_MEMORY(allocation, name, b, __VA_ARGS__)

CASE(sizes_that_overflow_with_their_padding_are_refused,
     .pages = {.extra_padding = 100, .size_granularity = 48})
{
    EXPECT_REFUSED(b, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, "18446744073709551600 bytes requested",
                   .size = UINT64_MAX - 15);
    EXPECT_REFUSED(b, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, "rounded up, that exceeds 64 bits",
                   .size = UINT64_MAX - 101);
    quire_memory_stats stats = fixture_stats(b);
    CHECK_EQ(stats.failures, 4);
}

CASE(alignments_other_than_powers_of_two_are_refused, 0)
{
    static const uint64_t wrong[] = {3, 6, 96, 4095, UINT64_MAX, (UINT64_C(1) << 63) + 1};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) { /* D3 */
        char says[64];
        snprintf(says, sizeof says, "alignment %llu is not a power of two",
                 (unsigned long long)wrong[i]);
        EXPECT_REFUSED(b, QUIRE_ERROR_INVALID_ARGUMENT, says, .size = 1, .alignment = wrong[i]);
    }
}

CASE(alignments_above_the_largest_are_refused, .name = "small", .fit.max_alignment = 1024)
{
    ALLOCATE(b, .size = 1, .alignment = 1024);
    EXPECT_REFUSED(b, QUIRE_ERROR_INVALID_ARGUMENT,
                   "alignment 2048 exceeds the maximum of memory 'small', 1024", .size = 1,
                   .alignment = 2048);
    EXPECT_REFUSED(b, QUIRE_ERROR_INVALID_ARGUMENT, "alignment 9223372036854775808 exceeds",
                   .size = 1, .alignment = UINT64_C(1) << 63);
    EXPECT_REFUSED(b, QUIRE_ERROR_INVALID_ARGUMENT, "2048", .size = 1, .alignment = 2048,
                   .dedicated = true);
}

CASE(names_and_reserved_fields_are_checked, 0)
{
    char name[QUIRE_MAX_NAME + 2];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    EXPECT_REFUSED(b, QUIRE_ERROR_INVALID_ARGUMENT, "256 bytes: 255 are allowed", .size = 1,
                   .name = name);
    ALLOCATE(b, .size = 1, .name = name + 1);
    EXPECT_REFUSED(b, QUIRE_ERROR_INVALID_ARGUMENT, "quire_allocation_options.unused[1]", .size = 1,
                   .unused = {0, 7});
}

UNIT(allocation, host_access_is_refused_if_the_memory_cannot_be_mapped)
{
    fixture b;
    fixture_make(&b, &(quire_memory_options){.name = "private"});
    EXPECT_REFUSED(&b, QUIRE_ERROR_NOT_HOST_VISIBLE,
                   "memory 'private' of kind 0 is not host-visible (DEVICE_LOCAL)", .size = 1,
                   .host_read = true);
    EXPECT_REFUSED(&b, QUIRE_ERROR_NOT_HOST_VISIBLE, "not host-visible", .size = 1,
                   .host_write = true);
    fixture_end(&b);
    fixture_make(&b, &(quire_memory_options){.kind.required = QUIRE_HOST_VISIBLE});
    ALLOCATE(&b, .size = 1, .host_read = true, .host_write = true);
    fixture_end(&b);
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

CASE(a_name_too_long_or_without_memory_keeps_the_old_one, 0)
{
    char longest[QUIRE_MAX_NAME + 1], name[300];
    memset(longest, 'l', QUIRE_MAX_NAME);
    longest[QUIRE_MAX_NAME] = '\0';
    quire_allocation allocation = ALLOCATE(b, .size = 1, .name = "old");
    snprintf(name, sizeof name, "%s!", longest);
    CHECK_FAILS(quire_allocation_set_name(b->memory, allocation, name),
                QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_HAS(quire_last_error(), "256 bytes");
    for (uint64_t call = 1; call <= 2; call++) {
        test_memory_fail(unit_memory_state(), call, false);
        CHECK_FAILS(quire_allocation_set_name(b->memory, allocation, "new"),
                    QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    }
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
