/*
 * writer.c - buffers text and escapes it for XML and HTML.
 */
#include "src/base/writer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "src/base/result.h"
#include "src/base/text.h"

void qi_writer_init(qi_writer *writer, quire_sink sink, void *user)
{
    writer->sink = sink;
    writer->user = user;
    writer->failed = false;
    writer->length = 0;
}

/* Passes the buffer to the sink, unless the sink refused before; then drops it. */
static void flush(qi_writer *writer)
{
    if (writer->length && !writer->failed &&
        !writer->sink(writer->user, writer->buffer, writer->length))
        writer->failed = true;
    writer->length = 0;
}

/* Copies into the buffer; text of any size is written in pieces of the buffer's size. */
void qi_write(qi_writer *writer, const char *text, size_t size)
{
    while (size) {
        size_t room = sizeof writer->buffer - writer->length;
        size_t part = size < room ? size : room;
        memcpy(writer->buffer + writer->length, text, part);
        writer->length += part;
        text += part;
        size -= part;
        if (writer->length == sizeof writer->buffer)
            flush(writer);
    }
}

void qi_write_text(qi_writer *writer, const char *text)
{
    qi_write(writer, text, strlen(text));
}

void qi_write_format(qi_writer *writer, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (length > 0)
        qi_write(writer, text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
}

static const char *entity_of(uint32_t code_point)
{
    switch (code_point) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return NULL;
    }
}

/* XML 1.0 does not allow these characters, not even escaped. */
static bool is_outside_xml(uint32_t c)
{
    return (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f || c == 0xfffe ||
           c == 0xffff;
}

void qi_write_escaped(qi_writer *writer, const char *text)
{
    for (uint32_t c; (c = qi_next_code_point(&text)) != 0;) {
        const char *entity = entity_of(c);
        if (entity) {
            qi_write_text(writer, entity);
            continue;
        }
        char bytes[4];
        qi_write(writer, bytes, qi_put_code_point(is_outside_xml(c) ? QI_REPLACEMENT : c, bytes));
    }
}

quire_result qi_writer_finish(qi_writer *writer)
{
    flush(writer);
    if (writer->failed)
        return qi_fail(QUIRE_ERROR_BAD_FILE, "the sink refused the text");
    return QUIRE_SUCCESS;
}
