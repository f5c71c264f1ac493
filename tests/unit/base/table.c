/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * table.c - the growing array: each index maps to the right chunk at every border, elements never
 * move, and exhausted host memory changes nothing.
 */
#include "src/base/table.h"

#include "tests/support/unit.h"

enum { LAST_INDEX = (1 << 26) - 1 };

typedef struct element {
    uint64_t value;
    char rest[16];
} element;

typedef struct bench {
    qi_host host;
    qi_table table;
} bench;

/* Initialised in place, because the chunks are atomics. */
static void make_table(bench *b)
{
    CHECK_OK(qi_host_init(&b->host, unit_memory()));
    qi_table_init(&b->table, sizeof(element));
}

static void end_table(bench *b)
{
    qi_table_finish(&b->table, &b->host);
    CHECK_EQ(qi_atomic_load_u64(&b->host.bytes), 0);
}

/* ---- arithmetic ---------------------------------------------------------------------------- */

UNIT(table, chunks_cover_all_indexes_without_gaps)
{
    CHECK_EQ(qi_table_chunk_start(0), 0);
    CHECK_EQ(qi_table_chunk_count(0), 32);
    for (uint32_t chunk = 1; chunk < QI_TABLE_CHUNKS; chunk++) {
        uint32_t start = qi_table_chunk_start(chunk);
        CHECK_EQ(start, qi_table_chunk_start(chunk - 1) + qi_table_chunk_count(chunk - 1));
        CHECK_EQ(qi_table_chunk_count(chunk), 2 * qi_table_chunk_count(chunk - 1));
        CHECK_EQ(qi_table_chunk_of(start), chunk);
        CHECK_EQ(qi_table_chunk_of(start - 1), chunk - 1);
    }
}

UNIT(table, every_index_lies_in_its_chunk)
{
    for (uint32_t i = 0; i <= LAST_INDEX; i += i < 100000 ? 1 : 977) {
        uint32_t chunk = qi_table_chunk_of(i), start = qi_table_chunk_start(chunk);
        CHECK(i >= start && i - start < qi_table_chunk_count(chunk));
    }
    CHECK(qi_table_chunk_of(LAST_INDEX) < QI_TABLE_CHUNKS);
}

#define CASE(name) UNIT_ON(table, name, bench, b, make_table(b), end_table)

/* ---- elements ------------------------------------------------------------------------------ */

CASE(a_new_table_is_empty)
{
    for (uint32_t chunk = 0; chunk < QI_TABLE_CHUNKS; chunk++)
        CHECK(!qi_table_get(&b->table, qi_table_chunk_start(chunk)));
    CHECK(!qi_table_get(&b->table, LAST_INDEX));
}

CASE(an_element_allocates_its_chunk_and_no_other)
{
    for (uint32_t chunk = 0; chunk < 8; chunk += 3) {
        uint32_t start = qi_table_chunk_start(chunk), end = start + qi_table_chunk_count(chunk);
        CHECK(qi_table_ensure(&b->table, &b->host, start + 5));
        char *first = qi_table_get(&b->table, start), *last = qi_table_get(&b->table, end - 1);
        CHECK_EQ(last - first, (end - 1 - start) * sizeof(element));
        CHECK(!qi_table_get(&b->table, end));
        CHECK(!chunk || !qi_table_get(&b->table, start - 1));
    }
    CHECK_EQ(qi_atomic_load_u64(&b->host.bytes), (32 + 256 + 2048) * sizeof(element));
}

CASE(new_elements_are_zero)
{
    for (uint32_t i = 0; i < 1000; i++) {
        CHECK(qi_table_ensure(&b->table, &b->host, i));
        element *e = qi_table_get(&b->table, i);
        CHECK_EQ(e->value, 0);
        memset(e, 0xff, sizeof *e); /* the bytes after it must still be zero */
    }
}

CASE(elements_never_move_and_never_overlap)
{
    enum { COUNT = 20000 };
    static element *places[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        CHECK(qi_table_ensure(&b->table, &b->host, i));
        places[i] = qi_table_get(&b->table, i);
        places[i]->value = i;
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        CHECK(qi_table_ensure(&b->table, &b->host, i));
        CHECK(qi_table_get(&b->table, i) == places[i]);
        CHECK_EQ(places[i]->value, i);
    }
}

CASE(elements_of_one_byte_reach_high_indexes)
{
    b->table.element_size = 1;
    const uint32_t far = qi_table_chunk_start(20);
    CHECK(qi_table_ensure(&b->table, &b->host, far + 7));
    char *last = qi_table_get(&b->table, qi_table_chunk_start(21) - 1);
    *last = 1;
    CHECK_EQ(last - (char *)qi_table_get(&b->table, far), qi_table_chunk_count(20) - 1);
}

/* ---- releasing chunks ---------------------------------------------------------------------- */

CASE(a_released_chunk_is_freed_and_the_others_stay)
{
    for (uint32_t i = 0; i < 200; i += 20)
        CHECK(qi_table_ensure(&b->table, &b->host, i));
    element *kept = qi_table_get(&b->table, 100), *lost = qi_table_get(&b->table, 40);
    kept->value = lost->value = 9;
    qi_table_release_chunk(&b->table, &b->host, 1);
    CHECK(!qi_table_get(&b->table, 32) && !qi_table_get(&b->table, 95));
    CHECK(qi_table_get(&b->table, 31) && qi_table_get(&b->table, 96));
    CHECK_EQ(kept->value, 9);
    CHECK(qi_table_ensure(&b->table, &b->host, 40));
    CHECK_EQ(((element *)qi_table_get(&b->table, 40))->value, 0);
}

CASE(releasing_a_missing_chunk_does_nothing)
{
    for (uint32_t chunk = 0; chunk < QI_TABLE_CHUNKS; chunk++)
        qi_table_release_chunk(&b->table, &b->host, chunk);
    CHECK(qi_table_ensure(&b->table, &b->host, 0));
    qi_table_release_chunk(&b->table, &b->host, 0);
    qi_table_release_chunk(&b->table, &b->host, 0);
    CHECK_EQ(qi_atomic_load_u64(&b->host.bytes), 0);
}

CASE(a_finished_table_can_be_reused)
{
    CHECK(qi_table_ensure(&b->table, &b->host, 1000));
    qi_table_finish(&b->table, &b->host);
    CHECK(!qi_table_get(&b->table, 1000));
    CHECK(qi_table_ensure(&b->table, &b->host, 1000));
}

CASE(without_host_memory_nothing_changes)
{
    CHECK(qi_table_ensure(&b->table, &b->host, 3));
    element *kept = qi_table_get(&b->table, 3);
    test_memory_fail(unit_memory_state(), 1, true);
    CHECK(!qi_table_ensure(&b->table, &b->host, 32));
    CHECK(!qi_table_get(&b->table, 32));
    CHECK(qi_table_ensure(&b->table, &b->host, 31)); /* exists already */
    CHECK(qi_table_get(&b->table, 3) == kept);
    test_memory_fail(unit_memory_state(), 0, false);
    CHECK(qi_table_ensure(&b->table, &b->host, 32));
    CHECK(qi_table_get(&b->table, 32) != NULL);
}

UNIT(table, only_existing_elements_are_found)
{
    qi_host host;
    CHECK_OK(qi_host_init(&host, unit_memory()));
    qi_table table;
    qi_table_init(&table, 24);
    const uint32_t indices[] = {0, 31, 32, 95, 96, 1000};
    for (size_t i = 0; i < sizeof indices / sizeof *indices; i++)
        CHECK(qi_table_ensure(&table, &host, indices[i]));
    uint32_t found = 0;
    for (size_t i = 0; i < sizeof indices / sizeof *indices; i++) {
        char *at = qi_table_get(&table, indices[i]);
        CHECK(qi_table_find(&table, at, &found));
        CHECK_EQ(found, indices[i]);
        CHECK(!qi_table_find(&table, at + 8, &found));
    }
    CHECK(!qi_table_find(&table, NULL, &found));
    CHECK(!qi_table_find(&table, &table, &found));
    qi_table_finish(&table, &host);
}
