/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * image.c - images of the fake driver: see image.h.
 */
#include "tests/support/vulkan/image.h"

#include <stdlib.h>

#include "tests/support/vulkan/table.h"
#include "tests/support/vulkan/tile.h"

#define LINEAR_ALIGNMENT 64
#define OPTIMAL_ALIGNMENT 256
#define TILE_ROW_BYTES 64
#define TILE_ROWS 4

static uint64_t round_up(uint64_t value, uint64_t alignment)
{
    return (value + alignment - 1) / alignment * alignment;
}

static uint32_t halved(uint32_t size, uint32_t times)
{
    return size >> times ? size >> times : 1;
}

/* ---- what it needs ------------------------------------------------------------------------ */

static void lay_out(const fv_layout *layout, fv_image *image)
{
    bool linear = image->resource.linear;
    uint64_t rows_to = linear ? layout->copy_alignment : TILE_ROW_BYTES, offset = 0;
    for (uint32_t i = 0; i < image->info.mipLevels; i++) {
        fv_level *level = &image->levels[i];
        level->extent =
            (VkExtent3D){halved(image->info.extent.width, i), halved(image->info.extent.height, i),
                         halved(image->info.extent.depth, i)};
        level->offset = offset;
        level->row_pitch =
            round_up((uint64_t)level->extent.width * image->format.texel_size, rows_to);
        level->slice_pitch =
            level->row_pitch *
            (linear ? level->extent.height : round_up(level->extent.height, TILE_ROWS));
        level->size = level->slice_pitch * level->extent.depth;
        offset += round_up(level->size, linear ? 1 : OPTIMAL_ALIGNMENT);
    }
    image->layer_pitch = offset;
}

static bool is_transient(const VkImageCreateInfo *info)
{
    return info->usage & VK_IMAGE_USAGE_TRANSIENT_ATTACHMENT_BIT;
}

static VkExternalMemoryHandleTypeFlags external_of(const VkImageCreateInfo *info)
{
    const VkExternalMemoryImageCreateInfo *external =
        fv_chained(info->pNext, VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_IMAGE_CREATE_INFO);
    return external ? external->handleTypes : 0;
}

/* Returns how the image exceeds what the device supports. NULL: it does not. */
static const char *unfit(const fv_device *device, const VkImageCreateInfo *info)
{
    VkImageFormatProperties most;
    VkPhysicalDeviceImageFormatInfo2 asked = {.format = info->format,
                                              .type = info->imageType,
                                              .tiling = info->tiling,
                                              .usage = info->usage,
                                              .flags = info->flags};
    if (fv_image_limits(device->physical, &asked, &most))
        return "format, usage, tiling and flags do not go together";
    if (info->extent.width > most.maxExtent.width || info->extent.height > most.maxExtent.height ||
        info->extent.depth > most.maxExtent.depth)
        return "it is too large";
    if (!info->extent.width || !info->extent.height || !info->extent.depth)
        return "it has no texels";
    if (!info->mipLevels || info->mipLevels > most.maxMipLevels)
        return "the number of levels is wrong";
    if (!info->arrayLayers || info->arrayLayers > most.maxArrayLayers)
        return "the number of layers is wrong";
    if (!(info->samples & most.sampleCounts))
        return "the number of samples is wrong";
    return NULL;
}

VkResult fv_image_describe(fv_device *device, const VkImageCreateInfo *info, fv_image *image)
{
    const fv_layout *layout = fv_layout_of(device);
    fv_resource *resource = &image->resource;
    if (unfit(device, info) || !fv_format_of(info->format, &image->format))
        return VK_ERROR_OUT_OF_DEVICE_MEMORY;
    image->info = *info;
    image->info.pNext = NULL;
    image->info.pQueueFamilyIndices = NULL;
    resource->linear = info->tiling == VK_IMAGE_TILING_LINEAR;
    resource->alias = info->flags & VK_IMAGE_CREATE_ALIAS_BIT;
    resource->sparse = info->flags & VK_IMAGE_CREATE_SPARSE_BINDING_BIT;
    resource->guarded = info->flags & VK_IMAGE_CREATE_PROTECTED_BIT;
    resource->external = external_of(info);
    lay_out(layout, image);
    if (info->flags & VK_IMAGE_CREATE_SPARSE_RESIDENCY_BIT)
        fv_tiles_lay_out(image, fv_driver_of(device)->options.flags);
    uint64_t alignment = resource->linear ? LINEAR_ALIGNMENT : OPTIMAL_ALIGNMENT;
    alignment = resource->sparse ? FV_TILE : alignment;
    resource->needs = (VkMemoryRequirements){
        .size = image->aspect_count ? fv_tiles_size(image)
                                    : round_up(image->layer_pitch * info->arrayLayers, alignment),
        .alignment = alignment,
        .memoryTypeBits = fv_types_for(layout, is_transient(info), resource->guarded)};
    if (!resource->sparse)
        fv_be_awkward(device, true, resource->external, resource);
    return VK_SUCCESS;
}

/* ---- creating and destroying -------------------------------------------------------------- */

static void check(fv_device *device, const VkImageCreateInfo *info)
{
    fv_driver *driver = fv_driver_of(device);
    const char *why = unfit(device, info);
    FV_CHECK_CHAIN(driver, vkCreateImage, info->pNext,
                   VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_IMAGE_CREATE_INFO,
                   VK_STRUCTURE_TYPE_IMAGE_FORMAT_LIST_CREATE_INFO);
    if (why)
        FV_WRONG(driver, "VUID-VkImageCreateInfo-imageCreateMaxMipLevels-02251", vkCreateImage,
                 "format %d: %s", (int)info->format, why);
    if (!info->usage)
        FV_WRONG(driver, "VUID-VkImageCreateInfo-usage-requiredbitmask", vkCreateImage, "no usage");
    fv_check_handle_types(device, FV_CALL_vkCreateImage, external_of(info));
    if (external_of(info) && info->initialLayout != VK_IMAGE_LAYOUT_UNDEFINED)
        FV_WRONG(driver, "VUID-VkImageCreateInfo-pNext-01443", vkCreateImage,
                 "an image for external memory with initial layout %d", (int)info->initialLayout);
    if (info->initialLayout != VK_IMAGE_LAYOUT_UNDEFINED &&
        info->initialLayout != VK_IMAGE_LAYOUT_PREINITIALIZED)
        FV_WRONG(driver, "VUID-VkImageCreateInfo-initialLayout-00993", vkCreateImage,
                 "initial layout %d", (int)info->initialLayout);
    if (info->flags & VK_IMAGE_CREATE_PROTECTED_BIT && !(device->features & FV_PROTECTED))
        FV_WRONG(driver, "VUID-VkImageCreateInfo-flags-01890", vkCreateImage,
                 "protected without the feature");
    if (info->flags & VK_IMAGE_CREATE_SPARSE_BINDING_BIT && !(device->features & FV_SPARSE_BINDING))
        FV_WRONG(driver, "VUID-VkImageCreateInfo-flags-00969", vkCreateImage,
                 "sparse without the feature");
    if (info->flags & VK_IMAGE_CREATE_SPARSE_RESIDENCY_BIT && !(device->features & FV_SPARSE_IMAGE))
        FV_WRONG(driver, "VUID-VkImageCreateInfo-imageType-00971", vkCreateImage,
                 "sparse residency without the feature");
    if (info->samples != VK_SAMPLE_COUNT_1_BIT && !(device->features & FV_SPARSE_SAMPLES))
        FV_WRONG(driver, "VUID-VkImageCreateInfo-imageType-00974", vkCreateImage,
                 "sparse residency of %d samples without the feature", (int)info->samples);
}

static fv_image *keep(fv_device *device, const fv_image *described)
{
    fv_image *image = fv_object_new(fv_driver_of(device), device, FV_IMAGE, sizeof *image);
    fv_object head = image->resource.object;
    uint32_t count = described->info.mipLevels * described->info.arrayLayers;
    *image = *described;
    image->resource.object = head;
    image->layouts = calloc(count, sizeof *image->layouts);
    if (!image->layouts)
        abort();
    for (uint32_t i = 0; i < count; i++)
        image->layouts[i] = described->info.initialLayout;
    return image;
}

VkResult fv_vkCreateImage(VkDevice handle, const VkImageCreateInfo *info,
                          const VkAllocationCallbacks *callbacks, VkImage *out)
{
    fv_device *device = (fv_device *)handle;
    fv_driver *driver = fv_driver_of(device);
    fv_image described = {0};
    (void)callbacks;
    VkResult result = fv_enter(driver, FV_CALL_vkCreateImage);
    if (!result) {
        check(device, info);
        result = fv_image_describe(device, info, &described);
    }
    *out = result ? (VkImage)FV_GARBAGE
                  : FV_HANDLE(VkImage, &keep(device, &described)->resource.object);
    fv_leave(driver);
    return result;
}

void fv_vkDestroyImage(VkDevice device, VkImage image, const VkAllocationCallbacks *callbacks)
{
    (void)callbacks;
    fv_resource_destroy((fv_device *)device, FV_CALL_vkDestroyImage, FV_IMAGE, (uint64_t)image);
}

/* ---- requirements ------------------------------------------------------------------------- */

void fv_vkGetImageMemoryRequirements(VkDevice device, VkImage image, VkMemoryRequirements *out)
{
    VkMemoryRequirements2 all = {.sType = VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2};
    fv_requirements_of((fv_device *)device, FV_CALL_vkGetImageMemoryRequirements, FV_IMAGE,
                       (uint64_t)image, &all);
    *out = all.memoryRequirements;
}

void fv_vkGetImageMemoryRequirements2(VkDevice device, const VkImageMemoryRequirementsInfo2 *info,
                                      VkMemoryRequirements2 *out)
{
    fv_requirements_of((fv_device *)device, FV_CALL_vkGetImageMemoryRequirements2, FV_IMAGE,
                       (uint64_t)info->image, out);
}

void fv_vkGetDeviceImageMemoryRequirements(VkDevice handle,
                                           const VkDeviceImageMemoryRequirements *info,
                                           VkMemoryRequirements2 *out)
{
    fv_device *device = (fv_device *)handle;
    fv_image described = {0};
    (void)fv_enter(fv_driver_of(device), FV_CALL_vkGetDeviceImageMemoryRequirements);
    device->asked_ahead = true;
    if (!(device->features & FV_MAINTENANCE4))
        FV_WRONG(fv_driver_of(device), "fv-feature", vkGetDeviceImageMemoryRequirements,
                 "without the feature maintenance4");
    if (fv_image_describe(device, info->pCreateInfo, &described))
        FV_WRONG(fv_driver_of(device), "VUID-VkImageCreateInfo-imageCreateMaxMipLevels-02251",
                 vkGetDeviceImageMemoryRequirements, "there can be no such image");
    fv_tell_requirements(&described.resource, out);
    fv_leave(fv_driver_of(device));
}

static bool has_aspect(const fv_image *image, VkImageAspectFlags aspect)
{
    bool is_depth = image->info.format >= VK_FORMAT_D16_UNORM &&
                    image->info.format <= VK_FORMAT_D32_SFLOAT_S8_UINT;
    return is_depth ? aspect == VK_IMAGE_ASPECT_DEPTH_BIT || aspect == VK_IMAGE_ASPECT_STENCIL_BIT
                    : aspect == VK_IMAGE_ASPECT_COLOR_BIT;
}

void fv_vkGetImageSubresourceLayout(VkDevice handle, VkImage image_handle,
                                    const VkImageSubresource *part, VkSubresourceLayout *out)
{
    fv_device *device = (fv_device *)handle;
    fv_driver *driver = fv_driver_of(device);
    (void)fv_enter(driver, FV_CALL_vkGetImageSubresourceLayout);
    const fv_image *image = FV_FIND(device, vkGetImageSubresourceLayout, FV_IMAGE, image_handle);
    *out = (VkSubresourceLayout){0};
    if (image && !image->resource.linear)
        FV_WRONG(driver, "VUID-vkGetImageSubresourceLayout-image-07790",
                 vkGetImageSubresourceLayout, "'%s' is not of linear tiling",
                 image->resource.object.name);
    else if (image && (part->mipLevel >= image->info.mipLevels ||
                       part->arrayLayer >= image->info.arrayLayers))
        FV_WRONG(driver, "VUID-vkGetImageSubresourceLayout-mipLevel-01716",
                 vkGetImageSubresourceLayout, "there is no level %u of layer %u", part->mipLevel,
                 part->arrayLayer);
    else if (image && !has_aspect(image, part->aspectMask))
        FV_WRONG(driver, "VUID-vkGetImageSubresourceLayout-format-04462",
                 vkGetImageSubresourceLayout, "format %d has no aspect 0x%x",
                 (int)image->info.format, part->aspectMask);
    else if (image) {
        const fv_level *level = &image->levels[part->mipLevel];
        *out =
            (VkSubresourceLayout){.offset = fv_row(image, part->mipLevel, part->arrayLayer, 0, 0),
                                  .size = level->size,
                                  .rowPitch = level->row_pitch,
                                  .arrayPitch = image->layer_pitch,
                                  .depthPitch = level->slice_pitch};
    }
    fv_leave(driver);
}

bool fv_range_fits(const fv_image *image, const VkImageSubresourceRange *range)
{
    return range->aspectMask == VK_IMAGE_ASPECT_COLOR_BIT &&
           range->baseMipLevel < image->info.mipLevels &&
           range->baseArrayLayer < image->info.arrayLayers && range->levelCount &&
           range->layerCount &&
           fv_levels_of(image, range) <= image->info.mipLevels - range->baseMipLevel &&
           fv_layers_of(image, range) <= image->info.arrayLayers - range->baseArrayLayer;
}
