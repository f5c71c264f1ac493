/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * pickle.h - writes values as a pickle of Python (protocol 4), into a sink and without host memory.
 *
 * The opcodes are those of Python's pickletools. No value is shared, so that no memo is needed. The
 * elements of a list are appended in groups, because a reader keeps a group on its stack. The
 * caller opens and closes in order. `key` names the value inside a dictionary and is null inside a
 * list and at the top. A writer belongs to one thread.
 */
#ifndef QUIRE_SRC_BASE_PICKLE_H
#define QUIRE_SRC_BASE_PICKLE_H

#include "src/base/json.h"

enum { QI_PICKLE_DEPTH = 8 }; /* of dictionaries and lists */

typedef struct qi_pickle {
    qi_writer writer;
    uint32_t depth;
    uint32_t grouped[QI_PICKLE_DEPTH + 1]; /* per depth: elements of the open group */
} qi_pickle;

void qi_pickle_init(qi_pickle *pickle, quire_sink sink, void *user);

void qi_pickle_dict(qi_pickle *pickle, const char *key);
void qi_pickle_end_dict(qi_pickle *pickle);
void qi_pickle_list(qi_pickle *pickle, const char *key);
void qi_pickle_end_list(qi_pickle *pickle);

void qi_pickle_number(qi_pickle *pickle, const char *key, uint64_t value);
void qi_pickle_bool(qi_pickle *pickle, const char *key, bool value);
/* Bytes that are not UTF-8 become U+FFFD. */
void qi_pickle_text(qi_pickle *pickle, const char *key, const char *value);
/* A tuple of two numbers. */
void qi_pickle_pair(qi_pickle *pickle, const char *key, uint64_t first, uint64_t second);

/* Ends the pickle. Returns BAD_FILE if the sink failed. */
QUIRE_MUST_USE quire_result qi_pickle_finish(qi_pickle *pickle);

#endif
