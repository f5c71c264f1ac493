/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* plan_page.c - see plan_page.h. */
#include "src/tool/plan_page.h"

#include <inttypes.h>

#include "src/base/result.h"
#include "src/base/text.h"
#include "src/tool/html.h"
#include "src/tool/page/explorer.h"
#include "src/tool/page/plan_course.h"

/* A page with more rectangles is more picture than course. */
enum { MOST_ITEMS = 5000 };

/* ---- figures ------------------------------------------------------------------------------- */

static bool has_aliases(const quire_plan_problem *problem)
{
    for (uint32_t i = 0; i < problem->item_count; i++)
        if (problem->items[i].alias_group)
            return true;
    return false;
}

/* What the plan is, and how good. */
static void write_summary(const plan_picture *p, qi_writer *w)
{
    const quire_plan_info *info = p->info;
    qi_write_format(w, "<p>A plan of %" PRIu32 " item%s in %s.", p->problem->item_count,
                    qi_plural(p->problem->item_count), qi_bytes(info->peak_bytes).text);
    if (info->proven_optimal)
        qi_write_text(w, " No plan has a lower peak.");
    else if (info->lower_bound_bytes)
        qi_write_format(w, " The peak is %s times the lower bound.",
                        qi_real((double)info->peak_bytes / (double)info->lower_bound_bytes).text);
    if (has_aliases(p->problem))
        qi_write_text(w, " Aliases are the same bytes; sums of held bytes count each of them.");
    qi_write_text(w, "</p>\n");
}

static void write_row(qi_writer *w, const char *what, uint64_t bytes)
{
    qi_write_format(w, "<tr><td>%s</td><td>%" PRIu64 "</td><td>%s</td></tr>\n", what, bytes,
                    qi_bytes(bytes).text);
}

static void write_arena(const plan_picture *p, qi_writer *w, uint32_t arena)
{
    const uint64_t capacity = p->problem->arenas[arena].capacity;
    qi_write_format(w, "<tr><td>arena %" PRIu32 "</td><td>%" PRIu64 "</td><td>%s</td><td>",
                    arena + 1, p->peaks[arena], qi_bytes(p->peaks[arena]).text);
    if (capacity)
        qi_write_format(w, "of %s", qi_bytes(capacity).text);
    qi_write_text(w, "</td></tr>\n");
}

static void write_figures(const plan_picture *p, qi_writer *w)
{
    qi_write_text(w, "<h2>Figures</h2>\n<table>\n<tr><th></th><th>bytes</th><th></th></tr>\n");
    write_row(w, "peak", p->info->peak_bytes);
    write_row(w, "lower bound", p->info->lower_bound_bytes);
    for (uint32_t i = 0; i < p->problem->arena_count; i++)
        write_arena(p, w, i);
    qi_write_text(w, "</table>\n");
}

/* ---- the picture --------------------------------------------------------------------------- */

static bool write_picture(const plan_picture *p, qi_writer *w)
{
    const uint32_t charts = charts_of_plan(p->problem);
    plan_picture picture = *p;
    picture.most_items = MOST_ITEMS;
    qi_write_text(w, "<h2>Picture</h2>\n<p>Time across, addresses up.");
    if (p->problem->arena_count <= 1)
        qi_write_text(w, " The line shows the bytes in use at each time.");
    if (p->problem->item_count > MOST_ITEMS)
        qi_write_format(w, " The picture has the %d items of the largest area.", MOST_ITEMS);
    if (p->problem->arena_count > charts)
        qi_write_format(w, " The picture has the first %" PRIu32 " arenas.", charts);
    qi_write_text(w, "</p>\n<div class=\"x\">\n");
    const bool is_drawn = draw_plan(&picture, w);
    qi_write_text(w, "</div>\n");
    return is_drawn;
}

/* ---- the page ------------------------------------------------------------------------------ */

static quire_result write_page(const plan_picture *p, const course *c, quire_sink sink, void *user)
{
    page_selection ranges;
    qi_writer w;
    if (!page_select(&ranges, c, PAGE_MOST_RANGES))
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for the ranges of a page");
    qi_writer_init(&w, sink, user);
    begin_html(&w, p->title);
    write_summary(p, &w);
    bool has_memory = explorer_write(&w, c, &ranges);
    write_figures(p, &w);
    has_memory = write_picture(p, &w) && has_memory;
    qi_write_text(&w, "</body></html>\n");
    quire_result result = qi_writer_finish(&w);
    return has_memory ? result
                      : qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a plan's page");
}

quire_result write_plan_html(const plan_picture *picture, const quire_trace *trace, quire_sink sink,
                             void *user)
{
    course c;
    quire_result result;
    if (plan_course_make(&c, picture->problem, picture->places, picture->peaks, trace))
        result = write_page(picture, &c, sink, user);
    else
        result = qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for the course of a plan");
    course_end(&c);
    return result;
}
