/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * slot.c - the slot table behind handles, seen from inside: taking and giving, the queue, retired
 * generations, uses and maps with their limits, the inbox, and forged handles. tests/model/slot.c
 * and tests/model/inbox.c have the races.
 */
#include <pthread.h>
#include <time.h>

#include "src/base/thread.h"
#include "src/core/slot/inbox.h"
#include "src/core/slot/slot.h"
#include "tests/support/random.h"
#include "tests/support/unit.h"

enum { TAG = 77, ANY = QI_ACCEPT_LIVE | QI_ACCEPT_RESERVED };

typedef struct bench {
    qi_host host;
    qi_slots slots;
    qi_slot_queue queue;
    qi_inbox inbox;
} bench;

static void make(bench *b)
{
    CHECK_OK(qi_host_init(&b->host, unit_memory()));
    qi_slots_init(&b->slots, TAG);
    qi_slot_queue_init(&b->queue);
}

static void end(bench *b)
{
    qi_slots_finish(&b->slots, &b->host);
    CHECK_EQ(b->host.bytes, 0);
}

/* The handle of a slot that is not free. */
static quire_allocation handle_of(const qi_slots *slots, uint32_t slot)
{
    uint32_t generation = qi_slot_generation(qi_atomic_load_u64(qi_slot_state(slots, slot)));
    return (quire_allocation){qi_handle(slots->tag, generation, slot)};
}

/* A reserved one. */
static uint32_t take(bench *b)
{
    uint32_t slot = 0;
    CHECK_OK(qi_slot_take(&b->slots, &b->queue, &b->host, &slot));
    qi_slot_publish(&b->slots, slot, QI_PHASE_RESERVED);
    return slot;
}

/* A committed one. */
static quire_allocation take_live(bench *b)
{
    quire_allocation handle = handle_of(&b->slots, take(b));
    CHECK_OK(qi_slot_commit(&b->slots, handle));
    return handle;
}

/* Frees a live one; returns its slot. */
static uint32_t give(bench *b, quire_allocation handle)
{
    uint32_t slot = 0;
    CHECK_OK(qi_slot_claim(&b->slots, handle, QI_ACCEPT_LIVE, &slot));
    qi_slot_give(&b->slots, &b->queue, slot);
    return slot;
}

static void trim(bench *b)
{
    qi_slot_queue *queue = &b->queue;
    qi_slots_trim(&b->slots, &queue, 1, &b->host);
}

/* The state word in the layout that slot.h documents. */
static void write_word(bench *b, uint32_t slot, uint64_t generation, qi_phase phase, uint64_t rest)
{
    qi_atomic_u64 *word = qi_table_get(&b->slots.states, slot);
    *word = generation << 38 | (uint64_t)phase << 36 | rest;
}

#define CASE(name) UNIT_ON(slot, name, bench, b, make(b), end)

/* ---- handles ------------------------------------------------------------------------------ */

CASE(a_taken_slot_is_private_then_reserved_then_live_then_private_then_free)
{
    uint32_t slot = 9;
    CHECK_OK(qi_slot_take(&b->slots, &b->queue, &b->host, &slot));
    quire_allocation handle = handle_of(&b->slots, slot);
    CHECK_EQ(handle.id, qi_handle(TAG, 1, 0));
    CHECK_EQ(qi_slot_phase(&b->slots, slot), QI_PHASE_PRIVATE);
    CHECK_FAILS(qi_slot_begin_use(&b->slots, handle, ANY, &slot), QUIRE_ERROR_STALE_HANDLE);
    CHECK_FAILS(qi_slot_commit(&b->slots, handle), QUIRE_ERROR_STALE_HANDLE);
    CHECK_FAILS(qi_slot_claim(&b->slots, handle, ANY, &slot), QUIRE_ERROR_STALE_HANDLE);
    qi_slot_publish(&b->slots, slot, QI_PHASE_RESERVED);
    CHECK_EQ(qi_slot_phase(&b->slots, slot), QI_PHASE_RESERVED);
    CHECK_OK(qi_slot_commit(&b->slots, handle));
    CHECK_EQ(qi_slot_phase(&b->slots, slot), QI_PHASE_LIVE);
    CHECK_OK(qi_slot_claim(&b->slots, handle, QI_ACCEPT_LIVE, &slot));
    CHECK_EQ(slot, 0);
    CHECK_EQ(qi_slot_phase(&b->slots, slot), QI_PHASE_PRIVATE);
    CHECK_FAILS(qi_slot_begin_use(&b->slots, handle, ANY, &slot), QUIRE_ERROR_STALE_HANDLE);
    CHECK_EQ(b->queue.used, 1);
    qi_slot_give(&b->slots, &b->queue, slot);
    CHECK_EQ(qi_slot_phase(&b->slots, slot), QI_PHASE_FREE);
    CHECK_EQ(b->queue.used, 0);
}

CASE(null_stale_and_foreign_handles_are_distinguished)
{
    quire_allocation live = take_live(b), freed = take_live(b);
    give(b, freed);
    const struct {
        uint64_t id;
        quire_result code;
    } cases[] = {
        {0, QUIRE_ERROR_INVALID_ARGUMENT},
        {freed.id, QUIRE_ERROR_STALE_HANDLE},
        {qi_handle(TAG, 0, 0), QUIRE_ERROR_STALE_HANDLE},          /* never given out */
        {qi_handle(TAG, 2, 0), QUIRE_ERROR_STALE_HANDLE},          /* not yet */
        {qi_handle(TAG, 1, 2), QUIRE_ERROR_STALE_HANDLE},          /* above the top */
        {qi_handle(TAG, 1, 5000), QUIRE_ERROR_STALE_HANDLE},       /* in no chunk */
        {qi_handle(TAG, 1, QI_NO_SLOT), QUIRE_ERROR_STALE_HANDLE}, /* never used */
        {qi_handle(TAG + 1, 1, 0), QUIRE_ERROR_FOREIGN_HANDLE},
        {qi_handle(0, 1, 0), QUIRE_ERROR_FOREIGN_HANDLE},
        {live.id | UINT64_C(1) << 63, QUIRE_ERROR_FOREIGN_HANDLE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        quire_allocation handle = {cases[i].id};
        uint32_t slot = 0;
        CHECK_FAILS(qi_slot_remove_map(&b->slots, 0), QUIRE_ERROR_NOT_MAPPED); /* another error */
        CHECK_FAILS(qi_slot_begin_use(&b->slots, handle, ANY, &slot), cases[i].code);
        CHECK_FAILS(qi_slot_commit(&b->slots, handle), cases[i].code);
        CHECK_FAILS(qi_slot_claim(&b->slots, handle, ANY, &slot), cases[i].code);
    }
    give(b, live);
}

CASE(calls_accept_only_the_phases_that_they_name)
{
    uint32_t slot = take(b);
    quire_allocation handle = handle_of(&b->slots, slot);
    CHECK_FAILS(qi_slot_begin_use(&b->slots, handle, QI_ACCEPT_LIVE, &slot),
                QUIRE_ERROR_WRONG_STATE);
    CHECK_HAS(quire_last_error(), "commit or abort");
    CHECK_FAILS(qi_slot_claim(&b->slots, handle, QI_ACCEPT_LIVE, &slot), QUIRE_ERROR_WRONG_STATE);
    CHECK_OK(qi_slot_begin_use(&b->slots, handle, QI_ACCEPT_RESERVED, &slot));
    qi_slot_end_use(&b->slots, slot);
    CHECK_OK(qi_slot_commit(&b->slots, handle));
    CHECK_FAILS(qi_slot_commit(&b->slots, handle), QUIRE_ERROR_WRONG_STATE);
    CHECK_HAS(quire_last_error(), "committed already");
    CHECK_FAILS(qi_slot_begin_use(&b->slots, handle, QI_ACCEPT_RESERVED, &slot),
                QUIRE_ERROR_WRONG_STATE);
    CHECK_FAILS(qi_slot_claim(&b->slots, handle, QI_ACCEPT_RESERVED, &slot),
                QUIRE_ERROR_WRONG_STATE);
    give(b, handle);
}

/* ---- uses and maps ------------------------------------------------------------------------ */

CASE(a_slot_in_use_is_not_freed_and_reports_how_many_calls_use_it)
{
    quire_allocation handle = take_live(b);
    uint32_t slot = 0;
    CHECK_OK(qi_slot_begin_use(&b->slots, handle, ANY, &slot));
    CHECK_OK(qi_slot_begin_use(&b->slots, handle, ANY, &slot));
    CHECK_FAILS(qi_slot_claim(&b->slots, handle, ANY, &slot), QUIRE_ERROR_BUSY);
    CHECK_HAS(quire_last_error(), "2 calls");
    qi_slot_end_use(&b->slots, slot);
    CHECK_FAILS(qi_slot_claim(&b->slots, handle, ANY, &slot), QUIRE_ERROR_BUSY);
    qi_slot_end_use(&b->slots, slot);
    give(b, handle);
}

CASE(a_commit_keeps_the_uses)
{
    uint32_t slot = take(b);
    quire_allocation handle = handle_of(&b->slots, slot);
    CHECK_OK(qi_slot_begin_use(&b->slots, handle, ANY, &slot));
    CHECK_OK(qi_slot_commit(&b->slots, handle));
    CHECK_FAILS(qi_slot_claim(&b->slots, handle, ANY, &slot), QUIRE_ERROR_BUSY);
    qi_slot_end_use(&b->slots, slot);
    give(b, handle);
}

CASE(maps_are_counted_apart_from_uses)
{
    quire_allocation handle = take_live(b);
    uint32_t slot = 0;
    CHECK_OK(qi_slot_begin_use(&b->slots, handle, ANY, &slot));
    CHECK_FAILS(qi_slot_remove_map(&b->slots, slot), QUIRE_ERROR_NOT_MAPPED);
    CHECK_OK(qi_slot_add_map(&b->slots, slot));
    CHECK_OK(qi_slot_add_map(&b->slots, slot));
    CHECK_EQ(qi_slot_map_count(&b->slots, slot), 2);
    qi_slot_end_use(&b->slots, slot);
    CHECK_FAILS(qi_slot_claim(&b->slots, handle, ANY, &slot), QUIRE_ERROR_BUSY);
    CHECK_HAS(quire_last_error(), "mapped 2 times");
    CHECK_OK(qi_slot_remove_map(&b->slots, slot));
    CHECK_OK(qi_slot_remove_map(&b->slots, slot));
    CHECK_FAILS(qi_slot_remove_map(&b->slots, slot), QUIRE_ERROR_NOT_MAPPED);
    CHECK_EQ(qi_slot_map_count(&b->slots, slot), 0);
    give(b, handle);
}

CASE(uses_and_maps_stop_at_their_limits_and_change_nothing_else)
{
    quire_allocation handle = take_live(b);
    const uint64_t max = (UINT64_C(1) << 18) - 1;
    uint32_t slot = 0;
    write_word(b, 0, 1, QI_PHASE_LIVE, max - 1);
    CHECK_OK(qi_slot_begin_use(&b->slots, handle, ANY, &slot));
    CHECK_FAILS(qi_slot_begin_use(&b->slots, handle, ANY, &slot), QUIRE_ERROR_BUSY);
    CHECK_HAS(quire_last_error(), "262143 calls");
    CHECK_EQ(qi_slot_map_count(&b->slots, 0), 0);
    write_word(b, 0, 1, QI_PHASE_LIVE, (max - 1) << 18);
    CHECK_OK(qi_slot_add_map(&b->slots, 0));
    CHECK_EQ(qi_slot_map_count(&b->slots, 0), max);
    CHECK_FAILS(qi_slot_add_map(&b->slots, 0), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_HAS(quire_last_error(), "mapped 262143 times");
    CHECK_EQ(qi_slot_phase(&b->slots, 0), QI_PHASE_LIVE);
    CHECK_EQ(handle_of(&b->slots, 0).id, handle.id);
    CHECK_OK(qi_slot_remove_map(&b->slots, 0));
    CHECK_EQ(qi_slot_map_count(&b->slots, 0), max - 1);
    write_word(b, 0, 1, QI_PHASE_LIVE, 0);
    give(b, handle);
}

/* ---- moves -------------------------------------------------------------------------------- */

CASE(only_a_live_slot_without_maps_and_uses_moves)
{
    const quire_allocation handle = take_live(b);
    uint32_t slot = 0, reserved = take(b);
    CHECK(!qi_slot_begin_move(&b->slots, reserved, NULL));
    CHECK_OK(qi_slot_begin_use(&b->slots, handle, ANY, &slot));
    CHECK(!qi_slot_begin_move(&b->slots, slot, NULL));
    CHECK_OK(qi_slot_add_map(&b->slots, slot));
    qi_slot_end_use(&b->slots, slot);
    CHECK(!qi_slot_begin_move(&b->slots, slot, NULL));
    CHECK_OK(qi_slot_remove_map(&b->slots, slot));
    CHECK(qi_slot_begin_move(&b->slots, slot, NULL));
    CHECK(!qi_slot_begin_move(&b->slots, slot, NULL));
    CHECK_EQ(qi_slot_phase(&b->slots, slot), QI_PHASE_LIVE);
    CHECK_EQ(qi_slot_map_count(&b->slots, slot), 0);
    CHECK_EQ(qi_slot_public_handle(&b->slots, slot).id, handle.id);
    CHECK(qi_slot_is_live(&b->slots, handle.id));
    qi_slot_end_move(&b->slots, slot, 0);
    give(b, handle);
    CHECK(!qi_slot_begin_move(&b->slots, slot, NULL));
}

/* Maps are another slot's meanwhile, and come back with the end. */
CASE(a_mapped_slot_moves_if_the_mover_takes_care_of_its_maps)
{
    const quire_allocation handle = take_live(b);
    const uint32_t slot = qi_handle_slot(handle.id);
    uint32_t maps = 9, again = 0;
    CHECK_OK(qi_slot_begin_use(&b->slots, handle, ANY, &again));
    CHECK_OK(qi_slot_add_map(&b->slots, slot));
    CHECK_OK(qi_slot_add_map(&b->slots, slot));
    CHECK(!qi_slot_begin_move(&b->slots, slot, &maps)); /* it is in use */
    qi_slot_end_use(&b->slots, slot);
    CHECK(!qi_slot_begin_move(&b->slots, slot, NULL));
    CHECK(qi_slot_begin_move(&b->slots, slot, &maps));
    CHECK_EQ(maps, 2);
    CHECK(!qi_slot_begin_move(&b->slots, slot, &again));
    qi_slot_end_move(&b->slots, slot, maps);
    CHECK_EQ(qi_slot_map_count(&b->slots, slot), 2);
    CHECK_OK(qi_slot_remove_map(&b->slots, slot));
    CHECK_OK(qi_slot_remove_map(&b->slots, slot));
    give(b, handle);
}

/* The mover may be the caller of the backend. */
CASE(inside_the_backend_nobody_waits_for_a_move)
{
    const quire_allocation handle = take_live(b);
    uint32_t slot = 0;
    CHECK(qi_slot_begin_move(&b->slots, qi_handle_slot(handle.id), NULL));
    qi_transit_begin();
    CHECK_FAILS(qi_slot_begin_use(&b->slots, handle, ANY, &slot), QUIRE_ERROR_BUSY);
    CHECK_FAILS(qi_slot_claim(&b->slots, handle, QI_ACCEPT_LIVE, &slot), QUIRE_ERROR_BUSY);
    qi_transit_end();
    qi_slot_end_move(&b->slots, qi_handle_slot(handle.id), 0);
    give(b, handle);
}

typedef struct waiting {
    bench *b;
    quire_allocation handle;
    qi_atomic_u32 used;
} waiting;

static void *use(void *user)
{
    waiting *w = user;
    uint32_t slot = 0;
    CHECK_OK(qi_slot_begin_use(&w->b->slots, w->handle, ANY, &slot));
    qi_atomic_store_release_u32(&w->used, 1);
    qi_slot_end_use(&w->b->slots, slot);
    return NULL;
}

CASE(a_use_waits_until_the_move_has_ended)
{
    waiting w = {.b = b, .handle = take_live(b)};
    pthread_t thread;
    CHECK(qi_slot_begin_move(&b->slots, qi_handle_slot(w.handle.id), NULL));
    CHECK_EQ(pthread_create(&thread, NULL, use, &w), 0);
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    CHECK_EQ(qi_atomic_load_u32(&w.used), 0);
    qi_slot_end_move(&b->slots, qi_handle_slot(w.handle.id), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(qi_atomic_load_u32(&w.used), 1);
    give(b, w.handle);
}

static void *begin_move(void *user)
{
    const waiting *w = user;
    CHECK(qi_slot_begin_move(&w->b->slots, qi_handle_slot(w->handle.id), NULL));
    return NULL;
}

CASE(the_child_of_a_fork_ends_the_moves_of_vanished_threads)
{
    waiting w = {.b = b, .handle = take_live(b)};
    const uint32_t slot = qi_handle_slot(w.handle.id);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, begin_move, &w), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    qi_slots_drop_uses(&b->slots);
    CHECK(!qi_slot_begin_move(&b->slots, slot, NULL));
    qi_slots_drop_moves(&b->slots);
    CHECK_EQ(qi_slot_map_count(&b->slots, slot), 0);
    CHECK(qi_slot_begin_move(&b->slots, slot, NULL));
    qi_slots_drop_moves(&b->slots); /* this thread goes on with its own */
    CHECK(!qi_slot_begin_move(&b->slots, slot, NULL));
    qi_slot_end_move(&b->slots, slot, 0);
    give(b, w.handle);
}

/* The record says whether a slot sleeps. */
CASE(a_slot_that_sleeps_moves_once_nobody_reads_it)
{
    const quire_allocation handle = take_live(b);
    const uint32_t slot = qi_handle_slot(handle.id);
    uint32_t again = 0;
    CHECK_EQ(qi_slot_begin_waking_move(&b->slots, handle), QI_SLOT_GONE);
    CHECK(qi_slot_begin_move(&b->slots, slot, NULL));
    qi_slot_at(&b->slots, slot)->extras |= QI_EXTRA_ASLEEP;
    qi_slot_end_move(&b->slots, slot, 0);
    CHECK_EQ(qi_slot_phase(&b->slots, slot), QI_PHASE_ASLEEP);
    CHECK(!qi_slot_begin_move(&b->slots, slot, NULL));
    CHECK_OK(qi_slot_begin_use(&b->slots, handle, QI_ACCEPT_ASLEEP, &again));
    CHECK_EQ(qi_slot_begin_waking_move(&b->slots, handle), QI_SLOT_BUSY);
    qi_slot_end_use(&b->slots, slot);
    CHECK_EQ(qi_slot_begin_waking_move(&b->slots, handle), QI_SLOT_BEGUN);
    qi_slot_end_move(&b->slots, slot, 0); /* it goes on to sleep */
    CHECK_EQ(qi_slot_phase(&b->slots, slot), QI_PHASE_ASLEEP);
    CHECK_EQ(qi_slot_begin_waking_move(&b->slots, handle), QI_SLOT_BEGUN);
    qi_slot_at(&b->slots, slot)->extras &= (uint8_t)~QI_EXTRA_ASLEEP;
    qi_slot_end_move(&b->slots, slot, 0);
    give(b, handle);
    CHECK_EQ(qi_slot_begin_waking_move(&b->slots, handle), QI_SLOT_GONE);
}

/* ---- the end ------------------------------------------------------------------------------ */

CASE(a_destroyed_memory_frees_mapped_reserved_and_used_slots)
{
    quire_allocation mapped = take_live(b), gone = take_live(b);
    take(b); /* slot 2, reserved */
    uint32_t slot = 0;
    CHECK_OK(qi_slot_begin_use(&b->slots, mapped, ANY, &slot));
    CHECK_OK(qi_slot_add_map(&b->slots, slot));
    give(b, gone);
    CHECK(qi_slot_force_claim(&b->slots, 0));
    CHECK(!qi_slot_force_claim(&b->slots, 1));
    CHECK(qi_slot_force_claim(&b->slots, 2));
    CHECK_EQ(qi_slot_phase(&b->slots, 0), QI_PHASE_PRIVATE);
    qi_slot_give(&b->slots, &b->queue, 0);
    qi_slot_give(&b->slots, &b->queue, 2);
    CHECK_EQ(b->queue.used, 0);
}

/* ---- the queue ---------------------------------------------------------------------------- */

CASE(freed_slots_are_reused_in_order_before_new_ones)
{
    quire_allocation handles[6];
    for (int i = 0; i < 6; i++)
        handles[i] = take_live(b);
    static const int order[] = {4, 1, 3};
    for (int i = 0; i < 3; i++)
        CHECK_EQ(give(b, handles[order[i]]), order[i]);
    CHECK_EQ(take(b), 4);
    CHECK_EQ(give(b, handles[0]), 0); /* after 1 and 3 */
    CHECK_EQ(take(b), 1);
    CHECK_EQ(take(b), 3);
    CHECK_EQ(take(b), 0);
    CHECK_EQ(take(b), 6);
    CHECK_EQ(b->queue.used, 7);
}

CASE(each_use_of_a_slot_has_another_generation)
{
    uint64_t before = 0;
    for (uint32_t i = 1; i <= 1000; i++) {
        quire_allocation handle = take_live(b);
        CHECK_EQ(handle.id, qi_handle(TAG, i, 0));
        CHECK(handle.id != before);
        before = handle.id;
        give(b, handle);
    }
}

CASE(a_slot_without_further_generations_is_retired)
{
    quire_allocation other = take_live(b);    /* 0 */
    quire_allocation retiring = take_live(b); /* 1 */
    write_word(b, 1, QI_LAST_GENERATION - 1, QI_PHASE_LIVE, 0);
    retiring = handle_of(&b->slots, 1);
    give(b, retiring);
    CHECK_EQ(take(b), 1); /* the last use */
    quire_allocation last = handle_of(&b->slots, 1);
    CHECK_EQ(last.id, qi_handle(TAG, QI_LAST_GENERATION, 1));
    CHECK_OK(qi_slot_commit(&b->slots, last));
    give(b, last);
    CHECK_FAILS(qi_slot_commit(&b->slots, last), QUIRE_ERROR_STALE_HANDLE);
    CHECK_EQ(take(b), 2); /* 1 is never given out again */
    trim(b);
    give(b, other);
    CHECK_EQ(take(b), 0);
    CHECK_EQ(take(b), 3);
    CHECK_EQ(b->queue.used, 3);
}

CASE(the_last_numbers_are_never_given_out)
{
    b->slots.top = QI_SLOT_COUNT - 32; /* as after 67,108,832 allocations */
    uint32_t slot = 0;
    CHECK_FAILS(qi_slot_take(&b->slots, &b->queue, &b->host, &slot),
                QUIRE_ERROR_TOO_MANY_ALLOCATIONS);
    CHECK_HAS(quire_last_error(), "67108832 allocations");
    b->slots.top = 0;
}

CASE(without_host_memory_nothing_changes)
{
    for (uint64_t call = 1; call <= 2; call++) { /* the states, then the records */
        uint32_t slot = 0;
        test_memory_fail(unit_memory_state(), call, false);
        CHECK_FAILS(qi_slot_take(&b->slots, &b->queue, &b->host, &slot),
                    QUIRE_ERROR_OUT_OF_HOST_MEMORY);
        CHECK_HAS(quire_last_error(), "record of allocation 1");
        CHECK_EQ(b->queue.used, 0);
        CHECK_EQ(b->slots.top, call == 1 ? 0 : 32); /* a block exists, without records */
    }
    test_memory_fail(unit_memory_state(), 0, false);
    CHECK_EQ(take(b), 0);
}

CASE(a_trim_releases_records_and_old_handles_stay_stale)
{
    enum { COUNT = 500 };
    quire_allocation handles[COUNT];
    for (int i = 0; i < COUNT; i++)
        handles[i] = take_live(b);
    uint64_t full = b->host.bytes;
    for (int i = COUNT; i-- > 1;) /* 0 stays; in reverse order, so that the queue is unsorted */
        give(b, handles[i]);
    trim(b);
    CHECK(b->host.bytes < full);
    uint32_t slot = 9;
    CHECK_OK(qi_slot_begin_use(&b->slots, handles[0], ANY, &slot)); /* its record stays */
    qi_slot_end_use(&b->slots, slot);
    CHECK(qi_table_get(&b->slots.records, 0) != NULL);
    CHECK(qi_table_get(&b->slots.records, COUNT - 1) == NULL);
    for (int i = 1; i < COUNT; i++)
        CHECK_FAILS(qi_slot_begin_use(&b->slots, handles[i], ANY, &slot), QUIRE_ERROR_STALE_HANDLE);
    for (uint32_t i = 1; i < COUNT; i++) {
        CHECK_EQ(take(b), i); /* the lowest first */
        CHECK_EQ(handle_of(&b->slots, i).id, qi_handle(TAG, 2, i));
    }
    CHECK_EQ(b->host.bytes, full);
    for (int i = 1; i < COUNT; i++)
        CHECK_FAILS(qi_slot_begin_use(&b->slots, handles[i], ANY, &slot), QUIRE_ERROR_STALE_HANDLE);
}

/* ---- the inbox ---------------------------------------------------------------------------- */

enum { SLOTS = 40 };

static void make_inbox(bench *b)
{
    make(b);
    qi_inbox_init(&b->inbox);
    for (uint32_t i = 0; i < SLOTS; i++) {
        uint32_t slot = 0;
        CHECK_OK(qi_slot_take(&b->slots, &b->queue, &b->host, &slot));
        CHECK_EQ(slot, i);
    }
}

#define INBOX(name) UNIT_ON(slot, name, bench, b, make_inbox(b), end)

INBOX(a_new_inbox_is_empty)
{
    uint32_t slot = 7;
    CHECK(qi_inbox_is_empty(&b->inbox));
    CHECK_EQ(qi_inbox_take(&b->inbox, &slot), 0);
}

INBOX(all_slots_are_taken_at_once_the_newest_first)
{
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < SLOTS; i++) {
            CHECK_EQ(qi_inbox_put(&b->inbox, &b->slots, i), i + 1);
            CHECK(!qi_inbox_is_empty(&b->inbox)); /* slot 0 too */
        }
        uint32_t slot = 0;
        CHECK_EQ(qi_inbox_take(&b->inbox, &slot), SLOTS);
        CHECK(qi_inbox_is_empty(&b->inbox));
        for (uint32_t i = SLOTS; i-- > 0; slot = qi_slot_next(&b->slots, slot))
            CHECK_EQ(slot, i);
    }
}

INBOX(a_slot_in_an_inbox_has_no_owner)
{
    uint32_t slot = 0;
    quire_allocation handle = qi_slot_publish(&b->slots, 3, QI_PHASE_LIVE);
    CHECK_OK(qi_slot_claim(&b->slots, handle, QI_ACCEPT_LIVE, &slot));
    qi_inbox_put(&b->inbox, &b->slots, 5);
    qi_inbox_put(&b->inbox, &b->slots, slot); /* linked to 5 */
    CHECK_EQ(qi_slot_phase(&b->slots, slot), QI_PHASE_PRIVATE);
    CHECK_EQ(qi_slot_public_handle(&b->slots, slot).id, 0);
    CHECK_FAILS(qi_slot_begin_use(&b->slots, handle, QI_ACCEPT_LIVE, &slot),
                QUIRE_ERROR_STALE_HANDLE);
    CHECK_FAILS(qi_slot_claim(&b->slots, handle, QI_ACCEPT_LIVE, &slot), QUIRE_ERROR_STALE_HANDLE);
}

/* ---- forged handles ----------------------------------------------------------------------- */

enum { LIVE = 300 };

typedef struct forgery {
    qi_slots slots;
    qi_slot_queue queue;
    qi_host host;
    quire_allocation handles[LIVE];
    uint64_t right; /* forged ids that were live by chance */
} forgery;

static bool is_live(const forgery *f, uint64_t id)
{
    for (int i = 0; i < LIVE; i++)
        if (f->handles[i].id == id)
            return true;
    return false;
}

static void present(forgery *f, uint64_t id)
{
    uint32_t slot = 0;
    quire_result result = qi_slot_begin_use(&f->slots, (quire_allocation){id}, ANY, &slot);
    if (!result)
        qi_slot_end_use(&f->slots, slot);
    CHECK_EQ(!result, is_live(f, id));
    CHECK(!result || result == QUIRE_ERROR_STALE_HANDLE || result == QUIRE_ERROR_FOREIGN_HANDLE ||
          (!id && result == QUIRE_ERROR_INVALID_ARGUMENT));
    f->right += !result;
}

UNIT(slot, forged_handles_are_refused_unless_they_are_live_ones)
{
    static forgery f;
    test_random random = {2024};
    CHECK_OK(qi_host_init(&f.host, unit_memory()));
    qi_slots_init(&f.slots, TAG);
    qi_slot_queue_init(&f.queue);
    for (int round = 0; round < 3; round++) /* two generations freed before the live one */
        for (int i = 0; i < LIVE; i++) {
            uint32_t slot = 0;
            CHECK_OK(qi_slot_take(&f.slots, &f.queue, &f.host, &slot));
            f.handles[i] = handle_of(&f.slots, slot);
            if (round < 2)
                qi_slot_give(&f.slots, &f.queue, slot);
            else
                qi_slot_publish(&f.slots, slot, QI_PHASE_LIVE);
        }
    for (int i = 0; i < 20000; i++) {
        uint64_t near_one = f.handles[random_below(&random, LIVE)].id;
        present(&f, random_next(&random));                                /* any number */
        present(&f, near_one ^ UINT64_C(1) << random_below(&random, 64)); /* one bit changed */
        present(&f, qi_handle(TAG, (uint32_t)random_below(&random, 8),
                              (uint32_t)random_below(&random, 2 * LIVE)));
    }
    CHECK(f.right > 0);
    for (int i = 0; i < LIVE; i++)
        present(&f, f.handles[i].id);
    qi_slots_finish(&f.slots, &f.host);
}
