/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * features.c - features of the fake's devices. One table states where Vulkan's structs have them;
 * it is used to report them, and to read and check them when a device is created.
 */
#include <stddef.h>
#include <string.h>

#include "tests/support/vulkan/device.h"
#include "tests/support/vulkan/table.h"

typedef struct member {
    VkStructureType type;
    size_t offset;
    uint32_t feature;
} member;

#define IN_CORE(type) VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_##type

/* VkPhysicalDeviceZeroInitializeDeviceMemoryFeaturesEXT, which headers of 1.3 lack. */
#define OF_ZERO ((VkStructureType)1000620000)

#define IN(type, in, member) IN_CORE(type), offsetof(VkPhysicalDevice##in, member)

static const member MEMBERS[] = {
    {IN(VULKAN_1_1_FEATURES, Vulkan11Features, protectedMemory), FV_PROTECTED},
    {IN(VULKAN_1_2_FEATURES, Vulkan12Features, timelineSemaphore), FV_TIMELINE},
    {IN(VULKAN_1_2_FEATURES, Vulkan12Features, bufferDeviceAddress), FV_ADDRESS},
    {IN(VULKAN_1_3_FEATURES, Vulkan13Features, synchronization2), FV_SYNC2},
    {IN(VULKAN_1_3_FEATURES, Vulkan13Features, maintenance4), FV_MAINTENANCE4},
    {IN(PROTECTED_MEMORY_FEATURES, ProtectedMemoryFeatures, protectedMemory), FV_PROTECTED},
    {IN(TIMELINE_SEMAPHORE_FEATURES, TimelineSemaphoreFeatures, timelineSemaphore), FV_TIMELINE},
    {IN(BUFFER_DEVICE_ADDRESS_FEATURES, BufferDeviceAddressFeatures, bufferDeviceAddress),
     FV_ADDRESS},
    {IN(SYNCHRONIZATION_2_FEATURES, Synchronization2Features, synchronization2), FV_SYNC2},
    {IN(MAINTENANCE_4_FEATURES, Maintenance4Features, maintenance4), FV_MAINTENANCE4},
    {IN(MEMORY_PRIORITY_FEATURES_EXT, MemoryPriorityFeaturesEXT, memoryPriority), FV_PRIORITY},
    {IN(PAGEABLE_DEVICE_LOCAL_MEMORY_FEATURES_EXT, PageableDeviceLocalMemoryFeaturesEXT,
        pageableDeviceLocalMemory),
     FV_PAGEABLE},
    {OF_ZERO, sizeof(VkBaseOutStructure), FV_ZERO},
    {IN(COHERENT_MEMORY_FEATURES_AMD, CoherentMemoryFeaturesAMD, deviceCoherentMemory),
     FV_DEVICE_COHERENT},
    {IN(FEATURES_2, Features2, features.robustBufferAccess), FV_ROBUST},
    {IN(FEATURES_2, Features2, features.sparseBinding), FV_SPARSE_BINDING},
    {IN(FEATURES_2, Features2, features.sparseResidencyBuffer), FV_SPARSE_BUFFER},
    {IN(FEATURES_2, Features2, features.sparseResidencyImage2D), FV_SPARSE_IMAGE},
    {IN(FEATURES_2, Features2, features.sparseResidencyImage3D), FV_SPARSE_IMAGE},
    {IN(FEATURES_2, Features2, features.sparseResidencyAliased), FV_SPARSE_ALIASED},
    {IN(FEATURES_2, Features2, features.sparseResidency4Samples), FV_SPARSE_SAMPLES},
};

/* The end of the last VkBool32 of each struct above; padding follows. */
#define UP_TO(type, in, last) IN_CORE(type), offsetof(VkPhysicalDevice##in, last) + sizeof(VkBool32)

static const struct {
    VkStructureType type;
    size_t end;
} STRUCTS[] = {
    {UP_TO(VULKAN_1_1_FEATURES, Vulkan11Features, shaderDrawParameters)},
    {UP_TO(VULKAN_1_2_FEATURES, Vulkan12Features, subgroupBroadcastDynamicId)},
    {UP_TO(VULKAN_1_3_FEATURES, Vulkan13Features, maintenance4)},
    {UP_TO(PROTECTED_MEMORY_FEATURES, ProtectedMemoryFeatures, protectedMemory)},
    {UP_TO(TIMELINE_SEMAPHORE_FEATURES, TimelineSemaphoreFeatures, timelineSemaphore)},
    {UP_TO(BUFFER_DEVICE_ADDRESS_FEATURES, BufferDeviceAddressFeatures,
           bufferDeviceAddressMultiDevice)},
    {UP_TO(SYNCHRONIZATION_2_FEATURES, Synchronization2Features, synchronization2)},
    {UP_TO(MAINTENANCE_4_FEATURES, Maintenance4Features, maintenance4)},
    {UP_TO(MEMORY_PRIORITY_FEATURES_EXT, MemoryPriorityFeaturesEXT, memoryPriority)},
    {UP_TO(PAGEABLE_DEVICE_LOCAL_MEMORY_FEATURES_EXT, PageableDeviceLocalMemoryFeaturesEXT,
           pageableDeviceLocalMemory)},
    {OF_ZERO, sizeof(VkBaseOutStructure) + sizeof(VkBool32)},
    {UP_TO(COHERENT_MEMORY_FEATURES_AMD, CoherentMemoryFeaturesAMD, deviceCoherentMemory)},
    {UP_TO(FEATURES_2, Features2, features.inheritedQueries)},
};

static size_t end_of(VkStructureType type)
{
    for (size_t i = 0; i < sizeof STRUCTS / sizeof *STRUCTS; i++)
        if (STRUCTS[i].type == type)
            return STRUCTS[i].end;
    return 0;
}

/* Returns the feature of the VkBool32 at this offset. 0: the fake does not have it. */
static uint32_t feature_at(VkStructureType type, size_t offset)
{
    for (size_t i = 0; i < sizeof MEMBERS / sizeof *MEMBERS; i++)
        if (MEMBERS[i].type == type && MEMBERS[i].offset == offset)
            return MEMBERS[i].feature;
    return 0;
}

static void tell_struct(VkBaseOutStructure *link, uint32_t features)
{
    size_t end = end_of(link->sType);
    for (size_t at = sizeof *link; at + sizeof(VkBool32) <= end; at += sizeof(VkBool32)) {
        VkBool32 value = feature_at(link->sType, at) & features ? VK_TRUE : VK_FALSE;
        memcpy((char *)link + at, &value, sizeof value);
    }
}

/* Adds the features that a struct requests to *asked. Returns false if one is not offered. */
static bool read_struct(const VkBaseInStructure *link, uint32_t offered, uint32_t *asked)
{
    size_t end = end_of(link->sType);
    bool good = true;
    for (size_t at = sizeof *link; at + sizeof(VkBool32) <= end; at += sizeof(VkBool32)) {
        VkBool32 value;
        uint32_t feature = feature_at(link->sType, at);
        memcpy(&value, (const char *)link + at, sizeof value);
        good &= !value || feature & offered;
        *asked |= value ? feature : 0;
    }
    return good;
}

void fv_vkGetPhysicalDeviceFeatures(VkPhysicalDevice handle, VkPhysicalDeviceFeatures *out)
{
    const fv_physical_device *physical = (const fv_physical_device *)handle;
    VkPhysicalDeviceFeatures2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
    (void)fv_enter(physical->object.driver, FV_CALL_vkGetPhysicalDeviceFeatures);
    tell_struct((VkBaseOutStructure *)(void *)&all, physical->layout.features);
    *out = all.features;
    fv_leave(physical->object.driver);
}

void fv_vkGetPhysicalDeviceFeatures2(VkPhysicalDevice handle, VkPhysicalDeviceFeatures2 *out)
{
    const fv_physical_device *physical = (const fv_physical_device *)handle;
    (void)fv_enter(physical->object.driver, FV_CALL_vkGetPhysicalDeviceFeatures2);
    for (VkBaseOutStructure *link = (void *)out; link; link = link->pNext)
        tell_struct(link, physical->layout.features);
    fv_leave(physical->object.driver);
}

/* The loader's own struct, which may occur twice: VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO. */
enum { OF_LOADER = 48 };

/* Checks that no struct occurs twice, and none beside the struct of a core version that contains
   it. */
static void check_chain(fv_driver *driver, const VkDeviceCreateInfo *info)
{
    static const VkStructureType OF_1_2[] = {IN_CORE(TIMELINE_SEMAPHORE_FEATURES),
                                             IN_CORE(BUFFER_DEVICE_ADDRESS_FEATURES)},
                                 OF_1_3[] = {IN_CORE(SYNCHRONIZATION_2_FEATURES),
                                             IN_CORE(MAINTENANCE_4_FEATURES)};
    for (const VkBaseInStructure *link = info->pNext; link; link = link->pNext)
        if (fv_chained(link->pNext, link->sType) && (int)link->sType != OF_LOADER)
            FV_WRONG(driver, "VUID-VkDeviceCreateInfo-sType-unique", vkCreateDevice,
                     "a struct with sType %d occurs twice", (int)link->sType);
    for (size_t i = 0; i < 2; i++) {
        if (fv_chained(info->pNext, IN_CORE(VULKAN_1_2_FEATURES)) &&
            fv_chained(info->pNext, OF_1_2[i]))
            FV_WRONG(driver, "VUID-VkDeviceCreateInfo-pNext-02830", vkCreateDevice,
                     "a struct beside VkPhysicalDeviceVulkan12Features");
        if (fv_chained(info->pNext, IN_CORE(VULKAN_1_3_FEATURES)) &&
            fv_chained(info->pNext, OF_1_3[i]))
            FV_WRONG(driver, "VUID-VkDeviceCreateInfo-pNext-06532", vkCreateDevice,
                     "a struct beside VkPhysicalDeviceVulkan13Features");
    }
    if (info->pEnabledFeatures && fv_chained(info->pNext, IN_CORE(FEATURES_2)))
        FV_WRONG(driver, "VUID-VkDeviceCreateInfo-pNext-00373", vkCreateDevice,
                 "pEnabledFeatures beside VkPhysicalDeviceFeatures2");
}

bool fv_features_asked(const fv_physical_device *physical, const VkDeviceCreateInfo *info,
                       uint32_t *features)
{
    uint32_t offered = physical->layout.features;
    bool good = true;
    *features = 0;
    check_chain(physical->object.driver, info);
    for (const VkBaseInStructure *link = info->pNext; link; link = link->pNext)
        good &= read_struct(link, offered, features);
    if (info->pEnabledFeatures) {
        VkPhysicalDeviceFeatures2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                         .features = *info->pEnabledFeatures};
        good &= read_struct((const VkBaseInStructure *)(const void *)&all, offered, features);
    }
    return good;
}
