/*
 * tune.c - quire tune: replays a trace on memories with different options and recommends one set of
 * options.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/result.h"
#include "src/base/system.h"
#include "src/tool/tuning.h"

enum { DEFAULT_SECONDS = 60, MAX_SECONDS = 1000000 };

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
