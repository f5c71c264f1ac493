/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * frame.h - what the C fragments of the documents are compiled in: tests/static/code_blocks.py
 * makes a function of each fragment. The pages name the same objects and say that error checks are
 * left out, so that the frame checks the last error of the thread after each fragment.
 */
#ifndef FRAME_H
#define FRAME_H

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <quire/host.h>
#include <quire/quire.h>
#include <quire/trace.h>

/* Stand-ins for the macros of Tracy's TracyC.h, which a fragment uses. */
#define TracyCAllocN(pointer, size, name) frame_note(pointer, (size) && (name))
#define TracyCFreeN(pointer, name) frame_note(pointer, (name) != NULL)

static inline void frame_note(const void *pointer, bool is_complete)
{
    if (!pointer || !is_complete)
        abort();
}

typedef struct frame_objects {
    quire_device *device;
    quire_memory *memory;        /* device-local */
    quire_memory *upload;        /* host-visible */
    quire_stream *stream;        /* with a worker */
    quire_allocation allocation; /* 4096 bytes of `memory` */
    char data[4096];
} frame_objects;

typedef struct fragment {
    const char *place; /* PAGE:LINE */
    void (*run)(frame_objects *f, quire_device *device, quire_memory *memory, quire_memory *upload,
                quire_stream *stream, quire_allocation allocation, char *data);
    bool fails; /* the fragment shows a call that fails */
} fragment;

static int frame_stop(const char *place)
{
    fprintf(stderr, "%s: %s: %s\n", place, quire_result_name(quire_last_result()),
            quire_last_error());
    return 1;
}

/* Runs one fragment between the creation of its objects and their destruction. */
static inline int frame_run(const fragment *fragment)
{
    frame_objects f = {0};
    if (quire_host_open(NULL, &f.device) || quire_memory_create(f.device, NULL, &f.memory) ||
        quire_memory_create(
            f.device, &(quire_memory_options){.name = "upload", .kind.intent = QUIRE_INTENT_UPLOAD},
            &f.upload) ||
        quire_stream_create(f.device, NULL, &f.stream) ||
        quire_allocate(f.memory, &(quire_allocation_options){.size = 4096}, &f.allocation))
        return frame_stop("the frame");
    fragment->run(&f, f.device, f.memory, f.upload, f.stream, f.allocation, f.data);
    if ((quire_last_result() != QUIRE_SUCCESS) != fragment->fails)
        return frame_stop(fragment->place);
    quire_point end; /* a fragment may leave work on the stream */
    if (quire_stream_mark(f.stream, &end) || quire_point_await(&end, QUIRE_FOREVER))
        return frame_stop(fragment->place);
    quire_memory_destroy_all(&f.memory);
    quire_memory_destroy_all(&f.upload);
    if (quire_stream_destroy(&f.stream) || quire_device_destroy(&f.device))
        return frame_stop(fragment->place);
    return 0;
}

/* Runs the fragment whose number is the argument. */
static inline int frame_main(int count, char **arguments, const fragment *fragments, int most)
{
    int number = count == 2 ? atoi(arguments[1]) : -1;
    if (number < 0 || number >= most)
        return 2;
    return frame_run(&fragments[number]);
}

#endif
