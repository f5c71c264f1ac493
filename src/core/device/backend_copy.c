/*
 * backend_copy.c - calls that copy between pages, and that copy and fill in the order of a stream
 * (see device.h).
 *
 * The caller holds a use of the allocation at each end, so that both pages stay. No lock is held.
 */
#include "src/core/device/backend_call.h"

quire_result qi_device_copy_pages(quire_device *device, qi_calls *calls, const quire_copy_job *job)
{
    qi_backend_call call = qi_backend_call_begin();
    return qi_backend_call_end(device, calls, call, device->table.copy_pages(device->state, job));
}

quire_result qi_device_copy_peer(quire_device *device, qi_calls *calls, const quire_copy_job *job)
{
    qi_backend_call call = qi_backend_call_begin();
    return qi_backend_call_end(device, calls, call, device->table.copy_peer(device->state, job));
}

quire_result qi_device_stream_copy(quire_device *device, qi_calls *calls, uint64_t stream,
                                   const quire_copy_job *job)
{
    qi_backend_call call = qi_backend_call_begin();
    return qi_backend_call_end(device, calls, call,
                               device->table.stream_copy(device->state, stream, job));
}

quire_result qi_device_stream_fill(quire_device *device, qi_calls *calls, uint64_t stream,
                                   const qi_device_page *page, const qi_stream_fill *fill)
{
    qi_backend_call call = qi_backend_call_begin();
    return qi_backend_call_end(device, calls, call,
                               device->table.stream_fill(device->state, stream, &page->native,
                                                         fill->offset, fill->size, fill->value));
}

quire_result qi_device_write_many(quire_device *device, qi_calls *calls,
                                  const quire_page_copy *copies, uint64_t count)
{
    qi_backend_call call = qi_backend_call_begin();
    return qi_backend_call_end(device, calls, call,
                               device->table.write_many(device->state, copies, count));
}

quire_result qi_device_read_many(quire_device *device, qi_calls *calls,
                                 const quire_page_copy *copies, uint64_t count)
{
    qi_backend_call call = qi_backend_call_begin();
    return qi_backend_call_end(device, calls, call,
                               device->table.read_many(device->state, copies, count));
}

quire_result qi_device_stream_write_many(quire_device *device, qi_calls *calls, uint64_t stream,
                                         const quire_page_copy *copies, uint64_t count)
{
    qi_backend_call call = qi_backend_call_begin();
    return qi_backend_call_end(
        device, calls, call, device->table.stream_write_many(device->state, stream, copies, count));
}
