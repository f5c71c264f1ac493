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

/*
 * Keeps the libraries of NVIDIA's driver in the process, if an instance has loaded them. The loader
 * unloads a driver with its last instance, and this one can be loaded 30 times only (driver 580,
 * seen on an H100): then vkCreateInstance is INCOMPATIBLE_DRIVER. Thread-safe.
 */
void qi_vulkan_keep_driver(void);

#endif
