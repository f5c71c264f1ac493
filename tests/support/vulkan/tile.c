/*
 * tile.c - see tile.h.
 */
#include "tests/support/vulkan/tile.h"

#include "tests/support/vulkan/command.h"
#include "tests/support/vulkan/table.h"

static uint32_t divide_up(uint32_t size, uint32_t by)
{
    return (size + by - 1) / by;
}

/* ---- where things are --------------------------------------------------------------------- */

VkExtent3D fv_tile_shape(uint32_t texel_size, bool is_deep)
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

VkExtent3D fv_tiles_of(const fv_image *image, uint32_t level)
{
    const VkExtent3D *extent = &image->levels[level].extent, *tile = &image->tile;
    return (VkExtent3D){divide_up(extent->width, tile->width),
                        divide_up(extent->height, tile->height),
                        divide_up(extent->depth, tile->depth)};
}

void fv_tiles_lay_out(fv_image *image)
{
    uint32_t levels = image->info.mipLevels, level = 0;
    image->tile =
        fv_tile_shape(image->format.texel_size, image->info.imageType == VK_IMAGE_TYPE_3D);
    for (; level < levels; level++) {
        const VkExtent3D *extent = &image->levels[level].extent;
        if (extent->width < image->tile.width || extent->height < image->tile.height ||
            extent->depth < image->tile.depth)
            break;
        VkExtent3D tiles = fv_tiles_of(image, level);
        image->first_tiles[level] = image->layer_tiles;
        image->layer_tiles += (uint64_t)tiles.width * tiles.height * tiles.depth;
    }
    image->tiled_levels = level;
    image->tail_size =
        level < levels
            ? (image->layer_pitch - image->levels[level].offset + FV_TILE - 1) / FV_TILE * FV_TILE
            : 0;
}

static uint64_t tail_offset(const fv_image *image, uint32_t layer)
{
    return image->layer_tiles * image->info.arrayLayers * FV_TILE + layer * image->tail_size;
}

uint64_t fv_tiles_size(const fv_image *image)
{
    return tail_offset(image, image->info.arrayLayers);
}

uint64_t fv_tile_offset(const fv_image *image, uint32_t level, uint32_t layer, uint32_t x,
                        uint32_t y, uint32_t z)
{
    VkExtent3D tiles = fv_tiles_of(image, level);
    return (layer * image->layer_tiles + image->first_tiles[level] +
            ((uint64_t)z * tiles.height + y) * tiles.width + x) *
           FV_TILE;
}

VkSparseImageMemoryRequirements fv_tiles_told(const fv_image *image)
{
    return (VkSparseImageMemoryRequirements){
        .formatProperties = {.aspectMask = VK_IMAGE_ASPECT_COLOR_BIT,
                             .imageGranularity = image->tile},
        .imageMipTailFirstLod = image->tiled_levels,
        .imageMipTailSize = image->tail_size,
        .imageMipTailOffset = tail_offset(image, 0),
        .imageMipTailStride = image->tail_size,
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

/* Where the first of them lies, and how many follow it there. */
static uint64_t find(const fv_image *image, const fv_texels *at, uint32_t *together)
{
    uint64_t texel = image->format.texel_size;
    *together = at->count;
    if (!image->tile.width)
        return fv_row(image, at->level, at->layer, at->z, at->y) + at->x * texel;
    if (at->level >= image->tiled_levels)
        return tail_offset(image, at->layer) + fv_row(image, at->level, 0, at->z, at->y) -
               image->levels[image->tiled_levels].offset + at->x * texel;
    const VkExtent3D *tile = &image->tile;
    uint32_t x = at->x % tile->width, y = at->y % tile->height, z = at->z % tile->depth;
    *together = tile->width - x < at->count ? tile->width - x : at->count;
    return fv_tile_offset(image, at->level, at->layer, at->x / tile->width, at->y / tile->height,
                          at->z / tile->depth) +
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

/* How many there are, of which as many are told as there is room for. */
static bool has_room(const fv_image *image, uint32_t *count, const void *list)
{
    uint32_t all = image && image->tile.width ? 1 : 0;
    bool is_told = all && list && *count;
    *count = list && *count < all ? *count : all;
    return is_told;
}

void fv_vkGetImageSparseMemoryRequirements(VkDevice handle, VkImage image_handle, uint32_t *count,
                                           VkSparseImageMemoryRequirements *list)
{
    fv_device *device = (fv_device *)handle;
    (void)fv_enter(fv_driver_of(device), FV_CALL_vkGetImageSparseMemoryRequirements);
    const fv_image *image =
        FV_FIND(device, vkGetImageSparseMemoryRequirements, FV_IMAGE, image_handle);
    if (has_room(image, count, list))
        list[0] = fv_tiles_told(image);
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
    if (has_room(image, count, list))
        list[0].memoryRequirements = fv_tiles_told(image);
    fv_leave(fv_driver_of(device));
}

void fv_vkGetDeviceImageSparseMemoryRequirements(VkDevice handle,
                                                 const VkDeviceImageMemoryRequirements *info,
                                                 uint32_t *count,
                                                 VkSparseImageMemoryRequirements2 *list)
{
    fv_device *device = (fv_device *)handle;
    fv_image described = {0};
    (void)fv_enter(fv_driver_of(device), FV_CALL_vkGetDeviceImageSparseMemoryRequirements);
    if (fv_image_describe(device, info->pCreateInfo, &described))
        described.tile.width = 0;
    if (has_room(&described, count, list))
        list[0].memoryRequirements = fv_tiles_told(&described);
    fv_leave(fv_driver_of(device));
}
