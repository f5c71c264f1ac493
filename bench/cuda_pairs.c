/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_pairs.c - pairs of free and allocate with the same list of sizes on every memory of the
 * device. The memories take turns within each repeat. Each call is timed by itself on the host; a
 * repeat ends with a wait for the stream.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cuda_driver.h"
#include "bench/cuda_parts.h"
#include "bench/memory_lists.h"
#include "bench/mock_driver.h"
#include "bench/play.h"
#include "bench/ticks.h"

enum { PAIRS = 10000, WARM_PAIRS = 4 /* per range */, SLICE = 64 };

#define MAX_NS UINT64_C(1000000000) /* of the warm-up and of the timed part of a repeat, each */

typedef struct family {
    const char *name, *what;
    list_sizes sizes;
    uint32_t live;
} family;

static const family FAMILIES[] = {
    {"alone", "256 B to 64 KiB, 1 live range", SIZES_MIXED, 1},
    {"mixed", "256 B to 64 KiB, 1000 live ranges", SIZES_MIXED, 1000},
    {"large", "64 KiB to 16 MiB, 64 live ranges", SIZES_LARGE, 64},
};

/* The results of a repeat in ns per call. PAIR is the sum of both means. */
enum {
    PAIR,
    ALLOCATE,
    ALLOCATE_50,
    ALLOCATE_99,
    ALLOCATE_999,
    FREE,
    FREE_50,
    FREE_99,
    FREE_999,
    FIGURES
};

static const char *const FIGURE_NAMES[FIGURES] = {
    [PAIR] = "pair_ns",
    [ALLOCATE] = "allocate_ns",
    [ALLOCATE_50] = "allocate_p50_ns",
    [ALLOCATE_99] = "allocate_p99_ns",
    [ALLOCATE_999] = "allocate_p999_ns",
    [FREE] = "free_ns",
    [FREE_50] = "free_p50_ns",
    [FREE_99] = "free_p99_ns",
    [FREE_999] = "free_p999_ns",
};

typedef struct pair_row {
    const subject *subject;
    uint64_t reps;       /* successful repeats */
    uint64_t pairs;      /* timed in the last of them */
    uint64_t page_calls; /* pages that quire created and destroyed during the last of them */
    double ns[FIGURES][MAX_REPS];
    spread spreads[FIGURES];
} pair_row;

typedef struct run {
    const family *family;
    workload list;
    uint32_t *ticks; /* of each step; UINT32_MAX if it did not run */
    uint32_t *calls; /* room for the ticks of one kind of step */
    pair_row rows[MAX_SUBJECTS];
    size_t count;
} run;

/* ---- one repeat ----------------------------------------------------------------------------- */

static int compare(const void *one, const void *other)
{
    uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;
    return (a > b) - (a < b);
}

/* Mean and percentiles of the timed calls of a kind. Returns false if none ran. */
static bool sum_up(const run *r, bool is_allocation, double *out)
{
    size_t count = 0;
    double sum = 0;
    for (size_t i = r->list.timed_from; i < r->list.count; i++) {
        if (r->ticks[i] == UINT32_MAX || (r->list.steps[i].size != 0) != is_allocation)
            continue;
        r->calls[count++] = r->ticks[i];
        sum += r->ticks[i];
    }
    if (!count)
        return false;
    qsort(r->calls, count, sizeof *r->calls, compare);
    out[0] = sum / (double)count * the_clock.ns;
    out[1] = r->calls[count / 2] * the_clock.ns;
    out[2] = r->calls[count * 99 / 100] * the_clock.ns;
    out[3] = r->calls[count * 999 / 1000] * the_clock.ns;
    return true;
}

/* Runs whole groups until the steps or the time are used up. Returns the failed allocations. */
static uint64_t play_for(play *p, size_t begin, size_t end, uint64_t *frees)
{
    size_t slice = (size_t)2 * list_group(p->workload->slots) * SLICE;
    uint64_t refused = 0, until = qi_clock() + MAX_NS;
    *frees = 0;
    while (begin < end && (!*frees || qi_clock() < until)) {
        size_t stop = end - begin < slice ? end : begin + slice;
        play_steps(p, begin, stop);
        refused += p->refused;
        *frees += p->frees;
        begin = stop;
    }
    return refused;
}

/* Frees the live ranges, because the driver's allocators do not free them at the end. */
static void end_play(play *p)
{
    for (uint32_t i = 0; i < p->workload->slots; i++)
        if (p->slots[i])
            p->subject->free(p->state, p->slots[i]);
    play_end(p);
}

static void measure(run *r, pair_row *row)
{
    const workload *w = &r->list;
    double figures[FIGURES];
    uint64_t warm;
    play p;
    if (!play_begin(&p, row->subject, w, 0))
        return;
    memset(r->ticks, 0xff, w->count * sizeof *r->ticks);
    play_steps(&p, 0, w->slots);
    uint64_t refused = p.refused + play_for(&p, w->slots, w->timed_from, &warm);
    uint64_t calls = mock_calls();
    p.group = 1;
    p.min_ticks = r->ticks;
    refused += play_for(&p, w->timed_from, w->count, &row->pairs);
    row->page_calls = mock_calls() - calls;
    bool good = !cuda_driver_wait() && !refused && sum_up(r, true, &figures[ALLOCATE]) &&
                sum_up(r, false, &figures[FREE]);
    end_play(&p);
    if (!good)
        return;
    figures[PAIR] = figures[ALLOCATE] + figures[FREE];
    for (int i = 0; i < FIGURES; i++)
        row->ns[i][row->reps] = figures[i];
    row->reps++;
}

/* ---- results -------------------------------------------------------------------------------- */

/* The ratio of the medians to quire's; 0 if one is missing. */
static double ratio_to_quire(const run *r, const pair_row *row, int figure)
{
    const pair_row *quire = &r->rows[0];
    bool has_both = row->reps && quire->reps && quire->subject->kind == SUBJECT_MEMORY;
    return has_both ? row->spreads[figure].median / quire->spreads[figure].median : 0;
}

static void print_row(const run *r, const pair_row *row)
{
    printf("  %-16s", row->subject->name);
    if (!row->reps) {
        printf(" failed\n");
        return;
    }
    for (int i = 0; i < FIGURES; i++)
        printf(" %9.0f", row->spreads[i].median);
    printf(" %9.2f %7" PRIu64 "\n", ratio_to_quire(r, row, PAIR), row->page_calls);
}

static void write_row(qi_json *json, const run *r, const pair_row *row)
{
    qi_json_object(json, NULL);
    qi_json_text(json, "family", r->family->name);
    qi_json_text(json, "subject", row->subject->name);
    qi_json_number(json, "live", r->family->live);
    qi_json_number(json, "reps", row->reps);
    qi_json_number(json, "pairs", row->pairs);
    qi_json_number(json, "page_calls", row->page_calls);
    qi_json_real(json, "pair_to_quire", ratio_to_quire(r, row, PAIR));
    for (int i = 0; i < FIGURES && row->reps; i++)
        write_spread(json, FIGURE_NAMES[i], row->spreads[i]);
    qi_json_end_object(json);
}

static void report(memory_bench *b, run *r)
{
    static const char *const heads[FIGURES] = {"pair", "allocate", "50 %", "99 %",  "99.9 %",
                                               "free", "50 %",     "99 %", "99.9 %"};
    printf("\n%s: %s; ns, medians\n  %-16s", r->family->name, r->family->what, "");
    for (int i = 0; i < FIGURES; i++)
        printf(" %9s", heads[i]);
    printf(" %9s %7s\n", "to quire", "pages");
    for (size_t who = 0; who < r->count; who++)
        for (int i = 0; i < FIGURES && r->rows[who].reps; i++)
            r->rows[who].spreads[i] = spread_of(r->rows[who].ns[i], r->rows[who].reps);
    for (size_t who = 0; who < r->count; who++) {
        print_row(r, &r->rows[who]);
        write_row(&b->out.json, r, &r->rows[who]);
    }
}

/* ---- the part ------------------------------------------------------------------------------- */

static bool make_list(const memory_bench *b, run *r)
{
    uint64_t pairs = b->max_pairs < PAIRS ? b->max_pairs : PAIRS;
    const list_spec spec = {.sizes = r->family->sizes,
                            .seed = 6000,
                            .slots = r->family->live,
                            .warm_pairs = (uint64_t)r->family->live * WARM_PAIRS,
                            .timed_pairs = pairs};
    bool good = list_make(&spec, &r->list);
    r->ticks = calloc(r->list.room, sizeof *r->ticks);
    r->calls = calloc(r->list.room, sizeof *r->calls);
    return good && r->ticks && r->calls;
}

static void run_family(memory_bench *b, run *r)
{
    roster chosen = memories_of(b, TAKE_ONE);
    r->count = chosen.count;
    for (size_t i = 0; i < r->count; i++)
        r->rows[i].subject = chosen.items[i];
    for (uint64_t rep = 0; rep < b->reps; rep++)
        for (size_t i = 0; i < r->count; i++)
            measure(r, &r->rows[(i + rep) % r->count]);
    report(b, r);
}

void measure_pairs(memory_bench *b)
{
    qi_json_array(&b->out.json, "pairs");
    for (size_t i = 0; i < sizeof FAMILIES / sizeof *FAMILIES; i++) {
        run *r = is_wanted(&b->wanted_families, FAMILIES[i].name) ? calloc(1, sizeof *r) : NULL;
        if (!r)
            continue;
        r->family = &FAMILIES[i];
        if (make_list(b, r))
            run_family(b, r);
        else
            fprintf(stderr, "bench_cuda: no host memory for the steps of %s\n", r->family->name);
        workload_free(&r->list);
        free(r->ticks);
        free(r->calls);
        free(r);
    }
    qi_json_end_array(&b->out.json);
}
