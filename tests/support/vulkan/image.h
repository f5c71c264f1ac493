/*
 * image.h - images of the fake driver: texels in rows, the rows of a level in slices, the levels
 * of a layer one after the other.
 *
 * Images of optimal tiling have rows and heights rounded up as tiles would, so that nobody can take
 * their bytes for a linear image's.
 */
#ifndef QUIRE_TESTS_SUPPORT_VULKAN_IMAGE_H
#define QUIRE_TESTS_SUPPORT_VULKAN_IMAGE_H

#include "tests/support/vulkan/format.h"
#include "tests/support/vulkan/resource.h"

#define FV_MOST_LEVELS 16
#define FV_MOST_ASPECTS 3

typedef struct fv_level {
    uint64_t offset; /* in a layer */
    uint64_t row_pitch, slice_pitch, size;
    VkExtent3D extent;
} fv_level;

/* See tile.h. */
typedef struct fv_aspect {
    VkImageAspectFlags aspect;
    uint32_t texel_size; /* bytes, of all samples */
    VkExtent3D tile;
    uint32_t tiled_levels;
    uint64_t first_tiles[FV_MOST_LEVELS]; /* of the levels, in a layer */
    uint64_t layer_tiles;
    uint64_t tail_size, tails; /* bytes of each */
    uint64_t offset;           /* of the first tile in the image */
} fv_aspect;

typedef struct fv_image {
    fv_resource resource;
    VkImageCreateInfo info; /* without its pointers */
    fv_format format;
    fv_level levels[FV_MOST_LEVELS];
    uint64_t layer_pitch;
    uint32_t aspect_count; /* 0: it has no tiles */
    fv_aspect aspects[FV_MOST_ASPECTS];
    VkImageLayout *layouts; /* as of the work done: of level l of layer a at [a * mipLevels + l] */
} fv_image;

/* Everything but the layouts; an error where no image can be so. */
VkResult fv_image_describe(fv_device *device, const VkImageCreateInfo *info, fv_image *image);

/* Where the first texel of a row lies in the image. */
static inline uint64_t fv_row(const fv_image *image, uint32_t level, uint32_t layer, uint32_t z,
                              uint32_t y)
{
    const fv_level *at = &image->levels[level];
    return layer * image->layer_pitch + at->offset + z * at->slice_pitch + y * at->row_pitch;
}

/* The number of levels or layers that a range means. */
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

/* The range lies in the image. */
bool fv_range_fits(const fv_image *image, const VkImageSubresourceRange *range);

#endif
