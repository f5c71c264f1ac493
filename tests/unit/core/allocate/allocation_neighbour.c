/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * allocation_neighbour.c - which allocations may not be neighbours: linear and optimal resources in
 * one granule of the device, and two allocations in one atom of a non-coherent kind.
 */
#include "tests/support/fixture.h"

#include "tests/support/random.h"

enum { GRANULARITY = 1024, ATOM = 64, LIVE = 96, STEPS = 4000 };

static void make(fixture *b, const quire_memory_options *options)
{
    fixture_prepare(b);
    b->fake.info.limits.buffer_image_granularity = GRANULARITY;
    fixture_open(b, options);
}

/* A live allocation: its place, and whether the device uses an opaque layout. */
typedef struct thing {
    quire_allocation allocation;
    bool optimal, is_image;
    uint32_t page;
    uint64_t first, last; /* bytes of the page */
} thing;

static quire_allocation make_image(fixture *b, uint32_t width, uint32_t height, quire_tiling tiling)
{
    quire_image image;
    quire_image_options options = {.width = width, .height = height, .tiling = tiling};
    CHECK_OK(quire_image_create(b->memory, &options, &image));
    return image.allocation;
}

static quire_allocation make_buffer(fixture *b, uint64_t size)
{
    quire_buffer buffer;
    CHECK_OK(quire_buffer_create(b->memory, &(quire_buffer_options){.size = size}, &buffer));
    return buffer.allocation;
}

static thing make_thing(fixture *b, test_random *random)
{
    uint64_t type = random_below(random, 4), size = random_size(random, 5000);
    uint32_t side = (uint32_t)random_size(random, 70);
    thing t = {.optimal = type == 0, .is_image = type <= 1};
    if (type <= 1)
        t.allocation = make_image(b, side, side, type ? QUIRE_TILING_LINEAR : QUIRE_TILING_OPTIMAL);
    else if (type == 2)
        t.allocation = make_buffer(b, size);
    else
        t.allocation =
            ALLOCATE(b, .size = size, .alignment = UINT64_C(1) << random_below(random, 10));
    quire_allocation_info info = fixture_info(b, t.allocation);
    t.page = info.page;
    t.first = info.offset;
    t.last = info.offset + info.requested - 1;
    return t;
}

static bool share_unit(const thing *a, const thing *b, uint64_t unit)
{
    return a->page == b->page && a->first / unit <= b->last / unit &&
           b->first / unit <= a->last / unit;
}

/*
 * Allocates and frees at random. No two live things share a unit of the device, except that linear
 * ones may share a granule where `linear_may` is set. Returns how many linear images do.
 */
static uint64_t play(fixture *b, uint64_t seed, uint64_t unit, bool linear_may)
{
    test_random random = {seed};
    thing live[LIVE] = {{.page = 0}};
    uint64_t shared = 0;
    for (int step = 0; step < STEPS; step++) {
        thing *t = &live[random_below(&random, LIVE)];
        if (t->allocation.id) {
            CHECK_OK(quire_free(b->memory, t->allocation));
            t->allocation.id = 0;
            continue;
        }
        thing made = make_thing(b, &random);
        for (int i = 0; i < LIVE; i++) {
            if (!live[i].allocation.id || !share_unit(&made, &live[i], unit))
                continue;
            CHECK(linear_may && !share_unit(&made, &live[i], 1));
            CHECK_EQ(made.optimal, live[i].optimal);
            shared += made.is_image && !made.optimal;
        }
        *t = made;
    }
    return shared;
}

static const quire_fit FITS[] = {QUIRE_FIT_SEGREGATED, QUIRE_FIT_FIRST, QUIRE_FIT_BUDDY};

UNIT(allocation_neighbour, optimal_images_share_no_granule_with_anything_linear)
{
    for (uint64_t i = 0; i < 6; i++) { /* D2 */
        fixture b;
        make(&b,
             &(quire_memory_options){.fit.algorithm = FITS[i % 3], .pages = {.page_size = 65536}});
        CHECK(play(&b, i, GRANULARITY, true) > 0); /* linear images need no whole granules */
        fixture_end(&b);
    }
}

UNIT(allocation_neighbour, ranges_of_a_non_coherent_kind_share_no_atom)
{
    for (int i = 0; i < 3; i++) {
        fixture b;
        make(&b, &(quire_memory_options){.kind.mask = 4,
                                         .fit = {.granule = 1, .algorithm = FITS[i]},
                                         .pages = {.page_size = 65536}});
        play(&b, 77, ATOM, false);
        fixture_end(&b);
    }
}

UNIT_ON(allocation_neighbour, an_optimal_image_keeps_whole_granules_and_reports_them, fixture, b,
        make(b, &(quire_memory_options){.fit.algorithm = QUIRE_FIT_FIRST}), fixture_end)
{
    make_buffer(b, 100);
    quire_allocation image = make_image(b, 100, 11, QUIRE_TILING_OPTIMAL);
    quire_allocation_info info = fixture_info(b, image);
    CHECK_EQ(info.offset, GRANULARITY);
    CHECK_EQ(info.size, 2 * GRANULARITY);
    CHECK_EQ(info.requested, 1100);
    info = fixture_info(b, make_buffer(b, 100));
    CHECK_EQ(info.offset, 3 * GRANULARITY);
}

UNIT_ON(allocation_neighbour, a_linear_image_is_placed_as_close_as_a_buffer, fixture, b,
        make(b, &(quire_memory_options){.fit.algorithm = QUIRE_FIT_FIRST}), fixture_end)
{
    make_buffer(b, 64);
    quire_allocation_info info = fixture_info(b, make_image(b, 8, 8, QUIRE_TILING_LINEAR));
    CHECK_EQ(info.offset, 64);
    CHECK_EQ(info.size, 64);
    info = fixture_info(b, make_buffer(b, 64));
    CHECK_EQ(info.offset, 128);
}

UNIT(allocation_neighbour, ranges_of_a_coherent_kind_may_be_adjacent)
{
    static const struct {
        uint32_t kind;
        uint64_t offset, size;
    } rows[] = {{1, 3, 5}, {2, ATOM, ATOM}}; /* the second one is not coherent */
    for (int i = 0; i < 2; i++) {
        fixture b;
        make(&b, &(quire_memory_options){.kind.mask = 1u << rows[i].kind,
                                         .fit.algorithm = QUIRE_FIT_FIRST});
        ALLOCATE(&b, .size = 3);
        quire_allocation_info info = fixture_info(&b, ALLOCATE(&b, .size = 5));
        CHECK_EQ(info.offset, rows[i].offset);
        CHECK_EQ(info.size, rows[i].size);
        CHECK_EQ(info.requested, 5);
        fixture_end(&b);
    }
}
