/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * map.c - maps, flushes and invalidates memory of the fake driver.
 */
#include "tests/support/vulkan/resource.h"
#include "tests/support/vulkan/table.h"

/* ---- mapping ------------------------------------------------------------------------------ */

static bool may_map(fv_device *device, const fv_memory *memory, uint64_t offset, uint64_t size)
{
    fv_driver *driver = fv_driver_of(device);
    const char *name = memory->object.name;
    bool visible = fv_layout_of(device)->types[memory->type].propertyFlags &
                   VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
    if (!visible)
        FV_WRONG(driver, "VUID-vkMapMemory-memory-00682", vkMapMemory,
                 "memory '%s' is not host-visible", name);
    else if (memory->mapped)
        FV_WRONG(driver, "VUID-vkMapMemory-memory-00678", vkMapMemory,
                 "memory '%s' is mapped already", name);
    else if (offset >= memory->size)
        FV_WRONG(driver, "VUID-vkMapMemory-offset-00679", vkMapMemory,
                 "offset %" PRIu64 " of %" PRIu64 " bytes", offset, memory->size);
    else if (!size)
        FV_WRONG(driver, "VUID-vkMapMemory-size-00680", vkMapMemory, "0 bytes");
    else if (size != VK_WHOLE_SIZE && size > memory->size - offset)
        FV_WRONG(driver, "VUID-vkMapMemory-size-00681", vkMapMemory,
                 "%" PRIu64 " bytes from %" PRIu64 " of %" PRIu64, size, offset, memory->size);
    else
        return true;
    return false;
}

static VkResult map(fv_device *device, uint64_t handle, uint64_t offset, uint64_t size, void **data)
{
    fv_memory *memory = FV_FIND(device, vkMapMemory, FV_MEMORY, handle);
    if (!memory || !may_map(device, memory, offset, size))
        return VK_ERROR_MEMORY_MAP_FAILED;
    memory->mapped = true;
    memory->map_offset = offset;
    memory->map_size = size == VK_WHOLE_SIZE ? memory->size - offset : size;
    *data = memory->bytes.host + offset;
    return VK_SUCCESS;
}

VkResult fv_vkMapMemory(VkDevice handle, VkDeviceMemory memory, VkDeviceSize offset,
                        VkDeviceSize size, VkMemoryMapFlags flags, void **data)
{
    fv_device *device = (fv_device *)handle;
    fv_driver *driver = fv_driver_of(device);
    fv_claim_handle(driver, FV_CALL_vkMapMemory, (uint64_t)memory);
    VkResult result = fv_enter(driver, FV_CALL_vkMapMemory);
    if (flags)
        FV_WRONG(driver, "VUID-vkMapMemory-flags-zerobitmask", vkMapMemory, "flags 0x%x", flags);
    if (!result)
        result = map(device, (uint64_t)memory, offset, size, data);
    if (result)
        *data = (void *)(uintptr_t)FV_GARBAGE;
    fv_leave(driver);
    fv_release_handle(driver, (uint64_t)memory);
    return result;
}

void fv_vkUnmapMemory(VkDevice handle, VkDeviceMemory memory_handle)
{
    fv_device *device = (fv_device *)handle;
    fv_driver *driver = fv_driver_of(device);
    fv_claim_handle(driver, FV_CALL_vkUnmapMemory, (uint64_t)memory_handle);
    (void)fv_enter(driver, FV_CALL_vkUnmapMemory);
    fv_memory *memory = FV_FIND(device, vkUnmapMemory, FV_MEMORY, memory_handle);
    if (memory && !memory->mapped)
        FV_WRONG(driver, "VUID-vkUnmapMemory-memory-00689", vkUnmapMemory,
                 "memory '%s' is not mapped", memory->object.name);
    if (memory)
        memory->mapped = false;
    fv_leave(driver);
    fv_release_handle(driver, (uint64_t)memory_handle);
}

/* ---- flushing and invalidating ------------------------------------------------------------ */

/* Resolves a range into offset and length. Returns false for an invalid range, which it reports. */
static bool check_range(fv_device *device, fv_call call, const fv_memory *memory,
                        const VkMappedMemoryRange *range, uint64_t *size)
{
    fv_driver *driver = fv_driver_of(device);
    uint64_t atom = fv_layout_of(device)->atom, offset = range->offset;
    uint64_t map_end = memory->map_offset + memory->map_size;
    bool whole = range->size == VK_WHOLE_SIZE;
    bool in = memory->mapped && offset >= memory->map_offset && offset <= map_end;
    *size = whole && in ? map_end - offset : range->size;
    if (!memory->mapped)
        fv_say(driver, FV_ERROR, "VUID-VkMappedMemoryRange-memory-00684", call,
               "memory '%s' is not mapped", memory->object.name);
    else if (!in || *size > map_end - offset)
        fv_say(driver, FV_ERROR,
               whole ? "VUID-VkMappedMemoryRange-size-00686"
                     : "VUID-VkMappedMemoryRange-size-00685",
               call, "%" PRIu64 " bytes from %" PRIu64 " are not mapped", *size, offset);
    else if (offset % atom)
        fv_say(driver, FV_ERROR, "VUID-VkMappedMemoryRange-offset-00687", call,
               "offset %" PRIu64 " is no multiple of %" PRIu64, offset, atom);
    else if (whole ? map_end % atom && map_end != memory->size
                   : *size % atom && offset + *size != memory->size)
        fv_say(driver, FV_ERROR,
               whole ? "VUID-VkMappedMemoryRange-size-01389"
                     : "VUID-VkMappedMemoryRange-size-01390",
               call, "%" PRIu64 " bytes from %" PRIu64 " are no whole atoms of %" PRIu64, *size,
               offset, atom);
    else
        return true;
    return false;
}

static VkResult synchronize(VkDevice handle, fv_call call, uint32_t count,
                            const VkMappedMemoryRange *ranges,
                            void (*bring)(fv_bytes *, uint64_t, uint64_t))
{
    fv_device *device = (fv_device *)handle;
    VkResult result = fv_enter(fv_driver_of(device), call);
    for (uint32_t i = 0; !result && i < count; i++) {
        uint64_t size;
        fv_memory *memory = fv_object_find(device, call, FV_MEMORY, (uint64_t)ranges[i].memory);
        if (memory && check_range(device, call, memory, &ranges[i], &size))
            bring(&memory->bytes, ranges[i].offset, size);
    }
    fv_leave(fv_driver_of(device));
    return result;
}

VkResult fv_vkFlushMappedMemoryRanges(VkDevice device, uint32_t count,
                                      const VkMappedMemoryRange *ranges)
{
    return synchronize(device, FV_CALL_vkFlushMappedMemoryRanges, count, ranges, fv_bytes_flush);
}

VkResult fv_vkInvalidateMappedMemoryRanges(VkDevice device, uint32_t count,
                                           const VkMappedMemoryRange *ranges)
{
    return synchronize(device, FV_CALL_vkInvalidateMappedMemoryRanges, count, ranges,
                       fv_bytes_invalidate);
}
