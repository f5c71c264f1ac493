/*
 * quire/vulkan_sparse.h - objects of the Vulkan backend that do not lie in one range of their own:
 * sparse objects, which are bound in parts, and aliases, which share the bytes of an allocation.
 *
 * What quire/vulkan.h says of all its functions holds here as well.
 */
#ifndef QUIRE_VULKAN_SPARSE_H
#define QUIRE_VULKAN_SPARSE_H

#include "quire/vulkan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- sparse objects ------------------------------------------------------------------------- */

/*
 * A buffer or image whose memory is bound by vkQueueBindSparse, in parts: it may be larger than a
 * page, and its parts lie in pages wherever there is room, in blocks of the size that the device
 * says. The flags in its description tell how.
 *  - SPARSE_BINDING alone: it is bound whole when it is made, to as few parts as can be had: as
 *    large as pages, or smaller where no page can be had, and they stay as they are. on_out_of_memory
 *    may be asked for each size that is tried.
 *  - SPARSE_RESIDENCY as well: nothing is bound at first, and blocks are bound and unbound in any
 *    order. Each block is a part.
 * A part is an allocation of the memory with the object's name: quire_allocation_get_info tells
 * page, offset, left padding and size, and quire_write and quire_read reach its bytes. It is the
 * object's to free: quire_free is BUSY.
 *
 * Everything is bound through the device's queue, whose family must be able to, and the calls
 * return when that is done. The caller sees to it that the device does not use what is unbound.
 * The object belongs to its memory, which is BUSY with it; quire_memory_destroy_all ends it, too.
 *
 * Thread-safety: any thread may call anything, but destroy; changes of one object take turns, and
 * the memory's on_out_of_memory must not use the object.
 *
 * Where a change was submitted and the driver fails to wait for it (and is not lost), that is the
 * error, and nothing changes for now: the next call that changes the object waits for it first, and
 * it counts as done from then on.
 */
typedef struct quire_vulkan_sparse quire_vulkan_sparse;

/*
 * Options as for other objects, NULL means {0}: alignment, zero, dedicated, host_read and
 * host_write are those of each part. Errors: INVALID_ARGUMENT, NOT_HOST_VISIBLE, UNSUPPORTED (a
 * feature that is not enabled, which is named; no queue, or one that cannot bind; a format that the
 * device does not support so), those of
 * quire_allocate, and what Vulkan answers. On failure nothing is left, unless the device may still
 * be binding it: the memory is BUSY with it then, until quire_memory_destroy finds it done.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_sparse_buffer_create(
    quire_memory *memory, const VkBufferCreateInfo *info,
    const quire_vulkan_object_options *options, quire_vulkan_sparse **sparse);
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_sparse_image_create(
    quire_memory *memory, const VkImageCreateInfo *info, const quire_vulkan_object_options *options,
    quire_vulkan_sparse **sparse);

/*
 * Destroys the object and frees its parts; nothing is unbound before. *sparse becomes NULL, which
 * is accepted, too. Errors: INVALID_ARGUMENT, BUSY (a part is mapped), and of an earlier change
 * that cannot be waited for; then nothing changed, and *sparse stays valid.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_sparse_destroy(quire_vulkan_sparse **sparse);

/*
 * How one aspect of an image with residency is divided: color, or depth and stencil, each by itself
 * or both together, as the driver has it; and METADATA, what a driver keeps beside the texels.
 */
typedef struct quire_vulkan_aspect {
    VkImageAspectFlags aspect;
    VkExtent3D tile;       /* texels of a block; METADATA: 0 */
    uint32_t tiled_levels; /* levels from here on are its mip tail; METADATA: 0 */
} quire_vulkan_aspect;

#define QUIRE_VULKAN_MAX_ASPECTS 4

typedef struct quire_vulkan_sparse_info {
    quire_memory *memory;
    VkBuffer buffer; /* one of the two, the other is VK_NULL_HANDLE */
    VkImage image;
    bool residency;
    uint64_t size;  /* bytes that can be bound: see quire_vulkan_part.offset */
    uint64_t block; /* bytes; offsets and sizes of parts are multiples, the object's end apart */
    uint64_t bound; /* bytes of the parts that have an allocation */
    uint32_t part_count;
    uint32_t aspect_count; /* of an image with residency; else 0 */
    quire_vulkan_aspect aspects[QUIRE_VULKAN_MAX_ASPECTS];
    uint64_t unused[4];
} quire_vulkan_sparse_info;

/* Errors: INVALID_ARGUMENT. */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_sparse_get_info(quire_vulkan_sparse *sparse,
                                                                   quire_vulkan_sparse_info *info);

/* A box of texels of an image with residency. */
typedef struct quire_vulkan_region {
    uint32_t level, layer;
    /* one or more of the image's; 0: all, METADATA, which has no texels, included */
    VkImageAspectFlags aspect;
    VkOffset3D offset;  /* multiples of the tile, of each aspect */
    VkExtent3D extent;  /* likewise, or to the level's end; 0: to the level's end */
    uint64_t unused[4]; /* must be zero */
} quire_vulkan_region;

typedef struct quire_vulkan_part {
    /*
     * Bytes from the object's start. An image with residency has an order of its own, of blocks:
     * aspect by aspect, layer by layer, level by level, the tiles of a level by x, y and z; behind
     * those of an aspect its mip tails.
     */
    uint64_t offset;
    uint64_t size;
    quire_allocation allocation; /* {0}: nothing is bound here */
    quire_vulkan_region region;  /* of an image with residency: which texels; of a tail the first
                                    level in it */
    bool is_tail;
    uint64_t unused[4];
} quire_vulkan_part;

/*
 * The part that holds the byte at `offset`; the next one begins at its offset + size.
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_sparse_get_part(quire_vulkan_sparse *sparse,
                                                                   uint64_t offset,
                                                                   quire_vulkan_part *part);

/*
 * Binds the blocks from `offset` on (size 0: to the end), which are multiples of the block or reach
 * the end; what is bound already stays as it is. Unbinds them, and frees their memory; what is not
 * bound is passed over. All or nothing. For objects with residency. Errors: INVALID_ARGUMENT,
 * OUT_OF_RANGE, UNSUPPORTED (without residency), OUT_OF_HOST_MEMORY, those of quire_allocate, BUSY
 * (unbinding a part that is mapped), and what Vulkan answers.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_sparse_bind(quire_vulkan_sparse *sparse,
                                                               uint64_t offset, uint64_t size);
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_sparse_unbind(quire_vulkan_sparse *sparse,
                                                                 uint64_t offset, uint64_t size);

/*
 * The same for a region of an image with residency. Levels of the mip tail are bound together: with
 * any part of them the whole tail, which may be one for all layers. Metadata must be bound before
 * the image is used. find tells the offset of the region's first block, of its first aspect, for
 * the calls above.
 */
QUIRE_API QUIRE_MUST_USE quire_result
quire_vulkan_sparse_bind_region(quire_vulkan_sparse *sparse, const quire_vulkan_region *region);
QUIRE_API QUIRE_MUST_USE quire_result
quire_vulkan_sparse_unbind_region(quire_vulkan_sparse *sparse, const quire_vulkan_region *region);
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_sparse_find(quire_vulkan_sparse *sparse,
                                                               const quire_vulkan_region *region,
                                                               uint64_t *offset);

/* ---- objects that share memory -------------------------------------------------------------- */

/*
 * A buffer or image on the bytes of an allocation, beside whatever lies there: of a raw range that
 * is large and aligned enough for all of them, or of an object. The allocation is BUSY for
 * quire_free while an alias is on it, so that its place goes when the last of them is gone. What
 * one of them writes is for the others undefined unless Vulkan says otherwise, as it does for
 * buffers and for images that are made alike with VK_IMAGE_CREATE_ALIAS_BIT; barriers between their
 * uses are the caller's. The alias belongs to the memory, which is BUSY with it;
 * quire_memory_destroy_all ends it, too.
 */
typedef struct quire_vulkan_alias quire_vulkan_alias;

typedef struct quire_vulkan_alias_options {
    uint64_t offset;    /* bytes, in the allocation */
    const char *name;   /* copied; also its debug name where VK_EXT_debug_utils is enabled */
    uint64_t unused[4]; /* must be zero */
} quire_vulkan_alias_options;

/*
 * NULL options mean {0}. Errors: INVALID_ARGUMENT (also where the place is not aligned as Vulkan
 * asks), OUT_OF_RANGE (it does not fit into the allocation; an image of optimal tiling takes whole
 * multiples of bufferImageGranularity), UNSUPPORTED (sparse; the memory's kind cannot hold it; it
 * requires memory of its own, or what lies there has it), WRONG_STATE (reserved), those of handles,
 * and what Vulkan answers. On failure nothing is left.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_alias_buffer_create(
    quire_memory *memory, quire_allocation allocation, const VkBufferCreateInfo *info,
    const quire_vulkan_alias_options *options, quire_vulkan_alias **alias);
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_alias_image_create(
    quire_memory *memory, quire_allocation allocation, const VkImageCreateInfo *info,
    const quire_vulkan_alias_options *options, quire_vulkan_alias **alias);

/* *alias becomes NULL, which is accepted, too. Errors: INVALID_ARGUMENT. */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_alias_destroy(quire_vulkan_alias **alias);

typedef struct quire_vulkan_alias_info {
    quire_memory *memory;
    quire_allocation allocation;
    uint64_t offset; /* in the allocation */
    uint64_t size;   /* bytes that it takes there */
    VkBuffer buffer; /* one of the two, the other is VK_NULL_HANDLE */
    VkImage image;
    uint64_t unused[4];
} quire_vulkan_alias_info;

/* Errors: INVALID_ARGUMENT. */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_alias_get_info(quire_vulkan_alias *alias,
                                                                  quire_vulkan_alias_info *info);

#ifdef __cplusplus
}
#endif

#endif
