/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * source.c - the file that an import reads, and the rows that it writes (see import.h).
 */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "src/base/text.h"
#include "src/tool/import/import.h"
#include "src/trace/write.h"

/* ---- the file ----------------------------------------------------------------------------- */

void import_begin(import_source *source, FILE *file)
{
    source->file = file;
    source->device = NULL;
    source->position = 0;
    source->line = source->column = 1;
    source->sentence[0] = '\0';
    source->length = source->next = 0;
}

int import_peek(import_source *source)
{
    if (source->next == source->length) {
        source->next = 0;
        source->length = fread(source->buffer, 1, sizeof source->buffer, source->file);
    }
    return source->next < source->length ? source->buffer[source->next] : EOF;
}

int import_next(import_source *source)
{
    int byte = import_peek(source);
    if (byte == EOF)
        return EOF;
    source->next++;
    source->position++;
    source->column++;
    if (byte == '\n') {
        source->line++;
        source->column = 1;
    }
    return byte;
}

static void refuse(import_source *source, const char *where, const char *format, va_list args)
    QUIRE_PRINTF(3, 0);

/* Keeps the first sentence, in printable characters: it may quote the file. */
static void refuse(import_source *source, const char *where, const char *format, va_list args)
{
    if (source->sentence[0])
        return;
    size_t length = (size_t)snprintf(source->sentence, sizeof source->sentence, "%s: ", where);
    vsnprintf(source->sentence + length, sizeof source->sentence - length, format, args);
    qi_make_printable(source->sentence);
}

bool import_refuse(import_source *source, const char *format, ...)
{
    char where[48];
    snprintf(where, sizeof where, "%" PRIu64 ":%" PRIu64, source->line, source->column);
    va_list args;
    va_start(args, format);
    refuse(source, where, format, args);
    va_end(args);
    return false;
}

bool import_refuse_byte(import_source *source, const char *format, ...)
{
    char where[32];
    snprintf(where, sizeof where, "byte %" PRIu64, source->position);
    va_list args;
    va_start(args, format);
    refuse(source, where, format, args);
    va_end(args);
    return false;
}

/* ---- the trace ---------------------------------------------------------------------------- */

void import_rows_begin(import_rows *rows, quire_sink sink, void *user)
{
    *rows = (import_rows){.allocations = 0};
    qi_writer_init(&rows->writer, sink, user);
    qi_trace_write_header(&rows->writer);
}

void import_alloc(import_rows *rows, uint64_t id, uint64_t size, uint64_t alignment,
                  uint64_t time_ns, uint64_t stream, const char *label)
{
    qi_trace_write_event(&rows->writer, &(quire_trace_event){.op = QUIRE_TRACE_ALLOC,
                                                             .id = id,
                                                             .size = size,
                                                             .alignment = alignment,
                                                             .time_ns = time_ns,
                                                             .stream = stream,
                                                             .label = label});
    rows->allocations++;
    rows->is_too_large |= size > UINT64_MAX - rows->bytes;
    rows->bytes += size;
}

void import_free(import_rows *rows, uint64_t id, uint64_t time_ns, uint64_t stream)
{
    qi_trace_write_event(
        &rows->writer,
        &(quire_trace_event){
            .op = QUIRE_TRACE_FREE, .id = id, .time_ns = time_ns, .stream = stream, .label = ""});
    rows->frees++;
}

/* ---- the readers -------------------------------------------------------------------------- */

bool import_file(import_reader *read, import_source *source, import_rows *rows)
{
    if (!read(source, rows))
        return false;
    return !rows->is_too_large ||
           import_refuse(source, "all allocations together have 2^64 bytes or more");
}
