/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * properties.c - the properties of the fake's physical devices: limits, features, memory, queue
 * families.
 */
#include <stdio.h>
#include <string.h>

#include "tests/support/vulkan/device.h"
#include "tests/support/vulkan/table.h"

static fv_physical_device *physical_of(VkPhysicalDevice handle)
{
    return (fv_physical_device *)handle;
}

/* ---- limits ------------------------------------------------------------------------------- */

/* Limits that do not concern memory have the minimum that the specification requires. */
static void fill_other_limits(VkPhysicalDeviceLimits *limits)
{
    *limits = (VkPhysicalDeviceLimits){
        .maxTexelBufferElements = 65536,
        .maxUniformBufferRange = 65536,
        .maxStorageBufferRange = UINT32_MAX,
        .maxPushConstantsSize = 128,
        .maxSamplerAllocationCount = 4000,
        .maxBoundDescriptorSets = 4,
        .maxPerStageDescriptorSamplers = 16,
        .maxPerStageDescriptorUniformBuffers = 12,
        .maxPerStageDescriptorStorageBuffers = 8,
        .maxPerStageDescriptorSampledImages = 16,
        .maxPerStageDescriptorStorageImages = 8,
        .maxPerStageResources = 128,
        .maxDescriptorSetSamplers = 96,
        .maxDescriptorSetUniformBuffers = 72,
        .maxDescriptorSetStorageBuffers = 24,
        .maxDescriptorSetSampledImages = 96,
        .maxDescriptorSetStorageImages = 24,
        .maxComputeSharedMemorySize = 16384,
        .maxComputeWorkGroupCount = {65535, 65535, 65535},
        .maxComputeWorkGroupInvocations = 128,
        .maxComputeWorkGroupSize = {128, 128, 64},
        .maxSamplerLodBias = 2,
        .maxSamplerAnisotropy = 1,
        .maxViewports = 1,
        .subPixelPrecisionBits = 4,
        .timestampPeriod = 1,
        .framebufferColorSampleCounts = VK_SAMPLE_COUNT_1_BIT,
        .sampledImageColorSampleCounts = VK_SAMPLE_COUNT_1_BIT,
        .sampledImageIntegerSampleCounts = VK_SAMPLE_COUNT_1_BIT,
        .storageImageSampleCounts = VK_SAMPLE_COUNT_1_BIT,
        .discreteQueuePriorities = 2,
    };
}

static void fill_limits(const fv_layout *layout, VkPhysicalDeviceLimits *limits)
{
    fill_other_limits(limits);
    limits->maxImageDimension1D = 16384;
    limits->maxImageDimension2D = 16384;
    limits->maxImageDimension3D = 2048;
    limits->maxImageDimensionCube = 16384;
    limits->maxImageArrayLayers = 2048;
    limits->maxFramebufferWidth = limits->maxFramebufferHeight = 16384;
    limits->maxFramebufferLayers = 2048;
    limits->maxMemoryAllocationCount = layout->max_allocations;
    limits->bufferImageGranularity = layout->granularity;
    limits->sparseAddressSpaceSize = layout->sparse_space;
    limits->minMemoryMapAlignment = (size_t)layout->map_alignment;
    limits->minTexelBufferOffsetAlignment = layout->texel_alignment;
    limits->minUniformBufferOffsetAlignment = layout->uniform_alignment;
    limits->minStorageBufferOffsetAlignment = layout->storage_alignment;
    limits->optimalBufferCopyOffsetAlignment = layout->copy_alignment;
    limits->optimalBufferCopyRowPitchAlignment = layout->copy_alignment;
    limits->nonCoherentAtomSize = layout->atom;
}

void fv_vkGetPhysicalDeviceProperties(VkPhysicalDevice handle, VkPhysicalDeviceProperties *out)
{
    const fv_physical_device *physical = physical_of(handle);
    const fv_layout *layout = &physical->layout;
    (void)fv_enter(physical->object.driver, FV_CALL_vkGetPhysicalDeviceProperties);
    *out = (VkPhysicalDeviceProperties){
        .apiVersion = layout->api_version,
        .driverVersion = 1,
        .vendorID = layout->vendor,
        .deviceID = layout->device,
        .deviceType = layout->type,
        .sparseProperties = {.residencyNonResidentStrict =
                                 layout->features & FV_SPARSE_BINDING ? VK_TRUE : VK_FALSE},
    };
    snprintf(out->deviceName, sizeof out->deviceName, "fake %s", layout->name);
    memcpy(out->pipelineCacheUUID, "quire fake drv", 15);
    fill_limits(layout, &out->limits);
    fv_leave(physical->object.driver);
}

static void fill_ids(const fv_physical_device *physical, uint8_t *device, uint8_t *driver)
{
    memcpy(device, "fake gpu number", VK_UUID_SIZE); /* the fake CUDA driver uses the same UUIDs */
    memset(driver, 0, VK_UUID_SIZE);
    device[VK_UUID_SIZE - 1] = (uint8_t)physical->index;
    driver[0] = 0xfa;
}

/* The structs of Vulkan 1.1, 1.2 and 1.3, which combine those of extensions. */
static bool fill_gathered(const fv_physical_device *physical, VkBaseOutStructure *link)
{
    const fv_layout *layout = &physical->layout;
    void *at = link;
    switch ((int)link->sType) {
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES: {
        VkPhysicalDeviceVulkan11Properties *all = at;
        fill_ids(physical, all->deviceUUID, all->driverUUID);
        all->deviceLUIDValid = VK_FALSE;
        all->deviceNodeMask = 1;
        all->subgroupSize = 4;
        all->subgroupSupportedStages = VK_SHADER_STAGE_COMPUTE_BIT;
        all->subgroupSupportedOperations = VK_SUBGROUP_FEATURE_BASIC_BIT;
        all->protectedNoFault = VK_FALSE;
        all->maxPerSetDescriptors = 1024;
        all->maxMemoryAllocationSize = layout->max_allocation;
        return true;
    }
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES: {
        VkPhysicalDeviceVulkan12Properties *all = at;
        snprintf(all->driverName, sizeof all->driverName, "quire fake");
        snprintf(all->driverInfo, sizeof all->driverInfo, "%s", layout->name);
        all->maxTimelineSemaphoreValueDifference = UINT32_MAX;
        return true;
    }
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES: {
        VkPhysicalDeviceVulkan13Properties *all = at;
        all->maxBufferSize = layout->max_buffer;
        return true;
    }
    default:
        return false;
    }
}

static void fill_single(const fv_physical_device *physical, VkBaseOutStructure *link)
{
    const fv_layout *layout = &physical->layout;
    void *at = link;
    switch ((int)link->sType) {
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES: {
        VkPhysicalDeviceMaintenance3Properties *one = at;
        one->maxPerSetDescriptors = 1024;
        one->maxMemoryAllocationSize = layout->max_allocation;
        break;
    }
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES:
        ((VkPhysicalDeviceMaintenance4Properties *)at)->maxBufferSize = layout->max_buffer;
        break;
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES: {
        VkPhysicalDeviceIDProperties *one = at;
        fill_ids(physical, one->deviceUUID, one->driverUUID);
        one->deviceLUIDValid = VK_FALSE;
        break;
    }
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES: {
        VkPhysicalDeviceDriverProperties *one = at;
        one->driverID = layout->driver;
        snprintf(one->driverName, sizeof one->driverName, "quire fake");
        snprintf(one->driverInfo, sizeof one->driverInfo, "%s", layout->name);
        break;
    }
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT:
        ((VkPhysicalDeviceExternalMemoryHostPropertiesEXT *)at)->minImportedHostPointerAlignment =
            layout->host_pointer_alignment;
        break;
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_PROPERTIES:
        ((VkPhysicalDeviceTimelineSemaphoreProperties *)at)->maxTimelineSemaphoreValueDifference =
            UINT32_MAX;
        break;
    default: /* a driver ignores unknown structs */
        break;
    }
}

void fv_vkGetPhysicalDeviceProperties2(VkPhysicalDevice handle, VkPhysicalDeviceProperties2 *out)
{
    const fv_physical_device *physical = physical_of(handle);
    fv_vkGetPhysicalDeviceProperties(handle, &out->properties);
    (void)fv_enter(physical->object.driver, FV_CALL_vkGetPhysicalDeviceProperties2);
    for (VkBaseOutStructure *link = out->pNext; link; link = link->pNext)
        if (!fill_gathered(physical, link))
            fill_single(physical, link);
    fv_leave(physical->object.driver);
}

/* ---- memory ------------------------------------------------------------------------------- */

static void fill_memory(const fv_layout *layout, VkPhysicalDeviceMemoryProperties *out)
{
    *out = (VkPhysicalDeviceMemoryProperties){.memoryTypeCount = layout->type_count,
                                              .memoryHeapCount = layout->heap_count};
    memcpy(out->memoryTypes, layout->types, sizeof layout->types);
    memcpy(out->memoryHeaps, layout->heaps, sizeof layout->heaps);
}

void fv_vkGetPhysicalDeviceMemoryProperties(VkPhysicalDevice handle,
                                            VkPhysicalDeviceMemoryProperties *out)
{
    const fv_physical_device *physical = physical_of(handle);
    (void)fv_enter(physical->object.driver, FV_CALL_vkGetPhysicalDeviceMemoryProperties);
    fill_memory(&physical->layout, out);
    fv_leave(physical->object.driver);
}

/* Unused entries are zero, as the extension requires. */
static void fill_budget(const fv_physical_device *physical,
                        VkPhysicalDeviceMemoryBudgetPropertiesEXT *out)
{
    const fv_driver *driver = physical->object.driver;
    for (uint32_t i = 0; i < VK_MAX_MEMORY_HEAPS; i++) {
        const fv_heap_state *heap = &driver->heaps[physical->index][i];
        uint64_t most = physical->layout.heaps[i].size / 5 * 4;
        uint64_t usual = most > heap->others ? most - heap->others : 1;
        bool there = i < physical->layout.heap_count;
        out->heapBudget[i] = !there ? 0 : heap->budget ? heap->budget : usual;
        out->heapUsage[i] = there ? heap->usage.bytes : 0;
    }
}

void fv_vkGetPhysicalDeviceMemoryProperties2(VkPhysicalDevice handle,
                                             VkPhysicalDeviceMemoryProperties2 *out)
{
    const fv_physical_device *physical = physical_of(handle);
    (void)fv_enter(physical->object.driver, FV_CALL_vkGetPhysicalDeviceMemoryProperties2);
    fill_memory(&physical->layout, &out->memoryProperties);
    for (VkBaseOutStructure *link = out->pNext; link; link = link->pNext)
        if (link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT &&
            physical->layout.extensions & FV_BIT(BUDGET))
            fill_budget(physical, (VkPhysicalDeviceMemoryBudgetPropertiesEXT *)(void *)link);
    fv_leave(physical->object.driver);
}

/* ---- queue families ----------------------------------------------------------------------- */

uint32_t fv_family_count(const fv_physical_device *physical)
{
    return physical->object.driver->options.flags & FV_SPARSE_APART ? FV_FAMILIES : FV_FAMILIES - 1;
}

VkQueueFlags fv_family_flags(const fv_physical_device *physical, uint32_t family)
{
    static const VkQueueFlags FLAGS[FV_FAMILIES] = {
        VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT,
        VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT,
        VK_QUEUE_TRANSFER_BIT,
        0,
    };
    bool is_apart = physical->object.driver->options.flags & FV_SPARSE_APART;
    VkQueueFlags flags = FLAGS[family];
    if (physical->layout.features & FV_SPARSE_BINDING && is_apart == (family == FV_FAMILIES - 1))
        flags |= VK_QUEUE_SPARSE_BINDING_BIT;
    if (physical->layout.features & FV_PROTECTED && FLAGS[family])
        flags |= VK_QUEUE_PROTECTED_BIT;
    return flags;
}

static VkQueueFamilyProperties family_at(const fv_physical_device *physical, uint32_t index)
{
    return (VkQueueFamilyProperties){.queueFlags = fv_family_flags(physical, index),
                                     .queueCount = FV_FAMILY_QUEUES,
                                     .minImageTransferGranularity = {1, 1, 1}};
}

void fv_vkGetPhysicalDeviceQueueFamilyProperties(VkPhysicalDevice handle, uint32_t *count,
                                                 VkQueueFamilyProperties *list)
{
    const fv_physical_device *physical = physical_of(handle);
    uint32_t all = fv_family_count(physical);
    (void)fv_enter(physical->object.driver, FV_CALL_vkGetPhysicalDeviceQueueFamilyProperties);
    for (uint32_t i = 0; list && i < *count && i < all; i++)
        list[i] = family_at(physical, i);
    *count = list && *count < all ? *count : all;
    fv_leave(physical->object.driver);
}

void fv_vkGetPhysicalDeviceQueueFamilyProperties2(VkPhysicalDevice handle, uint32_t *count,
                                                  VkQueueFamilyProperties2 *list)
{
    const fv_physical_device *physical = physical_of(handle);
    uint32_t all = fv_family_count(physical);
    (void)fv_enter(physical->object.driver, FV_CALL_vkGetPhysicalDeviceQueueFamilyProperties2);
    for (uint32_t i = 0; list && i < *count && i < all; i++)
        list[i].queueFamilyProperties = family_at(physical, i);
    *count = list && *count < all ? *count : all;
    fv_leave(physical->object.driver);
}
