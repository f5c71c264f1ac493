/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_copy.c - copies of the Vulkan backend on the fake driver: from page to page without bytes
 * in the staging ring, boxes of rows in few submissions, and the texels of linear images.
 */
#include "tests/support/random.h"
#include "tests/support/unit.h"
#include "tests/support/vulkan_bench.h"

#define KIB UINT64_C(1024)

enum { SIZE = 60000 };

static const quire_memory_options LOCAL = {.kind.required = QUIRE_DEVICE_LOCAL,
                                           .pages = {.page_size = 1024 * KIB}};

typedef struct world {
    vulkan_bench b;
    quire_memory *memory;
    quire_allocation allocations[2];
    unsigned char models[2][SIZE];
} world;

static void begin(world *w)
{
    vulkan_bench_begin(&w->b, NULL, 0);
    CHECK(vulkan_bench_open(&w->b, &(quire_vulkan_settings){.staging_size = 8 * KIB}));
    w->memory = vulkan_bench_memory(&w->b, &LOCAL);
    for (int k = 0; k < 2; k++) {
        CHECK_OK(quire_allocate(w->memory, &(quire_allocation_options){.size = SIZE},
                                &w->allocations[k]));
        for (int i = 0; i < SIZE; i++)
            w->models[k][i] = (unsigned char)(k + i * 5 + i / 333);
        CHECK_OK(quire_write(w->memory, w->allocations[k], 0, w->models[k], SIZE));
    }
    fv_reset_counters(w->b.driver);
}

static void end(world *w)
{
    vulkan_bench_end(&w->b);
}

#define CASE(name, begin) UNIT_ON(vulkan_copy, name, world, w, begin, end)

static void expect_models(world *w)
{
    static unsigned char found[SIZE];
    for (int k = 0; k < 2; k++) {
        CHECK_OK(quire_read(w->memory, w->allocations[k], 0, found, SIZE));
        CHECK(!memcmp(found, w->models[k], SIZE));
    }
}

static quire_copy_end end_of(const world *w, int k, uint64_t offset, uint64_t row, uint64_t slice)
{
    return (quire_copy_end){w->memory, w->allocations[k], offset, row, slice};
}

/* The last one has interleaved rows of one allocation: regions of one buffer that share no byte. */
UNIT(vulkan_copy, bytes_of_pages_are_regions_of_few_submissions)
{
    static const struct {
        uint64_t to_at, to_row, to_slice, from_at, from_row, from_slice, size, rows, slices;
        int from;
    } cases[] = {{.size = SIZE, .rows = 1, .slices = 1, .from = 1},
                 {1, 50, 15003, 7, 49, 14800, 33, 300, 4, 1},
                 {32, 64, 0, 0, 64, 0, 32, 500, 1, 0}};
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        static world w;
        const uint64_t rows = cases[n].rows, slices = cases[n].slices, size = cases[n].size;
        begin(&w);
        CHECK_OK(
            quire_copy(&(quire_copy_options){.to = end_of(&w, 0, cases[n].to_at, cases[n].to_row,
                                                          cases[n].to_slice),
                                             .from = end_of(&w, cases[n].from, cases[n].from_at,
                                                            cases[n].from_row, cases[n].from_slice),
                                             .size = size,
                                             .rows = rows,
                                             .slices = slices},
                       NULL));
        CHECK_EQ(fv_calls(w.b.driver, "vkQueueSubmit"), (rows * slices + 255) / 256);
        CHECK_EQ(fv_calls(w.b.driver, "vkCmdCopyBuffer"), (rows * slices + 255) / 256);
        for (uint64_t k = 0; k < slices; k++)
            for (uint64_t i = 0; i < rows; i++)
                memcpy(w.models[0] + cases[n].to_at + k * cases[n].to_slice + i * cases[n].to_row,
                       w.models[cases[n].from] + cases[n].from_at + k * cases[n].from_slice +
                           i * cases[n].from_row,
                       size);
        expect_models(&w);
        vulkan_bench_end(&w.b);
    }
}

/* Rows without gaps on one side and with gaps on the other, smaller and larger than half the
   ring. */
UNIT(vulkan_copy, host_rows_are_packed_into_the_ring)
{
    static const struct {
        uint64_t size, rows, submissions;
    } cases[] = {{10, 400, 1}, {100, 200, 5}, {9000, 3, 7}, {4096, 5, 5}};
    static unsigned char back[SIZE];
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        static world w;
        begin(&w);
        uint64_t size = cases[n].size, rows = cases[n].rows, row = size + 30;
        CHECK_OK(quire_copy(&(quire_copy_options){.to = end_of(&w, 0, 3, row, 0),
                                                  .host_from = w.models[1],
                                                  .size = size,
                                                  .rows = rows},
                            NULL));
        CHECK_EQ(fv_calls(w.b.driver, "vkQueueSubmit"), cases[n].submissions);
        for (uint64_t i = 0; i < rows; i++)
            memcpy(w.models[0] + 3 + i * row, w.models[1] + i * size, size);
        fv_reset_counters(w.b.driver);
        memset(back, 0, sizeof back);
        CHECK_OK(quire_copy(
            &(quire_copy_options){
                .from = end_of(&w, 0, 3, row, 0), .host_to = back, .size = size, .rows = rows},
            NULL));
        CHECK_EQ(fv_calls(w.b.driver, "vkQueueSubmit"), cases[n].submissions);
        CHECK(!memcmp(back, w.models[1], size * rows));
        expect_models(&w);
        vulkan_bench_end(&w.b);
    }
}

CASE(it_says_that_it_stages, begin(w))
{
    quire_copy_path path;
    CHECK_OK(quire_copy_get_path(w->memory, NULL, &path));
    CHECK_EQ(path, QUIRE_COPY_STAGED);
    CHECK_OK(quire_copy_get_path(w->memory, w->memory, &path));
    CHECK_EQ(path, QUIRE_COPY_DIRECT);
}

/* ---- images --------------------------------------------------------------------------------- */

CASE(regions_of_linear_images_are_rows, begin(w))
{
    enum { SIDE = 40, TEXEL = 4 };
    static unsigned char model[SIDE * SIDE * TEXEL], found[SIDE * SIDE * TEXEL];
    quire_image image;
    CHECK_OK(quire_image_create(
        w->memory,
        &(quire_image_options){.width = SIDE,
                               .height = SIDE,
                               .channel_count = 4,
                               .tiling = QUIRE_TILING_LINEAR,
                               .usage = QUIRE_USAGE_TRANSFER_SOURCE | QUIRE_USAGE_TRANSFER_TARGET},
        &image));
    CHECK_OK(quire_lluvia_image_set_layout(w->memory, image, VK_IMAGE_LAYOUT_UNDEFINED,
                                           VK_IMAGE_LAYOUT_GENERAL));
    for (size_t i = 0; i < sizeof model; i++)
        model[i] = (unsigned char)(i * 11);
    CHECK_OK(quire_image_write(w->memory, image, NULL, model, 0, 0));
    const quire_image_region part = {.x = 5, .y = 7, .width = 20, .height = 11};
    CHECK_OK(quire_image_write(w->memory, image, &part, w->models[0], 200, 0));
    for (int y = 0; y < 11; y++)
        memcpy(model + ((7 + y) * SIDE + 5) * TEXEL, w->models[0] + y * 200, 20 * TEXEL);
    CHECK_OK(quire_image_read(w->memory, image, NULL, found, 0, 0));
    CHECK(!memcmp(found, model, sizeof model));
    memset(found, 0, sizeof found);
    CHECK_OK(quire_lluvia_image_read(w->memory, image, VK_IMAGE_LAYOUT_GENERAL, found,
                                     sizeof found)); /* the driver sees the same */
    CHECK(!memcmp(found, model, sizeof model));
}

CASE(texels_in_the_drivers_order_are_not_rows, begin(w))
{
    quire_image image;
    char bytes[100];
    CHECK_OK(
        quire_image_create(w->memory, &(quire_image_options){.width = 10, .height = 10}, &image));
    CHECK_FAILS(quire_image_write(w->memory, image, NULL, bytes, 0, 0), QUIRE_ERROR_UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "quire_lluvia_image_write");
    CHECK_FAILS(quire_image_read(w->memory, image, NULL, bytes, 0, 0), QUIRE_ERROR_UNSUPPORTED);
}

/* ---- what cannot be waited for --------------------------------------------------------------- */

/*
 * The driver executes work only when a call waits, and reports objects that are destroyed while
 * they are in use. An object named by a copy that is still running is destroyed together with the
 * next object after the copy is complete, or with the device.
 */
VULKAN_UNIT_EACH(vulkan_copy, what_a_copy_may_still_use_goes_later, heals, 2)
{
    static const unsigned char texels[10 * 10];
    quire_image image;
    vulkan_bench_start(b, NULL, FV_LATE);
    quire_memory *memory = NULL, *other = vulkan_bench_memory(b, &LOCAL);
    quire_allocation kept;
    CHECK_OK(quire_memory_create(b->device, &LOCAL, &memory));
    CHECK_OK(quire_allocate(other, &(quire_allocation_options){.size = 1}, &kept));
    CHECK_OK(quire_image_create(
        memory,
        &(quire_image_options){.width = 10, .height = 10, .usage = QUIRE_USAGE_TRANSFER_TARGET},
        &image));
    vulkan_bench_stop_waits(b);
    CHECK_FAILS(quire_lluvia_image_write(memory, image, VK_IMAGE_LAYOUT_UNDEFINED,
                                         VK_IMAGE_LAYOUT_GENERAL, texels, sizeof texels),
                QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    CHECK_OK(quire_free(memory, image.allocation));
    CHECK_OK(quire_memory_destroy(&memory));
    CHECK_EQ(fv_live(b->driver, FV_IMAGE), 1);
    CHECK_EQ(fv_live(b->driver, FV_MEMORY), 3); /* including the memory of the ring */
    if (heals) {
        fv_heal(b->driver);
        CHECK_OK(quire_free(other, kept));
        CHECK_OK(quire_memory_trim(other, 0, NULL));
        CHECK_EQ(fv_live(b->driver, FV_IMAGE), 0);
        CHECK_EQ(fv_live(b->driver, FV_MEMORY), 1);
    }
    quire_memory_destroy_all(&other);
    b->memory_count = 0;
}
