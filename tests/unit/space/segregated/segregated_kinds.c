/*
 * segregated_kinds.c - buffer_image_granularity: no bytes are wasted if kinds may share, and the
 * exact places of ranges of two kinds in the segregated fit. (tests/plain/space_model.c: with every
 * fit, no stretch ever holds ranges of two kinds, and nothing is refused that would fit.)
 */
#include "src/base/result.h"
#include "src/space/segregated/segregated.h"
#include "tests/support/random.h"
#include "tests/support/shape.h"
#include "tests/support/space_steps.h"
#include "tests/support/unit.h"

enum { LIVE = 200 };

static const quire_fit fits[] = {QUIRE_FIT_SEGREGATED, QUIRE_FIT_FIRST, QUIRE_FIT_BUDDY};

static quire_space *make_space(quire_fit fit, uint64_t size, uint64_t granularity)
{
    quire_space *space = NULL;
    quire_space_options options = {
        .fit = {.algorithm = fit, .granule = fit == QUIRE_FIT_SEGREGATED ? 256 : 0},
        .size = size,
        .buffer_image_granularity = granularity,
        .host_memory = unit_memory()};
    CHECK_OK(quire_space_create(&options, &space));
    return space;
}

static quire_placement take(quire_space *space, uint64_t size, bool optimal)
{
    quire_placement at;
    quire_range_options options = {.size = size, .optimal = optimal};
    CHECK_OK(quire_space_allocate_with(space, &options, &at));
    return at;
}

static void expect_same_life(quire_fit fit, uint64_t granularity)
{
    quire_space *spaces[2] = {make_space(fit, 1 << 20, granularity), make_space(fit, 1 << 20, 0)};
    quire_range live[2][LIVE] = {{{0}}};
    test_random random = {granularity + 5};
    for (int step = 0; step < 5000; step++) {
        uint64_t at = random_below(&random, LIVE);
        quire_range_options options = {.size = random_size(&random, 30000),
                                       .alignment = UINT64_C(1) << random_below(&random, 14),
                                       .optimal = random_below(&random, 2)};
        quire_placement placed[2] = {{{0}, 0, 0, 0, 0, 0, 0}};
        for (int i = 0; i < 2; i++) {
            if (live[i][at].id)
                CHECK_OK(quire_space_free(spaces[i], live[i][at]));
            else
                qi_ignore(quire_space_allocate_with(spaces[i], &options, &placed[i]));
            live[i][at] = placed[i].range;
        }
        CHECK_EQ(placed[0].offset, placed[1].offset);
        CHECK_EQ(placed[0].size, placed[1].size);
        CHECK_EQ(placed[0].left_padding, placed[1].left_padding);
    }
    shape_expect_alike(spaces[0], spaces[1]);
    end_space(spaces[0]);
    end_space(spaces[1]);
}

UNIT(segregated_kinds, kinds_share_stretches_if_the_granularity_is_at_most_the_granule)
{
    for (int i = 0; i < 3; i++)
        for (uint64_t granularity = 1; granularity <= (fits[i] == QUIRE_FIT_FIRST ? 1 : 256);
             granularity *= 16)
            expect_same_life(fits[i], granularity);
}

UNIT(segregated_kinds, the_granularity_raises_the_largest_alignment)
{
    for (int i = 0; i < 3; i++) {
        quire_space *space = make_space(fits[i], 16 << 20, 8 << 20);
        quire_placement at;
        take(space, 256, false);
        CHECK_EQ(take(space, 256, true).offset, 8 << 20);
        CHECK_FAILS(quire_space_allocate(space, 256, 16 << 20, 0, &at),
                    QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK_FAILS(quire_space_allocate(space, 9 << 20, 8 << 20, 0, &at), QUIRE_ERROR_NO_SPACE);
        end_space(space);
    }
}

/* ---- exact places in the segregated fit ------------------------------------------------------ */

enum { GRANULARITY = 4096 };

static quire_space *make_kinds(uint64_t size, uint64_t granularity, bool least)
{
    quire_space *space = NULL;
    quire_space_options options = {.size = size,
                                   .buffer_image_granularity = granularity,
                                   .fit.least_fragmentation = least,
                                   .host_memory = unit_memory()};
    CHECK_OK(quire_space_create(&options, &space));
    return space;
}

static quire_range expect_at(quire_space *space, quire_range_options options, uint64_t offset)
{
    quire_placement at;
    CHECK_OK(quire_space_allocate_with(space, &options, &at));
    CHECK_EQ(at.offset, offset);
    CHECK_OK(quire_space_check(space));
    return at.range;
}

static quire_range linear_at(quire_space *space, uint64_t size, uint64_t offset)
{
    return expect_at(space, (quire_range_options){.size = size}, offset);
}

static quire_range optimal_at(quire_space *space, uint64_t size, uint64_t offset)
{
    return expect_at(space, (quire_range_options){.size = size, .optimal = true}, offset);
}

static void expect_refused(quire_space *space, quire_range_options options)
{
    quire_placement at;
    CHECK_FAILS(quire_space_allocate_with(space, &options, &at), QUIRE_ERROR_NO_SPACE);
}

UNIT(segregated_kinds, neighbours_of_one_kind_share_a_stretch)
{
    quire_space *space = make_kinds(1 << 16, GRANULARITY, false);
    optimal_at(space, 256, 0);
    optimal_at(space, 512, 256);
    linear_at(space, 256, 4096); /* a hole as large as the request needs */
    linear_at(space, 256, 4096 + 256);
    optimal_at(space, 256, 768); /* which serves its kind */
    optimal_at(space, 3072, 1024);
    end_space(space);
}

UNIT(segregated_kinds, a_range_below_another_kind_ends_before_its_stretch)
{
    quire_space *space = make_kinds(2 * GRANULARITY, GRANULARITY, false);
    quire_range low = optimal_at(space, 5120, 0);
    optimal_at(space, 256, 5120);
    CHECK_OK(quire_space_free(space, low));
    expect_refused(space, (quire_range_options){.size = 4352});
    linear_at(space, 4096, 0);
    expect_refused(space, (quire_range_options){.size = 256});
    optimal_at(space, 1024, 4096); /* the same kind fills the rest */
    optimal_at(space, 2816, 5376);
    expect_refused(space, (quire_range_options){.size = 256, .optimal = true});
    end_space(space);
}

UNIT(segregated_kinds, stretches_are_counted_from_native_address_zero)
{
    quire_space *space = make_kinds(0, GRANULARITY, false);
    uint32_t region = 0;
    CHECK_OK(quire_space_add_region(space, 1 << 16, 7 * 256, &region));
    linear_at(space, 256, 0);
    optimal_at(space, 256, 4096 - 7 * 256);
    linear_at(space, 2 * 256, 256);
    end_space(space);
}

UNIT(segregated_kinds, a_stretch_loses_its_kind_when_its_last_range_is_freed)
{
    quire_space *space = make_kinds(GRANULARITY, GRANULARITY, false);
    quire_range ranges[2] = {linear_at(space, 256, 0), linear_at(space, 256, 256)};
    expect_refused(space, (quire_range_options){.size = 256, .optimal = true});
    CHECK_OK(quire_space_free(space, ranges[0]));
    expect_refused(space, (quire_range_options){.size = 256, .optimal = true});
    CHECK_OK(quire_space_free(space, ranges[1]));
    ranges[0] = optimal_at(space, GRANULARITY, 0); /* a node taken whole */
    CHECK_OK(quire_space_free(space, ranges[0]));
    linear_at(space, GRANULARITY, 0);
    end_space(space);
}

UNIT(segregated_kinds, an_optimal_request_keeps_its_alignment)
{
    quire_space *space = make_kinds(1 << 18, GRANULARITY, false);
    linear_at(space, 256, 0);
    const quire_range_options finer = {.size = 256, .alignment = 1024, .optimal = true},
                              coarser = {.size = 256, .alignment = 16384, .optimal = true};
    expect_at(space, finer, 4096);
    expect_at(space, finer, 5120);
    expect_at(space, coarser, 16384);
    end_space(space);
}

/* Many free ranges in stretches of the other kind precede the one that fits. */
UNIT(segregated_kinds, a_full_search_passes_many_ranges_of_the_other_kind)
{
    enum { HOLES = 200, GOOD = 150, REST = GRANULARITY - 256 };
    quire_space *space = make_kinds(HOLES * GRANULARITY, GRANULARITY, false);
    quire_range holes[HOLES];
    quire_placement at;
    for (uint64_t i = 0; i < HOLES; i++) {
        quire_range_options options = {.size = 256, .optimal = i == GOOD};
        expect_at(space, options, i * GRANULARITY);
        options.size = REST;
        holes[i] = expect_at(space, options, i * GRANULARITY + 256);
    }
    for (int i = 0; i < HOLES; i++)
        CHECK_OK(quire_space_free(space, holes[i]));
    quire_range_options wanted = {.size = REST, .optimal = true, .bounded = true};
    CHECK_FAILS(quire_space_allocate_with(space, &wanted, &at), QUIRE_ERROR_NO_SPACE);
    CHECK(space->max_looked_at > 0 && space->max_looked_at <= QI_MAX_EXAMINED);
    wanted.bounded = false;
    expect_at(space, wanted, GOOD * GRANULARITY + 256);
    CHECK_FAILS(quire_space_allocate_with(space, &wanted, &at), QUIRE_ERROR_NO_SPACE);
    CHECK_EQ(space->full_passes, 2);
    CHECK_EQ(space->full_pass_hits, 1);
    end_space(space);
}

UNIT(segregated_kinds, the_upper_end_is_cut_before_the_other_kind)
{
    quire_space *space = make_kinds(1 << 20, GRANULARITY, true);
    optimal_at(space, 65536 + 256, (1 << 20) - 65536 - 256);
    linear_at(space, 65536, (1 << 20) - 2 * 65536 - GRANULARITY);
    linear_at(space, 65536 + 256, (1 << 20) - 3 * 65536 - GRANULARITY - 256);
    end_space(space);
}

/* ---- batches --------------------------------------------------------------------------------- */

UNIT(segregated_kinds, a_batch_keeps_apart_from_an_image)
{
    quire_space *space = make_kinds(1 << 16, GRANULARITY, false);
    quire_placement at[4] = {0};
    optimal_at(space, 256, 0);
    CHECK_OK(quire_space_allocate_batch(space, 256, 1, at, 4));
    for (uint64_t i = 0; i < 4; i++)
        CHECK_EQ(at[i].offset, GRANULARITY + i * 256);
    CHECK_OK(quire_space_check(space));
    end_space(space);
}
