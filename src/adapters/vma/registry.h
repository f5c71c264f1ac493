/*
 * registry.h - all allocators of the process, to find that of an allocation from its handle alone.
 */
#ifndef QUIRE_SRC_ADAPTERS_VMA_REGISTRY_H
#define QUIRE_SRC_ADAPTERS_VMA_REGISTRY_H

#include "src/adapters/vma/allocator.h"

void qi_vma_registry_add(VmaAllocator allocator);
void qi_vma_registry_remove(VmaAllocator allocator);

#endif
