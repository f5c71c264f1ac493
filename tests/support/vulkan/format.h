/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * format.h - the formats of the fake driver: all color formats with one to four unpacked channels,
 * and two depth and stencil formats, whose images can be created and bound but not copied.
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
    /* of depth and stencil formats, whose channel_count is 0 */
    uint32_t depth_size, stencil_size;
} fv_format;

/* Returns false for an unknown format. */
bool fv_format_of(VkFormat format, fv_format *out);

/* Returns the features of a format with a tiling. 0: it is not supported. */
VkFormatFeatureFlags fv_format_features(fv_driver *driver, VkFormat format, VkImageTiling tiling);

/* Returns the limits of such images. VK_ERROR_FORMAT_NOT_SUPPORTED: none are possible. */
VkResult fv_image_limits(const fv_physical_device *physical,
                         const VkPhysicalDeviceImageFormatInfo2 *info,
                         VkImageFormatProperties *out);

/* Writes one texel of a clear color. */
void fv_format_pack(const fv_format *format, const VkClearColorValue *color, unsigned char *texel);

#endif
