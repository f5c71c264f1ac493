/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * image_rows.c - regions of texels of linear images: the places of their rows, written and read by
 * the host and copied from image to image, against a model.
 */
#include "tests/support/unit.h"

#include <string.h>

#include "quire/host.h"
#include "quire/quire.h"
#include "tests/support/random.h"

enum { WIDTH = 11, HEIGHT = 7, DEPTH = 5, TEXEL = 6, TEXELS = WIDTH * HEIGHT * DEPTH };

typedef struct picture {
    quire_image image;
    unsigned char model[TEXELS * TEXEL];
} picture;

typedef struct world {
    quire_device *device;
    quire_memory *memory;
    picture pictures[2];
} world;

static void begin(world *w, uint32_t kind)
{
    const quire_host_options host = {.device = {.host_memory = unit_memory()}};
    const quire_memory_options options = {.kind.mask = UINT32_C(1) << kind};
    CHECK_OK(quire_host_open(&host, &w->device));
    CHECK_OK(quire_memory_create(w->device, &options, &w->memory));
    for (int i = 0; i < 2; i++) {
        memset(w->pictures[i].model, 0, sizeof w->pictures[i].model);
        CHECK_OK(quire_image_create(w->memory,
                                    &(quire_image_options){.width = WIDTH,
                                                           .height = HEIGHT,
                                                           .depth = DEPTH,
                                                           .channel_count = 3,
                                                           .channel_type = QUIRE_UINT16,
                                                           .zero = true},
                                    &w->pictures[i].image));
    }
}

static void end(world *w)
{
    quire_memory_destroy_all(&w->memory);
    CHECK_OK(quire_device_destroy(&w->device));
}

static quire_image_region draw(test_random *r)
{
    quire_image_region at = {.width = (uint32_t)(1 + random_below(r, WIDTH)),
                             .height = (uint32_t)(1 + random_below(r, HEIGHT)),
                             .depth = (uint32_t)(1 + random_below(r, DEPTH))};
    at.x = (uint32_t)random_below(r, WIDTH - at.width + 1);
    at.y = (uint32_t)random_below(r, HEIGHT - at.height + 1);
    at.z = (uint32_t)random_below(r, DEPTH - at.depth + 1);
    return at;
}

static unsigned char *row_of(picture *p, const quire_image_region *at, uint32_t y, uint32_t z)
{
    return p->model + (((size_t)(at->z + z) * HEIGHT + at->y + y) * WIDTH + at->x) * TEXEL;
}

static void expect_model(world *w, picture *p)
{
    unsigned char found[TEXELS * TEXEL];
    CHECK_OK(quire_image_read(w->memory, p->image, NULL, found, 0, 0));
    CHECK(!memcmp(found, p->model, sizeof found));
}

static void write_once(world *w, test_random *r, picture *p)
{
    enum { ROW = WIDTH * TEXEL + 5, SLICE = HEIGHT * ROW + 9 };
    static unsigned char bytes[DEPTH * SLICE], found[DEPTH * SLICE];
    quire_image_region at = draw(r);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)random_next(r);
    CHECK_OK(quire_image_write(w->memory, p->image, &at, bytes, ROW, SLICE));
    memset(found, 0xee, sizeof found);
    CHECK_OK(quire_image_read(w->memory, p->image, &at, found, ROW, SLICE));
    for (uint32_t z = 0; z < at.depth; z++)
        for (uint32_t y = 0; y < at.height; y++) {
            memcpy(row_of(p, &at, y, z), bytes + z * SLICE + y * ROW, at.width * TEXEL);
            CHECK(!memcmp(found + z * SLICE + y * ROW, bytes + z * SLICE + y * ROW,
                          at.width * TEXEL));
            CHECK_EQ(found[z * SLICE + y * ROW + at.width * TEXEL], 0xee);
        }
}

/* The same region at another place of the other image. */
static void copy_once(world *w, test_random *r)
{
    quire_image_region from = draw(r), to = from;
    quire_image_rows source, target;
    to.x = (uint32_t)random_below(r, WIDTH - to.width + 1);
    to.y = (uint32_t)random_below(r, HEIGHT - to.height + 1);
    to.z = (uint32_t)random_below(r, DEPTH - to.depth + 1);
    CHECK_OK(quire_image_get_rows(w->memory, w->pictures[0].image, &from, &source));
    CHECK_OK(quire_image_get_rows(w->memory, w->pictures[1].image, &to, &target));
    CHECK_OK(quire_copy(&(quire_copy_options){.to = target.end,
                                              .from = source.end,
                                              .size = source.size,
                                              .rows = source.rows,
                                              .slices = source.slices},
                        NULL));
    for (uint32_t z = 0; z < to.depth; z++)
        for (uint32_t y = 0; y < to.height; y++)
            memcpy(row_of(&w->pictures[1], &to, y, z), row_of(&w->pictures[0], &from, y, z),
                   to.width * TEXEL);
}

UNIT(image_rows, copy_regions_are_written_read_and_copied)
{
    for (uint32_t kind = 0; kind < 3; kind++) {
        static world w;
        test_random r = {kind};
        begin(&w, kind);
        for (int i = 0; i < 200; i++) {
            write_once(&w, &r, &w.pictures[i % 3 == 0]);
            copy_once(&w, &r);
            expect_model(&w, &w.pictures[0]);
            expect_model(&w, &w.pictures[1]);
        }
        end(&w);
    }
}

UNIT(image_rows, an_empty_extent_means_the_rest_from_its_offset)
{
    static world w;
    quire_image_rows rows;
    begin(&w, 0);
    CHECK_OK(quire_image_get_rows(w.memory, w.pictures[0].image,
                                  &(quire_image_region){.x = 2, .y = 3, .z = 4}, &rows));
    CHECK_EQ(rows.size, (WIDTH - 2) * TEXEL);
    CHECK_EQ(rows.rows, HEIGHT - 3);
    CHECK_EQ(rows.slices, DEPTH - 4);
    CHECK_EQ(rows.end.row_pitch, 128);
    CHECK_EQ(rows.end.offset, 4 * 128 * HEIGHT + 3 * 128 + 2 * TEXEL);
    end(&w);
}

UNIT(image_rows, regions_beyond_the_image_are_refused)
{
    static const quire_image_region wrong[] = {{.x = WIDTH},
                                               {.y = HEIGHT},
                                               {.z = DEPTH},
                                               {.x = 1, .width = WIDTH},
                                               {.y = 2, .height = HEIGHT - 1},
                                               {.z = 1, .depth = UINT32_MAX},
                                               {.x = UINT32_MAX, .width = UINT32_MAX}};
    static world w;
    begin(&w, 1);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        quire_image_rows rows = {.size = 7};
        CHECK_FAILS(quire_image_get_rows(w.memory, w.pictures[0].image, &wrong[i], &rows),
                    QUIRE_ERROR_OUT_OF_RANGE);
        CHECK_EQ(rows.size, 0);
    }
    expect_model(&w, &w.pictures[0]);
    end(&w);
}
