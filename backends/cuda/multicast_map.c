/*
 * multicast_map.c - the addresses of multicast objects: one mapping for each device, which no other
 * device accesses.
 */
#include "backends/cuda/multicast.h"
#include "src/base/result.h"

/* INVALID_ARGUMENT if this process did not add the device. */
static quire_result find_device(const quire_cuda_multicast *m, int32_t ordinal,
                                qi_cuda_multicast_device **device)
{
    for (uint32_t i = 0; i < m->device_count; i++)
        if (m->devices[i].ordinal == ordinal) {
            *device = &m->devices[i];
            return QUIRE_SUCCESS;
        }
    return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT,
                        "device %d was not added to the multicast object by this process", ordinal);
}

bool qi_cuda_multicast_unmap(quire_cuda_multicast *m, qi_cuda_multicast_device *device)
{
    const qi_cuda *cuda = m->cuda;
    qi_cu_result code =
        device->is_mapped ? cuda->f.MemUnmap(device->reserved, m->size) : QI_CUDA_SUCCESS;
    if (code && !qi_cuda_is_lost(code))
        return false;
    device->is_mapped = device->is_ready = false;
    code = device->reserved ? cuda->f.MemAddressFree(device->reserved, m->size) : QI_CUDA_SUCCESS;
    if (code && !qi_cuda_is_lost(code))
        return false;
    device->reserved = 0;
    return true;
}

/* In the context, with the mutex, which is released while the driver is not ready: other threads
   find that the mapping is being made. On failure qi_cuda_multicast_unmap undoes what was done. */
static qi_cu_result map(quire_cuda_multicast *m, qi_cuda_multicast_device *device)
{
    const qi_cuda *cuda = m->cuda;
    const qi_cu_access_desc access = {
        .location = {.type = QI_CU_MEM_LOCATION_TYPE_DEVICE, .id = device->ordinal},
        .flags = QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    };
    qi_cu_result code = cuda->f.MemAddressReserve(&device->reserved, m->size, m->granularity, 0, 0);
    if (code) {
        device->reserved = 0;
        return code;
    }
    code = cuda->f.MemMap(device->reserved, m->size, 0, m->handle, 0);
    if (code)
        return code;
    device->is_mapped = device->is_in_change = true;
    uint32_t pauses = 0;
    do
        code = cuda->f.MemSetAccess(device->reserved, m->size, &access, 1);
    while (qi_cuda_retry_access(code, &pauses, &m->mutex));
    device->is_in_change = false;
    device->is_ready = !code;
    return code;
}

/* Removes the remains of a failed attempt first. In the context. */
static quire_result map_once(quire_cuda_multicast *m, qi_cuda_multicast_device *device,
                             uint64_t *address)
{
    pthread_mutex_lock(&m->mutex);
    bool was_ready = device->is_ready || device->is_in_change;
    qi_cu_result code = QI_CUDA_SUCCESS;
    if (!was_ready)
        code = qi_cuda_multicast_unmap(m, device) ? map(m, device) : QI_CUDA_ERROR_UNKNOWN;
    if (code)
        qi_cuda_multicast_unmap(m, device);
    uint64_t reserved = device->reserved;
    pthread_mutex_unlock(&m->mutex);
    if (was_ready)
        return qi_fail_text(QUIRE_ERROR_WRONG_STATE,
                            "the multicast object is already mapped for device %d",
                            device->ordinal);
    if (code)
        return qi_cuda_fail(&m->cuda->f, code, "mapping a multicast object of %s for device %d",
                            qi_bytes(m->size).text, device->ordinal);
    *address = reserved;
    return QUIRE_SUCCESS;
}

quire_result quire_cuda_multicast_map(quire_cuda_multicast *m, int32_t ordinal, uint64_t *address)
{
    if (address)
        *address = 0;
    if (!m || !address)
        return qi_fail_null("quire_cuda_multicast_map", !m ? "multicast" : "address");
    qi_cuda_multicast_device *device = NULL;
    quire_result result = find_device(m, ordinal, &device);
    if (!result)
        result = qi_cuda_enter(m->cuda);
    if (result)
        return result;
    result = map_once(m, device, address);
    qi_cuda_leave(m->cuda);
    return result;
}

quire_result quire_cuda_multicast_unmap(quire_cuda_multicast *m, int32_t ordinal)
{
    if (!m)
        return qi_fail_null("quire_cuda_multicast_unmap", "multicast");
    qi_cuda_multicast_device *device = NULL;
    quire_result result = find_device(m, ordinal, &device);
    if (!result)
        result = qi_cuda_enter(m->cuda);
    if (result)
        return result;
    pthread_mutex_lock(&m->mutex);
    bool is_there = device->reserved && !device->is_in_change;
    bool is_done = is_there && qi_cuda_multicast_unmap(m, device);
    pthread_mutex_unlock(&m->mutex);
    qi_cuda_leave(m->cuda);
    if (!is_there)
        return qi_fail_text(QUIRE_ERROR_WRONG_STATE,
                            "the multicast object is not mapped for device %d", ordinal);
    return is_done ? QUIRE_SUCCESS
                   : quire_backend_fail(QUIRE_ERROR_BACKEND_FAILURE, 0,
                                        "the driver refused to unmap the multicast object for "
                                        "device %d: it can be unmapped later",
                                        ordinal);
}
