/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_staging.c - the staging ring of the Vulkan backend on the fake driver: its memory kind,
 * the use of both halves, and batches that fill it.
 */
#include <stdlib.h>

#include "backends/vulkan/staging.h"
#include "tests/support/random.h"
#include "tests/support/unit.h"
#include "tests/support/vulkan/layout_file.h"
#include "tests/support/vulkan_bench.h"

#define KIB UINT64_C(1024)

enum { SIZE = 60000, ITEMS = 1000 };

static const quire_memory_options LOCAL = {.kind.required = QUIRE_DEVICE_LOCAL,
                                           .pages = {.page_size = 64 * KIB}};

/* ---- the kind -------------------------------------------------------------------------------- */

#define COHERENT VK_MEMORY_PROPERTY_HOST_COHERENT_BIT
#define CACHED VK_MEMORY_PROPERTY_HOST_CACHED_BIT

static bool is_candidate(VkMemoryPropertyFlags flags)
{
    return flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT &&
           !(flags &
             (VK_MEMORY_PROPERTY_PROTECTED_BIT | QUIRE_DEVICE_COHERENT | QUIRE_DEVICE_UNCACHED));
}

/* Whether a candidate has all of these flags and none of those. */
static bool exists(const qi_vulkan *vulkan, VkMemoryPropertyFlags all, VkMemoryPropertyFlags none)
{
    for (uint32_t i = 0; i < vulkan->memory.memoryTypeCount; i++) {
        VkMemoryPropertyFlags flags = vulkan->memory.memoryTypes[i].propertyFlags;
        if (is_candidate(flags) && (flags & all) == all && !(flags & none))
            return true;
    }
    return false;
}

static void check_kinds(const qi_vulkan *vulkan)
{
    const VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    uint32_t read = qi_vulkan_staging_kind(vulkan, UINT32_MAX, true);
    uint32_t written = qi_vulkan_staging_kind(vulkan, UINT32_MAX, false);
    CHECK(read != UINT32_MAX && written != UINT32_MAX);
    VkMemoryPropertyFlags r = vulkan->memory.memoryTypes[read].propertyFlags;
    VkMemoryPropertyFlags w = vulkan->memory.memoryTypes[written].propertyFlags;
    CHECK(is_candidate(r) && is_candidate(w));
    CHECK_EQ(!!(r & CACHED), exists(vulkan, CACHED, 0));
    CHECK_EQ(!!(w & COHERENT), exists(vulkan, COHERENT, 0));
    if (exists(vulkan, r & CACHED, 0) && !(r & COHERENT))
        CHECK(!exists(vulkan, (r & CACHED) | COHERENT, 0));
    if (r & local)
        CHECK(!exists(vulkan, r & (CACHED | COHERENT), local));
    if (w & local)
        CHECK(!exists(vulkan, w & COHERENT, local));
}

/* In the order of the layout and in the opposite one. */
static void check_layout(const fv_layout *layout, void *user)
{
    qi_vulkan *vulkan = calloc(1, sizeof *vulkan);
    CHECK(vulkan != NULL);
    (void)user;
    vulkan->memory.memoryTypeCount = layout->type_count;
    for (int reversed = 0; reversed < 2; reversed++) {
        for (uint32_t i = 0; i < layout->type_count; i++)
            vulkan->memory.memoryTypes[reversed ? layout->type_count - 1 - i : i].propertyFlags =
                layout->types[i].propertyFlags;
        if (exists(vulkan, 0, 0))
            check_kinds(vulkan);
    }
    free(vulkan);
}

UNIT(vulkan_staging, its_kind_is_fast_for_the_host_that_uses_it)
{
    for (uint32_t i = 0; i < fv_layout_count; i++)
        check_layout(&fv_layouts[i], NULL);
    fv_layout_files(check_layout, NULL);
}

/* The kinds of a GPU without a last-level cache: what the host reads fast is not coherent. */
UNIT(vulkan_staging, cached_memory_is_read_even_if_it_is_not_coherent)
{
    const VkMemoryPropertyFlags visible =
        VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
    fv_layout layout = {
        .type_count = 2,
        .types = {{.propertyFlags = visible | COHERENT}, {.propertyFlags = visible | CACHED}}};
    check_layout(&layout, NULL);
}

/* ---- the halves ------------------------------------------------------------------------------ */

typedef struct world {
    vulkan_bench b;
    quire_memory *memory;
} world;

static void begin(world *w, const char *layout)
{
    vulkan_bench_begin(&w->b, layout, FV_LATE | FV_STALE);
    CHECK(vulkan_bench_open(&w->b, &(quire_vulkan_settings){.staging_size = 8 * KIB}));
    w->memory = vulkan_bench_memory(&w->b, &LOCAL);
}

static void end(world *w)
{
    vulkan_bench_end(&w->b);
}

#define CASE(name, begin) UNIT_ON(vulkan_staging, name, world, w, begin, end)

static void fill_pattern(unsigned char *bytes, uint64_t size, uint64_t key)
{
    for (uint64_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)(i * 7 + i / 251 + key);
}

/* Work on one half is in flight while the host uses the other one. */
static void expect_both_halves(world *w)
{
    CHECK_EQ(fv_most_pending(w->b.driver), 2);
    fv_reset_counters(w->b.driver);
}

UNIT(vulkan_staging, both_halves_carry_bytes_in_both_directions)
{
    static const char *const layouts[] = {"amd-bar", "incoherent", "nvidia-bar"};
    static unsigned char in[SIZE], out[SIZE];
    fill_pattern(in, SIZE, 3);
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        world w;
        quire_allocation made;
        begin(&w, layouts[i]);
        CHECK_OK(quire_allocate(w.memory, &(quire_allocation_options){.size = SIZE}, &made));
        fv_reset_counters(w.b.driver);
        CHECK_OK(quire_write(w.memory, made, 0, in, SIZE));
        expect_both_halves(&w);
        memset(out, 0, SIZE);
        CHECK_OK(quire_read(w.memory, made, 0, out, SIZE));
        expect_both_halves(&w);
        CHECK(!memcmp(in, out, SIZE));
        vulkan_bench_end(&w.b);
    }
}

UNIT_ON(vulkan_staging, both_halves_carry_texels_in_both_directions, world, w, (void)w, end)
{
    enum { SIDE = 60, BYTES = SIDE * SIDE * 4 };
    static unsigned char in[BYTES], out[BYTES];
    quire_image image;
    fill_pattern(in, BYTES, 9);
    begin(w, "amd-bar");
    CHECK_OK(quire_image_create(
        w->memory,
        &(quire_image_options){.width = SIDE,
                               .height = SIDE,
                               .channel_count = 4,
                               .usage = QUIRE_USAGE_TRANSFER_SOURCE | QUIRE_USAGE_TRANSFER_TARGET},
        &image));
    fv_reset_counters(w->b.driver);
    CHECK_OK(quire_lluvia_image_write(w->memory, image, VK_IMAGE_LAYOUT_UNDEFINED,
                                      VK_IMAGE_LAYOUT_GENERAL, in, BYTES));
    expect_both_halves(w);
    CHECK_OK(quire_lluvia_image_read(w->memory, image, VK_IMAGE_LAYOUT_GENERAL, out, BYTES));
    CHECK_EQ(fv_calls(w->b.driver, "vkQueueSubmit"), fv_calls(w->b.driver, "vkWaitForFences"));
    expect_both_halves(w);
    CHECK(!memcmp(in, out, BYTES));
}

/* ---- batches --------------------------------------------------------------------------------- */

static unsigned char model[SIZE], data[ITEMS * 4], back[ITEMS * 4];

/* Many small items of two allocations in two pages. */
static void make_items(quire_write_item *writes, quire_read_item *reads,
                       const quire_allocation *made)
{
    for (int i = 0; i < ITEMS; i++) {
        quire_allocation to = made[i % 20 / 10];
        uint64_t offset = (uint64_t)i * 5;
        writes[i] = (quire_write_item){to, offset, data + i * 4, 4};
        reads[i] = (quire_read_item){to, offset, back + i * 4, 4};
    }
}

CASE(a_thousand_writes_are_one_submission_and_one_wait, begin(w, NULL))
{
    static quire_write_item writes[ITEMS];
    static quire_read_item reads[ITEMS];
    quire_allocation made[2];
    for (int i = 0; i < 2; i++)
        CHECK_OK(quire_allocate(w->memory, &(quire_allocation_options){.size = SIZE}, &made[i]));
    make_items(writes, reads, made);
    fill_pattern(data, sizeof data, 1);
    CHECK_OK(quire_write_batch(w->memory, writes, 1, NULL, NULL)); /* creates the ring */
    fv_reset_counters(w->b.driver);
    CHECK_OK(quire_write_batch(w->memory, writes, ITEMS, NULL, NULL));
    CHECK_EQ(fv_calls(w->b.driver, "vkQueueSubmit"), 1);
    CHECK_EQ(fv_calls(w->b.driver, "vkWaitForFences"), 1);
    fv_reset_counters(w->b.driver);
    CHECK_OK(quire_read_batch(w->memory, reads, ITEMS));
    CHECK_EQ(fv_calls(w->b.driver, "vkQueueSubmit"), 1);
    CHECK_EQ(fv_calls(w->b.driver, "vkWaitForFences"), 1);
    CHECK(!memcmp(data, back, sizeof data));
}

/* Items that share bytes need a barrier between them, others do not. */
UNIT(vulkan_staging, items_that_share_bytes_are_written_in_order)
{
    static const struct {
        uint64_t offset[3], size[3], barriers;
    } cases[] = {{{0, 10, 20}, {10, 10, 10}, 2},
                 {{20, 10, 0}, {10, 10, 10}, 2},
                 {{0, 9, 30}, {10, 10, 10}, 3},
                 {{30, 0, 29}, {10, 10, 10}, 3},
                 {{5, 5, 5}, {10, 10, 10}, 4}};
    static unsigned char bytes[3][10];
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
        world w;
        quire_allocation made;
        quire_write_item items[3];
        begin(&w, NULL);
        CHECK_OK(quire_allocate(w.memory, &(quire_allocation_options){.size = 100}, &made));
        memset(model, 0xee, 100);
        CHECK_OK(quire_write(w.memory, made, 0, model, 100));
        for (int i = 0; i < 3; i++) {
            memset(bytes[i], i + 1, 10);
            memcpy(model + cases[n].offset[i], bytes[i], cases[n].size[i]);
            items[i] = (quire_write_item){made, cases[n].offset[i], bytes[i], cases[n].size[i]};
        }
        fv_reset_counters(w.b.driver);
        CHECK_OK(quire_write_batch(w.memory, items, 3, NULL, NULL));
        CHECK_EQ(fv_calls(w.b.driver, "vkCmdPipelineBarrier"), cases[n].barriers);
        CHECK_OK(quire_read(w.memory, made, 0, back, 100));
        CHECK(!memcmp(model, back, 100));
        vulkan_bench_end(&w.b);
    }
}

/* Random items, small and larger than the ring, of allocations in several pages. */
CASE(random_batches_leave_the_bytes_of_the_model, begin(w, NULL))
{
    enum { COUNT = 12, LENGTH = 9000, BATCH = 300 };
    static unsigned char models[COUNT][LENGTH], source[LENGTH * 3], found[BATCH][600];
    static quire_write_item writes[BATCH];
    static quire_read_item reads[BATCH];
    test_random r = {20};
    quire_allocation made[COUNT];
    for (int i = 0; i < COUNT; i++)
        CHECK_OK(quire_allocate(
            w->memory, &(quire_allocation_options){.size = LENGTH, .zero = true}, &made[i]));
    memset(models, 0, sizeof models);
    for (uint64_t i = 0; i < sizeof source; i++)
        source[i] = (unsigned char)random_next(&r);
    for (int round = 0; round < 40; round++) {
        uint64_t count = random_below(&r, BATCH), few = 1 + random_below(&r, COUNT);
        for (uint64_t i = 0; i < count; i++) {
            uint64_t k = random_below(&r, few), size = random_size(&r, i % 50 ? 600 : LENGTH) - 1;
            uint64_t offset = random_below(&r, LENGTH - size), from = random_below(&r, LENGTH);
            writes[i] = (quire_write_item){made[k], offset, source + from, size};
            memcpy(models[k] + offset, source + from, size);
            size = random_below(&r, 600);
            reads[i] = (quire_read_item){made[k], random_below(&r, LENGTH - size), found[i], size};
        }
        CHECK_OK(quire_write_batch(w->memory, writes, count, NULL, NULL));
        CHECK_OK(quire_read_batch(w->memory, reads, count));
        for (uint64_t i = 0; i < count; i++)
            for (int k = 0; k < COUNT; k++)
                if (reads[i].allocation.id == made[k].id)
                    CHECK(!memcmp(found[i], models[k] + reads[i].offset, reads[i].size));
    }
    for (int i = 0; i < COUNT; i++) {
        CHECK_OK(quire_read(w->memory, made[i], 0, source, LENGTH));
        CHECK(!memcmp(source, models[i], LENGTH));
    }
}
