/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * stats_scope.c - statistics between a push and its pop: counters start at 0, peaks start at the
 * current value, and the memory's own statistics afterwards are the same as without a scope.
 */
#include "tests/support/fixture.h"

enum { PAGE = 65536, KIB = 1024 };

static void push(fixture *f)
{
    CHECK_OK(quire_memory_push_stats(f->memory));
}

static quire_memory_stats pop(fixture *f)
{
    quire_memory_stats stats;
    CHECK_OK(quire_memory_pop_stats(f->memory, &stats));
    CHECK_OK(quire_memory_check(f->memory));
    return stats;
}

static void give(fixture *f, quire_allocation allocation)
{
    CHECK_OK(quire_free(f->memory, allocation));
}

#define CASE(name, ...) UNIT_MEMORY(stats_scope, name, f, __VA_ARGS__)

CASE(counts_the_events_within_the_scope, .pages = {.page_size = PAGE, .max_pages = 2})
{
    quire_allocation none;
    ALLOCATE(f, .size = PAGE);
    push(f);
    quire_allocation first = ALLOCATE(f, .size = 8 * KIB);
    ALLOCATE(f, .size = 4 * KIB);
    give(f, first);
    CHECK_FAILS(quire_allocate(f->memory, &(quire_allocation_options){.size = 2 * PAGE}, &none),
                QUIRE_ERROR_TOO_MANY_PAGES);
    quire_memory_stats stats = pop(f);
    CHECK_EQ(stats.allocations, 2);
    CHECK_EQ(stats.frees, 1);
    CHECK_EQ(stats.failures, 1);
    CHECK_EQ(stats.pages_created, 1);
    CHECK_EQ(stats.pages_destroyed, 0);
    CHECK_EQ(stats.backend_calls, f->fake.calls[FAKE_PAGE_CREATE] - 1);
    CHECK_EQ(stats.live_bytes, PAGE + 4 * KIB);
    CHECK_EQ(stats.peak_live_bytes, PAGE + 12 * KIB);
    CHECK_EQ(stats.peak_allocation_count, 3);
    CHECK_EQ(stats.peak_page_count, 2);
}

CASE(peaks_begin_at_the_current_values, .pages = {.page_size = PAGE})
{
    ALLOCATE(f, .size = 4 * KIB);
    give(f, ALLOCATE(f, .size = 40 * KIB));
    push(f);
    give(f, ALLOCATE(f, .size = 8 * KIB));
    CHECK_EQ(fixture_stats(f).peak_live_bytes, 12 * KIB); /* of the innermost scope */
    CHECK_EQ(fixture_stats(f).allocations, 3);
    CHECK_EQ(pop(f).peak_live_bytes, 12 * KIB);
    CHECK_EQ(fixture_stats(f).peak_live_bytes, 44 * KIB); /* of the memory afterwards */
}

CASE(a_higher_peak_within_a_scope_is_the_memorys_too, .pages = {.page_size = PAGE})
{
    push(f);
    give(f, ALLOCATE(f, .size = 3 * PAGE));
    CHECK_EQ(pop(f).peak_reserved_bytes, 3 * PAGE);
    CHECK_EQ(fixture_stats(f).peak_live_bytes, 3 * PAGE);
}

CASE(every_higher_peak_from_before_is_restored, .pages = {.page_size = PAGE})
{
    quire_allocation all[3];
    for (int i = 0; i < 3; i++)
        all[i] = ALLOCATE(f, .size = PAGE - 1, .dedicated = i == 2);
    for (int i = 0; i < 3; i++)
        give(f, all[i]);
    CHECK_OK(quire_memory_trim(f->memory, 0, NULL));
    const quire_memory_stats before = fixture_stats(f);
    push(f);
    give(f, ALLOCATE(f, .size = 100));
    quire_memory_stats inner = pop(f), after = fixture_stats(f);
    CHECK_EQ(inner.peak_requested_bytes, 100);
    CHECK_EQ(inner.peak_reserved_bytes, PAGE);
    CHECK_EQ(inner.peak_allocation_count, 1);
    CHECK_EQ(inner.peak_page_count, 1);
    CHECK_EQ(after.peak_live_bytes, before.peak_live_bytes);
    CHECK_EQ(after.peak_requested_bytes, 3 * (PAGE - 1));
    CHECK_EQ(after.peak_reserved_bytes, before.peak_reserved_bytes);
    CHECK_EQ(after.peak_allocation_count, 3);
    CHECK_EQ(after.peak_page_count, 3);
}

CASE(a_push_without_host_memory_changes_nothing, .pages = {.page_size = PAGE})
{
    quire_memory_stats stats;
    give(f, ALLOCATE(f, .size = 8 * KIB));
    test_memory_fail(unit_memory_state(), 1, true);
    CHECK_FAILS(quire_memory_push_stats(f->memory), QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    test_memory_fail(unit_memory_state(), 0, false);
    CHECK_EQ(fixture_stats(f).peak_live_bytes, 8 * KIB);
    CHECK_FAILS(quire_memory_pop_stats(f->memory, &stats), QUIRE_ERROR_WRONG_STATE);
    push(f);
    CHECK_EQ(pop(f).peak_live_bytes, 0);
}

CASE(scopes_nest, .pages = {.page_size = PAGE})
{
    push(f);
    give(f, ALLOCATE(f, .size = 16 * KIB));
    push(f);
    give(f, ALLOCATE(f, .size = 8 * KIB));
    quire_memory_stats inner = pop(f), outer = pop(f);
    CHECK_EQ(inner.peak_live_bytes, 8 * KIB);
    CHECK_EQ(inner.allocations, 1);
    CHECK_EQ(outer.peak_live_bytes, 16 * KIB);
    CHECK_EQ(outer.allocations, 2);
}

CASE(every_shard_takes_part, .shards = 2, .pages = {.page_size = PAGE})
{
    ALLOCATE_ELSEWHERE(f, .size = 4 * KIB);
    push(f);
    quire_allocation here = ALLOCATE(f, .size = 8 * KIB);
    quire_allocation there = ALLOCATE_ELSEWHERE(f, .size = 16 * KIB);
    give(f, here);
    fixture_free_elsewhere(f, there);
    quire_memory_stats stats = pop(f);
    CHECK_EQ(stats.allocations, 2);
    CHECK_EQ(stats.frees, 2);
    CHECK_EQ(stats.peak_live_bytes, 28 * KIB);
    CHECK_EQ(stats.live_bytes, 4 * KIB);
}

UNIT(stats_scope, a_scope_that_is_never_popped_ends_with_the_memory)
{
    fixture f;
    fixture_make(&f, NULL);
    push(&f);
    push(&f);
    fixture_end(&f); /* the fixture checks that all host memory was returned */
}
