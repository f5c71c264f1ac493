/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * external.h - memory of other APIs and processes: handle types, what the device can do with them,
 * how buffers and images declare them, and the pNext struct of an import.
 *
 * Vulkan requires that a buffer or image in exportable memory declares one of its handle types in
 * its create info, and one in imported memory the type of the import. No lock is held.
 */
#ifndef QUIRE_BACKENDS_VULKAN_EXTERNAL_H
#define QUIRE_BACKENDS_VULKAN_EXTERNAL_H

#include "backends/vulkan/vulkan.h"

#ifdef _WIN32
#include <windows.h>

#include <vulkan/vulkan_win32.h>
#endif

/* ---- handle types ------------------------------------------------------------------------- */

/* The struct that declares handle types. A create info points to it: it must not be moved. */
typedef union qi_vulkan_declaration {
    VkExternalMemoryBufferCreateInfo buffer;
    VkExternalMemoryImageCreateInfo image;
} qi_vulkan_declaration;

/* The handle types of memory, and whether it is exported (EXPORTABLE) or imported (IMPORTABLE). No
   types: neither. */
typedef struct qi_vulkan_types {
    VkExternalMemoryHandleTypeFlags types;
    VkExternalMemoryFeatureFlagBits feature;
} qi_vulkan_types;

/* The types of pages of exportable memories, and those of a page. */
qi_vulkan_types qi_vulkan_export_types(const qi_vulkan *vulkan);
qi_vulkan_types qi_vulkan_types_of(const qi_vulkan_page *page);

/*
 * Add the types of the memory to the chain of a create info that declares none. The caller's own
 * declaration stays as it is. Without types they change nothing. INVALID_ARGUMENT: the caller's
 * declaration has none of the types, or the image's initial layout is not UNDEFINED. UNSUPPORTED:
 * the device cannot have such an object in such memory.
 */
QUIRE_MUST_USE quire_result qi_vulkan_declare_buffer(const qi_vulkan *vulkan, qi_vulkan_types types,
                                                     VkBufferCreateInfo *info,
                                                     qi_vulkan_declaration *declaration);
QUIRE_MUST_USE quire_result qi_vulkan_declare_image(const qi_vulkan *vulkan, qi_vulkan_types types,
                                                    VkImageCreateInfo *info,
                                                    qi_vulkan_declaration *declaration);

/* INVALID_ARGUMENT if an object with the chain of this create info cannot be in memory of these
   types. NULL: the chain is empty or unknown. */
QUIRE_MUST_USE quire_result qi_vulkan_check_existing(VkExternalMemoryHandleTypeFlags types,
                                                     const void *chain);

/* UNSUPPORTED if the buffer over a page cannot be in memory of these types. */
QUIRE_MUST_USE quire_result qi_vulkan_check_page_buffer(const qi_vulkan *vulkan,
                                                        qi_vulkan_types types);

/* UNSUPPORTED if a page that is not dedicated to an object cannot have the export types. */
QUIRE_MUST_USE quire_result qi_vulkan_check_page_export(const qi_vulkan *vulkan);

/* ---- imports ------------------------------------------------------------------------------ */

/* The struct for the handle type of the import. */
typedef union qi_vulkan_import_link {
    VkImportMemoryFdInfoKHR descriptor;
    VkImportMemoryHostPointerInfoEXT host;
#ifdef _WIN32
    VkImportMemoryWin32HandleInfoKHR win32;
#endif
} qi_vulkan_import_link;

/* Fills in the struct except for its pNext. UNSUPPORTED: the platform has no such handles. */
QUIRE_MUST_USE quire_result qi_vulkan_describe_import(const quire_vulkan_import *import,
                                                      qi_vulkan_import_link *link);

#endif
