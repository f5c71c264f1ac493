/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * sleep.c - lazy allocations that sleep and wake: contents and addresses, names, what refuses them,
 * and that a call which fails leaves all of them as they were.
 */
#include "src/core/copy/sleep.h"

#include <string.h>

#include "quire/elastic.h"
#include "quire/host.h"
#include "src/core/page/lazy.h"
#include "tests/support/elastic_page.h"

enum { COUNT = 5, WHOLE = 6 };

typedef struct bench {
    quire_device *device;
    quire_memory *memory;
    quire_allocation made[COUNT];
    uint64_t addresses[COUNT];
} bench;

/* Every second chunk has memory, and bytes of its own. */
static void fill(bench *b, int i)
{
    static unsigned char bytes[CHUNK];
    for (uint64_t k = (uint64_t)i % 2; k < WHOLE; k += 2) {
        const quire_view range = {b->made[i], k * CHUNK, CHUNK};
        memset(bytes, (int)(16 + i * WHOLE) + (int)k, sizeof bytes);
        CHECK_OK(quire_back_range(b->memory, &range, 1));
        CHECK_OK(quire_write(b->memory, b->made[i], range.offset, bytes, sizeof bytes));
    }
}

static void expect_contents(bench *b, int i)
{
    static unsigned char bytes[CHUNK], read[CHUNK];
    quire_allocation_info info;
    CHECK_OK(quire_allocation_get_info(b->memory, b->made[i], &info));
    CHECK_EQ(info.address, b->addresses[i]);
    CHECK_EQ(info.backed, WHOLE / 2 * CHUNK);
    for (uint64_t k = (uint64_t)i % 2; k < WHOLE; k += 2) {
        memset(bytes, (int)(16 + i * WHOLE) + (int)k, sizeof bytes);
        CHECK_OK(quire_read(b->memory, b->made[i], k * CHUNK, read, sizeof read));
        CHECK(!memcmp(bytes, read, sizeof bytes));
    }
}

static uint64_t reserved(const bench *b)
{
    quire_memory_stats stats;
    CHECK_OK(quire_memory_check(b->memory));
    CHECK_OK(quire_memory_get_stats(b->memory, &stats));
    return stats.reserved_bytes / CHUNK;
}

static void begin(bench *b)
{
    static const char *const names[COUNT] = {"a/1", "a/2", "b/1", "b/2", NULL};
    CHECK_OK(quire_host_open(NULL, &b->device));
    CHECK_OK(quire_memory_create(b->device,
                                 &(quire_memory_options){.name = "sleepy",
                                                         .kind.required = QUIRE_HOST_VISIBLE,
                                                         .elastic = true,
                                                         .address_space = CHUNKS * CHUNK,
                                                         .pages.page_size = CHUNK},
                                 &b->memory));
    for (int i = 0; i < COUNT; i++) {
        quire_allocation_info info;
        CHECK_OK(quire_allocate(b->memory,
                                &(quire_allocation_options){.size = WHOLE * CHUNK - 10 * (i == 1),
                                                            .lazy = true,
                                                            .name = names[i],
                                                            .info = &info},
                                &b->made[i]));
        b->addresses[i] = info.address;
        if (i != 1)
            fill(b, i);
    }
    CHECK_EQ(reserved(b), (COUNT - 1) * WHOLE / 2);
}

static void finish(bench *b)
{
    CHECK_OK(quire_memory_check(b->memory));
    quire_memory_destroy_all(&b->memory);
    CHECK_OK(quire_device_destroy(&b->device));
}

#define CASE(name) UNIT_ON(sleep, name, bench, b, begin(b), finish)

static uint64_t fall_asleep(bench *b, const char *prefix, bool discards)
{
    uint64_t bytes = 1;
    CHECK_OK(qi_memory_sleep(b->memory, prefix, discards, &bytes));
    return bytes / CHUNK;
}

static uint64_t wake(bench *b, const char *prefix)
{
    uint64_t bytes = 1;
    CHECK_OK(qi_memory_wake(b->memory, prefix, &bytes));
    return bytes / CHUNK;
}

CASE(contents_come_back_at_the_same_addresses)
{
    CHECK_EQ(fall_asleep(b, NULL, false), 12);
    CHECK_EQ(reserved(b), 0);
    CHECK_EQ(fall_asleep(b, NULL, false), 0);
    quire_allocation other;
    CHECK_OK(quire_allocate(b->memory, &(quire_allocation_options){.size = 9 * CHUNK}, &other));
    CHECK_EQ(wake(b, NULL), 12);
    CHECK_EQ(reserved(b), 9 + 12);
    for (int i = 0; i < COUNT; i++)
        if (i != 1)
            expect_contents(b, i);
    CHECK_EQ(wake(b, NULL), 0);
    CHECK_OK(quire_free(b->memory, other));
}

/* Names begin with the prefix; without one, all allocations sleep. */
CASE(a_prefix_selects_by_name)
{
    CHECK_EQ(fall_asleep(b, "none", false), 0);
    CHECK_EQ(fall_asleep(b, "b/", false), 6);
    CHECK_EQ(reserved(b), 6);
    expect_contents(b, 0);
    CHECK_EQ(fall_asleep(b, "", false), 3); /* a/1, and a/2 without a chunk */
    expect_contents(b, 4);
    CHECK_EQ(wake(b, "a/"), 3);
    CHECK_EQ(wake(b, "b/2"), 3);
    expect_contents(b, 3);
    CHECK_EQ(wake(b, NULL), 3);
    expect_contents(b, 2);
}

CASE(what_is_discarded_comes_back_without_contents)
{
    CHECK_EQ(fall_asleep(b, "a/1", true), 3);
    CHECK_EQ(reserved(b), 9);
    CHECK_EQ(wake(b, "a/1"), 3);
    fill(b, 0);
    expect_contents(b, 0);
    CHECK_EQ(reserved(b), 12);
}

CASE(what_sleeps_can_be_freed_and_nothing_else)
{
    char byte = 1;
    void *pointer;
    const quire_view range = {b->made[0], 0, 1};
    CHECK_EQ(fall_asleep(b, NULL, false), 12);
    CHECK_FAILS(quire_write(b->memory, b->made[0], 0, &byte, 1), QUIRE_ERROR_WRONG_STATE);
    CHECK_HAS(quire_last_error(), "asleep");
    CHECK_FAILS(quire_read(b->memory, b->made[0], 0, &byte, 1), QUIRE_ERROR_WRONG_STATE);
    CHECK_FAILS(quire_map(b->memory, b->made[0], &pointer), QUIRE_ERROR_WRONG_STATE);
    CHECK_FAILS(quire_back_range(b->memory, &range, 1), QUIRE_ERROR_WRONG_STATE);
    CHECK_FAILS(quire_unback_range(b->memory, &range, 1, NULL), QUIRE_ERROR_WRONG_STATE);
    CHECK_OK(quire_free(b->memory, b->made[0]));
    CHECK_OK(quire_free(b->memory, b->made[1]));
    CHECK_EQ(wake(b, NULL), 9);
    expect_contents(b, 2);
}

CASE(what_is_mapped_or_in_use_refuses_all)
{
    void *pointer;
    uint64_t bytes;
    uint32_t slot;
    CHECK_OK(quire_map(b->memory, b->made[3], &pointer));
    CHECK_FAILS(qi_memory_sleep(b->memory, NULL, false, &bytes), QUIRE_ERROR_BUSY);
    CHECK_OK(quire_unmap(b->memory, b->made[3]));
    CHECK_OK(qi_slot_begin_use(&b->memory->slots, b->made[3], QI_ACCEPT_LIVE, &slot));
    CHECK_FAILS(qi_memory_sleep(b->memory, NULL, false, &bytes), QUIRE_ERROR_BUSY);
    qi_slot_end_use(&b->memory->slots, slot);
    expect_contents(b, 0);
    CHECK_EQ(reserved(b), 12);
    CHECK_EQ(fall_asleep(b, NULL, false), 12);
    CHECK_EQ(wake(b, NULL), 12);
}

/* A call that changes chunks, as another sleep or wake does, has the allocation to itself. */
CASE(what_another_call_changes_refuses_all)
{
    uint64_t bytes;
    const uint32_t slot = qi_handle_slot(b->made[2].id);
    qi_lock *lock = &b->memory->shards[0]->lock;
    for (int round = 0; round < 2; round++) {
        qi_lock_acquire(lock);
        CHECK(qi_lazy_hold(b->memory, slot));
        qi_lock_release(lock);
        CHECK_FAILS(round ? qi_memory_wake(b->memory, NULL, &bytes)
                          : qi_memory_sleep(b->memory, NULL, false, &bytes),
                    QUIRE_ERROR_BUSY);
        qi_lock_acquire(lock);
        qi_lazy_drop(b->memory, slot);
        qi_lock_release(lock);
        CHECK_EQ(reserved(b), round ? 0 : 12);
        CHECK_EQ(round ? wake(b, NULL) : fall_asleep(b, NULL, false), 12);
    }
    expect_contents(b, 2);
}

CASE(no_memory_at_wake_leaves_all_asleep)
{
    uint64_t bytes;
    CHECK_EQ(fall_asleep(b, NULL, false), 12);
    CHECK_OK(quire_memory_set_limit(b->memory, 10 * CHUNK));
    CHECK_FAILS(qi_memory_wake(b->memory, NULL, &bytes), QUIRE_ERROR_OVER_BUDGET);
    CHECK_EQ(reserved(b), 0);
    CHECK_EQ(wake(b, "b/"), 6);
    expect_contents(b, 3);
    CHECK_OK(quire_memory_set_limit(b->memory, 0));
    CHECK_EQ(wake(b, NULL), 6);
    expect_contents(b, 0);
}

/* Each call for host memory fails in turn: asleep or awake, all of them. */
CASE(without_host_memory_nothing_changes)
{
    for (int round = 0; round < 2; round++)
        for (uint64_t at = 1, bytes;; at++) {
            CHECK(at < 100);
            test_memory_fail(unit_memory_state(), at, true);
            quire_result result = round ? qi_memory_wake(b->memory, NULL, &bytes)
                                        : qi_memory_sleep(b->memory, NULL, false, &bytes);
            test_memory_fail(unit_memory_state(), 0, false);
            CHECK_EQ(reserved(b), (round == 0) == (result != QUIRE_SUCCESS) ? 12 : 0);
            if (!result)
                break;
            CHECK_EQ(result, QUIRE_ERROR_OUT_OF_HOST_MEMORY);
        }
    for (int i = 0; i < COUNT; i++)
        if (i != 1)
            expect_contents(b, i);
}

CASE(a_thousand_sleeps_leak_nothing)
{
    quire_memory_stats stats;
    for (int i = 0; i < 1000; i++) {
        CHECK_EQ(fall_asleep(b, i % 2 ? "a/" : NULL, i % 3 == 0), i % 2 ? 3 : 12);
        CHECK_EQ(wake(b, NULL), i % 2 ? 3 : 12);
        if (i % 100 == 0)
            CHECK_EQ(reserved(b), 12);
    }
    CHECK_OK(quire_memory_get_stats(b->memory, &stats));
    CHECK_EQ(stats.live_bytes, 12 * CHUNK);
    CHECK_EQ(stats.allocation_count, COUNT);
}
