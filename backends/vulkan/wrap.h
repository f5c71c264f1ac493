/*
 * wrap.h - the options of quire_vulkan_wrap, and the queue families that share buffers.
 */
#ifndef QUIRE_BACKENDS_VULKAN_WRAP_H
#define QUIRE_BACKENDS_VULKAN_WRAP_H

#include "backends/vulkan/vulkan.h"

/* Options with create infos, where the caller gave versions, extensions and features. Points into
   itself: must not be moved. */
typedef struct qi_vulkan_wrapping {
    quire_vulkan_wrap_options options;
    VkApplicationInfo application;
    VkInstanceCreateInfo instance;
    VkDeviceCreateInfo device;
} qi_vulkan_wrapping;

/* Checks the options and completes them. INVALID_ARGUMENT, UNSUPPORTED. */
QUIRE_MUST_USE quire_result qi_vulkan_complete_wrap(const quire_vulkan_wrap_options *given,
                                                    qi_vulkan_wrapping *out);

/* UNSUPPORTED if the chain of a VkDeviceCreateInfo makes a group of several physical devices. */
QUIRE_MUST_USE quire_result qi_vulkan_refuse_group(const void *chain);

/* Fills in the families of the state from the settings and the queues of its device. The state has
   its function table. INVALID_ARGUMENT for a family that does not exist or occurs twice. */
QUIRE_MUST_USE quire_result qi_vulkan_resolve_families(qi_vulkan *vulkan,
                                                       const quire_vulkan_wrap_options *options);

/* Sets the sharing mode of a buffer of quire's own. */
void qi_vulkan_share(const qi_vulkan *vulkan, VkBufferCreateInfo *info);

#endif
