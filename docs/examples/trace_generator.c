/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * trace_generator: writes the two modelled traces of docs/traces to standard output.
 *
 *     cc -std=c11 -O2 -o trace_generator trace_generator.c trace_training.c trace_serving.c
 *     trace_generator transformer-training|llm-serving > FILE
 *
 * Every size follows from a published shape by a formula that stands next to it with its source. A
 * trace can therefore be checked on paper and reproduced to the byte. The program uses only
 * integers and its own random number generator, because libm and rand() differ between systems.
 * This file owns the command line and the events; trace_training.c and trace_serving.c own one
 * model each.
 *
 * Exit status: 0 success, 1 the trace could not be written, 2 bad usage.
 */
#include "trace_generator.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Frameworks on CUDA round the size and the alignment of a tensor to 512 bytes. */
#define GRANULE UINT64_C(512)

struct event {
    uint64_t time;
    uint64_t order; /* of creation, because qsort is not stable */
    uint64_t id;    /* 0 for a frame */
    uint64_t size;
    unsigned stream;
    const char *op;
    char label[40];
};

/* All events, unsorted: the serving model adds one conversation after the other. */
static struct event *events;
static size_t event_count, event_room;
static uint64_t blocks_made;

static struct event *add_event(const char *op, uint64_t time, uint64_t id, unsigned stream)
{
    if (event_count == event_room) {
        size_t room = event_room > 0 ? 2 * event_room : 4096;
        struct event *grown = realloc(events, room * sizeof(*events));

        if (grown == NULL) {
            fputs("trace_generator: out of memory\n", stderr);
            exit(1);
        }
        events = grown;
        event_room = room;
    }
    events[event_count] = (struct event){
        .time = time,
        .order = event_count,
        .id = id,
        .stream = stream,
        .op = op,
    };
    return &events[event_count++];
}

uint64_t add_alloc(uint64_t time, unsigned stream, uint64_t bytes, const char *label, ...)
{
    struct event *event = add_event("alloc", time, ++blocks_made, stream);
    va_list arguments;

    event->size = (bytes + GRANULE - 1) / GRANULE * GRANULE;
    va_start(arguments, label);
    vsnprintf(event->label, sizeof(event->label), label, arguments);
    va_end(arguments);
    return blocks_made;
}

void add_free(uint64_t time, unsigned stream, uint64_t id)
{
    add_event("free", time, id, stream);
}

void add_use(uint64_t time, unsigned stream, uint64_t id)
{
    add_event("use", time, id, stream);
}

void add_frame(uint64_t time)
{
    add_event("frame", time, 0, 0);
}

static int compare_events(const void *left, const void *right)
{
    const struct event *a = left;
    const struct event *b = right;

    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

static void write_event(const struct event *event)
{
    if (event->id == 0)
        printf("%s,,,,%" PRIu64 ",,\n", event->op, event->time);
    else if (event->size > 0)
        printf("%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%u,%s\n", event->op, event->id,
               event->size, GRANULE, event->time, event->stream, event->label);
    else
        printf("%s,%" PRIu64 ",,,%" PRIu64 ",%u,\n", event->op, event->id, event->time,
               event->stream);
}

/* Leaves out events after the end: allocations that are live then stay live. */
static void write_trace(uint64_t end)
{
    qsort(events, event_count, sizeof(*events), compare_events);
    puts("op,id,size,alignment,time_ns,stream,label");
    for (size_t i = 0; i < event_count && events[i].time <= end; i++)
        write_event(&events[i]);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "transformer-training") == 0) {
        write_trace(model_training());
    } else if (argc == 2 && strcmp(argv[1], "llm-serving") == 0) {
        write_trace(model_serving());
    } else {
        fputs("usage: trace_generator transformer-training|llm-serving > FILE\n", stderr);
        return 2;
    }
    free(events);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fputs("trace_generator: cannot write the trace\n", stderr);
        return 1;
    }
    return 0;
}
