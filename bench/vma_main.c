/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma_main.c - bench_vma: the same program on the Vulkan Memory Allocator and on quire_vma.h, in
 * one run, on a driver without a device or with --device on a real one, which quire selects by
 * QUIRE_VULKAN_DEVICE and the loader's VK_ICD_FILENAMES. Text goes to standard output, a JSON
 * document to the file of --json.
 *
 * Each run of a scenario is a process of its own. The runs of the two programs take turns. One more
 * run counts what each program asks of the host and the driver; it is not timed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/children.h"
#include "bench/options.h"
#include "bench/vma_driver.h"
#include "bench/vma_program.h"

static const usage USAGE = {
    "bench_vma",
    "usage: bench_vma [options]\n"
    "  --reps N          repeats of each scenario (default 9)\n"
    "  --scenario GLOB   play only these scenarios; repeatable\n"
    "  --subject GLOB    run only these programs: VMA quire_vma.h; repeatable\n"
    "  --operations N    time at most N operations, for a trial run\n"
    "  --pause MS        what is kept is counted this long after the last free (default 1100)\n"
    "  --json FILE       write all results into a file\n"
    "  --device          use a real device\n"
    "  --once            play in this process, once, for an instruction counter; needs one\n"
    "                    --scenario and one --subject\n"
    "  --list            list the scenarios and the programs, and exit\n",
};

static const vma_program *const PROGRAMS[] = {
#ifdef BENCH_HAS_VMA
    &vma_program_vma,
#endif
    &vma_program_quire,
};
enum { DEFAULT_PAUSE = 1100 }; /* quire_vma.h keeps empty pages for a second */
enum { PROGRAMS_HERE = sizeof PROGRAMS / sizeof *PROGRAMS };

typedef struct bench_vma {
    uint64_t reps, max_operations, pause_ms;
    patterns scenarios, subjects;
    const char *json_path;
    bool is_real, once, list;
    document out;
} bench_vma;

/* What one process reports. Times are nanoseconds for each operation. */
typedef struct figures {
    bool is_complete;
    double median, p99, max, mean;
    uint64_t operations, host_calls, made, peak_bytes, live_bytes, kept_bytes;
} figures;

/* ---- one run -------------------------------------------------------------------------------- */

static int compare(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

/* The value below which this share of the samples lies. */
static double share_of(const vma_run *run, double share)
{
    size_t index = (size_t)((double)(run->samples - 1) * share);
    return (double)run->ticks[index] * the_clock.ns / (double)run->operations_of_sample;
}

static void summarize(vma_run *run, figures *f)
{
    uint64_t sum = 0;
    qsort(run->ticks, run->samples, sizeof *run->ticks, compare);
    for (uint64_t i = 0; i < run->samples; i++)
        sum += run->ticks[i];
    *f = (figures){
        .is_complete = true,
        .median = share_of(run, 0.5),
        .p99 = share_of(run, 0.99),
        .max = share_of(run, 1),
        .operations = run->samples * run->operations_of_sample,
        .host_calls = run->host_calls,
        .made = run->made,
        .peak_bytes = qi_atomic_load_u64(&the_driver.peak),
        .live_bytes = run->live_bytes,
        .kept_bytes = run->kept_bytes,
    };
    f->mean = (double)sum * the_clock.ns / (double)f->operations;
}

static uint64_t operations_of(const bench_vma *b, const vma_scenario *scenario)
{
    return scenario->operations < b->max_operations ? scenario->operations : b->max_operations;
}

/* Only a run that counts pauses. */
static void play(const bench_vma *b, const vma_scenario *scenario, bool counts, figures *f)
{
    vma_driver driver;
    uint64_t operations = operations_of(b, scenario);
    vma_run run = {.driver = &driver,
                   .counts_host = counts,
                   .pause_ms = counts ? b->pause_ms : 0,
                   .operations = operations};
    run.ticks = calloc(operations, sizeof *run.ticks);
    if (!run.ticks || !vma_driver_open(b->is_real, &driver))
        return;
    scenario->play(&run);
    if (run.samples)
        summarize(&run, f);
    free(run.ticks);
}

/* ---- all runs of a scenario ----------------------------------------------------------------- */

/* Runs by number: the programs take turns, and the last turn counts host calls. */
typedef struct plan {
    const bench_vma *bench;
    size_t scenario;
    const vma_program *programs[PROGRAMS_HERE];
    size_t count;
    figures *figures; /* shared by the processes */
} plan;

static void play_in_child(void *user, size_t index)
{
    const plan *p = user;
    const vma_scenario *scenario = &p->programs[index % p->count]->scenarios[p->scenario];
    have_second_thread();
    play(p->bench, scenario, index / p->count == p->bench->reps, &p->figures[index]);
}

/* The median over the repeats of one program. Returns 0 if one of its runs failed. */
static spread spread_over(const plan *p, size_t program, size_t member)
{
    double values[MAX_REPS];
    uint64_t reps = p->bench->reps;
    for (uint64_t rep = 0; rep <= reps; rep++) {
        const figures *f = &p->figures[rep * p->count + program];
        if (!f->is_complete)
            return (spread){0, 0};
        if (rep < reps)
            memcpy(&values[rep], (const char *)f + member, sizeof *values);
    }
    return spread_of(values, reps);
}

static void write_program(const plan *p, size_t program, qi_json *json)
{
    const vma_scenario *scenario = &p->programs[program]->scenarios[p->scenario];
    const figures *counted = &p->figures[p->bench->reps * p->count + program];
    spread median = spread_over(p, program, offsetof(figures, median)),
           p99 = spread_over(p, program, offsetof(figures, p99)),
           max = spread_over(p, program, offsetof(figures, max)),
           mean = spread_over(p, program, offsetof(figures, mean));
    printf("%-12s %-12s %9.1f %9.1f %9.1f %11.1f %8" PRIu64 " %9.1f %9.1f %9.1f %9" PRIu64 "\n",
           scenario->name, p->programs[program]->name, mean.median, median.median, p99.median,
           max.median, counted->made, (double)counted->peak_bytes / (1 << 20),
           (double)counted->live_bytes / (1 << 20), (double)counted->kept_bytes / (1 << 20),
           counted->host_calls);
    qi_json_object(json, NULL);
    qi_json_text(json, "scenario", scenario->name);
    qi_json_text(json, "operation", scenario->operation);
    qi_json_text(json, "subject", p->programs[program]->name);
    qi_json_number(json, "operations", counted->operations);
    write_spread(json, "mean_ns", mean);
    write_spread(json, "median_ns", median);
    write_spread(json, "p99_ns", p99);
    write_spread(json, "max_ns", max);
    qi_json_number(json, "driver_allocations", counted->made);
    qi_json_number(json, "peak_bytes", counted->peak_bytes);
    qi_json_number(json, "live_bytes", counted->live_bytes);
    qi_json_number(json, "kept_bytes", counted->kept_bytes);
    qi_json_number(json, "host_calls", counted->host_calls);
    qi_json_end_object(json);
}

/* Returns the number of programs of which a run failed. */
static int measure(bench_vma *b, size_t scenario)
{
    plan p = {.bench = b, .scenario = scenario};
    int failed = 0;
    for (size_t i = 0; i < PROGRAMS_HERE; i++)
        if (is_wanted(&b->subjects, PROGRAMS[i]->name))
            p.programs[p.count++] = PROGRAMS[i];
    size_t runs = (b->reps + 1) * p.count;
    if (!runs)
        return 0;
    p.figures = shared_memory(runs, sizeof *p.figures);
    in_children(runs, 1, play_in_child, &p);
    for (size_t i = 0; i < p.count; i++) {
        if (spread_over(&p, i, offsetof(figures, mean)).median > 0)
            write_program(&p, i, &b->out.json);
        else
            failed += fprintf(stderr, "bench_vma: %s fails on %s\n",
                              PROGRAMS[0]->scenarios[scenario].name, p.programs[i]->name) > 0;
    }
    shared_release(p.figures, runs, sizeof *p.figures);
    return failed;
}

/* ---- the program ---------------------------------------------------------------------------- */

static void parse(bench_vma *b, int argc, char **argv)
{
    const option_rule rules[] = {
        {"reps", .number = &b->reps, .max = MAX_REPS},
        {"scenario", .list = &b->scenarios},
        {"subject", .list = &b->subjects},
        {"operations", .number = &b->max_operations, .max = UINT64_MAX},
        {"pause", .number = &b->pause_ms, .max = 60000},
        {"json", .text = &b->json_path},
        {"device", .flag = &b->is_real},
        {"once", .flag = &b->once},
        {"list", .flag = &b->list},
    };
    b->reps = DEFAULT_REPS;
    b->max_operations = UINT64_MAX;
    b->pause_ms = DEFAULT_PAUSE;
    options_parse(&USAGE, rules, sizeof rules / sizeof *rules, argc, argv);
    if (b->once && (b->scenarios.count != 1 || b->subjects.count != 1))
        usage_error(&USAGE, "requires exactly one --scenario and one --subject:", "--once");
}

static int list(void)
{
    for (size_t i = 0; i < VMA_SCENARIOS; i++)
        printf("%-12s %s\n", PROGRAMS[0]->scenarios[i].name, PROGRAMS[0]->scenarios[i].operation);
    for (size_t i = 0; i < PROGRAMS_HERE; i++)
        printf("subject: %s\n", PROGRAMS[i]->name);
    return 0;
}

static int play_once(const bench_vma *b)
{
    figures f = {.is_complete = false};
    for (size_t i = 0; i < PROGRAMS_HERE; i++)
        for (size_t k = 0; k < VMA_SCENARIOS; k++) {
            const vma_scenario *scenario = &PROGRAMS[i]->scenarios[k];
            if (!strcmp(b->subjects.items[0], PROGRAMS[i]->name) &&
                !strcmp(b->scenarios.items[0], scenario->name))
                play(b, scenario, false, &f);
        }
    printf("%" PRIu64 " operations\n", f.operations);
    return f.is_complete ? 0 : 1;
}

int main(int argc, char **argv)
{
    static bench_vma b;
    int failed = 0;
    parse(&b, argc, argv);
    if (b.list)
        return list();
    ticks_init();
    if (b.once)
        return play_once(&b);
    if (!document_begin(&b.out, b.json_path, b.reps))
        return 1;
    report_clock();
    qi_json_text(&b.out.json, "device", vma_driver_name(b.is_real));
    printf("device: %s\n", vma_driver_name(b.is_real));
    printf("%-12s %-12s %9s %9s %9s %11s %8s %9s %9s %9s %9s\n", "scenario", "program", "mean ns",
           "median", "99 %", "max", "driver", "peak MiB", "live MiB", "kept MiB", "host");
    qi_json_array(&b.out.json, "program");
    for (size_t i = 0; i < VMA_SCENARIOS; i++)
        if (is_wanted(&b.scenarios, PROGRAMS[0]->scenarios[i].name))
            failed += measure(&b, i);
    qi_json_end_array(&b.out.json);
    return document_end(&b.out, USAGE.program) || failed;
}
