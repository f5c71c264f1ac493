/*
 * memory_type.h - the memory types of an allocator that can serve a request, from the best one on.
 */
#ifndef QUIRE_SRC_ADAPTERS_VMA_MEMORY_TYPE_H
#define QUIRE_SRC_ADAPTERS_VMA_MEMORY_TYPE_H

#include "src/adapters/vma/allocator.h"
#include "src/adapters/vma/choice.h"

typedef struct qi_vma_search {
    qi_vma_wish wish;
    uint32_t mask; /* types that were not found yet */
} qi_vma_search;

/* Writes the best type of the mask. Fails as vmaFindMemoryTypeIndex. */
VkResult qi_vma_first_type(VmaAllocator allocator, uint32_t mask,
                           const VmaAllocationCreateInfo *options, qi_vma_access access,
                           qi_vma_search *search, uint32_t *type);

/* Writes the next best type. Returns false if there is none. */
bool qi_vma_next_type(VmaAllocator allocator, qi_vma_search *search, uint32_t *type);

#endif
