/*
 * tile.h - sparse images of the fake driver that may be partly resident: for each aspect tiles of
 * 64 KiB in the standard shapes, layer by layer and level by level, and behind them a mip tail for
 * each layer, or one for all. Where there is metadata it is the last aspect, a tail of one block.
 *
 * Texels are reached here, whether an image has tiles or not.
 */
#ifndef QUIRE_TESTS_SUPPORT_VULKAN_TILE_H
#define QUIRE_TESTS_SUPPORT_VULKAN_TILE_H

#include "tests/support/vulkan/image.h"

#define FV_TILE UINT64_C(65536) /* bytes of a tile, and of any block of a sparse image */

/* Decides where the tiles are, of an image whose levels are laid out; by the driver's FV_ flags. */
void fv_tiles_lay_out(fv_image *image, uint32_t flags);

/* Bytes of a sparse image with tiles. */
uint64_t fv_tiles_size(const fv_image *image);

/* The aspect, or NULL: the image has not exactly this one with tiles. */
const fv_aspect *fv_tiles_aspect(const fv_image *image, VkImageAspectFlags aspect);

/* Where a tile lies in the image; x, y and z count tiles. */
uint64_t fv_tile_offset(const fv_image *image, const fv_aspect *aspect, uint32_t level,
                        uint32_t layer, uint32_t x, uint32_t y, uint32_t z);

/* Whether bytes of the image are metadata. */
bool fv_tiles_is_metadata(const fv_image *image, uint64_t offset);

/* `count` texels of a row. */
typedef struct fv_texels {
    uint32_t level, layer, x, y, z, count;
} fv_texels;

/* Texels that lie outside of the image are neither read nor written; false: some do. */
bool fv_texels_read(fv_image *image, fv_call call, fv_texels at, void *to);
bool fv_texels_write(fv_image *image, fv_call call, fv_texels at, const void *from);

/* What is told of an aspect of a sparse image. */
VkSparseImageMemoryRequirements fv_tiles_told(const fv_image *image, uint32_t index);

#endif
