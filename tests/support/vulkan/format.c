/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * format.c - the formats of the fake driver (see format.h), and the queries of their properties.
 *
 * As with most drivers, formats with three channels support only linear tiling, and channels of
 * 64 bits support only copies. Tests that need other features set them.
 */
#include "tests/support/vulkan/format.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/vulkan/table.h"
#include "tests/support/vulkan/tile.h"

/* ---- what a format is --------------------------------------------------------------------- */

typedef struct group {
    VkFormat first; /* the others follow in numerical order */
    uint32_t channel_count, channel_size;
    bool reversed;
    uint32_t numbers[7], count;
} group;

#define ALL_8 {FV_UNORM, FV_SNORM, FV_USCALED, FV_SSCALED, FV_UINT, FV_SINT, FV_SRGB}, 7
#define ALL_16 {FV_UNORM, FV_SNORM, FV_USCALED, FV_SSCALED, FV_UINT, FV_SINT, FV_SFLOAT}, 7
#define ALL_WIDE {FV_UINT, FV_SINT, FV_SFLOAT}, 3

static const group GROUPS[] = {
    {VK_FORMAT_R8_UNORM, 1, 1, false, ALL_8},
    {VK_FORMAT_R8G8_UNORM, 2, 1, false, ALL_8},
    {VK_FORMAT_R8G8B8_UNORM, 3, 1, false, ALL_8},
    {VK_FORMAT_B8G8R8_UNORM, 3, 1, true, ALL_8},
    {VK_FORMAT_R8G8B8A8_UNORM, 4, 1, false, ALL_8},
    {VK_FORMAT_B8G8R8A8_UNORM, 4, 1, true, ALL_8},
    {VK_FORMAT_R16_UNORM, 1, 2, false, ALL_16},
    {VK_FORMAT_R16G16_UNORM, 2, 2, false, ALL_16},
    {VK_FORMAT_R16G16B16_UNORM, 3, 2, false, ALL_16},
    {VK_FORMAT_R16G16B16A16_UNORM, 4, 2, false, ALL_16},
    {VK_FORMAT_R32_UINT, 1, 4, false, ALL_WIDE},
    {VK_FORMAT_R32G32_UINT, 2, 4, false, ALL_WIDE},
    {VK_FORMAT_R32G32B32_UINT, 3, 4, false, ALL_WIDE},
    {VK_FORMAT_R32G32B32A32_UINT, 4, 4, false, ALL_WIDE},
    {VK_FORMAT_R64_UINT, 1, 8, false, ALL_WIDE},
    {VK_FORMAT_R64G64_UINT, 2, 8, false, ALL_WIDE},
    {VK_FORMAT_R64G64B64_UINT, 3, 8, false, ALL_WIDE},
    {VK_FORMAT_R64G64B64A64_UINT, 4, 8, false, ALL_WIDE},
};

bool fv_format_of(VkFormat format, fv_format *out)
{
    if (format == VK_FORMAT_D32_SFLOAT || format == VK_FORMAT_D32_SFLOAT_S8_UINT) {
        uint32_t stencil = format == VK_FORMAT_D32_SFLOAT_S8_UINT;
        *out = (fv_format){.texel_size = 4 + stencil, .depth_size = 4, .stencil_size = stencil};
        return true;
    }
    for (size_t i = 0; i < sizeof GROUPS / sizeof *GROUPS; i++) {
        const group *all = &GROUPS[i];
        if (format < all->first || (uint32_t)(format - all->first) >= all->count)
            continue;
        *out = (fv_format){.texel_size = all->channel_count * all->channel_size,
                           .channel_count = all->channel_count,
                           .channel_size = all->channel_size,
                           .numbers = all->numbers[format - all->first],
                           .reversed = all->reversed};
        return true;
    }
    return false;
}

/* ---- clear colors ------------------------------------------------------------------------- */

static uint32_t scaled(float value, bool is_signed, uint32_t bits)
{
    double least = is_signed ? -1 : 0, most = (double)((UINT64_C(1) << (bits - is_signed)) - 1);
    double clamped = value < least ? least : value > 1 ? 1 : (double)value;
    return (uint32_t)(int64_t)(clamped * most + (clamped < 0 ? -0.5 : 0.5));
}

/* Drivers need not round to nearest even: this truncates. */
static uint16_t half_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t sign = bits >> 16 & 0x8000, mantissa = bits >> 13 & 0x3ff;
    int32_t exponent = (int32_t)(bits >> 23 & 0xff) - 127 + 15;
    if (exponent >= 31)
        return (uint16_t)(sign | 0x7c00);
    if (exponent <= 0)
        return (uint16_t)sign;
    return (uint16_t)(sign | (uint32_t)exponent << 10 | mantissa);
}

static uint64_t pack_channel(const fv_format *format, const VkClearColorValue *color, uint32_t at)
{
    uint32_t bits = format->channel_size * 8;
    uint64_t value = 0;
    double wide;
    switch (format->numbers) {
    case FV_UNORM:
    case FV_SRGB:
        return scaled(color->float32[at], false, bits);
    case FV_SNORM:
        return scaled(color->float32[at], true, bits);
    case FV_UINT:
        return color->uint32[at];
    case FV_SINT:
        return (uint64_t)(int64_t)color->int32[at];
    case FV_USCALED:
    case FV_SSCALED:
        return (uint64_t)(int64_t)color->float32[at];
    case FV_SFLOAT:
        if (format->channel_size == 2)
            return half_of(color->float32[at]);
        wide = (double)color->float32[at];
        if (format->channel_size == 8)
            memcpy(&value, &wide, sizeof wide);
        else
            memcpy(&value, &color->float32[at], sizeof(float));
        return value;
    }
    return value;
}

void fv_format_pack(const fv_format *format, const VkClearColorValue *color, unsigned char *texel)
{
    for (uint32_t i = 0; i < format->channel_count; i++) {
        uint32_t from = format->reversed && i < 3 ? 2 - i : i;
        uint64_t value = pack_channel(format, color, from);
        memcpy(texel + (size_t)i * format->channel_size, &value, format->channel_size);
    }
}

/* ---- what a format can be used for -------------------------------------------------------- */

#define COPIED (VK_FORMAT_FEATURE_TRANSFER_SRC_BIT | VK_FORMAT_FEATURE_TRANSFER_DST_BIT)
#define SHADED (COPIED | VK_FORMAT_FEATURE_SAMPLED_IMAGE_BIT | VK_FORMAT_FEATURE_STORAGE_IMAGE_BIT)
#define FILTERED VK_FORMAT_FEATURE_SAMPLED_IMAGE_FILTER_LINEAR_BIT

static VkFormatFeatureFlags usual_features(VkFormat format, VkImageTiling tiling)
{
    fv_format known;
    if (!fv_format_of(format, &known))
        return 0;
    bool optimal = tiling == VK_IMAGE_TILING_OPTIMAL;
    if (known.depth_size)
        return optimal ? VK_FORMAT_FEATURE_DEPTH_STENCIL_ATTACHMENT_BIT |
                             VK_FORMAT_FEATURE_SAMPLED_IMAGE_BIT
                       : 0;
    if (known.channel_count == 3)
        return optimal ? 0 : COPIED;
    if (known.channel_size == 8)
        return optimal ? COPIED : 0;
    bool integer = known.numbers == FV_UINT || known.numbers == FV_SINT;
    return (optimal ? SHADED : COPIED | VK_FORMAT_FEATURE_SAMPLED_IMAGE_BIT) |
           (integer ? 0 : FILTERED) | (optimal ? VK_FORMAT_FEATURE_COLOR_ATTACHMENT_BIT : 0);
}

VkFormatFeatureFlags fv_format_features(fv_driver *driver, VkFormat format, VkImageTiling tiling)
{
    for (uint32_t i = 0; i < driver->format_count; i++)
        if (driver->formats[i].format == format)
            return tiling == VK_IMAGE_TILING_OPTIMAL ? driver->formats[i].optimal
                                                     : driver->formats[i].linear;
    return usual_features(format, tiling);
}

void fv_set_format(fv_driver *driver, VkFormat format, VkFormatFeatureFlags linear,
                   VkFormatFeatureFlags optimal)
{
    uint32_t at = 0;
    pthread_mutex_lock(&driver->lock);
    while (at < driver->format_count && driver->formats[at].format != format)
        at++;
    if (at == FV_MAX_FORMATS)
        abort();
    driver->formats[at] = (fv_format_override){format, linear, optimal};
    driver->format_count += at == driver->format_count;
    pthread_mutex_unlock(&driver->lock);
}

/* ---- images of a format ------------------------------------------------------------------- */

static bool usage_fits(VkImageUsageFlags usage, VkFormatFeatureFlags features)
{
    static const struct {
        VkImageUsageFlags usage;
        VkFormatFeatureFlags feature;
    } NEEDS[] = {
        {VK_IMAGE_USAGE_TRANSFER_SRC_BIT, VK_FORMAT_FEATURE_TRANSFER_SRC_BIT},
        {VK_IMAGE_USAGE_TRANSFER_DST_BIT, VK_FORMAT_FEATURE_TRANSFER_DST_BIT},
        {VK_IMAGE_USAGE_SAMPLED_BIT, VK_FORMAT_FEATURE_SAMPLED_IMAGE_BIT},
        {VK_IMAGE_USAGE_STORAGE_BIT, VK_FORMAT_FEATURE_STORAGE_IMAGE_BIT},
        {VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT, VK_FORMAT_FEATURE_COLOR_ATTACHMENT_BIT},
        {VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT,
         VK_FORMAT_FEATURE_DEPTH_STENCIL_ATTACHMENT_BIT},
    };
    for (size_t i = 0; i < sizeof NEEDS / sizeof *NEEDS; i++)
        if (usage & NEEDS[i].usage && !(features & NEEDS[i].feature))
            return false;
    return true;
}

VkResult fv_image_limits(const fv_physical_device *physical,
                         const VkPhysicalDeviceImageFormatInfo2 *info, VkImageFormatProperties *out)
{
    VkFormatFeatureFlags features =
        fv_format_features(physical->object.driver, info->format, info->tiling);
    bool linear = info->tiling == VK_IMAGE_TILING_LINEAR;
    bool flat = info->type != VK_IMAGE_TYPE_3D;
    *out = (VkImageFormatProperties){0};
    if (!features || !usage_fits(info->usage, features) ||
        info->tiling == VK_IMAGE_TILING_DRM_FORMAT_MODIFIER_EXT ||
        (linear && info->type == VK_IMAGE_TYPE_3D) || info->flags & VK_IMAGE_CREATE_DISJOINT_BIT ||
        (info->flags & VK_IMAGE_CREATE_SPARSE_RESIDENCY_BIT &&
         (info->type == VK_IMAGE_TYPE_1D || !(physical->layout.features & FV_SPARSE_IMAGE))) ||
        (info->flags & VK_IMAGE_CREATE_SPARSE_BINDING_BIT &&
         (linear || !(physical->layout.features & FV_SPARSE_BINDING))))
        return VK_ERROR_FORMAT_NOT_SUPPORTED;
    out->maxExtent = (VkExtent3D){16384, info->type == VK_IMAGE_TYPE_1D ? 1 : 16384, 1};
    if (!flat)
        out->maxExtent = (VkExtent3D){2048, 2048, 2048};
    out->maxMipLevels = linear ? 1 : flat ? 15 : 12;
    out->maxArrayLayers = linear || !flat ? 1 : 2048;
    out->sampleCounts = VK_SAMPLE_COUNT_1_BIT;
    if (info->flags & VK_IMAGE_CREATE_SPARSE_RESIDENCY_BIT && info->type == VK_IMAGE_TYPE_2D &&
        physical->layout.features & FV_SPARSE_SAMPLES)
        out->sampleCounts |= VK_SAMPLE_COUNT_4_BIT;
    out->maxResourceSize = UINT64_C(1) << 40;
    return VK_SUCCESS;
}

/* ---- the calls ---------------------------------------------------------------------------- */

static void tell_format(fv_driver *driver, VkFormat format, VkFormatProperties *out)
{
    *out = (VkFormatProperties){
        .linearTilingFeatures = fv_format_features(driver, format, VK_IMAGE_TILING_LINEAR),
        .optimalTilingFeatures = fv_format_features(driver, format, VK_IMAGE_TILING_OPTIMAL)};
}

/* The features as 64-bit flags. The low bits have the same meaning. */
static void tell_format3(VkBaseOutStructure *chain, const VkFormatProperties *told)
{
    for (VkBaseOutStructure *link = chain; link; link = link->pNext)
        if (link->sType == VK_STRUCTURE_TYPE_FORMAT_PROPERTIES_3) {
            VkFormatProperties3 *wide = (void *)link;
            wide->linearTilingFeatures = told->linearTilingFeatures;
            wide->optimalTilingFeatures = told->optimalTilingFeatures;
            wide->bufferFeatures = told->bufferFeatures;
        }
}

void fv_vkGetPhysicalDeviceFormatProperties(VkPhysicalDevice handle, VkFormat format,
                                            VkFormatProperties *out)
{
    fv_driver *driver = ((fv_physical_device *)handle)->object.driver;
    (void)fv_enter(driver, FV_CALL_vkGetPhysicalDeviceFormatProperties);
    tell_format(driver, format, out);
    fv_leave(driver);
}

void fv_vkGetPhysicalDeviceFormatProperties2(VkPhysicalDevice handle, VkFormat format,
                                             VkFormatProperties2 *out)
{
    fv_driver *driver = ((fv_physical_device *)handle)->object.driver;
    (void)fv_enter(driver, FV_CALL_vkGetPhysicalDeviceFormatProperties2);
    tell_format(driver, format, &out->formatProperties);
    tell_format3(out->pNext, &out->formatProperties);
    fv_leave(driver);
}

VkResult fv_vkGetPhysicalDeviceImageFormatProperties(VkPhysicalDevice handle, VkFormat format,
                                                     VkImageType type, VkImageTiling tiling,
                                                     VkImageUsageFlags usage,
                                                     VkImageCreateFlags flags,
                                                     VkImageFormatProperties *out)
{
    const fv_physical_device *physical = (fv_physical_device *)handle;
    VkPhysicalDeviceImageFormatInfo2 info = {
        .format = format, .type = type, .tiling = tiling, .usage = usage, .flags = flags};
    VkResult result =
        fv_enter(physical->object.driver, FV_CALL_vkGetPhysicalDeviceImageFormatProperties);
    if (!result)
        result = fv_image_limits(physical, &info, out);
    fv_leave(physical->object.driver);
    return result;
}

VkResult fv_vkGetPhysicalDeviceImageFormatProperties2(VkPhysicalDevice handle,
                                                      const VkPhysicalDeviceImageFormatInfo2 *info,
                                                      VkImageFormatProperties2 *out)
{
    const fv_physical_device *physical = (fv_physical_device *)handle;
    VkResult result =
        fv_enter(physical->object.driver, FV_CALL_vkGetPhysicalDeviceImageFormatProperties2);
    const VkPhysicalDeviceExternalImageFormatInfo *external =
        fv_chained(info->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_IMAGE_FORMAT_INFO);
    if (!result)
        result = fv_image_limits(physical, info, &out->imageFormatProperties);
    for (VkBaseOutStructure *link = out->pNext; link && !result && external; link = link->pNext)
        if (link->sType == VK_STRUCTURE_TYPE_EXTERNAL_IMAGE_FORMAT_PROPERTIES)
            ((VkExternalImageFormatProperties *)(void *)link)->externalMemoryProperties =
                fv_external_properties(physical->object.driver, &physical->layout,
                                       external->handleType);
    fv_leave(physical->object.driver);
    return result;
}

void fv_vkGetPhysicalDeviceExternalBufferProperties(VkPhysicalDevice handle,
                                                    const VkPhysicalDeviceExternalBufferInfo *info,
                                                    VkExternalBufferProperties *out)
{
    const fv_physical_device *physical = (fv_physical_device *)handle;
    (void)fv_enter(physical->object.driver, FV_CALL_vkGetPhysicalDeviceExternalBufferProperties);
    if (!info->usage)
        FV_WRONG(physical->object.driver,
                 "VUID-VkPhysicalDeviceExternalBufferInfo-usage-requiredbitmask",
                 vkGetPhysicalDeviceExternalBufferProperties, "no usage");
    out->externalMemoryProperties =
        fv_external_properties(physical->object.driver, &physical->layout, info->handleType);
    fv_leave(physical->object.driver);
}

/* Describes the aspects of images with tiles, and returns their number. */
static uint32_t tell_tiles(const fv_physical_device *physical,
                           const VkPhysicalDeviceSparseImageFormatInfo2 *info,
                           VkSparseImageFormatProperties *out)
{
    const VkPhysicalDeviceImageFormatInfo2 asked = {
        .format = info->format,
        .type = info->type,
        .tiling = info->tiling,
        .usage = info->usage,
        .flags = VK_IMAGE_CREATE_SPARSE_BINDING_BIT | VK_IMAGE_CREATE_SPARSE_RESIDENCY_BIT,
    };
    fv_image image = {.info = {.imageType = info->type,
                               .extent = {1, 1, 1},
                               .mipLevels = 1,
                               .arrayLayers = 1,
                               .samples = info->samples}};
    VkImageFormatProperties most;
    if (!fv_format_of(info->format, &image.format) || fv_image_limits(physical, &asked, &most) ||
        !(info->samples & most.sampleCounts))
        return 0;
    image.levels[0].extent = image.info.extent;
    fv_tiles_lay_out(&image, physical->object.driver->options.flags);
    for (uint32_t i = 0; i < image.aspect_count; i++)
        out[i] = fv_tiles_told(&image, i).formatProperties;
    return image.aspect_count;
}

void fv_vkGetPhysicalDeviceSparseImageFormatProperties(VkPhysicalDevice handle, VkFormat format,
                                                       VkImageType type,
                                                       VkSampleCountFlagBits samples,
                                                       VkImageUsageFlags usage,
                                                       VkImageTiling tiling, uint32_t *count,
                                                       VkSparseImageFormatProperties *list)
{
    const fv_physical_device *physical = (fv_physical_device *)handle;
    const VkPhysicalDeviceSparseImageFormatInfo2 info = {
        .format = format, .type = type, .samples = samples, .usage = usage, .tiling = tiling};
    VkSparseImageFormatProperties told[FV_MAX_ASPECTS];
    (void)fv_enter(physical->object.driver, FV_CALL_vkGetPhysicalDeviceSparseImageFormatProperties);
    uint32_t all = tell_tiles(physical, &info, told);
    *count = list && *count < all ? *count : all;
    for (uint32_t i = 0; list && i < *count; i++)
        list[i] = told[i];
    fv_leave(physical->object.driver);
}
