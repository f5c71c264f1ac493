/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * moved.c - the event of an allocation that a compaction has moved: by quire, on a stream, and by
 * the caller. The hook finds it at its new place and may use it.
 */
#include <stdio.h>

#include "tests/support/compacted.h"

enum { PAGE = 65536, PART = PAGE / 8, LEFT = 2 };

typedef struct heard {
    quire_event events[2 * LEFT];
    char names[2 * LEFT][4];
    int count;
} heard;

static void hear(void *user, quire_memory *memory, const quire_event *event)
{
    heard *h = user;
    quire_allocation_info info;
    CHECK_OK(quire_allocation_get_info(memory, event->allocation, &info));
    CHECK_EQ(event->kind, QUIRE_EVENT_MOVED);
    CHECK_EQ(event->page, info.page);
    CHECK_EQ(event->offset, info.offset);
    CHECK_EQ(event->size, info.size);
    CHECK_EQ(event->requested, info.requested);
    h->events[h->count] = *event;
    snprintf(h->names[h->count++], sizeof *h->names, "%s", event->name ? event->name : "-");
}

typedef struct scene {
    compacted b;
    heard h;
    quire_allocation made[LEFT];
} scene;

static void hear_with(scene *s, void (*event)(void *, quire_memory *, const quire_event *),
                      void *user)
{
    const quire_hook hook = {.event = event, .user = user, .kinds = QUIRE_EVENT_MOVED};
    CHECK_OK(quire_memory_set_hook(s->b.f.memory, &hook));
}

/* Two pages, of which the second one has `LEFT` allocations, and the first one room for them. */
static void begin(scene *s)
{
    quire_allocation first[8];
    compacted_prepare(&s->b);
    compacted_open(&s->b, &(quire_memory_options){.movable = true, .pages.page_size = PAGE});
    for (int i = 0; i < 8; i++)
        first[i] = ALLOCATE(&s->b.f, .size = PART);
    for (int i = 0; i < LEFT; i++)
        s->made[i] = ALLOCATE(&s->b.f, .size = PART, .name = i ? NULL : "one");
    for (int i = 0; i < LEFT; i++)
        CHECK_OK(quire_free(s->b.f.memory, first[i]));
    s->h.count = 0;
    hear_with(s, hear, &s->h);
}

static void end(scene *s)
{
    compacted_end(&s->b);
}

#define CASE(name) UNIT_ON(moved, name, scene, s, begin(s), end)

static int number_of(const scene *s, quire_allocation allocation)
{
    int i = 0;
    while (i < LEFT && s->made[i].id != allocation.id)
        i++;
    CHECK(i < LEFT);
    return i;
}

static void expect_all(const scene *s)
{
    int numbers = 0;
    CHECK_EQ(s->h.count, LEFT);
    for (int i = 0; i < LEFT; i++) {
        const int number = number_of(s, s->h.events[i].allocation);
        CHECK_EQ(s->h.events[i].page, 0);
        CHECK_STR(s->h.names[i], number ? "-" : "one");
        numbers |= 1 << number;
    }
    CHECK_EQ(numbers, (1 << LEFT) - 1);
}

CASE(each_move_of_a_step_has_one)
{
    CHECK_OK(quire_compact_step(s->b.c, &(quire_compact_limits){.moves = 1}, NULL));
    CHECK_EQ(s->h.count, 1);
    CHECK_OK(quire_compact_step(s->b.c, NULL, NULL));
    expect_all(s);
}

CASE(each_move_of_a_step_on_a_stream_has_one)
{
    CHECK_OK(quire_compact_step_on_stream(s->b.c, NULL, s->b.stream, NULL));
    expect_all(s);
}

CASE(a_move_of_the_caller_has_one_when_it_is_accepted)
{
    quire_compact_move moves[LEFT];
    uint64_t count;
    CHECK_OK(quire_compact_offer(s->b.c, NULL, moves, LEFT, &count, NULL));
    CHECK_EQ(count, LEFT);
    CHECK_EQ(s->h.count, 0);
    CHECK_OK(quire_compact_decline(s->b.c, &moves[1]));
    CHECK_OK(quire_compact_accept(s->b.c, &moves[0], NULL));
    CHECK_EQ(s->h.count, 1);
    CHECK_EQ(s->h.events[0].allocation.id, moves[0].source.id);
}

/* Also one of the same lot, whose event does not come then. */
static void free_two(void *user, quire_memory *memory, const quire_event *event)
{
    scene *s = user;
    const int number = number_of(s, event->allocation), other = number ^ 1;
    CHECK_OK(quire_free(memory, s->made[number]));
    CHECK_OK(quire_free(memory, s->made[other]));
    s->h.count++;
}

CASE(the_hook_may_free_what_has_moved)
{
    hear_with(s, free_two, s);
    CHECK_OK(quire_compact_step(s->b.c, NULL, NULL));
    CHECK_EQ(s->h.count, LEFT / 2);
    CHECK_EQ(fixture_stats(&s->b.f).allocation_count, 8 - LEFT);
}
