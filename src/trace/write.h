/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * write.h - the lines of a trace of text, one by one, for what has no trace in memory.
 */
#ifndef QUIRE_SRC_TRACE_WRITE_H
#define QUIRE_SRC_TRACE_WRITE_H

#include "quire/trace.h"
#include "src/base/json.h"

/* The first line, and the line of an event, whose range is not used. */
void qi_trace_write_header(qi_writer *writer);
void qi_trace_write_event(qi_writer *writer, const quire_trace_event *event);

#endif
