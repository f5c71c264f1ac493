/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* data.c - writes a course into a page (see data.h). */
#include "src/tool/page/data.h"

#include <inttypes.h>
#include <stdlib.h>

#include "src/base/result.h"

/* ---- the choice of ranges ----------------------------------------------------------------- */

/* What a range holds over its life, in bytes times moments. */
static double weight_of(const course *c, const course_range *range)
{
    uint64_t end = range->end == COURSE_ALWAYS ? c->last + 1 : range->end;
    return (double)(range->size - range->unbacked) * (double)(end - range->begin);
}

static int falling(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

bool page_select(page_selection *s, const course *c, uint64_t most)
{
    *s = (page_selection){.count = c->range_count};
    if (c->range_count <= most) {
        s->most_least = c->range_count;
        return true;
    }
    double *weights = calloc(c->range_count, sizeof *weights);
    if (!weights)
        return false;
    for (uint64_t i = 0; i < c->range_count; i++)
        weights[i] = weight_of(c, &c->ranges[i]);
    qsort(weights, c->range_count, sizeof *weights, falling);
    s->count = most;
    s->least = weights[most - 1];
    for (uint64_t i = most; i > 0 && weights[i - 1] == s->least; i--)
        s->most_least++;
    free(weights);
    return true;
}

/* ---- tables ------------------------------------------------------------------------------- */

/* A browser leaves out a line break at the start of the element. */
static void begin_table(qi_writer *w, const char *name)
{
    qi_write_format(w, "<pre hidden id=\"data-%s\">\n", name);
}

static void end_table(qi_writer *w)
{
    qi_write_text(w, "</pre>\n");
}

static void write_texts(qi_writer *w, const char *table, const char *const *texts, uint64_t count)
{
    begin_table(w, table);
    for (uint64_t i = 0; i < count; i++) {
        qi_write_escaped(w, texts[i]);
        qi_write_text(w, "\n");
    }
    end_table(w);
}

static void write_pages(qi_writer *w, const course *c)
{
    begin_table(w, "pages");
    for (uint64_t i = 0; i < c->page_count; i++)
        qi_write_format(w, "%" PRIu32 " %d %d %" PRIu32 "\n", c->pages[i].number,
                        c->pages[i].is_dedicated, c->pages[i].is_elastic, c->pages[i].memory);
    end_table(w);
    begin_table(w, "changes");
    for (uint64_t i = 0; i < c->change_count; i++)
        qi_write_format(w, "%" PRIu64 " %" PRIu32 " %" PRIu64 "\n", c->changes[i].moment,
                        c->changes[i].page, c->changes[i].bytes);
    end_table(w);
    begin_table(w, "stretches");
    for (uint64_t i = 0; i < c->stretch_count; i++) {
        const course_stretch *s = &c->stretches[i];
        qi_write_format(w, "%" PRIu64 " %" PRIu32 " %" PRIu64 " %" PRIu64 " %d\n", s->moment,
                        s->page, s->begin, s->end, s->has_memory);
    }
    end_table(w);
}

/* Whether a range is written. The calls are in the order of the ranges. *left counts, from
   `most_least`, those that still may be with exactly the least weight. */
static bool is_selected(const course *c, const page_selection *s, uint64_t range, uint64_t *left)
{
    const double weight = weight_of(c, &c->ranges[range]);
    if (weight < s->least || (weight == s->least && !*left))
        return false;
    *left -= weight == s->least;
    return true;
}

static void write_backed(qi_writer *w, const course *c, const page_selection *s)
{
    uint64_t row = 0, left = s->most_least;
    begin_table(w, "backed");
    for (uint64_t i = 0; i < c->range_count; i++) {
        const course_range *r = &c->ranges[i];
        if (!is_selected(c, s, i, &left))
            continue;
        if (r->unbacked)
            qi_write_format(w, "%" PRIu64 " %" PRIu64 "\n", row, r->size - r->unbacked);
        row++;
    }
    end_table(w);
}

static void write_ranges(qi_writer *w, const course *c, const page_selection *s)
{
    uint64_t before = 0, left = s->most_least;
    begin_table(w, "ranges");
    for (uint64_t i = 0; i < c->range_count; i++) {
        const course_range *r = &c->ranges[i];
        if (!is_selected(c, s, i, &left))
            continue;
        qi_write_format(w, "%" PRIu64 " %" PRIu64 " %" PRIu32 " %" PRIu64, r->begin - before,
                        r->end == COURSE_ALWAYS ? 0 : r->end - r->begin, r->page, r->offset);
        qi_write_format(w, " %" PRIu64 " %" PRIu64 " %" PRIu32 "\n", r->size, r->requested,
                        r->name);
        before = r->begin;
    }
    end_table(w);
}

static void write_refusals(qi_writer *w, const course *c)
{
    begin_table(w, "refusals");
    for (uint64_t i = 0; i < c->refusal_count; i++)
        qi_write_format(w, "%" PRIu64 " %" PRIu64 " %" PRIu32 "\n", c->refusals[i].event,
                        c->refusals[i].size, c->refusals[i].name);
    end_table(w);
}

static void write_free(qi_writer *w, const course *c)
{
    begin_table(w, "free");
    for (uint64_t i = 0; i < c->free_count; i++)
        qi_write_format(w, "%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", c->frees[i].moment,
                        c->frees[i].split, c->frees[i].largest);
    end_table(w);
}

/* ---- frames and times --------------------------------------------------------------------- */

/* Zeros if there is no trace. */
static quire_trace_info info_of(const course *c)
{
    quire_trace_info info = {.event_count = 0};
    if (c->trace)
        qi_ignore(quire_trace_get_info(c->trace, &info));
    return info;
}

static void write_frames(qi_writer *w, const course *c)
{
    const quire_trace_info info = info_of(c);
    const uint64_t every = info.frame_count / PAGE_MOST_FRAMES + 1;
    uint64_t frames = 0;
    begin_table(w, "frames");
    for (uint64_t i = 0; i < info.event_count && info.frame_count; i++) {
        quire_trace_event event;
        if (quire_trace_get_event(c->trace, i, &event) || event.op != QUIRE_TRACE_FRAME)
            continue;
        if (frames++ % every == 0)
            qi_write_format(w, "%" PRIu64 "\n", i + 1);
    }
    end_table(w);
}

static void write_time(qi_writer *w, const course *c, uint64_t moment)
{
    quire_trace_event event;
    if (!quire_trace_get_event(c->trace, moment - 1, &event))
        qi_write_format(w, "%" PRIu64 " %" PRIu64 "\n", moment, event.time_ns);
}

/* The times of ranks: the first, the last, and those at which the distance to the next changes. */
static void write_ranks(qi_writer *w, const uint64_t *times, uint64_t last)
{
    for (uint64_t i = 0; i <= last; i++)
        if (i == 0 || i == last || times[i + 1] - times[i] != times[i] - times[i - 1])
            qi_write_format(w, "%" PRIu64 " %" PRIu64 "\n", i, times[i] - times[0]);
}

/* A trace without times has an empty table. */
static void write_times(qi_writer *w, const course *c)
{
    const uint64_t last = c->last, every = last / PAGE_MOST_TIMES + 1;
    begin_table(w, "times");
    if (c->times) {
        write_ranks(w, c->times, last);
    } else if (info_of(c).end_ns) {
        for (uint64_t moment = 1; moment < last; moment += every)
            write_time(w, c, moment);
        write_time(w, c, last);
    }
    end_table(w);
}

/* ---- columns ------------------------------------------------------------------------------ */

/* The sums of the memory at each moment. Those of a moment at which several things happen include
   what is reached between them only for reserved bytes. */
typedef struct sums {
    uint64_t *requested, *held, *least_reserved, *most_reserved;
} sums;

/* Sums of differences. Unsigned numbers wrap around, and the sums are right again. */
static void add_up(uint64_t *values, uint64_t count)
{
    for (uint64_t i = 1; i < count; i++)
        values[i] += values[i - 1];
}

static void add_ranges(const sums *t, const course *c, uint64_t count)
{
    for (uint64_t i = 0; i < c->range_count; i++) {
        const course_range *r = &c->ranges[i];
        t->requested[r->begin] += r->requested;
        t->held[r->begin] += r->size - r->unbacked;
        if (r->end == COURSE_ALWAYS)
            continue;
        t->requested[r->end] -= r->requested;
        t->held[r->end] -= r->size - r->unbacked;
    }
    add_up(t->requested, count);
    add_up(t->held, count);
}

/* `bytes` has a zero for each page. */
static void add_changes(const sums *t, const course *c, uint64_t count, uint64_t *bytes)
{
    uint64_t now = 0, next = 0;
    for (uint64_t moment = 0; moment < count; moment++) {
        const uint64_t first = next;
        for (; next < c->change_count && c->changes[next].moment == moment; next++) {
            const course_change *change = &c->changes[next];
            now += change->bytes - bytes[change->page];
            bytes[change->page] = change->bytes;
            if (now > t->most_reserved[moment])
                t->most_reserved[moment] = now;
        }
        if (next == first)
            t->most_reserved[moment] = now;
        t->least_reserved[moment] = now;
    }
}

static void write_extremes(qi_writer *w, const uint64_t *least, const uint64_t *most,
                           uint64_t begin, uint64_t end)
{
    uint64_t low = least[begin], high = most[begin];
    for (uint64_t i = begin; i < end; i++) {
        low = least[i] < low ? least[i] : low;
        high = most[i] > high ? most[i] : high;
    }
    qi_write_format(w, "%" PRIu64 " %" PRIu64, low, high);
}

static void write_columns(qi_writer *w, const sums *t, uint64_t count, uint64_t every)
{
    for (uint64_t begin = 0; begin < count; begin += every) {
        const uint64_t end = begin + every < count ? begin + every : count;
        write_extremes(w, t->requested, t->requested, begin, end);
        qi_write_text(w, " ");
        write_extremes(w, t->held, t->held, begin, end);
        qi_write_text(w, " ");
        write_extremes(w, t->least_reserved, t->most_reserved, begin, end);
        qi_write_text(w, "\n");
    }
}

uint64_t page_column(const course *c, const page_selection *s)
{
    return s->count == c->range_count ? 0 : c->last / PAGE_MOST_COLUMNS + 1;
}

static bool write_column_table(qi_writer *w, const course *c, uint64_t every)
{
    const uint64_t count = c->last + 1;
    uint64_t *all = calloc(4, count * sizeof *all);
    uint64_t *bytes = calloc(c->page_count + 1, sizeof *bytes);
    const bool is_there = all && bytes;
    if (is_there) {
        const sums t = {all, all + count, all + 2 * count, all + 3 * count};
        add_ranges(&t, c, count);
        add_changes(&t, c, count, bytes);
        write_columns(w, &t, count, every);
    }
    free(all);
    free(bytes);
    return is_there;
}

/* ---- all ---------------------------------------------------------------------------------- */

bool page_write_data(qi_writer *w, const course *c, const page_selection *s)
{
    const uint64_t every = page_column(c, s);
    write_texts(w, "names", (const char *const *)c->names, c->name_count);
    write_texts(w, "memories", c->memories, c->memory_count);
    write_pages(w, c);
    write_ranges(w, c, s);
    write_backed(w, c, s);
    write_refusals(w, c);
    write_free(w, c);
    write_frames(w, c);
    write_times(w, c);
    begin_table(w, "columns");
    const bool is_done = !every || write_column_table(w, c, every);
    end_table(w);
    return is_done;
}
