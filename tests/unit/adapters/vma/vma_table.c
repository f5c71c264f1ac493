/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma_table.c - the records behind handles.
 */
#include "src/adapters/vma/table.h"

#include "quire/base.h"
#include "tests/support/unit.h"
#include "tests/support/vma_fixture.h"

typedef struct entry {
    qi_vma_record record;
    uint32_t value;
} entry;

static qi_vma_host host;

static void begin(qi_vma_table *table)
{
    qi_vma_host_begin(&host, NULL);
    qi_vma_table_begin(table, &host, "entry", sizeof(entry));
}

static entry *take(qi_vma_table *table, uintptr_t *handle, uint32_t value)
{
    entry *e = (entry *)qi_vma_table_take(table, handle);
    CHECK(e);
    e->value = value;
    return e;
}

enum { MANY = 5000 };

UNIT(vma_table, each_handle_finds_its_record)
{
    static uintptr_t handles[MANY];
    qi_vma_table table;
    begin(&table);
    for (uint32_t i = 0; i < MANY; i++)
        take(&table, &handles[i], i);
    for (uint32_t i = 0; i < MANY; i++) {
        entry *e = (entry *)qi_vma_table_find(&table, handles[i]);
        CHECK(e);
        CHECK_EQ(e->value, i);
        CHECK_EQ((uintptr_t)qi_vma_table_at(&table, i), (uintptr_t)e);
    }
    CHECK(!qi_vma_table_at(&table, MANY));
    qi_vma_table_end(&table);
}

UNIT(vma_table, a_handle_is_stale_after_it_was_given_back)
{
    qi_vma_table table;
    uintptr_t first, second;
    begin(&table);
    entry *e = take(&table, &first, 1);
    CHECK(qi_vma_table_still_has(&table, first));
    qi_vma_table_give(&table, first);
    CHECK(!qi_vma_table_still_has(&table, first));
    CHECK_HAS(quire_last_error(), "the entry was freed before");
    CHECK(!qi_vma_table_find(&table, first));
    CHECK_HAS(quire_last_error(), "the entry was freed before");
    CHECK(!qi_vma_table_at(&table, 0));
    CHECK_EQ((uintptr_t)take(&table, &second, 2), (uintptr_t)e); /* the same record */
    CHECK(first != second);
    CHECK(!qi_vma_table_find(&table, first));
    CHECK(!qi_vma_table_still_has(&table, first));
    CHECK(qi_vma_table_find(&table, second));
    qi_vma_table_end(&table);
}

UNIT(vma_table, other_numbers_are_no_handles)
{
    qi_vma_table table, other;
    uintptr_t handle, foreign;
    begin(&table);
    begin(&other);
    take(&table, &handle, 1);
    take(&other, &foreign, 1);
    CHECK(!qi_vma_table_find(&table, 0));
    CHECK_HAS(quire_last_error(), "is null");
    CHECK(!qi_vma_table_find(&table, foreign));
    CHECK_HAS(quire_last_error(), "belongs to another allocator");
    CHECK(!qi_vma_table_find(&table, handle + 1));
    CHECK_HAS(quire_last_error(), "is no handle");
    CHECK(!qi_vma_table_find(&table, handle & ~(uintptr_t)UINT32_MAX));
    CHECK(!qi_vma_table_find(&table, UINTPTR_MAX));
    CHECK(!qi_vma_table_find(&table, (uintptr_t)&table));
    qi_vma_table_end(&table);
    qi_vma_table_end(&other);
}

/* ---- host memory ---------------------------------------------------------------------------- */

UNIT(vma_table, a_table_without_host_memory_takes_nothing_and_recovers)
{
    vma_host program;
    uintptr_t handle;
    qi_vma_table table;
    qi_vma_host_begin(&host, vma_host_begin(&program, 1, true));
    qi_vma_table_begin(&table, &host, "entry", sizeof(entry));
    CHECK(!qi_vma_table_take(&table, &handle));
    CHECK_EQ(quire_last_result(), QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    CHECK_EQ(atomic_load(&table.count), 0);
    program.fail_at = UINT32_MAX;
    take(&table, &handle, 7);
    CHECK_EQ(((entry *)qi_vma_table_find(&table, handle))->value, 7);
    qi_vma_table_end(&table);
}

/* ---- threads -------------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 2000, HELD = 16 };
static qi_vma_table shared;
static _Atomic uint32_t faults;

static void exchange(uintptr_t *handle, uint32_t value)
{
    if (*handle) {
        const entry *e = (entry *)qi_vma_table_find(&shared, *handle);
        faults += !e || e->value != value;
        qi_vma_table_give(&shared, *handle);
        faults += qi_vma_table_find(&shared, *handle) != NULL;
    }
    entry *e = (entry *)qi_vma_table_take(&shared, handle);
    faults += !e;
    if (e)
        e->value = value;
}

/* Takes and gives back records; what a thread wrote into one must still be there. */
static void *churn(void *user)
{
    uintptr_t handles[HELD] = {0};
    uint32_t thread = *(uint32_t *)user;
    for (uint32_t i = 0; i < ROUNDS; i++)
        exchange(&handles[i * 7 % HELD], thread << 16 | i * 7 % HELD);
    return NULL;
}

UNIT(vma_table, threads_never_share_a_record)
{
    pthread_t threads[THREADS];
    uint32_t numbers[THREADS];
    begin(&shared);
    for (uint32_t i = 0; i < THREADS; i++) {
        numbers[i] = i;
        CHECK_EQ(pthread_create(&threads[i], NULL, churn, &numbers[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ(faults, 0);
    /* a search of the lists can miss a record that moves between them */
    CHECK(atomic_load(&shared.count) <= THREADS * (HELD + 1));
    qi_vma_table_end(&shared);
}

static void *give_all(void *user)
{
    const uintptr_t *handles = user;
    for (uint32_t i = 0; i < HELD; i++)
        qi_vma_table_give(&shared, handles[i]);
    return NULL;
}

UNIT(vma_table, what_other_threads_give_back_is_taken_again)
{
    uintptr_t handles[HELD];
    begin(&shared);
    for (uint32_t round = 0; round < 2 * QI_VMA_FREE_LISTS; round++) {
        pthread_t thread; /* each has another list */
        for (uint32_t i = 0; i < HELD; i++)
            take(&shared, &handles[i], i);
        CHECK_EQ(pthread_create(&thread, NULL, give_all, handles), 0);
        pthread_join(thread, NULL);
    }
    CHECK_EQ(atomic_load(&shared.count), HELD);
    qi_vma_table_end(&shared);
}
