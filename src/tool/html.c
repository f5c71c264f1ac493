/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * html.c - a replay becomes at most 1001 columns, each with the minimum and the maximum of its
 * events, and the file has a chart of them.
 */
#include "src/tool/html.h"

#include <inttypes.h>
#include <stdlib.h>

#include "src/base/json.h"
#include "src/base/result.h"
#include "src/tool/page/explorer.h"

/* ---- the timeline ------------------------------------------------------------------------- */

enum { COLUMNS = 1001 };

bool timeline_begin(timeline *t, const replay_setup *p)
{
    uint64_t events = p->info.event_count;
    *t = (timeline){.memory = p->memory, .events = events, .room = COLUMNS};
    t->every = events / COLUMNS + 1; /* there are events + 1 samples, because of event 0 */
    t->peak = events ? p->info.peak_event + 1 : 0;
    t->columns = calloc(t->room, sizeof *t->columns);
    if (!t->columns)
        fprintf(stderr, "quire: no host memory for a timeline\n");
    return t->columns != NULL;
}

void timeline_end(timeline *t)
{
    free(t->columns);
    t->columns = NULL;
}

/* Extends the range of one series of a column. */
static void note(column *c, int series, sample now)
{
    if (now.bytes < c->min[series].bytes)
        c->min[series] = now;
    if (now.bytes > c->max[series].bytes)
        c->max[series] = now;
}

/*
 * A maximum that an event reaches and leaves again, such as a page that exists only within the
 * event, is visible in the memory's peaks alone. The chart takes such a peak as a sample.
 */
void timeline_sample(timeline *t, uint64_t event)
{
    uint64_t place = event / t->every;
    if (place >= t->room)
        return;
    quire_memory_stats stats;
    qi_ignore(quire_memory_get_stats(t->memory, &stats));
    const uint64_t now[SERIES_COUNT] = {stats.requested_bytes, stats.live_bytes,
                                        stats.reserved_bytes};
    const uint64_t peaks[SERIES_COUNT] = {stats.peak_requested_bytes, stats.peak_live_bytes,
                                          stats.peak_reserved_bytes};
    column *c = &t->columns[place];
    for (int i = 0; i < SERIES_COUNT; i++) {
        t->last[i] = (sample){event, now[i]};
        if (place == t->count)
            c->min[i] = c->max[i] = t->last[i];
        note(c, i, t->last[i]);
        if (peaks[i] > t->peaks[i])
            note(c, i, (sample){event, peaks[i]});
        t->peaks[i] = peaks[i];
    }
    t->count = place + 1;
}

/* ---- the chart: axes ---------------------------------------------------------------------- */

/*
 * The chart draws the timeline as SVG, with the frames, the peak and the times of the trace. It has
 * no script: a strip over each group of columns has the numbers as its title, which browsers show
 * under the pointer.
 */

enum { LEFT = 90, WIDTH = 1000, RIGHT = 20, HEIGHT = 320, TOP = 20, BOTTOM = 60 };
enum { GRID_LINES = 4, TICKS = 4, STRIPS = 250, MAX_MARKS = 200 };

static double x_of(const timeline *t, uint64_t event)
{
    return (double)LEFT + (t->events ? (double)event / (double)t->events * (double)WIDTH : 0);
}

static double y_of(uint64_t bytes, uint64_t most)
{
    return (double)(TOP + HEIGHT) - (most ? (double)bytes / (double)most * (double)HEIGHT : 0);
}

typedef struct time_text {
    char text[32];
} time_text;

static time_text text_of_time(uint64_t ns)
{
    static const struct {
        double ns;
        const char *name;
    } units[] = {{3600e9, "h"}, {60e9, "min"}, {1e9, "s"}, {1e6, "ms"}, {1e3, "\u00b5s"}};
    time_text out;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if ((double)ns < units[i].ns)
            continue;
        snprintf(out.text, sizeof out.text, "%.2f %s", (double)ns / units[i].ns, units[i].name);
        return out;
    }
    snprintf(out.text, sizeof out.text, "%" PRIu64 " ns", ns);
    return out;
}

/* The time of the trace after a number of events. */
static uint64_t time_after(const replay_setup *p, uint64_t events)
{
    quire_trace_event event;
    return events && !quire_trace_get_event(p->trace, events - 1, &event) ? event.time_ns : 0;
}

static void write_bytes_axis(qi_writer *w, uint64_t most)
{
    for (int i = 0; i <= GRID_LINES; i++) {
        uint64_t bytes = most / GRID_LINES * (uint64_t)i;
        double y = y_of(bytes, most);
        qi_write_format(w, "<line class=\"g\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>", LEFT,
                        LEFT + WIDTH, y, y);
        qi_write_format(w, "<text class=\"e\" x=\"%d\" y=\"%.1f\">%s</text>\n", LEFT - 8, y + 4,
                        qi_bytes(bytes).text);
    }
}

/* Events, and the times that the trace has for them. */
static void write_events_axis(qi_writer *w, const timeline *t, const replay_setup *p)
{
    for (uint64_t i = 0; i <= TICKS; i++) {
        uint64_t event = t->events / TICKS * i + t->events % TICKS * i / TICKS;
        double x = x_of(t, event);
        const char *class = i == TICKS ? "e" : i ? "n" : "s"; /* text ends, is centred, starts */
        qi_write_format(w, "<line class=\"g\" x1=\"%.2f\" x2=\"%.2f\" y1=\"%d\" y2=\"%d\"/>", x, x,
                        TOP + HEIGHT, TOP + HEIGHT + 6);
        qi_write_format(w, "<text class=\"%s\" x=\"%.2f\" y=\"%d\">%s%" PRIu64 "</text>\n", class,
                        x, TOP + HEIGHT + 20, i ? "" : "event ", event);
        if (p->info.end_ns)
            qi_write_format(w, "<text class=\"%s\" x=\"%.2f\" y=\"%d\">%s</text>\n", class, x,
                            TOP + HEIGHT + 36, text_of_time(time_after(p, event)).text);
    }
}

/* ---- the chart: marks --------------------------------------------------------------------- */

static void write_mark(qi_writer *w, const timeline *t, const char *class, uint64_t event)
{
    qi_write_format(w, "<line class=\"%s\" x1=\"%.2f\" x2=\"%.2f\" y1=\"%d\" y2=\"%d\"/>", class,
                    x_of(t, event), x_of(t, event), TOP, TOP + HEIGHT);
}

/* Frames end at these lines. If a trace has too many, every n-th is drawn. */
static void write_frames(qi_writer *w, const timeline *t, const replay_setup *p)
{
    uint64_t every = p->info.frame_count / MAX_MARKS + 1, frames = 0;
    for (uint64_t i = 0; i < t->events && p->info.frame_count; i++) {
        quire_trace_event event;
        if (quire_trace_get_event(p->trace, i, &event) || event.op != QUIRE_TRACE_FRAME)
            continue;
        if (frames++ % every == 0)
            write_mark(w, t, "m", i + 1);
    }
}

static void write_peak(qi_writer *w, const timeline *t)
{
    if (!t->peak)
        return;
    bool is_right = t->peak > t->events / 2;
    write_mark(w, t, "k", t->peak);
    qi_write_format(w, "<text class=\"%s\" x=\"%.2f\" y=\"%d\">peak requested</text>\n",
                    is_right ? "e" : "s", x_of(t, t->peak) + (is_right ? -4 : 4), TOP - 6);
}

/* ---- the chart: lines --------------------------------------------------------------------- */

static void write_sample(qi_writer *w, const timeline *t, uint64_t most, sample at)
{
    qi_write_format(w, "%.2f,%.2f ", x_of(t, at.event), y_of(at.bytes, most));
}

/* Draws the minimum and the maximum of each column in the order in which they occurred. */
static void write_line(qi_writer *w, const timeline *t, uint64_t most, const char *class,
                       int series)
{
    qi_write_format(w, "<polyline class=\"%s\" points=\"", class);
    for (uint64_t i = 0; i < t->count; i++) {
        sample low = t->columns[i].min[series], high = t->columns[i].max[series];
        bool falls = high.event <= low.event;
        write_sample(w, t, most, falls ? high : low);
        if (high.bytes != low.bytes)
            write_sample(w, t, most, falls ? low : high);
    }
    write_sample(w, t, most, t->last[series]);
    qi_write_text(w, "\"/>\n");
}

/* One strip: the columns from `first` up to `end`, with their maxima. */
static void write_strip(qi_writer *w, const timeline *t, const replay_setup *p, uint64_t first,
                        uint64_t end)
{
    uint64_t most[SERIES_COUNT] = {0}, begin = first * t->every, last = end * t->every - 1;
    if (last > t->events)
        last = t->events;
    for (uint64_t i = first; i < end; i++)
        for (int s = 0; s < SERIES_COUNT; s++)
            if (t->columns[i].max[s].bytes > most[s])
                most[s] = t->columns[i].max[s].bytes;
    double x = x_of(t, begin), width = x_of(t, last + 1) - x;
    qi_write_format(w, "<rect class=\"h\" x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\"><title>",
                    x, TOP, width > 1 ? width : 1, HEIGHT);
    qi_write_format(w, "events %" PRIu64 " to %" PRIu64, begin, last);
    if (p->info.end_ns)
        qi_write_format(w, ", %s", text_of_time(time_after(p, begin)).text);
    qi_write_format(w, "\nreserved %s", qi_bytes(most[SERIES_RESERVED]).text);
    qi_write_format(w, "\nheld %s", qi_bytes(most[SERIES_LIVE]).text);
    qi_write_format(w, "\nrequested %s</title></rect>\n", qi_bytes(most[SERIES_REQUESTED]).text);
}

static void write_strips(qi_writer *w, const timeline *t, const replay_setup *p)
{
    uint64_t each = t->count / STRIPS + 1;
    for (uint64_t first = 0; first < t->count; first += each)
        write_strip(w, t, p, first, first + each < t->count ? first + each : t->count);
}

/* ---- the chart ---------------------------------------------------------------------------- */

/*
 * The rules of the chart that follow no theme; write_head has the others. The line of held bytes is
 * broad and pale, so that it shows beside that of the requested.
 */
static void write_chart_style(qi_writer *w)
{
    qi_write_text(w, ".c text{font:12px sans-serif}.e{text-anchor:end}.n{text-anchor:middle}"
                     "polyline{fill:none;stroke-width:1.5;stroke-linejoin:round}"
                     ".r{stroke:#c2553a}.l{stroke:#3a6ec2;stroke-width:5;opacity:.45}"
                     ".q{stroke:#1f8a50}.m{stroke:#8888;stroke-dasharray:2 3}"
                     ".k{stroke:#8a5cc2;stroke-dasharray:6 3}"
                     ".h{fill:transparent}.h:hover{fill:#8883}\n");
}

/* Writes the element <svg>. `most` is the number of bytes at its top. */
static void write_chart(qi_writer *w, const timeline *t, const replay_setup *p, uint64_t most)
{
    int width = LEFT + WIDTH + RIGHT, height = TOP + HEIGHT + BOTTOM;
    qi_write_format(w, "<svg class=\"c\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n",
                    width, height, width, height);
    write_bytes_axis(w, most);
    write_events_axis(w, t, p);
    write_frames(w, t, p);
    write_peak(w, t);
    write_line(w, t, most, "r", SERIES_RESERVED);
    write_line(w, t, most, "l", SERIES_LIVE);
    write_line(w, t, most, "q", SERIES_REQUESTED);
    write_strips(w, t, p);
    qi_write_text(w, "</svg>\n");
}

/* ---- the page: head ----------------------------------------------------------------------- */

static void write_head(qi_writer *w, const replay_setup *p)
{
    qi_write_text(w, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                     "<meta name=\"viewport\" content=\"width=device-width\">"
                     "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                     "style-src 'unsafe-inline'; script-src 'unsafe-inline'\"><title>");
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
    explorer_write_style(w);
    qi_write_text(w, "@media(prefers-color-scheme:dark){body{color:#ddd;background:#17181b}"
                     ".g{stroke:#333}svg text{fill:#aaa}}</style></head><body>\n<h1>");
    qi_write_escaped(w, p->path);
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

/* ---- the page: report --------------------------------------------------------------------- */

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

typedef struct html_page {
    const html_source *source;
    page_selection ranges;
} html_page;

static quire_result write_page(void *subject, quire_sink sink, void *user)
{
    const html_page *page = subject;
    const html_source *s = page->source;
    qi_writer w;
    qi_writer_init(&w, sink, user);
    write_head(&w, s->setup);
    write_setup(&w, s);
    write_chart_section(&w, s);
    qi_write_text(&w, "<div class=\"y\">\n");
    write_bytes_table(&w, s->report);
    write_events_table(&w, s->report);
    qi_write_text(&w, "</div>\n");
    explorer_write(&w, s->course, &page->ranges, s->timeline->peak);
    qi_write_text(&w, "</body></html>\n");
    return qi_writer_finish(&w);
}

bool write_html(output *file, const html_source *source)
{
    html_page page = {.source = source};
    if (page_select(&page.ranges, source->course, PAGE_MOST_RANGES))
        return write_output(file, write_page, &page);
    print_problem("quire: no host memory for the ranges of a page");
    return false;
}
