/*
 * bench.c - quire bench: runs a workload and prints what a pair of free and allocate costs.
 *
 * Without --threads a bare space runs it; with --threads each thread runs a variant of it on one
 * memory of the host backend that all share, through the public calls. Steps of one kind that
 * follow each other are timed in groups of at most 16, so that the clock does not hide what it
 * measures.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/base/histogram.h"
#include "src/base/json.h"
#include "src/base/result.h"
#include "src/cli/churn.h"
#include "src/cli/churn_fit.h"
#include "src/cli/playing.h"
#include "src/cli/workload.h"

enum { GROUP = 16, DEFAULT_REPEATS = 5, MAX_REPEATS = 99, MAX_THREADS = 256 };

typedef struct benching {
    const char *workload;
    quire_fit fit;
    uint64_t threads; /* 0: a bare space */
    uint64_t repeats;
    bool json;
} benching;

/* What the repeats measured. */
typedef struct outcome {
    double pair_ns[MAX_REPEATS];
    uint64_t pairs; /* timed, a repeat, all threads */
    uint64_t failures;
    uint64_t live_count;
    uint64_t metadata_bytes;
    qi_histogram alloc_ns, free_ns;
} outcome;

/* ---- what a step runs on ------------------------------------------------------------------ */

/* A space or a memory; the slots hold the handles' bits. */
typedef struct subject {
    quire_space *space;
    quire_memory *memory;
    uint64_t *slots;
    uint64_t failures;
} subject;

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

static void release(subject *s, const workload_step *step)
{
    uint64_t id = s->slots[step->slot];
    if (!id)
        return; /* it was refused */
    quire_result result = s->space ? quire_space_free(s->space, (quire_range){id})
                                   : quire_free(s->memory, (quire_allocation){id});
    s->failures += result != QUIRE_SUCCESS;
}

static size_t group_end(const workload *w, size_t begin)
{
    size_t end = begin + 1;
    while (end < w->count && end - begin < GROUP && !w->steps[end].size == !w->steps[begin].size)
        end++;
    return end;
}

/* Runs steps [begin, end) in groups; times them into the histograms unless those are NULL. */
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

static uint64_t timed_pairs(const workload *w)
{
    uint64_t pairs = 0;
    for (size_t i = w->timed_from; i < w->count; i++)
        pairs += w->steps[i].size != 0;
    return pairs;
}

/* ---- a bare space ------------------------------------------------------------------------- */

static bool repeat_on_space(const benching *b, const workload *w, outcome *o, uint64_t repeat)
{
    quire_space_options options = {.fit = b->fit, .size = w->arena};
    bool is_exact = b->fit == QUIRE_FIT_FIRST || b->fit == QUIRE_FIT_LINEAR; /* to the byte */
    if (!is_exact && w->granule)
        options.granule = w->granule;
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

static bool run_on_space(const benching *b, outcome *o)
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
            exit(EXIT_FAILED); /* those started wait for it and cannot be called back */
        }
    return true;
}

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

static bool repeat_on_memory(const benching *b, quire_device *device, worker *workers, outcome *o,
                             uint64_t repeat)
{
    quire_memory *memory = NULL;
    pthread_barrier_t start;
    bool good = !quire_memory_create(device, &(quire_memory_options){.fit = b->fit}, &memory);
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

static bool run_on_memory(const benching *b, outcome *o)
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
    qi_ignore(quire_device_destroy(&device));
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

static double per_live(const outcome *o)
{
    return o->live_count ? (double)o->metadata_bytes / (double)o->live_count : 0;
}

static int write_json(const benching *b, const outcome *o)
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

static int print_text(const benching *b, const outcome *o)
{
    printf("%s, fit %s, ", b->workload, fit_text(b->fit));
    if (b->threads)
        printf("%" PRIu64 " thread%s on one memory\n", b->threads, plural(b->threads));
    else
        printf("a bare space\n");
    printf("\n  free and allocate     %.1f ns a pair (median of %" PRIu64 "), %.1f at best, "
           "%.2f million pairs a second\n",
           o->pair_ns[b->repeats / 2], b->repeats, o->pair_ns[0], 1e3 / o->pair_ns[b->repeats / 2]);
    printf("  failures              %" PRIu64 "\n", o->failures);
    if (o->live_count)
        printf("  own records           %s for %" PRIu64 " allocation%s, %.1f bytes each\n",
               qi_bytes(o->metadata_bytes).text, o->live_count, plural(o->live_count), per_live(o));
    if (!b->threads) {
        printf("\n  ns         %6s %6s %6s %8s   (means of groups of up to %d)\n", "p50", "p99",
               "p99.9", "max", GROUP);
        print_latency("allocate", &o->alloc_ns);
        print_latency("free", &o->free_ns);
    }
    return EXIT_OK;
}

/* ---- how full a space can be kept --------------------------------------------------------- */

static int run_churn(const benching *b, const char *distribution, bool ramp)
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

static bool is_one_of(const char *name, const char *(*list)(size_t))
{
    for (size_t i = 0; list(i); i++)
        if (!strcmp(list(i), name))
            return true;
    return false;
}

void list_workloads(FILE *out)
{
    fprintf(out, "speed:");
    for (size_t i = 0; workload_name(i); i++)
        fprintf(out, " %s", workload_name(i));
    fprintf(out, "\nfragmentation:");
    for (size_t i = 0; churn_name(i); i++)
        fprintf(out, " ramp-%s fill-%s", churn_name(i), churn_name(i));
    fprintf(out, "\n");
}

static int run_speed(const benching *b)
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
    benching b = {.repeats = 0};
    uint64_t threads = UINT64_MAX, repeats = UINT64_MAX; /* not asked for */
    const option_spec specs[] = {
        {"fit", "F", "segregated (default), first, buddy or linear", OPTION_FIT, &b.fit},
        {"threads", "N", "N threads share one memory; without: a bare space, one thread",
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
        return bad_usage(self, "%s measures a bare space: no --threads", b.workload);
    if ((ramp || fill) && repeats != UINT64_MAX)
        return bad_usage(self, "%s is the same every time: no --repeats", b.workload);
    if ((ramp || fill) && is_one_of(b.workload + 5, churn_name))
        return run_churn(&b, b.workload + 5, ramp);
    if (!is_one_of(b.workload, workload_name))
        return bad_argument(self, "there is no workload '%s'", b.workload);
    return run_speed(&b);
}
