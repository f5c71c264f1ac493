/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_sparse_tiles.c - images with residency that have several aspects or samples, metadata, and
 * mip tails of each layer or of all layers, on the fake Vulkan driver, which checks the bindings.
 */
#include "tests/support/unit.h"
#include "tests/support/vulkan_bench.h"
#include "tests/support/vulkan_commands.h"
#include "tests/support/vulkan_native.h"

#define BLOCK UINT64_C(65536)
#define DEPTH VK_IMAGE_ASPECT_DEPTH_BIT
#define STENCIL VK_IMAGE_ASPECT_STENCIL_BIT
#define METADATA VK_IMAGE_ASPECT_METADATA_BIT
#define INVALID QUIRE_ERROR_INVALID_ARGUMENT

/* Depth has tiles of 128 x 128: 4 x 3, 2 x 2 (256 x 150); stencil of 256 x 256: 2 x 2. */
static const VkImageCreateInfo SHADOWS = {
    VULKAN_IMAGE_2D(VK_FORMAT_D32_SFLOAT_S8_UINT, 512, 300, 5, 2),
    .flags = VK_IMAGE_CREATE_SPARSE_BINDING_BIT | VK_IMAGE_CREATE_SPARSE_RESIDENCY_BIT,
    .usage = VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT,
};
enum { DEPTH_TILES = 12 + 4, STENCIL_TILES = 4 }; /* of a layer */

static quire_vulkan_sparse *make(vulkan_bench *b, uint32_t flags, const VkImageCreateInfo *info)
{
    quire_vulkan_sparse *sparse = NULL;
    vulkan_bench_start(b, NULL, flags);
    quire_memory *memory =
        vulkan_bench_memory(b, &(quire_memory_options){.kind.required = QUIRE_DEVICE_LOCAL,
                                                       .pages = {.page_size = 1 << 20}});
    CHECK_OK(quire_vulkan_sparse_image_create(memory, info, NULL, &sparse));
    return sparse;
}

static uint64_t bound(quire_vulkan_sparse *sparse)
{
    return sparse_info(sparse).bound / BLOCK;
}

static uint64_t find(quire_vulkan_sparse *sparse, const quire_vulkan_region *region)
{
    uint64_t offset = 0;
    CHECK_OK(quire_vulkan_sparse_find(sparse, region, &offset));
    return offset / BLOCK;
}

/* Finds every block by its region. Returns the number of texels of an aspect that are in tiles. */
static uint64_t check_regions(quire_vulkan_sparse *sparse, VkImageAspectFlags aspect)
{
    quire_vulkan_sparse_info info = sparse_info(sparse);
    uint64_t texels = 0;
    for (uint64_t at = 0; at < info.part_count; at++) {
        quire_vulkan_part part = sparse_part(sparse, at * BLOCK);
        CHECK_EQ(part.offset, at * BLOCK);
        uint64_t found = find(sparse, &part.region);
        CHECK(part.is_tail ? found <= at : found == at);
        if (!part.is_tail && part.region.aspect == aspect)
            texels += (uint64_t)part.region.extent.width * part.region.extent.height;
    }
    return texels;
}

VULKAN_UNIT(vulkan_sparse_tiles, depth_and_stencil_have_tiles_of_their_own)
{
    quire_vulkan_sparse *sparse = make(b, 0, &SHADOWS);
    quire_vulkan_sparse_info info = sparse_info(sparse);
    CHECK_EQ(info.aspect_count, 2);
    CHECK_EQ(info.aspects[0].aspect, DEPTH);
    CHECK_EQ(info.aspects[0].tile.width, 128);
    CHECK_EQ(info.aspects[0].tiled_levels, 2);
    CHECK_EQ(info.aspects[1].aspect, STENCIL);
    CHECK_EQ(info.aspects[1].tile.width, 256);
    CHECK_EQ(info.aspects[1].tiled_levels, 1);
    CHECK_EQ(info.part_count, 2 * (DEPTH_TILES + 1) + 2 * (STENCIL_TILES + 1));
    CHECK_EQ(check_regions(sparse, DEPTH), 2 * (512 * 300 + 256 * 150));
    CHECK_EQ(check_regions(sparse, STENCIL), 2 * 512 * 300);

    /* the same box of both aspects, then of one; a level in the tail of one has tiles in the
       other */
    const quire_vulkan_region corner = {.layer = 1, .offset = {256, 256, 0}};
    CHECK_OK(quire_vulkan_sparse_bind_region(sparse, &corner));
    CHECK_EQ(bound(sparse), 2 + 1);
    const quire_vulkan_region depth = {.layer = 1, .offset = {0, 128, 0}, .aspect = DEPTH};
    CHECK_OK(quire_vulkan_sparse_bind_region(sparse, &depth));
    CHECK_EQ(bound(sparse), 3 + 6); /* two rows of four, two of them bound before */
    const quire_vulkan_region level = {.level = 1};
    CHECK_OK(quire_vulkan_sparse_bind_region(sparse, &level));
    CHECK_EQ(bound(sparse), 9 + 4 + 1);
    CHECK_EQ(find(sparse, &(quire_vulkan_region){.aspect = STENCIL}), 2 * (DEPTH_TILES + 1));
    CHECK_OK(quire_vulkan_sparse_unbind_region(sparse, &corner));
    CHECK_EQ(bound(sparse), 14 - 3);
    CHECK_OK(quire_vulkan_sparse_bind(sparse, 0, 0));
    CHECK_EQ(sparse_info(sparse).bound, info.size);
}

VULKAN_UNIT(vulkan_sparse_tiles, aspects_are_checked)
{
    uint64_t offset;
    quire_vulkan_sparse *sparse = make(b, 0, &SHADOWS);
    const quire_vulkan_region wrong[] = {
        {.aspect = VK_IMAGE_ASPECT_COLOR_BIT},
        {.aspect = METADATA},
        {.aspect = DEPTH | VK_IMAGE_ASPECT_COLOR_BIT},
        {.offset = {128, 0, 0}}, /* a tile of depth, not of stencil */
        {.offset = {128, 0, 0}, .aspect = STENCIL},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK_FAILS(quire_vulkan_sparse_bind_region(sparse, &wrong[i]), INVALID);
        CHECK_FAILS(quire_vulkan_sparse_unbind_region(sparse, &wrong[i]), INVALID);
        CHECK_FAILS(quire_vulkan_sparse_find(sparse, &wrong[i], &offset), INVALID);
        CHECK_EQ(offset, 0);
    }
    CHECK_EQ(bound(sparse), 0);
    CHECK_OK(quire_vulkan_sparse_bind_region(
        sparse, &(quire_vulkan_region){.offset = {128, 0, 0}, .aspect = DEPTH}));
}

VULKAN_UNIT(vulkan_sparse_tiles, a_tail_of_all_layers_is_bound_once)
{
    quire_vulkan_sparse *sparse = make(b, FV_SINGLE_TAIL, &SHADOWS);
    CHECK_EQ(sparse_info(sparse).part_count, 2 * DEPTH_TILES + 2 + 2 * STENCIL_TILES + 2);
    for (uint32_t layer = 0; layer < 2; layer++) {
        const quire_vulkan_region tail = {.level = 4, .layer = layer};
        CHECK_OK(quire_vulkan_sparse_bind_region(sparse, &tail));
        CHECK_EQ(bound(sparse), 2 + 2); /* two blocks of each aspect */
    }
    CHECK_OK(quire_vulkan_sparse_bind(sparse, 0, 0));
    CHECK_OK(quire_vulkan_sparse_unbind(sparse, 0, 0));
}

/* The driver reports a missing and an unnecessary METADATA flag. */
VULKAN_UNIT_EACH(vulkan_sparse_tiles, metadata_is_an_aspect_without_tiles, i, 2)
{
    VkImageCreateInfo color = SHADOWS;
    color.format = VK_FORMAT_R8G8B8A8_UNORM;
    color.usage = VK_IMAGE_USAGE_SAMPLED_BIT;
    const VkImageCreateInfo *infos[] = {&SHADOWS, &color};
    quire_vulkan_sparse *sparse = make(b, FV_METADATA, infos[i]);
    quire_vulkan_sparse_info info = sparse_info(sparse);
    const quire_vulkan_aspect *last = &info.aspects[info.aspect_count - 1];
    CHECK_EQ(last->aspect, METADATA);
    CHECK_EQ(last->tiled_levels, 0);
    CHECK_EQ(last->tile.width, 0);
    check_regions(sparse, METADATA);
    const quire_vulkan_region metadata = {.layer = 1, .aspect = METADATA};
    CHECK_OK(quire_vulkan_sparse_bind_region(sparse, &metadata));
    CHECK_EQ(bound(sparse), 1);
    quire_vulkan_part part = sparse_part(sparse, info.size - 1);
    CHECK(part.is_tail && part.allocation.id && part.region.aspect == METADATA);
    CHECK_EQ(part.region.layer, 1);
    CHECK_OK(quire_vulkan_sparse_bind(sparse, 0, 0)); /* tails and metadata together */
    CHECK_OK(quire_vulkan_sparse_unbind(sparse, 0, 0));
    CHECK_OK(quire_vulkan_sparse_bind_region(sparse, &(quire_vulkan_region){.level = 4}));
    CHECK_EQ(bound(sparse), info.aspect_count); /* that of the layer with its tails */
}

VULKAN_UNIT(vulkan_sparse_tiles, images_of_several_samples_have_smaller_tiles)
{
    VkImageCreateInfo samples = SHADOWS;
    samples.samples = VK_SAMPLE_COUNT_4_BIT;
    samples.mipLevels = 1;
    quire_vulkan_sparse *sparse = make(b, 0, &samples);
    quire_vulkan_sparse_info info = sparse_info(sparse);
    CHECK_EQ(info.aspects[0].tile.width, 64); /* 4 samples of 4 bytes */
    CHECK_EQ(info.aspects[1].tile.width, 128);
    CHECK_EQ(check_regions(sparse, DEPTH), 2 * 512 * 300);
    CHECK_OK(quire_vulkan_sparse_bind(sparse, 0, 0));
    CHECK_EQ(sparse_info(sparse).bound, info.size);
}

/* A supported sample count on a device that was created without its feature, and other counts. */
VULKAN_UNIT(vulkan_sparse_tiles, samples_need_their_feature)
{
    quire_vulkan_sparse *sparse = make(b, 0, &SHADOWS), *other = NULL;
    VkImageCreateInfo samples = SHADOWS;
    samples.samples = VK_SAMPLE_COUNT_8_BIT;
    samples.mipLevels = 1;
    CHECK_FAILS(
        quire_vulkan_sparse_image_create(sparse_info(sparse).memory, &samples, NULL, &other),
        QUIRE_ERROR_UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "without the feature sparseResidency8Samples");
    CHECK(other == NULL);
}
