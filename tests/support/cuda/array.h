/*
 * array.h - arrays of the fake CUDA driver, with or without mip levels: some have memory of their
 * own, some are given it later as a whole (deferred mapping) or in tiles (sparse).
 *
 * Texels lie in rows, layers and levels one behind the other; within a tile likewise. The real
 * driver's order is its secret, and nothing but copies looks at it here.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_ARRAY_H
#define QUIRE_TESTS_SUPPORT_CUDA_ARRAY_H

#include "tests/support/cuda/memory.h"

#define FC_TILE_BYTES (UINT64_C(64) << 10)

/* A place, or an extent: x in bytes. */
typedef struct fc_texel {
    uint64_t x, y, z, level;
} fc_texel;

typedef struct fc_backing {
    fc_memory *memory; /* NULL: nothing */
    uint64_t offset;
} fc_backing;

typedef struct fc_array {
    fc_object object;
    uint64_t context;
    int device;
    qi_cu_array3d_descriptor desc;
    uint32_t element, levels; /* bytes of a texel */
    uint64_t parent;          /* it is a level of this one; 0: of none */
    uint32_t level;
    fc_bytes own;
    fc_backing whole;  /* of deferred mapping */
    fc_backing *tiles; /* of sparse ones: all levels before the tail, then the tails of layers */
    uint64_t tile_count;
} fc_array;

/* NULL: none of this handle. */
fc_array *fc_array_peek(uint64_t handle);

bool fc_array_is_layered(const fc_array *array);
bool fc_array_is_sparse(const fc_array *array);

/* Extents of a level in texels, at least 1 each; z: slices or layers. */
fc_texel fc_array_extent(const fc_array *array, uint64_t level);

/* Bytes of a level before the next begins, and of all. */
uint64_t fc_array_level_bytes(const fc_array *array, uint64_t level);
uint64_t fc_array_bytes(const fc_array *array);

/* ---- tile.c -------------------------------------------------------------------------------- */

/* Extents of a tile in texels. */
fc_texel fc_tile_extent(const fc_array *array);

/* The first level that shares tiles with the next; `levels`: none does. */
uint64_t fc_tail_begin(const fc_array *array);
uint64_t fc_tail_bytes(const fc_array *array);

/* How many there are, with the tails of all layers. */
uint64_t fc_tiles_of(const fc_array *array);

/* Where a texel of a sparse array lies; NULL: nothing is mapped there. */
unsigned char *fc_tile_reach(const fc_array *array, fc_texel at, uint64_t *run);

/* ---- for copies ---------------------------------------------------------------------------- */

/* The box lies in the level. */
bool fc_array_holds(uint64_t handle, fc_texel at, fc_texel extent);

/* Where a texel lies, and in *run how much of its row in one piece; NULL: in nothing. */
unsigned char *fc_array_reach(uint64_t handle, fc_texel at, uint64_t *run);

/* ---- for the end --------------------------------------------------------------------------- */

bool fc_array_end(fc_object *object);
uint64_t fc_array_context(const fc_object *object);

/* It goes with the mipmapped array that it is of. */
bool fc_array_is_level(const fc_object *object);

#endif
