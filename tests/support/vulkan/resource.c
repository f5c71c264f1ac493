/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * resource.c - memory requirements of buffers and images: those of most drivers, or unusual ones.
 */
#include <stdlib.h>

#include "tests/support/vulkan/image.h"

uint32_t fv_types_for(const fv_layout *layout, bool transient, bool guarded)
{
    uint32_t types = 0;
    for (uint32_t i = 0; i < layout->type_count; i++) {
        VkMemoryPropertyFlags flags = layout->types[i].propertyFlags;
        bool lazy = flags & VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT;
        if (!flags || (lazy && !transient) ||
            !(flags & VK_MEMORY_PROPERTY_PROTECTED_BIT) == guarded)
            continue;
        types |= UINT32_C(1) << i;
    }
    return types;
}

/* Returns the last type with all these flags. 0: no type has them. */
static uint32_t last_with(const fv_layout *layout, uint32_t types, VkMemoryPropertyFlags flags)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < layout->type_count; i++)
        if (types >> i & 1 && (layout->types[i].propertyFlags & flags) == flags)
            last = UINT32_C(1) << i;
    return last;
}

/*
 * Removes every second type. One device-local type stays, and for linear resources one that is
 * host-visible and coherent, because the specification guarantees both.
 */
static uint32_t thin_out(const fv_layout *layout, uint32_t types, bool linear)
{
    VkMemoryPropertyFlags coherent =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    uint32_t left = 0;
    bool keep = true;
    for (uint32_t bit = 1; bit; bit <<= 1) {
        if (!(types & bit))
            continue;
        left |= keep ? bit : 0;
        keep = !keep;
    }
    if (!last_with(layout, left, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT))
        left |= last_with(layout, types, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
    if (linear && !last_with(layout, left, coherent))
        left |= last_with(layout, types, coherent);
    return left;
}

void fv_be_awkward(const fv_device *device, bool image, bool alone, fv_resource *resource)
{
    uint32_t flags = fv_driver_of(device)->options.flags;
    VkMemoryRequirements *needs = &resource->needs;
    uint64_t alignment = image ? 65536 : 4096;
    if (flags & FV_LARGE_ALIGNMENTS && needs->alignment < alignment)
        needs->alignment = alignment;
    if (flags & FV_ODD_SIZES)
        needs->size += needs->size / 16 + (needs->size % 2 ? 2 : 1) + (needs->size / 16) % 2;
    if (flags & FV_FEW_TYPES)
        needs->memoryTypeBits =
            thin_out(fv_layout_of(device), needs->memoryTypeBits, resource->linear);
    resource->requires_dedicated = (flags & FV_REQUIRE_DEDICATED && (image || alone)) ||
                                   (flags & FV_DEDICATED_ONLY && resource->external);
    resource->prefers_dedicated =
        resource->requires_dedicated || (flags & FV_PREFER_DEDICATED && (image || alone));
}

void fv_tell_requirements(const fv_resource *resource, VkMemoryRequirements2 *out)
{
    out->memoryRequirements = resource->needs;
    for (VkBaseOutStructure *link = out->pNext; link; link = link->pNext)
        if (link->sType == VK_STRUCTURE_TYPE_MEMORY_DEDICATED_REQUIREMENTS) {
            VkMemoryDedicatedRequirements *dedicated = (void *)link;
            dedicated->prefersDedicatedAllocation = resource->prefers_dedicated;
            dedicated->requiresDedicatedAllocation = resource->requires_dedicated;
        }
}

void fv_requirements_of(fv_device *device, fv_call call, fv_kind kind, uint64_t handle,
                        VkMemoryRequirements2 *out)
{
    (void)fv_enter(fv_driver_of(device), call);
    fv_resource *resource = fv_object_find(device, call, kind, handle);
    if (resource) {
        resource->asked = true;
        fv_tell_requirements(resource, out);
    }
    fv_leave(fv_driver_of(device));
}

void fv_resource_end(fv_resource *resource, fv_call call)
{
    if (resource->object.pending)
        fv_say(resource->object.driver, FV_ERROR,
               call == FV_CALL_vkDestroyBuffer ? "VUID-vkDestroyBuffer-buffer-00922"
                                               : "VUID-vkDestroyImage-image-01000",
               call, "'%s' is used by work that is not done", resource->object.name);
    fv_unbind(resource);
    free(resource->pieces);
    if (resource->object.kind == FV_IMAGE)
        free(((fv_image *)resource)->layouts);
    fv_object_end(&resource->object);
}

void fv_resource_destroy(fv_device *device, fv_call call, fv_kind kind, uint64_t handle)
{
    fv_driver *driver = fv_driver_of(device);
    fv_claim_handle(driver, call, handle);
    (void)fv_enter(driver, call);
    fv_resource *resource = handle ? fv_object_find(device, call, kind, handle) : NULL;
    if (resource)
        fv_resource_end(resource, call);
    fv_leave(driver);
    fv_release_handle(driver, handle);
}

fv_place fv_place_of(fv_driver *driver, uint64_t handle)
{
    fv_place place = {0};
    pthread_mutex_lock(&driver->lock);
    fv_object *object = fv_object_peek(driver, FV_BUFFER, handle);
    if (!object)
        object = fv_object_peek(driver, FV_IMAGE, handle);
    const fv_resource *resource = (const fv_resource *)object;
    if (resource && resource->memory)
        place = (fv_place){.memory = FV_HANDLE(VkDeviceMemory, &resource->memory->object),
                           .offset = resource->offset,
                           .size = resource->needs.size,
                           .memory_type = resource->memory->type};
    pthread_mutex_unlock(&driver->lock);
    return place;
}
