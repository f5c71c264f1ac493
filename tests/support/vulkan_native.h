/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_native.h - the native object of a buffer or image, which must exist; create infos and
 * functions of Vulkan.
 */
#ifndef QUIRE_TESTS_SUPPORT_VULKAN_NATIVE_H
#define QUIRE_TESTS_SUPPORT_VULKAN_NATIVE_H

#include "quire/vulkan.h"
#include "tests/support/check.h"

/* A function of the instance or the device of these quire_vulkan_handles. */
#define VULKAN_CALL(handles, name)                                                                 \
    ((PFN_##name)(handles).get_instance_proc_addr((handles).instance, #name))

/* Initializers of create infos: a buffer, and an image of side x side texels of four bytes. */
#define VULKAN_BUFFER(bytes, uses)                                                                 \
    {                                                                                              \
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = (bytes), .usage = (uses)            \
    }
/* The members of a 2D image that every create info has. */
#define VULKAN_IMAGE_2D(texels, width, height, level_count, layer_count)                           \
    .sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO, .imageType = VK_IMAGE_TYPE_2D,                   \
    .format = (texels), .extent = {(width), (height), 1}, .mipLevels = (level_count),              \
    .arrayLayers = (layer_count), .samples = VK_SAMPLE_COUNT_1_BIT
#define VULKAN_IMAGE(side, uses)                                                                   \
    {                                                                                              \
        VULKAN_IMAGE_2D(VK_FORMAT_R8G8B8A8_UNORM, side, side, 1, 1), .usage = (uses)               \
    }

static inline VkBuffer vulkan_buffer_of(const quire_memory *memory, quire_buffer buffer)
{
    VkBuffer native;
    CHECK_OK(quire_vulkan_buffer_get(memory, buffer, &native));
    CHECK(native != VK_NULL_HANDLE);
    return native;
}

static inline VkImage vulkan_image_of(const quire_memory *memory, quire_image image)
{
    VkImage native;
    CHECK_OK(quire_vulkan_image_get(memory, image, &native));
    CHECK(native != VK_NULL_HANDLE);
    return native;
}

#endif
