/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * stream_steps.h - steps that tests of streams share. Each of them must succeed.
 */
#ifndef QUIRE_TESTS_SUPPORT_STREAM_STEPS_H
#define QUIRE_TESTS_SUPPORT_STREAM_STEPS_H

#include "quire/backend.h"
#include "quire/quire.h"
#include "tests/support/check.h"

static inline quire_point mark(quire_stream *stream)
{
    quire_point point;
    CHECK_OK(quire_stream_mark(stream, &point));
    return point;
}

static inline bool has_passed(quire_point point)
{
    bool passed = false;
    CHECK_OK(quire_point_has_passed(&point, &passed));
    return passed;
}

/* Where an allocation is. */
static inline quire_native place_of(quire_memory *memory, quire_allocation allocation)
{
    quire_native native;
    CHECK_OK(quire_allocation_get_native(memory, allocation, &native));
    return native;
}

/* The place of a new allocation. */
static inline quire_native range_of(quire_memory *memory, uint64_t size)
{
    quire_allocation made;
    CHECK_OK(
        quire_allocate(memory, &(quire_allocation_options){.size = size, .alignment = 4}, &made));
    return place_of(memory, made);
}

/* Work, through the backend's table: its answer. 0 rows or slices mean one. */
static inline quire_result copy_job(quire_device *device, quire_stream *stream, quire_copy_job job)
{
    job.rows = job.rows ? job.rows : 1;
    job.slices = job.slices ? job.slices : 1;
    return quire_device_backend(device)->stream_copy(quire_device_state(device),
                                                     quire_stream_native(stream), &job);
}

static inline quire_result fill_range(quire_device *device, quire_stream *stream,
                                      const quire_native *to, uint64_t size, uint8_t value)
{
    return quire_device_backend(device)->stream_fill(quire_device_state(device),
                                                     quire_stream_native(stream), &to->page,
                                                     to->offset, size, value);
}

/* Waits until all work of the stream is done. */
static inline void finish(quire_stream *stream)
{
    quire_point point = mark(stream);
    CHECK_OK(quire_point_await(&point, QUIRE_FOREVER));
}

/* The same, collects what was freed on it and ends it. */
static inline void finish_and_end(quire_stream **stream, quire_memory *memory)
{
    finish(*stream);
    CHECK_OK(quire_collect(memory, NULL));
    CHECK_OK(quire_stream_destroy(stream));
}

#endif
