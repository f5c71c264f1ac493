/*
 * sparse.h - sparse buffers and images: a native object, and the allocations that lie behind its
 * blocks.
 *
 * An object is a line of blocks of `block` bytes, the last of which may be shorter. Bound whole it
 * has few parts of many blocks, with their offsets in a list; of one that may be partly resident
 * each block is a part, so that any of them can be given back. What is bound where is changed by
 * one vkQueueBindSparse each time (sparse_bind.c), all of it or nothing. Where the blocks of an
 * image with residency lie is sparse_tiles.c's to know.
 *
 * Invariant: bound is the sum of the sizes of the parts that have an allocation.
 */
#ifndef QUIRE_BACKENDS_VULKAN_SPARSE_H
#define QUIRE_BACKENDS_VULKAN_SPARSE_H

#include <pthread.h>

#include "backends/vulkan/vulkan.h"

/* The blocks of one aspect: tiles of layer after layer, level after level, x first; then those of
   the mip tails, one for each layer or one for all. */
typedef struct qi_vulkan_aspect {
    VkImageAspectFlags aspect;
    VkExtent3D tile; /* texels of a block; metadata has none */
    uint32_t levels; /* with tiles; those above are in a tail */
    uint32_t tails;
    uint64_t tail_blocks; /* of each */
    uint64_t tail_offset; /* of the first, in the object's own bytes; and from each to the next */
    uint64_t tail_stride;
    uint64_t of_layer; /* tiles */
    uint64_t first;    /* block */
} qi_vulkan_aspect;

/* The blocks of an image with residency, aspect after aspect. */
typedef struct qi_vulkan_tiles {
    uint32_t count; /* of aspects; 0: the object has no tiles */
    VkExtent3D extent;
    uint32_t layers, levels;
    qi_vulkan_aspect aspects[QUIRE_VULKAN_MAX_ASPECTS];
} qi_vulkan_tiles;

/* Parts to be bound to their allocations, or unbound where there are none. */
typedef struct qi_vulkan_change {
    quire_vulkan_sparse *sparse;
    bool is_binding;
    uint32_t room, count;
    uint32_t *parts;
    quire_allocation *allocations;
    VkSparseMemoryBind *ranges; /* by bytes; neighbours that go on in the memory are one */
    uint32_t range_count;
    VkSparseImageMemoryBind *tiles;
    uint32_t tile_count;
    VkFence fence; /* it was submitted and could not be waited for; else VK_NULL_HANDLE */
} qi_vulkan_change;

struct quire_vulkan_sparse {
    quire_attachment attachment; /* first: the core's end is given it */
    qi_vulkan *vulkan;
    quire_memory *memory;
    pthread_mutex_t mutex; /* held while something is bound; no lock of quire is held around it */
    quire_object object;
    uint64_t native;
    char *name;
    quire_allocation_options wish; /* of each part */
    uint64_t granularity;          /* sizes of allocations are multiples of it */
    bool is_partial;
    qi_vulkan_tiles tiles;
    uint64_t size;
    uint64_t block;
    uint64_t bound;
    uint32_t part_count;
    uint32_t part_room, offset_room;
    quire_allocation *parts;
    uint64_t *offsets;              /* of the parts; NULL: each is one block */
    qi_vulkan_change late;          /* that is not known to be done, if it has a fence */
    quire_vulkan_sparse *next_late; /* of the device's list: see late.c */
};

/* ---- sparse_part.c -------------------------------------------------------------------------- */

/* Where a part begins and how large it is, in the object. */
uint64_t qi_vulkan_part_offset(const quire_vulkan_sparse *sparse, uint32_t part);
uint64_t qi_vulkan_part_size(const quire_vulkan_sparse *sparse, uint32_t part);

/*
 * Allocations of `size` bytes for parts, all or none, held so that nobody else frees them; and
 * their end, {0} passed over.
 */
QUIRE_MUST_USE quire_result qi_vulkan_parts_allocate(const quire_vulkan_sparse *sparse,
                                                     uint64_t size, quire_allocation *allocations,
                                                     uint32_t count);
void qi_vulkan_parts_free(const quire_vulkan_sparse *sparse, const quire_allocation *allocations,
                          uint32_t count);

/* Gives an object without parts all that it needs, and binds them; on failure some may be left. */
QUIRE_MUST_USE quire_result qi_vulkan_sparse_place_whole(quire_vulkan_sparse *sparse);

/* ---- sparse.c ------------------------------------------------------------------------------- */

/* Ends an object in any state of its making; it is settled, or the device is idle. */
void qi_vulkan_sparse_finish(quire_vulkan_sparse *sparse);

/* ---- late.c --------------------------------------------------------------------------------- */

/* Takes over an object without parts that cannot be settled, until it is, or the device ends. */
void qi_vulkan_late_keep(quire_vulkan_sparse *sparse);

/* ---- sparse_change.c ------------------------------------------------------------------------ */

/* Makes room for so many parts; to be ended, whether this succeeds or not. */
QUIRE_MUST_USE quire_result qi_vulkan_change_begin(qi_vulkan_change *change,
                                                   quire_vulkan_sparse *sparse, bool is_binding,
                                                   uint32_t room);
void qi_vulkan_change_end(qi_vulkan_change *change);

/* Does it. On failure nothing was done, unless there is a fence. */
QUIRE_MUST_USE quire_result qi_vulkan_change_submit(qi_vulkan_change *change);

/* ---- sparse_bind.c -------------------------------------------------------------------------- */

/* Binds all parts, which have their allocations; on failure nothing is bound, or it is late. */
QUIRE_MUST_USE quire_result qi_vulkan_sparse_bind_whole(quire_vulkan_sparse *sparse);

/*
 * Waits for a late change, if there is one, and keeps the record of it. Fails where it still cannot
 * be waited for, and nothing changed. With the object's mutex, or alone.
 */
QUIRE_MUST_USE quire_result qi_vulkan_sparse_settle(quire_vulkan_sparse *sparse);

/* ---- sparse_tiles.c ------------------------------------------------------------------------- */

/* Asks for the blocks of an image, whose block has this many bytes. */
QUIRE_MUST_USE quire_result qi_vulkan_tiles_read(const qi_vulkan *vulkan, VkImage image,
                                                 const VkImageCreateInfo *info, uint64_t block,
                                                 qi_vulkan_tiles *tiles);

uint64_t qi_vulkan_tiles_count(const qi_vulkan_tiles *tiles);

/* A block as Vulkan names it. */
typedef struct qi_vulkan_tile {
    VkImageAspectFlags aspect;
    bool is_tail;
    uint32_t level, layer; /* of a tail its first ones */
    VkOffset3D offset;     /* texels; likewise the extent, which ends where the level does */
    VkExtent3D extent;
    uint64_t resource_offset; /* of a tail's block: in the object's own bytes */
} qi_vulkan_tile;

qi_vulkan_tile qi_vulkan_tiles_at(const qi_vulkan_tiles *tiles, uint64_t block,
                                  uint64_t block_size);

/* A box of tiles of one level, or a tail: the blocks of `rows` runs. */
typedef struct qi_vulkan_box {
    uint64_t first;            /* block */
    uint64_t blocks;           /* in each run */
    uint64_t rows, row_stride; /* runs in a slice, and blocks from each to the next */
    uint64_t slices, slice_stride;
} qi_vulkan_box;

/* The blocks of a region, a box for each of its aspects: INVALID_ARGUMENT, OUT_OF_RANGE. */
typedef struct qi_vulkan_boxes {
    uint32_t count;
    qi_vulkan_box all[QUIRE_VULKAN_MAX_ASPECTS];
} qi_vulkan_boxes;

QUIRE_MUST_USE quire_result qi_vulkan_tiles_find(const qi_vulkan_tiles *tiles,
                                                 const quire_vulkan_region *region,
                                                 qi_vulkan_boxes *boxes);

#endif
