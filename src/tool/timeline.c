/*
 * timeline.c - see timeline.h.
 */
#include "src/tool/timeline.h"

#include <stdlib.h>

#include "src/base/result.h"

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
    free(t->picture);
    t->columns = NULL;
    t->picture = NULL;
}

/* Keeps the picture in memory, because the file begins with numbers of the whole replay. */
static void draw_peak(timeline *t)
{
    FILE *file = open_memstream(&t->picture, &t->picture_size);
    bool drawn = file && !quire_memory_write_svg(t->memory, write_to_file, file);
    bool closed = file && !fclose(file);
    t->failed = !drawn || !closed;
    if (t->failed)
        print_problem("quire: no host memory for the picture of the peak");
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
    if (event == t->peak)
        draw_peak(t);
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
