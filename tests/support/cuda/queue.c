/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * queue.c - see queue.h.
 */
#include "tests/support/cuda/queue.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/cuda/capture.h"
#include "tests/support/cuda/copy.h"
#include "tests/support/cuda/graph.h"
#include "tests/support/cuda/pool.h"

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---- when ---------------------------------------------------------------------------------- */

bool fc_is_legacy(qi_cu_stream stream)
{
    return (uintptr_t)stream <= QI_CU_STREAM_LEGACY;
}

/* Created by its first use, destroyed with its context, and not counted as alive. */
static fc_stream *default_of_thread(const fc_context *context)
{
    uint64_t index = 0, owner = fc_thread();
    for (fc_object *object = fc_object_next(&index); object; object = fc_object_next(&index)) {
        fc_stream *stream = (fc_stream *)object;
        if (object->kind == FC_STREAM && stream->owner == owner &&
            stream->context == context->object.handle)
            return stream;
    }
    fc_stream *stream = fc_object_new(FC_STREAM, sizeof *stream);
    fc.live[FC_STREAM]--;
    stream->context = context->object.handle;
    stream->owner = owner;
    return stream;
}

fc_stream *fc_stream_find(fc_call call, const fc_context *context, qi_cu_stream handle)
{
    if ((uintptr_t)handle == QI_CU_STREAM_PER_THREAD)
        return context ? default_of_thread(context) : NULL;
    return fc_object_find(call, FC_STREAM, FC_NUMBER(handle));
}

uint64_t *fc_line_of(fc_call call, fc_context *context, qi_cu_stream handle)
{
    if (fc_is_legacy(handle))
        return &context->end;
    fc_stream *stream = fc_stream_find(call, context, handle);
    return stream && fc_context_has(context, stream->context) ? &stream->end : NULL;
}

/* The end of the last work of all streams, or of the streams that a default stream waits for. */
static uint64_t end_of_streams(const fc_context *context, bool blocking_only)
{
    uint64_t index = 0, end = 0;
    for (fc_object *object = fc_object_next(&index); object; object = fc_object_next(&index)) {
        const fc_stream *stream = (const fc_stream *)object;
        if (object->kind == FC_STREAM && fc_context_has(context, stream->context) &&
            !(blocking_only && stream->flags & QI_CU_STREAM_NON_BLOCKING))
            end = later(end, stream->end);
    }
    return end;
}

uint64_t fc_start_of(fc_call call, fc_context *context, qi_cu_stream handle)
{
    const uint64_t *end = fc_line_of(call, context, handle);
    uint64_t start = end ? later(fc.clock, *end) : fc.clock;
    if (!end)
        return start;
    if (fc_is_legacy(handle))
        return later(start, end_of_streams(context, true));
    const fc_stream *stream = fc_stream_find(call, context, handle);
    return stream->flags & QI_CU_STREAM_NON_BLOCKING ? start : later(start, context->end);
}

/* ---- queueing ------------------------------------------------------------------------------ */

static void insert(fc_work *work)
{
    fc_work **at = &fc.work;
    while (*at && (*at)->finish <= work->finish)
        at = &(*at)->next;
    work->next = *at;
    *at = work;
    fc.pending++;
}

qi_cu_result fc_queue(fc_context *context, qi_cu_stream stream, const fc_work *work)
{
    uint64_t *end = fc_line_of(work->call, context, stream);
    bool is_captured = false;
    qi_cu_result refused = end ? fc_capture_check(work->call, context, stream, &is_captured)
                               : QI_CUDA_ERROR_INVALID_HANDLE;
    if (refused || is_captured) {
        free(work->staged);
        if (!refused)
            fc_graph_add(context, fc_stream_find(work->call, context, stream), work);
        return refused;
    }
    fc_work *made = malloc(sizeof *made);
    if (!made)
        abort();
    *made = *work;
    if (!made->context) {
        made->context = context->object.handle;
        made->device = context->device;
    }
    made->sequence = fc.work_sequence++;
    uint64_t start = fc_start_of(work->call, context, stream);
    fc_pool_check(work, start);
    made->finish = start + 1;
    *end = made->finish;
    insert(made);
    if (!(fc.options.flags & FC_LATE))
        fc_run_until(made->finish);
    return 0;
}

static void free_work(fc_work *work)
{
    free(work->staged);
    free(work);
    fc.pending--;
}

void fc_work_end(void)
{
    while (fc.work) {
        fc_work *next = fc.work->next;
        free_work(fc.work);
        fc.work = next;
    }
}

void fc_run_until(uint64_t time)
{
    while (fc.work && fc.work->finish <= time) {
        fc_work *work = fc.work;
        fc.work = work->next;
        fc.clock = later(fc.clock, work->finish);
        if (!fc.devices[work->device].lost && !work->run(work)) {
            fc_say("fc-address", work->call, "its work touched what is not there or forbidden");
            fc.devices[work->device].lost = QI_CUDA_ERROR_ILLEGAL_ADDRESS;
        }
        free_work(work);
    }
    fc.clock = later(fc.clock, time);
}

bool fc_work_touches(uint64_t base, uint64_t size)
{
    for (const fc_work *work = fc.work; work; work = work->next)
        if (!fc.devices[work->device].lost && fc_copy_touches(work, base, size))
            return true;
    return false;
}

/* ---- waiting ------------------------------------------------------------------------------- */

qi_cu_result fc_finish_stream(fc_context *context, qi_cu_stream stream)
{
    uint64_t *end = fc_line_of(FC_CALL_StreamSynchronize, context, stream);
    if (!end)
        return QI_CUDA_ERROR_INVALID_HANDLE;
    fc_run_until(*end);
    fc_pools_settle();
    return fc.devices[context->device].lost;
}

qi_cu_result fc_finish_context(fc_context *context)
{
    fc_run_until(later(later(context->end, context->orphaned), end_of_streams(context, false)));
    fc_pools_settle();
    return fc.devices[context->device].lost;
}

void fc_finish_device(int device)
{
    uint64_t last = 0;
    for (const fc_work *work = fc.work; work; work = work->next)
        if (device == FC_HOST || work->device == device)
            last = work->finish;
    fc_run_until(later(last, fc.clock));
}

/* ---- the clock ----------------------------------------------------------------------------- */

void fc_advance(uint64_t ticks)
{
    fc_lock();
    fc_run_until(fc.clock + ticks);
    fc_unlock();
}

uint64_t fc_pending(void)
{
    fc_lock();
    uint64_t count = fc.pending;
    fc_unlock();
    return count;
}
