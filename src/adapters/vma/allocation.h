/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * allocation.h - allocations: their records, and the one function that makes them.
 */
#ifndef QUIRE_SRC_ADAPTERS_VMA_ALLOCATION_H
#define QUIRE_SRC_ADAPTERS_VMA_ALLOCATION_H

#include "src/adapters/vma/choice.h"

/* The program orders its calls on one allocation, so that no lock protects the fields. */
typedef struct qi_vma_allocation {
    qi_vma_record record; /* first member */
    uint32_t type;
    uint32_t map_count; /* of vmaMapMemory */
    uintptr_t handle;   /* its own, also the user data of the allocation of quire */
    quire_memory *memory;
    quire_allocation quire;
    VkDeviceMemory device_memory;
    VkDeviceSize offset; /* in device_memory */
    VkDeviceSize size;   /* as requested */
    void *persistent;    /* host pointer with MAPPED_BIT; NULL otherwise */
    void *mapped;        /* host pointer since the first vmaMapMemory; NULL before */
    void *user_data;
    char *name; /* NULL: none */
} qi_vma_allocation;

/* What an allocation is made for. */
typedef struct qi_vma_request {
    VkMemoryRequirements needs;
    bool requires_dedicated, prefers_dedicated;
    bool is_linear; /* a buffer or linear image; otherwise granules of optimal images are kept */
    bool is_bound;  /* the object is bound to the allocation */
    qi_vma_access access;
    VkBuffer buffer;         /* the object; both null: none */
    VkImage image;           /* likewise */
    const void *create_info; /* of the object; NULL: unknown */
    VkDeviceSize min_alignment;
    const VmaAllocationCreateInfo *options;
} qi_vma_request;

/* Makes an allocation. The outputs are those of vmaAllocateMemory. */
VkResult qi_vma_allocate(VmaAllocator allocator, const qi_vma_request *request,
                         VmaAllocation *handle, VmaAllocationInfo *info);

/* Writes the requirements of an object of the program. */
void qi_vma_query_buffer(VmaAllocator allocator, VkBuffer buffer, qi_vma_request *request);
void qi_vma_query_image(VmaAllocator allocator, VkImage image, qi_vma_request *request);

/* Returns the record of a handle. NULL and a last error: a handle or the allocator is bad. */
qi_vma_allocation *qi_vma_allocation_of(VmaAllocator allocator, VmaAllocation handle);

/* Takes a record for the target of a move of another allocation, and writes where it lies. On
   failure there is none. */
VkResult qi_vma_take_target(VmaAllocator allocator, const qi_vma_allocation *source,
                            quire_allocation quire, qi_vma_allocation **target);

/* Ends the maps of a target, which keeps its allocation of quire. */
bool qi_vma_end_target_map(qi_vma_allocation *target);

/* The source has the place that a target had: the allocation of quire was moved there. */
VkResult qi_vma_take_place(qi_vma_allocation *source, const qi_vma_allocation *target);

/* Frees. Returns false and sets the last error if nothing was freed. */
bool qi_vma_free(VmaAllocator allocator, VmaAllocation handle);

void qi_vma_describe(const qi_vma_allocation *allocation, VmaAllocationInfo *info);

#endif
