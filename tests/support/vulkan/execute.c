/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * execute.c - executes command buffers on the device's view of memory.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/support/vulkan/command.h"
#include "tests/support/vulkan/tile.h"

/* Bytes that are copied at once. */
#define CHUNK (UINT64_C(256) << 10)

/* Returns the resource of a command, which may have been destroyed after the recording. */
static fv_resource *resource_of(fv_device *device, const fv_command *command, fv_kind kind,
                                uint64_t handle)
{
    return handle ? fv_object_find(device, command->call, kind, handle) : NULL;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- buffers ------------------------------------------------------------------------------ */

static void *take_chunk(void)
{
    void *chunk = malloc(CHUNK);
    if (!chunk)
        abort();
    return chunk;
}

/* A command that exceeds its objects does nothing: it was reported when it was recorded. */
static bool is_in(const fv_resource *resource, uint64_t offset, uint64_t size)
{
    uint64_t whole = resource->object.kind == FV_BUFFER ? ((const fv_buffer *)resource)->size
                                                        : resource->needs.size;
    return offset <= whole && size <= whole - offset;
}

static void copy_buffer(fv_device *device, const fv_command *command)
{
    fv_resource *source = resource_of(device, command, FV_BUFFER, command->source);
    fv_resource *target = resource_of(device, command, FV_BUFFER, command->target);
    const VkBufferCopy *regions = command->items;
    void *chunk = take_chunk();
    for (uint32_t i = 0; source && target && i < command->count; i++) {
        const VkBufferCopy *region = &regions[i];
        if (!is_in(source, region->srcOffset, region->size) ||
            !is_in(target, region->dstOffset, region->size))
            continue;
        for (uint64_t done = 0; done < region->size; done += CHUNK) {
            uint64_t size = least(CHUNK, region->size - done);
            fv_read(source, command->call, region->srcOffset + done, chunk, size);
            fv_write(target, command->call, region->dstOffset + done, chunk, size);
        }
    }
    free(chunk);
}

static void fill_buffer(fv_device *device, const fv_command *command)
{
    fv_resource *target = resource_of(device, command, FV_BUFFER, command->target);
    if (!target || !is_in(target, command->offset, command->size))
        return;
    uint32_t *chunk = take_chunk();
    uint64_t most = least(CHUNK, command->size);
    for (uint64_t i = 0; i < most / sizeof *chunk; i++)
        chunk[i] = command->value;
    for (uint64_t done = 0; done < command->size; done += CHUNK)
        fv_write(target, command->call, command->offset + done, chunk,
                 least(CHUNK, command->size - done));
    free(chunk);
}

/* ---- images ------------------------------------------------------------------------------- */

/* Checks that a part of the image has the layout that the command states. */
static void check_layout(const fv_image *image, const fv_command *command, uint32_t level,
                         uint32_t layer)
{
    VkImageLayout is = image->layouts[layer * image->info.mipLevels + level];
    if (is != command->layout)
        fv_say(image->resource.object.driver, FV_ERROR,
               "VUID-vkCmdCopyBufferToImage-dstImageLayout-00180", command->call,
               "level %u of layer %u of '%s' is in layout %d and not in %d", level, layer,
               image->resource.object.name, (int)is, (int)command->layout);
}

/* Copies one row of texels. */
static void copy_row(fv_resource *buffer, fv_image *image, const fv_command *command,
                     uint64_t buffer_at, fv_texels texels, void *row)
{
    uint64_t size = (uint64_t)texels.count * image->format.texel_size;
    if (!is_in(buffer, buffer_at, size))
        return;
    if (command->call == FV_CALL_vkCmdCopyBufferToImage) {
        fv_read(buffer, command->call, buffer_at, row, size);
        fv_texels_write(image, command->call, texels, row);
    } else if (fv_texels_read(image, command->call, texels, row))
        fv_write(buffer, command->call, buffer_at, row, size);
}

static void copy_slice(fv_resource *buffer, fv_image *image, const fv_command *command,
                       const VkBufferImageCopy *region, uint32_t layer, uint32_t z, void *row)
{
    const VkExtent3D *size = &region->imageExtent;
    uint64_t texel = image->format.texel_size;
    uint64_t pitch = (region->bufferRowLength ? region->bufferRowLength : size->width) * texel;
    uint64_t rows = region->bufferImageHeight ? region->bufferImageHeight : size->height;
    uint64_t slice = (uint64_t)layer * size->depth + z;
    uint64_t start = region->bufferOffset + slice * rows * pitch;
    fv_texels texels = {
        .level = region->imageSubresource.mipLevel,
        .layer = region->imageSubresource.baseArrayLayer + layer,
        .x = (uint32_t)region->imageOffset.x,
        .z = (uint32_t)region->imageOffset.z + z,
        .count = size->width,
    };
    for (uint32_t y = 0; y < size->height; y++) {
        texels.y = (uint32_t)region->imageOffset.y + y;
        copy_row(buffer, image, command, start + y * pitch, texels, row);
    }
}

static void copy_image(fv_device *device, const fv_command *command)
{
    bool to_image = command->call == FV_CALL_vkCmdCopyBufferToImage;
    fv_resource *buffer =
        resource_of(device, command, FV_BUFFER, to_image ? command->source : command->target);
    fv_image *image = (fv_image *)resource_of(device, command, FV_IMAGE,
                                              to_image ? command->target : command->source);
    const VkBufferImageCopy *regions = command->items;
    for (uint32_t i = 0; buffer && image && i < command->count; i++) {
        const VkImageSubresourceLayers *part = &regions[i].imageSubresource;
        VkImageSubresourceRange range = {part->aspectMask, part->mipLevel, 1, part->baseArrayLayer,
                                         part->layerCount};
        void *row = malloc((size_t)regions[i].imageExtent.width * image->format.texel_size + 1);
        if (!row)
            abort();
        for (uint32_t layer = 0; fv_range_fits(image, &range) && layer < part->layerCount;
             layer++) {
            check_layout(image, command, part->mipLevel, part->baseArrayLayer + layer);
            for (uint32_t z = 0; z < regions[i].imageExtent.depth; z++)
                copy_slice(buffer, image, command, &regions[i], layer, z, row);
        }
        free(row);
    }
}

/* Fills a level of a layer with one row. */
static void write_rows(fv_image *image, fv_call call, uint32_t level, uint32_t layer,
                       const void *row)
{
    const VkExtent3D *size = &image->levels[level].extent;
    for (uint32_t z = 0; z < size->depth; z++)
        for (uint32_t y = 0; y < size->height; y++)
            fv_texels_write(image, call, (fv_texels){level, layer, 0, y, z, size->width}, row);
}

static unsigned char *take_row(const fv_image *image, uint32_t level, uint64_t *length)
{
    *length = (uint64_t)image->levels[level].extent.width * image->format.texel_size;
    unsigned char *row = malloc((size_t)*length + 1);
    if (!row)
        abort();
    return row;
}

static void clear_part(fv_image *image, const fv_command *command, uint32_t level, uint32_t layer)
{
    uint64_t length;
    unsigned char *row = take_row(image, level, &length);
    for (uint64_t at = 0; at < length; at += image->format.texel_size)
        fv_format_pack(&image->format, &command->color, row + at);
    write_rows(image, command->call, level, layer, row);
    free(row);
}

static void clear_image(fv_device *device, const fv_command *command)
{
    fv_image *image = (fv_image *)resource_of(device, command, FV_IMAGE, command->target);
    const VkImageSubresourceRange *ranges = command->items;
    for (uint32_t i = 0; image && i < command->count; i++) {
        const VkImageSubresourceRange *range = &ranges[i];
        if (!fv_range_fits(image, range))
            continue;
        for (uint32_t layer = 0; layer < fv_layers_of(image, range); layer++)
            for (uint32_t level = 0; level < fv_levels_of(image, range); level++) {
                check_layout(image, command, range->baseMipLevel + level,
                             range->baseArrayLayer + layer);
                clear_part(image, command, range->baseMipLevel + level,
                           range->baseArrayLayer + layer);
            }
    }
}

/* ---- barriers ----------------------------------------------------------------------------- */

/* A transition from the undefined layout may discard the contents. */
static void lose_texels(fv_image *image, fv_call call, uint32_t level, uint32_t layer)
{
    uint64_t length;
    unsigned char *row = take_row(image, level, &length);
    memset(row, 0xa5, (size_t)length);
    write_rows(image, call, level, layer, row);
    free(row);
}

static void change_layout(fv_image *image, const fv_command *command, const fv_transition *change,
                          uint32_t level, uint32_t layer)
{
    VkImageLayout *is = &image->layouts[layer * image->info.mipLevels + level];
    if (change->from != VK_IMAGE_LAYOUT_UNDEFINED && change->from != *is)
        fv_say(image->resource.object.driver, FV_ERROR, "VUID-VkImageMemoryBarrier-oldLayout-01197",
               command->call, "level %u of layer %u of '%s' is in layout %d and not in %d", level,
               layer, image->resource.object.name, (int)*is, (int)change->from);
    if (change->from == VK_IMAGE_LAYOUT_UNDEFINED &&
        image->resource.object.driver->options.flags & FV_DIRTY)
        lose_texels(image, command->call, level, layer);
    *is = change->to;
}

static void change_layouts(fv_device *device, const fv_command *command)
{
    const fv_transition *all = command->items;
    for (uint32_t i = 0; i < command->count; i++) {
        const VkImageSubresourceRange *range = &all[i].range;
        fv_image *image = (fv_image *)resource_of(device, command, FV_IMAGE, all[i].image);
        for (uint32_t layer = 0; image && layer < fv_layers_of(image, range); layer++)
            for (uint32_t level = 0; level < fv_levels_of(image, range); level++)
                change_layout(image, command, &all[i], range->baseMipLevel + level,
                              range->baseArrayLayer + layer);
    }
}

void fv_execute(fv_device *device, const fv_command_buffer *buffer)
{
    for (const fv_command *command = buffer->first; command; command = command->next)
        switch ((int)command->call) {
        case FV_CALL_vkCmdCopyBuffer:
            copy_buffer(device, command);
            break;
        case FV_CALL_vkCmdFillBuffer:
            fill_buffer(device, command);
            break;
        case FV_CALL_vkCmdCopyBufferToImage:
        case FV_CALL_vkCmdCopyImageToBuffer:
            copy_image(device, command);
            break;
        case FV_CALL_vkCmdClearColorImage:
            clear_image(device, command);
            break;
        default:
            change_layouts(device, command);
            break;
        }
}
