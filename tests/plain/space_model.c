/*
 * space_model.c - random operations on spaces against a naive oracle.
 *
 * The oracle keeps one owner per unit of every region and knows nothing of classes, lists or trees.
 * After each operation it holds the space to its promises:
 *  - a range lies inside its region, at a multiple of its alignment, on units that nobody owns
 *  - the first fit takes the lowest address at which the request fits, and refuses only when none
 *    does
 *  - the segregated fit succeeds when a free range exists in a class above that of size + alignment
 *    - granule; its exhaustive search refuses only when no range fits
 *  - the buddy fit takes the smallest free block that is large and aligned enough, of these the one
 *    in the lowest region, of these the lowest; its exhaustive search refuses only when no block
 *    that happens to lie aligned is large enough
 *  - figures and free neighbours are as the oracle sees them, and quire_space_check finds nothing
 *
 * Worlds of other shapes follow each other until the steps are done; the seed makes a run again.
 */
#include <stdio.h>
#include <stdlib.h>

#include "quire/space.h"
#include "src/space/classes.h"
#include "src/space/fit.h"
#include "tests/support/plain.h"
#include "tests/support/random.h"

enum { MOST_REGIONS = 12, MOST_LIVE = 400, STEPS_A_WORLD = 20000, CHECK_EVERY = 256 };

typedef struct model_region {
    bool used;
    uint64_t base;
    uint32_t units;
    uint32_t origin; /* units from the last multiple of the largest alignment to the base */
    uint16_t *owner; /* index of the live range + 1, or 0 */
} model_region;

typedef struct model_range {
    quire_placement at;
    uint64_t first, end; /* units, left padding included */
} model_range;

typedef struct world {
    quire_space *space;
    quire_fit fit;
    uint64_t unit, largest_alignment;
    uint32_t most_size, most_alignment; /* of requests: units, and log2 of bytes */
    model_region regions[MOST_REGIONS];
    model_range live[MOST_LIVE];
    int live_count;
    uint64_t live_units;
} world;

static test_random rng;
static uint64_t total_steps, seed, refused, missed;

/* ---- the oracle --------------------------------------------------------------------------- */

/* The first unit of a run of free units at or after `from`; its length in *length, 0 at the end. */
static uint32_t next_hole(const model_region *r, uint32_t from, uint32_t *length)
{
    while (from < r->units && r->owner[from])
        from++;
    uint32_t end = from;
    while (end < r->units && !r->owner[end])
        end++;
    *length = end - from;
    return from;
}

/* Bytes to skip in a hole at `unit` for an alignment. */
static uint64_t padding_at(const world *w, const model_region *r, uint32_t unit, uint64_t alignment)
{
    return (UINT64_C(0) - (r->base + unit * w->unit)) & (alignment - 1);
}

/* Whether the request fits into any hole of a region, and where first. */
static bool fits_in(const world *w, const model_region *r, uint64_t size, uint64_t alignment,
                    uint64_t *offset)
{
    uint32_t length = 0;
    for (uint32_t at = next_hole(r, 0, &length); length; at = next_hole(r, at + length, &length)) {
        uint64_t padding = padding_at(w, r, at, alignment);
        if (padding + size <= length * w->unit) {
            *offset = at * w->unit + padding;
            return true;
        }
    }
    return false;
}

/* The regions in the order of the line. */
static int line_order(const world *w, int *order)
{
    int count = 0;
    for (int i = 0; i < MOST_REGIONS; i++) {
        if (!w->regions[i].used)
            continue;
        int at = count++;
        for (; at > 0 && w->space->regions[order[at - 1]].start > w->space->regions[i].start; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    return count;
}

static bool fits_anywhere(const world *w, uint64_t size, uint64_t alignment, int *region,
                          uint64_t *offset)
{
    int order[MOST_REGIONS], count = line_order(w, order);
    for (int i = 0; i < count; i++) {
        *region = order[i];
        if (fits_in(w, &w->regions[order[i]], size, alignment, offset))
            return true;
    }
    return false;
}

/* Whether the segregated fit promised to find a place. */
static bool is_promised(const world *w, uint64_t size, uint64_t alignment)
{
    uint64_t extra = alignment > w->unit ? alignment / w->unit - 1 : 0;
    uint64_t sure = (size + w->unit - 1) / w->unit + extra;
    uint32_t class = qi_class_of_range((uint32_t)sure).index;
    for (int i = 0; i < MOST_REGIONS; i++) {
        const model_region *r = &w->regions[i];
        uint32_t length = 0;
        for (uint32_t at = r->used ? next_hole(r, 0, &length) : 0; length;
             at = next_hole(r, at + length, &length))
            if (qi_class_of_range(length).index > class)
                return true;
    }
    return false;
}

/* ---- the oracle of the buddy fit ---------------------------------------------------------- */

typedef struct model_block {
    int region;
    uint32_t unit, units; /* the second is a power of two; 0: there is no block */
} model_block;

/*
 * The free block at or after a unit: holes are cut into the largest powers of two that lie at
 * multiples of their own size, counted from the origin. Blocks merge whenever they can, so that
 * these are the blocks.
 */
static model_block next_block(const model_region *r, uint32_t from)
{
    uint32_t length = 0, unit = next_hole(r, from, &length), units = length > 0;
    while (units && units * 2 <= length && (unit + r->origin) % (units * 2) == 0)
        units *= 2;
    return (model_block){.unit = unit, .units = units};
}

/* The block to take for so many units, of those that lie at a multiple of `step` units. */
static model_block smallest_block(const world *w, uint32_t units, uint32_t step)
{
    model_block best = {0};
    for (int i = 0; i < MOST_REGIONS; i++) {
        const model_region *r = &w->regions[i];
        model_block block = {0};
        for (uint32_t from = 0; r->used && (block = next_block(r, from)).units;
             from = block.unit + block.units)
            if (block.units >= units && (block.unit + r->origin) % step == 0 &&
                (!best.units || block.units < best.units))
                best = (model_block){.region = i, .unit = block.unit, .units = block.units};
    }
    return best;
}

static uint64_t power_at_least(uint64_t value)
{
    uint64_t power = 1;
    while (power < value)
        power *= 2;
    return power;
}

/* Where the buddy fit must place a request; no block when it must refuse. */
static model_block buddy_place(const world *w, uint64_t size, uint64_t alignment, bool exhaustive)
{
    uint32_t units = (uint32_t)power_at_least((size + w->unit - 1) / w->unit);
    uint32_t step = alignment > w->unit ? (uint32_t)(alignment / w->unit) : 1;
    model_block block = smallest_block(w, units > step ? units : step, 1);
    return block.units || !exhaustive ? block : smallest_block(w, units, step);
}

static void own(world *w, const model_range *range, uint16_t owner)
{
    model_region *r = &w->regions[range->at.region];
    for (uint64_t i = range->first; i < range->end; i++) {
        CHECK(!r->owner[i] != !owner); /* free before it is taken, taken before it is freed */
        r->owner[i] = owner;
    }
}

/* ---- operations --------------------------------------------------------------------------- */

static void accept_range(world *w, const quire_placement *at, uint64_t size, uint64_t alignment)
{
    const model_region *r = &w->regions[at->region];
    uint64_t rounded = (size + w->unit - 1) / w->unit;
    rounded = (w->fit == QUIRE_FIT_BUDDY ? power_at_least(rounded) : rounded) * w->unit;
    CHECK(at->region < MOST_REGIONS && r->used);
    CHECK_EQ(at->size, rounded);
    CHECK_EQ((r->base + at->offset) & (alignment - 1), 0);
    CHECK(at->offset >= at->left_padding);
    CHECK(at->offset + at->size <= r->units * w->unit);
    CHECK(at->left_padding == 0 || w->fit == QUIRE_FIT_FIRST);
    model_range *range = &w->live[w->live_count++];
    range->at = *at;
    range->first = (at->offset - at->left_padding) / w->unit;
    range->end = (at->offset + at->size) / w->unit;
    w->live_units += range->end - range->first;
    own(w, range, (uint16_t)w->live_count);
}

static void allocate(world *w)
{
    if (w->live_count == MOST_LIVE)
        return;
    uint64_t size = random_size(&rng, w->most_size * w->unit);
    uint64_t alignment = UINT64_C(1) << random_below(&rng, w->most_alignment + 1);
    uint64_t user = random_next(&rng), offset = 0;
    int region = 0;
    quire_placement at;
    bool exhaustive = random_below(&rng, 4) == 0;
    bool fits = fits_anywhere(w, size, alignment, &region, &offset);
    if (w->fit == QUIRE_FIT_BUDDY) {
        model_block block = buddy_place(w, size, alignment, exhaustive);
        fits = block.units != 0;
        region = block.region;
        offset = block.unit * w->unit;
    }
    quire_result result =
        exhaustive ? quire_space_allocate_exhaustive(w->space, size, alignment, user, &at)
                   : quire_space_allocate(w->space, size, alignment, user, &at);
    if (result) {
        CHECK_EQ(result, QUIRE_ERROR_NO_SPACE);
        CHECK(!fits || (w->fit == QUIRE_FIT_SEGREGATED && !exhaustive));
        CHECK(w->fit != QUIRE_FIT_SEGREGATED || !is_promised(w, size, alignment));
        refused++;
        missed += fits;
        return;
    }
    CHECK(fits);
    CHECK_EQ(at.user, user);
    if (w->fit != QUIRE_FIT_SEGREGATED) {
        CHECK_EQ(at.region, region);
        CHECK_EQ(at.offset, offset);
    }
    accept_range(w, &at, size, alignment);
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

static void look(const world *w)
{
    const model_range *range = &w->live[random_below(&rng, (uint64_t)w->live_count)];
    quire_placement at;
    CHECK_OK(quire_space_get(w->space, range->at.range, &at));
    CHECK_EQ(at.region, range->at.region);
    CHECK_EQ(at.offset, range->at.offset);
    CHECK_EQ(at.size, range->at.size);
    CHECK_EQ(at.left_padding, range->at.left_padding);
}

static void add_region(world *w)
{
    uint32_t units = 1 + (uint32_t)random_below(&rng, 2048), number = 0;
    uint64_t base = random_below(&rng, 1 << 20) * w->unit;
    int free_number = 0;
    while (free_number < MOST_REGIONS && w->regions[free_number].used)
        free_number++;
    if (free_number == MOST_REGIONS)
        return;
    CHECK_OK(quire_space_add_region(w->space, units * w->unit, base, &number));
    CHECK_EQ(number, free_number); /* the lowest one not in use */
    w->regions[number] = (model_region){
        .used = true, .base = base, .units = units, .owner = calloc(units, sizeof(uint16_t))};
    w->regions[number].origin = (uint32_t)(base % w->largest_alignment / w->unit);
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

/* ---- worlds ------------------------------------------------------------------------------- */

static void begin_world(world *w, quire_fit fit, const quire_host_memory *memory)
{
    *w = (world){.fit = fit, .unit = 1};
    quire_space_options options = {.fit = fit, .host_memory = memory};
    if (fit != QUIRE_FIT_FIRST)
        w->unit = options.granule = UINT64_C(1) << random_below(&rng, 13);
    options.largest_alignment = w->unit << random_below(&rng, 12);
    w->largest_alignment = options.largest_alignment;
    w->most_alignment = (uint32_t)__builtin_ctzll(options.largest_alignment);
    w->most_size = 1 + (uint32_t)random_size(&rng, 300);
    CHECK_OK(quire_space_create(&options, &w->space));
    add_region(w);
}

static void end_world(world *w)
{
    while (w->live_count)
        release(w, (int)random_below(&rng, (uint64_t)w->live_count));
    compare(w);
    for (uint32_t i = 0; i < MOST_REGIONS; i++)
        if (w->regions[i].used)
            remove_region(w, i);
    quire_space_stats stats;
    CHECK_OK(quire_space_check(w->space));
    CHECK_OK(quire_space_get_stats(w->space, &stats));
    CHECK_EQ(stats.region_count + stats.free_count + stats.region_bytes, 0);
    quire_space_destroy(&w->space);
}

/* Occupancy drifts up and down in turns, so that the space is seen both nearly full and empty. */
static void step(world *w, uint64_t number)
{
    bool filling = number / 500 % 2 == 0;
    uint64_t what = random_below(&rng, 1000);
    if (what < 4)
        add_region(w);
    else if (what < 8)
        remove_region(w, (uint32_t)random_below(&rng, MOST_REGIONS));
    else if (what < 10)
        quire_space_trim(w->space);
    else if (what < 60 && w->live_count)
        look(w);
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
    plain_case("the segregated fit keeps its promises", segregated);
    printf("# %" PRIu64 " refused, of them %" PRIu64 " that a full pass would have placed\n",
           refused, missed);
    plain_case("the first fit keeps its promises", first);
    plain_case("the buddy fit keeps its promises", buddy);
    return plain_end();
}
