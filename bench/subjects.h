/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * subjects.h - lists of subjects, available or not, and their selection by name.
 */
#ifndef QUIRE_BENCH_SUBJECTS_H
#define QUIRE_BENCH_SUBJECTS_H

#include <stdbool.h>

#include "bench/subject.h"
#include "src/base/json.h"

enum { MAX_SUBJECTS = 64, MAX_REASON = 256, MAX_PATTERNS = 64 };

typedef struct subject_entry {
    const subject *subject;
    char absent[MAX_REASON]; /* why it is unavailable; empty if it is available */
} subject_entry;

typedef struct subject_list {
    subject_entry entries[MAX_SUBJECTS];
    size_t count;
} subject_list;

/* Some of the subjects of a list. */
typedef struct roster {
    const subject *items[MAX_SUBJECTS];
    size_t count;
} roster;

typedef struct patterns {
    const char *items[MAX_PATTERNS]; /* as in a shell: * ? [] */
    size_t count;                    /* 0 means that everything is wanted */
} patterns;

bool patterns_add(patterns *p, const char *item); /* returns false if the list is full */
bool patterns_match(const patterns *p, const char *name);
bool is_wanted(const patterns *p, const char *name);

/* The subjects that are built into bench_space: spaces, peers, references, heaps. */
void subjects_of_spaces(subject_list *list);

/* Appends subjects. The caller keeps the array. */
void subjects_add(subject_list *list, const subject *subjects, size_t count);

/* Appends the subject of a shared object. Prints the error and returns false. */
bool subjects_load(subject_list *list, const char *path);

static inline bool is_present(const subject_entry *entry)
{
    return !entry->absent[0];
}

/* The subjects that are available, wanted and not excluded. */
roster subjects_chosen(const subject_list *list, const patterns *wanted, const patterns *unwanted);

/* Print the list at the start of a report, or write it as an array of the JSON document. */
void subjects_print(const subject_list *list);
void subjects_write(const subject_list *list, qi_json *json);

#endif
