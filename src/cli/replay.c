/*
 * replay.c - quire replay: plays a trace on a memory and reports what it cost.
 */
#include <inttypes.h>

#include "src/base/json.h"
#include "src/base/result.h"
#include "src/cli/report.h"
#include "src/cli/timeline.h"

typedef struct replaying {
    playing playing;
    const char *svg;
    const char *html;
    bool json;
    progress bar;
    timeline timeline;
    quire_replay_report report;
} replaying;

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
    printf("  left at the end        %" PRIu64 " allocation%s, %s\n", o->left_at_end,
           plural(o->left_at_end), qi_bytes(o->left_bytes).text);
}

static void print_text(const replaying *r, uint64_t page_size)
{
    const quire_replay_report *o = &r->report;
    double ratio = o->peak_requested_bytes
                       ? (double)o->peak_reserved_bytes / (double)o->peak_requested_bytes
                       : 0;
    print_clean(stdout, "%s", r->playing.path);
    printf(" on backend %s, fit %s, pages of %s\n\n", backend_of(&r->playing.choice),
           fit_text(r->playing.fit), qi_bytes(page_size).text);
    print_counts(o);
    printf("  most asked for         %s\n", qi_bytes(o->peak_requested_bytes).text);
    printf("  most held              %s\n", qi_bytes(o->peak_live_bytes).text);
    printf("  most reserved          %s, %.4f times the most asked for\n",
           qi_bytes(o->peak_reserved_bytes).text, ratio);
    printf("  pages                  %" PRIu64 " made, %" PRIu64 " given back, most %" PRIu64
           " at a time\n",
           o->pages_created, o->pages_destroyed, o->peak_pages);
    printf("  backend calls          %" PRIu64 "\n", o->backend_calls);
    printf("  own records            %s at most\n", qi_bytes(o->metadata_bytes_peak).text);
    printf(
        "  fragmentation          %.4f of the pages beyond their contents (1 - live / reserved)\n",
        o->fragmentation.reserved);
    printf("    when most was live   %.4f of the free bytes outside the largest range; %s inside "
           "allocations;\n                         %s free in pages that are in use\n",
           o->fragmentation.free, qi_bytes(o->fragmentation.internal).text,
           qi_bytes(o->fragmentation.split).text);
    printf("\n  %-22s %8s %8s %8s %8s\n", "nanoseconds", "p50", "p99", "p99.9", "max");
    print_latency("allocate", &o->alloc_ns);
    print_latency("free", &o->free_ns);
    printf("  %-22s %8.2f ms\n", "the whole replay", (double)o->wall_ns / 1e6);
}

static quire_result write_json(const replaying *r, uint64_t page_size)
{
    qi_json json;
    qi_json_init(&json, write_to_file, stdout);
    qi_json_object(&json, NULL);
    qi_json_text(&json, "trace", r->playing.path);
    qi_json_text(&json, "backend", backend_of(&r->playing.choice));
    qi_json_text(&json, "fit", fit_text(r->playing.fit));
    qi_json_number(&json, "page_size", page_size);
    write_report(&json, &r->report);
    qi_json_end_object(&json);
    return qi_json_finish(&json);
}

/* ---- run ---------------------------------------------------------------------------------- */

/* With a timeline this comes after each event, which is more often than a bar needs. */
static bool on_progress(void *user, uint64_t done, uint64_t total)
{
    replaying *r = user;
    if (r->html)
        timeline_sample(&r->timeline, done);
    if (r->html && done % r->timeline.every && done < total)
        return true;
    return show_progress(&r->bar, done, total);
}

static quire_result write_svg(void *memory, quire_sink sink, void *user)
{
    return quire_memory_write_svg(memory, sink, user);
}

static int play(replaying *r)
{
    quire_replay_options options = {
        .keep = true,
        .name = r->svg || r->html,
        .progress = on_progress,
        .user = r,
        .progress_events = r->html ? 1 : 0,
    };
    quire_memory_info info;
    quire_result result = quire_memory_get_info(r->playing.memory, &info);
    if (!result)
        result = quire_trace_replay(r->playing.trace, r->playing.memory, &options, &r->report);
    end_progress(&r->bar);
    if (result)
        return fail_with_last_error();
    int code = r->report.failures ? fail_with_last_error() : EXIT_OK;
    if (!r->json)
        print_text(r, info.page_size);
    else if (write_json(r, info.page_size))
        code = fail_with_last_error();
    if (r->svg && !write_file(r->svg, write_svg, r->playing.memory))
        code = EXIT_FAILED;
    if (r->html && !timeline_write(&r->timeline, r->html, &r->playing, &r->report))
        code = EXIT_FAILED;
    return code;
}

int run_replay(const command *self, int argc, char **argv)
{
    replaying r = {.bar = {.what = "replay"}};
    playing *p = &r.playing;
    const option_spec specs[] = {
        DEVICE_OPTIONS(&p->choice),
        {"fit", "F", "segregated (default), first, buddy or linear", OPTION_FIT, &p->fit},
        {"page-size", "N", "bytes of a page (default: 32M, or an eighth of a small heap)",
         OPTION_SIZE, &p->page_size},
        {"contiguous", NULL, "one page that grows in place", OPTION_FLAG, &p->contiguous},
        {"svg", "FILE", "draw the pages as they are after the last event", OPTION_TEXT, &r.svg},
        {"html", "FILE", "write the course of the replay as a page for a browser", OPTION_TEXT,
         &r.html},
        {"json", NULL, "print one JSON object", OPTION_FLAG, &r.json},
    };
    int code = parse_options(self, argc, argv, specs, sizeof specs / sizeof *specs, &p->path);
    if (code >= 0)
        return code;
    if (is_same_file(r.svg, r.html) || is_same_file(r.svg, p->path) ||
        is_same_file(r.html, p->path))
        return bad_usage(self, "the trace, --svg and --html must be different files");
    code = begin_playing(self, p);
    if (code < 0 && r.html && !timeline_begin(&r.timeline, p->memory, p->info.event_count))
        code = EXIT_FAILED;
    if (code < 0)
        code = play(&r);
    timeline_end(&r.timeline);
    return end_playing(p, code);
}
