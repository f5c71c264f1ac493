/*
 * cuda_main.c - bench_cuda: what the calls of a CUDA driver cost, and memories on a CUDA device
 * side by side in the same run, quire's and the driver's own. Text goes to standard output, a JSON
 * document to the file asked for.
 *
 * Which device: QUIRE_CUDA_DEVICE, else the first; which driver: the libcuda.so.1 that is found.
 * All is done in one process: a child cannot use the device of its parent.
 */
#include <getopt.h>
#include <stdlib.h>
#include <time.h>

#include "bench/cuda_driver.h"
#include "bench/cuda_parts.h"
#include "bench/ticks.h"

#define MIB (UINT64_C(1) << 20)

enum { DEFAULT_PAGE = 1024, MOST_PAGE = 1 << 20 }; /* MiB */

static const usage USAGE = {
    "bench_cuda",
    "usage: bench_cuda [options]\n"
    "  --reps N        repeats of each measurement (default 9)\n"
    "  --family GLOB   only these: costs alone mixed large; repeatable\n"
    "  --subject GLOB  only these of those listed at the start; repeatable\n"
    "  --pairs N       times N pairs at most: a trial, no result\n"
    "  --page MIB      costs: of pages and blocks up to that size (default 1024)\n"
    "  --json FILE     writes all figures there\n"
    "  --list          lists device and subjects, present and absent, and ends\n",
};

typedef struct choices {
    memory_bench bench;
    uint64_t page; /* MiB */
    const char *json_path;
    bool list;
} choices;

/* ---- options -------------------------------------------------------------------------------- */

static void add_pattern(patterns *p, const char *item)
{
    if (!patterns_add(p, item))
        usage_error(&USAGE, "one pattern too many:", item);
}

static void take_option(choices *c, int option, const char *value)
{
    switch (option) {
    case 'r':
        c->bench.reps = usage_number(&USAGE, value, MOST_REPS);
        break;
    case 'f':
        add_pattern(&c->bench.wanted_families, value);
        break;
    case 's':
        add_pattern(&c->bench.wanted_subjects, value);
        break;
    case 'p':
        c->bench.most_pairs = usage_number(&USAGE, value, UINT64_MAX);
        break;
    case 'g':
        c->page = usage_number(&USAGE, value, MOST_PAGE);
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
        {"family", required_argument, NULL, 'f'},
        {"subject", required_argument, NULL, 's'},
        {"pairs", required_argument, NULL, 'p'},
        {"page", required_argument, NULL, 'g'},
        {"json", required_argument, NULL, 'o'},
        {"list", no_argument, NULL, 'l'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    c->bench.reps = DEFAULT_REPS;
    c->bench.most_pairs = UINT64_MAX;
    c->page = DEFAULT_PAGE;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) >= 0;)
        take_option(c, option, optarg);
    if (optind < argc)
        usage_error(&USAGE, "what is", argv[optind]);
}

/* ---- the run -------------------------------------------------------------------------------- */

static void write_device(qi_json *json)
{
    char date[32];
    time_t now = time(NULL);
    struct tm parts;
    strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(&now, &parts));
    qi_json_text(json, "date", date);
    qi_json_text(json, "device", the_cuda.name);
    qi_json_bool(json, "emulated", the_cuda.is_emulated);
    qi_json_number(json, "driver_version", the_cuda.info.driver_version);
}

/* False: the document cannot be written. */
static bool measure(choices *c)
{
    memory_bench *b = &c->bench;
    ticks_init();
    if (!document_begin(&b->out, c->json_path, b->reps))
        return false;
    report_clock();
    write_device(&b->out.json);
    subjects_write(&b->subjects, &b->out.json);
    if (is_wanted(&b->wanted_families, "costs"))
        measure_costs(b, c->page * MIB);
    measure_pairs(b);
    return !document_end(&b->out, USAGE.program);
}

int main(int argc, char **argv)
{
    static choices c;
    parse(&c, argc, argv);
    bool found = cuda_driver_open();
    printf("device: %s%s\n", found ? the_cuda.name : "none",
           the_cuda.is_emulated ? ", emulated: no figure says anything of a GPU" : "");
    if (found)
        printf("driver: CUDA %u.%u\n", the_cuda.info.driver_version / 1000,
               the_cuda.info.driver_version % 1000 / 10);
    subjects_add(&c.bench.subjects, CUDA_MEMORIES, CUDA_MEMORY_COUNT);
    subjects_print(&c.bench.subjects);
    bool good = c.list || (found && measure(&c));
    if (found)
        cuda_driver_close();
    return good ? 0 : 1;
}
