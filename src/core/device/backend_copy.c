/*
 * door_copy.c - the door to a backend's copies between pages, and to what it does on streams with
 * the contents of pages (see device.h).
 */
#include "src/core/device/backend_call.h"

quire_result qi_device_copy_pages(quire_device *device, qi_calls *calls, const quire_copy_job *job)
{
    qi_backend_call entered = qi_backend_call_begin();
    return qi_backend_call_end(device, calls, entered,
                               device->table.copy_pages(device->state, job));
}

quire_result qi_device_copy_peer(quire_device *device, qi_calls *calls, const quire_copy_job *job)
{
    qi_backend_call entered = qi_backend_call_begin();
    return qi_backend_call_end(device, calls, entered, device->table.copy_peer(device->state, job));
}

quire_result qi_device_stream_copy(quire_device *device, qi_calls *calls, uint64_t stream,
                                   const quire_copy_job *job)
{
    qi_backend_call entered = qi_backend_call_begin();
    return qi_backend_call_end(device, calls, entered,
                               device->table.stream_copy(device->state, stream, job));
}

quire_result qi_device_stream_fill(quire_device *device, qi_calls *calls, uint64_t stream,
                                   const qi_device_page *page, const qi_stream_fill *fill)
{
    qi_backend_call entered = qi_backend_call_begin();
    return qi_backend_call_end(device, calls, entered,
                               device->table.stream_fill(device->state, stream, &page->native,
                                                         fill->offset, fill->size, fill->value));
}
