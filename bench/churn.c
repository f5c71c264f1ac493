/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * churn.c - see churn.h. docs/benchmarks.md defines the distributions, ramps and fills.
 */
#include "bench/churn.h"

#include <stdlib.h>
#include <string.h>

enum { RAISE_EVERY = 100, FILL_STEPS = 100000, SAMPLES = 8 };
#define VICTIM_SEED UINT64_C(0xABCDEF)
#define GIB (UINT64_C(1) << 30)

static uint64_t draw_logu(rng *r)
{
    return rng_log_uniform(r, 256, 1048576);
}

static uint64_t draw_bimod(rng *r)
{
    return rng_unit(r) < 0.9 ? rng_log_uniform(r, 256, 16384) : rng_log_uniform(r, 262144, 4194304);
}

static uint64_t draw_small(rng *r)
{
    return 64 + 16 * rng_below(r, 253);
}

static uint64_t draw_mid(rng *r)
{
    return rng_log_uniform(r, 65536, 16777216);
}

static uint64_t draw_pow2(rng *r)
{
    return UINT64_C(256) << rng_below(r, 13);
}

static uint64_t draw_tex(rng *r)
{
    uint64_t width = UINT64_C(64) << rng_below(r, 6), height = UINT64_C(64) << rng_below(r, 6);
    uint64_t size = width * height * (rng_below(r, 2) ? 4 : 1);
    return rng_unit(r) < 1.0 / 3 ? size * 4 / 3 : size;
}

static const churn_sizes KNOWN[] = {
    {"logu", 7001, GIB, 256, draw_logu},       {"bimod", 7002, GIB, 256, draw_bimod},
    {"small", 7003, GIB / 32, 16, draw_small}, {"mid", 7004, 8 * GIB, 256, draw_mid},
    {"pow2", 7005, GIB, 256, draw_pow2},       {"tex", 7006, 4 * GIB, 256, draw_tex},
};

enum { KNOWN_COUNT = sizeof KNOWN / sizeof *KNOWN };

const char *churn_name(size_t index)
{
    return index < KNOWN_COUNT ? KNOWN[index].name : NULL;
}

const churn_sizes *churn_find(const char *name)
{
    for (size_t i = 0; i < KNOWN_COUNT; i++)
        if (!strcmp(KNOWN[i].name, name))
            return &KNOWN[i];
    return NULL;
}

/* ---- steps -------------------------------------------------------------------------------- */

typedef struct live_range {
    uint64_t handle, offset, size;
} live_range;

typedef struct churn {
    const churn_sizes *d;
    const churn_space *space;
    rng sizes, victims;
    live_range *live;
    size_t count, room;
    uint64_t live_bytes;
} churn;

static bool begin(churn *c, const churn_sizes *d, uint64_t seed, const churn_space *space)
{
    *c = (churn){.d = d, .space = space, .sizes = {seed}, .victims = {seed ^ VICTIM_SEED}};
    c->room = d->arena / d->unit / 4 + 1; /* the mean of every distribution exceeds four units */
    c->live = calloc(c->room, sizeof *c->live);
    return c->live != NULL;
}

static void free_victim(churn *c)
{
    size_t i = rng_below(&c->victims, c->count);
    c->space->free(c->space->state, c->live[i].handle);
    c->live_bytes -= c->live[i].size;
    c->live[i] = c->live[--c->count];
}

/*
 * Frees random ranges until the next request stays within the target, then sends it. Returns false
 * if the request fails.
 */
static bool step(churn *c, double target)
{
    uint64_t unit = c->d->unit, size = (c->d->draw(&c->sizes) + unit - 1) / unit * unit;
    while (c->count && (double)(c->live_bytes + size) > target * (double)c->d->arena)
        free_victim(c);
    if (c->count == c->room)
        return false;
    live_range range = {.size = size};
    range.handle = c->space->allocate(c->space->state, size, unit, &range.offset);
    if (!range.handle)
        return false;
    c->live[c->count++] = range;
    c->live_bytes += size;
    return true;
}

static double live_share(const churn *c)
{
    return (double)c->live_bytes / (double)c->d->arena;
}

/* ---- ramp --------------------------------------------------------------------------------- */

double churn_ramp(const churn_sizes *sizes, uint64_t seed, uint64_t max_steps,
                  const churn_space *space)
{
    churn c;
    double target = 0.5;
    if (!begin(&c, sizes, seed, space))
        return -1;
    uint64_t steps = 0;
    while (steps != max_steps && step(&c, target))
        if (++steps % RAISE_EVERY == 0 && target < 1.0)
            target += 0.0001;
    free(c.live);
    return live_share(&c);
}

/* ---- fill --------------------------------------------------------------------------------- */

static int compare_offsets(const void *one, const void *other)
{
    uint64_t a = ((const live_range *)one)->offset, b = ((const live_range *)other)->offset;
    return (a > b) - (a < b);
}

/*
 * 1 - largest gap / all gaps, computed from offsets. Sorts a copy, because the order of the live
 * ranges determines the next victim.
 */
static double external_fragmentation(const churn *c)
{
    live_range *sorted = malloc((c->count + 1) * sizeof *sorted);
    if (!sorted)
        return 0;
    memcpy(sorted, c->live, c->count * sizeof *sorted);
    qsort(sorted, c->count, sizeof *sorted, compare_offsets);
    sorted[c->count] = (live_range){.offset = c->d->arena};
    uint64_t end = 0, largest = 0, total = 0;
    for (size_t i = 0; i <= c->count; i++) {
        uint64_t gap = sorted[i].offset > end ? sorted[i].offset - end : 0;
        total += gap;
        largest = gap > largest ? gap : largest;
        end = sorted[i].offset + sorted[i].size;
    }
    free(sorted);
    return total ? 1 - (double)largest / (double)total : 0;
}

bool churn_fill(const churn_sizes *sizes, double target, uint64_t max_steps,
                const churn_space *space, churn_filled *out)
{
    churn c;
    *out = (churn_filled){0};
    if (!begin(&c, sizes, sizes->seed, space))
        return false;
    uint64_t steps = max_steps < FILL_STEPS ? max_steps : FILL_STEPS, failures = 0;
    while ((double)c.live_bytes < (target - 0.005) * (double)sizes->arena && step(&c, target)) {
    }
    for (uint64_t i = 0; i < steps; i++) {
        failures += !step(&c, target);
        if (i >= steps / 2 && (i + 1) % (steps / (2 * SAMPLES) + 1) == 0) {
            out->external += external_fragmentation(&c);
            out->samples++;
        }
    }
    if (out->samples)
        out->external /= out->samples;
    out->failures_per_1000 = (double)failures * 1000 / (double)steps;
    while (step(&c, 2)) { /* a target above the arena's size frees nothing */
    }
    out->full = live_share(&c);
    free(c.live);
    return true;
}
