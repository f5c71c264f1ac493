/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * page.c - quire compare --html: the pages of both replays in frames side by side, and the names
 * that differ most at the peaks. The frames have their pages as attributes, so that the file loads
 * nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "src/base/result.h"
#include "src/tool/compare/compare.h"
#include "src/tool/html.h"

static const char *const LETTERS[SIDE_COUNT] = {"A", "B"};

static void write_bytes_cell(qi_writer *w, uint64_t bytes)
{
    qi_write_format(w, "<td>%s</td>", qi_bytes(bytes).text);
}

static void write_name(qi_writer *w, const name_row *row)
{
    char *name = strndup(row->name, row->length);
    qi_write_text(w, "<tr><td>");
    qi_write_escaped(w, !name ? "?" : *name ? name : "(unnamed)");
    free(name);
    qi_write_text(w, "</td>");
    for (int i = 0; i < SIDE_COUNT; i++)
        write_bytes_cell(w, row->shares[i].peak_bytes);
    const bool is_less = row->shares[SIDE_B].peak_bytes < row->shares[SIDE_A].peak_bytes;
    qi_write_format(w, "<td>%s%s</td></tr>\n", is_less ? "\u2212" : "+",
                    qi_bytes(peak_difference(row)).text);
}

static void write_names(qi_writer *w, const comparison *c)
{
    const findings *f = &c->findings;
    uint64_t listed = 0;
    qi_write_text(w,
                  "<h2>What lives at the peaks, by name</h2>\n<div class=\"x\"><table><tr><th>name"
                  "</th><th>A</th><th>B</th><th>difference</th></tr>\n");
    for (size_t i = 0; i < f->name_count; i++)
        if (peak_difference(&f->names[i]) && (!c->top || listed < c->top)) {
            write_name(w, &f->names[i]);
            listed++;
        }
    qi_write_text(w, "</table></div>\n");
    if (!listed)
        qi_write_text(w, "<p>Every name has the same bytes at both peaks.</p>\n");
}

static void write_sum(qi_writer *w, const char *what, uint64_t a, uint64_t b)
{
    qi_write_format(w, "<tr><td>%s</td>", what);
    write_bytes_cell(w, a);
    write_bytes_cell(w, b);
    qi_write_text(w, "</tr>\n");
}

static void write_sums(qi_writer *w, const comparison *c)
{
    const quire_replay_report *a = &c->reports[SIDE_A], *b = &c->reports[SIDE_B];
    qi_write_text(w, "<table><tr><th></th><th>A</th><th>B</th></tr>\n");
    write_sum(w, "peak requested", a->peak_requested_bytes, b->peak_requested_bytes);
    write_sum(w, "peak held", a->peak_live_bytes, b->peak_live_bytes);
    write_sum(w, "peak reserved", a->peak_reserved_bytes, b->peak_reserved_bytes);
    qi_write_text(w, "</table>\n");
}

static void write_frames(qi_writer *w, const comparison *c)
{
    qi_write_text(w, "<div class=\"pair\">\n");
    for (int i = 0; i < SIDE_COUNT; i++) {
        qi_write_format(w, "<iframe title=\"%s\" srcdoc=\"", LETTERS[i]);
        qi_write_escaped(w, c->pages[i]);
        qi_write_text(w, "\"></iframe>\n");
    }
    qi_write_text(w, "</div>\n");
}

quire_result write_comparison_page(void *comparison_of, quire_sink sink, void *user)
{
    const comparison *c = comparison_of;
    qi_writer w;
    qi_writer_init(&w, sink, user);
    begin_html(&w, "Two traces");
    for (int i = 0; i < SIDE_COUNT; i++) {
        qi_write_format(&w, "<p>%s: ", LETTERS[i]);
        qi_write_escaped(&w, c->setups[i].path);
        qi_write_text(&w, "</p>\n");
    }
    write_sums(&w, c);
    write_names(&w, c);
    qi_write_text(&w, "<h2>Both courses</h2>\n");
    write_frames(&w, c);
    qi_write_text(&w, "</body></html>\n");
    return qi_writer_finish(&w);
}
