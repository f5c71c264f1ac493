/*
 * backend_content.c - calls that flush, invalidate, copy and fill bytes of a page (see device.h).
 *
 * The caller holds a use of an allocation in the page, so that the page stays. No lock is held.
 */
#include "src/base/result.h"
#include "src/core/device/backend_call.h"

quire_result qi_device_flush(quire_device *device, qi_calls *calls, const qi_device_page *page,
                             uint64_t offset, uint64_t size)
{
    qi_backend_call call = qi_backend_call_begin();
    return qi_backend_call_end(device, calls, call,
                               device->table.flush(device->state, &page->native, offset, size));
}

quire_result qi_device_invalidate(quire_device *device, qi_calls *calls, const qi_device_page *page,
                                  uint64_t offset, uint64_t size)
{
    qi_backend_call call = qi_backend_call_begin();
    return qi_backend_call_end(
        device, calls, call, device->table.invalidate(device->state, &page->native, offset, size));
}

/* flush or invalidate of a table. */
typedef quire_result (*sync_function)(void *, const quire_native_page *, uint64_t, uint64_t);

/* One call for each range, up to the first failure. */
static quire_result sync_each(quire_device *device, qi_calls *calls, sync_function sync,
                              const quire_page_range *ranges, uint32_t count)
{
    quire_result result = QUIRE_SUCCESS;
    for (uint32_t i = 0; i < count && !result; i++) {
        qi_backend_call call = qi_backend_call_begin();
        result = qi_backend_call_end(
            device, calls, call,
            sync(device->state, ranges[i].page, ranges[i].offset, ranges[i].size));
    }
    return result;
}

quire_result qi_device_flush_many(quire_device *device, qi_calls *calls,
                                  const quire_page_range *ranges, uint32_t count)
{
    if (!qi_device_offers(device, QUIRE_BACKEND_FLUSH_MANY))
        return sync_each(device, calls, device->table.flush, ranges, count);
    qi_backend_call call = qi_backend_call_begin();
    return qi_backend_call_end(device, calls, call,
                               device->table.flush_many(device->state, ranges, count));
}

quire_result qi_device_invalidate_many(quire_device *device, qi_calls *calls,
                                       const quire_page_range *ranges, uint32_t count)
{
    if (!qi_device_offers(device, QUIRE_BACKEND_FLUSH_MANY))
        return sync_each(device, calls, device->table.invalidate, ranges, count);
    qi_backend_call call = qi_backend_call_begin();
    return qi_backend_call_end(device, calls, call,
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
    qi_backend_call call = qi_backend_call_begin();
    return qi_backend_call_end(
        device, calls, call,
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
    qi_backend_call call = qi_backend_call_begin();
    return qi_backend_call_end(
        device, calls, call,
        device->table.copy_from_page(device->state, &page->native, offset, data, size));
}

quire_result qi_device_fill_page(quire_device *device, qi_calls *calls, const qi_device_page *page,
                                 uint64_t offset, uint64_t size, uint8_t value)
{
    quire_result result = qi_device_check_bytes(device, page->kind);
    if (result)
        return result;
    qi_backend_call call = qi_backend_call_begin();
    return qi_backend_call_end(
        device, calls, call,
        device->table.fill_page(device->state, &page->native, offset, size, value));
}
