/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * adversaries.c - layouts that cause long searches.
 *
 *   g1  every second of 65,536 ranges of 4 KiB is free; the requests are 64 KiB
 *   g2  32,768 holes of 8 KiB, each 4 KiB off the requested alignment of 8 KiB
 *   g3  32,768 holes in the size class of the request, all too small, and one hole that fits
 *   g4  100,000 ranges of 8 KiB; every 20th is a hole, 4 KiB off the requested alignment of 8 KiB
 *   g5  the same layout; sizes and alignments of the requests vary, and no hole holds any of them
 *
 * Each request is timed alone and freed again, so that every request sees the same layout. Each
 * layout is built three times and the minimum of each result is kept, which removes random
 * interruptions.
 */
#include "bench/bench.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/children.h"
#include "bench/ticks.h"

enum { UNIT = 256, REQUESTS = 1000, HOLES = 32768, REPLAYS = 3 };
#define KIB UINT64_C(1024)

typedef struct adversary_result {
    bool good;
    double mean_ns, worst_ns; /* per request */
    double first_ns;          /* of the first request */
    double refill_ns;         /* g1: per allocation that then fills a hole; 0 in the others */
    uint64_t found;           /* requests that succeeded */
} adversary_result;

typedef struct placed {
    uint64_t handle, offset;
} placed;

typedef struct layout {
    const subject *subject;
    void *state;
    placed *ranges;
    size_t count, room;
} layout;

static bool layout_begin(layout *l, const subject *s, uint64_t arena, size_t ranges)
{
    *l = (layout){.subject = s, .room = ranges, .ranges = calloc(ranges, sizeof(placed))};
    l->state = l->ranges ? s->create(s, &(subject_arena){arena, UNIT, ranges}) : NULL;
    return l->state != NULL;
}

static void place(layout *l, uint64_t size)
{
    placed at = {0};
    at.handle = l->subject->allocate(l->state, size, UNIT, &at.offset);
    if (at.handle)
        l->ranges[l->count++] = at;
}

static int compare(const void *one, const void *other)
{
    uint64_t a = ((const placed *)one)->offset, b = ((const placed *)other)->offset;
    return (a > b) - (a < b);
}

/* Sorting makes every second range a hole between live ranges, in whatever order a fit places. */
static void sort_by_address(layout *l)
{
    qsort(l->ranges, l->count, sizeof *l->ranges, compare);
}

static void free_every_other(layout *l, size_t first)
{
    for (size_t i = first; i < l->count; i += 2)
        l->subject->free(l->state, l->ranges[i].handle);
}

/* A request adds up to `spread` units to the size and shifts the alignment by up to `shifts`. */
typedef struct wish {
    uint64_t size, alignment, spread, shifts;
} wish;

static void request_varied(layout *l, const wish *w, adversary_result *out)
{
    enum { SEED = 8005 };
    rng random = {SEED};
    uint64_t sum = 0, worst = 0;
    for (int i = 0; i < REQUESTS; i++) {
        uint64_t size = w->size + UNIT * rng_below(&random, w->spread + 1);
        uint64_t alignment = w->alignment << rng_below(&random, w->shifts + 1);
        uint64_t offset, since = ticks_now();
        uint64_t handle = l->subject->allocate(l->state, size, alignment, &offset);
        uint64_t spent = ticks_spent(since);
        sum += spent;
        worst = spent > worst ? spent : worst;
        if (!i)
            out->first_ns = (double)spent * the_clock.ns;
        if (!handle)
            continue;
        out->found++;
        l->subject->free(l->state, handle);
    }
    out->mean_ns = (double)sum * the_clock.ns / (double)REQUESTS;
    out->worst_ns = (double)worst * the_clock.ns;
    out->good = true;
}

static void request(layout *l, uint64_t size, uint64_t alignment, adversary_result *out)
{
    request_varied(l, &(wish){.size = size, .alignment = alignment}, out);
}

static void layout_end(layout *l)
{
    l->subject->destroy(l->state);
    free(l->ranges);
}

/* ---- the layouts -------------------------------------------------------------------- */

static void no_hole_large_enough(const subject *s, adversary_result *out)
{
    layout l;
    if (!layout_begin(&l, s, 2 * HOLES * 4 * KIB, 2 * HOLES))
        return;
    for (int i = 0; i < 2 * HOLES; i++)
        place(&l, 4 * KIB);
    sort_by_address(&l);
    free_every_other(&l, 0);
    request(&l, 64 * KIB, UNIT, out);
    uint64_t offset, since = ticks_now();
    for (int i = 0; i < HOLES; i++)
        l.subject->allocate(l.state, 4 * KIB, UNIT, &offset);
    out->refill_ns = (double)ticks_spent(since) * the_clock.ns / (double)HOLES;
    layout_end(&l);
}

static void no_hole_aligned(const subject *s, adversary_result *out)
{
    layout l;
    if (!layout_begin(&l, s, 4 * KIB + 2 * HOLES * 8 * KIB, 2 * HOLES + 1))
        return;
    place(&l, 4 * KIB);
    for (int i = 0; i < 2 * HOLES; i++)
        place(&l, 8 * KIB);
    sort_by_address(&l);
    free_every_other(&l, 1);
    request(&l, 8 * KIB, 8 * KIB, out);
    layout_end(&l);
}

/* Frees the fitting hole first, so that lists have it last. The ranges fill the arena exactly. */
static void one_hole_fits(const subject *s, adversary_result *out)
{
    enum { STEPS = 30, SEED = 8003 };
    const uint64_t base = 1024 * KIB, exact = base + (STEPS + 1) * UNIT;
    rng sizes = {SEED}, again = {SEED};
    uint64_t arena = exact + UNIT;
    for (int i = 0; i < HOLES; i++)
        arena += base + UNIT * (1 + rng_below(&sizes, STEPS)) + UNIT;
    layout l;
    if (!layout_begin(&l, s, arena, 2 * HOLES + 2))
        return;
    place(&l, exact);
    place(&l, UNIT);
    for (int i = 0; i < HOLES; i++) {
        place(&l, base + UNIT * (1 + rng_below(&again, STEPS)));
        place(&l, UNIT);
    }
    free_every_other(&l, 0);
    request(&l, exact, UNIT, out);
    layout_end(&l);
}

/* Half of each hole lies behind the only multiple of 8 KiB in it. */
static void refuse_in_nearly_full(const subject *s, const wish *w, adversary_result *out)
{
    enum { MANY = 100000, EVERY = 20 };
    layout l;
    if (!layout_begin(&l, s, 4 * KIB + MANY * 8 * KIB, MANY + 1))
        return;
    place(&l, 4 * KIB);
    for (int i = 0; i < MANY; i++)
        place(&l, 8 * KIB);
    sort_by_address(&l);
    for (size_t i = 1; i < l.count; i += EVERY)
        l.subject->free(l.state, l.ranges[i].handle);
    request_varied(&l, w, out);
    layout_end(&l);
}

static void same_request(const subject *s, adversary_result *out)
{
    refuse_in_nearly_full(s, &(wish){.size = 8 * KIB, .alignment = 8 * KIB}, out);
}

static void varied_requests(const subject *s, adversary_result *out)
{
    const wish w = {.size = 4 * KIB + UNIT, .alignment = 8 * KIB, .spread = 15, .shifts = 4};
    refuse_in_nearly_full(s, &w, out);
}

static const struct {
    const char *name, *what;
    void (*run)(const subject *s, adversary_result *out);
} CASES[] = {
    {"g1", "no hole is large enough", no_hole_large_enough},
    {"g2", "no hole is aligned", no_hole_aligned},
    {"g3", "one hole of many fits", one_hole_fits},
    {"g4", "refused again and again", same_request},
    {"g5", "refused in many sizes", varied_requests},
};

enum { CASE_COUNT = sizeof CASES / sizeof *CASES };

/* ---- the part ----------------------------------------------------------------------------- */

typedef struct adversaries {
    roster roster;
    size_t number; /* of the case */
    adversary_result *results;
} adversaries;

static void measure(void *user, size_t index)
{
    const adversaries *a = user;
    adversary_result *best = &a->results[index];
    for (int i = 0; i < REPLAYS; i++) {
        adversary_result one = {0};
        CASES[a->number].run(a->roster.items[index], &one);
        if (!i)
            *best = one;
        best->mean_ns = fmin(best->mean_ns, one.mean_ns);
        best->worst_ns = fmin(best->worst_ns, one.worst_ns);
        best->first_ns = fmin(best->first_ns, one.first_ns);
        best->refill_ns = fmin(best->refill_ns, one.refill_ns);
    }
}

static void report_one(bench *b, const adversaries *a, size_t index)
{
    const adversary_result *r = &a->results[index];
    const char *name = a->roster.items[index]->name;
    if (!r->good) {
        printf("  %-26s failed\n", name);
        return;
    }
    printf("  %-26s %10.0f %10.0f %10.0f %6" PRIu64, name, r->mean_ns, r->worst_ns, r->first_ns,
           r->found);
    if (r->refill_ns > 0)
        printf(" %8.1f", r->refill_ns);
    printf("\n");
    qi_json_object(&b->out.json, NULL);
    qi_json_text(&b->out.json, "workload", CASES[a->number].name);
    qi_json_text(&b->out.json, "subject", name);
    qi_json_number(&b->out.json, "requests", REQUESTS);
    qi_json_number(&b->out.json, "found", r->found);
    qi_json_real(&b->out.json, "request_ns", r->mean_ns);
    qi_json_real(&b->out.json, "worst_ns", r->worst_ns);
    qi_json_real(&b->out.json, "first_ns", r->first_ns);
    qi_json_real(&b->out.json, "refill_ns", r->refill_ns);
    qi_json_end_object(&b->out.json);
}

void measure_adversaries(bench *b)
{
    qi_json_array(&b->out.json, "adversaries");
    for (size_t i = 0; i < CASE_COUNT; i++) {
        adversaries a = {.number = i};
        if (!is_wanted(&b->wanted_workloads, CASES[i].name))
            continue;
        a.roster = roster_of(b, TAKE_SPACES | TAKE_PEERS | TAKE_REFERENCES);
        a.results = shared_memory(a.roster.count, sizeof *a.results);
        in_children(a.roster.count, 1, measure, &a);
        printf("\n%-28s %10s %10s %10s %6s %8s   ns per request: %s\n", CASES[i].name, "mean",
               "worst", "first", "found", "refill", CASES[i].what);
        for (size_t k = 0; k < a.roster.count; k++)
            report_one(b, &a, k);
        shared_release(a.results, a.roster.count, sizeof *a.results);
    }
    qi_json_end_array(&b->out.json);
}
