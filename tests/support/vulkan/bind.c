/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * bind.c - binds buffers and images of the fake driver to memory, and checks the rules of binding.
 *
 * The resources of a memory object are ordered by offset. A buffer over the whole memory object,
 * which callers create to use offsets in it, shares its bytes on purpose. It is not compared with
 * others.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/support/vulkan/resource.h"
#include "tests/support/vulkan/table.h"

/* ---- the list ----------------------------------------------------------------------------- */

/* Returns the first entry at or above an offset. */
static uint32_t first_from(const fv_memory *memory, uint64_t offset)
{
    uint32_t low = 0, high = memory->bound_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (memory->bound[middle].offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void insert(fv_memory *memory, fv_bound bound)
{
    if (memory->bound_count == memory->bound_room) {
        memory->bound_room = memory->bound_room ? memory->bound_room * 2 : 8;
        memory->bound = realloc(memory->bound, memory->bound_room * sizeof *memory->bound);
        if (!memory->bound)
            abort();
    }
    uint32_t at = first_from(memory, bound.offset);
    memmove(&memory->bound[at + 1], &memory->bound[at],
            (memory->bound_count - at) * sizeof *memory->bound);
    memory->bound[at] = bound;
    memory->bound_count++;
    if (bound.end - bound.offset > memory->widest)
        memory->widest = bound.end - bound.offset;
}

void fv_unbind(fv_resource *resource)
{
    fv_memory *memory = resource->memory;
    if (!memory)
        return;
    uint32_t at = first_from(memory, resource->offset);
    while (memory->bound[at].resource != resource)
        at++;
    memory->bound_count--;
    memmove(&memory->bound[at], &memory->bound[at + 1],
            (memory->bound_count - at) * sizeof *memory->bound);
    resource->memory = NULL;
}

/* ---- the rules ---------------------------------------------------------------------------- */

static bool covers_all(const fv_memory *memory, const fv_bound *bound)
{
    return bound->resource->object.kind == FV_BUFFER && !bound->offset &&
           bound->end >= memory->size;
}

/* Whether two neighbours share bytes, or, if one is linear and the other optimal, a unit of
   bufferImageGranularity. */
static void compare(const fv_device *device, fv_call call, const fv_bound *a, const fv_bound *b)
{
    uint64_t granularity = fv_layout_of(device)->granularity;
    const fv_bound *low = a->offset <= b->offset ? a : b, *high = low == a ? b : a;
    const char *names[2] = {low->resource->object.name, high->resource->object.name};
    if (high->offset < low->end) {
        if (!low->resource->alias || !high->resource->alias)
            fv_say(fv_driver_of(device), FV_ERROR, "fv-overlap", call,
                   "'%s' at %" PRIu64 " to %" PRIu64 " and '%s' at %" PRIu64 " to %" PRIu64
                   " overlap",
                   names[0], low->offset, low->end, names[1], high->offset, high->end);
    } else if (low->resource->linear != high->resource->linear &&
               (low->end - 1) / granularity == high->offset / granularity)
        fv_say(fv_driver_of(device), FV_ERROR, "fv-granularity", call,
               "'%s' up to %" PRIu64 " and '%s' from %" PRIu64
               " are linear and optimal in one stretch of %" PRIu64,
               names[0], low->end, names[1], high->offset, granularity);
}

static void check_neighbours(const fv_memory *memory, fv_call call, const fv_bound *bound)
{
    const fv_device *device = memory->object.device;
    uint64_t reach = memory->widest + fv_layout_of(device)->granularity;
    uint64_t end = bound->end + fv_layout_of(device)->granularity;
    uint32_t at = first_from(memory, bound->offset > reach ? bound->offset - reach : 0);
    if (covers_all(memory, bound))
        return;
    for (; at < memory->bound_count && memory->bound[at].offset < end; at++)
        if (!covers_all(memory, &memory->bound[at]))
            compare(device, call, bound, &memory->bound[at]);
}

/* Returns the id of a rule. Buffers and images have different ids. */
static const char *rule(const fv_resource *resource, const char *buffer_id, const char *image_id)
{
    return resource->object.kind == FV_BUFFER ? buffer_id : image_id;
}

static void check_dedication(const fv_resource *resource, const fv_memory *memory, uint64_t offset,
                             fv_call call)
{
    fv_driver *driver = resource->object.driver;
    const char *name = resource->object.name;
    if (memory->dedicated && (memory->dedicated != resource->object.handle || offset))
        fv_say(driver, FV_ERROR,
               rule(resource, "VUID-VkBindBufferMemoryInfo-memory-01508",
                    "VUID-VkBindImageMemoryInfo-memory-02628"),
               call, "'%s' at %" PRIu64 " of memory that is dedicated to another, or not at 0",
               name, offset);
    if (resource->requires_dedicated && memory->dedicated != resource->object.handle)
        fv_say(driver, FV_ERROR,
               rule(resource, "VUID-VkBindBufferMemoryInfo-buffer-01444",
                    "VUID-VkBindImageMemoryInfo-image-01445"),
               call, "'%s' requires memory of its own", name);
}

/* A resource must declare a handle type of memory that is exported, and the type of memory that was
   imported. */
static void check_handle_types(const fv_resource *resource, const fv_memory *memory, fv_call call)
{
    fv_driver *driver = resource->object.driver;
    const char *name = resource->object.name;
    if (memory->exportable && !(resource->external & memory->exportable))
        fv_say(driver, FV_ERROR,
               rule(resource, "VUID-VkBindBufferMemoryInfo-memory-02726",
                    "VUID-VkBindImageMemoryInfo-memory-02728"),
               call, "'%s' was made for the handle types 0x%x, its exportable memory for 0x%x",
               name, resource->external, memory->exportable);
    if (memory->imported_as && !(resource->external & memory->imported_as))
        fv_say(driver, FV_ERROR,
               rule(resource, "VUID-VkBindBufferMemoryInfo-memory-02985",
                    "VUID-VkBindImageMemoryInfo-memory-02989"),
               call, "'%s' was made for the handle types 0x%x, its memory was imported as 0x%x",
               name, resource->external, memory->imported_as);
}

static void check_memory(const fv_resource *resource, const fv_memory *memory, fv_call call)
{
    fv_driver *driver = resource->object.driver;
    const fv_device *device = fv_device_of(resource);
    const char *name = resource->object.name;
    bool guarded =
        fv_layout_of(device)->types[memory->type].propertyFlags & VK_MEMORY_PROPERTY_PROTECTED_BIT;
    if (!(resource->needs.memoryTypeBits >> memory->type & 1))
        fv_say(driver, FV_ERROR,
               rule(resource, "VUID-VkBindBufferMemoryInfo-memory-01035",
                    "VUID-VkBindImageMemoryInfo-pNext-01615"),
               call, "memory type %u cannot hold '%s'", memory->type, name);
    if (resource->guarded != guarded)
        fv_say(driver, FV_ERROR,
               rule(resource, "VUID-VkBindBufferMemoryInfo-None-01898",
                    "VUID-VkBindImageMemoryInfo-None-01901"),
               call, "'%s' and its memory are not both protected", name);
    if (resource->object.kind == FV_BUFFER && !memory->addressed && device->features & FV_ADDRESS &&
        ((const fv_buffer *)resource)->usage & VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT)
        fv_say(driver, FV_ERROR, "VUID-VkBindBufferMemoryInfo-bufferDeviceAddress-03339", call,
               "'%s' has a device address, its memory none", name);
}

/* Returns false if the resource cannot be bound there. */
static bool check_range(const fv_resource *resource, const fv_memory *memory, uint64_t offset,
                        fv_call call)
{
    fv_driver *driver = resource->object.driver;
    const VkMemoryRequirements *needs = &resource->needs;
    const char *name = resource->object.name;
    if (offset % needs->alignment)
        fv_say(driver, FV_ERROR,
               rule(resource, "VUID-VkBindBufferMemoryInfo-memoryOffset-01036",
                    "VUID-VkBindImageMemoryInfo-pNext-01616"),
               call, "'%s' at %" PRIu64 ", but its alignment is %" PRIu64, name, offset,
               needs->alignment);
    if (offset <= memory->size && needs->size <= memory->size - offset)
        return true;
    fv_say(driver, FV_ERROR,
           rule(resource, "VUID-VkBindBufferMemoryInfo-size-01037",
                "VUID-VkBindImageMemoryInfo-pNext-01617"),
           call, "'%s' of %" PRIu64 " bytes at %" PRIu64 " of a memory of %" PRIu64, name,
           needs->size, offset, memory->size);
    return false;
}

void fv_bind(fv_resource *resource, fv_memory *memory, uint64_t offset, fv_call call)
{
    fv_driver *driver = resource->object.driver;
    const char *name = resource->object.name;
    if (resource->bound || resource->sparse) {
        fv_say(driver, FV_ERROR,
               rule(resource, "VUID-VkBindBufferMemoryInfo-buffer-07459",
                    "VUID-VkBindImageMemoryInfo-image-07460"),
               call, "'%s' is bound already or sparse", name);
        return;
    }
    if (!resource->asked && !fv_device_of(resource)->asked_ahead)
        fv_say(driver, FV_WARNING, "fv-requirements", call, "nobody asked what '%s' needs", name);
    check_memory(resource, memory, call);
    check_dedication(resource, memory, offset, call);
    check_handle_types(resource, memory, call);
    if (!check_range(resource, memory, offset, call))
        return;
    fv_bound bound = {offset, offset + resource->needs.size, resource};
    check_neighbours(memory, call, &bound);
    insert(memory, bound);
    resource->memory = memory;
    resource->offset = offset;
    resource->bound = true;
}

/* ---- the calls ---------------------------------------------------------------------------- */

/* VkBindMemoryStatus of VK_KHR_maintenance6, which headers before 1.3.274 lack. */
static const VkStructureType BIND_STATUS = (VkStructureType)1000545002;
typedef struct bind_status {
    VkStructureType sType;
    const void *pNext;
    VkResult *result;
} bind_status;

/* Writes the result of one bind of an array if the caller asked for it. */
static void write_status(const void *chain, VkResult result)
{
    const bind_status *status = fv_chained(chain, BIND_STATUS);
    if (status && status->result)
        *status->result = result;
}

static void find_and_bind(fv_device *device, fv_call call, fv_kind kind, uint64_t handle,
                          uint64_t memory_handle, uint64_t offset)
{
    fv_resource *resource = fv_object_find(device, call, kind, handle);
    fv_memory *memory = fv_object_find(device, call, FV_MEMORY, memory_handle);
    if (resource && memory)
        fv_bind(resource, memory, offset, call);
}

/* vkBindBufferMemory and vkBindImageMemory, which differ only in the kind of handle. */
static VkResult bind_one(fv_device *device, fv_call call, fv_kind kind, uint64_t handle,
                         uint64_t memory, uint64_t offset)
{
    fv_driver *driver = fv_driver_of(device);
    fv_claim_handle(driver, call, handle);
    VkResult result = fv_enter(driver, call);
    if (!result)
        find_and_bind(device, call, kind, handle, memory, offset);
    fv_leave(driver);
    fv_release_handle(driver, handle);
    return result;
}

VkResult fv_vkBindBufferMemory(VkDevice handle, VkBuffer buffer, VkDeviceMemory memory,
                               VkDeviceSize offset)
{
    return bind_one((fv_device *)handle, FV_CALL_vkBindBufferMemory, FV_BUFFER, (uint64_t)buffer,
                    (uint64_t)memory, offset);
}

VkResult fv_vkBindBufferMemory2(VkDevice handle, uint32_t count,
                                const VkBindBufferMemoryInfo *infos)
{
    fv_device *device = (fv_device *)handle;
    VkResult result = fv_enter(fv_driver_of(device), FV_CALL_vkBindBufferMemory2);
    for (uint32_t i = 0; i < count; i++) {
        write_status(infos[i].pNext, result);
        if (result)
            continue;
        FV_CHECK_CHAIN(fv_driver_of(device), vkBindBufferMemory2, infos[i].pNext,
                       VK_STRUCTURE_TYPE_BIND_BUFFER_MEMORY_DEVICE_GROUP_INFO, BIND_STATUS);
        find_and_bind(device, FV_CALL_vkBindBufferMemory2, FV_BUFFER, (uint64_t)infos[i].buffer,
                      (uint64_t)infos[i].memory, infos[i].memoryOffset);
    }
    fv_leave(fv_driver_of(device));
    return result;
}

VkResult fv_vkBindImageMemory(VkDevice handle, VkImage image, VkDeviceMemory memory,
                              VkDeviceSize offset)
{
    return bind_one((fv_device *)handle, FV_CALL_vkBindImageMemory, FV_IMAGE, (uint64_t)image,
                    (uint64_t)memory, offset);
}

VkResult fv_vkBindImageMemory2(VkDevice handle, uint32_t count, const VkBindImageMemoryInfo *infos)
{
    fv_device *device = (fv_device *)handle;
    VkResult result = fv_enter(fv_driver_of(device), FV_CALL_vkBindImageMemory2);
    for (uint32_t i = 0; i < count; i++) {
        write_status(infos[i].pNext, result);
        if (result)
            continue;
        FV_CHECK_CHAIN(fv_driver_of(device), vkBindImageMemory2, infos[i].pNext,
                       VK_STRUCTURE_TYPE_BIND_IMAGE_MEMORY_DEVICE_GROUP_INFO, BIND_STATUS);
        find_and_bind(device, FV_CALL_vkBindImageMemory2, FV_IMAGE, (uint64_t)infos[i].image,
                      (uint64_t)infos[i].memory, infos[i].memoryOffset);
    }
    fv_leave(fv_driver_of(device));
    return result;
}
