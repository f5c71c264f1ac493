/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * bench.c - quire bench: runs a workload and prints the cost of a pair of free and allocate.
 *
 * Without --threads one thread runs it on a bare space. With --threads each thread runs a variant
 * of it through the public calls, on one memory of the host backend that all threads share.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/churn.h"
#include "bench/churn_fit.h"
#include "bench/workload.h"
#include "quire/host.h"
#include "quire/quire.h"
#include "quire/space.h"
#include "src/base/histogram.h"
#include "src/base/json.h"
#include "src/base/result.h"
#include "src/base/system.h"
#include "src/tool/replay_setup.h"

enum { BENCH_GROUP = 16, DEFAULT_REPEATS = 5, MAX_REPEATS = 99, MAX_THREADS = 256 };

/* The options of the command. */
typedef struct bench_options {
    const char *workload;
    quire_fit fit;
    uint64_t threads; /* 0 means one thread on a bare space */
    uint64_t repeats; /* 1 to MAX_REPEATS */
    bool json;
} bench_options;

/* The measurements of all repeats. */
typedef struct outcome {
    double pair_ns[MAX_REPEATS]; /* one value per repeat, in the order of the repeats */
    uint64_t pairs;              /* timed allocations per repeat, summed over all threads */
    uint64_t failures;           /* failed allocations and frees, over all repeats */
    uint64_t live_count;         /* at the end of the last repeat, as is metadata_bytes */
    uint64_t metadata_bytes;
    qi_histogram alloc_ns, free_ns; /* empty unless the workload ran on a bare space */
} outcome;

/* ---- steps -------------------------------------------------------------------------------- */

/*
 * Steps of one kind that follow each other are timed in groups of at most BENCH_GROUP, so that the
 * cost of reading the clock does not dominate the measurement.
 */

/* A space or a memory that steps run on. */
typedef struct subject {
    quire_space *space; /* NULL if the subject is a memory */
    quire_memory *memory;
    uint64_t *slots; /* a handle in each, 0 after a refusal */
    uint64_t failures;
} subject;

/* Stores the handle in the slot of the step, 0 if the allocation fails. */
static void allocate(subject *s, const workload_step *step)
{
    quire_result result;
    s->slots[step->slot] = 0;
    if (s->space) {
        quire_placement at;
        result = quire_space_allocate(s->space, step->size, step->alignment, step->slot, &at);
        s->slots[step->slot] = at.range.id;
    } else {
        quire_allocation allocation;
        result = quire_allocate(
            s->memory,
            &(quire_allocation_options){.size = step->size, .alignment = step->alignment},
            &allocation);
        s->slots[step->slot] = allocation.id;
    }
    s->failures += result != QUIRE_SUCCESS;
}

/* Skips slots without an allocation, because the workload frees every slot that it allocated. */
static void release(subject *s, const workload_step *step)
{
    uint64_t id = s->slots[step->slot];
    if (!id)
        return; /* the allocation failed */
    quire_result result = s->space ? quire_space_free(s->space, (quire_range){id})
                                   : quire_free(s->memory, (quire_allocation){id});
    s->failures += result != QUIRE_SUCCESS;
}

/* The end of a group: up to BENCH_GROUP successive steps, all allocations or all frees. */
static size_t group_end(const workload *w, size_t begin)
{
    size_t end = begin + 1;
    while (end < w->count && end - begin < BENCH_GROUP &&
           !w->steps[end].size == !w->steps[begin].size)
        end++;
    return end;
}

/*
 * Runs steps [begin, end) in groups and returns their nanoseconds. Adds the mean of its group to a
 * histogram for each step, unless the histogram is NULL.
 */
static uint64_t run_steps(subject *s, const workload *w, size_t begin, size_t end,
                          qi_histogram *alloc_ns, qi_histogram *free_ns)
{
    uint64_t total = 0;
    while (begin < end) {
        size_t stop = group_end(w, begin);
        bool allocating = w->steps[begin].size != 0;
        uint64_t started = qi_clock();
        for (size_t i = begin; i < stop; i++)
            allocating ? allocate(s, &w->steps[i]) : release(s, &w->steps[i]);
        uint64_t spent = qi_clock() - started;
        total += spent;
        qi_histogram *histogram = allocating ? alloc_ns : free_ns;
        for (size_t i = begin; histogram && i < stop; i++)
            qi_histogram_add(histogram, spent / (stop - begin));
        begin = stop;
    }
    return total;
}

/* Each timed allocation counts as one pair, because workloads free as often as they allocate. */
static uint64_t timed_pairs(const workload *w)
{
    uint64_t pairs = 0;
    for (size_t i = w->timed_from; i < w->count; i++)
        pairs += w->steps[i].size != 0;
    return pairs;
}

/* ---- a bare space ------------------------------------------------------------------------- */

/*
 * Runs the whole workload on a new space; only the steps after the warm-up are timed. The metadata
 * is read before the space is destroyed, while the last live ranges of the workload exist.
 */
static bool repeat_on_space(const bench_options *b, const workload *w, outcome *o, uint64_t repeat)
{
    quire_space_options options = {.fit.algorithm = b->fit, .size = w->arena};
    bool is_exact = b->fit == QUIRE_FIT_FIRST || b->fit == QUIRE_FIT_LINEAR; /* byte-exact */
    if (!is_exact && w->granule)
        options.fit.granule = w->granule;
    subject s = {.slots = calloc(w->slots, sizeof *s.slots)};
    bool good = s.slots && !quire_space_create(&options, &s.space);
    if (good) {
        run_steps(&s, w, 0, w->timed_from, NULL, NULL);
        uint64_t spent = run_steps(&s, w, w->timed_from, w->count, &o->alloc_ns, &o->free_ns);
        quire_space_stats stats;
        qi_ignore(quire_space_get_stats(s.space, &stats));
        o->pair_ns[repeat] = (double)spent / (double)o->pairs;
        o->failures += s.failures;
        o->live_count = stats.live_count;
        o->metadata_bytes = stats.metadata_bytes;
    }
    quire_space_destroy(&s.space);
    free(s.slots);
    return good;
}

/*
 * Runs the workload on a new space for each repeat. Returns false if host memory is exhausted or
 * the space cannot be created. *o must be zeroed.
 */
static bool run_on_space(const bench_options *b, outcome *o)
{
    workload w;
    bool good = workload_make(b->workload, 0, &w);
    o->pairs = timed_pairs(&w);
    for (uint64_t i = 0; i < b->repeats && good; i++)
        good = repeat_on_space(b, &w, o, i);
    workload_free(&w);
    return good;
}

/* ---- threads on one memory ---------------------------------------------------------------- */

typedef struct worker {
    pthread_t thread;
    workload workload;
    subject subject;
    pthread_barrier_t *start;
    uint64_t begun, ended;
} worker;

/* Warms up alone. The barrier then starts the timed part of all threads together. */
static void *work(void *user)
{
    worker *w = user;
    run_steps(&w->subject, &w->workload, 0, w->workload.timed_from, NULL, NULL);
    pthread_barrier_wait(w->start);
    w->begun = qi_clock();
    run_steps(&w->subject, &w->workload, w->workload.timed_from, w->workload.count, NULL, NULL);
    w->ended = qi_clock();
    return NULL;
}

/* Allocates all slots before it starts the first thread, so that a failure needs no join. */
static bool start_workers(worker *workers, uint64_t count, quire_memory *memory,
                          pthread_barrier_t *start)
{
    for (uint64_t i = 0; i < count; i++) {
        worker *w = &workers[i];
        w->start = start;
        w->subject = (subject){.memory = memory};
        w->subject.slots = calloc(w->workload.slots, sizeof *w->subject.slots);
        if (!w->subject.slots)
            return false;
    }
    for (uint64_t i = 0; i < count; i++)
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i])) {
            fprintf(stderr, "quire: thread %" PRIu64 " cannot be started\n", i);
            exit(EXIT_FAILED); /* the started threads wait at the barrier for this one */
        }
    return true;
}

/* The time of a repeat lasts from the first start to the last end of a thread. */
static void join_workers(worker *workers, uint64_t count, outcome *o, uint64_t repeat)
{
    uint64_t begun = UINT64_MAX, ended = 0;
    for (uint64_t i = 0; i < count; i++) {
        pthread_join(workers[i].thread, NULL);
        begun = workers[i].begun < begun ? workers[i].begun : begun;
        ended = workers[i].ended > ended ? workers[i].ended : ended;
        o->failures += workers[i].subject.failures;
    }
    o->pair_ns[repeat] = (double)(ended - begun) / (double)o->pairs;
}

/* Runs one repeat on a new memory, so that repeats do not inherit pages or metadata. */
static bool repeat_on_memory(const bench_options *b, quire_device *device, worker *workers,
                             outcome *o, uint64_t repeat)
{
    quire_memory *memory = NULL;
    pthread_barrier_t start;
    bool good =
        !quire_memory_create(device, &(quire_memory_options){.fit.algorithm = b->fit}, &memory);
    pthread_barrier_init(&start, NULL, (unsigned)b->threads);
    good = good && start_workers(workers, b->threads, memory, &start);
    if (good) {
        join_workers(workers, b->threads, o, repeat);
        quire_memory_stats stats;
        qi_ignore(quire_memory_get_stats(memory, &stats));
        o->live_count = stats.allocation_count;
        o->metadata_bytes = stats.metadata_bytes;
    }
    for (uint64_t i = 0; i < b->threads; i++) {
        free(workers[i].subject.slots);
        workers[i].subject.slots = NULL;
    }
    pthread_barrier_destroy(&start);
    quire_memory_destroy_all(&memory);
    return good;
}

/*
 * Runs a variant of the workload per thread, all on one memory of the host backend that is new for
 * each repeat. Returns false likewise, and exits the process if a thread cannot be started.
 */
static bool run_on_memory(const bench_options *b, outcome *o)
{
    quire_device *device = NULL;
    worker *workers = calloc(b->threads, sizeof *workers);
    bool good = workers && !quire_host_open(NULL, &device);
    for (uint64_t i = 0; i < b->threads && good; i++) {
        good = workload_make(b->workload, i, &workers[i].workload);
        o->pairs += timed_pairs(&workers[i].workload);
    }
    for (uint64_t i = 0; i < b->repeats && good; i++)
        good = repeat_on_memory(b, device, workers, o, i);
    for (uint64_t i = 0; workers && i < b->threads; i++)
        workload_free(&workers[i].workload);
    free(workers);
    quire_device_destroy(&device);
    return good;
}

/* ---- output ------------------------------------------------------------------------------- */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void write_latency(qi_json *json, const char *key, const qi_histogram *h)
{
    qi_json_object(json, key);
    qi_json_number(json, "p50", qi_histogram_percentile(h, 0.5));
    qi_json_number(json, "p99", qi_histogram_percentile(h, 0.99));
    qi_json_number(json, "p999", qi_histogram_percentile(h, 0.999));
    qi_json_number(json, "max", h->max);
    qi_json_end_object(json);
}

/* Metadata bytes per live allocation; 0 if none is live. */
static double per_live(const outcome *o)
{
    return o->live_count ? (double)o->metadata_bytes / (double)o->live_count : 0;
}

static int write_json(const bench_options *b, const outcome *o)
{
    qi_json json;
    qi_json_init(&json, write_to_file, stdout);
    qi_json_object(&json, NULL);
    qi_json_text(&json, "workload", b->workload);
    qi_json_text(&json, "fit", fit_text(b->fit));
    qi_json_number(&json, "threads", b->threads);
    qi_json_number(&json, "repeats", b->repeats);
    qi_json_number(&json, "pairs", o->pairs);
    qi_json_object(&json, "pair_ns");
    qi_json_real(&json, "min", o->pair_ns[0]);
    qi_json_real(&json, "median", o->pair_ns[b->repeats / 2]);
    qi_json_end_object(&json);
    if (!b->threads) {
        write_latency(&json, "alloc_ns", &o->alloc_ns);
        write_latency(&json, "free_ns", &o->free_ns);
    }
    qi_json_number(&json, "failures", o->failures);
    qi_json_number(&json, "live_count", o->live_count);
    qi_json_number(&json, "metadata_bytes", o->metadata_bytes);
    qi_json_real(&json, "metadata_per_live", per_live(o));
    qi_json_end_object(&json);
    return qi_json_finish(&json) ? fail_with_last_error() : EXIT_OK;
}

static void print_latency(const char *what, const qi_histogram *h)
{
    printf("  %-10s %6" PRIu64 " %6" PRIu64 " %6" PRIu64 " %8" PRIu64 "\n", what,
           qi_histogram_percentile(h, 0.5), qi_histogram_percentile(h, 0.99),
           qi_histogram_percentile(h, 0.999), h->max);
}

static int print_text(const bench_options *b, const outcome *o)
{
    printf("%s, fit %s, ", b->workload, fit_text(b->fit));
    if (b->threads)
        printf("%" PRIu64 " thread%s on one memory\n", b->threads, plural(b->threads));
    else
        printf("a bare space\n");
    printf("\n  free and allocate     %.1f ns per pair (median of %" PRIu64 "), best %.1f, "
           "%.2f million pairs per second\n",
           o->pair_ns[b->repeats / 2], b->repeats, o->pair_ns[0], 1e3 / o->pair_ns[b->repeats / 2]);
    printf("  failures              %" PRIu64 "\n", o->failures);
    if (o->live_count)
        printf("  metadata              %s for %" PRIu64 " allocation%s, %.1f bytes each\n",
               qi_bytes(o->metadata_bytes).text, o->live_count, plural(o->live_count), per_live(o));
    if (!b->threads) {
        printf("\n  ns         %6s %6s %6s %8s   (means over groups of up to %d)\n", "p50", "p99",
               "p99.9", "max", BENCH_GROUP);
        print_latency("allocate", &o->alloc_ns);
        print_latency("free", &o->free_ns);
    }
    return EXIT_OK;
}

/* ---- fragmentation ------------------------------------------------------------------------ */

/* Runs ramp-NAME or fill-NAME on a bare space; bench/churn.h defines both. */
static int run_churn(const bench_options *b, const char *distribution, bool ramp)
{
    static const double targets[] = {0.90, 0.95};
    double first = ramp ? churn_ramp_fit(distribution, b->fit)
                        : churn_fill_fit(distribution, b->fit, targets[0]);
    double second = ramp ? 0 : churn_fill_fit(distribution, b->fit, targets[1]);
    if (first < 0 || second < 0)
        return fail_with_last_error();
    if (!b->json && ramp)
        printf("%s, fit %s: %.4f of the arena live at the first failure (mean of five seeds)\n",
               b->workload, fit_text(b->fit), first);
    else if (!b->json)
        printf("%s, fit %s: %.2f failures in 1000 requests at 90 %%, %.2f at 95 %%\n", b->workload,
               fit_text(b->fit), first, second);
    if (!b->json)
        return EXIT_OK;
    qi_json json;
    qi_json_init(&json, write_to_file, stdout);
    qi_json_object(&json, NULL);
    qi_json_text(&json, "workload", b->workload);
    qi_json_text(&json, "fit", fit_text(b->fit));
    qi_json_real(&json, ramp ? "utilisation" : "failures_per_1000_at_90", first);
    if (!ramp)
        qi_json_real(&json, "failures_per_1000_at_95", second);
    qi_json_end_object(&json);
    return qi_json_finish(&json) ? fail_with_last_error() : EXIT_OK;
}

/* ---- workloads ---------------------------------------------------------------------------- */

/* `list` returns the name at an index, or NULL beyond the last one. */
static bool is_one_of(const char *name, const char *(*list)(size_t))
{
    for (size_t i = 0; list(i); i++)
        if (!strcmp(list(i), name))
            return true;
    return false;
}

/* The names of workloads that differ in a number of slots or steps begin with the same letters. */
static const struct {
    const char *names, *meaning;
} MEANINGS[] = {
    {"a1k a10k a100k a1m", "random: N slots (1k: 1000), 256 B to 1 MiB; frees 16\n"
                           "random ranges, then allocates 16"},
    {"a100k_raw", "the same, sizes not rounded to 256 bytes"},
    {"b1k b100k", "the same, 64 B to 4 KiB, alignments of 16 to 256"},
    {"c1k c100k", "last in, first out"},
    {"d1k d100k", "first in, first out"},
    {"e_dnn e_dyn", "120 training steps of a network, with fixed and with\n"
                    "changing sizes"},
    {"m_a4k m_b4k", "short versions of a and b"},
    {"m_dnn m_dyn", "short versions of e_dnn and e_dyn"},
    {"ramp-...", "random frees and allocations up to the first failure"},
    {"fill-...", "failures at 90 and 95 % occupancy"},
    {"ramp-logu fill-logu", "sizes of 256 B to 1 MiB"},
    {"ramp-bimod fill-bimod", "nine in ten up to 16 KiB, the others up to 4 MiB"},
    {"ramp-small fill-small", "64 B to 4 KiB"},
    {"ramp-mid fill-mid", "64 KiB to 16 MiB"},
    {"ramp-pow2 fill-pow2", "powers of two, 256 B to 1 MiB"},
    {"ramp-tex fill-tex", "textures of 64 to 2048 texels per side"},
};

void list_workloads(FILE *out)
{
    fprintf(out, "Workloads (docs/benchmarks.md defines them):\n");
    for (size_t i = 0; i < sizeof MEANINGS / sizeof *MEANINGS; i++)
        print_pair(out, 22, MEANINGS[i].names, MEANINGS[i].meaning);
}

void print_workload_names(FILE *out)
{
    for (size_t i = 0; workload_name(i); i++)
        fprintf(out, " %s", workload_name(i));
    for (size_t i = 0; churn_name(i); i++)
        fprintf(out, " ramp-%s fill-%s", churn_name(i), churn_name(i));
}

/* ---- run ---------------------------------------------------------------------------------- */

/* The outcome holds two histograms and is too large for the stack. */
static int run_speed(const bench_options *b)
{
    outcome *o = calloc(1, sizeof *o);
    bool good = o && (b->threads ? run_on_memory(b, o) : run_on_space(b, o));
    int code = EXIT_FAILED;
    if (good) {
        qsort(o->pair_ns, b->repeats, sizeof *o->pair_ns, compare_doubles);
        code = b->json ? write_json(b, o) : print_text(b, o);
    } else {
        fail_with_last_error();
    }
    free(o);
    return code;
}

int run_bench(const command *self, int argc, char **argv)
{
    bench_options b = {.repeats = 0};
    uint64_t threads = UINT64_MAX, repeats = UINT64_MAX; /* the option is absent */
    const option_spec specs[] = {
        {"fit", "F", "segregated (default), first, buddy or linear", OPTION_FIT, &b.fit},
        {"threads", "N", "threads that share one memory\n(default: one thread on a bare space)",
         OPTION_NUMBER, &threads},
        {"repeats", "N", "repeat the workload N times (default 5)", OPTION_NUMBER, &repeats},
        {"json", NULL, "print one JSON object", OPTION_FLAG, &b.json},
    };
    int code = parse_options(self, argc, argv, specs, sizeof specs / sizeof *specs, &b.workload);
    if (code >= 0)
        return code;
    bool threaded = threads != UINT64_MAX;
    b.repeats = repeats == UINT64_MAX ? DEFAULT_REPEATS : repeats;
    if (!b.repeats || b.repeats > MAX_REPEATS)
        return bad_usage(self, "--repeats takes 1 to %d", MAX_REPEATS);
    if (threaded && (!threads || threads > MAX_THREADS))
        return bad_usage(self, "--threads takes 1 to %d", MAX_THREADS);
    b.threads = threaded ? threads : 0;
    bool ramp = !strncmp(b.workload, "ramp-", 5), fill = !strncmp(b.workload, "fill-", 5);
    if ((ramp || fill) && threaded)
        return bad_usage(self, "%s runs on a bare space and takes no --threads", b.workload);
    if ((ramp || fill) && repeats != UINT64_MAX)
        return bad_usage(self, "%s is deterministic and takes no --repeats", b.workload);
    if ((ramp || fill) && is_one_of(b.workload + 5, churn_name))
        return run_churn(&b, b.workload + 5, ramp);
    if (!is_one_of(b.workload, workload_name))
        return bad_argument(self, "unknown workload '%s'", b.workload);
    return run_speed(&b);
}
