/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * member.h - the members of quire_memory_options by their names, and their values as text: for the
 * variable QUIRE_OPTIONS, and for the flags, the files and the JSON of the tool.
 *
 * The value 0 of every member is the library's default. No function requires a lock.
 */
#ifndef QUIRE_SRC_BASE_MEMBER_H
#define QUIRE_SRC_BASE_MEMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "quire/memory.h"

typedef enum qi_member_type {
    QI_MEMBER_FLAG,    /* bool */
    QI_MEMBER_CHOICE,  /* an enum whose values are the indexes of `words` */
    QI_MEMBER_NUMBER,  /* uint32_t, at most `max` */
    QI_MEMBER_PERCENT, /* likewise */
    QI_MEMBER_BYTES,   /* uint64_t */
    QI_MEMBER_TIME,    /* uint64_t nanoseconds */
    QI_MEMBER_LIMIT    /* uint64_t bytes, or a share of the heap such as 50% */
} qi_member_type;

typedef struct qi_member {
    const char *key; /* as in C: "fit.algorithm" */
    qi_member_type type;
    size_t offset; /* in quire_memory_options */
    uint32_t max;
    const char *const *words; /* ends with NULL */
} qi_member;

enum { QI_MEMBER_COUNT = 25 };

extern const qi_member qi_members[QI_MEMBER_COUNT];

/* The words of quire_fit, in its order; NULL ends the list. */
extern const char *const qi_fit_words[];

/* Returns the member whose key is the `length` bytes at `key`, or NULL. */
const qi_member *qi_member_find(const char *key, size_t length);

/* Whether the value is a uint64_t; that of a flag is a bool, of all others a uint32_t. */
bool qi_member_is_wide(const qi_member *m);

uint64_t qi_member_get(const qi_member *m, const quire_memory_options *options);

/* The value must be in the range of the member. */
void qi_member_set(const qi_member *m, quire_memory_options *options, uint64_t value);

/*
 * Parses the text of a value. Returns false, and leaves *value unspecified, if the text has another
 * form or the value is out of range. Sizes above 0 may have the binary suffixes K, M, G and T.
 */
bool qi_member_parse(const qi_member *m, const char *text, uint64_t *value);

/* What a valid value looks like, in words. Use within one expression, as qi_member_wanted(m).text.
 */
typedef struct qi_wanted_text {
    char text[96];
} qi_wanted_text;

qi_wanted_text qi_member_wanted(const qi_member *m);

/* Parse a decimal number up to `rest`, a size above 0 with an optional suffix, and the index of a
   word in a list that NULL ends. Return false if the text has another form or is too large. */
bool qi_parse_number(const char *text, uint64_t *number, const char **rest);
bool qi_parse_size(const char *text, uint64_t *size);
bool qi_parse_word(const char *const *words, const char *text, uint32_t *index);

#endif
