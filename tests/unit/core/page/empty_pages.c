/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * empty_pages.c - pages without allocations: the order in which they are destroyed, their bounds in
 * bytes and in time, and the requests that reuse dedicated ones.
 */
#include "tests/support/empty_pages.h"

#include <stdio.h>

#define CASE(name, ...) UNIT_ON(empty_pages, name, fixture, f, make(f, __VA_ARGS__), fixture_end)

/* ---- bounds --------------------------------------------------------------------------------- */

/* Whole pages that are freed one after the other, and those that are there afterwards. */
UNIT(empty_pages, the_bounds_keep_the_latest_empty_ones)
{
    const struct {
        const char *name;
        quire_page_policy policy;
        int count; /* of pages */
        struct {
            int page;
            uint64_t time;
            uint32_t kept; /* a bit for each empty page */
        } frees[6];
    } rows[] = {
        {"no bound",
         {.page_size = PAGE, .retained_empty_bytes = QUIRE_RETAIN_ALL},
         4,
         {{0, 0, 0x1}, {1, UINT64_C(1) << 50, 0x3}, {2, UINT64_C(1) << 51, 0x7}, {3, 0, 0xf}}},
        {"one byte",
         {.page_size = PAGE, .retained_empty_bytes = 1},
         3,
         {{0, 0, 0}, {1, 0, 0}, {2, 0, 0}}},
        {"two pages",
         {.page_size = PAGE, .retained_empty_bytes = 2 * PAGE},
         6,
         {{3, 0, 0x8}, {0, 0, 0x9}, {5, 0, 0x21}, {1, 0, 0x22}, {4, 0, 0x12}, {2, 0, 0x14}}},
        {"no multiple of the page",
         {.page_size = PAGE, .retained_empty_bytes = 3 * PAGE - 1},
         4,
         {{0, 0, 0x1}, {1, 0, 0x3}, {2, 0, 0x6}, {3, 0, 0xc}}},
        {"an age of 100, which the first one reaches",
         {.page_size = PAGE, .retention_nanoseconds = 100},
         4,
         {{0, 0, 0x1}, {1, 50, 0x3}, {2, 99, 0x7}, {3, 100, 0xe}}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fixture f;
        quire_allocation full[6];
        printf("# %s\n", rows[i].name);
        make(&f, 1, rows[i].policy);
        const uint64_t begin = test_time;
        fill(&f, full, rows[i].count);
        for (int k = 0; k < rows[i].count; k++) {
            const uint32_t kept = rows[i].frees[k].kept;
            test_time = begin + rows[i].frees[k].time;
            let_go(&f, full[rows[i].frees[k].page]);
            expect_empty(&f, (uint64_t)__builtin_popcount(kept) * PAGE);
            for (uint32_t page = 0; page < 6; page++)
                CHECK(!(kept >> page & 1) || is_there(&f, page));
        }
        fixture_end(&f);
    }
}

/* ---- bytes ---------------------------------------------------------------------------------- */

UNIT_MEMORY(empty_pages, a_page_used_and_emptied_again_is_the_newest, f,
            .fit.algorithm = QUIRE_FIT_FIRST,
            .pages = {.page_size = PAGE, .retained_empty_bytes = 2 * PAGE})
{
    quire_allocation full[3];
    fill(f, full, 3);
    let_go(f, full[0]);
    let_go(f, full[1]);
    quire_allocation again = ALLOCATE(f, .size = 1);
    CHECK_EQ(fixture_info(f, again).page, 0);
    expect_empty(f, PAGE);
    let_go(f, again);
    let_go(f, full[2]); /* one too many: page 1 is the oldest now */
    CHECK(is_there(f, 0) && !is_there(f, 1) && is_there(f, 2));
}

CASE(each_shard_has_its_share_of_the_bytes, 2,
     (quire_page_policy){.page_size = PAGE, .retained_empty_bytes = 4 * PAGE})
{
    quire_allocation here[3], there[3];
    for (int i = 0; i < 3; i++) {
        here[i] = ALLOCATE(f, .size = PAGE);
        there[i] = ALLOCATE_ELSEWHERE(f, .size = PAGE);
    }
    for (int i = 0; i < 3; i++)
        let_go(f, here[i]);
    expect_empty(f, 2 * PAGE);
    for (int i = 0; i < 3; i++)
        fixture_free_elsewhere(f, there[i]);
    expect_empty(f, 4 * PAGE);
}

CASE(a_bound_below_one_page_a_shard_keeps_none, 2,
     (quire_page_policy){.page_size = PAGE, .retained_empty_bytes = 2 * PAGE - 1})
{
    let_go(f, ALLOCATE(f, .size = PAGE));
    expect_empty(f, 0);
}

/* A free from another shard leaves the bound to that shard: it holds once a thread works there. */
CASE(pages_freed_by_another_thread_are_bounded_when_their_shard_is_used, 2,
     (quire_page_policy){.page_size = PAGE, .retained_empty_bytes = 2 * PAGE})
{
    quire_allocation full[3];
    fill(f, full, 3);
    for (int i = 0; i < 3; i++)
        fixture_free_elsewhere(f, full[i]);
    CHECK_EQ(f->fake.pages, 3);
    quire_allocation small = ALLOCATE(f, .size = 1);
    CHECK_EQ(f->fake.pages, 1);
    let_go(f, small);
    expect_empty(f, PAGE);
}

/* ---- time ----------------------------------------------------------------------------------- */

CASE(a_free_that_empties_no_page_destroys_none, 1,
     (quire_page_policy){.page_size = PAGE, .retention_nanoseconds = 100})
{
    quire_allocation whole = ALLOCATE(f, .size = PAGE), half = ALLOCATE(f, .size = PAGE / 2);
    quire_allocation other = ALLOCATE(f, .size = PAGE / 2);
    let_go(f, whole);
    test_time += 1000;
    let_go(f, half);
    expect_empty(f, PAGE);
    let_go(f, other);
    expect_empty(f, PAGE); /* its own page, which is new */
    CHECK(!is_there(f, 0));
}

CASE(the_age_of_a_page_used_in_between_restarts, 1,
     (quire_page_policy){.page_size = PAGE, .retention_nanoseconds = 100})
{
    quire_allocation full[2];
    fill(f, full, 2);
    let_go(f, full[0]);
    test_time += 99;
    let_go(f, ALLOCATE(f, .size = PAGE));
    test_time += 99;
    let_go(f, full[1]);
    expect_empty(f, 2 * PAGE);
}

CASE(a_trim_destroys_old_pages_at_every_target, 1,
     (quire_page_policy){.page_size = PAGE, .retention_nanoseconds = 100})
{
    quire_allocation full[3];
    uint64_t released = 1;
    fill(f, full, 3);
    let_go(f, full[2]);
    test_time += 60;
    let_go(f, full[0]);
    CHECK_OK(quire_memory_trim(f->memory, UINT64_MAX, &released));
    CHECK_EQ(released, 0);
    test_time += 40;
    CHECK_OK(quire_memory_trim(f->memory, UINT64_MAX, &released));
    CHECK_EQ(released, PAGE);
    CHECK(is_there(f, 0) && !is_there(f, 2));
    test_time += 60;
    CHECK_OK(quire_memory_trim(f->memory, UINT64_MAX, &released));
    CHECK_EQ(released, PAGE);
    expect_empty(f, 0);
}

/*
 * A call in its own shard destroys all old pages. A shard without calls must not keep them
 * indefinitely.
 */
CASE(old_pages_of_every_shard_are_destroyed_when_a_page_is_created, 2,
     (quire_page_policy){.page_size = PAGE, .retention_nanoseconds = 100})
{
    fixture_free_elsewhere(f, ALLOCATE_ELSEWHERE(f, .size = PAGE));
    test_time += 99;
    ALLOCATE(f, .size = 2 * PAGE);
    expect_empty(f, PAGE);
    test_time += 1;
    ALLOCATE(f, .size = 2 * PAGE);
    expect_empty(f, 0);
    CHECK_EQ(f->fake.pages, 2);
}

CASE(the_age_of_a_page_freed_through_an_inbox_starts_at_the_drain, 2,
     (quire_page_policy){.page_size = PAGE, .retention_nanoseconds = 100})
{
    let_go(f, ALLOCATE_ELSEWHERE(f, .size = PAGE)); /* the check has drained the inbox */
    test_time += 100;
    ALLOCATE(f, .size = 2 * PAGE);
    expect_empty(f, 0);
}

UNIT(empty_pages, the_systems_clock_is_used_if_none_is_given)
{
    fixture f;
    quire_allocation full[2];
    fixture_make(&f, &(quire_memory_options){
                         .pages = {.page_size = PAGE, .retention_nanoseconds = UINT64_C(1) << 60}});
    fill(&f, full, 2);
    let_go(&f, full[0]);
    let_go(&f, full[1]);
    expect_empty(&f, 2 * PAGE);
    fixture_end(&f);
    fixture_make(&f,
                 &(quire_memory_options){.pages = {.page_size = PAGE, .retention_nanoseconds = 1}});
    let_go(&f, ALLOCATE(&f, .size = PAGE));
    CHECK_OK(quire_memory_trim(f.memory, UINT64_MAX, NULL));
    expect_empty(&f, 0);
    fixture_end(&f);
}

UNIT(empty_pages, without_a_bound_of_time_the_clock_is_not_read)
{
    fixture f;
    make(&f, 1, (quire_page_policy){.page_size = PAGE, .retained_empty_bytes = 1});
    quire_allocation own = ALLOCATE(&f, .size = PAGE);
    fixture_end(&f);
    fixture_make(&f, &(quire_memory_options){.pages.page_size = PAGE, .clock = {read_time, NULL}});
    own = ALLOCATE(&f, .size = PAGE);
    let_go(&f, own); /* read_time would fail with this user */
    fixture_end(&f);
}

/* ---- the default ---------------------------------------------------------------------------- */

enum { MANY = 40 };

#define SECOND UINT64_C(1000000000)

/* Fills pages, and frees all but the last one. */
static void leave_last(fixture *f, quire_allocation full[MANY])
{
    make(f, 1, (quire_page_policy){.page_size = PAGE});
    for (int i = 0; i < MANY; i++)
        full[i] = ALLOCATE(f, .size = PAGE);
    for (int i = 0; i < MANY - 1; i++)
        let_go(f, full[i]);
    expect_empty(f, (MANY - 1) * PAGE);
}

UNIT(empty_pages, by_default_pages_without_use_for_a_second_leave)
{
    fixture f;
    quire_allocation full[MANY];
    leave_last(&f, full);
    test_time += SECOND - 1;
    CHECK_OK(quire_memory_trim(f.memory, UINT64_MAX, NULL));
    expect_empty(&f, (MANY - 1) * PAGE);
    test_time += 1;
    CHECK_OK(quire_memory_trim(f.memory, UINT64_MAX, NULL));
    expect_empty(&f, (MANY / 10 + 1) * PAGE); /* a tenth, and the newest */
    test_time += SECOND;
    CHECK_OK(quire_memory_trim(f.memory, UINT64_MAX, NULL));
    expect_empty(&f, PAGE); /* a tenth of six pages is less than one */
    fixture_end(&f);
}

UNIT(empty_pages, by_default_calls_that_empty_no_page_see_old_pages_too)
{
    fixture f;
    quire_allocation full[MANY];
    leave_last(&f, full);
    quire_allocation kept = ALLOCATE(&f, .size = PAGE / 2);
    test_time += SECOND;
    /* one free in 16 looks, and takes 32 pages; the next one takes the rest */
    for (int i = 0; i < 17; i++)
        let_go(&f, ALLOCATE(&f, .size = PAGE / 4));
    CHECK(fixture_stats(&f).empty_bytes <= (MANY / 10 + 1) * PAGE);
    let_go(&f, kept);
    fixture_end(&f);
}

CASE(by_default_a_page_alone_is_kept_and_a_dedicated_one_is_not, 1,
     (quire_page_policy){.page_size = PAGE})
{
    quire_allocation dedicated = ALLOCATE(f, .size = PAGE, .dedicated = true);
    quire_allocation shared = ALLOCATE(f, .size = PAGE);
    let_go(f, dedicated);
    let_go(f, shared);
    test_time += SECOND;
    CHECK_OK(quire_memory_trim(f->memory, UINT64_MAX, NULL));
    expect_empty(f, PAGE);
    CHECK(is_there(f, 1));
    test_time += 100 * SECOND;
    CHECK_OK(quire_memory_trim(f->memory, UINT64_MAX, NULL));
    expect_empty(f, PAGE);
}

/* The number of periods in which pages left, of `count` periods of two seconds with a high load and
   two seconds with a low one. */
static int periods_that_release(fixture *f, quire_allocation full[MANY], int count)
{
    int periods = 0;
    for (int i = 0; i < count; i++) {
        uint64_t destroyed = fixture_stats(f).pages_destroyed;
        for (int k = 0; k < 2; k++) {
            test_time += SECOND;
            CHECK_OK(quire_memory_trim(f->memory, UINT64_MAX, NULL));
        }
        periods += fixture_stats(f).pages_destroyed > destroyed;
        for (int k = 0; k < MANY - 1; k++)
            full[k] = ALLOCATE(f, .size = PAGE);
        for (int k = 0; k < MANY - 1; k++)
            let_go(f, full[k]);
    }
    return periods;
}

UNIT(empty_pages, by_default_pages_that_are_made_again_are_kept_longer)
{
    fixture f;
    quire_allocation full[MANY];
    leave_last(&f, full);
    CHECK_EQ(periods_that_release(&f, full, 20), 1);
    test_time += 5 * SECOND; /* the load has ended: it is kept for 4 seconds now */
    CHECK_OK(quire_memory_trim(f.memory, UINT64_MAX, NULL));
    CHECK(fixture_stats(&f).empty_bytes <= (MANY / 10 + 1) * PAGE);
    fixture_end(&f);
}

UNIT(empty_pages, by_default_a_quiet_time_lets_the_age_fall)
{
    fixture f;
    quire_allocation full[MANY];
    leave_last(&f, full);
    CHECK_EQ(periods_that_release(&f, full, 3), 1);
    const qi_retention *now = &f.memory->shards[0]->retention;
    CHECK_EQ(now->age, 4 * SECOND);
    for (uint64_t age = 4; age > 1; age /= 2) {
        CHECK_EQ(now->age, age * SECOND);
        test_time += 400 * SECOND;
        let_go(&f, ALLOCATE(&f, .size = PAGE, .dedicated = true));
    }
    CHECK_EQ(now->age, SECOND);
    fixture_end(&f);
}

UNIT(empty_pages, by_default_pages_that_are_made_much_later_were_not_missed)
{
    fixture f;
    quire_allocation full[MANY];
    leave_last(&f, full);
    test_time += SECOND;
    CHECK_OK(quire_memory_trim(f.memory, UINT64_MAX, NULL));
    test_time += 300 * SECOND;
    for (int i = 0; i < MANY - 1; i++)
        full[i] = ALLOCATE(&f, .size = PAGE);
    CHECK_EQ(f.memory->shards[0]->retention.age, SECOND);
    fixture_end(&f);
}

/* ---- dedicated ------------------------------------------------------------------------------ */

static quire_allocation dedicated(fixture *f, uint64_t size)
{
    return ALLOCATE(f, .size = size, .dedicated = true);
}

/* Whether a request of this size reuses the only empty dedicated page of 8 KiB. */
static bool gets_page_of_8_kib(uint64_t size)
{
    fixture f;
    make(&f, 1, (quire_page_policy){.page_size = PAGE});
    let_go(&f, dedicated(&f, 8 * KIB));
    quire_allocation own = dedicated(&f, size);
    CHECK_EQ(fixture_info(&f, own).size, size);
    CHECK(fixture_info(&f, own).dedicated);
    CHECK_EQ(fixture_stats(&f).empty_bytes, 0);
    bool gets = f.fake.calls[FAKE_PAGE_CREATE] == 1;
    CHECK_OK(quire_memory_check(f.memory));
    fixture_end(&f);
    return gets;
}

UNIT(empty_pages, a_dedicated_page_serves_requests_from_seven_eighths_of_it)
{
    CHECK(gets_page_of_8_kib(8 * KIB));
    CHECK(gets_page_of_8_kib(8 * KIB - 1));
    CHECK(gets_page_of_8_kib(7 * KIB));
    CHECK(gets_page_of_8_kib(7 * KIB - 255)); /* pages are of 256 bytes */
    CHECK(!gets_page_of_8_kib(7 * KIB - 256));
    CHECK(!gets_page_of_8_kib(4 * KIB));
    CHECK(!gets_page_of_8_kib(8 * KIB + 1));
    CHECK(!gets_page_of_8_kib(100));
}

CASE(dedicated_pages_of_many_sizes_are_distinguished, 1, (quire_page_policy){.page_size = PAGE})
{
    quire_allocation own[MAX_COUNT];
    for (uint64_t i = 0; i < MAX_COUNT; i++)
        own[i] = dedicated(f, (i + 1) * 64 * KIB);
    for (uint64_t i = 0; i < MAX_COUNT; i++)
        let_go(f, own[i]);
    for (uint64_t i = MAX_COUNT;
         i-- > 8;) { /* starting with the largest: no request took the page of another */
        own[i] = dedicated(f, (i + 1) * 64 * KIB);
        CHECK(fixture_info(f, own[i]).page >= i);
    }
    CHECK_EQ(f->fake.calls[FAKE_PAGE_CREATE], MAX_COUNT);
    CHECK_EQ(fixture_stats(f).page_count, MAX_COUNT);
}

CASE(shared_pages_never_serve_dedicated_requests, 1, (quire_page_policy){.page_size = PAGE})
{
    let_go(f, ALLOCATE(f, .size = PAGE));
    quire_page_info page;
    quire_allocation own = dedicated(f, PAGE);
    CHECK_OK(quire_page_get_info(f->memory, fixture_info(f, own).page, &page));
    CHECK(page.dedicated);
    CHECK_EQ(f->fake.calls[FAKE_PAGE_CREATE], 2);
}

UNIT(empty_pages, dedicated_pages_never_serve_shared_requests)
{
    for (uint32_t shards = 1; shards <= 2; shards++) {
        fixture f;
        make(&f, shards, (quire_page_policy){.page_size = PAGE});
        let_go(&f, dedicated(&f, PAGE));
        fixture_free_elsewhere(&f, ALLOCATE_ELSEWHERE(&f, .size = PAGE, .dedicated = true));
        quire_allocation shared = ALLOCATE(&f, .size = PAGE);
        CHECK(!fixture_info(&f, shared).dedicated);
        CHECK_EQ(f.fake.last_page.dedicated, false);
        CHECK_OK(quire_memory_check(f.memory));
        fixture_end(&f);
    }
}

CASE(a_dedicated_page_enlarged_by_the_policy_is_reused, 1,
     (quire_page_policy){.page_size = 64 * KIB, .page_granularity = 64 * KIB})
{
    let_go(f, dedicated(f, 1000));
    CHECK_EQ(f->fake.page_bytes, 64 * KIB);
    let_go(f, dedicated(f, 1000));
    let_go(f, dedicated(f, 60 * KIB)); /* and for every request that gets a page of that size */
    CHECK_EQ(f->fake.calls[FAKE_PAGE_CREATE], 1);
}

CASE(a_dedicated_page_that_could_not_be_rounded_is_reused, 1,
     (quire_page_policy){.page_size = 64 * KIB, .page_granularity = 64 * KIB})
{
    f->fake.page_budget = 8 * KIB;
    let_go(f, dedicated(f, 7 * KIB));
    uint64_t calls = f->fake.calls[FAKE_PAGE_CREATE];
    let_go(f, dedicated(f, 7 * KIB));
    CHECK_EQ(f->fake.calls[FAKE_PAGE_CREATE], calls);
}

/* A backend need not report that it rounds. */
CASE(a_dedicated_page_enlarged_by_the_backend_is_reused, 1,
     (quire_page_policy){.page_size = 64 * KIB})
{
    f->fake.page_rounding = 64 * KIB;
    let_go(f, dedicated(f, 1000));
    CHECK_EQ(f->fake.page_bytes, 64 * KIB);
    let_go(f, dedicated(f, 1000));
    let_go(f, dedicated(f, 900));
    CHECK_EQ(f->fake.calls[FAKE_PAGE_CREATE], 1);
    quire_allocation first =
        dedicated(f, 1025); /* there is room, but a larger page was requested */
    CHECK_EQ(f->fake.calls[FAKE_PAGE_CREATE], 2);
    let_go(f, first);
}

UNIT_PREPARED(empty_pages, a_dedicated_page_is_reused_at_another_alignment, f)
{
    f->fake.address_step = f->fake.info.limits.page_alignment = 256;
    fixture_open(f, &(quire_memory_options){.pages.page_size = PAGE});
    quire_allocation own = ALLOCATE(f, .size = 64 * KIB, .alignment = 4096, .dedicated = true);
    CHECK_EQ(fixture_info(f, own).address % 4096, 0);
    let_go(f, own);
    own = ALLOCATE(f, .size = 64 * KIB, .alignment = 1024, .dedicated = true);
    CHECK_EQ(fixture_info(f, own).address % 1024, 0);
    CHECK(fixture_info(f, own).left_padding < 1024);
    CHECK_EQ(f->fake.calls[FAKE_PAGE_CREATE], 1);
    CHECK_OK(quire_memory_check(f->memory));
}

/* ---- short-lived allocations ---------------------------------------------------------------- */

/* Allocates and frees 640 MiB in pieces of 16 MiB. */
static void play_frame(fixture *f)
{
    quire_allocation piece[40];
    for (int i = 0; i < 40; i++)
        piece[i] = ALLOCATE(f, .size = 16 * MIB);
    for (int i = 0; i < 40; i++)
        CHECK_OK(quire_free(f->memory, piece[i]));
}

UNIT_MEMORY(empty_pages, transients_of_each_frame_cost_no_backend_call, f,
            .pages.page_size = 32 * MIB)
{
    play_frame(f);
    uint64_t calls = f->fake.fallible_calls, pages = f->fake.pages;
    CHECK_EQ(pages * 32 * MIB, 640 * MIB);
    for (int frame = 1; frame < 100; frame++)
        play_frame(f);
    CHECK_EQ(f->fake.fallible_calls, calls);
    CHECK_EQ(fixture_stats(f).pages_destroyed, 0);
}

UNIT_MEMORY(empty_pages, a_repeated_large_dedicated_allocation_creates_one_page, f, 0)
{
    for (int i = 0; i < 200; i++)
        CHECK_OK(quire_free(f->memory, dedicated(f, 200 * MIB)));
    CHECK_EQ(f->fake.fallible_calls, 2); /* describe, create */
    CHECK_EQ(fixture_stats(f).pages_created, 1);
    CHECK_EQ(fixture_stats(f).pages_destroyed, 0);
}
