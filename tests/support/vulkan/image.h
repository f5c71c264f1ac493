/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * image.h - images of the fake driver: texels in rows, the rows of a level in slices, the levels of
 * a layer one after the other.
 *
 * Images with optimal tiling have widths and heights rounded up, as with tiles, so that no caller
 * can use their bytes as those of a linear image.
 */
#ifndef QUIRE_TESTS_SUPPORT_VULKAN_IMAGE_H
#define QUIRE_TESTS_SUPPORT_VULKAN_IMAGE_H

#include "tests/support/vulkan/format.h"
#include "tests/support/vulkan/resource.h"

#define FV_MAX_LEVELS 16
#define FV_MAX_ASPECTS 3

typedef struct fv_level {
    uint64_t offset; /* bytes in a layer */
    uint64_t row_pitch, slice_pitch, size;
    VkExtent3D extent;
} fv_level;

/* See tile.h. */
typedef struct fv_aspect {
    VkImageAspectFlags aspect;
    uint32_t texel_size; /* bytes, of all samples */
    VkExtent3D tile;
    uint32_t tiled_levels;
    uint64_t first_tiles[FV_MAX_LEVELS]; /* of each level, in a layer */
    uint64_t layer_tiles;
    uint64_t tail_size, tails; /* bytes of a tail; number of tails */
    uint64_t offset;           /* of the first tile in the image */
} fv_aspect;

typedef struct fv_image {
    fv_resource resource;
    VkImageCreateInfo info; /* without its pointers */
    fv_format format;
    fv_level levels[FV_MAX_LEVELS];
    uint64_t layer_pitch;
    uint32_t aspect_count; /* 0: the image has no tiles */
    fv_aspect aspects[FV_MAX_ASPECTS];
    VkImageLayout
        *layouts; /* after the executed work; level l of layer a is at [a * mipLevels + l] */
} fv_image;

/* Fills in everything but the layouts. Returns an error if such an image is impossible. */
VkResult fv_image_describe(fv_device *device, const VkImageCreateInfo *info, fv_image *image);

/* Returns the offset of the first texel of a row in the image. */
static inline uint64_t fv_row(const fv_image *image, uint32_t level, uint32_t layer, uint32_t z,
                              uint32_t y)
{
    const fv_level *at = &image->levels[level];
    return layer * image->layer_pitch + at->offset + z * at->slice_pitch + y * at->row_pitch;
}

/* Returns the number of levels or layers of a range. */
static inline uint32_t fv_levels_of(const fv_image *image, const VkImageSubresourceRange *range)
{
    return range->levelCount == VK_REMAINING_MIP_LEVELS
               ? image->info.mipLevels - range->baseMipLevel
               : range->levelCount;
}

static inline uint32_t fv_layers_of(const fv_image *image, const VkImageSubresourceRange *range)
{
    return range->layerCount == VK_REMAINING_ARRAY_LAYERS
               ? image->info.arrayLayers - range->baseArrayLayer
               : range->layerCount;
}

/* Whether the range is within the image. */
bool fv_range_fits(const fv_image *image, const VkImageSubresourceRange *range);

#endif
