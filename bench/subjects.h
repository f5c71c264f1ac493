/*
 * subjects.h - everything that workloads run on, present or not: the spaces of this project, the
 * peers, the references, the heaps, and peers handed over as files.
 */
#ifndef QUIRE_BENCH_SUBJECTS_H
#define QUIRE_BENCH_SUBJECTS_H

#include <stdbool.h>

#include "bench/subject.h"

enum { MOST_SUBJECTS = 64, MOST_REASON = 256 };

typedef struct subject_entry {
    const subject *subject;
    char absent[MOST_REASON]; /* why it cannot be had; empty: it can */
} subject_entry;

typedef struct subject_list {
    subject_entry entries[MOST_SUBJECTS];
    size_t count;
} subject_list;

/* All that are built in. */
void subjects_init(subject_list *list);

/* Adds the one of a shared object; false with the sentence printed when it has none. */
bool subjects_load(subject_list *list, const char *path);

static inline bool is_present(const subject_entry *entry)
{
    return !entry->absent[0];
}

#endif
