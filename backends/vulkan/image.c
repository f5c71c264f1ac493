/*
 * image.c - translates quire's image options, and checks whether the device supports an image.
 */
#include "backends/vulkan/functions.h"
#include "backends/vulkan/image_limits.h"
#include "backends/vulkan/object.h"
#include "src/base/result.h"

/* The formats of a channel type with one to four channels. The table has the order of
   quire_channel_type. */
#define FORMATS(bits, suffix)                                                                      \
    {                                                                                              \
        VK_FORMAT_R##bits##suffix, VK_FORMAT_R##bits##G##bits##suffix,                             \
            VK_FORMAT_R##bits##G##bits##B##bits##suffix,                                           \
            VK_FORMAT_R##bits##G##bits##B##bits##A##bits##suffix                                   \
    }

enum { MAX_CHANNELS = 4 };

static const VkFormat FORMAT_TABLE[][MAX_CHANNELS] = {
    FORMATS(8, _UINT),    FORMATS(8, _SINT),  FORMATS(16, _UINT),   FORMATS(16, _SINT),
    FORMATS(16, _SFLOAT), FORMATS(32, _UINT), FORMATS(32, _SINT),   FORMATS(32, _SFLOAT),
    FORMATS(64, _UINT),   FORMATS(64, _SINT), FORMATS(64, _SFLOAT),
};

/* Returns VK_FORMAT_UNDEFINED for an unknown type or channel count. */
VkFormat quire_vulkan_format(quire_channel_type type, uint32_t channel_count)
{
    bool is_known = (size_t)type < sizeof FORMAT_TABLE / sizeof *FORMAT_TABLE && channel_count &&
                    channel_count <= MAX_CHANNELS;
    return is_known ? FORMAT_TABLE[type][channel_count - 1] : VK_FORMAT_UNDEFINED;
}

static VkImageUsageFlags usage_of(quire_usage usage)
{
    static const struct {
        quire_usage ours;
        VkImageUsageFlags theirs;
    } table[] = {
        {QUIRE_USAGE_TRANSFER_SOURCE, VK_IMAGE_USAGE_TRANSFER_SRC_BIT},
        {QUIRE_USAGE_TRANSFER_TARGET, VK_IMAGE_USAGE_TRANSFER_DST_BIT},
        {QUIRE_USAGE_STORAGE, VK_IMAGE_USAGE_STORAGE_BIT},
        {QUIRE_USAGE_SAMPLED, VK_IMAGE_USAGE_SAMPLED_BIT},
    };
    VkImageUsageFlags flags = 0;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (usage & table[i].ours)
            flags |= table[i].theirs;
    return flags;
}

/* quire's own images have one mip level, one layer and one sample. */
VkImageCreateInfo qi_vulkan_image_info(const quire_image_options *options)
{
    return (VkImageCreateInfo){
        .sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
        .imageType = options->depth > 1    ? VK_IMAGE_TYPE_3D
                     : options->height > 1 ? VK_IMAGE_TYPE_2D
                                           : VK_IMAGE_TYPE_1D,
        .format = quire_vulkan_format(options->channel_type, options->channel_count),
        .extent = {options->width, options->height, options->depth},
        .mipLevels = 1,
        .arrayLayers = 1,
        .samples = VK_SAMPLE_COUNT_1_BIT,
        .tiling = options->tiling == QUIRE_TILING_LINEAR ? VK_IMAGE_TILING_LINEAR
                                                         : VK_IMAGE_TILING_OPTIMAL,
        .usage = usage_of(options->usage),
        .sharingMode = VK_SHARING_MODE_EXCLUSIVE,
        .initialLayout = VK_IMAGE_LAYOUT_UNDEFINED,
    };
}

/* Whether an image respects the limits. */
static bool is_within(const VkImageCreateInfo *info, const VkImageFormatProperties *limits)
{
    return info->extent.width <= limits->maxExtent.width &&
           info->extent.height <= limits->maxExtent.height &&
           info->extent.depth <= limits->maxExtent.depth &&
           info->mipLevels <= limits->maxMipLevels && info->arrayLayers <= limits->maxArrayLayers &&
           info->samples & limits->sampleCounts;
}

/* Checks what the query for limits does not cover. */
static quire_result check_flags(const qi_vulkan *vulkan, const VkImageCreateInfo *info)
{
    if (!info->extent.width || !info->extent.height || !info->extent.depth)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "an image of %u x %u x %u texels",
                            info->extent.width, info->extent.height, info->extent.depth);
    if (info->flags & VK_IMAGE_CREATE_DISJOINT_BIT)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "a disjoint image: bind its planes to raw ranges yourself");
    return qi_vulkan_check_sparse(vulkan, &(qi_vulkan_description){.image = info});
}

quire_result qi_vulkan_check_image(const qi_vulkan *vulkan, const VkImageCreateInfo *info)
{
    quire_result result = check_flags(vulkan, info);
    /* For DRM format modifiers and external formats the query needs pNext structs that only the
       caller knows. */
    if (result || info->format == VK_FORMAT_UNDEFINED ||
        info->tiling == VK_IMAGE_TILING_DRM_FORMAT_MODIFIER_EXT)
        return result;
    VkImageFormatProperties limits;
    VkResult code = qi_vulkan_image_limits_get(vulkan, info, &limits);
    if (code)
        return qi_vulkan_fail(
            code, "an image of format %d, %s tiling, usage 0x%x", (int)info->format,
            info->tiling == VK_IMAGE_TILING_LINEAR ? "linear" : "optimal", info->usage);
    if (!is_within(info, &limits))
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                            "an image of %u x %u x %u texels, %u level%s, %u layer%s: the "
                            "device offers %u x %u x %u, %u, %u",
                            info->extent.width, info->extent.height, info->extent.depth,
                            info->mipLevels, qi_plural(info->mipLevels), info->arrayLayers,
                            qi_plural(info->arrayLayers), limits.maxExtent.width,
                            limits.maxExtent.height, limits.maxExtent.depth, limits.maxMipLevels,
                            limits.maxArrayLayers);
    return QUIRE_SUCCESS;
}
