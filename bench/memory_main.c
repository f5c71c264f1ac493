/*
 * memory_main.c - bench_memory: measures whole memories of this project and of a peer, side by side
 * in the same run, over the same mock driver. Text goes to standard output, a JSON document to the
 * file asked for.
 */
#include <getopt.h>
#include <stdlib.h>

#include "bench/crew.h"
#include "bench/memory.h"
#include "bench/ticks.h"

enum { DEFAULT_THREADS = 2, DEFAULT_LATENCY_MS = 100, MOST_LATENCY_MS = 10000 };

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

static void add_pattern(patterns *p, const char *item)
{
    if (!patterns_add(p, item))
        usage_error(&USAGE, "one pattern too many:", item);
}

static void take_option(choices *c, int option, const char *value)
{
    memory_bench *b = &c->bench;
    switch (option) {
    case 'r':
        b->reps = usage_number(&USAGE, value, MOST_REPS);
        break;
    case 't':
        b->threads = usage_number(&USAGE, value, MOST_CREW);
        break;
    case 'f':
        add_pattern(&b->wanted_families, value);
        break;
    case 's':
        add_pattern(&b->wanted_subjects, value);
        break;
    case 'x':
        add_pattern(&b->unwanted_subjects, value);
        break;
    case 'd':
        b->latency_ms = usage_number(&USAGE, value, MOST_LATENCY_MS);
        break;
    case 'p':
        b->most_pairs = usage_number(&USAGE, value, UINT64_MAX);
        break;
    case 'o':
        c->json_path = value;
        break;
    case 'l':
        c->list = true;
        break;
    case 'h':
        printf("%s", USAGE.text);
        exit(0);
    default:
        fprintf(stderr, "%s", USAGE.text);
        exit(EXIT_USAGE);
    }
}

static void parse(choices *c, int argc, char **argv)
{
    static const struct option options[] = {
        {"reps", required_argument, NULL, 'r'},
        {"threads", required_argument, NULL, 't'},
        {"family", required_argument, NULL, 'f'},
        {"subject", required_argument, NULL, 's'},
        {"without", required_argument, NULL, 'x'},
        {"latency", required_argument, NULL, 'd'},
        {"pairs", required_argument, NULL, 'p'},
        {"json", required_argument, NULL, 'o'},
        {"list", no_argument, NULL, 'l'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    c->bench.reps = DEFAULT_REPS;
    c->bench.threads = DEFAULT_THREADS;
    c->bench.latency_ms = DEFAULT_LATENCY_MS;
    c->bench.most_pairs = UINT64_MAX;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) >= 0;)
        take_option(c, option, optarg);
    if (optind < argc)
        usage_error(&USAGE, "what is", argv[optind]);
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
