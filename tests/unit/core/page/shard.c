/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * shard.c - the shards of a memory: where threads allocate, how frees by other threads arrive, what
 * moves from one shard to another, what is released before a refusal, and how a memory with such
 * frees is destroyed. Here the test has shard 0 and the members of its crew the others.
 */
#include "tests/support/event_log.h"
#include "tests/support/shard_calls.h"

/* ---- options -------------------------------------------------------------------------------- */

UNIT(shard, a_memory_has_up_to_64_and_reports_how_many)
{
    static const uint32_t counts[] = {0, 1, 2, 63, 64};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        fixture f;
        quire_memory_info info;
        fixture_make(&f, &(quire_memory_options){.shards = counts[i]});
        CHECK_OK(quire_memory_get_info(f.memory, &info));
        CHECK_EQ(info.shards, counts[i] ? counts[i] : 1);
        CHECK_OK(quire_free(f.memory, ALLOCATE(&f, .size = 100)));
        fixture_end(&f);
    }
}

/* ---- where threads allocate, and how frees arrive ------------------------------------------- */

UNIT_ON(shard, each_thread_allocates_in_its_shard, bench, b,
        make(b, &(quire_memory_options){.shards = 3, .pages.page_size = PAGE}, 4), end)
{
    for (uint32_t by = 0; by <= 4; by++) { /* 3 and 4 share the shards of 0 and 1 */
        quire_allocation allocation = placed_of(b, by, 1000);
        CHECK_EQ(shard_of(b, allocation), by % 3);
        CHECK_EQ(fixture_info(&b->f, allocation).page, by % 3);
    }
    CHECK_EQ(stats_of(b).page_count, 3);
}

#define CASE(name, ...) UNIT_ON(shard, name, bench, b, make_with(b, __VA_ARGS__), end)

CASE(a_free_by_another_thread_waits_until_the_shard_drains_its_inbox, 2,
     (quire_page_policy){.page_size = PAGE})
{
    quire_allocation kept = placed_of(b, 1, 1000), given = placed_of(b, 1, 1000);
    free_by(b, 0, given);
    CHECK_FAILS(quire_free(b->f.memory, given), QUIRE_ERROR_STALE_HANDLE);
    uint64_t frees = 0;
    for (uint32_t calls = 2; waiting_in(b, 1); calls++) {
        CHECK(calls < 2 + QI_LOOK_EVERY);
        CHECK_EQ(frees_of(b, 1), frees);
        if (calls % 2)
            kept = placed_of(b, 1, 1000);
        else
            free_by(b, 1, kept), frees++;
    }
    CHECK_EQ(frees_of(b, 1), frees + 1);
}

/* Records of freed ranges are reused if no host memory is left for new ones. */
CASE(a_request_that_needs_records_drains_the_inbox, 2,
     (quire_page_policy){.page_size = 4096 * 1024})
{
    enum { MAX_COUNT = 4096, GIVEN = 8 };
    static quire_allocation held[MAX_COUNT];
    const quire_allocation_options options = {.size = 256};
    uint32_t count = 0;
    placed_of(b, 1, 256);
    test_memory_fail(unit_memory_state(), 1, true);
    for (request r; count < MAX_COUNT; held[count++] = r.allocation)
        if ((r = allocate(b, 1, options)).result) {
            CHECK_EQ(r.result, QUIRE_ERROR_OUT_OF_HOST_MEMORY);
            break;
        }
    CHECK(count > GIVEN && count < MAX_COUNT);
    for (uint32_t i = 0; i < GIVEN; i++)
        free_by(b, 0, held[--count]);
    CHECK_EQ(waiting_in(b, 1), GIVEN);
    placed_of(b, 1, 256);
    test_memory_fail(unit_memory_state(), 0, false);
}

CASE(a_request_that_needs_room_drains_the_inbox, 2,
     (quire_page_policy){.page_size = PAGE, .max_pages = 1})
{
    quire_allocation given = placed_of(b, 1, PAGE);
    free_by(b, 0, given);
    CHECK_EQ(waiting_in(b, 1), 1);
    placed_of(b, 1, PAGE);
    CHECK_EQ(waiting_in(b, 1), 0);
    CHECK_EQ(stats_of(b).pages_created, 1);
}

CASE(calls_on_the_whole_memory_drain_every_inbox, 2, (quire_page_policy){.page_size = PAGE})
{
    for (int look = 0; look < 3; look++) {
        free_by(b, 0, placed_of(b, 1, 1000));
        CHECK_EQ(waiting_in(b, 1), 1);
        if (look == 0)
            CHECK_EQ(stats_of(b).allocation_count, 0);
        else if (look == 1)
            CHECK_OK(quire_memory_check(b->f.memory));
        else
            CHECK_OK(quire_memory_trim(b->f.memory, 0, NULL));
        CHECK_EQ(waiting_in(b, 1), 0);
    }
    CHECK_EQ(b->f.fake.pages, 0); /* because of the trim */
}

CASE(a_free_leaves_its_name_before_it_waits, 2, (quire_page_policy){.page_size = PAGE})
{
    for (int i = 0; i < 3; i++) { /* named from the beginning, later, and later not any more */
        quire_allocation given =
            placed(b, 1, (quire_allocation_options){.size = 1000, .name = i ? NULL : "weights"});
        if (i)
            CHECK_OK(quire_allocation_set_name(b->f.memory, given, "weights"));
        if (i == 2)
            CHECK_OK(quire_allocation_set_name(b->f.memory, given, NULL));
        free_by(b, 0, given);
        CHECK_EQ(waiting_in(b, 1), 1);
        CHECK(i || !qi_memory_slot(b->f.memory, qi_handle_slot(given.id))->meta);
        CHECK_EQ(stats_of(b).allocation_count, 0); /* the call drains the inbox */
        CHECK(!qi_memory_slot(b->f.memory, qi_handle_slot(given.id))->meta);
    }
}

CASE(a_free_by_another_thread_waits_for_the_stream, 2, (quire_page_policy){.page_size = PAGE})
{
    quire_stream *stream = NULL;
    CHECK_OK(quire_stream_create(b->f.device, &(quire_stream_options){.capture = true}, &stream));
    quire_allocation given = placed_of(b, 1, 1000);
    CHECK_OK(quire_record_use(b->f.memory, given, stream));
    free_by(b, 0, given);
    CHECK_EQ(waiting_in(b, 1), 0);
    CHECK_EQ(qi_deferred_count(b->f.memory), 1);
    CHECK_OK(quire_stream_destroy(&stream));
    CHECK_EQ(qi_deferred_count(b->f.memory), 0);
}

CASE(the_hook_receives_a_free_by_another_thread, 2, (quire_page_policy){.page_size = PAGE})
{
    event_log log;
    quire_allocation given = placed_of(b, 1, 1000);
    event_log_start(&log, b->f.memory, QUIRE_EVENT_FREED);
    free_by(b, 0, given);
    CHECK_EQ(log.count, 1);
    CHECK_EQ(log.events[0].requested, 1000);
    CHECK_EQ(waiting_in(b, 1), 1);
    CHECK_OK(quire_memory_set_hook(b->f.memory, NULL));
}

CASE(an_inbox_holds_at_most_1024_frees, 2, (quire_page_policy){.page_size = PAGE * 16})
{
    static quire_allocation allocations[MAX_WAITING];
    for (int i = 0; i < MAX_WAITING; i++)
        allocations[i] = placed_of(b, 1, 100);
    for (uint64_t i = 0; i < MAX_WAITING - 1; i++) {
        CHECK_OK(quire_free(b->f.memory, allocations[i]));
        CHECK_EQ(waiting_in(b, 1), i + 1);
    }
    CHECK_OK(quire_free(b->f.memory, allocations[MAX_WAITING - 1]));
    CHECK_EQ(waiting_in(b, 1), 0);
    CHECK_EQ(frees_of(b, 1), MAX_WAITING);
}

/* ---- destruction ---------------------------------------------------------------------------- */

CASE(a_memory_is_destroyed_with_frees_in_inboxes, 2, (quire_page_policy){.page_size = PAGE})
{
    quire_allocation given[3];
    for (int i = 0; i < 3; i++)
        given[i] = placed_of(b, 1, 1000);
    for (int i = 0; i < 3; i++)
        free_by(b, 0, given[i]);
    CHECK_EQ(waiting_in(b, 1), 3);
    quire_memory *memory = b->f.memory;
    CHECK_OK(quire_memory_destroy(&memory));
    CHECK_EQ(b->f.fake.pages, 0);
    CHECK_OK(quire_memory_create(b->f.device, NULL, &b->f.memory));
}

UNIT(shard, a_memory_is_destroyed_with_allocations_in_each_shard)
{
    bench b;
    make_with(&b, 4, (quire_page_policy){.page_size = PAGE * 16});
    for (uint32_t by = 0; by < 4; by++)
        for (int i = 0; i < 500; i++)
            placed(&b, by,
                   (quire_allocation_options){
                       .size = 100, .name = i % 2 ? "named" : NULL, .dedicated = i % 100 == 0});
    free_by(&b, 2, placed_of(&b, 3, 100));
    quire_memory *memory = b.f.memory;
    CHECK_FAILS(quire_memory_destroy(&memory), QUIRE_ERROR_BUSY);
    CHECK_HAS(quire_last_error(), "still has 2000 live allocations");
    end(&b); /* the fixture checks and destroys everything and finds no leak */
}

/* ---- pages and requests that move to another shard ------------------------------------------ */

CASE(an_empty_page_moves_to_another_shard_before_one_is_created, 3,
     (quire_page_policy){.page_size = PAGE})
{
    free_by(b, 1, placed_of(b, 1, 1000));
    quire_allocation mine = placed_of(b, 0, 1000);
    CHECK_EQ(shard_of(b, mine), 0);
    free_by(b, 1, mine); /* waits until a thread looks for an empty page */
    quire_allocation third = placed_of(b, 2, 1000);
    CHECK_EQ(shard_of(b, third), 2);
    quire_memory_stats stats = stats_of(b);
    CHECK_EQ(stats.pages_created, 1);
    CHECK_EQ(stats.page_count, 1);
    CHECK_EQ(stats.empty_bytes, 0);
    CHECK_EQ(b->f.fake.calls[FAKE_PAGE_CREATE], 1);
    CHECK_OK(quire_memory_check(b->f.memory));
}

CASE(a_page_in_use_or_too_small_does_not_move, 2, (quire_page_policy){.page_size = PAGE})
{
    placed_of(b, 1, 1000);
    CHECK_EQ(shard_of(b, placed_of(b, 0, 1000)), 0);
    CHECK_EQ(stats_of(b).page_count, 2);
    free_by(b, 1, placed_of(b, 1, PAGE)); /* an empty page of the usual size */
    placed_of(b, 0, 3 * PAGE);
    CHECK_EQ(stats_of(b).pages_created, 4);
}

CASE(a_request_that_fits_only_in_another_shard_is_placed_there, 3,
     (quire_page_policy){.page_size = PAGE, .max_pages = 1})
{
    placed_of(b, 1, 1000);
    for (uint32_t by = 0; by < 3; by++)
        CHECK_EQ(shard_of(b, placed_of(b, by, 1000)), 1);
    request refused = allocate(b, 0, (quire_allocation_options){.size = PAGE});
    CHECK_EQ(refused.result, QUIRE_ERROR_TOO_MANY_PAGES);
    CHECK_HAS(quire_last_error(), "Tried: empty pages given back, a full pass, other shards");
}

/*
 * Freed ranges must not cause a refusal, whichever shard they are in and whichever thread freed
 * them.
 */
UNIT(shard, empty_pages_of_all_shards_are_released_before_a_refusal)
{
    static const quire_page_policy limits[] = {{.page_size = PAGE, .max_pages = 1},
                                               {.page_size = PAGE}};
    for (int i = 0; i < 12; i++) {
        bool by_policy = i % 2 == 0, freed_by_other = i % 6 >= 2, kept_dedicated = i % 6 < 4;
        bench b;
        fixture_prepare(&b.f);
        b.f.fake.info.limits.max_pages = by_policy ? 0 : 1;
        fixture_open(&b.f,
                     &(quire_memory_options){.shards = 2, .pages = limits[by_policy ? 0 : 1]});
        crew_start(&b.crew, 1);
        quire_allocation_options options = {.size = 1000, .dedicated = kept_dedicated};
        free_by(&b, freed_by_other ? 0 : 1, placed(&b, 1, options));
        options = (quire_allocation_options){.size = 3 * PAGE, .dedicated = i >= 6};
        CHECK_EQ(shard_of(&b, placed(&b, 0, options)), 0);
        CHECK_EQ(b.f.fake.pages, 1);
        end(&b);
    }
}

CASE(a_dedicated_page_freed_by_another_thread_makes_room, 2, (quire_page_policy){.page_size = PAGE})
{
    b->f.fake.page_budget = 4 * PAGE;
    quire_allocation_options options = {.size = 3 * PAGE, .dedicated = true};
    free_by(b, 0, placed(b, 1, options));
    CHECK_EQ(waiting_in(b, 1), 1);
    CHECK_EQ(shard_of(b, placed(b, 0, options)), 0);
}

/* ---- the policy for empty pages ------------------------------------------------------------- */

/* A thread that finds frees in its inbox and destroys their pages must not wait for itself. */
CASE(pages_emptied_by_other_threads_are_released_before_one_is_created, 2,
     (quire_page_policy){.page_size = PAGE, .max_pages = 2, .retained_empty_bytes = 1})
{
    for (int i = 0; i < 2; i++) {
        quire_allocation_options options = {.size = 1000, .dedicated = i == 0};
        quire_allocation first = placed(b, 1, options), second = placed_of(b, 1, PAGE);
        free_by(b, 0, first);
        quire_allocation third = placed_of(b, 1, 2 * PAGE);
        free_by(b, 1, second);
        free_by(b, 1, third);
    }
    CHECK_EQ(stats_of(b).page_count, 0);
}

CASE(pages_emptied_by_a_call_on_the_whole_memory_are_destroyed_by_the_next_call, 2,
     (quire_page_policy){.page_size = PAGE, .retained_empty_bytes = 1})
{
    placed_of(b, 1, 1000);
    free_by(b, 0, placed(b, 1, (quire_allocation_options){.size = 1000, .dedicated = true}));
    CHECK_EQ(stats_of(b).allocation_count, 1);
    placed_of(b, 1, 1000);
    CHECK_EQ(stats_of(b).page_count, 1);
}

/* ---- statistics ----------------------------------------------------------------------------- */

CASE(peaks_are_exact_while_a_page_moves_between_shards, 3, (quire_page_policy){.page_size = PAGE})
{
    free_by(b, 1, placed_of(b, 1, PAGE));
    CHECK_EQ(stats_of(b).peak_live_bytes, PAGE);
    for (uint32_t by = 0; by < 3; by++) /* in one page, which moves from shard to shard */
        free_by(b, by, placed_of(b, by, PAGE));
    quire_memory_stats stats = stats_of(b);
    CHECK_EQ(stats.peak_reserved_bytes, PAGE);
    CHECK_EQ(stats.peak_live_bytes, PAGE); /* not three pages */
    CHECK_EQ(stats.peak_requested_bytes, PAGE);
    CHECK_EQ(stats.peak_allocation_count, 1);
    CHECK(stats.fragmentation.reserved >= 0);
    CHECK_OK(quire_memory_push_stats(b->f.memory));
    placed_of(b, 2, 1000);
    CHECK_OK(quire_memory_pop_stats(b->f.memory, &stats));
    CHECK_EQ(stats.peak_requested_bytes, 1000);
    CHECK_EQ(stats.peak_allocation_count, 1);
    CHECK_EQ(stats_of(b).peak_requested_bytes, PAGE);
}

CASE(statistics_are_sums_over_all_shards, 3, (quire_page_policy){.page_size = PAGE})
{
    for (uint32_t by = 0; by < 3; by++)
        free_by(b, by, placed_of(b, by, 1024));
    quire_memory_stats stats = stats_of(b);
    CHECK_EQ(stats.allocations, 3);
    CHECK_EQ(stats.frees, 3);
    CHECK_EQ(stats.peak_live_bytes, 1024); /* one at a time */
    CHECK_EQ(stats.peak_requested_bytes, 1024);
    CHECK_EQ(stats.peak_allocation_count, 1);
    CHECK_EQ(stats.peak_page_count, 1); /* pages are counted for the memory */
    CHECK_EQ(stats.peak_reserved_bytes, PAGE);
    for (uint32_t by = 0; by < 3; by++)
        placed_of(b, by, 2048);
    stats = stats_of(b);
    CHECK_EQ(stats.live_bytes, 3 * 2048);
    CHECK_EQ(stats.allocation_count, 3);
    CHECK_EQ(stats.page_count, 3);
    CHECK_EQ(stats.free_bytes, 3 * (PAGE - 2048));
    CHECK_EQ(stats.largest_free, PAGE - 2048);
    CHECK_EQ(stats.peak_live_bytes, 3 * 2048);
    CHECK_EQ(stats.peak_allocation_count, 3);
}
