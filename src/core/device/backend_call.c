/*
 * door.c - the one door to the functions of a backend (see device.h and door.h).
 */
#include "src/base/bits.h"
#include "src/base/clock.h"
#include "src/base/result.h"
#include "src/core/device/backend_call.h"

/* ---- through the door --------------------------------------------------------------------- */

qi_backend_call qi_backend_call_begin(void)
{
    qi_lock_assert_none();
    return (qi_backend_call){.nanoseconds = qi_clock(), .errors = qi_error_count()};
}

/*
 * Objects are made and ended by the thousand, and reading the clock twice costs as much as a
 * driver's call: these are counted and not timed.
 */
static qi_backend_call enter_untimed(void)
{
    qi_lock_assert_none();
    return (qi_backend_call){.errors = qi_error_count()};
}

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

quire_result qi_backend_answer(const char *backend, quire_result result, uint64_t errors_before)
{
    if (!may_answer(result))
        return quire_backend_fail(QUIRE_ERROR_BACKEND_FAILURE, result,
                                  "backend %s answered %d, which no backend may", backend,
                                  (int)result);
    if (result && qi_error_count() == errors_before)
        return qi_fail_text(result, "backend %s failed and gave no reason", backend);
    return result;
}

quire_result qi_backend_call_end(quire_device *device, qi_calls *calls, qi_backend_call entered,
                                 quire_result result)
{
    uint64_t spent = qi_clock() - entered.nanoseconds;
    qi_atomic_add_u64(&device->calls.count, 1);
    qi_atomic_add_u64(&device->calls.nanoseconds, spent);
    if (calls) {
        qi_atomic_add_u64(&calls->count, 1);
        qi_atomic_add_u64(&calls->nanoseconds, spent);
    }
    return qi_backend_answer(device->info.backend, result, entered.errors);
}

static quire_result leave_untimed(quire_device *device, qi_calls *calls, qi_backend_call entered,
                                  quire_result result)
{
    qi_atomic_add_u64(&device->calls.count, 1);
    if (calls)
        qi_atomic_add_u64(&calls->count, 1);
    return result ? qi_backend_answer(device->info.backend, result, entered.errors) : QUIRE_SUCCESS;
}

/* ---- pages -------------------------------------------------------------------------------- */

quire_result qi_device_heap_budget(quire_device *device, uint32_t heap, quire_heap_budget *budget)
{
    *budget = (quire_heap_budget){0};
    qi_backend_call entered = qi_backend_call_begin();
    return qi_backend_call_end(device, NULL, entered,
                               device->table.heap_budget(device->state, heap, budget));
}

static void count_bytes(quire_device *device, uint64_t size)
{
    uint64_t reserved = qi_atomic_add_u64(&device->reserved_bytes, size) + size;
    qi_atomic_raise_u64(&device->peak_reserved_bytes, reserved);
}

static void raw_destroy(quire_device *device, qi_calls *calls, const quire_native_page *page)
{
    qi_backend_call entered = qi_backend_call_begin();
    device->table.page_destroy(device->state, page);
    qi_backend_call_end(device, calls, entered, QUIRE_SUCCESS);
}

/* A page of less than was asked or promised would let allocations reach beyond it. Memory that
   existed before lies where it lies. */
static quire_result check_page(const quire_device *device, const quire_page_request *request,
                               const quire_native_page *page)
{
    uint64_t promised = device->info.limits.page_alignment;
    uint64_t alignment = promised ? promised : request->alignment;
    if (request->max_size && page->size != request->max_size)
        return qi_fail_with(QUIRE_ERROR_BACKEND_FAILURE,
                            "the backend made a page that may grow to %b where %b were asked",
                            page->size, request->max_size);
    if (page->size < request->size)
        return qi_fail_with(QUIRE_ERROR_BACKEND_FAILURE,
                            "the backend made a page of %b where %b were asked", page->size,
                            request->size);
    if (!request->description && qi_padding(page->address, alignment))
        return qi_fail_with(QUIRE_ERROR_BACKEND_FAILURE,
                            "the backend made a page at %x, which is not a multiple of %b",
                            page->address, alignment);
    return QUIRE_SUCCESS;
}

static quire_result raw_create(quire_device *device, qi_calls *calls,
                               const quire_page_request *request, quire_native_page *page)
{
    *page = (quire_native_page){0};
    qi_backend_call entered = qi_backend_call_begin();
    quire_result result = qi_backend_call_end(
        device, calls, entered, device->table.page_create(device->state, request, page));
    if (result)
        return result;
    result = check_page(device, request, page);
    if (result)
        raw_destroy(device, calls, page);
    return result;
}

static quire_result map_page(quire_device *device, qi_calls *calls, qi_device_page *page)
{
    page->host = NULL;
    if (!(device->info.kinds[page->kind].flags & QUIRE_HOST_VISIBLE))
        return QUIRE_SUCCESS;
    qi_backend_call entered = qi_backend_call_begin();
    quire_result result = qi_backend_call_end(
        device, calls, entered, device->table.map(device->state, &page->native, &page->host));
    if (!result && !page->host)
        result = qi_fail(QUIRE_ERROR_BACKEND_FAILURE, "the backend mapped a page to NULL");
    return result;
}

/* Makes and maps a page for which the bytes asked are taken. */
static quire_result make_page(qi_taking *taking, qi_calls *calls, const quire_page_request *request,
                              qi_device_page *page)
{
    quire_device *device = taking->device;
    quire_result result = raw_create(device, calls, request, &page->native);
    if (result)
        return result;
    page->size = request->max_size ? request->size : page->native.size;
    if (page->size > request->size)
        result = qi_budget_take_more(taking, page->size - request->size);
    if (!result)
        result = map_page(device, calls, page);
    if (result)
        raw_destroy(device, calls, &page->native);
    return result;
}

static qi_taking taking_for(quire_device *device, qi_account *account, uint32_t kind)
{
    return (qi_taking){.device = device, .memory = account, .heap = device->info.kinds[kind].heap};
}

/* What was taken is used, or given back where the backend failed. */
static quire_result settle(const qi_taking *taking, quire_result result)
{
    if (result) {
        qi_budget_give(taking);
        return result;
    }
    qi_budget_made(taking);
    count_bytes(taking->device, taking->bytes);
    return QUIRE_SUCCESS;
}

quire_result qi_device_page_create(quire_device *device, qi_calls *calls, qi_account *account,
                                   const quire_page_request *request, qi_device_page *page)
{
    page->kind = request->kind;
    qi_taking taking = taking_for(device, account, request->kind);
    taking.name = request->label;
    quire_result result = qi_budget_take(&taking, request->size);
    return result ? result : settle(&taking, make_page(&taking, calls, request, page));
}

void qi_device_page_destroy(quire_device *device, qi_calls *calls, qi_account *account,
                            const qi_device_page *page)
{
    qi_taking taken = taking_for(device, account, page->kind);
    taken.bytes = page->size;
    qi_budget_ending(&taken);
    if (page->host) {
        qi_backend_call entered = qi_backend_call_begin();
        device->table.unmap(device->state, &page->native);
        qi_backend_call_end(device, calls, entered, QUIRE_SUCCESS);
    }
    raw_destroy(device, calls, &page->native);
    qi_budget_give(&taken);
    qi_atomic_sub_u64(&device->reserved_bytes, taken.bytes);
}

static quire_result resize(quire_device *device, qi_calls *calls, const quire_native_page *page,
                           uint64_t from, uint64_t to)
{
    qi_backend_call entered = qi_backend_call_begin();
    return qi_backend_call_end(device, calls, entered,
                               device->table.page_resize(device->state, page, from, to));
}

quire_result qi_device_page_grow(quire_device *device, qi_calls *calls, qi_account *account,
                                 const char *name, const qi_device_page *page, uint64_t to)
{
    qi_taking taking = taking_for(device, account, page->kind);
    taking.name = name;
    taking.is_part = true;
    quire_result result = qi_budget_take(&taking, to - page->size);
    return result ? result : settle(&taking, resize(device, calls, &page->native, page->size, to));
}

void qi_device_page_shrink(quire_device *device, qi_calls *calls, qi_account *account,
                           const qi_device_page *page, uint64_t from, uint64_t to)
{
    qi_taking taken = taking_for(device, account, page->kind);
    taken.bytes = from - to;
    taken.is_part = true;
    qi_budget_ending(&taken);
    qi_error before = qi_error_save();
    qi_ignore(resize(device, calls, &page->native, from, to));
    qi_error_restore(&before);
    qi_budget_give(&taken);
    qi_atomic_sub_u64(&device->reserved_bytes, taken.bytes);
}

/* ---- contents ----------------------------------------------------------------------------- */

quire_result qi_device_check_bytes(const quire_device *device, uint32_t kind)
{
    if (!(device->info.kinds[kind].flags & QUIRE_OBJECTS_ONLY))
        return QUIRE_SUCCESS;
    return qi_fail_with(QUIRE_ERROR_UNSUPPORTED,
                        "memory kind %u is for objects only: it has no bytes to write or read",
                        kind);
}

quire_result qi_device_flush(quire_device *device, qi_calls *calls, const qi_device_page *page,
                             uint64_t offset, uint64_t size)
{
    qi_backend_call entered = qi_backend_call_begin();
    return qi_backend_call_end(device, calls, entered,
                               device->table.flush(device->state, &page->native, offset, size));
}

quire_result qi_device_invalidate(quire_device *device, qi_calls *calls, const qi_device_page *page,
                                  uint64_t offset, uint64_t size)
{
    qi_backend_call entered = qi_backend_call_begin();
    return qi_backend_call_end(
        device, calls, entered,
        device->table.invalidate(device->state, &page->native, offset, size));
}

typedef quire_result (*sync_function)(void *, const quire_native_page *, uint64_t, uint64_t);

static quire_result sync_each(quire_device *device, qi_calls *calls, sync_function sync,
                              const quire_page_range *ranges, uint32_t count)
{
    quire_result result = QUIRE_SUCCESS;
    for (uint32_t i = 0; i < count && !result; i++) {
        qi_backend_call entered = qi_backend_call_begin();
        result = qi_backend_call_end(
            device, calls, entered,
            sync(device->state, ranges[i].page, ranges[i].offset, ranges[i].size));
    }
    return result;
}

quire_result qi_device_flush_many(quire_device *device, qi_calls *calls,
                                  const quire_page_range *ranges, uint32_t count)
{
    if (!qi_device_offers(device, QUIRE_BACKEND_FLUSH_MANY))
        return sync_each(device, calls, device->table.flush, ranges, count);
    qi_backend_call entered = qi_backend_call_begin();
    return qi_backend_call_end(device, calls, entered,
                               device->table.flush_many(device->state, ranges, count));
}

quire_result qi_device_invalidate_many(quire_device *device, qi_calls *calls,
                                       const quire_page_range *ranges, uint32_t count)
{
    if (!qi_device_offers(device, QUIRE_BACKEND_FLUSH_MANY))
        return sync_each(device, calls, device->table.invalidate, ranges, count);
    qi_backend_call entered = qi_backend_call_begin();
    return qi_backend_call_end(device, calls, entered,
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
    qi_backend_call entered = qi_backend_call_begin();
    return qi_backend_call_end(
        device, calls, entered,
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
    qi_backend_call entered = qi_backend_call_begin();
    return qi_backend_call_end(
        device, calls, entered,
        device->table.copy_from_page(device->state, &page->native, offset, data, size));
}

quire_result qi_device_fill_page(quire_device *device, qi_calls *calls, const qi_device_page *page,
                                 uint64_t offset, uint64_t size, uint8_t value)
{
    quire_result result = qi_device_check_bytes(device, page->kind);
    if (result)
        return result;
    qi_backend_call entered = qi_backend_call_begin();
    return qi_backend_call_end(
        device, calls, entered,
        device->table.fill_page(device->state, &page->native, offset, size, value));
}

uint64_t qi_device_address(quire_device *device, qi_calls *calls, const qi_device_page *page,
                           uint64_t buffer)
{
    if (!qi_device_offers(device, QUIRE_BACKEND_DEVICE_ADDRESS))
        return 0;
    qi_backend_call entered = enter_untimed();
    uint64_t address = device->table.device_address(device->state, &page->native, buffer);
    qi_ignore(leave_untimed(device, calls, entered, QUIRE_SUCCESS));
    return address;
}

/* ---- objects ------------------------------------------------------------------------------ */

/* What a backend asks must be possible at all. */
static quire_result check_requirements(const quire_requirements *requirements)
{
    if (requirements->size && qi_is_power_of_two(requirements->alignment) &&
        requirements->kind_mask)
        return QUIRE_SUCCESS;
    return qi_fail_with(
        QUIRE_ERROR_BACKEND_FAILURE,
        "the backend asks for %u bytes, alignment %u, memory kinds %x for an object",
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
    qi_backend_call entered = qi_backend_call_begin();
    quire_result result =
        qi_backend_call_end(device, calls, entered,
                            device->table.image_requirements(device->state, options, requirements));
    return result ? result : check_requirements(requirements);
}

quire_result qi_device_object_create(quire_device *device, qi_calls *calls,
                                     const quire_object_request *request, uint64_t *native,
                                     quire_requirements *requirements)
{
    *requirements = (quire_requirements){0};
    *native = 0;
    qi_backend_call entered = enter_untimed();
    quire_result result =
        leave_untimed(device, calls, entered,
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
    qi_backend_call entered = enter_untimed();
    return leave_untimed(
        device, calls, entered,
        device->table.object_bind(device->state, object, native, &page->native, offset));
}

void qi_device_object_destroy(quire_device *device, qi_calls *calls, quire_object object,
                              uint64_t native)
{
    qi_backend_call entered = enter_untimed();
    device->table.object_destroy(device->state, object, native);
    leave_untimed(device, calls, entered, QUIRE_SUCCESS);
}
