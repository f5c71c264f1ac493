/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * trace.h - a trace in memory: parse.c and recording.c create it, replay.c replays it. It does not
 * change after parsing, so several threads can replay it at the same time.
 */
#ifndef QUIRE_SRC_TRACE_TRACE_H
#define QUIRE_SRC_TRACE_TRACE_H

#include "quire/trace.h"
#include "src/trace/labels.h"

/* The first line of a trace of text. */
#define QI_TRACE_HEADER "op,id,size,alignment,time_ns,stream,label"

struct quire_trace {
    qi_host host; /* owns all memory below and this struct */
    qi_labels labels;
    quire_trace_event *events;
    uint64_t event_room;
    uint32_t range_count; /* event.range is below it; the maximum number of live ranges */
    quire_trace_info info;
};

#endif
