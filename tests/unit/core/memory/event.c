/*
 * event.c - the hook of a memory: each kind of event at its time, with its values, and only
 * requested events. Hooks that use the memory are in tests/plain/callbacks.c.
 */
#include <stdio.h>

#include "tests/support/fixture.h"

enum { KIB = 1024, MAX_COUNT = 64 };

typedef struct record {
    fixture b;
    quire_event events[MAX_COUNT];
    uint32_t count;
} record;

static void note(void *user, quire_memory *memory, const quire_event *event)
{
    record *r = user;
    CHECK(memory == r->b.memory);
    CHECK(r->count < MAX_COUNT);
    r->events[r->count++] = *event;
}

static void begin(record *r, quire_event_kinds kinds)
{
    memset(r, 0, sizeof *r);
    fixture_make(&r->b, &(quire_memory_options){.kind.required = QUIRE_HOST_VISIBLE,
                                                .pages = {.page_size = 64 * KIB, .max_pages = 2}});
    CHECK_OK(quire_memory_set_hook(r->b.memory,
                                   &(quire_hook){.event = note, .user = r, .kinds = kinds}));
}

static void end(record *r)
{
    CHECK_OK(quire_memory_set_hook(r->b.memory, NULL));
    fixture_end(&r->b);
}

static void expect(const record *r, uint32_t at, quire_event_kinds kind, uint64_t size)
{
    CHECK(at < r->count);
    CHECK_EQ(r->events[at].kind, kind);
    CHECK_EQ(r->events[at].size, size);
}

UNIT(event, the_life_of_an_allocation_and_its_page)
{
    static record r;
    begin(&r, 0);
    quire_allocation first = ALLOCATE(&r.b, .size = 100), second = ALLOCATE(&r.b, .size = 300);
    CHECK_EQ(r.count, 3);
    expect(&r, 0, QUIRE_EVENT_PAGE_MADE, 64 * KIB);
    expect(&r, 1, QUIRE_EVENT_ALLOCATED, 256);
    expect(&r, 2, QUIRE_EVENT_ALLOCATED, 512);
    CHECK_EQ(r.events[1].allocation.id, first.id);
    CHECK_EQ(r.events[2].allocation.id, second.id);
    CHECK_EQ(r.events[2].offset, 256);
    CHECK_EQ(r.events[2].requested, 300);
    CHECK_OK(quire_free(r.b.memory, second));
    expect(&r, 3, QUIRE_EVENT_FREED, 512);
    CHECK_EQ(r.events[3].allocation.id, second.id);
    CHECK_OK(quire_free(r.b.memory, first));
    CHECK_OK(quire_memory_trim(r.b.memory, 0, NULL));
    CHECK_EQ(r.count, 6);
    expect(&r, 5, QUIRE_EVENT_PAGE_GONE, 64 * KIB);
    end(&r);
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

UNIT(event, every_kind_of_allocation_and_free_is_reported)
{
    static record r;
    begin(&r, QUIRE_EVENT_ALLOCATED | QUIRE_EVENT_FREED);
    quire_allocation reserved, batch[3];
    quire_buffer buffer;
    CHECK_OK(quire_reserve(r.b.memory, &(quire_allocation_options){.size = 1}, &reserved));
    CHECK_OK(quire_buffer_create(r.b.memory, &(quire_buffer_options){.size = 1}, &buffer));
    CHECK_OK(quire_allocate_batch(r.b.memory, &(quire_allocation_options){.size = 1}, batch, 3));
    CHECK_EQ(r.count, 5);
    CHECK_OK(quire_abort(r.b.memory, reserved));
    CHECK_OK(quire_free(r.b.memory, buffer.allocation));
    CHECK_OK(quire_free_batch(r.b.memory, batch, 3));
    CHECK_EQ(r.count, 10);
    for (uint32_t i = 0; i < 10; i++)
        expect(&r, i, i < 5 ? QUIRE_EVENT_ALLOCATED : QUIRE_EVENT_FREED, 256);
    end(&r);
}

UNIT(event, a_refusal_event_has_the_request_and_the_reason)
{
    static record r;
    begin(&r, QUIRE_EVENT_REFUSED);
    ALLOCATE(&r.b, .size = 60 * KIB);
    ALLOCATE(&r.b, .size = 60 * KIB);
    ALLOCATE_FAILS(&r.b, QUIRE_ERROR_TOO_MANY_PAGES, .size = 50 * KIB);
    CHECK_EQ(quire_last_result(), QUIRE_ERROR_TOO_MANY_PAGES);
    CHECK_EQ(r.count, 1);
    expect(&r, 0, QUIRE_EVENT_REFUSED, 50 * KIB);
    CHECK_EQ(r.events[0].reason, QUIRE_ERROR_TOO_MANY_PAGES);
    end(&r);
}

UNIT(event, only_the_requested_events_are_reported)
{
    const quire_event_kinds kinds[] = {QUIRE_EVENT_ALLOCATED, QUIRE_EVENT_FREED,
                                       QUIRE_EVENT_PAGE_MADE, QUIRE_EVENT_PAGE_GONE};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        static record r;
        begin(&r, kinds[i]);
        CHECK_OK(quire_free(r.b.memory, ALLOCATE(&r.b, .size = 100)));
        CHECK_OK(quire_memory_trim(r.b.memory, 0, NULL));
        CHECK_EQ(r.count, 1);
        CHECK_EQ(r.events[0].kind, kinds[i]);
        end(&r);
    }
}

UNIT(event, invalid_hooks_are_refused)
{
    static record r;
    begin(&r, 0);
    CHECK_FAILS(quire_memory_set_hook(NULL, NULL), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_FAILS(
        quire_memory_set_hook(r.b.memory, &(quire_hook){.event = note, .user = &r, .kinds = 0x100}),
        QUIRE_ERROR_INVALID_ARGUMENT);
    ALLOCATE(&r.b, .size = 100); /* the previous hook stays */
    CHECK_EQ(r.count, 2);
    end(&r);
}
