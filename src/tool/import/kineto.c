/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * kineto.c - the memory events of torch.profiler (profile_memory=True), in JSON of Chrome.
 *
 * An event of the name "[memory]" has the time "ts" in microseconds, and "args" with Addr, Bytes,
 * which are negative for a free, Device Type and Device Id (pytorch/pytorch,
 * torch/csrc/profiler/collection.cpp and kineto_shim.cpp; pytorch/kineto, output_json.cpp). Every
 * other event is skipped, whatever its arguments.
 *
 * The events of one device are kept in memory and sorted by time, because each thread writes its
 * own. Two threads can write the free of an address and its next allocation in the wrong order: an
 * allocation ends the one that lives at its address.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/tool/import/import.h"
#include "src/tool/import/json_reader.h"
#include "src/tool/import/live.h"

/* Sizes are those of blocks, multiples of 512 on a device of CUDA (kMinBlockSize), where all begin
   at such addresses. The allocator of the CPU aligns to 64 (c10::gAlignment). */
enum { ALIGNMENT = 512, CPU_ALIGNMENT = 64, CPU_TYPE = 0, MOST_DEVICES = 64, FIRST_ROOM = 1024 };

typedef struct device {
    int64_t type, id;
    uint64_t allocated; /* bytes of all its allocations; UINT64_MAX: as many, or more */
} device;

typedef struct memory_event {
    uint64_t time, order, address, bytes;
    uint32_t device;
    bool is_free;
} memory_event;

typedef enum argument { ADDRESS, BYTES, DEVICE_TYPE, DEVICE_ID, ARGUMENTS } argument;

static const char *const ARGUMENT_NAMES[ARGUMENTS] = {"Addr", "Bytes", "Device Type", "Device Id"};

/* What a JSON event has. */
typedef struct fields {
    uint64_t line, column; /* where it begins */
    bool is_memory, has_time;
    uint64_t time;
    bool has[ARGUMENTS];
    json_integer values[ARGUMENTS];
} fields;

typedef struct reader {
    json_reader json;
    import_source *source;
    import_rows *rows;
    import_live live;
    device devices[MOST_DEVICES];
    uint32_t device_count;
    memory_event *events;
    uint64_t count, room;
    uint64_t ended; /* allocations that the next one at their address ended */
} reader;

/* ---- an event ----------------------------------------------------------------------------- */

/* Converts microseconds with a fraction into nanoseconds. Further digits are cut. */
static bool parse_time(const char *text, uint64_t *time)
{
    const uint64_t most = UINT64_MAX / 1000 - 1; /* microseconds, with room for a fraction */
    *time = 0;
    for (; *text >= '0' && *text <= '9'; text++) {
        *time = *time * 10 + (uint64_t)(*text - '0');
        if (*time > most)
            return false;
    }
    *time *= 1000;
    if (*text != '.')
        return !*text;
    uint64_t unit = 1000;
    for (text++; *text >= '0' && *text <= '9'; text++) {
        unit /= 10;
        *time += (uint64_t)(*text - '0') * unit;
    }
    return !*text;
}

static bool read_arguments(json_reader *json, fields *f)
{
    for (json_enter(json, '{'); json_next_member(json);) {
        argument i = ADDRESS;
        while (i < ARGUMENTS && strcmp(json->text, ARGUMENT_NAMES[i]))
            i++;
        if (i == ARGUMENTS || json_peek(json) != '0') {
            if (!json_skip(json))
                return false;
            continue;
        }
        if (!json_read_number(json))
            return false;
        f->has[i] = json_to_integer(json, &f->values[i]);
    }
    return json_is_good(json);
}

static bool read_fields(json_reader *json, fields *f)
{
    *f = (fields){.line = json->source->line, .column = json->source->column};
    for (json_enter(json, '{'); json_next_member(json);) {
        const char kind = json_peek(json);
        bool is_read;
        if (!strcmp(json->text, "name") && kind == '"') {
            is_read = json_read_text(json);
            f->is_memory = is_read && !strcmp(json->text, "[memory]");
        } else if (!strcmp(json->text, "ts") && kind == '0') {
            is_read = json_read_number(json);
            f->has_time = is_read && !json->is_cut && parse_time(json->text, &f->time);
        } else if (!strcmp(json->text, "args") && kind == '{') {
            is_read = read_arguments(json, f);
        } else {
            is_read = json_skip(json);
        }
        if (!is_read)
            return false;
    }
    return json_is_good(json);
}

static bool refuse_event(reader *r, const fields *f, const char *what)
{
    r->source->line = f->line;
    r->source->column = f->column;
    return import_refuse(r->source, "a [memory] event %s", what);
}

/* Returns false if the integer does not fit. */
static bool to_signed(json_integer integer, int64_t *number)
{
    if (integer.magnitude > INT64_MAX)
        return false;
    *number = integer.is_negative ? -(int64_t)integer.magnitude : (int64_t)integer.magnitude;
    return true;
}

/* An address is written as a signed number. */
static uint64_t to_address(json_integer integer)
{
    return integer.is_negative ? 0 - integer.magnitude : integer.magnitude;
}

/* Returns the index of a device, which is added if it is new, or MOST_DEVICES. */
static uint32_t device_of(reader *r, int64_t type, int64_t id)
{
    for (uint32_t i = 0; i < r->device_count; i++)
        if (r->devices[i].type == type && r->devices[i].id == id)
            return i;
    if (r->device_count < MOST_DEVICES)
        r->devices[r->device_count] = (device){type, id, 0};
    return r->device_count < MOST_DEVICES ? r->device_count++ : MOST_DEVICES;
}

static bool add_event(reader *r, const fields *f, uint32_t index)
{
    if (r->count == r->room) {
        uint64_t larger = r->room ? r->room * 2 : FIRST_ROOM;
        memory_event *events =
            qi_host_resize(&r->live.host, r->events, r->room, larger, sizeof *events);
        if (!events)
            return import_refuse(r->source, "no host memory for the events");
        r->events = events;
        r->room = larger;
    }
    const memory_event event = {.time = f->time,
                                .order = r->count,
                                .address = to_address(f->values[ADDRESS]),
                                .bytes = f->values[BYTES].magnitude,
                                .device = index,
                                .is_free = f->values[BYTES].is_negative};
    r->events[r->count++] = event;
    uint64_t *sum = &r->devices[index].allocated;
    if (!event.is_free)
        *sum = *sum > UINT64_MAX - event.bytes ? UINT64_MAX : *sum + event.bytes;
    return true;
}

static bool take_event(reader *r, const fields *f)
{
    int64_t type, id;
    if (!f->is_memory)
        return true;
    if (!f->has_time)
        return refuse_event(r, f, "has no ts of 64 bits, in decimal microseconds");
    if (!f->has[ADDRESS])
        return refuse_event(r, f, "has no integer Addr, as in old versions of PyTorch");
    if (!f->has[BYTES])
        return refuse_event(r, f, "has no integer Bytes");
    if (!f->has[DEVICE_TYPE] || !to_signed(f->values[DEVICE_TYPE], &type) || !f->has[DEVICE_ID] ||
        !to_signed(f->values[DEVICE_ID], &id))
        return refuse_event(r, f, "has no integers Device Type and Device Id");
    if (!f->values[BYTES].magnitude)
        return true;
    if (!f->values[ADDRESS].magnitude)
        return refuse_event(r, f, "has bytes at address 0");
    const uint32_t index = device_of(r, type, id);
    if (index == MOST_DEVICES)
        return refuse_event(r, f, "is of the 65th device");
    return add_event(r, f, index);
}

static bool read_events(reader *r)
{
    fields f;
    for (json_enter(&r->json, '['); json_next_element(&r->json);) {
        json_peek(&r->json); /* to the first byte */
        if (!read_fields(&r->json, &f) || !take_event(r, &f))
            return false;
    }
    return json_is_good(&r->json);
}

/* The file is an object with the events, or only the events. */
static bool read_file(reader *r)
{
    bool has_events = json_peek(&r->json) == '[';
    if (has_events)
        return read_events(r) && json_end(&r->json);
    for (json_enter(&r->json, '{'); json_next_member(&r->json);) {
        const bool is_events = !strcmp(r->json.text, "traceEvents");
        if (is_events && has_events)
            return import_refuse(r->source, "there are traceEvents already");
        has_events |= is_events;
        if (is_events ? !read_events(r) : !json_skip(&r->json))
            return false;
    }
    if (!json_is_good(&r->json) || !json_end(&r->json))
        return false;
    return has_events || import_refuse(r->source, "there are no traceEvents");
}

/* ---- the rows ----------------------------------------------------------------------------- */

/* The device that `wanted` names: "cpu", or the id of another device; null means any. Among several
   it is the one with the most bytes. Returns device_count if there is none. */
static uint32_t choose_device(const reader *r, const char *wanted)
{
    uint32_t best = r->device_count;
    const bool is_cpu = wanted && !strcmp(wanted, "cpu");
    for (uint32_t i = 0; i < r->device_count; i++) {
        const device *d = &r->devices[i];
        if (is_cpu && d->type != CPU_TYPE)
            continue;
        if (wanted && !is_cpu &&
            (d->type == CPU_TYPE || d->id != (int64_t)strtoull(wanted, NULL, 10)))
            continue;
        if (best == r->device_count || d->allocated > r->devices[best].allocated)
            best = i;
    }
    return best;
}

static int compare(const void *one, const void *other)
{
    const memory_event *a = one, *b = other;
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

static bool write_event(reader *r, const memory_event *e)
{
    const bool is_cpu = r->devices[e->device].type == CPU_TYPE;
    uint64_t id = import_live_remove(&r->live, e->address);
    if (id)
        import_free(r->rows, id, e->time, 0);
    if (e->is_free) {
        r->rows->left_out += !id;
        return true;
    }
    r->ended += id > 0;
    id = import_live_add(&r->live, e->address);
    if (!id)
        return import_refuse(r->source, "no host memory, or no id, for an allocation");
    import_alloc(r->rows, id, e->bytes, is_cpu ? CPU_ALIGNMENT : ALIGNMENT, e->time, 0, "");
    return true;
}

static void write_note(reader *r, const device *d)
{
    char *note = r->rows->note;
    const size_t size = sizeof r->rows->note;
    int length =
        snprintf(note, size, "Device Id %" PRId64 " of Device Type %" PRId64, d->id, d->type);
    if (r->device_count > 1)
        length += snprintf(note + length, size - (size_t)length, ", one of %" PRIu32 " devices",
                           r->device_count);
    if (r->ended)
        snprintf(note + length, size - (size_t)length,
                 "; frees made up for addresses that were allocated again: %" PRIu64, r->ended);
}

static bool write_rows(reader *r)
{
    if (!r->count)
        return import_refuse(r->source,
                             "there is no [memory] event: profile with profile_memory=True");
    const uint32_t chosen = choose_device(r, r->source->device);
    if (chosen == r->device_count)
        return import_refuse(r->source, "no [memory] event is of the device '%s'",
                             r->source->device);
    qsort(r->events, r->count, sizeof *r->events, compare);
    for (uint64_t i = 0; i < r->count; i++)
        if (r->events[i].device == chosen && !write_event(r, &r->events[i]))
            return false;
    write_note(r, &r->devices[chosen]);
    return true;
}

bool import_kineto(import_source *source, import_rows *rows)
{
    reader r = {.source = source, .rows = rows};
    json_begin(&r.json, source);
    bool is_good = import_live_begin(&r.live) || import_refuse(source, "no host memory");
    is_good = is_good && read_file(&r) && write_rows(&r);
    qi_host_release(&r.live.host, r.events, r.room, sizeof *r.events);
    import_live_end(&r.live);
    return is_good;
}
