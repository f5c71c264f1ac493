/*
 * timeline.h - the course of a replay as one self-contained HTML file: a chart of requested, held
 * and reserved bytes over the events, the report, and the page map after the last event.
 *
 * A chart has fewer columns than a long trace has events. Each column shows the minimum and the
 * maximum of its events, so that the highest point of a line is the peak.
 */
#ifndef QUIRE_SRC_TOOL_TIMELINE_H
#define QUIRE_SRC_TOOL_TIMELINE_H

#include "src/tool/replay_setup.h"

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
} timeline;

/* Starts a timeline of `events` events. Prints the error and returns false without host memory. */
bool timeline_begin(timeline *t, quire_memory *memory, uint64_t events);

/* Records the memory's statistics. The caller calls it after each event, and before the first. */
void timeline_sample(timeline *t, uint64_t event);

/* Writes the file. Prints the error and returns false. */
bool timeline_write(const timeline *t, const char *path, const replay_setup *p,
                    const quire_replay_report *report);

/* Frees the timeline. A zeroed one is allowed. */
void timeline_end(timeline *t);

#endif
