/*
 * handle_type.c - handle types of external memory: see handle_type.h.
 */
#include "backends/vulkan/handle_type.h"

#include "backends/vulkan/external.h"
#include "backends/vulkan/functions.h"
#include "backends/vulkan/object.h"
#include "src/base/result.h"

/* ---- what the device can do ------------------------------------------------------------------ */

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

/* A device that does not know a type reports no features for it. */
static quire_result check_type(const qi_vulkan *vulkan, const char *object, qi_vulkan_types wanted,
                               VkExternalMemoryHandleTypeFlags type,
                               const VkExternalMemoryProperties *properties)
{
    if (!qi_vulkan_is_type_enabled(vulkan, type))
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

/* ---- pages that are not dedicated to an object ----------------------------------------------- */

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

/* What buffers cannot import, images may be able to: the driver decides about it. */
quire_result qi_vulkan_check_page_import(const qi_vulkan *vulkan,
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

/* ---- declarations ---------------------------------------------------------------------------- */

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
