/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * array.h - arrays of the fake CUDA driver, with or without mip levels. Some arrays own memory;
 * others receive it later as a whole (deferred mapping) or in tiles (sparse).
 *
 * Texels are stored row after row, layer after layer, level after level, also within a tile. The
 * real driver's order is unknown, and only copies depend on it here.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_ARRAY_H
#define QUIRE_TESTS_SUPPORT_CUDA_ARRAY_H

#include "tests/support/cuda/memory.h"

#define FC_TILE_BYTES (UINT64_C(64) << 10)

/* A position or an extent; x in bytes. */
typedef struct fc_texel {
    uint64_t x, y, z, level;
} fc_texel;

typedef struct fc_backing {
    fc_memory *memory; /* NULL: no memory */
    uint64_t offset;
} fc_backing;

typedef struct fc_array {
    fc_object object;
    uint64_t context;
    int device;
    qi_cu_array3d_descriptor desc;
    uint32_t element, levels; /* bytes of a texel */
    uint64_t parent;          /* the array of which this is a level; 0: none */
    uint32_t level;
    fc_bytes own;
    fc_backing whole;  /* memory of a deferred array */
    fc_backing *tiles; /* of a sparse array: all levels above the tail, then the tails */
    uint64_t tile_count;
} fc_array;

/* Returns NULL if the handle names no array. */
fc_array *fc_array_peek(uint64_t handle);

bool fc_array_is_layered(const fc_array *array);
bool fc_array_is_sparse(const fc_array *array);

/* Extents of a level in texels, each at least 1; z counts slices or layers. */
fc_texel fc_array_extent(const fc_array *array, uint64_t level);

/* Bytes from the start of a level to the next, and bytes of all levels. */
uint64_t fc_array_level_bytes(const fc_array *array, uint64_t level);
uint64_t fc_array_bytes(const fc_array *array);

/* ---- tile.c -------------------------------------------------------------------------------- */

/* Extents of a tile in texels. */
fc_texel fc_tile_extent(const fc_array *array);

/* The first level that shares tiles with the next one; `levels` if none does. */
uint64_t fc_tail_begin(const fc_array *array);
uint64_t fc_tail_bytes(const fc_array *array);

/* Number of tiles, including the tails of all layers. */
uint64_t fc_tiles_of(const fc_array *array);

/* Returns the address of a texel of a sparse array; NULL if nothing is mapped there. */
unsigned char *fc_tile_reach(const fc_array *array, fc_texel at, uint64_t *run);

/* ---- for copies ---------------------------------------------------------------------------- */

/* Returns true if the box lies in the level. */
bool fc_array_holds(uint64_t handle, fc_texel at, fc_texel extent);

/* Returns the address of a texel, and in *run the bytes of its row that follow in one piece; NULL
   if it has no memory. */
unsigned char *fc_array_reach(uint64_t handle, fc_texel at, uint64_t *run);

/* ---- for the end --------------------------------------------------------------------------- */

bool fc_array_end(fc_object *object);
uint64_t fc_array_context(const fc_object *object);

/* Returns true for a level, which is destroyed with its mipmapped array. */
bool fc_array_is_level(const fc_object *object);

#endif
