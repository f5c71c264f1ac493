/*
 * loaded.h - a device of the fake Vulkan driver as programs have it: through the real loader,
 * found by its manifest, with the validation layer over it where that is installed.
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
 * Finds the loader and makes the manifest's driver its only one. NULL: ready; else why nothing can
 * be loaded here.
 */
const char *loaded_prepare(const char *manifest);

/* The validation layer is installed. */
bool loaded_has_layer(void);

/* A device of a built-in layout, with one queue and no extension that it can do without. */
void loaded_open(loaded *l, const char *layout);
void loaded_close(loaded *l);

/* The driver's report, written when the instance ended, has a line with this beginning or part. */
bool loaded_reported(const char *beginning);
bool loaded_reported_with(const char *part);

/* Removes the report. */
void loaded_end(void);

PFN_vkVoidFunction loaded_function(const loaded *l, const char *name);

#define CALL(l, function) ((PFN_##function)loaded_function((l), #function))
#define CHECK_VK(result) CHECK_EQ((uint32_t)(result), (uint32_t)VK_SUCCESS)

#endif
