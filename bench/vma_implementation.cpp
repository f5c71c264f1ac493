/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
// vma_implementation.cpp - compiles the implementation in vk_mem_alloc.h, without Vulkan functions.
#define VMA_IMPLEMENTATION
#define VMA_STATIC_VULKAN_FUNCTIONS 0
#define VMA_DYNAMIC_VULKAN_FUNCTIONS 0
#include <vk_mem_alloc.h>
