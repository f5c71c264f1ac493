/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * memory_threads.c - pairs of free and allocate per second for one and for several threads: on one
 * memory whose number of shards is adaptive, on one with one shard, on one with a shard per thread,
 * and on a memory per thread. Either each thread frees its own ranges, or another thread frees
 * every tenth. Numbers of threads and memories take turns within each repeat.
 */
#include <inttypes.h>

#include "bench/children.h"
#include "bench/crew.h"
#include "bench/memory.h"
#include "bench/memory_lists.h"

/* The warm-up is long enough for the number of shards and the mode of the peaks to settle. */
enum { LIVE = 10000, WARM_PAIRS = 200000, PAIRS = 200000, MAX_COUNTS = 3, SEED = 8100 };

typedef struct scene {
    const char *name, *sizes;
    list_sizes draw;
    bool handed;
} scene;

static const scene SCENES[] = {
    {"threads-mixed", "mixed", SIZES_MIXED, false},
    {"threads-mixed-handed", "mixed", SIZES_MIXED, true},
    {"threads-small", "small", SIZES_SMALL, false},
    {"threads-small-handed", "small", SIZES_SMALL, true},
};

enum { SCENE_COUNT = sizeof SCENES / sizeof *SCENES };

typedef struct run {
    const memory_bench *bench;
    const scene *scene;
    uint32_t counts[MAX_COUNTS]; /* numbers of threads, rising */
    size_t count;
    roster roster;
    workload lists[MAX_CREW];
    crew_result *results; /* shared: [subject][number of threads][rep] */
} run;

/* ---- one repeat, in a child --------------------------------------------------------------- */

static crew_result *result_at(const run *r, size_t who, size_t at, size_t rep)
{
    return &r->results[(who * r->count + at) * r->bench->reps + rep];
}

static void measure_index(void *user, size_t index)
{
    const run *r = user;
    size_t jobs = r->count * r->roster.count, rep = index / jobs, turn = (index + rep) % jobs;
    size_t who = turn / r->count, at = turn % r->count;
    uint32_t threads = r->counts[at];
    memory_how how = *how_of(r->roster.items[who]);
    if (how.sharing == SHARE_SHARDS)
        how.shards = threads;
    subject on = subject_with(r->roster.items[who], &how);
    *result_at(r, who, at, rep) = crew_run(&on, r->lists, threads, r->scene->handed);
}

/* ---- results ------------------------------------------------------------------------------ */

typedef struct thread_row {
    size_t reps; /* repeats in `pair`: the undisturbed ones, or all if every one is disturbed */
    size_t disturbed; /* of all successful repeats */
    spread pair;
    uint64_t pairs;
} thread_row;

static void count_disturbed(const run *r, size_t who, size_t at, thread_row *row)
{
    for (size_t i = 0; i < r->bench->reps; i++) {
        const crew_result *one = result_at(r, who, at, i);
        row->reps += one->good;
        row->disturbed += one->good && one->disturbed;
    }
}

static thread_row row_of(const run *r, size_t who, size_t at)
{
    thread_row row = {.reps = 0};
    double pair[MAX_REPS];
    count_disturbed(r, who, at, &row);
    bool all = row.disturbed == row.reps;
    row.reps = 0;
    for (size_t i = 0; i < r->bench->reps; i++) {
        const crew_result *one = result_at(r, who, at, i);
        if (!one->good || (one->disturbed && !all))
            continue;
        pair[row.reps++] = one->pair_ns;
        row.pairs = one->pairs;
    }
    if (row.reps)
        row.pair = spread_of(pair, row.reps);
    return row;
}

static void print_row(const thread_row *row, const thread_row *alone, uint32_t threads)
{
    printf("  %-28s %7" PRIu32, "", threads);
    if (!row->reps) {
        printf(" failed\n");
        return;
    }
    printf(" %9.1f %9.1f %9.2f %9.2f", row->pair.min, row->pair.median, 1e3 / row->pair.min,
           1e3 / row->pair.median);
    if (alone->reps && threads > 1)
        printf(" %9.2f", alone->pair.min / row->pair.min);
    if (row->disturbed)
        printf("   %zu disturbed", row->disturbed);
    printf("\n");
}

static void write_row(qi_json *json, const run *r, size_t who, size_t at, const thread_row *row)
{
    qi_json_object(json, NULL);
    qi_json_text(json, "sizes", r->scene->sizes);
    qi_json_bool(json, "handed", r->scene->handed);
    qi_json_text(json, "subject", r->roster.items[who]->name);
    qi_json_number(json, "threads", r->counts[at]);
    qi_json_number(json, "reps", row->reps);
    qi_json_number(json, "disturbed", row->disturbed);
    qi_json_number(json, "pairs", row->pairs);
    write_spread(json, "pair_ns", row->pair);
    qi_json_end_object(json);
}

static void report(memory_bench *b, const run *r)
{
    printf("\n%s: %d live ranges per thread%s\n", r->scene->name, LIVE,
           r->scene->handed ? ", every tenth freed by another thread" : "");
    printf("  %-28s %7s %9s %9s %9s %9s %9s\n", "", "threads", "ns", "median", "Mpairs/s", "median",
           "to 1");
    for (size_t who = 0; who < r->roster.count; who++) {
        thread_row alone = row_of(r, who, 0);
        printf("  %s\n", r->roster.items[who]->name);
        for (size_t at = 0; at < r->count; at++) {
            thread_row row = row_of(r, who, at);
            print_row(&row, &alone, r->counts[at]);
            if (row.reps)
                write_row(&b->out.json, r, who, at, &row);
        }
    }
}

/* ---- the part ----------------------------------------------------------------------------- */

static bool make_lists(run *r)
{
    bool trial = r->bench->max_pairs < PAIRS, good = true;
    for (uint32_t i = 0; i < r->counts[r->count - 1]; i++) {
        list_spec spec = {.sizes = r->scene->draw,
                          .seed = SEED + i,
                          .slots = LIVE,
                          .warm_pairs = trial ? r->bench->max_pairs : WARM_PAIRS,
                          .timed_pairs = trial ? r->bench->max_pairs : PAIRS};
        good = list_make(&spec, &r->lists[i]) && good;
    }
    return good;
}

/* A memory without locks cannot take frees of another thread. */
static roster suitable_memories(const memory_bench *b, const scene *s)
{
    roster all = plain_memories_of(b, TAKE_ANY), out = {.count = 0};
    for (size_t i = 0; i < all.count; i++)
        if (!s->handed || !how_of(all.items[i])->unlocked)
            out.items[out.count++] = all.items[i];
    return out;
}

static void run_scene(memory_bench *b, const scene *s)
{
    run r = {.bench = b, .scene = s, .roster = suitable_memories(b, s)};
    r.counts[r.count++] = 1;
    if (b->threads > 1)
        r.counts[r.count++] = 2;
    if (b->threads > 2)
        r.counts[r.count++] = (uint32_t)b->threads;
    if (make_lists(&r)) {
        size_t count = r.count * r.roster.count * b->reps;
        r.results = shared_memory(count, sizeof *r.results);
        in_children(count, 1, measure_index, &r);
        report(b, &r);
        shared_release(r.results, count, sizeof *r.results);
    } else {
        fprintf(stderr, "bench_memory: no host memory for the steps of %s\n", s->name);
    }
    for (uint32_t i = 0; i < MAX_CREW; i++)
        workload_free(&r.lists[i]);
}

void measure_threads(memory_bench *b)
{
    qi_json_array(&b->out.json, "threads");
    for (size_t i = 0; i < SCENE_COUNT; i++)
        if (is_wanted(&b->wanted_families, SCENES[i].name))
            run_scene(b, &SCENES[i]);
    qi_json_end_array(&b->out.json);
}
