/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * table.c - free records are in lists without a lock, so that taking and giving one is one exchange
 * each; a mutex is held only while a chunk is made. See table.h.
 */
#include "src/adapters/vma/table.h"

#include "src/adapters/vma/base.h"

_Static_assert(sizeof(uintptr_t) == 8, "a handle has 64 bits");
_Static_assert(((uint64_t)QI_VMA_FIRST_CHUNK << QI_VMA_CHUNKS) - QI_VMA_FIRST_CHUNK > UINT32_MAX,
               "all indices have a chunk");

/* A handle: 8 bits of tag, 24 of generation, 32 of index + 1. */
enum { GENERATION_SHIFT = 32, TAG_SHIFT = 56 };
static const uint32_t GENERATION_MASK = 0xffffff;

static uint32_t index_of(uintptr_t handle)
{
    return (uint32_t)handle - 1;
}

static uintptr_t handle_of(const qi_vma_table *table, uint32_t index, uint32_t generation)
{
    return (uintptr_t)table->tag << TAG_SHIFT |
           (uintptr_t)(generation & GENERATION_MASK) << GENERATION_SHIFT | (index + 1);
}

/* Different tables have different tags, up to 255 of them. */
static uint8_t next_tag(void)
{
    static _Atomic uint32_t tables;
    return (uint8_t)(atomic_fetch_add_explicit(&tables, 1, memory_order_relaxed) % UINT8_MAX + 1);
}

void qi_vma_table_begin(qi_vma_table *table, const qi_vma_host *host, const char *noun,
                        size_t record_size)
{
    *table =
        (qi_vma_table){.host = host, .noun = noun, .record_size = record_size, .tag = next_tag()};
    pthread_mutex_init(&table->mutex, NULL);
}

void qi_vma_table_end(qi_vma_table *table)
{
    for (int i = 0; i < QI_VMA_CHUNKS; i++)
        qi_vma_host_release(table->host, table->chunks[i]);
    pthread_mutex_destroy(&table->mutex);
}

/* ---- records -------------------------------------------------------------------------------- */

/* Returns the chunk of an index, and writes the position in it. */
static int chunk_of(uint32_t index, uint64_t *position)
{
    uint64_t number = (uint64_t)index + QI_VMA_FIRST_CHUNK;
    int chunk = __builtin_clzll(QI_VMA_FIRST_CHUNK) - __builtin_clzll(number);
    *position = number - ((uint64_t)QI_VMA_FIRST_CHUNK << chunk);
    return chunk;
}

/* Requires that the chunk exists. */
static inline qi_vma_record *record_at(const qi_vma_table *table, uint32_t index)
{
    uint64_t position;
    int chunk = chunk_of(index, &position);
    char *records = atomic_load_explicit(&table->chunks[chunk], memory_order_acquire);
    return (void *)(records + position * table->record_size);
}

/* Makes the chunk of an index unless it exists. Returns false if host memory is exhausted. */
static bool make_chunk(qi_vma_table *table, uint32_t index)
{
    uint64_t position;
    int chunk = chunk_of(index, &position);
    pthread_mutex_lock(&table->mutex);
    char *records = atomic_load_explicit(&table->chunks[chunk], memory_order_relaxed);
    if (!records) {
        records =
            qi_vma_host_allocate(table->host, table->record_size * QI_VMA_FIRST_CHUNK << chunk);
        atomic_store_explicit(&table->chunks[chunk], records, memory_order_release);
    }
    pthread_mutex_unlock(&table->mutex);
    return records != NULL;
}

/* ---- taking and giving ---------------------------------------------------------------------- */

static uint64_t top_of(uint64_t old_top, uint32_t index_plus_1)
{
    return ((old_top >> 32) + 1) << 32 | index_plus_1;
}

/* The list that the calling thread uses first. Threads get them in turn. */
static uint32_t own_list(void)
{
    static _Atomic uint32_t threads;
    static _Thread_local uint32_t number; /* from 1 */
    if (!number)
        number =
            atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) % QI_VMA_FREE_LISTS + 1;
    return number - 1;
}

/* Pops the newest record of a list. A record that another thread takes in between still exists, so
   that reading its link is harmless: the exchange then fails. */
static qi_vma_record *pop_from(qi_vma_table *table, qi_vma_free_list *list, uint32_t *index)
{
    uint64_t top = atomic_load_explicit(&list->top, memory_order_acquire);
    while ((uint32_t)top) {
        qi_vma_record *record = record_at(table, (uint32_t)top - 1);
        uint32_t next = atomic_load_explicit(&record->next, memory_order_relaxed);
        *index = (uint32_t)top - 1;
        if (atomic_compare_exchange_weak_explicit(&list->top, &top, top_of(top, next),
                                                  memory_order_acquire, memory_order_acquire))
            return record;
    }
    return NULL;
}

/* A thread that only takes what others give finds it in their lists. */
static qi_vma_record *pop(qi_vma_table *table, uint32_t *index)
{
    qi_vma_record *record = NULL;
    uint32_t own = own_list();
    for (uint32_t i = 0; i < QI_VMA_FREE_LISTS && !record; i++)
        record = pop_from(table, &table->free[(own + i) % QI_VMA_FREE_LISTS], index);
    return record;
}

static void push(qi_vma_table *table, qi_vma_record *record, uint32_t index)
{
    qi_vma_free_list *list = &table->free[own_list()];
    uint64_t top = atomic_load_explicit(&list->top, memory_order_relaxed);
    do
        atomic_store_explicit(&record->next, (uint32_t)top, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&list->top, &top, top_of(top, index + 1),
                                                  memory_order_release, memory_order_relaxed));
}

/* Takes the next unused index. Its chunk is made before, so that every index below `count` has a
   record. */
static qi_vma_record *append(qi_vma_table *table, uint32_t *index)
{
    *index = atomic_load_explicit(&table->count, memory_order_relaxed);
    do {
        if (*index == UINT32_MAX - 1) {
            qi_vma_fail(VK_ERROR_TOO_MANY_OBJECTS, "the table of %ss is full", table->noun);
            return NULL;
        }
        if (!make_chunk(table, *index))
            return NULL;
    } while (!atomic_compare_exchange_weak_explicit(&table->count, index, *index + 1,
                                                    memory_order_release, memory_order_relaxed));
    return record_at(table, *index);
}

void *qi_vma_table_take(qi_vma_table *table, uintptr_t *handle)
{
    uint32_t index;
    qi_vma_record *record = pop(table, &index);
    if (!record)
        record = append(table, &index);
    if (!record)
        return NULL;
    uint32_t generation =
        atomic_fetch_add_explicit(&record->generation, 1, memory_order_relaxed) + 1;
    *handle = handle_of(table, index, generation);
    return record;
}

void qi_vma_table_give(qi_vma_table *table, uintptr_t handle)
{
    qi_vma_record *record = record_at(table, index_of(handle));
    atomic_fetch_add_explicit(&record->generation, 1, memory_order_release);
    push(table, record, index_of(handle));
}

/* ---- finding -------------------------------------------------------------------------------- */

static qi_vma_record *refuse(const qi_vma_table *table, uintptr_t handle)
{
    uint32_t count = atomic_load_explicit(&table->count, memory_order_relaxed);
    const char *fault = "was freed before";
    if (!handle)
        fault = "is null";
    else if (handle >> TAG_SHIFT != table->tag || index_of(handle) >= count)
        fault = "belongs to another allocator, or is no handle";
    qi_vma_fail(VK_ERROR_VALIDATION_FAILED_EXT, "the %s %s", table->noun, fault);
    return NULL;
}

void *qi_vma_table_at(const qi_vma_table *table, uint32_t index)
{
    if (index >= atomic_load_explicit(&table->count, memory_order_acquire))
        return NULL;
    qi_vma_record *record = record_at(table, index);
    return atomic_load_explicit(&record->generation, memory_order_acquire) & 1 ? record : NULL;
}

static bool is_of(uint32_t generation, uintptr_t handle)
{
    uint32_t difference = generation ^ (uint32_t)(handle >> GENERATION_SHIFT);
    return generation & 1 && !(difference & GENERATION_MASK);
}

void *qi_vma_table_find(const qi_vma_table *table, uintptr_t handle)
{
    uint32_t index = index_of(handle); /* of a null handle: above every count */
    if (handle >> TAG_SHIFT != table->tag ||
        index >= atomic_load_explicit(&table->count, memory_order_acquire))
        return refuse(table, handle);
    qi_vma_record *record = record_at(table, index);
    uint32_t generation = atomic_load_explicit(&record->generation, memory_order_acquire);
    return is_of(generation, handle) ? record : refuse(table, handle);
}

/* An exchange that changes nothing keeps the caller's reads before it; a load would not. */
bool qi_vma_table_still_has(const qi_vma_table *table, uintptr_t handle)
{
    qi_vma_record *record = record_at(table, index_of(handle));
    uint32_t generation = atomic_fetch_add_explicit(&record->generation, 0, memory_order_acq_rel);
    return is_of(generation, handle) || refuse(table, handle);
}
