/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/vulkan_sparse.h - Vulkan objects that do not occupy one range of their own: sparse objects,
 * which are bound in parts, and aliases, which share the bytes of an allocation.
 *
 * The rules of quire/vulkan.h on threads and errors hold here.
 */
#ifndef QUIRE_VULKAN_SPARSE_H
#define QUIRE_VULKAN_SPARSE_H

#include "quire/vulkan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- sparse objects ------------------------------------------------------------------------- */

/*
 * A buffer or image whose memory vkQueueBindSparse binds in parts. It may be larger than a page.
 * Its parts lie in any pages, in blocks of the size that the device reports. The flags in its
 * create info select the mode:
 *  - SPARSE_BINDING alone: the object is bound completely at creation, to as few parts as possible:
 *    parts of the size of pages, or smaller if no page is available. They never change. quire may
 *    call on_out_of_memory for each part size that it tries.
 *  - SPARSE_RESIDENCY too: nothing is bound at creation. Blocks are bound and unbound in any order.
 *    Each block is a part.
 *
 * A part is an allocation of the memory with the object's name. quire_allocation_get_info reports
 * its page, offset, left padding and size; quire_write and quire_read reach its bytes. The object
 * owns its parts: quire_free of a part is BUSY.
 *
 * All binding goes through the device's sparse queue, or its queue if there is none, whose family
 * must support it, and is complete on return. The caller ensures that the device does not use what
 * is unbound. The object belongs to its memory: quire_memory_destroy is BUSY while it lives, and
 * quire_memory_destroy_all destroys it.
 *
 * Thread-safety: any thread may call any function except quire_vulkan_sparse_destroy on a live
 * object. Changes of one object take turns. The memory's on_out_of_memory must not use the object.
 *
 * If a change was submitted and the driver fails to wait for it (and is not lost), the call returns
 * that error and the object stays unchanged for now. The next call that changes the object first
 * waits for the submitted change, which counts as done from then on.
 */
typedef struct quire_vulkan_sparse quire_vulkan_sparse;

/*
 * Create a sparse object. Options as for other objects; alignment, zero, dedicated, host_read,
 * host_write, mapped, existing_pages and within_budget hold for each part. NULL means {0}.
 * Errors: INVALID_ARGUMENT, NOT_HOST_VISIBLE, UNSUPPORTED (a feature that is not enabled, which the
 * sentence names; no queue, or one that cannot bind; a format that the device does not support for
 * this use), those of quire_allocate, and errors of Vulkan. On failure nothing is left, unless the
 * device may still be binding the object: then the memory is BUSY until quire_memory_destroy finds
 * that the device is done.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_sparse_buffer_create(
    quire_memory *memory, const VkBufferCreateInfo *info,
    const quire_vulkan_object_options *options, quire_vulkan_sparse **sparse);
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_sparse_image_create(
    quire_memory *memory, const VkImageCreateInfo *info, const quire_vulkan_object_options *options,
    quire_vulkan_sparse **sparse);

/*
 * Destroys the object and frees its parts, without unbinding them first.
 * Errors: INVALID_ARGUMENT, BUSY (a part is mapped), and the error of an earlier change that cannot
 * be waited for. Nothing changes then, and *sparse stays valid.
 */
QUIRE_API quire_result quire_vulkan_sparse_destroy(quire_vulkan_sparse **sparse);

/*
 * How one aspect of an image with residency is divided. The driver decides whether depth and
 * stencil are one aspect or two. METADATA is what a driver keeps beside the texels.
 */
typedef struct quire_vulkan_aspect {
    VkImageAspectFlags aspect;
    VkExtent3D tile;       /* texels of a block; METADATA: 0 */
    uint32_t tiled_levels; /* first level of the mip tail; METADATA: 0 */
} quire_vulkan_aspect;

#define QUIRE_VULKAN_MAX_ASPECTS 4

typedef struct quire_vulkan_sparse_info {
    quire_memory *memory;
    VkBuffer buffer; /* one of the two; the other is VK_NULL_HANDLE */
    VkImage image;
    bool residency;
    uint64_t size;  /* bytes that can be bound: see quire_vulkan_part.offset */
    uint64_t block; /* bytes; parts begin and end at multiples of it, or at the object's end */
    uint64_t bound; /* bytes of the parts that have an allocation */
    uint32_t part_count;
    uint32_t aspect_count; /* of an image with residency; otherwise 0 */
    quire_vulkan_aspect aspects[QUIRE_VULKAN_MAX_ASPECTS];
    uint64_t unused[4];
} quire_vulkan_sparse_info;

/* Writes the description of a sparse object. Errors: INVALID_ARGUMENT. */
QUIRE_API QUIRE_MUST_USE quire_result
quire_vulkan_sparse_get_info(const quire_vulkan_sparse *sparse, quire_vulkan_sparse_info *info);

/* A box of texels of an image with residency. */
typedef struct quire_vulkan_region {
    uint32_t level, layer;
    /* One or more aspects of the image; 0: all, including METADATA, which has no texels. */
    VkImageAspectFlags aspect;
    VkOffset3D offset;  /* multiples of the tile of each aspect */
    VkExtent3D extent;  /* multiples too, or to the level's end; 0: to the level's end */
    uint64_t unused[4]; /* must be zero */
} quire_vulkan_region;

typedef struct quire_vulkan_part {
    /*
     * Bytes from the start of the object. Blocks of an image with residency are numbered by aspect,
     * then layer, then level, then the tiles of a level by x, y and z. The mip tails of an aspect
     * follow its tiles.
     */
    uint64_t offset;
    uint64_t size;
    quire_allocation allocation; /* {0}: nothing is bound here */
    quire_vulkan_region region;  /* of an image with residency: its texels; of a tail its first
                                    level */
    bool is_tail;
    uint64_t unused[4];
} quire_vulkan_part;

/*
 * Writes the part that contains the byte at `offset`. The next part begins at its offset + size.
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_sparse_get_part(
    const quire_vulkan_sparse *sparse, uint64_t offset, quire_vulkan_part *part);

/*
 * Bind allocates memory for all unbound blocks from `offset` on (size 0: to the end). Unbind
 * unbinds all bound blocks and frees their memory. Offset and size are multiples of the block, or
 * reach the end. All or nothing. For objects with residency. Errors: INVALID_ARGUMENT,
 * OUT_OF_RANGE, UNSUPPORTED (no residency), OUT_OF_HOST_MEMORY, those of quire_allocate, BUSY
 * (unbind: a part is mapped), and errors of Vulkan.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_sparse_bind(quire_vulkan_sparse *sparse,
                                                               uint64_t offset, uint64_t size);
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_sparse_unbind(quire_vulkan_sparse *sparse,
                                                                 uint64_t offset, uint64_t size);

/*
 * Like quire_vulkan_sparse_bind and quire_vulkan_sparse_unbind, for a region of an image with
 * residency. Levels of the mip tail are bound together: any of them binds the whole tail, which may
 * be one for all layers. Metadata must be bound before the image is used. Find writes the offset of
 * the first block of the region, of its first aspect, for the calls above.
 */
QUIRE_API QUIRE_MUST_USE quire_result
quire_vulkan_sparse_bind_region(quire_vulkan_sparse *sparse, const quire_vulkan_region *region);
QUIRE_API QUIRE_MUST_USE quire_result
quire_vulkan_sparse_unbind_region(quire_vulkan_sparse *sparse, const quire_vulkan_region *region);
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_sparse_find(const quire_vulkan_sparse *sparse,
                                                               const quire_vulkan_region *region,
                                                               uint64_t *offset);

/* ---- objects that share memory -------------------------------------------------------------- */

/*
 * A buffer or image on the bytes of an allocation, beside what already lies there. The allocation
 * is a raw range that is large and aligned enough for all objects, or belongs to an object.
 * quire_free of it is BUSY while it has an alias, so that the range lives as long as the last
 * object on it. What one object writes is undefined for the others unless Vulkan says otherwise, as
 * it does for buffers and for images that are created alike with VK_IMAGE_CREATE_ALIAS_BIT. The
 * caller issues barriers between their uses. The alias belongs to the memory: quire_memory_destroy
 * is BUSY while it lives, and quire_memory_destroy_all destroys it.
 */
typedef struct quire_vulkan_alias quire_vulkan_alias;

typedef struct quire_vulkan_alias_options {
    uint64_t offset;    /* bytes from the start of the allocation */
    const char *name;   /* copied; also the debug name if VK_EXT_debug_utils is enabled */
    uint64_t unused[4]; /* must be zero */
} quire_vulkan_alias_options;

/*
 * Create an alias. NULL options mean {0}.
 * Errors: INVALID_ARGUMENT (also if the offset is not aligned as Vulkan requires), OUT_OF_RANGE (it
 * does not fit into the allocation; an image of optimal tiling takes whole multiples of
 * bufferImageGranularity), UNSUPPORTED (a sparse object; the memory's kind cannot hold it; it
 * requires dedicated memory, or the object that lies there does), those of handles, and errors of
 * Vulkan. On failure nothing is left.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_alias_buffer_create(
    quire_memory *memory, quire_allocation allocation, const VkBufferCreateInfo *info,
    const quire_vulkan_alias_options *options, quire_vulkan_alias **alias);
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_alias_image_create(
    quire_memory *memory, quire_allocation allocation, const VkImageCreateInfo *info,
    const quire_vulkan_alias_options *options, quire_vulkan_alias **alias);

/* Destroys an alias; what it lies on stays. Errors: INVALID_ARGUMENT. */
QUIRE_API quire_result quire_vulkan_alias_destroy(quire_vulkan_alias **alias);

typedef struct quire_vulkan_alias_info {
    quire_memory *memory;
    quire_allocation allocation;
    uint64_t offset; /* bytes from the start of the allocation */
    uint64_t size;   /* bytes that it takes there */
    VkBuffer buffer; /* one of the two; the other is VK_NULL_HANDLE */
    VkImage image;
    uint64_t unused[4];
} quire_vulkan_alias_info;

/* Writes the description of an alias. Errors: INVALID_ARGUMENT. */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_alias_get_info(const quire_vulkan_alias *alias,
                                                                  quire_vulkan_alias_info *info);

#ifdef __cplusplus
}
#endif

#endif
