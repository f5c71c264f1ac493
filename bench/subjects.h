/*
 * subjects.h - lists of what is measured, present or not, and choosing from them by name.
 */
#ifndef QUIRE_BENCH_SUBJECTS_H
#define QUIRE_BENCH_SUBJECTS_H

#include <stdbool.h>

#include "bench/subject.h"
#include "src/base/json.h"

enum { MAX_SUBJECTS = 64, MAX_REASON = 256, MAX_PATTERNS = 64 };

typedef struct subject_entry {
    const subject *subject;
    char absent[MAX_REASON]; /* why it cannot be had; empty: it can */
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
    size_t count;                    /* 0: everything is wanted */
} patterns;

bool patterns_add(patterns *p, const char *item); /* false: there is no room for it */
bool patterns_match(const patterns *p, const char *name);
bool is_wanted(const patterns *p, const char *name);

/* All that are built into bench_space: spaces, peers, references, heaps. */
void subjects_of_spaces(subject_list *list);

/* Appends some; the array stays the caller's. */
void subjects_add(subject_list *list, const subject *subjects, size_t count);

/* Adds the one of a shared object; false with the sentence printed when it has none. */
bool subjects_load(subject_list *list, const char *path);

static inline bool is_present(const subject_entry *entry)
{
    return !entry->absent[0];
}

/* Those that are present, wanted and not unwanted. */
roster subjects_chosen(const subject_list *list, const patterns *wanted, const patterns *unwanted);

/* As the head of a report, and as an array of its JSON document. */
void subjects_print(const subject_list *list);
void subjects_write(const subject_list *list, qi_json *json);

#endif
