/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * tune.c - quire tune: each round replays a longer part of the traces, with several scales of their
 * sizes, with fewer candidates: those of least cost in the round before. Recommends one set of
 * options from the last round.
 */
#include "src/tool/tune.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/base/system.h"

enum { DEFAULT_SECONDS = 60, MAX_SECONDS = 1000000 };

/* Near the recorded sizes, because there the last page is full with one size and almost empty with
   the next. And twice as large, because the backend calls of small pages grow with the memory. */
const uint32_t tune_scales[SCALES] = {100, 80, 90, 110, 125, 200};

size_t tuning_replays(const tuning *t)
{
    return t->trace_count * SCALES;
}

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
    uint64_t replays = tuning_replays(t), before = t->trying * replays + t->replaying;
    if (done < total) /* try_round completes the bar after the last candidate */
        show_progress(&t->bar, before * total + done, t->candidate_count * replays * total);
    return true;
}

/* Runs right after the replay, whose first error is still the thread's last error. */
static void keep_cost(tuning *t, const quire_replay_report *report)
{
    trial *one = &t->trials[t->trial_count];
    uint64_t operations = report->allocations + report->frees;
    if (report->failures && report->failures < t->fewest_refusals) {
        t->fewest_refusals = report->failures;
        snprintf(t->refusal, sizeof t->refusal, "%s", quire_last_error());
    }
    one->costs[t->replaying] = (replay_cost){
        .failures = report->failures,
        .requested_bytes = report->peak_requested_bytes ? report->peak_requested_bytes : 1,
        .reserved_bytes = report->peak_reserved_bytes,
        .backend_calls = report->backend_calls,
        .operations = operations ? operations : 1,
    };
    if (t->replaying)
        return;
    one->report = *report;
    one->mean_reserved_bytes = t->samples ? t->sum_reserved_bytes / t->samples : 0;
}

/* Replay number t->replaying of a candidate. Returns QUIRE_ERROR_UNSUPPORTED if the device does not
   offer it. */
static quire_result replay_once(tuning *t, const candidate *c, uint64_t events)
{
    quire_memory_options options = candidate_options(c);
    options.clock = trace_clock(&t->setup);
    quire_result result = quire_memory_create(t->setup.device, &options, &t->memory);
    if (result)
        return result;
    quire_replay_options how = {.event_count = events,
                                .keep = true,
                                .progress = on_progress,
                                .user = t,
                                .time = &t->setup.time,
                                .size_percent = tune_scales[t->replaying % SCALES]};
    quire_replay_report report;
    t->sum_reserved_bytes = t->samples = 0;
    result = quire_trace_replay(t->traces[t->replaying / SCALES].trace, t->memory, &how, &report);
    if (!result)
        keep_cost(t, &report);
    quire_memory_destroy_all(&t->memory);
    return result;
}

/*
 * Replays the first events of every trace, or all if `events` is 0, with every scale, on memories
 * with the candidate's options. Returns -1, or the exit code.
 */
static int try_candidate(tuning *t, const candidate *c, uint64_t events)
{
    quire_result result = QUIRE_SUCCESS;
    trial *one = &t->trials[t->trial_count];
    *one = (trial){.candidate = *c, .costs = t->costs + t->trial_count * tuning_replays(t)};
    for (t->replaying = 0; t->replaying < tuning_replays(t) && !result; t->replaying++)
        result = replay_once(t, c, events);
    if (result == QUIRE_ERROR_UNSUPPORTED) {
        skip_candidate(t, quire_last_error());
        return -1;
    }
    t->trial_count += !result;
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
    for (uint32_t i = 0; i < t->trial_count; i++)
        t->ranking[i] = (ranked){
            .number = i,
            .options_set = candidate_options_set(&t->trials[i].candidate),
            .costs = t->trials[i].costs,
        };
    for (size_t i = 0; i < tuning_replays(t); i++)
        t->counts[i] = tune_scales[i % SCALES] == 100;
    rank(t->ranking, t->trial_count, t->counts, tuning_replays(t));
    t->recommended = (uint32_t)recommend(t->ranking, t->trial_count);
}

/* ---- rounds ------------------------------------------------------------------------------- */

/*
 * A trace of many events is not replayed with every candidate. Rounds of at most ROUND_EVENTS
 * events each try the candidates on a part of every trace from the start, keep the best, and take a
 * part that is NARROWING times as long, until FINALISTS are left or the part is the whole of the
 * longest trace. The rounds depend on the traces only, so that the result is the same on every
 * machine.
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
    uint64_t whole = 0, begin = qi_clock(), all = t->candidate_count * tuning_replays(t);
    for (size_t i = 0; i < t->trace_count; i++)
        qi_raise(&whole, t->traces[i].info.event_count);
    uint64_t first = ROUND_EVENTS / (all ? all : 1), events = first;
    uint32_t rounds = 1, round = 1;
    for (uint32_t n = t->candidate_count; events < whole && n > FINALISTS; n = next_count(n)) {
        rounds++;
        events *= NARROWING;
    }
    t->deadline = t->seconds ? begin + t->seconds * 1000000000 : UINT64_MAX;
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
    t->wall_ns = qi_clock() - begin;
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
    candidate_scope scope = {
        .fit = t->fit,
        .page_size = t->page_size,
        .elastic = t->elastic,
    };
    for (size_t i = 0; i < t->trace_count; i++) {
        qi_raise(&scope.peak_bytes, t->traces[i].info.peak_bytes);
        qi_raise(&scope.largest, t->traces[i].info.largest);
    }
    if (read_device_limits(t, &scope))
        return fail_with_last_error();
    t->candidates = calloc(MAX_CANDIDATES, sizeof *t->candidates);
    t->trials = calloc(MAX_CANDIDATES, sizeof *t->trials);
    t->costs = calloc(MAX_CANDIDATES * tuning_replays(t), sizeof *t->costs);
    t->ranking = calloc(MAX_CANDIDATES, sizeof *t->ranking);
    if (!t->candidates || !t->trials || !t->costs || !t->ranking) {
        fprintf(stderr, "quire: no host memory for the candidates\n");
        return EXIT_FAILED;
    }
    t->candidate_count = (uint32_t)make_candidates(&scope, t->candidates);
    if (!t->candidate_count)
        skip_candidate(t, "the linear fit uses one page, and the device's largest page is smaller "
                          "than the peak of the trace");
    return -1;
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

/* Reads every trace. Returns -1, or prints the error and returns the exit code. */
static int load_traces(const command *self, tuning *t, char **paths, size_t count)
{
    size_t from_input = 0;
    for (size_t i = 0; i < count; i++)
        from_input += is_standard(paths[i]);
    if (count > MAX_TRACES)
        return bad_usage(self, "takes at most %d traces, not %zu", MAX_TRACES, count);
    if (from_input > 1)
        return bad_usage(self, "standard input is one trace, not %zu", from_input);
    for (size_t i = 0; i < count; i++) {
        tuned_trace *one = &t->traces[t->trace_count++];
        one->path = paths[i];
        int code = load_trace(one->path, &one->trace, &one->info);
        if (code >= 0)
            return code;
        if (!one->info.alloc_count) {
            print_problem("%s: contains no allocations, so no candidate can be ranked", one->path);
            return EXIT_FAILED;
        }
    }
    return -1;
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
    operands paths = {.least = 1, .most = SIZE_MAX};
    int code = parse_operands(self, argc, argv, specs, sizeof specs / sizeof *specs, &paths);
    if (code >= 0)
        return code;
    if (t.seconds > MAX_SECONDS)
        return bad_usage(self, "--time-limit takes 0 to %d seconds", MAX_SECONDS);
    code = load_traces(self, &t, paths.values, paths.count);
    if (code < 0)
        code = open_device(self, &p->choice, &p->device);
    if (code < 0)
        code = choose_candidates(&t);
    if (code < 0)
        code = try_all(&t);
    if (code < 0)
        code = show(&t);
    free(t.candidates);
    free(t.trials);
    free(t.costs);
    free(t.ranking);
    for (size_t i = 0; i < t.trace_count; i++)
        quire_trace_destroy(&t.traces[i].trace);
    return close_replay(p, code);
}
