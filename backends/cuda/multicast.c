/*
 * multicast.c - multicast objects: memory of several devices behind one address.
 *
 * An object is created, receives its devices, and is bound to memory of each. It can be mapped once
 * all devices are added. It belongs to no memory: the bound pages stay in theirs. Its record has
 * no lock.
 */
#include "backends/cuda/page.h"
#include "src/base/bits.h"
#include "src/base/result.h"

struct quire_cuda_multicast {
    qi_cuda *cuda;
    qi_cu_handle handle;
    uint64_t size; /* rounded up to the granularity */
    uint64_t granularity;
    qi_cu_ptr reserved;
    bool is_mapped;
    uint32_t device_count;
};

/* ---- creation --------------------------------------------------------------------------- */

static quire_result check_options(const quire_cuda_multicast_options *o)
{
    if (!o->size || !o->device_count || !o->devices)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "a multicast object of size 0 or without devices");
    if (o->handle_types & ~(QUIRE_CUDA_FD | QUIRE_CUDA_FABRIC))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "unknown handle types %x",
                            o->handle_types);
    for (uint32_t i = 0; i < o->device_count; i++)
        for (uint32_t j = 0; j < i; j++)
            if (o->devices[i] == o->devices[j])
                return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT, "device %d is named twice",
                                    o->devices[i]);
    return qi_check_unused(o, "quire_cuda_multicast_options");
}

static quire_result round_size(const qi_cuda *cuda, qi_cu_multicast_prop *prop,
                               quire_cuda_multicast *m)
{
    size_t unit = 0;
    uint64_t size = 0;
    qi_cu_result code =
        cuda->f.MulticastGetGranularity(&unit, prop, QI_CU_MULTICAST_GRANULARITY_MINIMUM);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuMulticastGetGranularity");
    if (!qi_is_power_of_two(unit))
        return quire_backend_fail(QUIRE_ERROR_BACKEND_FAILURE, 0,
                                  "the multicast granularity is %zu bytes", unit);
    if (qi_align_up_overflows(m->size, unit, &size))
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, 0,
                                  "a multicast object of %llu bytes", (unsigned long long)m->size);
    m->granularity = unit;
    m->size = prop->size = size;
    return QUIRE_SUCCESS;
}

static quire_result add_devices(const qi_cuda *cuda, const quire_cuda_multicast *m,
                                const quire_cuda_multicast_options *options)
{
    for (uint32_t i = 0; i < options->device_count; i++) {
        qi_cu_result code = cuda->f.MulticastAddDevice(m->handle, options->devices[i]);
        if (code)
            return qi_cuda_fail(&cuda->f, code, "cuMulticastAddDevice of device %d",
                                options->devices[i]);
    }
    return QUIRE_SUCCESS;
}

/* In the context. On failure the caller releases m->handle unless it is 0. */
static quire_result create(const qi_cuda *cuda, const quire_cuda_multicast_options *options,
                           quire_cuda_multicast *m)
{
    qi_cu_multicast_prop prop = {
        .numDevices = options->device_count,
        .size = options->size,
        .handleTypes = options->handle_types,
    };
    quire_result result = round_size(cuda, &prop, m);
    if (result)
        return result;
    qi_cu_result code = cuda->f.MulticastCreate(&m->handle, &prop);
    if (code) {
        m->handle = 0;
        return qi_cuda_fail(&cuda->f, code, "cuMulticastCreate of %s", qi_bytes(m->size).text);
    }
    return add_devices(cuda, m, options);
}

quire_result quire_cuda_multicast_create(quire_device *device,
                                         const quire_cuda_multicast_options *options,
                                         quire_cuda_multicast **multicast)
{
    if (multicast)
        *multicast = NULL;
    if (!options || !multicast)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_cuda_multicast_create: options or multicast is null");
    qi_cuda *cuda = qi_cuda_of(device);
    if (!cuda)
        return quire_last_result();
    quire_result result = check_options(options);
    if (!result && !cuda->capabilities.multicast)
        result = qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "'%s' has no multicast", cuda->name);
    if (result)
        return result;
    quire_cuda_multicast *m = qi_host_allocate(&cuda->host, 1, sizeof *m);
    if (!m)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a multicast object");
    m->cuda = cuda;
    m->size = options->size;
    m->device_count = options->device_count;
    result = qi_cuda_enter(cuda);
    if (!result) {
        result = create(cuda, options, m);
        if (result && m->handle)
            cuda->f.MemRelease(m->handle);
        qi_cuda_leave(cuda);
    }
    if (result)
        qi_host_release(&cuda->host, m, 1, sizeof *m);
    else
        *multicast = m;
    return result;
}

/* ---- binding ---------------------------------------------------------------------------- */

static quire_result check_page(const quire_cuda_multicast *m, uint64_t offset,
                               const qi_cuda_page *page)
{
    if (page->type != QI_CUDA_PAGE_VIRTUAL || page->elastic || page->chunk_count != 1 || page->host)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "a page can be bound only if it is device memory of one handle and does "
                       "not grow");
    if (offset % m->granularity || page->padded % m->granularity)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "offset %u or page of %u byte%s: the multicast granularity is %u",
                            offset, page->padded, m->granularity);
    if (!qi_range_fits(offset, page->padded, m->size))
        return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE,
                            "a page of %b at %u does not lie in the %b of the object", page->padded,
                            offset, m->size);
    return QUIRE_SUCCESS;
}

/* The page may belong to another device than the object's: its own context serves. */
quire_result quire_cuda_multicast_bind(quire_cuda_multicast *m, uint64_t offset,
                                       quire_memory *memory, quire_allocation allocation)
{
    if (!m || !memory)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_cuda_multicast_bind: multicast or memory is null");
    quire_native native;
    qi_cuda *cuda = NULL;
    quire_result result = qi_cuda_find_native(memory, allocation, &native, &cuda);
    if (result)
        return result;
    const qi_cuda_page *page = qi_cuda_page_of(&native.page);
    result = check_page(m, offset, page);
    if (!result)
        result = qi_cuda_enter(cuda); /* the context of the page's device */
    if (result)
        return result;
    qi_cu_result code =
        cuda->f.MulticastBindMem
            ? cuda->f.MulticastBindMem(m->handle, offset, page->chunks->handle, 0, page->padded, 0)
            : QI_CUDA_ERROR_NOT_SUPPORTED;
    qi_cuda_leave(cuda);
    return code ? qi_cuda_fail(&cuda->f, code, "cuMulticastBindMem of %s",
                               qi_bytes(page->padded).text)
                : QUIRE_SUCCESS;
}

quire_result quire_cuda_multicast_unbind(quire_cuda_multicast *m, int32_t ordinal, uint64_t offset,
                                         uint64_t size)
{
    if (!m)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_cuda_multicast_unbind: multicast is null");
    if (!size || !qi_range_fits(offset, size, m->size))
        return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE, "%u byte%s at %u of an object of %u", size,
                            offset, m->size);
    quire_result result = qi_cuda_enter(m->cuda);
    if (result)
        return result;
    qi_cu_result code = m->cuda->f.MulticastUnbind(m->handle, ordinal, offset, size);
    qi_cuda_leave(m->cuda);
    return code ? qi_cuda_fail(&m->cuda->f, code, "cuMulticastUnbind of device %d", ordinal)
                : QUIRE_SUCCESS;
}

/* ---- mapping ---------------------------------------------------------------------------- */

/* In the context. Returns false if the driver refused a step; the rest can be retried. */
static bool unmap_object(quire_cuda_multicast *m)
{
    const qi_cuda *cuda = m->cuda;
    qi_cu_result code = m->is_mapped ? cuda->f.MemUnmap(m->reserved, m->size) : QI_CUDA_SUCCESS;
    if (code && !qi_cuda_is_lost(code))
        return false;
    m->is_mapped = false;
    code = m->reserved ? cuda->f.MemAddressFree(m->reserved, m->size) : QI_CUDA_SUCCESS;
    if (code && !qi_cuda_is_lost(code))
        return false;
    m->reserved = 0;
    return true;
}

/* On failure unmap_object undoes what was done. */
static qi_cu_result map(quire_cuda_multicast *m)
{
    const qi_cuda *cuda = m->cuda;
    const qi_cu_access_desc access = {
        .location = {.type = QI_CU_MEM_LOCATION_TYPE_DEVICE, .id = cuda->device},
        .flags = QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    };
    qi_cu_result code = cuda->f.MemAddressReserve(&m->reserved, m->size, m->granularity, 0, 0);
    if (code)
        return code;
    code = cuda->f.MemMap(m->reserved, m->size, 0, m->handle, 0);
    m->is_mapped = !code;
    return code ? code : qi_cuda_set_access(cuda, m->reserved, m->size, &access, 1);
}

/* Removes the remains of a failed attempt first. */
quire_result quire_cuda_multicast_map(quire_cuda_multicast *m)
{
    if (!m)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_cuda_multicast_map: multicast is null");
    if (m->is_mapped)
        return qi_fail(QUIRE_ERROR_WRONG_STATE, "the multicast object is already mapped");
    quire_result result = qi_cuda_enter(m->cuda);
    if (result)
        return result;
    qi_cu_result code =
        unmap_object(m) ? map(m) : QI_CUDA_ERROR_UNKNOWN; /* remains of a failed map */
    if (code)
        unmap_object(m);
    qi_cuda_leave(m->cuda);
    return code ? qi_cuda_fail(&m->cuda->f, code, "mapping a multicast object of %s",
                               qi_bytes(m->size).text)
                : QUIRE_SUCCESS;
}

quire_result quire_cuda_multicast_get_info(const quire_cuda_multicast *m,
                                           quire_cuda_multicast_info *info)
{
    if (info)
        *info = (quire_cuda_multicast_info){.handle = 0};
    if (!m || !info)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_cuda_multicast_get_info: multicast or info is null");
    *info = (quire_cuda_multicast_info){
        .handle = m->handle,
        .size = m->size,
        .granularity = m->granularity,
        .address = m->is_mapped ? m->reserved : 0,
    };
    return QUIRE_SUCCESS;
}

/* ---- destruction ------------------------------------------------------------------------ */

/* In the context. */
static bool destroy_object(quire_cuda_multicast *m)
{
    if (!unmap_object(m))
        return false;
    qi_cu_result code = m->cuda->f.MemRelease(m->handle);
    return !code || qi_cuda_is_lost(code);
}

/* A forked child releases the record only. A lost device counts as destroyed. */
quire_result quire_cuda_multicast_destroy(quire_cuda_multicast **multicast)
{
    if (!multicast)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_cuda_multicast_destroy: multicast is null");
    quire_cuda_multicast *m = *multicast;
    if (!m)
        return QUIRE_SUCCESS;
    qi_cuda *cuda = m->cuda;
    if (!qi_cuda_has_forked(cuda)) { /* the parent still uses the handle */
        quire_result result = qi_cuda_enter(cuda);
        if (result && result != QUIRE_ERROR_DEVICE_LOST)
            return result;
        bool is_done = destroy_object(m) || result;
        if (!result)
            qi_cuda_leave(cuda);
        if (!is_done)
            return quire_backend_fail(
                QUIRE_ERROR_BACKEND_FAILURE, 0,
                "the driver refused to release the multicast object: it is unchanged");
    }
    *multicast = NULL;
    qi_host_release(&cuda->host, m, 1, sizeof *m);
    return QUIRE_SUCCESS;
}
