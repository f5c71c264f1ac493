/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * space_model.c - random operations on spaces against a naive oracle.
 *
 * The oracle (tests/support/space_oracle.h) keeps one owner per unit of every region and uses no
 * lists or trees. After each operation it checks the rules of the space:
 *  - a range lies inside its region, at a multiple of its alignment, on units without an owner
 *  - the first fit takes the lowest address at which the request fits, and fails only if none does
 *  - the segregated fit succeeds if a free range exists in a class above that of size + alignment -
 *    granule; its full search fails only if no range fits
 *  - a request for the lowest address gets it, and fails only if no range fits
 *  - the buddy fit takes the smallest free block that is large and aligned enough, of these the one
 *    in the lowest region, of these the lowest; its full search fails only if no block that
 *    happens to be aligned is large enough
 *  - a region grows up to the next one on the line and shrinks to its last live range, no further
 *  - with a granularity, no stretch holds ranges for linear and for optimal resources
 *  - statistics and free neighbours agree with the oracle, and quire_space_check finds nothing
 *
 * Worlds of different shapes follow each other until the steps are done. The seed reproduces a run.
 */
#include <stdio.h>
#include <stdlib.h>

#include "quire/space.h"
#include "tests/support/defer.h"
#include "tests/support/plain.h"
#include "tests/support/random.h"
#include "tests/support/space_oracle.h"

enum { STEPS_A_WORLD = 4000, CHECK_EVERY = 256, MAX_BATCH = 80 };

static test_random rng;
static uint64_t total_steps, seed, refused, missed;

/* ---- operations --------------------------------------------------------------------------- */

static void accept_range(world *w, const quire_placement *at, const model_request *request)
{
    const model_region *r = &w->regions[at->region];
    uint64_t rounded = (request->size + w->unit - 1) / w->unit;
    rounded = (w->fit == QUIRE_FIT_BUDDY ? power_at_least(rounded) : rounded) * w->unit;
    CHECK(at->region < MAX_REGIONS && r->used);
    CHECK_EQ(at->size, rounded);
    CHECK_EQ((r->base + at->offset) & (request->alignment - 1), 0);
    CHECK(at->offset >= at->left_padding);
    CHECK(at->offset + at->size <= r->units * w->unit);
    CHECK(at->left_padding == 0 || w->fit == QUIRE_FIT_FIRST);
    model_range *range = &w->live[w->live_count++];
    range->at = *at;
    range->optimal = request->optimal;
    range->first = (at->offset - at->left_padding) / w->unit;
    range->end = (at->offset + at->size) / w->unit;
    CHECK(is_apart(w, r, at->offset / w->unit, range->end, request->optimal));
    w->live_units += range->end - range->first;
    own(w, range, (uint16_t)w->live_count);
}

/* The request as the fit sees it, if ranges of optimal tiling take whole stretches. */
static model_request as_served(const world *w, model_request request)
{
    if (w->fit == QUIRE_FIT_SEGREGATED || !request.optimal || !w->granularity)
        return request;
    request.size = (request.size + w->granularity - 1) / w->granularity * w->granularity;
    if (request.alignment < w->granularity)
        request.alignment = w->granularity;
    return request;
}

/* The expected place of the request, or that it must fail. */
static bool foresee(const world *w, const model_request *request, bool bounded, int *region,
                    uint64_t *offset)
{
    if (w->fit != QUIRE_FIT_BUDDY)
        return fits_anywhere(w, request, region, offset);
    model_block block = buddy_place(w, request, bounded);
    *region = block.region;
    *offset = block.unit * w->unit;
    return block.units != 0;
}

/* The two functions are equivalent. */
static quire_result allocate_by_any_call(const world *w, const model_request *request, bool bounded,
                                         bool lowest, uint64_t user, quire_placement *at)
{
    uint64_t size = request->size, alignment = request->alignment;
    quire_range_options options = {size,  alignment, user, bounded, request->optimal,
                                   false, lowest,    {0}};
    if (request->optimal || bounded || lowest || random_below(&rng, 2))
        return quire_space_allocate_with(w->space, &options, at);
    return quire_space_allocate(w->space, size, alignment, user, at);
}

static void allocate(world *w)
{
    if (w->live_count == MAX_LIVE)
        return;
    model_request request = {.size = random_size(&rng, w->max_size * w->unit)};
    request.alignment = UINT64_C(1) << random_below(&rng, w->max_align_log2 + 1);
    request.optimal = random_below(&rng, 3) == 0;
    uint64_t user = random_next(&rng), offset = 0;
    int region = 0;
    quire_placement at;
    bool bounded = random_below(&rng, 2);
    bool lowest = w->fit != QUIRE_FIT_BUDDY && random_below(&rng, 4) == 0;
    bool is_exact = w->fit != QUIRE_FIT_SEGREGATED || lowest;
    model_request served = as_served(w, request);
    bool fits = foresee(w, &served, bounded, &region, &offset);
    quire_result result = allocate_by_any_call(w, &request, bounded, lowest, user, &at);
    if (result) {
        CHECK_EQ(result, QUIRE_ERROR_NO_SPACE);
        CHECK(!fits || (!is_exact && bounded));
        CHECK(w->fit != QUIRE_FIT_SEGREGATED || !is_promised(w, &request));
        refused++;
        missed += fits;
        return;
    }
    CHECK(fits);
    CHECK_EQ(at.user, user);
    if (is_exact) {
        CHECK_EQ(at.region, region);
        CHECK_EQ(at.offset, offset);
    }
    accept_range(w, &at, &served);
}

/* All of them or none. The rules of a single range hold for each. */
static void allocate_batch(world *w)
{
    quire_placement at[MAX_BATCH];
    model_request request = {.size = random_size(&rng, w->max_size * w->unit)};
    request.alignment = UINT64_C(1) << random_below(&rng, w->max_align_log2 + 1);
    uint64_t count = 1 + random_below(&rng, random_below(&rng, 4) ? 6 : MAX_BATCH);
    if (count > (uint64_t)(MAX_LIVE - w->live_count))
        return;
    for (uint64_t i = 0; i < count; i++)
        at[i].user = i;
    quire_result result =
        quire_space_allocate_batch(w->space, request.size, request.alignment, at, count);
    if (result) {
        CHECK_EQ(result, QUIRE_ERROR_NO_SPACE);
        refused++;
    }
    for (uint64_t i = 0; i < count; i++) {
        CHECK_EQ(at[i].user, i);
        CHECK(!result || !at[i].size);
        if (!result)
            accept_range(w, &at[i], &request);
    }
}

static void release(world *w, int index)
{
    model_range range = w->live[index];
    CHECK_OK(quire_space_free(w->space, range.at.range));
    CHECK_FAILS(quire_space_free(w->space, range.at.range), QUIRE_ERROR_STALE_HANDLE);
    own(w, &range, 0);
    w->live_units -= range.end - range.first;
    w->live[index] = w->live[--w->live_count];
    if (index < w->live_count) { /* the last one took its number */
        const model_range *moved = &w->live[index];
        for (uint64_t i = moved->first; i < moved->end; i++)
            w->regions[moved->at.region].owner[i] = (uint16_t)(index + 1);
    }
}

static void look(world *w)
{
    model_range *range = &w->live[random_below(&rng, (uint64_t)w->live_count)];
    quire_placement at;
    range->at.user = random_next(&rng);
    CHECK_OK(quire_space_set_user(w->space, range->at.range, range->at.user));
    CHECK_OK(quire_space_get(w->space, range->at.range, &at));
    CHECK(!memcmp(&at, &range->at, sizeof at));
}

static void add_region_of(world *w, uint32_t units)
{
    uint32_t number = 0;
    uint64_t base = (random_next(&rng) >> (1 + random_below(&rng, 43))) / w->unit * w->unit;
    int free_number = 0;
    while (free_number < MAX_REGIONS && w->regions[free_number].used)
        free_number++;
    if (free_number == MAX_REGIONS)
        return;
    CHECK_OK(quire_space_add_region(w->space, units * w->unit, base, &number));
    CHECK_EQ(number, free_number); /* the lowest one not in use */
    w->regions[number] = (model_region){
        .used = true, .base = base, .units = units, .owner = calloc(units, sizeof(uint16_t))};
    w->regions[number].origin = (uint32_t)(base % w->max_alignment / w->unit);
}

static void add_region(world *w)
{
    add_region_of(w, 1 + (uint32_t)random_below(&rng, 2048));
}

static void remove_region(world *w, uint32_t number)
{
    model_region *r = &w->regions[number];
    uint32_t length = 0;
    bool is_empty = r->used && next_hole(r, 0, &length) == 0 && length == r->units;
    if (!r->used)
        CHECK_FAILS(quire_space_remove_region(w->space, number), QUIRE_ERROR_INVALID_ARGUMENT);
    else if (!is_empty)
        CHECK_FAILS(quire_space_remove_region(w->space, number), QUIRE_ERROR_BUSY);
    else {
        CHECK_OK(quire_space_remove_region(w->space, number));
        free(r->owner);
        *r = (model_region){0};
    }
}

static void resize_region(world *w, uint32_t number)
{
    model_region *r = &w->regions[number];
    uint32_t units = 1 + (uint32_t)random_below(&rng, 4096);
    if (random_below(&rng, 4) == 0 && r->used) /* as far as possible, and one unit further */
        units = end_of_live(r) + 1 - (uint32_t)random_below(&rng, 2);
    quire_result expected = QUIRE_SUCCESS;
    if (!r->used || !units)
        expected = QUIRE_ERROR_INVALID_ARGUMENT;
    else if (w->fit == QUIRE_FIT_BUDDY)
        expected = QUIRE_ERROR_UNSUPPORTED;
    else if (units > max_units(w, number))
        expected = QUIRE_ERROR_OUT_OF_RANGE;
    else if (units < end_of_live(r))
        expected = QUIRE_ERROR_BUSY;
    CHECK_EQ(quire_space_resize_region(w->space, number, units * w->unit), expected);
    CHECK_OK(quire_space_check(w->space));
    if (expected)
        return;
    r->owner = realloc(r->owner, units * sizeof *r->owner);
    CHECK(r->owner != NULL);
    for (uint32_t i = r->units; i < units; i++)
        r->owner[i] = 0;
    r->units = units;
}

/* ---- comparing ---------------------------------------------------------------------------- */

typedef struct comparing {
    const world *w;
    uint64_t live, free, largest_free;
    uint32_t region;
    uint64_t end;
    bool was_free;
} comparing;

static bool compare_item(void *user, const quire_space_item *item)
{
    comparing *c = user;
    const world *w = c->w;
    if (item->region != c->region || !c->end) {
        CHECK(c->region == UINT32_MAX || item->region > c->region);
        c->region = item->region;
        c->end = 0;
        c->was_free = false;
    }
    CHECK_EQ(item->offset - item->left_padding, c->end);
    CHECK(!(item->is_free && c->was_free) || w->fit == QUIRE_FIT_BUDDY);
    if (item->is_free && w->fit == QUIRE_FIT_BUDDY)
        CHECK_EQ(next_block(&w->regions[item->region], (uint32_t)(c->end / w->unit)).units,
                 item->size / w->unit);
    c->end = item->offset + item->size;
    c->was_free = item->is_free;
    if (!item->is_free) {
        const model_region *r = &w->regions[item->region];
        const quire_placement *at = &w->live[r->owner[(c->end - 1) / w->unit] - 1].at;
        CHECK(item->range.id == at->range.id && item->user == at->user);
        CHECK(item->offset == at->offset && item->left_padding == at->left_padding);
    } else
        CHECK(!item->range.id && !item->user && !item->left_padding);
    for (uint64_t i = (item->offset - item->left_padding) / w->unit; i < c->end / w->unit; i++)
        CHECK_EQ(w->regions[item->region].owner[i] == 0, item->is_free);
    *(item->is_free ? &c->free : &c->live) += 1;
    if (item->is_free && item->size > c->largest_free)
        c->largest_free = item->size;
    return true;
}

static void compare(const world *w)
{
    comparing c = {.w = w, .region = UINT32_MAX};
    quire_space_stats stats;
    CHECK_OK(quire_space_check(w->space));
    CHECK_OK(quire_space_walk(w->space, compare_item, &c));
    CHECK_OK(quire_space_get_stats(w->space, &stats));
    CHECK_EQ(c.live, (uint64_t)w->live_count);
    CHECK_EQ(stats.live_count, c.live);
    CHECK_EQ(stats.free_count, c.free);
    CHECK_EQ(stats.live_bytes + stats.padding_bytes, w->live_units * w->unit);
    CHECK_EQ(stats.live_bytes + stats.padding_bytes + stats.free_bytes, stats.region_bytes);
    CHECK_EQ(stats.largest_free, c.largest_free);
}

static void clear(world *w)
{
    CHECK_OK(quire_space_clear(w->space));
    while (w->live_count) {
        const model_range *range = &w->live[--w->live_count];
        CHECK_FAILS(quire_space_free(w->space, range->at.range), QUIRE_ERROR_STALE_HANDLE);
        own(w, range, 0);
    }
    w->live_units = 0;
    compare(w);
}

/* ---- worlds ------------------------------------------------------------------------------- */

static void draw_options(world *w, quire_space_options *options)
{
    if (w->fit != QUIRE_FIT_FIRST)
        w->unit = options->fit.granule = UINT64_C(1) << random_below(&rng, 13);
    options->fit.max_alignment = w->unit << random_below(&rng, 12);
    if (random_below(&rng, 2))
        options->buffer_image_granularity =
            (w->unit << random_below(&rng, 8)) >> random_below(&rng, 4);
    if (options->buffer_image_granularity > w->unit)
        w->granularity = options->buffer_image_granularity;
    w->max_alignment = options->fit.max_alignment;
    if (w->max_alignment < w->granularity)
        w->max_alignment = w->granularity;
    if (w->fit == QUIRE_FIT_SEGREGATED)
        options->fit.least_fragmentation = random_below(&rng, 2);
}

static void begin_world(world *w, quire_fit fit, const quire_host_memory *memory)
{
    *w = (world){.fit = fit, .unit = 1};
    quire_space_options options = {.fit.algorithm = fit, .host_memory = memory};
    draw_options(w, &options);
    w->max_align_log2 = (uint32_t)__builtin_ctzll(w->max_alignment);
    w->max_size = 1 + (uint32_t)random_size(&rng, 300);
    CHECK_OK(quire_space_create(&options, &w->space));
    if (fit == QUIRE_FIT_SEGREGATED && random_below(&rng, 2))
        defer_frees(w->space, 0);
    add_region(w);
}

static void end_world(world *w)
{
    while (w->live_count)
        release(w, (int)random_below(&rng, (uint64_t)w->live_count));
    compare(w);
    for (uint32_t i = 0; i < MAX_REGIONS; i++)
        if (w->regions[i].used)
            remove_region(w, i);
    quire_space_stats stats;
    CHECK_OK(quire_space_check(w->space));
    CHECK_OK(quire_space_get_stats(w->space, &stats));
    CHECK_EQ(stats.region_count + stats.free_count + stats.region_bytes, 0);
    quire_space_destroy(&w->space);
}

/* Occupancy drifts up and down, so that the space is seen both nearly full and nearly empty. */
static void step(world *w, uint64_t number)
{
    bool filling = number / 500 % 2 == 0;
    uint64_t what = random_below(&rng, 1000);
    if (what < 4)
        add_region(w);
    else if (what < 8)
        remove_region(w, (uint32_t)random_below(&rng, MAX_REGIONS));
    else if (what < 9)
        quire_space_trim(w->space);
    else if (what < 10)
        clear(w);
    else if (what < 30)
        resize_region(w, (uint32_t)random_below(&rng, MAX_REGIONS));
    else if (what < 80 && w->live_count)
        look(w);
    else if (what < 100)
        allocate_batch(w);
    else if (what < (filling ? 650u : 400u) || !w->live_count)
        allocate(w);
    else
        release(w, (int)random_below(&rng, (uint64_t)w->live_count));
    if (number % CHECK_EVERY == 0)
        compare(w);
}

static void run(quire_fit fit)
{
    static world w;
    test_memory memory;
    test_memory_init(&memory);
    for (uint64_t done = 0; done < total_steps; done += STEPS_A_WORLD) {
        begin_world(&w, fit, &memory.callbacks);
        for (uint64_t i = 0; i < STEPS_A_WORLD && done + i < total_steps; i++)
            step(&w, i);
        end_world(&w);
        CHECK_EQ(memory.blocks, 0);
    }
}

static void segregated(void)
{
    run(QUIRE_FIT_SEGREGATED);
}

static void first(void)
{
    run(QUIRE_FIT_FIRST);
}

static void buddy(void)
{
    run(QUIRE_FIT_BUDDY);
}

int main(int argc, char **argv)
{
    total_steps = plain_option(argc, argv, "steps", 5000000);
    seed = plain_option(argc, argv, "seed", 1);
    rng.state = seed;
    printf("# --seed %" PRIu64 " --steps %" PRIu64 " for each fit\n", seed, total_steps);
    plain_case("the segregated fit matches the oracle", segregated);
    printf("# %" PRIu64 " refused, of them %" PRIu64 " that a full pass would have placed\n",
           refused, missed);
    plain_case("the first fit matches the oracle", first);
    plain_case("the buddy fit matches the oracle", buddy);
    return plain_end();
}
