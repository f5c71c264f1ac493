/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * tile.h - sparse images with residency: for each aspect tiles of 64 KiB in the standard shapes,
 * ordered by layer and level, then a mip tail for each layer or one for all layers. Metadata, if
 * the image has any, is the last aspect and has a tail of one block.
 *
 * The functions that access texels work for all images, with and without tiles.
 */
#ifndef QUIRE_TESTS_SUPPORT_VULKAN_TILE_H
#define QUIRE_TESTS_SUPPORT_VULKAN_TILE_H

#include "tests/support/vulkan/image.h"

#define FV_TILE UINT64_C(65536) /* bytes of a tile, and of any block of a sparse image */

/* Determines the tiles of an image with known levels, by the driver's FV_ flags. */
void fv_tiles_lay_out(fv_image *image, uint32_t flags);

/* Returns the size of a sparse image with tiles in bytes. */
uint64_t fv_tiles_size(const fv_image *image);

/* Returns the aspect. NULL: the image does not have exactly this aspect with tiles. */
const fv_aspect *fv_tiles_aspect(const fv_image *image, VkImageAspectFlags aspect);

/* Returns the offset of a tile in the image; x, y and z are in tiles. */
uint64_t fv_tile_offset(const fv_image *image, const fv_aspect *aspect, uint32_t level,
                        uint32_t layer, uint32_t x, uint32_t y, uint32_t z);

/* Whether a range of bytes of the image is metadata. */
bool fv_tiles_is_metadata(const fv_image *image, uint64_t offset);

/* A run of `count` texels of a row. */
typedef struct fv_texels {
    uint32_t level, layer, x, y, z, count;
} fv_texels;

/* Texels outside the image are neither read nor written. Returns false if there are any. */
bool fv_texels_read(fv_image *image, fv_call call, fv_texels at, void *to);
bool fv_texels_write(fv_image *image, fv_call call, fv_texels at, const void *from);

/* Describes an aspect of a sparse image. */
VkSparseImageMemoryRequirements fv_tiles_told(const fv_image *image, uint32_t index);

#endif
