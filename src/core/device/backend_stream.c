/*
 * backend_stream.c - the backend's functions for streams.
 *
 * Callers ensure that the backend offers the function. Calls are counted for the device alone.
 */
#include "src/base/result.h"
#include "src/core/device/backend_call.h"

quire_result qi_device_stream_create(quire_device *device, const void *description,
                                     uint64_t *native)
{
    qi_backend_call call = qi_backend_call_begin();
    return qi_backend_call_end(device, NULL, call,
                               device->table.stream_create(device->state, description, native));
}

void qi_device_stream_destroy(quire_device *device, uint64_t native)
{
    qi_backend_call call = qi_backend_call_begin();
    device->table.stream_destroy(device->state, native);
    qi_ignore(qi_backend_call_end(device, NULL, call, QUIRE_SUCCESS));
}

quire_result qi_device_stream_mark(quire_device *device, uint64_t native, uint64_t *value)
{
    qi_backend_call call = qi_backend_call_begin();
    return qi_backend_call_end(device, NULL, call,
                               device->table.stream_mark(device->state, native, value));
}

quire_result qi_device_stream_passed(quire_device *device, uint64_t native, uint64_t *value)
{
    qi_backend_call call = qi_backend_call_begin();
    return qi_backend_call_end(device, NULL, call,
                               device->table.stream_passed(device->state, native, value));
}

quire_result qi_device_stream_await(quire_device *device, uint64_t native, uint64_t value,
                                    uint64_t nanoseconds, bool *has_passed)
{
    qi_backend_call call = qi_backend_call_begin();
    quire_result result =
        device->table.stream_await(device->state, native, value, nanoseconds, has_passed);
    bool is_busy = result == QUIRE_ERROR_BUSY; /* an answer of this function alone */
    result = qi_backend_call_end(device, NULL, call, is_busy ? QUIRE_SUCCESS : result);
    return is_busy ? QUIRE_ERROR_BUSY : result;
}

quire_result qi_device_stream_order(quire_device *device, uint64_t later, uint64_t earlier,
                                    uint64_t value)
{
    qi_backend_call call = qi_backend_call_begin();
    return qi_backend_call_end(device, NULL, call,
                               device->table.stream_order(device->state, later, earlier, value));
}
