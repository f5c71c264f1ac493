/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * evict.c - which allocations are evicted and which stay, in which order; what an evicted one is
 * like, and how it is freed. Waking is in wake.c.
 */
#include "tests/support/compacted.h"
#include "tests/support/event_log.h"

#include "quire/evict.h"

enum { PAGE = COMPACTED_PAGE, PART = PAGE / 8, MANY = 10 };

typedef struct scene {
    compacted b;
    quire_allocation made[MANY]; /* eight on the first page */
} scene;

static void begin(scene *s, const quire_memory_options *options)
{
    compacted_begin(&s->b, options);
    for (uint64_t i = 0; i < MANY; i++) {
        s->made[i] = ALLOCATE(&s->b.f, .size = PART, .user_data = 7 + i);
        CHECK_OK(quire_write(s->b.f.memory, s->made[i], 0, &i, sizeof i));
    }
}

static void end(scene *s)
{
    compacted_end(&s->b);
}

#define CASE_OF(name, ...)                                                                         \
    UNIT_ON(evict, name, scene, s, begin(s, &(quire_memory_options){__VA_ARGS__}), end)
#define CASE(name) CASE_OF(name, .shards = 1)

static bool is_evicted(scene *s, int i)
{
    const quire_allocation_info info = fixture_info(&s->b.f, s->made[i]);
    CHECK_EQ(info.asleep, info.page == QUIRE_NO_PAGE);
    return info.asleep;
}

/* Evicts `parts` of them; returns a bit for each that is. */
static uint64_t evict(scene *s, uint64_t parts, uint64_t recent_frames)
{
    uint64_t bytes = 0, which = 0;
    const quire_evict_options options = {.bytes = parts * PART, .recent_frames = recent_frames};
    CHECK_OK(quire_memory_evict(s->b.f.memory, &options, &bytes));
    CHECK_OK(quire_memory_check(s->b.f.memory));
    for (int i = 0; i < MANY; i++)
        which |= (uint64_t)is_evicted(s, i) << i;
    CHECK_EQ(bytes % PART, 0);
    return which;
}

enum { ALL = (1 << MANY) - 1 };

static void touch(scene *s, int i)
{
    CHECK_OK(quire_touch(s->b.f.memory, s->made[i]));
}

static void begin_frame(scene *s)
{
    CHECK_OK(quire_memory_frame(s->b.f.memory));
}

/* ---- what it is like ---------------------------------------------------------------------- */

CASE(all_leave_their_pages)
{
    const quire_memory_stats before = fixture_stats(&s->b.f);
    CHECK_EQ(evict(s, MANY, 0), ALL);
    const quire_memory_stats now = fixture_stats(&s->b.f);
    CHECK_EQ(now.page_count, 0);
    CHECK_EQ(now.live_bytes + now.requested_bytes, 0);
    CHECK_EQ(now.asleep_bytes, before.live_bytes);
    CHECK_EQ(now.asleep_count, MANY);
    CHECK_EQ(now.allocation_count, MANY);
    CHECK_EQ(now.peak_live_bytes, before.live_bytes);
    CHECK_EQ(now.peak_allocation_count, MANY);
    CHECK_EQ(now.allocations, before.allocations);
    CHECK_EQ(s->b.f.fake.pages, 0);
}

CASE(an_evicted_one_is_queried_but_not_used)
{
    char byte = 0;
    void *pointer;
    quire_native native;
    CHECK_EQ(evict(s, MANY, 0), ALL);
    quire_memory *memory = s->b.f.memory;
    const quire_allocation_info info = fixture_info(&s->b.f, s->made[3]);
    CHECK(info.asleep && info.committed && !info.dedicated);
    CHECK_EQ(info.page, QUIRE_NO_PAGE);
    CHECK_EQ(info.requested, PART);
    CHECK_EQ(info.size, PART);
    CHECK_EQ(info.backed + info.offset + info.address + info.extent_size, 0);
    CHECK(!info.host);
    CHECK_EQ(info.user_data, 10);
    CHECK_OK(quire_allocation_get_native(memory, s->made[3], &native));
    CHECK_EQ(native.page.handle + native.handle, 0);
    CHECK_FAILS(quire_allocation_set_user_data(memory, s->made[3], 5), QUIRE_ERROR_WRONG_STATE);
    CHECK_FAILS(quire_read(memory, s->made[3], 0, &byte, 1), QUIRE_ERROR_WRONG_STATE);
    CHECK_FAILS(quire_write(memory, s->made[3], 0, &byte, 1), QUIRE_ERROR_WRONG_STATE);
    CHECK_FAILS(quire_map(memory, s->made[3], &pointer), QUIRE_ERROR_WRONG_STATE);
    CHECK_FAILS(quire_touch(memory, s->made[3]), QUIRE_ERROR_WRONG_STATE);
    CHECK_FAILS(quire_allocation_hold(memory, s->made[3]), QUIRE_ERROR_WRONG_STATE);
    CHECK_FAILS(quire_record_use(memory, s->made[3], s->b.stream), QUIRE_ERROR_WRONG_STATE);
    CHECK_OK(quire_set_priority(memory, s->made[3], 1));
}

CASE(evicted_ones_are_freed)
{
    quire_memory *memory = s->b.f.memory;
    CHECK_EQ(evict(s, MANY, 0), ALL);
    CHECK_OK(quire_free(memory, s->made[0]));
    CHECK_OK(quire_free_on_stream(memory, s->made[1], s->b.stream));
    CHECK_FAILS(quire_wake(memory, s->made[0]), QUIRE_ERROR_STALE_HANDLE);
    CHECK_OK(quire_memory_check(memory));
    compacted_run_stream(&s->b);
    CHECK_OK(quire_memory_check(memory));
    for (int i = 2; i < MANY; i++)
        CHECK_OK(quire_free(memory, s->made[i]));
    CHECK_EQ(fixture_stats(&s->b.f).asleep_bytes, 0);
    CHECK_EQ(fixture_stats(&s->b.f).asleep_count, 0);
    CHECK_EQ(fixture_stats(&s->b.f).allocation_count, 0);
    CHECK_OK(quire_memory_check(memory));
}

CASE_OF(evicted_ones_are_not_found_by_address, .find_by_address = true)
{
    quire_allocation found;
    const uint64_t address = fixture_info(&s->b.f, s->made[0]).address;
    CHECK_OK(quire_memory_find(s->b.f.memory, address, &found));
    CHECK_EQ(evict(s, MANY, 0), ALL);
    CHECK_FAILS(quire_memory_find(s->b.f.memory, address, &found), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_OK(quire_free(s->b.f.memory, s->made[0]));
}

CASE(limits_of_names_do_not_count_them)
{
    quire_memory *memory = s->b.f.memory;
    CHECK_OK(quire_memory_set_name_limit(memory, "n", 2 * PART));
    const quire_allocation one = ALLOCATE(&s->b.f, .size = PART, .name = "n1");
    ALLOCATE(&s->b.f, .size = PART, .name = "n2");
    ALLOCATE_FAILS(&s->b.f, QUIRE_ERROR_OVER_BUDGET, .size = PART, .name = "n3");
    CHECK_OK(quire_set_priority(memory, one, -1));
    CHECK_EQ(evict(s, 1, 0), 0);
    CHECK(fixture_info(&s->b.f, one).asleep);
    ALLOCATE(&s->b.f, .size = PART, .name = "n3");
    CHECK_FAILS(quire_wake(memory, one), QUIRE_ERROR_OVER_BUDGET);
    CHECK_OK(quire_memory_check(memory));
    CHECK_OK(quire_memory_set_name_limit(memory, "n", 3 * PART));
    CHECK_OK(quire_wake(memory, one));
    CHECK_OK(quire_memory_check(memory));
    CHECK_OK(quire_free(memory, one));
}

CASE(each_has_an_event)
{
    event_log log;
    event_log_start(&log, s->b.f.memory, QUIRE_EVENT_ASLEEP | QUIRE_EVENT_AWAKE);
    CHECK_EQ(evict(s, 2, 0), 3 << 8);
    CHECK_EQ(log.count, 2);
    event_log_expect(&log, 0, QUIRE_EVENT_ASLEEP, PART);
    CHECK_EQ(log.events[0].page, QUIRE_NO_PAGE);
    CHECK_OK(quire_wake(s->b.f.memory, s->made[8]));
    event_log_expect(&log, 2, QUIRE_EVENT_AWAKE, PART);
    CHECK_EQ(log.events[2].allocation.id, s->made[8].id);
}

CASE(the_memory_ends_with_them)
{
    CHECK_EQ(evict(s, 2, 0), 3 << 8);
    CHECK_FAILS(quire_memory_destroy(&s->b.f.memory), QUIRE_ERROR_BUSY);
}

/* ---- the order ---------------------------------------------------------------------------- */

CASE(the_emptiest_page_leaves_first)
{
    CHECK_EQ(evict(s, 1, 0), 1 << 8);
    CHECK_EQ(fixture_stats(&s->b.f).page_count, 2);
    CHECK_EQ(evict(s, 1, 0), 3 << 8);
    CHECK_EQ(fixture_stats(&s->b.f).page_count, 1);
}

CASE(lower_priorities_leave_first_and_the_highest_stays)
{
    quire_memory *memory = s->b.f.memory;
    for (int i = 0; i < MANY; i++)
        CHECK_OK(quire_set_priority(memory, s->made[i], (int8_t)(i < 2 ? INT8_MIN + i : i)));
    CHECK_OK(quire_set_priority(memory, s->made[9], QUIRE_PRIORITY_STAYS));
    CHECK_EQ(evict(s, 1, 0), 1);
    CHECK_EQ(evict(s, 1, 0), 3);
    CHECK_EQ(evict(s, 3, 0), 31);
    CHECK_EQ(evict(s, MANY, 0), ALL >> 1);
}

CASE(what_was_used_last_leaves_last)
{
    touch(s, 9);
    begin_frame(s);
    touch(s, 8);
    touch(s, 3);
    begin_frame(s);
    touch(s, 3);
    begin_frame(s);
    CHECK_EQ(evict(s, MANY - 3, 0), ALL & ~(1 << 9 | 1 << 8 | 1 << 3));
    CHECK_EQ(evict(s, 1, 0), ALL & ~(1 << 8 | 1 << 3));
    CHECK_EQ(evict(s, 1, 0), ALL & ~(1 << 3));
}

CASE(the_working_set_stays)
{
    touch(s, 1);
    begin_frame(s);
    touch(s, 2);
    CHECK_EQ(evict(s, MANY, 1), ALL & ~6);
    begin_frame(s);
    CHECK_EQ(evict(s, MANY, 1), ALL & ~4);
    CHECK_EQ(evict(s, MANY, 0), ALL);
}

CASE(a_new_allocation_in_the_same_slot_has_neither)
{
    quire_memory *memory = s->b.f.memory;
    for (int i = 0; i < MANY; i++) {
        touch(s, i);
        CHECK_OK(quire_set_priority(memory, s->made[i], QUIRE_PRIORITY_STAYS));
        CHECK_OK(quire_free(memory, s->made[i]));
    }
    CHECK_OK(quire_memory_trim(memory, 0, NULL));
    for (int i = 0; i < MANY; i++)
        s->made[i] = ALLOCATE(&s->b.f, .size = PART);
    CHECK_EQ(evict(s, MANY, 0), ALL);
}

/* ---- what stays --------------------------------------------------------------------------- */

static void expect_to_stay(scene *s, quire_allocation allocation)
{
    CHECK_EQ(evict(s, 3 * MANY, 0), ALL);
    CHECK(!fixture_info(&s->b.f, allocation).asleep);
}

CASE_OF(what_is_mapped_or_held_stays, .kind.mask = 2)
{
    quire_memory *memory = s->b.f.memory;
    void *pointer;
    const quire_allocation lasting = ALLOCATE(&s->b.f, .size = PART, .mapped = true);
    CHECK_OK(quire_map(memory, s->made[0], &pointer));
    CHECK_OK(quire_allocation_hold(memory, s->made[1]));
    CHECK_EQ(evict(s, MANY, 0), ALL & ~3);
    CHECK_OK(quire_unmap(memory, s->made[0]));
    CHECK_OK(quire_allocation_release(memory, s->made[1]));
    expect_to_stay(s, lasting);
}

CASE(what_has_a_page_for_itself_or_an_image_stays)
{
    const quire_allocation alone = ALLOCATE(&s->b.f, .size = PART, .dedicated = true);
    const quire_image image = IMAGE(&s->b.f, .width = 16);
    expect_to_stay(s, alone);
    CHECK(!fixture_info(&s->b.f, image.allocation).asleep);
}

CASE(what_recorded_work_uses_stays)
{
    CHECK_OK(quire_record_use(s->b.f.memory, s->made[4], s->b.stream));
    CHECK_EQ(evict(s, MANY, 0), ALL & ~(1 << 4));
}

/* ---- where -------------------------------------------------------------------------------- */

UNIT_MEMORY(evict, a_memory_of_another_fit_evicts_nothing, f, .fit.algorithm = QUIRE_FIT_FIRST)
{
    uint64_t bytes = 1;
    const quire_evict_options options = {.bytes = 1};
    const quire_allocation one = ALLOCATE(f, .size = 1);
    CHECK_FAILS(quire_memory_evict(f->memory, &options, &bytes), QUIRE_ERROR_UNSUPPORTED);
    CHECK_EQ(bytes, 0);
    CHECK_OK(quire_wake(f->memory, one)); /* nothing sleeps */
    CHECK_OK(quire_memory_wake(f->memory, NULL, NULL));
}

/* on_out_of_memory of a memory whose limit is reached. */
static bool make_room(void *user, quire_memory *memory, const quire_out_of_memory *event)
{
    uint64_t bytes;
    (void)user;
    CHECK_OK(quire_memory_evict(memory, &(quire_evict_options){.bytes = event->size}, &bytes));
    return bytes != 0;
}

CASE_OF(an_out_of_memory_callback_evicts, .limit = 2 * PAGE, .on_out_of_memory.callback = make_room)
{
    for (int i = 0; i < 6; i++)
        ALLOCATE(&s->b.f, .size = PART);
    ALLOCATE(&s->b.f, .size = PART);
    CHECK_EQ(fixture_stats(&s->b.f).asleep_count, 1);
    for (int i = 0; i < MANY; i++)
        if (is_evicted(s, i))
            CHECK_OK(quire_wake(s->b.f.memory, s->made[i]));
    CHECK_EQ(fixture_stats(&s->b.f).asleep_count, 1);
    CHECK_EQ(fixture_stats(&s->b.f).page_count, 2);
}
