/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * peaks.c - the peaks of memories with several shards: equal to those of a plain count, in every
 * order of allocations and frees, in both modes of counting, through scopes and refusals.
 */
#include "src/core/state/peaks.h"

#include "src/base/bits.h"
#include "tests/support/random.h"
#include "tests/support/shard_calls.h"

enum { MAX_LIVE = 400 };

/* What the memory must report. Every thread frees what it allocated, so that each free counts at
   once. */
typedef struct tally {
    bench b;
    uint32_t threads;
    test_random random;
    struct {
        quire_allocation allocation;
        uint64_t size, held;
        uint32_t by;
    } live[MAX_LIVE];
    uint32_t count;
    uint64_t bytes, requested;
    uint64_t peak_bytes, peak_requested, peak_count;
} tally;

static void raise_peaks(tally *t)
{
    qi_raise(&t->peak_bytes, t->bytes);
    qi_raise(&t->peak_requested, t->requested);
    qi_raise(&t->peak_count, t->count);
}

static void begin(tally *t, uint32_t shards, uint64_t seed)
{
    memset(t, 0, sizeof *t);
    t->threads = shards;
    t->random.state = seed;
    make_with(&t->b, shards, (quire_page_policy){.page_size = 64 * PAGE});
}

static void add(tally *t, uint32_t by)
{
    uint64_t size = 1 + random_below(&t->random, 5000);
    t->live[t->count].allocation = placed_of(&t->b, by, size);
    t->live[t->count].size = size;
    t->live[t->count].held = fixture_info(&t->b.f, t->live[t->count].allocation).size;
    t->live[t->count].by = by;
    t->bytes += t->live[t->count].held;
    t->requested += size;
    t->count++;
    raise_peaks(t);
}

static void drop(tally *t, uint32_t at)
{
    free_by(&t->b, t->live[at].by, t->live[at].allocation);
    t->bytes -= t->live[at].held;
    t->requested -= t->live[at].size;
    t->live[at] = t->live[--t->count];
}

static void step(tally *t, uint32_t level)
{
    bool adds =
        !t->count || (t->count < MAX_LIVE && random_below(&t->random, 2 * level) >= t->count);
    if (adds)
        add(t, (uint32_t)random_below(&t->random, t->threads));
    else
        drop(t, (uint32_t)random_below(&t->random, t->count));
}

static void verify(tally *t)
{
    quire_memory_stats stats = stats_of(&t->b);
    CHECK_EQ(stats.live_bytes, t->bytes);
    CHECK_EQ(stats.peak_live_bytes, t->peak_bytes);
    CHECK_EQ(stats.peak_requested_bytes, t->peak_requested);
    CHECK_EQ(stats.peak_allocation_count, t->peak_count);
}

UNIT(peaks, equal_those_of_a_plain_count)
{
    static tally t;
    for (uint32_t shards = 2; shards <= 5; shards += 3) {
        uint32_t modes = 0;
        begin(&t, shards, shards);
        for (uint32_t i = 0; i < 12000; i++) {
            step(&t, i < 6000 ? 20 : 150);
            modes |= 1u << t.b.f.memory->shards[0]->peaks.mode;
            if (random_below(&t.random, 500) == 0)
                verify(&t);
            if (i % 3000 == 0)
                CHECK_OK(quire_memory_check(t.b.f.memory));
        }
        verify(&t);
        CHECK_EQ(modes, 1u << QI_PEAKS_EXACT | 1u << QI_PEAKS_DIVIDED);
        end(&t.b);
    }
}

UNIT(peaks, restart_with_a_scope_and_return_after_it)
{
    static tally t;
    begin(&t, 3, 7);
    for (uint32_t round = 0; round < 20; round++) {
        quire_memory_stats stats;
        for (uint32_t i = 0; i < 200; i++)
            step(&t, 20 + 5 * round % 40);
        verify(&t);
        const uint64_t bytes = t.peak_bytes, requested = t.peak_requested, count = t.peak_count;
        CHECK_OK(quire_memory_push_stats(t.b.f.memory));
        t.peak_bytes = t.bytes, t.peak_requested = t.requested, t.peak_count = t.count;
        for (uint32_t i = 0; i < 300; i++)
            step(&t, 20);
        verify(&t);
        CHECK_OK(quire_memory_check(t.b.f.memory));
        CHECK_OK(quire_memory_pop_stats(t.b.f.memory, &stats));
        CHECK_EQ(stats.peak_live_bytes, t.peak_bytes);
        CHECK_EQ(stats.peak_allocation_count, t.peak_count);
        qi_raise(&t.peak_bytes, bytes), qi_raise(&t.peak_requested, requested);
        qi_raise(&t.peak_count, count);
    }
    end(&t.b);
}

/* Groups of the batch are placed before a later one is refused. */
UNIT(peaks, a_refused_batch_leaves_no_trace)
{
    static quire_allocation made[400];
    for (uint32_t shards = 1; shards <= 2; shards++) {
        bench b;
        make_with(&b, shards, (quire_page_policy){.page_size = PAGE, .max_pages = 1});
        placed_of(&b, 0, 1000);
        const quire_memory_stats before = stats_of(&b);
        CHECK_EQ(
            quire_allocate_batch(b.f.memory, &(quire_allocation_options){.size = 256}, made, 400),
            QUIRE_ERROR_TOO_MANY_PAGES);
        quire_memory_stats stats = stats_of(&b);
        CHECK_EQ(stats.peak_allocation_count, before.peak_allocation_count);
        CHECK_EQ(stats.peak_live_bytes, before.peak_live_bytes);
        CHECK_EQ(stats.allocations, before.allocations);
        b.f.memory->shards[0]->peaks.rises_left = 2; /* its mode is decided during the batch */
        CHECK_EQ(
            quire_allocate_batch(b.f.memory, &(quire_allocation_options){.size = 256}, made, 400),
            QUIRE_ERROR_TOO_MANY_PAGES);
        stats = stats_of(&b);
        CHECK_EQ(stats.peak_allocation_count, before.peak_allocation_count);
        CHECK_EQ(stats.peak_requested_bytes, before.peak_requested_bytes);
        CHECK_OK(quire_memory_check(b.f.memory));
        end(&b);
    }
}

/* The free counts when the shard drains its inbox, which a call on the whole memory does. */
UNIT_ON(peaks, a_free_by_another_thread_counts_when_it_arrives, bench, b,
        make_with(b, 2, (quire_page_policy){.page_size = PAGE}), end)
{
    placed_of(b, 0, 1000);
    free_by(b, 0, placed_of(b, 1, 1000));
    placed_of(b, 0, 1000);
    CHECK_EQ(waiting_in(b, 1), 1);
    CHECK_EQ(stats_of(b).peak_allocation_count, 3);
    CHECK_EQ(stats_of(b).allocation_count, 2);
}

/* Padding takes the request above the limit of its name after it was placed. */
UNIT_ON(peaks, a_refused_request_leaves_no_trace, bench, b,
        make(b, &(quire_memory_options){.shards = 2, .fit.granule = 4096, .pages.page_size = PAGE},
             1),
        end)
{
    free_by(b, 0, placed_of(b, 0, 90));
    placed_of(b, 1, 1000);
    CHECK_OK(quire_memory_set_name_limit(b->f.memory, "x", 100));
    quire_memory_stats before = stats_of(b);
    for (uint32_t i = 0; i < 600; i++) { /* in both modes */
        request r = allocate(b, i % 2, (quire_allocation_options){.size = 90, .name = "x"});
        CHECK_EQ(r.result, QUIRE_ERROR_OVER_BUDGET);
        CHECK_EQ(stats_of(b).peak_allocation_count, before.peak_allocation_count);
    }
    quire_memory_stats after = stats_of(b);
    CHECK_EQ(after.peak_live_bytes, before.peak_live_bytes);
    CHECK_EQ(after.peak_requested_bytes, before.peak_requested_bytes);
    CHECK_EQ(after.allocations, before.allocations);
    CHECK_EQ(after.frees, before.frees);
    CHECK_OK(quire_memory_check(b->f.memory));
}

UNIT_ON(peaks, the_check_finds_claims_that_do_not_add_up, bench, b,
        make_with(b, 2, (quire_page_policy){.page_size = PAGE}), end)
{
    placed_of(b, 1, 1000);
    qi_atomic_add_u64(&b->f.memory->peaks.claimed[QI_PEAK_LIVE], 1);
    CHECK_FAILS(quire_memory_check(b->f.memory), QUIRE_ERROR_CORRUPTED);
    CHECK_HAS(quire_last_error(), "the shards' claims");
    qi_atomic_sub_u64(&b->f.memory->peaks.claimed[QI_PEAK_LIVE], 1);
    b->f.memory->shards[0]->peaks.unused[QI_PEAK_COUNT]++;
    CHECK_FAILS(quire_memory_check(b->f.memory), QUIRE_ERROR_CORRUPTED);
    b->f.memory->shards[0]->peaks.unused[QI_PEAK_COUNT]--;
    CHECK_OK(quire_memory_check(b->f.memory));
}
