/*
 * pool.h - pools: memories of the program's own.
 */
#ifndef QUIRE_SRC_ADAPTERS_VMA_POOL_H
#define QUIRE_SRC_ADAPTERS_VMA_POOL_H

#include "src/adapters/vma/allocator.h"

typedef struct qi_vma_pool {
    qi_vma_record record; /* first member */
    quire_memory *memory;
    uint32_t type;
    bool is_linear;
    bool keeps_blocks; /* minBlockCount of them, also if they are empty */
    /* An allocation is no larger, and gets no dedicated memory; 0: no size is given. */
    VkDeviceSize block_size;
    VkDeviceSize min_alignment;
    char *name; /* NULL: none */
} qi_vma_pool;

/* Returns the pool of a handle. NULL and a last error: it, or the allocator, is null or stale. */
qi_vma_pool *qi_vma_pool_of(VmaAllocator allocator, VmaPool handle);

#endif
