/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * html.h - one HTML page about a replay, which loads nothing: the place of the replay, its
 * report, and its course: a chart, and the pages and names at any event.
 */
#ifndef QUIRE_SRC_TOOL_HTML_H
#define QUIRE_SRC_TOOL_HTML_H

#include "src/tool/page/course.h"
#include "src/tool/replay_setup.h"

/* What the page shows. `memory` describes the memory before its first allocation. */
typedef struct html_source {
    const course *course;
    const replay_setup *setup;
    const quire_memory_info *memory;
    const quire_replay_report *report;
} html_source;

/* Writes the page of an html_source. */
quire_result write_html(void *source, quire_sink sink, void *user);

/* Writes what every page begins with, up to its heading, which is `title`. */
void begin_html(qi_writer *w, const char *title);

#endif
