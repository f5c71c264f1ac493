/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * hold.c - holds of a backend and uses by running calls are counted apart: a release without a hold
 * does not affect the allocation of a running call.
 */
#include "tests/support/fixture.h"

#include <pthread.h>

#include "quire/host.h"
#include "src/core/slot/slot.h"

/* Calls made in the middle of a copy, by the copying thread. */
typedef struct meeting {
    quire_memory *memory;
    quire_allocation allocation;
    uint32_t calls;
    quire_result released, freed, held, released_again, released_without;
    uint64_t trimmed;
} meeting;

static bool meet(void *user, uint64_t done, uint64_t total)
{
    meeting *m = user;
    (void)done;
    (void)total;
    if (m->calls++)
        return true;
    m->released = quire_allocation_release(m->memory, m->allocation);
    m->freed = quire_free(m->memory, m->allocation);
    CHECK_OK(quire_memory_trim(m->memory, 0, &m->trimmed));
    m->held = quire_allocation_hold(m->memory, m->allocation);
    m->released_again = quire_allocation_release(m->memory, m->allocation);
    m->released_without = quire_allocation_release(m->memory, m->allocation);
    return true;
}

UNIT(hold, a_release_without_a_hold_does_not_affect_a_running_copy)
{
    enum { SIZE = 1 << 20 };
    static char bytes[SIZE];
    quire_device *device = NULL;
    meeting m = {.memory = NULL};
    CHECK_OK(quire_host_open(NULL, &device));
    CHECK_OK(quire_memory_create(
        device, &(quire_memory_options){.pages.dedicated = QUIRE_DEDICATED_ALWAYS}, &m.memory));
    CHECK_OK(quire_allocate(m.memory, &(quire_allocation_options){.size = SIZE}, &m.allocation));
    CHECK_OK(
        quire_copy(&(quire_copy_options){.to = {.memory = m.memory, .allocation = m.allocation},
                                         .host_from = bytes,
                                         .size = SIZE,
                                         .progress = {meet, &m, 4096}},
                   NULL));
    CHECK(m.calls > 1);
    CHECK_EQ(m.released, QUIRE_ERROR_WRONG_STATE);
    CHECK_EQ(m.freed, QUIRE_ERROR_BUSY);
    CHECK_EQ(m.trimmed, 0);
    CHECK_EQ(m.held, QUIRE_SUCCESS);
    CHECK_EQ(m.released_again, QUIRE_SUCCESS);
    CHECK_EQ(m.released_without, QUIRE_ERROR_WRONG_STATE);
    CHECK_OK(quire_free(m.memory, m.allocation));
    CHECK_OK(quire_memory_check(m.memory));
    CHECK_OK(quire_memory_destroy(&m.memory));
    CHECK_OK(quire_device_destroy(&device));
}

UNIT_MEMORY(hold, a_hold_is_refused_above_its_limit_and_without_host_memory, b, 0)
{
    quire_allocation one = ALLOCATE(b, .size = 100), other = ALLOCATE(b, .size = 100);
    test_memory_fail(unit_memory_state(), 1, true);
    CHECK_FAILS(quire_allocation_hold(b->memory, one), QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    test_memory_fail(unit_memory_state(), 0, false);
    CHECK_FAILS(quire_allocation_release(b->memory, one), QUIRE_ERROR_WRONG_STATE);
    for (uint32_t i = 0; i < QI_MAX_HOLDS; i++)
        CHECK_OK(quire_allocation_hold(b->memory, one));
    CHECK_FAILS(quire_allocation_hold(b->memory, one), QUIRE_ERROR_BUSY);
    CHECK_HAS(quire_last_error(), "held 131071 times");
    CHECK_FAILS(quire_allocation_release(b->memory, other), QUIRE_ERROR_WRONG_STATE);
    CHECK_HAS(quire_last_error(), "is not held");
    CHECK_OK(quire_free(b->memory, other));
    for (uint32_t i = 0; i < QI_MAX_HOLDS; i++)
        CHECK_OK(quire_allocation_release(b->memory, one));
    CHECK_FAILS(quire_allocation_release(b->memory, one), QUIRE_ERROR_WRONG_STATE);
    CHECK_OK(quire_free(b->memory, one));
}

UNIT(hold, a_reused_slot_begins_without_holds)
{
    qi_host host;
    qi_slots slots;
    qi_slot_queue queue, *queues[] = {&queue};
    CHECK_OK(qi_host_init(&host, unit_memory()));
    qi_slots_init(&slots, 1);
    qi_slot_queue_init(&queue);
    for (uint32_t turn = 0; turn < 3; turn++) {
        uint32_t slot = 0;
        CHECK_OK(qi_slot_take(&slots, &queue, &host, &slot));
        quire_allocation live = qi_slot_publish(&slots, slot, QI_PHASE_LIVE);
        CHECK_EQ(slot, 0); /* the same slot each time: a trim sorts the queue */
        CHECK_FAILS(qi_slot_release(&slots, live), QUIRE_ERROR_WRONG_STATE);
        CHECK_OK(qi_slot_hold(&slots, &host, live));
        if (turn == 1) {
            CHECK_OK(qi_slot_release(&slots, live));
            CHECK_OK(qi_slot_claim(&slots, live, QI_ACCEPT_LIVE, &slot));
        } else {
            CHECK(qi_slot_force_claim(&slots, slot));
        }
        qi_slot_give(&slots, &queue, slot);
        CHECK_FAILS(qi_slot_release(&slots, live), QUIRE_ERROR_STALE_HANDLE);
        qi_slots_trim(&slots, queues, 1, &host);
    }
    qi_slots_finish(&slots, &host);
    CHECK_EQ(host.bytes, 0);
}
