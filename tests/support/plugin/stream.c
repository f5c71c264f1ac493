/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * stream.c - streams and events of the test plugin. Submitted work waits in its stream. A query
 * runs one step, and a wait runs all steps, so that the test controls the order of events.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/support/plugin/inside.h"

typedef struct event event;

/* A step: a copy, or a wait for an event as it was recorded at submission. */
typedef struct step {
    bool waits;
    int32_t to_device, from_device; /* -1 means the host */
    void *to;
    const void *from;
    size_t size;
    struct stream *awaited; /* NULL: the stream is destroyed and all its work is done */
    uint64_t place;
} step;

typedef struct stream {
    struct stream *next;
    int32_t device;
    step *steps;
    uint64_t submitted, done, room;
} stream;

struct event {
    event *next;
    int32_t device;
    stream *recorded; /* NULL: never recorded, or its stream is destroyed */
    uint64_t place;   /* number of steps submitted before it */
};

static stream *streams;
static event *events;

/* ---- finding -------------------------------------------------------------------------------- */

static stream *find_stream(const void *handle)
{
    stream *s = streams;
    while (s && s != handle)
        s = s->next;
    if (!s)
        tp_wrong("%p is no stream", handle);
    return s;
}

static event *find_event(const void *handle)
{
    event *e = events;
    while (e && e != handle)
        e = e->next;
    if (!e)
        tp_wrong("%p is no event", handle);
    return e;
}

/* ---- doing ---------------------------------------------------------------------------------- */

static void run_to(stream *s, uint64_t place);

static void run_one(stream *s)
{
    const step work = s->steps[s->done++];
    if (work.waits) {
        if (work.awaited)
            run_to(work.awaited, work.place);
        return;
    }
    if (tp_can_reach(work.to_device, (uintptr_t)work.to, work.size) &&
        tp_can_reach(work.from_device, (uintptr_t)work.from, work.size))
        tp_move(work.to_device, work.to, work.from_device, work.from, work.size);
    else
        tp_wrong("memory of a copy on a stream was given back before it was done");
}

static void run_to(stream *s, uint64_t place)
{
    while (s->done < place)
        run_one(s);
}

static bool submit(stream *s, step work)
{
    if (s->submitted == s->room) {
        uint64_t room = s->room ? 2 * s->room : 16;
        step *steps = realloc(s->steps, room * sizeof *steps);
        if (!steps)
            return false;
        s->steps = steps;
        s->room = room;
    }
    s->steps[s->submitted++] = work;
    return true;
}

static void end_stream(stream *s)
{
    run_to(s, s->submitted);
    for (event *e = events; e; e = e->next)
        if (e->recorded == s)
            e->recorded = NULL;
    for (stream *other = streams; other; other = other->next)
        for (uint64_t i = 0; i < other->submitted; i++)
            if (other->steps[i].awaited == s)
                other->steps[i].awaited = NULL;
    free(s->steps);
    free(s);
}

void tp_stream_reset(void)
{
    while (streams) {
        stream *s = streams;
        streams = s->next;
        free(s->steps);
        free(s);
    }
    while (events) {
        event *e = events;
        events = e->next;
        free(e);
    }
}

/* ---- streams -------------------------------------------------------------------------------- */

static int32_t create_stream(tp_device *device, void **handle)
{
    int32_t status;
    if (!tp_begin(56, device, true, &status))
        return status;
    if (tp.options.gives_no_streams)
        return tp_end(56, TP_SUCCESS);
    stream *s = calloc(1, sizeof *s);
    if (!s)
        return tp_end(56, TP_FAILED);
    s->device = tp_index(device);
    s->next = streams;
    streams = s;
    tp.objects++;
    *handle = s;
    return tp_end(56, TP_SUCCESS);
}

static int32_t destroy_stream(tp_device *device, void *handle)
{
    int32_t status;
    bool goes = tp_begin(64, device, true, &status);
    if (!goes)
        pthread_mutex_lock(&tp_mutex); /* a failing destroy releases the stream nevertheless */
    stream *s = handle ? find_stream(handle) : NULL;
    if (s) {
        stream **link = &streams;
        while (*link != s)
            link = &(*link)->next;
        *link = s->next;
        end_stream(s);
        tp.objects--;
    } else if (handle || !tp.options.gives_no_streams) {
        tp_wrong("a stream that is none is destroyed");
    }
    if (goes)
        return tp_end(64, TP_SUCCESS);
    pthread_mutex_unlock(&tp_mutex);
    return status;
}

/* A null stream has no work. */
static int32_t query_stream(tp_device *device, void *handle)
{
    int32_t status;
    if (!tp_begin(72, device, true, &status))
        return status;
    stream *s = handle ? find_stream(handle) : NULL;
    if (s && !tp.holds && s->done < s->submitted)
        run_one(s);
    return tp_end(72, !s || s->done == s->submitted ? TP_SUCCESS : TP_FAILED);
}

static int32_t synchronize_stream(tp_device *device, void *handle)
{
    int32_t status;
    if (!tp_begin(128, device, true, &status))
        return status;
    stream *s = handle ? find_stream(handle) : NULL;
    if (s)
        run_to(s, s->submitted);
    return tp_end(128, TP_SUCCESS);
}

static int32_t synchronize_device(tp_device *device)
{
    int32_t status;
    if (!tp_begin(120, device, true, &status))
        return status;
    for (stream *s = streams; s; s = s->next)
        if (s->device == tp_index(device))
            run_to(s, s->submitted);
    return tp_end(120, TP_SUCCESS);
}

/* ---- events --------------------------------------------------------------------------------- */

static int32_t create_event(tp_device *device, void **handle)
{
    int32_t status;
    if (!tp_begin(88, device, true, &status))
        return status;
    if (tp.options.gives_no_streams || tp.options.gives_no_events)
        return tp_end(88, TP_SUCCESS);
    event *e = calloc(1, sizeof *e);
    if (!e)
        return tp_end(88, TP_FAILED);
    e->device = tp_index(device);
    e->next = events;
    events = e;
    tp.objects++;
    *handle = e;
    return tp_end(88, TP_SUCCESS);
}

static int32_t destroy_event(tp_device *device, void *handle)
{
    int32_t status;
    bool goes = tp_begin(104, device, true, &status);
    if (!goes)
        pthread_mutex_lock(&tp_mutex);
    event *e = find_event(handle);
    if (e) {
        event **link = &events;
        while (*link != e)
            link = &(*link)->next;
        *link = e->next;
        free(e);
        tp.objects--;
    }
    if (goes)
        return tp_end(104, TP_SUCCESS);
    pthread_mutex_unlock(&tp_mutex);
    return status;
}

static int32_t record_event(tp_device *device, void *handle, void *event_handle)
{
    int32_t status;
    if (!tp_begin(96, device, true, &status))
        return status;
    stream *s = handle ? find_stream(handle) : NULL;
    event *e = find_event(event_handle);
    if (!e || (handle && !s))
        return tp_end(96, TP_ERROR);
    e->recorded = s;
    e->place = s ? s->submitted : 0;
    return tp_end(96, TP_SUCCESS);
}

static bool is_done(const event *e)
{
    return !e->recorded || e->recorded->done >= e->place;
}

static int32_t query_event(tp_device *device, void *handle)
{
    int32_t status;
    if (!tp_begin(112, device, true, &status))
        return status;
    event *e = find_event(handle);
    if (e && !is_done(e) && !tp.holds)
        run_one(e->recorded);
    return tp_end(112, e && is_done(e) ? TP_SUCCESS : TP_FAILED);
}

static int32_t synchronize_event(tp_device *device, void *handle)
{
    int32_t status;
    if (!tp_begin(136, device, true, &status))
        return status;
    event *e = find_event(handle);
    if (e && e->recorded)
        run_to(e->recorded, e->place);
    return tp_end(136, TP_SUCCESS);
}

static int32_t stream_wait_event(tp_device *device, void *handle, void *event_handle)
{
    int32_t status;
    if (!tp_begin(144, device, true, &status))
        return status;
    stream *s = find_stream(handle);
    event *e = find_event(event_handle);
    if (!s || !e)
        return tp_end(144, TP_ERROR);
    bool fits = submit(s, (step){.waits = true, .awaited = e->recorded, .place = e->place});
    return tp_end(144, fits ? TP_SUCCESS : TP_FAILED);
}

/* ---- copies --------------------------------------------------------------------------------- */

static int32_t copy(uint32_t offset, const tp_device *device, void *handle, step work)
{
    int32_t status;
    if (!tp_begin(offset, device, false, &status))
        return status;
    stream *s = find_stream(handle);
    if (!s)
        return tp_end(offset, TP_ERROR);
    if (s->device != work.to_device && s->device != work.from_device)
        return tp_end(offset, tp_wrong("the copy at %u is on a third device's stream", offset));
    if (!tp_is_current(&(tp_device){tp_id(s->device)}))
        return tp_end(offset, tp_wrong("the copy at %u is on another device's stream", offset));
    if (!tp_can_reach(work.to_device, (uintptr_t)work.to, work.size) ||
        !tp_can_reach(work.from_device, (uintptr_t)work.from, work.size))
        return tp_end(offset, tp_wrong("the copy at %u leaves its memory", offset));
    return tp_end(offset, submit(s, work) ? TP_SUCCESS : TP_FAILED);
}

static int32_t copy_h2d(tp_device *device, void *handle, void *to, const void *from, size_t size)
{
    return copy(304, device, handle, (step){false, tp_index(device), -1, to, from, size, NULL, 0});
}

static int32_t copy_d2h(tp_device *device, void *handle, void *to, const void *from, size_t size)
{
    return copy(312, device, handle, (step){false, -1, tp_index(device), to, from, size, NULL, 0});
}

static int32_t copy_d2d(tp_device *device, void *handle, void *to, const void *from, size_t size)
{
    int32_t index = tp_index(device);
    return copy(320, device, handle, (step){false, index, index, to, from, size, NULL, 0});
}

/* The stream belongs to one of the devices, which must be current on the thread. */
static int32_t copy_p2p(tp_device *to_device, tp_device *from_device, void *handle, void *to,
                        const void *from, size_t size)
{
    return copy(328, to_device, handle,
                (step){false, tp_index(to_device), tp_index(from_device), to, from, size, NULL, 0});
}

void tp_stream_put(unsigned char *block)
{
    TP_PUT(block, 56, create_stream);
    TP_PUT(block, 64, destroy_stream);
    TP_PUT(block, 72, query_stream);
    TP_PUT(block, 88, create_event);
    TP_PUT(block, 96, record_event);
    TP_PUT(block, 104, destroy_event);
    TP_PUT(block, 112, query_event);
    TP_PUT(block, 120, synchronize_device);
    TP_PUT(block, 128, synchronize_stream);
    TP_PUT(block, 136, synchronize_event);
    TP_PUT(block, 144, stream_wait_event);
    TP_PUT(block, 304, copy_h2d);
    TP_PUT(block, 312, copy_d2h);
    TP_PUT(block, 320, copy_d2d);
    TP_PUT(block, 328, copy_p2p);
}
