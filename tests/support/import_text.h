/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * import_text.h - imports a text in memory. The rows of every import that succeeds are parsed as a
 * trace, and counted.
 */
#ifndef QUIRE_TESTS_SUPPORT_IMPORT_TEXT_H
#define QUIRE_TESTS_SUPPORT_IMPORT_TEXT_H

#include "src/tool/import/import.h"

enum { IMPORT_MOST_ROWS = 1 << 18 };

typedef struct import_result {
    bool is_good;
    char sentence[IMPORT_MAX_SENTENCE]; /* "" if it is good */
    char note[IMPORT_MAX_SENTENCE];
    uint64_t allocations, frees, left_out;
    size_t length;
    char rows[IMPORT_MOST_ROWS]; /* without the header, ends with 0 */
} import_result;

/* The result is valid until the next call. */
const import_result *import_text(import_reader *read, const char *text, size_t size);

/* Likewise, of one device of the text. */
const import_result *import_device(import_reader *read, const char *device, const char *text,
                                   size_t size);

/* Imports the text and expects these rows. */
void import_gives(import_reader *read, const char *text, const char *rows);

/* Imports the text and expects this refusal. */
void import_refuses(import_reader *read, const char *text, const char *sentence);

/* Imports the text up to each of its bytes. Each import succeeds or has a sentence. */
void import_all_beginnings(import_reader *read, const char *text);

#endif
