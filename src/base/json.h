/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * json.h - text and JSON into a sink, in larger pieces and without host memory.
 *
 * A writer passes its buffer to the sink when the buffer is full. After the sink refused a piece
 * the writer does not call it again. A JSON writer adds commas and line breaks, exact 64-bit
 * integers, and well-formed UTF-8 for any name. Both belong to one thread.
 */
#ifndef QUIRE_SRC_BASE_JSON_H
#define QUIRE_SRC_BASE_JSON_H

#include "quire/base.h"

/* ---- text --------------------------------------------------------------------------------- */

enum { QI_WRITER_BUFFER = 1024 };

typedef struct qi_writer {
    quire_sink sink;
    void *user;
    bool failed;
    size_t length;
    char buffer[QI_WRITER_BUFFER];
} qi_writer;

void qi_writer_init(qi_writer *writer, quire_sink sink, void *user);
void qi_write(qi_writer *writer, const char *text, size_t size);
void qi_write_text(qi_writer *writer, const char *text);

/* Writes at most 255 bytes per call. */
void qi_write_format(qi_writer *writer, const char *format, ...) QUIRE_PRINTF(2, 3);

/* Writes text from outside so that it is safe in XML and HTML elements and attributes. */
void qi_write_escaped(qi_writer *writer, const char *text);

/* Writes text from outside as a label of a trace (docs/formats.md): UTF-8, by
   qi_label_code_point. */
void qi_write_label(qi_writer *writer, const char *text);

/* Passes the rest to the sink. Returns BAD_FILE if the sink refused any piece. */
QUIRE_MUST_USE quire_result qi_writer_finish(qi_writer *writer);

/* ---- JSON --------------------------------------------------------------------------------- */

/*
 * `key` names the value inside an object and is null inside an array and at the top. The caller
 * opens and closes in order, at most 31 levels deep.
 */

typedef struct qi_json {
    qi_writer writer;
    uint32_t depth;
    uint32_t filled; /* bit per depth: a value was written, the next one needs a comma */
} qi_json;

void qi_json_init(qi_json *json, quire_sink sink, void *user);

void qi_json_object(qi_json *json, const char *key);
void qi_json_end_object(qi_json *json);
void qi_json_array(qi_json *json, const char *key);
void qi_json_end_array(qi_json *json);

void qi_json_number(qi_json *json, const char *key, uint64_t value);
void qi_json_real(qi_json *json, const char *key, double value); /* null if infinite or NaN */
void qi_json_bool(qi_json *json, const char *key, bool value);
void qi_json_null(qi_json *json, const char *key);
void qi_json_text(qi_json *json, const char *key, const char *value); /* null if NULL */

/* Ends the document with a line break. Returns BAD_FILE if the sink failed. */
QUIRE_MUST_USE quire_result qi_json_finish(qi_json *json);

#endif
