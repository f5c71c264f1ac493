/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * loaded.h - a device of the fake Vulkan driver as programs use it: through the real loader, which
 * finds it by its manifest, with the validation layer if that is installed.
 */
#ifndef QUIRE_TESTS_SUPPORT_VULKAN_LOADED_H
#define QUIRE_TESTS_SUPPORT_VULKAN_LOADED_H

#include "tests/support/check.h"
#include "tests/support/vulkan/fake_vulkan.h"

typedef struct loaded {
    VkInstance instance;
    VkDebugUtilsMessengerEXT messenger;
    VkPhysicalDevice physical;
    VkDevice device;
    VkQueue queue;
    uint32_t said; /* warnings and errors of the layer */
    char first[512];
} loaded;

/*
 * Finds the loader and makes the manifest's driver the only one. Returns NULL on success, otherwise
 * the reason of the failure.
 */
const char *loaded_prepare(const char *manifest);

/* Whether the validation layer is installed. */
bool loaded_has_layer(void);

/* Creates a device of a built-in layout, with one queue and only the necessary extensions. */
void loaded_open(loaded *l, const char *layout);
void loaded_close(loaded *l);

/* Whether the driver's report, written when the instance was destroyed, has a line with this
   beginning or part. */
bool loaded_reported(const char *beginning);
bool loaded_reported_with(const char *part);

/* Removes the report. */
void loaded_end(void);

PFN_vkVoidFunction loaded_function(const loaded *l, const char *name);

#define CALL(l, function) ((PFN_##function)loaded_function((l), #function))
#define CHECK_VK(result) CHECK_EQ((uint32_t)(result), (uint32_t)VK_SUCCESS)

#endif
