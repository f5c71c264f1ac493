/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * slot.c - the state word of a slot in every interleaving: exactly one of several frees, commits
 * and aborts succeeds, no free succeeds while the slot is in use, and a stale handle never reaches
 * the slot's next allocation. As many releases succeed as holds exist, and none of them ends a use.
 */
#include "src/core/slot/slot.h"

#include "tests/model/model.h"
#include "tests/support/plain.h"

static qi_host host;
static qi_slots slots;
static qi_slot_queue queue;
static quire_allocation allocation;
/* bytes of the page: read while the slot is in use, written by the thread that freed it */
static uint64_t contents;
static uint32_t freed, busy, stale, committed, aborted, used, holds_taken, released, without_hold;

static void begin_in(qi_phase phase)
{
    uint32_t slot = 0;
    CHECK_OK(qi_host_init(&host, NULL));
    qi_slots_init(&slots, 1);
    qi_slot_queue_init(&queue);
    CHECK_OK(qi_slot_take(&slots, &queue, &host, &slot));
    allocation = qi_slot_publish(&slots, slot, phase);
    contents = 1;
    freed = busy = stale = committed = aborted = used = holds_taken = released = without_hold = 0;
}

static void begin_live(void)
{
    begin_in(QI_PHASE_LIVE);
}

static void begin_reserved(void)
{
    begin_in(QI_PHASE_RESERVED);
}

/* With one hold more than the scenario releases; the count's chunk exists. */
static void begin_with_hold(void)
{
    begin_live();
    CHECK_OK(qi_slot_hold(&slots, &host, allocation));
    holds_taken = 1;
}

/* With the count's chunk, but without a hold. */
static void begin_released(void)
{
    begin_with_hold();
    CHECK_OK(qi_slot_release(&slots, allocation));
    holds_taken = 0;
}

static void end(void)
{
    qi_slots_finish(&slots, &host);
}

/* ---- the work of threads -------------------------------------------------------------------- */

static bool leave(int accept, uint32_t *slot)
{
    quire_result result = qi_slot_claim(&slots, allocation, accept, slot);
    busy += result == QUIRE_ERROR_BUSY;
    stale += result == QUIRE_ERROR_STALE_HANDLE;
    return !result;
}

static void free_it(void)
{
    uint32_t slot = 0;
    if (!leave(QI_ACCEPT_LIVE, &slot))
        return;
    freed++;
    model_write(&contents, 2);
}

/* The slot belongs to another allocation immediately. */
static void free_and_take_again(void)
{
    uint32_t slot = 0, again = 1;
    if (!leave(QI_ACCEPT_LIVE, &slot))
        return;
    freed++;
    model_write(&contents, 2);
    qi_slot_give(&slots, &queue, slot);
    if (qi_slot_take(&slots, &queue, &host, &again) || again != slot)
        model_violated("the slot was not taken again");
    model_write(&contents, 3);
    (void)qi_slot_publish(&slots, slot, QI_PHASE_LIVE);
}

static void look(void)
{
    uint32_t slot = 0;
    if (qi_slot_begin_use(&slots, allocation, QI_ACCEPT_LIVE, &slot))
        return;
    used++;
    MODEL_CHECK(model_read(&contents) == 1);
    MODEL_CHECK(qi_slot_phase(&slots, slot) == QI_PHASE_LIVE);
    qi_slot_end_use(&slots, slot);
}

static void map_and_unmap(void)
{
    uint32_t slot = 0;
    if (qi_slot_begin_use(&slots, allocation, QI_ACCEPT_LIVE, &slot))
        return;
    MODEL_CHECK(!qi_slot_add_map(&slots, slot));
    qi_slot_end_use(&slots, slot);
    MODEL_CHECK(model_read(&contents) == 1); /* a map alone keeps it from being freed */
    MODEL_CHECK(!qi_slot_begin_use(&slots, allocation, QI_ACCEPT_LIVE, &slot));
    MODEL_CHECK(!qi_slot_remove_map(&slots, slot));
    qi_slot_end_use(&slots, slot);
}

/* The allocation may be freed before. */
static void release(void)
{
    quire_result result = qi_slot_release(&slots, allocation);
    released += !result;
    without_hold += result == QUIRE_ERROR_WRONG_STATE;
    stale += result == QUIRE_ERROR_STALE_HANDLE;
}

static void hold(void)
{
    quire_result result = qi_slot_hold(&slots, &host, allocation);
    holds_taken += !result;
    stale += result == QUIRE_ERROR_STALE_HANDLE;
}

/* No other thread releases: the hold alone keeps the allocation from being freed. */
static void hold_and_release(void)
{
    if (qi_slot_hold(&slots, &host, allocation))
        return;
    MODEL_CHECK(model_read(&contents) == 1);
    MODEL_CHECK(!qi_slot_release(&slots, allocation));
}

static void commit(void)
{
    committed += !qi_slot_commit(&slots, allocation);
}

static void abort_it(void)
{
    uint32_t slot = 0;
    aborted += leave(QI_ACCEPT_RESERVED, &slot);
}

/* ---- conditions at the end ------------------------------------------------------------------ */

static void one_freed(void)
{
    MODEL_CHECK(freed == 1 && stale == 2);
}

static void freed_or_busy(void)
{
    MODEL_CHECK(freed <= 1 && freed + busy + stale == 2);
    MODEL_CHECK(freed || busy == 2);
    if (freed)
        return;
    uint32_t slot = 0; /* a thread whose free failed can free it now */
    MODEL_CHECK(leave(QI_ACCEPT_LIVE, &slot));
}

static void old_handle_is_stale(void)
{
    uint32_t slot = 0;
    MODEL_CHECK(!freed || qi_slot_begin_use(&slots, allocation, QI_ACCEPT_LIVE, &slot) ==
                              QUIRE_ERROR_STALE_HANDLE);
    MODEL_CHECK(!freed || qi_slot_phase(&slots, 0) == QI_PHASE_LIVE);
    MODEL_CHECK(freed || busy == 1);
}

static void one_decided(void)
{
    MODEL_CHECK(committed + aborted == 1);
    MODEL_CHECK(freed <= committed);
}

/* No hold existed. */
static void none_released(void)
{
    MODEL_CHECK(!released && freed + busy == 1 && without_hold + stale == 1);
}

/* Only the holds that no thread has released keep it from being freed. */
static void released_as_often(void)
{
    uint32_t slot = 0, left = holds_taken - released;
    MODEL_CHECK(released <= holds_taken && freed <= !left);
    if (freed)
        return;
    MODEL_CHECK(!left ||
                qi_slot_claim(&slots, allocation, QI_ACCEPT_LIVE, &slot) == QUIRE_ERROR_BUSY);
    for (; left; left--)
        MODEL_CHECK(!qi_slot_release(&slots, allocation));
    MODEL_CHECK(qi_slot_release(&slots, allocation) == QUIRE_ERROR_WRONG_STATE);
    MODEL_CHECK(leave(QI_ACCEPT_LIVE, &slot));
}

/* Writes what uses read. */
static void move(void)
{
    const uint32_t slot = qi_handle_slot(allocation.id);
    if (!qi_slot_begin_move(&slots, slot, NULL))
        return;
    model_write(&contents, 1);
    qi_slot_end_move(&slots, slot, 0);
}

static void freed_or_in_use(void)
{
    MODEL_CHECK(freed + busy == 1 && (freed || used));
}

static void move_twice(void)
{
    move();
    move();
}

static void freed_after_moves(void)
{
    MODEL_CHECK(freed == 1);
}

static void one_released(void)
{
    MODEL_CHECK(released == 1 && (without_hold || freed));
    released_as_often();
}

#define SCENARIO(what, start, a, b, c, after)                                                      \
    {                                                                                              \
        .name = (what), .begin = (start), .threads = {a, b, c}, .judge = (after), .end = end       \
    }

static const model_scenario frees = SCENARIO("three frees", begin_live, free_it, free_it, free_it,
                                             one_freed),
                            uses = SCENARIO("two frees beside a use", begin_live, look, free_it,
                                            free_it, freed_or_busy),
                            two_uses = SCENARIO("a free beside two uses", begin_live, look, look,
                                                free_it, NULL),
                            maps = SCENARIO("two frees beside a map", begin_live, map_and_unmap,
                                            free_it, free_it, freed_or_busy),
                            again = SCENARIO("a slot taken again beside a use", begin_live, look,
                                             free_and_take_again, NULL, old_handle_is_stale),
                            decisions = SCENARIO("a commit, an abort and a free", begin_reserved,
                                                 commit, abort_it, free_it, one_decided);

static const model_scenario stray = SCENARIO("a release without a hold beside a use and a free",
                                             begin_released, look, release, free_it, none_released),
                            twice =
                                SCENARIO("two releases of one hold beside a free", begin_with_hold,
                                         release, release, free_it, one_released),
                            holds = SCENARIO("a hold and its release beside a use and a free",
                                             begin_released, hold_and_release, look, free_it, NULL),
                            taken = SCENARIO("a hold beside a release and a free", begin_released,
                                             hold, release, free_it, released_as_often);

static const model_scenario moves = SCENARIO("a move beside a use and a free", begin_live, move,
                                             look, free_it, freed_or_in_use),
                            movers = SCENARIO("two threads that move", begin_live, move, move, NULL,
                                              NULL),
                            two_moves = SCENARIO("two moves beside a free", begin_live, move_twice,
                                                 free_it, NULL, freed_after_moves);

static void one_wins(void)
{
    model_holds(&frees);
    model_holds(&decisions);
}

static void no_free_comes_between(void)
{
    model_holds(&uses);
    model_holds(&two_uses);
    model_holds(&maps);
    model_holds(&again);
}

static void a_release_takes_a_hold(void)
{
    model_holds(&stray);
    model_holds(&twice);
    model_holds(&holds);
    model_holds(&taken);
}

static void uses_and_frees_await_moves(void)
{
    model_holds(&moves);
    model_holds(&movers);
    model_holds(&two_moves);
}

static void broken_ones_are_found(void)
{
    model_finds(&moves, MODEL_TORN_EXCHANGE, "");
    model_finds(&moves, MODEL_NO_RELEASE, "race");
    model_finds(&moves, MODEL_NO_WAKE, "sleep");
    model_finds(&frees, MODEL_TORN_EXCHANGE, "race");
    model_finds(&decisions, MODEL_TORN_EXCHANGE, "committed + aborted == 1");
    model_finds(&uses, MODEL_TORN_EXCHANGE, "");
    model_finds(&uses, MODEL_NO_RELEASE, "race");
    model_finds(&two_uses, MODEL_NO_ACQUIRE, "race");
    model_finds(&again, MODEL_TORN_EXCHANGE, "");
    model_finds(&twice, MODEL_TORN_EXCHANGE, "");
}

int main(void)
{
    model_case("one of several frees, and one of commit and abort, succeeds", one_wins);
    model_case("no free succeeds during a use", no_free_comes_between);
    model_case("a release ends a hold, and no use", a_release_takes_a_hold);
    model_case("a use and a free wait for the end of a move", uses_and_frees_await_moves);
    model_case("the model finds broken state words", broken_ones_are_found);
    return plain_end();
}
