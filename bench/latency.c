/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * latency.c - percentiles of single calls. The same workload runs several times in one process and
 * the minimum time of each call is kept. It contains the cost of the search and of the caches,
 * without random interruptions.
 */
#include "bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/children.h"
#include "bench/play.h"
#include "bench/ticks.h"

enum { REPLAYS = 5 };

static const char *const WORKLOADS[] = {"a1k", "a100k", "b100k", "a1m", NULL};

typedef struct percentiles {
    double mean, p50, p99, p999, max; /* ns */
} percentiles;

typedef struct latency_result {
    bool good;
    percentiles allocate, free;
} latency_result;

typedef struct latency {
    roster roster;
    workload workload;
    latency_result *results; /* shared, by subject */
} latency;

static int compare(const void *one, const void *other)
{
    uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;
    return (a > b) - (a < b);
}

static percentiles percentiles_of(uint32_t *ticks, size_t count)
{
    if (!count)
        return (percentiles){0};
    qsort(ticks, count, sizeof *ticks, compare);
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += ticks[i];
    return (percentiles){.mean = sum / (double)count * the_clock.ns,
                         .p50 = ticks[count / 2] * the_clock.ns,
                         .p99 = ticks[count * 99 / 100] * the_clock.ns,
                         .p999 = ticks[count * 999 / 1000] * the_clock.ns,
                         .max = ticks[count - 1] * the_clock.ns};
}

/* Separates the times of the timed steps by kind and computes their percentiles. */
static void sum_up(const workload *w, const uint32_t *min_ticks, latency_result *out)
{
    uint32_t *kind[2] = {malloc(w->count * sizeof **kind), malloc(w->count * sizeof **kind)};
    size_t count[2] = {0, 0};
    for (size_t i = w->timed_from; kind[0] && kind[1] && i < w->count; i++) {
        int is_allocation = w->steps[i].size != 0;
        kind[is_allocation][count[is_allocation]++] = min_ticks[i];
    }
    out->free = percentiles_of(kind[0], count[0]);
    out->allocate = percentiles_of(kind[1], count[1]);
    out->good = count[0] && count[1];
}

/* Runs in a child: replays the workload REPLAYS times, each time on a new arena. */
static void measure(void *user, size_t index)
{
    const latency *l = user;
    const workload *w = &l->workload;
    uint32_t *min_ticks = malloc(w->count * sizeof *min_ticks);
    if (!min_ticks)
        return;
    memset(min_ticks, 0xff, w->count * sizeof *min_ticks);
    for (int i = 0; i < REPLAYS; i++) {
        play p;
        if (!play_begin(&p, l->roster.items[index], w, w->arena))
            return;
        play_steps(&p, 0, w->timed_from);
        p.group = 1;
        p.min_ticks = min_ticks;
        play_steps(&p, w->timed_from, w->count);
        play_end(&p);
    }
    sum_up(w, min_ticks, &l->results[index]);
}

/* ---- results ------------------------------------------------------------------------------ */

static void print_one(const char *name, const char *what, const percentiles *p)
{
    printf("  %-26s %-9s %8.1f %8.0f %8.0f %8.0f %8.0f\n", name, what, p->mean, p->p50, p->p99,
           p->p999, p->max);
}

static void write_one(qi_json *json, const char *key, const percentiles *p)
{
    qi_json_object(json, key);
    qi_json_real(json, "mean", p->mean);
    qi_json_real(json, "p50", p->p50);
    qi_json_real(json, "p99", p->p99);
    qi_json_real(json, "p999", p->p999);
    qi_json_real(json, "max", p->max);
    qi_json_end_object(json);
}

static void report(bench *b, const latency *l)
{
    printf("\nlatency-%-30s %8s %8s %8s %8s %8s   ns, minimum of %d replays\n", l->workload.name,
           "mean", "p50", "p99", "p99.9", "max", REPLAYS);
    for (size_t i = 0; i < l->roster.count; i++) {
        const latency_result *result = &l->results[i];
        const char *name = l->roster.items[i]->name;
        if (!result->good) {
            printf("  %-26s failed\n", name);
            continue;
        }
        print_one(name, "allocate", &result->allocate);
        print_one("", "free", &result->free);
        qi_json_object(&b->out.json, NULL);
        qi_json_text(&b->out.json, "workload", l->workload.name);
        qi_json_text(&b->out.json, "subject", name);
        write_one(&b->out.json, "allocate_ns", &result->allocate);
        write_one(&b->out.json, "free_ns", &result->free);
        qi_json_end_object(&b->out.json);
    }
}

/* ---- the part ----------------------------------------------------------------------------- */

void measure_latency(bench *b)
{
    qi_json_array(&b->out.json, "latency");
    for (size_t i = 0; WORKLOADS[i]; i++) {
        char name[64];
        snprintf(name, sizeof name, "latency-%s", WORKLOADS[i]);
        if (!is_wanted(&b->wanted_workloads, name))
            continue;
        latency l = {.roster = roster_of(b, TAKE_SPACES | TAKE_PEERS | TAKE_HEAPS)};
        if (workload_make(WORKLOADS[i], 0, &l.workload)) {
            l.results = shared_memory(l.roster.count, sizeof *l.results);
            in_children(l.roster.count, 1, measure, &l);
            report(b, &l);
            shared_release(l.results, l.roster.count, sizeof *l.results);
        }
        workload_free(&l.workload);
    }
    qi_json_end_array(&b->out.json);
}
