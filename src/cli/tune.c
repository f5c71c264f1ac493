/*
 * tune.c - quire tune: plays a trace on memories that are set up in many ways and recommends one.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/result.h"
#include "src/cli/tuning.h"

/* ---- what is left out --------------------------------------------------------------------- */

static void leave_out(tuning *t, const char *reason)
{
    uint32_t i = 0;
    while (i < t->reason_count && strcmp(t->reasons[i].reason, reason))
        i++;
    if (i == MAX_REASONS) { /* more than are told one by one */
        i--;
        reason = "for these and other reasons";
    }
    t->reason_count += i == t->reason_count;
    t->reasons[i].count++;
    if (t->reasons[i].reason != reason)
        snprintf(t->reasons[i].reason, SENTENCE, "%s", reason);
}

/* ---- trials ------------------------------------------------------------------------------- */

static bool on_progress(void *user, uint64_t done, uint64_t total)
{
    tuning *t = user;
    quire_memory_stats stats;
    qi_ignore(quire_memory_get_stats(t->memory, &stats));
    t->sum_reserved_bytes += stats.reserved_bytes;
    t->samples++;
    if (done < total) /* the bar ends once, after the last candidate */
        show_progress(&t->bar, t->trying * total + done, t->candidate_count * total);
    return true;
}

static void keep_trial(tuning *t, const candidate *c, const quire_replay_report *report)
{
    if (report->failures && report->failures < t->fewest_refusals) {
        t->fewest_refusals = report->failures;
        snprintf(t->refusal, sizeof t->refusal, "%s", quire_last_error());
    }
    t->served += !report->failures;
    if (report->failures && c->fit == QUIRE_FIT_LINEAR && t->served) { /* it is the fit's doing */
        leave_out(t, "the linear fit refuses allocations in its one page: what was freed there is "
                     "used again only once all older or all newer ranges are gone");
        return;
    }
    uint64_t mean = t->samples ? t->sum_reserved_bytes / t->samples : 0;
    t->trials[t->trial_count++] = (trial){*c, *report, mean};
}

/* Plays the trace on a memory set up as the candidate; returns -1, or the exit code. */
static int try_candidate(tuning *t, const candidate *c)
{
    quire_memory_options options = candidate_options(c);
    quire_result result = quire_memory_create(t->playing.device, &options, &t->memory);
    if (result == QUIRE_ERROR_UNSUPPORTED) {
        leave_out(t, quire_last_error());
        return -1;
    }
    if (result)
        return fail_with_last_error();
    quire_replay_options how = {.keep = true, .progress = on_progress, .user = t};
    quire_replay_report report;
    t->sum_reserved_bytes = t->samples = 0;
    result = quire_trace_replay(t->playing.trace, t->memory, &how, &report);
    if (!result)
        keep_trial(t, c, &report);
    quire_memory_destroy_all(&t->memory);
    return result ? fail_with_last_error() : -1;
}

static int try_all(tuning *t)
{
    int code = -1;
    for (t->trying = 0; t->trying < t->candidate_count && code < 0; t->trying++)
        code = try_candidate(t, &t->candidates[t->trying]);
    show_progress(&t->bar, t->trying, t->candidate_count);
    end_progress(&t->bar);
    return code;
}

static void rank_trials(tuning *t)
{
    const quire_trace_info *info = &t->playing.info;
    for (uint32_t i = 0; i < t->trial_count; i++) {
        const trial *one = &t->trials[i];
        t->ranking[i] = (ranked){
            .number = i,
            .options_set = candidate_options_set(&one->candidate),
            .failures = one->report.failures,
            .asked_bytes = info->peak_bytes,
            .reserved_bytes = one->report.peak_reserved_bytes,
            .backend_calls = one->report.backend_calls,
            .operations = info->alloc_count + info->free_count,
        };
    }
    rank(t->ranking, t->trial_count);
    t->recommended = (uint32_t)recommend(t->ranking, t->trial_count);
}

/* ---- candidates --------------------------------------------------------------------------- */

/* What the device gives a memory without options. */
static quire_result look_at_device(tuning *t, candidate_scope *scope)
{
    quire_memory_info info;
    quire_device_info device;
    quire_result result = quire_memory_create(t->playing.device, NULL, &t->memory);
    if (!result)
        result = quire_memory_get_info(t->memory, &info);
    if (!result)
        result = quire_device_get_info(t->playing.device, &device);
    quire_memory_destroy_all(&t->memory);
    if (result)
        return result;
    uint64_t heap = device.heaps[device.kinds[info.kind].heap].size;
    uint64_t largest = device.limits.max_page;
    scope->default_page_size = info.page_size;
    scope->least_page = device.limits.page_granularity;
    scope->max_page = largest && largest < heap ? largest : heap;
    scope->max_pages = device.limits.max_pages;
    return QUIRE_SUCCESS;
}

static int choose_candidates(tuning *t)
{
    const playing *p = &t->playing;
    candidate_scope scope = {
        .peak_bytes = p->info.peak_bytes,
        .largest = p->info.largest,
        .fit = p->fit,
        .page_size = p->page_size,
    };
    if (!p->info.alloc_count) {
        print_problem("%s: it has no allocations, so that there is nothing to choose by", p->path);
        return EXIT_FAILED;
    }
    if (look_at_device(t, &scope))
        return fail_with_last_error();
    t->candidates = calloc(MAX_CANDIDATES, sizeof *t->candidates);
    t->trials = calloc(MAX_CANDIDATES, sizeof *t->trials);
    t->ranking = calloc(MAX_CANDIDATES, sizeof *t->ranking);
    if (!t->candidates || !t->trials || !t->ranking) {
        fprintf(stderr, "quire: no memory for the candidates\n");
        return EXIT_FAILED;
    }
    t->candidate_count = (uint32_t)make_candidates(&scope, t->candidates);
    if ((p->fit == ANY_FIT || p->fit == QUIRE_FIT_LINEAR) &&
        t->candidates[t->candidate_count - 1].fit != QUIRE_FIT_LINEAR)
        leave_out(t, "the linear fit works in one page, and the device makes none that holds all "
                     "that the trace has live at one time");
    return -1;
}

/* ---- run ---------------------------------------------------------------------------------- */

static int show(const tuning *t)
{
    int code = EXIT_OK;
    if (!t->json)
        print_tuning(t);
    else if (write_tuning(t))
        code = fail_with_last_error();
    if (t->recommended == t->trial_count) {
        const char *why = *t->refusal ? t->refusal : t->reasons->reason;
        print_problem("quire: no candidate serves the whole trace: %s", why);
        code = EXIT_FAILED;
    }
    return code;
}

int run_tune(const command *self, int argc, char **argv)
{
    tuning t = {.bar = {.what = "tune"}, .fewest_refusals = UINT64_MAX};
    playing *p = &t.playing;
    p->fit = ANY_FIT;
    const option_spec specs[] = {
        DEVICE_OPTIONS(&p->choice),
        {"fit", "F", "try segregated, first, buddy or linear only", OPTION_FIT, &p->fit},
        {"page-size", "N", "try pages of N bytes only", OPTION_SIZE, &p->page_size},
        {"all", NULL, "show every candidate, not only the best", OPTION_FLAG, &t.all},
        {"json", NULL, "print every candidate as one JSON object", OPTION_FLAG, &t.json},
    };
    int code = parse_options(self, argc, argv, specs, sizeof specs / sizeof *specs, &p->path);
    if (code >= 0)
        return code;
    code = open_playing(self, p);
    if (code < 0)
        code = choose_candidates(&t);
    if (code < 0)
        code = try_all(&t);
    if (code < 0) {
        rank_trials(&t);
        code = show(&t);
    }
    free(t.candidates);
    free(t.trials);
    free(t.ranking);
    return end_playing(p, code);
}
