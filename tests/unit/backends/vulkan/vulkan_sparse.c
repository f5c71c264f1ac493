/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_sparse.c - sparse buffers and images on the fake Vulkan driver: their parts, binding and
 * unbinding, refused requests. On a real driver: vulkan_sparse_driver.c.
 */
#include <pthread.h>

#include "backends/vulkan/sparse.h"
#include "tests/support/unit.h"
#include "tests/support/vulkan_bench.h"
#include "tests/support/vulkan_commands.h"
#include "tests/support/vulkan_native.h"

#define KIB UINT64_C(1024)
#define BLOCK (64 * KIB) /* block size of the fake driver */
#define INVALID QUIRE_ERROR_INVALID_ARGUMENT
#define UNSUPPORTED QUIRE_ERROR_UNSUPPORTED

static const quire_memory_options LOCAL = {
    .kind.required = QUIRE_DEVICE_LOCAL, .name = "local", .pages = {.page_size = 256 * KIB}};

/* The create flags of objects without and with residency. */
static const VkBufferCreateInfo WHOLE = {
    .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
    .flags = VK_BUFFER_CREATE_SPARSE_BINDING_BIT,
    .size = 1000 * KIB,
    .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT,
};
static const VkBufferCreateInfo PARTIAL = {
    .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
    .flags = VK_BUFFER_CREATE_SPARSE_BINDING_BIT | VK_BUFFER_CREATE_SPARSE_RESIDENCY_BIT,
    .size = 16 * BLOCK,
    .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT,
};
static const VkImageCreateInfo PICTURE = {
    VULKAN_IMAGE_2D(VK_FORMAT_R8G8B8A8_UNORM, 512, 512, 1, 1),
    .flags = VK_IMAGE_CREATE_SPARSE_BINDING_BIT,
    .usage = VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT,
};

static quire_memory *begin(vulkan_bench *b, const quire_memory_options *options)
{
    vulkan_bench_start(b, NULL, 0);
    return vulkan_bench_memory(b, options);
}

static quire_vulkan_sparse *make(quire_memory *memory, const VkBufferCreateInfo *info)
{
    quire_vulkan_sparse *sparse = NULL;
    CHECK_OK(quire_vulkan_sparse_buffer_create(
        memory, info, &(quire_vulkan_object_options){.name = "field"}, &sparse));
    CHECK(sparse != NULL);
    return sparse;
}

/* Checks that the parts are contiguous and consist of blocks of a page. Returns the number of bound
   parts. */
static uint32_t check_parts(quire_vulkan_sparse *sparse)
{
    quire_vulkan_sparse_info info = sparse_info(sparse);
    uint32_t parts = 0, bound = 0;
    uint64_t bytes = 0;
    for (uint64_t at = 0; at < info.size; parts++) {
        quire_vulkan_part part = sparse_part(sparse, at);
        quire_allocation_info place;
        CHECK_EQ(part.offset, at);
        CHECK(part.size > 0 && part.size <= info.size - at);
        CHECK_EQ(sparse_part(sparse, at + part.size - 1).offset, at);
        at += part.size;
        if (!part.allocation.id)
            continue;
        CHECK_OK(quire_allocation_get_info(info.memory, part.allocation, &place));
        CHECK_EQ(place.offset % info.block, 0);
        CHECK(place.size >= part.size);
        bytes += part.size;
        bound++;
    }
    CHECK_EQ(parts, info.part_count);
    CHECK_EQ(bytes, info.bound);
    return bound;
}

static uint64_t live_allocations(quire_memory *memory)
{
    quire_memory_stats stats;
    CHECK_OK(quire_memory_get_stats(memory, &stats));
    return stats.allocation_count;
}

static uint32_t word_of(quire_vulkan_sparse *sparse, uint64_t offset)
{
    quire_vulkan_part part = sparse_part(sparse, offset);
    uint32_t word = 0;
    CHECK_OK(
        quire_read(sparse_info(sparse).memory, part.allocation, offset - part.offset, &word, 4));
    return word;
}

/* ---- bound whole ----------------------------------------------------------------------------- */

VULKAN_UNIT_IN(vulkan_sparse, a_buffer_larger_than_a_page_fills_pages, begin(b, &LOCAL))
{
    quire_vulkan_sparse *sparse = make(memory, &WHOLE);
    quire_vulkan_sparse_info info = sparse_info(sparse);
    quire_memory_info pages;
    CHECK(info.buffer != VK_NULL_HANDLE && info.image == VK_NULL_HANDLE);
    CHECK(info.memory == memory && !info.residency);
    CHECK_EQ(info.size, 1024 * KIB); /* whole blocks */
    CHECK_EQ(info.block, BLOCK);
    CHECK_EQ(info.bound, info.size);
    CHECK_EQ(info.part_count, 4);
    CHECK_EQ(check_parts(sparse), 4);
    CHECK_OK(quire_memory_get_info(memory, &pages));
    CHECK_EQ(pages.page_count, 4); /* the parts fill the pages */
    for (uint64_t at = 0; at < info.size; at += BLOCK)
        vulkan_commands_fill(b->device, info.buffer, at,
                             at + BLOCK < WHOLE.size ? BLOCK : WHOLE.size - at,
                             (uint32_t)(at / BLOCK + 7));
    for (uint64_t at = 0; at < info.size; at += BLOCK)
        CHECK_EQ(word_of(sparse, at), at / BLOCK + 7);
    CHECK_OK(quire_vulkan_sparse_destroy(&sparse));
    CHECK(sparse == NULL);
    CHECK_EQ(live_allocations(memory), 0);
}

/* Includes pages that are smaller than a block, and pages that are not a multiple of it. */
VULKAN_UNIT_ON(vulkan_sparse, it_is_placed_by_every_fit_in_pages_of_any_size,
               vulkan_bench_start(b, NULL, 0))
{
    static const uint64_t sizes[] = {16 * KIB, BLOCK, 200 * KIB, 4 * BLOCK, 32 * 1024 * KIB};
    static const quire_fit fits[] = {QUIRE_FIT_SEGREGATED, QUIRE_FIT_FIRST, QUIRE_FIT_BUDDY,
                                     QUIRE_FIT_LINEAR};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t k = 0; k < sizeof fits / sizeof *fits; k++) {
            quire_memory *memory = NULL;
            const quire_memory_options options = {.kind.required = QUIRE_DEVICE_LOCAL,
                                                  .fit.algorithm = fits[k],
                                                  .pages = {.page_size = sizes[i]}};
            CHECK_OK(quire_memory_create(b->device, &options, &memory));
            quire_vulkan_sparse *sparse = make(memory, &WHOLE);
            uint32_t parts = check_parts(sparse);
            CHECK(parts == 1 || sizes[i] < 1024 * KIB);
            CHECK(parts <= 16);
            vulkan_commands_fill(b->device, sparse_info(sparse).buffer, 0, VK_WHOLE_SIZE, 6);
            for (uint64_t at = 0; at < WHOLE.size; at += BLOCK)
                CHECK_EQ(word_of(sparse, at), 6);
            CHECK_OK(quire_vulkan_sparse_destroy(&sparse));
            CHECK_OK(quire_memory_check(memory));
            CHECK_OK(quire_memory_destroy(&memory));
        }
}

VULKAN_UNIT_IN(vulkan_sparse, one_call_binds_it_and_none_unbinds_it, begin(b, &LOCAL))
{
    fv_reset_counters(b->driver);
    quire_vulkan_sparse *sparse = make(memory, &WHOLE);
    CHECK_EQ(fv_calls(b->driver, "vkQueueBindSparse"), 1);
    CHECK_EQ(fv_calls(b->driver, "vkCreateBuffer"), 1);
    CHECK_EQ(fv_live(b->driver, FV_FENCE), 0);
    fv_reset_counters(b->driver);
    CHECK_OK(quire_vulkan_sparse_destroy(&sparse));
    CHECK_EQ(fv_calls(b->driver, NULL), 1); /* pages are retained */
    CHECK_EQ(fv_calls(b->driver, "vkDestroyBuffer"), 1);
}

VULKAN_UNIT_IN(vulkan_sparse, its_parts_have_its_name_and_can_be_written, begin(b, &LOCAL))
{
    char name[16];
    quire_vulkan_sparse *sparse = make(memory, &WHOLE);
    quire_vulkan_part part = sparse_part(sparse, 300 * KIB);
    const uint32_t word = 99;
    CHECK_EQ(part.offset, 256 * KIB);
    CHECK_OK(quire_allocation_get_name(memory, part.allocation, name, sizeof name));
    CHECK_STR(name, "field");
    CHECK_OK(quire_write(memory, part.allocation, 0, &word, 4));
    vulkan_commands_fill(b->device, sparse_info(sparse).buffer, 256 * KIB + 4, 4, 5);
    CHECK_EQ(word_of(sparse, 256 * KIB), 99);
    CHECK_EQ(word_of(sparse, 256 * KIB + 4), 5);
}

/* The memory has only holes of one and two blocks, and cannot get another page. */
VULKAN_UNIT(vulkan_sparse, it_takes_what_others_have_left)
{
    enum { HELD = 8 };
    quire_allocation held[HELD];
    quire_memory_options full = LOCAL;
    full.pages.max_pages = 2;
    quire_memory *memory = begin(b, &full);
    for (int i = 0; i < HELD; i++)
        CHECK_OK(quire_allocate(
            memory, &(quire_allocation_options){.size = BLOCK, .alignment = BLOCK}, &held[i]));
    for (int i = 0; i < HELD; i += 2)
        CHECK_OK(quire_free(memory, held[i]));
    VkBufferCreateInfo info = WHOLE;
    info.size = 4 * BLOCK;
    quire_vulkan_sparse *sparse = make(memory, &info);
    CHECK_EQ(check_parts(sparse), 4);
    CHECK(quire_last_result() == QUIRE_SUCCESS); /* failed attempts do not change the last error */
    vulkan_commands_fill(b->device, sparse_info(sparse).buffer, 0, info.size, 3);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(word_of(sparse, (uint64_t)i * BLOCK), 3);
    quire_vulkan_sparse *none = NULL;
    uint64_t buffers = fv_live(b->driver, FV_BUFFER);
    CHECK_FAILS(quire_vulkan_sparse_buffer_create(memory, &info, NULL, &none),
                QUIRE_ERROR_TOO_MANY_PAGES);
    CHECK(!none);
    CHECK_EQ(live_allocations(memory), 4 + HELD / 2);
    CHECK_EQ(fv_live(b->driver, FV_BUFFER), buffers);
}

VULKAN_UNIT_IN(vulkan_sparse, an_image_is_bound_whole_as_well, begin(b, &LOCAL))
{
    quire_vulkan_sparse *sparse = NULL;
    CHECK_OK(quire_vulkan_sparse_image_create(memory, &PICTURE, NULL, &sparse));
    quire_vulkan_sparse_info info = sparse_info(sparse);
    CHECK(info.image != VK_NULL_HANDLE && info.buffer == VK_NULL_HANDLE);
    CHECK_EQ(info.size, 1024 * KIB);
    CHECK_EQ(info.aspect_count, 0);
    CHECK_EQ(check_parts(sparse), 4);
}

VULKAN_UNIT(vulkan_sparse, images_keep_the_granularity_to_their_neighbours)
{
    quire_allocation_info place;
    quire_vulkan_sparse *sparse = NULL;
    fv_layout layout = *fv_layout_named("amd-bar");
    layout.granularity = 2 * BLOCK;
    vulkan_bench_start_with(b, &(fv_options){.layouts = {&layout}});
    quire_memory *memory = vulkan_bench_memory(b, &LOCAL);
    VkImageCreateInfo info = PICTURE;
    info.extent.height = 224; /* 7 blocks */
    CHECK_OK(quire_vulkan_sparse_image_create(memory, &info, NULL, &sparse));
    CHECK_EQ(sparse_info(sparse).size, 7 * BLOCK);
    for (uint64_t at = 0; at < 7 * BLOCK; at += sparse_part(sparse, at).size) {
        CHECK_OK(quire_allocation_get_info(memory, sparse_part(sparse, at).allocation, &place));
        CHECK_EQ(place.offset % layout.granularity, 0);
        CHECK_EQ(place.size % layout.granularity, 0);
    }
}

/* ---- resident in parts ----------------------------------------------------------------------- */

VULKAN_UNIT_IN(vulkan_sparse, blocks_are_bound_and_unbound_in_any_order, begin(b, &LOCAL))
{
    quire_vulkan_sparse *sparse = make(memory, &PARTIAL);
    CHECK(sparse_info(sparse).residency);
    CHECK_EQ(sparse_info(sparse).part_count, 16);
    CHECK_EQ(check_parts(sparse), 0);
    CHECK_EQ(live_allocations(memory), 0);
    CHECK_OK(quire_vulkan_sparse_bind(sparse, 4 * BLOCK, 8 * BLOCK));
    CHECK_EQ(check_parts(sparse), 8);
    VkBuffer buffer = sparse_info(sparse).buffer;
    vulkan_commands_fill(b->device, buffer, 4 * BLOCK, 8 * BLOCK, 1);
    CHECK_OK(quire_vulkan_sparse_unbind(sparse, 5 * BLOCK, BLOCK));
    CHECK_OK(quire_vulkan_sparse_unbind(sparse, 10 * BLOCK, 0)); /* to the end */
    CHECK_EQ(check_parts(sparse), 5);
    CHECK_EQ(live_allocations(memory), 5);
    CHECK(!sparse_part(sparse, 5 * BLOCK).allocation.id);
    CHECK_OK(quire_vulkan_sparse_bind(sparse, 0, 0)); /* the rest */
    CHECK_EQ(check_parts(sparse), 16);
    vulkan_commands_fill(b->device, buffer, 5 * BLOCK, BLOCK, 2);
    CHECK_EQ(word_of(sparse, 4 * BLOCK), 1); /* bound blocks keep their bytes */
    CHECK_EQ(word_of(sparse, 5 * BLOCK), 2);
    CHECK_EQ(word_of(sparse, 9 * BLOCK), 1);
    CHECK_OK(quire_vulkan_sparse_unbind(sparse, 0, 0));
    CHECK_EQ(live_allocations(memory), 0);
}

VULKAN_UNIT_IN(vulkan_sparse, what_is_already_so_costs_no_call, begin(b, &LOCAL))
{
    quire_vulkan_sparse *sparse = make(memory, &PARTIAL);
    CHECK_OK(quire_vulkan_sparse_bind(sparse, 0, 4 * BLOCK));
    uint64_t first = sparse_part(sparse, 0).allocation.id;
    fv_reset_counters(b->driver);
    CHECK_OK(quire_vulkan_sparse_bind(sparse, 0, 4 * BLOCK));
    CHECK_OK(quire_vulkan_sparse_unbind(sparse, 4 * BLOCK, 0));
    CHECK_EQ(fv_calls(b->driver, NULL), 0);
    CHECK_EQ(sparse_part(sparse, 0).allocation.id, first);
}

VULKAN_UNIT(vulkan_sparse, a_refused_bind_changes_nothing)
{
    quire_memory_options small = LOCAL;
    small.limit = 512 * KIB;
    quire_memory *memory = begin(b, &small);
    quire_vulkan_sparse *sparse = make(memory, &PARTIAL);
    CHECK_OK(quire_vulkan_sparse_bind(sparse, 2 * BLOCK, BLOCK));
    CHECK_FAILS(quire_vulkan_sparse_bind(sparse, 0, 0), QUIRE_ERROR_OVER_BUDGET);
    CHECK_EQ(check_parts(sparse), 1);
    const fv_fault fault = {.function = "vkQueueBindSparse", .call = 1};
    CHECK(fv_fail(b->driver, &fault));
    CHECK_FAILS(quire_vulkan_sparse_unbind(sparse, 0, 0), QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    CHECK_EQ(check_parts(sparse), 1);
    CHECK(fv_fail(b->driver, &fault));
    CHECK_FAILS(quire_vulkan_sparse_bind(sparse, 0, 5 * BLOCK), QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    CHECK_EQ(check_parts(sparse), 1);
    CHECK_EQ(live_allocations(memory), 1);
    CHECK_OK(quire_vulkan_sparse_bind(sparse, 0, 5 * BLOCK));
}

enum { THREADS = 4, ROUNDS = 60 };

typedef struct toggling {
    quire_vulkan_sparse *sparse;
    uint64_t first;
} toggling;

/* Binds blocks that overlap those of the next thread. */
static void *toggle(void *argument)
{
    const toggling *t = argument;
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_OK(quire_vulkan_sparse_bind(t->sparse, t->first * BLOCK, 5 * BLOCK));
        CHECK_OK(quire_vulkan_sparse_unbind(t->sparse, (t->first + 1) * BLOCK, 3 * BLOCK));
    }
    return NULL;
}

VULKAN_UNIT_IN(vulkan_sparse, threads_take_turns, begin(b, &LOCAL))
{
    pthread_t threads[THREADS];
    toggling work[THREADS];
    quire_vulkan_sparse *sparse = make(memory, &PARTIAL);
    for (unsigned i = 0; i < THREADS; i++) {
        work[i] = (toggling){sparse, i * 3};
        CHECK(!pthread_create(&threads[i], NULL, toggle, &work[i]));
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ(live_allocations(memory), check_parts(sparse));
    CHECK_OK(quire_vulkan_sparse_destroy(&sparse));
    CHECK_EQ(live_allocations(memory), 0);
}

/* Each thread has its own object, and copies, which also use the queue. */
static void *bind_and_copy(void *argument)
{
    quire_memory *memory = argument;
    quire_vulkan_sparse *sparse = make(memory, &PARTIAL);
    const uint32_t word = 77;
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_OK(quire_vulkan_sparse_bind(sparse, 0, BLOCK));
        CHECK_OK(quire_write(memory, sparse_part(sparse, 0).allocation, 0, &word, 4));
        CHECK_OK(quire_vulkan_sparse_unbind(sparse, 0, BLOCK));
    }
    CHECK_OK(quire_vulkan_sparse_destroy(&sparse));
    return NULL;
}

/* A queue without a lock of the caller. The driver lingers in calls, so that it detects two threads
   on the queue. */
VULKAN_UNIT(vulkan_sparse, different_objects_and_copies_take_turns_at_the_queue)
{
    pthread_t threads[THREADS];
    vulkan_bench_start_with(
        b, &(fv_options){.layouts = {fv_layout_named("amd-bar")}, .linger_us = 50});
    quire_memory *memory = vulkan_bench_memory(b, &LOCAL);
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&threads[i], NULL, bind_and_copy, memory));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ(live_allocations(memory), 0);
}

/* ---- tiles of images ------------------------------------------------------------------------- */

/* Two levels of tiles of 128 x 128 texels, 5 x 3 and 3 x 2, and a tail for each layer. */
static const VkImageCreateInfo TILED = {
    VULKAN_IMAGE_2D(VK_FORMAT_R8G8B8A8_UNORM, 600, 300, 4, 2),
    .flags = VK_IMAGE_CREATE_SPARSE_BINDING_BIT | VK_IMAGE_CREATE_SPARSE_RESIDENCY_BIT,
    .usage = VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT,
};

static quire_vulkan_sparse *make_tiled(quire_memory *memory, const VkImageCreateInfo *info)
{
    quire_vulkan_sparse *sparse = NULL;
    CHECK_OK(quire_vulkan_sparse_image_create(memory, info, NULL, &sparse));
    return sparse;
}

static const quire_vulkan_aspect *aspect_of(const quire_vulkan_sparse_info *info,
                                            VkImageAspectFlags aspect)
{
    for (uint32_t i = 0; i < info->aspect_count; i++)
        if (info->aspects[i].aspect == aspect)
            return &info->aspects[i];
    check_failed(__FILE__, __LINE__, "the image has no aspect 0x%x", aspect);
    return info->aspects;
}

/* Finds every block by its region. Every texel of the levels with tiles is in exactly one block. */
static uint64_t check_regions(quire_vulkan_sparse *sparse)
{
    quire_vulkan_sparse_info info = sparse_info(sparse);
    uint64_t texels = 0;
    for (uint64_t at = 0; at < info.size; at += info.block) {
        quire_vulkan_part part = sparse_part(sparse, at);
        uint64_t found;
        CHECK_OK(quire_vulkan_sparse_find(sparse, &part.region, &found));
        CHECK(part.is_tail ? found <= at : found == at);
        CHECK_EQ(part.is_tail,
                 part.region.level >= aspect_of(&info, part.region.aspect)->tiled_levels);
        if (!part.is_tail)
            texels += (uint64_t)part.region.extent.width * part.region.extent.height *
                      part.region.extent.depth;
    }
    return texels;
}

VULKAN_UNIT_IN(vulkan_sparse, an_image_is_resident_tile_by_tile, begin(b, &LOCAL))
{
    uint64_t at = 0;
    quire_vulkan_sparse *sparse = make_tiled(memory, &TILED);
    quire_vulkan_sparse_info info = sparse_info(sparse);
    CHECK_EQ(info.aspect_count, 1);
    CHECK_EQ(info.aspects->aspect, VK_IMAGE_ASPECT_COLOR_BIT);
    CHECK_EQ(info.aspects->tile.width, 128);
    CHECK_EQ(info.aspects->tile.height, 128);
    CHECK_EQ(info.aspects->tiled_levels, 2); /* 150 x 75 is lower than a tile */
    CHECK_EQ(info.part_count, 2 * (15 + 6) + 2 * 1);
    CHECK_EQ(check_regions(sparse), 2 * (600 * 300 + 300 * 150));
    CHECK_EQ(info.bound, 0);
    const quire_vulkan_region some = {
        .layer = 1, .offset = {384, 128, 0}, .extent = {216, 172, 1}}; /* to the corner */
    CHECK_OK(quire_vulkan_sparse_bind_region(sparse, &some));
    CHECK_EQ(check_parts(sparse), 4);
    CHECK_OK(quire_vulkan_sparse_find(sparse, &some, &at));
    CHECK_EQ(at, (21 + 5 + 3) * BLOCK);
    CHECK(sparse_part(sparse, at).allocation.id && sparse_part(sparse, at + BLOCK).allocation.id);
    CHECK(!sparse_part(sparse, at - BLOCK).allocation.id);
    const quire_vulkan_region rest = {.layer = 1};
    CHECK_OK(quire_vulkan_sparse_bind_region(sparse, &rest));
    CHECK_EQ(check_parts(sparse), 15);
    const quire_vulkan_region tail = {.level = 3, .layer = 0};
    CHECK_OK(quire_vulkan_sparse_bind_region(sparse, &tail));
    CHECK(sparse_part(sparse, 42 * BLOCK).allocation.id && sparse_part(sparse, 42 * BLOCK).is_tail);
    CHECK(!sparse_part(sparse, 43 * BLOCK).allocation.id);
    CHECK_OK(quire_vulkan_sparse_unbind_region(sparse, &rest));
    CHECK_OK(quire_vulkan_sparse_unbind_region(sparse, &(quire_vulkan_region){.level = 2}));
    CHECK_EQ(check_parts(sparse), 0);
    CHECK_OK(quire_vulkan_sparse_bind(sparse, 0, 0));
    CHECK_EQ(check_parts(sparse), 44);
    CHECK_OK(quire_vulkan_sparse_destroy(&sparse));
    CHECK_EQ(live_allocations(memory), 0);
}

VULKAN_UNIT_IN(vulkan_sparse, images_of_three_dimensions_have_tiles_too, begin(b, &LOCAL))
{
    VkImageCreateInfo info = TILED;
    info.imageType = VK_IMAGE_TYPE_3D;
    info.extent = (VkExtent3D){64, 40, 20}; /* 2 x 2 x 2 tiles of 32 x 32 x 16 */
    info.mipLevels = 1;
    info.arrayLayers = 1;
    quire_vulkan_sparse *sparse = make_tiled(memory, &info);
    CHECK_EQ(sparse_info(sparse).part_count, 8);
    CHECK_EQ(check_regions(sparse), 64 * 40 * 20);
    const quire_vulkan_region back = {.offset = {0, 32, 16}};
    CHECK_OK(quire_vulkan_sparse_bind_region(sparse, &back));
    CHECK_EQ(check_parts(sparse), 2);
    CHECK(sparse_part(sparse, 6 * BLOCK).allocation.id &&
          sparse_part(sparse, 7 * BLOCK).allocation.id);
}

VULKAN_UNIT_IN(vulkan_sparse, regions_are_checked, begin(b, &LOCAL))
{
    static const struct {
        quire_vulkan_region region;
        quire_result result;
    } wrong[] = {
        {{.level = 4}, QUIRE_ERROR_OUT_OF_RANGE},
        {{.layer = 2}, QUIRE_ERROR_OUT_OF_RANGE},
        {{.offset = {-128, 0, 0}}, QUIRE_ERROR_OUT_OF_RANGE},
        {{.offset = {640, 0, 0}}, QUIRE_ERROR_OUT_OF_RANGE},
        {{.offset = {0, 0, 1}}, QUIRE_ERROR_OUT_OF_RANGE},
        {{.extent = {0, 301, 0}}, QUIRE_ERROR_OUT_OF_RANGE},
        {{.offset = {128, 0, 0}, .extent = {UINT32_MAX, 0, 0}}, QUIRE_ERROR_OUT_OF_RANGE},
        {{.level = 3, .extent = {76, 0, 0}}, QUIRE_ERROR_OUT_OF_RANGE},
        {{.offset = {1, 0, 0}}, INVALID},
        {{.extent = {0, 127, 0}}, INVALID},
        {{.offset = {128, 0, 0}, .extent = {100, 0, 0}}, INVALID},
        {{.unused = {0, 0, 0, 1}}, INVALID},
    };
    uint64_t at = 0;
    quire_vulkan_sparse *sparse = make_tiled(memory, &TILED);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK_FAILS(quire_vulkan_sparse_bind_region(sparse, &wrong[i].region), wrong[i].result);
        CHECK_FAILS(quire_vulkan_sparse_unbind_region(sparse, &wrong[i].region), wrong[i].result);
        CHECK_FAILS(quire_vulkan_sparse_find(sparse, &wrong[i].region, &at), wrong[i].result);
    }
    CHECK_FAILS(quire_vulkan_sparse_find(sparse, NULL, &at), INVALID);
    CHECK_EQ(check_parts(sparse), 0);
}

/* ---- what cannot be waited for --------------------------------------------------------------- */

/* The driver executes work only when a call waits, and reports objects that are destroyed while
   they are in use. */
static quire_memory *begin_late(vulkan_bench *b)
{
    vulkan_bench_start(b, NULL, FV_LATE);
    quire_memory *memory = NULL;
    CHECK_OK(quire_memory_create(b->device, &LOCAL, &memory));
    return memory;
}

#define UNKNOWN QUIRE_ERROR_OUT_OF_HOST_MEMORY /* the result of a change whose wait failed */

VULKAN_UNIT_IN(vulkan_sparse, a_change_that_cannot_be_waited_for_is_finished_by_the_next,
               begin_late(b))
{
    quire_vulkan_sparse *sparse = make(memory, &PARTIAL);
    vulkan_bench_stop_waits(b);
    fv_reset_counters(b->driver);
    CHECK_FAILS(quire_vulkan_sparse_bind(sparse, 0, 3 * BLOCK), UNKNOWN);
    CHECK_EQ(check_parts(sparse), 0); /* until the outcome is known */
    CHECK_EQ(live_allocations(memory), 3);
    CHECK_FAILS(quire_vulkan_sparse_bind(sparse, 8 * BLOCK, BLOCK), UNKNOWN);
    CHECK_FAILS(quire_vulkan_sparse_unbind(sparse, 0, 0), UNKNOWN);
    CHECK_FAILS(quire_vulkan_sparse_destroy(&sparse), UNKNOWN);
    CHECK_FAILS(quire_memory_destroy(&memory), QUIRE_ERROR_BUSY);
    CHECK_EQ(fv_calls(b->driver, "vkQueueBindSparse"), 1);
    fv_heal(b->driver);
    CHECK_OK(quire_vulkan_sparse_bind(sparse, 0, 3 * BLOCK));
    CHECK_EQ(fv_calls(b->driver, "vkQueueBindSparse"), 1); /* the earlier change has taken effect */
    CHECK_EQ(check_parts(sparse), 3);
    vulkan_commands_fill(b->device, sparse_info(sparse).buffer, 0, 3 * BLOCK, 9);
    CHECK_EQ(word_of(sparse, 2 * BLOCK), 9);

    vulkan_bench_stop_waits(b);
    CHECK_FAILS(quire_vulkan_sparse_unbind(sparse, BLOCK, BLOCK), UNKNOWN);
    CHECK_EQ(check_parts(sparse), 3);
    fv_heal(b->driver);
    CHECK_OK(quire_vulkan_sparse_bind(sparse, 0, BLOCK)); /* is bound already */
    CHECK_EQ(check_parts(sparse), 2);
    CHECK_EQ(live_allocations(memory), 2);
    CHECK_OK(quire_vulkan_sparse_destroy(&sparse));
    CHECK_OK(quire_memory_destroy(&memory));
}

/* A block that is mapped after its unbinding was submitted stays until it is unmapped. */
VULKAN_UNIT(vulkan_sparse, a_part_that_is_mapped_meanwhile_does_not_go)
{
    quire_memory *local = begin_late(b), *memory = NULL;
    CHECK_OK(quire_memory_create(
        b->device, &(quire_memory_options){.kind.required = QUIRE_HOST_VISIBLE}, &memory));
    quire_vulkan_sparse *sparse = make(memory, &PARTIAL);
    CHECK_OK(quire_vulkan_sparse_bind(sparse, 0, BLOCK));
    vulkan_bench_stop_waits(b);
    CHECK_FAILS(quire_vulkan_sparse_unbind(sparse, 0, BLOCK), UNKNOWN);
    fv_heal(b->driver);
    quire_allocation part = sparse_part(sparse, 0).allocation;
    void *pointer = NULL;
    CHECK_OK(quire_map(memory, part, &pointer));
    CHECK_FAILS(quire_vulkan_sparse_unbind(sparse, 0, BLOCK), QUIRE_ERROR_BUSY);
    CHECK_FAILS(quire_vulkan_sparse_destroy(&sparse), QUIRE_ERROR_BUSY);
    CHECK_OK(quire_unmap(memory, part));
    CHECK_OK(quire_vulkan_sparse_unbind(sparse, 0, BLOCK));
    CHECK_EQ(live_allocations(memory), 0);
    CHECK_OK(quire_vulkan_sparse_destroy(&sparse));
    CHECK_OK(quire_memory_destroy(&memory));
    CHECK_OK(quire_memory_destroy(&local));
}

VULKAN_UNIT_IN(vulkan_sparse, an_object_is_not_made_so_and_nothing_of_it_goes_too_early,
               begin_late(b))
{
    quire_vulkan_sparse *sparse = NULL;
    vulkan_bench_stop_waits(b);
    CHECK_FAILS(quire_vulkan_sparse_buffer_create(memory, &WHOLE, NULL, &sparse), UNKNOWN);
    CHECK(sparse == NULL);
    CHECK_FAILS(quire_memory_destroy(&memory), QUIRE_ERROR_BUSY);
    CHECK_EQ(fv_live(b->driver, FV_BUFFER), 1);
    fv_heal(b->driver);
    CHECK_OK(quire_memory_destroy(&memory));
    CHECK_EQ(fv_live(b->driver, FV_BUFFER), 0);
    CHECK_EQ(fv_live(b->driver, FV_MEMORY), 0);
}

/* Its pages are destroyed with the next page after the change is complete, or with the device. */
VULKAN_UNIT_EACH(vulkan_sparse, a_memory_that_must_go_leaves_it_to_the_device, heals, 2)
{
    quire_memory *memory = begin_late(b), *other = NULL;
    quire_allocation made;
    CHECK_OK(quire_memory_create(b->device, &LOCAL, &other));
    CHECK_OK(quire_allocate(other, &(quire_allocation_options){.size = 1}, &made));
    quire_vulkan_sparse *sparse = make(memory, &PARTIAL);
    vulkan_bench_stop_waits(b);
    CHECK_FAILS(quire_vulkan_sparse_bind(sparse, 0, 3 * BLOCK), UNKNOWN);
    quire_memory_destroy_all(&memory);
    CHECK_EQ(fv_live(b->driver, FV_BUFFER), 1);
    CHECK_EQ(fv_live(b->driver, FV_FENCE), 1);
    uint64_t pages = fv_live(b->driver, FV_MEMORY);
    if (heals)
        fv_heal(b->driver);
    quire_memory_destroy_all(&other);
    CHECK_EQ(fv_live(b->driver, FV_MEMORY), heals ? 0 : pages);
    CHECK_EQ(fv_live(b->driver, FV_FENCE), !heals);
    CHECK_OK(quire_device_destroy(&b->device));
}

VULKAN_UNIT_IN(vulkan_sparse, of_a_lost_device_nothing_is_waited_for, begin_late(b))
{
    quire_vulkan_sparse *sparse = make(memory, &PARTIAL);
    vulkan_bench_stop_waits(b);
    CHECK_FAILS(quire_vulkan_sparse_bind(sparse, 0, 3 * BLOCK), UNKNOWN);
    fv_heal(b->driver);
    fv_lose_devices(b->driver);
    fv_allow(b->driver, "not done");
    CHECK_FAILS(quire_vulkan_sparse_bind(sparse, 0, BLOCK), QUIRE_ERROR_DEVICE_LOST);
    CHECK_EQ(live_allocations(memory), 0);
    CHECK_OK(quire_vulkan_sparse_destroy(&sparse));
    CHECK_OK(quire_memory_destroy(&memory));
}

/* ---- the end --------------------------------------------------------------------------------- */

VULKAN_UNIT_ON(vulkan_sparse, a_memory_is_busy_with_an_object_of_which_nothing_is_bound,
               vulkan_bench_start(b, NULL, 0))
{
    quire_memory *memory = NULL;
    CHECK_OK(quire_memory_create(b->device, &LOCAL, &memory));
    quire_vulkan_sparse *one = make(memory, &PARTIAL), *other = NULL;
    CHECK_OK(quire_vulkan_sparse_buffer_create(memory, &PARTIAL, NULL, &other));
    CHECK_FAILS(quire_memory_destroy(&memory), QUIRE_ERROR_BUSY);
    CHECK_STR(quire_last_error(),
              "memory 'local' still has objects of backend vulkan: '(unnamed)', 'field'");
    CHECK_OK(quire_vulkan_sparse_destroy(&other));
    CHECK_FAILS(quire_memory_destroy(&memory), QUIRE_ERROR_BUSY);
    CHECK_STR(quire_last_error(), "memory 'local' still has objects of backend vulkan: 'field'");
    CHECK_OK(quire_vulkan_sparse_destroy(&one));
    CHECK_OK(quire_vulkan_sparse_destroy(&one)); /* an object that is NULL */
    CHECK_OK(quire_memory_destroy(&memory));
}

VULKAN_UNIT_ON(vulkan_sparse, destroy_all_ends_it_too, vulkan_bench_start(b, NULL, 0))
{
    quire_memory *memory = NULL;
    CHECK_OK(quire_memory_create(b->device, &LOCAL, &memory));
    make(memory, &PARTIAL);
    CHECK_OK(quire_vulkan_sparse_bind(make(memory, &PARTIAL), 0, 0));
    make(memory, &WHOLE);
    CHECK_FAILS(quire_memory_destroy(&memory), QUIRE_ERROR_BUSY);
    quire_memory_destroy_all(&memory);
    CHECK_EQ(fv_live(b->driver, FV_BUFFER), 0);
    CHECK_EQ(fv_live(b->driver, FV_MEMORY), 0);
}

VULKAN_UNIT(vulkan_sparse, a_mapped_part_keeps_it)
{
    void *bytes;
    quire_memory *memory = begin(b, &(quire_memory_options){.kind.required = QUIRE_HOST_VISIBLE,
                                                            .pages = {.page_size = 4 * BLOCK}});
    quire_vulkan_sparse *sparse = make(memory, &PARTIAL), *same = sparse;
    CHECK_OK(quire_vulkan_sparse_bind(sparse, 0, 2 * BLOCK));
    quire_allocation second = sparse_part(sparse, BLOCK).allocation;
    CHECK_OK(quire_map(memory, second, &bytes));
    CHECK_FAILS(quire_vulkan_sparse_unbind(sparse, 0, 0), QUIRE_ERROR_BUSY);
    CHECK_FAILS(quire_vulkan_sparse_destroy(&sparse), QUIRE_ERROR_BUSY);
    CHECK(sparse == same);
    CHECK_EQ(check_parts(sparse), 2);
    vulkan_commands_fill(b->device, sparse_info(sparse).buffer, BLOCK, 4, 8);
    CHECK_OK(quire_invalidate(memory, second, 0, 0));
    CHECK_EQ(*(uint32_t *)bytes, 8);
    CHECK_OK(quire_unmap(memory, second));
}

/* ---- the queue ------------------------------------------------------------------------------- */

/* Wraps the bench's device again, with these features. */
static quire_device *wrap(vulkan_bench *b, const VkPhysicalDeviceFeatures *features,
                          quire_vulkan_queue queue)
{
    quire_device *device = NULL;
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                     .pEnabledFeatures = features};
    quire_vulkan_wrap_options options = vulkan_bench_wrap(b);
    options.device_info = &info;
    options.queue = queue;
    CHECK_OK(quire_vulkan_wrap(&options, &device));
    return device;
}

/* Checks that such a device refuses an object, and the message. */
static void refused_on(vulkan_bench *b, const VkPhysicalDeviceFeatures *features,
                       quire_vulkan_queue queue, const VkBufferCreateInfo *info, const char *part)
{
    quire_vulkan_sparse *sparse = NULL;
    quire_memory *memory = NULL;
    quire_device *device = wrap(b, features, queue);
    CHECK_OK(quire_memory_create(device, &LOCAL, &memory));
    uint64_t before = fv_calls(b->driver, "vkCreateBuffer");
    CHECK_FAILS(quire_vulkan_sparse_buffer_create(memory, info, NULL, &sparse), UNSUPPORTED);
    CHECK_HAS(quire_last_error(), part);
    CHECK_EQ(fv_calls(b->driver, "vkCreateBuffer"), before);
    CHECK_OK(quire_memory_destroy(&memory));
    CHECK_OK(quire_device_destroy(&device));
}

VULKAN_UNIT_ON(vulkan_sparse, what_the_device_lacks_is_named, begin(b, &LOCAL))
{
    const VkPhysicalDeviceFeatures none = {.robustBufferAccess = VK_FALSE};
    const VkPhysicalDeviceFeatures binding = {.sparseBinding = VK_TRUE};
    const VkPhysicalDeviceFeatures all = {.sparseBinding = VK_TRUE,
                                          .sparseResidencyBuffer = VK_TRUE};
    const quire_vulkan_handles h = vulkan_bench_handles(b);
    const quire_vulkan_queue queue = {.queue = h.queue, .family = h.queue_family};
    refused_on(b, NULL, queue, &WHOLE, "sparseBinding");
    refused_on(b, &none, queue, &WHOLE, "sparseBinding");
    refused_on(b, &binding, queue, &PARTIAL, "sparseResidencyBuffer");
    refused_on(b, &all, (quire_vulkan_queue){.family = 0}, &WHOLE, "without a queue");
    VkBufferCreateInfo aliased = WHOLE;
    aliased.flags |= VK_BUFFER_CREATE_SPARSE_ALIASED_BIT;
    refused_on(b, &all, queue, &aliased, "sparseResidencyAliased");
}

/* ---- misuse ---------------------------------------------------------------------------------- */

static quire_result try_options(quire_memory *memory, quire_vulkan_object_options options)
{
    quire_vulkan_sparse *sparse = NULL;
    quire_result result = quire_vulkan_sparse_buffer_create(memory, &PARTIAL, &options, &sparse);
    CHECK(!sparse);
    return result;
}

VULKAN_UNIT_IN(vulkan_sparse, descriptions_and_options_are_checked, begin(b, &LOCAL))
{
    char name[QUIRE_MAX_NAME + 2];
    quire_vulkan_sparse *sparse = NULL;
    quire_buffer buffer;
    quire_image image;
    quire_requirements needs;
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = 0;
    CHECK_FAILS(try_options(memory, (quire_vulkan_object_options){.alignment = 3}), INVALID);
    CHECK_FAILS(try_options(memory, (quire_vulkan_object_options){.name = name}), INVALID);
    CHECK_FAILS(try_options(memory, (quire_vulkan_object_options){.unused = {0, 1}}), INVALID);
    CHECK_FAILS(try_options(memory, (quire_vulkan_object_options){.host_read = true}),
                QUIRE_ERROR_NOT_HOST_VISIBLE);
    VkBufferCreateInfo info = WHOLE;
    info.size = 0;
    CHECK_FAILS(quire_vulkan_sparse_buffer_create(memory, &info, NULL, &sparse), INVALID);
    info.size = UINT64_MAX;
    CHECK_FAILS(quire_vulkan_sparse_buffer_create(memory, &info, NULL, &sparse),
                QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    info = WHOLE;
    info.flags = 0;
    CHECK_FAILS(quire_vulkan_sparse_buffer_create(memory, &info, NULL, &sparse), INVALID);
    info.flags = VK_BUFFER_CREATE_SPARSE_RESIDENCY_BIT;
    CHECK_FAILS(quire_vulkan_sparse_buffer_create(memory, &info, NULL, &sparse), INVALID);
    VkImageCreateInfo picture = PICTURE;
    picture.flags |= VK_IMAGE_CREATE_SPARSE_RESIDENCY_BIT;
    picture.imageType = VK_IMAGE_TYPE_1D;
    picture.extent.height = 1;
    CHECK_FAILS(quire_vulkan_sparse_image_create(memory, &picture, NULL, &sparse), UNSUPPORTED);
    picture = PICTURE;
    picture.extent.width = 0;
    CHECK_FAILS(quire_vulkan_sparse_image_create(memory, &picture, NULL, &sparse), INVALID);
    /* an allocation is one range; the requirements can be queried */
    CHECK_FAILS(quire_vulkan_buffer_create(memory, &WHOLE, NULL, &buffer), UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "quire_vulkan_sparse_buffer_create");
    CHECK_FAILS(quire_vulkan_image_create(memory, &PICTURE, NULL, &image), UNSUPPORTED);
    CHECK_OK(quire_vulkan_buffer_requirements(b->device, &WHOLE, &needs));
    CHECK_EQ(needs.alignment, BLOCK);
    CHECK_OK(quire_vulkan_image_requirements(b->device, &PICTURE, &needs));
    CHECK_EQ(needs.size, 1024 * KIB);
}

VULKAN_UNIT_IN(vulkan_sparse, ranges_are_checked, begin(b, &LOCAL))
{
    quire_vulkan_part part;
    uint64_t offset = 1;
    quire_vulkan_sparse *sparse = make(memory, &PARTIAL), *whole = make(memory, &WHOLE);
    const quire_vulkan_region region = {.level = 0};
    CHECK_FAILS(quire_vulkan_sparse_bind(sparse, 1, BLOCK), INVALID);
    CHECK_FAILS(quire_vulkan_sparse_bind(sparse, 0, BLOCK - 1), INVALID);
    CHECK_FAILS(quire_vulkan_sparse_bind(sparse, 16 * BLOCK, 0), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_FAILS(quire_vulkan_sparse_bind(sparse, BLOCK, 16 * BLOCK), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_FAILS(quire_vulkan_sparse_bind(sparse, BLOCK, UINT64_MAX), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_FAILS(quire_vulkan_sparse_unbind(sparse, BLOCK, 1), INVALID);
    CHECK_FAILS(quire_vulkan_sparse_unbind(sparse, UINT64_MAX, 1), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_FAILS(quire_vulkan_sparse_bind(whole, 0, BLOCK), UNSUPPORTED);
    CHECK_FAILS(quire_vulkan_sparse_unbind(whole, 0, BLOCK), UNSUPPORTED);
    CHECK_FAILS(quire_vulkan_sparse_bind_region(whole, &region), UNSUPPORTED);
    CHECK_FAILS(quire_vulkan_sparse_bind_region(sparse, &region), INVALID);
    CHECK_FAILS(quire_vulkan_sparse_unbind_region(sparse, &region), INVALID);
    CHECK_FAILS(quire_vulkan_sparse_bind_region(sparse, NULL), INVALID);
    CHECK_FAILS(quire_vulkan_sparse_find(sparse, &region, &offset), INVALID);
    CHECK_EQ(offset, 0);
    CHECK_FAILS(quire_vulkan_sparse_get_part(sparse, 16 * BLOCK, &part), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_FAILS(quire_vulkan_sparse_get_part(whole, UINT64_MAX, &part), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_EQ(part.size, 0);
    CHECK_EQ(check_parts(sparse), 0);
}

VULKAN_UNIT_IN(vulkan_sparse, a_part_is_the_objects_to_free, begin(b, &LOCAL))
{
    quire_vulkan_sparse *sparse = make(memory, &PARTIAL), *whole = make(memory, &WHOLE);
    CHECK_OK(quire_vulkan_sparse_bind(sparse, 0, 2 * BLOCK));
    quire_allocation part = sparse_part(sparse, 0).allocation;
    CHECK_FAILS(quire_free(memory, part), QUIRE_ERROR_BUSY);
    CHECK_FAILS(quire_free_batch(memory, &part, 1), QUIRE_ERROR_BUSY);
    CHECK_FAILS(quire_free(memory, sparse_part(whole, 0).allocation), QUIRE_ERROR_BUSY);
    CHECK_OK(quire_vulkan_sparse_unbind(sparse, 0, BLOCK));
    CHECK_FAILS(quire_free(memory, part), QUIRE_ERROR_STALE_HANDLE);
    CHECK_OK(quire_vulkan_sparse_destroy(&sparse));
    CHECK_OK(quire_vulkan_sparse_destroy(&whole));
    CHECK_EQ(live_allocations(memory), 0);
}
