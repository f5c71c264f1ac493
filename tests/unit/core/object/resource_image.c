/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * resource_image.c - images: defaults, channels, dimensions, rows and sizes on the host backend,
 * and the requirements that are known before any allocation.
 */
#include "tests/support/unit.h"

#include "quire/host.h"
#include "quire/quire.h"

typedef struct bench {
    quire_device *device;
    quire_memory *memory;
} bench;

static void make(bench *b, uint64_t row_alignment)
{
    *b = (bench){.device = NULL};
    quire_host_options host = {.row_alignment = row_alignment,
                               .device = {.host_memory = unit_memory()}};
    CHECK_OK(quire_host_open(&host, &b->device));
    CHECK_OK(quire_memory_create(
        b->device, &(quire_memory_options){.fit.algorithm = QUIRE_FIT_FIRST}, &b->memory));
}

static void end(bench *b)
{
    CHECK_OK(quire_memory_check(b->memory));
    quire_memory_destroy_all(&b->memory);
    CHECK_OK(quire_device_destroy(&b->device));
}

#define IMAGE(b, ...) info_of((b), &(quire_image_options){__VA_ARGS__})

/* Creates an image and returns its info. */
static quire_image_info info_of(bench *b, const quire_image_options *options)
{
    quire_image image;
    quire_image_info info;
    CHECK_OK(quire_image_create(b->memory, options, &image));
    CHECK_OK(quire_image_get_info(b->memory, image, &info));
    CHECK_EQ(info.place.object, QUIRE_OBJECT_IMAGE);
    CHECK_EQ(info.place.offset % 64, 0);
    CHECK(info.place.size >= info.minimum_size);
    return info;
}

#define CASE(name, ...) UNIT_ON(resource_image, name, bench, b, make(b, __VA_ARGS__), end)

/* ---- what an image is --------------------------------------------------------------------- */

CASE(one_channel_of_a_byte_each_is_the_default, 0)
{
    quire_image_info info = IMAGE(b, .width = 7, .user_data = 3);
    CHECK_EQ(info.width, 7);
    CHECK_EQ(info.height, 1);
    CHECK_EQ(info.depth, 1);
    CHECK_EQ(info.channel_count, 1);
    CHECK_EQ(info.channel_type, QUIRE_UINT8);
    CHECK_EQ(info.tiling, QUIRE_TILING_OPTIMAL);
    CHECK_EQ(info.usage, QUIRE_USAGE_STORAGE | QUIRE_USAGE_SAMPLED | QUIRE_USAGE_TRANSFER_SOURCE |
                             QUIRE_USAGE_TRANSFER_TARGET);
    CHECK_EQ(info.dimensions, 1);
    CHECK_EQ(info.minimum_size, 7);
    CHECK_EQ(info.row_pitch, 64);
    CHECK_EQ(info.place.size, 64);
    CHECK_EQ(info.place.user_data, 3);
}

CASE(dimensions_follow_the_extents, 0)
{
    static const struct {
        uint32_t width, height, depth, dimensions;
    } cases[] = {
        {5, 0, 0, 1}, {5, 1, 1, 1}, {1, 1, 1, 1}, {5, 4, 0, 2}, {1, 2, 1, 2},
        {5, 4, 3, 3}, {5, 1, 3, 3}, {5, 0, 2, 3}, {1, 1, 2, 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        quire_image_info info =
            IMAGE(b, .width = cases[i].width, .height = cases[i].height, .depth = cases[i].depth);
        CHECK_EQ(info.dimensions, cases[i].dimensions);
        CHECK_EQ(info.height, cases[i].height ? cases[i].height : 1);
        CHECK_EQ(info.depth, cases[i].depth ? cases[i].depth : 1);
    }
}

static const struct {
    quire_channel_type type;
    uint32_t size;
} CHANNELS[] = {
    {QUIRE_UINT8, 1},   {QUIRE_INT8, 1},   {QUIRE_UINT16, 2},  {QUIRE_INT16, 2},
    {QUIRE_FLOAT16, 2}, {QUIRE_UINT32, 4}, {QUIRE_INT32, 4},   {QUIRE_FLOAT32, 4},
    {QUIRE_UINT64, 8},  {QUIRE_INT64, 8},  {QUIRE_FLOAT64, 8},
};
enum { CHANNEL_TYPES = sizeof CHANNELS / sizeof *CHANNELS };

CASE(every_channel_type_with_one_to_four_channels_has_its_size, 0)
{
    for (uint32_t i = 0; i < CHANNEL_TYPES; i++) {
        CHECK_EQ(CHANNELS[i].type, i); /* Lluvia's order */
        CHECK_EQ(quire_channel_size(CHANNELS[i].type), CHANNELS[i].size);
        for (uint32_t count = 1; count <= 4; count++) {
            quire_image_info info = IMAGE(b, .width = 33, .height = 3, .channel_count = count,
                                          .channel_type = CHANNELS[i].type);
            uint64_t row = UINT64_C(33) * count * CHANNELS[i].size;
            CHECK_EQ(info.minimum_size, row * 3);
            CHECK_EQ(info.row_pitch, (row + 63) / 64 * 64);
            CHECK_EQ(info.slice_pitch, info.row_pitch * 3);
            CHECK_EQ(info.place.size, info.slice_pitch);
            CHECK_EQ(info.channel_count, count);
            CHECK_EQ(info.channel_type, CHANNELS[i].type);
        }
    }
    CHECK_EQ(quire_channel_size((quire_channel_type)CHANNEL_TYPES), 0);
    CHECK_EQ(quire_channel_size((quire_channel_type)4711), 0);
}

UNIT(resource_image, rows_follow_the_row_alignment)
{
    static const uint64_t alignments[] = {1, 64, 256, 4096};
    for (int i = 0; i < 4; i++) {
        bench b;
        make(&b, alignments[i]);
        uint64_t pitch = (100 + alignments[i] - 1) / alignments[i] * alignments[i];
        quire_image_info info = IMAGE(&b, .width = 100, .height = 5);
        CHECK_EQ(info.row_pitch, pitch);
        CHECK_EQ(info.place.size, pitch * 5);
        CHECK_EQ(info.minimum_size, 500);
        end(&b);
    }
}

/* ---- refusals ----------------------------------------------------------------------------- */

/* Creating it and querying its requirements fail with the same code. */
static void expect_refused(bench *b, const quire_image_options *options, quire_result code,
                           const char *says)
{
    quire_image image = {{1}};
    quire_requirements needs = {.size = 1};
    CHECK_FAILS(quire_image_create(b->memory, options, &image), code);
    CHECK_HAS(quire_last_error(), says);
    CHECK_EQ(image.allocation.id, 0);
    CHECK_FAILS(quire_image_get_requirements(b->device, options, &needs), code);
    CHECK_HAS(quire_last_error(), says);
    CHECK_EQ(needs.size, 0);
}

CASE(invalid_images_are_refused, 0)
{
    static const struct {
        quire_image_options options;
        const char *says;
    } cases[] = {
        {{.width = 0}, "width 0"},
        {{.width = 0, .height = 3, .depth = 3}, "width 0"},
        {{.width = 1, .channel_count = 5}, "5 channels: 4 at most"},
        {{.width = 1, .channel_count = UINT32_MAX}, "4294967295 channels"},
        {{.width = 1, .channel_type = (quire_channel_type)11}, "no channel type 11"},
        {{.width = 1, .channel_type = (quire_channel_type)1000}, "no channel type 1000"},
        {{.width = 1, .tiling = (quire_tiling)2}, "no tiling 2"},
        {{.width = 1, .unused = {0, 1}}, "quire_image_options.unused[1]"},
        {{.width = 1, .usage = QUIRE_USAGE_VERTEX}, "is not of images"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_refused(b, &cases[i].options, QUIRE_ERROR_INVALID_ARGUMENT, cases[i].says);
}

CASE(texels_that_overflow_are_refused, 0)
{
    static const quire_image_options cases[] = {
        {.width = UINT32_MAX, .height = UINT32_MAX, .depth = 2},
        {.width = UINT32_MAX, .height = UINT32_MAX, .depth = UINT32_MAX},
        {.width = UINT32_MAX,
         .height = UINT32_MAX,
         .channel_count = 4,
         .channel_type = QUIRE_FLOAT64},
        {.width = 1u << 31, .height = 1u << 31, .channel_count = 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_refused(b, &cases[i], QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, "exceeds 64 bits");
}

CASE(padded_rows_that_overflow_are_refused, UINT64_C(1) << 40)
{
    /* one byte of texels in each row, and 2^40 bytes of row */
    quire_image_options options = {.width = 1, .height = 1u << 24};
    expect_refused(b, &options, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                   "1 x 16777216 x 1 texels: its size overflows 64 bits");
}
