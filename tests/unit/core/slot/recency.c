/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * recency.c - the age and the priority of slots: apart, forgotten with the allocation, over the
 * wrap of the frames.
 */
#include "src/core/slot/recency.h"
#include "tests/support/unit.h"

enum { LAST_FRAME = (1 << QI_FRAME_BITS) - 1 };

typedef struct scene {
    qi_host host;
    qi_slots slots;
    qi_slot_queue queue;
    uint32_t slot;
} scene;

static void take(scene *s)
{
    CHECK_OK(qi_slot_take(&s->slots, &s->queue, &s->host, &s->slot));
    (void)qi_slot_publish(&s->slots, s->slot, QI_PHASE_LIVE);
}

static void begin(scene *s)
{
    CHECK_OK(qi_host_init(&s->host, unit_memory()));
    qi_slots_init(&s->slots, 1);
    qi_slot_queue_init(&s->queue);
    take(s);
}

static void end(scene *s)
{
    qi_slots_finish(&s->slots, &s->host);
    CHECK_EQ(s->host.bytes, 0);
}

#define CASE(name) UNIT_ON(recency, name, scene, s, begin(s), end)

static void expect(const scene *s, uint32_t frame, uint32_t age, int priority)
{
    const qi_recency recency = qi_recency_get(&s->slots, s->slot, frame);
    CHECK_EQ(recency.age, age);
    CHECK_EQ(recency.priority + 128, priority + 128);
}

static void touch(scene *s, uint32_t frame)
{
    CHECK_OK(qi_recency_touch(&s->slots, &s->host, s->slot, frame));
}

static void set(scene *s, int priority)
{
    CHECK_OK(qi_recency_set_priority(&s->slots, &s->host, s->slot, (int8_t)priority));
}

CASE(a_new_allocation_was_never_used)
{
    expect(s, 5, UINT32_MAX, 0);
}

CASE(priority_and_age_do_not_change_each_other)
{
    set(s, -128);
    expect(s, 5, UINT32_MAX, -128);
    touch(s, 5);
    expect(s, 5, 0, -128);
    expect(s, 9, 4, -128);
    set(s, 127);
    touch(s, 8);
    expect(s, 9, 1, 127);
}

CASE(the_next_allocation_of_the_slot_has_neither)
{
    const uint32_t before = s->slot;
    set(s, 3);
    touch(s, 5);
    CHECK(qi_slot_force_claim(&s->slots, s->slot));
    qi_slot_give(&s->slots, &s->queue, s->slot);
    do
        take(s);
    while (s->slot != before);
    expect(s, 5, UINT32_MAX, 0);
    touch(s, 5);
    expect(s, 5, 0, 0);
}

CASE(frames_wrap_without_zero)
{
    CHECK_EQ(qi_recency_next_frame(1), 2);
    CHECK_EQ(qi_recency_next_frame(LAST_FRAME), 1);
    touch(s, LAST_FRAME);
    expect(s, LAST_FRAME, 0, 0);
    CHECK(qi_recency_get(&s->slots, s->slot, 1).age <= 2);
}
