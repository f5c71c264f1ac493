/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * recording.c - reads the blocks of a recording and checks every record (see recording.h).
 *
 * The bytes have no alignment. What they say is believed after it was checked. An incomplete block
 * at the end is what a crash leaves, or what a recorder is writing: a trace counts it and leaves it
 * out, and a reader that follows the file begins there again.
 */
#include "src/trace/recording.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "src/base/json.h"
#include "src/base/recording.h"
#include "src/base/result.h"
#include "src/base/text.h"

enum { UNIT = QI_RECORDING_UNIT };

/* A label has at most three bytes for each byte of a name. */
enum { MAX_NAME = QUIRE_MAX_NAME, MAX_LABEL = 3 * MAX_NAME };

typedef struct reader {
    qi_recording *recording; /* its offset is that of the current block */
    const char *bytes;       /* of the current block */
    size_t at;               /* offset of the current record in the block */
    qi_block_header header;
    uint32_t ticks; /* of the record before, in the block */
} reader;

bool qi_is_recording(const char *bytes, size_t size)
{
    return size >= sizeof QI_RECORDING_MAGIC - 1 &&
           !memcmp(bytes, QI_RECORDING_MAGIC, sizeof QI_RECORDING_MAGIC - 1);
}

/* The offset in the file of the current record; between two blocks, of the next block. */
static uint64_t where(const reader *r)
{
    return r->recording->offset + r->at;
}

static quire_result refuse(const reader *r, const char *format, ...) QUIRE_PRINTF(2, 3);

static quire_result refuse(const reader *r, const char *format, ...)
{
    char what[160];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return qi_fail_text(QUIRE_ERROR_BAD_FILE, "%s: byte %" PRIu64 ": %s", r->recording->name,
                        where(r), what);
}

static quire_result no_memory(const reader *r)
{
    return qi_fail_text(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "%s: no host memory for a trace",
                        r->recording->name);
}

/* ---- names -------------------------------------------------------------------------------- */

/* Reads the unit at an offset of the current block. */
static qi_record unit_at(const reader *r, size_t offset)
{
    qi_record unit;
    memcpy(&unit, r->bytes + offset, sizeof unit);
    return unit;
}

/* Requires a record of a name. Writes the name as a label, without a 0 inside. */
static void read_label(const reader *r, size_t offset, char label[MAX_LABEL + 1])
{
    char name[MAX_NAME + 1] = "";
    size_t length = (size_t)unit_at(r, offset).id, used = 0;
    memcpy(name, r->bytes + offset + UNIT, length);
    const char *rest = name;
    for (uint32_t c; (c = qi_next_code_point(&rest)) != 0;)
        used += qi_put_code_point(qi_label_code_point(c), label + used);
    label[used] = '\0';
}

/* Whether the record at an offset, which an allocation names, is that of a name before it. */
static bool is_name(const reader *r, size_t offset)
{
    return offset % UNIT == 0 && offset >= sizeof r->header && offset < r->at &&
           unit_at(r, offset).kind == QI_RECORD_NAME && unit_at(r, offset).id <= MAX_NAME &&
           offset + UNIT + unit_at(r, offset).id <= r->at;
}

/* ---- records ------------------------------------------------------------------------------ */

/* Nanoseconds since the first event. */
static uint64_t time_of(const reader *r, uint32_t ticks)
{
    qi_recording *recording = r->recording;
    const qi_block_header *h = &r->header;
    uint64_t span = h->end_ns - h->begin_ns;
    double share = h->ticks ? (double)ticks / (double)h->ticks : 0;
    uint64_t time = h->begin_ns + (uint64_t)(share * (double)span);
    time = time < h->end_ns ? time : h->end_ns;
    if (!recording->builder.trace->info.event_count)
        recording->first_time = time;
    return time - recording->first_time;
}

static quire_result take(const reader *r, const quire_trace_event *event)
{
    return r->recording->take(r->recording, event) ? QUIRE_SUCCESS : no_memory(r);
}

static quire_result read_alloc(const reader *r, const qi_record *record, quire_trace_event *event)
{
    qi_record_size more;
    uint32_t number = 0;
    qi_recording *recording = r->recording;
    memcpy(&more, r->bytes + r->at + UNIT, sizeof more);
    if (!record->id || !more.size || record->alignment > 63)
        return refuse(r, "an allocation of %" PRIu64 " bytes, alignment 2^%u, id %" PRIu64,
                      more.size, record->alignment, record->id);
    if (more.name && !is_name(r, more.name))
        return refuse(r, "no name is at byte %u of the block", more.name);
    event->size = more.size;
    event->alignment = UINT64_C(1) << record->alignment;
    switch (qi_build_alloc(&recording->builder, event, recording->last_id + 1)) {
    case QI_BUILD_IS_LIVE:
        return refuse(r, "the range is live already, as allocation %" PRIu64,
                      qi_build_find(&recording->builder, event->id, &number)->place);
    case QI_BUILD_OVERFLOW:
        return refuse(r, "the live bytes do not fit 64 bits");
    case QI_BUILD_NO_MEMORY:
        return no_memory(r);
    case QI_BUILD_DONE:
        break;
    }
    event->id = ++recording->last_id;
    char label[MAX_LABEL + 1] = "";
    if (more.name)
        read_label(r, more.name, label);
    event->label = label;
    return take(r, event);
}

/* A range that does not live is older than the recording. */
static quire_result read_free(const reader *r, quire_trace_event *event)
{
    qi_builder *builder = &r->recording->builder;
    const qi_built_range *range = qi_build_find(builder, event->id, &event->range);
    if (!range)
        return QUIRE_SUCCESS;
    uint64_t number = range->place;
    if (!qi_build_free(builder, event))
        return QUIRE_SUCCESS;
    event->id = number;
    return take(r, event);
}

/* Returns the bytes of a record with its further units; 0: its kind is unknown. */
static size_t size_of(const qi_record *record)
{
    switch (record->kind) {
    case QI_RECORD_ALLOC:
        return 2 * UNIT;
    case QI_RECORD_FREE:
    case QI_RECORD_FRAME:
        return UNIT;
    case QI_RECORD_NAME:
        return record->id <= MAX_NAME ? UNIT + (size_t)(record->id + UNIT - 1) / UNIT * UNIT : 0;
    default:
        return 0;
    }
}

static quire_result read_record(reader *r)
{
    qi_record record = unit_at(r, r->at);
    size_t size = size_of(&record);
    if (!size || r->at + size > r->header.size)
        return refuse(r, "no record, or one that is longer than its block");
    if (record.ticks < r->ticks || record.ticks > r->header.ticks)
        return refuse(r, "the time of the record is not that of its block");
    r->ticks = record.ticks;
    quire_trace_event event = {.id = record.id, .stream = record.stream, .label = ""};
    event.time_ns = time_of(r, record.ticks);
    quire_result result = QUIRE_SUCCESS;
    if (record.kind == QI_RECORD_ALLOC) {
        event.op = QUIRE_TRACE_ALLOC;
        result = read_alloc(r, &record, &event);
    } else if (record.kind == QI_RECORD_FREE) {
        event.op = QUIRE_TRACE_FREE;
        result = read_free(r, &event);
    } else if (record.kind == QI_RECORD_FRAME) {
        if (record.id)
            return refuse(r, "a frame with the id %" PRIu64, record.id);
        event.op = QUIRE_TRACE_FRAME;
        result = take(r, &event);
    }
    r->at += size;
    return result;
}

/* ---- blocks ------------------------------------------------------------------------------- */

/* Reads the header of the block that begins here. Returns false if the bytes end inside the
   block. */
static bool has_block(reader *r, const char *bytes, size_t size)
{
    if (size < sizeof r->header)
        return false;
    r->bytes = bytes;
    r->at = 0;
    memcpy(&r->header, bytes, sizeof r->header);
    return r->header.size <= size || r->header.size > QI_RECORDING_BLOCK;
}

static quire_result check_header(const reader *r)
{
    const qi_block_header *h = &r->header;
    if (!qi_is_recording(r->bytes, sizeof *h))
        return refuse(r, "no block of a recording begins here");
    if (h->order != QI_RECORDING_ORDER)
        return refuse(r, "the recording has another byte order");
    if (h->size < sizeof *h || h->size % UNIT || h->size > QI_RECORDING_BLOCK)
        return refuse(r, "a block of %u bytes", h->size);
    if (h->begin_ns > h->end_ns || h->begin_ns < r->recording->last_end)
        return refuse(r, "the time of the block is before that of the last one");
    return QUIRE_SUCCESS;
}

static quire_result read_block(reader *r)
{
    quire_result result = check_header(r);
    r->ticks = 0;
    for (r->at = sizeof r->header; !result && r->at < r->header.size;)
        result = read_record(r);
    if (result)
        return result;
    r->recording->last_end = r->header.end_ns;
    r->recording->offset += r->header.size;
    return QUIRE_SUCCESS;
}

quire_result qi_recording_follow(qi_recording *recording, const char *bytes, size_t size,
                                 size_t *used)
{
    reader r = {.recording = recording};
    quire_result result = QUIRE_SUCCESS;
    *used = 0;
    while (!result && has_block(&r, bytes + *used, size - *used)) {
        result = read_block(&r);
        *used += result ? 0 : r.header.size;
    }
    return result;
}

/* ---- traces ------------------------------------------------------------------------------- */

static bool keep(qi_recording *recording, const quire_trace_event *event)
{
    return qi_build_keep(&recording->builder, event);
}

quire_result qi_recording_read(quire_trace *trace, const char *name, const char *bytes, size_t size)
{
    qi_recording recording = {.builder = {.trace = trace}, .name = name, .take = keep};
    size_t used = 0;
    quire_result result = qi_recording_follow(&recording, bytes, size, &used);
    trace->info.cut_bytes = result ? 0 : size - used;
    qi_build_finish(&recording.builder);
    return result;
}
