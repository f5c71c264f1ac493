/*
 * trace.h - a trace as it was read (parse.c), for the replay (replay.c).
 */
#ifndef QUIRE_SRC_TRACE_TRACE_H
#define QUIRE_SRC_TRACE_TRACE_H

#include "quire/trace.h"
#include "src/trace/labels.h"

struct quire_trace {
    qi_host host;
    qi_labels labels;
    quire_trace_event *events;
    uint64_t event_room;
    uint32_t range_count; /* ranges are numbered below */
    quire_trace_info info;
};

#endif
