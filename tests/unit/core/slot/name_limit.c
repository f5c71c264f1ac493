/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * name_limit.c - limits of names: the bytes of the allocations whose names have a common prefix
 * never exceed the limit, however they got their names. The bytes of a prefix can be queried.
 */
#include "tests/support/fixture.h"

#include "src/core/state/memory.h"

enum { PAGE = 65536 };

#define OVER QUIRE_ERROR_OVER_BUDGET

static void make(fixture *b)
{
    fixture_make(b, &(quire_memory_options){.name = "model", .pages = {.page_size = PAGE}});
}

static void limit(fixture *b, const char *prefix, uint64_t bytes)
{
    CHECK_OK(quire_memory_set_name_limit(b->memory, prefix, bytes));
    CHECK_OK(quire_memory_check(b->memory));
}

static quire_name_usage usage_of(fixture *b, const char *prefix)
{
    quire_name_usage usage;
    CHECK_OK(quire_memory_get_name_usage(b->memory, prefix, &usage));
    CHECK_OK(quire_memory_check(b->memory));
    return usage;
}

static void expect(fixture *b, const char *prefix, uint64_t held, uint64_t count)
{
    quire_name_usage usage = usage_of(b, prefix);
    CHECK_EQ(usage.held_bytes, held);
    CHECK_EQ(usage.allocation_count, count);
}

static quire_allocation allocate(fixture *b, const char *name, uint64_t size)
{
    return ALLOCATE(b, .size = size, .name = name);
}

static void refuse(fixture *b, const quire_allocation_options *options)
{
    quire_memory_stats before, after;
    quire_allocation none = {1};
    before = fixture_stats(b);
    CHECK_FAILS(quire_allocate(b->memory, options, &none), OVER);
    CHECK_EQ(none.id, 0);
    after = fixture_stats(b);
    CHECK_EQ(after.allocation_count, before.allocation_count);
    CHECK_EQ(after.live_bytes, before.live_bytes);
    CHECK_EQ(after.allocations, before.allocations);
    CHECK_EQ(after.frees, before.frees);
    CHECK_EQ(after.failures, before.failures + 1);
    CHECK_EQ(after.metadata_bytes, before.metadata_bytes);
    CHECK_OK(quire_memory_check(b->memory));
}

#define REFUSE(b, ...) refuse((b), &(quire_allocation_options){__VA_ARGS__})

#define CASE(name) UNIT_ON(name_limit, name, fixture, b, make(b), fixture_end)

/* ---- allocations -------------------------------------------------------------------------- */

CASE(a_limit_holds_for_names_with_its_prefix)
{
    limit(b, "weights", 8192);
    quire_allocation first = allocate(b, "weights/0", 4000); /* holds 4096 */
    allocate(b, "weights", 2048);
    expect(b, "weights", 6144, 2);
    CHECK_EQ(usage_of(b, "weights").requested_bytes, 6048);
    REFUSE(b, .size = 2049, .name = "weights/1");
    CHECK_HAS(quire_last_error(),
              "the 8 KiB limit of names that start with 'weights' (6 KiB in use)");
    REFUSE(b, .size = 2049, .name = "weights/1", .dedicated = true);
    allocate(b, "weight", PAGE); /* another prefix */
    allocate(b, "my weights", PAGE);
    ALLOCATE(b, .size = PAGE);
    allocate(b, "weights/1", 2048); /* exactly the rest */
    REFUSE(b, .size = 1, .name = "weights/2");
    CHECK_OK(quire_free(b->memory, first));
    allocate(b, "weights/2", 4096);
    expect(b, "weights", 8192, 3);
}

CASE(limits_of_several_prefixes_all_hold)
{
    limit(b, "", 4096);
    limit(b, "a", 3072);
    limit(b, "a/b", 1024);
    allocate(b, "a/b", 1024);
    REFUSE(b, .size = 1, .name = "a/bc");
    allocate(b, "a/c", 2048);
    REFUSE(b, .size = 1, .name = "a");
    REFUSE(b, .size = 1025, .name = "c");
    allocate(b, "c", 1024);
    REFUSE(b, .size = 1, .name = "");
    ALLOCATE(b, .size = PAGE); /* an allocation without a name has no prefix */
    expect(b, "", 4096, 3);
    expect(b, "a", 3072, 2);
    expect(b, "a/b", 1024, 1);
    expect(b, "a/", 3072, 2); /* without a limit */
}

CASE(every_allocation_with_a_name_counts)
{
    limit(b, "x", 10 * 1024);
    quire_allocation reserved;
    quire_buffer buffer = BUFFER(b, .size = 1024, .name = "x");
    quire_image image = IMAGE(b, .width = 1024, .name = "x");
    CHECK_OK(quire_reserve(b->memory, &(quire_allocation_options){.size = 1024, .name = "x"},
                           &reserved));
    quire_allocation own = ALLOCATE(b, .size = 1024, .name = "x", .dedicated = true);
    expect(b, "x", 4096, 4);
    CHECK_FAILS(
        quire_buffer_create(b->memory, &(quire_buffer_options){.size = 6145, .name = "x"}, &buffer),
        OVER);
    CHECK_FAILS(
        quire_image_create(b->memory, &(quire_image_options){.width = 6145, .name = "x"}, &image),
        OVER);
    CHECK_FAILS(quire_reserve(b->memory, &(quire_allocation_options){.size = 6145, .name = "x"},
                              &(quire_allocation){0}),
                OVER);
    expect(b, "x", 4096, 4);
    CHECK_OK(quire_abort(b->memory, reserved));
    CHECK_OK(quire_free(b->memory, own));
    expect(b, "x", 2048, 2);
}

UNIT_MEMORY(name_limit, the_bytes_of_the_rounded_range_count, b, .fit.algorithm = QUIRE_FIT_BUDDY,
            .pages = {.page_size = PAGE})
{
    limit(b, "x", 8192);
    allocate(b, "other", 100);
    limit(b, "x", 8191); /* the block of 8 KiB is more than the requested 5000 bytes */
    REFUSE(b, .size = 5000, .name = "x");
    CHECK_HAS(quire_last_error(),
              "8 KiB can never fit: the limit of names that start with 'x' is 8.00 KiB");
    expect(b, "x", 0, 0);
    quire_buffer buffer;
    CHECK_FAILS(
        quire_buffer_create(b->memory, &(quire_buffer_options){.size = 5000, .name = "x"}, &buffer),
        OVER);
    CHECK_EQ(b->fake.objects, 0);
    limit(b, "x", 8192);
    allocate(b, "x", 5000);
    expect(b, "x", 8192, 1);
    CHECK_EQ(usage_of(b, "x").requested_bytes, 5000);
}

CASE(no_page_is_created_for_a_refused_name)
{
    limit(b, "x", 1000);
    REFUSE(b, .size = 1001, .name = "x");
    REFUSE(b, .size = 1001, .name = "x", .dedicated = true);
    CHECK_EQ(b->fake.calls[FAKE_PAGE_CREATE], 0);
}

/* A dedicated page includes the padding before the range: its size is known after it is created. */
UNIT_PREPARED(name_limit, a_page_created_for_a_name_above_its_limit_is_empty, b)
{
    b->fake.info.limits.page_alignment = 256;
    b->fake.address_step = 256;
    fixture_open(b, &(quire_memory_options){.pages = {.page_size = PAGE}});
    ALLOCATE(b, .size = 1, .dedicated = true); /* allocates the records */
    limit(b, "x", 4096);
    REFUSE(b, .size = 4096, .alignment = 4096, .name = "x", .dedicated = true);
    CHECK_EQ(b->fake.calls[FAKE_PAGE_CREATE], 2);
    CHECK_EQ(b->fake.pages, 2); /* retained like every empty page */
    CHECK_OK(quire_memory_trim(b->memory, 0, NULL));
    CHECK_EQ(b->fake.pages, 1);
    limit(b, "x", 8192);
    ALLOCATE(b, .size = 4096, .alignment = 4096, .name = "x", .dedicated = true);
    CHECK(usage_of(b, "x").held_bytes > 4096);
}

/* ---- limits that are set and removed ------------------------------------------------------ */

CASE(a_new_limit_counts_existing_allocations)
{
    quire_allocation first = allocate(b, "a/1", 1024);
    allocate(b, "a/2", 1024);
    allocate(b, "b", 1024);
    ALLOCATE(b, .size = 1024);
    expect(b, "a", 2048, 2);
    limit(b, "a", 2048);
    CHECK_EQ(usage_of(b, "a").limit, 2048);
    expect(b, "a", 2048, 2);
    REFUSE(b, .size = 1, .name = "a");
    CHECK_OK(quire_free(b->memory, first));
    expect(b, "a", 1024, 1);
}

CASE(a_limit_below_the_bytes_held_frees_nothing)
{
    quire_allocation first = allocate(b, "a", 4096);
    limit(b, "a", 1024);
    expect(b, "a", 4096, 1);
    REFUSE(b, .size = 1, .name = "a");
    limit(b, "a", UINT64_MAX);
    allocate(b, "a", 1024);
    limit(b, "a", 2048);
    CHECK_OK(quire_free(b->memory, first));
    allocate(b, "a", 1024);
    REFUSE(b, .size = 1, .name = "a");
}

CASE(a_limit_of_0_removes_the_limit)
{
    limit(b, "none", 0);          /* there was none */
    for (int i = 0; i < 3; i++) { /* the first, a middle one, the last */
        limit(b, "a", 256);
        limit(b, "b", 256);
        limit(b, "c", 256);
        const char *name = (const char *[]){"a", "b", "c"}[i];
        limit(b, name, 0);
        CHECK_EQ(usage_of(b, name).limit, 0);
        CHECK_OK(quire_free(b->memory, allocate(b, name, PAGE)));
        for (int k = 0; k < 3; k++)
            if (k != i)
                REFUSE(b, .size = 257, .name = ((const char *[]){"a", "b", "c"}[k]));
    }
    limit(b, "a", 0);
    limit(b, "b", 0);
    CHECK(!b->memory->names.first); /* no cost remains */
}

CASE(invalid_prefixes_are_refused)
{
    char name[QUIRE_MAX_NAME + 2] = {0};
    memset(name, 'x', QUIRE_MAX_NAME);
    limit(b, name, 256);
    allocate(b, name, 256);
    REFUSE(b, .size = 1, .name = name);
    name[QUIRE_MAX_NAME] = 'x';
    quire_name_usage usage = {.limit = 1};
    CHECK_FAILS(quire_memory_set_name_limit(b->memory, name, 1), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_FAILS(quire_memory_get_name_usage(b->memory, name, &usage), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(usage.limit, 0);
}

/* ---- new names ---------------------------------------------------------------------------- */

static void rename_to(fixture *b, quire_allocation allocation, const char *name)
{
    CHECK_OK(quire_allocation_set_name(b->memory, allocation, name));
    CHECK_OK(quire_memory_check(b->memory));
}

CASE(a_new_name_counts_under_its_limits)
{
    limit(b, "a", 4096);
    limit(b, "a/b", 1024);
    quire_allocation plain = ALLOCATE(b, .size = 4096), small = allocate(b, "c", 1024);
    rename_to(b, small, "a/b/1");
    expect(b, "a", 1024, 1);
    CHECK_FAILS(quire_allocation_set_name(b->memory, plain, "a/b"), OVER);
    CHECK_FAILS(quire_allocation_set_name(b->memory, plain, "a"), OVER);
    char text[16];
    CHECK_OK(quire_allocation_get_name(b->memory, plain, text, sizeof text));
    CHECK_STR(text, "");
    expect(b, "a", 1024, 1);
    expect(b, "a/b", 1024, 1);
    rename_to(b, small, "a/b/2"); /* the new size fits because its own bytes are released */
    rename_to(b, small, "a/2");
    expect(b, "a/b", 0, 0);
    rename_to(b, small, NULL);
    expect(b, "a", 0, 0);
    rename_to(b, plain, "a");
    expect(b, "a", 4096, 1);
    CHECK_OK(quire_free(b->memory, plain));
    expect(b, "a", 0, 0);
}

CASE(a_buffers_new_name_counts_too)
{
    limit(b, "a", 1024);
    quire_buffer small, large;
    small = BUFFER(b, .size = 1024);
    large = BUFFER(b, .size = 2048, .name = "b");
    rename_to(b, small.allocation, "a");
    CHECK_FAILS(quire_allocation_set_name(b->memory, large.allocation, "a"), OVER);
    char text[16];
    CHECK_OK(quire_allocation_get_name(b->memory, large.allocation, text, sizeof text));
    CHECK_STR(text, "b");
    rename_to(b, small.allocation, NULL);
    expect(b, "a", 0, 0);
    limit(b, "a", 2048);
    rename_to(b, large.allocation, "a");
    CHECK_OK(quire_free(b->memory, large.allocation));
    expect(b, "a", 0, 0);
}

CASE(a_rename_refused_by_a_later_limit_returns_the_bytes_of_earlier_ones)
{
    char text[16];
    quire_allocation one = allocate(b, "other", 2048), two = allocate(b, "ab/two", 1024);
    for (int turn = 0; turn < 2; turn++) { /* in either order of the limits */
        const char *small = turn ? "ab/" : "a", *large = turn ? "a" : "ab/";
        limit(b, small, 2048);
        limit(b, large, PAGE);
        CHECK_FAILS(quire_allocation_set_name(b->memory, one, "ab/one"), OVER);
        CHECK_HAS(quire_last_error(), turn ? "'ab/'" : "'a'");
        expect(b, "a", 1024, 1);
        expect(b, "ab/", 1024, 1);
        CHECK_OK(quire_allocation_get_name(b->memory, one, text, sizeof text));
        CHECK_STR(text, "other");
    }
    CHECK_OK(quire_free(b->memory, one));
    CHECK_OK(quire_free(b->memory, two));
    expect(b, "a", 0, 0);
    expect(b, "ab/", 0, 0);
}
