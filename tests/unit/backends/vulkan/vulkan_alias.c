/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_alias.c - objects that share the bytes of an allocation, on the fake Vulkan driver.
 */
#include "quire/vulkan_sparse.h"
#include "tests/support/unit.h"
#include "tests/support/vulkan_bench.h"
#include "tests/support/vulkan_native.h"

#define KIB UINT64_C(1024)
#define INVALID QUIRE_ERROR_INVALID_ARGUMENT
#define UNSUPPORTED QUIRE_ERROR_UNSUPPORTED

static const VkBufferCreateInfo BUFFER = VULKAN_BUFFER(4 * KIB, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT);
static const VkImageCreateInfo IMAGE =
    VULKAN_IMAGE(16, VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT);

typedef struct bench {
    vulkan_bench b;
    quire_memory *memory;
    quire_allocation range; /* of 64 KiB, at a multiple of 4 KiB */
    uint64_t objects;       /* Vulkan objects before the first alias */
} bench;

static uint64_t count_objects(const bench *t)
{
    return fv_live(t->b.driver, FV_BUFFER) + fv_live(t->b.driver, FV_IMAGE);
}

/* Uses this bufferImageGranularity. 0: that of the layout. */
static void begin(bench *t, uint64_t granularity, uint32_t flags)
{
    fv_layout layout = *fv_layout_named("amd-bar");
    layout.granularity = granularity ? granularity : layout.granularity;
    vulkan_bench_start_with(&t->b, &(fv_options){.layouts = {&layout}, .flags = flags});
    t->memory = vulkan_bench_memory(&t->b, &(quire_memory_options){.name = "shared"});
    const quire_allocation_options options = {.size = 64 * KIB, .alignment = 4 * KIB};
    CHECK_OK(quire_allocate(t->memory, &options, &t->range));
    fv_allow(t->b.driver, "fv-overlap"); /* the objects overlap on purpose */
    t->objects = count_objects(t);
}

static void end(bench *t)
{
    vulkan_bench_end(&t->b);
}

#define CASE(name, begin) UNIT_ON(vulkan_alias, name, bench, t, begin, end)

static quire_vulkan_alias *make(const bench *t, uint64_t offset)
{
    quire_vulkan_alias *alias = NULL;
    CHECK_OK(quire_vulkan_alias_buffer_create(
        t->memory, t->range, &BUFFER,
        &(quire_vulkan_alias_options){.offset = offset, .name = "view"}, &alias));
    return alias;
}

static quire_vulkan_alias_info info_of(quire_vulkan_alias *alias)
{
    quire_vulkan_alias_info info;
    CHECK_OK(quire_vulkan_alias_get_info(alias, &info));
    return info;
}

static uint64_t number_of(quire_vulkan_alias *alias)
{
    quire_vulkan_alias_info info = info_of(alias);
    return info.buffer ? (uint64_t)(uintptr_t)info.buffer : (uint64_t)(uintptr_t)info.image;
}

static quire_result try_image(const bench *t, const VkImageCreateInfo *info, uint64_t offset)
{
    quire_vulkan_alias *alias = NULL;
    quire_result result = quire_vulkan_alias_image_create(
        t->memory, t->range, info, &(quire_vulkan_alias_options){.offset = offset}, &alias);
    CHECK(!result == (alias != NULL));
    if (!result)
        CHECK_OK(quire_vulkan_alias_destroy(&alias));
    return result;
}

static quire_result try_buffer(const bench *t, quire_allocation allocation,
                               const VkBufferCreateInfo *info, quire_vulkan_alias_options options)
{
    quire_vulkan_alias *alias = NULL;
    quire_result result =
        quire_vulkan_alias_buffer_create(t->memory, allocation, info, &options, &alias);
    CHECK(!alias);
    return result;
}

/* ---- where they lie -------------------------------------------------------------------------- */

CASE(objects_lie_at_their_offset_of_one_range, begin(t, 0, 0))
{
    quire_vulkan_range range;
    quire_vulkan_alias *image = NULL;
    char name[16];
    CHECK_OK(quire_vulkan_get_range(t->memory, t->range, &range));
    quire_vulkan_alias *one = make(t, 0), *other = make(t, 2 * KIB);
    CHECK_OK(quire_vulkan_alias_image_create(t->memory, t->range, &IMAGE, NULL, &image));
    quire_vulkan_alias *all[] = {one, other, image};
    const uint64_t offsets[] = {0, 2 * KIB, 0};
    for (int i = 0; i < 3; i++) {
        quire_vulkan_alias_info info = info_of(all[i]);
        fv_place place = fv_place_of(t->b.driver, number_of(all[i]));
        CHECK(info.memory == t->memory && info.allocation.id == t->range.id);
        CHECK_EQ(info.offset, offsets[i]);
        CHECK(place.memory == range.memory);
        CHECK_EQ(place.offset, range.memory_offset + offsets[i]);
        CHECK_EQ(place.size, info.size);
    }
    fv_name_of(t->b.driver, number_of(one), name, sizeof name);
    CHECK_STR(name, "view");
    for (int i = 0; i < 3; i++)
        CHECK_OK(quire_vulkan_alias_destroy(&all[i]));
    CHECK(!all[0]);
    CHECK_OK(quire_vulkan_alias_destroy(&all[0])); /* an alias that is NULL */
    CHECK_EQ(count_objects(t), t->objects);
}

CASE(an_object_can_be_shared_as_a_range_can, begin(t, 0, 0))
{
    quire_buffer buffer;
    quire_vulkan_alias *alias = NULL;
    CHECK_OK(quire_vulkan_buffer_create(t->memory, &BUFFER, NULL, &buffer));
    CHECK_OK(quire_vulkan_alias_buffer_create(t->memory, buffer.allocation, &BUFFER, NULL, &alias));
    uint64_t native = (uint64_t)(uintptr_t)vulkan_buffer_of(t->memory, buffer);
    CHECK(native != number_of(alias));
    CHECK_EQ(fv_place_of(t->b.driver, native).offset,
             fv_place_of(t->b.driver, number_of(alias)).offset);
    CHECK_FAILS(quire_free(t->memory, buffer.allocation), QUIRE_ERROR_BUSY);
    CHECK_OK(quire_vulkan_alias_destroy(&alias));
    CHECK_OK(quire_free(t->memory, buffer.allocation));
}

/* ---- the end --------------------------------------------------------------------------------- */

CASE(the_place_stays_while_one_is_on_it, begin(t, 0, 0))
{
    quire_vulkan_alias *one = make(t, 0), *other = make(t, 0);
    CHECK_FAILS(quire_free(t->memory, t->range), QUIRE_ERROR_BUSY);
    CHECK_OK(quire_vulkan_alias_destroy(&one));
    CHECK_FAILS(quire_free_batch(t->memory, &t->range, 1), QUIRE_ERROR_BUSY);
    CHECK_OK(quire_vulkan_alias_destroy(&other));
    CHECK_OK(quire_free(t->memory, t->range));
}

CASE(the_memory_is_busy_with_it_and_ends_it_with_the_rest, begin(t, 0, 0))
{
    quire_memory *memory = NULL;
    CHECK_OK(quire_memory_create(t->b.device, NULL, &memory));
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 64 * KIB}, &t->range));
    quire_memory *before = t->memory;
    t->memory = memory;
    make(t, 0);
    make(t, 8 * KIB);
    CHECK_FAILS(quire_memory_destroy(&memory), QUIRE_ERROR_BUSY);
    CHECK(count_objects(t) >= t->objects + 2);
    quire_memory_destroy_all(&memory);
    CHECK_EQ(count_objects(t), t->objects);
    t->memory = before;
}

/* ---- what is refused ------------------------------------------------------------------------- */

CASE(the_place_must_hold_it, begin(t, 0, 0))
{
    const quire_vulkan_alias_options none = {.offset = 0};
    VkBufferCreateInfo large = BUFFER;
    large.size = 64 * KIB + 4;
    CHECK_FAILS(try_buffer(t, t->range, &large, none), QUIRE_ERROR_OUT_OF_RANGE);
    large.size = 64 * KIB;
    CHECK_FAILS(try_buffer(t, t->range, &large, (quire_vulkan_alias_options){.offset = 256}),
                QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_FAILS(
        try_buffer(t, t->range, &BUFFER, (quire_vulkan_alias_options){.offset = UINT64_MAX - 1}),
        QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_FAILS(try_buffer(t, t->range, &BUFFER, (quire_vulkan_alias_options){.offset = 1}),
                INVALID);
    CHECK_FAILS(try_image(t, &IMAGE, 128), INVALID); /* images need alignment 256 */
    CHECK_OK(try_image(t, &IMAGE, 256));
    CHECK_EQ(count_objects(t), t->objects);
    CHECK_OK(quire_free(t->memory, t->range)); /* no alias holds it */
}

/* A neighbour of the range can be a buffer. */
CASE(images_of_optimal_tiling_keep_the_granularity, begin(t, 4 * KIB, 0))
{
    CHECK_FAILS(try_image(t, &IMAGE, KIB), INVALID);
    CHECK_OK(try_image(t, &IMAGE, 4 * KIB));
    quire_allocation whole = t->range;
    CHECK_OK(quire_allocate(
        t->memory, &(quire_allocation_options){.size = 3 * KIB, .alignment = 4 * KIB}, &t->range));
    CHECK_FAILS(try_image(t, &IMAGE, 0), QUIRE_ERROR_OUT_OF_RANGE); /* too large if rounded up */
    CHECK_OK(quire_free(t->memory, whole));
}

/* Its neighbours are images: images need no room, and buffers do. */
CASE(an_image_among_images_is_shared_with_images, begin(t, 4 * KIB, 0))
{
    quire_image image;
    VkImageCreateInfo large = IMAGE;
    VkBufferCreateInfo small = BUFFER;
    large.extent.width *= 8;
    small.size = 16;
    CHECK_OK(quire_vulkan_image_create(t->memory, &IMAGE, NULL, &image)); /* moves the next one */
    CHECK_OK(quire_vulkan_image_create(t->memory, &large, NULL, &image));
    CHECK_OK(quire_free(t->memory, t->range));
    t->range = image.allocation;
    t->objects = count_objects(t);
    quire_native native;
    CHECK_OK(quire_allocation_get_native(t->memory, t->range, &native));
    CHECK(native.is_among_images && native.offset % (4 * KIB));
    CHECK_OK(try_image(t, &IMAGE, 0));
    CHECK_FAILS(try_buffer(t, t->range, &small, (quire_vulkan_alias_options){.offset = 0}),
                INVALID);
}

CASE(memory_of_ones_own_is_not_shared, begin(t, 0, FV_REQUIRE_DEDICATED))
{
    quire_buffer buffer;
    CHECK_FAILS(try_image(t, &IMAGE, 0), UNSUPPORTED); /* it requires a dedicated page */
    quire_image image;
    CHECK_OK(quire_vulkan_image_create(t->memory, &IMAGE, NULL, &image));
    VkBufferCreateInfo small = BUFFER;
    small.size = 16;
    CHECK_FAILS(try_buffer(t, image.allocation, &small, (quire_vulkan_alias_options){.offset = 0}),
                UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "dedicated");
    /* a page that is dedicated at the caller's request can be shared like any other */
    CHECK_OK(quire_vulkan_buffer_create(
        t->memory, &BUFFER, &(quire_vulkan_object_options){.dedicated = true}, &buffer));
    quire_vulkan_alias *alias = NULL;
    CHECK_OK(quire_vulkan_alias_buffer_create(t->memory, buffer.allocation, &small, NULL, &alias));
    CHECK_OK(quire_vulkan_alias_destroy(&alias));
}

CASE(descriptions_handles_and_options_are_checked, begin(t, 0, 0))
{
    char name[QUIRE_MAX_NAME + 2];
    quire_allocation reserved, freed;
    const quire_vulkan_alias_options none = {.offset = 0};
    const quire_allocation_options options = {.size = 64 * KIB, .alignment = 4 * KIB};
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = 0;
    CHECK_OK(quire_reserve(t->memory, &options, &reserved));
    CHECK_OK(quire_allocate(t->memory, &options, &freed));
    CHECK_OK(quire_free(t->memory, freed));
    VkBufferCreateInfo wrong = BUFFER;
    CHECK_FAILS(try_buffer(t, (quire_allocation){0}, &BUFFER, none), INVALID);
    CHECK_FAILS(try_buffer(t, freed, &BUFFER, none), QUIRE_ERROR_STALE_HANDLE);
    CHECK_FAILS(try_buffer(t, reserved, &BUFFER, none), QUIRE_ERROR_WRONG_STATE);
    CHECK_FAILS(try_buffer(t, t->range, &BUFFER, (quire_vulkan_alias_options){.name = name}),
                INVALID);
    CHECK_FAILS(try_buffer(t, t->range, &BUFFER, (quire_vulkan_alias_options){.unused = {1}}),
                INVALID);
    wrong.size = 0;
    CHECK_FAILS(try_buffer(t, t->range, &wrong, none), INVALID);
    wrong.size = KIB;
    wrong.flags = VK_BUFFER_CREATE_SPARSE_BINDING_BIT;
    CHECK_FAILS(try_buffer(t, t->range, &wrong, none), UNSUPPORTED);
    VkImageCreateInfo picture = IMAGE;
    picture.flags = VK_IMAGE_CREATE_SPARSE_BINDING_BIT;
    CHECK_FAILS(try_image(t, &picture, 0), UNSUPPORTED);
    picture = IMAGE;
    picture.extent.width = 0;
    CHECK_FAILS(try_image(t, &picture, 0), INVALID);
    CHECK_OK(quire_abort(t->memory, reserved));
}

CASE(a_kind_that_cannot_hold_it_is_refused, begin(t, 0, FV_FEW_TYPES))
{
    quire_requirements needs;
    quire_device_info device;
    CHECK_OK(quire_vulkan_buffer_requirements(t->b.device, &BUFFER, &needs));
    CHECK_OK(quire_device_get_info(t->b.device, &device));
    uint32_t kind = 0;
    while (needs.kind_mask >> kind & 1 || device.kinds[kind].flags & 0xe0)
        CHECK(++kind < device.kind_count);
    t->memory =
        vulkan_bench_memory(&t->b, &(quire_memory_options){.kind.mask = UINT32_C(1) << kind});
    CHECK(t->memory != NULL);
    CHECK_OK(quire_allocate(t->memory, &(quire_allocation_options){.size = 64 * KIB}, &t->range));
    CHECK_FAILS(try_buffer(t, t->range, &BUFFER, (quire_vulkan_alias_options){.offset = 0}),
                UNSUPPORTED);
}
