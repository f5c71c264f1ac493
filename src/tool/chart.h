/*
 * chart.h - draws a timeline as SVG: requested, held and reserved bytes over the events of a trace,
 * with its frames, its peak and its times.
 */
#ifndef QUIRE_SRC_TOOL_CHART_H
#define QUIRE_SRC_TOOL_CHART_H

#include "src/base/json.h"
#include "src/tool/timeline.h"

/* Writes the rules of the chart's style sheet; html.c writes those that follow the theme. */
void write_chart_style(qi_writer *w);

/* Writes the element <svg>. `most` is the number of bytes at its top. */
void write_chart(qi_writer *w, const timeline *t, const replay_setup *p, uint64_t most);

#endif
