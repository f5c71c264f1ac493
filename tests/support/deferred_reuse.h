/*
 * deferred_reuse.h - shared by the unit tests of allocations on streams: a memory and two streams
 * of the fake backend.
 */
#ifndef QUIRE_TESTS_SUPPORT_DEFERRED_REUSE_H
#define QUIRE_TESTS_SUPPORT_DEFERRED_REUSE_H

#include "tests/support/fixture.h"
#include "tests/support/on_stream.h"
#include "tests/support/streams.h"

enum { KIB = 1024, PAGE = 64 * KIB };

typedef struct bench {
    fixture f;
    quire_stream *a, *b;
} bench;

static inline quire_stream *make(bench *w, bool capture)
{
    quire_stream *stream = NULL;
    CHECK_OK(
        quire_stream_create(w->f.device, &(quire_stream_options){.capture = capture}, &stream));
    return stream;
}

static inline void open_bench(bench *w, quire_fit fit)
{
    fixture_open(&w->f, &(quire_memory_options){
                            .fit.algorithm = fit,
                            .pages = {.page_size = PAGE, .dedicated_threshold = PAGE},
                        });
    w->a = make(w, false);
    w->b = make(w, false);
}

static inline void begin_with(bench *w, quire_fit fit)
{
    fixture_prepare(&w->f);
    streams_offer(&w->f.fake.table);
    open_bench(w, fit);
}

static inline void begin(bench *w)
{
    begin_with(w, QUIRE_FIT_SEGREGATED);
}

static inline void end(bench *w)
{
    streams_state()->await_passes = true;
    CHECK_OK(quire_memory_check(w->f.memory));
    quire_memory_destroy_all(&w->f.memory);
    CHECK_OK(quire_stream_destroy(&w->a));
    CHECK_OK(quire_stream_destroy(&w->b));
    CHECK_OK(quire_device_destroy(&w->f.device));
    CHECK_EQ(w->f.fake.pages, 0);
}

static inline quire_allocation allocate_on(bench *w, const quire_allocation_options *options,
                                           quire_stream *stream)
{
    quire_allocation allocation;
    CHECK_OK(allocate_on_stream(w->f.memory, options, stream, &allocation));
    CHECK_OK(quire_memory_check(w->f.memory));
    return allocation;
}

#define ON(w, stream, ...) allocate_on((w), &(quire_allocation_options){__VA_ARGS__}, (stream))

static inline uint64_t place_of(bench *w, quire_allocation allocation)
{
    quire_allocation_info info = fixture_info(&w->f, allocation);
    return (uint64_t)info.page * PAGE * 16 + info.offset;
}

#endif
