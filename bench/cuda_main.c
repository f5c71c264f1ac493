/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_main.c - bench_cuda: measures the calls of a CUDA driver, and compares quire's memories on a
 * CUDA device with the driver's allocators in one run. Text goes to standard output, a JSON
 * document to the file of --json.
 *
 * QUIRE_CUDA_DEVICE selects the device; the default is the first. The driver is the libcuda.so.1
 * that the loader finds. Everything runs in one process, because a child process cannot use the
 * device of its parent.
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
    "  --family GLOB   run only these families: costs pages growth host calls\n"
    "                  peaks alone mixed large; repeatable\n"
    "  --subject GLOB  run only these subjects; repeatable\n"
    "  --pairs N       time at most N pairs, for a trial run\n"
    "  --page MIB      largest page and block (default 1024)\n"
    "  --trace FILE    a trace for the family peaks; repeatable\n"
    "  --json FILE     write all results into a file\n"
    "  --list          list the device and the subjects, and exit\n",
};

typedef struct choices {
    memory_bench bench;
    uint64_t page; /* MiB */
    patterns traces;
    const char *json_path;
    bool list;
} choices;

/* ---- options -------------------------------------------------------------------------------- */

static void parse(choices *c, int argc, char **argv)
{
    memory_bench *b = &c->bench;
    const option_rule rules[] = {
        {"reps", .number = &b->reps, .max = MAX_REPS},
        {"family", .list = &b->wanted_families},
        {"subject", .list = &b->wanted_subjects},
        {"pairs", .number = &b->max_pairs, .max = UINT64_MAX},
        {"page", .number = &c->page, .max = MAX_PAGE},
        {"trace", .list = &c->traces},
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

static void measure_families(choices *c)
{
    memory_bench *b = &c->bench;
    const patterns *wanted = &b->wanted_families;
    if (is_wanted(wanted, "costs"))
        measure_costs(b, c->page * MIB);
    if (is_wanted(wanted, "pages"))
        measure_pages_of_cuda(b, c->page * MIB);
    if (is_wanted(wanted, "growth"))
        measure_growth(b, c->page * MIB);
    if (is_wanted(wanted, "host"))
        measure_host(b, c->page * MIB);
    if (is_wanted(wanted, "calls"))
        measure_calls(b);
    if (is_wanted(wanted, "peaks"))
        measure_peaks(b, &c->traces);
    measure_pairs(b);
}

/* Returns false if the document cannot be written. */
static bool measure(choices *c)
{
    memory_bench *b = &c->bench;
    ticks_init();
    if (!document_begin(&b->out, c->json_path, b->reps))
        return false;
    report_clock();
    write_device(&b->out.json);
    subjects_write(&b->subjects, &b->out.json);
    measure_families(c);
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
