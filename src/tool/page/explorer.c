/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* explorer.c - see explorer.h. */
#include "src/tool/page/explorer.h"

#include <inttypes.h>
#include <string.h>

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

/* What a moment is, and what has the ranges, for the script. */
static void write_words(qi_writer *w, const course *c)
{
    qi_write_format(w, " data-word=\"%s\" data-place=\"%s\"", c->times ? "time" : "event",
                    c->is_plan ? "arena" : "page");
    if (c->times)
        write_number(w, "first", c->times[0]);
}

/* The text for a name between braces in the markup. */
static const char *word_of(const course *c, const char *name, size_t length)
{
    const struct {
        const char *name, *text;
    } words[] = {
        {"event", c->times ? "time" : "event"},
        {"After event", c->times ? "At time" : "After event"},
        {"pages", c->is_plan ? "arenas" : "pages"},
        {"Pages", c->is_plan ? "Arenas" : "Pages"},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i].name) == length && !memcmp(words[i].name, name, length))
            return words[i].text;
    return "";
}

/* Writes the markup with a text in place of each name between braces. */
static void write_markup(qi_writer *w, const course *c)
{
    const char *at = explorer_html;
    for (const char *open = strchr(at, '{'); open; open = strchr(at, '{')) {
        const size_t length = strcspn(open + 1, "}");
        qi_write(w, at, (size_t)(open - at));
        qi_write_text(w, word_of(c, open + 1, length));
        at = open + 1 + length + 1;
    }
    qi_write_text(w, at);
}

bool explorer_write(qi_writer *w, const course *c, const page_selection *s)
{
    qi_write_text(w, "<section id=\"explorer\" hidden");
    write_number(w, "events", c->last);
    write_number(w, "peak", c->peak);
    write_number(w, "omitted", c->range_count - s->count);
    write_number(w, "column", page_column(c, s));
    write_words(w, c);
    qi_write_text(w, ">\n");
    write_markup(w, c);
    const bool is_whole = page_write_data(w, c, s);
    qi_write_text(w, "</section>\n<noscript><p>The course needs a browser that runs "
                     "scripts.</p></noscript>\n<script>\n");
    qi_write_text(w, course_js);
    qi_write_text(w, chart_js);
    qi_write_text(w, explorer_js);
    qi_write_text(w, "</script>\n");
    return is_whole;
}
