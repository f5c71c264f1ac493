/*
 * timeline.h - the course of a replay as one HTML file that needs nothing else: bytes asked for,
 * held and reserved over the events, the report, and the page map after the last event.
 *
 * A chart has fewer columns than a long trace has events. Each column shows the least and the most
 * of its events, so that the highest point of a line is the peak.
 */
#ifndef QUIRE_SRC_CLI_TIMELINE_H
#define QUIRE_SRC_CLI_TIMELINE_H

#include "src/cli/playing.h"

enum { COURSE_REQUESTED, COURSE_LIVE, COURSE_RESERVED, COURSES };

typedef struct level {
    uint64_t event, bytes;
} level;

/* Of some events that follow each other, for each course. */
typedef struct column {
    level least[COURSES], most[COURSES];
} column;

typedef struct timeline {
    quire_memory *memory;
    column *columns;
    uint64_t count, room;
    uint64_t events; /* of the whole trace */
    uint64_t every;  /* events of a column */
    uint64_t peaks[COURSES];
    level last[COURSES];
} timeline;

/* Room for a course of `events`; false with the sentence printed when there is none. */
bool timeline_begin(timeline *t, quire_memory *memory, uint64_t events);

/* Looks at the memory after so many events; called after each of them. */
void timeline_sample(timeline *t, uint64_t event);

/* Writes the file; false with the sentence printed. */
bool timeline_write(const timeline *t, const char *path, const playing *p,
                    const quire_replay_report *report);

void timeline_end(timeline *t);

#endif
