/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * tune.c - quire tune: each round replays a longer part of a trace with fewer candidates, those of
 * least cost in the round before. Recommends one set of options from the last round.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/json.h"
#include "src/base/result.h"
#include "src/base/system.h"
#include "src/tool/candidate.h"
#include "src/tool/replay_setup.h"

enum { DEFAULT_SECONDS = 60, MAX_SECONDS = 1000000, MAX_REASONS = 8, SENTENCE = 512 };

/* One candidate and its cost. */
typedef struct trial {
    candidate candidate;
    quire_replay_report report;
    uint64_t mean_reserved_bytes; /* over the events of the trace */
} trial;

/* A reason for which candidates are not ranked, and their number. */
typedef struct skipped {
    uint32_t count;
    char reason[SENTENCE];
} skipped;

typedef struct tuning {
    replay_setup setup;
    quire_fit fit;      /* option --fit, or ANY_FIT */
    uint64_t page_size; /* option --page-size; 0 means several sizes */
    uint64_t seconds;   /* option --time-limit; 0 means none */
    bool all;           /* option --all: print every candidate */
    bool elastic;       /* option --elastic: try elastic memories too */
    bool json;
    progress bar;
    candidate *candidates;
    trial *trials;
    ranked *ranking; /* of the trials, sorted; `number` is an index into them */
    uint32_t candidate_count, trial_count;
    uint32_t recommended; /* index into the ranking; trial_count means none */
    skipped reasons[MAX_REASONS];
    uint32_t reason_count;
    char refusal[SENTENCE]; /* first error of the trial with the fewest failures above 0 */
    uint64_t fewest_refusals;
    /* the round and the candidate being tried */
    uint64_t deadline; /* of qi_clock in nanoseconds; UINT64_MAX means none */
    char title[48];    /* of the bar */
    uint32_t trying;
    uint64_t sum_reserved_bytes, samples;
    quire_memory *memory;
} tuning;

/* ---- skipped candidates ------------------------------------------------------------------- */

/* Counts a skipped candidate under its reason. The last entry collects all reasons beyond. */
static void skip_candidate(tuning *t, const char *reason)
{
    uint32_t i = 0;
    while (i < t->reason_count && strcmp(t->reasons[i].reason, reason))
        i++;
    if (i == MAX_REASONS) {
        i--;
        reason = "for these and other reasons";
    }
    t->reason_count += i == t->reason_count;
    t->reasons[i].count++;
    if (t->reasons[i].reason != reason)
        snprintf(t->reasons[i].reason, SENTENCE, "%s", reason);
}

/* ---- trials ------------------------------------------------------------------------------- */

/* Samples the reserved bytes for their mean, in addition to drawing the bar. */
static bool on_progress(void *user, uint64_t done, uint64_t total)
{
    tuning *t = user;
    quire_memory_stats stats;
    qi_ignore(quire_memory_get_stats(t->memory, &stats));
    t->sum_reserved_bytes += stats.reserved_bytes;
    t->samples++;
    if (done < total) /* try_round completes the bar after the last candidate */
        show_progress(&t->bar, t->trying * total + done, t->candidate_count * total);
    return true;
}

/* Runs right after the replay, whose first error is still the thread's last error. */
static void keep_trial(tuning *t, const candidate *c, const quire_replay_report *report)
{
    if (report->failures && report->failures < t->fewest_refusals) {
        t->fewest_refusals = report->failures;
        snprintf(t->refusal, sizeof t->refusal, "%s", quire_last_error());
    }
    uint64_t mean = t->samples ? t->sum_reserved_bytes / t->samples : 0;
    t->trials[t->trial_count++] = (trial){*c, *report, mean};
}

/*
 * Replays the first events of the trace, or all if `events` is 0, on a memory with the candidate's
 * options. Returns -1, or the exit code.
 */
static int try_candidate(tuning *t, const candidate *c, uint64_t events)
{
    quire_memory_options options = candidate_options(c);
    options.clock = trace_clock(&t->setup);
    quire_result result = quire_memory_create(t->setup.device, &options, &t->memory);
    if (result == QUIRE_ERROR_UNSUPPORTED) {
        skip_candidate(t, quire_last_error());
        return -1;
    }
    if (result)
        return fail_with_last_error();
    quire_replay_options how = {.event_count = events,
                                .keep = true,
                                .progress = on_progress,
                                .user = t,
                                .time = &t->setup.time};
    quire_replay_report report;
    t->sum_reserved_bytes = t->samples = 0;
    result = quire_trace_replay(t->setup.trace, t->memory, &how, &report);
    if (!result)
        keep_trial(t, c, &report);
    quire_memory_destroy_all(&t->memory);
    return result ? fail_with_last_error() : -1;
}

/*
 * Tries every candidate. After the deadline it tries the first one only, so that a recommendation
 * exists.
 */
static int try_round(tuning *t, uint64_t events)
{
    int code = -1;
    t->trial_count = 0;
    t->fewest_refusals = UINT64_MAX;
    *t->refusal = '\0';
    for (t->trying = 0; t->trying < t->candidate_count && code < 0; t->trying++) {
        if (t->trying && qi_clock() >= t->deadline)
            skip_candidate(t, "not tried within --time-limit");
        else
            code = try_candidate(t, &t->candidates[t->trying], events);
    }
    show_progress(&t->bar, t->trying, t->candidate_count);
    end_progress(&t->bar);
    return code;
}

/* Trials keep the order in which they ran; the ranking refers to them by number. */
static void rank_trials(tuning *t)
{
    for (uint32_t i = 0; i < t->trial_count; i++) {
        const trial *one = &t->trials[i];
        const quire_replay_report *o = &one->report;
        uint64_t operations = o->allocations + o->frees;
        t->ranking[i] = (ranked){
            .number = i,
            .options_set = candidate_options_set(&one->candidate),
            .failures = o->failures,
            .requested_bytes = o->peak_requested_bytes ? o->peak_requested_bytes : 1,
            .reserved_bytes = o->peak_reserved_bytes,
            .backend_calls = o->backend_calls,
            .operations = operations ? operations : 1,
        };
    }
    rank(t->ranking, t->trial_count);
    t->recommended = (uint32_t)recommend(t->ranking, t->trial_count);
}

/* ---- rounds ------------------------------------------------------------------------------- */

/*
 * A trace of many events is not replayed with every candidate. Rounds of at most ROUND_EVENTS
 * events each try the candidates on a part of it from the start, keep the best, and take a part
 * that is NARROWING times as long, until FINALISTS are left or the part is the whole trace. The
 * rounds depend on the trace only, so that the result is the same on every machine.
 */
enum { ROUND_EVENTS = 8000000, NARROWING = 4, FINALISTS = 8 };

/* Candidates that the next round tries. */
static uint32_t next_count(uint32_t count)
{
    uint32_t kept = count / NARROWING;
    return kept < FINALISTS ? FINALISTS : kept;
}

/*
 * Keeps the best candidates of a round, best first, and the defaults. Those with the same cost as a
 * better one go first, because they most likely have the same cost on the whole trace.
 */
static void narrow(tuning *t, uint64_t events)
{
    uint32_t wanted = next_count(t->candidate_count), kept = 0;
    char why[SENTENCE];
    snprintf(why, sizeof why, "more costly than others on the first %" PRIu64 " events", events);
    for (int alike = 0; alike <= 1; alike++) {
        for (uint32_t i = 0; i < t->trial_count; i++) {
            const candidate *c = &t->trials[t->ranking[i].number].candidate;
            if ((t->ranking[i].alike != NOT_ALIKE) != alike)
                continue;
            if (kept < wanted || !t->ranking[i].options_set)
                t->candidates[kept++] = *c;
            else
                skip_candidate(t, why);
        }
    }
    t->candidate_count = kept;
}

static int try_all(tuning *t)
{
    uint64_t whole = t->setup.info.event_count;
    uint64_t first = ROUND_EVENTS / (t->candidate_count ? t->candidate_count : 1), events = first;
    uint32_t rounds = 1, round = 1;
    for (uint32_t n = t->candidate_count; events < whole && n > FINALISTS; n = next_count(n)) {
        rounds++;
        events *= NARROWING;
    }
    t->deadline = t->seconds ? qi_clock() + t->seconds * 1000000000 : UINT64_MAX;
    t->bar.what = t->title;
    int code = -1;
    for (events = first; code < 0; events *= NARROWING, round++) {
        bool is_last = round == rounds || qi_clock() >= t->deadline;
        if (rounds > 1)
            snprintf(t->title, sizeof t->title, "tune, round %" PRIu32 " of %" PRIu32, round,
                     rounds);
        code = try_round(t, is_last ? 0 : events);
        if (code < 0)
            rank_trials(t);
        if (is_last)
            break;
        if (code < 0)
            narrow(t, events);
    }
    return code;
}

/* ---- candidates --------------------------------------------------------------------------- */

/* Takes the limits of pages from the device. A memory without options names the kind. */
static quire_result read_device_limits(tuning *t, candidate_scope *scope)
{
    quire_memory_info info;
    quire_device_info device;
    quire_result result = quire_memory_create(t->setup.device, NULL, &t->memory);
    if (!result)
        result = quire_memory_get_info(t->memory, &info);
    if (!result)
        result = quire_device_get_info(t->setup.device, &device);
    quire_memory_destroy_all(&t->memory);
    if (result)
        return result;
    uint64_t heap = device.heaps[device.kinds[info.kind].heap].size;
    const quire_limits *limits = &device.limits;
    uint64_t largest = limits->usual_page ? limits->usual_page : limits->max_page;
    scope->least_page = limits->page_granularity;
    scope->max_page = largest && largest < heap ? largest : heap;
    scope->max_pages = limits->max_pages;
    return QUIRE_SUCCESS;
}

/* Allocates the lists and fills the candidates. Returns -1, or prints the error. */
static int choose_candidates(tuning *t)
{
    const replay_setup *p = &t->setup;
    candidate_scope scope = {
        .peak_bytes = p->info.peak_bytes,
        .largest = p->info.largest,
        .fit = t->fit,
        .page_size = t->page_size,
        .elastic = t->elastic,
    };
    if (!p->info.alloc_count) {
        print_problem("%s: contains no allocations, so no candidate can be ranked", p->path);
        return EXIT_FAILED;
    }
    if (read_device_limits(t, &scope))
        return fail_with_last_error();
    t->candidates = calloc(MAX_CANDIDATES, sizeof *t->candidates);
    t->trials = calloc(MAX_CANDIDATES, sizeof *t->trials);
    t->ranking = calloc(MAX_CANDIDATES, sizeof *t->ranking);
    if (!t->candidates || !t->trials || !t->ranking) {
        fprintf(stderr, "quire: no host memory for the candidates\n");
        return EXIT_FAILED;
    }
    t->candidate_count = (uint32_t)make_candidates(&scope, t->candidates);
    if (!t->candidate_count)
        skip_candidate(t, "the linear fit uses one page, and the device's largest page is smaller "
                          "than the peak of the trace");
    return -1;
}

/* ---- the recommendation ------------------------------------------------------------------- */

/* From here on `place` is an index into the ranking. */
static const trial *trial_at(const tuning *t, uint32_t place)
{
    return &t->trials[t->ranking[place].number];
}

/* Whether the candidate leaves every option at the library's default. */
static bool is_default(const tuning *t, uint32_t place)
{
    return !t->ranking[place].options_set;
}

static double ratio_of(const ranked *r)
{
    return (double)r->reserved_bytes / (double)r->requested_bytes;
}

/* The place of the library's defaults; trial_count if no trial has them. */
static uint32_t find_default(const tuning *t)
{
    uint32_t place = 0;
    while (place < t->trial_count && !is_default(t, place))
        place++;
    return place;
}

static void cost_text(const ranked *r, char *buffer, size_t size)
{
    snprintf(buffer, size, "%.4f times peak requested with %" PRIu64 " backend call%s (score %.4f)",
             ratio_of(r), r->backend_calls, plural(r->backend_calls), r->score);
}

/* The reason for the recommendation, as the second half of a sentence. */
static candidate_text reason_text(const tuning *t)
{
    const ranked *r = &t->ranking[t->recommended], *best = t->ranking;
    uint32_t place = find_default(t);
    const ranked *usual =
        place < t->trial_count && place != t->recommended ? &t->ranking[place] : r;
    char cost[128], beside[160] = "", above[160] = "";
    cost_text(usual, cost, sizeof cost);
    if (usual->failures)
        snprintf(beside, sizeof beside, "; with the defaults %" PRIu64 " allocation%s fail%s",
                 usual->failures, plural(usual->failures), usual->failures == 1 ? "s" : "");
    else if (usual != r)
        snprintf(beside, sizeof beside, "; the defaults reserve %s", cost);
    uint32_t more = best->options_set - r->options_set;
    if (best != r)
        snprintf(above, sizeof above,
                 "; the best score, %.4f, is less than %.2f better and needs %" PRIu32
                 " more option%s",
                 best->score, WORTH_AN_OPTION, more, plural(more));
    cost_text(r, cost, sizeof cost);
    bool is_linear = trial_at(t, t->recommended)->candidate.fit == QUIRE_FIT_LINEAR;
    candidate_text out;
    snprintf(out.text, sizeof out.text, "it reserves %s%s%s%s", cost, beside, above,
             is_linear ? "; the linear fit has one page and refuses a run with a higher peak" : "");
    return out;
}

static const char *kind_text(const candidate *c)
{
    return c->elastic ? "elastic" : fit_text(c->fit);
}

static void print_recommendation(const tuning *t)
{
    if (t->recommended == t->trial_count)
        return;
    const candidate *c = &trial_at(t, t->recommended)->candidate;
    printf("\n");
    print_wrapped(0, "Recommended: %s%s, %s %s%s, policy: %s, because %s.",
                  c->elastic ? "" : "fit ", kind_text(c), c->elastic ? "chunks" : "pages",
                  c->page_size ? "of " : "", candidate_pages_text(c).text,
                  candidate_policy_text(c).text, reason_text(t).text);
    printf("\n%s", candidate_c_text(c).text);
    quire_memory_options options = candidate_options(c);
    if (!candidate_options_set(c))
        return;
    printf("\nAs flags of quire replay and quire map:\n");
    char flags[SENTENCE] = "";
    FILE *text = fmemopen(flags, sizeof flags, "w");
    if (text) {
        print_member_flags(text, &options);
        fclose(text);
    }
    print_wrapped(2, "%s", flags);
}

/* ---- the table ---------------------------------------------------------------------------- */

/* Without --all the table ends after this many different results. */
enum { MAX_ROWS = 20 };

/* Columns of the table with all figures. A narrower output gets a table of 80 columns. */
enum { WIDE = 135 };

static qi_bytes_text size_or(uint64_t bytes, const char *none)
{
    qi_bytes_text text = qi_bytes(bytes);
    if (!bytes)
        snprintf(text.text, sizeof text.text, "%s", none);
    return text;
}

static qi_bytes_text kept_text(const candidate *c)
{
    return size_or(c->retained_bytes, c->retention == RETENTION_NONE ? "none" : "default");
}

static void print_header(bool is_wide)
{
    printf("\n%10s  %-10s %8s %8s %9s %8s", "", "", "", "first", "dedicated", "keeps");
    if (is_wide)
        printf(" %6s %6s %6s %10s %10s %6s %13s %13s", "", "", "", "reserved", "mean", "pages",
               "allocate, ns", "free, ns");
    printf("\n%10s  %-10s %8s %8s %9s %8s %6s %6s %6s", "score", "fit", "pages of", "page", "from",
           "empty", "ratio", "calls", "failed");
    if (is_wide)
        printf(" %10s %10s %6s %6s %6s %6s %6s", "peak", "reserved", "made", "p50", "p99", "p50",
               "p99");
    printf("\n");
}

/* The marks in front are explained by print_legend. */
static void print_row(const tuning *t, uint32_t place, bool is_wide)
{
    const ranked *r = &t->ranking[place];
    const trial *one = trial_at(t, place);
    const candidate *c = &one->candidate;
    const quire_replay_report *o = &one->report;
    char score[32] = "-";
    if (!r->failures)
        snprintf(score, sizeof score, "%.4f", r->score);
    printf("%c%c%c %6s  %-10s %8s %8s %9s %8s %6.4f %6" PRIu64 " %6" PRIu64,
           place == t->recommended ? '>' : ' ', r->pareto ? '*' : ' ',
           is_default(t, place) ? '=' : ' ', score, kind_text(c), candidate_pages_text(c).text,
           size_or(c->first_page_size, "-").text, size_or(c->dedicated_threshold, "-").text,
           kept_text(c).text, ratio_of(r), o->backend_calls, o->failures);
    if (is_wide)
        printf(" %10s %10s %6" PRIu64 " %6" PRIu64 " %6" PRIu64 " %6" PRIu64 " %6" PRIu64,
               qi_bytes(o->peak_reserved_bytes).text, qi_bytes(one->mean_reserved_bytes).text,
               o->pages_created, o->alloc_ns.p50, o->alloc_ns.p99, o->free_ns.p50, o->free_ns.p99);
    printf("\n");
}

/*
 * Returns the number of printed rows. Without --all it prints the first MAX_ROWS different results,
 * and in any case the recommended candidate and the defaults.
 */
static uint32_t print_rows(const tuning *t, bool is_wide)
{
    uint32_t ranks = 0, rows = 0;
    for (uint32_t i = 0; i < t->trial_count; i++) {
        bool is_own = t->ranking[i].alike == NOT_ALIKE;
        ranks += is_own;
        if (!t->all && i != t->recommended && !is_default(t, i) && (!is_own || ranks > MAX_ROWS))
            continue;
        print_row(t, i, is_wide);
        rows++;
    }
    return rows;
}

static void print_legend(const tuning *t, uint32_t rows)
{
    uint32_t alike = 0, pareto = 0;
    for (uint32_t i = 0; i < t->trial_count; i++) {
        alike += t->ranking[i].alike != NOT_ALIKE;
        pareto += t->ranking[i].pareto;
    }
    const char *own = alike == 1 ? "reserves and calls" : "reserve and call";
    printf("\n  >  recommended   =  the defaults   *  Pareto-optimal (%" PRIu32 ")\n", pareto);
    print_wrapped(2, "Pareto-optimal: less memory costs more backend calls, and the reverse");
    print_wrapped(2, "score: peak reserved / peak requested (ratio) + backend calls / (allocations "
                     "+ frees); lower is better");
    if (rows < t->trial_count)
        print_wrapped(2,
                      "%" PRIu32 " of %" PRIu32 " candidates shown; %" PRIu32
                      " %s exactly as much as one above; --all shows every candidate",
                      rows, t->trial_count, alike, own);
}

/* Prints the table, the recommendation and a C initializer of the recommended options. */
static void print_tuning(const tuning *t)
{
    const quire_trace_info *info = &t->setup.info;
    print_clean(stdout, "%s", t->setup.path);
    printf(" on backend %s\n", backend_of(&t->setup.choice));
    print_wrapped(0,
                  "%" PRIu32 " candidate%s; %" PRIu64 " allocation%s and %" PRIu64
                  " free%s, peak requested %s",
                  t->trial_count, plural(t->trial_count), info->alloc_count,
                  plural(info->alloc_count), info->free_count, plural(info->free_count),
                  qi_bytes(info->peak_bytes).text);
    if (t->trial_count) {
        bool is_wide = output_width() >= WIDE;
        print_header(is_wide);
        print_legend(t, print_rows(t, is_wide));
    }
    for (uint32_t i = 0; i < t->reason_count; i++) {
        printf("%s  skipped: %" PRIu32 " candidate%s: ", i ? "" : "\n", t->reasons[i].count,
               plural(t->reasons[i].count));
        print_clean(stdout, "%s", t->reasons[i].reason);
        printf("\n");
    }
    print_recommendation(t);
}

/* ---- JSON --------------------------------------------------------------------------------- */

/* The keys from `operations` on are those of quire replay, written by write_report. */
static void write_candidate(qi_json *json, const tuning *t, uint32_t place)
{
    const ranked *r = &t->ranking[place];
    const trial *one = trial_at(t, place);
    quire_memory_options options = candidate_options(&one->candidate);
    qi_json_object(json, NULL);
    write_members(json, "options", &options);
    qi_json_number(json, "options_set", r->options_set);
    if (r->failures)
        qi_json_null(json, "score");
    else
        qi_json_real(json, "score", r->score);
    qi_json_bool(json, "pareto", r->pareto);
    if (r->alike == NOT_ALIKE)
        qi_json_null(json, "same_as");
    else
        qi_json_number(json, "same_as", r->alike);
    qi_json_number(json, "mean_reserved_bytes", one->mean_reserved_bytes);
    write_report(json, &one->report);
    qi_json_end_object(json);
}

static void write_recommendation(qi_json *json, const tuning *t)
{
    if (t->recommended == t->trial_count) {
        qi_json_null(json, "recommendation");
        return;
    }
    const candidate *c = &trial_at(t, t->recommended)->candidate;
    quire_memory_options options = candidate_options(c);
    qi_json_object(json, "recommendation");
    qi_json_number(json, "candidate", t->recommended);
    qi_json_text(json, "reason", reason_text(t).text);
    write_members(json, "options", &options);
    qi_json_text(json, "c", candidate_c_text(c).text);
    qi_json_end_object(json);
}

/* Prints one JSON object; docs/formats.md lists the keys. */
static quire_result write_tuning(const tuning *t)
{
    qi_json json;
    qi_json_init(&json, write_to_file, stdout);
    qi_json_object(&json, NULL);
    qi_json_text(&json, "trace", t->setup.path);
    qi_json_text(&json, "backend", backend_of(&t->setup.choice));
    qi_json_number(&json, "peak_bytes", t->setup.info.peak_bytes);
    qi_json_array(&json, "candidates");
    for (uint32_t i = 0; i < t->trial_count; i++)
        write_candidate(&json, t, i);
    qi_json_end_array(&json);
    qi_json_array(&json, "left_out");
    for (uint32_t i = 0; i < t->reason_count; i++) {
        qi_json_object(&json, NULL);
        qi_json_number(&json, "candidates", t->reasons[i].count);
        qi_json_text(&json, "reason", t->reasons[i].reason);
        qi_json_end_object(&json);
    }
    qi_json_end_array(&json);
    write_recommendation(&json, t);
    qi_json_end_object(&json);
    return qi_json_finish(&json);
}

/* ---- run ---------------------------------------------------------------------------------- */

/* Prints the table even if no candidate is recommended; then the exit code is EXIT_FAILED. */
static int show(const tuning *t)
{
    int code = EXIT_OK;
    if (!t->json)
        print_tuning(t);
    else if (write_tuning(t))
        code = fail_with_last_error();
    if (t->recommended == t->trial_count) {
        const char *why = *t->refusal ? t->refusal : t->reasons->reason;
        print_problem("quire: no candidate serves the trace without failures: %s", why);
        code = EXIT_FAILED;
    }
    return code;
}

int run_tune(const command *self, int argc, char **argv)
{
    tuning t = {.fit = ANY_FIT, .seconds = DEFAULT_SECONDS, .title = "tune"};
    replay_setup *p = &t.setup;
    const option_spec specs[] = {
        DEVICE_OPTIONS(&p->choice),
        {"fit", "F", "try only one: segregated, first, buddy or linear\n(default: all but linear)",
         OPTION_FIT, &t.fit},
        {"page-size", "N", "try only pages of N bytes", OPTION_SIZE, &t.page_size},
        {"time-limit", "SECONDS",
         "end the search after about this time (default 60;\n"
         "0: no limit)",
         OPTION_NUMBER, &t.seconds},
        {"elastic", NULL, "try elastic memories too", OPTION_FLAG, &t.elastic},
        {"all", NULL, "show every candidate, not only the best", OPTION_FLAG, &t.all},
        {"json", NULL, "print every candidate as one JSON object", OPTION_FLAG, &t.json},
    };
    int code = parse_options(self, argc, argv, specs, sizeof specs / sizeof *specs, &p->path);
    if (code >= 0)
        return code;
    if (t.seconds > MAX_SECONDS)
        return bad_usage(self, "--time-limit takes 0 to %d seconds", MAX_SECONDS);
    code = open_trace_and_device(self, p);
    if (code < 0)
        code = choose_candidates(&t);
    if (code < 0)
        code = try_all(&t);
    if (code < 0)
        code = show(&t);
    free(t.candidates);
    free(t.trials);
    free(t.ranking);
    return close_replay(p, code);
}
