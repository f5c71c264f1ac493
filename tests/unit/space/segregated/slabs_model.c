/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * slabs_model.c - random operations on spaces with slabs against one owner per granule, with every
 * option that slabs allow, in spaces that fill up and become empty again.
 */
#include <stdlib.h>

#include "tests/support/defer.h"
#include "tests/support/random.h"
#include "tests/support/slabs.h"

enum {
    REGIONS = 3,
    REGION_BYTES = 600000,
    STRETCH = 1024, /* buffer_image_granularity; 0 means none */
    MAX_LIVE = 6000,
    OLD = 64, /* recently freed ranges */
    STEPS = 40000,
    A_TIDE = 4000, /* steps in which allocations, or frees, predominate */
    CHECK_EVERY = 200
};

typedef struct live_range {
    quire_placement at;
    bool optimal;
} live_range;

typedef struct world {
    quire_space *space;
    bool waits; /* forbids a trim of records, see defer_from_now_on */
    uint64_t granule, kind_bytes, base[REGIONS];
    bool has_region[REGIONS];
    uint32_t *owner[REGIONS]; /* per granule: index in live, from 1 */
    uint32_t kinds[REGIONS][REGION_BYTES / STRETCH + 2][2];
    live_range live[MAX_LIVE];
    uint32_t live_count;
    quire_range old[OLD];
    uint64_t frees, slots, refusals;
} world;

static test_random r;

static void add_one(world *w)
{
    uint32_t region = 0;
    uint64_t base = random_below(&r, 1 << 20) * w->granule;
    CHECK_OK(
        quire_space_add_region(w->space, REGION_BYTES / w->granule * w->granule, base, &region));
    CHECK(region < REGIONS && !w->has_region[region]);
    w->has_region[region] = true;
    w->base[region] = base;
}

/* ---- the oracle ---------------------------------------------------------------------------- */

static void own(world *w, const live_range *range, uint32_t from, uint32_t to)
{
    const quire_placement *at = &range->at;
    for (uint64_t i = at->offset / w->granule; i < (at->offset + at->size) / w->granule; i++) {
        CHECK_EQ(w->owner[at->region][i], from);
        w->owner[at->region][i] = to;
    }
}

/* Adds a range to the stretches that it touches, or removes it; each stretch has one kind. */
static void count_kind(world *w, const live_range *range, uint32_t by)
{
    uint64_t start = w->base[range->at.region], first = start / STRETCH;
    uint64_t low = (start + range->at.offset) / STRETCH - first;
    uint64_t high = (start + range->at.offset + range->at.size - 1) / STRETCH - first;
    for (uint64_t i = low; w->kind_bytes && i <= high; i++) {
        uint32_t *of = w->kinds[range->at.region][i];
        of[range->optimal] += by;
        CHECK(!of[0] || !of[1]);
    }
}

static void expect_get(const world *w, const quire_placement *at)
{
    quire_placement got;
    CHECK_OK(quire_space_get(w->space, at->range, &got));
    CHECK(memcmp(&got, at, sizeof got) == 0);
}

static void enter(world *w, const quire_range_options *options, const quire_placement *at)
{
    uint64_t step = options->alignment > w->granule ? options->alignment : w->granule;
    uint64_t whole = (options->size + step - 1) / step * step;
    live_range *range = &w->live[w->live_count];
    CHECK(at->region < REGIONS && w->has_region[at->region]);
    CHECK_EQ((w->base[at->region] + at->offset) % options->alignment, 0);
    CHECK(at->size >= options->size && at->size <= whole + whole / 8);
    CHECK(at->offset + at->size <= REGION_BYTES / w->granule * w->granule);
    CHECK(!is_slot(at->range) || (at->size <= 4096 && !(w->kind_bytes && options->optimal)));
    CHECK_EQ(at->user, options->user);
    w->slots += is_slot(at->range);
    *range = (live_range){*at, options->optimal};
    own(w, range, 0, ++w->live_count);
    count_kind(w, range, 1);
    expect_get(w, at);
}

/* The space has freed the range; the last one takes its index. */
static void leave(world *w, uint32_t i)
{
    own(w, &w->live[i], i + 1, 0);
    count_kind(w, &w->live[i], UINT32_MAX);
    w->old[w->frees++ % OLD] = w->live[i].at.range;
    uint32_t last = --w->live_count;
    if (i == last)
        return;
    own(w, &w->live[last], last + 1, i + 1);
    w->live[i] = w->live[last];
}

typedef struct hole {
    const world *w;
    const quire_range_options *options;
} hole;

static bool is_too_small(void *user, const quire_space_item *item)
{
    const hole *h = user;
    uint64_t address = h->w->base[item->region] + item->offset;
    uint64_t padding = (0 - address) & (h->options->alignment - 1);
    uint64_t needed = (h->options->size + h->w->granule - 1) / h->w->granule * h->w->granule;
    CHECK(!item->is_free || padding + needed > item->size);
    return true;
}

/* No request fails while a free range holds it and it is too large for slots. */
static void expect_none_fits(world *w, const quire_range_options *options)
{
    hole h = {w, options};
    w->refusals++;
    CHECK_EQ(slabs_of(w->space)->empty, 0);
    if (!options->bounded && !w->kind_bytes && options->size > QI_SLAB_MAX_BYTES)
        CHECK_OK(quire_space_walk(w->space, is_too_small, &h));
}

/* ---- steps --------------------------------------------------------------------------------- */

static void allocate(world *w)
{
    quire_placement at;
    bool small = random_below(&r, 8) != 0;
    quire_range_options options = {
        .size = random_size(&r, small ? 4096 : 40000),
        .alignment = UINT64_C(1) << (random_below(&r, 3) ? 0 : random_below(&r, 15)),
        .user = random_below(&r, 2) ? random_next(&r) : 0,
        .bounded = random_below(&r, 2),
        .optimal = !random_below(&r, 4),
    };
    if (w->live_count == MAX_LIVE)
        return;
    quire_result result = quire_space_allocate_with(w->space, &options, &at);
    if (result)
        CHECK_EQ(result, QUIRE_ERROR_NO_SPACE);
    if (result)
        expect_none_fits(w, &options);
    else
        enter(w, &options, &at);
}

static void free_one(world *w)
{
    if (!w->live_count)
        return;
    uint32_t i = (uint32_t)random_below(&r, w->live_count);
    expect_get(w, &w->live[i].at);
    CHECK_OK(quire_space_free(w->space, w->live[i].at.range));
    leave(w, i);
}

/* The last ranges. The first attempt ends with a stale range and must change nothing. */
static void free_batch(world *w)
{
    quire_range ranges[101];
    uint32_t count = (uint32_t)random_size(&r, 100);
    if (count > w->live_count || !w->frees)
        return;
    for (uint32_t i = 0; i < count; i++)
        ranges[i] = w->live[w->live_count - 1 - i].at.range;
    ranges[count] = random_below(&r, 2) ? w->old[0] : ranges[0];
    CHECK_FAILS(quire_space_free_batch(w->space, ranges, count + 1), QUIRE_ERROR_STALE_HANDLE);
    for (uint32_t i = 0; i < count; i++)
        expect_get(w, &w->live[w->live_count - 1 - i].at);
    CHECK_OK(quire_space_free_batch(w->space, ranges, count));
    while (count--)
        leave(w, w->live_count - 1);
}

static void set_user(world *w)
{
    if (!w->live_count)
        return;
    quire_placement *at = &w->live[random_below(&r, w->live_count)].at;
    at->user = random_next(&r);
    CHECK_OK(quire_space_set_user(w->space, at->range, at->user));
    expect_get(w, at);
}

static void use_old(world *w)
{
    quire_range range = w->old[random_below(&r, OLD)];
    if (range.id)
        CHECK_FAILS(quire_space_free(w->space, range), QUIRE_ERROR_STALE_HANDLE);
}

static void remove_region(world *w)
{
    uint32_t region = (uint32_t)random_below(&r, REGIONS);
    while (!w->has_region[region])
        region = (region + 1) % REGIONS;
    bool is_live = false;
    for (uint32_t i = 0; i < w->live_count; i++)
        is_live |= w->live[i].at.region == region;
    if (is_live) {
        CHECK_FAILS(quire_space_remove_region(w->space, region), QUIRE_ERROR_BUSY);
        return;
    }
    CHECK_OK(quire_space_remove_region(w->space, region));
    w->has_region[region] = false;
    add_one(w);
}

static void clear(world *w)
{
    CHECK_OK(quire_space_clear(w->space));
    while (w->live_count)
        leave(w, w->live_count - 1);
}

static void step(world *w, bool rises)
{
    uint64_t what = random_below(&r, 1000);
    if (what < (rises ? 650 : 250))
        allocate(w);
    else if (what < 860)
        free_one(w);
    else if (what < 862 + !rises * 10u)
        free_batch(w);
    else if (what < 940)
        set_user(w);
    else if (what < 995)
        use_old(w);
    else if (what == 995 && !random_below(&r, 8))
        clear(w);
    else if (what == 996 && !w->waits)
        quire_space_trim(w->space);
    else if (what == 997 && !w->waits)
        remove_region(w);
}

static void run_world(quire_space_options options, bool deferred, uint64_t seed)
{
    world *w = calloc(1, sizeof *w);
    CHECK(w);
    r = (test_random){seed};
    w->space = make_slab_space(options);
    w->granule = options.fit.granule;
    w->kind_bytes = options.buffer_image_granularity;
    for (int i = 0; i < REGIONS; i++) {
        w->owner[i] = calloc(REGION_BYTES / w->granule, sizeof *w->owner[i]);
        CHECK(w->owner[i]);
        add_one(w);
    }
    defer_frees(w->space, deferred ? 8 : UINT32_MAX);
    for (int i = 0; i < STEPS; i++) {
        step(w, i / A_TIDE % 2 == 0);
        CHECK_EQ(w->space->live_count, w->live_count);
        if (i % CHECK_EVERY == 0)
            expect_sound(w->space);
    }
    CHECK(w->slots > 5000 && w->refusals > 10);
    clear(w);
    CHECK_EQ(slabs_of(w->space)->count, 0);
    for (int i = 0; i < REGIONS; i++)
        free(w->owner[i]);
    end_slab_space(w->space);
    free(w);
}

UNIT(slabs_model, granules_of_a_byte)
{
    run_world((quire_space_options){.fit.granule = 1}, false, 1);
}

UNIT(slabs_model, granules_of_256_bytes)
{
    run_world((quire_space_options){.fit = {.granule = 256, .least_fragmentation = true}}, false,
              2);
}

UNIT(slabs_model, deferred_coalescing)
{
    run_world((quire_space_options){.fit.granule = 16}, true, 3);
}

UNIT(slabs_model, separated_kinds)
{
    run_world((quire_space_options){.fit.granule = 16, .buffer_image_granularity = STRETCH}, false,
              4);
}

UNIT(slabs_model, all_options_at_once)
{
    run_world((quire_space_options){.fit = {.granule = 32, .least_fragmentation = true},
                                    .buffer_image_granularity = STRETCH},
              true, 5);
}
