/*
 * space_range.c - the contract of ranges: sizes, alignments, the user value, and the invariants
 * after every step of a long random run.
 */
#include "quire/space.h"
#include "src/base/bits.h"
#include "src/space/segregated/classes.h"
#include "tests/support/random.h"
#include "tests/support/space_steps.h"
#include "tests/support/unit.h"

static const quire_fit fits[] = {QUIRE_FIT_SEGREGATED, QUIRE_FIT_FIRST, QUIRE_FIT_BUDDY,
                                 QUIRE_FIT_LINEAR};
enum { FITS = sizeof fits / sizeof *fits, SEVERAL = 3 }; /* SEVERAL: the fits with many regions */

static quire_space *make_space(quire_fit fit, uint64_t size, uint64_t granule)
{
    quire_space *space = NULL;
    quire_space_options options = {.fit = {.algorithm = fit, .granule = granule}, .size = size};
    options.host_memory = unit_memory();
    CHECK_OK(quire_space_create(&options, &space));
    return space;
}

static quire_placement take(quire_space *space, uint64_t size, uint64_t alignment, uint64_t user)
{
    quire_placement at;
    memset(&at, 0xff, sizeof at); /* the call writes every field */
    CHECK_OK(quire_space_allocate(space, size, alignment, user, &at));
    CHECK_EQ(at.reserved, 0);
    return at;
}

static bool is_zero(const quire_placement *at)
{
    const quire_placement none = {0};
    return !memcmp(at, &none, sizeof none);
}

/* ---- sizes and alignments ------------------------------------------------------------------ */

UNIT(space_range, sizes_are_rounded_up_to_the_granule)
{
    for (uint64_t granule = 1; granule <= 4096; granule *= 4) {
        quire_space *space = make_space(QUIRE_FIT_SEGREGATED, 1 << 20, granule);
        const uint64_t sizes[] = {1, granule - 1, granule, granule + 1, 3 * granule - 1};
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            if (sizes[i])
                CHECK_EQ(take(space, sizes[i], 1, 0).size,
                         (sizes[i] + granule - 1) / granule * granule);
        end_space(space);
    }
}

static void expect_refused(quire_space *space, uint64_t size, uint64_t alignment, quire_result code)
{
    quire_placement at;
    memset(&at, 0xff, sizeof at);
    CHECK_FAILS(quire_space_allocate(space, size, alignment, 9, &at), code);
    CHECK(is_zero(&at));
    memset(&at, 0xff, sizeof at);
    const quire_range_options bounded = {size, alignment, 9, .bounded = true};
    CHECK_FAILS(quire_space_allocate_with(space, &bounded, &at), code);
    CHECK(is_zero(&at));
}

UNIT(space_range, sizes_that_cannot_fit_are_rejected_up_to_2_to_the_64)
{
    for (int i = 0; i < FITS; i++) {
        quire_space *space = make_space(fits[i], 1 << 20, 0);
        const uint64_t sizes[] = {(1 << 20) + 1,     UINT32_MAX,        UINT64_C(1) << 32,
                                  UINT64_C(1) << 40, UINT64_C(1) << 63, UINT64_MAX - 255,
                                  UINT64_MAX - 1,    UINT64_MAX};
        for (size_t j = 0; j < sizeof sizes / sizeof *sizes; j++) {
            expect_refused(space, sizes[j], 1, QUIRE_ERROR_NO_SPACE);
            expect_refused(space, sizes[j], 2 << 20, QUIRE_ERROR_NO_SPACE);
        }
        expect_refused(space, 0, 1, QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK_EQ(take(space, 1 << 20, 1 << 20, 0).offset, 0);
        expect_refused(space, 1, 1, QUIRE_ERROR_NO_SPACE);
        CHECK_HAS(quire_last_error(), " 1 at a multiple of 1");
        end_space(space);
    }
}

UNIT(space_range, an_alignment_is_a_power_of_two_up_to_the_maximum)
{
    for (int i = 0; i < FITS; i++) {
        quire_space *space = make_space(fits[i], 8 << 20, 0);
        const uint64_t wrong[] = {3,         5, 96, 255, (2 << 20) - 1, 4 << 20, UINT64_C(1) << 63,
                                  UINT64_MAX};
        for (size_t j = 0; j < sizeof wrong / sizeof *wrong; j++)
            expect_refused(space, 100, wrong[j], QUIRE_ERROR_INVALID_ARGUMENT);
        expect_refused(space, 100, 96, QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK_STR(quire_last_error(), "alignment 96 is not a power of two");
        CHECK_EQ(take(space, 100, 0, 0).offset, 0); /* 0 means 1 */
        for (uint64_t alignment = 1; alignment <= 2 << 20; alignment *= 2)
            CHECK_EQ(take(space, 100, alignment, 0).offset % alignment, 0);
        end_space(space);
    }
}

/* ---- the user value ------------------------------------------------------------------------ */

UNIT(space_range, the_user_value_keeps_all_bits_while_neighbours_change)
{
    const uint64_t values[] = {
        0, 1, UINT32_MAX, UINT64_C(1) << 32, UINT64_C(0x80000000), UINT64_C(1) << 63, UINT64_MAX};
    enum { COUNT = sizeof values / sizeof *values };
    for (int i = 0; i < FITS; i++) {
        quire_space *space = make_space(fits[i], 1 << 20, 0);
        quire_placement kept[COUNT], beside[COUNT], at;
        for (int j = 0; j < COUNT; j++) {
            kept[j] = take(space, 256, 1, values[j]);
            beside[j] = take(space, 256, 1, 5);
            CHECK_EQ(kept[j].user, values[j]);
        }
        for (int j = 0; j < COUNT; j++)
            CHECK_OK(quire_space_free(space, beside[j].range));
        for (int j = 0; j < COUNT; j++) {
            CHECK_OK(quire_space_get(space, kept[j].range, &at));
            CHECK(!memcmp(&at, &kept[j], sizeof at));
        }
        end_space(space);
    }
}

UNIT(space_range, changing_the_user_value_changes_nothing_else)
{
    const uint64_t value = UINT64_C(0x123456789abcdef0);
    for (int i = 0; i < FITS; i++) {
        quire_space *space = make_space(fits[i], 1 << 20, 0);
        take(space, 100, 1, 1);
        quire_placement changed = take(space, 1000, 512, 2), at;
        quire_placement other = take(space, 1000, 512, 3);
        CHECK_OK(quire_space_set_user(space, changed.range, value));
        CHECK_OK(quire_space_get(space, changed.range, &at));
        CHECK_EQ(at.user, value);
        at.user = changed.user;
        CHECK(!memcmp(&at, &changed, sizeof at));
        CHECK_OK(quire_space_get(space, other.range, &at));
        CHECK_EQ(at.user, 3);
        end_space(space);
    }
}

/* ---- clearing ------------------------------------------------------------------------------ */

UNIT(space_range, clearing_frees_every_range_and_makes_handles_stale)
{
    for (int i = 0; i < SEVERAL; i++) {
        quire_space *space = make_space(fits[i], 1 << 16, 0);
        uint32_t region = 0;
        quire_range ranges[150];
        quire_space_stats stats;
        CHECK_OK(quire_space_add_region(space, 1 << 16, 0, &region));
        for (int j = 0; j < 150; j++)
            ranges[j] = take(space, 500, 1, 0).range;
        for (int j = 0; j < 150; j += 3)
            CHECK_OK(quire_space_free(space, ranges[j]));
        CHECK_OK(quire_space_clear(space));
        CHECK_OK(quire_space_get_stats(space, &stats));
        CHECK_EQ(stats.live_count, 0);
        CHECK_EQ(stats.live_bytes + stats.padding_bytes, 0);
        CHECK_EQ(stats.free_count, 2);
        CHECK_EQ(stats.region_count, 2);
        for (int j = 0; j < 150; j++)
            CHECK_FAILS(quire_space_free(space, ranges[j]), QUIRE_ERROR_STALE_HANDLE);
        take(space, 1 << 16, 1, 0);
        take(space, 1 << 16, 1, 0);
        CHECK_OK(quire_space_clear(space));
        CHECK_OK(quire_space_clear(space));
        end_space(space);
    }
}

/* Numbers 1 and 2 belonged to a region; now they belong to ranges. */
UNIT(space_range, numbers_are_reused_after_a_clear)
{
    for (int i = 0; i < SEVERAL; i++) {
        quire_space *space = make_space(fits[i], 1 << 16, 0);
        uint32_t region = 0;
        quire_space_stats stats;
        CHECK_OK(quire_space_add_region(space, 1 << 16, 0, &region));
        CHECK_OK(quire_space_remove_region(space, 0));
        for (int j = 0; j < 10; j++)
            take(space, 256, 1, 0);
        CHECK_OK(quire_space_clear(space));
        CHECK_OK(quire_space_get_stats(space, &stats));
        CHECK_EQ(stats.live_count, 0);
        CHECK_EQ(stats.largest_free, 1 << 16);
        end_space(space);
    }
}

/* ---- a long random run --------------------------------------------------------------------- */

enum { REGIONS = 4, LIVE = 300 };

typedef struct life {
    quire_space *space;
    quire_fit fit;
    uint64_t granule, sizes[REGIONS], bases[REGIONS]; /* size 0: the region does not exist */
    quire_placement live[LIVE];                       /* range {0}: none */
    uint32_t live_count;
    test_random random;
} life;

/* What a walk visits, and the sums that must agree. */
typedef struct tour {
    const life *l;
    uint32_t region;
    uint64_t end, free, live, padding, live_count, free_count;
    bool after_free;
    uint64_t wanted, alignment; /* of a failed request */
    uint32_t sure_class;        /* free ranges above this class would have held the request */
} tour;

static void expect_useless(const tour *t, const quire_space_item *item)
{
    uint64_t address = t->l->bases[item->region] + item->offset;
    uint64_t padding = qi_padding(address, t->alignment);
    if (t->wanted && !t->sure_class)
        CHECK(padding >= item->size || t->wanted > item->size - padding);
    if (t->wanted && t->sure_class)
        CHECK(item->size < t->wanted ||
              qi_class_of_range((uint32_t)(item->size / t->l->granule)).index <= t->sure_class);
}

static bool visit(void *user, const quire_space_item *item)
{
    tour *t = user;
    uint64_t begin = item->offset - item->left_padding;
    if (item->region != t->region) {
        CHECK_EQ(t->end, t->l->sizes[t->region]);
        CHECK(item->region > t->region);
        t->region = item->region;
        t->end = 0;
        t->after_free = false;
    }
    CHECK_EQ(begin, t->end);
    CHECK(item->size > 0 && !(item->is_free && t->after_free));
    t->end = item->offset + item->size;
    t->after_free = item->is_free;
    *(item->is_free ? &t->free : &t->live) += item->size;
    *(item->is_free ? &t->free_count : &t->live_count) += 1;
    t->padding += item->left_padding;
    if (item->is_free)
        expect_useless(t, item);
    return true;
}

static void expect_sound(const life *l, tour t)
{
    quire_space_stats stats;
    CHECK_OK(quire_space_check(l->space));
    CHECK_OK(quire_space_get_stats(l->space, &stats));
    t.l = l;
    while (t.region + 1 < REGIONS && !l->sizes[t.region])
        t.region++;
    CHECK_OK(quire_space_walk(l->space, visit, &t));
    CHECK_EQ(t.end, l->sizes[t.region]);
    CHECK_EQ(stats.region_bytes, stats.live_bytes + stats.padding_bytes + stats.free_bytes);
    CHECK_EQ(stats.live_bytes, t.live);
    CHECK_EQ(stats.padding_bytes, t.padding);
    CHECK_EQ(stats.free_bytes, t.free);
    CHECK_EQ(stats.live_count, t.live_count);
    CHECK_EQ(stats.live_count, l->live_count);
    CHECK_EQ(stats.free_count, t.free_count);
}

/* The documented bound of the search for requests that need no padding. */
static uint32_t sure_class(const life *l, uint64_t size, uint64_t alignment, bool bounded)
{
    if (!bounded || l->fit == QUIRE_FIT_FIRST)
        return 0;
    if (alignment > l->granule)
        return QI_CLASS_LIMIT;
    return qi_class_of_request((uint32_t)((size + l->granule - 1) / l->granule)).index;
}

static void allocate_one(life *l, quire_placement *at)
{
    uint64_t size = random_size(&l->random, 1 << 16), user = random_next(&l->random);
    uint64_t alignment = UINT64_C(1) << random_below(&l->random, 14);
    const quire_range_options asked = {size, alignment, user,
                                       .bounded = random_below(&l->random, 2)};
    quire_result result = quire_space_allocate_with(l->space, &asked, at);
    if (result) {
        CHECK_EQ(result, QUIRE_ERROR_NO_SPACE);
        CHECK(is_zero(at));
        expect_sound(l, (tour){.wanted = size,
                               .alignment = alignment,
                               .sure_class = sure_class(l, size, alignment, asked.bounded)});
        return;
    }
    l->live_count++;
    CHECK_EQ(at->size, (size + l->granule - 1) / l->granule * l->granule);
    CHECK_EQ((l->bases[at->region] + at->offset) % alignment, 0);
    CHECK(at->offset + at->size <= l->sizes[at->region]);
    CHECK_EQ(at->user, user);
}

static void free_one(life *l, quire_placement *at)
{
    quire_placement now;
    CHECK_OK(quire_space_get(l->space, at->range, &now));
    CHECK(!memcmp(&now, at, sizeof now));
    CHECK_OK(quire_space_free(l->space, at->range));
    CHECK_FAILS(quire_space_free(l->space, at->range), QUIRE_ERROR_STALE_HANDLE);
    *at = (quire_placement){0};
    l->live_count--;
}

/* Adds a region that does not exist, or removes one without live ranges. */
static void change_region(life *l)
{
    uint32_t region = (uint32_t)random_below(&l->random, REGIONS), number = 0;
    if (l->sizes[region]) {
        bool busy = false;
        for (int i = 0; i < LIVE; i++)
            busy |= l->live[i].range.id && l->live[i].region == region;
        quire_result result = quire_space_remove_region(l->space, region);
        CHECK_EQ(result, busy ? QUIRE_ERROR_BUSY : QUIRE_SUCCESS);
        l->sizes[region] = busy ? l->sizes[region] : 0;
        return;
    }
    uint64_t size = (1 + random_below(&l->random, 256000 / l->granule)) * l->granule;
    uint64_t base = random_next(&l->random) / l->granule * l->granule;
    CHECK_OK(quire_space_add_region(l->space, size, base, &number));
    CHECK(number < REGIONS && !l->sizes[number]);
    l->sizes[number] = size;
    l->bases[number] = base;
}

static void live_long(quire_fit fit, uint64_t granule, uint64_t seed)
{
    static life l;
    l = (life){.fit = fit, .granule = granule, .random = {seed}};
    l.space = make_space(fit, 0, granule);
    for (int i = 0; i < 30000; i++) {
        quire_placement *at = &l.live[random_below(&l.random, LIVE)];
        bool fills = i / 1000 % 2 == 0;
        if (random_below(&l.random, 20) == 0)
            change_region(&l);
        else if (at->range.id && (!fills || random_below(&l.random, 3) == 0))
            free_one(&l, at);
        else if (!at->range.id && fills)
            allocate_one(&l, at);
        if (random_below(&l.random, 500) == 0)
            quire_space_trim(l.space);
        expect_sound(&l, (tour){0});
    }
    end_space(l.space);
}

static quire_space *make_slabs(uint64_t size, uint64_t granule)
{
    quire_space *space = NULL;
    quire_space_options options = {.size = size, .fit = {.granule = granule, .slabs = true}};
    options.host_memory = unit_memory();
    CHECK_OK(quire_space_create(&options, &space));
    return space;
}

UNIT(space_range, every_allocating_call_uses_slabs)
{
    quire_space *space = make_slabs(65536, 16);
    quire_placement at;
    CHECK_EQ(take(space, 272, 0, 0).size, 288); /* in steps of an eighth of a power of two */
    CHECK_OK(quire_space_allocate_with(space, &(quire_range_options){.size = 272}, &at));
    CHECK_EQ(at.size, 288);
    end_space(space);
}

UNIT(space_range, an_empty_slab_is_released_for_a_large_request)
{
    quire_space *space = make_slabs(1024, 256);
    quire_placement at = take(space, 256, 0, 0);
    CHECK_OK(quire_space_free(space, at.range));
    CHECK_OK(quire_space_allocate_with(space, &(quire_range_options){.size = 1024}, &at));
    end_space(space);
}

UNIT(space_range, a_long_random_run_of_the_segregated_fit)
{
    live_long(QUIRE_FIT_SEGREGATED, 256, 18);
}

UNIT(space_range, a_long_random_run_of_the_segregated_fit_with_small_granules)
{
    live_long(QUIRE_FIT_SEGREGATED, 16, 19);
}

UNIT(space_range, a_long_random_run_of_the_first_fit)
{
    live_long(QUIRE_FIT_FIRST, 1, 20);
}
