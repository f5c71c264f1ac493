/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * starts.c - the table of start addresses against an array: random entries, entries of one hash,
 * entries of one address, and host memory that is exhausted.
 */
#include "src/core/find/starts.h"

#include "tests/support/random.h"
#include "tests/support/unit.h"

enum { SLOTS = 2000 };

typedef struct bench {
    qi_host host;
    qi_starts starts;
    uint32_t ids;                       /* handed out so far */
    uint64_t address[SLOTS], id[SLOTS]; /* of the slots in the table; address 0: not there */
} bench;

static void begin(bench *b)
{
    *b = (bench){.ids = 0};
    CHECK_OK(qi_host_init(&b->host, unit_memory()));
    qi_starts_init(&b->starts);
}

static void end(bench *b)
{
    qi_starts_finish(&b->starts, &b->host);
    CHECK_EQ(b->host.bytes, 0);
}

/* Returns the handle of a new slot. */
static uint64_t new_id(bench *b)
{
    return qi_handle(5, 1, b->ids++);
}

static bool put(bench *b, uint64_t address, uint64_t id)
{
    return qi_starts_put(&b->starts, &b->host, address, id, true);
}

static uint64_t find(bench *b, uint64_t address)
{
    return qi_starts_find(&b->starts, address);
}

UNIT_ON(starts, random_entries_against_an_array, bench, b, begin(b), end)
{
    test_random r = {11};
    for (int i = 0; i < 60000; i++) {
        bool fills = i / 5000 % 2 == 0;
        uint32_t at = (uint32_t)random_below(&r, SLOTS);
        if (b->address[at] && (!fills || random_below(&r, 3) == 0)) {
            qi_starts_remove(&b->starts, b->address[at], qi_handle_slot(b->id[at]));
            CHECK_EQ(find(b, b->address[at]), 0);
            b->address[at] = 0;
        } else if (!b->address[at] && fills) {
            /* unique: the number of the place is part of it; some pages, some dense */
            b->address[at] = (UINT64_C(1) << 40) + (random_below(&r, 4) << 33) + at * UINT64_C(256);
            b->id[at] = new_id(b);
            CHECK(put(b, b->address[at], b->id[at]));
        }
        at = (uint32_t)random_below(&r, SLOTS);
        if (b->address[at])
            CHECK_EQ(find(b, b->address[at]), b->id[at]);
        CHECK_EQ(find(b, (UINT64_C(1) << 40) + at * UINT64_C(256) + 1), 0);
    }
}

/* 2 MiB of addresses, which are in one stripe: all are found after each growth. */
UNIT_ON(starts, entries_of_a_dense_page, bench, b, begin(b), end)
{
    static uint64_t ids[8192];
    for (uint64_t i = 0; i < 8192; i++) {
        ids[i] = new_id(b);
        CHECK(put(b, (UINT64_C(64) << 20) + i * 256, ids[i]));
        if (!(i & (i + 1)))
            for (uint64_t j = 0; j <= i; j++)
                CHECK_EQ(find(b, (UINT64_C(64) << 20) + j * 256), ids[j]);
    }
    for (uint64_t i = 0; i < 8192; i++)
        qi_starts_remove(&b->starts, (UINT64_C(64) << 20) + i * 256, qi_handle_slot(ids[i]));
    for (int i = 0; i < QI_STRIPE_COUNT; i++)
        CHECK_EQ(b->starts.stripes[i].count, 0);
}

UNIT_ON(starts, hidden_entries_are_not_found, bench, b, begin(b), end)
{
    uint64_t id = new_id(b), slot = qi_handle_slot(id), renewed = id + (UINT64_C(1) << 26);
    CHECK(qi_starts_put(&b->starts, &b->host, 4096, id, false));
    CHECK_EQ(find(b, 4096), 0);
    qi_starts_show(&b->starts, 4096, renewed); /* another generation */
    CHECK_EQ(find(b, 4096), 0);
    qi_starts_show(&b->starts, 4096, id);
    CHECK_EQ(find(b, 4096), id);
    qi_starts_hide(&b->starts, 4096, (uint32_t)slot);
    qi_starts_hide(&b->starts, 4096, (uint32_t)slot); /* again */
    CHECK_EQ(find(b, 4096), 0);
    CHECK(put(b, 4096, renewed));
    CHECK_EQ(find(b, 4096), renewed);
    CHECK_EQ(b->starts.stripes[qi_stripe_of(&b->starts, 4096) - b->starts.stripes].count, 1);
    qi_starts_hide(&b->starts, 4096, (uint32_t)slot + 1); /* another slot: not there */
    qi_starts_remove(&b->starts, 4096, (uint32_t)slot + 1);
    qi_starts_remove(&b->starts, 8192, (uint32_t)slot); /* another address */
    qi_starts_show(&b->starts, 8192, id);
    CHECK_EQ(find(b, 4096), renewed);
}

UNIT_ON(starts, several_slots_can_have_one_address, bench, b, begin(b), end)
{
    uint64_t first = new_id(b), second = new_id(b), third = new_id(b);
    CHECK(put(b, 4096, first) && put(b, 4096, second) && put(b, 4096, third));
    CHECK_EQ(find(b, 4096), first);
    qi_starts_remove(&b->starts, 4096, qi_handle_slot(first));
    CHECK(find(b, 4096) == second || find(b, 4096) == third);
    qi_starts_hide(&b->starts, 4096, qi_handle_slot(second));
    CHECK_EQ(find(b, 4096), third);
}

UNIT_ON(starts, an_entry_after_a_reservation_takes_no_host_memory, bench, b, begin(b), end)
{
    test_random r = {12};
    for (int i = 0; i < 5000; i++) {
        CHECK(qi_starts_reserve(&b->starts, &b->host));
        const uint64_t bytes = b->host.bytes;
        CHECK(put(b, random_below(&r, UINT64_C(1) << 40) + 1, new_id(b)));
        CHECK_EQ(b->host.bytes, bytes);
    }
}

UNIT_ON(starts, an_entry_without_host_memory_changes_nothing, bench, b, begin(b), end)
{
    uint64_t ids[11];
    for (int i = 0; i < 11; i++)
        ids[i] = new_id(b);
    test_memory_fail(unit_memory_state(), 1, true);
    CHECK(!put(b, 256, ids[0]));
    CHECK_EQ(find(b, 256), 0);
    test_memory_fail(unit_memory_state(), 0, false);
    for (uint64_t i = 0; i < 10; i++)
        CHECK(put(b, 256 + i * 256, ids[i]));
    test_memory_fail(unit_memory_state(), 1, true);
    CHECK(!put(b, 256 + 10 * 256, ids[10])); /* the first table has room for ten */
    CHECK(put(b, 256, ids[0]));              /* replacing needs none */
    test_memory_fail(unit_memory_state(), 0, false);
    for (uint64_t i = 0; i < 10; i++)
        CHECK_EQ(find(b, 256 + i * 256), ids[i]);
}
