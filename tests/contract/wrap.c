/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * wrap.c - each function of the table calls the one of the inner backend, and a missing one stays
 * missing, so that the wrapped backend has no further features. See wrap.h.
 */
#include "tests/contract/wrap.h"

quire_result wrap_describe(void *state, quire_device_info *info)
{
    const contract_wrap *w = state;
    *info = w->info;
    return QUIRE_SUCCESS;
}

void wrap_destroy(void *state)
{
    contract_wrap *w = state;
    CHECK_OK(quire_device_destroy(&w->opened.device));
}

static quire_result page_create(void *state, const quire_page_request *request,
                                quire_native_page *page)
{
    const contract_wrap *w = state;
    return w->base->page_create(w->state, request, page);
}

static void page_destroy(void *state, const quire_native_page *page)
{
    const contract_wrap *w = state;
    w->base->page_destroy(w->state, page);
}

static quire_result map(void *state, const quire_native_page *page, void **pointer)
{
    const contract_wrap *w = state;
    return w->base->map(w->state, page, pointer);
}

static void unmap(void *state, const quire_native_page *page)
{
    const contract_wrap *w = state;
    w->base->unmap(w->state, page);
}

static quire_result flush(void *state, const quire_native_page *page, uint64_t offset,
                          uint64_t size)
{
    const contract_wrap *w = state;
    return w->base->flush(w->state, page, offset, size);
}

static quire_result invalidate(void *state, const quire_native_page *page, uint64_t offset,
                               uint64_t size)
{
    const contract_wrap *w = state;
    return w->base->invalidate(w->state, page, offset, size);
}

static quire_result copy_to_page(void *state, const quire_native_page *page, uint64_t offset,
                                 const void *data, uint64_t size)
{
    const contract_wrap *w = state;
    return w->base->copy_to_page(w->state, page, offset, data, size);
}

static quire_result copy_from_page(void *state, const quire_native_page *page, uint64_t offset,
                                   void *data, uint64_t size)
{
    const contract_wrap *w = state;
    return w->base->copy_from_page(w->state, page, offset, data, size);
}

static quire_result image_requirements(void *state, const quire_image_options *options,
                                       quire_requirements *needs)
{
    const contract_wrap *w = state;
    return w->base->image_requirements(w->state, options, needs);
}

static quire_result object_create(void *state, const quire_object_request *request,
                                  uint64_t *native, quire_requirements *needs)
{
    const contract_wrap *w = state;
    return w->base->object_create(w->state, request, native, needs);
}

static quire_result object_bind(void *state, quire_object object, uint64_t native,
                                const quire_native_page *page, uint64_t offset)
{
    const contract_wrap *w = state;
    return w->base->object_bind(w->state, object, native, page, offset);
}

static void object_destroy(void *state, quire_object object, uint64_t native)
{
    const contract_wrap *w = state;
    w->base->object_destroy(w->state, object, native);
}

static quire_result heap_budget(void *state, uint32_t heap, quire_heap_budget *budget)
{
    const contract_wrap *w = state;
    return w->base->heap_budget(w->state, heap, budget);
}

static quire_result fill_page(void *state, const quire_native_page *page, uint64_t offset,
                              uint64_t size, uint8_t value)
{
    const contract_wrap *w = state;
    return w->base->fill_page(w->state, page, offset, size, value);
}

quire_result wrap_page_back(void *state, const quire_native_page *page, const quire_span *spans,
                            uint32_t count)
{
    const contract_wrap *w = state;
    return w->base->page_back(w->state, page, spans, count);
}

void wrap_page_unback(void *state, const quire_native_page *page, const quire_span *spans,
                      uint32_t count, bool moves)
{
    const contract_wrap *w = state;
    w->base->page_unback(w->state, page, spans, count, moves);
}

static uint64_t device_address(void *state, const quire_native_page *page, uint64_t buffer)
{
    const contract_wrap *w = state;
    return w->base->device_address(w->state, page, buffer);
}

/* Translates the job for the inner devices. */
static quire_copy_job inner_job(const quire_copy_job *job)
{
    quire_copy_job inner = *job;
    if (job->to_state)
        inner.to_state = ((const contract_wrap *)job->to_state)->state;
    if (job->from_state)
        inner.from_state = ((const contract_wrap *)job->from_state)->state;
    return inner;
}

quire_result wrap_copy_pages(void *state, const quire_copy_job *job)
{
    const contract_wrap *w = state;
    quire_copy_job inner = inner_job(job);
    return w->base->copy_pages(w->state, &inner);
}

static quire_result copy_peer(void *state, const quire_copy_job *job)
{
    const contract_wrap *w = state;
    quire_copy_job inner = inner_job(job);
    return w->base->copy_peer(w->state, &inner);
}

/* ---- streams, which belong to the inner backend ------------------------------------------- */

static quire_result stream_create(void *state, const void *description, uint64_t *stream)
{
    const contract_wrap *w = state;
    return w->base->stream_create(w->state, description, stream);
}

static void stream_destroy(void *state, uint64_t stream)
{
    const contract_wrap *w = state;
    w->base->stream_destroy(w->state, stream);
}

static quire_result stream_mark(void *state, uint64_t stream, uint64_t *value)
{
    const contract_wrap *w = state;
    return w->base->stream_mark(w->state, stream, value);
}

static quire_result stream_passed(void *state, uint64_t stream, uint64_t *value)
{
    const contract_wrap *w = state;
    return w->base->stream_passed(w->state, stream, value);
}

static quire_result stream_await(void *state, uint64_t stream, uint64_t value, uint64_t nanoseconds,
                                 bool *has_passed)
{
    const contract_wrap *w = state;
    return w->base->stream_await(w->state, stream, value, nanoseconds, has_passed);
}

static quire_result stream_order(void *state, uint64_t later, uint64_t earlier, uint64_t value)
{
    const contract_wrap *w = state;
    return w->base->stream_order(w->state, later, earlier, value);
}

quire_result wrap_stream_copy(void *state, uint64_t stream, const quire_copy_job *job)
{
    const contract_wrap *w = state;
    quire_copy_job inner = inner_job(job);
    return w->base->stream_copy(w->state, stream, &inner);
}

static quire_result stream_fill(void *state, uint64_t stream, const quire_native_page *page,
                                uint64_t offset, uint64_t size, uint8_t value)
{
    const contract_wrap *w = state;
    return w->base->stream_fill(w->state, stream, page, offset, size, value);
}

static quire_result write_many(void *state, const quire_page_copy *copies, uint64_t count)
{
    const contract_wrap *w = state;
    return w->base->write_many(w->state, copies, count);
}

static quire_result read_many(void *state, const quire_page_copy *copies, uint64_t count)
{
    const contract_wrap *w = state;
    return w->base->read_many(w->state, copies, count);
}

static quire_result stream_write_many(void *state, uint64_t stream, const quire_page_copy *copies,
                                      uint64_t count)
{
    const contract_wrap *w = state;
    return w->base->stream_write_many(w->state, stream, copies, count);
}

/* The feature groups of the inner backend, and no others. */
static quire_backend table_for(const quire_backend *base)
{
    return (quire_backend){
        .size = sizeof(quire_backend),
        .name = base->name,
        /* lists are processed one by one; the inner device detects forks itself */
        .features = base->features & ~(QUIRE_BACKEND_FLUSH_MANY | QUIRE_BACKEND_FORK),
        .describe = wrap_describe,
        .page_create = page_create,
        .page_destroy = page_destroy,
        .destroy = wrap_destroy,
        .map = base->map ? map : NULL,
        .unmap = base->unmap ? unmap : NULL,
        .flush = base->flush ? flush : NULL,
        .invalidate = base->invalidate ? invalidate : NULL,
        .copy_to_page = base->copy_to_page ? copy_to_page : NULL,
        .copy_from_page = base->copy_from_page ? copy_from_page : NULL,
        .image_requirements = base->image_requirements ? image_requirements : NULL,
        .object_create = base->object_create ? object_create : NULL,
        .object_bind = base->object_bind ? object_bind : NULL,
        .object_destroy = base->object_destroy ? object_destroy : NULL,
        .heap_budget = base->heap_budget ? heap_budget : NULL,
        .fill_page = base->fill_page ? fill_page : NULL,
        .copy_pages = base->copy_pages ? wrap_copy_pages : NULL,
        .copy_peer = base->copy_peer ? copy_peer : NULL,
        .stream_create = base->stream_create ? stream_create : NULL,
        .stream_destroy = base->stream_destroy ? stream_destroy : NULL,
        .stream_mark = base->stream_mark ? stream_mark : NULL,
        .stream_passed = base->stream_passed ? stream_passed : NULL,
        .stream_await = base->stream_await ? stream_await : NULL,
        .stream_order = base->stream_order ? stream_order : NULL,
        .stream_copy = base->stream_copy ? wrap_stream_copy : NULL,
        .stream_fill = base->stream_fill ? stream_fill : NULL,
        .page_back = base->page_back ? wrap_page_back : NULL,
        .page_unback = base->page_unback ? wrap_page_unback : NULL,
        .device_address = base->device_address ? device_address : NULL,
        .write_many = base->write_many ? write_many : NULL,
        .read_many = base->read_many ? read_many : NULL,
        .stream_write_many = base->stream_write_many ? stream_write_many : NULL,
    };
}

quire_result wrap_begin(contract_wrap *w, const contract_subject *inner,
                        const quire_host_memory *host)
{
    w->inner = inner;
    quire_result result = inner->open(inner, host, &w->opened);
    if (result)
        return result;
    CHECK_OK(quire_device_get_info(w->opened.device, &w->info));
    w->base = quire_device_backend(w->opened.device);
    w->state = quire_device_state(w->opened.device);
    w->table = table_for(w->base);
    return QUIRE_SUCCESS;
}

quire_result wrap_finish(contract_wrap *w, const quire_host_memory *host, contract_opened *opened)
{
    opened->own = w;
    quire_result result = quire_device_create(
        &w->table, w, &(quire_device_options){.host_memory = host}, &opened->device);
    if (!result)
        return result;
    wrap_destroy(w);
    wrap_close(w);
    return result;
}

void wrap_close(contract_wrap *w)
{
    if (w->inner->close)
        w->inner->close(w->opened.own);
}
