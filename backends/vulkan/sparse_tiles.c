/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * sparse_tiles.c - maps blocks of an image with residency to texels and back.
 *
 * The blocks are numbered aspect by aspect. In each aspect the tiles come first, ordered by layer,
 * then level, then z, y and x; the mip tails follow.
 */
#include "backends/vulkan/sparse.h"
#include "src/base/result.h"

/* ---- extents ------------------------------------------------------------------------------ */

/* Returns the size of a level in one direction. */
static uint32_t shrink(uint32_t size, uint32_t level)
{
    return size >> level ? size >> level : 1;
}

static VkExtent3D level_extent(const qi_vulkan_tiles *t, uint32_t level)
{
    return (VkExtent3D){shrink(t->extent.width, level), shrink(t->extent.height, level),
                        shrink(t->extent.depth, level)};
}

static uint32_t min_of(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t divide_up(uint32_t size, uint32_t by)
{
    return size / by + (size % by != 0);
}

/* Returns the number of tiles of a level in each direction. */
static VkExtent3D level_tiles(const qi_vulkan_tiles *t, const qi_vulkan_aspect *a, uint32_t level)
{
    VkExtent3D extent = level_extent(t, level);
    return (VkExtent3D){divide_up(extent.width, a->tile.width),
                        divide_up(extent.height, a->tile.height),
                        divide_up(extent.depth, a->tile.depth)};
}

/* Returns the number of tiles of a level of one layer. */
static uint64_t count_tiles(const qi_vulkan_tiles *t, const qi_vulkan_aspect *a, uint32_t level)
{
    VkExtent3D tiles = level_tiles(t, a, level);
    return (uint64_t)tiles.width * tiles.height * tiles.depth;
}

/* Return the first block of an aspect's tails, and the block after its last one. */
static uint64_t first_of_tails(const qi_vulkan_tiles *t, const qi_vulkan_aspect *a)
{
    return a->first + a->of_layer * t->layers;
}

static uint64_t end_of(const qi_vulkan_tiles *t, const qi_vulkan_aspect *a)
{
    return first_of_tails(t, a) + a->tail_blocks * a->tails;
}

uint64_t qi_vulkan_tiles_count(const qi_vulkan_tiles *t)
{
    return end_of(t, &t->aspects[t->count - 1]);
}

/* ---- the query ---------------------------------------------------------------------------- */

/* One element more than the maximum, so that one call both lists the aspects and detects that an
   image has too many. */
enum { CAPACITY = QUIRE_VULKAN_MAX_ASPECTS + 1 };

static uint32_t query(const qi_vulkan *vulkan, VkImage image,
                      VkSparseImageMemoryRequirements2 *reported)
{
    const VkImageSparseMemoryRequirementsInfo2 info = {
        .sType = VK_STRUCTURE_TYPE_IMAGE_SPARSE_MEMORY_REQUIREMENTS_INFO_2, .image = image};
    uint32_t count = CAPACITY;
    for (int i = 0; i < CAPACITY; i++)
        reported[i] = (VkSparseImageMemoryRequirements2){
            .sType = VK_STRUCTURE_TYPE_SPARSE_IMAGE_MEMORY_REQUIREMENTS_2};
    vulkan->f.GetImageSparseMemoryRequirements2(vulkan->device, &info, &count, reported);
    return count;
}

/* Adds an aspect. Vulkan reports metadata as a tail of all levels, without tiles. */
static quire_result add_aspect(qi_vulkan_tiles *t, const VkSparseImageMemoryRequirements *reported,
                               uint64_t block)
{
    const VkSparseImageFormatProperties *format = &reported->formatProperties;
    const VkExtent3D *tile = &format->imageGranularity;
    bool is_single = format->flags & VK_SPARSE_IMAGE_FORMAT_SINGLE_MIPTAIL_BIT;
    bool has_tiles = !(format->aspectMask & VK_IMAGE_ASPECT_METADATA_BIT);
    bool has_tail = reported->imageMipTailSize > 0 && reported->imageMipTailFirstLod < t->levels;
    uint32_t tiled = min_of(reported->imageMipTailFirstLod, t->levels);
    if ((has_tiles && (!tile->width || !tile->height || !tile->depth)) ||
        reported->imageMipTailSize % block)
        return qi_fail_with(QUIRE_ERROR_BACKEND_FAILURE,
                            "the driver reports tiles of %u x %u x %u texels and a mip tail of %u "
                            "bytes",
                            tile->width, tile->height, tile->depth, reported->imageMipTailSize);
    qi_vulkan_aspect *a = &t->aspects[t->count];
    *a = (qi_vulkan_aspect){
        .aspect = format->aspectMask,
        .tile = has_tiles ? *tile : (VkExtent3D){0},
        .levels = has_tiles ? tiled : 0,
        .tails = !has_tail   ? 0
                 : is_single ? 1
                             : t->layers,
        .tail_blocks = has_tail ? reported->imageMipTailSize / block : 0,
        .tail_offset = reported->imageMipTailOffset,
        .tail_stride = reported->imageMipTailStride,
        .first = t->count ? qi_vulkan_tiles_count(t) : 0,
    };
    for (uint32_t level = 0; level < a->levels; level++)
        a->of_layer += count_tiles(t, a, level);
    t->count++;
    return QUIRE_SUCCESS;
}

quire_result qi_vulkan_tiles_read(const qi_vulkan *vulkan, VkImage image,
                                  const VkImageCreateInfo *info, uint64_t block,
                                  qi_vulkan_tiles *tiles)
{
    VkSparseImageMemoryRequirements2 reported[CAPACITY];
    uint32_t count = query(vulkan, image, reported);
    if (!count || count >= CAPACITY)
        return qi_fail_with(QUIRE_ERROR_UNSUPPORTED,
                            "a sparse image with %u aspect%s: 1 to %u are supported", count,
                            QUIRE_VULKAN_MAX_ASPECTS);
    *tiles = (qi_vulkan_tiles){
        .extent = info->extent,
        .layers = info->arrayLayers,
        .levels = info->mipLevels,
    };
    quire_result result = QUIRE_SUCCESS;
    for (uint32_t i = 0; i < count && !result; i++)
        result = add_aspect(tiles, &reported[i].memoryRequirements, block);
    return result;
}

/* ---- from blocks to texels ---------------------------------------------------------------- */

/* Describes a block of a tail; `block` counts from the first block of the aspect's tails. */
static qi_vulkan_tile tail_at(const qi_vulkan_tiles *t, const qi_vulkan_aspect *a, uint64_t block,
                              uint64_t block_size)
{
    uint64_t tail = block / a->tail_blocks;
    return (qi_vulkan_tile){
        .aspect = a->aspect,
        .is_tail = true,
        .level = a->levels,
        .layer = (uint32_t)tail,
        .extent = level_extent(t, a->levels),
        .resource_offset =
            a->tail_offset + tail * a->tail_stride + block % a->tail_blocks * block_size,
    };
}

/* Linear search over aspects and levels: an image has few of both. */
qi_vulkan_tile qi_vulkan_tiles_at(const qi_vulkan_tiles *t, uint64_t block, uint64_t block_size)
{
    const qi_vulkan_aspect *a = t->aspects;
    while (block >= end_of(t, a))
        a++;
    if (block >= first_of_tails(t, a))
        return tail_at(t, a, block - first_of_tails(t, a), block_size);
    uint64_t left = block - a->first;
    qi_vulkan_tile out = {.aspect = a->aspect, .layer = (uint32_t)(left / a->of_layer)};
    left %= a->of_layer;
    while (left >= count_tiles(t, a, out.level))
        left -= count_tiles(t, a, out.level++);
    VkExtent3D tiles = level_tiles(t, a, out.level), whole = level_extent(t, out.level);
    uint32_t x = (uint32_t)(left % tiles.width) * a->tile.width;
    uint32_t y = (uint32_t)(left / tiles.width % tiles.height) * a->tile.height;
    uint32_t z = (uint32_t)(left / tiles.width / tiles.height) * a->tile.depth;
    out.offset = (VkOffset3D){(int32_t)x, (int32_t)y, (int32_t)z};
    out.extent = (VkExtent3D){min_of(a->tile.width, whole.width - x),
                              min_of(a->tile.height, whole.height - y),
                              min_of(a->tile.depth, whole.depth - z)};
    return out;
}

/* ---- from texels to blocks ---------------------------------------------------------------- */

/* A region in one direction, in tiles. */
typedef struct span {
    uint32_t first, count;
} span;

/* Converts texels to tiles in one direction. Size 0 means the rest of the level. Both ends are at a
   tile boundary, or the end is that of the level. */
static quire_result find_span(int32_t offset, uint32_t size, uint32_t whole, uint32_t tile,
                              span *out)
{
    uint32_t begin = (uint32_t)offset;
    if (offset < 0 || begin >= whole || size > whole - begin)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE,
                            "a region of %u texels from texel %u: the level has %u", size, begin,
                            whole);
    uint32_t end = size ? begin + size : whole;
    if (begin % tile || (end % tile && end != whole))
        return qi_fail_with(
            QUIRE_ERROR_INVALID_ARGUMENT,
            "a region from texel %u to %u does not consist of whole blocks of %u texels", begin,
            end, tile);
    *out = (span){begin / tile, divide_up(end, tile) - begin / tile};
    return QUIRE_SUCCESS;
}

/* Returns the box of a tail. All levels of a tail are bound together. */
static qi_vulkan_box tail_box(const qi_vulkan_tiles *t, const qi_vulkan_aspect *a, uint32_t layer)
{
    uint32_t tail = a->tails == 1 ? 0 : layer;
    return (qi_vulkan_box){
        .first = first_of_tails(t, a) + tail * a->tail_blocks,
        .blocks = a->tail_blocks,
        .rows = 1,
        .slices = 1,
    };
}

/* Finds the blocks of a region in one aspect. In a tail the region may be any part of a level. */
static quire_result find_box(const qi_vulkan_tiles *t, const qi_vulkan_aspect *a,
                             const quire_vulkan_region *region, qi_vulkan_box *box)
{
    bool is_tail = region->level >= a->levels;
    VkExtent3D whole = level_extent(t, region->level);
    VkExtent3D tile = is_tail ? (VkExtent3D){1, 1, 1} : a->tile;
    span x, y, z;
    quire_result result =
        find_span(region->offset.x, region->extent.width, whole.width, tile.width, &x);
    if (!result)
        result = find_span(region->offset.y, region->extent.height, whole.height, tile.height, &y);
    if (!result)
        result = find_span(region->offset.z, region->extent.depth, whole.depth, tile.depth, &z);
    if (result)
        return result;
    if (is_tail) {
        *box = tail_box(t, a, region->layer);
        return QUIRE_SUCCESS;
    }
    VkExtent3D tiles = level_tiles(t, a, region->level);
    uint64_t first = a->first + a->of_layer * region->layer;
    for (uint32_t level = 0; level < region->level; level++)
        first += count_tiles(t, a, level);
    uint64_t slice = (uint64_t)tiles.width * tiles.height;
    *box = (qi_vulkan_box){
        .first = first + z.first * slice + (uint64_t)y.first * tiles.width + x.first,
        .blocks = x.count,
        .rows = y.count,
        .row_stride = tiles.width,
        .slices = z.count,
        .slice_stride = slice,
    };
    return QUIRE_SUCCESS;
}

quire_result qi_vulkan_tiles_find(const qi_vulkan_tiles *t, const quire_vulkan_region *region,
                                  qi_vulkan_boxes *boxes)
{
    VkImageAspectFlags missing = region->aspect;
    *boxes = (qi_vulkan_boxes){.count = 0};
    if (region->level >= t->levels || region->layer >= t->layers)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE,
                            "level %u, layer %u: the image has %u level%s and %u layer%s",
                            region->level, region->layer, t->levels, t->layers);
    for (uint32_t i = 0; i < t->count; i++) {
        const qi_vulkan_aspect *a = &t->aspects[i];
        missing &= ~a->aspect;
        if (region->aspect && !(region->aspect & a->aspect))
            continue;
        quire_result result = find_box(t, a, region, &boxes->all[boxes->count++]);
        if (result)
            return result;
    }
    return missing ? qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                                  "a region of aspects %x: the image does not have %x",
                                  (uint64_t)region->aspect, (uint64_t)missing)
                   : QUIRE_SUCCESS;
}
