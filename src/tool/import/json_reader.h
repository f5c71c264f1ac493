/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * json_reader.h - a pull reader of JSON (RFC 8259) with the memory of one text.
 *
 * The caller asks for what it expects: it enters an object or an array, takes the next member or
 * element, reads its value or skips it. Every function that returns false at a mistake has refused
 * the source, and every later call fails then. Values are nested at most 64 deep.
 *
 *     for (json_enter(r, '{'); json_next_member(r);)
 *         if (!strcmp(r->text, "size") ? !json_read_integer(r, &size) : !json_skip(r))
 *             break;
 *     return json_is_good(r);
 */
#ifndef QUIRE_SRC_TOOL_IMPORT_JSON_READER_H
#define QUIRE_SRC_TOOL_IMPORT_JSON_READER_H

#include "src/tool/import/import.h"

enum { JSON_MOST_DEPTH = 64, JSON_MOST_TEXT = 256 };

typedef struct json_reader {
    import_source *source;
    uint32_t depth;
    bool has_items[JSON_MOST_DEPTH]; /* whether the object or array has had an item */
    /* The last string, key or number. A longer one is cut at a character. */
    char text[JSON_MOST_TEXT];
    size_t length;
    bool is_cut;
} json_reader;

void json_begin(json_reader *r, import_source *source);

/* Whether nothing was refused. */
bool json_is_good(const json_reader *r);

/* The first character of the next value, '0' for a number, or 0 if there is no value. */
char json_peek(json_reader *r);

/* Enters an object ('{') or an array ('['). Refuses another value. */
bool json_enter(json_reader *r, char bracket);

/* Takes the next key of the object into `text`, or the next element of the array. Returns false
   behind the last one, after which the object or array is left. */
bool json_next_member(json_reader *r);
bool json_next_element(json_reader *r);

/* Reads a string, or a number as it is written, into `text`. */
bool json_read_text(json_reader *r);
bool json_read_number(json_reader *r);

/* An integer of the text of a number: false, without a refusal, if it is none of 64 bits. */
typedef struct json_integer {
    bool is_negative;
    uint64_t magnitude;
} json_integer;

bool json_to_integer(const json_reader *r, json_integer *integer);

/* Reads an integer from 0 to 2^64 - 1. */
bool json_read_integer(json_reader *r, uint64_t *integer);

bool json_skip(json_reader *r);

/* Expects the end of the file behind the outermost value. */
bool json_end(json_reader *r);

#endif
