/*
 * tune_print.c - prints the results of quire tune as a table with a recommendation, or as JSON.
 */
#include <inttypes.h>

#include "src/base/json.h"
#include "src/base/result.h"
#include "src/tool/report.h"
#include "src/tool/tuning.h"

/* Without --all the table ends after this many different results. */
enum { MAX_ROWS = 20 };

/* In this file `place` is an index into the ranking. */
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

/* ---- the recommendation ------------------------------------------------------------------- */

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

static void print_recommendation(const tuning *t)
{
    if (t->recommended == t->trial_count)
        return;
    const candidate *c = &trial_at(t, t->recommended)->candidate;
    printf("\n");
    print_wrapped(0, "Recommended: fit %s, pages %s%s, policy: %s, because %s.", fit_text(c->fit),
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
           is_default(t, place) ? '=' : ' ', score, fit_text(c->fit), candidate_pages_text(c).text,
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

void print_tuning(const tuning *t)
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

quire_result write_tuning(const tuning *t)
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
