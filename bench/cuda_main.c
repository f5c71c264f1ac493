/*
 * cuda_main.c - bench_cuda: what the calls of a CUDA driver cost, and memories on a CUDA device
 * side by side in the same run, quire's and the driver's own. Text goes to standard output, a JSON
 * document to the file asked for.
 *
 * Which device: QUIRE_CUDA_DEVICE, else the first; which driver: the libcuda.so.1 that is found.
 * All is done in one process: a child cannot use the device of its parent.
 */
#include <stdlib.h>
#include <time.h>

#include "bench/cuda_driver.h"
#include "bench/cuda_parts.h"
#include "bench/options.h"
#include "bench/ticks.h"

#define MIB (UINT64_C(1) << 20)

enum { DEFAULT_PAGE = 1024, MAX_PAGE = 1 << 20 }; /* MiB */

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

static void parse(choices *c, int argc, char **argv)
{
    memory_bench *b = &c->bench;
    const option_rule rules[] = {
        {"reps", .number = &b->reps, .most = MAX_REPS},
        {"family", .list = &b->wanted_families},
        {"subject", .list = &b->wanted_subjects},
        {"pairs", .number = &b->max_pairs, .most = UINT64_MAX},
        {"page", .number = &c->page, .most = MAX_PAGE},
        {"json", .text = &c->json_path},
        {"list", .flag = &c->list},
    };
    b->reps = DEFAULT_REPS;
    b->max_pairs = UINT64_MAX;
    c->page = DEFAULT_PAGE;
    options_parse(&USAGE, rules, sizeof rules / sizeof *rules, argc, argv);
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
