/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * streams.h - helpers of streams.c: streams, marks and waits through the backend's table alone, and
 * work on them that takes the device a while.
 */
#ifndef QUIRE_TESTS_CONTRACT_STREAMS_H
#define QUIRE_TESTS_CONTRACT_STREAMS_H

#include "tests/contract/kit.h"

enum { STEPS = 20, ENDS = 6, SLOW_FILLS = 24, PART = 4096, THREADS = 4 };

/* Size of the pages that are filled to take time: enough to observe a worker at it. */
static const uint64_t MAX_FILL = 256 * KIB;

static inline bool has_streams(const contract_world *w)
{
    return kit_offers(w, QUIRE_BACKEND_STREAMS);
}

static inline bool can_order(const contract_world *w)
{
    return has_streams(w) && kit_offers(w, QUIRE_BACKEND_STREAM_ORDER);
}

/* Returns false if this device has no streams, which is allowed for some devices of a backend. */
static inline bool open_stream(const contract_world *w, uint64_t *stream)
{
    quire_result result = w->table->stream_create(w->state, NULL, stream);
    if (result == QUIRE_ERROR_UNSUPPORTED)
        return false;
    CHECK_OK(result);
    return true;
}

static inline void end_stream(const contract_world *w, uint64_t stream)
{
    w->table->stream_destroy(w->state, stream);
}

static inline uint64_t mark(const contract_world *w, uint64_t stream)
{
    uint64_t value = 0;
    CHECK_OK(w->table->stream_mark(w->state, stream, &value));
    CHECK(value > 0);
    return value;
}

static inline uint64_t passed(const contract_world *w, uint64_t stream)
{
    uint64_t value = 0;
    CHECK_OK(w->table->stream_passed(w->state, stream, &value));
    return value;
}

static inline void await(const contract_world *w, uint64_t stream, uint64_t value)
{
    bool has_passed = false;
    CHECK_OK(w->table->stream_await(w->state, stream, value, QUIRE_FOREVER, &has_passed));
    CHECK(has_passed);
    CHECK(passed(w, stream) >= value);
}

/* ---- work --------------------------------------------------------------------------------- */

static inline bool has_done(quire_result result)
{
    if (result != QUIRE_ERROR_UNSUPPORTED)
        CHECK_OK(result);
    return !result;
}

/* Returns false if the backend does not support fills on a stream. */
static inline bool fill(const contract_world *w, uint64_t stream, const kit_page *page,
                        uint64_t offset, uint64_t size, uint8_t value)
{
    return kit_offers(w, QUIRE_BACKEND_STREAM_FILL) &&
           has_done(w->table->stream_fill(w->state, stream, &page->native, offset, size, value));
}

static inline bool copy(const contract_world *w, uint64_t stream, quire_copy_job job)
{
    job.rows = job.rows ? job.rows : 1;
    job.slices = job.slices ? job.slices : 1;
    job.to_state = job.to_state ? job.to_state : w->state;
    job.from_state = job.from_state ? job.from_state : w->state;
    return kit_offers(w, QUIRE_BACKEND_STREAM_COPY) &&
           has_done(w->table->stream_copy(w->state, stream, &job));
}

static inline kit_page page_of(const contract_world *w, uint32_t kind)
{
    uint64_t size = kit_page_size(w) < MAX_FILL ? kit_page_size(w) : MAX_FILL;
    return kit_page_make(w, kind, size < PART ? PART : size);
}

/* Submits work that takes the device a while. Returns false if nothing was submitted. */
static inline bool be_slow(const contract_world *w, uint64_t stream, const kit_page *page)
{
    bool any = true;
    for (int i = 0; i < SLOW_FILLS && any; i++)
        any = fill(w, stream, page, 0, page->native.size, (uint8_t)i);
    return any;
}

#endif
