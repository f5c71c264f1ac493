/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
// vma.cpp - the Vulkan Memory Allocator itself, on the functions that the program is linked with.
#define VMA_IMPLEMENTATION
#include <vk_mem_alloc.h>
