/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * arenas.c - finds the smallest arena in which a workload runs without a failure, by bisection to
 * 1/1000 of its live peak. Success is not quite monotone in the arena size, so differences below
 * one percent are not significant.
 */
#include "bench/bench.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/children.h"
#include "bench/packing.h"
#include "bench/play.h"

enum { PARTS = 1000, MAX_GROWTH = 64 };

typedef struct arenas {
    roster roster;
    const char *name;
    workload workload;
    uint64_t peak;  /* maximum of the live bytes */
    double *shares; /* shared, per subject: peak / smallest arena; 0 if none was found */
} arenas;

static uint64_t peak_of(const workload *w)
{
    uint64_t *sizes = calloc(w->slots, sizeof *sizes), live = 0, peak = 0;
    for (size_t i = 0; sizes && i < w->count; i++) {
        const workload_step *step = &w->steps[i];
        live += step->size - sizes[step->slot]; /* a free has size 0 */
        sizes[step->slot] = step->size;
        peak = live > peak ? live : peak;
    }
    free(sizes);
    return peak;
}

/* ---- one subject, in a child -------------------------------------------------------------- */

static bool runs_in(const arenas *a, const subject *s, uint64_t arena)
{
    play p;
    if (!play_begin(&p, s, &a->workload, arena))
        return false;
    play_steps(&p, 0, a->workload.count);
    bool good = !p.refused;
    play_end(&p);
    return good;
}

static void find_smallest(void *user, size_t index)
{
    const arenas *a = user;
    const subject *s = a->roster.items[index];
    uint64_t unit = a->workload.granule, fine = a->peak / PARTS / unit * unit;
    fine = fine ? fine : unit;
    uint64_t low = 0, high = 1; /* steps of `fine` bytes above the peak; `high` succeeds */
    while (!runs_in(a, s, a->peak + high * fine)) {
        low = high;
        high *= 2;
        if (high > (uint64_t)MAX_GROWTH * PARTS)
            return;
    }
    while (high - low > 1) {
        uint64_t middle = (low + high) / 2;
        *(runs_in(a, s, a->peak + middle * fine) ? &high : &low) = middle;
    }
    a->shares[index] = (double)a->peak / (double)(a->peak + high * fine);
}

/* ---- results ------------------------------------------------------------------------------ */

static void report(bench *b, const arenas *a)
{
    printf("\n%-28s %8s   live peak / smallest arena\n", a->name, "share");
    for (size_t i = 0; i < a->roster.count; i++) {
        const char *name = a->roster.items[i]->name;
        if (a->shares[i] > 0)
            printf("  %-26s %8.4f\n", name, a->shares[i]);
        else
            printf("  %-26s none up to %d times the peak\n", name, MAX_GROWTH);
        qi_json_object(&b->out.json, NULL);
        qi_json_text(&b->out.json, "workload", a->name);
        qi_json_text(&b->out.json, "subject", name);
        qi_json_real(&b->out.json, "utilisation", a->shares[i]);
        qi_json_end_object(&b->out.json);
    }
}

static void run_one(bench *b, arenas *a)
{
    unsigned spaces = TAKE_SPACES | TAKE_PEERS | TAKE_REFERENCES;
    a->roster = roster_of(b, spaces);
    a->workload.granule = a->workload.granule ? a->workload.granule : 256;
    a->peak = peak_of(&a->workload);
    a->shares = shared_memory(a->roster.count, sizeof *a->shares);
    in_children(a->roster.count, b->jobs, find_smallest, a);
    report(b, a);
    shared_release(a->shares, a->roster.count, sizeof *a->shares);
}

/* ---- the part ----------------------------------------------------------------------------- */

static void run_named(bench *b)
{
    for (size_t i = 0; workload_name(i); i++) {
        arenas a = {.name = workload_name(i)};
        if (strncmp(a.name, "m_", 2) || !is_wanted(&b->wanted_workloads, a.name))
            continue;
        if (workload_make(a.name, 0, &a.workload))
            run_one(b, &a);
        workload_free(&a.workload);
    }
}

static void run_file(bench *b, const char *path)
{
    /* A.1048576.csv has the name A and the arena size in which it is known to fit */
    const char *base = strrchr(path, '/') + 1;
    char name[64];
    snprintf(name, sizeof name, "mm%.*s", (int)strcspn(base, "."), base);
    arenas a = {.name = name};
    if (!is_wanted(&b->wanted_workloads, name))
        return;
    if (packing_read(path, &a.workload))
        run_one(b, &a);
    else
        fprintf(stderr, "bench_space: %s is not a packing problem\n", path);
    workload_free(&a.workload);
}

static void run_files(bench *b)
{
    char pattern[4096];
    glob_t found = {0};
    if (!b->data) {
        if (is_wanted(&b->wanted_workloads, "mmA"))
            printf("\nmmA to mmK: skipped, QUIRE_TEST_DATA is not set\n");
        return;
    }
    snprintf(pattern, sizeof pattern, "%s/static/*.csv", b->data);
    if (glob(pattern, 0, NULL, &found))
        printf("\nmmA to mmK: skipped, no file matches %s\n", pattern);
    for (size_t i = 0; i < found.gl_pathc; i++)
        run_file(b, found.gl_pathv[i]);
    globfree(&found);
}

void measure_arenas(bench *b)
{
    qi_json_array(&b->out.json, "smallest_arena");
    run_named(b);
    run_files(b);
    qi_json_end_array(&b->out.json);
}
