/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * memory_pages.c - the cost of a pair of free and allocate by number of pages. Each measurement
 * (memory, number of pages, repeat) runs in a separate process. Memories and numbers of pages take
 * turns within each repeat, so that both ratios, to one page and to a peer, compare measurements of
 * the same minutes.
 */
#include <inttypes.h>

#include "bench/children.h"
#include "bench/memory.h"
#include "bench/memory_lists.h"
#include "bench/mock_driver.h"
#include "bench/play.h"
#include "bench/ticks.h"
#include "src/base/result.h"
#include "src/base/system.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

/*
 * A peer whose cost grows with the number of pages would take hours. So warm-up and timed part end
 * after MAX_NS each, and a point can limit the repeats of peers.
 */
enum { MAX_NS = 1000000000, SLICE_GROUPS = 20, MAX_POINTS = 8, PAIRS = 100000 };

typedef struct point {
    uint64_t page_size;
    uint32_t slots;
    uint32_t peer_reps; /* maximum number of repeats of a peer; 0 means all */
} point;

typedef struct series {
    const char *name, *what;
    list_sizes sizes;
    uint32_t warm_pairs; /* per slot */
    uint64_t seed;
    point points[MAX_POINTS]; /* the first has one page; a page size of 0 ends the list */
} series;

static const series SERIES[] = {
    {.name = "pages",
     .what = "10,000 ranges of 256 B to 64 KiB, 118 MB, in pages of 256 MiB down to 128 KiB",
     .sizes = SIZES_MIXED,
     .warm_pairs = 4,
     .seed = 8001,
     .points = {{256 * MIB, 10000, 0},
                {32 * MIB, 10000, 0},
                {8 * MIB, 10000, 0},
                {2 * MIB, 10000, 0},
                {MIB, 10000, 0},
                {512 * KIB, 10000, 0},
                {128 * KIB, 10000, 5}}},
    {.name = "many-pages",
     .what = "100,000 ranges of 256 B to 64 KiB, 1.2 GB, in pages of 2 GiB down to 128 KiB",
     .sizes = SIZES_MIXED,
     .warm_pairs = 1,
     .seed = 8002,
     .points = {{2 * GIB, 100000, 5}, {MIB, 100000, 3}, {128 * KIB, 100000, 1}}},
    {.name = "full-pages",
     .what = "pages of 1 MiB, all full, 16 ranges in each",
     .sizes = SIZES_EQUAL,
     .warm_pairs = 4,
     .seed = 8003,
     .points = {{MIB, 16, 0},
                {MIB, 16 * 16, 0},
                {MIB, 64 * 16, 0},
                {MIB, 256 * 16, 0},
                {MIB, 1024 * 16, 3}}},
};

enum { SERIES_COUNT = sizeof SERIES / sizeof *SERIES };

typedef struct sample {
    bool good;
    double allocate_ns, free_ns;
    uint64_t pairs, pages, driver_calls; /* driver_calls: during the timed part */
} sample;

typedef struct run {
    const memory_bench *bench;
    const series *series;
    size_t points;
    roster roster;
    workload lists[MAX_POINTS];
    sample *samples; /* shared: [point][subject][rep] */
} run;

/* ---- one repeat, in a child --------------------------------------------------------------- */

typedef struct sums {
    uint64_t allocate_ticks, free_ticks, allocations, frees, refused;
} sums;

/* Runs whole groups until the steps or the time are used up. */
static sums play_for(play *p, size_t begin, size_t end, uint64_t max_ns)
{
    sums all = {0};
    size_t slice = (size_t)2 * list_group(p->workload->slots) * SLICE_GROUPS;
    uint64_t until = qi_clock() + max_ns;
    while (begin < end && (begin == p->workload->timed_from || qi_clock() < until)) {
        size_t stop = end - begin < slice ? end : begin + slice;
        play_steps(p, begin, stop);
        all.allocate_ticks += p->allocate_ticks;
        all.free_ticks += p->free_ticks;
        all.allocations += p->allocations;
        all.frees += p->frees;
        all.refused += p->refused;
        begin = stop;
    }
    return all;
}

/* Fills all slots, warms up, then times. A second thread makes the C library's locks atomic. */
static void measure(const run *r, size_t at, const subject *on, sample *out)
{
    const workload *w = &r->lists[at];
    play p;
    have_second_thread();
    if (!play_begin(&p, on, w, r->series->points[at].page_size))
        return;
    play_steps(&p, 0, w->slots);
    uint64_t refused = p.refused;
    refused += play_for(&p, w->slots, w->timed_from, MAX_NS).refused;
    uint64_t calls = mock_calls();
    sums timed = play_for(&p, w->timed_from, w->count, MAX_NS);
    *out = (sample){.good = !refused && !timed.refused,
                    .allocate_ns = (double)timed.allocate_ticks / (double)timed.allocations,
                    .free_ns = (double)timed.free_ticks / (double)timed.frees,
                    .pairs = timed.frees,
                    .pages = mock_pieces(),
                    .driver_calls = mock_calls() - calls};
    out->allocate_ns *= the_clock.ns;
    out->free_ns *= the_clock.ns;
}

static sample *sample_at(const run *r, size_t at, size_t who, size_t rep)
{
    return &r->samples[(at * r->roster.count + who) * r->bench->reps + rep];
}

/* The first job of repeat r is job r, so that no job is always first. */
static void measure_index(void *user, size_t index)
{
    const run *r = user;
    size_t jobs = r->points * r->roster.count, rep = index / jobs, turn = (index + rep) % jobs;
    size_t at = turn / r->roster.count, who = turn % r->roster.count;
    uint32_t max = r->series->points[at].peer_reps;
    const subject *on = r->roster.items[who];
    if (on->kind != SUBJECT_PEER || !max || rep < max)
        measure(r, at, on, sample_at(r, at, who, rep));
}

/* ---- results ------------------------------------------------------------------------------ */

typedef struct page_row {
    size_t reps; /* successful repeats */
    spread pair, allocate, free;
    sample last;
} page_row;

static page_row row_of(const run *r, size_t at, size_t who)
{
    page_row row = {.reps = 0};
    double pair[MAX_REPS], allocate[MAX_REPS], release[MAX_REPS];
    for (size_t i = 0; i < r->bench->reps; i++) {
        const sample *one = sample_at(r, at, who, i);
        if (!one->good)
            continue;
        pair[row.reps] = one->allocate_ns + one->free_ns;
        allocate[row.reps] = one->allocate_ns;
        release[row.reps++] = one->free_ns;
        row.last = *one;
    }
    if (!row.reps)
        return row;
    row.pair = spread_of(pair, row.reps);
    row.allocate = spread_of(allocate, row.reps);
    row.free = spread_of(release, row.reps);
    return row;
}

/* The ratio of the minimum times; 0 if one is missing. */
static double ratio(const page_row *one, const page_row *other)
{
    return one->reps && other->reps ? one->pair.min / other->pair.min : 0;
}

/* The row of the first peer, which represents all peers. */
static page_row peer_row(const run *r, size_t at)
{
    for (size_t i = 0; i < r->roster.count; i++)
        if (r->roster.items[i]->kind == SUBJECT_PEER)
            return row_of(r, at, i);
    return (page_row){.reps = 0};
}

static void print_row(const run *r, size_t at, size_t who, const page_row *row)
{
    const subject *on = r->roster.items[who];
    printf("  %-16s %-9s", on->name, qi_bytes(r->series->points[at].page_size).text);
    if (!row->reps) {
        printf(" failed\n");
        return;
    }
    page_row one_page = row_of(r, 0, who), peer = peer_row(r, at);
    printf(" %6" PRIu64 " %9.1f %9.1f %9.1f %9.1f %9.2f", row->last.pages, row->pair.min,
           row->pair.median, row->allocate.min, row->free.min, ratio(row, &one_page));
    if (peer.reps)
        printf(" %8.3f", ratio(row, &peer));
    else
        printf(" %8s", "-");
    printf(" %7" PRIu64 " %5zu\n", row->last.driver_calls, row->reps);
}

static void write_row(qi_json *json, const run *r, size_t at, size_t who, const page_row *row)
{
    const point *p = &r->series->points[at];
    qi_json_object(json, NULL);
    qi_json_text(json, "series", r->series->name);
    qi_json_text(json, "subject", r->roster.items[who]->name);
    qi_json_number(json, "page_size", p->page_size);
    qi_json_number(json, "pages", row->last.pages);
    qi_json_number(json, "live", p->slots);
    qi_json_number(json, "reps", row->reps);
    qi_json_number(json, "pairs", row->last.pairs);
    qi_json_number(json, "driver_calls", row->last.driver_calls);
    write_spread(json, "pair_ns", row->pair);
    write_spread(json, "allocate_ns", row->allocate);
    write_spread(json, "free_ns", row->free);
    qi_json_end_object(json);
}

static void report(memory_bench *b, const run *r)
{
    printf("\n%s: %s; ns per pair\n", r->series->name, r->series->what);
    printf("  %-16s %-9s %6s %9s %9s %9s %9s %9s %8s %7s %5s\n", "", "page", "pages", "min",
           "median", "allocate", "free", "to 1 page", "to VMA", "driver", "reps");
    for (size_t who = 0; who < r->roster.count; who++)
        for (size_t at = 0; at < r->points; at++) {
            page_row row = row_of(r, at, who);
            print_row(r, at, who, &row);
            if (row.reps)
                write_row(&b->out.json, r, at, who, &row);
        }
}

/* ---- the part ----------------------------------------------------------------------------- */

/* All points of a series have the same seed. */
static bool make_lists(run *r)
{
    bool trial = r->bench->max_pairs < PAIRS, good = true;
    uint64_t pairs = trial ? r->bench->max_pairs : PAIRS;
    for (const point *p = r->series->points; p->page_size; p++) {
        list_spec spec = {.sizes = r->series->sizes,
                          .seed = r->series->seed,
                          .slots = p->slots,
                          .warm_pairs = trial ? pairs : p->slots * r->series->warm_pairs,
                          .timed_pairs = pairs};
        good = list_make(&spec, &r->lists[r->points++]) && good;
    }
    return good;
}

static void run_series(memory_bench *b, const series *s)
{
    run r = {.bench = b, .series = s, .roster = memories_of(b, TAKE_ONE | TAKE_STREAM)};
    if (make_lists(&r)) {
        size_t count = r.points * r.roster.count * b->reps;
        r.samples = shared_memory(count, sizeof *r.samples);
        in_children(count, 1, measure_index, &r);
        report(b, &r);
        shared_release(r.samples, count, sizeof *r.samples);
    } else {
        fprintf(stderr, "bench_memory: no host memory for the steps of %s\n", s->name);
    }
    for (size_t i = 0; i < r.points; i++)
        workload_free(&r.lists[i]);
}

void measure_pages(memory_bench *b, const char *part)
{
    qi_json_array(&b->out.json, part);
    for (size_t i = 0; i < SERIES_COUNT; i++)
        if (is_wanted(&b->wanted_families, SERIES[i].name))
            run_series(b, &SERIES[i]);
    qi_json_end_array(&b->out.json);
}
