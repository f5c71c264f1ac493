/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * write.c - writes a trace as CSV text, which parse.c reads back to the same events.
 */
#include "src/trace/write.h"

#include <inttypes.h>

#include "src/base/result.h"
#include "src/trace/trace.h"

void qi_trace_write_header(qi_writer *w)
{
    qi_write_text(w, QI_TRACE_HEADER "\n");
}

void qi_trace_write_event(qi_writer *w, const quire_trace_event *event)
{
    static const char *const ops[] = {[QUIRE_TRACE_ALLOC] = "alloc",
                                      [QUIRE_TRACE_FREE] = "free",
                                      [QUIRE_TRACE_USE] = "use",
                                      [QUIRE_TRACE_FRAME] = "frame"};
    qi_write_text(w, ops[event->op]);
    if (event->op == QUIRE_TRACE_FRAME)
        qi_write_text(w, ",,");
    else
        qi_write_format(w, ",%" PRIu64 ",", event->id);
    if (event->op == QUIRE_TRACE_ALLOC)
        qi_write_format(w, "%" PRIu64 ",%" PRIu64, event->size, event->alignment);
    else
        qi_write_text(w, ",");
    qi_write_format(w, ",%" PRIu64 ",%" PRIu64 ",", event->time_ns, event->stream);
    qi_write_label(w, event->label);
    qi_write_text(w, "\n");
}

quire_result quire_trace_write_csv(const quire_trace *trace, quire_sink sink, void *user)
{
    if (!trace || !sink)
        return qi_fail_null("quire_trace_write_csv", !trace ? "trace" : "sink");
    qi_writer writer;
    qi_writer_init(&writer, sink, user);
    qi_trace_write_header(&writer);
    for (uint64_t i = 0; i < trace->info.event_count && !writer.failed; i++)
        qi_trace_write_event(&writer, &trace->events[i]);
    return qi_writer_finish(&writer);
}
