/*
 * cut.c - the refusal of calls on devices that did not survive a fork, in the child (see fork.h).
 */
#include "src/base/result.h"
#include "src/core/memory/fork.h"
#include "src/core/deferred/stream.h"

quire_result qi_refuse_disabled(void)
{
    return qi_fail(QUIRE_ERROR_NOT_PERMITTED, QI_DISABLED_SENTENCE);
}

quire_result qi_stream_refuse_after_fork(const quire_stream *stream)
{
    return stream->device->is_disabled
               ? qi_refuse_disabled()
               : qi_fail_text(QUIRE_ERROR_NOT_PERMITTED,
                              "stream '%s' was made before a fork: nothing runs on it in the child",
                              stream->name);
}

/* ---- pages -------------------------------------------------------------------------------- */

static quire_result cut_page_create(void *state, const quire_page_request *request,
                                    quire_native_page *page)
{
    (void)state;
    (void)request;
    (void)page;
    return qi_refuse_disabled();
}

static void cut_page_end(void *state, const quire_native_page *page)
{
    (void)state;
    (void)page;
}

static quire_result cut_map(void *state, const quire_native_page *page, void **pointer)
{
    (void)state;
    (void)page;
    (void)pointer;
    return qi_refuse_disabled();
}

/* flush, invalidate and page_resize alike. */
static quire_result cut_range(void *state, const quire_native_page *page, uint64_t a, uint64_t b)
{
    (void)state;
    (void)page;
    (void)a;
    (void)b;
    return qi_refuse_disabled();
}

static quire_result cut_ranges(void *state, const quire_page_range *ranges, uint32_t count)
{
    (void)state;
    (void)ranges;
    (void)count;
    return qi_refuse_disabled();
}

static quire_result cut_copy_to_page(void *state, const quire_native_page *page, uint64_t offset,
                                     const void *data, uint64_t size)
{
    (void)data;
    return cut_range(state, page, offset, size);
}

static quire_result cut_copy_from_page(void *state, const quire_native_page *page, uint64_t offset,
                                       void *data, uint64_t size)
{
    (void)data;
    return cut_range(state, page, offset, size);
}

static quire_result cut_fill_page(void *state, const quire_native_page *page, uint64_t offset,
                                  uint64_t size, uint8_t value)
{
    (void)value;
    return cut_range(state, page, offset, size);
}

static quire_result cut_copy(void *state, const quire_copy_job *job)
{
    (void)state;
    (void)job;
    return qi_refuse_disabled();
}

static quire_result cut_heap_budget(void *state, uint32_t heap, quire_heap_budget *budget)
{
    (void)state;
    (void)heap;
    (void)budget;
    return qi_refuse_disabled();
}

/* ---- objects ------------------------------------------------------------------------------ */

static quire_result cut_image_requirements(void *state, const quire_image_options *options,
                                           quire_requirements *requirements)
{
    (void)state;
    (void)options;
    (void)requirements;
    return qi_refuse_disabled();
}

static quire_result cut_object_create(void *state, const quire_object_request *request,
                                      uint64_t *native, quire_requirements *requirements)
{
    (void)state;
    (void)request;
    (void)native;
    (void)requirements;
    return qi_refuse_disabled();
}

static quire_result cut_object_bind(void *state, quire_object object, uint64_t native,
                                    const quire_native_page *page, uint64_t offset)
{
    (void)object;
    return cut_range(state, page, native, offset);
}

static void cut_object_destroy(void *state, quire_object object, uint64_t native)
{
    (void)state;
    (void)object;
    (void)native;
}

/* ---- streams ------------------------------------------------------------------------------ */

static quire_result cut_stream_create(void *state, const void *description, uint64_t *stream)
{
    (void)state;
    (void)description;
    (void)stream;
    return qi_refuse_disabled();
}

static void cut_stream_destroy(void *state, uint64_t stream)
{
    (void)state;
    (void)stream;
}

/* stream_mark and stream_passed alike. */
static quire_result cut_stream_value(void *state, uint64_t stream, uint64_t *value)
{
    (void)state;
    (void)stream;
    (void)value;
    return qi_refuse_disabled();
}

static quire_result cut_stream_await(void *state, uint64_t stream, uint64_t value,
                                     uint64_t nanoseconds, bool *has_passed)
{
    (void)value;
    (void)nanoseconds;
    (void)has_passed;
    return cut_stream_value(state, stream, NULL);
}

static quire_result cut_stream_order(void *state, uint64_t later, uint64_t earlier, uint64_t value)
{
    (void)earlier;
    (void)value;
    return cut_stream_value(state, later, NULL);
}

static quire_result cut_stream_copy(void *state, uint64_t stream, const quire_copy_job *job)
{
    (void)stream;
    return cut_copy(state, job);
}

static quire_result cut_stream_fill(void *state, uint64_t stream, const quire_native_page *page,
                                    uint64_t offset, uint64_t size, uint8_t value)
{
    (void)stream;
    return cut_fill_page(state, page, offset, size, value);
}

static uint64_t cut_device_address(void *state, const quire_native_page *page, uint64_t buffer)
{
    (void)state;
    (void)page;
    (void)buffer;
    return 0;
}

/* ---- the table ---------------------------------------------------------------------------- */

static const quire_backend CUT = {
    .page_create = cut_page_create,
    .page_destroy = cut_page_end,
    .map = cut_map,
    .unmap = cut_page_end,
    .flush = cut_range,
    .invalidate = cut_range,
    .copy_to_page = cut_copy_to_page,
    .copy_from_page = cut_copy_from_page,
    .image_requirements = cut_image_requirements,
    .object_create = cut_object_create,
    .object_bind = cut_object_bind,
    .object_destroy = cut_object_destroy,
    .heap_budget = cut_heap_budget,
    .fill_page = cut_fill_page,
    .copy_pages = cut_copy,
    .copy_peer = cut_copy,
    .stream_create = cut_stream_create,
    .stream_destroy = cut_stream_destroy,
    .stream_mark = cut_stream_value,
    .stream_passed = cut_stream_value,
    .stream_await = cut_stream_await,
    .stream_order = cut_stream_order,
    .stream_copy = cut_stream_copy,
    .stream_fill = cut_stream_fill,
    .flush_many = cut_ranges,
    .invalidate_many = cut_ranges,
    .page_resize = cut_range,
    .device_address = cut_device_address,
};

void qi_device_disable(quire_device *device)
{
    const quire_backend own = device->table;
    quire_backend *table = &device->table;
    device->is_disabled = true;
    *table = CUT;
    table->size = own.size;
    table->name = own.name;
    table->features = own.features;
    if (!qi_device_offers(device, QUIRE_BACKEND_FORK))
        return;
    table->page_destroy = own.page_destroy;
    table->unmap = own.unmap;
    table->object_destroy = own.object_destroy;
    table->stream_destroy = own.stream_destroy;
    table->destroy = own.destroy;
    table->fork_prepare = own.fork_prepare;
    table->fork_done = own.fork_done;
    table->fork_child = own.fork_child;
}
