/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * compacted.h - shared by the unit tests of compaction: a memory of the fake backend, which copies
 * and has streams, and a stream of it.
 */
#ifndef QUIRE_TESTS_SUPPORT_COMPACTED_H
#define QUIRE_TESTS_SUPPORT_COMPACTED_H

#include "quire/compact.h"
#include "quire/stream.h"
#include "src/core/checked.h"
#include "tests/support/fixture.h"

typedef struct compacted {
    fixture f;
    quire_stream *stream;
    quire_compaction *c;
} compacted;

/* A fake that the test may change before compacted_open. */
static inline void compacted_prepare(compacted *s)
{
    if (QI_IS_CHECKED)
        unit_skip("checked builds move nothing");
    fixture_prepare(&s->f);
    fake_offer_copies(&s->f.fake);
    fake_offer_streams(&s->f.fake);
}

/* With one shard and the first kind, unless the options say otherwise. */
static inline void compacted_open(compacted *s, const quire_memory_options *options)
{
    quire_memory_options all = *options;
    all.kind.mask = all.kind.mask ? all.kind.mask : 1;
    all.shards = all.shards ? all.shards : 1;
    fixture_open(&s->f, &all);
    CHECK_OK(quire_stream_create(s->f.device, NULL, &s->stream));
    CHECK_OK(quire_compact_begin(s->f.memory, &s->c));
}

/* Both, for a memory whose allocations are movable, in small pages. */
enum { COMPACTED_PAGE = 64 * 1024 };
static inline void compacted_begin(compacted *s, const quire_memory_options *options)
{
    quire_memory_options all = *options;
    all.name = "m";
    all.movable = true;
    all.pages.page_size = COMPACTED_PAGE;
    compacted_prepare(s);
    compacted_open(s, &all);
}

static inline void compacted_run_stream(compacted *s)
{
    fake_stream_run(quire_stream_native(s->stream), UINT64_MAX);
    CHECK_OK(quire_collect(s->f.memory, NULL));
}

static inline void compacted_end(compacted *s)
{
    compacted_run_stream(s);
    quire_compact_end(&s->c);
    CHECK_OK(quire_memory_check(s->f.memory));
    quire_memory_destroy_all(&s->f.memory);
    CHECK_OK(quire_stream_destroy(&s->stream));
    CHECK_OK(quire_device_destroy(&s->f.device));
    CHECK_EQ(s->f.fake.pages + s->f.fake.objects, 0);
}

#endif
