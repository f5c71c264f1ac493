/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * device.c - initialising the fake CUDA driver, and the properties of its devices.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/cuda/driver.h"

qi_cu_result fc_Init(unsigned int flags)
{
    qi_cu_result result = fc_enter(FC_CALL_Init);
    FC_REFUSE_IF(flags, INVALID_VALUE);
    if (!result && fc.initialized && fc.process != getpid())
        result = QI_CUDA_ERROR_NOT_INITIALIZED; /* an initialisation before a fork does not count */
    if (!result)
        result = fc.options.no_init;
    FC_REFUSE_IF(!fc.device_count, NO_DEVICE);
    if (!result) {
        fc.initialized = true;
        fc.process = getpid();
    }
    return fc_leave(result);
}

qi_cu_result fc_DriverGetVersion(int *version)
{
    qi_cu_result result = fc_enter(FC_CALL_DriverGetVersion);
    FC_REFUSE_IF(!version, INVALID_VALUE);
    if (!result)
        *version = fc.options.version;
    return fc_leave(result);
}

/* ---- errors ------------------------------------------------------------------------------- */

static const struct {
    qi_cu_result result;
    const char *name;
} ERRORS[] = {
#define X(name, value) {value, #name},
    QI_CU_RESULTS(X) QI_CU_RESULTS_13_0(X)
#undef X
};

static const char *name_of(qi_cu_result error)
{
    for (size_t i = 0; i < sizeof ERRORS / sizeof *ERRORS; i++)
        if (ERRORS[i].result == error)
            return ERRORS[i].name;
    return NULL;
}

qi_cu_result fc_GetErrorName(qi_cu_result error, const char **name)
{
    qi_cu_result result = fc_enter(FC_CALL_GetErrorName);
    FC_REFUSE_IF(!name || !name_of(error), INVALID_VALUE);
    if (name)
        *name = result ? NULL : name_of(error);
    return fc_leave(result);
}

/* The error name without the common prefix. */
qi_cu_result fc_GetErrorString(qi_cu_result error, const char **text)
{
    qi_cu_result result = fc_enter(FC_CALL_GetErrorString);
    FC_REFUSE_IF(!text || !name_of(error), INVALID_VALUE);
    if (text)
        *text = result ? NULL : name_of(error) + strlen("CUDA_");
    return fc_leave(result);
}

/* ---- devices ------------------------------------------------------------------------------ */

qi_cu_result fc_DeviceGetCount(int *count)
{
    qi_cu_result result = fc_enter(FC_CALL_DeviceGetCount);
    FC_REFUSE_IF(!count, INVALID_VALUE);
    if (!result)
        *count = fc.device_count;
    return fc_leave(result);
}

qi_cu_result fc_DeviceGet(qi_cu_device *device, int ordinal)
{
    qi_cu_result result = fc_enter(FC_CALL_DeviceGet);
    FC_REFUSE_IF(!device, INVALID_VALUE);
    FC_REFUSE_IF(!fc_is_device(ordinal), INVALID_DEVICE);
    if (!result)
        *device = ordinal;
    return fc_leave(result);
}

/* Begins a call that reports something about a device through a pointer. */
static qi_cu_result enter_about(fc_call call, qi_cu_device device, const void *out)
{
    qi_cu_result result = fc_enter(call);
    FC_REFUSE_IF(!out, INVALID_VALUE);
    return result || fc_is_device(device) ? result : QI_CUDA_ERROR_INVALID_DEVICE;
}

qi_cu_result fc_DeviceGetName(char *name, int size, qi_cu_device device)
{
    qi_cu_result result = enter_about(FC_CALL_DeviceGetName, device, name);
    FC_REFUSE_IF(size <= 0, INVALID_VALUE);
    if (!result)
        snprintf(name, (size_t)size, "fake %s", fc.devices[device].model.name);
    return fc_leave(result);
}

qi_cu_result fc_DeviceGetUuid_v2(qi_cu_uuid *uuid, qi_cu_device device)
{
    qi_cu_result result = enter_about(FC_CALL_DeviceGetUuid_v2, device, uuid);
    if (!result) {
        memcpy(uuid->bytes, "fake gpu number", sizeof uuid->bytes);
        uuid->bytes[sizeof uuid->bytes - 1] = (char)device;
    }
    return fc_leave(result);
}

qi_cu_result fc_DeviceTotalMem_v2(size_t *bytes, qi_cu_device device)
{
    qi_cu_result result = enter_about(FC_CALL_DeviceTotalMem_v2, device, bytes);
    if (!result)
        *bytes = (size_t)fc.devices[device].model.bytes;
    return fc_leave(result);
}

/* ---- attributes --------------------------------------------------------------------------- */

static const struct {
    qi_cu_attribute attribute;
    uint32_t feature;
    int since; /* the first driver version that knows the attribute */
} FEATURES[] = {
    {QI_CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED, FC_VMM, 10020},
    {QI_CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, FC_POSIX_FD, 10020},
    {QI_CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED, FC_COMPRESSION, 11000},
    {QI_CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, FC_RDMA, 11000},
    {QI_CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, FC_RDMA, 11030},
    {QI_CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED, FC_SPARSE_ARRAYS, 11010},
    {QI_CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, FC_POOLS, 11020},
    {QI_CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED, FC_DEFERRED_ARRAYS, 11060},
    {QI_CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, FC_DMA_BUF, 11070},
    {QI_CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, FC_FABRIC, 12040},
    {QI_CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, FC_MULTICAST, 12010},
    {QI_CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, FC_HOST_NUMA_VMM, 12090},
    {QI_CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, FC_HOST_VMM, 13000},
    {QI_CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED, FC_FABRIC_PERMITTED, 13000},
    {QI_CU_DEVICE_ATTRIBUTE_INTEGRATED, FC_INTEGRATED, 0},
    {QI_CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, FC_MANAGED_MEMORY, 6000},
    {QI_CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, FC_CONCURRENT_MANAGED, 8000},
    {QI_CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, FC_PAGEABLE, 8000},
    {QI_CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, FC_REGISTER, 9020},
    {QI_CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, FC_REGISTER, 8000},
};

static int or_else(uint64_t value, int otherwise)
{
    return value ? (int)value : otherwise;
}

/* Attributes that are numbers. Returns false for an unknown attribute. */
static bool number_of(const fc_model *model, int device, qi_cu_attribute attribute, int *value)
{
    switch (attribute) {
    case QI_CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT:
        *value = or_else(model->texture_alignment, 512);
        return true;
    case QI_CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT:
        *value = or_else(model->pitch_alignment, 32);
        return true;
    case QI_CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT:
        *value = 512;
        return true;
    case QI_CU_DEVICE_ATTRIBUTE_MAX_PITCH:
        *value = INT32_MAX;
        return true;
    case QI_CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case QI_CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
        *value = 1;
        return true;
    case QI_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH:
    case QI_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH:
    case QI_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH:
        *value = 131072;
        return true;
    case QI_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT:
    case QI_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT:
        *value = 65536;
        return true;
    case QI_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH:
        *value = 2097120;
        return true;
    case QI_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH:
    case QI_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT:
    case QI_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH:
        *value = 16384;
        return true;
    case QI_CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS:
        *value = 2048;
        return true;
    case QI_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = model->major;
        return true;
    case QI_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *value = model->minor;
        return true;
    case QI_CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
        *value = device + 1;
        return true;
    case QI_CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
    case QI_CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
        *value = 0;
        return true;
    default:
        return false;
    }
}

/* Attributes of NUMA nodes, which newer drivers know. */
static bool node_of(const fc_model *model, qi_cu_attribute attribute, int *value)
{
    if (fc.options.version < 12020)
        return false;
    switch (attribute) {
    case QI_CU_DEVICE_ATTRIBUTE_NUMA_CONFIG: /* device memory is not a node of the host */
        *value = QI_CU_DEVICE_NUMA_CONFIG_NONE;
        return true;
    case QI_CU_DEVICE_ATTRIBUTE_NUMA_ID:
        *value = -1;
        return true;
    case QI_CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID:
        *value = model->host_node;
        return true;
    default:
        return false;
    }
}

qi_cu_result fc_DeviceGetAttribute(int *value, qi_cu_attribute attribute, qi_cu_device device)
{
    qi_cu_result result = enter_about(FC_CALL_DeviceGetAttribute, device, value);
    if (result)
        return fc_leave(result);
    const fc_model *model = &fc.devices[device].model;
    for (size_t i = 0; i < sizeof FEATURES / sizeof *FEATURES; i++)
        if (FEATURES[i].attribute == attribute && FEATURES[i].since <= fc.options.version) {
            *value = (model->features & FEATURES[i].feature) != 0;
            return fc_leave(0);
        }
    if (!number_of(model, device, attribute, value) && !node_of(model, attribute, value))
        result = QI_CUDA_ERROR_INVALID_VALUE; /* the driver does not know the number */
    return fc_leave(result);
}
