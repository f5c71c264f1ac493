/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * replay.c - quire replay: replays a trace on a memory and reports the cost in bytes and time.
 */
#include <inttypes.h>

#include "quire/compact.h"
#include "src/base/json.h"
#include "src/base/result.h"
#include "src/base/system.h"
#include "src/tool/html.h"
#include "src/tool/page/replay_course.h"
#include "src/tool/plan.h"

typedef struct replay_run {
    replay_setup setup;
    output svg, html;
    bool json;
    bool plan;            /* option --plan */
    quire_plan_info best; /* with it: of a plan of the trace */
    uint64_t compact;     /* option --compact: moves after each interval; 0: none */
    quire_compaction *compaction;
    quire_compact_stats moved;
    uint64_t steps, step_ns;
    quire_result failed; /* of the first step that did */
    progress bar;
    replay_course course;
    quire_replay_report report;
} replay_run;

/* ---- report ------------------------------------------------------------------------------- */

static void print_latency(const char *what, const quire_latency *ns)
{
    printf("  %-22s %8" PRIu64 " %8" PRIu64 " %8" PRIu64 " %8" PRIu64 "\n", what, ns->p50, ns->p99,
           ns->p999, ns->max);
}

static void print_counts(const quire_replay_report *o)
{
    printf("  events                 %" PRIu64 ": %" PRIu64 " allocation%s, %" PRIu64
           " free%s, %" PRIu64 " use%s, %" PRIu64 " frame%s\n",
           o->operations, o->allocations, plural(o->allocations), o->frees, plural(o->frees),
           o->uses, plural(o->uses), o->frames, plural(o->frames));
    printf("  failures               %" PRIu64 "\n", o->failures);
    printf("  live at the end        %" PRIu64 " allocation%s, %s\n", o->left_at_end,
           plural(o->left_at_end), qi_bytes(o->left_bytes).text);
}

/* Of what size the pages are, or the chunks of an elastic memory. */
static void print_sizes(const memory_choice *choice, uint64_t page_size)
{
    const qi_bytes_text size = qi_bytes(page_size);
    if (choice->options.elastic)
        printf("elastic, chunks of %s\n\n", size.text);
    else if (choice->preset)
        printf("pages %s's, from %s\n\n", choice->preset, size.text);
    else
        printf("pages %s %s\n\n", follows_use(&choice->options) ? "by use, from" : "of", size.text);
}

static void print_plan(const quire_plan_info *best, uint64_t requested)
{
    printf("  a plan needs           %s, %.4f times peak requested%s\n",
           qi_bytes(best->peak_bytes).text,
           requested ? (double)best->peak_bytes / (double)requested : 0,
           best->proven_optimal ? "; no plan needs less" : "");
}

static void print_compaction(const replay_run *r)
{
    const quire_compact_stats *m = &r->moved;
    printf("  compaction             %" PRIu64 " move%s of %s in %" PRIu64 " step%s; %" PRIu64
           " page%s freed, %s;\n",
           m->moves, plural(m->moves), qi_bytes(m->bytes_moved).text, r->steps, plural(r->steps),
           m->pages_freed, plural(m->pages_freed), qi_bytes(m->bytes_freed).text);
    printf("                         %.2f ms without copies\n", (double)r->step_ns / 1e6);
}

/* The path comes from the command line and is printed without control characters. */
static void print_text(const replay_run *r, uint64_t page_size)
{
    const quire_replay_report *o = &r->report;
    double ratio = o->peak_requested_bytes
                       ? (double)o->peak_reserved_bytes / (double)o->peak_requested_bytes
                       : 0;
    print_clean(stdout, "%s", r->setup.path);
    const memory_choice *choice = &r->setup.memory_choice;
    printf(" on backend %s, fit %s, ", backend_of(&r->setup.choice),
           fit_text(choice->options.fit.algorithm));
    print_sizes(choice, page_size);
    print_counts(o);
    printf("  peak requested         %s\n", qi_bytes(o->peak_requested_bytes).text);
    printf("  peak held              %s\n", qi_bytes(o->peak_live_bytes).text);
    printf("  peak reserved          %s, %.4f times peak requested\n",
           qi_bytes(o->peak_reserved_bytes).text, ratio);
    if (r->plan)
        print_plan(&r->best, o->peak_requested_bytes);
    if (r->compact)
        print_compaction(r);
    printf("  pages                  %" PRIu64 " created, %" PRIu64 " destroyed, peak %" PRIu64
           "\n",
           o->pages_created, o->pages_destroyed, o->peak_pages);
    printf("  backend calls          %" PRIu64 "\n", o->backend_calls);
    printf("  metadata               peak %s\n", qi_bytes(o->metadata_bytes_peak).text);
    printf("  fragmentation          %.4f (1 - peak held / peak reserved)\n",
           o->fragmentation.reserved);
    printf("    at peak requested    %.4f of the free bytes outside the largest free range;\n"
           "                         %s unused inside allocations; %s free in used pages\n",
           o->fragmentation.free, qi_bytes(o->fragmentation.internal).text,
           qi_bytes(o->fragmentation.split).text);
    printf("\n  %-22s %8s %8s %8s %8s\n", "nanoseconds", "p50", "p99", "p99.9", "max");
    print_latency("allocate", &o->alloc_ns);
    print_latency("free", &o->free_ns);
    printf("  %-22s %8.2f ms\n", "whole replay", (double)o->wall_ns / 1e6);
}

static void write_compaction(qi_json *json, const replay_run *r)
{
    qi_json_object(json, "compaction");
    qi_json_number(json, "moves", r->moved.moves);
    qi_json_number(json, "bytes_moved", r->moved.bytes_moved);
    qi_json_number(json, "pages_freed", r->moved.pages_freed);
    qi_json_number(json, "bytes_freed", r->moved.bytes_freed);
    qi_json_number(json, "steps", r->steps);
    qi_json_number(json, "step_ns", r->step_ns);
    qi_json_end_object(json);
}

static quire_result write_json(const replay_run *r, uint64_t page_size)
{
    qi_json json;
    qi_json_init(&json, write_to_file, stdout);
    qi_json_object(&json, NULL);
    qi_json_text(&json, "trace", r->setup.path);
    qi_json_text(&json, "backend", backend_of(&r->setup.choice));
    qi_json_text(&json, "fit", fit_text(r->setup.memory_choice.options.fit.algorithm));
    qi_json_number(&json, "page_size", page_size);
    if (r->setup.memory_choice.preset) /* it may have page classes, which are no members */
        qi_json_text(&json, "preset", r->setup.memory_choice.preset);
    write_members(&json, "options", &r->setup.memory_choice.options);
    write_report(&json, &r->report);
    if (r->plan) {
        qi_json_object(&json, "plan");
        qi_json_number(&json, "peak_bytes", r->best.peak_bytes);
        qi_json_number(&json, "lower_bound_bytes", r->best.lower_bound_bytes);
        qi_json_bool(&json, "proven_optimal", r->best.proven_optimal);
        qi_json_end_object(&json);
    }
    if (r->compact)
        write_compaction(&json, r);
    qi_json_end_object(&json);
    return qi_json_finish(&json);
}

/* ---- compaction --------------------------------------------------------------------------- */

/* Events between two steps. */
enum { INTERVAL = 100 };

/* Moves up to r->compact allocations. The replay has no contents, so nothing is copied: moves are
   accepted as they are offered. A limit on records keeps steps short in memories of many pages. */
static quire_result move_some(replay_run *r)
{
    const quire_compact_limits limits = {.moves = 1, .records = 2000};
    for (uint64_t n = 0; n < r->compact; n++) {
        quire_compact_move move;
        uint64_t count;
        quire_result result = quire_compact_offer(r->compaction, &limits, &move, 1, &count, NULL);
        if (!result && count)
            result = quire_compact_accept(r->compaction, &move, NULL);
        if (result || !count)
            return result;
    }
    return QUIRE_SUCCESS;
}

static void compact(replay_run *r)
{
    const uint64_t begin = qi_clock();
    if (r->failed)
        return;
    r->failed = move_some(r);
    r->step_ns += qi_clock() - begin;
    r->steps++;
}

static quire_result end_compaction(replay_run *r)
{
    const quire_result result =
        r->compaction ? quire_compact_get_stats(r->compaction, &r->moved) : QUIRE_SUCCESS;
    quire_compact_end(&r->compaction);
    return r->failed ? r->failed : result;
}

/* ---- run ---------------------------------------------------------------------------------- */

/* With a page the replay calls this after each event. The bar needs far fewer calls. */
static bool on_progress(void *user, uint64_t done, uint64_t total)
{
    replay_run *r = user;
    if (r->compact) {
        if (done > 0)
            compact(r);
        return !r->failed && show_progress_of_each(&r->bar, done, total);
    }
    if (!r->html.path)
        return show_progress(&r->bar, done, total);
    replay_course_step(&r->course, done);
    return show_progress_of_each(&r->bar, done, total);
}

static quire_result write_svg(void *memory, quire_sink sink, void *user)
{
    return quire_memory_write_svg(memory, sink, user);
}

/*
 * Replays the trace and prints the report even if allocations failed; then the exit code is
 * EXIT_FAILED and the first error is printed. Keeps the live allocations for the page map.
 */
static int play(replay_run *r)
{
    quire_replay_options options = {
        .keep = true,
        .name = r->svg.path || r->html.path,
        .progress = on_progress,
        .user = r,
        .progress_events = r->html.path ? 1
                           : r->compact ? INTERVAL
                                        : 0,
        .time = &r->setup.time,
    };
    quire_memory_info info;
    quire_result result = r->plan ? plan_trace(r->setup.trace, &r->best) : QUIRE_SUCCESS;
    if (!result)
        result = quire_memory_get_info(r->setup.memory, &info);
    if (!result && r->compact)
        result = quire_compact_begin(r->setup.memory, &r->compaction);
    if (!result)
        result = quire_trace_replay(r->setup.trace, r->setup.memory, &options, &r->report);
    const quire_result moved = end_compaction(r);
    result = moved ? moved : result;
    end_progress(&r->bar);
    if (result)
        return fail_with_last_error();
    int code = r->report.failures ? fail_with_last_error() : EXIT_OK;
    if (r->json && write_json(r, info.page_size))
        code = fail_with_last_error();
    else if (!r->json && !is_standard(r->svg.path) && !is_standard(r->html.path))
        print_text(r, info.page_size);
    if (r->svg.path && !write_output(&r->svg, write_svg, r->setup.memory))
        code = EXIT_FAILED;
    html_source page = {&r->course.course, &r->setup, &info, &r->report};
    if (r->html.path &&
        (!replay_course_stop(&r->course) || !write_output(&r->html, write_html, &page)))
        code = EXIT_FAILED;
    return code;
}

int run_replay(const command *self, int argc, char **argv)
{
    replay_run r = {.bar = {.what = "replay"}};
    replay_setup *p = &r.setup;
    option_spec specs[MAX_OPTIONS] = {
        DEVICE_OPTIONS(&p->choice),
        {"svg", "FILE", "draw the pages after the last event (-: standard output)", OPTION_TEXT,
         &r.svg.path},
        {"html", "FILE", "write chart, report and pages as HTML (-: likewise)", OPTION_TEXT,
         &r.html.path},
        {"plan", NULL, "state what a plan of the trace needs", OPTION_FLAG, &r.plan},
        {"compact", "N", "move up to N allocations after 100 events each", OPTION_NUMBER,
         &r.compact},
        {"json", NULL, "print one JSON object", OPTION_FLAG, &r.json},
    };
    size_t count = count_options(specs);
    count += list_member_flags(specs + count, &p->memory_choice);
    int code = parse_options(self, argc, argv, specs, count, &p->path);
    if (code >= 0)
        return code;
    if (r.compact && r.html.path)
        return bad_usage(self, "the page of --html does not show moves: leave out --compact");
    p->memory_choice.options.movable = r.compact;
    if (r.json + is_standard(r.svg.path) + is_standard(r.html.path) > 1)
        return bad_usage(self, "standard output takes one of --json, --svg and --html");
    if (is_same_file(r.svg.path, r.html.path) || is_same_file(r.svg.path, p->path) ||
        is_same_file(r.html.path, p->path))
        return bad_usage(self, "the trace, --svg and --html must be different files");
    code = open_replay(self, p);
    if (code < 0 && (!open_output(&r.svg) || !open_output(&r.html)))
        code = EXIT_FAILED;
    if (code < 0 && r.html.path && !replay_course_begin(&r.course, p))
        code = EXIT_FAILED;
    if (code < 0)
        code = play(&r);
    replay_course_end(&r.course);
    close_output(&r.svg);
    close_output(&r.html);
    return close_replay(p, code);
}
