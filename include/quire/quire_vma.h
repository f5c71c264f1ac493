/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/quire_vma.h - the interface of the Vulkan Memory Allocator (VMA) 3.4 on quire, for C11 and
 * C++.
 *
 * A program that uses vk_mem_alloc.h includes this header instead, links libquire_vma, and creates
 * its allocator as before. The functions are static inline, so that another source file of the
 * program can contain VMA itself. docs/adapters/vma.md lists what is covered and what differs.
 *
 * quire is created with the allocator, and needs no implementation file. Of VMA's macros these have
 * an effect:
 * - vkGetInstanceProcAddr of the loader is used unless VK_NO_PROTOTYPES is defined or
 *   VMA_STATIC_VULKAN_FUNCTIONS is 0;
 * - the getters of VmaVulkanFunctions are used unless VMA_DYNAMIC_VULKAN_FUNCTIONS is 0;
 * - VMA_LEAK_LOG_FORMAT, otherwise VMA_DEBUG_LOG_FORMAT, gets the lines about leaks;
 * - with VMA_IMPLEMENTATION, a C++ file has the standard headers of VMA's implementation, and
 *   VmaAllocation_T is a class with GetMemory, GetOffset, GetSize and GetMappedData.
 *
 * Errors: a function that VMA does not fail with an assertion returns the VkResult of VMA. What VMA
 * asserts (a null or stale handle, a contradiction of flags) is VK_ERROR_VALIDATION_FAILED_EXT, or
 * has no effect in a function that returns nothing. A flag that is unknown or has no counterpart is
 * VK_ERROR_FEATURE_NOT_PRESENT. quire_last_error has the sentence in each case, and the log of
 * quire has it for functions that return nothing.
 *
 * Thread-safety: as VMA's. Any thread may call any function; calls on one allocation must not
 * overlap.
 */
#ifndef QUIRE_VMA_H
#define QUIRE_VMA_H

#include <vulkan/vulkan.h> /* as vk_mem_alloc.h does */

#include "quire/vma/allocation.h"
#include "quire/vma/allocator.h"
#include "quire/vma/defragmentation.h"
#include "quire/vma/resource.h"
#include "quire/vma/types.h"
#include "quire/vma/virtual_block.h"

#endif

/* Not in the guard: a file may define the macro after another header has included this one. */
#if defined(__cplusplus) && defined(VMA_IMPLEMENTATION)
#include "quire/vma/implementation.hpp"
#endif
