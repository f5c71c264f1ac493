/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * memory_main.c - bench_memory: measures complete memories of quire and of a peer, alternating in
 * one run, on the same mock driver. Text goes to standard output, a JSON document to the file of
 * --json.
 */
#include <stdlib.h>

#include "bench/count.h"
#include "bench/crew.h"
#include "bench/memory.h"
#include "bench/options.h"
#include "bench/ticks.h"

enum {
    DEFAULT_THREADS = 2,
    DEFAULT_LATENCY_MS = 100,
    MAX_LATENCY_MS = 10000,
    DEFAULT_PATIENCE_S = 2,
    MAX_PATIENCE_S = 3600
};

static const usage USAGE = {
    "bench_memory",
    "usage: bench_memory [options]\n"
    "  --reps N        repeats of each measurement (default 9)\n"
    "  --threads N     measure 1, 2 and N threads (default 2)\n"
    "  --family GLOB   run only these families: pages many-pages full-pages threads-* locks\n"
    "                  lock-latency transient-* slow-driver find free-at record chunks\n"
    "                  compaction fill; repeatable\n"
    "  --subject GLOB  run only these subjects; repeatable\n"
    "  --without GLOB  exclude these subjects; repeatable\n"
    "  --latency N     milliseconds that the slow driver needs for a page (default 100)\n"
    "  --patience N    seconds to wait, before each repeat on a contended lock, until other\n"
    "                  programs leave the processors idle (default 2)\n"
    "  --pairs N       time at most N pairs, for a trial run\n"
    "  --json FILE     write all results into a file\n"
    "  --count WORKLOAD  run it once on the one --subject, for an instruction counter\n"
    "  --list          list the subjects, and exit\n",
};

/* ---- options ------------------------------------------------------------------------------ */

typedef struct choices {
    memory_bench bench;
    const char *json_path, *count_workload;
    bool list;
} choices;

static void parse(choices *c, int argc, char **argv)
{
    memory_bench *b = &c->bench;
    const option_rule rules[] = {
        {"reps", .number = &b->reps, .max = MAX_REPS},
        {"threads", .number = &b->threads, .max = MAX_CREW},
        {"family", .list = &b->wanted_families},
        {"subject", .list = &b->wanted_subjects},
        {"without", .list = &b->unwanted_subjects},
        {"latency", .number = &b->latency_ms, .max = MAX_LATENCY_MS},
        {"patience", .number = &b->patience_s, .max = MAX_PATIENCE_S},
        {"pairs", .number = &b->max_pairs, .max = UINT64_MAX},
        {"json", .text = &c->json_path},
        {"count", .text = &c->count_workload},
        {"list", .flag = &c->list},
    };
    b->reps = DEFAULT_REPS;
    b->threads = DEFAULT_THREADS;
    b->latency_ms = DEFAULT_LATENCY_MS;
    b->patience_s = DEFAULT_PATIENCE_S;
    b->max_pairs = UINT64_MAX;
    options_parse(&USAGE, rules, sizeof rules / sizeof *rules, argc, argv);
}

/* ---- the run ------------------------------------------------------------------------------ */

static int run(memory_bench *b, const char *json_path)
{
    ticks_init();
    if (!document_begin(&b->out, json_path, b->reps))
        return 1;
    report_clock();
    subjects_print(&b->subjects);
    subjects_write(&b->subjects, &b->out.json);
    measure_pages(b, "pages");
    measure_threads(b);
    measure_locks(b);
    measure_lock_latency(b);
    measure_transient(b);
    measure_slow(b);
    measure_find(b);
    measure_free_at(b);
    measure_record(b);
    measure_chunks(b);
    measure_compaction(b);
    measure_fill(b);
    return document_end(&b->out, USAGE.program);
}

int main(int argc, char **argv)
{
    static choices c;
    parse(&c, argc, argv);
    subjects_add(&c.bench.subjects, QUIRE_MEMORIES, QUIRE_MEMORY_COUNT);
    subjects_add(&c.bench.subjects, VMA_MEMORIES, VMA_MEMORY_COUNT);
    if (c.list || c.count_workload)
        subjects_add(&c.bench.subjects, QUIRE_DESCRIBED, QUIRE_DESCRIBED_COUNT);
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
