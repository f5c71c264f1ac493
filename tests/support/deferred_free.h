/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * deferred_free.h - shared by the unit tests of deferred frees: a memory and two streams of the
 * fake backend.
 */
#ifndef QUIRE_TESTS_SUPPORT_DEFERRED_FREE_H
#define QUIRE_TESTS_SUPPORT_DEFERRED_FREE_H

#include "tests/support/fixture.h"
#include "tests/support/stream_steps.h"
#include "tests/support/streams.h"

enum { KIB = 1024, PAGE = 64 * KIB };

#ifndef BENCH_PAGES
#define BENCH_PAGES                                                                                \
    {                                                                                              \
        .page_size = PAGE                                                                          \
    }
#endif

typedef struct bench {
    fixture f;
    quire_stream *a, *b;
} bench;

static inline quire_stream *make(bench *w, const quire_stream_options *options)
{
    quire_stream *stream = NULL;
    CHECK_OK(quire_stream_create(w->f.device, options, &stream));
    return stream;
}

static inline quire_stream *make_capturing(bench *w)
{
    return make(w, &(quire_stream_options){.capture = true});
}

/* A fake with streams that the test may change before open_bench; begin_with does both steps. */
static inline void prepare(bench *w)
{
    fixture_prepare(&w->f);
    streams_offer(&w->f.fake.table);
}

static inline void open_bench(bench *w, const quire_memory_options *options)
{
    fixture_open(&w->f, options);
    w->a = make(w, &(quire_stream_options){.name = "a"});
    w->b = make(w, &(quire_stream_options){.name = "b"});
}

static inline void begin_with(bench *w, const quire_memory_options *options)
{
    prepare(w);
    open_bench(w, options);
}

static inline void begin(bench *w)
{
    begin_with(w, &(quire_memory_options){.pages = BENCH_PAGES});
}

static inline void end(bench *w)
{
    streams_state()->await_passes = true;
    if (w->f.memory) /* which the test may have destroyed */
        CHECK_OK(quire_memory_check(w->f.memory));
    quire_memory_destroy_all(&w->f.memory);
    CHECK_OK(quire_stream_destroy(&w->a));
    CHECK_OK(quire_stream_destroy(&w->b));
    CHECK_OK(quire_device_destroy(&w->f.device));
    CHECK_EQ(w->f.fake.pages, 0);
    CHECK_EQ(w->f.fake.objects, 0);
}

static inline uint64_t collect(bench *w)
{
    uint64_t released = 1;
    CHECK_OK(quire_collect(w->f.memory, &released));
    CHECK_OK(quire_memory_check(w->f.memory));
    return released;
}

static inline uint64_t waiting(bench *w)
{
    CHECK_OK(quire_memory_check(w->f.memory));
    return fixture_stats(&w->f).deferred_count;
}

#endif
