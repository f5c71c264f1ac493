/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * external.c - shared memory of the fake driver: files for opaque file descriptors and dma-bufs,
 * and host pointers of the caller.
 */
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/vulkan/resource.h"
#include "tests/support/vulkan/table.h"

#define FILES                                                                                      \
    (VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT | VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT)

/* Returns the handle types of the enabled extensions. */
static VkExternalMemoryHandleTypeFlags types_of(const fv_device *device)
{
    VkExternalMemoryHandleTypeFlags types = 0;
    if (device->extensions & FV_BIT(FD))
        types |= VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
    if (device->extensions & FV_BIT(DMA_BUF))
        types |= VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT;
    return types;
}

/* A host pointer can be imported into host-coherent types. */
uint32_t fv_host_pointer_types(const fv_layout *layout)
{
    VkMemoryPropertyFlags needed =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    uint32_t types = 0;
    for (uint32_t i = 0; i < layout->type_count; i++)
        if ((layout->types[i].propertyFlags & needed) == needed)
            types |= UINT32_C(1) << i;
    return types;
}

VkExternalMemoryProperties fv_external_properties(const fv_driver *driver, const fv_layout *layout,
                                                  VkExternalMemoryHandleTypeFlags type)
{
    VkExternalMemoryFeatureFlags only = driver->options.flags & FV_DEDICATED_ONLY
                                            ? VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT
                                            : 0;
    bool file =
        (type == VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT && layout->extensions & FV_BIT(FD)) ||
        (type == VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT &&
         layout->extensions & FV_BIT(DMA_BUF));
    bool pointer = (type == VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT ||
                    type == VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_MAPPED_FOREIGN_MEMORY_BIT_EXT) &&
                   layout->extensions & FV_BIT(HOST_POINTER);
    if (!file && !pointer)
        return (VkExternalMemoryProperties){.compatibleHandleTypes = type};
    return (VkExternalMemoryProperties){
        .externalMemoryFeatures = VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT |
                                  (file ? only | VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT : 0),
        .exportFromImportedHandleTypes = file ? type : 0,
        .compatibleHandleTypes = type};
}

/* Whether a handle type requires that its memory is dedicated to a buffer or an image. */
static bool is_dedicated_only(const fv_device *device, VkExternalMemoryHandleTypeFlags types)
{
    VkExternalMemoryFeatureFlags features = 0;
    for (VkExternalMemoryHandleTypeFlags bit = 1; bit && bit <= types; bit <<= 1)
        if (types & bit)
            features |= fv_external_properties(fv_driver_of(device), fv_layout_of(device), bit)
                            .externalMemoryFeatures;
    return features & VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT;
}

static void check_dedicated_only(fv_device *device, const fv_request *request)
{
    fv_driver *driver = fv_driver_of(device);
    const VkMemoryDedicatedAllocateInfo *dedicated = request->dedicated;
    if (dedicated && (dedicated->buffer || dedicated->image))
        return;
    if (request->exported && is_dedicated_only(device, request->exported->handleTypes))
        FV_WRONG(driver, "VUID-VkMemoryAllocateInfo-pNext-00639", vkAllocateMemory,
                 "an export as 0x%x requires a dedicated allocation",
                 request->exported->handleTypes);
    if (request->file && is_dedicated_only(device, request->file->handleType))
        FV_WRONG(driver, "fv-dedicated-import", vkAllocateMemory,
                 "an import as 0x%x requires a dedicated allocation", request->file->handleType);
}

void fv_check_handle_types(fv_device *device, fv_call call, VkExternalMemoryHandleTypeFlags types)
{
    bool is_buffer = call == FV_CALL_vkCreateBuffer;
    for (VkExternalMemoryHandleTypeFlags bit = 1; bit && bit <= types; bit <<= 1) {
        VkExternalMemoryProperties known =
            fv_external_properties(fv_driver_of(device), fv_layout_of(device), bit);
        if (types & bit && (types & ~known.compatibleHandleTypes || !known.externalMemoryFeatures))
            fv_say(fv_driver_of(device), FV_ERROR,
                   is_buffer ? "VUID-VkBufferCreateInfo-pNext-00920"
                             : "VUID-VkImageCreateInfo-pNext-00990",
                   call, "handle types 0x%x: type 0x%x goes only with 0x%x", types, bit,
                   known.externalMemoryFeatures ? known.compatibleHandleTypes : 0);
    }
}

void fv_check_external(fv_device *device, const fv_request *request)
{
    fv_driver *driver = fv_driver_of(device);
    const fv_layout *layout = fv_layout_of(device);
    uint64_t alignment = layout->host_pointer_alignment;
    if (request->exported && request->exported->handleTypes & ~types_of(device))
        FV_WRONG(driver, "VUID-VkExportMemoryAllocateInfo-handleTypes-00656", vkAllocateMemory,
                 "handle types 0x%x are not all enabled", request->exported->handleTypes);
    if (request->file && !(request->file->handleType & types_of(device)))
        FV_WRONG(driver, "VUID-VkImportMemoryFdInfoKHR-handleType-00669", vkAllocateMemory,
                 "handle type 0x%x is not enabled", request->file->handleType);
    check_dedicated_only(device, request);
    if (!request->pointer)
        return;
    if (!(device->extensions & FV_BIT(HOST_POINTER)))
        FV_WRONG(driver, "fv-extension", vkAllocateMemory,
                 "a host pointer without VK_EXT_external_memory_host");
    if ((uintptr_t)request->pointer->pHostPointer % alignment)
        FV_WRONG(driver, "VUID-VkImportMemoryHostPointerInfoEXT-pHostPointer-01749",
                 vkAllocateMemory, "the pointer is not aligned to %" PRIu64, alignment);
    if (request->size % alignment)
        FV_WRONG(driver, "VUID-VkMemoryAllocateInfo-allocationSize-01745", vkAllocateMemory,
                 "%" PRIu64 " bytes are no multiple of %" PRIu64, request->size, alignment);
    if (!(fv_host_pointer_types(layout) >> request->type & 1))
        FV_WRONG(driver, "VUID-VkMemoryAllocateInfo-memoryTypeIndex-01744", vkAllocateMemory,
                 "memory type %u cannot be a host pointer", request->type);
}

/* After a success the driver owns the descriptor. */
static VkResult import_file(const fv_request *request, fv_memory *memory)
{
    struct stat status;
    int fd = request->file->fd;
    if (fd < 0 || fstat(fd, &status) || (uint64_t)status.st_size < request->size ||
        !fv_bytes_share(&memory->bytes, request->size, fd))
        return VK_ERROR_INVALID_EXTERNAL_HANDLE;
    memory->file = fd;
    memory->imported_as = request->file->handleType;
    return VK_SUCCESS;
}

VkResult fv_external_bytes(fv_device *device, const fv_request *request, fv_memory *memory)
{
    if (request->pointer) {
        memory->imported_as = request->pointer->handleType;
        fv_bytes_borrow(&memory->bytes, request->size, request->pointer->pHostPointer);
        return request->pointer->pHostPointer ? VK_SUCCESS : VK_ERROR_INVALID_EXTERNAL_HANDLE;
    }
    if (request->file)
        return import_file(request, memory);
    (void)device;
    memory->file = memfd_create("quire fake memory", MFD_CLOEXEC);
    if (memory->file < 0)
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    if (!ftruncate(memory->file, (off_t)request->size) &&
        fv_bytes_share(&memory->bytes, request->size, memory->file))
        return VK_SUCCESS;
    close(memory->file);
    return VK_ERROR_OUT_OF_HOST_MEMORY;
}

/* ---- the calls ---------------------------------------------------------------------------- */

VkResult fv_vkGetMemoryFdKHR(VkDevice handle, const VkMemoryGetFdInfoKHR *info, int *out)
{
    fv_device *device = (fv_device *)handle;
    fv_driver *driver = fv_driver_of(device);
    VkResult result = fv_enter(driver, FV_CALL_vkGetMemoryFdKHR);
    const fv_memory *memory =
        result ? NULL : FV_FIND(device, vkGetMemoryFdKHR, FV_MEMORY, info->memory);
    *out = -1;
    if (memory && !(memory->exportable & info->handleType & FILES))
        FV_WRONG(driver, "VUID-VkMemoryGetFdInfoKHR-handleType-00671", vkGetMemoryFdKHR,
                 "memory '%s' was not made to be exported so", memory->object.name);
    else if (memory)
        *out = dup(memory->file);
    if (!result && *out < 0)
        result = VK_ERROR_TOO_MANY_OBJECTS;
    fv_leave(driver);
    return result;
}

VkResult fv_vkGetMemoryFdPropertiesKHR(VkDevice handle, VkExternalMemoryHandleTypeFlagBits type,
                                       int fd, VkMemoryFdPropertiesKHR *out)
{
    fv_device *device = (fv_device *)handle;
    fv_driver *driver = fv_driver_of(device);
    struct stat status;
    VkResult result = fv_enter(driver, FV_CALL_vkGetMemoryFdPropertiesKHR);
    if (type == VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT)
        FV_WRONG(driver, "VUID-vkGetMemoryFdPropertiesKHR-handleType-00674",
                 vkGetMemoryFdPropertiesKHR, "an opaque file descriptor has no properties");
    if (!result && fstat(fd, &status))
        result = VK_ERROR_INVALID_EXTERNAL_HANDLE;
    out->memoryTypeBits = result ? 0 : fv_types_for(fv_layout_of(device), false, false);
    fv_leave(driver);
    return result;
}

VkResult fv_vkGetMemoryHostPointerPropertiesEXT(VkDevice handle,
                                                VkExternalMemoryHandleTypeFlagBits type,
                                                const void *pointer,
                                                VkMemoryHostPointerPropertiesEXT *out)
{
    fv_device *device = (fv_device *)handle;
    fv_driver *driver = fv_driver_of(device);
    VkResult result = fv_enter(driver, FV_CALL_vkGetMemoryHostPointerPropertiesEXT);
    bool known = type == VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT ||
                 type == VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_MAPPED_FOREIGN_MEMORY_BIT_EXT;
    if (!known)
        FV_WRONG(driver, "VUID-vkGetMemoryHostPointerPropertiesEXT-handleType-01752",
                 vkGetMemoryHostPointerPropertiesEXT, "type 0x%x is no pointer's", type);
    if ((uintptr_t)pointer % fv_layout_of(device)->host_pointer_alignment)
        FV_WRONG(driver, "VUID-vkGetMemoryHostPointerPropertiesEXT-pHostPointer-01753",
                 vkGetMemoryHostPointerPropertiesEXT, "the pointer is not aligned");
    out->memoryTypeBits = known && !result ? fv_host_pointer_types(fv_layout_of(device)) : 0;
    fv_leave(driver);
    return result;
}
