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

static quire_allocation make_range(fixture *b, uint64_t size, uint64_t alignment)
{
    quire_allocation range = ALLOCATE(b, .size = size, .alignment = alignment);
    return range;
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
        t.allocation = make_range(b, size, UINT64_C(1) << random_below(random, 10));
    quire_allocation_info info;
    CHECK_OK(quire_allocation_get_info(b->memory, t.allocation, &info));
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
 * Allocates and frees at random. Returns the number of linear images that share a granule with
 * another linear resource.
 */
static uint64_t play(fixture *b, uint64_t seed)
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
            if (!live[i].allocation.id || !share_unit(&made, &live[i], GRANULARITY))
                continue;
            CHECK(!share_unit(&made, &live[i], 1));
            CHECK_EQ(made.optimal, live[i].optimal);
            shared += made.is_image && !made.optimal;
        }
        *t = made;
    }
    return shared;
}

UNIT(allocation_neighbour, optimal_images_share_no_granule_with_anything_linear)
{
    static const quire_fit fits[] = {QUIRE_FIT_SEGREGATED, QUIRE_FIT_FIRST, QUIRE_FIT_BUDDY};
    for (uint64_t i = 0; i < 6; i++) { /* D2 */
        fixture b;
        make(&b,
             &(quire_memory_options){.fit.algorithm = fits[i % 3], .pages = {.page_size = 65536}});
        CHECK(play(&b, i) > 0); /* linear images do not need whole granules */
        fixture_end(&b);
    }
}

UNIT_ON(allocation_neighbour, an_optimal_image_keeps_whole_granules_and_reports_them, fixture, b,
        make(b, &(quire_memory_options){.fit.algorithm = QUIRE_FIT_FIRST}), fixture_end)
{
    make_buffer(b, 100);
    quire_allocation image = make_image(b, 100, 11, QUIRE_TILING_OPTIMAL);
    quire_allocation_info info;
    CHECK_OK(quire_allocation_get_info(b->memory, image, &info));
    CHECK_EQ(info.offset, GRANULARITY);
    CHECK_EQ(info.size, 2 * GRANULARITY);
    CHECK_EQ(info.requested, 1100);
    CHECK_OK(quire_allocation_get_info(b->memory, make_buffer(b, 100), &info));
    CHECK_EQ(info.offset, 3 * GRANULARITY);
}

UNIT_ON(allocation_neighbour, a_linear_image_is_placed_as_close_as_a_buffer, fixture, b,
        make(b, &(quire_memory_options){.fit.algorithm = QUIRE_FIT_FIRST}), fixture_end)
{
    make_buffer(b, 64);
    quire_allocation_info info;
    CHECK_OK(quire_allocation_get_info(b->memory, make_image(b, 8, 8, QUIRE_TILING_LINEAR), &info));
    CHECK_EQ(info.offset, 64);
    CHECK_EQ(info.size, 64);
    CHECK_OK(quire_allocation_get_info(b->memory, make_buffer(b, 64), &info));
    CHECK_EQ(info.offset, 128);
}

UNIT(allocation_neighbour, ranges_of_a_non_coherent_kind_share_no_atom)
{
    static const quire_fit fits[] = {QUIRE_FIT_SEGREGATED, QUIRE_FIT_FIRST, QUIRE_FIT_BUDDY};
    for (int i = 0; i < 3; i++) {
        fixture b;
        make(&b, &(quire_memory_options){.kind.mask = 4,
                                         .fit = {.granule = 1, .algorithm = fits[i]},
                                         .pages = {.page_size = 65536}});
        test_random random = {77};
        thing live[LIVE] = {{.page = 0}};
        for (int step = 0; step < STEPS; step++) {
            thing *t = &live[random_below(&random, LIVE)];
            if (t->allocation.id) {
                CHECK_OK(quire_free(b.memory, t->allocation));
                t->allocation.id = 0;
                continue;
            }
            thing made = make_thing(&b, &random);
            for (int k = 0; k < LIVE; k++)
                CHECK(!live[k].allocation.id || !share_unit(&made, &live[k], ATOM));
            *t = made;
        }
        fixture_end(&b);
    }
}

UNIT(allocation_neighbour, ranges_of_a_coherent_kind_may_be_adjacent)
{
    fixture b;
    make(&b, &(quire_memory_options){.kind.required = QUIRE_HOST_VISIBLE,
                                     .fit.algorithm = QUIRE_FIT_FIRST});
    quire_allocation_info info;
    make_range(&b, 3, 1);
    CHECK_OK(quire_allocation_get_info(b.memory, make_range(&b, 5, 1), &info));
    CHECK_EQ(info.offset, 3);
    CHECK_EQ(info.size, 5);
    fixture_end(&b);
    make(&b, &(quire_memory_options){.kind.mask = 4, .fit.algorithm = QUIRE_FIT_FIRST});
    make_range(&b, 3, 1);
    CHECK_OK(quire_allocation_get_info(b.memory, make_range(&b, 5, 1), &info));
    CHECK_EQ(info.offset, ATOM);
    CHECK_EQ(info.size, ATOM);
    CHECK_EQ(info.requested, 5);
    fixture_end(&b);
}
