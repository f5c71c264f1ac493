/*
 * vulkan_native.h - the native object of a buffer or image, which must exist.
 */
#ifndef QUIRE_TESTS_SUPPORT_VULKAN_NATIVE_H
#define QUIRE_TESTS_SUPPORT_VULKAN_NATIVE_H

#include "quire/vulkan.h"
#include "tests/support/check.h"

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
