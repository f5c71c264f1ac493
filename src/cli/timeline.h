/*
 * timeline.h - the course of a replay as one HTML file that needs nothing else: bytes asked for,
 * held and reserved over the events, the page map when the most was live, and the report.
 */
#ifndef QUIRE_SRC_CLI_TIMELINE_H
#define QUIRE_SRC_CLI_TIMELINE_H

#include "src/cli/playing.h"

typedef struct sample {
    uint64_t event;
    uint64_t requested, live, reserved; /* bytes */
} sample;

typedef struct timeline {
    quire_memory *memory;
    sample *samples;
    uint64_t count, room;
    uint64_t events; /* of the whole trace */
    uint64_t every;  /* events between samples */
} timeline;

/* Room for a course of `events`; false with the sentence printed when there is none. */
bool timeline_begin(timeline *t, quire_memory *memory, uint64_t events);

/* Takes a sample when one is due. */
void timeline_sample(timeline *t, uint64_t event);

/* Writes the file; false with the sentence printed. */
bool timeline_write(const timeline *t, const char *path, const playing *p,
                    const quire_replay_report *report);

void timeline_end(timeline *t);

#endif
