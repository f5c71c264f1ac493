/*
 * external.h - the pNext struct that imports memory of another API or process.
 */
#ifndef QUIRE_BACKENDS_VULKAN_EXTERNAL_H
#define QUIRE_BACKENDS_VULKAN_EXTERNAL_H

#include "backends/vulkan/vulkan.h"

#ifdef _WIN32
#include <windows.h>

#include <vulkan/vulkan_win32.h>
#endif

/* The struct for the handle type of the import. */
typedef union qi_vulkan_import_link {
    VkImportMemoryFdInfoKHR descriptor;
    VkImportMemoryHostPointerInfoEXT host;
#ifdef _WIN32
    VkImportMemoryWin32HandleInfoKHR win32;
#endif
} qi_vulkan_import_link;

/* Whether the device was created with the extension for a handle type. */
bool qi_vulkan_is_type_enabled(const qi_vulkan *vulkan, VkExternalMemoryHandleTypeFlags type);

/* Fills in the struct except for its pNext. UNSUPPORTED: the platform has no such handles. */
QUIRE_MUST_USE quire_result qi_vulkan_describe_import(const quire_vulkan_import *import,
                                                      qi_vulkan_import_link *link);

#endif
