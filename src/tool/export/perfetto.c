/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * perfetto.c - a replay as a trace for https://ui.perfetto.dev and trace_processor: a sequence of
 * TracePackets. The numbers of fields and values are those of protos/perfetto/trace/ in
 * https://github.com/google/perfetto.
 *
 * Slices of one track must nest, and the lifetimes of allocations do not. So each page has a track
 * per allocation that it holds at one time at most, a slot. An allocation is a slice on a free slot
 * of its page. The slots of a page have the same parent and the same name, by which Perfetto shows
 * them as one track with as many rows as it needs.
 *
 * Names are interned: the first packet that needs one is preceded by a packet that gives it a
 * number, for slices (event_names) and for Vulkan's events (function_names) alike. A slice that has
 * no end in the file is an allocation that lives at its end.
 */
#include <stdlib.h>
#include <string.h>

#include "src/base/id_map.h"
#include "src/base/result.h"
#include "src/tool/export/export.h"
#include "src/tool/export/protobuf.h"

enum { TRACE_PACKET = 1 };

enum { /* TracePacket */
       PACKET_TIMESTAMP = 8,
       PACKET_SEQUENCE = 10,
       PACKET_EVENT = 11,
       PACKET_INTERNED = 12,
       PACKET_FLAGS = 13,
       PACKET_DESCRIPTOR = 60,
       PACKET_VULKAN = 62,
       PACKET_FIRST = 87
};

enum { FLAG_STATE_CLEARED = 1, FLAG_NEEDS_STATE = 2 }; /* TracePacket.SequenceFlags */

enum { /* InternedData; each entry has a number and a text */
       INTERNED_EVENTS = 2,
       INTERNED_ARGUMENTS = 3,
       INTERNED_FUNCTIONS = 5,
       ENTRY_NUMBER = 1,
       ENTRY_TEXT = 2
};

enum { /* TrackDescriptor, ProcessDescriptor, CounterDescriptor */
       TRACK_UUID = 1,
       TRACK_NAME = 2,
       TRACK_PROCESS = 3,
       TRACK_PARENT = 5,
       TRACK_COUNTER = 8,
       PROCESS_PID = 1,
       PROCESS_NAME = 6,
       COUNTER_UNIT = 3,
       UNIT_COUNT = 2,
       UNIT_BYTES = 3
};

enum { /* TrackEvent, its types, DebugAnnotation */
       EVENT_ARGUMENT = 4,
       EVENT_TYPE = 9,
       EVENT_NAME_NUMBER = 10,
       EVENT_TRACK = 11,
       EVENT_NAME = 23,
       EVENT_VALUE = 30,
       TYPE_BEGIN = 1,
       TYPE_END = 2,
       TYPE_INSTANT = 3,
       TYPE_COUNTER = 4,
       ARGUMENT_NAME = 1,
       ARGUMENT_NUMBER = 3,
       ARGUMENT_POINTER = 7
};

enum { /* VulkanMemoryEvent, its sources and operations */
       VULKAN_SOURCE = 1,
       VULKAN_OPERATION = 2,
       VULKAN_TIMESTAMP = 3,
       VULKAN_PID = 4,
       VULKAN_ADDRESS = 5,
       VULKAN_SIZE = 6,
       VULKAN_CALLER = 7,
       VULKAN_MEMORY = 17,
       VULKAN_KIND = 18,
       VULKAN_HEAP = 19,
       VULKAN_OBJECT = 20,
       SOURCE_MEMORY = 3,
       SOURCE_BUFFER = 4,
       OPERATION_CREATE = 1,
       OPERATION_DESTROY = 2,
       OPERATION_BIND = 3,
       OPERATION_DESTROY_BOUND = 4
};

/* The only sequence and process; a trace does not have the id of its process. */
enum { SEQUENCE = 1, PID = 1 };

/* The names of arguments, by their interned numbers from 1. */
enum { ARG_BYTES = 1, ARG_ADDRESS, ARG_STREAM, ARG_AVAILABLE };
static const char *const ARGUMENTS[] = {"bytes", "address", "stream", "available bytes"};

/* The uuids of tracks. Those of pages and slots follow. */
enum {
    TRACK_OF_PROCESS = 1,
    TRACK_OF_COUNTERS, /* the first of COUNTERS */
    TRACK_OF_FRAMES = TRACK_OF_COUNTERS + 4,
    TRACK_OF_REFUSALS,
    FIRST_FREE_TRACK
};

static const struct {
    const char *name;
    uint32_t unit;
    size_t offset; /* in an export_sample */
} COUNTERS[] = {
    {"live bytes", UNIT_BYTES, offsetof(export_sample, live)},
    {"requested bytes", UNIT_BYTES, offsetof(export_sample, requested)},
    {"reserved bytes", UNIT_BYTES, offsetof(export_sample, reserved)},
    {"pages", UNIT_COUNT, offsetof(export_sample, pages)},
};

enum { COUNTER_COUNT = sizeof COUNTERS / sizeof *COUNTERS };
_Static_assert(TRACK_OF_COUNTERS + COUNTER_COUNT == TRACK_OF_FRAMES, "a track for each counter");

#define NO_SLOT UINT32_MAX

typedef struct page_track {
    uint64_t uuid;      /* 0: not described yet */
    uint32_t free_slot; /* a list through slot.next; NO_SLOT: all are in use */
} page_track;

typedef struct slot {
    uint64_t uuid;
    uint32_t next; /* while it is free */
} slot;

typedef struct perfetto {
    protobuf out;
    const export_history *history;
    uint64_t now;       /* ns, of the event of the trace */
    uint64_t next_uuid; /* of tracks */
    page_track *pages;  /* by number */
    slot *slots;
    uint32_t slot_count, slot_room;
    uint32_t *slot_of; /* live ranges, by their numbers in the trace */
    qi_host host;      /* of the names */
    qi_id_map numbers; /* of names, by their hashes */
    const char **names;
    uint32_t name_count, name_room;
} perfetto;

/* ---- packets ------------------------------------------------------------------------------ */

static void open_packet(perfetto *f)
{
    protobuf_open(&f->out, TRACE_PACKET);
    protobuf_number(&f->out, PACKET_SEQUENCE, SEQUENCE);
}

/* A packet of this moment, with one message that may use interned names. */
static void open_message(perfetto *f, uint32_t field)
{
    open_packet(f);
    protobuf_number(&f->out, PACKET_TIMESTAMP, f->now);
    protobuf_number(&f->out, PACKET_FLAGS, FLAG_NEEDS_STATE);
    protobuf_open(&f->out, field);
}

static void close_message(perfetto *f)
{
    protobuf_close(&f->out);
    protobuf_close(&f->out);
}

static void open_event(perfetto *f, uint32_t type, uint64_t track)
{
    open_message(f, PACKET_EVENT);
    protobuf_number(&f->out, EVENT_TYPE, type);
    protobuf_number(&f->out, EVENT_TRACK, track);
}

static void write_argument(perfetto *f, uint32_t name, uint32_t field, uint64_t value)
{
    protobuf_open(&f->out, EVENT_ARGUMENT);
    protobuf_number(&f->out, ARGUMENT_NAME, name);
    protobuf_number(&f->out, field, value);
    protobuf_close(&f->out);
}

static void write_entry(perfetto *f, uint32_t field, uint64_t number, const char *text)
{
    protobuf_open(&f->out, field);
    protobuf_number(&f->out, ENTRY_NUMBER, number);
    protobuf_text(&f->out, ENTRY_TEXT, text);
    protobuf_close(&f->out);
}

/* The first packet of the sequence. Only those after it may use interned names. */
static void write_first_packet(perfetto *f)
{
    open_packet(f);
    protobuf_number(&f->out, PACKET_FLAGS, FLAG_STATE_CLEARED);
    protobuf_number(&f->out, PACKET_FIRST, true);
    protobuf_open(&f->out, PACKET_INTERNED);
    for (uint32_t i = 0; i < sizeof ARGUMENTS / sizeof *ARGUMENTS; i++)
        write_entry(f, INTERNED_ARGUMENTS, i + 1, ARGUMENTS[i]);
    close_message(f);
}

/* ---- names -------------------------------------------------------------------------------- */

/* FNV-1a. Ids of a map are positive. */
static uint64_t hash_of(const char *name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return hash ? hash : 1;
}

static bool add_name(perfetto *f, uint64_t id, const char *name)
{
    if (f->name_count == f->name_room) {
        const uint32_t room = 2 * f->name_room + 64;
        const char **larger = realloc(f->names, room * sizeof *larger);
        if (!larger)
            return false;
        f->names = larger;
        f->name_room = room;
    }
    f->names[f->name_count] = name;
    return qi_id_map_add(&f->numbers, &f->host, id, f->name_count++);
}

/* The interned number of a label, from 1. Different names of one hash take the next free ids. */
static uint64_t number_of(perfetto *f, const char *label)
{
    const char *name = *label ? label : "(unnamed)";
    const uint32_t *known = NULL;
    uint64_t id = hash_of(name);
    while ((known = qi_id_map_find(&f->numbers, id)) && strcmp(f->names[*known], name))
        id = id + 1 ? id + 1 : 1;
    if (known)
        return *known + UINT64_C(1);
    if (!add_name(f, id, name)) {
        f->out.failed = true;
        return 0;
    }
    open_packet(f);
    protobuf_number(&f->out, PACKET_FLAGS, FLAG_NEEDS_STATE);
    protobuf_open(&f->out, PACKET_INTERNED);
    write_entry(f, INTERNED_EVENTS, f->name_count, name);
    write_entry(f, INTERNED_FUNCTIONS, f->name_count, name);
    close_message(f);
    return f->name_count;
}

/* ---- tracks ------------------------------------------------------------------------------- */

static void open_track(perfetto *f, uint64_t uuid, uint64_t parent, const char *name)
{
    open_packet(f);
    protobuf_open(&f->out, PACKET_DESCRIPTOR);
    protobuf_number(&f->out, TRACK_UUID, uuid);
    if (parent)
        protobuf_number(&f->out, TRACK_PARENT, parent);
    protobuf_text(&f->out, TRACK_NAME, name);
}

static void write_track(perfetto *f, uint64_t uuid, uint64_t parent, const char *name)
{
    open_track(f, uuid, parent, name);
    close_message(f);
}

static void write_process(perfetto *f)
{
    const char *path = f->history->setup->path;
    open_track(f, TRACK_OF_PROCESS, 0, path);
    protobuf_open(&f->out, TRACK_PROCESS);
    protobuf_number(&f->out, PROCESS_PID, PID);
    protobuf_text(&f->out, PROCESS_NAME, path);
    protobuf_close(&f->out);
    close_message(f);
    for (uint32_t i = 0; i < COUNTER_COUNT; i++) {
        open_track(f, TRACK_OF_COUNTERS + i, TRACK_OF_PROCESS, COUNTERS[i].name);
        protobuf_open(&f->out, TRACK_COUNTER);
        protobuf_number(&f->out, COUNTER_UNIT, COUNTERS[i].unit);
        protobuf_close(&f->out);
        close_message(f);
    }
    write_track(f, TRACK_OF_FRAMES, TRACK_OF_PROCESS, "frames");
    write_track(f, TRACK_OF_REFUSALS, TRACK_OF_PROCESS, "refused allocations");
}

static page_track *page_of(perfetto *f, uint32_t number)
{
    char name[32];
    page_track *page = &f->pages[number];
    if (page->uuid)
        return page;
    *page = (page_track){f->next_uuid++, NO_SLOT};
    snprintf(name, sizeof name, "page %u", number);
    write_track(f, page->uuid, TRACK_OF_PROCESS, name);
    return page;
}

/* Takes a free slot of a page, or adds one. Returns NO_SLOT without memory. */
static uint32_t take_slot(perfetto *f, page_track *page)
{
    uint32_t number = page->free_slot;
    if (number != NO_SLOT) {
        page->free_slot = f->slots[number].next;
        return number;
    }
    if (f->slot_count == f->slot_room) {
        const uint32_t room = 2 * f->slot_room + 64;
        slot *larger = realloc(f->slots, room * sizeof *larger);
        if (!larger)
            return NO_SLOT;
        f->slots = larger;
        f->slot_room = room;
    }
    number = f->slot_count++;
    f->slots[number] = (slot){f->next_uuid++, NO_SLOT};
    write_track(f, f->slots[number].uuid, page->uuid, "allocations");
    return number;
}

/* ---- events ------------------------------------------------------------------------------- */

/* The memory types and heaps are those of quire's device; a page is a device memory, whose handle
   is its number, and an allocation an object that is bound to it. */
static void write_vulkan(perfetto *f, const export_event *event, uint32_t source,
                         uint32_t operation, uint64_t name)
{
    protobuf *out = &f->out;
    open_message(f, PACKET_VULKAN);
    protobuf_number(out, VULKAN_SOURCE, source);
    protobuf_number(out, VULKAN_OPERATION, operation);
    protobuf_number(out, VULKAN_TIMESTAMP, f->now);
    protobuf_number(out, VULKAN_PID, PID);
    protobuf_fixed64(out, VULKAN_ADDRESS, event->address);
    protobuf_number(out, VULKAN_SIZE, event->size);
    if (name)
        protobuf_number(out, VULKAN_CALLER, name);
    protobuf_fixed64(out, VULKAN_MEMORY, event->page);
    protobuf_number(out, VULKAN_KIND, f->history->kind);
    protobuf_number(out, VULKAN_HEAP, f->history->heap);
    if (source == SOURCE_BUFFER)
        protobuf_fixed64(out, VULKAN_OBJECT, event->address);
    close_message(f);
}

static void write_alloc(perfetto *f, const export_event *event, uint32_t range)
{
    page_track *page = page_of(f, event->page);
    const uint64_t name = number_of(f, event->label);
    const uint32_t number = take_slot(f, page);
    f->slot_of[range] = number;
    if (number == NO_SLOT) {
        f->out.failed = true;
        return;
    }
    open_event(f, TYPE_BEGIN, f->slots[number].uuid);
    protobuf_number(&f->out, EVENT_NAME_NUMBER, name);
    write_argument(f, ARG_BYTES, ARGUMENT_NUMBER, event->size);
    write_argument(f, ARG_ADDRESS, ARGUMENT_POINTER, event->address);
    if (event->stream)
        write_argument(f, ARG_STREAM, ARGUMENT_NUMBER, event->stream);
    close_message(f);
    write_vulkan(f, event, SOURCE_BUFFER, OPERATION_BIND, name);
}

static void write_free(perfetto *f, const export_event *event, uint32_t range)
{
    const uint32_t number = f->slot_of[range];
    page_track *page = page_of(f, event->page);
    open_event(f, TYPE_END, f->slots[number].uuid);
    close_message(f);
    f->slots[number].next = page->free_slot;
    page->free_slot = number;
    write_vulkan(f, event, SOURCE_BUFFER, OPERATION_DESTROY_BOUND, number_of(f, event->label));
}

static void write_refusal(perfetto *f, const export_event *event)
{
    const uint64_t name = number_of(f, event->label);
    open_event(f, TYPE_INSTANT, TRACK_OF_REFUSALS);
    protobuf_number(&f->out, EVENT_NAME_NUMBER, name);
    write_argument(f, ARG_BYTES, ARGUMENT_NUMBER, event->size);
    write_argument(f, ARG_AVAILABLE, ARGUMENT_NUMBER, event->address);
    close_message(f);
}

/* A page or a stretch gets memory or loses it. */
static void write_page(perfetto *f, const export_event *event)
{
    const bool is_map = event->action == EXPORT_MAP;
    const page_track *page = page_of(f, event->page);
    open_event(f, TYPE_INSTANT, page->uuid);
    protobuf_text(&f->out, EVENT_NAME, is_map ? "memory added" : "memory released");
    write_argument(f, ARG_BYTES, ARGUMENT_NUMBER, event->size);
    write_argument(f, ARG_ADDRESS, ARGUMENT_POINTER, event->address);
    close_message(f);
    write_vulkan(f, event, SOURCE_MEMORY, is_map ? OPERATION_CREATE : OPERATION_DESTROY, 0);
}

static void write_event(perfetto *f, const export_event *event, uint32_t range)
{
    switch (event->action) {
    case EXPORT_ALLOC:
        write_alloc(f, event, range);
        break;
    case EXPORT_FREE:
        write_free(f, event, range);
        break;
    case EXPORT_REFUSED:
        write_refusal(f, event);
        break;
    case EXPORT_MAP:
    case EXPORT_UNMAP:
        write_page(f, event);
    }
}

static void write_frame(perfetto *f)
{
    open_event(f, TYPE_INSTANT, TRACK_OF_FRAMES);
    protobuf_text(&f->out, EVENT_NAME, "frame");
    close_message(f);
}

static uint64_t value_of(const export_sample *sample, uint32_t counter)
{
    return *(const uint64_t *)(const void *)((const char *)sample + COUNTERS[counter].offset);
}

/* The first sample has every value, the others those that changed. */
static void write_sample(perfetto *f, const export_sample *sample, const export_sample *before)
{
    for (uint32_t i = 0; i < COUNTER_COUNT; i++) {
        if (before && value_of(sample, i) == value_of(before, i))
            continue;
        open_event(f, TYPE_COUNTER, TRACK_OF_COUNTERS + i);
        protobuf_number(&f->out, EVENT_VALUE, value_of(sample, i));
        close_message(f);
    }
}

/* Events without times would all be at one place: they are a microsecond apart then. */
static uint64_t time_of(const export_history *h, const quire_trace_event *event, uint64_t number)
{
    return h->setup->info.end_ns ? event->time_ns : 1000 * number;
}

/* ---- the file ----------------------------------------------------------------------------- */

static quire_result write_events(perfetto *f)
{
    const export_history *h = f->history;
    uint64_t next = 0, sample = 0;
    for (uint64_t i = 0; i < h->now && !f->out.failed && !f->out.writer.failed; i++) {
        quire_trace_event event;
        const quire_result result = quire_trace_get_event(h->setup->trace, i, &event);
        if (result)
            return result;
        f->now = time_of(h, &event, i);
        if (event.op == QUIRE_TRACE_FRAME)
            write_frame(f);
        for (; next < h->count && h->events[next].number == i && !f->out.failed; next++)
            write_event(f, &h->events[next], event.range);
        for (; sample < h->sample_count && h->samples[sample].number == i; sample++)
            write_sample(f, &h->samples[sample], sample ? &h->samples[sample - 1] : NULL);
    }
    return QUIRE_SUCCESS;
}

quire_result export_perfetto(void *history, quire_sink sink, void *user)
{
    const export_history *h = history;
    perfetto f = {.history = h, .next_uuid = FIRST_FREE_TRACK};
    quire_result result = qi_host_init(&f.host, NULL);
    protobuf_begin(&f.out, sink, user);
    f.pages = calloc((size_t)h->page_room + 1, sizeof *f.pages);
    f.slot_of = calloc(h->setup->info.peak_ranges + 1, sizeof *f.slot_of);
    f.out.failed = !f.pages || !f.slot_of;
    write_first_packet(&f);
    write_process(&f);
    if (!result)
        result = write_events(&f);
    const quire_result finished = protobuf_finish(&f.out);
    free(f.pages);
    free(f.slots);
    free(f.slot_of);
    free(f.names);
    qi_id_map_finish(&f.numbers, &f.host);
    return result ? result : finished;
}
