/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * tune_output.c - what quire tune prints: the table of candidates, the replays of the recommended
 * one beside those of the defaults, the recommendation with its reason, and all of it as JSON.
 */
#include "src/tool/tune.h"

#include <inttypes.h>
#include <string.h>

#include "src/base/result.h"

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

static void cost_text(const ranked *r, char *buffer, size_t size)
{
    snprintf(buffer, size, "%.4f times peak requested with %" PRIu64 " backend call%s (score %.4f)",
             r->ratio, r->backend_calls, plural(r->backend_calls), r->score);
}

/* Why the best score is not the recommended one; "" if it is. */
static void why_not_best(const tuning *t, char *buffer, size_t size)
{
    const ranked *r = &t->ranking[t->recommended], *best = t->ranking;
    *buffer = '\0';
    if (best == r)
        return;
    if (!best->is_safe)
        snprintf(
            buffer, size,
            "; the best score, %.4f, is of a candidate that reserves more than the defaults in "
            "one of the replays",
            best->score);
    else if (!r->options_set)
        snprintf(buffer, size,
                 "; the best score, %.4f, is not better by %.2f, or by %.2f with the "
                 "sizes of the traces",
                 best->score, WORTH_A_CHANGE, WORTH_A_CHANGE_ITSELF);
    else
        snprintf(buffer, size, "; the best score, %.4f, does not justify more options",
                 best->score);
}

/* The reason for the recommendation, as the second half of a sentence. */
static candidate_text reason_text(const tuning *t)
{
    const ranked *r = &t->ranking[t->recommended];
    size_t place = find_defaults(t->ranking, t->trial_count);
    const ranked *usual =
        place < t->trial_count && place != t->recommended ? &t->ranking[place] : r;
    char cost[128], beside[160] = "", above[160] = "";
    cost_text(usual, cost, sizeof cost);
    if (usual->failures)
        snprintf(beside, sizeof beside,
                 "; with the defaults %" PRIu64 " allocation%s fail%s in the replays",
                 usual->failures, plural(usual->failures), usual->failures == 1 ? "s" : "");
    else if (usual != r)
        snprintf(beside, sizeof beside, "; the defaults reserve %s", cost);
    why_not_best(t, above, sizeof above);
    cost_text(r, cost, sizeof cost);
    bool is_linear = trial_at(t, t->recommended)->candidate.fit == QUIRE_FIT_LINEAR;
    candidate_text out;
    snprintf(out.text, sizeof out.text, "%s reserves %s%s%s%s",
             r->options_set ? "it" : "no candidate is safely better: it", cost, beside, above,
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
           kept_text(c).text, r->ratio, r->backend_calls, r->failures);
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

/* The replays that count. */
static size_t count_replays(const tuning *t)
{
    size_t count = 0;
    for (size_t i = 0; i < tuning_replays(t); i++)
        count += t->counts[i];
    return count;
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
    print_wrapped(2,
                  "score: peak reserved / peak requested (ratio) + backend calls / (allocations "
                  "+ frees), the mean of %zu replays; lower is better; calls and failed are sums",
                  count_replays(t));
    if (rows < t->trial_count)
        print_wrapped(2,
                      "%" PRIu32 " of %" PRIu32 " candidates shown; %" PRIu32
                      " %s exactly as much as one above; --all shows every candidate",
                      rows, t->trial_count, alike, own);
}

/* ---- the replays -------------------------------------------------------------------------- */

static void print_share(const replay_cost *cost)
{
    printf("  %9s %6.4f %6" PRIu64, qi_bytes(cost->reserved_bytes).text,
           (double)cost->reserved_bytes / (double)cost->requested_bytes, cost->backend_calls);
}

/* One row for each trace and scale: what the recommended candidate and the defaults reserve. */
static void print_replays(const tuning *t)
{
    size_t place = find_defaults(t->ranking, t->trial_count);
    bool both = place < t->trial_count && place != t->recommended;
    if (t->recommended == t->trial_count)
        return;
    printf("\n%-8s %-5s %9s  %-23s%s\n", "", "", "peak", both ? "  the recommended" : "",
           both ? "    the defaults" : "");
    printf("%-8s %5s %9s  %9s %6s %6s", "trace", "sizes", "requested", "reserved", "ratio",
           "calls");
    printf(both ? "  %9s %6s %6s\n" : "\n", "reserved", "ratio", "calls");
    for (size_t i = 0; i < tuning_replays(t); i++) {
        const replay_cost *cost = &trial_at(t, t->recommended)->costs[i];
        printf("%-8zu %4" PRIu32 "%% %9s", i / SCALES + 1, tune_scales[i % SCALES],
               qi_bytes(cost->requested_bytes).text);
        if (t->counts[i]) {
            print_share(cost);
            if (both)
                print_share(&trial_at(t, (uint32_t)place)->costs[i]);
        } else {
            printf("  does not count: no candidate fits the device");
        }
        printf("\n");
    }
}

/* ---- the text ----------------------------------------------------------------------------- */

static void print_traces(const tuning *t)
{
    for (size_t i = 0; i < t->trace_count; i++) {
        const quire_trace_info *info = &t->traces[i].info;
        print_clean(stdout, "%s", t->traces[i].path);
        if (!i)
            printf(" on backend %s", backend_of(&t->setup.choice));
        printf("\n");
        print_wrapped(2, "%" PRIu64 " allocation%s and %" PRIu64 " free%s, peak requested %s",
                      info->alloc_count, plural(info->alloc_count), info->free_count,
                      plural(info->free_count), qi_bytes(info->peak_bytes).text);
    }
    print_wrapped(0, "%" PRIu32 " candidate%s, each with %zu replays, in %.1f seconds",
                  t->trial_count, plural(t->trial_count), tuning_replays(t),
                  (double)t->wall_ns / 1e9);
}

void print_tuning(const tuning *t)
{
    print_traces(t);
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
    print_replays(t);
    print_recommendation(t);
}

/* ---- JSON --------------------------------------------------------------------------------- */

static void write_replays(qi_json *json, const tuning *t, const trial *one)
{
    qi_json_array(json, "replays");
    for (size_t i = 0; i < tuning_replays(t); i++) {
        const replay_cost *cost = &one->costs[i];
        qi_json_object(json, NULL);
        qi_json_text(json, "trace", t->traces[i / SCALES].path);
        qi_json_number(json, "size_percent", tune_scales[i % SCALES]);
        qi_json_bool(json, "counts", t->counts[i]);
        qi_json_number(json, "failures", cost->failures);
        qi_json_number(json, "peak_requested_bytes", cost->requested_bytes);
        qi_json_number(json, "peak_reserved_bytes", cost->reserved_bytes);
        qi_json_number(json, "backend_calls", cost->backend_calls);
        qi_json_number(json, "operations", cost->operations);
        qi_json_end_object(json);
    }
    qi_json_end_array(json);
}

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
    qi_json_bool(json, "safe", r->is_safe);
    qi_json_bool(json, "pareto", r->pareto);
    if (r->alike == NOT_ALIKE)
        qi_json_null(json, "same_as");
    else
        qi_json_number(json, "same_as", r->alike);
    write_replays(json, t, one);
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
    qi_json_text(&json, "trace", t->traces[0].path);
    qi_json_array(&json, "traces");
    for (size_t i = 0; i < t->trace_count; i++) {
        qi_json_object(&json, NULL);
        qi_json_text(&json, "trace", t->traces[i].path);
        qi_json_number(&json, "peak_bytes", t->traces[i].info.peak_bytes);
        qi_json_end_object(&json);
    }
    qi_json_end_array(&json);
    qi_json_text(&json, "backend", backend_of(&t->setup.choice));
    qi_json_number(&json, "peak_bytes", t->traces[0].info.peak_bytes);
    qi_json_number(&json, "wall_ns", t->wall_ns);
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
