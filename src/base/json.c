/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * json.c - buffers text, escapes it for XML, HTML and JSON, and writes JSON values.
 */
#include "src/base/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "src/base/result.h"
#include "src/base/text.h"

/* ---- text --------------------------------------------------------------------------------- */

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

void qi_write_label(qi_writer *writer, const char *text)
{
    for (uint32_t c; (c = qi_next_code_point(&text)) != 0;) {
        char bytes[4];
        qi_write(writer, bytes, qi_put_code_point(qi_label_code_point(c), bytes));
    }
}

quire_result qi_writer_finish(qi_writer *writer)
{
    flush(writer);
    if (writer->failed)
        return qi_fail(QUIRE_ERROR_BAD_FILE, "the sink refused the text");
    return QUIRE_SUCCESS;
}

/* ---- JSON --------------------------------------------------------------------------------- */

void qi_json_init(qi_json *json, quire_sink sink, void *user)
{
    qi_writer_init(&json->writer, sink, user);
    json->depth = 0;
    json->filled = 0;
}

/* The two-character escapes of JSON that occur in names. */
static const char *short_escape(uint32_t code_point)
{
    switch (code_point) {
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    case '\n':
        return "\\n";
    case '\r':
        return "\\r";
    case '\t':
        return "\\t";
    default:
        return NULL;
    }
}

/* Writes a quoted string. Malformed UTF-8 becomes the replacement character. */
static void put_string(qi_json *json, const char *text)
{
    qi_write_text(&json->writer, "\"");
    for (uint32_t c; (c = qi_next_code_point(&text)) != 0;) {
        const char *escape = short_escape(c);
        char bytes[4];
        if (escape)
            qi_write_text(&json->writer, escape);
        else if (c < 0x20 || (c >= 0x7f && c < 0xa0)) /* C1 controls too: terminals execute them */
            qi_write_format(&json->writer, "\\u%04" PRIx32, c);
        else
            qi_write(&json->writer, bytes, qi_put_code_point(c, bytes));
    }
    qi_write_text(&json->writer, "\"");
}

/* Writes what precedes a value: comma, line break (down to level 2), key. */
static void begin_value(qi_json *json, const char *key)
{
    uint32_t bit = UINT32_C(1) << json->depth;
    if (json->filled & bit)
        qi_write_text(&json->writer, ",");
    json->filled |= bit;
    if (json->depth && json->depth <= 2)
        qi_write_text(&json->writer, "\n");
    if (key) {
        put_string(json, key);
        qi_write_text(&json->writer, ":");
    }
}

/* Begins an object or array as a value; its first value needs no comma. */
static void open(qi_json *json, const char *key, const char *bracket)
{
    begin_value(json, key);
    qi_write_text(&json->writer, bracket);
    json->depth++;
    json->filled &= ~(UINT32_C(1) << json->depth);
}

static void close(qi_json *json, const char *bracket)
{
    json->depth--;
    qi_write_text(&json->writer, bracket);
}

void qi_json_object(qi_json *json, const char *key)
{
    open(json, key, "{");
}

void qi_json_end_object(qi_json *json)
{
    close(json, "}");
}

void qi_json_array(qi_json *json, const char *key)
{
    open(json, key, "[");
}

void qi_json_end_array(qi_json *json)
{
    close(json, "]");
}

void qi_json_number(qi_json *json, const char *key, uint64_t value)
{
    begin_value(json, key);
    qi_write_format(&json->writer, "%" PRIu64, value);
}

void qi_json_real(qi_json *json, const char *key, double value)
{
    if (!isfinite(value)) {
        qi_json_null(json, key);
        return;
    }
    begin_value(json, key);
    qi_write_text(&json->writer, qi_real(value).text);
}

void qi_json_bool(qi_json *json, const char *key, bool value)
{
    begin_value(json, key);
    qi_write_text(&json->writer, value ? "true" : "false");
}

void qi_json_null(qi_json *json, const char *key)
{
    begin_value(json, key);
    qi_write_text(&json->writer, "null");
}

void qi_json_text(qi_json *json, const char *key, const char *value)
{
    if (!value) {
        qi_json_null(json, key);
        return;
    }
    begin_value(json, key);
    put_string(json, value);
}

quire_result qi_json_finish(qi_json *json)
{
    qi_write_text(&json->writer, "\n");
    return qi_writer_finish(&json->writer);
}
