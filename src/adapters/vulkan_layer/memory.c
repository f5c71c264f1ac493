/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * memory.c - the calls on memory objects. A range is mapped with its page. Flushes and addresses
 * are translated to the page and passed on; a commitment is answered here, a priority is ignored.
 * Calls on other memory objects are passed on unchanged.
 */
#include <string.h>

#include "src/adapters/vulkan_layer/layer.h"
#include "src/base/bits.h"

/* Ranges translated at once; the array is on the stack. */
enum { RANGES = 16 };

/* ---- allocating ------------------------------------------------------------------------------ */

static void count(layer_device *device, layer_outcome outcome, uint64_t size)
{
    qi_atomic_add_u64(&device->counts.calls[outcome], 1);
    qi_atomic_add_u64(&device->counts.bytes[outcome], size);
}

/* Passes an allocation on. If the driver is out of memory and quire has empty pages, they are
   destroyed and the driver is called again. */
static VkResult pass_on(layer_device *device, layer_outcome outcome,
                        const VkMemoryAllocateInfo *info, const VkAllocationCallbacks *callbacks,
                        VkDeviceMemory *memory)
{
    VkResult code = device->next.AllocateMemory(device->handle, info, callbacks, memory);
    if ((code == VK_ERROR_OUT_OF_DEVICE_MEMORY || code == VK_ERROR_TOO_MANY_OBJECTS) &&
        layer_trim(device))
        code = device->next.AllocateMemory(device->handle, info, callbacks, memory);
    if (code)
        qi_atomic_add_u64(&device->counts.failed, 1);
    else
        count(device, outcome, info->allocationSize);
    return code;
}

static VkResult allocate(layer_device *device, const VkMemoryAllocateInfo *info,
                         const VkAllocationCallbacks *callbacks, VkDeviceMemory *memory)
{
    layer_store *store = NULL;
    layer_outcome outcome = layer_plan(device, info, &store);
    if (outcome != LAYER_IN_A_PAGE)
        return pass_on(device, outcome, info, callbacks, memory);
    const layer_memory *made = layer_allocate(device, store, info->allocationSize);
    if (!made)
        return pass_on(device, LAYER_REFUSED, info, callbacks, memory);
    count(device, LAYER_IN_A_PAGE, info->allocationSize);
    *memory = LAYER_MEMORY(made->allocation.id);
    return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL layer_AllocateMemory(VkDevice handle,
                                                    const VkMemoryAllocateInfo *info,
                                                    const VkAllocationCallbacks *callbacks,
                                                    VkDeviceMemory *memory)
{
    layer_device *device = layer_device_of(handle);
    VkResult code = allocate(device, info, callbacks, memory);
    layer_interim_update(device);
    return code;
}

VKAPI_ATTR void VKAPI_CALL layer_FreeMemory(VkDevice handle, VkDeviceMemory memory,
                                            const VkAllocationCallbacks *callbacks)
{
    layer_device *device = layer_device_of(handle);
    layer_memory *found = layer_find(device, memory);
    if (found) {
        layer_free(device, found);
        qi_atomic_add_release_u64(&device->counts.freed, 1);
    } else {
        device->next.FreeMemory(handle, memory, callbacks);
        if (memory)
            qi_atomic_add_release_u64(&device->counts.passed_free, 1);
    }
    layer_interim_update(device);
}

/* ---- mapping --------------------------------------------------------------------------------- */

/* A page is mapped when it is created. Vulkan allows one mapping of a memory object at a time. */
static VkResult map(layer_memory *memory, VkDeviceSize offset, VkDeviceSize size, void **pointer)
{
    void *start = NULL;
    if (memory->mapped || quire_map(memory->store->memory, memory->allocation, &start))
        return VK_ERROR_MEMORY_MAP_FAILED;
    memory->mapped = true;
    memory->map_end = size == VK_WHOLE_SIZE ? memory->size : offset + size;
    *pointer = (char *)start + offset;
    return VK_SUCCESS;
}

static void unmap(layer_memory *memory)
{
    if (memory->mapped)
        quire_unmap(memory->store->memory, memory->allocation);
    memory->mapped = false;
}

VKAPI_ATTR VkResult VKAPI_CALL layer_MapMemory(VkDevice handle, VkDeviceMemory memory,
                                               VkDeviceSize offset, VkDeviceSize size,
                                               VkMemoryMapFlags flags, void **pointer)
{
    layer_device *device = layer_device_of(handle);
    layer_memory *found = layer_find(device, memory);
    return found ? map(found, offset, size, pointer)
                 : device->next.MapMemory(handle, memory, offset, size, flags, pointer);
}

VKAPI_ATTR void VKAPI_CALL layer_UnmapMemory(VkDevice handle, VkDeviceMemory memory)
{
    layer_device *device = layer_device_of(handle);
    layer_memory *found = layer_find(device, memory);
    if (found)
        unmap(found);
    else
        device->next.UnmapMemory(handle, memory);
}

/* Placed maps concern only memory kinds that the layer passes on: see serves_kind in store.c. */
VKAPI_ATTR VkResult VKAPI_CALL layer_MapMemory2(VkDevice handle, const layer_map_info *info,
                                                void **pointer)
{
    layer_device *device = layer_device_of(handle);
    layer_memory *found = layer_find(device, info->memory);
    return found ? map(found, info->offset, info->size, pointer)
                 : device->next.MapMemory2(handle, info, pointer);
}

VKAPI_ATTR VkResult VKAPI_CALL layer_UnmapMemory2(VkDevice handle, const layer_unmap_info *info)
{
    layer_device *device = layer_device_of(handle);
    layer_memory *found = layer_find(device, info->memory);
    if (!found)
        return device->next.UnmapMemory2(handle, info);
    unmap(found);
    return VK_SUCCESS;
}

/* ---- flushing -------------------------------------------------------------------------------- */

/*
 * Translates a range of a memory object into a range of its page. The start is a multiple of the
 * atom (nonCoherentAtomSize) in both. The end may be that of the memory, or of its mapping, and not
 * a multiple; then the rest of the atom is included. It belongs to the same memory object.
 */
static void translate_range(layer_device *device, VkMappedMemoryRange *range)
{
    const layer_memory *memory = layer_find(device, range->memory);
    if (!memory)
        return;
    uint64_t atom = device->info.limits.non_coherent_atom;
    uint64_t end = range->size == VK_WHOLE_SIZE ? memory->map_end : range->offset + range->size;
    if (qi_align_up_overflows(end, atom ? atom : 1, &end) || end > memory->held)
        end = memory->held;
    range->memory = memory->page;
    range->size = end - range->offset;
    range->offset += memory->offset;
}

/* Translates the ranges and calls the next layer, in pieces. */
static VkResult each_range(layer_device *device, PFN_vkFlushMappedMemoryRanges next, uint32_t total,
                           const VkMappedMemoryRange *ranges)
{
    VkMappedMemoryRange translated[RANGES];
    VkResult code = VK_SUCCESS;
    for (uint32_t done = 0; done < total && !code;) {
        uint32_t now = total - done < RANGES ? total - done : RANGES;
        memcpy(translated, ranges + done, now * sizeof *ranges);
        for (uint32_t i = 0; i < now; i++)
            translate_range(device, &translated[i]);
        code = next(device->handle, now, translated);
        done += now;
    }
    return code;
}

VKAPI_ATTR VkResult VKAPI_CALL layer_FlushMappedMemoryRanges(VkDevice handle, uint32_t total,
                                                             const VkMappedMemoryRange *ranges)
{
    layer_device *device = layer_device_of(handle);
    return each_range(device, device->next.FlushMappedMemoryRanges, total, ranges);
}

VKAPI_ATTR VkResult VKAPI_CALL layer_InvalidateMappedMemoryRanges(VkDevice handle, uint32_t total,
                                                                  const VkMappedMemoryRange *ranges)
{
    layer_device *device = layer_device_of(handle);
    return each_range(device, device->next.InvalidateMappedMemoryRanges, total, ranges);
}

/* ---- queries --------------------------------------------------------------------------------- */

/* All bytes of a range are committed. */
VKAPI_ATTR void VKAPI_CALL layer_GetDeviceMemoryCommitment(VkDevice handle, VkDeviceMemory memory,
                                                           VkDeviceSize *committed)
{
    layer_device *device = layer_device_of(handle);
    const layer_memory *found = layer_find(device, memory);
    if (found)
        *committed = found->size;
    else
        device->next.GetDeviceMemoryCommitment(handle, memory, committed);
}

/* A range never replays a captured address: memory that is created for replay is passed on. */
VKAPI_ATTR uint64_t VKAPI_CALL layer_GetDeviceMemoryOpaqueCaptureAddress(
    VkDevice handle, const VkDeviceMemoryOpaqueCaptureAddressInfo *info)
{
    layer_device *device = layer_device_of(handle);
    VkDeviceMemoryOpaqueCaptureAddressInfo translated = *info;
    VkDeviceSize offset = 0;
    layer_translate(device, &translated.memory, &offset);
    uint64_t address = device->next.GetDeviceMemoryOpaqueCaptureAddress(handle, &translated);
    return address ? address + offset : 0;
}

/* The priority is a hint. A page with several memory objects cannot follow it. */
VKAPI_ATTR void VKAPI_CALL layer_SetDeviceMemoryPriorityEXT(VkDevice handle, VkDeviceMemory memory,
                                                            float priority)
{
    layer_device *device = layer_device_of(handle);
    if (!layer_find(device, memory))
        device->next.SetDeviceMemoryPriorityEXT(handle, memory, priority);
}
