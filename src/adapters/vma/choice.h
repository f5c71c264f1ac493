/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * choice.h - the memory type that VMA chooses for an allocation.
 *
 * The options of a program say which flags it wishes. Of the types that have all required flags,
 * the best is the one with the fewest preferred flags missing and avoided flags present, and the
 * first of several such. If it has no room, the caller removes it from the mask and asks again.
 */
#ifndef QUIRE_SRC_ADAPTERS_VMA_CHOICE_H
#define QUIRE_SRC_ADAPTERS_VMA_CHOICE_H

#include "src/adapters/vma/allocator.h"

/* ---- options ------------------------------------------------------------------------------ */

/* Plain functions of the arguments. */

/* What the usage of a buffer or image says about who accesses it. */
typedef enum qi_vma_access {
    QI_VMA_ACCESS_UNKNOWN = 0, /* no create info, or no usage: the AUTO usages cannot decide */
    QI_VMA_ACCESS_TRANSFER,    /* copies only */
    QI_VMA_ACCESS_DEVICE       /* also shaders, attachments, ... */
} qi_vma_access;

/* `has_maintenance5` : a VkBufferUsageFlags2CreateInfo of the chain counts. */
qi_vma_access qi_vma_access_of_buffer(const VkBufferCreateInfo *info, bool has_maintenance5);
qi_vma_access qi_vma_access_of_image(const VkImageCreateInfo *info);

/*
 * Checks flags and usage of an allocation, which a search for a memory type does not: returns
 * VALIDATION_FAILED where VMA asserts, FEATURE_NOT_PRESENT where it returns this as well.
 */
VkResult qi_vma_check_options(const VmaAllocationCreateInfo *options);

/* Whether the program wants memory of the allocation's own. Lazily allocated memory always is. */
bool qi_vma_is_dedicated(const VmaAllocationCreateInfo *options);

typedef struct qi_vma_wish {
    VkMemoryPropertyFlags required, preferred, avoided;
} qi_vma_wish;

/*
 * Writes the flags that the options wish. `is_integrated` : the physical device is an integrated
 * GPU. Returns FEATURE_NOT_PRESENT for an AUTO usage of unknown access, VALIDATION_FAILED for a
 * usage that does not exist.
 */
VkResult qi_vma_wish_of(const VmaAllocationCreateInfo *options, qi_vma_access access,
                        bool is_integrated, qi_vma_wish *wish);

/* Writes the best memory type of the mask. Returns false if none of them has the required flags. */
bool qi_vma_choose(const VkPhysicalDeviceMemoryProperties *memory, const qi_vma_wish *wish,
                   uint32_t mask, uint32_t *type);

/* ---- types of an allocator ---------------------------------------------------------------- */

/* The types that can serve a request, from the best one on. */
typedef struct qi_vma_search {
    qi_vma_wish wish;
    uint32_t mask; /* types that were not found yet */
} qi_vma_search;

/* Writes the best type of the mask. Fails with FEATURE_NOT_PRESENT if no type has the required
   flags or if an AUTO usage has no access, VALIDATION_FAILED for an unknown usage. */
VkResult qi_vma_first_type(VmaAllocator allocator, uint32_t mask,
                           const VmaAllocationCreateInfo *options, qi_vma_access access,
                           qi_vma_search *search, uint32_t *type);

/* Writes the next best type. Returns false if there is none. */
bool qi_vma_next_type(VmaAllocator allocator, qi_vma_search *search, uint32_t *type);

#endif
