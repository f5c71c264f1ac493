/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * properties.c - the physical memory that the fake CUDA driver grants, and its granularity.
 */
#include "tests/support/cuda/memory.h"

#define ALL_HANDLE_TYPES 0x0f
#define ALL_USAGES (QI_CU_MEM_CREATE_USAGE_TILE_POOL | QI_CU_MEM_CREATE_USAGE_HW_DECOMPRESS)
#define HOST_LOCATIONS_SINCE 12020

bool fc_any_device_has(uint32_t feature)
{
    for (int i = 0; i < fc.device_count; i++)
        if (fc.devices[i].model.features & feature)
            return true;
    return false;
}

/* ---- granularity -------------------------------------------------------------------------- */

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t of_device(const fc_model *model, const qi_cu_allocation_prop *prop,
                          bool recommended)
{
    uint64_t size = model->granularity;
    if (recommended)
        size = larger(size, model->recommended);
    if (prop->allocFlags.compressionType)
        size = larger(size, model->compressed_granularity);
    if (prop->allocFlags.gpuDirectRDMACapable)
        size = larger(size, model->rdma_granularity);
    return size;
}

/* All devices map host memory. */
static uint64_t of_host(const qi_cu_allocation_prop *prop, bool recommended)
{
    uint64_t size = fc_page();
    for (int i = 0; i < fc.device_count; i++) {
        const fc_model *model = &fc.devices[i].model;
        size = larger(size, model->host_granularity ? model->host_granularity
                                                    : of_device(model, prop, recommended));
    }
    return size;
}

uint64_t fc_granularity(const qi_cu_allocation_prop *prop, bool recommended)
{
    if (prop->location.type != QI_CU_MEM_LOCATION_TYPE_DEVICE || !fc_is_device(prop->location.id))
        return of_host(prop, recommended);
    return of_device(&fc.devices[prop->location.id].model, prop, recommended);
}

qi_cu_result fc_MemGetAllocationGranularity(size_t *size, const qi_cu_allocation_prop *prop,
                                            qi_cu_granularity option)
{
    qi_cu_result result = fc_enter_virtual(FC_CALL_MemGetAllocationGranularity);
    if (!result && !prop) {
        fc_say("fc-null", FC_CALL_MemGetAllocationGranularity, "the driver reads the properties");
        result = QI_CUDA_ERROR_INVALID_VALUE;
    }
    FC_REFUSE_IF(!size || option > QI_CU_MEM_ALLOC_GRANULARITY_RECOMMENDED, INVALID_VALUE);
    FC_REFUSE_IF(!fc_any_device_has(FC_VMM), NOT_SUPPORTED);
    if (!result)
        *size = (size_t)fc_granularity(prop, option == QI_CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    return fc_leave(result);
}

/* ---- checks ------------------------------------------------------------------------------- */

static qi_cu_result supported(uint32_t features, uint32_t feature)
{
    return features & feature ? 0 : QI_CUDA_ERROR_NOT_SUPPORTED;
}

static qi_cu_result check_location(const qi_cu_location *location)
{
    bool knows_host = fc.options.version >= HOST_LOCATIONS_SINCE;
    switch (location->type) {
    case QI_CU_MEM_LOCATION_TYPE_DEVICE:
        if (fc_is_device(location->id))
            return supported(fc.devices[location->id].model.features, FC_VMM);
        return QI_CUDA_ERROR_INVALID_DEVICE;
    case QI_CU_MEM_LOCATION_TYPE_HOST:
        if (!knows_host)
            return QI_CUDA_ERROR_INVALID_VALUE;
        return fc_any_device_has(FC_HOST_VMM) ? 0 : QI_CUDA_ERROR_NOT_SUPPORTED;
    case QI_CU_MEM_LOCATION_TYPE_HOST_NUMA:
        if (!knows_host || location->id < 0 || (uint32_t)location->id >= fc.options.numa_nodes ||
            fc.options.refused_nodes >> location->id & 1)
            return QI_CUDA_ERROR_INVALID_VALUE;
        return fc_any_device_has(FC_HOST_NUMA_VMM) ? 0 : QI_CUDA_ERROR_NOT_SUPPORTED;
    default:
        return QI_CUDA_ERROR_INVALID_VALUE;
    }
}

static uint32_t features_for(const qi_cu_location *location)
{
    if (location->type == QI_CU_MEM_LOCATION_TYPE_DEVICE)
        return fc.devices[location->id].model.features;
    uint32_t features = 0;
    for (int i = 0; i < fc.device_count; i++)
        features |= fc.devices[i].model.features;
    return features;
}

static qi_cu_result check_handle_types(const qi_cu_allocation_prop *prop, uint32_t features)
{
    qi_cu_handle_type types = prop->requestedHandleTypes;
    if (types & ~(qi_cu_handle_type)ALL_HANDLE_TYPES)
        return QI_CUDA_ERROR_INVALID_VALUE;
    if (types && prop->location.type == QI_CU_MEM_LOCATION_TYPE_HOST)
        return QI_CUDA_ERROR_INVALID_VALUE;
    if (types & (QI_CU_MEM_HANDLE_TYPE_WIN32 | QI_CU_MEM_HANDLE_TYPE_WIN32_KMT))
        return QI_CUDA_ERROR_NOT_SUPPORTED;
    if (types & QI_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR &&
        (!(features & FC_POSIX_FD) || features & FC_FD_REFUSED))
        return QI_CUDA_ERROR_NOT_SUPPORTED;
    if (types & QI_CU_MEM_HANDLE_TYPE_FABRIC && !(features & FC_FABRIC))
        return QI_CUDA_ERROR_NOT_SUPPORTED;
    if (types & QI_CU_MEM_HANDLE_TYPE_FABRIC && !(features & FC_FABRIC_PERMITTED))
        return QI_CUDA_ERROR_NOT_PERMITTED;
    return 0;
}

static qi_cu_result check_flags(const qi_cu_allocation_prop *prop, uint32_t features)
{
    unsigned usage = prop->allocFlags.usage;
    for (size_t i = 0; i < sizeof prop->allocFlags.reserved; i++)
        if (prop->allocFlags.reserved[i])
            return QI_CUDA_ERROR_INVALID_VALUE;
    if (prop->allocFlags.compressionType > QI_CU_MEM_ALLOCATION_COMP_GENERIC ||
        prop->allocFlags.gpuDirectRDMACapable > 1 || usage & ~(unsigned)ALL_USAGES)
        return QI_CUDA_ERROR_INVALID_VALUE;
    if (prop->allocFlags.gpuDirectRDMACapable &&
        (!(features & FC_RDMA) || features & FC_RDMA_REFUSED))
        return QI_CUDA_ERROR_NOT_SUPPORTED;
    if (usage & QI_CU_MEM_CREATE_USAGE_TILE_POOL &&
        !(features & (FC_SPARSE_ARRAYS | FC_DEFERRED_ARRAYS)))
        return QI_CUDA_ERROR_NOT_SUPPORTED;
    if (usage & QI_CU_MEM_CREATE_USAGE_HW_DECOMPRESS && !(features & FC_DECOMPRESS))
        return QI_CUDA_ERROR_NOT_SUPPORTED;
    return 0;
}

qi_cu_result fc_properties_check(const qi_cu_allocation_prop *prop)
{
    if (prop->type != QI_CU_MEM_ALLOCATION_TYPE_PINNED)
        return QI_CUDA_ERROR_INVALID_VALUE;
    qi_cu_result result = check_location(&prop->location);
    if (result)
        return result;
    uint32_t features = features_for(&prop->location);
    result = check_handle_types(prop, features);
    return result ? result : check_flags(prop, features);
}
