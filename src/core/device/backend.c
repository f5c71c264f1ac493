/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * backend.c - every call of a backend function, counted and checked.
 *
 * A backend can come from outside of quire. Its answers are checked here, once for all callers, so
 * that the core can rely on them. No lock is held in a call.
 */
#include "src/core/device/device.h"

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/base/system.h"

/* ---- begin and end ------------------------------------------------------------------------ */

/* What the end of a call needs from its beginning. */
typedef struct qi_backend_call {
    uint64_t nanoseconds; /* of the clock; 0 in untimed calls */
    uint64_t errors;      /* the thread's errors so far: shows whether the backend gave a reason */
} qi_backend_call;

/*
 * A call is written as begin, the function of the table, end. The begin asserts that the thread
 * holds no lock. The end counts the call for the device and, unless `calls` is NULL, for a memory,
 * and checks the answer. Untimed calls are those of objects: programs create and destroy thousands
 * of them, and two readings of the clock cost as much as a driver's call.
 */
static qi_backend_call begin_call(void)
{
    qi_lock_assert_none();
    return (qi_backend_call){.nanoseconds = qi_clock(), .errors = qi_error_count()};
}

static qi_backend_call begin_untimed(void)
{
    qi_lock_assert_none();
    return (qi_backend_call){.errors = qi_error_count()};
}

/* Only the core returns the results that are missing: a backend knows no handles, names or
   states. */
static bool may_answer(quire_result result)
{
    switch (result) {
    case QUIRE_SUCCESS:
    case QUIRE_ERROR_INVALID_ARGUMENT:
    case QUIRE_ERROR_OUT_OF_DEVICE_MEMORY:
    case QUIRE_ERROR_OUT_OF_HOST_MEMORY:
    case QUIRE_ERROR_TOO_MANY_PAGES:
    case QUIRE_ERROR_UNSUPPORTED:
    case QUIRE_ERROR_NOT_PERMITTED:
    case QUIRE_ERROR_DEVICE_LOST:
    case QUIRE_ERROR_BACKEND_FAILURE:
        return true;
    default:
        return false;
    }
}

/* Sets the thread's last error with a backend's native code, and returns `result`. */
QUIRE_PRINTF(3, 4)
static quire_result judge(quire_result result, int64_t native_code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    qi_fail_native(result, native_code, format, args);
    va_end(args);
    return result;
}

quire_result qi_backend_answer(const char *backend, quire_result result, uint64_t errors_before)
{
    if (!may_answer(result))
        return judge(QUIRE_ERROR_BACKEND_FAILURE, result,
                     "backend %s answered %d, which a backend must not", backend, (int)result);
    if (result && qi_error_count() == errors_before)
        return qi_fail_text(result, "backend %s failed and gave no reason", backend);
    return result;
}

/*
 * Counts the call and its time for the device and, unless `calls` is NULL, for a memory. Returns
 * `result`, or BACKEND_FAILURE if a backend may not answer that.
 */
static quire_result end_call(quire_device *device, qi_calls *calls, qi_backend_call call,
                             quire_result result)
{
    uint64_t spent = qi_clock() - call.nanoseconds;
    qi_atomic_add_u64(&device->calls.count, 1);
    qi_atomic_add_u64(&device->calls.nanoseconds, spent);
    if (calls) {
        qi_atomic_add_u64(&calls->count, 1);
        qi_atomic_add_u64(&calls->nanoseconds, spent);
    }
    return qi_backend_answer(device->info.backend, result, call.errors);
}

/* Like end_call, without reading the clock. */
static quire_result end_untimed(quire_device *device, qi_calls *calls, qi_backend_call call,
                                quire_result result)
{
    qi_atomic_add_u64(&device->calls.count, 1);
    if (calls)
        qi_atomic_add_u64(&calls->count, 1);
    return result ? qi_backend_answer(device->info.backend, result, call.errors) : QUIRE_SUCCESS;
}

quire_result qi_device_heap_budget(quire_device *device, uint32_t heap, quire_heap_budget *budget)
{
    *budget = (quire_heap_budget){0};
    qi_backend_call call = begin_call();
    return end_call(device, NULL, call, device->table.heap_budget(device->state, heap, budget));
}

/* ---- pages -------------------------------------------------------------------------------- */

/*
 * A claim (budget.h) surrounds each of them: bytes count against every limit from before the
 * backend makes them until after it destroyed them.
 */

/* Raises the peak as well. */
static void count_bytes(quire_device *device, uint64_t size)
{
    uint64_t reserved = qi_atomic_add_u64(&device->reserved_bytes, size) + size;
    qi_atomic_raise_u64(&device->peak_reserved_bytes, reserved);
}

static void destroy_native(quire_device *device, qi_calls *calls, const quire_native_page *page)
{
    qi_backend_call call = begin_call();
    device->table.page_destroy(device->state, page);
    end_call(device, calls, call, QUIRE_SUCCESS);
}

/*
 * A page smaller than requested would let allocations reach beyond it. The address is checked only
 * for pages that the backend places: adopted memory (with a description) keeps its address.
 */
static quire_result check_page(const quire_device *device, const quire_page_request *request,
                               const quire_native_page *page)
{
    uint64_t promised = device->info.limits.page_alignment;
    uint64_t alignment = promised ? promised : request->alignment;
    if (request->max_size && page->size != request->max_size)
        return qi_fail_with(QUIRE_ERROR_BACKEND_FAILURE,
                            "the backend made an elastic page of %b where %b were requested",
                            page->size, request->max_size);
    if (page->size < request->size)
        return qi_fail_with(QUIRE_ERROR_BACKEND_FAILURE,
                            "the backend made a page of %b where %b were requested", page->size,
                            request->size);
    if (!request->description && qi_padding(page->address, alignment))
        return qi_fail_with(QUIRE_ERROR_BACKEND_FAILURE,
                            "the backend made a page at %x, which is not a multiple of %b",
                            page->address, alignment);
    return QUIRE_SUCCESS;
}

static quire_result create_native(quire_device *device, qi_calls *calls,
                                  const quire_page_request *request, quire_native_page *page)
{
    *page = (quire_native_page){0};
    qi_backend_call call = begin_call();
    quire_result result =
        end_call(device, calls, call, device->table.page_create(device->state, request, page));
    if (result)
        return result;
    result = check_page(device, request, page);
    if (result)
        destroy_native(device, calls, page);
    return result;
}

quire_result qi_device_page_map(quire_device *device, qi_calls *calls, qi_device_page *page)
{
    void *host = NULL;
    qi_backend_call call = begin_call();
    quire_result result =
        end_call(device, calls, call, device->table.map(device->state, &page->native, &host));
    if (result)
        return result;
    if (!host)
        return qi_fail(QUIRE_ERROR_BACKEND_FAILURE, "the backend mapped a page to NULL");
    page->host = host;
    return QUIRE_SUCCESS;
}

/* Does not write to the page: its destruction has only a constant one. */
static void unmap_native(quire_device *device, qi_calls *calls, const quire_native_page *page)
{
    qi_backend_call call = begin_call();
    device->table.unmap(device->state, page);
    end_call(device, calls, call, QUIRE_SUCCESS);
}

void qi_device_page_unmap(quire_device *device, qi_calls *calls, qi_device_page *page)
{
    unmap_native(device, calls, &page->native);
    page->host = NULL;
}

/*
 * Creates and maps a page whose requested bytes are claimed. An elastic page begins with the
 * requested size; of any other page all bytes that the backend made are claimed.
 */
static quire_result create_and_map(qi_budget_claim *claim, qi_calls *calls,
                                   const quire_page_request *request, qi_device_page *page)
{
    quire_device *device = claim->device;
    quire_result result = create_native(device, calls, request, &page->native);
    if (result)
        return result;
    page->bytes = request->max_size ? request->size : page->native.size;
    if (page->bytes > request->size)
        result = qi_budget_claim_more(claim, page->bytes - request->size);
    page->host = NULL;
    bool maps = device->info.kinds[page->kind].flags & QUIRE_HOST_VISIBLE && !page->on_demand;
    if (!result && maps)
        result = qi_device_page_map(device, calls, page);
    if (result)
        destroy_native(device, calls, &page->native);
    return result;
}

static qi_budget_claim claim_for(quire_device *device, qi_account *account, uint32_t kind)
{
    return (qi_budget_claim){
        .device = device, .memory = account, .heap = device->info.kinds[kind].heap};
}

/* Keeps the claim on success, and returns it on failure. */
static quire_result settle(const qi_budget_claim *claim, quire_result result)
{
    if (result) {
        qi_budget_page_failed(claim);
        return result;
    }
    qi_budget_page_made(claim);
    count_bytes(claim->device, claim->bytes);
    return QUIRE_SUCCESS;
}

quire_result qi_device_page_create(quire_device *device, qi_calls *calls, qi_account *account,
                                   qi_budget_terms *terms, const quire_page_request *request,
                                   qi_device_page *page)
{
    page->kind = request->kind;
    qi_budget_claim claim = claim_for(device, account, request->kind);
    claim.name = request->label;
    claim.terms = terms;
    quire_result result = qi_budget_claim_page(&claim, request->size);
    return result ? result : settle(&claim, create_and_map(&claim, calls, request, page));
}

void qi_device_page_destroy(quire_device *device, qi_calls *calls, qi_account *account,
                            const qi_device_page *page)
{
    qi_budget_claim claim = claim_for(device, account, page->kind);
    claim.bytes = page->bytes;
    qi_budget_begin_return(&claim);
    if (page->host)
        unmap_native(device, calls, &page->native);
    destroy_native(device, calls, &page->native);
    qi_budget_end_return(&claim);
    qi_atomic_sub_u64(&device->reserved_bytes, claim.bytes);
}

static uint64_t bytes_of(const quire_span *spans, uint32_t count)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++)
        bytes += spans[i].size;
    return bytes;
}

/* Claims the bytes that are not held. */
static quire_result claim_rest(qi_budget_claim *claim, uint64_t bytes, uint64_t held)
{
    return bytes > held ? qi_budget_claim_page(claim, bytes - held) : QUIRE_SUCCESS;
}

quire_result qi_device_page_back(quire_device *device, qi_calls *calls, qi_account *account,
                                 qi_budget_terms *terms, const char *name,
                                 const qi_device_page *page, const quire_span *spans,
                                 uint32_t count, uint64_t held)
{
    const uint64_t bytes = bytes_of(spans, count);
    qi_budget_claim claim = claim_for(device, account, page->kind);
    claim.name = name;
    claim.terms = terms;
    claim.is_part = true;
    quire_result result = claim_rest(&claim, bytes, held);
    if (result)
        return result;
    qi_backend_call call = begin_call();
    result = device->table.page_back(device->state, &page->native, spans, count);
    result = end_call(device, calls, call, result);
    if (result && bytes > held)
        qi_budget_page_failed(&claim);
    if (result)
        return result;
    count_bytes(device, bytes - held);
    claim.bytes = bytes; /* those that were held have left before */
    qi_budget_page_made(&claim);
    return QUIRE_SUCCESS;
}

static void end_claim(quire_device *device, qi_account *account, const qi_device_page *page,
                      uint64_t bytes)
{
    qi_budget_claim claim = claim_for(device, account, page->kind);
    claim.bytes = bytes;
    claim.is_part = true;
    qi_budget_end_return(&claim);
    qi_atomic_sub_u64(&device->reserved_bytes, bytes);
}

void qi_device_page_give_up(quire_device *device, qi_calls *calls, qi_account *account,
                            const qi_device_page *page, uint64_t bytes)
{
    qi_backend_call call = begin_call();
    device->table.page_unback(device->state, &page->native, NULL, 0, false);
    end_call(device, calls, call, QUIRE_SUCCESS);
    end_claim(device, account, page, bytes);
}

void qi_device_page_unback(quire_device *device, qi_calls *calls, qi_account *account,
                           const qi_device_page *page, const quire_span *spans, uint32_t count,
                           bool holds)
{
    qi_budget_claim claim = claim_for(device, account, page->kind);
    claim.bytes = bytes_of(spans, count);
    claim.is_part = true;
    qi_budget_begin_return(&claim);
    qi_error before; /* what the backend may report is dropped */
    qi_error_save(&before);
    qi_backend_call call = begin_call();
    device->table.page_unback(device->state, &page->native, spans, count, holds);
    end_call(device, calls, call, QUIRE_SUCCESS);
    qi_error_restore(&before);
    if (!holds)
        end_claim(device, account, page, claim.bytes);
}

/* ---- native objects ----------------------------------------------------------------------- */

/* Except for the query of an image's requirements these calls are not timed. */

uint64_t qi_device_address(quire_device *device, qi_calls *calls, const qi_device_page *page,
                           uint64_t buffer)
{
    if (!qi_device_offers(device, QUIRE_BACKEND_DEVICE_ADDRESS))
        return 0;
    qi_backend_call call = begin_untimed();
    uint64_t address = device->table.device_address(device->state, &page->native, buffer);
    qi_ignore(end_untimed(device, calls, call, QUIRE_SUCCESS));
    return address;
}

/* No page satisfies a size of 0, an alignment that is no power of two, or an empty mask. */
static quire_result check_requirements(const quire_requirements *requirements)
{
    if (requirements->size && qi_is_power_of_two(requirements->alignment) &&
        requirements->kind_mask)
        return QUIRE_SUCCESS;
    return qi_fail_with(
        QUIRE_ERROR_BACKEND_FAILURE,
        "the backend requires %u byte%s, alignment %u, memory kinds %x for an object",
        requirements->size, requirements->alignment, requirements->kind_mask);
}

quire_result qi_device_image_requirements(quire_device *device, qi_calls *calls,
                                          const quire_image_options *options,
                                          quire_requirements *requirements)
{
    if (!qi_device_offers(device, QUIRE_BACKEND_IMAGES))
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "backend %s has no images",
                            device->info.backend);
    *requirements = (quire_requirements){0};
    qi_backend_call call = begin_call();
    quire_result result =
        end_call(device, calls, call,
                 device->table.image_requirements(device->state, options, requirements));
    return result ? result : check_requirements(requirements);
}

quire_result qi_device_object_create(quire_device *device, qi_calls *calls,
                                     const quire_object_request *request, uint64_t *native,
                                     quire_requirements *requirements)
{
    *requirements = (quire_requirements){0};
    *native = 0;
    qi_backend_call call = begin_untimed();
    quire_result result =
        end_untimed(device, calls, call,
                    device->table.object_create(device->state, request, native, requirements));
    if (result)
        return result;
    result = check_requirements(requirements);
    if (result && *native && !request->borrowed)
        qi_device_object_destroy(device, calls, request->object, *native);
    return result;
}

quire_result qi_device_object_bind(quire_device *device, qi_calls *calls, quire_object object,
                                   uint64_t native, const qi_device_page *page, uint64_t offset)
{
    qi_backend_call call = begin_untimed();
    return end_untimed(
        device, calls, call,
        device->table.object_bind(device->state, object, native, &page->native, offset));
}

void qi_device_object_destroy(quire_device *device, qi_calls *calls, quire_object object,
                              uint64_t native)
{
    qi_backend_call call = begin_untimed();
    device->table.object_destroy(device->state, object, native);
    end_untimed(device, calls, call, QUIRE_SUCCESS);
}

/* ---- bytes -------------------------------------------------------------------------------- */

/* The caller holds a use of an allocation in the page, so that the page stays. */

quire_result qi_device_flush(quire_device *device, qi_calls *calls, const qi_device_page *page,
                             uint64_t offset, uint64_t size)
{
    qi_backend_call call = begin_call();
    return end_call(device, calls, call,
                    device->table.flush(device->state, &page->native, offset, size));
}

quire_result qi_device_invalidate(quire_device *device, qi_calls *calls, const qi_device_page *page,
                                  uint64_t offset, uint64_t size)
{
    qi_backend_call call = begin_call();
    return end_call(device, calls, call,
                    device->table.invalidate(device->state, &page->native, offset, size));
}

/* flush or invalidate of a table. */
typedef quire_result (*sync_function)(void *, const quire_native_page *, uint64_t, uint64_t);

/* One call for each range, up to the first failure. */
static quire_result sync_each(quire_device *device, qi_calls *calls, sync_function sync,
                              const quire_page_range *ranges, uint32_t count)
{
    quire_result result = QUIRE_SUCCESS;
    for (uint32_t i = 0; i < count && !result; i++) {
        qi_backend_call call = begin_call();
        result = end_call(device, calls, call,
                          sync(device->state, ranges[i].page, ranges[i].offset, ranges[i].size));
    }
    return result;
}

quire_result qi_device_flush_many(quire_device *device, qi_calls *calls,
                                  const quire_page_range *ranges, uint32_t count)
{
    if (!qi_device_offers(device, QUIRE_BACKEND_FLUSH_MANY))
        return sync_each(device, calls, device->table.flush, ranges, count);
    qi_backend_call call = begin_call();
    return end_call(device, calls, call, device->table.flush_many(device->state, ranges, count));
}

quire_result qi_device_invalidate_many(quire_device *device, qi_calls *calls,
                                       const quire_page_range *ranges, uint32_t count)
{
    if (!qi_device_offers(device, QUIRE_BACKEND_FLUSH_MANY))
        return sync_each(device, calls, device->table.invalidate, ranges, count);
    qi_backend_call call = begin_call();
    return end_call(device, calls, call,
                    device->table.invalidate_many(device->state, ranges, count));
}

quire_result qi_device_copy_to_page(quire_device *device, qi_calls *calls,
                                    const qi_device_page *page, uint64_t offset, const void *data,
                                    uint64_t size)
{
    if (!qi_device_offers(device, QUIRE_BACKEND_COPY_TO_PAGE))
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                            "backend %s cannot write to memory that is not host-visible",
                            device->info.backend);
    quire_result result = qi_device_check_bytes(device, page->kind);
    if (result)
        return result;
    qi_backend_call call = begin_call();
    return end_call(device, calls, call,
                    device->table.copy_to_page(device->state, &page->native, offset, data, size));
}

quire_result qi_device_copy_from_page(quire_device *device, qi_calls *calls,
                                      const qi_device_page *page, uint64_t offset, void *data,
                                      uint64_t size)
{
    if (!qi_device_offers(device, QUIRE_BACKEND_COPY_FROM_PAGE))
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                            "backend %s cannot read from memory that is not host-visible",
                            device->info.backend);
    quire_result result = qi_device_check_bytes(device, page->kind);
    if (result)
        return result;
    qi_backend_call call = begin_call();
    return end_call(device, calls, call,
                    device->table.copy_from_page(device->state, &page->native, offset, data, size));
}

quire_result qi_device_fill_page(quire_device *device, qi_calls *calls, const qi_device_page *page,
                                 uint64_t offset, uint64_t size, uint8_t value)
{
    quire_result result = qi_device_check_bytes(device, page->kind);
    if (result)
        return result;
    qi_backend_call call = begin_call();
    return end_call(device, calls, call,
                    device->table.fill_page(device->state, &page->native, offset, size, value));
}

/* ---- copies ------------------------------------------------------------------------------- */

/* The caller holds a use of the allocation at each end, so that both pages stay. */

quire_result qi_device_copy_pages(quire_device *device, qi_calls *calls, const quire_copy_job *job)
{
    qi_backend_call call = begin_call();
    return end_call(device, calls, call, device->table.copy_pages(device->state, job));
}

quire_result qi_device_copy_peer(quire_device *device, qi_calls *calls, const quire_copy_job *job)
{
    qi_backend_call call = begin_call();
    return end_call(device, calls, call, device->table.copy_peer(device->state, job));
}

quire_result qi_device_stream_copy(quire_device *device, qi_calls *calls, uint64_t stream,
                                   const quire_copy_job *job)
{
    qi_backend_call call = begin_call();
    return end_call(device, calls, call, device->table.stream_copy(device->state, stream, job));
}

quire_result qi_device_stream_fill(quire_device *device, qi_calls *calls, uint64_t stream,
                                   const qi_device_page *page, const qi_stream_fill *fill)
{
    qi_backend_call call = begin_call();
    return end_call(device, calls, call,
                    device->table.stream_fill(device->state, stream, &page->native, fill->offset,
                                              fill->size, fill->value));
}

quire_result qi_device_write_many(quire_device *device, qi_calls *calls,
                                  const quire_page_copy *copies, uint64_t count)
{
    qi_backend_call call = begin_call();
    return end_call(device, calls, call, device->table.write_many(device->state, copies, count));
}

quire_result qi_device_read_many(quire_device *device, qi_calls *calls,
                                 const quire_page_copy *copies, uint64_t count)
{
    qi_backend_call call = begin_call();
    return end_call(device, calls, call, device->table.read_many(device->state, copies, count));
}

quire_result qi_device_stream_write_many(quire_device *device, qi_calls *calls, uint64_t stream,
                                         const quire_page_copy *copies, uint64_t count)
{
    qi_backend_call call = begin_call();
    return end_call(device, calls, call,
                    device->table.stream_write_many(device->state, stream, copies, count));
}

/* ---- streams ------------------------------------------------------------------------------ */

/* Callers ensure that the backend offers the function. Calls count for the device alone. */

quire_result qi_device_stream_create(quire_device *device, const void *description,
                                     uint64_t *native)
{
    qi_backend_call call = begin_call();
    return end_call(device, NULL, call,
                    device->table.stream_create(device->state, description, native));
}

void qi_device_stream_destroy(quire_device *device, uint64_t native)
{
    qi_backend_call call = begin_call();
    device->table.stream_destroy(device->state, native);
    qi_ignore(end_call(device, NULL, call, QUIRE_SUCCESS));
}

quire_result qi_device_stream_mark(quire_device *device, uint64_t native, uint64_t *value)
{
    qi_backend_call call = begin_call();
    return end_call(device, NULL, call, device->table.stream_mark(device->state, native, value));
}

quire_result qi_device_stream_passed(quire_device *device, uint64_t native, uint64_t *value)
{
    qi_backend_call call = begin_call();
    return end_call(device, NULL, call, device->table.stream_passed(device->state, native, value));
}

quire_result qi_device_stream_await(quire_device *device, uint64_t native, uint64_t value,
                                    uint64_t nanoseconds, bool *has_passed)
{
    qi_backend_call call = begin_call();
    quire_result result =
        device->table.stream_await(device->state, native, value, nanoseconds, has_passed);
    bool is_busy = result == QUIRE_ERROR_BUSY; /* an answer of this function alone */
    result = end_call(device, NULL, call, is_busy ? QUIRE_SUCCESS : result);
    return is_busy ? QUIRE_ERROR_BUSY : result;
}

quire_result qi_device_stream_order(quire_device *device, uint64_t later, uint64_t earlier,
                                    uint64_t value)
{
    qi_backend_call call = begin_call();
    return end_call(device, NULL, call,
                    device->table.stream_order(device->state, later, earlier, value));
}
