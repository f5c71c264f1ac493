/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * memory.c - memory objects of the fake driver: a request is read from its chain, checked, counted
 * in its heap, and given bytes. Also frees memory, and answers queries.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/vulkan/resource.h"
#include "tests/support/vulkan/table.h"

#define WRONG(device, id, ...) FV_WRONG(fv_driver_of(device), id, vkAllocateMemory, __VA_ARGS__)

/* VK_MEMORY_ALLOCATE_ZERO_INITIALIZE_BIT_EXT, which headers of 1.3 lack. */
#define ZERO_BIT 0x8u

static fv_heap_state *heap_of(fv_device *device, uint32_t heap)
{
    return &fv_driver_of(device)->heaps[device->physical->index][heap];
}

/* ---- what is asked for -------------------------------------------------------------------- */

static fv_request read_request(const VkMemoryAllocateInfo *info)
{
    const VkMemoryAllocateFlagsInfo *flags =
        fv_chained(info->pNext, VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO);
    return (fv_request){
        .size = info->allocationSize,
        .type = info->memoryTypeIndex,
        .flags = flags ? flags->flags : 0,
        .dedicated = fv_chained(info->pNext, VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO),
        .exported = fv_chained(info->pNext, VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO),
        .file = fv_chained(info->pNext, VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR),
        .pointer = fv_chained(info->pNext, VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT),
        .priority = fv_chained(info->pNext, VK_STRUCTURE_TYPE_MEMORY_PRIORITY_ALLOCATE_INFO_EXT),
    };
}

/* Checks that a dedicated allocation has exactly the size of its resource and a suitable type. */
static void check_dedicated(fv_device *device, const fv_request *request)
{
    const VkMemoryDedicatedAllocateInfo *info = request->dedicated;
    if (info->buffer && info->image)
        WRONG(device, "VUID-VkMemoryDedicatedAllocateInfo-image-01432",
              "dedicated to a buffer and an image");
    if (!info->buffer && !info->image)
        return;
    const fv_resource *resource = info->image
                                      ? FV_FIND(device, vkAllocateMemory, FV_IMAGE, info->image)
                                      : FV_FIND(device, vkAllocateMemory, FV_BUFFER, info->buffer);
    if (!resource)
        return;
    const char *name = resource->object.name;
    if (request->size != resource->needs.size)
        WRONG(device,
              info->image ? "VUID-VkMemoryDedicatedAllocateInfo-image-02964"
                          : "VUID-VkMemoryDedicatedAllocateInfo-buffer-02965",
              "%" PRIu64 " bytes, but '%s' needs %" PRIu64, request->size, name,
              resource->needs.size);
    if (resource->sparse)
        WRONG(device, "VUID-VkMemoryDedicatedAllocateInfo-buffer-01436", "'%s' is sparse", name);
    if (!(resource->needs.memoryTypeBits >> request->type & 1))
        WRONG(device, "fv-dedicated-type", "type %u cannot hold '%s'", request->type, name);
}

static void check_zero(fv_device *device, const fv_request *request, VkMemoryPropertyFlags flags)
{
    if (!(device->features & FV_ZERO))
        WRONG(device, "fv-extension", "zeros without the feature zeroInitializeDeviceMemory");
    if (request->file || request->pointer)
        WRONG(device, "VUID-VkMemoryAllocateFlagsInfo-flags-10760", "zeros in imported memory");
    if (flags & VK_MEMORY_PROPERTY_PROTECTED_BIT)
        WRONG(device, "VUID-VkMemoryAllocateFlagsInfo-flags-10761", "zeros in protected memory");
}

static void check_type(fv_device *device, const fv_request *request)
{
    const fv_layout *layout = fv_layout_of(device);
    VkMemoryPropertyFlags flags = layout->types[request->type].propertyFlags;
    if (flags & VK_MEMORY_PROPERTY_PROTECTED_BIT && !(device->features & FV_PROTECTED))
        WRONG(device, "VUID-VkMemoryAllocateInfo-memoryTypeIndex-01872",
              "a protected type without the feature");
    if (flags & VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD &&
        !(device->features & FV_DEVICE_COHERENT))
        WRONG(device, "VUID-vkAllocateMemory-deviceCoherentMemory-02790",
              "a device-coherent type without the feature");
    if (request->flags & VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT && !(device->features & FV_ADDRESS))
        WRONG(device, "VUID-VkMemoryAllocateInfo-flags-03331",
              "a device address without the feature");
    if (request->flags & ZERO_BIT)
        check_zero(device, request, flags);
    if (request->priority && !(device->extensions & FV_BIT(PRIORITY)))
        WRONG(device, "fv-extension", "a priority without VK_EXT_memory_priority");
    if (request->priority &&
        !(request->priority->priority >= 0 && request->priority->priority <= 1))
        WRONG(device, "VUID-VkMemoryPriorityAllocateInfoEXT-priority-02602", "priority %f",
              (double)request->priority->priority);
}

/* Checks the limits. VK_ERROR_OUT_OF_DEVICE_MEMORY: a driver would refuse the allocation. */
static VkResult check_limits(fv_device *device, const fv_request *request)
{
    const fv_layout *layout = fv_layout_of(device);
    const VkMemoryHeap *heap = &layout->heaps[layout->types[request->type].heapIndex];
    VkResult result = VK_SUCCESS;
    if (request->size > heap->size) {
        WRONG(device, "VUID-vkAllocateMemory-pAllocateInfo-01713",
              "%" PRIu64 " bytes of a heap of %" PRIu64, request->size, heap->size);
        result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
    }
    /* The limit says what can fail. A request beyond it is valid. */
    if (request->size > layout->max_allocation &&
        !(fv_driver_of(device)->options.flags & FV_SOFT_SIZES))
        result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
    if (device->allocations >= layout->max_allocations &&
        !(fv_driver_of(device)->options.flags & FV_SOFT_COUNT)) {
        WRONG(device, "VUID-vkAllocateMemory-maxMemoryAllocationCount-04101",
              "%" PRIu64 " memory objects live already", device->allocations);
        result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
    }
    return result;
}

static VkResult check(fv_device *device, const VkMemoryAllocateInfo *info,
                      const fv_request *request)
{
    FV_CHECK_CHAIN(fv_driver_of(device), vkAllocateMemory, info->pNext,
                   VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                   VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO,
                   VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO,
                   VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR,
                   VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
                   VK_STRUCTURE_TYPE_MEMORY_PRIORITY_ALLOCATE_INFO_EXT,
                   VK_STRUCTURE_TYPE_MEMORY_OPAQUE_CAPTURE_ADDRESS_ALLOCATE_INFO);
    if (request->type >= fv_layout_of(device)->type_count) {
        WRONG(device, "VUID-vkAllocateMemory-pAllocateInfo-01714", "there is no memory type %u",
              request->type);
        return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    }
    if (!request->size) {
        WRONG(device, "VUID-VkMemoryAllocateInfo-allocationSize-00638", "0 bytes");
        return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    }
    check_type(device, request);
    fv_check_external(device, request);
    if (request->dedicated)
        check_dedicated(device, request);
    return check_limits(device, request);
}

/* ---- allocating --------------------------------------------------------------------------- */

/* Device-only memory has one copy of its bytes. So has all memory without FV_STALE. */
static bool is_split(const fv_device *device, uint32_t type)
{
    VkMemoryPropertyFlags flags = fv_layout_of(device)->types[type].propertyFlags;
    return fv_driver_of(device)->options.flags & FV_STALE &&
           flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT &&
           !(flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT);
}

static VkResult take_bytes(fv_device *device, const fv_request *request, fv_memory *memory)
{
    const fv_heap_state *heap = heap_of(device, memory->heap);
    uint64_t most =
        heap->capacity ? heap->capacity : fv_layout_of(device)->heaps[memory->heap].size;
    memory->file = -1;
    memory->imported = request->file || request->pointer;
    if (!memory->imported && (heap->usage.bytes > most || request->size > most - heap->usage.bytes))
        return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    if (memory->imported || request->exported)
        return fv_external_bytes(device, request, memory);
    return fv_bytes_make(&memory->bytes, request->size, fv_layout_of(device)->atom,
                         is_split(device, request->type))
               ? VK_SUCCESS
               : VK_ERROR_OUT_OF_HOST_MEMORY;
}

static void count_in(fv_device *device, const fv_memory *memory)
{
    fv_heap_usage *usage = &heap_of(device, memory->heap)->usage;
    device->allocations++;
    if (memory->imported)
        return;
    usage->allocations++;
    usage->bytes += memory->size;
    usage->peak_bytes = usage->bytes > usage->peak_bytes ? usage->bytes : usage->peak_bytes;
}

static void fill(fv_device *device, const fv_request *request, fv_memory *memory)
{
    memory->size = request->size;
    memory->type = request->type;
    memory->heap = fv_layout_of(device)->types[request->type].heapIndex;
    memory->priority = request->priority ? request->priority->priority : 0.5f;
    memory->addressed = request->flags & VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
    memory->zeroed = request->flags & ZERO_BIT;
    memory->exportable = request->exported ? request->exported->handleTypes : 0;
    if (request->dedicated)
        memory->dedicated = request->dedicated->image ? (uint64_t)request->dedicated->image
                                                      : (uint64_t)request->dedicated->buffer;
    memory->address = device->next_address;
    device->next_address += (request->size + 0x1ffff) & ~UINT64_C(0xffff); /* a gap after each */
}

static void keep_links(const VkMemoryAllocateInfo *info, fv_memory *memory)
{
    const VkBaseInStructure *link = info->pNext;
    for (; link && memory->link_count < FV_MAX_LINKS; link = link->pNext)
        memory->links[memory->link_count++] = link->sType;
}

static VkResult allocate(fv_device *device, const VkMemoryAllocateInfo *info, VkDeviceMemory *out)
{
    fv_request request = read_request(info);
    VkResult result = check(device, info, &request);
    if (result)
        return result;
    fv_memory made = {.heap = fv_layout_of(device)->types[request.type].heapIndex};
    result = take_bytes(device, &request, &made);
    if (result)
        return result;
    fv_memory *memory = fv_object_new(fv_driver_of(device), device, FV_MEMORY, sizeof *memory);
    made.object = memory->object;
    *memory = made;
    fill(device, &request, memory);
    keep_links(info, memory);
    count_in(device, memory);
    if (fv_driver_of(device)->options.flags & FV_DIRTY && !memory->imported && !memory->zeroed)
        fv_bytes_dirty(&memory->bytes);
    *out = FV_HANDLE(VkDeviceMemory, &memory->object);
    return VK_SUCCESS;
}

VkResult fv_vkAllocateMemory(VkDevice handle, const VkMemoryAllocateInfo *info,
                             const VkAllocationCallbacks *callbacks, VkDeviceMemory *out)
{
    fv_device *device = (fv_device *)handle;
    (void)callbacks;
    VkResult result = fv_enter(fv_driver_of(device), FV_CALL_vkAllocateMemory);
    if (!result)
        result = allocate(device, info, out);
    if (result)
        *out = (VkDeviceMemory)FV_GARBAGE;
    fv_leave(fv_driver_of(device));
    return result;
}

/* ---- freeing ------------------------------------------------------------------------------ */

void fv_memory_end(fv_memory *memory)
{
    fv_device *device = memory->object.device;
    for (uint32_t i = 0; i < memory->bound_count; i++)
        memory->bound[i].resource->memory = NULL;
    device->allocations--;
    if (!memory->imported) {
        fv_heap_usage *usage = &heap_of(device, memory->heap)->usage;
        usage->allocations--;
        usage->bytes -= memory->size;
    }
    if (memory->file >= 0)
        close(memory->file);
    fv_bytes_end(&memory->bytes);
    free(memory->bound);
    fv_object_end(&memory->object);
}

static void release(fv_device *device, fv_memory *memory)
{
    fv_driver *driver = fv_driver_of(device);
    if (memory->object.pending)
        FV_WRONG(driver, "VUID-vkFreeMemory-memory-00677", vkFreeMemory,
                 "memory '%s' is used by work that is not done", memory->object.name);
    if (memory->bound_count)
        fv_say(driver, FV_WARNING, "fv-free-bound", FV_CALL_vkFreeMemory,
               "%u objects are still bound to memory '%s', '%s' among them", memory->bound_count,
               memory->object.name, memory->bound[0].resource->object.name);
    fv_memory_end(memory);
}

void fv_vkFreeMemory(VkDevice handle, VkDeviceMemory memory_handle,
                     const VkAllocationCallbacks *callbacks)
{
    fv_device *device = (fv_device *)handle;
    fv_driver *driver = fv_driver_of(device);
    (void)callbacks;
    fv_claim_handle(driver, FV_CALL_vkFreeMemory, (uint64_t)memory_handle);
    (void)fv_enter(driver, FV_CALL_vkFreeMemory);
    fv_memory *memory =
        memory_handle ? FV_FIND(device, vkFreeMemory, FV_MEMORY, memory_handle) : NULL;
    if (memory)
        release(device, memory);
    fv_leave(driver);
    fv_release_handle(driver, (uint64_t)memory_handle);
}

/* ---- questions ---------------------------------------------------------------------------- */

void fv_vkGetDeviceMemoryCommitment(VkDevice handle, VkDeviceMemory memory_handle,
                                    VkDeviceSize *out)
{
    fv_device *device = (fv_device *)handle;
    (void)fv_enter(fv_driver_of(device), FV_CALL_vkGetDeviceMemoryCommitment);
    const fv_memory *memory =
        FV_FIND(device, vkGetDeviceMemoryCommitment, FV_MEMORY, memory_handle);
    *out = 0; /* the fake never commits lazily allocated memory */
    if (memory && !(fv_layout_of(device)->types[memory->type].propertyFlags &
                    VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT))
        FV_WRONG(fv_driver_of(device), "VUID-vkGetDeviceMemoryCommitment-memory-00690",
                 vkGetDeviceMemoryCommitment, "memory that is not lazily allocated");
    fv_leave(fv_driver_of(device));
}

uint64_t fv_vkGetDeviceMemoryOpaqueCaptureAddress(
    VkDevice handle, const VkDeviceMemoryOpaqueCaptureAddressInfo *info)
{
    fv_device *device = (fv_device *)handle;
    (void)fv_enter(fv_driver_of(device), FV_CALL_vkGetDeviceMemoryOpaqueCaptureAddress);
    const fv_memory *memory =
        FV_FIND(device, vkGetDeviceMemoryOpaqueCaptureAddress, FV_MEMORY, info->memory);
    uint64_t address = memory ? memory->address : 0;
    fv_leave(fv_driver_of(device));
    return address;
}

void fv_vkSetDeviceMemoryPriorityEXT(VkDevice handle, VkDeviceMemory memory_handle, float priority)
{
    fv_device *device = (fv_device *)handle;
    fv_driver *driver = fv_driver_of(device);
    (void)fv_enter(driver, FV_CALL_vkSetDeviceMemoryPriorityEXT);
    fv_memory *memory = FV_FIND(device, vkSetDeviceMemoryPriorityEXT, FV_MEMORY, memory_handle);
    if (!(device->features & FV_PAGEABLE))
        FV_WRONG(driver, "fv-feature", vkSetDeviceMemoryPriorityEXT, "without the feature");
    if (!(priority >= 0 && priority <= 1))
        FV_WRONG(driver, "VUID-vkSetDeviceMemoryPriorityEXT-priority-06258",
                 vkSetDeviceMemoryPriorityEXT, "priority %f", (double)priority);
    else if (memory)
        memory->priority = priority;
    fv_leave(driver);
}

bool fv_memory_of(fv_driver *driver, VkDeviceMemory handle, fv_memory_info *info)
{
    pthread_mutex_lock(&driver->lock);
    const fv_memory *memory =
        (const fv_memory *)fv_object_peek(driver, FV_MEMORY, (uint64_t)handle);
    *info = (fv_memory_info){0};
    if (memory)
        *info = (fv_memory_info){.size = memory->size,
                                 .type = memory->type,
                                 .priority = memory->priority,
                                 .mapped = memory->mapped,
                                 .dedicated = memory->dedicated != 0,
                                 .addressed = memory->addressed,
                                 .zeroed = memory->zeroed,
                                 .imported = memory->imported,
                                 .exportable = memory->exportable,
                                 .bound = memory->bound_count,
                                 .link_count = memory->link_count};
    if (memory)
        memcpy(info->links, memory->links, sizeof info->links);
    pthread_mutex_unlock(&driver->lock);
    return memory;
}
