/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * tile.c - tiles of sparse images: see tile.h.
 */
#include "tests/support/vulkan/tile.h"

#include "tests/support/vulkan/command.h"
#include "tests/support/vulkan/table.h"

static uint32_t divide_up(uint32_t size, uint32_t by)
{
    return (size + by - 1) / by;
}

/* ---- where things are --------------------------------------------------------------------- */

/* Returns the standard shape of a tile for texels of this size. */
static VkExtent3D tile_shape(uint32_t texel_size, bool is_deep)
{
    static const VkExtent3D FLAT[] = {
        {256, 256, 1}, {256, 128, 1}, {128, 128, 1}, {128, 64, 1}, {64, 64, 1}};
    static const VkExtent3D DEEP[] = {
        {64, 32, 32}, {32, 32, 32}, {32, 32, 16}, {32, 16, 16}, {16, 16, 16}};
    uint32_t power = 0;
    while (power < 4 && texel_size > 1u << power)
        power++;
    return is_deep ? DEEP[power] : FLAT[power];
}

static VkExtent3D tiles_of(const fv_image *image, const fv_aspect *aspect, uint32_t level)
{
    const VkExtent3D *extent = &image->levels[level].extent, *tile = &aspect->tile;
    return (VkExtent3D){divide_up(extent->width, tile->width),
                        divide_up(extent->height, tile->height),
                        divide_up(extent->depth, tile->depth)};
}

static uint64_t end_of(const fv_image *image, const fv_aspect *aspect)
{
    return aspect->offset + aspect->layer_tiles * image->info.arrayLayers * FV_TILE +
           aspect->tail_size * aspect->tails;
}

/* Returns the size of a level: of color aspects in bytes of the layout, of other aspects, which
   have no contents, in texels. */
static uint64_t tail_bytes(const fv_image *image, const fv_aspect *aspect)
{
    uint64_t bytes = 0;
    if (aspect->aspect == VK_IMAGE_ASPECT_COLOR_BIT)
        return image->layer_pitch - image->levels[aspect->tiled_levels].offset;
    for (uint32_t level = aspect->tiled_levels; level < image->info.mipLevels; level++) {
        const VkExtent3D *extent = &image->levels[level].extent;
        bytes += (uint64_t)extent->width * extent->height * extent->depth * aspect->texel_size;
    }
    return bytes;
}

static void add_aspect(fv_image *image, VkImageAspectFlags which, uint32_t texel_size, bool single)
{
    uint32_t levels = image->info.mipLevels, level = 0, count = image->aspect_count++;
    fv_aspect *aspect = &image->aspects[count];
    *aspect = (fv_aspect){
        .aspect = which,
        .texel_size = texel_size * (uint32_t)image->info.samples,
        .offset = count ? end_of(image, aspect - 1) : 0,
    };
    aspect->tile = tile_shape(aspect->texel_size, image->info.imageType == VK_IMAGE_TYPE_3D);
    for (; level < levels; level++) {
        const VkExtent3D *extent = &image->levels[level].extent;
        if (extent->width < aspect->tile.width || extent->height < aspect->tile.height ||
            extent->depth < aspect->tile.depth)
            break;
        VkExtent3D tiles = tiles_of(image, aspect, level);
        aspect->first_tiles[level] = aspect->layer_tiles;
        aspect->layer_tiles += (uint64_t)tiles.width * tiles.height * tiles.depth;
    }
    aspect->tiled_levels = level;
    if (level == levels)
        return;
    uint64_t size = tail_bytes(image, aspect) * (single ? image->info.arrayLayers : 1);
    aspect->tail_size = (size + FV_TILE - 1) / FV_TILE * FV_TILE;
    aspect->tails = single ? 1 : image->info.arrayLayers;
}

void fv_tiles_lay_out(fv_image *image, uint32_t flags)
{
    const fv_format *format = &image->format;
    bool single = flags & FV_SINGLE_TAIL;
    if (format->channel_count)
        add_aspect(image, VK_IMAGE_ASPECT_COLOR_BIT, format->texel_size, single);
    if (format->depth_size)
        add_aspect(image, VK_IMAGE_ASPECT_DEPTH_BIT, format->depth_size, single);
    if (format->stencil_size)
        add_aspect(image, VK_IMAGE_ASPECT_STENCIL_BIT, format->stencil_size, single);
    if (!(flags & FV_METADATA))
        return;
    fv_aspect *metadata = &image->aspects[image->aspect_count++];
    *metadata = (fv_aspect){
        .aspect = VK_IMAGE_ASPECT_METADATA_BIT,
        .offset = end_of(image, metadata - 1),
        .tail_size = FV_TILE,
        .tails = image->info.arrayLayers,
    };
}

/* Returns the offset of a layer's tail. */
static uint64_t tail_offset(const fv_image *image, const fv_aspect *aspect, uint32_t layer)
{
    uint64_t first = aspect->offset + aspect->layer_tiles * image->info.arrayLayers * FV_TILE;
    if (aspect->tails == 1)
        return first + layer * tail_bytes(image, aspect);
    return first + layer * aspect->tail_size;
}

uint64_t fv_tiles_size(const fv_image *image)
{
    return end_of(image, &image->aspects[image->aspect_count - 1]);
}

bool fv_tiles_is_metadata(const fv_image *image, uint64_t offset)
{
    if (!image->aspect_count)
        return false;
    const fv_aspect *last = &image->aspects[image->aspect_count - 1];
    return last->aspect == VK_IMAGE_ASPECT_METADATA_BIT && offset >= last->offset;
}

const fv_aspect *fv_tiles_aspect(const fv_image *image, VkImageAspectFlags aspect)
{
    for (uint32_t i = 0; i < image->aspect_count; i++)
        if (image->aspects[i].aspect == aspect && aspect != VK_IMAGE_ASPECT_METADATA_BIT)
            return &image->aspects[i];
    return NULL;
}

uint64_t fv_tile_offset(const fv_image *image, const fv_aspect *aspect, uint32_t level,
                        uint32_t layer, uint32_t x, uint32_t y, uint32_t z)
{
    VkExtent3D tiles = tiles_of(image, aspect, level);
    return aspect->offset + (layer * aspect->layer_tiles + aspect->first_tiles[level] +
                             ((uint64_t)z * tiles.height + y) * tiles.width + x) *
                                FV_TILE;
}

VkSparseImageMemoryRequirements fv_tiles_told(const fv_image *image, uint32_t index)
{
    const fv_aspect *aspect = &image->aspects[index];
    bool single = aspect->tails == 1 && image->info.arrayLayers > 1;
    return (VkSparseImageMemoryRequirements){
        .formatProperties = {.aspectMask = aspect->aspect,
                             .imageGranularity = aspect->tile,
                             .flags = single ? VK_SPARSE_IMAGE_FORMAT_SINGLE_MIPTAIL_BIT : 0},
        .imageMipTailFirstLod = aspect->tiled_levels,
        .imageMipTailSize = aspect->tail_size,
        .imageMipTailOffset = tail_offset(image, aspect, 0),
        .imageMipTailStride = aspect->tail_size,
    };
}

/* ---- texels ------------------------------------------------------------------------------- */

static bool fits(const fv_image *image, const fv_texels *at)
{
    if (at->level >= image->info.mipLevels || at->layer >= image->info.arrayLayers)
        return false;
    const VkExtent3D *extent = &image->levels[at->level].extent;
    return at->z < extent->depth && at->y < extent->height && at->x <= extent->width &&
           at->count <= extent->width - at->x;
}

/* Returns the offset of the first texel, and how many texels are consecutive there. Only color is
   copied. */
static uint64_t find(const fv_image *image, const fv_texels *at, uint32_t *together)
{
    const fv_aspect *aspect = image->aspects;
    uint64_t texel = image->format.texel_size;
    *together = at->count;
    if (!image->aspect_count)
        return fv_row(image, at->level, at->layer, at->z, at->y) + at->x * texel;
    if (at->level >= aspect->tiled_levels)
        return tail_offset(image, aspect, at->layer) + fv_row(image, at->level, 0, at->z, at->y) -
               image->levels[aspect->tiled_levels].offset + at->x * texel;
    const VkExtent3D *tile = &aspect->tile;
    uint32_t x = at->x % tile->width, y = at->y % tile->height, z = at->z % tile->depth;
    *together = tile->width - x < at->count ? tile->width - x : at->count;
    return fv_tile_offset(image, aspect, at->level, at->layer, at->x / tile->width,
                          at->y / tile->height, at->z / tile->depth) +
           (((uint64_t)z * tile->height + y) * tile->width + x) * texel;
}

bool fv_texels_read(fv_image *image, fv_call call, fv_texels at, void *to)
{
    unsigned char *bytes = to;
    if (!fits(image, &at))
        return false;
    for (uint32_t together; at.count; at.x += together, at.count -= together) {
        uint64_t offset = find(image, &at, &together);
        uint64_t size = (uint64_t)together * image->format.texel_size;
        fv_read(&image->resource, call, offset, bytes, size);
        bytes += size;
    }
    return true;
}

bool fv_texels_write(fv_image *image, fv_call call, fv_texels at, const void *from)
{
    const unsigned char *bytes = from;
    if (!fits(image, &at))
        return false;
    for (uint32_t together; at.count; at.x += together, at.count -= together) {
        uint64_t offset = find(image, &at, &together);
        uint64_t size = (uint64_t)together * image->format.texel_size;
        fv_write(&image->resource, call, offset, bytes, size);
        bytes += size;
    }
    return true;
}

/* ---- the calls ---------------------------------------------------------------------------- */

/* Returns the number of aspects to report: all, or as many as the caller's array can hold. */
static uint32_t room_for(const fv_image *image, uint32_t *count, const void *list)
{
    uint32_t all = image ? image->aspect_count : 0;
    *count = list && *count < all ? *count : all;
    return list ? *count : 0;
}

void fv_vkGetImageSparseMemoryRequirements(VkDevice handle, VkImage image_handle, uint32_t *count,
                                           VkSparseImageMemoryRequirements *list)
{
    fv_device *device = (fv_device *)handle;
    (void)fv_enter(fv_driver_of(device), FV_CALL_vkGetImageSparseMemoryRequirements);
    const fv_image *image =
        FV_FIND(device, vkGetImageSparseMemoryRequirements, FV_IMAGE, image_handle);
    uint32_t told = room_for(image, count, list);
    for (uint32_t i = 0; i < told; i++)
        list[i] = fv_tiles_told(image, i);
    fv_leave(fv_driver_of(device));
}

void fv_vkGetImageSparseMemoryRequirements2(VkDevice handle,
                                            const VkImageSparseMemoryRequirementsInfo2 *info,
                                            uint32_t *count, VkSparseImageMemoryRequirements2 *list)
{
    fv_device *device = (fv_device *)handle;
    (void)fv_enter(fv_driver_of(device), FV_CALL_vkGetImageSparseMemoryRequirements2);
    const fv_image *image =
        FV_FIND(device, vkGetImageSparseMemoryRequirements2, FV_IMAGE, info->image);
    uint32_t told = room_for(image, count, list);
    for (uint32_t i = 0; i < told; i++)
        list[i].memoryRequirements = fv_tiles_told(image, i);
    fv_leave(fv_driver_of(device));
}
