/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * inbox.c - the inbox of a shard in every interleaving: each slot that threads put in is taken
 * once, together with all earlier writes, and the newest of a thread first.
 */
#include "src/core/slot/inbox.h"

#include "tests/model/model.h"
#include "tests/support/plain.h"

enum { SLOTS = 3 };

static qi_host host;
static qi_slots slots;
static qi_slot_queue queue;
static qi_inbox inbox;
static uint64_t contents[SLOTS]; /* of the record of each slot, for the race check */
static uint32_t came[SLOTS];     /* how often, */
static uint32_t when[SLOTS];     /* as which of all */
static uint32_t batch[SLOTS];    /* and by which take */
static uint32_t come, takes;

static void begin(void)
{
    CHECK_OK(qi_host_init(&host, NULL));
    qi_slots_init(&slots, 1);
    qi_slot_queue_init(&queue);
    qi_inbox_init(&inbox);
    come = takes = 0;
    for (uint32_t i = 0; i < SLOTS; i++) {
        uint32_t slot = 0;
        CHECK_OK(qi_slot_take(&slots, &queue, &host, &slot));
        CHECK_EQ(slot, i);
        contents[i] = came[i] = 0;
    }
}

static void end(void)
{
    qi_slots_finish(&slots, &host);
}

static void put(uint32_t slot)
{
    model_write(&contents[slot], slot + 1);
    uint32_t waiting = qi_inbox_put(&inbox, &slots, slot);
    MODEL_CHECK(waiting >= 1 && waiting <= SLOTS);
}

static void take(void)
{
    uint32_t slot = 0, next = 0;
    if (qi_inbox_is_empty(&inbox))
        return;
    takes++;
    for (uint32_t left = qi_inbox_take(&inbox, &slot); left; left--, slot = next) {
        MODEL_CHECK(slot < SLOTS);
        next = qi_slot_next(&slots, slot);
        MODEL_CHECK(model_read(&contents[slot]) == slot + 1);
        model_write(&contents[slot], 0); /* it belongs to the taker now */
        came[slot]++;
        when[slot] = come++;
        batch[slot] = takes;
    }
}

/* The slots that no thread took are still queued; each was taken once. */
static void judge(void)
{
    take();
    for (uint32_t i = 0; i < SLOTS; i++)
        MODEL_CHECK(came[i] == 1);
    MODEL_CHECK(!qi_inbox_take(&inbox, &come));
}

/* One thread put in slot 0 before slot 1: an earlier take returns it, or the same take returns it
   after slot 1. */
static void judge_with_order(void)
{
    judge();
    MODEL_CHECK(batch[0] == batch[1] ? when[1] < when[0] : batch[0] < batch[1]);
}

static void put_0(void)
{
    put(0);
}

static void put_1(void)
{
    put(1);
}

static void put_2(void)
{
    put(2);
}

static void put_0_and_1(void)
{
    put(0);
    put(1);
}

static void take_twice(void)
{
    take();
    take();
}

static const model_scenario three = {.name = "three threads put",
                                     .begin = begin,
                                     .threads = {put_0, put_1, put_2},
                                     .judge = judge,
                                     .end = end};
static const model_scenario taken = {.name = "two threads put three slots, one takes twice",
                                     .begin = begin,
                                     .threads = {put_0_and_1, put_2, take_twice},
                                     .judge = judge_with_order,
                                     .end = end};

static void nothing_is_lost_or_comes_twice(void)
{
    model_holds(&three);
    model_holds(&taken);
}

static void broken_ones_are_found(void)
{
    model_finds(&three, MODEL_TORN_EXCHANGE, "came[i] == 1");
    model_finds(&taken, MODEL_TORN_EXCHANGE, "not true");
    model_finds(&taken, MODEL_NO_RELEASE, "race");
    model_finds(&taken, MODEL_NO_ACQUIRE, "race");
}

int main(void)
{
    model_case("nothing is lost and nothing is taken twice", nothing_is_lost_or_comes_twice);
    model_case("the model finds a broken inbox", broken_ones_are_found);
    return plain_end();
}
