/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * images.c - the contract: images of every type, count, dimension and tiling. Creation uses exactly
 * the requirements that were queried before.
 */
#include "tests/contract/kit.h"

enum { SHAPES = 3, MAX_CHANNELS = 4 };

static const uint32_t shapes[SHAPES][3] = {{37, 1, 1}, {19, 7, 1}, {9, 5, 3}};

static uint64_t texel_of(const quire_image_options *options)
{
    return (uint64_t)options->channel_count * quire_channel_size(options->channel_type);
}

/* The requirements of an image have room for its texels. */
static void check_needs(const contract_world *w, const quire_image_options *o,
                        const quire_requirements *needs)
{
    uint64_t row = o->width * texel_of(o), slice = row;
    CHECK(needs->size >= row * o->height * o->depth);
    CHECK(needs->alignment && !(needs->alignment & (needs->alignment - 1)));
    CHECK(needs->kind_mask);
    if (o->tiling == QUIRE_TILING_LINEAR)
        CHECK(needs->row_pitch);
    if (!needs->row_pitch)
        return;
    CHECK(needs->row_pitch >= row);
    CHECK_EQ(needs->row_pitch % w->info.limits.image_row_alignment, 0);
    slice += needs->row_pitch * (o->height - 1);
    if (o->depth > 1)
        CHECK(needs->slice_pitch >= slice);
    CHECK(needs->size >= needs->slice_pitch * (o->depth - 1) + slice);
}

static void check_same(const quire_requirements *a, const quire_requirements *b)
{
    CHECK_EQ(a->size, b->size);
    CHECK_EQ(a->alignment, b->alignment);
    CHECK_EQ(a->kind_mask, b->kind_mask);
    CHECK_EQ(a->dedicated, b->dedicated);
    CHECK_EQ(a->row_pitch, b->row_pitch);
    CHECK_EQ(a->slice_pitch, b->slice_pitch);
}

/*
 * The backend's own object has the requirements that were reported before it existed. Returns true
 * if the backend creates an object instead of a plain range.
 */
static bool check_object(const contract_world *w, const quire_image_options *options,
                         const quire_requirements *reported, quire_result queried)
{
    uint64_t native = 0;
    quire_requirements needs = {0};
    quire_object_request request = {.object = QUIRE_OBJECT_IMAGE, .image = options};
    if (!kit_offers(w, QUIRE_BACKEND_OBJECTS))
        return false;
    CHECK_EQ(w->table->object_create(w->state, &request, &native, &needs), queried);
    if (queried)
        return false;
    check_same(&needs, reported);
    if (native)
        w->table->object_destroy(w->state, QUIRE_OBJECT_IMAGE, native);
    return native != 0;
}

static void check_image(quire_memory *memory, quire_image image, const quire_image_options *o,
                        const quire_requirements *needs, bool is_object)
{
    quire_image_info info;
    quire_native native = kit_native(memory, image.allocation);
    CHECK_OK(quire_image_get_info(memory, image, &info));
    CHECK(info.width == o->width && info.height == o->height && info.depth == o->depth);
    CHECK_EQ(info.channel_count, o->channel_count);
    CHECK_EQ(info.channel_type, o->channel_type);
    CHECK_EQ(info.tiling, o->tiling);
    CHECK_EQ(info.dimensions, o->depth > 1 ? 3 : o->height > 1 ? 2 : 1);
    CHECK_EQ(info.minimum_size, texel_of(o) * o->width * o->height * o->depth);
    CHECK_EQ(info.row_pitch, needs->row_pitch);
    CHECK_EQ(info.slice_pitch, needs->slice_pitch);
    CHECK(info.place.size >= needs->size);
    CHECK(info.place.dedicated || !needs->dedicated);
    CHECK(kit_is_aligned(&native, needs->alignment));
    CHECK_EQ(native.object, QUIRE_OBJECT_IMAGE);
    CHECK_EQ(native.handle != 0, is_object);
}

static void try_image(const contract_world *w, quire_memory **memories,
                      const quire_image_options *options)
{
    quire_requirements needs, again;
    quire_result queried = quire_image_get_requirements(w->device, options, &needs);
    CHECK(!queried || queried == QUIRE_ERROR_UNSUPPORTED);
    CHECK(queried || kit_offers(w, QUIRE_BACKEND_IMAGES));
    CHECK_EQ(quire_image_get_requirements(w->device, options, &again), queried);
    check_same(&needs, &again);
    if (!queried)
        check_needs(w, options, &needs);
    bool is_object = check_object(w, options, &needs, queried);
    for (uint32_t kind = 0; kind < w->info.kind_count; kind++) {
        quire_image image;
        if (!memories[kind])
            continue;
        quire_result made = quire_image_create(memories[kind], options, &image);
        bool can = !queried && needs.kind_mask >> kind & 1;
        CHECK_EQ(made, can ? QUIRE_SUCCESS : QUIRE_ERROR_UNSUPPORTED);
        if (made)
            continue;
        check_image(memories[kind], image, options, &needs, is_object);
        if (options->tiling == QUIRE_TILING_LINEAR && kit_can_both(w, kind)) {
            kit_write(memories[kind], image.allocation, needs.size, needs.size);
            kit_read(memories[kind], image.allocation, needs.size, needs.size);
        }
        CHECK_OK(quire_free(memories[kind], image.allocation));
    }
}

static void open_memories(const contract_world *w, quire_memory **memories)
{
    for (uint32_t kind = 0; kind < w->info.kind_count; kind++)
        memories[kind] = kit_holds_contents(w, kind) || kit_is_for_objects(w, kind)
                             ? kit_memory(w, kind, NULL)
                             : NULL;
}

static void close_memories(const contract_world *w, quire_memory **memories)
{
    for (uint32_t kind = 0; kind < w->info.kind_count; kind++)
        if (memories[kind])
            kit_end(&memories[kind]);
}

static void images_of_all_types(contract_world *w)
{
    quire_memory *memories[QUIRE_MAX_KINDS];
    open_memories(w, memories);
    for (uint32_t shape = 0; shape < SHAPES; shape++)
        for (uint32_t type = QUIRE_UINT8; type <= QUIRE_FLOAT64; type++)
            for (uint32_t count = 1; count <= MAX_CHANNELS; count++)
                for (uint32_t tiling = 0; tiling < 2; tiling++)
                    try_image(w, memories,
                              &(quire_image_options){.width = shapes[shape][0],
                                                     .height = shapes[shape][1],
                                                     .depth = shapes[shape][2],
                                                     .channel_count = count,
                                                     .channel_type = (quire_channel_type)type,
                                                     .tiling = (quire_tiling)tiling,
                                                     .usage = QUIRE_USAGE_TRANSFER_SOURCE |
                                                              QUIRE_USAGE_TRANSFER_TARGET});
    close_memories(w, memories);
}

static void images_of_all_usages(contract_world *w)
{
    static const quire_usage bits[] = {QUIRE_USAGE_TRANSFER_SOURCE, QUIRE_USAGE_TRANSFER_TARGET,
                                       QUIRE_USAGE_STORAGE, QUIRE_USAGE_SAMPLED};
    quire_memory *memories[QUIRE_MAX_KINDS];
    open_memories(w, memories);
    for (uint32_t mask = 1; mask < 16; mask++) {
        quire_usage usage = 0;
        for (uint32_t i = 0; i < 4; i++)
            usage |= mask >> i & 1 ? bits[i] : 0;
        for (uint32_t tiling = 0; tiling < 2; tiling++)
            try_image(w, memories,
                      &(quire_image_options){.width = 33,
                                             .height = 5,
                                             .depth = 1,
                                             .channel_count = 4,
                                             .tiling = (quire_tiling)tiling,
                                             .usage = usage});
    }
    close_memories(w, memories);
}

/*
 * An image larger than any heap: its requirements are reported or refused, and it is never created.
 */
static void large_image(const contract_world *w, const quire_image_options *options)
{
    quire_requirements needs;
    quire_result result = quire_image_get_requirements(w->device, options, &needs);
    CHECK(result == QUIRE_SUCCESS || result == QUIRE_ERROR_UNSUPPORTED ||
          result == QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    if (!result)
        check_needs(w, options, &needs);
    for (uint32_t kind = 0; kind < w->info.kind_count; kind++) {
        quire_image image;
        quire_memory *memory = kit_memory(w, kind, NULL);
        result = quire_image_create(memory, options, &image);
        CHECK(result == QUIRE_ERROR_UNSUPPORTED || result == QUIRE_ERROR_OUT_OF_DEVICE_MEMORY ||
              result == QUIRE_ERROR_OVER_BUDGET || result == QUIRE_ERROR_OUT_OF_RANGE);
        kit_end(&memory);
    }
}

static void images_beyond_all_bounds(contract_world *w)
{
    quire_requirements needs;
    quire_image_options options = {.width = UINT32_MAX,
                                   .height = UINT32_MAX,
                                   .depth = UINT32_MAX,
                                   .channel_count = 4,
                                   .channel_type = QUIRE_FLOAT64};
    CHECK_FAILS(quire_image_get_requirements(w->device, &options, &needs),
                QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    options.depth = 1;
    options.channel_count = 1;
    options.channel_type = QUIRE_UINT8;
    for (uint32_t tiling = 0; tiling < 2; tiling++) {
        options.tiling = (quire_tiling)tiling;
        options.width = options.height = UINT32_MAX;
        large_image(w, &options);
        options.width = options.height = UINT32_C(1)
                                         << 22; /* 16 TiB: the low bits of the size are 0 */
        large_image(w, &options);
    }
}

/* ---- texels ------------------------------------------------------------------------------- */

enum { SIDE = 21, TEXEL = 4, ROW = SIDE * TEXEL };

/* Writes a region of an image into the whole, and reads back the region and the whole. */
static void pass_region(quire_memory *memory, quire_image image)
{
    static unsigned char whole[SIDE * ROW], part[SIDE * ROW], found[SIDE * ROW];
    const quire_image_region region = {.x = 4, .y = 3, .width = 9, .height = 11};
    kit_fill(1, 0, whole, sizeof whole);
    kit_fill(2, 0, part, sizeof part);
    CHECK_OK(quire_image_write(memory, image, NULL, whole, 0, 0));
    CHECK_OK(quire_image_write(memory, image, &region, part, 50, 0));
    for (uint32_t y = 0; y < region.height; y++)
        memcpy(whole + (region.y + y) * ROW + region.x * TEXEL, part + y * 50,
               region.width * TEXEL);
    CHECK_OK(quire_image_read(memory, image, NULL, found, 0, 0));
    CHECK(!memcmp(found, whole, sizeof whole));
    memset(found, 0, sizeof found);
    CHECK_OK(quire_image_read(memory, image, &region, found, 0, 0));
    for (uint32_t y = 0; y < region.height; y++)
        CHECK(!memcmp(found + y * region.width * TEXEL, part + y * 50, region.width * TEXEL));
}

/* An image in the backend's own order has no rows to report. */
static void texels_of_linear_images(contract_world *w)
{
    static const quire_image_options options = {.width = SIDE,
                                                .height = SIDE,
                                                .channel_count = TEXEL,
                                                .tiling = QUIRE_TILING_LINEAR,
                                                .usage = QUIRE_USAGE_TRANSFER_SOURCE |
                                                         QUIRE_USAGE_TRANSFER_TARGET};
    quire_memory *memories[QUIRE_MAX_KINDS];
    open_memories(w, memories);
    for (uint32_t kind = 0; kind < w->info.kind_count; kind++) {
        quire_image image;
        quire_image_info info;
        if (!memories[kind] || !kit_can_both(w, kind) ||
            quire_image_create(memories[kind], &options, &image))
            continue;
        CHECK_OK(quire_image_get_info(memories[kind], image, &info));
        CHECK(info.row_pitch >= ROW);
        pass_region(memories[kind], image);
        CHECK_OK(quire_free(memories[kind], image.allocation));
    }
    close_memories(w, memories);
}

const contract_scenario contract_images[] = {
    {.name = "images of every type, channel count, dimension and tiling have the requirements that "
             "were queried",
     .body = images_of_all_types},
    {.name = "images of every usage have the requirements that were queried",
     .body = images_of_all_usages},
    {.name = "an image larger than any heap has correct requirements or is refused",
     .body = images_beyond_all_bounds},
    {.name = "regions of texels of linear images are written and read back",
     .body = texels_of_linear_images},
    {0},
};
