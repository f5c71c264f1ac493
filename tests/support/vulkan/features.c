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

static const member MEMBERS[] = {
    {IN_CORE(VULKAN_1_1_FEATURES), offsetof(VkPhysicalDeviceVulkan11Features, protectedMemory),
     FV_PROTECTED},
    {IN_CORE(VULKAN_1_2_FEATURES), offsetof(VkPhysicalDeviceVulkan12Features, timelineSemaphore),
     FV_TIMELINE},
    {IN_CORE(VULKAN_1_2_FEATURES), offsetof(VkPhysicalDeviceVulkan12Features, bufferDeviceAddress),
     FV_ADDRESS},
    {IN_CORE(VULKAN_1_3_FEATURES), offsetof(VkPhysicalDeviceVulkan13Features, synchronization2),
     FV_SYNC2},
    {IN_CORE(VULKAN_1_3_FEATURES), offsetof(VkPhysicalDeviceVulkan13Features, maintenance4),
     FV_MAINTENANCE4},
    {IN_CORE(PROTECTED_MEMORY_FEATURES),
     offsetof(VkPhysicalDeviceProtectedMemoryFeatures, protectedMemory), FV_PROTECTED},
    {IN_CORE(TIMELINE_SEMAPHORE_FEATURES),
     offsetof(VkPhysicalDeviceTimelineSemaphoreFeatures, timelineSemaphore), FV_TIMELINE},
    {IN_CORE(BUFFER_DEVICE_ADDRESS_FEATURES),
     offsetof(VkPhysicalDeviceBufferDeviceAddressFeatures, bufferDeviceAddress), FV_ADDRESS},
    {IN_CORE(SYNCHRONIZATION_2_FEATURES),
     offsetof(VkPhysicalDeviceSynchronization2Features, synchronization2), FV_SYNC2},
    {IN_CORE(MAINTENANCE_4_FEATURES), offsetof(VkPhysicalDeviceMaintenance4Features, maintenance4),
     FV_MAINTENANCE4},
    {IN_CORE(MEMORY_PRIORITY_FEATURES_EXT),
     offsetof(VkPhysicalDeviceMemoryPriorityFeaturesEXT, memoryPriority), FV_PRIORITY},
    {IN_CORE(PAGEABLE_DEVICE_LOCAL_MEMORY_FEATURES_EXT),
     offsetof(VkPhysicalDevicePageableDeviceLocalMemoryFeaturesEXT, pageableDeviceLocalMemory),
     FV_PAGEABLE},
    {OF_ZERO, sizeof(VkBaseOutStructure), FV_ZERO},
    {IN_CORE(COHERENT_MEMORY_FEATURES_AMD),
     offsetof(VkPhysicalDeviceCoherentMemoryFeaturesAMD, deviceCoherentMemory), FV_DEVICE_COHERENT},
    {IN_CORE(FEATURES_2),
     offsetof(VkPhysicalDeviceFeatures2, features) +
         offsetof(VkPhysicalDeviceFeatures, robustBufferAccess),
     FV_ROBUST},
    {IN_CORE(FEATURES_2),
     offsetof(VkPhysicalDeviceFeatures2, features) +
         offsetof(VkPhysicalDeviceFeatures, sparseBinding),
     FV_SPARSE_BINDING},
    {IN_CORE(FEATURES_2),
     offsetof(VkPhysicalDeviceFeatures2, features) +
         offsetof(VkPhysicalDeviceFeatures, sparseResidencyBuffer),
     FV_SPARSE_BUFFER},
    {IN_CORE(FEATURES_2),
     offsetof(VkPhysicalDeviceFeatures2, features) +
         offsetof(VkPhysicalDeviceFeatures, sparseResidencyImage2D),
     FV_SPARSE_IMAGE},
    {IN_CORE(FEATURES_2),
     offsetof(VkPhysicalDeviceFeatures2, features) +
         offsetof(VkPhysicalDeviceFeatures, sparseResidencyImage3D),
     FV_SPARSE_IMAGE},
    {IN_CORE(FEATURES_2),
     offsetof(VkPhysicalDeviceFeatures2, features) +
         offsetof(VkPhysicalDeviceFeatures, sparseResidencyAliased),
     FV_SPARSE_ALIASED},
    {IN_CORE(FEATURES_2),
     offsetof(VkPhysicalDeviceFeatures2, features) +
         offsetof(VkPhysicalDeviceFeatures, sparseResidency4Samples),
     FV_SPARSE_SAMPLES},
};

/* The end of the last VkBool32 of each struct above; padding follows. */
#define END(type, member) (offsetof(type, member) + sizeof(VkBool32))

static const struct {
    VkStructureType type;
    size_t end;
} STRUCTS[] = {
    {IN_CORE(VULKAN_1_1_FEATURES), END(VkPhysicalDeviceVulkan11Features, shaderDrawParameters)},
    {IN_CORE(VULKAN_1_2_FEATURES),
     END(VkPhysicalDeviceVulkan12Features, subgroupBroadcastDynamicId)},
    {IN_CORE(VULKAN_1_3_FEATURES), END(VkPhysicalDeviceVulkan13Features, maintenance4)},
    {IN_CORE(PROTECTED_MEMORY_FEATURES),
     END(VkPhysicalDeviceProtectedMemoryFeatures, protectedMemory)},
    {IN_CORE(TIMELINE_SEMAPHORE_FEATURES),
     END(VkPhysicalDeviceTimelineSemaphoreFeatures, timelineSemaphore)},
    {IN_CORE(BUFFER_DEVICE_ADDRESS_FEATURES),
     END(VkPhysicalDeviceBufferDeviceAddressFeatures, bufferDeviceAddressMultiDevice)},
    {IN_CORE(SYNCHRONIZATION_2_FEATURES),
     END(VkPhysicalDeviceSynchronization2Features, synchronization2)},
    {IN_CORE(MAINTENANCE_4_FEATURES), END(VkPhysicalDeviceMaintenance4Features, maintenance4)},
    {IN_CORE(MEMORY_PRIORITY_FEATURES_EXT),
     END(VkPhysicalDeviceMemoryPriorityFeaturesEXT, memoryPriority)},
    {IN_CORE(PAGEABLE_DEVICE_LOCAL_MEMORY_FEATURES_EXT),
     END(VkPhysicalDevicePageableDeviceLocalMemoryFeaturesEXT, pageableDeviceLocalMemory)},
    {OF_ZERO, sizeof(VkBaseOutStructure) + sizeof(VkBool32)},
    {IN_CORE(COHERENT_MEMORY_FEATURES_AMD),
     END(VkPhysicalDeviceCoherentMemoryFeaturesAMD, deviceCoherentMemory)},
    {IN_CORE(FEATURES_2), offsetof(VkPhysicalDeviceFeatures2, features) +
                              END(VkPhysicalDeviceFeatures, inheritedQueries)},
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
