/*
 * enabled.c - finds out which features and extensions an instance and a device were created with.
 *
 * Vulkan cannot be queried for them, so that they are read from the create infos: the extension
 * names, pEnabledFeatures and the structs of the pNext chain.
 */
#include <string.h>

#include "backends/vulkan/device.h"

static bool has_name(const char *const *names, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (!strcmp(names[i], name))
            return true;
    return false;
}

static bool has_extension(const VkDeviceCreateInfo *device, const char *name)
{
    return has_name(device->ppEnabledExtensionNames, device->enabledExtensionCount, name);
}

/* A chain can state a feature in several structs, so that the values are combined. */
static void read_features(const VkPhysicalDeviceFeatures *features, qi_vulkan_enabled *out)
{
    out->sparse_binding |= features->sparseBinding != 0;
    out->sparse_buffer |= features->sparseResidencyBuffer != 0;
    out->sparse_image_2d |= features->sparseResidencyImage2D != 0;
    out->sparse_image_3d |= features->sparseResidencyImage3D != 0;
    out->sparse_aliased |= features->sparseResidencyAliased != 0;
    out->sparse_samples |= features->sparseResidency2Samples ? VK_SAMPLE_COUNT_2_BIT : 0;
    out->sparse_samples |= features->sparseResidency4Samples ? VK_SAMPLE_COUNT_4_BIT : 0;
    out->sparse_samples |= features->sparseResidency8Samples ? VK_SAMPLE_COUNT_8_BIT : 0;
    out->sparse_samples |= features->sparseResidency16Samples ? VK_SAMPLE_COUNT_16_BIT : 0;
}

/* Reads one struct of the pNext chain. Unknown types are skipped. */
static void read_struct(const VkBaseInStructure *link, qi_vulkan_enabled *out)
{
    switch ((int)link->sType) {
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2:
        read_features(&((const VkPhysicalDeviceFeatures2 *)link)->features, out);
        break;
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES:
        out->protected_memory |=
            ((const VkPhysicalDeviceVulkan11Features *)link)->protectedMemory != 0;
        break;
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROTECTED_MEMORY_FEATURES:
        out->protected_memory |=
            ((const VkPhysicalDeviceProtectedMemoryFeatures *)link)->protectedMemory != 0;
        break;
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES:
        out->device_address |=
            ((const VkPhysicalDeviceVulkan12Features *)link)->bufferDeviceAddress != 0;
        out->timeline |= ((const VkPhysicalDeviceVulkan12Features *)link)->timelineSemaphore != 0;
        break;
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES:
        out->timeline |=
            ((const VkPhysicalDeviceTimelineSemaphoreFeatures *)link)->timelineSemaphore != 0;
        break;
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES:
        out->device_address |=
            ((const VkPhysicalDeviceBufferDeviceAddressFeatures *)link)->bufferDeviceAddress != 0;
        break;
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES:
        out->maintenance4 |= ((const VkPhysicalDeviceVulkan13Features *)link)->maintenance4 != 0;
        break;
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES:
        out->maintenance4 |=
            ((const VkPhysicalDeviceMaintenance4Features *)link)->maintenance4 != 0;
        break;
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PRIORITY_FEATURES_EXT:
        out->memory_priority |=
            ((const VkPhysicalDeviceMemoryPriorityFeaturesEXT *)link)->memoryPriority != 0;
        break;
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PAGEABLE_DEVICE_LOCAL_MEMORY_FEATURES_EXT:
        out->pageable |= ((const VkPhysicalDevicePageableDeviceLocalMemoryFeaturesEXT *)link)
                             ->pageableDeviceLocalMemory != 0;
        break;
    case (int)QI_VULKAN_ZERO_FEATURES:
        out->zero_initialize |=
            ((const qi_vulkan_zero_features *)link)->zeroInitializeDeviceMemory != 0;
        break;
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COHERENT_MEMORY_FEATURES_AMD:
        out->device_coherent |=
            ((const VkPhysicalDeviceCoherentMemoryFeaturesAMD *)link)->deviceCoherentMemory != 0;
        break;
    default:
        break;
    }
}

/* A feature is enabled only with the version or extension that it belongs to. */
static void read_device(uint32_t api_version, const VkDeviceCreateInfo *device,
                        qi_vulkan_enabled *out)
{
    for (const VkBaseInStructure *link = device->pNext; link; link = link->pNext)
        read_struct(link, out);
    if (device->pEnabledFeatures)
        read_features(device->pEnabledFeatures, out);
    out->device_address &= api_version >= VK_API_VERSION_1_2 ||
                           has_extension(device, VK_KHR_BUFFER_DEVICE_ADDRESS_EXTENSION_NAME);
    out->timeline &= api_version >= VK_API_VERSION_1_2 ||
                     has_extension(device, VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME);
    out->maintenance4 &= api_version >= VK_API_VERSION_1_3 ||
                         has_extension(device, VK_KHR_MAINTENANCE_4_EXTENSION_NAME);
    out->max_buffer = has_extension(device, VK_KHR_MAINTENANCE_4_EXTENSION_NAME);
    out->memory_priority &= has_extension(device, VK_EXT_MEMORY_PRIORITY_EXTENSION_NAME);
    out->pageable &= has_extension(device, VK_EXT_PAGEABLE_DEVICE_LOCAL_MEMORY_EXTENSION_NAME);
    out->zero_initialize &= has_extension(device, QI_VULKAN_ZERO_EXTENSION);
    out->device_coherent &= has_extension(device, VK_AMD_DEVICE_COHERENT_MEMORY_EXTENSION_NAME);
    out->memory_budget = has_extension(device, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
    out->external_fd = has_extension(device, VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
    out->dma_buf =
        out->external_fd && has_extension(device, VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME);
    out->host_pointer = has_extension(device, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
    out->win32 = has_extension(device, "VK_KHR_external_memory_win32");
}

qi_vulkan_enabled qi_vulkan_find_enabled(uint32_t api_version, const VkInstanceCreateInfo *instance,
                                         const VkDeviceCreateInfo *device)
{
    qi_vulkan_enabled out = {0};
    out.debug_utils = has_name(instance->ppEnabledExtensionNames, instance->enabledExtensionCount,
                               VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
    read_device(api_version, device, &out);
    return out;
}
