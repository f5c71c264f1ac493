/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma_memories.c - allocators of the Vulkan Memory Allocator as subjects, on the mock driver, with
 * vmaAllocateMemory and vmaFreeMemory. A page size becomes the block size of a custom pool. Without
 * a page size the allocator's default pools are used, as most programs do.
 */
#include "bench/memories.h"

#ifdef BENCH_HAS_VMA

#include <stdlib.h>

#include "bench/mock_vulkan.h"

typedef struct vma_state {
    VmaAllocator allocator;
    VmaAllocationCreateInfo request;
} vma_state;

static void destroy(void *user)
{
    vma_state *state = user;
    if (state->allocator)
        vmaDestroyPool(state->allocator, state->request.pool);
    vmaDestroyAllocator(state->allocator);
    free(state);
}

static void *create(const subject *self, const subject_arena *arena)
{
    const memory_how *how = how_of(self);
    vma_state *state = calloc(1, sizeof *state);
    if (!state)
        return NULL;
    VmaAllocatorCreateInfo info = mock_allocator_info();
    if (how->unlocked)
        info.flags = VMA_ALLOCATOR_CREATE_EXTERNALLY_SYNCHRONIZED_BIT;
    state->request.requiredFlags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    state->request.flags = how->strategy;
    if (how->dedicated)
        state->request.flags |= VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT;
    VmaPoolCreateInfo pool = {.memoryTypeIndex = 0, .blockSize = arena->size};
    VkResult result = vmaCreateAllocator(&info, &state->allocator);
    if (result == VK_SUCCESS && arena->size)
        result = vmaCreatePool(state->allocator, &pool, &state->request.pool);
    if (result == VK_SUCCESS)
        return state;
    destroy(state);
    return NULL;
}

static uint64_t allocate(void *user, uint64_t size, uint64_t alignment, uint64_t *offset)
{
    const vma_state *state = user;
    VkMemoryRequirements needs = {.size = size, .alignment = alignment, .memoryTypeBits = 1};
    VmaAllocation allocation = VK_NULL_HANDLE;
    *offset = 0; /* unused by these benchmarks */
    VkResult result =
        vmaAllocateMemory(state->allocator, &needs, &state->request, &allocation, NULL);
    return result == VK_SUCCESS ? (uint64_t)allocation : 0;
}

static void release(void *user, uint64_t handle)
{
    const vma_state *state = user;
    vmaFreeMemory(state->allocator, (VmaAllocation)handle);
}

#define ALLOCATOR(title, ...)                                                                      \
    {                                                                                              \
        .name = (title), .kind = SUBJECT_PEER, .how = &(const memory_how){__VA_ARGS__},            \
        .create = create, .destroy = destroy, .allocate = allocate, .free = release                \
    }

#else

static const char *absent(const subject *self)
{
    (void)self;
    return "vk_mem_alloc.h or the Vulkan headers were not found when bench_memory was built";
}

#define VMA_ALLOCATION_CREATE_STRATEGY_MIN_TIME_BIT 0
#define ALLOCATOR(title, ...)                                                                      \
    {                                                                                              \
        .name = (title), .kind = SUBJECT_PEER, .how = &(const memory_how){__VA_ARGS__},            \
        .absent = absent                                                                           \
    }

#endif

const subject VMA_MEMORIES[] = {
    ALLOCATOR("VMA", .sharing = SHARE_ONE),
    ALLOCATOR("VMA, min time", .sharing = SHARE_ONE,
              .strategy = VMA_ALLOCATION_CREATE_STRATEGY_MIN_TIME_BIT),
    ALLOCATOR("VMA, an allocator each", .sharing = SHARE_NOTHING, .unlocked = true),
};

const size_t VMA_MEMORY_COUNT = sizeof VMA_MEMORIES / sizeof *VMA_MEMORIES;
