/*
 * main.c - bench_space: runs workloads on the spaces of this project and on peers, side by side in
 * the same run. Text goes to standard output, a JSON document to the file asked for.
 */
#include "bench/bench.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench/options.h"
#include "bench/ticks.h"
#include "bench/vma.h"

enum { MAX_JOBS = 1024 };

static const usage USAGE = {
    "bench_space",
    "usage: bench_space [options]\n"
    "  --reps N          repeats of each measurement of speed (default 9; at most 5 for a1m)\n"
    "  --jobs N          measurements of fragmentation at a time (default: processors)\n"
    "  --workload GLOB   only these: a1k latency-a1k ramp-logu fill-logu m_a4k mmA g1 ...; "
    "repeatable\n"
    "  --subject GLOB    only these of those listed at the start; repeatable\n"
    "  --without GLOB    none of these; repeatable\n"
    "  --peer FILE       a peer of your own, see bench/subject.h; repeatable\n"
    "  --most-steps N    ends ramps and fills after N requests: a trial, no result\n"
    "  --json FILE       writes all figures there\n"
    "  --list            lists the subjects, present and absent, and ends\n"
    "  --count WORKLOAD  plays it once on the one --subject, for an instruction counter\n"
    "\n"
    "QUIRE_TEST_DATA names a folder with static/*.csv, packing problems for the smallest arena.\n",
};

/* ---- choosing ----------------------------------------------------------------------------- */

roster roster_of(const bench *b, unsigned kinds)
{
    roster all = subjects_chosen(&b->subjects, &b->wanted_subjects, &b->unwanted_subjects);
    roster out = {.count = 0};
    for (size_t i = 0; i < all.count; i++)
        if (kinds & 1u << all.items[i]->kind && (kinds & TAKE_BATCHES || !all.items[i]->free_batch))
            out.items[out.count++] = all.items[i];
    return out;
}

const subject *yardstick(const bench *b)
{
    roster all = roster_of(b, TAKE_PEERS);
    for (size_t i = 0; i < all.count; i++)
        if (all.items[i] == &VMA_BLOCKS[0])
            return all.items[i];
    return NULL;
}

/* ---- options ------------------------------------------------------------------------------ */

typedef struct choices {
    bench bench;
    patterns peers;
    const char *json_path, *count_workload;
    bool list;
} choices;

static void parse(choices *c, int argc, char **argv)
{
    bench *b = &c->bench;
    const option_rule rules[] = {
        {"reps", .number = &b->reps, .most = MAX_REPS},
        {"jobs", .number = &b->jobs, .most = MAX_JOBS},
        {"workload", .list = &b->wanted_workloads},
        {"subject", .list = &b->wanted_subjects},
        {"peer", .list = &c->peers},
        {"without", .list = &b->unwanted_subjects},
        {"most-steps", .number = &b->max_steps, .most = UINT64_MAX},
        {"json", .text = &c->json_path},
        {"list", .flag = &c->list},
        {"count", .text = &c->count_workload},
    };
    b->reps = DEFAULT_REPS;
    b->jobs = processor_count();
    b->max_steps = UINT64_MAX;
    b->data = getenv("QUIRE_TEST_DATA");
    options_parse(&USAGE, rules, sizeof rules / sizeof *rules, argc, argv);
}

/* ---- the run ------------------------------------------------------------------------------ */

static int run(bench *b, const char *json_path)
{
    ticks_init();
    if (!document_begin(&b->out, json_path, b->reps))
        return 1;
    report_clock();
    subjects_print(&b->subjects);
    subjects_write(&b->subjects, &b->out.json);
    measure_speed(b);
    measure_latency(b);
    measure_fragmentation(b);
    measure_arenas(b);
    measure_adversaries(b);
    return document_end(&b->out, USAGE.program);
}

int main(int argc, char **argv)
{
    static choices c;
    parse(&c, argc, argv);
    subjects_of_spaces(&c.bench.subjects);
    for (size_t i = 0; i < c.peers.count; i++)
        if (!subjects_load(&c.bench.subjects, c.peers.items[i]))
            return 1;
    if (c.list) {
        subjects_print(&c.bench.subjects);
        return 0;
    }
    if (!c.count_workload)
        return run(&c.bench, c.json_path);
    if (c.bench.wanted_subjects.count != 1)
        usage_error(&USAGE, "needs one --subject: --count", c.count_workload);
    return count_calls(&c.bench, c.count_workload, c.bench.wanted_subjects.items[0]);
}
