/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * space_churn.c - spaces at scale: a billion random operations against an oracle of constant time.
 *
 * The oracle keeps a bit per unit of every region, the live ranges in any order, and sums over
 * them. It checks each placement: in bounds, aligned at its native address, at least as large as
 * requested, on units without an owner, and no range of the other kind on its stretch. From time to
 * time it checks the whole space: a walk must match the bits and the sums, quire_space_check finds
 * nothing. space_model.c and linear_model.c check where each fit places a range.
 *
 * Two processes run each world of the table, in many runs of different shapes. The seed reproduces
 * a run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/defer.h"
#include "tests/support/plain.h"
#include "tests/support/random.h"
#include "tests/support/taken_units.h"

enum {
    FEWEST_DEFERRED = 100,
    MAX_BATCH = 32,
    WORKERS = 2,    /* processes per world */
    LIFE = 2000000, /* maximum number of steps */
    PHASE = 1 << 15 /* maximum number of steps */
};

typedef struct kind_of_world {
    const char *name;
    quire_space_options options;
    bool deferred; /* frees are deferred from FEWEST_DEFERRED nodes on */
} kind_of_world;

static const kind_of_world worlds[] = {
    {"segregated", {.fit.granule = 256}, false},
    {"least fragmentation", {.fit = {.granule = 256, .least_fragmentation = true}}, false},
    {"deferred coalescing", {.fit.granule = 256}, true},
    {"slabs", {.fit = {.granule = 256, .slabs = true}}, false},
    {"granularity", {.fit.granule = 256, .buffer_image_granularity = 256 * STRETCH}, false},
    {"every option",
     {.fit = {.granule = 256, .least_fragmentation = true, .slabs = true},
      .buffer_image_granularity = 256 * STRETCH},
     true},
    {"first", {.fit = {.algorithm = QUIRE_FIT_FIRST, .granule = 1}}, false},
    {"buddy", {.fit = {.algorithm = QUIRE_FIT_BUDDY, .granule = 256}}, false},
    {"linear", {.fit = {.algorithm = QUIRE_FIT_LINEAR, .granule = 1}}, false},
};

static test_random rng;
static uint64_t total_steps, seed, refused, proved, compared, peak;
static const kind_of_world *kind;

/* ---- allocating --------------------------------------------------------------------------- */

/* After a failed full pass: no place exists, as far as the fit guarantees it. */
static void prove_refusal(const quire_range_options *asked)
{
    const quire_space_options *o = w.options;
    bool promised =
        (o->fit.algorithm == QUIRE_FIT_SEGREGATED || o->fit.algorithm == QUIRE_FIT_FIRST) &&
        !o->fit.slabs && !o->buffer_image_granularity;
    /* not at every one, because they are many */
    if (!promised || random_below(&rng, 1 + (w.tail - w.head) / 64))
        return;
    for (int i = 0; i < MAX_REGIONS; i++)
        CHECK(!w.regions[i].used || !fits_in(&w.regions[i], asked->size, asked->alignment));
    proved++;
}

static void allocate(void)
{
    if (w.tail - w.head == MAX_LIVE)
        return;
    uint64_t bits = random_next(&rng);
    uint64_t most = bits & 255 ? w.max_size : w.max_size * 32;
    uint64_t alignment = (bits >> 8 & 7) ? 1 : w.max_alignment >> (bits >> 12 & 7);
    quire_range_options asked = {.size = random_size(&rng, most),
                                 .alignment = alignment ? alignment : 1,
                                 .user = random_next(&rng),
                                 .bounded = bits >> 16 & 1,
                                 .optimal = bits >> 24 & 1,
                                 .upper = w.options->fit.algorithm == QUIRE_FIT_LINEAR &&
                                          bits >> 25 & 1};
    bool plain = !asked.bounded && !asked.upper && bits >> 26 & 3;
    quire_placement at;
    asked.optimal &= !plain;
    quire_result result =
        plain ? quire_space_allocate(w.space, asked.size, asked.alignment, asked.user, &at)
              : quire_space_allocate_with(w.space, &asked, &at);
    if (!result) {
        accept(&at, &asked);
        return;
    }
    CHECK_EQ(result, QUIRE_ERROR_NO_SPACE);
    CHECK_EQ(at.range.id, 0);
    refused++;
    if (!asked.bounded && (bits >> 17 & 31) == 0)
        prove_refusal(&asked);
    if (random_below(&rng, 256) == 0)
        w.until_phase = 1;
}

/* ---- freeing ------------------------------------------------------------------------------ */

/* Takes a random live range out of the array. */
static live_range take(void)
{
    uint64_t which = random_below(&rng, 100);
    if (which < w.oldest_share)
        return w.live[w.head++];
    uint32_t at = w.tail - 1;
    if (which >= w.oldest_share + w.newest_share)
        at = w.head + (uint32_t)random_below(&rng, w.tail - w.head);
    live_range taken = w.live[at];
    w.live[at] = w.live[--w.tail];
    return taken;
}

static void release(void)
{
    if (w.head == w.tail)
        return;
    live_range range = take();
    CHECK_OK(quire_space_free(w.space, (quire_range){range.id}));
    forget(&range);
    if (random_below(&rng, 64) == 0)
        CHECK_FAILS(quire_space_free(w.space, (quire_range){range.id}), QUIRE_ERROR_STALE_HANDLE);
}

/* A batch with a stale range, or with one twice, frees none; otherwise it frees all. */
static void release_batch(void)
{
    live_range taken[MAX_BATCH];
    quire_range ranges[MAX_BATCH + 1];
    uint32_t count = 0, most = 1 + (uint32_t)random_below(&rng, MAX_BATCH);
    for (; count < most && w.head < w.tail; count++) {
        taken[count] = take();
        ranges[count].id = taken[count].id;
    }
    quire_range stale = w.old[random_below(&rng, MAX_OLD)];
    if (count && random_below(&rng, 8) == 0) {
        uint64_t at = random_below(&rng, count + 1);
        ranges[count] = ranges[at % count];
        if (stale.id && random_below(&rng, 2)) {
            ranges[count] = ranges[at];
            ranges[at] = stale;
        }
        CHECK_FAILS(quire_space_free_batch(w.space, ranges, count + 1), QUIRE_ERROR_STALE_HANDLE);
    }
    for (uint32_t i = 0; i < count; i++)
        ranges[i].id = taken[i].id;
    CHECK_OK(quire_space_free_batch(w.space, ranges, count));
    for (uint32_t i = 0; i < count; i++)
        forget(&taken[i]);
}

static void clear(void)
{
    CHECK_OK(quire_space_clear(w.space));
    for (; w.head < w.tail; w.head++)
        forget(&w.live[w.head]);
    w.head = w.tail = 0;
    CHECK_EQ(w.live_units + w.padding_units + w.print, 0);
}

static void look(void)
{
    quire_placement at;
    quire_range stale = w.old[random_below(&rng, MAX_OLD)];
    if (stale.id)
        CHECK_FAILS(quire_space_get(w.space, stale, &at), QUIRE_ERROR_STALE_HANDLE);
    if (w.head == w.tail)
        return;
    const live_range *range = &w.live[w.head + random_below(&rng, w.tail - w.head)];
    CHECK_OK(quire_space_get(w.space, (quire_range){range->id}, &at));
    CHECK_EQ(at.user, range->user);
    CHECK_EQ(at.region, range->region);
    CHECK_EQ(at.offset, (range->first + range->padding) * w.unit);
    CHECK_EQ(at.offset + at.size, range->end * w.unit);
    CHECK_EQ(at.left_padding, range->padding * w.unit);
}

/* ---- regions, and rare operations --------------------------------------------------------- */

static void add_region(void)
{
    uint32_t number = 0, lowest = 0;
    while (lowest < w.max_regions && w.regions[lowest].used)
        lowest++;
    if (lowest == w.max_regions)
        return;
    region *r = &w.regions[lowest];
    memset(r, 0, sizeof *r);
    r->units = 4096u << random_below(&rng, 5);
    r->base = random_below(&rng, 1 << 20) * w.unit;
    CHECK_OK(quire_space_add_region(w.space, r->units * w.unit, r->base, &number));
    CHECK_EQ(number, lowest);
    r->used = true;
    w.region_units += r->units;
}

static void remove_region(uint32_t number)
{
    region *r = &w.regions[number];
    if (r->live) {
        CHECK_FAILS(quire_space_remove_region(w.space, number), QUIRE_ERROR_BUSY);
        uint32_t kept = w.head;
        for (uint32_t i = w.head; i < w.tail; i++) {
            live_range range = w.live[i];
            w.live[kept] = range;
            kept += range.region != number;
            if (range.region != number)
                continue;
            CHECK_OK(quire_space_free(w.space, (quire_range){range.id}));
            forget(&range);
        }
        w.tail = kept;
    }
    CHECK_OK(quire_space_remove_region(w.space, number));
    w.region_units -= r->units;
    r->used = false;
}

static void do_something_rare(void)
{
    quire_space_stats stats;
    uint32_t number = (uint32_t)random_below(&rng, w.max_regions);
    w.until_rare = 64 + random_below(&rng, 1 + w.region_units / 16);
    switch (random_below(&rng, 16)) {
    case 0:
        clear();
        break;
    case 1:
    case 2:
        quire_space_trim(w.space);
        break;
    case 3:
        if (w.regions[number].used)
            remove_region(number);
        break;
    case 4:
    case 5:
    case 6:
        add_region();
        break;
    default:
        compare_stats(&stats);
    }
}

/* ---- runs --------------------------------------------------------------------------------- */

/* Mostly filling, mostly emptying, or neither; and the freed ranges: old, new, or any. */
static void begin_phase(void)
{
    static const uint64_t shares[] = {90, 70, 55, 30};
    static const uint64_t ends[] = {0, 10, 98};
    w.until_phase = 1 + random_size(&rng, PHASE);
    w.allocate_share = shares[random_below(&rng, 4)];
    w.oldest_share = ends[random_below(&rng, 3)];
    w.newest_share = w.oldest_share == 98 ? 0 : ends[random_below(&rng, 3)];
}

static void step(void)
{
    uint64_t what = random_below(&rng, 128);
    if (what < 100)
        what < w.allocate_share ? allocate() : release();
    else if (what < 126)
        random_below(&rng, 100) < w.allocate_share ? allocate() : release();
    else if (what < 127)
        look();
    else if (random_below(&rng, 2))
        release_batch();
    if (--w.until_phase == 0)
        begin_phase();
    if (--w.until_rare == 0)
        do_something_rare();
    if (--w.until_compare == 0)
        compare();
}

/* One space, from its creation to its end. */
static void live(const quire_host_memory *memory, uint64_t steps)
{
    static const uint32_t max_units[] = {16, 64, 64, 64, 512};
    quire_space_options options = kind->options;
    memset(&w, 0, sizeof w);
    w.options = &options;
    w.unit = options.fit.granule;
    options.host_memory = memory;
    w.max_alignment = options.fit.max_alignment = w.unit * 128;
    w.max_size = w.unit * max_units[random_below(&rng, 5)];
    w.max_regions = options.fit.algorithm == QUIRE_FIT_LINEAR ? 1 : 1U << random_below(&rng, 4);
    w.until_rare = w.until_compare = 64;
    CHECK_OK(quire_space_create(&options, &w.space));
    if (kind->deferred)
        defer_frees(w.space, FEWEST_DEFERRED);
    add_region();
    begin_phase();
    while (steps-- > 0)
        step();
    compare();
    random_below(&rng, 2) ? clear() : (void)0;
    while (w.head < w.tail)
        release();
    compare();
    for (uint32_t i = 0; i < MAX_REGIONS; i++)
        if (w.regions[i].used)
            remove_region(i);
    quire_space_destroy(&w.space);
    compared += w.compared;
    peak = w.peak > peak ? w.peak : peak;
}

/* ---- processes ---------------------------------------------------------------------------- */

static void work(uint64_t number, uint64_t steps)
{
    test_memory memory;
    test_memory_init(&memory);
    rng.state = seed + number * UINT64_C(0x632BE59BD9B4E019);
    while (steps) {
        uint64_t length = random_size(&rng, LIFE);
        length = length < steps ? length : steps;
        live(&memory.callbacks, length);
        CHECK_EQ(memory.blocks, 0);
        steps -= length;
    }
    printf("# %s: at most %" PRIu64 " lived, %" PRIu64 " refused, %" PRIu64
           " of that proved, %" PRIu64 " times compared\n",
           kind->name, peak, refused, proved, compared);
    fflush(stdout);
}

/* Processor time of ended children. */
static double seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

/* A failing process prints the failure, so that its parent only has to end. */
static void live_in_world(void)
{
    uint64_t steps = total_steps / (sizeof worlds / sizeof *worlds) / WORKERS + 1;
    uint64_t index = (uint64_t)(kind - worlds);
    double start = seconds();
    for (uint64_t i = 0; i < WORKERS; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child)
            continue;
        work(index * WORKERS + i, steps);
        exit(0);
    }
    for (int i = 0, status = 0; i < WORKERS; i++) {
        CHECK(wait(&status) > 0);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 1)
            exit(1);
        CHECK_EQ(status, 0);
    }
    printf("# %.0f ns a step\n", (seconds() - start) * 1e9 / (double)(steps * WORKERS));
}

int main(int argc, char **argv)
{
    total_steps = plain_option(argc, argv, "steps", 20000000);
    seed = plain_option(argc, argv, "seed", 1);
    printf("# --seed %" PRIu64 " --steps %" PRIu64 " for all worlds together\n", seed, total_steps);
    fflush(stdout);
    for (kind = worlds; kind < worlds + sizeof worlds / sizeof *worlds; kind++)
        plain_case(kind->name, live_in_world);
    return plain_end();
}
