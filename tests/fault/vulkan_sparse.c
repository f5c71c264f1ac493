/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_sparse.c - see vulkan_sparse.h.
 */
#include "tests/fault/vulkan_sparse.h"

#include "quire/vulkan_sparse.h"
#include "tests/fault/elastic.h"
#include "tests/support/vulkan_native.h"

#define KIB UINT64_C(1024)
#define BLOCK (64 * KIB) /* of sparse objects of the fake driver */

/* ---- objects -------------------------------------------------------------------------------- */

static const VkBufferCreateInfo SPARSE = {
    .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
    .flags = VK_BUFFER_CREATE_SPARSE_BINDING_BIT,
    .size = 700 * KIB,
    .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT,
};

void sparse_buffer(vulkan_bench *b, quire_memory *m)
{
    quire_vulkan_sparse *sparse;
    STEP(b, quire_vulkan_sparse_buffer_create(
                m, &SPARSE, &(quire_vulkan_object_options){.name = "field"}, &sparse));
    STEP(b, quire_vulkan_sparse_destroy(&sparse));
}

/* 9 tiles of 128 by 128 texels, 4 in the second level, and a tail. */
static const VkImageCreateInfo TILES = {
    VULKAN_IMAGE_2D(VK_FORMAT_R8G8B8A8_UNORM, 300, 300, 9, 1),
    .flags = VK_IMAGE_CREATE_SPARSE_BINDING_BIT | VK_IMAGE_CREATE_SPARSE_RESIDENCY_BIT,
    .usage = VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT,
};

/* It is left to the memory's end. */
void sparse_image(vulkan_bench *b, quire_memory *m)
{
    quire_vulkan_sparse *sparse;
    VkImageCreateInfo info = TILES;
    info.flags = VK_IMAGE_CREATE_SPARSE_BINDING_BIT;
    info.mipLevels = 1;
    STEP(b, quire_vulkan_sparse_image_create(m, &info, NULL, &sparse));
}

/* Whether waits fail: each is repeated before it fails. */
static bool fails_on(const driver_bench *b)
{
    return fv_failed(((const vulkan_bench *)b)->driver).times > 1;
}

/* Blocks that are bound, which no failure may change. Memory of a change that could not be waited
   for stays live. */
static bool bound_bytes(vulkan_bench *b, quire_vulkan_sparse *sparse, quire_result result,
                        uint64_t before, uint64_t after)
{
    quire_vulkan_sparse_info info;
    quire_memory_stats stats;
    CHECK_OK(quire_vulkan_sparse_get_info(sparse, &info));
    CHECK_OK(quire_memory_get_stats(info.memory, &stats));
    CHECK_EQ(info.bound, (result ? before : after) * BLOCK);
    CHECK(stats.live_bytes == info.bound ||
          (fails_on(&b->common) && stats.live_bytes > info.bound));
    return driver_bench_step(&b->common, result);
}

/* While waits fail the end is refused, and the object left to that of the memory. */
static void destroy(vulkan_bench *b, quire_vulkan_sparse *sparse)
{
    quire_result result = quire_vulkan_sparse_destroy(&sparse);
    CHECK(!result || fails_on(&b->common));
}

void sparse_blocks(vulkan_bench *b, quire_memory *m)
{
    quire_vulkan_sparse *sparse;
    VkBufferCreateInfo info = SPARSE;
    info.flags |= VK_BUFFER_CREATE_SPARSE_RESIDENCY_BIT;
    STEP(b, quire_vulkan_sparse_buffer_create(m, &info, NULL, &sparse));
    if (bound_bytes(b, sparse, quire_vulkan_sparse_bind(sparse, BLOCK, 6 * BLOCK), 0, 6) &&
        bound_bytes(b, sparse, quire_vulkan_sparse_unbind(sparse, 0, 3 * BLOCK), 6, 4))
        bound_bytes(b, sparse, quire_vulkan_sparse_bind(sparse, 0, 0), 4, 11);
    destroy(b, sparse);
}

void sparse_tiles(vulkan_bench *b, quire_memory *m)
{
    const quire_vulkan_region at = {.offset = {128, 0, 0}, .extent = {0, 128, 0}};
    quire_vulkan_sparse *sparse;
    STEP(b, quire_vulkan_sparse_image_create(m, &TILES, NULL, &sparse));
    if (bound_bytes(b, sparse, quire_vulkan_sparse_bind_region(sparse, &at), 0, 2) &&
        bound_bytes(b, sparse, quire_vulkan_sparse_bind(sparse, 0, 0), 2, 14))
        bound_bytes(b, sparse, quire_vulkan_sparse_unbind_region(sparse, &at), 14, 12);
    destroy(b, sparse);
}

/* Two aspects, each with a tail for all layers, and metadata. */
void sparse_aspects(vulkan_bench *b, quire_memory *m)
{
    const quire_vulkan_region at = {.offset = {256, 0, 0}};
    quire_vulkan_sparse *sparse;
    VkImageCreateInfo info = TILES;
    info.format = VK_FORMAT_D32_SFLOAT_S8_UINT;
    info.usage = VK_IMAGE_USAGE_DEPTH_STENCIL_ATTACHMENT_BIT;
    info.arrayLayers = 2;
    STEP(b, quire_vulkan_sparse_image_create(m, &info, NULL, &sparse));
    /* the last column: 3 tiles of depth, 2 of stencil, a block of metadata */
    if (bound_bytes(b, sparse, quire_vulkan_sparse_bind_region(sparse, &at), 0, 6))
        bound_bytes(b, sparse, quire_vulkan_sparse_unbind_region(sparse, &at), 6, 0);
    destroy(b, sparse);
}

/* ---- elastic memories ----------------------------------------------------------------------- */

const quire_memory_options FAULT_ELASTIC = {.kind.required = QUIRE_DEVICE_LOCAL,
                                            .elastic = true,
                                            .address_space = 32 * BLOCK,
                                            .pages.page_size = BLOCK};

/* Of the heap of this kind of memory, in which the staging ring is not. */
static uint64_t used_bytes(const driver_bench *b)
{
    return fv_usage(((const vulkan_bench *)b)->driver, 0, 0).bytes;
}

void elastic_growth(vulkan_bench *b, quire_memory *m)
{
    fault_growth(&(fault_elastic){&b->common, m, used_bytes, 0, fails_on});
}

void elastic_lazies(vulkan_bench *b, quire_memory *m)
{
    fault_lazies(&(fault_elastic){&b->common, m, used_bytes, 0, fails_on});
}

/* The contents of a chunk are copied at once: pieces would only be more of the same calls. */
void elastic_sleep(vulkan_bench *b, quire_memory *none)
{
    const quire_vulkan_settings settings = {.staging_size = BLOCK};
    quire_memory *m;
    (void)none;
    if (vulkan_bench_open(b, &settings) && (m = vulkan_bench_memory(b, &FAULT_ELASTIC)))
        fault_sleep(&(fault_elastic){&b->common, m, used_bytes, 0, fails_on});
}
