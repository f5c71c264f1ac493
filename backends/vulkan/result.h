/*
 * result.h - translates VkResult into quire_result and into text.
 */
#ifndef QUIRE_BACKENDS_VULKAN_RESULT_H
#define QUIRE_BACKENDS_VULKAN_RESULT_H

#include <stddef.h>

#include <vulkan/vulkan_core.h>

#include "quire/backend.h"

/*
 * Records the failure of a Vulkan call as the thread's last error and returns the matching
 * quire_result. The message is "<formatted text>: VK_ERROR_...".
 */
quire_result qi_vulkan_fail(VkResult code, const char *format, ...) QUIRE_PRINTF(2, 3);

/* Returns the quire_result for a VkResult other than VK_SUCCESS. */
quire_result qi_vulkan_result(VkResult code);

/* Returns the name of a VkResult. For an unknown code it writes "VkResult <number>" into the
   buffer and returns the buffer. */
const char *qi_vulkan_result_name(VkResult code, char *buffer, size_t size);

#endif
