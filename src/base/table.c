/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * table.c - creates a chunk when an index first needs it, and publishes it by a release store. The
 * search for an element compares it with the addresses of each chunk.
 */
#include "src/base/table.h"

void qi_table_init(qi_table *table, size_t element_size)
{
    for (uint32_t i = 0; i < QI_TABLE_CHUNKS; i++)
        atomic_init(&table->chunks[i], NULL);
    table->element_size = element_size;
}

void qi_table_finish(qi_table *table, qi_host *host)
{
    for (uint32_t i = 0; i < QI_TABLE_CHUNKS; i++)
        qi_table_release_chunk(table, host, i);
}

bool qi_table_ensure(qi_table *table, qi_host *host, uint32_t index)
{
    if (qi_table_get(table, index))
        return true;
    uint32_t chunk = qi_table_chunk_of(index);
    void *elements = qi_host_allocate(host, qi_table_chunk_count(chunk), table->element_size);
    if (!elements)
        return false;
    qi_atomic_store_release_pointer(&table->chunks[chunk], elements);
    return true;
}

/* Unpublishes the chunk before it releases it. */
void qi_table_release_chunk(qi_table *table, qi_host *host, uint32_t chunk)
{
    void *elements = qi_atomic_load_acquire_pointer(&table->chunks[chunk]);
    qi_atomic_store_release_pointer(&table->chunks[chunk], NULL);
    qi_host_release(host, elements, qi_table_chunk_count(chunk), table->element_size);
}

/* Tests the address range of each chunk; a chunk that does not exist has address 0. */
bool qi_table_find(const qi_table *table, const void *element, uint32_t *index)
{
    for (uint32_t i = 0; i < QI_TABLE_CHUNKS; i++) {
        uintptr_t elements = (uintptr_t)qi_atomic_load_acquire_pointer(&table->chunks[i]);
        uintptr_t offset = (uintptr_t)element - elements, size = table->element_size;
        if (!elements || offset / size >= qi_table_chunk_count(i) || offset % size)
            continue;
        *index = qi_table_chunk_start(i) + (uint32_t)(offset / size);
        return true;
    }
    return false;
}
