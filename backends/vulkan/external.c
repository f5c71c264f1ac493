/*
 * external.c - exporting pages and importing memory: POSIX descriptors, dma-bufs, host pointers
 * and, on Windows, handles.
 */
#include "backends/vulkan/external.h"

#include "src/base/bits.h"
#include "src/base/result.h"

static const VkExternalMemoryHandleTypeFlags DESCRIPTORS =
    VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT | VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT;

#ifdef _WIN32
static const VkExternalMemoryHandleTypeFlags WIN32_HANDLES =
    VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32_BIT |
    VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32_KMT_BIT |
    VK_EXTERNAL_MEMORY_HANDLE_TYPE_D3D11_TEXTURE_BIT |
    VK_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_HEAP_BIT |
    VK_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_RESOURCE_BIT;
#endif

/* ---- importing ---------------------------------------------------------------------------- */

quire_result qi_vulkan_describe_import(const quire_vulkan_import *import,
                                       qi_vulkan_import_link *link)
{
    if (import->type & DESCRIPTORS) {
        link->descriptor = (VkImportMemoryFdInfoKHR){
            .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR,
            .handleType = import->type,
            .fd = import->descriptor,
        };
        return QUIRE_SUCCESS;
    }
    if (import->type == VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT) {
        link->host = (VkImportMemoryHostPointerInfoEXT){
            .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
            .handleType = import->type,
            .pHostPointer = import->pointer,
        };
        return QUIRE_SUCCESS;
    }
#ifdef _WIN32
    if (import->type & WIN32_HANDLES) {
        link->win32 = (VkImportMemoryWin32HandleInfoKHR){
            .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_WIN32_HANDLE_INFO_KHR,
            .handleType = import->type,
            .handle = import->pointer,
        };
        return QUIRE_SUCCESS;
    }
#endif
    return qi_fail_with(QUIRE_ERROR_UNSUPPORTED, "external memory handle type %x is not offered",
                        (uint64_t)import->type);
}

static bool is_enabled(const qi_vulkan *vulkan, VkExternalMemoryHandleTypeFlags type)
{
    switch (type) {
    case VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT:
        return vulkan->enabled.external_fd;
    case VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT:
        return vulkan->enabled.dma_buf;
    case VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT:
        return vulkan->enabled.host_pointer;
    default:
#ifdef _WIN32
        if (type & WIN32_HANDLES)
            return vulkan->enabled.win32;
#endif
        return false;
    }
}

static quire_result check_import(const qi_vulkan *vulkan, const quire_vulkan_import *import)
{
    if (!qi_is_power_of_two(import->type) || !is_enabled(vulkan, import->type))
        return qi_fail_with(QUIRE_ERROR_UNSUPPORTED,
                            "external memory handle type %x: the device was made without the "
                            "extension for it",
                            (uint64_t)import->type);
    if (!import->size)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "an import of size 0");
    if (import->type & DESCRIPTORS) {
        if (import->descriptor < 0)
            return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "an import of a negative descriptor");
    } else if (!import->pointer) {
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "an import of a null pointer or handle");
    }
    uint64_t unit = vulkan->max_host_alignment;
    if (import->type == VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT && unit > 1 &&
        (import->size % unit || (uintptr_t)import->pointer % unit))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "host memory of %u bytes at %x: both must be multiples of %u",
                            import->size, (uintptr_t)import->pointer, unit);
    return qi_check_unused(import, "quire_vulkan_import");
}

static quire_result ask_descriptor(const qi_vulkan *vulkan, const quire_vulkan_import *import,
                                   uint32_t *mask)
{
    VkMemoryFdPropertiesKHR told = {.sType = VK_STRUCTURE_TYPE_MEMORY_FD_PROPERTIES_KHR};
    if (!vulkan->f.GetMemoryFdPropertiesKHR)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED, "the driver has no vkGetMemoryFdPropertiesKHR");
    VkResult code =
        vulkan->f.GetMemoryFdPropertiesKHR(vulkan->device, import->type, import->descriptor, &told);
    *mask = told.memoryTypeBits;
    return code ? qi_vulkan_fail(code, "vkGetMemoryFdPropertiesKHR") : QUIRE_SUCCESS;
}

static quire_result ask_pointer(const qi_vulkan *vulkan, const quire_vulkan_import *import,
                                uint32_t *mask)
{
    VkMemoryHostPointerPropertiesEXT told = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
    VkResult code = vulkan->f.GetMemoryHostPointerPropertiesEXT(vulkan->device, import->type,
                                                                import->pointer, &told);
    *mask = told.memoryTypeBits;
    return code ? qi_vulkan_fail(code, "vkGetMemoryHostPointerPropertiesEXT") : QUIRE_SUCCESS;
}

static quire_result find_kinds(const qi_vulkan *vulkan, const quire_vulkan_import *import,
                               uint32_t *mask)
{
    quire_result result = check_import(vulkan, import);
    if (result)
        return result;
    if (import->type == VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT)
        return ask_descriptor(vulkan, import, mask);
    if (import->type == VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT)
        return ask_pointer(vulkan, import, mask);
    *mask = (uint32_t)((UINT64_C(1) << vulkan->memory.memoryTypeCount) - 1);
    return QUIRE_SUCCESS;
}

quire_result quire_vulkan_import_kinds(quire_device *device, const quire_vulkan_import *import,
                                       uint32_t *kind_mask)
{
    if (kind_mask)
        *kind_mask = 0;
    if (!import || !kind_mask)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_vulkan_import_kinds: import or kind_mask is null");
    const qi_vulkan *vulkan = qi_vulkan_of(device);
    if (!vulkan)
        return quire_last_result();
    uint32_t mask = 0;
    quire_result result = find_kinds(vulkan, import, &mask);
    if (!result)
        *kind_mask = mask;
    return result;
}

quire_result quire_vulkan_import_range(quire_memory *memory, const quire_vulkan_import *import,
                                       quire_allocation *allocation)
{
    if (allocation)
        *allocation = (quire_allocation){0};
    if (!memory || !import || !allocation)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_vulkan_import_range: memory, import or allocation is null");
    quire_memory_info info;
    qi_vulkan *vulkan = NULL;
    uint32_t mask = 0;
    quire_result result = qi_vulkan_of_memory(memory, &info, &vulkan);
    if (!result)
        result = find_kinds(vulkan, import, &mask);
    if (result)
        return result;
    if (!(mask >> info.kind & 1))
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                            "memory '%s' is of kind %u, and what is imported can be of kinds 0x%x",
                            info.name, info.kind, mask);
    const quire_allocation_options options = {
        .size = import->size, .name = import->name, .user_data = import->user_data};
    return quire_page_adopt(memory, import, &options, allocation);
}

/* ---- exporting ---------------------------------------------------------------------------- */

quire_result quire_vulkan_export_fd(quire_memory *memory, quire_allocation allocation,
                                    VkExternalMemoryHandleTypeFlagBits type, int *descriptor)
{
    if (descriptor)
        *descriptor = -1;
    if (!memory || !descriptor)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_vulkan_export_fd: memory or descriptor is null");
    quire_native native;
    qi_vulkan *vulkan = NULL;
    quire_result result = qi_vulkan_native(memory, allocation, &native, &vulkan);
    if (result)
        return result;
    const qi_vulkan_page *page = qi_vulkan_page_of(&native.page);
    if (!page->is_exportable || !(type & DESCRIPTORS) || !qi_is_power_of_two(type) ||
        !(page->external & type) || !is_enabled(vulkan, type))
        return qi_fail_with(QUIRE_ERROR_UNSUPPORTED,
                            "the page cannot be exported as handle type %x: it was made for types "
                            "%x",
                            (uint64_t)type, page->is_exportable ? page->external : 0);
    const VkMemoryGetFdInfoKHR info = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR,
        .memory = page->memory,
        .handleType = type,
    };
    VkResult code = vulkan->f.GetMemoryFdKHR(vulkan->device, &info, descriptor);
    if (!code)
        return QUIRE_SUCCESS;
    *descriptor = -1;
    return qi_vulkan_fail(code, "vkGetMemoryFdKHR");
}
