/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * disabled.c - a function table that refuses, for a device that did not survive a fork, in the
 * child (see memory/fork.h).
 *
 * Functions that return a result fail with NOT_PERMITTED. Functions that destroy do nothing: what
 * they would destroy belongs to the parent.
 */
#include "src/base/result.h"
#include "src/core/device/device.h"

quire_result qi_refuse_disabled(void)
{
    return qi_fail(QUIRE_ERROR_NOT_PERMITTED, QI_DISABLED_SENTENCE);
}

/* ---- pages -------------------------------------------------------------------------------- */

static quire_result refuse_page_create(void *state, const quire_page_request *request,
                                       quire_native_page *page)
{
    (void)state;
    (void)request;
    (void)page;
    return qi_refuse_disabled();
}

/* For page_destroy and unmap. */
static void ignore_page(void *state, const quire_native_page *page)
{
    (void)state;
    (void)page;
}

static quire_result refuse_map(void *state, const quire_native_page *page, void **pointer)
{
    (void)state;
    (void)page;
    (void)pointer;
    return qi_refuse_disabled();
}

/* For flush and invalidate. */
static quire_result refuse_range(void *state, const quire_native_page *page, uint64_t a, uint64_t b)
{
    (void)state;
    (void)page;
    (void)a;
    (void)b;
    return qi_refuse_disabled();
}

static quire_result refuse_spans(void *state, const quire_native_page *page,
                                 const quire_span *spans, uint32_t count)
{
    (void)state;
    (void)page;
    (void)spans;
    (void)count;
    return qi_refuse_disabled();
}

static void ignore_spans(void *state, const quire_native_page *page, const quire_span *spans,
                         uint32_t count, bool moves)
{
    (void)moves;
    (void)state;
    (void)page;
    (void)spans;
    (void)count;
}

static quire_result refuse_ranges(void *state, const quire_page_range *ranges, uint32_t count)
{
    (void)state;
    (void)ranges;
    (void)count;
    return qi_refuse_disabled();
}

static quire_result refuse_copy_to_page(void *state, const quire_native_page *page, uint64_t offset,
                                        const void *data, uint64_t size)
{
    (void)data;
    return refuse_range(state, page, offset, size);
}

static quire_result refuse_copy_from_page(void *state, const quire_native_page *page,
                                          uint64_t offset, void *data, uint64_t size)
{
    (void)data;
    return refuse_range(state, page, offset, size);
}

static quire_result refuse_fill_page(void *state, const quire_native_page *page, uint64_t offset,
                                     uint64_t size, uint8_t value)
{
    (void)value;
    return refuse_range(state, page, offset, size);
}

/* For copy_pages and copy_peer. */
static quire_result refuse_copy(void *state, const quire_copy_job *job)
{
    (void)state;
    (void)job;
    return qi_refuse_disabled();
}

/* For write_many and read_many. */
static quire_result refuse_copies(void *state, const quire_page_copy *copies, uint64_t count)
{
    (void)state;
    (void)copies;
    (void)count;
    return qi_refuse_disabled();
}

static quire_result refuse_heap_budget(void *state, uint32_t heap, quire_heap_budget *budget)
{
    (void)state;
    (void)heap;
    (void)budget;
    return qi_refuse_disabled();
}

/* ---- objects ------------------------------------------------------------------------------ */

static quire_result refuse_image_requirements(void *state, const quire_image_options *options,
                                              quire_requirements *requirements)
{
    (void)state;
    (void)options;
    (void)requirements;
    return qi_refuse_disabled();
}

static quire_result refuse_object_create(void *state, const quire_object_request *request,
                                         uint64_t *native, quire_requirements *requirements)
{
    (void)state;
    (void)request;
    (void)native;
    (void)requirements;
    return qi_refuse_disabled();
}

static quire_result refuse_object_bind(void *state, quire_object object, uint64_t native,
                                       const quire_native_page *page, uint64_t offset)
{
    (void)object;
    return refuse_range(state, page, native, offset);
}

static void ignore_object(void *state, quire_object object, uint64_t native)
{
    (void)state;
    (void)object;
    (void)native;
}

/* ---- streams ------------------------------------------------------------------------------ */

static quire_result refuse_stream_create(void *state, const void *description, uint64_t *stream)
{
    (void)state;
    (void)description;
    (void)stream;
    return qi_refuse_disabled();
}

static void ignore_stream(void *state, uint64_t stream)
{
    (void)state;
    (void)stream;
}

/* For stream_mark and stream_passed. */
static quire_result refuse_stream_value(void *state, uint64_t stream, uint64_t *value)
{
    (void)state;
    (void)stream;
    (void)value;
    return qi_refuse_disabled();
}

static quire_result refuse_stream_await(void *state, uint64_t stream, uint64_t value,
                                        uint64_t nanoseconds, bool *has_passed)
{
    (void)value;
    (void)nanoseconds;
    (void)has_passed;
    return refuse_stream_value(state, stream, NULL);
}

static quire_result refuse_stream_order(void *state, uint64_t later, uint64_t earlier,
                                        uint64_t value)
{
    (void)earlier;
    (void)value;
    return refuse_stream_value(state, later, NULL);
}

static quire_result refuse_stream_copy(void *state, uint64_t stream, const quire_copy_job *job)
{
    (void)stream;
    return refuse_copy(state, job);
}

static quire_result refuse_stream_fill(void *state, uint64_t stream, const quire_native_page *page,
                                       uint64_t offset, uint64_t size, uint8_t value)
{
    (void)stream;
    return refuse_fill_page(state, page, offset, size, value);
}

static quire_result refuse_stream_copies(void *state, uint64_t stream,
                                         const quire_page_copy *copies, uint64_t count)
{
    (void)stream;
    return refuse_copies(state, copies, count);
}

static uint64_t refuse_device_address(void *state, const quire_native_page *page, uint64_t buffer)
{
    (void)state;
    (void)page;
    (void)buffer;
    return 0;
}

/* ---- the table ---------------------------------------------------------------------------- */

/* `describe` is missing: it is called only when a device is created. */
static const quire_backend DISABLED = {
    .page_create = refuse_page_create,
    .page_destroy = ignore_page,
    .map = refuse_map,
    .unmap = ignore_page,
    .flush = refuse_range,
    .invalidate = refuse_range,
    .copy_to_page = refuse_copy_to_page,
    .copy_from_page = refuse_copy_from_page,
    .image_requirements = refuse_image_requirements,
    .object_create = refuse_object_create,
    .object_bind = refuse_object_bind,
    .object_destroy = ignore_object,
    .heap_budget = refuse_heap_budget,
    .fill_page = refuse_fill_page,
    .copy_pages = refuse_copy,
    .copy_peer = refuse_copy,
    .stream_create = refuse_stream_create,
    .stream_destroy = ignore_stream,
    .stream_mark = refuse_stream_value,
    .stream_passed = refuse_stream_value,
    .stream_await = refuse_stream_await,
    .stream_order = refuse_stream_order,
    .stream_copy = refuse_stream_copy,
    .stream_fill = refuse_stream_fill,
    .flush_many = refuse_ranges,
    .invalidate_many = refuse_ranges,
    .page_back = refuse_spans,
    .page_unback = ignore_spans,
    .device_address = refuse_device_address,
    .write_many = refuse_copies,
    .read_many = refuse_copies,
    .stream_write_many = refuse_stream_copies,
};

void qi_device_disable(quire_device *device)
{
    const quire_backend own = device->table;
    quire_backend *table = &device->table;
    device->is_disabled = true;
    *table = DISABLED;
    table->size = own.size;
    table->name = own.name;
    table->features = own.features;
    if (!qi_device_offers(device, QUIRE_BACKEND_FORK))
        return;
    /* this backend knows of the fork: it destroys only what the child owns */
    table->page_destroy = own.page_destroy;
    table->unmap = own.unmap;
    table->object_destroy = own.object_destroy;
    table->stream_destroy = own.stream_destroy;
    table->destroy = own.destroy;
    table->fork_prepare = own.fork_prepare;
    table->fork_done = own.fork_done;
    table->fork_child = own.fork_child;
}
