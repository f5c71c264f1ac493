/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/vma/macros.h - the macros of VMA that say what its header has. Part of quire/quire_vma.h.
 *
 * A program may define one of them before, as with VMA; nothing in quire depends on it.
 */
#ifndef QUIRE_VMA_MACROS_H
#define QUIRE_VMA_MACROS_H

#include <vulkan/vulkan_core.h>

/* The version whose types these are. docs/adapters/vma.md lists what is missing of it. */
#ifndef VMA_VERSION
#define VMA_VERSION VK_MAKE_VERSION(3, 4, 0)
#endif

/* The version of Vulkan's headers. */
#ifndef VMA_VULKAN_VERSION
#if defined(VK_VERSION_1_4)
#define VMA_VULKAN_VERSION 1004000
#elif defined(VK_VERSION_1_3)
#define VMA_VULKAN_VERSION 1003000
#elif defined(VK_VERSION_1_2)
#define VMA_VULKAN_VERSION 1002000
#else
#define VMA_VULKAN_VERSION 1001000
#endif
#endif

/* ---- what is there -------------------------------------------------------------------------- */

/* Members, functions and flags that are always there. */
#ifndef VMA_DEDICATED_ALLOCATION
#define VMA_DEDICATED_ALLOCATION 1
#endif
#ifndef VMA_BIND_MEMORY2
#define VMA_BIND_MEMORY2 1
#endif
#ifndef VMA_GET_PHYSICAL_DEVICE_PROPERTIES2
#define VMA_GET_PHYSICAL_DEVICE_PROPERTIES2 1
#endif
#ifndef VMA_MEMORY_BUDGET
#define VMA_MEMORY_BUDGET 1
#endif
#ifndef VMA_BUFFER_DEVICE_ADDRESS
#define VMA_BUFFER_DEVICE_ADDRESS 1
#endif
#ifndef VMA_MEMORY_PRIORITY
#define VMA_MEMORY_PRIORITY 1
#endif
#ifndef VMA_KHR_MAINTENANCE4
#define VMA_KHR_MAINTENANCE4 1
#endif
#ifndef VMA_EXTERNAL_MEMORY
#define VMA_EXTERNAL_MEMORY 1
#endif
#ifndef VMA_STATS_STRING_ENABLED
#define VMA_STATS_STRING_ENABLED 1
#endif

/* Programs use the structs of the extension where it is 1. */
#ifndef VMA_KHR_MAINTENANCE5
#ifdef VK_KHR_maintenance5
#define VMA_KHR_MAINTENANCE5 1
#else
#define VMA_KHR_MAINTENANCE5 0
#endif
#endif

/* vmaGetMemoryWin32Handle is missing. */
#ifndef VMA_EXTERNAL_MEMORY_WIN32
#define VMA_EXTERNAL_MEMORY_WIN32 0
#endif

/* ---- annotations, which are empty ----------------------------------------------------------- */

#ifndef VMA_CALL_PRE
#define VMA_CALL_PRE
#endif
#ifndef VMA_CALL_POST
#define VMA_CALL_POST
#endif
#ifndef VMA_EXTENDS_VK_STRUCT
#define VMA_EXTENDS_VK_STRUCT(name)
#endif
#ifndef VMA_LEN_IF_NOT_NULL
#define VMA_LEN_IF_NOT_NULL(count)
#endif
#ifndef VMA_NULLABLE
#define VMA_NULLABLE
#endif
#ifndef VMA_NOT_NULL
#define VMA_NOT_NULL
#endif
#ifndef VMA_NULLABLE_NON_DISPATCHABLE
#define VMA_NULLABLE_NON_DISPATCHABLE
#endif
#ifndef VMA_NOT_NULL_NON_DISPATCHABLE
#define VMA_NOT_NULL_NON_DISPATCHABLE
#endif

#endif
