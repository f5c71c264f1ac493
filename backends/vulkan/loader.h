/*
 * loader.h - where the system's Vulkan loader is.
 */
#ifndef QUIRE_BACKENDS_VULKAN_LOADER_H
#define QUIRE_BACKENDS_VULKAN_LOADER_H

#include <vulkan/vulkan_core.h>

/*
 * The loader's vkGetInstanceProcAddr; NULL: the system has none. Found once and kept as long as the
 * process lives. Thread-safe.
 */
PFN_vkGetInstanceProcAddr qi_vulkan_find_loader(void);

#endif
