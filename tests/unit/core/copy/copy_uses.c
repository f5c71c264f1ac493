/*
 * copy_uses.c - a free of an allocation waits for the fills, copies and writes that quire submitted
 * to a stream, though the caller recorded no use; and these uses end with their stream.
 */
#include "src/core/deferred/stream_queue.h"
#include "tests/support/fixture.h"
#include "tests/support/on_stream.h"

enum { SIZE = 1024, OPERATIONS = 5 };

typedef struct world {
    fixture f;
    quire_stream *stream;
    uint64_t native;
} world;

static void begin_without(world *w, quire_backend_features left_out)
{
    fixture_prepare(&w->f);
    fake_offer_copies(&w->f.fake);
    fake_offer_fill(&w->f.fake);
    fake_offer_streams(&w->f.fake);
    if (left_out)
        fake_leave_out(&w->f.fake, left_out);
    fixture_open(&w->f, NULL);
    CHECK_OK(quire_stream_create(w->f.device, NULL, &w->stream));
    w->native = quire_stream_native(w->stream);
}

static void begin(world *w)
{
    begin_without(w, 0);
}

static void end(world *w)
{
    fake_stream_run(w->native, UINT64_MAX);
    CHECK_OK(quire_memory_check(w->f.memory));
    quire_memory_destroy_all(&w->f.memory);
    CHECK_OK(quire_stream_destroy(&w->stream));
    CHECK_OK(quire_memory_create(w->f.device, NULL, &w->f.memory));
    fixture_end(&w->f);
}

/* What quire submits: `a` is one of its allocations. */
static void submit(const world *w, uint32_t operation, quire_allocation a, quire_allocation other,
                   quire_point *done)
{
    static unsigned char bytes[SIZE];
    quire_memory *memory = w->f.memory;
    const quire_copy_end end = {.memory = memory, .allocation = a},
                         end_of_other = {.memory = memory, .allocation = other};
    const quire_write_item items[] = {{other, 0, bytes, 1}, {a, 0, bytes, 8}, {a, 8, bytes, 8}};
    quire_copy_options copy = {.size = SIZE, .stream = w->stream};
    switch (operation) {
    case 0:
        CHECK_OK(quire_fill(memory, a, &(quire_fill_options){.stream = w->stream}, done));
        return;
    case 1:
        CHECK_OK(quire_write_batch(memory, items, 3, w->stream, done));
        return;
    case 2:
        copy.to = end;
        copy.from = end_of_other;
        break;
    case 3:
        copy.to = end_of_other;
        copy.from = end;
        break;
    default:
        copy.from = end;
        copy.host_to = bytes;
    }
    CHECK_OK(quire_copy(&copy, done));
}

static uint64_t waiting(world *w)
{
    CHECK_OK(quire_memory_check(w->f.memory));
    return fixture_stats(&w->f).deferred_count;
}

static uint64_t collect(const world *w)
{
    uint64_t released = 0;
    CHECK_OK(quire_collect(w->f.memory, &released));
    CHECK_OK(quire_memory_check(w->f.memory));
    return released;
}

UNIT_EACH(copy_uses, a_free_waits_for_what_quire_submitted, world, w, operation, 0, OPERATIONS,
          begin(w), end)
{
    quire_allocation a = ALLOCATE(&w->f, .size = SIZE), other = ALLOCATE(&w->f, .size = SIZE);
    submit(w, operation, a, other, NULL);
    CHECK_OK(quire_free(w->f.memory, a));
    CHECK_EQ(waiting(w), 1);
    CHECK_EQ(collect(w), 0);
    fake_stream_run(w->native, UINT64_MAX);
    CHECK_EQ(collect(w), SIZE);
}

UNIT_EACH(copy_uses, a_free_after_the_point_has_passed_waits_for_nothing, world, w, operation, 0,
          OPERATIONS, begin(w), end)
{
    quire_point done;
    quire_allocation a = ALLOCATE(&w->f, .size = SIZE), other = ALLOCATE(&w->f, .size = SIZE);
    submit(w, operation, a, other, &done);
    submit(w, operation, a, other, &done); /* the later point counts */
    CHECK_OK(quire_point_await(&done, QUIRE_FOREVER));
    fake_stream_submit(w->native); /* work of the caller, which uses neither */
    CHECK_OK(quire_free(w->f.memory, a));
    CHECK_EQ(waiting(w), 0);
}

#define CASE(name) UNIT_ON(copy_uses, name, world, w, begin(w), end)

/* The free names a point before the fill, after it, or the stream. */
UNIT_EACH(copy_uses, the_later_of_fill_and_point_counts, world, w, which, 0, 3, begin(w), end)
{
    quire_point before, filled, after;
    quire_allocation a = ALLOCATE(&w->f, .size = SIZE);
    fake_stream_submit(w->native);
    CHECK_OK(quire_stream_mark(w->stream, &before));
    submit(w, 0, a, a, &filled);
    fake_stream_submit(w->native);
    CHECK_OK(quire_stream_mark(w->stream, &after));
    CHECK_OK(which == 0   ? quire_free_after_point(w->f.memory, a, &before)
             : which == 1 ? quire_free_after_point(w->f.memory, a, &after)
                          : quire_free_on_stream(w->f.memory, a, w->stream));
    fake_stream_run(w->native, 1);
    CHECK_EQ(collect(w), 0);
    fake_stream_run(w->native, 1);
    CHECK_EQ(collect(w), which == 0 ? SIZE : 0);
    fake_stream_run(w->native, 1);
    CHECK_EQ(collect(w), which == 0 ? 0 : SIZE);
}

CASE(a_range_that_was_filled_is_reused_on_its_stream_at_once)
{
    quire_allocation next;
    quire_allocation a = ALLOCATE(&w->f, .size = SIZE);
    uint64_t offset = fixture_info(&w->f, a).offset;
    submit(w, 0, a, a, NULL);
    CHECK_OK(quire_free_on_stream(w->f.memory, a, w->stream));
    CHECK_OK(allocate_on_stream(w->f.memory, &(quire_allocation_options){.size = SIZE}, w->stream,
                                &next));
    CHECK_EQ(fixture_info(&w->f, next).offset, offset);
}

UNIT_ON(copy_uses, a_copy_that_is_complete_on_return_is_no_use, world, w,
        begin_without(w, QUIRE_BACKEND_STREAM_FILL), end)
{
    quire_allocation a = ALLOCATE(&w->f, .size = SIZE);
    submit(w, 0, a, a, NULL);
    CHECK_OK(quire_free(w->f.memory, a));
    CHECK_EQ(waiting(w), 0);
}

CASE(a_stream_is_busy_until_its_fill_is_done_and_takes_the_use_with_it)
{
    quire_stream_info info;
    quire_allocation a = ALLOCATE(&w->f, .size = SIZE), other = ALLOCATE(&w->f, .size = SIZE);
    quire_stream *second;
    CHECK_OK(quire_stream_create(w->f.device, NULL, &second));
    submit(w, 2, a, other, NULL);
    CHECK_OK(quire_stream_get_info(w->stream, &info));
    CHECK_EQ(info.deferred, 2);
    CHECK_FAILS(quire_stream_destroy(&w->stream), QUIRE_ERROR_BUSY);
    fake_stream_run(w->native, UINT64_MAX);
    CHECK_OK(quire_stream_destroy(&w->stream));
    CHECK_OK(quire_memory_check(w->f.memory));
    CHECK_OK(quire_free(w->f.memory, a));
    CHECK_OK(quire_record_use(w->f.memory, other, second)); /* beside the use that has ended */
    CHECK_OK(quire_free_on_stream(w->f.memory, other, second));
    CHECK_EQ(waiting(w), 1);
    CHECK_EQ(collect(w), SIZE);
    w->stream = second;
    w->native = quire_stream_native(second);
}

UNIT_EACH(copy_uses, a_use_of_the_caller_outlasts_the_fill, world, w, first, 0, 2, begin(w), end)
{
    quire_allocation a = ALLOCATE(&w->f, .size = SIZE);
    if (!first)
        CHECK_OK(quire_record_use(w->f.memory, a, w->stream));
    submit(w, 0, a, a, NULL);
    if (first)
        CHECK_OK(quire_record_use(w->f.memory, a, w->stream));
    fake_stream_run(w->native, UINT64_MAX);
    CHECK_FAILS(quire_stream_destroy(&w->stream), QUIRE_ERROR_BUSY);
    fake_stream_submit(w->native); /* which uses it */
    CHECK_OK(quire_free(w->f.memory, a));
    CHECK_EQ(collect(w), 0);
}

/* The use needs a record of the allocation, a queue, and waits: each may fail. */
UNIT(copy_uses, without_host_memory_the_work_is_done_on_return)
{
    bool all = false;
    for (uint64_t call = 1; !all; call++) {
        world w;
        begin(&w);
        quire_allocation a = ALLOCATE(&w.f, .size = SIZE);
        test_memory_fail(unit_memory_state(), call, false);
        submit(&w, 0, a, a, NULL);
        all = unit_memory_state()->calls < call;
        test_memory_fail(unit_memory_state(), 0, false);
        CHECK_EQ(fake_stream_waiting(w.native), all ? 1 : 0);
        CHECK_OK(quire_free(w.f.memory, a));
        CHECK_EQ(waiting(&w), all ? 1 : 0);
        end(&w);
        CHECK(call < 10);
    }
}

CASE(the_check_finds_a_damaged_use)
{
    quire_allocation a = ALLOCATE(&w->f, .size = SIZE);
    submit(w, 0, a, a, NULL);
    qi_wait *use = w->stream->queues->own.first;
    CHECK(use && use == w->stream->queues->own.last);
    use->is_own = false;
    CHECK_FAILS(quire_memory_check(w->f.memory), QUIRE_ERROR_CORRUPTED);
    use->is_own = true;
    use->previous = use;
    CHECK_FAILS(quire_memory_check(w->f.memory), QUIRE_ERROR_CORRUPTED);
    use->previous = NULL;
    use->next = use;
    CHECK_FAILS(quire_memory_check(w->f.memory), QUIRE_ERROR_CORRUPTED);
    use->next = NULL;
    CHECK_OK(quire_memory_check(w->f.memory));
}
