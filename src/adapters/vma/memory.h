/*
 * memory.h - the memories of an allocator: its own, one for each memory type and priority, and
 * those of pools.
 */
#ifndef QUIRE_SRC_ADAPTERS_VMA_MEMORY_H
#define QUIRE_SRC_ADAPTERS_VMA_MEMORY_H

#include "src/adapters/vma/allocator.h"

/*
 * Writes the allocator's own memory of a type, which the first call for it makes. `priority` is
 * that of dedicated pages; 0: the default.
 */
VkResult qi_vma_memory_of_type(VmaAllocator allocator, uint32_t type, float priority,
                               quire_memory **memory);

/* Writes the priority of a memory as quire takes it, for which 0 is the default. */
float qi_vma_priority(VmaAllocator allocator, float priority);

/* The request for a memory of one type. */
quire_kind_request qi_vma_kind(VmaAllocator allocator, uint32_t type, bool is_exportable);

/* Writes the page policy of the allocator's own memories: pages of the preferred size, or pages
   that follow use. */
void qi_vma_describe_pages(VmaAllocator allocator, quire_page_policy *pages);

/* Returns the unit of sizes in a memory of the type, in bytes: a power of two from 16 to 256. */
uint64_t qi_vma_granule(VmaAllocator allocator, uint32_t type);

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

/* Whether no allocation and no pool lives. Sets the last error otherwise, and the log names what
   lives. */
bool qi_vma_memories_are_empty(VmaAllocator allocator);

/* Destroys the memories, which are empty. */
void qi_vma_memories_destroy(VmaAllocator allocator);

#endif
