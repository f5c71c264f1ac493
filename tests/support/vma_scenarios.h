/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma_scenarios.h - for the files of scenarios, which are compiled twice: with REFERENCE_VMA
 * defined they call VMA, otherwise quire_vma.h. Functions that cross files have a name of each.
 */
#ifndef QUIRE_TESTS_SUPPORT_VMA_SCENARIOS_H
#define QUIRE_TESTS_SUPPORT_VMA_SCENARIOS_H

#ifdef REFERENCE_VMA
#include <vk_mem_alloc.h>
#define OF_SUBJECT(name) name##_reference
#else
#define VMA_STATIC_VULKAN_FUNCTIONS 0
#include "quire/quire_vma.h"
#define OF_SUBJECT(name) name##_quire
#endif

#include "tests/support/vma_notes.h"

#define NOTE(field, value) vma_note_add(notes, field, (uint64_t)(value))

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

#define WRITE VMA_ALLOCATION_CREATE_HOST_ACCESS_SEQUENTIAL_WRITE_BIT
#define RANDOM VMA_ALLOCATION_CREATE_HOST_ACCESS_RANDOM_BIT
#define INSTEAD VMA_ALLOCATION_CREATE_HOST_ACCESS_ALLOW_TRANSFER_INSTEAD_BIT
#define MAPPED VMA_ALLOCATION_CREATE_MAPPED_BIT
#define DEDICATED VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT
#define NEVER VMA_ALLOCATION_CREATE_NEVER_ALLOCATE_BIT
#define WITHIN VMA_ALLOCATION_CREATE_WITHIN_BUDGET_BIT

/* Buffers and images of the scenarios: those with tiling BUFFER are buffers. */
#define BUFFER VK_IMAGE_TILING_MAX_ENUM
typedef struct object {
    const char *name;
    VkFlags usage;
    VkImageTiling tiling;
} object;

#define OBJECTS OF_SUBJECT(vma_objects)
#define OBJECT_COUNT OF_SUBJECT(vma_object_count)
extern const object OBJECTS[];
extern const uint32_t OBJECT_COUNT;

VkBufferCreateInfo OF_SUBJECT(vma_buffer_info)(const object *of, VkDeviceSize size);
VkImageCreateInfo OF_SUBJECT(vma_image_info)(const object *of, uint32_t width);

static inline bool is_auto(VmaMemoryUsage usage)
{
    return usage >= VMA_MEMORY_USAGE_AUTO && usage <= VMA_MEMORY_USAGE_AUTO_PREFER_HOST;
}

/* Creates the scene's allocator, with limits for its heaps (NULL: none). */
VmaAllocator OF_SUBJECT(vma_open)(const vma_scene *scene, const VkDeviceSize *limits);

/* The parts of vma_run_reference and vma_run_quire. */
void OF_SUBJECT(vma_find_types)(const vma_scene *scene, vma_notes *notes);
void OF_SUBJECT(vma_create_objects)(const vma_scene *scene, vma_notes *notes);
void OF_SUBJECT(vma_use_limits)(const vma_scene *scene, vma_notes *notes);

#endif
