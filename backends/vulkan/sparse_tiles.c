/*
 * sparse_tiles.c - which block of a line of blocks is which part of an image with residency.
 */
#include "backends/vulkan/sparse.h"
#include "src/base/result.h"

/* One of color or one of depth; a second is of stencil, or a driver's own. */
enum { MOST_ASPECTS = 4 };

/* ---- extents ------------------------------------------------------------------------------ */

static uint32_t shrink(uint32_t size, uint32_t level)
{
    return size >> level ? size >> level : 1;
}

static VkExtent3D level_extent(const qi_vulkan_tiles *t, uint32_t level)
{
    return (VkExtent3D){shrink(t->extent.width, level), shrink(t->extent.height, level),
                        shrink(t->extent.depth, level)};
}

static uint32_t divide_up(uint32_t size, uint32_t by)
{
    return size / by + (size % by != 0);
}

/* A level's tiles in each direction. */
static VkExtent3D level_tiles(const qi_vulkan_tiles *t, uint32_t level)
{
    VkExtent3D extent = level_extent(t, level);
    return (VkExtent3D){divide_up(extent.width, t->tile.width),
                        divide_up(extent.height, t->tile.height),
                        divide_up(extent.depth, t->tile.depth)};
}

static uint64_t count_tiles(const qi_vulkan_tiles *t, uint32_t level)
{
    VkExtent3D tiles = level_tiles(t, level);
    return (uint64_t)tiles.width * tiles.height * tiles.depth;
}

uint64_t qi_vulkan_tiles_count(const qi_vulkan_tiles *t)
{
    return t->of_layer * t->layers + t->tail_blocks * t->tails;
}

/* ---- asking ------------------------------------------------------------------------------- */

static quire_result ask(const qi_vulkan *vulkan, VkImage image,
                        VkSparseImageMemoryRequirements *out)
{
    const VkImageSparseMemoryRequirementsInfo2 info = {
        .sType = VK_STRUCTURE_TYPE_IMAGE_SPARSE_MEMORY_REQUIREMENTS_INFO_2, .image = image};
    VkSparseImageMemoryRequirements2 told[MOST_ASPECTS];
    uint32_t count = MOST_ASPECTS;
    for (int i = 0; i < MOST_ASPECTS; i++)
        told[i] = (VkSparseImageMemoryRequirements2){
            .sType = VK_STRUCTURE_TYPE_SPARSE_IMAGE_MEMORY_REQUIREMENTS_2};
    vulkan->f.GetImageSparseMemoryRequirements2(vulkan->device, &info, &count, told);
    if (count != 1)
        return qi_fail_with(QUIRE_ERROR_UNSUPPORTED,
                            "a sparse image with residency of %u aspects: one is supported", count);
    *out = told[0].memoryRequirements;
    return QUIRE_SUCCESS;
}

static quire_result refuse_samples(const VkImageCreateInfo *info)
{
    return info->samples == VK_SAMPLE_COUNT_1_BIT
               ? QUIRE_SUCCESS
               : qi_fail_with(QUIRE_ERROR_UNSUPPORTED,
                              "a sparse image with residency of %u samples: 1 is supported",
                              (uint64_t)info->samples);
}

quire_result qi_vulkan_tiles_read(const qi_vulkan *vulkan, VkImage image,
                                  const VkImageCreateInfo *info, uint64_t block,
                                  qi_vulkan_tiles *tiles)
{
    VkSparseImageMemoryRequirements told = {.imageMipTailSize = 0};
    quire_result result = refuse_samples(info);
    if (!result)
        result = ask(vulkan, image, &told);
    if (result)
        return result;
    const VkSparseImageFormatProperties *format = &told.formatProperties;
    bool has_tail = told.imageMipTailFirstLod < info->mipLevels;
    bool is_single = format->flags & VK_SPARSE_IMAGE_FORMAT_SINGLE_MIPTAIL_BIT;
    *tiles = (qi_vulkan_tiles){
        .tile = format->imageGranularity,
        .extent = info->extent,
        .aspect = format->aspectMask,
        .layers = info->arrayLayers,
        .levels = has_tail ? told.imageMipTailFirstLod : info->mipLevels,
        .all_levels = info->mipLevels,
        .tails = !has_tail   ? 0
                 : is_single ? 1
                             : info->arrayLayers,
        .tail_blocks = has_tail ? told.imageMipTailSize / block : 0,
        .tail_offset = told.imageMipTailOffset,
        .tail_stride = told.imageMipTailStride,
    };
    for (uint32_t level = 0; level < tiles->levels; level++)
        tiles->of_layer += count_tiles(tiles, level);
    return QUIRE_SUCCESS;
}

/* ---- from block to texels ----------------------------------------------------------------- */

static qi_vulkan_tile tail_at(const qi_vulkan_tiles *t, uint64_t block, uint64_t block_size)
{
    uint64_t tail = block / t->tail_blocks;
    return (qi_vulkan_tile){
        .is_tail = true,
        .level = t->levels,
        .layer = (uint32_t)tail,
        .extent = level_extent(t, t->levels),
        .resource_offset =
            t->tail_offset + tail * t->tail_stride + block % t->tail_blocks * block_size,
    };
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

qi_vulkan_tile qi_vulkan_tiles_at(const qi_vulkan_tiles *t, uint64_t block, uint64_t block_size)
{
    if (block >= t->of_layer * t->layers)
        return tail_at(t, block - t->of_layer * t->layers, block_size);
    qi_vulkan_tile out = {.layer = (uint32_t)(block / t->of_layer)};
    uint64_t left = block % t->of_layer;
    while (left >= count_tiles(t, out.level))
        left -= count_tiles(t, out.level++);
    VkExtent3D tiles = level_tiles(t, out.level), whole = level_extent(t, out.level);
    uint32_t x = (uint32_t)(left % tiles.width) * t->tile.width;
    uint32_t y = (uint32_t)(left / tiles.width % tiles.height) * t->tile.height;
    uint32_t z = (uint32_t)(left / tiles.width / tiles.height) * t->tile.depth;
    out.offset = (VkOffset3D){(int32_t)x, (int32_t)y, (int32_t)z};
    out.extent =
        (VkExtent3D){least(t->tile.width, whole.width - x), least(t->tile.height, whole.height - y),
                     least(t->tile.depth, whole.depth - z)};
    return out;
}

/* ---- from texels to blocks ---------------------------------------------------------------- */

/* One direction of a region, in texels and then in tiles. */
typedef struct span {
    uint32_t first, count;
} span;

static quire_result find_span(int32_t offset, uint32_t size, uint32_t whole, uint32_t tile,
                              span *out)
{
    uint32_t begin = (uint32_t)offset;
    if (offset < 0 || begin >= whole || size > whole - begin)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE,
                            "a region of %u texels from texel %u on: the level has %u", size, begin,
                            whole);
    uint32_t end = size ? begin + size : whole;
    if (begin % tile || (end % tile && end != whole))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "a region from texel %u to %u: its blocks are %u texels wide", begin,
                            end, tile);
    *out = (span){begin / tile, divide_up(end, tile) - begin / tile};
    return QUIRE_SUCCESS;
}

/* The levels of a tail are bound together. */
static qi_vulkan_box tail_box(const qi_vulkan_tiles *t, uint32_t layer)
{
    uint32_t tail = t->tails == 1 ? 0 : layer;
    return (qi_vulkan_box){
        .first = t->of_layer * t->layers + tail * t->tail_blocks,
        .blocks = t->tail_blocks,
        .rows = 1,
        .slices = 1,
    };
}

quire_result qi_vulkan_tiles_find(const qi_vulkan_tiles *t, const quire_vulkan_region *region,
                                  qi_vulkan_box *box)
{
    if (region->level >= t->all_levels || region->layer >= t->layers)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE,
                            "level %u of layer %u: the image has %u levels and %u layers",
                            region->level, region->layer, t->all_levels, t->layers);
    bool is_tail = region->level >= t->levels;
    VkExtent3D whole = level_extent(t, region->level);
    VkExtent3D tile = is_tail ? (VkExtent3D){1, 1, 1} : t->tile;
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
        *box = tail_box(t, region->layer);
        return QUIRE_SUCCESS;
    }
    VkExtent3D tiles = level_tiles(t, region->level);
    uint64_t first = t->of_layer * region->layer;
    for (uint32_t level = 0; level < region->level; level++)
        first += count_tiles(t, level);
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
