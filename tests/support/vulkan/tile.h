/*
 * tile.h - sparse images of the fake driver that may be partly resident: tiles of 64 KiB in the
 * standard shapes, layer by layer and level by level, and behind them a mip tail for each layer.
 *
 * Texels are reached here, whether an image has tiles or not.
 */
#ifndef QUIRE_TESTS_SUPPORT_VULKAN_TILE_H
#define QUIRE_TESTS_SUPPORT_VULKAN_TILE_H

#include "tests/support/vulkan/image.h"

#define FV_TILE UINT64_C(65536) /* bytes of a tile, and of any block of a sparse image */

/* Decides where the tiles are, of an image whose levels are laid out. */
void fv_tiles_lay_out(fv_image *image);

/* Bytes of a sparse image with tiles. */
uint64_t fv_tiles_size(const fv_image *image);

/* The shape of tiles for texels of this size; whether the image is of 3D. */
VkExtent3D fv_tile_shape(uint32_t texel_size, bool is_deep);

/* The number of tiles of a level in each direction. */
VkExtent3D fv_tiles_of(const fv_image *image, uint32_t level);

/* Where a tile lies in the image; x, y and z count tiles. */
uint64_t fv_tile_offset(const fv_image *image, uint32_t level, uint32_t layer, uint32_t x,
                        uint32_t y, uint32_t z);

/* `count` texels of a row. */
typedef struct fv_texels {
    uint32_t level, layer, x, y, z, count;
} fv_texels;

/* Texels that lie outside of the image are neither read nor written; false: some do. */
bool fv_texels_read(fv_image *image, fv_call call, fv_texels at, void *to);
bool fv_texels_write(fv_image *image, fv_call call, fv_texels at, const void *from);

/* tile.c: what is told of a sparse image. */
VkSparseImageMemoryRequirements fv_tiles_told(const fv_image *image);

#endif
