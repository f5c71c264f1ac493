/*
 * out_of_memory.c - what is tried before a request is refused: empty pages of every shard, smaller
 * pages, other shards, and a full pass; and what the message reports of it. The callback is in
 * out_of_memory_callback.c.
 */
#include "tests/support/out_of_memory.h"

#define CASE(name, ...) UNIT_ON(out_of_memory, name, fixture, f, make(f, __VA_ARGS__), fixture_end)

/* ---- pages of other shards ------------------------------------------------------------------ */

CASE(an_empty_page_of_another_shard_that_is_too_small_is_destroyed, 2,
     (quire_page_policy){.page_size = PAGE, .max_pages = 1})
{
    fixture_free_elsewhere(f, ALLOCATE_ELSEWHERE(f, .size = PAGE));
    ALLOCATE(f, .size = 2 * PAGE);
    CHECK_EQ(f->fake.pages, 1);
    CHECK_EQ(f->fake.page_bytes, 2 * PAGE);
}

CASE(an_empty_page_of_another_shard_is_destroyed_for_a_dedicated_one, 2,
     (quire_page_policy){.page_size = PAGE, .max_pages = 1})
{
    fixture_free_elsewhere(f, ALLOCATE_ELSEWHERE(f, .size = PAGE));
    ALLOCATE(f, .size = PAGE, .dedicated = true);
    CHECK_EQ(f->fake.pages, 1);
}

UNIT_PREPARED(out_of_memory, the_same_holds_for_a_page_limit_of_the_device, f)
{
    f->fake.info.limits.max_pages = 1;
    fixture_open(f, &(quire_memory_options){.shards = 2, .pages.page_size = PAGE});
    fixture_free_elsewhere(f, ALLOCATE_ELSEWHERE(f, .size = PAGE));
    ALLOCATE(f, .size = 2 * PAGE);
    CHECK_EQ(f->fake.pages, 1);
}

CASE(an_empty_page_of_another_shard_is_used_if_it_is_large_enough, 2,
     (quire_page_policy){.page_size = PAGE})
{
    fixture_free_elsewhere(f, ALLOCATE_ELSEWHERE(f, .size = PAGE));
    ALLOCATE(f, .size = PAGE);
    CHECK_EQ(f->fake.calls[FAKE_PAGE_CREATE], 1);
    CHECK_EQ(f->fake.pages, 1);
    CHECK_EQ(fixture_stats(f).empty_bytes, 0);
}

/* A free by another thread stays in an inbox until a thread works in that shard. */
CASE(ranges_in_another_shards_inbox_are_freed_before_a_refusal, 2,
     (quire_page_policy){.page_size = PAGE})
{
    f->fake.page_budget = 64 * KIB;
    CHECK_OK(quire_free(f->memory, ALLOCATE_ELSEWHERE(f, .size = 40 * KIB, .dedicated = true)));
    ALLOCATE(f, .size = 60 * KIB, .dedicated = true);
    CHECK_EQ(f->fake.pages, 1);
}

CASE(a_range_in_a_page_of_another_shard_is_found_by_the_full_pass, 2,
     (quire_page_policy){.page_size = PAGE, .max_pages = 1})
{
    ALLOCATE_ELSEWHERE(f, .size = 1024);
    quire_allocation here = ALLOCATE(f, .size = 1024);
    CHECK_EQ(fixture_info(f, here).page, 0);
    expect_refused(f, (quire_allocation_options){.size = PAGE}, QUIRE_ERROR_TOO_MANY_PAGES,
                   "Tried: empty pages given back, a full pass, other shards");
}

/* A thread must not wait for pages that it is about to destroy itself. */
CASE(a_page_emptied_by_the_inbox_is_destroyed_before_the_limit_is_checked, 2,
     (quire_page_policy){.page_size = PAGE, .max_pages = 2, .retained_empty_bytes = 1})
{
    quire_allocation first = ALLOCATE(f, .size = PAGE);
    ALLOCATE(f, .size = PAGE);
    fixture_free_elsewhere(f, first);
    ALLOCATE(f, .size = 2 * PAGE);
    CHECK_EQ(f->fake.pages, 2);
}

/* ---- messages -------------------------------------------------------------------------------- */

CASE(the_message_reports_the_attempts, 1, (quire_page_policy){.page_size = 64 * KIB})
{
    f->fake.page_budget = 64 * KIB;
    ALLOCATE(f, .size = 40 * KIB);
    expect_refused(f, (quire_allocation_options){.size = 40 * KIB},
                   QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                   ". Tried: empty pages given back, a smaller page, a full pass");
    expect_refused(f, (quire_allocation_options){.size = 40 * KIB, .dedicated = true},
                   QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, "Tried: empty pages given back");
    CHECK(!strstr(quire_last_error(), "smaller"));
}

CASE(the_message_omits_attempts_that_could_not_help, 1,
     (quire_page_policy){.page_size = PAGE, .dedicated_threshold = PAGE})
{
    expect_refused(f, (quire_allocation_options){.size = UINT64_C(1) << 40},
                   QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, "in all");
    CHECK(!strstr(quire_last_error(), "tried"));
}
