/*
 * shard_move.c - pages and requests that move from one shard to another, what is released before a
 * refusal, and the statistics over all shards. Here the test has shard 0 and the members of its
 * crew the others.
 */
#include "tests/support/shard_calls.h"

#define CASE(name, ...) UNIT_ON(shard_move, name, bench, b, make_with(b, __VA_ARGS__), end)

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
    CHECK_HAS(quire_last_error(), "other shards");
}

/*
 * Freed ranges must not cause a refusal, whichever shard they are in and whichever thread freed
 * them.
 */
UNIT(shard_move, empty_pages_of_all_shards_are_released_before_a_refusal)
{
    static const quire_page_policy limits[] = {{.page_size = PAGE, .max_pages = 1},
                                               {.page_size = PAGE}};
    for (int i = 0; i < 6; i++) {
        bool by_policy = i % 2 == 0, freed_by_other = i >= 2, kept_dedicated = i < 4;
        bench b;
        fixture_prepare(&b.f);
        b.f.fake.info.limits.max_pages = by_policy ? 0 : 1;
        fixture_open(&b.f,
                     &(quire_memory_options){.shards = 2, .pages = limits[by_policy ? 0 : 1]});
        crew_start(&b.crew, 1);
        quire_allocation_options options = {.size = 1000, .dedicated = kept_dedicated};
        free_by(&b, freed_by_other ? 0 : 1, placed(&b, 1, options));
        options = (quire_allocation_options){.size = 3 * PAGE};
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

/* ---- the callback before a refusal ----------------------------------------------------------- */

typedef struct giver {
    quire_allocation allocations[2];
    quire_out_of_memory last;
    uint32_t left, calls;
} giver;

static bool free_one(void *user, quire_memory *memory, const quire_out_of_memory *report)
{
    giver *g = user;
    g->calls++;
    g->last = *report;
    return g->left && !quire_free(memory, g->allocations[--g->left]);
}

UNIT(shard_move, the_caller_may_free_in_another_shard_before_a_refusal)
{
    bench b;
    giver g = {.left = 0};
    make(&b,
         &(quire_memory_options){.shards = 2,
                                 .pages = {.page_size = PAGE, .max_pages = 1},
                                 .on_out_of_memory = {free_one, &g}},
         1);
    for (int i = 0; i < 2; i++)
        g.allocations[i] = placed_of(&b, 1, PAGE / 2);
    g.left = 2;
    placed_of(&b, 0, PAGE / 2);
    CHECK_EQ(g.calls, 1);
    CHECK_EQ(g.last.size, PAGE / 2);
    CHECK_EQ(g.last.times, 1);
    CHECK_EQ(g.last.reason, QUIRE_ERROR_TOO_MANY_PAGES);
    placed_of(&b, 0, PAGE / 2);
    CHECK_EQ(g.calls, 2);
    request refused = allocate(&b, 0, (quire_allocation_options){.size = 1000});
    CHECK_EQ(refused.result, QUIRE_ERROR_TOO_MANY_PAGES);
    CHECK_EQ(g.calls, 3); /* the callback had nothing left to free */
    CHECK_HAS(quire_last_error(), "the caller's callback");
    CHECK_EQ(stats_of(&b).failures, 1);
    end(&b);
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
