/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_memories.h - the parts of bench_vulkan: subjects that do the same work with quire and with
 * the Vulkan Memory Allocator, on the same device, memory kind, page size and create infos.
 */
#ifndef QUIRE_BENCH_VULKAN_MEMORIES_H
#define QUIRE_BENCH_VULKAN_MEMORIES_H

#include <stdbool.h>
#include <vulkan/vulkan_core.h>

#include "bench/memories.h"
#include "quire/quire.h"

/* The bytes that an upload writes: the least size of a range. */
enum { UPLOADED = 256 };

/* Ranges become images of 64 texels of 4 bytes in each row. */
enum { IMAGE_WIDTH = 64, TEXEL_SIZE = 4 };

/* The options of a subject; subject.how points to it. */
typedef struct vulkan_how {
    memory_how memory; /* first: how_of returns it */
    bool upload;       /* memory for uploads; otherwise of the device alone */
} vulkan_how;

typedef struct vulkan_part {
    const char *name;
    const subject *subjects;
    size_t count;
} vulkan_part;

/* ranges, buffers, images, uploads. The subjects of VULKAN_BUFFERS contain all names. */
extern const vulkan_part VULKAN_PARTS[];
extern const size_t VULKAN_PART_COUNT, VULKAN_BUFFERS;

/* Makes all subjects use the driver of mock_device.h. Set before the first device is opened. */
extern bool vulkan_is_mocked;

/* Opens the device that all subjects use. */
QUIRE_MUST_USE quire_result vulkan_open(quire_device **device);

/* NULL, or the reason why the device is unavailable. */
const char *vulkan_absent(const subject *self);

/* The intent of the subject's memory. */
quire_intent vulkan_intent(const subject *self);

VkBufferCreateInfo vulkan_buffer_info(uint64_t size);
VkImageCreateInfo vulkan_image_info(uint64_t size);

/* ---- vulkan_vma.c: functions of subjects, if VMA's header was found -------------------------- */

#ifdef BENCH_HAS_VMA
void *create_vma(const subject *self, const subject_arena *arena);
void destroy_vma(void *user);
uint64_t allocate_vma(void *user, uint64_t size, uint64_t alignment, uint64_t *offset);
void release_vma(void *user, uint64_t handle);
uint64_t create_vma_buffer(void *user, uint64_t size, uint64_t alignment, uint64_t *offset);
uint64_t create_vma_upload(void *user, uint64_t size, uint64_t alignment, uint64_t *offset);
void destroy_vma_buffer(void *user, uint64_t handle);
uint64_t create_vma_image(void *user, uint64_t size, uint64_t alignment, uint64_t *offset);
void destroy_vma_image(void *user, uint64_t handle);
#else
#define create_vma NULL
#define destroy_vma NULL
#define allocate_vma NULL
#define release_vma NULL
#define create_vma_buffer NULL
#define create_vma_upload NULL
#define destroy_vma_buffer NULL
#define create_vma_image NULL
#define destroy_vma_image NULL
#endif

/* VMA_ALLOCATION_CREATE_STRATEGY_MIN_TIME_BIT */
#define VMA_MIN_TIME 0x00020000

#endif
