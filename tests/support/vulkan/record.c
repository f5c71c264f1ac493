/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * record.c - records commands, and checks what can be checked before the submission.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/support/vulkan/command.h"
#include "tests/support/vulkan/table.h"

typedef struct recording {
    fv_command_buffer *buffer;
    fv_driver *driver;
    fv_device *device;
    fv_command *command; /* NULL: the command buffer is not recording */
} recording;

/* Begins a command. `finish` completes it. */
static recording start(VkCommandBuffer handle, fv_call call)
{
    fv_command_buffer *buffer = (fv_command_buffer *)handle;
    recording r = {buffer, buffer->object.driver, buffer->object.device, NULL};
    fv_claim_handle(r.driver, call, buffer->pool);
    (void)fv_enter(r.driver, call);
    if (!fv_object_check(&buffer->object, call, FV_COMMAND_BUFFER))
        return r;
    if (buffer->state != FV_RECORDING) {
        fv_say(r.driver, FV_ERROR, "fv-recording", call, "the command buffer does not record");
        return r;
    }
    const VkQueueFlags copies =
        VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT;
    if (!(fv_family_flags(r.device->physical, buffer->family) & copies))
        fv_say(r.driver, FV_ERROR, "VUID-vkCmdCopyBuffer-commandBuffer-cmdpool", call,
               "family %u supports no commands", buffer->family);
    r.command = calloc(1, sizeof *r.command);
    if (!r.command)
        abort();
    r.command->call = call;
    return r;
}

static void finish(recording *r)
{
    fv_command_buffer *buffer = r->buffer;
    if (r->command && buffer->last)
        buffer->last->next = r->command;
    else if (r->command)
        buffer->first = r->command;
    buffer->last = r->command ? r->command : buffer->last;
    fv_leave(r->driver);
    fv_release_handle(r->driver, buffer->pool);
}

/* Copies an array of the caller for the command. */
static void keep(fv_command *command, const void *items, size_t size, uint32_t count)
{
    command->count = count;
    command->items = malloc(size * count + 1);
    if (!command->items)
        abort();
    memcpy(command->items, items, size * count);
}

static void wrong(const recording *r, const char *id, const char *what, const fv_object *object)
{
    fv_say(r->driver, FV_ERROR, id, r->command->call, "%s: '%s'", what, object->name);
}

/* ---- buffers ------------------------------------------------------------------------------ */

/* Checks that a buffer is bound and has the usage. */
static const fv_buffer *find_buffer(const recording *r, uint64_t handle, VkBufferUsageFlags usage)
{
    const fv_buffer *buffer = fv_object_find(r->device, r->command->call, FV_BUFFER, handle);
    if (!buffer)
        return NULL;
    const fv_resource *resource = &buffer->resource;
    if (!resource->memory && !resource->sparse)
        wrong(r, "fv-no-memory", "the buffer has no memory", &resource->object);
    if (!(buffer->usage & usage))
        wrong(r, "fv-usage", "the buffer was not made for copies of this direction",
              &resource->object);
    return buffer;
}

static bool fits(uint64_t offset, uint64_t size, uint64_t whole)
{
    return offset <= whole && size <= whole - offset;
}

static void check_copy(const recording *r, const fv_buffer *source, const fv_buffer *target,
                       const VkBufferCopy *region)
{
    uint64_t from = region->srcOffset, to = region->dstOffset, size = region->size;
    if (!size)
        wrong(r, "VUID-VkBufferCopy-size-01988", "0 bytes", &source->resource.object);
    if (!fits(from, size, source->size))
        wrong(r, "VUID-vkCmdCopyBuffer-size-00115", "reads beyond the buffer",
              &source->resource.object);
    if (!fits(to, size, target->size))
        wrong(r, "VUID-vkCmdCopyBuffer-size-00116", "writes beyond the buffer",
              &target->resource.object);
    if (source == target && from < to + size && to < from + size)
        wrong(r, "VUID-vkCmdCopyBuffer-pRegions-00117", "source and target overlap",
              &source->resource.object);
}

void fv_vkCmdCopyBuffer(VkCommandBuffer handle, VkBuffer source_handle, VkBuffer target_handle,
                        uint32_t count, const VkBufferCopy *regions)
{
    recording r = start(handle, FV_CALL_vkCmdCopyBuffer);
    if (r.command) {
        const fv_buffer *source =
            find_buffer(&r, (uint64_t)source_handle, VK_BUFFER_USAGE_TRANSFER_SRC_BIT);
        const fv_buffer *target =
            find_buffer(&r, (uint64_t)target_handle, VK_BUFFER_USAGE_TRANSFER_DST_BIT);
        for (uint32_t i = 0; source && target && i < count; i++)
            check_copy(&r, source, target, &regions[i]);
        r.command->source = (uint64_t)source_handle;
        r.command->target = (uint64_t)target_handle;
        keep(r.command, regions, sizeof *regions, count);
    }
    finish(&r);
}

void fv_vkCmdFillBuffer(VkCommandBuffer handle, VkBuffer target_handle, VkDeviceSize offset,
                        VkDeviceSize size, uint32_t value)
{
    recording r = start(handle, FV_CALL_vkCmdFillBuffer);
    const fv_buffer *target =
        r.command ? find_buffer(&r, (uint64_t)target_handle, VK_BUFFER_USAGE_TRANSFER_DST_BIT)
                  : NULL;
    if (target) {
        const fv_object *object = &target->resource.object;
        bool whole = size == VK_WHOLE_SIZE;
        if (offset >= target->size)
            wrong(&r, "VUID-vkCmdFillBuffer-dstOffset-00024", "begins beyond the buffer", object);
        if (offset % 4)
            wrong(&r, "VUID-vkCmdFillBuffer-dstOffset-00025", "the offset is no multiple of 4",
                  object);
        if (!whole && (!size || size % 4))
            wrong(&r, "VUID-vkCmdFillBuffer-size-00028", "the size is no multiple of 4", object);
        if (!whole && !fits(offset, size, target->size))
            wrong(&r, "VUID-vkCmdFillBuffer-size-00027", "ends beyond the buffer", object);
        r.command->target = (uint64_t)target_handle;
        r.command->offset = offset;
        r.command->size = whole && offset < target->size ? (target->size - offset) / 4 * 4 : size;
        r.command->value = value;
    }
    finish(&r);
}

/* ---- images ------------------------------------------------------------------------------- */

static const fv_image *find_image(const recording *r, uint64_t handle, VkImageUsageFlags usage)
{
    const fv_image *image = fv_object_find(r->device, r->command->call, FV_IMAGE, handle);
    if (!image)
        return NULL;
    const fv_resource *resource = &image->resource;
    if (!resource->memory && !resource->sparse)
        wrong(r, "fv-no-memory", "the image has no memory", &resource->object);
    if (usage && !(image->info.usage & usage))
        wrong(r, "fv-usage", "the image was not made for this", &resource->object);
    return image;
}

/* Checks that the texels of a region are within the image. */
static bool region_in_image(const fv_image *image, const VkBufferImageCopy *region)
{
    const VkImageSubresourceLayers *part = &region->imageSubresource;
    VkImageSubresourceRange range = {part->aspectMask, part->mipLevel, 1, part->baseArrayLayer,
                                     part->layerCount};
    if (!fv_range_fits(image, &range))
        return false;
    const VkExtent3D *whole = &image->levels[part->mipLevel].extent;
    const VkOffset3D *at = &region->imageOffset;
    const VkExtent3D *size = &region->imageExtent;
    return at->x >= 0 && at->y >= 0 && at->z >= 0 && size->width && size->height && size->depth &&
           fits((uint64_t)at->x, size->width, whole->width) &&
           fits((uint64_t)at->y, size->height, whole->height) &&
           fits((uint64_t)at->z, size->depth, whole->depth);
}

/* Returns the number of bytes of the buffer that a region accesses, from its offset. */
static uint64_t bytes_of_region(const fv_image *image, const VkBufferImageCopy *region)
{
    const VkExtent3D *size = &region->imageExtent;
    uint64_t texel = image->format.texel_size;
    uint64_t row = region->bufferRowLength ? region->bufferRowLength : size->width;
    uint64_t rows = region->bufferImageHeight ? region->bufferImageHeight : size->height;
    uint64_t slices = (uint64_t)size->depth * region->imageSubresource.layerCount;
    return (((slices - 1) * rows + size->height - 1) * row + size->width) * texel;
}

static void check_region(const recording *r, const fv_buffer *buffer, const fv_image *image,
                         const VkBufferImageCopy *region)
{
    const fv_object *object = &image->resource.object;
    if (!region_in_image(image, region)) {
        wrong(r, "VUID-vkCmdCopyBufferToImage-imageOffset-00200", "the region is not in the image",
              object);
        return;
    }
    if ((region->bufferRowLength && region->bufferRowLength < region->imageExtent.width) ||
        (region->bufferImageHeight && region->bufferImageHeight < region->imageExtent.height))
        wrong(r, "VUID-VkBufferImageCopy-bufferRowLength-00195", "rows or slices overlap", object);
    if (region->bufferOffset % image->format.texel_size)
        wrong(r, "VUID-vkCmdCopyBufferToImage-bufferOffset-00193",
              "the offset is no multiple of the texel size", object);
    if (!fits(region->bufferOffset, bytes_of_region(image, region), buffer->size))
        wrong(r, "VUID-vkCmdCopyBufferToImage-pRegions-00171", "goes beyond the buffer",
              &buffer->resource.object);
}

static bool is_transfer_layout(VkImageLayout layout, VkImageLayout optimal)
{
    return layout == optimal || layout == VK_IMAGE_LAYOUT_GENERAL;
}

static void copy_image(recording *r, VkBuffer buffer_handle, VkImage image_handle,
                       VkImageLayout layout, bool to_image, uint32_t count,
                       const VkBufferImageCopy *regions)
{
    const fv_buffer *buffer =
        find_buffer(r, (uint64_t)buffer_handle,
                    to_image ? VK_BUFFER_USAGE_TRANSFER_SRC_BIT : VK_BUFFER_USAGE_TRANSFER_DST_BIT);
    const fv_image *image =
        find_image(r, (uint64_t)image_handle,
                   to_image ? VK_IMAGE_USAGE_TRANSFER_DST_BIT : VK_IMAGE_USAGE_TRANSFER_SRC_BIT);
    if (!is_transfer_layout(layout, to_image ? VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL
                                             : VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL))
        fv_say(r->driver, FV_ERROR, "VUID-vkCmdCopyBufferToImage-dstImageLayout-01396",
               r->command->call, "layout %d is none for this", (int)layout);
    for (uint32_t i = 0; buffer && image && i < count; i++)
        check_region(r, buffer, image, &regions[i]);
    r->command->source = to_image ? (uint64_t)buffer_handle : (uint64_t)image_handle;
    r->command->target = to_image ? (uint64_t)image_handle : (uint64_t)buffer_handle;
    r->command->layout = layout;
    keep(r->command, regions, sizeof *regions, count);
}

void fv_vkCmdCopyBufferToImage(VkCommandBuffer handle, VkBuffer buffer, VkImage image,
                               VkImageLayout layout, uint32_t count,
                               const VkBufferImageCopy *regions)
{
    recording r = start(handle, FV_CALL_vkCmdCopyBufferToImage);
    if (r.command)
        copy_image(&r, buffer, image, layout, true, count, regions);
    finish(&r);
}

void fv_vkCmdCopyImageToBuffer(VkCommandBuffer handle, VkImage image, VkImageLayout layout,
                               VkBuffer buffer, uint32_t count, const VkBufferImageCopy *regions)
{
    recording r = start(handle, FV_CALL_vkCmdCopyImageToBuffer);
    if (r.command)
        copy_image(&r, buffer, image, layout, false, count, regions);
    finish(&r);
}

void fv_vkCmdClearColorImage(VkCommandBuffer handle, VkImage image_handle, VkImageLayout layout,
                             const VkClearColorValue *color, uint32_t count,
                             const VkImageSubresourceRange *ranges)
{
    recording r = start(handle, FV_CALL_vkCmdClearColorImage);
    const fv_image *image =
        r.command ? find_image(&r, (uint64_t)image_handle, VK_IMAGE_USAGE_TRANSFER_DST_BIT) : NULL;
    if (image) {
        if (!is_transfer_layout(layout, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL))
            wrong(&r, "VUID-vkCmdClearColorImage-imageLayout-01394",
                  "a layout that is none for this", &image->resource.object);
        for (uint32_t i = 0; i < count; i++)
            if (!fv_range_fits(image, &ranges[i]))
                wrong(&r, "VUID-vkCmdClearColorImage-baseMipLevel-01470",
                      "the range is not in the image", &image->resource.object);
        r.command->target = (uint64_t)image_handle;
        r.command->layout = layout;
        r.command->color = *color;
        keep(r.command, ranges, sizeof *ranges, count);
    }
    finish(&r);
}

/* ---- barriers ----------------------------------------------------------------------------- */

static void add_transition(recording *r, uint64_t handle, VkImageLayout from, VkImageLayout to,
                           const VkImageSubresourceRange *range)
{
    const fv_image *image = find_image(r, handle, 0);
    if (!image)
        return;
    if (!fv_range_fits(image, range)) {
        wrong(r, "VUID-VkImageMemoryBarrier-subresourceRange-01486",
              "the range is not in the image", &image->resource.object);
        return;
    }
    if (to == VK_IMAGE_LAYOUT_UNDEFINED || to == VK_IMAGE_LAYOUT_PREINITIALIZED) {
        wrong(r, "VUID-VkImageMemoryBarrier-newLayout-01198", "no layout to go to",
              &image->resource.object);
        return;
    }
    fv_transition *all = r->command->items;
    all[r->command->count++] = (fv_transition){handle, from, to, *range};
}

void fv_vkCmdPipelineBarrier(VkCommandBuffer handle, VkPipelineStageFlags source,
                             VkPipelineStageFlags target, VkDependencyFlags flags, uint32_t count,
                             const VkMemoryBarrier *barriers, uint32_t buffer_count,
                             const VkBufferMemoryBarrier *buffers, uint32_t image_count,
                             const VkImageMemoryBarrier *images)
{
    recording r = start(handle, FV_CALL_vkCmdPipelineBarrier);
    (void)flags, (void)count, (void)barriers;
    if (r.command) {
        r.command->items = calloc((size_t)image_count + 1, sizeof(fv_transition));
        if (!r.command->items)
            abort();
        if (!source || !target)
            FV_WRONG(r.driver, "VUID-vkCmdPipelineBarrier-srcStageMask-03937", vkCmdPipelineBarrier,
                     "no stages");
        for (uint32_t i = 0; i < buffer_count; i++)
            (void)find_buffer(&r, (uint64_t)buffers[i].buffer, UINT32_MAX);
        for (uint32_t i = 0; i < image_count; i++)
            add_transition(&r, (uint64_t)images[i].image, images[i].oldLayout, images[i].newLayout,
                           &images[i].subresourceRange);
    }
    finish(&r);
}
