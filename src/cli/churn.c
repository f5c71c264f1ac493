/*
 * churn.c - see churn.h; docs/benchmarks.md defines the distributions and the two ways to run them.
 */
#include "src/cli/churn.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/result.h"
#include "src/cli/workload.h"

enum { SEEDS = 5, RAISE_EVERY = 100, FILL_STEPS = 100000 };
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

typedef struct distribution {
    const char *name;
    uint64_t seed;
    uint64_t arena;
    uint64_t unit; /* sizes are rounded up to it, and it is the alignment and the granule */
    uint64_t (*draw)(rng *r);
} distribution;

static const distribution KNOWN[] = {
    {"logu", 7001, GIB, 256, draw_logu},       {"bimod", 7002, GIB, 256, draw_bimod},
    {"small", 7003, GIB / 32, 16, draw_small}, {"mid", 7004, 8 * GIB, 256, draw_mid},
    {"pow2", 7005, GIB, 256, draw_pow2},       {"tex", 7006, 4 * GIB, 256, draw_tex},
};

enum { KNOWN_COUNT = sizeof KNOWN / sizeof *KNOWN };

const char *churn_name(size_t index)
{
    return index < KNOWN_COUNT ? KNOWN[index].name : NULL;
}

static const distribution *find(const char *name)
{
    for (size_t i = 0; i < KNOWN_COUNT; i++)
        if (!strcmp(KNOWN[i].name, name))
            return &KNOWN[i];
    return NULL;
}

/* ---- one run ------------------------------------------------------------------------------ */

typedef struct churn {
    const distribution *d;
    quire_space *space;
    rng sizes, victims;
    struct {
        quire_range range;
        uint64_t size;
    } * live;
    size_t count, room;
    uint64_t live_bytes;
} churn;

static bool begin(churn *c, const distribution *d, quire_fit fit, uint64_t seed)
{
    *c = (churn){.d = d, .sizes = {seed}, .victims = {seed ^ VICTIM_SEED}};
    quire_space_options options = {.fit = fit, .size = d->arena};
    if (fit != QUIRE_FIT_FIRST) /* that one is exact to the byte */
        options.granule = d->unit;
    c->room = d->arena / d->unit / 4 + 1; /* no distribution has smaller means than four units */
    c->live = calloc(c->room, sizeof *c->live);
    return c->live && !quire_space_create(&options, &c->space);
}

static void end(churn *c)
{
    quire_space_destroy(&c->space);
    free(c->live);
}

static void free_victim(churn *c)
{
    size_t i = rng_below(&c->victims, c->count);
    qi_ignore(quire_space_free(c->space, c->live[i].range));
    c->live_bytes -= c->live[i].size;
    c->live[i] = c->live[--c->count];
}

/* One request at a target; false when it was refused. */
static bool step(churn *c, double target)
{
    uint64_t unit = c->d->unit, size = (c->d->draw(&c->sizes) + unit - 1) / unit * unit;
    while (c->count && (double)(c->live_bytes + size) > target * (double)c->d->arena)
        free_victim(c);
    quire_placement at;
    if (c->count == c->room || quire_space_allocate(c->space, size, unit, 0, &at))
        return false;
    c->live[c->count].range = at.range;
    c->live[c->count++].size = size;
    c->live_bytes += size;
    return true;
}

static double ramp_once(const distribution *d, quire_fit fit, uint64_t seed)
{
    churn c;
    double target = 0.5, reached = -1;
    if (begin(&c, d, fit, seed)) {
        uint64_t attempts = 0;
        while (step(&c, target))
            if (++attempts % RAISE_EVERY == 0 && target < 1.0)
                target += 0.0001;
        reached = (double)c.live_bytes / (double)d->arena;
    }
    end(&c);
    return reached;
}

double churn_ramp(const char *name, quire_fit fit)
{
    const distribution *d = find(name);
    double sum = 0;
    for (uint64_t k = 0; d && k < SEEDS; k++) {
        double reached = ramp_once(d, fit, d->seed + 1000 * k);
        if (reached < 0)
            return -1;
        sum += reached;
    }
    return d ? sum / SEEDS : -1;
}

double churn_fill(const char *name, quire_fit fit, double target)
{
    const distribution *d = find(name);
    churn c;
    double failures = -1;
    if (!d)
        return -1;
    if (begin(&c, d, fit, d->seed)) {
        failures = 0;
        while ((double)c.live_bytes < (target - 0.005) * (double)d->arena && step(&c, target)) {
        }
        for (int i = 0; i < FILL_STEPS; i++)
            failures += !step(&c, target);
    }
    end(&c);
    return failures < 0 ? -1 : failures * 1000 / FILL_STEPS;
}
