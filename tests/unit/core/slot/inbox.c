/*
 * inbox.c - slots in an inbox: their number and their order. tests/model/inbox.c tests every
 * interleaving of threads.
 */
#include "src/core/slot/inbox.h"

#include "tests/support/unit.h"

enum { SLOTS = 40 };

typedef struct bench {
    qi_host host;
    qi_slots slots;
    qi_slot_queue queue;
    qi_inbox inbox;
} bench;

static void make(bench *b)
{
    CHECK_OK(qi_host_init(&b->host, unit_memory()));
    qi_slots_init(&b->slots, 1);
    qi_slot_queue_init(&b->queue);
    qi_inbox_init(&b->inbox);
    for (uint32_t i = 0; i < SLOTS; i++) {
        uint32_t slot = 0;
        CHECK_OK(qi_slot_take(&b->slots, &b->queue, &b->host, &slot));
        CHECK_EQ(slot, i);
    }
}

static void end(bench *b)
{
    qi_slots_finish(&b->slots, &b->host);
}

#define CASE(name) UNIT_ON(inbox, name, bench, b, make(b), end)

CASE(a_new_inbox_is_empty)
{
    uint32_t slot = 7;
    CHECK(qi_inbox_is_empty(&b->inbox));
    CHECK_EQ(qi_inbox_take(&b->inbox, &slot), 0);
}

CASE(all_slots_are_taken_at_once_the_newest_first)
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

CASE(a_slot_in_an_inbox_has_no_owner)
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
