/*
 * probe.c - what driver and device have; kind.c says which memory kinds come of it.
 *
 * A device has something where its attribute says so and the driver has the functions for it. An
 * attribute that the driver does not know, because it is older, counts as 0.
 */
#include <string.h>
#include <unistd.h>

#include "backends/cuda/cuda.h"
#include "src/base/bits.h"
#include "src/base/result.h"

static const uint64_t TEXTURE_ALIGNMENT = 512; /* of a device that does not tell */

enum { HOST_NUMA_DRIVER = 12020, HOST_DRIVER = 13000 };

/* ---- attributes --------------------------------------------------------------------------- */

static quire_result ask(const qi_cuda *cuda, qi_cu_attribute attribute, int otherwise, int *value)
{
    *value = otherwise;
    qi_cu_result code = cuda->f.DeviceGetAttribute(value, attribute, cuda->device);
    if (!code)
        return QUIRE_SUCCESS;
    *value = otherwise;
    if (code == QI_CUDA_ERROR_INVALID_VALUE || code == QI_CUDA_ERROR_NOT_SUPPORTED)
        return QUIRE_SUCCESS;
    return qi_cuda_fail(&cuda->f, code, "cuDeviceGetAttribute of attribute %u", attribute);
}

static uint64_t power_or(int value, uint64_t otherwise)
{
    return value > 0 && qi_is_power_of_two((uint64_t)value) ? (uint64_t)value : otherwise;
}

static bool has_virtual_functions(const qi_cuda_functions *f)
{
    return f->MemGetAllocationGranularity && f->MemCreate && f->MemRelease &&
           f->MemAddressReserve && f->MemAddressFree && f->MemMap && f->MemUnmap && f->MemSetAccess;
}

static bool has_multicast_functions(const qi_cuda_functions *f)
{
    return f->MulticastCreate && f->MulticastAddDevice && f->MulticastBindMem &&
           f->MulticastUnbind && f->MulticastGetGranularity;
}

void qi_cuda_match_functions(const qi_cuda *cuda, qi_cuda_offers *o)
{
    const qi_cuda_functions *f = &cuda->f;
    o->virtual_memory &= has_virtual_functions(f);
    o->fd &= o->virtual_memory && f->MemExportToShareableHandle != NULL;
    o->fabric &= o->virtual_memory && f->MemExportToShareableHandle != NULL;
    o->dma_buf &= f->MemGetHandleForAddressRange != NULL;
    o->rdma &= o->virtual_memory;
    o->compression &= o->virtual_memory && f->MemGetAllocationPropertiesFromHandle != NULL;
    o->multicast &= o->virtual_memory && has_multicast_functions(f);
    o->host_numa &= o->virtual_memory && cuda->driver_version >= HOST_NUMA_DRIVER;
    o->host &= o->virtual_memory && cuda->driver_version >= HOST_DRIVER;
    o->managed &= f->MemAllocManaged != NULL;
    bool has_arrays = o->virtual_memory && f->MemMapArrayAsync && f->Array3DCreate &&
                      f->ArrayDestroy && f->MipmappedArrayCreate && f->MipmappedArrayDestroy;
    o->deferred_arrays &=
        has_arrays && f->ArrayGetMemoryRequirements && f->MipmappedArrayGetMemoryRequirements;
    o->sparse_arrays &=
        has_arrays && f->ArrayGetSparseProperties && f->MipmappedArrayGetSparseProperties;
    o->host_register &= f->MemHostRegister != NULL && f->MemHostUnregister != NULL;
}

static quire_result ask_attributes(const qi_cuda *cuda, qi_cuda_offers *o)
{
    const struct {
        qi_cu_attribute attribute;
        bool *target;
    } table[] = {
        {QI_CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED, &o->virtual_memory},
        {QI_CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, &o->fd},
        {QI_CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, &o->fabric},
        {QI_CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, &o->dma_buf},
        {QI_CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, &o->rdma},
        {QI_CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED, &o->compression},
        {QI_CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, &o->multicast},
        {QI_CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, &o->host_numa},
        {QI_CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, &o->host},
        {QI_CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, &o->managed}, /* the host may look at it
                                                                            while work runs */
        {QI_CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, &o->host_register},
        {QI_CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED, &o->deferred_arrays},
        {QI_CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED, &o->sparse_arrays},
    };
    int value = 0;
    quire_result result = QUIRE_SUCCESS;
    for (size_t i = 0; i < sizeof table / sizeof *table && !result; i++) {
        result = ask(cuda, table[i].attribute, 0, &value);
        *table[i].target = value > 0;
    }
    if (!result)
        result = ask(cuda, QI_CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, -1, &o->numa_node);
    if (!result)
        result = ask(cuda, QI_CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 0, &value);
    o->texture_alignment = power_or(value, TEXTURE_ALIGNMENT);
    if (!result)
        result = ask(cuda, QI_CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 0, &value);
    o->row_alignment = power_or(value, TEXTURE_ALIGNMENT);
    return result;
}

/* ---- all of it ---------------------------------------------------------------------------- */

/* Other devices can reach this one's memory, or are refused by name. */
static quire_result check_peers(const qi_cuda *cuda)
{
    for (uint32_t i = 0; i < cuda->peer_count; i++) {
        int can = 0;
        if (cuda->peers[i] == cuda->device)
            return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "device %u is its own peer",
                                (uint64_t)cuda->device);
        qi_cu_result code = QI_CUDA_ERROR_NOT_SUPPORTED;
        if (cuda->f.DeviceCanAccessPeer)
            code = cuda->f.DeviceCanAccessPeer(&can, cuda->peers[i], cuda->device);
        if (code)
            return qi_cuda_fail(&cuda->f, code, "cuDeviceCanAccessPeer of device %d",
                                cuda->peers[i]);
        if (!can)
            return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "device %d cannot reach device %d",
                                cuda->peers[i], cuda->device);
    }
    return QUIRE_SUCCESS;
}

/* Who reaches other pages is not for us to say. */
static quire_result check_virtual(const qi_cuda *cuda)
{
    for (uint32_t i = 0; i < cuda->kind_count; i++)
        if (cuda->kinds[i].is_virtual && cuda->kinds[i].page_kind != QUIRE_CUDA_TILES)
            return QUIRE_SUCCESS;
    return cuda->peer_count
               ? qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                              "peers are named, and '%s' has no pages of virtual memory management",
                              cuda->name)
               : QUIRE_SUCCESS;
}

static quire_result check_export(const qi_cuda *cuda)
{
    if (cuda->settings.export_types == QUIRE_CUDA_FABRIC && !cuda->offers.fabric)
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "'%s' has no fabric handles", cuda->name);
    return QUIRE_SUCCESS;
}

quire_result qi_cuda_probe(qi_cuda *cuda)
{
    size_t bytes = 0;
    qi_cu_result code = cuda->f.DeviceTotalMem(&bytes, cuda->device);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuDeviceTotalMem");
    cuda->device_bytes = bytes;
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    cuda->host_bytes = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : UINT64_C(1) << 40;
    code = cuda->f.DeviceGetName(cuda->name, sizeof cuda->name, cuda->device);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuDeviceGetName");
    qi_cu_uuid uuid;
    if (cuda->f.DeviceGetUuid && !cuda->f.DeviceGetUuid(&uuid, cuda->device))
        memcpy(cuda->uuid, uuid.bytes, sizeof cuda->uuid);
    quire_result result = ask_attributes(cuda, &cuda->offers);
    if (result)
        return result;
    qi_cuda_match_functions(cuda, &cuda->offers);
    qi_atomic_init_u32(&cuda->fabric,
                       cuda->offers.fabric ? QUIRE_CUDA_FABRIC_UNTRIED : QUIRE_CUDA_FABRIC_ABSENT);
    result = check_export(cuda);
    if (!result)
        result = check_peers(cuda);
    if (!result)
        result = qi_cuda_add_kinds(cuda);
    return result ? result : check_virtual(cuda);
}
