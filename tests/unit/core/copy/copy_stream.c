/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * copy_stream.c - copies and fills in the order of a stream: the backend runs them later, or, if it
 * cannot, the core runs them after the stream's work. A free waits for them though the caller
 * recorded no use, and these uses end with their stream.
 */
#include "src/core/deferred/stream_queue.h"
#include "tests/support/fixture.h"
#include "tests/support/on_stream.h"

enum { DEVICE = 0, COHERENT, CACHED, WINDOW, SIZE = 1024, OPERATIONS = 5 };

typedef struct world {
    fixture f;
    quire_stream *stream;
    uint64_t native;
    quire_allocation a, b;
    unsigned char *bytes_a, *bytes_b; /* straight from the fake's pages */
} world;

static unsigned char *bytes_of(fixture *f, quire_allocation allocation)
{
    quire_native native;
    CHECK_OK(quire_allocation_get_native(f->memory, allocation, &native));
    return fake_bytes(&native.page) + native.offset;
}

static void prepare(world *w)
{
    fixture_prepare(&w->f);
    fake_offer_copies(&w->f.fake);
    fake_offer_fill(&w->f.fake);
    fake_offer_streams(&w->f.fake);
}

static void open_world(world *w, uint32_t kind)
{
    fixture_open(&w->f, &(quire_memory_options){.kind.mask = UINT32_C(1) << kind});
    CHECK_OK(quire_stream_create(w->f.device, NULL, &w->stream));
    w->native = quire_stream_native(w->stream);
    w->a = ALLOCATE(&w->f, .size = SIZE, .zero = true);
    w->b = ALLOCATE(&w->f, .size = SIZE, .zero = true);
    w->bytes_a = bytes_of(&w->f, w->a);
    w->bytes_b = bytes_of(&w->f, w->b);
}

static void end_world(world *w)
{
    fake_stream_run(w->native, UINT64_MAX);
    CHECK_OK(quire_memory_check(w->f.memory));
    quire_memory_destroy_all(&w->f.memory);
    CHECK_OK(quire_stream_destroy(&w->stream));
    CHECK_EQ(w->f.fake.streams, 0);
    CHECK_OK(quire_device_destroy(&w->f.device));
    CHECK_EQ(w->f.fake.pages, 0);
}

static void begin(world *w)
{
    prepare(w);
    open_world(w, DEVICE);
}

static quire_copy_options a_to_b(const world *w)
{
    return (quire_copy_options){.to = {.memory = w->f.memory, .allocation = w->b},
                                .from = {.memory = w->f.memory, .allocation = w->a},
                                .size = SIZE};
}

static bool has_passed(const quire_point *point)
{
    bool passed = false;
    CHECK_OK(quire_point_has_passed(point, &passed));
    return passed;
}

#define CASE(name) UNIT_ON(copy_stream, name, world, w, prepare(w), end_world)

CASE(a_copy_runs_in_the_order_of_the_stream)
{
    open_world(w, DEVICE);
    quire_copy_options o = a_to_b(w);
    quire_point done = {0};
    memset(w->bytes_a, 1, SIZE);
    fake_stream_submit(w->native);
    CHECK_OK(copy_on_stream(w->stream, &o, &done));
    CHECK(done.stream == w->stream);
    CHECK(!has_passed(&done));
    CHECK_EQ(w->bytes_b[0], 0);
    memset(w->bytes_a, 2, SIZE); /* like a kernel submitted before it */
    CHECK_EQ(fake_stream_run(w->native, 1), 1);
    CHECK(!has_passed(&done));
    CHECK_EQ(fake_stream_run(w->native, 1), 1);
    CHECK(has_passed(&done));
    CHECK(w->bytes_b[0] == 2 && w->bytes_b[SIZE - 1] == 2);
}

CASE(host_memory_is_read_and_written_later)
{
    unsigned char in[SIZE] = {0}, out[SIZE] = {0};
    open_world(w, DEVICE);
    quire_point done;
    CHECK_OK(quire_copy(&(quire_copy_options){.to = {.memory = w->f.memory, .allocation = w->a},
                                              .host_from = in,
                                              .size = SIZE,
                                              .stream = w->stream},
                        NULL));
    CHECK_OK(quire_copy(&(quire_copy_options){.from = {.memory = w->f.memory, .allocation = w->a},
                                              .host_to = out,
                                              .size = SIZE,
                                              .stream = w->stream},
                        &done));
    memset(in, 5, SIZE);
    CHECK_EQ(out[0], 0);
    CHECK_OK(quire_point_await(&done, QUIRE_FOREVER));
    CHECK(out[0] == 5 && out[SIZE - 1] == 5);
}

UNIT_EACH(copy_stream, rows_are_one_job_or_one_each, world, w, takes, 0, 2, prepare(w), end_world)
{
    if (!takes)
        fake_leave_out(&w->f.fake, QUIRE_BACKEND_ROWS);
    open_world(w, DEVICE);
    quire_copy_options o = a_to_b(w);
    memset(w->bytes_a, 1, SIZE);
    o.size = 10;
    o.rows = 6;
    o.from.row_pitch = 12;
    o.to.row_pitch = 20;
    CHECK_OK(copy_on_stream(w->stream, &o, NULL));
    CHECK_EQ(fake_stream_waiting(w->native), takes ? 1 : 6);
    CHECK_EQ(fake_stream_run(w->native, UINT64_MAX), takes ? 1 : 6);
    CHECK(w->bytes_b[109] == 1 && w->bytes_b[110] == 0 && w->bytes_b[10] == 0);
}

/* The caller gets no point, and may free the allocations. */
UNIT(copy_stream, a_failing_row_leaves_no_earlier_row_running)
{
    for (uint64_t row = 1; row <= 4; row += 3) {
        world w;
        prepare(&w);
        fake_leave_out(&w.f.fake, QUIRE_BACKEND_ROWS);
        open_world(&w, DEVICE);
        quire_copy_options o = a_to_b(&w);
        quire_point done;
        o.size = 10;
        o.rows = 6;
        o.to.row_pitch = 20;
        fake_stream_submit(w.native);
        fake_fail(&w.f.fake, row, false, QUIRE_ERROR_BACKEND_FAILURE);
        CHECK_FAILS(copy_on_stream(w.stream, &o, &done), QUIRE_ERROR_BACKEND_FAILURE);
        CHECK_EQ(w.f.fake.failed_call, FAKE_STREAM_COPY);
        CHECK(!done.stream);
        CHECK_EQ(fake_stream_waiting(w.native), row == 1 ? 1 : 0);
        end_world(&w);
    }
}

UNIT_EACH(copy_stream, a_fill_runs_in_the_order_of_the_stream, world, w, i, 0, 2, prepare(w),
          end_world)
{
    static const uint32_t kinds[] = {DEVICE, CACHED};
    quire_point done;
    open_world(w, kinds[i]);
    CHECK_OK(quire_fill(w->f.memory, w->a,
                        &(quire_fill_options){.offset = 10, .value = 9, .stream = w->stream},
                        &done));
    CHECK_EQ(w->bytes_a[10], 0);
    CHECK_OK(quire_point_await(&done, QUIRE_FOREVER));
    CHECK(w->bytes_a[9] == 0 && w->bytes_a[10] == 9 && w->bytes_a[SIZE - 1] == 9);
}

static void copy_after_the_work(const world *w)
{
    quire_copy_options o = a_to_b(w);
    quire_point done = {w->stream, 1};
    memset(w->bytes_a, 7, SIZE);
    fake_stream_submit(w->native);
    CHECK_FAILS(quire_copy(NULL, NULL), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_OK(copy_on_stream(w->stream, &o, &done));
    CHECK_EQ(quire_last_result(), QUIRE_ERROR_INVALID_ARGUMENT); /* no call has failed since */
    CHECK_EQ(fake_stream_waiting(w->native), 0);
    CHECK(!done.stream && !done.value && has_passed(&done));
    CHECK(w->bytes_b[0] == 7 && w->bytes_b[SIZE - 1] == 7);
    CHECK_OK(quire_fill(w->f.memory, w->a, &(quire_fill_options){.value = 8, .stream = w->stream},
                        NULL));
}

CASE(without_the_functions_the_stream_is_awaited)
{
    fake_leave_out(&w->f.fake, QUIRE_BACKEND_STREAM_COPY | QUIRE_BACKEND_STREAM_FILL);
    open_world(w, DEVICE);
    copy_after_the_work(w);
    fake_stream_submit(w->native);
    quire_point done;
    CHECK_OK(quire_fill(w->f.memory, w->a, &(quire_fill_options){.value = 9, .stream = w->stream},
                        &done));
    CHECK_EQ(fake_stream_waiting(w->native), 0);
    CHECK(!done.stream);
    CHECK_EQ(w->bytes_a[0], 9);
}

CASE(an_unsupported_copy_runs_after_the_work_of_the_stream)
{
    w->f.fake.unsupported = FAKE_STREAM_COPY;
    open_world(w, DEVICE);
    copy_after_the_work(w);
}

CASE(an_unsupported_fill_runs_after_the_work_of_the_stream)
{
    w->f.fake.unsupported = FAKE_STREAM_FILL;
    open_world(w, DEVICE);
    fake_stream_submit(w->native);
    CHECK_OK(quire_fill(w->f.memory, w->a, &(quire_fill_options){.value = 9, .stream = w->stream},
                        NULL));
    CHECK_EQ(fake_stream_waiting(w->native), 0);
    CHECK_EQ(w->bytes_a[0], 9);
}

UNIT_ON(copy_stream, memory_of_another_backend_is_copied_after_the_work_of_the_stream, world, w,
        prepare(w), end_world)
{
    fixture other;
    open_world(w, DEVICE);
    fixture_make(&other, &(quire_memory_options){.kind.mask = 1});
    quire_allocation far = ALLOCATE(&other, .size = SIZE);
    memset(bytes_of(&other, far), 3, SIZE);
    quire_copy_options o = a_to_b(w);
    o.from = (quire_copy_end){.memory = other.memory, .allocation = far};
    fake_stream_submit(w->native);
    CHECK_OK(copy_on_stream(w->stream, &o, NULL));
    CHECK_EQ(fake_stream_waiting(w->native), 0);
    CHECK_EQ(w->bytes_b[0], 3);
    fixture_end(&other);
}

static bool goes_on(void *user, uint64_t done, uint64_t total)
{
    (void)user;
    return done <= total;
}

UNIT_ON(copy_stream, wrong_streams_are_refused_and_nothing_is_submitted, world, w, prepare(w),
        end_world)
{
    fixture other;
    quire_stream *foreign;
    open_world(w, DEVICE);
    fixture_prepare(&other);
    fake_offer_streams(&other.fake);
    fixture_open(&other, NULL);
    CHECK_OK(quire_stream_create(other.device, NULL, &foreign));
    quire_copy_options o = a_to_b(w), with_progress = o;
    with_progress.progress.goes_on = goes_on;
    quire_point done = {w->stream, 1};
    CHECK_FAILS(copy_on_stream(foreign, &o, &done), QUIRE_ERROR_FOREIGN_HANDLE);
    CHECK_FAILS(copy_on_stream(w->stream, &with_progress, &done), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_FAILS(
        quire_fill(w->f.memory, w->a, &(quire_fill_options){.value = 1, .stream = foreign}, &done),
        QUIRE_ERROR_FOREIGN_HANDLE);
    CHECK_EQ(fake_stream_waiting(w->native), 0);
    o.size = 0;
    o.to.offset = SIZE; /* nothing is left to copy */
    CHECK_OK(copy_on_stream(w->stream, &o, &done));
    CHECK(!done.stream);
    CHECK_OK(quire_stream_destroy(&foreign));
    fixture_end(&other);
}

/* ---- uses ------------------------------------------------------------------------------------ */

/* What quire submits, with the first allocation of the world. */
static void submit(const world *w, uint32_t operation, quire_point *done)
{
    const quire_allocation a = w->a, other = w->b;
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

UNIT_EACH(copy_stream, a_free_waits_for_what_quire_submitted, world, w, operation, 0, OPERATIONS,
          begin(w), end_world)
{
    submit(w, operation, NULL);
    CHECK_OK(quire_free(w->f.memory, w->a));
    CHECK_EQ(waiting(w), 1);
    CHECK_EQ(collect(w), 0);
    fake_stream_run(w->native, UINT64_MAX);
    CHECK_EQ(collect(w), SIZE);
}

UNIT_EACH(copy_stream, a_free_after_the_point_has_passed_waits_for_nothing, world, w, operation, 0,
          OPERATIONS, begin(w), end_world)
{
    quire_point done;
    submit(w, operation, &done);
    submit(w, operation, &done); /* the later point counts */
    CHECK_OK(quire_point_await(&done, QUIRE_FOREVER));
    fake_stream_submit(w->native); /* work of the caller, which uses neither */
    CHECK_OK(quire_free(w->f.memory, w->a));
    CHECK_EQ(waiting(w), 0);
}

#define OPEN(name) UNIT_ON(copy_stream, name, world, w, begin(w), end_world)

/* The free names a point before the fill, after it, or the stream. */
UNIT_EACH(copy_stream, the_later_of_fill_and_point_counts, world, w, which, 0, 3, begin(w),
          end_world)
{
    quire_point before, filled, after;
    fake_stream_submit(w->native);
    CHECK_OK(quire_stream_mark(w->stream, &before));
    submit(w, 0, &filled);
    fake_stream_submit(w->native);
    CHECK_OK(quire_stream_mark(w->stream, &after));
    CHECK_OK(which == 0   ? quire_free_after_point(w->f.memory, w->a, &before)
             : which == 1 ? quire_free_after_point(w->f.memory, w->a, &after)
                          : quire_free_on_stream(w->f.memory, w->a, w->stream));
    fake_stream_run(w->native, 1);
    CHECK_EQ(collect(w), 0);
    fake_stream_run(w->native, 1);
    CHECK_EQ(collect(w), which == 0 ? SIZE : 0);
    fake_stream_run(w->native, 1);
    CHECK_EQ(collect(w), which == 0 ? 0 : SIZE);
}

OPEN(a_range_that_was_filled_is_reused_on_its_stream_at_once)
{
    quire_allocation next;
    uint64_t offset = fixture_info(&w->f, w->a).offset;
    submit(w, 0, NULL);
    CHECK_OK(quire_free_on_stream(w->f.memory, w->a, w->stream));
    CHECK_OK(allocate_on_stream(w->f.memory, &(quire_allocation_options){.size = SIZE}, w->stream,
                                &next));
    CHECK_EQ(fixture_info(&w->f, next).offset, offset);
}

CASE(a_fill_that_is_complete_on_return_is_no_use)
{
    fake_leave_out(&w->f.fake, QUIRE_BACKEND_STREAM_FILL);
    open_world(w, DEVICE);
    submit(w, 0, NULL);
    CHECK_OK(quire_free(w->f.memory, w->a));
    CHECK_EQ(waiting(w), 0);
}

OPEN(a_stream_is_busy_until_its_fill_is_done_and_takes_the_use_with_it)
{
    quire_stream_info info;
    quire_stream *second;
    CHECK_OK(quire_stream_create(w->f.device, NULL, &second));
    submit(w, 2, NULL);
    CHECK_OK(quire_stream_get_info(w->stream, &info));
    CHECK_EQ(info.deferred, 2);
    CHECK_FAILS(quire_stream_destroy(&w->stream), QUIRE_ERROR_BUSY);
    fake_stream_run(w->native, UINT64_MAX);
    CHECK_OK(quire_stream_destroy(&w->stream));
    CHECK_OK(quire_memory_check(w->f.memory));
    CHECK_OK(quire_free(w->f.memory, w->a));
    CHECK_OK(quire_record_use(w->f.memory, w->b, second)); /* beside the use that has ended */
    CHECK_OK(quire_free_on_stream(w->f.memory, w->b, second));
    CHECK_EQ(waiting(w), 1);
    CHECK_EQ(collect(w), SIZE);
    w->stream = second;
    w->native = quire_stream_native(second);
}

UNIT_EACH(copy_stream, a_use_of_the_caller_outlasts_the_fill, world, w, first, 0, 2, begin(w),
          end_world)
{
    if (!first)
        CHECK_OK(quire_record_use(w->f.memory, w->a, w->stream));
    submit(w, 0, NULL);
    if (first)
        CHECK_OK(quire_record_use(w->f.memory, w->a, w->stream));
    fake_stream_run(w->native, UINT64_MAX);
    CHECK_FAILS(quire_stream_destroy(&w->stream), QUIRE_ERROR_BUSY);
    fake_stream_submit(w->native); /* which uses it */
    CHECK_OK(quire_free(w->f.memory, w->a));
    CHECK_EQ(collect(w), 0);
}

/* The use needs a record of the allocation, a queue, and waits: each may fail. */
UNIT(copy_stream, without_host_memory_the_work_is_done_on_return)
{
    bool all = false;
    for (uint64_t call = 1; !all; call++) {
        world w;
        begin(&w);
        test_memory_fail(unit_memory_state(), call, false);
        submit(&w, 0, NULL);
        all = unit_memory_state()->calls < call;
        test_memory_fail(unit_memory_state(), 0, false);
        CHECK_EQ(fake_stream_waiting(w.native), all ? 1 : 0);
        CHECK_OK(quire_free(w.f.memory, w.a));
        CHECK_EQ(waiting(&w), all ? 1 : 0);
        end_world(&w);
        CHECK(call < 10);
    }
}

OPEN(the_check_finds_a_damaged_use)
{
    submit(w, 0, NULL);
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
