/*
 * format.h - the color formats the fake driver knows: all of one, two, three and four whole
 * channels. Of depth and stencil it knows two, which can be made and placed, and not copied.
 */
#ifndef QUIRE_TESTS_SUPPORT_VULKAN_FORMAT_H
#define QUIRE_TESTS_SUPPORT_VULKAN_FORMAT_H

#include "tests/support/vulkan/driver.h"

typedef enum fv_numbers {
    FV_UNORM,
    FV_SNORM,
    FV_USCALED,
    FV_SSCALED,
    FV_UINT,
    FV_SINT,
    FV_SRGB,
    FV_SFLOAT
} fv_numbers;

typedef struct fv_format {
    uint32_t texel_size; /* bytes */
    uint32_t channel_count, channel_size;
    fv_numbers numbers;
    bool reversed; /* blue first */
    /* of depth and stencil, where channel_count is 0 */
    uint32_t depth_size, stencil_size;
} fv_format;

/* False: a format the fake does not know. */
bool fv_format_of(VkFormat format, fv_format *out);

/* What a format can be used for, with one of the tilings; 0: nothing. */
VkFormatFeatureFlags fv_format_features(fv_driver *driver, VkFormat format, VkImageTiling tiling);

/* What images of this kind can be; VK_ERROR_FORMAT_NOT_SUPPORTED: they cannot. */
VkResult fv_image_limits(const fv_physical_device *physical,
                         const VkPhysicalDeviceImageFormatInfo2 *info,
                         VkImageFormatProperties *out);

/* Writes one texel of a clear color. */
void fv_format_pack(const fv_format *format, const VkClearColorValue *color, unsigned char *texel);

#endif
