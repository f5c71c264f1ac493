/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_writes.c - 1,000 writes of 64 bytes to memory that the host reaches through staging memory
 * only: one by one, in a batch, and both on a stream. The functions of the backend's table are
 * called, as quire_write and quire_write_batch do for such memory, because software drivers have
 * host-visible kinds only. One time is until the calls returned, the other until the bytes were
 * written.
 */
#include "bench/memory.h"
#include "bench/ticks.h"
#include "quire/quire.h"
#include "quire/vulkan.h"
#include "src/base/result.h"

enum { WRITES = 1000, SIZE = 64, APART = 256 };

enum { ONE_BY_ONE, BATCH, STREAM, STREAM_BATCH, WAYS };

static const char *const NAMES[WAYS] = {"one by one", "batch", "stream", "batch on stream"};

typedef struct scene {
    quire_device *device;
    quire_memory *memory;
    quire_stream *stream;
    const quire_backend *table;
    void *state;
    quire_native place;
    quire_page_copy copies[WRITES];
    char data[WRITES * SIZE];
    double call_ns[WAYS][MAX_REPS], done_ns[WAYS][MAX_REPS]; /* for one write */
} scene;

/* A driver without timeline semaphores has no streams: the rows of streams are missing then. */
static bool begin(scene *s)
{
    quire_allocation made;
    const quire_allocation_options options = {.size = (uint64_t)WRITES * APART};
    if (quire_vulkan_open(NULL, &s->device) || quire_memory_create(s->device, NULL, &s->memory) ||
        quire_allocate(s->memory, &options, &made) ||
        quire_allocation_get_native(s->memory, made, &s->place))
        return false;
    qi_ignore(quire_stream_create(s->device, NULL, &s->stream));
    s->table = quire_device_backend(s->device);
    s->state = quire_device_state(s->device);
    for (uint64_t i = 0; i < WRITES; i++)
        s->copies[i] = (quire_page_copy){.page = &s->place.page,
                                         .offset = s->place.offset + i * APART,
                                         .host = s->data + i * SIZE,
                                         .size = SIZE};
    return true;
}

static void end(scene *s)
{
    quire_stream_destroy(&s->stream);
    quire_memory_destroy_all(&s->memory);
    quire_device_destroy(&s->device);
}

static quire_result write_one(scene *s, const quire_page_copy *copy, bool on_stream)
{
    if (!on_stream)
        return s->table->copy_to_page(s->state, copy->page, copy->offset, copy->host, copy->size);
    const quire_copy_job job = {.to = copy->page,
                                .to_offset = copy->offset,
                                .host_from = copy->host,
                                .size = copy->size,
                                .rows = 1,
                                .slices = 1,
                                .to_state = s->state};
    return s->table->stream_copy(s->state, quire_stream_native(s->stream), &job);
}

static quire_result write_all(scene *s, int way)
{
    quire_result result = QUIRE_SUCCESS;
    if (way == BATCH)
        return s->table->write_many(s->state, s->copies, WRITES);
    if (way == STREAM_BATCH)
        return s->table->stream_write_many(s->state, quire_stream_native(s->stream), s->copies,
                                           WRITES);
    for (int i = 0; i < WRITES && !result; i++)
        result = write_one(s, &s->copies[i], way == STREAM);
    return result;
}

/* Waits for the stream. Without one the writes are complete. */
static quire_result finish(scene *s, int way)
{
    quire_point point;
    if (way == ONE_BY_ONE || way == BATCH)
        return QUIRE_SUCCESS;
    quire_result result = quire_stream_mark(s->stream, &point);
    return result ? result : quire_point_await(&point, QUIRE_FOREVER);
}

static bool measure_way(scene *s, int way, uint64_t rep)
{
    uint64_t since = ticks_now();
    quire_result result = write_all(s, way);
    s->call_ns[way][rep] = (double)ticks_spent(since) * the_clock.ns / (double)WRITES;
    if (!result)
        result = finish(s, way);
    s->done_ns[way][rep] = (double)ticks_spent(since) * the_clock.ns / (double)WRITES;
    return !result;
}

/* The first repeat creates the staging memory and is not counted. */
static bool measure(scene *s, int ways, uint64_t reps)
{
    for (int way = 0; way < ways; way++)
        if (!measure_way(s, way, 0))
            return false;
    for (uint64_t rep = 0; rep < reps; rep++)
        for (int way = 0; way < ways; way++)
            if (!measure_way(s, way, rep))
                return false;
    return true;
}

static void write_rows(memory_bench *b, scene *s, int ways)
{
    printf("\n-- writes: %d of %d bytes through staging memory; ns for each, minimum and median\n"
           "%-16s %10s %10s %10s %10s\n",
           WRITES, SIZE, "", "returned", "median", "written", "median");
    for (int way = 0; way < ways; way++) {
        const spread call = spread_of(s->call_ns[way], b->reps);
        const spread done = spread_of(s->done_ns[way], b->reps);
        printf("%-16s %10.1f %10.1f %10.1f %10.1f\n", NAMES[way], call.min, call.median, done.min,
               done.median);
        qi_json_object(&b->out.json, NULL);
        qi_json_text(&b->out.json, "way", NAMES[way]);
        write_spread(&b->out.json, "returned_ns", call);
        write_spread(&b->out.json, "written_ns", done);
        qi_json_end_object(&b->out.json);
    }
}

void measure_vulkan_writes(memory_bench *b)
{
    static scene s;
    if (!is_wanted(&b->wanted_families, "writes"))
        return;
    qi_json_array(&b->out.json, "writes");
    if (begin(&s)) {
        int ways = s.stream ? WAYS : STREAM;
        if (measure(&s, ways, b->reps))
            write_rows(b, &s, ways);
    }
    end(&s);
    qi_json_end_array(&b->out.json);
}
