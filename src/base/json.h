/*
 * json.h - a streaming JSON writer: exact 64-bit integers, well-formed UTF-8 for any name, no host
 * memory.
 *
 * `key` names the value inside an object and is null inside an array and at the top. The caller
 * opens and closes in order, at most 31 levels deep. A qi_json belongs to one thread.
 */
#ifndef QUIRE_SRC_BASE_JSON_H
#define QUIRE_SRC_BASE_JSON_H

#include "src/base/writer.h"

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
