/*
 * mock_vulkan.h - the functions of a Vulkan device that VMA asks for, over the mock driver: one
 * device-local heap, memory that nobody maps, buffers and images that nobody makes.
 */
#ifndef QUIRE_BENCH_MOCK_VULKAN_H
#define QUIRE_BENCH_MOCK_VULKAN_H

#include <vk_mem_alloc.h>

/* Functions and handles filled in; flags are the caller's. */
VmaAllocatorCreateInfo mock_allocator_info(void);

#endif
