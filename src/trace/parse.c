/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * parse.c - parses a trace in one pass: converts each line (csv.h) to an event and checks every
 * rule of docs/formats.md.
 *
 * The first error fails the call with NAME:LINE:COLUMN and frees everything.
 */
#include <inttypes.h>
#include <string.h>

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/trace/build.h"
#include "src/trace/csv.h"
#include "src/trace/recording.h"

enum { OP, ID, SIZE, ALIGNMENT, TIME, STREAM, LABEL };

static const char HEADER[] = QI_TRACE_HEADER;
static const char *const FIELD_NAMES[QI_CSV_FIELDS] = {"op",      "id",     "size", "alignment",
                                                       "time_ns", "stream", "label"};

typedef struct reader {
    qi_builder builder;
    qi_csv csv;
    uint64_t first_time, last_time; /* the time_ns fields of the text */
} reader;

/* ---- values ------------------------------------------------------------------------------- */

/* Further columns may follow the known ones. The error points at the first difference. */
static quire_result read_header(reader *r)
{
    char *line = NULL, *end = NULL;
    quire_result result = qi_csv_next_line(&r->csv, &line, &end);
    if (result)
        return result;
    if (!strncmp(line, "\xef\xbb\xbf", 3))
        return qi_csv_refuse(&r->csv, line, "a byte order mark precedes the header line");
    size_t same = 0;
    while (HEADER[same] && line[same] == HEADER[same])
        same++;
    if (HEADER[same] || (line[same] && line[same] != ','))
        return qi_csv_refuse(&r->csv, line + same, "the header line must begin with '%s'", HEADER);
    return QUIRE_SUCCESS;
}

static quire_result expect_empty(const reader *r, int field)
{
    if (*r->csv.fields[field])
        return qi_csv_refuse(&r->csv, r->csv.fields[field], "%s of '%s' must be empty, not '%s'",
                             FIELD_NAMES[field], r->csv.fields[OP],
                             qi_csv_show(r->csv.fields[field]).text);
    return QUIRE_SUCCESS;
}

static quire_result read_op(const reader *r, quire_trace_op *op)
{
    static const char *const names[] = {"alloc", "free", "use", "frame"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!strcmp(r->csv.fields[OP], names[i])) {
            *op = (quire_trace_op)i;
            return QUIRE_SUCCESS;
        }
    }
    return qi_csv_refuse(&r->csv, r->csv.fields[OP], "op is '%s', not alloc, free, use or frame",
                         qi_csv_show(r->csv.fields[OP]).text);
}

/* Converts times to nanoseconds since the first event. They never decrease. */
static quire_result read_time(reader *r, quire_trace_event *event)
{
    uint64_t time = 0;
    quire_result result = qi_csv_number(&r->csv, TIME, &time);
    if (result)
        return result;
    if (!r->builder.trace->info.event_count)
        r->first_time = time;
    else if (time < r->last_time)
        return qi_csv_refuse(&r->csv, r->csv.fields[TIME],
                             "time_ns decreases from %" PRIu64 " to %" PRIu64, r->last_time, time);
    r->last_time = time;
    event->time_ns = time - r->first_time;
    return QUIRE_SUCCESS;
}

static quire_result read_id(const reader *r, uint64_t *id)
{
    quire_result result = qi_csv_number(&r->csv, ID, id);
    if (!result && !*id)
        result = qi_csv_refuse(&r->csv, r->csv.fields[ID], "id must be positive, not '%s'",
                               r->csv.fields[ID]);
    return result;
}

/* An empty alignment means 1. */
static quire_result read_size(const reader *r, quire_trace_event *event)
{
    quire_result result = qi_csv_number(&r->csv, SIZE, &event->size);
    if (!result && !event->size)
        result = qi_csv_refuse(&r->csv, r->csv.fields[SIZE], "size must be at least %d", 1);
    event->alignment = 1;
    if (!result && *r->csv.fields[ALIGNMENT]) {
        result = qi_csv_number(&r->csv, ALIGNMENT, &event->alignment);
        if (!result && !qi_is_power_of_two(event->alignment))
            result = qi_csv_refuse(&r->csv, r->csv.fields[ALIGNMENT],
                                   "alignment %" PRIu64 " is not a power of two", event->alignment);
    }
    return result;
}

/* An empty stream means 0. */
static quire_result read_stream(const reader *r, quire_trace_event *event)
{
    return *r->csv.fields[STREAM] ? qi_csv_number(&r->csv, STREAM, &event->stream) : QUIRE_SUCCESS;
}

static quire_result read_stream_and_label(const reader *r, quire_trace_event *event)
{
    quire_result result = read_stream(r, event);
    event->label = r->csv.fields[LABEL];
    const char *wrong = strpbrk(event->label, "\"\r");
    if (!result && wrong)
        result = qi_csv_refuse(&r->csv, wrong, "a label must not contain quotes or line ends: '%s'",
                               qi_csv_show(event->label).text);
    return result;
}

/* ---- ranges ------------------------------------------------------------------------------- */

/* Registers a new live range. The sum of live bytes must fit 64 bits, so that peaks are exact. */
static quire_result add_alloc(reader *r, quire_trace_event *event)
{
    uint32_t number = 0;
    switch (qi_build_alloc(&r->builder, event, r->csv.line)) {
    case QI_BUILD_IS_LIVE:
        return qi_csv_refuse(&r->csv, r->csv.fields[ID],
                             "id %" PRIu64 " is already live since line %" PRIu64, event->id,
                             qi_build_find(&r->builder, event->id, &number)->place);
    case QI_BUILD_OVERFLOW:
        return qi_csv_refuse(&r->csv, r->csv.fields[SIZE],
                             "with %" PRIu64 " more byte%s the live bytes do not fit 64 bits",
                             event->size, qi_plural(event->size));
    case QI_BUILD_NO_MEMORY:
        return qi_csv_no_memory(&r->csv);
    case QI_BUILD_DONE:
        break;
    }
    return QUIRE_SUCCESS;
}

/* Sets event->range, or fails if the id is not live. A free ends the range. */
static quire_result find_live(reader *r, quire_trace_event *event)
{
    bool is_live = event->op == QUIRE_TRACE_FREE
                       ? qi_build_free(&r->builder, event)
                       : qi_build_find(&r->builder, event->id, &event->range) != NULL;
    if (!is_live)
        return qi_csv_refuse(&r->csv, r->csv.fields[ID], "id %" PRIu64 " is not live", event->id);
    return QUIRE_SUCCESS;
}

/* ---- events ------------------------------------------------------------------------------- */

static quire_result read_frame(reader *r, quire_trace_event *event)
{
    quire_result result = QUIRE_SUCCESS;
    for (int field = ID; field < TIME && !result; field++)
        result = expect_empty(r, field);
    if (!result)
        result = read_time(r, event);
    if (!result)
        result = read_stream(r, event);
    if (!result)
        result = expect_empty(r, LABEL);
    return result;
}

/* Checks the fields from left to right, so that the error names the first wrong one. */
static quire_result read_range_event(reader *r, quire_trace_event *event)
{
    quire_result result = read_id(r, &event->id);
    if (!result && event->op == QUIRE_TRACE_ALLOC)
        result = read_size(r, event);
    if (!result && event->op != QUIRE_TRACE_ALLOC)
        result = expect_empty(r, SIZE);
    if (!result && event->op != QUIRE_TRACE_ALLOC)
        result = expect_empty(r, ALIGNMENT);
    if (!result)
        result = read_time(r, event);
    if (!result)
        result = read_stream_and_label(r, event);
    if (result)
        return result;
    return event->op == QUIRE_TRACE_ALLOC ? add_alloc(r, event) : find_live(r, event);
}

static quire_result read_event(reader *r)
{
    char *line = NULL, *line_end = NULL;
    quire_trace_event event = {.label = ""};
    quire_result result = qi_csv_next_line(&r->csv, &line, &line_end);
    if (!result)
        result = qi_csv_split(&r->csv, line, line_end);
    if (!result)
        result = read_op(r, &event.op);
    if (!result)
        result =
            event.op == QUIRE_TRACE_FRAME ? read_frame(r, &event) : read_range_event(r, &event);
    if (!result && !qi_build_keep(&r->builder, &event))
        result = qi_csv_no_memory(&r->csv);
    return result;
}

/* The caller destroys the trace on failure. */
static quire_result read_text(quire_trace *trace, const char *name, const char *text, size_t size)
{
    reader r = {.builder = {.trace = trace}};
    r.csv = (qi_csv){.name = name, .names = FIELD_NAMES, .host = &trace->host};
    r.csv.at = text;
    r.csv.end = text + size;
    quire_result result = read_header(&r);
    while (!result && r.csv.at < r.csv.end)
        result = read_event(&r);
    qi_build_finish(&r.builder);
    qi_csv_finish(&r.csv);
    return result;
}

/* ---- public calls ------------------------------------------------------------------------- */

/* The trace contains the host memory callbacks that its own memory comes from. */
static quire_trace *make(const quire_host_memory *callbacks, quire_result *result)
{
    qi_host host;
    *result = qi_host_init(&host, callbacks);
    if (*result)
        return NULL;
    quire_trace *trace = qi_host_allocate(&host, 1, sizeof *trace);
    if (trace)
        trace->host = host;
    else
        *result = qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a trace");
    return trace;
}

quire_result quire_trace_parse(const char *name, const char *text, size_t size,
                               const quire_host_memory *host_memory, quire_trace **out)
{
    if (out)
        *out = NULL;
    if (!name || (!text && size) || !out)
        return qi_fail_null("quire_trace_parse", !name ? "name" : !out ? "trace" : "text");
    if (!size)
        return qi_fail_text(QUIRE_ERROR_BAD_FILE, "%s: the file is empty", name);
    quire_result result = QUIRE_SUCCESS;
    quire_trace *trace = make(host_memory, &result);
    if (!trace)
        return result;
    result = qi_is_recording(text, size) ? qi_recording_read(trace, name, text, size)
                                         : read_text(trace, name, text, size);
    if (result)
        quire_trace_destroy(&trace);
    *out = trace;
    return result;
}

/* Copies `host` out of the trace before it frees the trace itself. */
void quire_trace_destroy(quire_trace **trace)
{
    if (!trace || !*trace)
        return;
    quire_trace *ending = *trace;
    *trace = NULL;
    qi_host_release(&ending->host, ending->events, ending->event_room, sizeof *ending->events);
    qi_labels_finish(&ending->labels, &ending->host);
    qi_host host = ending->host;
    qi_host_release(&host, ending, 1, sizeof *ending);
}

quire_result quire_trace_get_info(const quire_trace *trace, quire_trace_info *info)
{
    if (info)
        *info = (quire_trace_info){0};
    if (!trace || !info)
        return qi_fail_null("quire_trace_get_info", !trace ? "trace" : "info");
    *info = trace->info;
    return QUIRE_SUCCESS;
}

quire_result quire_trace_get_event(const quire_trace *trace, uint64_t number,
                                   quire_trace_event *event)
{
    if (event)
        *event = (quire_trace_event){0};
    if (!trace || !event)
        return qi_fail_null("quire_trace_get_event", !trace ? "trace" : "event");
    if (number >= trace->info.event_count)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE, "event %u of a trace of %u", number,
                            trace->info.event_count);
    *event = trace->events[number];
    return QUIRE_SUCCESS;
}
