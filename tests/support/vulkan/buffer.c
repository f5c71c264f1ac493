/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * buffer.c - buffers of the fake driver. A create info is described in the same way for a buffer
 * and for a query without one.
 */
#include "tests/support/vulkan/resource.h"
#include "tests/support/vulkan/table.h"

#define SPARSE_BLOCK UINT64_C(65536)

static uint64_t round_up(uint64_t value, uint64_t alignment)
{
    return (value + alignment - 1) / alignment * alignment;
}

static uint64_t largest(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t alignment_for(const fv_layout *layout, VkBufferUsageFlags usage)
{
    uint64_t alignment = 16;
    if (usage & VK_BUFFER_USAGE_STORAGE_BUFFER_BIT)
        alignment = largest(alignment, layout->storage_alignment);
    if (usage & VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT)
        alignment = largest(alignment, layout->uniform_alignment);
    if (usage &
        (VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT | VK_BUFFER_USAGE_STORAGE_TEXEL_BUFFER_BIT))
        alignment = largest(alignment, layout->texel_alignment);
    return alignment;
}

/* VkBufferUsageFlags2CreateInfoKHR, which older headers lack. */
typedef struct usage2 {
    VkStructureType sType;
    const void *pNext;
    uint64_t usage;
} usage2;

#define USAGE2 ((VkStructureType)1000470006)

/* With maintenance5 the usage may be in the pNext chain instead. */
static VkBufferUsageFlags usage_of(const VkBufferCreateInfo *info)
{
    const usage2 *wide = fv_chained(info->pNext, USAGE2);
    return wide ? (VkBufferUsageFlags)wide->usage : info->usage;
}

static VkExternalMemoryHandleTypeFlags external_of(const VkBufferCreateInfo *info)
{
    const VkExternalMemoryBufferCreateInfo *external =
        fv_chained(info->pNext, VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO);
    return external ? external->handleTypes : 0;
}

VkResult fv_buffer_describe(fv_device *device, const VkBufferCreateInfo *info, fv_buffer *buffer)
{
    const fv_layout *layout = fv_layout_of(device);
    fv_resource *resource = &buffer->resource;
    uint64_t alignment = alignment_for(layout, usage_of(info));
    buffer->size = info->size;
    buffer->usage = usage_of(info);
    if (info->sharingMode == VK_SHARING_MODE_CONCURRENT)
        for (uint32_t i = 0; i < info->queueFamilyIndexCount; i++)
            buffer->sharing |= UINT32_C(1) << info->pQueueFamilyIndices[i];
    resource->linear = true;
    resource->external = external_of(info);
    resource->sparse = info->flags & VK_BUFFER_CREATE_SPARSE_BINDING_BIT;
    resource->guarded = info->flags & VK_BUFFER_CREATE_PROTECTED_BIT;
    if (info->size > layout->max_buffer || info->size > UINT64_MAX / 2)
        return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    alignment = resource->sparse ? SPARSE_BLOCK : alignment;
    resource->needs =
        (VkMemoryRequirements){.size = round_up(info->size, alignment),
                               .alignment = alignment,
                               .memoryTypeBits = fv_types_for(layout, false, resource->guarded)};
    bool is_more = buffer->usage & ~(VkBufferUsageFlags)(VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                                         VK_BUFFER_USAGE_TRANSFER_DST_BIT);
    bool is_alone = fv_driver_of(device)->options.flags & FV_DEDICATED_BUFFERS && is_more;
    if (!resource->sparse)
        fv_be_awkward(device, false, resource->external || is_alone, resource);
    return VK_SUCCESS;
}

/* maxBufferSize belongs to maintenance4. */
static void check_size(fv_device *device, fv_call call, const VkBufferCreateInfo *info)
{
    uint64_t most = fv_layout_of(device)->max_buffer;
    if (info->size > most && device->features & FV_MAINTENANCE4)
        fv_say(fv_driver_of(device), FV_ERROR, "VUID-VkBufferCreateInfo-size-06409", call,
               "%" PRIu64 " bytes; maxBufferSize is %" PRIu64, info->size, most);
}

/* Families of a concurrent buffer: two or more, which exist, each once. */
static void check_sharing(fv_device *device, const VkBufferCreateInfo *info)
{
    fv_driver *driver = fv_driver_of(device);
    uint32_t seen = 0;
    if (info->sharingMode != VK_SHARING_MODE_CONCURRENT)
        return;
    if (info->queueFamilyIndexCount < 2 || !info->pQueueFamilyIndices)
        FV_WRONG(driver, "VUID-VkBufferCreateInfo-sharingMode-00914", vkCreateBuffer,
                 "shared by fewer than two families");
    for (uint32_t i = 0; i < info->queueFamilyIndexCount; i++) {
        uint32_t family = info->pQueueFamilyIndices[i];
        if (family >= fv_family_count(device->physical) || seen >> family & 1)
            FV_WRONG(driver, "VUID-VkBufferCreateInfo-sharingMode-01419", vkCreateBuffer,
                     "family %u does not exist, or occurs twice", family);
        else
            seen |= UINT32_C(1) << family;
    }
}

static void check(fv_device *device, const VkBufferCreateInfo *info)
{
    fv_driver *driver = fv_driver_of(device);
    uint32_t features = device->features;
    check_sharing(device, info);
    FV_CHECK_CHAIN(driver, vkCreateBuffer, info->pNext,
                   VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
                   VK_STRUCTURE_TYPE_BUFFER_OPAQUE_CAPTURE_ADDRESS_CREATE_INFO, USAGE2);
    if (!info->size)
        FV_WRONG(driver, "VUID-VkBufferCreateInfo-size-00912", vkCreateBuffer, "0 bytes");
    if (!usage_of(info))
        FV_WRONG(driver, "VUID-VkBufferCreateInfo-usage-requiredbitmask", vkCreateBuffer,
                 "no usage");
    if (info->flags & VK_BUFFER_CREATE_SPARSE_BINDING_BIT && !(features & FV_SPARSE_BINDING))
        FV_WRONG(driver, "VUID-VkBufferCreateInfo-flags-00915", vkCreateBuffer,
                 "sparse without the feature");
    if (info->flags & VK_BUFFER_CREATE_SPARSE_RESIDENCY_BIT && !(features & FV_SPARSE_BUFFER))
        FV_WRONG(driver, "VUID-VkBufferCreateInfo-flags-00916", vkCreateBuffer,
                 "sparse residency without the feature");
    if (info->flags & VK_BUFFER_CREATE_PROTECTED_BIT && !(features & FV_PROTECTED))
        FV_WRONG(driver, "VUID-VkBufferCreateInfo-flags-01887", vkCreateBuffer,
                 "protected without the feature");
    if (usage_of(info) & VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT && !(features & FV_ADDRESS))
        FV_WRONG(driver, "fv-feature", vkCreateBuffer, "a device address without the feature");
    fv_check_handle_types(device, FV_CALL_vkCreateBuffer, external_of(info));
    check_size(device, FV_CALL_vkCreateBuffer, info);
}

VkResult fv_vkCreateBuffer(VkDevice handle, const VkBufferCreateInfo *info,
                           const VkAllocationCallbacks *callbacks, VkBuffer *out)
{
    fv_device *device = (fv_device *)handle;
    fv_driver *driver = fv_driver_of(device);
    fv_buffer described = {0};
    (void)callbacks;
    VkResult result = fv_enter(driver, FV_CALL_vkCreateBuffer);
    if (!result) {
        check(device, info);
        result = fv_buffer_describe(device, info, &described);
    }
    if (!result) {
        fv_buffer *buffer = fv_object_new(driver, device, FV_BUFFER, sizeof *buffer);
        described.resource.object = buffer->resource.object;
        *buffer = described;
        if (buffer->resource.sparse) {
            buffer->sparse_address = device->next_address;
            device->next_address += round_up(buffer->resource.needs.size, SPARSE_BLOCK);
        }
        *out = FV_HANDLE(VkBuffer, &buffer->resource.object);
    } else
        *out = (VkBuffer)FV_GARBAGE;
    fv_leave(driver);
    return result;
}

void fv_vkDestroyBuffer(VkDevice device, VkBuffer buffer, const VkAllocationCallbacks *callbacks)
{
    (void)callbacks;
    fv_resource_destroy((fv_device *)device, FV_CALL_vkDestroyBuffer, FV_BUFFER, (uint64_t)buffer);
}

/* ---- requirements ------------------------------------------------------------------------- */

void fv_vkGetBufferMemoryRequirements(VkDevice device, VkBuffer buffer, VkMemoryRequirements *out)
{
    VkMemoryRequirements2 all = {.sType = VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2};
    fv_requirements_of((fv_device *)device, FV_CALL_vkGetBufferMemoryRequirements, FV_BUFFER,
                       (uint64_t)buffer, &all);
    *out = all.memoryRequirements;
}

void fv_vkGetBufferMemoryRequirements2(VkDevice device, const VkBufferMemoryRequirementsInfo2 *info,
                                       VkMemoryRequirements2 *out)
{
    fv_requirements_of((fv_device *)device, FV_CALL_vkGetBufferMemoryRequirements2, FV_BUFFER,
                       (uint64_t)info->buffer, out);
}

void fv_vkGetDeviceBufferMemoryRequirements(VkDevice handle,
                                            const VkDeviceBufferMemoryRequirements *info,
                                            VkMemoryRequirements2 *out)
{
    fv_device *device = (fv_device *)handle;
    fv_buffer described = {0};
    (void)fv_enter(fv_driver_of(device), FV_CALL_vkGetDeviceBufferMemoryRequirements);
    device->asked_ahead = true;
    if (!(device->features & FV_MAINTENANCE4))
        FV_WRONG(fv_driver_of(device), "fv-feature", vkGetDeviceBufferMemoryRequirements,
                 "without the feature maintenance4");
    check_size(device, FV_CALL_vkGetDeviceBufferMemoryRequirements, info->pCreateInfo);
    (void)fv_buffer_describe(device, info->pCreateInfo, &described);
    fv_tell_requirements(&described.resource, out);
    fv_leave(fv_driver_of(device));
}

/* ---- device addresses --------------------------------------------------------------------- */

static uint64_t address_of(fv_device *device, fv_call call, VkBuffer handle)
{
    fv_driver *driver = fv_driver_of(device);
    const fv_buffer *buffer = fv_object_find(device, call, FV_BUFFER, (uint64_t)handle);
    if (!buffer)
        return 0;
    const fv_resource *resource = &buffer->resource;
    if (!(device->features & FV_ADDRESS))
        fv_say(driver, FV_ERROR, "VUID-vkGetBufferDeviceAddress-bufferDeviceAddress-03324", call,
               "without the feature");
    if (!(buffer->usage & VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT))
        fv_say(driver, FV_ERROR, "VUID-VkBufferDeviceAddressInfo-buffer-02601", call,
               "'%s' was made without SHADER_DEVICE_ADDRESS", resource->object.name);
    if (resource->sparse)
        return buffer->sparse_address;
    if (resource->memory)
        return resource->memory->address + resource->offset;
    fv_say(driver, FV_ERROR, "VUID-VkBufferDeviceAddressInfo-buffer-02600", call,
           "'%s' has no memory", resource->object.name);
    return 0;
}

VkDeviceAddress fv_vkGetBufferDeviceAddress(VkDevice handle, const VkBufferDeviceAddressInfo *info)
{
    fv_device *device = (fv_device *)handle;
    (void)fv_enter(fv_driver_of(device), FV_CALL_vkGetBufferDeviceAddress);
    uint64_t address = address_of(device, FV_CALL_vkGetBufferDeviceAddress, info->buffer);
    fv_leave(fv_driver_of(device));
    return address;
}
