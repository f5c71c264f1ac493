/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * table.h - records behind handles of pointer form. A handle holds the index of its record, the
 * generation of the record and the tag of its table, so that no handle is followed before it is
 * checked.
 *
 * Any thread may call any function. Records never move and are released with the table only.
 */
#ifndef QUIRE_SRC_ADAPTERS_VMA_TABLE_H
#define QUIRE_SRC_ADAPTERS_VMA_TABLE_H

#include <pthread.h>
#include <stdatomic.h>

#include "src/adapters/vma/base.h"

/* The first member of each record. */
typedef struct qi_vma_record {
    /* Odd: live. Aligned as the pointers of a record that begins with this one. */
    _Alignas(void *) _Atomic uint32_t generation;
    _Atomic uint32_t next; /* in the list of free records: index + 1; 0: the last */
} qi_vma_record;

/* Chunk k has QI_VMA_FIRST_CHUNK << k records, so that all indices of 32 bits have a record. */
enum { QI_VMA_FIRST_CHUNK = 64, QI_VMA_CHUNKS = 27 };

/* Threads use different lists of free records, each in cache lines of its own. */
enum { QI_VMA_FREE_LISTS = 8, QI_VMA_LINES = 128 };

typedef struct qi_vma_free_list {
    _Atomic uint64_t top; /* index + 1 of the newest free record; above it a count of changes, so
                             that an exchange notices a top that was away */
    char unused[QI_VMA_LINES - 8];
} qi_vma_free_list;

typedef struct qi_vma_table {
    const qi_vma_host *host;
    const char *noun; /* for errors: "allocation", "pool" */
    size_t record_size;
    uint8_t tag;            /* never 0 */
    _Atomic uint32_t count; /* indices below it have been used */
    pthread_mutex_t mutex;  /* creation of chunks */
    _Atomic(char *) chunks[QI_VMA_CHUNKS];
    char unused[QI_VMA_LINES]; /* every look-up reads what is above, and few calls write it */
    qi_vma_free_list free[QI_VMA_FREE_LISTS];
} qi_vma_table;

void qi_vma_table_begin(qi_vma_table *table, const qi_vma_host *host, const char *noun,
                        size_t record_size);
void qi_vma_table_end(qi_vma_table *table);

/* Takes a record and writes its handle. What the record held before is still in it. Returns NULL
   and sets the last error if host memory is exhausted. */
void *qi_vma_table_take(qi_vma_table *table, uintptr_t *handle);

/* Gives a live record back. Its handle becomes stale. */
void qi_vma_table_give(qi_vma_table *table, uintptr_t handle);

/* Returns the record of a handle. NULL and a last error: the handle is null, stale, or of another
   table. */
void *qi_vma_table_find(const qi_vma_table *table, uintptr_t handle);

/*
 * Whether a record that find has returned still belongs to the handle. What the caller has read of
 * the record before was that of the handle, then. False with a last error: another thread has given
 * it back in between.
 */
bool qi_vma_table_still_has(const qi_vma_table *table, uintptr_t handle);

/* Returns the record at an index if it is live, otherwise NULL. */
void *qi_vma_table_at(const qi_vma_table *table, uint32_t index);

#endif
