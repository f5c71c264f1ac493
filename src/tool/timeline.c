/*
 * timeline.c - see timeline.h.
 */
#include "src/tool/timeline.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/result.h"
#include "src/base/writer.h"

enum { COLUMNS = 1001, LEFT = 90, WIDTH = 1000, HEIGHT = 320, TOP = 20, GRID_LINES = 4 };

bool timeline_begin(timeline *t, quire_memory *memory, uint64_t events)
{
    *t = (timeline){.memory = memory, .events = events, .room = COLUMNS};
    t->every = events / COLUMNS + 1; /* there are events + 1 samples, because of event 0 */
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

/* ---- the chart ---------------------------------------------------------------------------- */

static double x_of(const timeline *t, uint64_t event)
{
    return (double)LEFT + (t->events ? (double)event / (double)t->events * (double)WIDTH : 0);
}

static double y_of(uint64_t bytes, uint64_t max)
{
    return (double)(TOP + HEIGHT) - (max ? (double)bytes / (double)max * (double)HEIGHT : 0);
}

static void write_sample(qi_writer *w, const timeline *t, uint64_t max, sample at)
{
    qi_write_format(w, "%.2f,%.2f ", x_of(t, at.event), y_of(at.bytes, max));
}

/* Draws the minimum and the maximum of each column in the order in which they occurred. */
static void write_line(qi_writer *w, const timeline *t, uint64_t max, const char *class, int series)
{
    qi_write_format(w, "<polyline class=\"%s\" points=\"", class);
    for (uint64_t i = 0; i < t->count; i++) {
        sample low = t->columns[i].min[series], high = t->columns[i].max[series];
        bool falls = high.event <= low.event;
        write_sample(w, t, max, falls ? high : low);
        if (high.bytes != low.bytes)
            write_sample(w, t, max, falls ? low : high);
    }
    write_sample(w, t, max, t->last[series]);
    qi_write_text(w, "\"/>\n");
}

static void write_chart(qi_writer *w, const timeline *t, uint64_t max)
{
    qi_write_format(w, "<svg width=\"%d\" height=\"%d\">\n", LEFT + WIDTH + 20, TOP + HEIGHT + 40);
    for (int i = 0; i <= GRID_LINES; i++) {
        uint64_t bytes = max / GRID_LINES * (uint64_t)i;
        double y = y_of(bytes, max);
        qi_write_format(w, "<line class=\"g\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>", LEFT,
                        LEFT + WIDTH, y, y);
        qi_write_format(w, "<text class=\"e\" x=\"%d\" y=\"%.1f\">%s</text>\n", LEFT - 8, y + 4,
                        qi_bytes(bytes).text);
    }
    qi_write_format(w, "<text x=\"%d\" y=\"%d\">event 0</text>", LEFT, TOP + HEIGHT + 20);
    qi_write_format(w, "<text class=\"e\" x=\"%d\" y=\"%d\">%" PRIu64 "</text>\n", LEFT + WIDTH,
                    TOP + HEIGHT + 20, t->events);
    write_line(w, t, max, "r", SERIES_RESERVED);
    write_line(w, t, max, "l", SERIES_LIVE);
    write_line(w, t, max, "q", SERIES_REQUESTED);
    qi_write_text(w, "</svg>\n<p><b class=\"kr\">reserved</b> from the backend, "
                     "<b class=\"kl\">held</b> by allocations, "
                     "<b class=\"kq\">requested</b></p>\n");
}

/* ---- the page ----------------------------------------------------------------------------- */

static void write_head(qi_writer *w, const replay_setup *p)
{
    qi_write_text(w, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>");
    qi_write_escaped(w, p->path);
    qi_write_text(w, "</title>\n<style>body{font:14px sans-serif;margin:2em;color:#222;"
                     "background:#fff}svg text{font:12px sans-serif;fill:#555}.e{text-anchor:end}"
                     ".g{stroke:#ddd}polyline{fill:none;stroke-width:1.5}.r{stroke:#c2553a}"
                     ".l{stroke:#3a6ec2}.q{stroke:#3aa06a}.kr{color:#c2553a}.kl{color:#3a6ec2}"
                     ".kq{color:#3aa06a}td{padding:.15em 1.5em .15em 0}td+td{text-align:right;"
                     "font-variant-numeric:tabular-nums}@media(prefers-color-scheme:dark){"
                     "body{color:#ddd;background:#17181b}.g{stroke:#333}svg text{fill:#aaa}}"
                     "</style></head><body>\n<h1>");
    qi_write_escaped(w, p->path);
    qi_write_format(w, "</h1>\n<p>fit %s</p>\n", fit_text(p->fit));
}

static void write_row(qi_writer *w, const char *what, uint64_t value)
{
    qi_write_format(w, "<tr><td>%s</td><td>%" PRIu64 "</td></tr>\n", what, value);
}

static void write_bytes(qi_writer *w, const char *what, uint64_t value)
{
    qi_write_format(w, "<tr><td>%s</td><td>%s</td></tr>\n", what, qi_bytes(value).text);
}

static void write_table(qi_writer *w, const quire_replay_report *r)
{
    qi_write_text(w, "<table>\n");
    write_row(w, "events", r->operations);
    write_row(w, "allocations", r->allocations);
    write_row(w, "failures", r->failures);
    write_bytes(w, "peak requested", r->peak_requested_bytes);
    write_bytes(w, "peak held", r->peak_live_bytes);
    write_bytes(w, "peak reserved", r->peak_reserved_bytes);
    write_row(w, "pages created", r->pages_created);
    write_row(w, "pages destroyed", r->pages_destroyed);
    write_row(w, "backend calls", r->backend_calls);
    write_row(w, "allocate, ns, median", r->alloc_ns.p50);
    write_row(w, "allocate, ns, 99.9 %", r->alloc_ns.p999);
    write_row(w, "free, ns, median", r->free_ns.p50);
    write_row(w, "free, ns, 99.9 %", r->free_ns.p999);
    qi_write_text(w, "</table>\n");
}

/* The subject of write_page. */
typedef struct page_source {
    const timeline *timeline;
    const replay_setup *setup;
    const quire_replay_report *report;
} page_source;

/* The picture has its own writer, so this writer is finished before it and started again. */
static quire_result write_page(void *subject, quire_sink sink, void *user)
{
    const page_source *c = subject;
    qi_writer w;
    qi_writer_init(&w, sink, user);
    write_head(&w, c->setup);
    write_chart(&w, c->timeline, c->report->peak_reserved_bytes);
    write_table(&w, c->report);
    qi_write_text(&w, "<h2>pages at the end of the trace</h2>\n");
    quire_result result = qi_writer_finish(&w);
    if (!result)
        result = quire_memory_write_svg(c->setup->memory, sink, user);
    if (result)
        return result;
    qi_writer_init(&w, sink, user);
    qi_write_text(&w, "</body></html>\n");
    return qi_writer_finish(&w);
}

bool timeline_write(const timeline *t, const char *path, const replay_setup *p,
                    const quire_replay_report *report)
{
    page_source c = {t, p, report};
    return write_file(path, write_page, &c);
}
