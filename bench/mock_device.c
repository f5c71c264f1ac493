/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * mock_device.c - see mock_device.h. Objects are handles that contain their size. Blocks of memory
 * are counted in the_driver.
 */
#include "bench/mock_device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/mock_driver.h"

enum { ALIGNMENT = 256, TEXEL = 4 };

#define IGNORE2(a, b) ((void)(a), (void)(b))
#define IGNORE3(a, b, c) (IGNORE2(a, b), (void)(c))
#define IGNORE4(a, b, c, d) (IGNORE3(a, b, c), (void)(d))

/* What instance, physical device, device and queue point to. */
static int handle;

/* ---- instance and device ------------------------------------------------------------------ */

static VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo *info,
                                                      const VkAllocationCallbacks *callbacks,
                                                      VkInstance *instance)
{
    IGNORE2(info, callbacks);
    *instance = (VkInstance)&handle;
    return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL destroy_instance(VkInstance instance,
                                                   const VkAllocationCallbacks *callbacks)
{
    IGNORE2(instance, callbacks);
}

static VKAPI_ATTR VkResult VKAPI_CALL instance_version(uint32_t *version)
{
    *version = VK_API_VERSION_1_1;
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL instance_extensions(const char *layer, uint32_t *count,
                                                          VkExtensionProperties *out)
{
    IGNORE2(layer, out);
    *count = 0;
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL device_extensions(VkPhysicalDevice device, const char *layer,
                                                        uint32_t *count, VkExtensionProperties *out)
{
    (void)device;
    return instance_extensions(layer, count, out);
}

static VKAPI_ATTR VkResult VKAPI_CALL list_devices(VkInstance instance, uint32_t *count,
                                                   VkPhysicalDevice *devices)
{
    (void)instance;
    if (devices)
        *devices = (VkPhysicalDevice)&handle;
    *count = 1;
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical,
                                                    const VkDeviceCreateInfo *info,
                                                    const VkAllocationCallbacks *callbacks,
                                                    VkDevice *device)
{
    IGNORE3(physical, info, callbacks);
    *device = (VkDevice)&handle;
    return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL destroy_device(VkDevice device,
                                                 const VkAllocationCallbacks *callbacks)
{
    IGNORE2(device, callbacks);
}

static VKAPI_ATTR VkResult VKAPI_CALL wait_idle(VkDevice device)
{
    (void)device;
    return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL get_queue(VkDevice device, uint32_t family, uint32_t index,
                                            VkQueue *queue)
{
    IGNORE3(device, family, index);
    *queue = (VkQueue)&handle;
}

/* ---- properties --------------------------------------------------------------------------- */

static VKAPI_ATTR void VKAPI_CALL get_properties(VkPhysicalDevice device,
                                                 VkPhysicalDeviceProperties *properties)
{
    (void)device;
    memset(properties, 0, sizeof *properties);
    properties->apiVersion = VK_API_VERSION_1_1;
    properties->deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    snprintf(properties->deviceName, sizeof properties->deviceName, "mock");
    properties->limits.maxMemoryAllocationCount = MOCK_MAX_PIECES;
    properties->limits.bufferImageGranularity = the_driver.granularity ? the_driver.granularity : 1;
    properties->limits.nonCoherentAtomSize = 1;
}

/* Leaves the chained structs as they are, but for the largest block. */
static VKAPI_ATTR void VKAPI_CALL get_properties2(VkPhysicalDevice device,
                                                  VkPhysicalDeviceProperties2 *out)
{
    get_properties(device, &out->properties);
    for (VkBaseOutStructure *link = out->pNext; link; link = link->pNext)
        if (link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES)
            ((VkPhysicalDeviceMaintenance3Properties *)link)->maxMemoryAllocationSize =
                MOCK_HEAP_SIZE;
}

static VKAPI_ATTR void VKAPI_CALL get_memory(VkPhysicalDevice device,
                                             VkPhysicalDeviceMemoryProperties *out)
{
    (void)device;
    memset(out, 0, sizeof *out);
    out->memoryHeapCount = out->memoryTypeCount = 2;
    out->memoryHeaps[0] = (VkMemoryHeap){MOCK_HEAP_SIZE, VK_MEMORY_HEAP_DEVICE_LOCAL_BIT};
    out->memoryHeaps[1] = (VkMemoryHeap){MOCK_HEAP_SIZE, 0};
    out->memoryTypes[0] = (VkMemoryType){VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, 0};
    out->memoryTypes[1] = (VkMemoryType){
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT, 1};
}

static VKAPI_ATTR void VKAPI_CALL get_memory2(VkPhysicalDevice device,
                                              VkPhysicalDeviceMemoryProperties2 *out)
{
    get_memory(device, &out->memoryProperties);
}

static VKAPI_ATTR void VKAPI_CALL get_features(VkPhysicalDevice device,
                                               VkPhysicalDeviceFeatures2 *features)
{
    (void)device;
    memset(&features->features, 0, sizeof features->features);
}

static VKAPI_ATTR void VKAPI_CALL get_families(VkPhysicalDevice device, uint32_t *count,
                                               VkQueueFamilyProperties *out)
{
    (void)device;
    if (out)
        *out = (VkQueueFamilyProperties){.queueFlags = VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT,
                                         .queueCount = 1};
    *count = 1;
}

static VKAPI_ATTR void VKAPI_CALL get_families2(VkPhysicalDevice device, uint32_t *count,
                                                VkQueueFamilyProperties2 *out)
{
    get_families(device, count, out ? &out->queueFamilyProperties : NULL);
}

static VKAPI_ATTR VkResult VKAPI_CALL get_format(VkPhysicalDevice device,
                                                 const VkPhysicalDeviceImageFormatInfo2 *info,
                                                 VkImageFormatProperties2 *out)
{
    IGNORE2(device, info);
    out->imageFormatProperties = (VkImageFormatProperties){.maxExtent = {16384, 16384, 1},
                                                           .maxMipLevels = 15,
                                                           .maxArrayLayers = 2048,
                                                           .sampleCounts = VK_SAMPLE_COUNT_1_BIT,
                                                           .maxResourceSize = MOCK_HEAP_SIZE};
    return VK_SUCCESS;
}

/* ---- memory ------------------------------------------------------------------------------- */

typedef struct block {
    uint64_t counted; /* handle of the_driver */
    uint64_t size;
    void *bytes; /* while it is mapped */
} block;

static VKAPI_ATTR VkResult VKAPI_CALL allocate_memory(VkDevice device,
                                                      const VkMemoryAllocateInfo *info,
                                                      const VkAllocationCallbacks *callbacks,
                                                      VkDeviceMemory *memory)
{
    IGNORE2(device, callbacks);
    block *made = calloc(1, sizeof *made);
    if (!made)
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    *made = (block){mock_make(info->allocationSize), info->allocationSize, NULL};
    *memory = (VkDeviceMemory)made;
    return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL free_memory(VkDevice device, VkDeviceMemory memory,
                                              const VkAllocationCallbacks *callbacks)
{
    block *freed = (block *)memory;
    IGNORE2(device, callbacks);
    if (!freed)
        return;
    mock_give(freed->counted);
    free(freed->bytes);
    free(freed);
}

static VKAPI_ATTR VkResult VKAPI_CALL map_memory(VkDevice device, VkDeviceMemory memory,
                                                 VkDeviceSize offset, VkDeviceSize size,
                                                 VkMemoryMapFlags flags, void **pointer)
{
    block *mapped = (block *)memory;
    IGNORE3(device, size, flags);
    mapped->bytes = malloc(mapped->size);
    *pointer = mapped->bytes ? (char *)mapped->bytes + offset : NULL;
    return mapped->bytes ? VK_SUCCESS : VK_ERROR_MEMORY_MAP_FAILED;
}

static VKAPI_ATTR void VKAPI_CALL unmap_memory(VkDevice device, VkDeviceMemory memory)
{
    block *mapped = (block *)memory;
    (void)device;
    free(mapped->bytes);
    mapped->bytes = NULL;
}

/* ---- buffers and images ------------------------------------------------------------------- */

static VKAPI_ATTR VkResult VKAPI_CALL create_buffer(VkDevice device, const VkBufferCreateInfo *info,
                                                    const VkAllocationCallbacks *callbacks,
                                                    VkBuffer *buffer)
{
    IGNORE2(device, callbacks);
    *buffer = (VkBuffer)(uintptr_t)info->size;
    return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL destroy_buffer(VkDevice device, VkBuffer buffer,
                                                 const VkAllocationCallbacks *callbacks)
{
    IGNORE3(device, buffer, callbacks);
}

static VKAPI_ATTR VkResult VKAPI_CALL create_image(VkDevice device, const VkImageCreateInfo *info,
                                                   const VkAllocationCallbacks *callbacks,
                                                   VkImage *image)
{
    IGNORE2(device, callbacks);
    *image = (VkImage)((uintptr_t)info->extent.width * info->extent.height * TEXEL);
    return VK_SUCCESS;
}

static VKAPI_ATTR void VKAPI_CALL destroy_image(VkDevice device, VkImage image,
                                                const VkAllocationCallbacks *callbacks)
{
    IGNORE3(device, image, callbacks);
}

static VkMemoryRequirements needs_of(uint64_t size)
{
    return (VkMemoryRequirements){(size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT, ALIGNMENT, 3};
}

static VKAPI_ATTR void VKAPI_CALL buffer_needs(VkDevice device, VkBuffer buffer,
                                               VkMemoryRequirements *out)
{
    (void)device;
    *out = needs_of((uintptr_t)buffer);
}

static VKAPI_ATTR void VKAPI_CALL buffer_needs2(VkDevice device,
                                                const VkBufferMemoryRequirementsInfo2 *info,
                                                VkMemoryRequirements2 *out)
{
    (void)device;
    out->memoryRequirements = needs_of((uintptr_t)info->buffer);
}

static VKAPI_ATTR void VKAPI_CALL image_needs(VkDevice device, VkImage image,
                                              VkMemoryRequirements *out)
{
    (void)device;
    *out = needs_of((uintptr_t)image);
}

static VKAPI_ATTR void VKAPI_CALL image_needs2(VkDevice device,
                                               const VkImageMemoryRequirementsInfo2 *info,
                                               VkMemoryRequirements2 *out)
{
    (void)device;
    out->memoryRequirements = needs_of((uintptr_t)info->image);
}

static VKAPI_ATTR VkResult VKAPI_CALL bind_buffer(VkDevice device, VkBuffer buffer,
                                                  VkDeviceMemory memory, VkDeviceSize offset)
{
    IGNORE4(device, buffer, memory, offset);
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL bind_image(VkDevice device, VkImage image,
                                                 VkDeviceMemory memory, VkDeviceSize offset)
{
    IGNORE4(device, image, memory, offset);
    return VK_SUCCESS;
}

/* ---- the table ---------------------------------------------------------------------------- */

static void stop(void)
{
    fprintf(stderr, "bench_vulkan: a function that the mock driver lacks was called\n");
    abort();
}

static PFN_vkVoidFunction VKAPI_CALL of_device(VkDevice device, const char *name);

#define ENTRY(name, function)                                                                      \
    {                                                                                              \
        "vk" #name, (PFN_vkVoidFunction)(function)                                                 \
    }

static const struct {
    const char *name;
    PFN_vkVoidFunction function;
} TABLE[] = {
    ENTRY(CreateInstance, create_instance),
    ENTRY(DestroyInstance, destroy_instance),
    ENTRY(EnumerateInstanceVersion, instance_version),
    ENTRY(EnumerateInstanceExtensionProperties, instance_extensions),
    ENTRY(EnumerateDeviceExtensionProperties, device_extensions),
    ENTRY(EnumeratePhysicalDevices, list_devices),
    ENTRY(CreateDevice, create_device),
    ENTRY(DestroyDevice, destroy_device),
    ENTRY(DeviceWaitIdle, wait_idle),
    ENTRY(GetDeviceQueue, get_queue),
    ENTRY(GetDeviceProcAddr, of_device),
    ENTRY(GetPhysicalDeviceProperties, get_properties),
    ENTRY(GetPhysicalDeviceProperties2, get_properties2),
    ENTRY(GetPhysicalDeviceMemoryProperties, get_memory),
    ENTRY(GetPhysicalDeviceMemoryProperties2, get_memory2),
    ENTRY(GetPhysicalDeviceFeatures2, get_features),
    ENTRY(GetPhysicalDeviceQueueFamilyProperties, get_families),
    ENTRY(GetPhysicalDeviceQueueFamilyProperties2, get_families2),
    ENTRY(GetPhysicalDeviceImageFormatProperties2, get_format),
    ENTRY(AllocateMemory, allocate_memory),
    ENTRY(FreeMemory, free_memory),
    ENTRY(MapMemory, map_memory),
    ENTRY(UnmapMemory, unmap_memory),
    ENTRY(CreateBuffer, create_buffer),
    ENTRY(DestroyBuffer, destroy_buffer),
    ENTRY(CreateImage, create_image),
    ENTRY(DestroyImage, destroy_image),
    ENTRY(GetBufferMemoryRequirements, buffer_needs),
    ENTRY(GetBufferMemoryRequirements2, buffer_needs2),
    ENTRY(GetImageMemoryRequirements, image_needs),
    ENTRY(GetImageMemoryRequirements2, image_needs2),
    ENTRY(BindBufferMemory, bind_buffer),
    ENTRY(BindImageMemory, bind_image),
};

/* Functions of extensions are absent. */
static bool is_extension(const char *name)
{
    size_t length = strlen(name);
    return length > 3 && (!strcmp(name + length - 3, "KHR") || !strcmp(name + length - 3, "EXT"));
}

static PFN_vkVoidFunction find(const char *name)
{
    for (size_t i = 0; i < sizeof TABLE / sizeof *TABLE; i++)
        if (!strcmp(TABLE[i].name, name))
            return TABLE[i].function;
    return is_extension(name) ? NULL : stop;
}

static PFN_vkVoidFunction VKAPI_CALL of_device(VkDevice device, const char *name)
{
    (void)device;
    return find(name);
}

PFN_vkVoidFunction VKAPI_CALL mock_get_instance_proc_addr(VkInstance instance, const char *name)
{
    (void)instance;
    return find(name);
}
