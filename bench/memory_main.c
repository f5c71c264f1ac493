/*
 * memory_main.c - bench_memory: measures complete memories of quire and of a peer, alternating in
 * one run, on the same mock driver. Text goes to standard output, a JSON document to the file of
 * --json.
 */
#include <stdlib.h>

#include "bench/crew.h"
#include "bench/memory.h"
#include "bench/options.h"
#include "bench/ticks.h"

enum { DEFAULT_THREADS = 2, DEFAULT_LATENCY_MS = 100, MAX_LATENCY_MS = 10000 };

static const usage USAGE = {
    "bench_memory",
    "usage: bench_memory [options]\n"
    "  --reps N        repeats of each measurement (default 9)\n"
    "  --threads N     measure 1, 2 and N threads (default 2)\n"
    "  --family GLOB   run only these families: pages many-pages full-pages threads-* locks\n"
    "                  transient-* slow-driver; repeatable\n"
    "  --subject GLOB  run only these subjects; repeatable\n"
    "  --without GLOB  exclude these subjects; repeatable\n"
    "  --latency N     milliseconds that the slow driver needs for a page (default 100)\n"
    "  --pairs N       time at most N pairs, for a trial run\n"
    "  --json FILE     write all results into a file\n"
    "  --list          list the subjects, and exit\n",
};

/* ---- options ------------------------------------------------------------------------------ */

typedef struct choices {
    memory_bench bench;
    const char *json_path;
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
        {"pairs", .number = &b->max_pairs, .max = UINT64_MAX},
        {"json", .text = &c->json_path},
        {"list", .flag = &c->list},
    };
    b->reps = DEFAULT_REPS;
    b->threads = DEFAULT_THREADS;
    b->latency_ms = DEFAULT_LATENCY_MS;
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
    measure_transient(b);
    measure_slow(b);
    return document_end(&b->out, USAGE.program);
}

int main(int argc, char **argv)
{
    static choices c;
    parse(&c, argc, argv);
    subjects_add(&c.bench.subjects, QUIRE_MEMORIES, QUIRE_MEMORY_COUNT);
    subjects_add(&c.bench.subjects, VMA_MEMORIES, VMA_MEMORY_COUNT);
    if (c.list) {
        subjects_print(&c.bench.subjects);
        return 0;
    }
    return run(&c.bench, c.json_path);
}
