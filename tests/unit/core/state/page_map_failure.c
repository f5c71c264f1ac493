/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * page_map_failure.c - pages that are mapped on demand, and the backend cannot map: the call fails
 * with the backend's error, and nothing has changed.
 */
#include "tests/support/on_demand.h"

#include "quire/transfer.h"

static const quire_result REASON = QUIRE_ERROR_OUT_OF_HOST_MEMORY;

/* The next call of the backend that can fail does. */
static void fail_next(fixture *f)
{
    fake_fail(&f->fake, 1, false, REASON);
}

#define CASE(name, ...)                                                                            \
    UNIT_ON(page_map_failure, name, fixture, f, begin_on_demand(f, __VA_ARGS__), fixture_end)

/* Nothing is mapped, and the page can be mapped afterwards. */
static void check_unchanged(fixture *f, quire_allocation a)
{
    CHECK_EQ(f->fake.failed_call, FAKE_MAP);
    CHECK_EQ(f->fake.maps, 0);
    CHECK_EQ(fixture_info(f, a).map_count, 0);
    CHECK_OK(quire_memory_check(f->memory));
    map(f, a);
    unmap(f, a);
    CHECK_EQ(f->fake.maps, 0);
}

CASE(calls_that_use_bytes_fail_and_can_be_repeated, CACHED)
{
    char bytes[100];
    quire_allocation a = ALLOCATE(f, .size = 100), b = ALLOCATE(f, .size = 100);
    quire_allocation own = ALLOCATE(f, .size = 100, .dedicated = true);
    quire_view views[] = {{a, 0, 0}, {own, 0, 0}};
    const quire_copy_options copy = {.to = {.memory = f->memory, .allocation = a},
                                     .from = {.memory = f->memory, .allocation = b},
                                     .size = 100};
    fail_next(f);
    CHECK_FAILS(quire_write(f->memory, a, 0, "abc", 3), REASON);
    check_unchanged(f, a);
    fail_next(f);
    CHECK_FAILS(quire_read(f->memory, a, 0, bytes, 100), REASON);
    check_unchanged(f, a);
    fail_next(f);
    CHECK_FAILS(quire_fill(f->memory, a, &(quire_fill_options){.value = 1}, NULL), REASON);
    check_unchanged(f, a);
    fail_next(f);
    CHECK_FAILS(quire_flush(f->memory, a, 0, 0), REASON);
    check_unchanged(f, a);
    fail_next(f);
    CHECK_FAILS(quire_copy(&copy, NULL), REASON);
    check_unchanged(f, a);
    fake_fail(&f->fake, 2, false, REASON); /* the page of the second view */
    CHECK_FAILS(quire_flush_batch(f->memory, views, 2), REASON);
    check_unchanged(f, own);
    const quire_write_item writes[] = {{a, 0, "a", 1}, {a, 5, "c", 1}, {own, 9, "o", 1}};
    fake_fail(&f->fake, 2, false, REASON);
    CHECK_FAILS(quire_write_batch(f->memory, writes, 3, NULL, NULL), REASON);
    check_unchanged(f, own);
    CHECK_OK(quire_free_batch(f->memory, (quire_allocation[]){a, b, own}, 3)); /* none is in use */
}

UNIT(page_map_failure, an_allocation_fails_and_nothing_is_left)
{
    static const quire_allocation_options all[] = {
        {.size = 100, .mapped = true},
        {.size = 100, .zero = true},
        {.size = 100, .mapped = true, .zero = true, .name = "named"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        fixture f;
        begin_on_demand(&f, COHERENT);
        quire_allocation_info info;
        quire_allocation a = ALLOCATE(&f, .size = 100), made = a, many[3];
        quire_allocation_options options = all[i];
        options.info = &info;
        quire_memory_stats before = fixture_stats(&f), after;
        fail_next(&f);
        CHECK_FAILS(quire_allocate(f.memory, &options, &made), REASON);
        CHECK(!made.id && !info.host && !info.size);
        options.info = NULL;
        fake_fail(&f.fake, 1, false, REASON);
        CHECK_FAILS(quire_allocate_batch(f.memory, &options, many, 3), REASON);
        CHECK(!many[0].id);
        check_unchanged(&f, a);
        after = fixture_stats(&f);
        CHECK_EQ(after.live_bytes, before.live_bytes);
        CHECK_EQ(after.allocation_count, before.allocation_count);
        CHECK_EQ(after.failures, before.failures + 2);
        CHECK_OK(quire_allocate(f.memory, &options, &made));
        CHECK_OK(quire_free(f.memory, made));
        fixture_end(&f);
    }
}

CASE(a_map_beyond_the_maximum_leaves_no_user, COHERENT)
{
    enum { EACH = (1 << 18) - 1 };
    quire_allocation a = ALLOCATE(f, .size = 100);
    void *pointer = NULL;
    for (int i = 0; i < EACH; i++)
        map(f, a);
    CHECK_FAILS(quire_map(f->memory, a, &pointer), QUIRE_ERROR_OUT_OF_RANGE);
    for (int i = 0; i < EACH; i++)
        unmap(f, a);
    expect_maps(f, 0, 1); /* the refused map has left no user */
}
