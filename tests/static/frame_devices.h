/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * frame_devices.h - names for the fragments of the documents that need a Vulkan or CUDA device, and
 * for those of the reference pages. These fragments are compiled and not run.
 */
#ifndef FRAME_DEVICES_H
#define FRAME_DEVICES_H

#include <unistd.h>
#include <vulkan/vulkan.h>

#include <quire/cuda.h>
#include <quire/lluvia.h>
#include <quire/plugin.h>
#include <quire/vulkan.h>
#include <quire/vulkan_sparse.h>

/* Vulkan */
static VkInstance instance;
static VkPhysicalDevice physical_device;
static VkDevice vk_device;
static VkQueue queue;
static uint32_t family;
static VkInstanceCreateInfo instance_info;
static VkDeviceCreateInfo device_info;
static VkBufferCreateInfo buffer_info;
static VkImageCreateInfo shadow_info, bloom_info;
static VkSubmitInfo submit_that_signals_frame;
static VkSemaphore timeline;
static uint64_t frame; /* the value that the timeline gets */
void lock(void *user);
void unlock(void *user);
static void *me;

/* CUDA */
static void *context, *cu_stream; /* a CUcontext, a CUstream */
static int kernel;
void launch(int kernel_number, void *native_stream, quire_allocation argument);
static unsigned char uuid[QUIRE_CUDA_UUID_SIZE];
static uint64_t size_of_the_page;

/* memories, allocations, sizes */
static quire_memory *vulkan_memory, *cuda_memory, *weights, *local;
static quire_device *vulkan_device;
static quire_allocation layer, tile, matrix, scratch, a, page;
static uint64_t bytes, size, alignment, at;
static void *file;
bool show(void *user, uint64_t done, uint64_t total);
static int bar;

#endif
