/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * speed.c - nanoseconds per pair of free and allocate: minimum and median of interleaved repeats.
 * Each repeat of each subject runs in a separate process. The subjects take turns within each
 * repeat, so that changing load of the machine affects all of them equally.
 */
#include "bench/bench.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "bench/children.h"
#include "bench/play.h"
#include "bench/spread.h"
#include "bench/ticks.h"

enum { LARGE_SLOTS = 1000000, LARGE_REPS = 5 };

typedef struct sample {
    bool good;
    double allocate_ns, free_ns;
    uint64_t allocations, refused, live, metadata;
} sample;

typedef struct speed {
    roster roster;
    workload workload;
    size_t reps;
    sample *samples; /* shared: [subject][rep] */
} speed;

/* ---- one repeat, in a child --------------------------------------------------------------- */

/* Bytes that malloc has handed out, including mapped blocks. */
static uint64_t heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/*
 * One repeat: warm-up, then the timed steps. Without a `metadata` function the metadata is the
 * growth of the heap, minus the slots of the harness.
 */
static void measure(const speed *s, const subject *on, sample *out)
{
    const workload *w = &s->workload;
    play p;
    uint64_t before = heap_bytes() + w->slots * sizeof *p.slots;
    if (!play_begin(&p, on, w, w->arena))
        return;
    play_steps(&p, 0, w->timed_from);
    play_steps(&p, w->timed_from, w->count);
    *out = (sample){.good = p.allocations && p.frees,
                    .allocate_ns = (double)p.allocate_ticks * the_clock.ns / (double)p.allocations,
                    .free_ns = (double)p.free_ticks * the_clock.ns / (double)p.frees,
                    .allocations = p.allocations,
                    .refused = p.refused,
                    .live = play_live(&p)};
    uint64_t now = heap_bytes();
    out->metadata = on->metadata ? on->metadata(p.state) : now > before ? now - before : 0;
}

static void measure_index(void *user, size_t index)
{
    const speed *s = user;
    size_t count = s->roster.count, rep = index / count, turn = (index + rep) % count;
    measure(s, s->roster.items[turn], &s->samples[turn * s->reps + rep]);
}

/* ---- results ------------------------------------------------------------------------------ */

typedef struct speed_row {
    const struct subject *subject;
    bool good;
    spread pair, allocate, free;
    sample last; /* its counts are the same in every repeat */
} speed_row;

static speed_row row_of(const speed *s, size_t index)
{
    speed_row row = {.subject = s->roster.items[index]};
    double pair[MAX_REPS], allocate[MAX_REPS], release[MAX_REPS];
    size_t count = 0;
    for (size_t i = 0; i < s->reps; i++) {
        const sample *one = &s->samples[index * s->reps + i];
        if (!one->good)
            continue;
        pair[count] = one->allocate_ns + one->free_ns;
        allocate[count] = one->allocate_ns;
        release[count++] = one->free_ns;
        row.last = *one;
    }
    if (!count)
        return row;
    row.good = true;
    row.pair = spread_of(pair, count);
    row.allocate = spread_of(allocate, count);
    row.free = spread_of(release, count);
    return row;
}

/* Whether metadata per live range is meaningful: a malloc stores it next to its blocks. */
static bool keeps_records(const speed_row *row)
{
    return row->last.live && row->last.metadata && row->subject->kind != SUBJECT_HEAP &&
           row->subject->kind != SUBJECT_FLOOR;
}

static void print_row(const speed_row *row, double yardstick_ns)
{
    if (!row->good) {
        printf("  %-26s failed\n", row->subject->name);
        return;
    }
    printf("  %-26s %9.1f %9.1f %9.1f %9.1f", row->subject->name, row->pair.min, row->pair.median,
           row->allocate.min, row->free.min);
    if (yardstick_ns > 0)
        printf(" %8.2f", row->pair.min / yardstick_ns);
    else
        printf(" %8s", "-");
    if (keeps_records(row))
        printf(" %10.1f", (double)row->last.metadata / (double)row->last.live);
    if (row->last.refused)
        printf("   %.1f %% failed",
               100 * (double)row->last.refused / (double)row->last.allocations);
    printf("\n");
}

static void write_row(qi_json *json, const speed *s, const speed_row *row)
{
    if (!row->good)
        return;
    qi_json_object(json, NULL);
    qi_json_text(json, "workload", s->workload.name);
    qi_json_text(json, "subject", row->subject->name);
    qi_json_number(json, "reps", s->reps);
    write_spread(json, "pair_ns", row->pair);
    write_spread(json, "allocate_ns", row->allocate);
    write_spread(json, "free_ns", row->free);
    qi_json_number(json, "allocations", row->last.allocations);
    qi_json_number(json, "refused", row->last.refused);
    qi_json_number(json, "live", row->last.live);
    if (keeps_records(row)) {
        qi_json_number(json, "metadata_bytes", row->last.metadata);
        qi_json_real(json, "metadata_per_live",
                     (double)row->last.metadata / (double)row->last.live);
    }
    qi_json_end_object(json);
}

static void report(bench *b, const speed *s)
{
    const subject *other = yardstick(b);
    double yardstick_ns = 0;
    for (size_t i = 0; i < s->roster.count; i++)
        if (s->roster.items[i] == other)
            yardstick_ns = row_of(s, i).pair.min;
    printf("\n%-28s %9s %9s %9s %9s %8s %10s   ns per pair, %zu repeats\n", s->workload.name, "min",
           "median", "allocate", "free", "to VMA", "B/live", s->reps);
    for (size_t i = 0; i < s->roster.count; i++) {
        speed_row row = row_of(s, i);
        print_row(&row, yardstick_ns);
        write_row(&b->out.json, s, &row);
    }
}

/* ---- the part ----------------------------------------------------------------------------- */

/* Slow subjects run only on small workloads, and large workloads have fewer repeats. */
static void run_workload(bench *b, const char *name)
{
    speed s = {.reps = b->reps};
    if (!workload_make(name, 0, &s.workload)) {
        fprintf(stderr, "bench_space: no host memory for the steps of %s\n", name);
        workload_free(&s.workload);
        return;
    }
    if (s.workload.slots >= LARGE_SLOTS && s.reps > LARGE_REPS)
        s.reps = LARGE_REPS;
    unsigned slow = s.workload.slots <= SLOW_SLOTS ? TAKE_REFERENCES : 0;
    s.roster =
        roster_of(b, TAKE_SPACES | TAKE_BATCHES | TAKE_PEERS | TAKE_HEAPS | TAKE_FLOOR | slow);
    size_t count = s.roster.count * s.reps;
    s.samples = shared_memory(count, sizeof *s.samples);
    in_children(count, 1, measure_index, &s);
    report(b, &s);
    shared_release(s.samples, count, sizeof *s.samples);
    workload_free(&s.workload);
}

void measure_speed(bench *b)
{
    qi_json_array(&b->out.json, "speed");
    for (size_t i = 0; workload_name(i); i++)
        if (strncmp(workload_name(i), "m_", 2) && is_wanted(&b->wanted_workloads, workload_name(i)))
            run_workload(b, workload_name(i));
    qi_json_end_array(&b->out.json);
}
