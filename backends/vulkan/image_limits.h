/*
 * image_limits.h - the limits of images by format, type, tiling, usage and flags. They are constant
 * for a physical device. Programs create many images of few kinds: the driver is asked once for
 * each kind.
 *
 * Any thread may call the functions, except for init and finish. No lock is held.
 */
#ifndef QUIRE_BACKENDS_VULKAN_IMAGE_LIMITS_H
#define QUIRE_BACKENDS_VULKAN_IMAGE_LIMITS_H

#include "backends/vulkan/vulkan.h"

/* Creates an empty table. */
QUIRE_MUST_USE quire_result qi_vulkan_image_limits_init(qi_vulkan *vulkan);
void qi_vulkan_image_limits_finish(qi_vulkan *vulkan);

/* Writes the limits of images with these properties. Fails with the code of the driver. */
VkResult qi_vulkan_image_limits_get(const qi_vulkan *vulkan, const VkImageCreateInfo *info,
                                    VkImageFormatProperties *limits);

#endif
