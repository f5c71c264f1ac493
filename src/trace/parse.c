/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * parse.c - parses a trace in one pass: converts each line (csv.h) to an event and checks every
 * rule of docs/formats.md.
 *
 * The first error fails the call with NAME:LINE:COLUMN and frees everything. Memory grows with the
 * events read so far, so that a large file that is not a trace needs almost none.
 */
#include <inttypes.h>
#include <string.h>

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/trace/csv.h"
#include "src/base/id_map.h"
#include "src/trace/trace.h"

enum { OP, ID, SIZE, ALIGNMENT, TIME, STREAM, LABEL };
enum { FIRST_EVENTS = 64 };

static const char HEADER[] = "op,id,size,alignment,time_ns,stream,label";
static const char *const FIELD_NAMES[QI_CSV_FIELDS] = {"op",      "id",     "size", "alignment",
                                                       "time_ns", "stream", "label"};

/* A range number in use, or a free one in the list of reader.free_range. */
typedef struct range {
    uint64_t size;
    uint64_t line;      /* number of the line that allocated it */
    uint32_t next_free; /* number + 1 of the next free one; 0 ends the list */
} range;

typedef struct reader {
    quire_trace *trace;
    qi_csv csv;
    qi_id_map ids; /* of the live ranges */
    range *ranges;
    uint64_t range_room;
    uint32_t free_range; /* number + 1 of the first free range number; 0 means none */
    uint64_t live_bytes, live_count;
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
    if (!r->trace->info.event_count)
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

/* Reuses the number freed last, or adds one, so that numbers stay below the peak of live ranges. */
static bool take_range(reader *r, uint32_t *number)
{
    if (r->free_range) {
        *number = r->free_range - 1;
        r->free_range = r->ranges[*number].next_free;
        return true;
    }
    uint64_t room = r->range_room;
    if (r->trace->range_count == room) {
        uint64_t more = room ? room * 2 : 64;
        range *ranges = qi_host_resize(&r->trace->host, r->ranges, room, more, sizeof *ranges);
        if (!ranges)
            return false;
        r->ranges = ranges;
        r->range_room = more;
    }
    *number = r->trace->range_count++;
    return true;
}

/* peak_event is the first event that reaches the peak; equal peaks later do not replace it. */
static void raise_peak(reader *r)
{
    quire_trace_info *info = &r->trace->info;
    if (r->live_bytes > info->peak_bytes) {
        info->peak_bytes = r->live_bytes;
        info->peak_event = info->event_count;
    }
    info->peak_ranges = r->live_count > info->peak_ranges ? r->live_count : info->peak_ranges;
}

/* Registers a new live range. The sum of live bytes must fit 64 bits, so that peaks are exact. */
static quire_result add_alloc(reader *r, quire_trace_event *event)
{
    const uint32_t *live = qi_id_map_find(&r->ids, event->id);
    quire_trace_info *info = &r->trace->info;
    if (live)
        return qi_csv_refuse(&r->csv, r->csv.fields[ID],
                             "id %" PRIu64 " is already live since line %" PRIu64, event->id,
                             r->ranges[*live].line);
    if (qi_add_overflows(r->live_bytes, event->size, &r->live_bytes))
        return qi_csv_refuse(&r->csv, r->csv.fields[SIZE],
                             "with %" PRIu64 " more byte%s the live bytes do not fit 64 bits",
                             event->size, qi_plural(event->size));
    if (!take_range(r, &event->range) ||
        !qi_id_map_add(&r->ids, &r->trace->host, event->id, event->range))
        return qi_csv_no_memory(&r->csv);
    r->ranges[event->range] = (range){.size = event->size, .line = r->csv.line};
    r->live_count++;
    info->alloc_count++;
    info->largest = event->size > info->largest ? event->size : info->largest;
    raise_peak(r);
    return QUIRE_SUCCESS;
}

/* Sets event->range, or fails if the id is not live. */
static quire_result find_live(const reader *r, quire_trace_event *event)
{
    const uint32_t *live = qi_id_map_find(&r->ids, event->id);
    if (!live)
        return qi_csv_refuse(&r->csv, r->csv.fields[ID], "id %" PRIu64 " is not live", event->id);
    event->range = *live;
    return QUIRE_SUCCESS;
}

/* Ends a live range and puts its number into the free list. */
static quire_result add_free(reader *r, quire_trace_event *event)
{
    quire_result result = find_live(r, event);
    if (result)
        return result;
    qi_id_map_remove(&r->ids, event->id);
    r->live_bytes -= r->ranges[event->range].size;
    r->live_count--;
    r->ranges[event->range].next_free = r->free_range;
    r->free_range = event->range + 1;
    r->trace->info.free_count++;
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
    r->trace->info.frame_count++;
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
    if (event->op == QUIRE_TRACE_ALLOC)
        return add_alloc(r, event);
    if (event->op == QUIRE_TRACE_FREE)
        return add_free(r, event);
    r->trace->info.use_count++;
    return find_live(r, event);
}

/* Makes room for one more event, by doubling. Returns false if host memory is exhausted. */
static bool make_room(quire_trace *trace)
{
    if (trace->info.event_count < trace->event_room)
        return true;
    uint64_t room = trace->event_room ? trace->event_room * 2 : FIRST_EVENTS;
    quire_trace_event *events =
        qi_host_resize(&trace->host, trace->events, trace->event_room, room, sizeof *events);
    if (!events)
        return false;
    trace->events = events;
    trace->event_room = room;
    return true;
}

/* Appends the event with a copy of its label; the original is in the copy of the line. */
static quire_result keep_event(reader *r, quire_trace_event *event)
{
    quire_trace *trace = r->trace;
    event->label = qi_labels_add(&trace->labels, &trace->host, event->label);
    if (!event->label || !make_room(trace))
        return qi_csv_no_memory(&r->csv);
    trace->events[trace->info.event_count++] = *event;
    return QUIRE_SUCCESS;
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
    return result ? result : keep_event(r, &event);
}

/* Frees the reader's tables on success and on failure. The caller destroys the trace on failure. */
static quire_result read_all(reader *r)
{
    quire_result result = read_header(r);
    while (!result && r->csv.at < r->csv.end)
        result = read_event(r);
    r->trace->info.left_count = r->live_count;
    r->trace->info.left_bytes = r->live_bytes;
    r->trace->info.end_ns = r->last_time - r->first_time;
    qi_id_map_finish(&r->ids, &r->trace->host);
    qi_host_release(&r->trace->host, r->ranges, r->range_room, sizeof *r->ranges);
    qi_csv_finish(&r->csv);
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
    reader r = {.trace = trace};
    r.csv = (qi_csv){.name = name, .names = FIELD_NAMES, .host = &trace->host};
    r.csv.at = text;
    r.csv.end = text + size;
    result = read_all(&r);
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
