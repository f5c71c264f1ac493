/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* html.c - see html.h. */
#include "src/tool/html.h"

#include <inttypes.h>

#include "src/base/json.h"
#include "src/base/result.h"
#include "src/tool/page/explorer.h"

/* ---- head -------------------------------------------------------------------------------- */

void begin_html(qi_writer *w, const char *title)
{
    qi_write_text(w, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                     "<meta name=\"viewport\" content=\"width=device-width\">"
                     "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                     "style-src 'unsafe-inline'; script-src 'unsafe-inline'\"><title>");
    qi_write_escaped(w, title);
    qi_write_text(w, "</title>\n<style>\n");
    explorer_write_style(w);
    qi_write_text(w, "</style></head><body>\n<h1>");
    qi_write_escaped(w, title);
    qi_write_text(w, "</h1>\n");
}

static void write_policy(qi_writer *w, const html_source *s)
{
    const replay_setup *p = s->setup;
    const qi_bytes_text size = qi_bytes(s->memory->page_size);
    if (p->memory_choice.options.elastic)
        qi_write_format(w, "one page with chunks of %s", size.text);
    else if (p->memory_choice.preset)
        qi_write_format(w, "page sizes of %s, from %s", p->memory_choice.preset, size.text);
    else if (!follows_use(&p->memory_choice.options))
        qi_write_format(w, "pages of %s", size.text);
    else
        qi_write_format(w, "pages that follow use, from %s", size.text);
}

/* Backend, device, memory kind, page policy and fit. */
static void write_setup(qi_writer *w, const html_source *s)
{
    static const char FAILED[] = "unknown device";
    char flags[128];
    quire_device_info device;
    bool is_known = !quire_device_get_info(s->setup->device, &device);
    qi_write_format(w, "<p>Backend %s, device ", backend_of(&s->setup->choice));
    qi_write_escaped(w, is_known ? device.name : FAILED);
    qi_write_format(w, ", memory kind %" PRIu32 " (%s), ", s->memory->kind,
                    flags_text(s->memory->flags, flags, sizeof flags));
    write_policy(w, s);
    qi_write_format(w, ", fit %s, granule %s.</p>\n", fit_text(s->memory->fit),
                    qi_bytes(s->memory->granule).text);
}

/* ---- report ------------------------------------------------------------------------------ */

static void write_row(qi_writer *w, const char *what, uint64_t value)
{
    qi_write_format(w, "<tr><td>%s</td><td>%" PRIu64 "</td></tr>\n", what, value);
}

static void write_bytes(qi_writer *w, const char *what, uint64_t value)
{
    qi_write_format(w, "<tr><td>%s</td><td>%s</td></tr>\n", what, qi_bytes(value).text);
}

static void write_share(qi_writer *w, const char *what, double value)
{
    qi_write_format(w, "<tr><td>%s</td><td>%.2f %%</td></tr>\n", what, 100 * value);
}

static void write_bytes_table(qi_writer *w, const quire_replay_report *r)
{
    qi_write_text(w, "<table>\n");
    write_bytes(w, "peak requested", r->peak_requested_bytes);
    write_bytes(w, "peak held", r->peak_live_bytes);
    write_bytes(w, "peak reserved", r->peak_reserved_bytes);
    write_row(w, "peak pages", r->peak_pages);
    write_row(w, "pages created", r->pages_created);
    write_row(w, "pages destroyed", r->pages_destroyed);
    write_row(w, "backend calls", r->backend_calls);
    write_bytes(w, "metadata, peak", r->metadata_bytes_peak);
    write_share(w, "fragmentation: reserved and not held, at the peaks", r->fragmentation.reserved);
    write_share(w, "at the peak: free and not in the largest free range", r->fragmentation.free);
    write_bytes(w, "at the peak: unused inside allocations", r->fragmentation.internal);
    write_bytes(w, "at the peak: free in pages in use", r->fragmentation.split);
    qi_write_text(w, "</table>\n");
}

static void write_events_table(qi_writer *w, const quire_replay_report *r)
{
    qi_write_text(w, "<table>\n");
    write_row(w, "events", r->operations);
    write_row(w, "allocations", r->allocations);
    write_row(w, "frees", r->frees);
    write_row(w, "uses", r->uses);
    write_row(w, "frames", r->frames);
    write_row(w, "failures", r->failures);
    write_row(w, "live at the end", r->left_at_end);
    write_row(w, "allocate, ns, median", r->alloc_ns.p50);
    write_row(w, "allocate, ns, 99.9 %", r->alloc_ns.p999);
    write_row(w, "free, ns, median", r->free_ns.p50);
    write_row(w, "free, ns, 99.9 %", r->free_ns.p999);
    qi_write_text(w, "</table>\n");
}

/* What the memory said about the first refused requests. */
static void write_refusals(qi_writer *w, const course *c)
{
    uint64_t known = 0;
    for (uint64_t i = 0; i < c->refusal_count; i++) {
        const course_refusal *r = &c->refusals[i];
        if (!r->report)
            continue;
        if (!known++)
            qi_write_text(w, "<h2>Reports of refused requests</h2>\n");
        qi_write_format(w, "<details%s><summary>Event %" PRIu64 ": %s", known == 1 ? " open" : "",
                        r->event, qi_bytes(r->size).text);
        qi_write_text(w, *c->names[r->name] ? " for " : "");
        qi_write_escaped(w, c->names[r->name]);
        qi_write_text(w, "</summary><pre class=\"x\">");
        qi_write_escaped(w, r->report);
        qi_write_text(w, "</pre></details>\n");
    }
    if (known && known < c->refusal_count)
        qi_write_format(w, "<p>%" PRIu64 " later requests were refused too.</p>\n",
                        c->refusal_count - known);
}

/* ---- the page ----------------------------------------------------------------------------- */

quire_result write_html(void *source, quire_sink sink, void *user)
{
    const html_source *s = source;
    page_selection ranges;
    if (!page_select(&ranges, s->course, PAGE_MOST_RANGES))
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for the ranges of a page");
    qi_writer w;
    qi_writer_init(&w, sink, user);
    begin_html(&w, s->setup->path);
    write_setup(&w, s);
    if (!explorer_write(&w, s->course, &ranges))
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for the course of a replay");
    qi_write_text(&w, "<h2>Report</h2>\n<div class=\"y\">\n");
    write_bytes_table(&w, s->report);
    write_events_table(&w, s->report);
    qi_write_text(&w, "</div>\n");
    write_refusals(&w, s->course);
    qi_write_text(&w, "</body></html>\n");
    return qi_writer_finish(&w);
}
