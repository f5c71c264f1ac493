/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * sleep.c - lazy allocations that sleep and wake: contents and addresses, names, what refuses them,
 * and that a call which fails leaves all of them as they were.
 */
#include "src/core/copy/sleep.h"

#include <string.h>

#include "quire/elastic.h"
#include "quire/host.h"
#include "src/core/page/backing.h"
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
    CHECK_OK(
        quire_allocate(b->memory, &(quire_allocation_options){.size = 9 * CHUNK - 512}, &other));
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
    const qi_slots *slots = &b->memory->slots;
    for (int round = 0; round < 2; round++) {
        CHECK_EQ(round ? qi_slot_begin_wake(slots, slot) : qi_slot_begin_sleep(slots, slot),
                 QI_SLOT_BEGUN);
        qi_memory_slot(b->memory, slot)->extras |= QI_EXTRA_CHANGING;
        CHECK_FAILS(round ? qi_memory_wake(b->memory, NULL, &bytes)
                          : qi_memory_sleep(b->memory, NULL, false, &bytes),
                    QUIRE_ERROR_BUSY);
        qi_memory_slot(b->memory, slot)->extras &= (uint8_t)~QI_EXTRA_CHANGING;
        qi_slot_end_sleep(slots, slot, round ? QI_PHASE_ASLEEP : QI_PHASE_LIVE);
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

/* ---- allocations that share chunks -------------------------------------------------------- */

/* Ranges of an elastic page, with bytes of their own. */
typedef struct shared {
    bench b;
    quire_allocation ranges[16];
    uint64_t sizes[16];
    int count;
} shared;

static void begin_shared(shared *s)
{
    *s = (shared){.count = 0};
    CHECK_OK(quire_host_open(NULL, &s->b.device));
    CHECK_OK(quire_memory_create(s->b.device,
                                 &(quire_memory_options){.name = "shared",
                                                         .kind.required = QUIRE_HOST_VISIBLE,
                                                         .elastic = true,
                                                         .address_space = CHUNKS * CHUNK,
                                                         .pages.page_size = CHUNK},
                                 &s->b.memory));
}

static void finish_shared(shared *s)
{
    finish(&s->b);
}

#define SHARED(name) UNIT_ON(sleep_shared, name, shared, s, begin_shared(s), finish_shared)

static void put(shared *s, const char *name, uint64_t size)
{
    static unsigned char bytes[8 * CHUNK];
    const int i = s->count++;
    s->sizes[i] = size;
    CHECK_OK(quire_allocate(s->b.memory, &(quire_allocation_options){.size = size, .name = name},
                            &s->ranges[i]));
    memset(bytes, 1 + i, sizeof bytes);
    CHECK_OK(quire_write(s->b.memory, s->ranges[i], 0, bytes, size));
}

static void expect_range(shared *s, int i)
{
    static unsigned char bytes[8 * CHUNK], read[8 * CHUNK];
    memset(bytes, 1 + i, sizeof bytes);
    CHECK_OK(quire_read(s->b.memory, s->ranges[i], 0, read, s->sizes[i]));
    CHECK(!memcmp(bytes, read, s->sizes[i]));
}

/* Chunk 0 is half a and half b, chunk 1 is of b, and chunk 2 of b and c. */
static void put_three(shared *s)
{
    put(s, "a", CHUNK / 2);
    put(s, "b", 2 * CHUNK);
    put(s, "c", CHUNK / 4);
    CHECK_EQ(reserved(&s->b), 3);
}

SHARED(a_chunk_loses_its_memory_with_the_last_allocation_that_is_awake)
{
    quire_allocation_info info;
    put_three(s);
    CHECK_EQ(fall_asleep(&s->b, "b", false), 1);
    CHECK_EQ(reserved(&s->b), 2);
    CHECK_OK(quire_allocation_get_info(s->b.memory, s->ranges[1], &info));
    CHECK_EQ(info.size, 2 * CHUNK);
    CHECK_EQ(info.requested, 2 * CHUNK);
    CHECK_EQ(info.backed, 0);
    CHECK(info.committed);
    CHECK_EQ(info.map_count, 0);
    expect_range(s, 0);
    expect_range(s, 2);
    CHECK_EQ(fall_asleep(&s->b, "a", false), 1);
    CHECK_EQ(fall_asleep(&s->b, "c", false), 1);
    CHECK_EQ(reserved(&s->b), 0);
    CHECK_EQ(wake(&s->b, "a"), 1);
    expect_range(s, 0);
    CHECK_EQ(wake(&s->b, "b"), 2); /* its part of chunk 0 has memory */
    expect_range(s, 1);
    CHECK_EQ(wake(&s->b, NULL), 0);
    for (int i = 0; i < 3; i++)
        expect_range(s, i);
}

SHARED(statistics_count_what_is_awake)
{
    quire_memory_stats before, stats;
    put_three(s);
    CHECK_OK(quire_memory_get_stats(s->b.memory, &before));
    CHECK_EQ(fall_asleep(&s->b, "b", false), 1);
    CHECK_OK(quire_memory_get_stats(s->b.memory, &stats));
    CHECK_EQ(stats.allocation_count, 3);
    CHECK_EQ(stats.asleep_count, 1);
    CHECK(stats.asleep_bytes >= 2 * CHUNK);
    CHECK_EQ(stats.live_bytes, before.live_bytes - stats.asleep_bytes);
    CHECK_EQ(stats.requested_bytes, CHUNK / 2 + CHUNK / 4);
    CHECK_EQ(wake(&s->b, "b"), 1);
    CHECK_OK(quire_memory_get_stats(s->b.memory, &stats));
    CHECK_EQ(stats.live_bytes, before.live_bytes);
    CHECK_EQ(stats.peak_live_bytes, before.live_bytes);
    CHECK_EQ(stats.asleep_bytes + stats.asleep_count, 0);
}

/* The chunk keeps its memory until the next call looks at it. */
SHARED(a_chunk_whose_last_awake_allocation_was_freed_sleeps_with_the_next_call)
{
    if (QI_IS_CHECKED)
        unit_skip("the quarantine keeps what is freed");
    put_three(s);
    CHECK_EQ(fall_asleep(&s->b, "b", false), 1);
    CHECK_OK(quire_free(s->b.memory, s->ranges[0]));
    CHECK_OK(quire_free(s->b.memory, s->ranges[2]));
    CHECK_EQ(reserved(&s->b), 2);
    CHECK_EQ(fall_asleep(&s->b, "a", false), 0);
    CHECK_EQ(fall_asleep(&s->b, "b", false), 2);
    CHECK_EQ(reserved(&s->b), 0);
    CHECK_EQ(wake(&s->b, NULL), 3);
    expect_range(s, 1);
}

SHARED(every_free_gives_the_range_back)
{
    put_three(s);
    CHECK_EQ(fall_asleep(&s->b, NULL, false), 3);
    CHECK_OK(quire_free(s->b.memory, s->ranges[1]));
    CHECK_OK(quire_memory_check(s->b.memory));
    CHECK_EQ(wake(&s->b, "a"), 1);
    CHECK_OK(quire_free_batch(s->b.memory, (quire_allocation[]){s->ranges[2], s->ranges[0]}, 2));
    CHECK_EQ(reserved(&s->b), 1);
    put_three(s);
    for (int i = 3; i < 6; i++)
        expect_range(s, i);
}

/* What a hook gets of the two events. */
typedef struct heard {
    quire_event_kinds kinds[8];
    char names[8];
    uint64_t sizes[8];
    int count;
} heard;

static void hear(void *user, quire_memory *memory, const quire_event *event)
{
    heard *h = user;
    quire_memory_stats stats;
    CHECK_OK(quire_memory_get_stats(memory, &stats)); /* no lock is held */
    h->kinds[h->count] = event->kind;
    h->names[h->count] = event->name[0];
    h->sizes[h->count++] = event->requested;
}

SHARED(a_hook_gets_each_allocation)
{
    heard h = {.count = 0};
    uint64_t bytes;
    put_three(s);
    const quire_hook hook = {
        .event = hear, .user = &h, .kinds = QUIRE_EVENT_ASLEEP | QUIRE_EVENT_AWAKE};
    CHECK_OK(quire_memory_set_hook(s->b.memory, &hook));
    CHECK_OK(quire_memory_sleep(s->b.memory, NULL, QUIRE_SLEEP_KEEP, NULL, &bytes));
    CHECK_EQ(bytes, 3 * CHUNK);
    CHECK_OK(quire_memory_set_limit(s->b.memory, CHUNK));
    CHECK_FAILS(quire_memory_wake(s->b.memory, NULL, &bytes), QUIRE_ERROR_OVER_BUDGET);
    CHECK_EQ(bytes, 0);
    CHECK_OK(quire_memory_wake(s->b.memory, "c", NULL));
    CHECK_EQ(h.count, 4);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(h.kinds[i], QUIRE_EVENT_ASLEEP);
        CHECK_EQ(h.names[i], 'a' + i);
        CHECK_EQ(h.sizes[i], s->sizes[i]);
    }
    CHECK_EQ(h.kinds[3], QUIRE_EVENT_AWAKE);
    CHECK_EQ(h.names[3], 'c');
    CHECK_OK(quire_memory_set_hook(s->b.memory, NULL));
}

SHARED(a_memory_with_slabs_is_refused)
{
    quire_memory *slabs;
    const quire_memory_options options = {.kind.required = QUIRE_HOST_VISIBLE,
                                          .elastic = true,
                                          .address_space = CHUNKS * CHUNK,
                                          .pages.page_size = CHUNK,
                                          .fit.slabs = true};
    CHECK_OK(quire_memory_create(s->b.device, &options, &slabs));
    CHECK_FAILS(quire_memory_sleep(slabs, NULL, QUIRE_SLEEP_KEEP, NULL, NULL),
                QUIRE_ERROR_UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "slabs");
    CHECK_OK(quire_memory_destroy(&slabs));
}

SHARED(the_call_waits_for_its_point)
{
    quire_stream *stream;
    quire_point point;
    put_three(s);
    CHECK_OK(quire_stream_create(s->b.device, NULL, &stream));
    CHECK_OK(quire_stream_mark(stream, &point));
    CHECK_OK(quire_memory_sleep(s->b.memory, "a", QUIRE_SLEEP_KEEP, &point, NULL));
    const quire_point later = {stream, point.value + 5};
    CHECK_FAILS(quire_memory_sleep(s->b.memory, "b", QUIRE_SLEEP_KEEP, &later, NULL),
                QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_OK(quire_memory_wake(s->b.memory, NULL, NULL));
    CHECK_OK(quire_stream_destroy(&stream));
}

SHARED(names_without_a_match_change_nothing)
{
    put_three(s);
    CHECK_EQ(fall_asleep(&s->b, "d", false), 0);
    CHECK_EQ(reserved(&s->b), 3);
    CHECK_EQ(wake(&s->b, "d"), 0);
}

SHARED(a_limit_of_a_name_is_kept_at_wake)
{
    uint64_t bytes;
    put_three(s);
    CHECK_OK(quire_memory_set_name_limit(s->b.memory, "b", 2 * CHUNK));
    CHECK_EQ(fall_asleep(&s->b, "b", false), 1);
    put(s, "b2", CHUNK / 4);
    CHECK_FAILS(qi_memory_wake(s->b.memory, NULL, &bytes), QUIRE_ERROR_OVER_BUDGET);
    CHECK_OK(quire_free(s->b.memory, s->ranges[3]));
    CHECK_EQ(wake(&s->b, NULL), 1);
    expect_range(s, 1);
}

/* Each call for host memory fails in turn. */
SHARED(without_host_memory_all_stay_awake_or_asleep)
{
    put_three(s);
    put(s, NULL, 100);
    for (int round = 0; round < 2; round++)
        for (uint64_t at = 1, bytes;; at++) {
            CHECK(at < 100);
            test_memory_fail(unit_memory_state(), at, true);
            quire_result result = round ? qi_memory_wake(s->b.memory, NULL, &bytes)
                                        : qi_memory_sleep(s->b.memory, NULL, false, &bytes);
            test_memory_fail(unit_memory_state(), 0, false);
            CHECK_EQ(reserved(&s->b), (round == 0) == (result != QUIRE_SUCCESS) ? 3 : 0);
            if (!result)
                break;
            CHECK_EQ(result, QUIRE_ERROR_OUT_OF_HOST_MEMORY);
        }
    for (int i = 0; i < 4; i++)
        expect_range(s, i);
}

/* ---- meanwhile ---------------------------------------------------------------------------- */

/* What a call does while a wake writes contents back: the backend's copy calls it once. */
typedef struct meanwhile {
    fixture f;
    quire_allocation sleeping, awake, taken;
    void (*act)(struct meanwhile *m);
    quire_result (*copy_to)(void *state, const quire_native_page *page, uint64_t offset,
                            const void *data, uint64_t size);
    quire_result result; /* of the copy after that */
} meanwhile;

static meanwhile *acting;

static quire_result act_and_copy(void *state, const quire_native_page *page, uint64_t offset,
                                 const void *data, uint64_t size)
{
    meanwhile *m = acting;
    void (*act)(meanwhile *) = m->act;
    m->act = NULL;
    if (!act)
        return m->copy_to(state, page, offset, data, size);
    act(m);
    return m->result ? m->result : m->copy_to(state, page, offset, data, size);
}

static void begin_meanwhile(meanwhile *m)
{
    static const char contents[] = "what it had";
    if (QI_IS_CHECKED)
        unit_skip("red zones take bytes of chunks");
    make(&m->f);
    m->copy_to = m->f.device->table.copy_to_page;
    m->f.device->table.copy_to_page = act_and_copy;
    m->act = NULL;
    m->result = QUIRE_SUCCESS;
    acting = m;
    m->awake = ALLOCATE(&m->f, .size = CHUNK);
    m->sleeping = ALLOCATE(&m->f, .size = 2 * CHUNK, .name = "s");
    CHECK_OK(quire_write(m->f.memory, m->sleeping, CHUNK, contents, sizeof contents));
    CHECK_OK(quire_memory_sleep(m->f.memory, "s", QUIRE_SLEEP_KEEP, NULL, NULL));
    CHECK_EQ(stats_of(&m->f).reserved_bytes, CHUNK);
}

static void finish_meanwhile(meanwhile *m)
{
    char contents[12];
    CHECK(!m->act); /* it was called */
    CHECK_OK(quire_memory_wake(m->f.memory, NULL, NULL));
    CHECK_OK(quire_read(m->f.memory, m->sleeping, CHUNK, contents, sizeof contents));
    CHECK(!strcmp(contents, "what it had"));
    fixture_end(&m->f);
}

#define MEANWHILE(name)                                                                            \
    UNIT_ON(sleep_meanwhile, name, meanwhile, m, begin_meanwhile(m), finish_meanwhile)

static uint64_t free_bytes(const meanwhile *m)
{
    qi_shard *shard = m->f.memory->shards[0];
    qi_lock_acquire(&shard->lock);
    const uint64_t bytes = qi_backing_free(shard);
    qi_lock_release(&shard->lock);
    return bytes;
}

/* The chunks that wake are not free: none of them leaves. */
static void change_chunks(meanwhile *m)
{
    CHECK_EQ(stats_of(&m->f).reserved_bytes, 3 * CHUNK);
    CHECK_EQ(free_bytes(m), 0);
    m->taken = ALLOCATE(&m->f, .size = 4 * CHUNK);
    CHECK_EQ(stats_of(&m->f).reserved_bytes, 7 * CHUNK);
    CHECK_OK(quire_free(m->f.memory, m->taken));
    CHECK_EQ(free_bytes(m), 4 * CHUNK);
    CHECK_OK(quire_memory_trim(m->f.memory, 0, NULL));
    CHECK_EQ(stats_of(&m->f).reserved_bytes, 3 * CHUNK);
    m->taken = ALLOCATE(&m->f, .size = 3 * CHUNK);
}

MEANWHILE(others_get_and_lose_chunks)
{
    m->act = change_chunks;
    CHECK_OK(quire_memory_wake(m->f.memory, "s", NULL));
    CHECK_EQ(stats_of(&m->f).reserved_bytes, 6 * CHUNK);
}

static void change_chunks_and_fail(meanwhile *m)
{
    change_chunks(m);
    m->result = QUIRE_ERROR_DEVICE_LOST;
}

MEANWHILE(and_keep_them_if_the_wake_fails)
{
    m->act = change_chunks_and_fail;
    CHECK_FAILS(quire_memory_wake(m->f.memory, "s", NULL), QUIRE_ERROR_DEVICE_LOST);
    CHECK_EQ(stats_of(&m->f).reserved_bytes, 4 * CHUNK);
    CHECK_EQ(free_bytes(m), 0);
}

/* Another thread would wait for the end of the wake. */
static void sleep_and_wake(meanwhile *m)
{
    CHECK_FAILS(quire_memory_sleep(m->f.memory, "none", QUIRE_SLEEP_KEEP, NULL, NULL),
                QUIRE_ERROR_BUSY);
    CHECK_FAILS(quire_memory_wake(m->f.memory, "s", NULL), QUIRE_ERROR_BUSY);
}

MEANWHILE(the_backend_puts_nothing_to_sleep)
{
    m->act = sleep_and_wake;
    CHECK_OK(quire_memory_wake(m->f.memory, "s", NULL));
}
