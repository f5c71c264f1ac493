/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_sparse_driver.c - sparse buffers and images on a driver of this machine under the
 * validation layer: object and parts have the same bytes on the device and on the host.
 */
#include <stdlib.h>

#include "tests/support/real_vulkan.h"
#include "tests/support/vulkan_commands.h"
#include "tests/support/vulkan_native.h"

#define KIB UINT64_C(1024)

typedef struct bench {
    real_vulkan r;
    quire_memory *memory; /* small pages */
    quire_memory *host;
    quire_buffer staging;
    VkBuffer native; /* the staging buffer */
    unsigned char *bytes;
} bench;

/* ---- beginning and end ----------------------------------------------------------------------- */

static void begin(bench *b, uint64_t staging)
{
    real_vulkan *r = &b->r;
    void *bytes;
    real_begin_strict(r);
    real_wrap(r);
    if (!r->features.sparseBinding || !r->features.sparseResidencyBuffer) {
        real_end(r);
        unit_skip("the driver has no sparse binding");
    }
    b->memory = real_memory(r, &(quire_memory_options){.pages = {.page_size = 1024 * KIB}});
    b->host = real_memory(r, &(quire_memory_options){.kind.required = QUIRE_HOST_VISIBLE});
    CHECK_OK(quire_buffer_create(
        b->host, &(quire_buffer_options){.size = staging, .host_read = true, .host_write = true},
        &b->staging));
    b->native = vulkan_buffer_of(b->host, b->staging);
    CHECK_OK(quire_map(b->host, b->staging.allocation, &bytes));
    b->bytes = bytes;
}

static void end(bench *b)
{
    CHECK_OK(quire_unmap(b->host, b->staging.allocation));
    CHECK_OK(quire_free(b->host, b->staging.allocation));
    real_memory_end(b->host);
    real_memory_end(b->memory);
    real_end(&b->r);
}

#define CASE(name) UNIT_ON(vulkan_sparse_driver, name, bench, b, (void)b, end)

/* ---- commands -------------------------------------------------------------------------------- */

static void run(const vulkan_commands *commands)
{
    const VkMemoryBarrier barrier = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
        .dstAccessMask = VK_ACCESS_HOST_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT,
    };
    COMMANDS_CALL(commands, vkCmdPipelineBarrier)
    (commands->buffer, VK_PIPELINE_STAGE_TRANSFER_BIT,
     VK_PIPELINE_STAGE_HOST_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1, &barrier, 0, NULL, 0, NULL);
    vulkan_commands_run(commands);
}

/* Copies between the staging buffer and a sparse buffer, from offset 0. */
static void copy(bench *b, VkBuffer from, VkBuffer to, uint64_t size)
{
    const vulkan_commands commands = vulkan_commands_begin(b->r.quire);
    const VkBufferCopy region = {.size = size};
    COMMANDS_CALL(&commands, vkCmdCopyBuffer)(commands.buffer, from, to, 1, &region);
    run(&commands);
}

static unsigned char byte_at(uint64_t offset, unsigned seed)
{
    return (unsigned char)(offset * 7 + offset / 251 + offset / 65536 * 13 + seed);
}

static void fill_staging(bench *b, uint64_t size, unsigned seed)
{
    for (uint64_t i = 0; i < size; i++)
        b->bytes[i] = byte_at(i, seed);
}

/* Whether the bytes of a part, read from its page, equal those of the object. */
static void check_part(quire_vulkan_sparse *sparse, quire_vulkan_part part, uint64_t until,
                       unsigned seed)
{
    uint64_t size = part.offset + part.size < until ? part.size : until - part.offset;
    unsigned char *found = malloc(size);
    CHECK(found != NULL);
    CHECK_OK(quire_read(sparse_info(sparse).memory, part.allocation, 0, found, size));
    for (uint64_t i = 0; i < size; i++)
        if (found[i] != byte_at(part.offset + i, seed))
            check_failed(__FILE__, __LINE__, "byte %" PRIu64 " of the object", part.offset + i);
    free(found);
}

/* ---- buffers --------------------------------------------------------------------------------- */

static const VkBufferCreateInfo BUFFER = {
    .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
    .flags = VK_BUFFER_CREATE_SPARSE_BINDING_BIT,
    .size = 4500 * 1000,
    .usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT,
};

CASE(a_buffer_over_several_pages_holds_what_its_parts_hold)
{
    quire_vulkan_sparse *sparse = NULL;
    quire_memory_info pages;
    begin(b, BUFFER.size);
    uint64_t locked = b->r.locked;
    CHECK_OK(quire_vulkan_sparse_buffer_create(
        b->memory, &BUFFER, &(quire_vulkan_object_options){.name = "field"}, &sparse));
    CHECK_EQ(b->r.locked, locked + 1);
    quire_vulkan_sparse_info info = sparse_info(sparse);
    CHECK(info.size >= BUFFER.size && info.part_count >= 4);
    CHECK_OK(quire_memory_get_info(b->memory, &pages));
    CHECK(pages.page_count >= 4);
    fill_staging(b, BUFFER.size, 1);
    copy(b, b->native, info.buffer, BUFFER.size);
    for (uint64_t at = 0; at < BUFFER.size; at += sparse_part(sparse, at).size)
        check_part(sparse, sparse_part(sparse, at), BUFFER.size, 1);
    CHECK_OK(quire_vulkan_sparse_destroy(&sparse));
}

CASE(blocks_keep_their_bytes_while_others_come_and_go)
{
    quire_vulkan_sparse *sparse = NULL;
    begin(b, BUFFER.size);
    VkBufferCreateInfo asked = BUFFER;
    asked.flags |= VK_BUFFER_CREATE_SPARSE_RESIDENCY_BIT;
    CHECK_OK(quire_vulkan_sparse_buffer_create(b->memory, &asked, NULL, &sparse));
    quire_vulkan_sparse_info info = sparse_info(sparse);
    uint64_t block = info.block, count = info.part_count;
    CHECK_OK(quire_vulkan_sparse_bind(sparse, 0, 0));
    fill_staging(b, BUFFER.size, 2);
    copy(b, b->native, info.buffer, BUFFER.size);
    for (uint64_t i = 1; i + 1 < count; i += 3)
        CHECK_OK(quire_vulkan_sparse_unbind(sparse, i * block, block));
    for (uint64_t i = 0; i < count; i++) {
        quire_vulkan_part part = sparse_part(sparse, i * block);
        CHECK_EQ(part.offset, i * block);
        CHECK_EQ(!part.allocation.id, i % 3 == 1 && i + 1 < count);
        if (part.allocation.id)
            check_part(sparse, part, BUFFER.size, 2);
    }
    CHECK_OK(quire_vulkan_sparse_bind(sparse, 0, 0));
    fill_staging(b, BUFFER.size, 3);
    copy(b, b->native, info.buffer, BUFFER.size);
    memset(b->bytes, 0, BUFFER.size);
    copy(b, info.buffer, b->native, BUFFER.size);
    for (uint64_t i = 0; i < BUFFER.size; i++)
        CHECK_EQ(b->bytes[i], byte_at(i, 3));
    CHECK_OK(quire_vulkan_sparse_unbind(sparse, 0, 0));
    CHECK_EQ(sparse_info(sparse).bound, 0);
    CHECK_OK(quire_vulkan_sparse_destroy(&sparse));
}

/* ---- images ---------------------------------------------------------------------------------- */

enum { SIDE = 1024, LEVELS = 11, TEXEL = 4, LAYERS = 2 };

static const VkImageCreateInfo IMAGE = {
    VULKAN_IMAGE_2D(VK_FORMAT_R8G8B8A8_UNORM, SIDE, SIDE, 1, LAYERS),
    .flags = VK_IMAGE_CREATE_SPARSE_BINDING_BIT,
    .usage = VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT,
};

static VkAccessFlags access_of(VkImageLayout layout)
{
    return layout == VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL   ? VK_ACCESS_TRANSFER_READ_BIT
           : layout == VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL ? VK_ACCESS_TRANSFER_WRITE_BIT
                                                            : 0;
}

/* Changes the layout of a level of both layers. A change from the undefined layout discards its
   texels. */
static void change_layout(const vulkan_commands *commands, VkImage image, uint32_t level,
                          VkImageLayout before, VkImageLayout after)
{
    const VkImageMemoryBarrier barrier = {
        .sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER,
        .srcAccessMask = access_of(before),
        .dstAccessMask = access_of(after),
        .oldLayout = before,
        .newLayout = after,
        .srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
        .dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
        .image = image,
        .subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, level, 1, 0, LAYERS},
    };
    COMMANDS_CALL(commands, vkCmdPipelineBarrier)
    (commands->buffer, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 0, NULL,
     0, NULL, 1, &barrier);
}

static const VkImageLayout NONE = VK_IMAGE_LAYOUT_UNDEFINED,
                           SOURCE = VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL,
                           TARGET = VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL;

static VkBufferImageCopy level_copy(uint32_t level)
{
    return (VkBufferImageCopy){
        .imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, level, 0, LAYERS},
        .imageExtent = {SIDE >> level, SIDE >> level, 1},
    };
}

/* Copies the texels of a level of both layers from the staging buffer. Its layout is then that of a
   transfer source. */
static void write_texels(bench *b, VkImage image, uint32_t level)
{
    const VkBufferImageCopy region = level_copy(level);
    const vulkan_commands commands = vulkan_commands_begin(b->r.quire);
    change_layout(&commands, image, level, NONE, TARGET);
    COMMANDS_CALL(&commands, vkCmdCopyBufferToImage)
    (commands.buffer, b->native, image, TARGET, 1, &region);
    change_layout(&commands, image, level, TARGET, SOURCE);
    run(&commands);
}

static void read_texels(bench *b, VkImage image, uint32_t level)
{
    const VkBufferImageCopy region = level_copy(level);
    const vulkan_commands commands = vulkan_commands_begin(b->r.quire);
    COMMANDS_CALL(&commands, vkCmdCopyImageToBuffer)
    (commands.buffer, image, SOURCE, b->native, 1, &region);
    run(&commands);
}

static uint64_t level_bytes(uint32_t level)
{
    return (uint64_t)(SIDE >> level) * (SIDE >> level) * TEXEL * LAYERS;
}

/* Writes zeros into the parts of a region. Exactly the texels of the region become zero. */
static void check_region(bench *b, quire_vulkan_sparse *sparse, const quire_vulkan_region *region,
                         unsigned seed)
{
    quire_vulkan_sparse_info info = sparse_info(sparse);
    char *zeros = calloc(1, info.block);
    CHECK(zeros != NULL);
    fill_staging(b, level_bytes(0), seed);
    write_texels(b, info.image, 0);
    for (uint64_t at = 0; at < info.size; at += info.block) {
        quire_vulkan_part part = sparse_part(sparse, at);
        int64_t x = part.region.offset.x - region->offset.x;
        int64_t y = part.region.offset.y - region->offset.y;
        if (!part.is_tail && part.region.level == 0 && part.region.layer == region->layer &&
            x >= 0 && x < region->extent.width && y >= 0 && y < region->extent.height)
            CHECK_OK(quire_write(info.memory, part.allocation, 0, zeros, info.block));
    }
    free(zeros);
    read_texels(b, info.image, 0);
    for (uint64_t i = 0; i < level_bytes(0); i++) {
        int64_t x = (int64_t)(i / TEXEL % SIDE) - region->offset.x;
        int64_t y = (int64_t)(i / TEXEL / SIDE % SIDE) - region->offset.y;
        bool is_zero = i / TEXEL / SIDE / SIDE == region->layer && x >= 0 &&
                       x < region->extent.width && y >= 0 && y < region->extent.height;
        CHECK_EQ(b->bytes[i], is_zero ? 0 : byte_at(i, seed));
    }
}

CASE(tiles_of_an_image_lie_where_their_parts_say)
{
    quire_vulkan_sparse *sparse = NULL;
    begin(b, level_bytes(0));
    VkImageCreateInfo asked = IMAGE;
    asked.flags |= VK_IMAGE_CREATE_SPARSE_RESIDENCY_BIT;
    asked.mipLevels = LEVELS;
    CHECK(b->r.features.sparseResidencyImage2D);
    CHECK_OK(quire_vulkan_sparse_image_create(b->memory, &asked, NULL, &sparse));
    quire_vulkan_sparse_info info = sparse_info(sparse);
    uint32_t wide = info.aspects->tile.width, high = info.aspects->tile.height;
    CHECK(info.residency && wide && high && info.aspects->tiled_levels);
    for (uint32_t layer = 0; layer < LAYERS; layer++)
        for (uint32_t level = 0; level <= info.aspects->tiled_levels && level < LEVELS; level++)
            CHECK_OK(quire_vulkan_sparse_bind_region(
                sparse, &(quire_vulkan_region){.level = level, .layer = layer}));
    CHECK_EQ(sparse_info(sparse).bound, info.size); /* everything is bound */
    const quire_vulkan_region region = {
        .layer = 1,
        .offset = {(int32_t)wide, (int32_t)high, 0},
        .extent = {wide, 2 * high, 1},
    };
    check_region(b, sparse, &region, 5);
    for (uint32_t level = 1; level < LEVELS; level++) { /* the small levels share the tail */
        fill_staging(b, level_bytes(level), level);
        write_texels(b, info.image, level);
    }
    for (uint32_t level = 1; level < LEVELS; level++) {
        read_texels(b, info.image, level);
        for (uint64_t i = 0; i < level_bytes(level); i++)
            CHECK_EQ(b->bytes[i], byte_at(i, level));
    }
    CHECK_OK(quire_vulkan_sparse_unbind_region(sparse, &region));
    CHECK_EQ(sparse_info(sparse).bound, info.size - 2 * info.block);
    CHECK_OK(quire_vulkan_sparse_bind_region(sparse, &region));
    check_region(b, sparse, &region, 6);
    CHECK_OK(quire_vulkan_sparse_destroy(&sparse));
}
