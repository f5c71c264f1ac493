/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * recording.c - reads the blocks of a recording and checks every record (see recording.h).
 *
 * The bytes have no alignment. What they say is believed after it was checked. An incomplete block
 * at the end is what a crash leaves: it is counted and left out.
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
#include "src/trace/build.h"

enum { UNIT = QI_RECORDING_UNIT };

/* A label has at most three bytes for each byte of a name. */
enum { MAX_NAME = QUIRE_MAX_NAME, MAX_LABEL = 3 * MAX_NAME };

typedef struct reader {
    qi_builder builder;
    const char *name;  /* of the file */
    const char *bytes; /* of the file */
    size_t size;
    size_t block; /* offset of the current block in the file */
    size_t at;    /* offset of the current record in the block */
    qi_block_header header;
    uint32_t ticks;      /* of the record before, in the block */
    uint64_t first_time; /* of the first event */
    uint64_t last_end;   /* end_ns of the block before */
    uint64_t last_id;    /* of the trace: ranges are numbered as they come */
} reader;

bool qi_is_recording(const char *bytes, size_t size)
{
    return size >= sizeof QI_RECORDING_MAGIC - 1 &&
           !memcmp(bytes, QI_RECORDING_MAGIC, sizeof QI_RECORDING_MAGIC - 1);
}

/* The offset in the file of the current record; between two blocks, of the next block. */
static size_t where(const reader *r)
{
    return r->block + r->at;
}

static quire_result refuse(const reader *r, const char *format, ...) QUIRE_PRINTF(2, 3);

static quire_result refuse(const reader *r, const char *format, ...)
{
    char what[160];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return qi_fail_text(QUIRE_ERROR_BAD_FILE, "%s: byte %zu: %s", r->name, where(r), what);
}

static quire_result no_memory(const reader *r)
{
    return qi_fail_text(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "%s: no host memory for a trace", r->name);
}

/* ---- names -------------------------------------------------------------------------------- */

/* Reads the unit at an offset of the current block. */
static qi_record unit_at(const reader *r, size_t offset)
{
    qi_record unit;
    memcpy(&unit, r->bytes + r->block + offset, sizeof unit);
    return unit;
}

/* Requires a record of a name. Writes the name as a label, without a 0 inside. */
static void read_label(const reader *r, size_t offset, char label[MAX_LABEL + 1])
{
    char name[MAX_NAME + 1] = "";
    size_t length = (size_t)unit_at(r, offset).id, used = 0;
    memcpy(name, r->bytes + r->block + offset + UNIT, length);
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
static uint64_t time_of(reader *r, uint32_t ticks)
{
    const qi_block_header *h = &r->header;
    uint64_t span = h->end_ns - h->begin_ns;
    double share = h->ticks ? (double)ticks / (double)h->ticks : 0;
    uint64_t time = h->begin_ns + (uint64_t)(share * (double)span);
    time = time < h->end_ns ? time : h->end_ns;
    if (!r->builder.trace->info.event_count)
        r->first_time = time;
    return time - r->first_time;
}

static quire_result read_alloc(reader *r, const qi_record *record, quire_trace_event *event)
{
    qi_record_size more;
    uint32_t number = 0;
    memcpy(&more, r->bytes + where(r) + UNIT, sizeof more);
    if (!record->id || !more.size || record->alignment > 63)
        return refuse(r, "an allocation of %" PRIu64 " bytes, alignment 2^%u, id %" PRIu64,
                      more.size, record->alignment, record->id);
    if (more.name && !is_name(r, more.name))
        return refuse(r, "no name is at byte %u of the block", more.name);
    event->size = more.size;
    event->alignment = UINT64_C(1) << record->alignment;
    switch (qi_build_alloc(&r->builder, event, r->last_id + 1)) {
    case QI_BUILD_IS_LIVE:
        return refuse(r, "the range is live already, as allocation %" PRIu64,
                      qi_build_find(&r->builder, event->id, &number)->place);
    case QI_BUILD_OVERFLOW:
        return refuse(r, "the live bytes do not fit 64 bits");
    case QI_BUILD_NO_MEMORY:
        return no_memory(r);
    case QI_BUILD_DONE:
        break;
    }
    event->id = ++r->last_id;
    char label[MAX_LABEL + 1] = "";
    if (more.name)
        read_label(r, more.name, label);
    event->label = label;
    return qi_build_keep(&r->builder, event) ? QUIRE_SUCCESS : no_memory(r);
}

/* A range that does not live is older than the recording. */
static quire_result read_free(reader *r, quire_trace_event *event)
{
    const qi_built_range *range = qi_build_find(&r->builder, event->id, &event->range);
    if (!range)
        return QUIRE_SUCCESS;
    uint64_t number = range->place;
    if (!qi_build_free(&r->builder, event))
        return QUIRE_SUCCESS;
    event->id = number;
    return qi_build_keep(&r->builder, event) ? QUIRE_SUCCESS : no_memory(r);
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
        result = qi_build_keep(&r->builder, &event) ? QUIRE_SUCCESS : no_memory(r);
    }
    r->at += size;
    return result;
}

/* ---- blocks ------------------------------------------------------------------------------- */

/* Reads the header of the block at r->block. Returns false if the file ends inside the block. */
static bool has_block(reader *r)
{
    size_t rest = r->size - r->block;
    if (rest < sizeof r->header)
        return false;
    memcpy(&r->header, r->bytes + r->block, sizeof r->header);
    return r->header.size <= rest || r->header.size > QI_RECORDING_BLOCK;
}

static quire_result check_header(const reader *r)
{
    const qi_block_header *h = &r->header;
    if (!qi_is_recording(r->bytes + r->block, sizeof *h))
        return refuse(r, "no block of a recording begins here");
    if (h->order != QI_RECORDING_ORDER)
        return refuse(r, "the recording has another byte order");
    if (h->size < sizeof *h || h->size % UNIT || h->size > QI_RECORDING_BLOCK)
        return refuse(r, "a block of %u bytes", h->size);
    if (h->begin_ns > h->end_ns || h->begin_ns < r->last_end)
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
    r->last_end = r->header.end_ns;
    r->block += r->header.size;
    r->at = 0;
    return QUIRE_SUCCESS;
}

quire_result qi_recording_read(quire_trace *trace, const char *name, const char *bytes, size_t size)
{
    reader r = {.builder = {.trace = trace}, .name = name, .bytes = bytes, .size = size};
    quire_result result = QUIRE_SUCCESS;
    while (!result && r.block < size && has_block(&r))
        result = read_block(&r);
    trace->info.cut_bytes = result ? 0 : size - r.block;
    qi_build_finish(&r.builder);
    return result;
}
