/*
 * chart.c - see chart.h.
 *
 * The chart is a drawing without a script: a strip over each group of columns has the numbers as
 * its title, which browsers show under the pointer.
 */
#include "src/tool/chart.h"

#include <inttypes.h>

#include "src/base/result.h"

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

/* ---- axes --------------------------------------------------------------------------------- */

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

/* ---- marks -------------------------------------------------------------------------------- */

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

/* ---- lines -------------------------------------------------------------------------------- */

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

/* The line of held bytes is broad and pale, so that it shows beside that of the requested. */
void write_chart_style(qi_writer *w)
{
    qi_write_text(w, ".c text{font:12px sans-serif}.e{text-anchor:end}.n{text-anchor:middle}"
                     "polyline{fill:none;stroke-width:1.5;stroke-linejoin:round}"
                     ".r{stroke:#c2553a}.l{stroke:#3a6ec2;stroke-width:5;opacity:.45}"
                     ".q{stroke:#1f8a50}.m{stroke:#8888;stroke-dasharray:2 3}"
                     ".k{stroke:#8a5cc2;stroke-dasharray:6 3}"
                     ".h{fill:transparent}.h:hover{fill:#8883}\n");
}

void write_chart(qi_writer *w, const timeline *t, const replay_setup *p, uint64_t most)
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
