/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma.c - see vma.h. Virtual blocks need no device. The implementation is in a C++ file, so that
 * its calls are not inlined, like those into a space. A block allocates metadata without its
 * callbacks, so this subject has no `metadata` function.
 */
#include "bench/vma.h"

#ifdef BENCH_HAS_VMA

#include <stdlib.h>

#include <vk_mem_alloc.h>

/* The strategy of the allocations of a block. */
typedef struct vma_how {
    VmaVirtualAllocationCreateFlags strategy;
} vma_how;

typedef struct vma_state {
    VmaVirtualBlock block;
    VmaVirtualAllocationCreateFlags strategy;
} vma_state;

static void *create(const subject *self, const subject_arena *arena)
{
    const vma_how *how = self->how;
    vma_state *state = calloc(1, sizeof *state);
    if (!state)
        return NULL;
    state->strategy = how->strategy;
    VmaVirtualBlockCreateInfo info = {.size = arena->size};
    if (vmaCreateVirtualBlock(&info, &state->block) == VK_SUCCESS)
        return state;
    free(state);
    return NULL;
}

static void destroy(void *user)
{
    vma_state *state = user;
    vmaClearVirtualBlock(state->block);
    vmaDestroyVirtualBlock(state->block);
    free(state);
}

static uint64_t allocate(void *user, uint64_t size, uint64_t alignment, uint64_t *offset)
{
    vma_state *state = user;
    VmaVirtualAllocationCreateInfo info = {
        .size = size, .alignment = alignment, .flags = state->strategy};
    VmaVirtualAllocation allocation = VK_NULL_HANDLE;
    VkResult result = vmaVirtualAllocate(state->block, &info, &allocation, offset);
    return result == VK_SUCCESS ? (uint64_t)allocation : 0;
}

static void release(void *user, uint64_t handle)
{
    vma_state *state = user;
    vmaVirtualFree(state->block, (VmaVirtualAllocation)handle);
}

#define BLOCK(title, its_kind, flags)                                                              \
    {                                                                                              \
        .name = (title), .kind = (its_kind), .how = &(const vma_how){flags}, .create = create,     \
        .destroy = destroy, .allocate = allocate, .free = release                                  \
    }

#else

static const char *absent(const subject *self)
{
    (void)self;
    return "vk_mem_alloc.h or the Vulkan headers were not found when bench_space was built";
}

#define BLOCK(title, its_kind, flags)                                                              \
    {                                                                                              \
        .name = (title), .kind = (its_kind), .absent = absent                                      \
    }

#endif

/* The strategy min offset walks all ranges for every request: too slow for large workloads. */
const subject VMA_BLOCKS[] = {
    BLOCK("VMA", SUBJECT_PEER, 0),
    BLOCK("VMA, min memory", SUBJECT_PEER, VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MIN_MEMORY_BIT),
    BLOCK("VMA, min time", SUBJECT_PEER, VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MIN_TIME_BIT),
    BLOCK("VMA, min offset", SUBJECT_REFERENCE,
          VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MIN_OFFSET_BIT),
};

const size_t VMA_BLOCK_COUNT = sizeof VMA_BLOCKS / sizeof *VMA_BLOCKS;
