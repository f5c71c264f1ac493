/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * features.h - the extensions and features of a device of quire's own, and what the backend says
 * about them.
 */
#ifndef QUIRE_BACKENDS_VULKAN_FEATURES_H
#define QUIRE_BACKENDS_VULKAN_FEATURES_H

#include "backends/vulkan/vulkan.h"

typedef struct opening opening; /* open.h */

/* ---- extensions --------------------------------------------------------------------------- */

/* The extensions that the loader or a driver offers, and those that are enabled. */
typedef struct qi_vulkan_extensions {
    VkExtensionProperties *offered;
    uint32_t offered_count;
    uint32_t capacity; /* of `offered` */
    const char **taken;
    uint32_t taken_count, taken_capacity;
} qi_vulkan_extensions;

/* Lists the extensions of a device, or of the loader if `device` is NULL, with room to take those
   of quire and `further` ones. The caller releases the lists, even after a failure. */
QUIRE_MUST_USE quire_result qi_vulkan_extensions_read(opening *o, VkPhysicalDevice device,
                                                      uint32_t further,
                                                      qi_vulkan_extensions *extensions);
void qi_vulkan_extensions_release(opening *o, qi_vulkan_extensions *extensions);

/* Enables the program's extensions. UNSUPPORTED names all that `owner` does not offer. */
QUIRE_MUST_USE quire_result qi_vulkan_extensions_require(qi_vulkan_extensions *extensions,
                                                         const char *const *names, uint32_t count,
                                                         const char *owner);

bool qi_vulkan_extensions_offer(const qi_vulkan_extensions *extensions, const char *name);

/* Enables an extension if it is offered, and returns whether it is. */
bool qi_vulkan_extensions_take(qi_vulkan_extensions *extensions, const char *name);

/* Whether the program enables VK_EXT_buffer_device_address. Vulkan permits neither
   VK_KHR_buffer_device_address nor the feature of Vulkan 1.2 beside it. */
bool qi_vulkan_has_old_addresses(const qi_vulkan_extensions *extensions);

/* ---- features ----------------------------------------------------------------------------- */

/* The features of Vulkan 1.4. Headers of 1.3 lack both names. */
#define QI_VULKAN_FEATURES_1_4 ((VkStructureType)55)
#define QI_VULKAN_VERSION_1_4 VK_MAKE_API_VERSION(0, 1, 4, 0)

/* INVALID_ARGUMENT if a struct occurs twice in the chain of the caller. Needs no device. */
QUIRE_MUST_USE quire_result qi_vulkan_check_chain(const void *chain);

/*
 * Determines the chain of VkDeviceCreateInfo: the structs of quire, then those of the caller, in
 * which it also sets features. UNSUPPORTED names the features in the caller's structs that the
 * device does not have.
 */
QUIRE_MUST_USE quire_result qi_vulkan_choose_features(opening *o);

/* Restores the caller's chain. */
void qi_vulkan_lower_features(opening *o);

/* UNSUPPORTED names the caller's structs in which only the driver can find the missing feature. */
QUIRE_MUST_USE quire_result qi_vulkan_refuse_features(const opening *o, const char *device);

/* Logs which optional features the device uses. The state is complete. */
void qi_vulkan_log_features(const qi_vulkan *vulkan, const quire_log *log);

#endif
