/*
 * capability.c - what a device offers. A capability requires the attribute of the device and the
 * driver's functions for it. An attribute that an older driver does not know counts as 0.
 */
#include "backends/cuda/cuda.h"
#include "src/base/bits.h"

static const uint64_t TEXTURE_ALIGNMENT = 512; /* bytes, if the device reports none */

/* The first drivers with chunks of host memory at a node, with the attribute for that, and with
   chunks at no particular node. */
enum { HOST_NUMA_DRIVER = 12020, HOST_NUMA_ATTRIBUTE_DRIVER = 12090, HOST_DRIVER = 13000 };

/* Reads an attribute. *value is `otherwise` if the driver does not know the attribute. */
static quire_result query(const qi_cuda *cuda, qi_cu_attribute attribute, int otherwise, int *value)
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

static bool has_pool_functions(const qi_cuda_functions *f)
{
    return f->MemPoolCreate && f->MemPoolDestroy && f->MemPoolSetAttribute &&
           f->MemPoolGetAttribute && f->MemPoolTrimTo && f->MemPoolSetAccess &&
           f->MemPoolGetAccess && f->DeviceGetMemPool && f->DeviceGetDefaultMemPool &&
           f->MemAllocFromPoolAsync && f->MemFreeAsync;
}

void qi_cuda_match_functions(const qi_cuda *cuda, qi_cuda_capabilities *o)
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
    o->pools &= has_pool_functions(f);
    o->managed &= f->MemAllocManaged != NULL;
    bool has_arrays = o->virtual_memory && f->MemMapArrayAsync && f->Array3DCreate &&
                      f->ArrayDestroy && f->MipmappedArrayCreate && f->MipmappedArrayDestroy;
    o->deferred_mapping_arrays &=
        has_arrays && f->ArrayGetMemoryRequirements && f->MipmappedArrayGetMemoryRequirements;
    o->sparse_arrays &=
        has_arrays && f->ArrayGetSparseProperties && f->MipmappedArrayGetSparseProperties;
    o->host_register &= f->MemHostRegister != NULL && f->MemHostUnregister != NULL;
}

quire_result qi_cuda_query_capabilities(const qi_cuda *cuda, qi_cuda_capabilities *o)
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
        {QI_CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, &o->host},
        /* managed pages are mapped for the host all the time, also while work runs */
        {QI_CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, &o->managed},
        {QI_CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, &o->host_register},
        {QI_CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED, &o->deferred_mapping_arrays},
        {QI_CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, &o->pools},
        {QI_CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED, &o->sparse_arrays},
    };
    int value = 0;
    quire_result result = QUIRE_SUCCESS;
    for (size_t i = 0; i < sizeof table / sizeof *table && !result; i++) {
        result = query(cuda, table[i].attribute, 0, &value);
        *table[i].target = value > 0;
    }
    if (!result) /* a trial allocation decides where the driver does not know the attribute */
        result = query(cuda, QI_CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
                       cuda->driver_version < HOST_NUMA_ATTRIBUTE_DRIVER, &value);
    o->host_numa = value > 0;
    if (!result)
        result = query(cuda, QI_CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, -1, &o->numa_node);
    if (!result)
        result = query(cuda, QI_CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 0, &value);
    o->texture_alignment = power_or(value, TEXTURE_ALIGNMENT);
    if (!result)
        result = query(cuda, QI_CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 0, &value);
    o->row_alignment = power_or(value, TEXTURE_ALIGNMENT);
    return result;
}
