/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * mock_vulkan.h - the Vulkan functions that VMA requires, on top of the mock driver: one
 * device-local heap. Nothing can be mapped, and no buffer or image can be created.
 */
#ifndef QUIRE_BENCH_MOCK_VULKAN_H
#define QUIRE_BENCH_MOCK_VULKAN_H

#include <vk_mem_alloc.h>

/* Returns an info with functions and handles set. The caller sets the flags. */
VmaAllocatorCreateInfo mock_allocator_info(void);

#endif
