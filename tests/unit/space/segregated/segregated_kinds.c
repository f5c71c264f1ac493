/*
 * segregated_kinds.c - buffer_image_granularity: linear and optimal ranges never share a stretch,
 * with any fit, and no bytes are wasted if only one kind exists.
 */
#include "src/base/result.h"
#include "src/space/segregated/segregated.h"
#include "tests/support/defer.h"
#include "tests/support/random.h"
#include "tests/support/shape.h"
#include "tests/support/space_steps.h"
#include "tests/support/unit.h"

enum { LIVE = 200, REGIONS = 3, MAX_STRETCHES = 4096, KIND = 1 };

static const quire_fit fits[] = {QUIRE_FIT_SEGREGATED, QUIRE_FIT_FIRST, QUIRE_FIT_BUDDY};

typedef struct life {
    quire_space *space;
    quire_fit fit;
    uint64_t granularity, granule;
    uint64_t bases[REGIONS + 1];
    quire_range live[LIVE];
    test_random random;
    uint64_t refused;
} life;

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
    quire_range_options options = {.size = size, .optimal = optimal, .user = optimal};
    CHECK_OK(quire_space_allocate_with(space, &options, &at));
    return at;
}

static uint64_t align_up(uint64_t value, uint64_t alignment)
{
    return (value + alignment - 1) / alignment * alignment;
}

/* ---- the oracle: a kind per stretch --------------------------------------------------------- */

/* Over all regions: 0 for a stretch without live ranges, 1 for linear, 2 for optimal. */
static uint8_t kinds[REGIONS + 1][MAX_STRETCHES];

static uint64_t stretch_at(const life *l, uint32_t region, uint64_t offset)
{
    uint64_t base = l->bases[region];
    uint64_t stretch = (base + offset) / l->granularity - base / l->granularity;
    CHECK(stretch < MAX_STRETCHES);
    return stretch;
}

static void expect_one_kind(const life *l, const shape *seen)
{
    memset(kinds, 0, sizeof kinds);
    for (uint64_t i = 0; i < seen->count; i++) {
        const quire_space_item *item = &seen->items[i];
        uint8_t kind = item->user & KIND ? 2 : 1;
        uint64_t last = stretch_at(l, item->region, item->offset + item->size - 1);
        for (uint64_t s = stretch_at(l, item->region, item->offset); s <= last; s++) {
            if (item->is_free)
                continue;
            CHECK(!kinds[item->region][s] || kinds[item->region][s] == kind);
            kinds[item->region][s] = kind;
        }
    }
}

/* Returns whether the stretches that a range touches allow its kind here. */
static bool may_lie(const life *l, uint32_t region, uint64_t offset, uint64_t size, bool optimal)
{
    uint64_t last = stretch_at(l, region, offset + size - 1);
    for (uint64_t s = stretch_at(l, region, offset); s <= last; s++)
        if (kinds[region][s] == (optimal ? 1 : 2))
            return false;
    return true;
}

/* Tries every place of every free range; the kinds are those of this shape. */
static bool fits_anywhere(const life *l, const shape *seen, const quire_range_options *r)
{
    uint64_t step = r->alignment > l->granule ? r->alignment : l->granule;
    uint64_t size = align_up(r->size, l->granule);
    for (uint64_t i = 0; i < seen->count; i++) {
        const quire_space_item *item = &seen->items[i];
        uint64_t base = l->bases[item->region];
        uint64_t at = align_up(base + item->offset, step) - base;
        for (; item->is_free && at + size <= item->offset + item->size; at += step)
            if (may_lie(l, item->region, at, size, r->optimal))
                return true;
    }
    return false;
}

/* ---- random runs ---------------------------------------------------------------------------- */

static life begin_life(quire_fit fit, uint64_t granularity, uint64_t seed)
{
    life l = {.fit = fit, .granularity = granularity, .random = {seed}};
    l.granule = fit == QUIRE_FIT_FIRST ? 1 : 256;
    l.space = make_space(fit, 0, granularity);
    for (int i = 0; i < REGIONS; i++) {
        uint64_t size = 1 + random_below(&l.random, 40 * granularity / 256), unit = l.granule;
        uint32_t region = 0;
        uint64_t base = random_below(&l.random, 1 << 20) * unit;
        CHECK_OK(quire_space_add_region(l.space, size * (256 / unit) * unit, base, &region));
        l.bases[region] = base;
    }
    return l;
}

static void expect_no_place(const life *l, const quire_range_options *options)
{
    shape seen = shape_of(l->space);
    quire_range_options r = *options;
    expect_one_kind(l, &seen);
    if (l->fit == QUIRE_FIT_FIRST && r.optimal) { /* takes whole stretches */
        r.size = align_up(r.size, l->granularity);
        r.alignment = r.alignment > l->granularity ? r.alignment : l->granularity;
    }
    bool byte_exact = l->fit == QUIRE_FIT_FIRST && r.alignment < 64; /* too many places to try */
    CHECK(l->fit == QUIRE_FIT_BUDDY || byte_exact || !fits_anywhere(l, &seen, &r));
    shape_end(&seen);
}

/* Linear requests use every allocating call. */
static quire_result ask(life *l, const quire_range_options *options, quire_placement *at)
{
    if (options->optimal || options->bounded || random_below(&l->random, 2))
        return quire_space_allocate_with(l->space, options, at);
    return quire_space_allocate(l->space, options->size, options->alignment, options->user, at);
}

static void allocate_one(life *l, quire_range *range)
{
    bool optimal = random_below(&l->random, 2);
    quire_range_options options = {
        .size = random_size(&l->random, 4 * l->granularity),
        .alignment = UINT64_C(1) << random_below(&l->random, 18),
        .bounded = random_below(&l->random, 2),
        .optimal = optimal,
        .user = random_next(&l->random) << 1 | optimal,
    };
    quire_placement at;
    quire_result result = ask(l, &options, &at);
    *range = at.range;
    if (result) {
        CHECK_EQ(result, QUIRE_ERROR_NO_SPACE);
        l->refused++;
        if (!options.bounded)
            expect_no_place(l, &options);
        return;
    }
    CHECK_EQ((l->bases[at.region] + at.offset) % options.alignment, 0);
    CHECK(at.size >= options.size);
}

static void live_on(life *l, int steps)
{
    for (int i = 0; i < steps; i++) {
        quire_range *range = &l->live[random_below(&l->random, LIVE)];
        if (!range->id)
            allocate_one(l, range);
        else {
            CHECK_OK(quire_space_free(l->space, *range));
            *range = (quire_range){0};
        }
        if (i % 8)
            continue;
        shape seen = shape_of(l->space);
        expect_one_kind(l, &seen);
        shape_end(&seen);
    }
    CHECK(l->refused > 0);
}

static void live_randomly(quire_fit fit)
{
    for (uint64_t granularity = 1024; granularity <= 65536; granularity *= 4)
        for (uint64_t seed = 1; seed <= 4; seed++) {
            life l = begin_life(fit, granularity, seed);
            live_on(&l, TEST_ROUNDS(4000));
            end_space(l.space);
        }
}

UNIT(segregated_kinds, no_stretch_holds_two_kinds)
{
    live_randomly(QUIRE_FIT_SEGREGATED);
}

UNIT(segregated_kinds, no_stretch_holds_two_kinds_with_the_first_fit)
{
    live_randomly(QUIRE_FIT_FIRST);
}

UNIT(segregated_kinds, no_stretch_holds_two_kinds_with_the_buddy_fit)
{
    live_randomly(QUIRE_FIT_BUDDY);
}

/* A deferred range keeps its kind until it is coalesced. */
UNIT(segregated_kinds, no_stretch_holds_two_kinds_while_ranges_are_deferred)
{
    enum { CROWD = 200 };
    life l = {.granularity = 4096, .granule = 256, .random = {3}};
    quire_space_options options = {.size = CROWD * 256,
                                   .buffer_image_granularity = l.granularity,
                                   .fit = {.least_fragmentation = true, .granule = 256},
                                   .host_memory = unit_memory()};
    CHECK_OK(quire_space_create(&options, &l.space));
    defer_frees(l.space, CROWD / 2);
    for (int i = 0; i < CROWD; i++)
        take(l.space, 256, false);
    uint32_t region = 0;
    CHECK_OK(quire_space_add_region(l.space, 61 * 1024, 256 * 77, &region));
    l.bases[region] = 256 * 77;
    live_on(&l, TEST_ROUNDS(6000));
    end_space(l.space);
}

/* ---- no waste ------------------------------------------------------------------------------- */

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
