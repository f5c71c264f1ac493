/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * shard_growth.c - a memory whose number of shards is adaptive: what makes it grow and what does
 * not, and how it works afterwards. The test has thread number 0, the members of its crew the
 * others.
 */
#include "src/core/allocate/shard_growth.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "src/base/system.h"
#include "tests/support/grow_shards.h"
#include "tests/support/shard_calls.h"
#include "tests/support/streams.h"
#include "tests/support/valgrind.h"

/* As make, on a system with at least this many processors. */
static void make_adaptive(bench *b, uint32_t max_shards, uint32_t threads)
{
    make(b, &(quire_memory_options){.pages.page_size = PAGE}, threads);
    allow_shards(b->f.memory, max_shards);
}

static uint32_t shards_now(const bench *b)
{
    quire_memory_info info;
    CHECK_OK(quire_memory_get_info(b->f.memory, &info));
    return info.shards;
}

static quire_allocation grow(bench *b)
{
    grow_shards_soon(b->f.memory);
    return placed_of(b, 0, 1000);
}

/* ---- options ------------------------------------------------------------------------------ */

UNIT(shard_growth, only_a_default_memory_may_get_more_shards)
{
    const uint32_t processors = qi_processor_count();
    const struct {
        quire_memory_options options;
        uint32_t shards, max_shards;
    } cases[] = {
        {{.shards = 0}, 1, processors < 64 ? processors : 64},
        {{.fit.algorithm = QUIRE_FIT_BUDDY}, 1, processors < 64 ? processors : 64},
        {{.pages.max_pages = 1}, 1, 1},
        {{.shards = 1}, 1, 1},
        {{.pages.max_pages = 1, .shards = 2}, 2, 2},
        {{.shards = 3}, 3, 3},
        {{.fit.algorithm = QUIRE_FIT_FIRST}, 1, 1},
        {{.fit.algorithm = QUIRE_FIT_FIRST, .shards = 2}, 2, 2},
        {{.fit.algorithm = QUIRE_FIT_LINEAR}, 1, 1},
    };
    CHECK(processors >= 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bench b = {0};
        fixture_make(&b.f, &cases[i].options);
        CHECK_EQ(shards_now(&b), cases[i].shards);
        CHECK_EQ(b.f.memory->max_shards, cases[i].max_shards);
        fixture_end(&b.f);
    }
}

UNIT_PREPARED(shard_growth, an_elastic_memory_keeps_one_shard, f)
{
    fake_offer_growth(&f->fake);
    fixture_open(f, &(quire_memory_options){.elastic = true});
    CHECK_EQ(f->memory->max_shards, 1);
}

/* ---- contention --------------------------------------------------------------------------- */

/* Whether a thread has found the lock, which the caller holds, held: see base/lock.h. */
static bool is_awaited(const qi_lock *lock)
{
    uint32_t state = qi_atomic_load_u32(&lock->state);
    return state == QI_LOCK_STORED ? qi_atomic_load_u32(&lock->form) != QI_LOCK_STORED
                                   : state == QI_LOCK_AWAITED;
}

/* Lets member 1 wait for the lock of the first shard while `meanwhile` runs with that lock. */
static void wait_during(bench *b, void (*task)(void *), request *r,
                        void (*meanwhile)(qi_shard *shard))
{
    qi_shard *shard = b->f.memory->shards[0];
    qi_lock_acquire(&shard->lock);
    crew_tell(&b->crew, 1, task, r);
    while (!is_awaited(&shard->lock))
        sched_yield();
    meanwhile(shard);
    qi_lock_release(&shard->lock);
    crew_await(&b->crew, 1);
    CHECK_EQ(r->result, QUIRE_SUCCESS);
}

static void do_nothing(qi_shard *shard)
{
    (void)shard;
}

#define CASE(name, ...) UNIT_ON(shard_growth, name, bench, b, make_adaptive(b, __VA_ARGS__), end)

/* As an allocation of another thread and its free would be counted. */
static void count_some(qi_shard *shard)
{
    qi_shard_count_allocation(shard, 5);
}

CASE(a_wait_counts_if_another_allocation_was_made_meanwhile, 4, 1)
{
    const qi_contention *contention = &b->f.memory->shards[0]->contention;
    request r = {.memory = b->f.memory, .options = {.size = 100}};
    wait_during(b, do_allocate, &r, do_nothing); /* for a free, or for statistics */
    CHECK_EQ(contention->weight, 0);
    wait_during(b, do_free, &r, count_some); /* a free that waits */
    CHECK_EQ(contention->weight, 0);
    wait_during(b, do_allocate, &r, count_some);
    CHECK_EQ(contention->weight, 5);
    CHECK_EQ(shards_now(b), 1);
}

CASE(rare_waits_do_not_add_up, 4, 1)
{
    qi_contention *contention = &b->f.memory->shards[0]->contention;
    request r = {.memory = b->f.memory, .options = {.size = 100}};
    wait_during(b, do_allocate, &r, count_some);
    CHECK_EQ(contention->weight, 5);
    contention->weight = 255;
    contention->since -= 20 * 1000 * 1000; /* 20 ms earlier */
    wait_during(b, do_allocate, &r, count_some);
    CHECK_EQ(contention->weight, 5);
    CHECK(!contention->is_high);
    contention->weight = 255;
    wait_during(b, do_allocate, &r, count_some);
    CHECK_EQ(shards_now(b), 2);
}

/* Two threads allocate until the memory grows, or until the time is over. */
typedef struct race {
    quire_memory *memory;
    _Atomic bool is_over;
} race;

static void allocate_and_free(void *user)
{
    race *r = user;
    quire_allocation allocation;
    const quire_allocation_options options = {.size = 1000};
    while (!r->is_over)
        if (quire_allocate(r->memory, &options, &allocation) || quire_free(r->memory, allocation))
            r->is_over = true;
}

/* Returns the number of shards after two threads allocated for some time. */
static uint32_t race_for(bench *b, uint32_t milliseconds)
{
    race r = {.memory = b->f.memory};
    uint32_t shards = 1;
    crew_tell(&b->crew, 1, allocate_and_free, &r);
    crew_tell(&b->crew, 2, allocate_and_free, &r);
    for (; milliseconds && !r.is_over && shards == 1; milliseconds--) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        shards = shards_now(b);
    }
    CHECK(!r.is_over);
    r.is_over = true;
    crew_await(&b->crew, 1);
    crew_await(&b->crew, 2);
    return shards_now(b);
}

UNIT(shard_growth, threads_that_wait_for_each_other_get_more_shards)
{
    bench b;
    if (under_valgrind())
        unit_skip("valgrind runs one thread at a time, so they hardly ever wait");
    make_adaptive(&b, 2, 2);
    quire_allocation kept = placed_of(&b, 0, 1000); /* a page that is not empty */
    CHECK_EQ(race_for(&b, 20000), 2);
    CHECK_EQ(shard_of(&b, kept), 0);
    CHECK_OK(quire_memory_check(b.f.memory));
    CHECK_EQ(stats_of(&b).allocation_count, 1);
    end(&b);
}

/* ---- growth ------------------------------------------------------------------------------- */

CASE(the_number_doubles_up_to_the_most, 6, 5)
{
    static const uint32_t numbers[] = {2, 4, 6, 6};
    CHECK_EQ(shards_now(b), 1);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        CHECK_EQ(shard_of(b, grow(b)), 0); /* placed before the growth */
        CHECK_EQ(shards_now(b), numbers[i]);
        CHECK_OK(quire_memory_check(b->f.memory));
    }
    for (uint32_t by = 0; by < 6; by++)
        CHECK_EQ(shard_of(b, placed_of(b, by, 1000)), by);
}

CASE(allocations_stay_and_are_freed_through_the_inbox, 2, 1)
{
    quire_allocation early = placed_of(b, 1, 1000);
    quire_allocation_info before = fixture_info(&b->f, early);
    CHECK_EQ(shard_of(b, early), 0);
    CHECK_EQ(waiting_in(b, 0), 0);
    grow(b);
    CHECK_EQ(fixture_info(&b->f, early).page, before.page);
    CHECK_EQ(fixture_info(&b->f, early).offset, before.offset);
    free_by(b, 1, early);
    CHECK_EQ(waiting_in(b, 0), 1);
    CHECK_EQ(stats_of(b).allocation_count, 1);
}

static quire_event seen[4];
static uint32_t seen_count;

static void note(void *user, quire_memory *memory, const quire_event *event)
{
    (void)memory;
    CHECK(seen_count < 4);
    seen[seen_count++] = *event;
    if (event->kind == QUIRE_EVENT_SHARDS && user) { /* uses the memory: no lock is held */
        bench *b = user;
        quire_memory_stats stats = fixture_stats(&b->f);
        CHECK_EQ(stats.allocation_count, 1);
    }
}

CASE(the_hook_and_the_log_tell_it_without_a_lock, 8, 0)
{
    seen_count = 0;
    CHECK_OK(quire_memory_set_hook(
        b->f.memory, &(quire_hook){.event = note,
                                   .user = b,
                                   .kinds = QUIRE_EVENT_SHARDS | QUIRE_EVENT_ALLOCATED}));
    grow(b);
    CHECK_EQ(seen_count, 2);
    CHECK_EQ(seen[0].kind, QUIRE_EVENT_SHARDS);
    CHECK_EQ(seen[0].size, 2);
    CHECK_EQ(seen[1].kind, QUIRE_EVENT_ALLOCATED);
    CHECK_OK(quire_memory_set_hook(b->f.memory, NULL));
}

CASE(without_host_memory_the_memory_stays_as_it_is_and_grows_later, 2, 1)
{
    placed_of(b, 0, 1000);
    const uint64_t bytes = stats_of(b).metadata_bytes;
    CHECK_FAILS(quire_free(b->f.memory, (quire_allocation){0}), QUIRE_ERROR_INVALID_ARGUMENT);
    const char *said = quire_last_error();
    char before[256];
    snprintf(before, sizeof before, "%s", said);
    for (uint64_t call = 1;; call++) { /* every host allocation of the growth fails once */
        CHECK(call < 100);
        grow_shards_soon(b->f.memory);
        test_memory_fail(unit_memory_state(), call, true);
        placed_of(b, 0, 1000);
        test_memory_fail(unit_memory_state(), 0, false);
        CHECK_OK(quire_memory_check(b->f.memory));
        CHECK_EQ(strcmp(quire_last_error(), before), 0);
        if (shards_now(b) == 2)
            break;
        CHECK_EQ(stats_of(b).metadata_bytes, bytes);
    }
    CHECK_EQ(shard_of(b, placed_of(b, 1, 1000)), 1);
}

/* ---- a memory that has grown -------------------------------------------------------------- */

static bool count_item(void *user, const quire_item *item)
{
    *(uint32_t *)user += !item->is_free;
    return true;
}

CASE(calls_on_the_whole_memory_reach_new_shards, 4, 3)
{
    uint32_t items = 0;
    uint64_t released = 0;
    grow(b);
    grow(b);
    quire_allocation made[4];
    for (uint32_t by = 0; by < 4; by++)
        made[by] = placed(b, by, (quire_allocation_options){.size = 1000, .name = "a/b"});
    CHECK_EQ(stats_of(b).allocation_count, 6);
    CHECK_EQ(stats_of(b).peak_allocation_count, 6);
    CHECK_OK(quire_memory_walk(b->f.memory, count_item, &items));
    CHECK_EQ(items, 6);
    CHECK_OK(quire_memory_set_name_limit(b->f.memory, "a/", 4 * 1024));
    request refused = allocate(b, 3, (quire_allocation_options){.size = 1000, .name = "a/c"});
    CHECK_EQ(refused.result, QUIRE_ERROR_OVER_BUDGET);
    for (uint32_t by = 0; by < 4; by++)
        CHECK_OK(quire_free(b->f.memory, made[by]));
    CHECK_OK(quire_memory_trim(b->f.memory, 0, &released));
    CHECK_EQ(released, 3 * PAGE);
    CHECK_EQ(stats_of(b).page_count, 1);
    CHECK_OK(quire_memory_check(b->f.memory));
}

UNIT_ON(shard_growth, addresses_are_found_in_every_shard, bench, b,
        make(b, &(quire_memory_options){.find_by_address = true, .pages.page_size = PAGE}, 1), end)
{
    quire_allocation found;
    allow_shards(b->f.memory, 2);
    quire_allocation early = placed_of(b, 1, 1000);
    grow(b);
    quire_allocation late = placed_of(b, 1, 1000);
    CHECK_EQ(shard_of(b, early), 0);
    CHECK_EQ(shard_of(b, late), 1);
    uint64_t address = fixture_info(&b->f, late).address;
    CHECK_OK(quire_memory_find(b->f.memory, address + 10, &found));
    CHECK_EQ(found.id, late.id);
    CHECK_OK(quire_free_at_address(b->f.memory, address, NULL));
    CHECK_OK(quire_free_at_address(b->f.memory, fixture_info(&b->f, early).address, NULL));
    CHECK_FAILS(quire_free(b->f.memory, late), QUIRE_ERROR_STALE_HANDLE);
    CHECK_OK(quire_memory_check(b->f.memory));
    CHECK_EQ(stats_of(b).allocation_count, 1);
}

CASE(a_stats_scope_spans_a_growth, 2, 1)
{
    quire_memory_stats stats;
    free_by(b, 0, placed_of(b, 0, 10000));
    CHECK_OK(quire_memory_push_stats(b->f.memory));
    free_by(b, 0, placed_of(b, 0, 5000));
    quire_allocation first = grow(b); /* 1000 bytes */
    free_by(b, 1, placed_of(b, 1, 3000));
    CHECK_EQ(stats_of(b).peak_requested_bytes, 5000);
    placed_of(b, 1, 7000);
    CHECK_OK(quire_memory_pop_stats(b->f.memory, &stats));
    CHECK_EQ(stats.peak_requested_bytes, 8000);
    CHECK_EQ(stats.peak_allocation_count, 2);
    CHECK_EQ(stats.allocations, 4);
    CHECK_EQ(stats_of(b).peak_requested_bytes, 10000);
    free_by(b, 0, first);
}
