/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * sparse.h - sparse buffers and images: a native object, and the allocations bound to its blocks.
 *
 * An object is a sequence of blocks of `block` bytes; the last one may be shorter. A part is a run
 * of blocks that one allocation backs. An object without residency is bound completely when it is
 * created: it has few parts of many blocks, and `offsets` lists where they begin. In an object with
 * residency each block is a part, so that each can be unbound separately. Every change of the
 * bindings is one vkQueueBindSparse, which succeeds or fails as a whole. sparse_tiles.c knows which
 * texels of an image with residency a block holds.
 *
 * The object's mutex protects the parts, `bound` and the pending change. No thread holds a lock of
 * quire's core when it acquires that mutex, and calls of the core are made while it is held.
 *
 * Invariant: `bound` is the sum of the sizes of the parts that have an allocation.
 *
 * Layers, lowest first: sparse_tiles.c, sparse_bind.c, sparse.c.
 */
#ifndef QUIRE_BACKENDS_VULKAN_SPARSE_H
#define QUIRE_BACKENDS_VULKAN_SPARSE_H

#include <pthread.h>

#include "backends/vulkan/vulkan.h"

/* The blocks of one aspect of an image: first the tiles, ordered by layer, then level, then z, y
   and x; then the mip tails, one for each layer or one for all. */
typedef struct qi_vulkan_aspect {
    VkImageAspectFlags aspect;
    VkExtent3D tile; /* texels of a block; 0 for metadata */
    uint32_t levels; /* with tiles; the levels above are in a tail */
    uint32_t tails;
    uint64_t tail_blocks; /* of each tail */
    uint64_t tail_offset; /* bytes in the object at which the first tail begins */
    uint64_t tail_stride; /* bytes from a tail to the next */
    uint64_t of_layer;    /* tiles of a layer */
    uint64_t first;       /* block of the object */
} qi_vulkan_aspect;

/* The blocks of an image with residency, aspect after aspect. */
typedef struct qi_vulkan_tiles {
    uint32_t count; /* of aspects; 0: the object has no tiles */
    VkExtent3D extent;
    uint32_t layers, levels;
    qi_vulkan_aspect aspects[QUIRE_VULKAN_MAX_ASPECTS];
} qi_vulkan_tiles;

/* A change of bindings: binds parts to allocations, or unbinds parts. */
typedef struct qi_vulkan_change {
    quire_vulkan_sparse *sparse;
    bool is_binding;
    uint32_t capacity, count;      /* of each of the four arrays; parts in use */
    uint32_t *parts;               /* that change */
    quire_allocation *allocations; /* of these parts: the new ones, or those to free */
    VkSparseMemoryBind *ranges;    /* of bytes; ranges that continue each other are merged */
    uint32_t range_count;
    VkSparseImageMemoryBind *tiles;
    uint32_t tile_count;
    VkFence fence; /* of a submission that could not be waited for; otherwise VK_NULL_HANDLE */
} qi_vulkan_change;

struct quire_vulkan_sparse {
    quire_attachment attachment; /* first: the core passes it to its `end` and `leave` functions */
    qi_vulkan *vulkan;
    quire_memory *memory;
    pthread_mutex_t mutex;
    quire_object object;
    uint64_t native;
    char *name;
    quire_allocation_options options; /* of the allocation of each part, without its size */
    uint64_t granularity;             /* sizes of allocations are multiples of it */
    bool is_partial;                  /* has residency */
    qi_vulkan_tiles tiles;
    uint64_t size;  /* bytes */
    uint64_t block; /* bytes */
    uint64_t bound; /* bytes */
    uint32_t part_count;
    uint32_t part_capacity, offset_capacity;
    quire_allocation *parts;
    uint64_t *offsets;        /* of the parts; NULL: each part is one block */
    qi_vulkan_change pending; /* a submitted change of unknown outcome, if it has a fence */
    quire_vulkan_sparse *next_deferred; /* in the device's list: see deferred_destroy.h */
};

/* Returns the mutex of an object that a query takes const. */
static inline pthread_mutex_t *qi_vulkan_sparse_mutex(const quire_vulkan_sparse *sparse)
{
    return (pthread_mutex_t *)(uintptr_t)&sparse->mutex;
}

/* ---- sparse_tiles.c ----------------------------------------------------------------------- */

/* Queries the tiles and tails of an image whose blocks have `block` bytes. */
QUIRE_MUST_USE quire_result qi_vulkan_tiles_read(const qi_vulkan *vulkan, VkImage image,
                                                 const VkImageCreateInfo *info, uint64_t block,
                                                 qi_vulkan_tiles *tiles);

/* Returns the number of blocks of all aspects. */
uint64_t qi_vulkan_tiles_count(const qi_vulkan_tiles *tiles);

/* A block in Vulkan's terms. */
typedef struct qi_vulkan_tile {
    VkImageAspectFlags aspect;
    bool is_tail;
    uint32_t level, layer;    /* of a tail: the first ones that it holds */
    VkOffset3D offset;        /* in texels of the level */
    VkExtent3D extent;        /* in texels, clipped to the level */
    uint64_t resource_offset; /* of a tail's block: bytes in the object */
} qi_vulkan_tile;

qi_vulkan_tile qi_vulkan_tiles_at(const qi_vulkan_tiles *tiles, uint64_t block,
                                  uint64_t block_size);

/* A box of tiles of one level, or a tail: `slices` times `rows` runs of `blocks` blocks. */
typedef struct qi_vulkan_box {
    uint64_t first;            /* block */
    uint64_t blocks;           /* in each run */
    uint64_t rows, row_stride; /* runs in a slice; blocks from a run to the next */
    uint64_t slices, slice_stride;
} qi_vulkan_box;

/* The blocks of a region: one box for each of its aspects. */
typedef struct qi_vulkan_boxes {
    uint32_t count;
    qi_vulkan_box all[QUIRE_VULKAN_MAX_ASPECTS];
} qi_vulkan_boxes;

/*
 * Finds the blocks of a region. OUT_OF_RANGE: the region leaves the image. INVALID_ARGUMENT: it
 * does not consist of whole blocks, or names an aspect that the image does not have.
 */
QUIRE_MUST_USE quire_result qi_vulkan_tiles_find(const qi_vulkan_tiles *tiles,
                                                 const quire_vulkan_region *region,
                                                 qi_vulkan_boxes *boxes);

/* ---- sparse_bind.c ------------------------------------------------------------------------ */

/*
 * Waits for the object's pending change, if it has one, and updates its parts. Fails without any
 * change if the wait fails again, or with BUSY if a part to free is mapped. Requires the object's
 * mutex, or that no other thread uses the object.
 */
QUIRE_MUST_USE quire_result qi_vulkan_sparse_retire(quire_vulkan_sparse *sparse);

/* Destroys an object immediately, however far its creation got. It has no pending change, or the
   device is idle. */
void qi_vulkan_sparse_destroy_now(quire_vulkan_sparse *sparse);

/*
 * Allocates the parts of an object without residency and binds them. After a failure it may leave
 * parts, and a pending change.
 */
QUIRE_MUST_USE quire_result qi_vulkan_sparse_bind_whole(quire_vulkan_sparse *sparse);

#endif
