/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * fragmentation.c - measures fragmentation: ramps up to the first failure, and failures at 90 and
 * 95 percent occupancy. It reads no clock, so several measurements run in parallel.
 */
#include "bench/bench.h"

#include <stdio.h>

#include "bench/children.h"
#include "bench/churn.h"

static const double TARGETS[] = {0.90, 0.95};
enum { TARGET_COUNT = 2 };

typedef struct ramp_result {
    bool good;
    double reached;
} ramp_result;

typedef struct fill_result {
    bool good;
    churn_filled filled;
} fill_result;

typedef struct fragmentation {
    const bench *bench;
    roster roster;
    const churn_sizes *sizes;
    ramp_result *ramps; /* shared: [subject][seed] */
    fill_result *fills; /* shared: [subject][target] */
} fragmentation;

static churn_space space_for(const subject *s, const churn_sizes *sizes)
{
    /* churn.c has room for as many live ranges */
    subject_arena arena = {sizes->arena, sizes->unit, sizes->arena / sizes->unit / 4 + 1};
    return (churn_space){s->create(s, &arena), s->allocate, s->free};
}

/* Runs in a child; `index` counts the seeds of a subject, then the subjects. */
static void ramp(void *user, size_t index)
{
    const fragmentation *f = user;
    uint64_t seed = f->sizes->seed + index % CHURN_SEEDS * CHURN_SEED_STEP;
    churn_space space = space_for(f->roster.items[index / CHURN_SEEDS], f->sizes);
    if (!space.state)
        return;
    double reached = churn_ramp(f->sizes, seed, f->bench->max_steps, &space);
    f->ramps[index] = (ramp_result){reached >= 0, reached};
}

/* Runs in a child; `index` counts the targets of a subject, then the subjects. */
static void fill(void *user, size_t index)
{
    const fragmentation *f = user;
    churn_space space = space_for(f->roster.items[index / TARGET_COUNT], f->sizes);
    fill_result *out = &f->fills[index];
    out->good = space.state && churn_fill(f->sizes, TARGETS[index % TARGET_COUNT],
                                          f->bench->max_steps, &space, &out->filled);
}

/* ---- results ------------------------------------------------------------------------------ */

/* A subject whose ramp failed for one seed has no mean and no row in the document. */
static void report_ramp(bench *b, const fragmentation *f, size_t index)
{
    const char *name = f->roster.items[index]->name;
    double sum = 0;
    int good = 0;
    for (int i = 0; i < CHURN_SEEDS; i++) {
        const ramp_result *r = &f->ramps[index * CHURN_SEEDS + (size_t)i];
        sum += r->reached;
        good += r->good;
    }
    if (good < CHURN_SEEDS) {
        printf("  %-26s failed\n", name);
        return;
    }
    printf("  %-26s %8.4f\n", name, sum / (double)CHURN_SEEDS);
    qi_json_object(&b->out.json, NULL);
    qi_json_text(&b->out.json, "sizes", f->sizes->name);
    qi_json_text(&b->out.json, "subject", name);
    qi_json_real(&b->out.json, "utilisation", sum / (double)CHURN_SEEDS);
    qi_json_end_object(&b->out.json);
}

static void report_fill(bench *b, const fragmentation *f, size_t index)
{
    const char *name = f->roster.items[index]->name;
    printf("  %-26s", name);
    for (int i = 0; i < TARGET_COUNT; i++) {
        const fill_result *r = &f->fills[index * TARGET_COUNT + (size_t)i];
        if (!r->good) {
            printf("   failed");
            continue;
        }
        printf(" %8.2f %7.3f", r->filled.failures_per_1000, r->filled.external);
        qi_json_object(&b->out.json, NULL);
        qi_json_text(&b->out.json, "sizes", f->sizes->name);
        qi_json_text(&b->out.json, "subject", name);
        qi_json_real(&b->out.json, "target", TARGETS[i]);
        qi_json_real(&b->out.json, "failures_per_1000", r->filled.failures_per_1000);
        qi_json_real(&b->out.json, "external_fragmentation", r->filled.external);
        qi_json_real(&b->out.json, "filled_to", r->filled.full);
        qi_json_end_object(&b->out.json);
    }
    printf("\n");
}

/* ---- the part ----------------------------------------------------------------------------- */

static void run_ramps(bench *b, fragmentation *f)
{
    size_t count = f->roster.count * CHURN_SEEDS;
    f->ramps = shared_memory(count, sizeof *f->ramps);
    in_children(count, b->jobs, ramp, f);
    printf("\nramp-%-23s %8s   share live at the first failure, mean of %d seeds\n", f->sizes->name,
           "share", CHURN_SEEDS);
    for (size_t i = 0; i < f->roster.count; i++)
        report_ramp(b, f, i);
    shared_release(f->ramps, count, sizeof *f->ramps);
}

static void run_fills(bench *b, fragmentation *f)
{
    size_t count = f->roster.count * TARGET_COUNT;
    f->fills = shared_memory(count, sizeof *f->fills);
    in_children(count, b->jobs, fill, f);
    printf("\nfill-%-23s %8s %7s %8s %7s   failures per 1000 at 90 and 95 %%, external "
           "fragmentation\n",
           f->sizes->name, "90 %", "", "95 %", "");
    for (size_t i = 0; i < f->roster.count; i++)
        report_fill(b, f, i);
    shared_release(f->fills, count, sizeof *f->fills);
}

static void for_each_sizes(bench *b, const char *prefix, void (*run)(bench *, fragmentation *))
{
    for (size_t i = 0; churn_name(i); i++) {
        char name[64];
        snprintf(name, sizeof name, "%s-%s", prefix, churn_name(i));
        fragmentation f = {.bench = b,
                           .roster = roster_of(b, TAKE_SPACES | TAKE_PEERS | TAKE_REFERENCES),
                           .sizes = churn_find(churn_name(i))};
        if (is_wanted(&b->wanted_workloads, name))
            run(b, &f);
    }
}

void measure_fragmentation(bench *b)
{
    qi_json_array(&b->out.json, "ramp");
    for_each_sizes(b, "ramp", run_ramps);
    qi_json_end_array(&b->out.json);
    qi_json_array(&b->out.json, "fill");
    for_each_sizes(b, "fill", run_fills);
    qi_json_end_array(&b->out.json);
}
