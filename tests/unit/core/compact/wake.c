/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * wake.c - evicted allocations that wake: their contents, their places, in another shard too, new
 * native objects; by name; all or none; failures.
 */
#include "tests/support/compacted.h"

#include "quire/elastic.h"
#include "quire/evict.h"

enum { PAGE = COMPACTED_PAGE, PART = PAGE / 8, MANY = 10 };

typedef struct scene {
    compacted b;
    quire_allocation made[MANY];
} scene;

static void end(scene *s)
{
    compacted_end(&s->b);
}

#define CASE_OF(name, ...)                                                                         \
    UNIT_ON(wake, name, scene, s, compacted_begin(&s->b, &(quire_memory_options){__VA_ARGS__}), end)
#define CASE(name) CASE_OF(name, .shards = 1)

static void write(scene *s, uint64_t i)
{
    const uint64_t last = ~i;
    CHECK_OK(quire_write(s->b.f.memory, s->made[i], 0, &i, sizeof i));
    CHECK_OK(quire_write(s->b.f.memory, s->made[i], PART - 8, &last, 8));
}

static void make_all(scene *s)
{
    static const char *const names[] = {"a0", "a1", "a2", "b3", "b4"};
    for (uint64_t i = 0; i < MANY; i++) {
        s->made[i] = ALLOCATE(&s->b.f, .size = PART, .user_data = 7 + i, .alignment = 64,
                              .name = i < 5 ? names[i] : NULL);
        write(s, i);
    }
}

static void evict_all(scene *s)
{
    const quire_evict_options options = {.bytes = UINT64_MAX};
    uint64_t bytes;
    CHECK_OK(quire_memory_evict(s->b.f.memory, &options, &bytes));
    CHECK_EQ(bytes, MANY * PART);
    CHECK_OK(quire_memory_check(s->b.f.memory));
}

static void expect(scene *s, uint64_t i)
{
    uint64_t first = 99, last = 99;
    const quire_allocation_info info = fixture_info(&s->b.f, s->made[i]);
    CHECK(!info.asleep && info.page != QUIRE_NO_PAGE);
    CHECK_OK(quire_read(s->b.f.memory, s->made[i], 0, &first, sizeof first));
    CHECK_OK(quire_read(s->b.f.memory, s->made[i], PART - 8, &last, 8));
    CHECK_EQ(first, i);
    CHECK_EQ(last, ~i);
}

static void expect_all(scene *s)
{
    CHECK_OK(quire_memory_check(s->b.f.memory));
    for (uint64_t i = 0; i < MANY; i++)
        expect(s, i);
    const quire_memory_stats stats = fixture_stats(&s->b.f);
    CHECK_EQ(stats.asleep_bytes + stats.asleep_count, 0);
    CHECK_EQ(stats.allocation_count, MANY);
    CHECK_EQ(stats.requested_bytes, MANY * PART);
}

/* ---- places ------------------------------------------------------------------------------- */

CASE(one_after_the_other_wakes_with_its_contents)
{
    make_all(s);
    const quire_memory_stats before = fixture_stats(&s->b.f);
    evict_all(s);
    for (int i = MANY - 1; i >= 0; i--)
        CHECK_OK(quire_wake(s->b.f.memory, s->made[i]));
    expect_all(s);
    const quire_memory_stats now = fixture_stats(&s->b.f);
    CHECK_EQ(now.live_bytes, before.live_bytes);
    CHECK_EQ(now.allocations, before.allocations);
    CHECK_EQ(now.frees, before.frees);
    CHECK_EQ(now.peak_live_bytes, before.peak_live_bytes);
    CHECK_EQ(fixture_info(&s->b.f, s->made[4]).user_data, 11);
    CHECK_EQ(fixture_info(&s->b.f, s->made[4]).offset % 64, 0);
}

CASE(what_is_awake_stays_as_it_is)
{
    make_all(s);
    const quire_allocation_info before = fixture_info(&s->b.f, s->made[0]);
    CHECK_OK(quire_wake(s->b.f.memory, s->made[0]));
    CHECK_EQ(fixture_info(&s->b.f, s->made[0]).offset, before.offset);
    expect_all(s);
}

CASE(they_leave_and_wake_again_and_again)
{
    make_all(s);
    for (int i = 0; i < 5; i++) {
        evict_all(s);
        CHECK_OK(quire_memory_wake(s->b.f.memory, NULL, NULL));
        expect_all(s);
    }
    CHECK_OK(quire_compact_step(s->b.c, NULL, NULL));
    expect_all(s);
}

CASE(by_name)
{
    uint64_t bytes;
    quire_memory *memory = s->b.f.memory;
    make_all(s);
    evict_all(s);
    CHECK_OK(quire_memory_wake(memory, "a", &bytes));
    CHECK_EQ(bytes, 3 * PART);
    expect(s, 0);
    expect(s, 2);
    CHECK(fixture_info(&s->b.f, s->made[3]).asleep);
    CHECK_OK(quire_memory_wake(memory, "zz", &bytes));
    CHECK_EQ(bytes, 0);
    CHECK_OK(quire_memory_wake(memory, NULL, &bytes));
    CHECK_EQ(bytes, 7 * PART);
    expect_all(s);
}

CASE_OF(they_are_found_at_their_new_addresses, .find_by_address = true)
{
    quire_allocation found;
    make_all(s);
    evict_all(s);
    CHECK_OK(quire_memory_wake(s->b.f.memory, NULL, NULL));
    for (int i = 0; i < MANY; i++) {
        const uint64_t address = fixture_info(&s->b.f, s->made[i]).address;
        CHECK_OK(quire_memory_find(s->b.f.memory, address + 5, &found));
        CHECK_EQ(found.id, s->made[i].id);
        CHECK_OK(quire_memory_find(s->b.f.memory, address, &found));
        CHECK_EQ(found.id, s->made[i].id);
    }
    expect_all(s);
    for (int i = 0; i < MANY; i++)
        CHECK_OK(quire_free(s->b.f.memory, s->made[i]));
}

/* Made by another thread, in its shard, they wake in that of this one. */
CASE_OF(they_wake_in_another_shard, .shards = 2, .find_by_address = true)
{
    quire_point point;
    const quire_allocation mine = ALLOCATE(&s->b.f, .size = PART);
    CHECK_OK(quire_set_priority(s->b.f.memory, mine, QUIRE_PRIORITY_STAYS));
    for (uint64_t i = 0; i < MANY; i++) {
        s->made[i] = ALLOCATE_ELSEWHERE(&s->b.f, .size = PART);
        write(s, i);
    }
    CHECK_OK(quire_fill(s->b.f.memory, s->made[1],
                        &(quire_fill_options){.offset = 8, .size = 16, .stream = s->b.stream},
                        &point));
    compacted_run_stream(&s->b);
    CHECK_OK(quire_point_await(&point, 0)); /* the use is over, and still recorded */
    const quire_memory_stats before = fixture_stats(&s->b.f);
    CHECK_EQ(before.page_count, 3);
    evict_all(s);
    CHECK_OK(quire_memory_wake(s->b.f.memory, NULL, NULL));
    CHECK_OK(quire_memory_check(s->b.f.memory));
    CHECK_EQ(fixture_stats(&s->b.f).page_count, 2);
    CHECK_EQ(fixture_stats(&s->b.f).peak_live_bytes, before.peak_live_bytes);
    CHECK_OK(quire_free(s->b.f.memory, mine));
    expect_all(s);
    for (int i = 0; i < MANY; i++)
        fixture_free_elsewhere(&s->b.f, s->made[i]);
    CHECK_OK(quire_memory_trim(s->b.f.memory, 0, NULL));
    CHECK_OK(quire_memory_check(s->b.f.memory));
    CHECK_EQ(fixture_stats(&s->b.f).allocation_count, 0);
}

/* ---- buffers ------------------------------------------------------------------------------ */

static void make_buffers(scene *s)
{
    for (uint64_t i = 0; i < MANY; i++) {
        s->made[i] =
            BUFFER(&s->b.f, .size = PART, .usage = QUIRE_USAGE_UNIFORM, .name = "b").allocation;
        write(s, i);
    }
}

CASE(a_buffer_gets_a_new_object)
{
    make_buffers(s);
    CHECK_EQ(s->b.f.fake.objects, MANY);
    evict_all(s);
    CHECK_EQ(s->b.f.fake.objects, 0);
    CHECK_OK(quire_memory_wake(s->b.f.memory, NULL, NULL));
    CHECK_EQ(s->b.f.fake.objects, MANY);
    for (int i = 0; i < MANY; i++) {
        quire_buffer_info info;
        const quire_buffer buffer = {s->made[i]};
        CHECK_OK(quire_buffer_get_info(s->b.f.memory, buffer, &info));
        CHECK_EQ(info.size, PART);
        CHECK_EQ(info.usage, QUIRE_USAGE_UNIFORM);
        CHECK(fixture_info(&s->b.f, s->made[i]).native != 0);
    }
    expect_all(s);
}

CASE(a_buffer_is_freed_while_it_is_evicted)
{
    make_buffers(s);
    evict_all(s);
    for (int i = 0; i < MANY; i++)
        CHECK_OK(quire_free(s->b.f.memory, s->made[i]));
    CHECK_OK(quire_memory_check(s->b.f.memory));
    CHECK_EQ(fixture_stats(&s->b.f).allocation_count, 0);
}

CASE_OF(a_policy_that_pads_does_so_once, .pages.extra_padding = 40, .pages.size_granularity = 48)
{
    make_buffers(s);
    const uint64_t before = fixture_stats(&s->b.f).live_bytes;
    for (int i = 0; i < 3; i++) {
        evict_all(s);
        CHECK_OK(quire_memory_wake(s->b.f.memory, NULL, NULL));
    }
    CHECK_EQ(fixture_stats(&s->b.f).live_bytes, before);
    expect_all(s);
}

CASE(what_was_discarded_wakes_without_its_contents)
{
    const quire_evict_options all = {.bytes = UINT64_MAX, .mode = QUIRE_SLEEP_DISCARD};
    make_buffers(s);
    evict_all(s);
    CHECK(fixture_stats(&s->b.f).metadata_bytes > MANY * PART);
    CHECK_OK(quire_memory_wake(s->b.f.memory, NULL, NULL));
    CHECK_OK(quire_memory_evict(s->b.f.memory, &all, NULL));
    CHECK(fixture_stats(&s->b.f).metadata_bytes < MANY * PART);
    CHECK_OK(quire_memory_wake(s->b.f.memory, NULL, NULL));
    for (uint64_t i = 0; i < MANY; i++)
        write(s, i);
    expect_all(s);
}

/* ---- failures ----------------------------------------------------------------------------- */

static void expect_asleep(scene *s)
{
    CHECK_OK(quire_memory_check(s->b.f.memory));
    const quire_memory_stats stats = fixture_stats(&s->b.f);
    CHECK_EQ(stats.asleep_count, MANY);
    CHECK_EQ(stats.allocation_count, MANY);
    CHECK_EQ(stats.live_bytes, 0);
    CHECK_EQ(s->b.f.fake.objects, 0);
}

CASE_OF(all_wake_or_none, .limit = 2 * PAGE)
{
    uint64_t bytes = 1;
    make_all(s);
    evict_all(s);
    const quire_allocation large = ALLOCATE(&s->b.f, .size = PAGE);
    CHECK_FAILS(quire_memory_wake(s->b.f.memory, NULL, &bytes), QUIRE_ERROR_OVER_BUDGET);
    CHECK_HAS(quire_last_error(), "limit");
    CHECK_EQ(bytes, 0);
    CHECK_OK(quire_wake(s->b.f.memory, s->made[0]));
    CHECK_OK(quire_free(s->b.f.memory, large));
    CHECK_OK(quire_memory_wake(s->b.f.memory, NULL, NULL));
    expect_all(s);
}

/* Calls of the backend fail in turn; at last none does. */
static void fail_each(scene *s, bool wakes)
{
    const quire_evict_options options = {.bytes = UINT64_MAX};
    quire_result result = QUIRE_ERROR_BACKEND_FAILURE;
    uint64_t failures = 0;
    make_buffers(s);
    while (result) {
        if (wakes)
            CHECK_OK(quire_memory_evict(s->b.f.memory, &options, NULL));
        fake_fail(&s->b.f.fake, ++failures, false, QUIRE_ERROR_BACKEND_FAILURE);
        result = wakes ? quire_memory_wake(s->b.f.memory, NULL, NULL)
                       : quire_memory_evict(s->b.f.memory, &options, NULL);
        fake_fail(&s->b.f.fake, 0, false, QUIRE_SUCCESS);
        CHECK(!result || result == QUIRE_ERROR_BACKEND_FAILURE);
        CHECK_OK(quire_memory_check(s->b.f.memory));
        if (wakes && result)
            expect_asleep(s);
        CHECK_OK(quire_memory_wake(s->b.f.memory, NULL, NULL));
        CHECK_EQ(s->b.f.fake.objects, MANY);
        expect_all(s);
    }
    CHECK(failures > MANY);
}

CASE(after_a_failure_some_are_evicted_and_all_have_their_contents)
{
    fail_each(s, false);
}

CASE(after_a_failure_all_sleep)
{
    fail_each(s, true);
}

/* ---- beside other threads ----------------------------------------------------------------- */

/* on_out_of_memory while an allocation wakes: it is freed, or woken by another call. */
typedef struct meddler {
    scene *s;
    quire_allocation large;
    bool frees;
} meddler;

static bool meddle(void *user, quire_memory *memory, const quire_out_of_memory *event)
{
    meddler *m = user;
    (void)event;
    if (event->times > 1)
        return false;
    CHECK_OK(quire_free(memory, m->large));
    CHECK_OK(m->frees ? quire_free(memory, m->s->made[0]) : quire_wake(memory, m->s->made[0]));
    return true;
}

static meddler meddler_of_limited;

/* The memory is full, until the callback comes. */
static void begin_to_meet(scene *s, bool frees)
{
    make_all(s);
    evict_all(s);
    meddler_of_limited =
        (meddler){.s = s, .large = ALLOCATE(&s->b.f, .size = 2 * PAGE), .frees = frees};
}

#define MEETING(name)                                                                              \
    CASE_OF(name, .limit = 2 * PAGE,                                                               \
            .on_out_of_memory = {.callback = meddle, .user = &meddler_of_limited})

MEETING(another_call_wakes_it_first)
{
    begin_to_meet(s, false);
    CHECK_OK(quire_wake(s->b.f.memory, s->made[0]));
    CHECK_OK(quire_memory_check(s->b.f.memory));
    CHECK_EQ(fixture_stats(&s->b.f).asleep_count, MANY - 1);
    CHECK_EQ(fixture_stats(&s->b.f).allocation_count, MANY);
    expect(s, 0);
}

MEETING(another_call_frees_it_first)
{
    begin_to_meet(s, true);
    CHECK_OK(quire_wake(s->b.f.memory, s->made[0]));
    CHECK_OK(quire_memory_check(s->b.f.memory));
    CHECK_EQ(fixture_stats(&s->b.f).allocation_count, MANY - 1);
}

/* A later one of the list. */
MEETING(another_call_frees_one_of_many)
{
    begin_to_meet(s, true);
    const quire_allocation first = s->made[0];
    s->made[0] = s->made[2];
    CHECK_OK(quire_memory_wake(s->b.f.memory, "a", NULL));
    CHECK_OK(quire_memory_check(s->b.f.memory));
    CHECK_EQ(fixture_stats(&s->b.f).allocation_count, MANY - 1);
    CHECK_EQ(fixture_stats(&s->b.f).asleep_count, MANY - 3);
    CHECK_FAILS(quire_wake(s->b.f.memory, s->made[2]), QUIRE_ERROR_STALE_HANDLE);
    s->made[0] = first;
    expect(s, 0);
    expect(s, 1);
}
