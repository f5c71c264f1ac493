/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* explorer.c - see explorer.h. */
#include "src/tool/page/explorer.h"

#include <inttypes.h>

/* The files of this folder with these names, by scripts/embed.py. */
extern const char explorer_css[], explorer_html[], explorer_js[];

void explorer_write_style(qi_writer *w)
{
    qi_write_text(w, explorer_css);
}

void explorer_write(qi_writer *w, const course *c, const page_selection *s, uint64_t peak)
{
    qi_write_format(w, "<section id=\"explorer\" hidden data-events=\"%" PRIu64 "\"",
                    c->setup->info.event_count);
    qi_write_format(w, " data-peak=\"%" PRIu64 "\" data-omitted=\"%" PRIu64 "\">\n", peak,
                    c->range_count - s->count);
    qi_write_text(w, explorer_html);
    page_write_data(w, c, s);
    qi_write_text(w, "</section>\n<noscript><p>The pages and names at each event need a browser "
                     "that runs scripts.</p></noscript>\n<script>\n");
    qi_write_text(w, explorer_js);
    qi_write_text(w, "</script>\n");
}
