/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * html.h - one HTML file about a replay, which loads nothing: the place of the replay, a chart, the
 * report, and the pages and names at any event.
 */
#ifndef QUIRE_SRC_TOOL_HTML_H
#define QUIRE_SRC_TOOL_HTML_H

#include "src/tool/page/course.h"

/* ---- the timeline ------------------------------------------------------------------------- */

/*
 * Requested, held and reserved bytes after each event. A chart has fewer columns than a long trace
 * has events. Each column has the minimum and the maximum of its events, so that the highest point
 * of a line is the peak.
 */

enum { SERIES_REQUESTED, SERIES_LIVE, SERIES_RESERVED, SERIES_COUNT };

typedef struct sample {
    uint64_t event, bytes;
} sample;

/* The extremes of some successive events, for each series. */
typedef struct column {
    sample min[SERIES_COUNT], max[SERIES_COUNT];
} column;

typedef struct timeline {
    quire_memory *memory;
    column *columns;
    uint64_t count, room; /* of columns */
    uint64_t events;      /* of the whole trace */
    uint64_t every;       /* events per column */
    uint64_t peaks[SERIES_COUNT];
    sample last[SERIES_COUNT];
    uint64_t peak; /* events up to the first peak of requested bytes */
} timeline;

/* Starts a timeline of a replay. Prints the error and returns false without host memory. */
bool timeline_begin(timeline *t, const replay_setup *p);

/*
 * Records the memory's statistics. The caller calls it after each event, and before the first.
 */
void timeline_sample(timeline *t, uint64_t event);

/* Frees the timeline. A zeroed one is allowed. */
void timeline_end(timeline *t);

/* ---- the file ----------------------------------------------------------------------------- */

/* What the file shows. `memory` describes the memory before its first allocation. */
typedef struct html_source {
    const timeline *timeline;
    const course *course;
    const replay_setup *setup;
    const quire_memory_info *memory;
    const quire_replay_report *report;
} html_source;

/* Writes the output, which is open. Prints the error and returns false. */
bool write_html(output *file, const html_source *source);

#endif
