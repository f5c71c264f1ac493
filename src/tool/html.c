/*
 * html.c - see html.h.
 */
#include "src/tool/html.h"

#include <inttypes.h>

#include "src/base/json.h"
#include "src/base/result.h"
#include "src/tool/chart.h"

/* ---- head --------------------------------------------------------------------------------- */

static void write_head(qi_writer *w, const replay_setup *p)
{
    qi_write_text(w, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                     "<meta name=\"viewport\" content=\"width=device-width\"><title>");
    qi_write_escaped(w, p->path);
    qi_write_text(w, "</title>\n<style>body{font:14px sans-serif;margin:2em auto;padding:0 1em;"
                     "max-width:1150px;color:#222;background:#fff}svg text{fill:#555}"
                     ".g{stroke:#ddd}td{padding:.15em 1.5em .15em 0}h1{overflow-wrap:anywhere}"
                     "td+td{text-align:right;white-space:nowrap;"
                     "font-variant-numeric:tabular-nums}.x{overflow-x:auto}"
                     ".x svg{width:100%;min-width:640px;height:auto}"
                     ".y{display:flex;flex-wrap:wrap;gap:0 4em;align-items:start}"
                     ".kr{color:#c2553a}.kl{color:#3a6ec2}.kq{color:#1f8a50}.kk{color:#8a5cc2}\n");
    write_chart_style(w);
    qi_write_text(w, "@media(prefers-color-scheme:dark){body{color:#ddd;background:#17181b}"
                     ".g{stroke:#333}svg text{fill:#aaa}}</style></head><body>\n<h1>");
    qi_write_escaped(w, p->path);
    qi_write_text(w, "</h1>\n");
}

static void write_policy(qi_writer *w, const html_source *s)
{
    const replay_setup *p = s->setup;
    const qi_bytes_text size = qi_bytes(s->memory->page_size);
    if (p->memory_choice.options.contiguous)
        qi_write_format(w, "one page that grows by %s", size.text);
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

/* ---- report ------------------------------------------------------------------------------- */

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

/* ---- the page ----------------------------------------------------------------------------- */

static void write_chart_section(qi_writer *w, const html_source *s)
{
    const replay_setup *p = s->setup;
    qi_write_text(w, "<div class=\"x\">\n");
    write_chart(w, s->timeline, p, s->report->peak_reserved_bytes);
    qi_write_text(w, "</div>\n<p><b class=\"kr\">reserved</b> from the backend, "
                     "<b class=\"kl\">held</b> by allocations (the broad line), "
                     "<b class=\"kq\">requested</b> by the program, "
                     "<b class=\"kk\">peak</b> of the requested bytes");
    if (p->info.frame_count)
        qi_write_text(w, "; dotted: ends of frames");
    qi_write_text(w, ". The numbers of a moment appear under the pointer.</p>\n");
}

static void write_heading(qi_writer *w, const char *what, uint64_t event, uint64_t events)
{
    qi_write_format(w, "<h2>%s</h2>\n<p>After event %" PRIu64 " of %" PRIu64 ".</p>\n", what, event,
                    events);
}

static void write_peak_pages(qi_writer *w, const timeline *t)
{
    if (!t->picture)
        return;
    write_heading(w, "Pages at the peak", t->peak, t->events);
    qi_write_text(w, "<div class=\"x\">\n");
    qi_write(w, t->picture, t->picture_size);
    qi_write_text(w, "</div>\n");
}

/* The picture has its own writer, so this writer is finished before it and started again. */
static quire_result write_page(void *subject, quire_sink sink, void *user)
{
    const html_source *s = subject;
    const timeline *t = s->timeline;
    qi_writer w;
    qi_writer_init(&w, sink, user);
    write_head(&w, s->setup);
    write_setup(&w, s);
    write_chart_section(&w, s);
    qi_write_text(&w, "<div class=\"y\">\n");
    write_bytes_table(&w, s->report);
    write_events_table(&w, s->report);
    qi_write_text(&w, "</div>\n");
    write_peak_pages(&w, t);
    write_heading(&w, "Pages at the end", t->events, t->events);
    qi_write_text(&w, "<div class=\"x\">\n");
    quire_result result = qi_writer_finish(&w);
    if (!result)
        result = quire_memory_write_svg(s->setup->memory, sink, user);
    if (result)
        return result;
    qi_writer_init(&w, sink, user);
    qi_write_text(&w, "</div>\n</body></html>\n");
    return qi_writer_finish(&w);
}

bool write_html(output *file, const html_source *source)
{
    html_source copy = *source;
    return write_output(file, write_page, &copy);
}
