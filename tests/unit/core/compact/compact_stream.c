/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * compact_stream.c - compaction in the order of a stream: copies come after earlier work, new
 * places hold at once, and old ones wait for the copies.
 */
#include "quire/compact.h"
#include "src/core/checked.h"
#include "tests/support/fixture.h"

enum { KIB = 1024, PAGE = 64 * KIB, LEFT = 8 };

typedef struct world {
    fixture f;
    quire_stream *stream;
    uint64_t native;
    quire_allocation made[LEFT];
} world;

/* Submits the write of a number to the first bytes, from memory that lasts. */
static void submit_number(world *w, quire_allocation allocation, const uint64_t *number)
{
    CHECK_OK(
        quire_copy(&(quire_copy_options){.to = {.memory = w->f.memory, .allocation = allocation},
                                         .host_from = number,
                                         .size = sizeof *number,
                                         .stream = w->stream},
                   NULL));
}

/* Two pages of eight; every second allocation of both is left. */
static void begin(world *w, bool copies_on_streams)
{
    quire_allocation all[2 * LEFT];
    if (QI_IS_CHECKED)
        unit_skip("checked builds move nothing");
    fixture_prepare(&w->f);
    fake_offer_copies(&w->f.fake);
    fake_offer_streams(&w->f.fake);
    if (!copies_on_streams)
        fake_leave_out(&w->f.fake, QUIRE_BACKEND_STREAM_COPY);
    fixture_open(&w->f, &(quire_memory_options){.kind.mask = 1,
                                                .shards = 1,
                                                .movable = true,
                                                .pages.page_size = PAGE,
                                                .pages.retained_empty_bytes = QUIRE_RETAIN_ALL});
    CHECK_OK(quire_stream_create(w->f.device, NULL, &w->stream));
    w->native = quire_stream_native(w->stream);
    for (int i = 0; i < 2 * LEFT; i++)
        all[i] = ALLOCATE(&w->f, .size = PAGE / LEFT);
    for (int i = 0; i < 2 * LEFT; i++)
        if (i % 2)
            w->made[i / 2] = all[i];
        else
            CHECK_OK(quire_free(w->f.memory, all[i]));
}

static void finish(world *w)
{
    fake_stream_run(w->native, UINT64_MAX);
    CHECK_OK(quire_memory_check(w->f.memory));
    quire_memory_destroy_all(&w->f.memory);
    CHECK_OK(quire_stream_destroy(&w->stream));
    CHECK_OK(quire_device_destroy(&w->f.device));
    CHECK_EQ(w->f.fake.pages, 0);
}

#define CASE(name) UNIT_ON(compact_stream, name, world, w, begin(w, true), finish)

static quire_compaction *compaction(world *w)
{
    quire_compaction *c = NULL;
    CHECK_OK(quire_compact_begin(w->f.memory, &c));
    return c;
}

static quire_compact_stats step(world *w, quire_compaction *c, uint64_t moves)
{
    quire_compact_stats stats;
    CHECK_OK(quire_compact_step_on_stream(c, &(quire_compact_limits){.moves = moves}, w->stream,
                                          &stats));
    CHECK_OK(quire_memory_check(w->f.memory));
    return stats;
}

static void expect_numbers(world *w, const uint64_t *numbers)
{
    for (int i = 0; i < LEFT; i++) {
        uint64_t number = 0;
        CHECK_OK(quire_read(w->f.memory, w->made[i], 0, &number, sizeof number));
        CHECK_EQ(number, numbers[i]);
    }
}

CASE(copies_come_after_earlier_work_and_before_later_work)
{
    static uint64_t numbers[LEFT], after = 8;
    for (uint64_t i = 0; i < LEFT; i++) {
        numbers[i] = 100 + i;
        submit_number(w, w->made[i], &numbers[i]);
    }
    quire_compaction *c = compaction(w);
    const quire_compact_stats done = step(w, c, 0);
    CHECK_EQ(done.moves, 4);
    CHECK_EQ(done.pages_freed, 1);
    for (int i = 1; i < LEFT; i++)
        CHECK_EQ(fixture_info(&w->f, w->made[i]).page, fixture_info(&w->f, w->made[0]).page);
    CHECK_EQ(fake_stream_waiting(w->native), LEFT + 4);
    submit_number(w, w->made[7], &after);
    const quire_memory_stats waiting = fixture_stats(&w->f);
    CHECK_EQ(waiting.deferred_count, 4);
    CHECK_EQ(waiting.page_count, 2);
    fake_stream_run(w->native, UINT64_MAX);
    numbers[7] = after;
    expect_numbers(w, numbers);
    quire_compact_end(&c);
    CHECK_EQ(fixture_stats(&w->f).deferred_count, 0);
    CHECK_EQ(fixture_stats(&w->f).page_count, 1);
}

/* Mapped ones stay, and so does what other work uses. */
CASE(what_work_of_another_stream_uses_stays)
{
    quire_stream *other = NULL;
    quire_point point;
    CHECK_OK(quire_stream_create(w->f.device, NULL, &other));
    quire_compaction *c = compaction(w);
    for (int i = 0; i < LEFT; i += LEFT / 2)
        CHECK_OK(quire_record_use(w->f.memory, w->made[i], other));
    CHECK_EQ(step(w, c, 0).moves, 0);
    CHECK_OK(quire_stream_mark(other, &point));
    quire_compact_end(&c);
    for (int i = 0; i < LEFT; i++)
        CHECK_OK(quire_free(w->f.memory, w->made[i]));
    CHECK_OK(quire_stream_destroy(&other));
}

CASE(steps_have_limits_and_allocations_move_again)
{
    static uint64_t number = 5;
    quire_compact_stats done;
    for (int i = 0; i < LEFT; i++)
        submit_number(w, w->made[i], &number);
    quire_compaction *c = compaction(w);
    for (uint64_t i = 1; i <= 4; i++) {
        done = step(w, c, 1);
        CHECK_EQ(done.moves, i);
    }
    CHECK_EQ(done.pages_freed, 1);
    fake_stream_run(w->native, UINT64_MAX);
    quire_compact_end(&c);
    quire_allocation more = ALLOCATE(&w->f, .size = PAGE / LEFT);
    for (int i = 0; i < LEFT - 1; i++)
        CHECK_OK(quire_free(w->f.memory, w->made[i]));
    c = compaction(w);
    done = step(w, c, 0);
    CHECK_EQ(done.pages_freed, 1);
    fake_stream_run(w->native, UINT64_MAX);
    quire_compact_end(&c);
    CHECK_EQ(fixture_stats(&w->f).page_count, 1);
    CHECK_EQ(fixture_info(&w->f, w->made[7]).page, fixture_info(&w->f, more).page);
}

/* Each copy that cannot be submitted leaves its allocation where it is. */
CASE(a_copy_that_fails_moves_nothing)
{
    static uint64_t numbers[LEFT];
    quire_compact_stats done = {.moves = 0};
    for (uint64_t i = 0; i < LEFT; i++) {
        numbers[i] = 100 + i;
        submit_number(w, w->made[i], &numbers[i]);
    }
    fake_stream_run(w->native, UINT64_MAX);
    quire_compaction *c = compaction(w);
    uint64_t failures = 0;
    for (int calls = 0; !done.is_complete; calls++) {
        w->f.fake.fail_at = failures < 6 ? w->f.fake.fallible_calls + 1 + failures : 0;
        w->f.fake.fail_with = QUIRE_ERROR_OUT_OF_DEVICE_MEMORY;
        failures += quire_compact_step_on_stream(c, NULL, w->stream, &done) != QUIRE_SUCCESS;
        w->f.fake.fail_at = 0;
        fake_stream_run(w->native, UINT64_MAX);
        expect_numbers(w, numbers);
        CHECK(calls < 20);
    }
    CHECK(failures);
    quire_compact_end(&c);
    expect_numbers(w, numbers);
}

/* Without copies on streams the call waits for the stream, and copies itself. */
UNIT_ON(compact_stream, a_backend_without_such_copies, world, w, begin(w, false), finish)
{
    static uint64_t numbers[LEFT];
    for (uint64_t i = 0; i < LEFT; i++) {
        numbers[i] = 100 + i;
        CHECK_OK(quire_write(w->f.memory, w->made[i], 0, &numbers[i], sizeof numbers[i]));
    }
    fake_stream_submit(w->native);
    quire_compaction *c = compaction(w);
    CHECK_EQ(step(w, c, 0).moves, 4);
    CHECK_EQ(fake_stream_waiting(w->native), 0);
    quire_compact_end(&c);
    expect_numbers(w, numbers);
    CHECK_EQ(fixture_stats(&w->f).page_count, 1);
}
