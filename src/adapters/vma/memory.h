/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * memory.h - the memories of an allocator: its own, one for each memory type and priority, and
 * those of pools, which the program creates.
 */
#ifndef QUIRE_SRC_ADAPTERS_VMA_MEMORY_H
#define QUIRE_SRC_ADAPTERS_VMA_MEMORY_H

#include "src/adapters/vma/allocator.h"

/* ---- pools -------------------------------------------------------------------------------- */

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

/* ---- memories ----------------------------------------------------------------------------- */

/*
 * Writes the allocator's own memory of a type, which the first call for it makes. `priority` is
 * that of dedicated pages; 0: the default.
 */
VkResult qi_vma_memory_of_type(VmaAllocator allocator, uint32_t type, float priority,
                               quire_memory **memory);

/* Writes the priority of a memory as quire takes it, for which 0 is the default. */
float qi_vma_priority(VmaAllocator allocator, float priority);

/* Releases the pages that their memories no longer keep: those of the allocator's own, and of pools
   without a blockSize, when they have been empty for a second. Pools with a minBlockCount wait for
   their next free. */
void qi_vma_trim(VmaAllocator allocator);

/*
 * Releases the empty pages of all memories except those of pools with a minBlockCount, because the
 * heaps are shared. Returns whether there were any.
 */
bool qi_vma_release_empty(VmaAllocator allocator);

/* Calls back for each memory with its type, under the allocator's mutex: `visit` must not make or
   destroy memories. */
void qi_vma_each_memory(VmaAllocator allocator,
                        void (*visit)(void *user, quire_memory *memory, uint32_t type), void *user);

/* Returns a list of the allocator's own memories, which the caller releases. NULL and a last error:
   there is no host memory for it. */
quire_memory **qi_vma_own_memories(VmaAllocator allocator, uint32_t *count);

/* Whether no allocation and no pool lives. Sets the last error otherwise, and the log names what
   lives. */
bool qi_vma_memories_are_empty(VmaAllocator allocator);

/* Destroys the memories, which are empty. */
void qi_vma_memories_destroy(VmaAllocator allocator);

#endif
