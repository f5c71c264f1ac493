/*
 * html.h - the course of a replay as one HTML file that loads nothing and has no script: where the
 * trace was replayed, the chart, the report, and the pages at the peak and at the end.
 */
#ifndef QUIRE_SRC_TOOL_HTML_H
#define QUIRE_SRC_TOOL_HTML_H

#include "src/tool/timeline.h"

/* What the file shows. `memory` describes the memory before its first allocation. */
typedef struct html_source {
    const timeline *timeline;
    const replay_setup *setup;
    const quire_memory_info *memory;
    const quire_replay_report *report;
} html_source;

/* Writes the output, which is open. Prints the error and returns false. */
bool write_html(output *file, const html_source *source);

#endif
