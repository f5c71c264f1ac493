/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * page.c - the page of a dump: what it is of, its pages and names, and its statistics, a column for
 * the device and each memory.
 */
#include <inttypes.h>

#include "src/base/result.h"
#include "src/tool/dump/dump.h"
#include "src/tool/html.h"
#include "src/tool/page/explorer.h"

/* ---- head --------------------------------------------------------------------------------- */

static void write_text(qi_writer *w, const char *before, const char *text)
{
    qi_write_text(w, before);
    qi_write_escaped(w, text);
}

/* The kind, the fit and the sizes of a memory. */
static void write_setup(qi_writer *w, const dump_memory *m)
{
    qi_write_format(w, "memory kind %" PRIu64, m->kind);
    write_text(w, " (", m->flags);
    write_text(w, "), fit ", m->fit);
    qi_write_format(w, ", granule %s", qi_bytes(m->granule).text);
    qi_write_format(w, ", page size %s", qi_bytes(m->page_size).text);
}

static void write_head(qi_writer *w, const dump *d)
{
    if (!d->is_device) {
        write_text(w, "<p class=\"text\">Memory ", d->memories[0].name);
        qi_write_text(w, ", ");
        write_setup(w, &d->memories[0]);
        qi_write_text(w, ".</p>\n");
        return;
    }
    write_text(w, "<p class=\"text\">Backend ", d->backend);
    write_text(w, ", device ", d->name);
    qi_write_text(w, d->memory_count ? ", with the memories</p>\n<ol start=\"0\">\n"
                                     : ", without a memory.</p>\n");
    for (uint64_t i = 0; i < d->memory_count; i++) {
        write_text(w, "<li class=\"text\">", d->memories[i].name);
        qi_write_text(w, ", ");
        write_setup(w, &d->memories[i]);
        qi_write_text(w, "</li>\n");
    }
    qi_write_text(w, d->memory_count ? "</ol>\n" : "");
}

/* ---- statistics --------------------------------------------------------------------------- */

static void write_cell(qi_writer *w, dump_unit unit, const dump_value *value)
{
    if (!value->is_there)
        qi_write_text(w, "<td></td>");
    else if (unit == DUMP_SHARE)
        qi_write_format(w, "<td>%.2f %%</td>", 100 * value->share);
    else if (unit == DUMP_LIMIT && !value->number)
        qi_write_text(w, "<td>none</td>");
    else if (unit == DUMP_BYTES || unit == DUMP_LIMIT)
        qi_write_format(w, "<td>%s</td>", qi_bytes(value->number).text);
    else
        qi_write_format(w, "<td>%" PRIu64 "</td>", value->number);
}

/* A row for a statistic that any column has. */
static void write_stat(qi_writer *w, const dump *d, size_t stat)
{
    bool is_there = d->stats[stat].is_there;
    for (uint64_t i = 0; i < d->memory_count; i++)
        is_there |= d->memories[i].stats[stat].is_there;
    if (!is_there)
        return;
    qi_write_format(w, "<tr><td>%s</td>", dump_stats[stat].what);
    if (d->is_device)
        write_cell(w, dump_stats[stat].unit, &d->stats[stat]);
    for (uint64_t i = 0; i < d->memory_count; i++)
        write_cell(w, dump_stats[stat].unit, &d->memories[i].stats[stat]);
    qi_write_text(w, "</tr>\n");
}

static void write_stats(qi_writer *w, const dump *d)
{
    qi_write_text(w, "<h2>Statistics</h2>\n<div class=\"x\"><table id=\"stats\">\n");
    if (d->is_device)
        qi_write_text(w, "<tr><th></th><th>device</th>");
    for (uint64_t i = 0; i < d->memory_count && d->is_device; i++) {
        qi_write_format(w, "<th>%" PRIu64, i);
        write_text(w, ": ", d->memories[i].name);
        qi_write_text(w, "</th>");
    }
    qi_write_text(w, d->is_device ? "</tr>\n" : "");
    for (size_t i = 0; i < DUMP_STAT_COUNT; i++)
        write_stat(w, d, i);
    qi_write_text(w, "</table></div>\n");
}

static void write_heaps(qi_writer *w, const dump *d)
{
    if (!d->heap_count)
        return;
    qi_write_text(w, "<h2>Heaps</h2>\n<div class=\"x\"><table id=\"heaps\">\n<tr><th>heap</th>");
    for (size_t i = 0; i < DUMP_HEAP_VALUES; i++)
        qi_write_format(w, "<th>%s</th>", dump_heap_stats[i].what);
    qi_write_text(w, "</tr>\n");
    for (uint32_t heap = 0; heap < d->heap_count; heap++) {
        qi_write_format(w, "<tr><td>%" PRIu32 "</td>", heap);
        for (size_t i = 0; i < DUMP_HEAP_VALUES; i++)
            write_cell(w, dump_heap_stats[i].unit, &d->heaps[heap].values[i]);
        qi_write_text(w, "</tr>\n");
    }
    qi_write_text(w, "</table></div>\n");
}

/* ---- the page ----------------------------------------------------------------------------- */

quire_result dump_write_html(void *source, quire_sink sink, void *user)
{
    const dump_source *s = source;
    page_selection ranges;
    if (!page_select(&ranges, &s->dump->course, PAGE_MOST_RANGES))
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for the ranges of a page");
    qi_writer w;
    qi_writer_init(&w, sink, user);
    begin_html(&w, s->path);
    write_head(&w, s->dump);
    if (!explorer_write(&w, &s->dump->course, &ranges))
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for the page of a dump");
    write_stats(&w, s->dump);
    write_heaps(&w, s->dump);
    qi_write_text(&w, "</body></html>\n");
    return qi_writer_finish(&w);
}
