/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * main.c - bench_space: runs workloads on the spaces of quire and on peers, alternating in one run.
 * Text goes to standard output, a JSON document to the file of --json.
 */
#include "bench/bench.h"
#include "bench/count.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench/options.h"
#include "bench/ticks.h"

enum { MAX_JOBS = 1024 };

static const usage USAGE = {
    "bench_space",
    "usage: bench_space [options]\n"
    "  --reps N          repeats of each speed measurement (default 9; at most 5 for a1m)\n"
    "  --jobs N          parallel measurements of fragmentation (default: processors)\n"
    "  --workload GLOB   run only these: a1k latency-a1k ramp-logu fill-logu m_a4k mmA g1 ...; "
    "repeatable\n"
    "  --subject GLOB    run only these subjects; repeatable\n"
    "  --without GLOB    exclude these subjects; repeatable\n"
    "  --peer FILE       add a peer, see bench/subject.h; repeatable\n"
    "  --max-steps N     end ramps and fills after N requests, for a trial run\n"
    "  --json FILE       write all results into a file\n"
    "  --list            list the subjects, and exit\n"
    "  --count WORKLOAD  run it once on the one --subject, for an instruction counter\n"
    "\n"
    "QUIRE_TEST_DATA names a folder with packing problems static/*.csv for the smallest arena.\n",
};

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
        {"reps", .number = &b->reps, .max = MAX_REPS},
        {"jobs", .number = &b->jobs, .max = MAX_JOBS},
        {"workload", .list = &b->wanted_workloads},
        {"subject", .list = &b->wanted_subjects},
        {"peer", .list = &c->peers},
        {"without", .list = &b->unwanted_subjects},
        {"max-steps", .number = &b->max_steps, .max = UINT64_MAX},
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
        usage_error(&USAGE, "--count requires exactly one --subject:", c.count_workload);
    return count_calls(&c.bench.subjects, c.count_workload, c.bench.wanted_subjects.items[0]);
}
