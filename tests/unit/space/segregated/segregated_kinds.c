/*
 * segregated_kinds.c - buffer_image_granularity: linear and optimal ranges never share a stretch,
 * with any fit, and no bytes are wasted if only one kind exists.
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
