/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * table.h - a growing array whose elements never move.
 *
 * Elements lie in chunks of 32, 64, 128, ... elements: one bit scan finds the chunk of an index,
 * ten elements cost little, and 22 chunks hold 2^26 indexes. A release store publishes a chunk:
 * readers need no lock and get null if no chunk exists. Growing and releasing require the
 * owner's lock.
 */
#ifndef QUIRE_SRC_BASE_TABLE_H
#define QUIRE_SRC_BASE_TABLE_H

#include "src/base/atomic.h"
#include "src/base/bits.h"
#include "src/base/host_memory.h"

enum { QI_TABLE_FIRST_BITS = 5, QI_TABLE_CHUNKS = 22 };

typedef struct qi_table {
    void *_Atomic chunks[QI_TABLE_CHUNKS];
    size_t element_size;
} qi_table;

static inline uint32_t qi_table_chunk_of(uint32_t index)
{
    return qi_highest_bit(index + (1u << QI_TABLE_FIRST_BITS)) - QI_TABLE_FIRST_BITS;
}

/* The index of a chunk's first element, and the number of its elements. */
static inline uint32_t qi_table_chunk_start(uint32_t chunk)
{
    return ((UINT32_C(1) << chunk) - 1) << QI_TABLE_FIRST_BITS;
}

static inline uint32_t qi_table_chunk_count(uint32_t chunk)
{
    return UINT32_C(1) << (chunk + QI_TABLE_FIRST_BITS);
}

/* Where an element lies. */
typedef struct qi_table_place {
    char *elements; /* its chunk, or null */
    size_t offset;  /* bytes in the chunk */
} qi_table_place;

static inline qi_table_place qi_table_find_place(const qi_table *table, uint32_t index,
                                                 size_t element_size)
{
    /* after adding the size of chunk 0, the highest bit selects the chunk, the rest the element */
    uint32_t shifted = index + (1u << QI_TABLE_FIRST_BITS), bit = qi_highest_bit(shifted);
    char *elements = qi_atomic_load_acquire_pointer(&table->chunks[bit - QI_TABLE_FIRST_BITS]);
    return (qi_table_place){elements, (shifted ^ 1u << bit) * element_size};
}

/* The address of an element; a small invalid address if its chunk does not exist. */
static inline uintptr_t qi_table_address(const qi_table *table, uint32_t index, size_t element_size)
{
    qi_table_place place = qi_table_find_place(table, index, element_size);
    return (uintptr_t)place.elements + place.offset;
}

/* An existing element. element_size is that of the table, index is below 2^26. */
static inline void *qi_table_at(const qi_table *table, uint32_t index, size_t element_size)
{
    return (void *)qi_table_address(table, index, element_size);
}

/* Prefetches an element. Safe if the element does not exist. */
static inline void qi_table_fetch(const qi_table *table, uint32_t index, size_t element_size)
{
    __builtin_prefetch((const void *)qi_table_address(table, index, element_size), 1);
}

/* Whether the chunk of an element exists. Index below 2^26. */
static inline bool qi_table_has(const qi_table *table, uint32_t index)
{
    return qi_atomic_load_acquire_pointer(&table->chunks[qi_table_chunk_of(index)]) != NULL;
}

/* The element, or null if its chunk does not exist. element_size is that of the table. */
static inline void *qi_table_at_or_null(const qi_table *table, uint32_t index, size_t element_size)
{
    qi_table_place place = qi_table_find_place(table, index, element_size);
    return place.elements ? place.elements + place.offset : NULL;
}

static inline void *qi_table_get(const qi_table *table, uint32_t index)
{
    return qi_table_at_or_null(table, index, table->element_size);
}

/* Finds the index of an element. Returns false if the pointer is not one of an element. */
bool qi_table_find(const qi_table *table, const void *element, uint32_t *index);

void qi_table_init(qi_table *table, size_t element_size);
void qi_table_finish(qi_table *table, qi_host *host);

/*
 * Creates the chunk of an element, zeroed, if missing. Returns false if host memory is exhausted.
 */
QUIRE_MUST_USE bool qi_table_ensure(qi_table *table, qi_host *host, uint32_t index);

/* Releases one chunk. No thread may use its elements. */
void qi_table_release_chunk(qi_table *table, qi_host *host, uint32_t chunk);

#endif
