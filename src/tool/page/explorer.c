/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* explorer.c - see explorer.h. */
#include "src/tool/page/explorer.h"

#include <inttypes.h>

/* The files of this folder with these names, by scripts/embed.py. */
extern const char explorer_css[], explorer_html[], course_js[], chart_js[], explorer_js[];

void explorer_write_style(qi_writer *w)
{
    qi_write_text(w, explorer_css);
}

/* An attribute of the section, for the script. */
static void write_number(qi_writer *w, const char *name, uint64_t value)
{
    qi_write_format(w, " data-%s=\"%" PRIu64 "\"", name, value);
}

bool explorer_write(qi_writer *w, const course *c, const page_selection *s)
{
    qi_write_text(w, "<section id=\"explorer\" hidden");
    write_number(w, "events", c->last);
    write_number(w, "peak", c->peak);
    write_number(w, "omitted", c->range_count - s->count);
    write_number(w, "column", page_column(c, s));
    qi_write_text(w, ">\n");
    qi_write_text(w, explorer_html);
    const bool is_whole = page_write_data(w, c, s);
    qi_write_text(w, "</section>\n<noscript><p>The course needs a browser that runs "
                     "scripts.</p></noscript>\n<script>\n");
    qi_write_text(w, course_js);
    qi_write_text(w, chart_js);
    qi_write_text(w, explorer_js);
    qi_write_text(w, "</script>\n");
    return is_whole;
}
