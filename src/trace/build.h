/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * build.h - adds events to a trace, for the readers of text (parse.c) and of recordings
 * (recording.c): which ranges live, their numbers, and the totals.
 *
 * Memory grows with the events so far, so that a large file that is not a trace needs almost none;
 * with the live ranges only, if events are counted and not kept. Not thread-safe.
 */
#ifndef QUIRE_SRC_TRACE_BUILD_H
#define QUIRE_SRC_TRACE_BUILD_H

#include "src/base/id_map.h"
#include "src/trace/trace.h"

/* A range number in use, or a free one in the list of free_range. */
typedef struct qi_built_range {
    uint64_t size;
    uint64_t place;     /* where the file allocated it */
    uint32_t next_free; /* number + 1 of the next free one; 0 ends the list */
} qi_built_range;

typedef struct qi_builder {
    quire_trace *trace;
    qi_id_map ids; /* of the live ranges */
    qi_built_range *ranges;
    uint64_t range_room;
    uint32_t free_range; /* number + 1 of the first free range number; 0 means none */
    uint64_t live_bytes, live_count;
} qi_builder;

typedef enum qi_build_result {
    QI_BUILD_DONE = 0,
    QI_BUILD_IS_LIVE,  /* the range of the id: qi_build_find has it */
    QI_BUILD_OVERFLOW, /* the sum of the live bytes does not fit 64 bits */
    QI_BUILD_NO_MEMORY
} qi_build_result;

/* Returns the live range of an id, and writes its number; NULL: it does not live. */
const qi_built_range *qi_build_find(const qi_builder *builder, uint64_t id, uint32_t *number);

/* Sets event->range of an allocation with size and id; the range lives then. */
QUIRE_MUST_USE qi_build_result qi_build_alloc(qi_builder *builder, quire_trace_event *event,
                                              uint64_t place);

/* Sets event->range of a free, and ends the range. Returns false if the id does not live. */
QUIRE_MUST_USE bool qi_build_free(qi_builder *builder, quire_trace_event *event);

/* Adds an event to the totals of the trace, which does not keep it. */
void qi_build_count(qi_builder *builder, const quire_trace_event *event);

/* Counts and appends an event, with a copy of its label. Returns false if host memory is
   exhausted. */
QUIRE_MUST_USE bool qi_build_keep(qi_builder *builder, const quire_trace_event *event);

/* Writes the totals of what lives at the end, and frees the tables. */
void qi_build_finish(qi_builder *builder);

#endif
