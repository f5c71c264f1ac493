/*
 * memory_main.c - bench_memory: measures whole memories of this project and of a peer, side by side
 * in the same run, over the same mock driver. Text goes to standard output, a JSON document to the
 * file asked for.
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
    "  --threads N     one thread, two, and N of them at a time (default 2)\n"
    "  --family GLOB   only these: pages many-pages full-pages threads-* locks transient-* "
    "slow-driver;\n"
    "                  repeatable\n"
    "  --subject GLOB  only these of those listed at the start; repeatable\n"
    "  --without GLOB  none of these; repeatable\n"
    "  --latency N     milliseconds that the slow driver takes to make a page (default 100)\n"
    "  --pairs N       times N pairs at most: a trial, no result\n"
    "  --json FILE     writes all figures there\n"
    "  --list          lists the subjects, present and absent, and ends\n",
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
        {"reps", .number = &b->reps, .most = MAX_REPS},
        {"threads", .number = &b->threads, .most = MAX_CREW},
        {"family", .list = &b->wanted_families},
        {"subject", .list = &b->wanted_subjects},
        {"without", .list = &b->unwanted_subjects},
        {"latency", .number = &b->latency_ms, .most = MAX_LATENCY_MS},
        {"pairs", .number = &b->max_pairs, .most = UINT64_MAX},
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
