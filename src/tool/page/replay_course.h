/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* replay_course.h - records the course of a replay by the events of its memory. */
#ifndef QUIRE_SRC_TOOL_PAGE_REPLAY_COURSE_H
#define QUIRE_SRC_TOOL_PAGE_REPLAY_COURSE_H

#include "src/tool/page/course.h"
#include "src/tool/replay_setup.h"
#include "src/tool/stretches.h"

typedef struct replay_course {
    course course;
    uint64_t event;       /* number of the event of the trace that is replayed, from 0 */
    uint64_t every;       /* moments between two looks at what is free */
    quire_memory *memory; /* of the set-up */
    bool is_elastic;
    stretches backed;     /* memory of the elastic page now */
    uint64_t *live;       /* index + 1 of the range with a number of the trace; 0: none */
    uint32_t *current;    /* index + 1 of the page that has a number now; 0: none */
    uint64_t number_room; /* of `current` */
} replay_course;

/* Starts to record the memory of a set-up. Prints the error and returns false. */
bool replay_course_begin(replay_course *r, const replay_setup *setup);

/* Continues after `done` events of the trace. */
void replay_course_step(replay_course *r, uint64_t done);

/* Stops to record. Prints an error and returns false if something was lost. */
bool replay_course_stop(replay_course *r);

/* Frees the course. A zeroed one is allowed. */
void replay_course_end(replay_course *r);

#endif
