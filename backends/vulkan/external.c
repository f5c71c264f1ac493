/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * external.c - handle types of external memory; export of pages and import of memory: POSIX file
 * descriptors, dma-bufs, host pointers and, on Windows, handles.
 */
#include "backends/vulkan/external.h"

#include "backends/vulkan/device.h"
#include "backends/vulkan/functions.h"
#include "backends/vulkan/object.h"
#include "src/base/bits.h"
#include "src/base/result.h"

/* ---- what the device can do --------------------------------------------------------------- */

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

static const VkExternalMemoryFeatureFlags DEDICATED = VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT;

qi_vulkan_types qi_vulkan_export_types(const qi_vulkan *vulkan)
{
    return (qi_vulkan_types){vulkan->settings.export_types,
                             VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT};
}

qi_vulkan_types qi_vulkan_types_of(const qi_vulkan_page *page)
{
    return (qi_vulkan_types){page->external, page->is_exportable
                                                 ? VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT
                                                 : VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT};
}

/* Returns the lowest of the types, and removes it from the set. */
static VkExternalMemoryHandleTypeFlags take_type(VkExternalMemoryHandleTypeFlags *types)
{
    VkExternalMemoryHandleTypeFlags rest = *types & (*types - 1), lowest = *types ^ rest;
    *types = rest;
    return lowest;
}

static VkExternalMemoryProperties query_buffer(const qi_vulkan *vulkan, VkBufferCreateFlags flags,
                                               VkBufferUsageFlags usage,
                                               VkExternalMemoryHandleTypeFlags type)
{
    const VkPhysicalDeviceExternalBufferInfo query = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO,
        .flags = flags,
        .usage = usage,
        .handleType = (VkExternalMemoryHandleTypeFlagBits)type,
    };
    VkExternalBufferProperties answer = {.sType = VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES};
    vulkan->f.GetPhysicalDeviceExternalBufferProperties(vulkan->physical_device, &query, &answer);
    return answer.externalMemoryProperties;
}

static quire_result query_image(const qi_vulkan *vulkan, const VkImageCreateInfo *info,
                                VkExternalMemoryHandleTypeFlags type,
                                VkExternalMemoryProperties *properties)
{
    const VkPhysicalDeviceExternalImageFormatInfo external = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_IMAGE_FORMAT_INFO,
        .handleType = (VkExternalMemoryHandleTypeFlagBits)type,
    };
    const VkPhysicalDeviceImageFormatInfo2 query = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_IMAGE_FORMAT_INFO_2,
        .pNext = &external,
        .format = info->format,
        .type = info->imageType,
        .tiling = info->tiling,
        .usage = info->usage,
        .flags = info->flags,
    };
    VkExternalImageFormatProperties answer = {
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_IMAGE_FORMAT_PROPERTIES};
    VkImageFormatProperties2 limits = {.sType = VK_STRUCTURE_TYPE_IMAGE_FORMAT_PROPERTIES_2,
                                       .pNext = &answer};
    VkResult code =
        vulkan->f.GetPhysicalDeviceImageFormatProperties2(vulkan->physical_device, &query, &limits);
    *properties = answer.externalMemoryProperties;
    return code ? qi_vulkan_fail(code, "an image of format %d in memory of handle type 0x%x",
                                 (int)info->format, type)
                : QUIRE_SUCCESS;
}

/* Whether the device was created with the extension for a handle type. */
static bool is_type_enabled(const qi_vulkan *vulkan, VkExternalMemoryHandleTypeFlags type)
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

/* A device that does not know a type reports no features for it. */
static quire_result check_type(const qi_vulkan *vulkan, const char *object, qi_vulkan_types wanted,
                               VkExternalMemoryHandleTypeFlags type,
                               const VkExternalMemoryProperties *properties)
{
    if (!is_type_enabled(vulkan, type))
        return qi_fail_with(QUIRE_ERROR_UNSUPPORTED,
                            "external memory handle type %x: the device was created without the "
                            "extension for it",
                            (uint64_t)type);
    if (properties->externalMemoryFeatures & wanted.feature &&
        !(wanted.types & ~properties->compatibleHandleTypes))
        return QUIRE_SUCCESS;
    return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                        "the device does not support %s in memory that is %s as handle types 0x%x, "
                        "because of type 0x%x",
                        object,
                        wanted.feature == VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT ? "exported"
                                                                                    : "imported",
                        wanted.types, type);
}

static quire_result check_buffer(const qi_vulkan *vulkan, VkBufferCreateFlags flags,
                                 VkBufferUsageFlags usage, qi_vulkan_types wanted,
                                 VkExternalMemoryFeatureFlags *features)
{
    quire_result result = QUIRE_SUCCESS;
    for (VkExternalMemoryHandleTypeFlags left = wanted.types; left && !result;) {
        VkExternalMemoryHandleTypeFlags type = take_type(&left);
        VkExternalMemoryProperties properties = query_buffer(vulkan, flags, usage, type);
        *features |= properties.externalMemoryFeatures;
        result = check_type(vulkan, "such a buffer", wanted, type, &properties);
    }
    return result;
}

static quire_result check_image(const qi_vulkan *vulkan, const VkImageCreateInfo *info,
                                qi_vulkan_types wanted)
{
    quire_result result = QUIRE_SUCCESS;
    /* For these the query needs pNext structs that only the caller knows. */
    if (info->format == VK_FORMAT_UNDEFINED ||
        info->tiling == VK_IMAGE_TILING_DRM_FORMAT_MODIFIER_EXT)
        return result;
    for (VkExternalMemoryHandleTypeFlags left = wanted.types; left && !result;) {
        VkExternalMemoryHandleTypeFlags type = take_type(&left);
        VkExternalMemoryProperties properties = {0};
        result = query_image(vulkan, info, type, &properties);
        if (!result)
            result = check_type(vulkan, "such an image", wanted, type, &properties);
    }
    return result;
}

/* ---- pages that are not dedicated to an object -------------------------------------------- */

quire_result qi_vulkan_check_page_buffer(const qi_vulkan *vulkan, qi_vulkan_types types)
{
    VkExternalMemoryFeatureFlags features = 0;
    return check_buffer(vulkan, 0, vulkan->settings.page_usage, types, &features);
}

/* Such a page holds any ranges: the answer for the buffer over the page decides. */
quire_result qi_vulkan_check_page_export(const qi_vulkan *vulkan)
{
    VkExternalMemoryFeatureFlags features = 0;
    quire_result result = check_buffer(vulkan, 0, vulkan->settings.page_usage,
                                       qi_vulkan_export_types(vulkan), &features);
    if (result || !(features & DEDICATED))
        return result;
    return qi_fail_with(QUIRE_ERROR_UNSUPPORTED,
                        "the device exports handle types %x only from memory that is dedicated to "
                        "a buffer or an image: create one of them instead of a range",
                        (uint64_t)vulkan->settings.export_types);
}

/* UNSUPPORTED if an import of this type must be dedicated to a buffer or image. What buffers cannot
   import, images may be able to: the driver decides about it. */
static quire_result check_page_import(const qi_vulkan *vulkan,
                                      VkExternalMemoryHandleTypeFlagBits type)
{
    VkExternalMemoryProperties properties =
        query_buffer(vulkan, 0, vulkan->settings.page_usage, (VkExternalMemoryHandleTypeFlags)type);
    if (!(properties.externalMemoryFeatures & DEDICATED))
        return QUIRE_SUCCESS;
    return qi_fail_with(QUIRE_ERROR_UNSUPPORTED,
                        "the device imports handle type %x only into memory that is dedicated to a "
                        "buffer or an image: see quire_vulkan_import.buffer and .image",
                        (uint64_t)type);
}

/* ---- declarations ------------------------------------------------------------------------- */

static quire_result check_declared(VkExternalMemoryHandleTypeFlags types,
                                   VkExternalMemoryHandleTypeFlags declared)
{
    if (!types || types & declared)
        return QUIRE_SUCCESS;
    return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                        "the object was created for the handle types %x, and the memory has the "
                        "types %x: Vulkan requires one of them in "
                        "VkExternalMemoryBufferCreateInfo or VkExternalMemoryImageCreateInfo",
                        (uint64_t)declared, (uint64_t)types);
}

static const VkBaseInStructure *find(const void *chain, VkStructureType type)
{
    const VkBaseInStructure *link = chain;
    while (link && link->sType != type)
        link = link->pNext;
    return link;
}

quire_result qi_vulkan_check_existing(VkExternalMemoryHandleTypeFlags types, const void *chain)
{
    const VkBaseInStructure *buffer =
        find(chain, VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO);
    const VkBaseInStructure *image =
        find(chain, VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_IMAGE_CREATE_INFO);
    VkExternalMemoryHandleTypeFlags declared = 0;
    if (buffer)
        declared = ((const VkExternalMemoryBufferCreateInfo *)buffer)->handleTypes;
    if (image)
        declared = ((const VkExternalMemoryImageCreateInfo *)image)->handleTypes;
    return check_declared(types, declared);
}

quire_result qi_vulkan_declare_buffer(const qi_vulkan *vulkan, qi_vulkan_types types,
                                      VkBufferCreateInfo *info, qi_vulkan_declaration *declaration)
{
    VkExternalMemoryFeatureFlags features = 0;
    const VkStructureType type = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO;
    const VkBaseInStructure *own = find(info->pNext, type);
    if (!types.types)
        return QUIRE_SUCCESS;
    if (own)
        return check_declared(types.types,
                              ((const VkExternalMemoryBufferCreateInfo *)own)->handleTypes);
    quire_result result =
        check_buffer(vulkan, info->flags, qi_vulkan_usage_of(info), types, &features);
    declaration->buffer = (VkExternalMemoryBufferCreateInfo){
        .sType = type, .pNext = info->pNext, .handleTypes = types.types};
    info->pNext = &declaration->buffer;
    return result;
}

quire_result qi_vulkan_declare_image(const qi_vulkan *vulkan, qi_vulkan_types types,
                                     VkImageCreateInfo *info, qi_vulkan_declaration *declaration)
{
    const VkStructureType type = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_IMAGE_CREATE_INFO;
    const VkBaseInStructure *own = find(info->pNext, type);
    if (!types.types)
        return QUIRE_SUCCESS;
    if (own)
        return check_declared(types.types,
                              ((const VkExternalMemoryImageCreateInfo *)own)->handleTypes);
    if (info->initialLayout != VK_IMAGE_LAYOUT_UNDEFINED)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "an image in memory that is shared with another API begins in layout "
                            "UNDEFINED, not in layout %u",
                            (uint64_t)info->initialLayout);
    quire_result result = check_image(vulkan, info, types);
    declaration->image = (VkExternalMemoryImageCreateInfo){
        .sType = type, .pNext = info->pNext, .handleTypes = types.types};
    info->pNext = &declaration->image;
    return result;
}

/* ---- importing ---------------------------------------------------------------------------- */

/* Rejects handle types of other platforms. check_import has checked the values. */
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
    return qi_fail_with(QUIRE_ERROR_UNSUPPORTED,
                        "external memory handle type %x is not supported on this platform",
                        (uint64_t)import->type);
}

/* Rejects what Vulkan forbids. The driver itself reports invalid handles. */
static quire_result check_import(const qi_vulkan *vulkan, const quire_vulkan_import *import)
{
    if (!qi_is_power_of_two(import->type) || !is_type_enabled(vulkan, import->type))
        return qi_fail_with(QUIRE_ERROR_UNSUPPORTED,
                            "external memory handle type %x: the device was created without the "
                            "extension for it",
                            (uint64_t)import->type);
    if (!import->size)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "the size of the import is 0");
    if (import->type & DESCRIPTORS) {
        if (import->descriptor < 0)
            return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                           "the descriptor of the import is negative");
    } else if (!import->pointer) {
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_vulkan_import.pointer is null");
    }
    /* VK_EXT_external_memory_host: address and size are multiples of this alignment. */
    uint64_t unit = vulkan->host_pointer_alignment;
    if (import->type == VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT && unit > 1 &&
        (import->size % unit || (uintptr_t)import->pointer % unit))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "host memory of %u byte%s at %x: both must be multiples of %u",
                            import->size, (uintptr_t)import->pointer, unit);
    if (import->buffer && import->image)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "the import is dedicated to a buffer and to an image");
    if (import->type == VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT &&
        (import->buffer || import->image)) /* VUID-VkMemoryAllocateInfo-pNext-02806 */
        return qi_fail(
            QUIRE_ERROR_INVALID_ARGUMENT,
            "host memory cannot be dedicated to a buffer or an image: import it without, "
            "and bind the object to the allocation");
    return qi_check_unused(import, "quire_vulkan_import");
}

/* Removes the kinds that cannot hold the object that the import is dedicated to. Vulkan requires
   that the memory has exactly the object's size. */
static quire_result check_object(const qi_vulkan *vulkan, const quire_vulkan_import *import,
                                 uint32_t *mask)
{
    quire_requirements needs = {.size = import->size, .kind_mask = UINT32_MAX};
    if (import->buffer)
        qi_vulkan_query_object(vulkan, QUIRE_OBJECT_BUFFER, QI_VULKAN_NUMBER(import->buffer),
                               &needs);
    if (import->image)
        qi_vulkan_query_object(vulkan, QUIRE_OBJECT_IMAGE, QI_VULKAN_NUMBER(import->image), &needs);
    *mask &= needs.kind_mask;
    return needs.size == import->size
               ? QUIRE_SUCCESS
               : qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                              "the size of the import is %u byte%s, and the object that it is "
                              "dedicated to needs %u",
                              import->size, needs.size);
}

/* Only dma-bufs: Vulkan forbids the query for opaque descriptors. */
static quire_result query_descriptor(const qi_vulkan *vulkan, const quire_vulkan_import *import,
                                     uint32_t *mask)
{
    VkMemoryFdPropertiesKHR properties = {.sType = VK_STRUCTURE_TYPE_MEMORY_FD_PROPERTIES_KHR};
    if (!vulkan->f.GetMemoryFdPropertiesKHR)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED, "the driver has no vkGetMemoryFdPropertiesKHR");
    VkResult code = vulkan->f.GetMemoryFdPropertiesKHR(vulkan->device, import->type,
                                                       import->descriptor, &properties);
    *mask = properties.memoryTypeBits;
    return code ? qi_vulkan_fail(code, "vkGetMemoryFdPropertiesKHR") : QUIRE_SUCCESS;
}

static quire_result query_pointer(const qi_vulkan *vulkan, const quire_vulkan_import *import,
                                  uint32_t *mask)
{
    VkMemoryHostPointerPropertiesEXT properties = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
    VkResult code = vulkan->f.GetMemoryHostPointerPropertiesEXT(vulkan->device, import->type,
                                                                import->pointer, &properties);
    *mask = properties.memoryTypeBits;
    return code ? qi_vulkan_fail(code, "vkGetMemoryHostPointerPropertiesEXT") : QUIRE_SUCCESS;
}

/* Finds the kinds that imported memory can have. Vulkan has no query for opaque handles, which have
   the kind of the exporter: then every kind is in the mask. */
static quire_result find_kinds(const qi_vulkan *vulkan, const quire_vulkan_import *import,
                               uint32_t *mask)
{
    quire_result result = check_import(vulkan, import);
    if (!result && !import->buffer && !import->image)
        result = check_page_import(vulkan, import->type);
    if (result)
        return result;
    *mask = (uint32_t)((UINT64_C(1) << vulkan->memory.memoryTypeCount) - 1);
    if (import->type == VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT)
        result = query_descriptor(vulkan, import, mask);
    if (import->type == VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT)
        result = query_pointer(vulkan, import, mask);
    return result ? result : check_object(vulkan, import, mask);
}

quire_result quire_vulkan_import_kinds(quire_device *device, const quire_vulkan_import *import,
                                       uint32_t *kind_mask)
{
    if (kind_mask)
        *kind_mask = 0;
    if (!import || !kind_mask)
        return qi_fail_null("quire_vulkan_import_kinds", !import ? "import" : "kind_mask");
    const qi_vulkan *vulkan = qi_vulkan_of(device);
    if (!vulkan)
        return quire_last_result();
    uint32_t mask = 0;
    quire_result result = find_kinds(vulkan, import, &mask);
    if (!result)
        *kind_mask = mask;
    return result;
}

/* The imported memory becomes a page with one allocation. If the import of a file descriptor
   succeeds the driver owns the descriptor. */
quire_result quire_vulkan_import_range(quire_memory *memory, const quire_vulkan_import *import,
                                       quire_allocation *allocation)
{
    if (allocation)
        *allocation = (quire_allocation){0};
    if (!memory || !import || !allocation)
        return qi_fail_null("quire_vulkan_import_range", !memory   ? "memory"
                                                         : !import ? "import"
                                                                   : "allocation");
    quire_memory_info info;
    qi_vulkan *vulkan = NULL;
    uint32_t mask = 0;
    quire_result result = qi_vulkan_of_memory(memory, &vulkan);
    if (!result)
        result = quire_memory_get_info(memory, &info);
    if (!result)
        result = find_kinds(vulkan, import, &mask);
    if (result)
        return result;
    if (!(mask >> info.kind & 1))
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                            "memory '%s' has kind %u: the imported memory can have kinds 0x%x",
                            info.name, info.kind, mask);
    const quire_allocation_options options = {
        .size = import->size, .name = import->name, .user_data = import->user_data};
    return quire_page_adopt(memory, import, &options, allocation);
}

/* ---- exporting ---------------------------------------------------------------------------- */

/* Each call returns a new descriptor, which the caller closes. */
quire_result quire_vulkan_export_fd(quire_memory *memory, quire_allocation allocation,
                                    VkExternalMemoryHandleTypeFlagBits type, int *descriptor)
{
    if (descriptor)
        *descriptor = -1;
    if (!memory || !descriptor)
        return qi_fail_null("quire_vulkan_export_fd", !memory ? "memory" : "descriptor");
    quire_native native;
    qi_vulkan *vulkan = NULL;
    quire_result result = qi_vulkan_of_allocation(memory, allocation, &native, &vulkan);
    if (result)
        return result;
    const qi_vulkan_page *page = qi_vulkan_page_of(&native.page);
    if (!page->is_exportable || !(type & DESCRIPTORS) || !qi_is_power_of_two(type) ||
        !(page->external & type) || !is_type_enabled(vulkan, type))
        return qi_fail_with(
            QUIRE_ERROR_UNSUPPORTED,
            "the page cannot be exported as handle type %x: it was created for types "
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
    *descriptor = -1; /* undefined after a failure */
    return qi_vulkan_fail(code, "vkGetMemoryFdKHR");
}
