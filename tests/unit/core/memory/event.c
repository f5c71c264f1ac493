/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * event.c - the hook of a memory: each kind of event at its time, with its values, and only
 * requested events. Hooks that use the memory are in tests/plain/callbacks.c.
 */
#include "tests/support/event_log.h"

#include <stdio.h>

#include "tests/support/fixture.h"

enum { KIB = 1024 };

typedef struct record {
    fixture b;
    event_log log;
} record;

static void begin(record *r, quire_event_kinds kinds)
{
    fixture_make(&r->b, &(quire_memory_options){.kind.required = QUIRE_HOST_VISIBLE,
                                                .pages = {.page_size = 64 * KIB, .max_pages = 2}});
    event_log_start(&r->log, r->b.memory, kinds);
}

static void end(record *r)
{
    CHECK_OK(quire_memory_set_hook(r->b.memory, NULL));
    fixture_end(&r->b);
}

#define CASE(name, kinds) UNIT_ON(event, name, record, r, begin(r, kinds), end)

CASE(the_life_of_an_allocation_and_its_page, 0)
{
    const quire_event *events = r->log.events;
    quire_allocation first = ALLOCATE(&r->b, .size = 100), second = ALLOCATE(&r->b, .size = 300);
    CHECK_EQ(r->log.count, 3);
    event_log_expect(&r->log, 0, QUIRE_EVENT_PAGE_MADE, 64 * KIB);
    event_log_expect(&r->log, 1, QUIRE_EVENT_ALLOCATED, 256);
    event_log_expect(&r->log, 2, QUIRE_EVENT_ALLOCATED, 512);
    CHECK_EQ(events[1].allocation.id, first.id);
    CHECK_EQ(events[2].allocation.id, second.id);
    CHECK_EQ(events[2].offset, 256);
    CHECK_EQ(events[2].requested, 300);
    CHECK_OK(quire_free(r->b.memory, second));
    event_log_expect(&r->log, 3, QUIRE_EVENT_FREED, 512);
    CHECK_EQ(events[3].allocation.id, second.id);
    CHECK_FAILS(quire_memory_set_hook(r->b.memory, &(quire_hook){.kinds = 0x800}),
                QUIRE_ERROR_INVALID_ARGUMENT); /* the previous hook stays */
    CHECK_OK(quire_free(r->b.memory, first));
    CHECK_OK(quire_memory_trim(r->b.memory, 0, NULL));
    CHECK_EQ(r->log.count, 6);
    event_log_expect(&r->log, 5, QUIRE_EVENT_PAGE_GONE, 64 * KIB);
    CHECK_OK(quire_memory_set_hook(r->b.memory, &(quire_hook){0})); /* removes it */
    ALLOCATE(&r->b, .size = 100);
    CHECK_EQ(r->log.count, 6);
}

typedef struct named {
    quire_event events[4];
    char names[4][32];
    int count;
} named;

static void note_name(void *user, quire_memory *memory, const quire_event *event)
{
    named *n = user;
    (void)memory;
    snprintf(n->names[n->count], sizeof n->names[0], "%s", event->name ? event->name : "(none)");
    n->events[n->count++] = *event;
}

UNIT_MEMORY(event, an_allocation_has_its_name_alignment_and_stream_and_a_number, b, 0)
{
    named n = {.count = 0};
    quire_stream *stream;
    quire_allocation plain;
    CHECK_OK(quire_stream_create(b->device, &(quire_stream_options){.capture = true}, &stream));
    CHECK_OK(quire_memory_set_hook(
        b->memory, &(quire_hook){.event = note_name,
                                 .user = &n,
                                 .kinds = QUIRE_EVENT_ALLOCATED | QUIRE_EVENT_FREED}));
    quire_allocation made = ALLOCATE(b, .size = 9, .alignment = 64, .name = "a/b");
    CHECK_OK(quire_allocate(b->memory, &(quire_allocation_options){.size = 1, .stream = stream},
                            &plain));
    CHECK_OK(quire_free_on_stream(b->memory, made, stream));
    CHECK_OK(quire_free(b->memory, plain));
    CHECK_EQ(n.count, 4);
    CHECK(n.events[0].alignment == 64 && n.events[0].stream == NULL);
    CHECK(n.events[1].alignment == 1 && n.events[1].stream == stream);
    CHECK(n.events[2].alignment == 0 && n.events[2].stream == stream);
    CHECK_STR(n.names[0], "a/b");
    CHECK_STR(n.names[1], "(none)");
    CHECK_STR(n.names[2], "a/b");
    for (int i = 1; i < 4; i++) {
        CHECK_EQ(n.events[i].number, n.events[i - 1].number + 1);
        CHECK(n.events[i].time_ns >= n.events[i - 1].time_ns);
    }
    CHECK_OK(quire_stream_destroy(&stream));
}

CASE(every_kind_of_allocation_and_free_is_reported, QUIRE_EVENT_ALLOCATED | QUIRE_EVENT_FREED)
{
    quire_allocation reserved, batch[3];
    quire_buffer buffer;
    const quire_allocation_options one = {.size = 1};
    CHECK_OK(quire_reserve(r->b.memory, &one, &reserved));
    CHECK_OK(quire_buffer_create(r->b.memory, &(quire_buffer_options){.size = 1}, &buffer));
    CHECK_OK(quire_allocate_batch(r->b.memory, &one, batch, 3));
    CHECK_EQ(r->log.count, 5);
    CHECK_OK(quire_abort(r->b.memory, reserved));
    CHECK_OK(quire_free(r->b.memory, buffer.allocation));
    CHECK_OK(quire_free_batch(r->b.memory, batch, 3));
    CHECK_EQ(r->log.count, 10);
    for (uint32_t i = 0; i < 10; i++)
        event_log_expect(&r->log, i, i < 5 ? QUIRE_EVENT_ALLOCATED : QUIRE_EVENT_FREED, 256);
}

CASE(a_refusal_event_has_the_request_and_the_reason, QUIRE_EVENT_REFUSED)
{
    ALLOCATE(&r->b, .size = 60 * KIB);
    ALLOCATE(&r->b, .size = 60 * KIB);
    ALLOCATE_FAILS(&r->b, QUIRE_ERROR_TOO_MANY_PAGES, .size = 50 * KIB);
    CHECK_EQ(r->log.count, 1);
    event_log_expect(&r->log, 0, QUIRE_EVENT_REFUSED, 50 * KIB);
    CHECK_EQ(r->log.events[0].reason, QUIRE_ERROR_TOO_MANY_PAGES);
}

UNIT(event, only_the_requested_events_are_reported)
{
    for (quire_event_kinds kind = QUIRE_EVENT_ALLOCATED; kind <= QUIRE_EVENT_PAGE_GONE; kind *= 2) {
        record r;
        if (kind == QUIRE_EVENT_REFUSED)
            continue;
        begin(&r, kind);
        CHECK_OK(quire_free(r.b.memory, ALLOCATE(&r.b, .size = 100)));
        CHECK_OK(quire_memory_trim(r.b.memory, 0, NULL));
        CHECK_EQ(r.log.count, 1);
        CHECK_EQ(r.log.events[0].kind, kind);
        end(&r);
    }
}
