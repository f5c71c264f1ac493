/*
 * table.h - a growing array whose elements never move.
 *
 * Elements lie in chunks, each as large as all before it, so that an index leads to its chunk by
 * one bit scan, ten elements cost little, and 2^26 are reached with 21 chunks. A chunk is published
 * with a release store: readers need no lock and get NULL where no chunk is. Growing and releasing
 * are for one thread at a time (the owner's lock).
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

/* Index of a chunk's first element, and how many it has. */
static inline uint32_t qi_table_chunk_start(uint32_t chunk)
{
    return ((UINT32_C(1) << chunk) - 1) << QI_TABLE_FIRST_BITS;
}

static inline uint32_t qi_table_chunk_count(uint32_t chunk)
{
    return UINT32_C(1) << (chunk + QI_TABLE_FIRST_BITS);
}

/* Where an element lies; an address near 0 where its chunk is not. */
static inline uintptr_t qi_table_address(const qi_table *table, uint32_t index, size_t element_size)
{
    /* shifted by the first chunk's count, the highest bit is the chunk and the rest lies within */
    uint32_t shifted = index + (1u << QI_TABLE_FIRST_BITS), bit = qi_highest_bit(shifted);
    void *elements = qi_atomic_load_acquire_pointer(&table->chunks[bit - QI_TABLE_FIRST_BITS]);
    return (uintptr_t)elements + (shifted ^ 1u << bit) * element_size;
}

/* An element that is there, of the table's element size. Index below 2^26. */
static inline void *qi_table_at(const qi_table *table, uint32_t index, size_t element_size)
{
    return (void *)qi_table_address(table, index, element_size);
}

/* Asks for an element ahead of its use; one that is not there does no harm. */
static inline void qi_table_fetch(const qi_table *table, uint32_t index, size_t element_size)
{
    __builtin_prefetch((const void *)qi_table_address(table, index, element_size), 1);
}

/* False where the element's chunk was never made or was released. Index below 2^26. */
static inline bool qi_table_has(const qi_table *table, uint32_t index)
{
    return qi_atomic_load_acquire_pointer(&table->chunks[qi_table_chunk_of(index)]) != NULL;
}

/* The element, or NULL where there is none. */
static inline void *qi_table_get(const qi_table *table, uint32_t index)
{
    return qi_table_has(table, index) ? qi_table_at(table, index, table->element_size) : NULL;
}

/* The index of an element; false when the pointer is not to one. */
bool qi_table_find(const qi_table *table, const void *element, uint32_t *index);

void qi_table_init(qi_table *table, size_t element_size);
void qi_table_finish(qi_table *table, qi_host *host);

/* Makes sure of the element; a new chunk is zeroed. False when host memory is out. */
QUIRE_MUST_USE bool qi_table_ensure(qi_table *table, qi_host *host, uint32_t index);

/* Gives one chunk back; nobody may use its elements. */
void qi_table_release_chunk(qi_table *table, qi_host *host, uint32_t chunk);

#endif
