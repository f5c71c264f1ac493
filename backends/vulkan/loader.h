/*
 * loader.h - finds the system's Vulkan loader.
 */
#ifndef QUIRE_BACKENDS_VULKAN_LOADER_H
#define QUIRE_BACKENDS_VULKAN_LOADER_H

#include <vulkan/vulkan_core.h>

/*
 * Returns the loader's vkGetInstanceProcAddr, or NULL if the system has no loader. The first
 * successful call loads it, and it stays loaded until the process ends. Thread-safe.
 */
PFN_vkGetInstanceProcAddr qi_vulkan_find_loader(void);

#endif
