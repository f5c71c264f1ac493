/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * linear_model.c - random operations on linear spaces against a naive oracle.
 *
 * The oracle keeps the live ranges in the order in which they were allocated and scans all of them
 * each time. It checks the space against the rules of QUIRE_FIT_LINEAR, to the byte:
 *  - a lower range begins where the newest live lower one ends, padding included; if it does not
 *    fit there and no upper range lives, at the start of the region
 *  - an upper range lies as high as its alignment allows below the lowest live upper one
 *  - a request fails only if neither place holds it
 *  - statistics, the largest possible request and the walk agree with the oracle; quire_space_check
 *    finds nothing
 *  - ranges that were freed or cleared are stale, immediately and later
 *
 * Worlds of different use (a stack, a ring, frames, two stacks, anything) follow each other until
 * the steps are done. The seed reproduces a run.
 */
#include <stdio.h>

#include "quire/space.h"
#include "tests/support/plain.h"
#include "tests/support/random.h"

enum { MAX_LIVE = 300, MAX_OLD = 64, STEPS_A_WORLD = 10000, CHECK_EVERY = 16 };

typedef enum habit { ANYTHING, STACK, RING, FRAMES, TWO_STACKS, HABITS } habit;

typedef struct model_range {
    quire_placement at;
    uint64_t begin, end; /* left padding included */
    bool upper;
} model_range;

typedef struct world {
    quire_space *space;
    habit habit;
    uint64_t base, size; /* of the region; size 0 means none */
    uint64_t max_alignment, max_size;
    model_range live[MAX_LIVE]; /* by age */
    int count;
    quire_range old[MAX_OLD]; /* some freed ranges */
} world;

static test_random rng;
static uint64_t total_steps, seed, placed[2], wrapped, refused, cleared;

/* ---- the oracle --------------------------------------------------------------------------- */

static const model_range *newest_lower(const world *w)
{
    for (int i = w->count; i-- > 0;)
        if (!w->live[i].upper)
            return &w->live[i];
    return NULL;
}

/* The start of the first range at or above `from`. */
static uint64_t next_begin(const world *w, uint64_t from)
{
    uint64_t lowest = w->size;
    for (int i = 0; i < w->count; i++)
        if (w->live[i].begin >= from && w->live[i].begin < lowest)
            lowest = w->live[i].begin;
    return lowest;
}

/* The end of the last range that ends at or below `to`. */
static uint64_t last_end(const world *w, uint64_t to)
{
    uint64_t highest = 0;
    for (int i = 0; i < w->count; i++)
        if (w->live[i].end <= to && w->live[i].end > highest)
            highest = w->live[i].end;
    return highest;
}

static uint64_t lower_end(const world *w)
{
    const model_range *newest = newest_lower(w);
    return newest ? newest->end : 0;
}

/* The end of the region, or the start of the upper ranges. */
static uint64_t upper_end(const world *w)
{
    uint64_t lowest = w->size;
    for (int i = 0; i < w->count; i++)
        if (w->live[i].upper && w->live[i].begin < lowest)
            lowest = w->live[i].begin;
    return lowest;
}

static bool may_wrap(const world *w)
{
    return last_end(w, w->size) == lower_end(w);
}

/* Returns whether the request fits from `begin` on; and its offset. */
static bool fits_from(const world *w, uint64_t begin, uint64_t size, uint64_t alignment,
                      uint64_t *offset)
{
    *offset = begin + ((UINT64_C(0) - (w->base + begin)) & (alignment - 1));
    return *offset + size <= next_begin(w, begin);
}

static bool place_lower(const world *w, uint64_t size, uint64_t alignment, uint64_t *begin,
                        uint64_t *offset)
{
    *begin = lower_end(w);
    if (fits_from(w, *begin, size, alignment, offset))
        return true;
    *begin = 0;
    return may_wrap(w) && fits_from(w, 0, size, alignment, offset);
}

static bool place_upper(const world *w, uint64_t size, uint64_t alignment, uint64_t *begin,
                        uint64_t *offset)
{
    uint64_t end = upper_end(w), bottom = last_end(w, end);
    for (uint64_t spare = 0; end - bottom >= size && spare <= end - bottom - size; spare++) {
        *begin = *offset = end - size - spare;
        if (((w->base + *offset) & (alignment - 1)) == 0)
            return true;
    }
    return false;
}

/* ---- operations --------------------------------------------------------------------------- */

static bool wants_upper(const world *w)
{
    return w->habit == TWO_STACKS ? random_below(&rng, 2) == 0
                                  : w->habit == ANYTHING && random_below(&rng, 8) == 0;
}

static void allocate(world *w)
{
    if (w->count == MAX_LIVE)
        return;
    quire_range_options options = {
        .size = random_size(&rng, w->max_size),
        .alignment =
            UINT64_C(1) << random_below(&rng, 1 + (uint64_t)__builtin_ctzll(w->max_alignment)),
        .user = random_next(&rng),
        .bounded = random_below(&rng, 4) == 0,
        .upper = wants_upper(w),
    };
    uint64_t begin = 0, offset = 0;
    quire_placement at;
    bool fits = options.upper ? place_upper(w, options.size, options.alignment, &begin, &offset)
                              : place_lower(w, options.size, options.alignment, &begin, &offset);
    quire_result result = quire_space_allocate_with(w->space, &options, &at);
    CHECK_EQ(result, fits ? QUIRE_SUCCESS : QUIRE_ERROR_NO_SPACE);
    refused += !fits;
    if (!fits)
        return;
    CHECK_EQ(at.offset, offset);
    CHECK_EQ(at.left_padding, offset - begin);
    CHECK_EQ(at.size, options.size);
    CHECK_EQ(at.user, options.user);
    CHECK_EQ(at.region, 0);
    placed[options.upper]++;
    wrapped += !options.upper && begin < lower_end(w);
    w->live[w->count++] = (model_range){
        .at = at, .begin = begin, .end = offset + options.size, .upper = options.upper};
}

static void forget(world *w, int index)
{
    w->old[random_below(&rng, MAX_OLD)] = w->live[index].at.range;
    w->count--;
    for (int i = index; i < w->count; i++)
        w->live[i] = w->live[i + 1];
}

static int victim(const world *w)
{
    uint64_t odd = random_below(&rng, 16) == 0; /* occasionally one in the middle */
    if (w->habit == ANYTHING || odd)
        return (int)random_below(&rng, (uint64_t)w->count);
    return w->habit == RING ? 0 : w->count - 1;
}

static void release(world *w)
{
    if (!w->count)
        return;
    int index = victim(w);
    CHECK_OK(quire_space_free(w->space, w->live[index].at.range));
    CHECK_FAILS(quire_space_free(w->space, w->live[index].at.range), QUIRE_ERROR_STALE_HANDLE);
    forget(w, index);
}

/* Frees a part of the ranges at once; a batch with a stale range frees none. */
static void release_many(world *w)
{
    quire_range ranges[MAX_LIVE + 1] = {{0}};
    uint64_t count = 0;
    int chosen[MAX_LIVE];
    for (int i = 0; i < w->count; i++)
        if (random_below(&rng, 4) == 0) {
            chosen[count] = i;
            ranges[count++] = w->live[i].at.range;
        }
    if (count && random_below(&rng, 2)) {
        ranges[count] = ranges[random_below(&rng, count)];
        CHECK_FAILS(quire_space_free_batch(w->space, ranges, count + 1), QUIRE_ERROR_STALE_HANDLE);
        return;
    }
    for (uint64_t i = 0; i + 1 < count; i++) { /* in any order */
        uint64_t j = i + random_below(&rng, count - i);
        quire_range kept = ranges[i];
        ranges[i] = ranges[j];
        ranges[j] = kept;
    }
    CHECK_OK(quire_space_free_batch(w->space, ranges, count));
    while (count-- > 0)
        forget(w, chosen[count]);
}

static void clear(world *w)
{
    CHECK_OK(quire_space_clear(w->space));
    cleared += w->count > 0;
    while (w->count)
        forget(w, w->count - 1);
}

static void look(world *w)
{
    quire_placement at;
    quire_range old = w->old[random_below(&rng, MAX_OLD)];
    if (old.id)
        CHECK_FAILS(quire_space_get(w->space, old, &at), QUIRE_ERROR_STALE_HANDLE);
    if (!w->count)
        return;
    model_range *range = &w->live[random_below(&rng, (uint64_t)w->count)];
    range->at.user = random_next(&rng);
    CHECK_OK(quire_space_set_user(w->space, range->at.range, range->at.user));
    CHECK_OK(quire_space_get(w->space, range->at.range, &at));
    CHECK(!memcmp(&at, &range->at, sizeof at));
}

static void add_region(world *w)
{
    uint64_t size = 1 + random_below(&rng, 20000), base = random_below(&rng, 1 << 20);
    uint32_t number = 9;
    if (w->size) {
        CHECK_FAILS(quire_space_add_region(w->space, size, base, &number), QUIRE_ERROR_WRONG_STATE);
        return;
    }
    CHECK_OK(quire_space_add_region(w->space, size, base, &number));
    CHECK_EQ(number, 0);
    w->size = size;
    w->base = base;
    w->max_size = 1 + random_size(&rng, size / 4 + 1);
}

static void remove_region(world *w)
{
    quire_result expected = !w->size   ? QUIRE_ERROR_INVALID_ARGUMENT
                            : w->count ? QUIRE_ERROR_BUSY
                                       : QUIRE_SUCCESS;
    CHECK_EQ(quire_space_remove_region(w->space, 0), expected);
    if (!expected)
        w->size = 0;
}

/* ---- comparing ---------------------------------------------------------------------------- */

typedef struct comparing {
    const world *w;
    uint64_t live, free, end;
    bool was_free;
} comparing;

static bool compare_item(void *user, const quire_space_item *item)
{
    comparing *c = user;
    CHECK_EQ(item->region, 0);
    CHECK_EQ(item->offset - item->left_padding, c->end);
    CHECK(item->size && !(item->is_free && c->was_free));
    c->end = item->offset + item->size;
    c->was_free = item->is_free;
    *(item->is_free ? &c->free : &c->live) += 1;
    if (item->is_free)
        return true;
    for (int i = 0; i < c->w->count; i++)
        if (c->w->live[i].at.range.id == item->range.id) {
            const quire_placement *at = &c->w->live[i].at;
            CHECK_EQ(item->offset, at->offset);
            CHECK_EQ(item->left_padding, at->left_padding);
            CHECK_EQ(item->size, at->size);
            CHECK_EQ(item->user, at->user);
            return true;
        }
    check_failed(__FILE__, __LINE__, "the walk shows a range that is not live");
}

/* The maximum request without alignment. */
static uint64_t largest(const world *w)
{
    uint64_t lower = next_begin(w, lower_end(w)) - lower_end(w), upper = upper_end(w);
    uint64_t most = lower;
    upper -= last_end(w, upper);
    most = upper > most ? upper : most;
    uint64_t start = may_wrap(w) ? next_begin(w, 0) : 0;
    return start > most ? start : most;
}

static void compare(const world *w)
{
    comparing c = {.w = w};
    quire_space_stats stats;
    uint64_t live = 0, padding = 0;
    CHECK_OK(quire_space_check(w->space));
    CHECK_OK(quire_space_walk(w->space, compare_item, &c));
    CHECK_OK(quire_space_get_stats(w->space, &stats));
    for (int i = 0; i < w->count; i++) {
        live += w->live[i].at.size;
        padding += w->live[i].at.left_padding;
    }
    CHECK_EQ(c.live, (uint64_t)w->count);
    CHECK_EQ(c.end, w->size);
    CHECK_EQ(stats.live_count, c.live);
    CHECK_EQ(stats.free_count, c.free);
    CHECK_EQ(stats.live_bytes, live);
    CHECK_EQ(stats.padding_bytes, padding);
    CHECK_EQ(stats.free_bytes, w->size - live - padding);
    CHECK_EQ(stats.region_bytes, w->size);
    CHECK_EQ(stats.largest_free, largest(w));
}

/* ---- worlds ------------------------------------------------------------------------------- */

static void begin_world(world *w, const quire_host_memory *memory)
{
    *w = (world){.habit = (habit)random_below(&rng, HABITS)};
    w->max_alignment = UINT64_C(1) << random_below(&rng, 12);
    quire_space_options options = {
        .fit = {.algorithm = QUIRE_FIT_LINEAR, .max_alignment = w->max_alignment},
        .host_memory = memory};
    CHECK_OK(quire_space_create(&options, &w->space));
    add_region(w);
}

/* Occupancy drifts up and down, so that the space is seen both full and empty. */
static void step(world *w, uint64_t number)
{
    bool filling = number / 200 % 2 == 0;
    uint64_t what = random_below(&rng, 1000);
    if (what < 4)
        add_region(w);
    else if (what < 8)
        remove_region(w);
    else if (what < 12)
        quire_space_trim(w->space);
    else if (what < 16)
        release_many(w);
    else if (what < (w->habit == FRAMES ? 40u : 18u))
        clear(w);
    else if (what < 100)
        look(w);
    else if (what < (filling || w->habit == FRAMES ? 650u : 400u))
        allocate(w);
    else if (w->habit != FRAMES || what > 990)
        release(w);
    if (number % CHECK_EVERY == 0)
        compare(w);
}

static void linear(void)
{
    static world w;
    test_memory memory;
    test_memory_init(&memory);
    for (uint64_t done = 0; done < total_steps; done += STEPS_A_WORLD) {
        begin_world(&w, &memory.callbacks);
        for (uint64_t i = 0; i < STEPS_A_WORLD && done + i < total_steps; i++)
            step(&w, i);
        compare(&w);
        while (w.count)
            release(&w);
        compare(&w);
        quire_space_destroy(&w.space);
        CHECK_EQ(memory.blocks, 0);
    }
    CHECK(placed[0] && placed[1] && wrapped && refused && cleared); /* each occurred */
}

int main(int argc, char **argv)
{
    total_steps = plain_option(argc, argv, "steps", 5000000);
    seed = plain_option(argc, argv, "seed", 1);
    rng.state = seed;
    printf("# --seed %" PRIu64 " --steps %" PRIu64 "\n", seed, total_steps);
    plain_case("the linear fit matches the oracle", linear);
    printf("# %" PRIu64 " lower ranges, %" PRIu64 " of them at the start again; %" PRIu64
           " upper ones; %" PRIu64 " refused; %" PRIu64 " clears\n",
           placed[0], wrapped, placed[1], refused, cleared);
    return plain_end();
}
