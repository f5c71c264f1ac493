/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* data.c - writes a course into a page (see data.h). */
#include "src/tool/page/data.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- the choice of ranges ----------------------------------------------------------------- */

/* What a range holds over its life, in bytes times moments. */
static double weight_of(const course *c, const course_range *range)
{
    uint64_t end = range->end == COURSE_ALWAYS ? c->setup->info.event_count + 1 : range->end;
    return (double)range->size * (double)(end - range->begin);
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

static void write_names(qi_writer *w, const course *c)
{
    begin_table(w, "names");
    for (uint64_t i = 0; i < c->name_count; i++) {
        qi_write_escaped(w, c->names[i]);
        qi_write_text(w, "\n");
    }
    end_table(w);
}

static void write_pages(qi_writer *w, const course *c)
{
    begin_table(w, "pages");
    for (uint64_t i = 0; i < c->page_count; i++)
        qi_write_format(w, "%" PRIu32 " %d %d\n", c->pages[i].number, c->pages[i].is_dedicated,
                        c->pages[i].is_elastic);
    end_table(w);
    begin_table(w, "changes");
    for (uint64_t i = 0; i < c->change_count; i++)
        qi_write_format(w, "%" PRIu64 " %" PRIu32 " %" PRIu64 "\n", c->changes[i].moment,
                        c->changes[i].page, c->changes[i].bytes);
    end_table(w);
}

static void write_ranges(qi_writer *w, const course *c, const page_selection *s)
{
    uint64_t before = 0, left = s->most_least;
    begin_table(w, "ranges");
    for (uint64_t i = 0; i < c->range_count; i++) {
        const course_range *r = &c->ranges[i];
        const double weight = weight_of(c, r);
        if (weight < s->least || (weight == s->least && !left))
            continue;
        left -= weight == s->least;
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

void page_write_data(qi_writer *w, const course *c, const page_selection *s)
{
    write_names(w, c);
    write_pages(w, c);
    write_ranges(w, c, s);
    write_refusals(w, c);
}
