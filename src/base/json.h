/*
 * json.h - a streaming JSON writer: exact 64-bit integers, well-formed UTF-8 whatever the names
 * hold, no allocation.
 *
 * `key` names the value inside an object and is NULL inside an array and at the top. The caller
 * opens and closes in order; nesting goes 31 deep.
 */
#ifndef QUIRE_SRC_BASE_JSON_H
#define QUIRE_SRC_BASE_JSON_H

#include "src/base/writer.h"

typedef struct qi_json {
    qi_writer writer;
    uint32_t depth;
    uint32_t filled; /* bit per depth: something stands there already, a comma is due */
} qi_json;

void qi_json_init(qi_json *json, quire_sink sink, void *user);

void qi_json_object(qi_json *json, const char *key);
void qi_json_end_object(qi_json *json);
void qi_json_array(qi_json *json, const char *key);
void qi_json_end_array(qi_json *json);

void qi_json_number(qi_json *json, const char *key, uint64_t value);
void qi_json_real(qi_json *json, const char *key, double value); /* null unless finite */
void qi_json_bool(qi_json *json, const char *key, bool value);
void qi_json_null(qi_json *json, const char *key);
void qi_json_text(qi_json *json, const char *key, const char *value); /* NULL: null */

/* Ends the document with a line end. BAD_FILE when the sink refused. */
QUIRE_MUST_USE quire_result qi_json_finish(qi_json *json);

#endif
