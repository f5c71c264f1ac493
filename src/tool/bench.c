/*
 * bench.c - quire bench: runs a workload and prints the cost of a pair of free and allocate.
 *
 * Without --threads one thread runs it on a bare space. With --threads each thread runs a variant
 * of it through the public calls, on one memory of the host backend that all threads share.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bench/churn.h"
#include "bench/churn_fit.h"
#include "bench/workload.h"
#include "src/base/json.h"
#include "src/base/result.h"
#include "src/tool/bench_run.h"
#include "src/tool/replay_setup.h"

enum { DEFAULT_REPEATS = 5 };

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
