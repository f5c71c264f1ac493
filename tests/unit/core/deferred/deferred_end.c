/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * deferred_end.c - memories that are destroyed while frees wait for streams: they wait as long as
 * points pass, and at most the device's stall_timeout for a point that never passes.
 */
#include <stdio.h>

#include "src/base/system.h"
#include "src/core/device/device.h"
#include "tests/support/deferred_free.h"

#define MILLISECOND UINT64_C(1000000)

/* A wait for a stream of the fake lets its next point pass, or only time. */
static struct {
    quire_backend inner;
    uint64_t points; /* number of points that still pass, one per call */
    uint64_t calls, longest;
} slow;

static struct {
    int warnings;
    char text[256]; /* the latest one */
} lines;

static void note_line(void *user, quire_log_level level, const char *line)
{
    (void)user;
    if (level != QUIRE_LOG_WARNING)
        return;
    lines.warnings++;
    snprintf(lines.text, sizeof lines.text, "%s", line);
}

static quire_result await_slowly(void *state, uint64_t stream, uint64_t value, uint64_t nanoseconds,
                                 bool *has_passed)
{
    fake_streams *s = streams_state();
    slow.calls++;
    slow.longest = nanoseconds > slow.longest ? nanoseconds : slow.longest;
    if (slow.points && slow.points--)
        s->passed[stream]++;
    else
        nanosleep(&(struct timespec){.tv_nsec = (long)(nanoseconds % (1000 * MILLISECOND))}, NULL);
    return slow.inner.stream_await(state, stream, value, 0, has_passed);
}

static void begin_slow(bench *w)
{
    prepare(w);
    slow.inner = w->f.fake.table;
    slow.points = slow.calls = slow.longest = 0;
    lines.warnings = 0;
    w->f.fake.table.stream_await = await_slowly;
    open_bench(w, &(quire_memory_options){.name = "ending"});
    w->f.device->log = (quire_log){.write = note_line};
    w->f.device->stall_timeout = 50 * MILLISECOND;
}

static void free_after_marks(bench *w, quire_stream *stream, int count)
{
    for (int i = 0; i < count; i++) {
        quire_point point = mark(stream);
        CHECK_OK(quire_free_after_point(w->f.memory, ALLOCATE(&w->f, .size = KIB), &point));
    }
}

#define CASE(name) UNIT_ON(deferred_end, name, bench, w, begin_slow(w), end)

CASE(a_memory_waits_while_points_pass)
{
    enum { POINTS = 20 };
    free_after_marks(w, w->a, POINTS);
    slow.points = POINTS;
    quire_memory_destroy_all(&w->f.memory);
    CHECK_EQ(slow.calls, POINTS); /* each call reports one more passed point */
    CHECK(slow.longest <= 50 * MILLISECOND);
    CHECK_EQ(lines.warnings, 0);
}

CASE(a_memory_stops_waiting_for_a_stream_without_progress)
{
    free_after_marks(w, w->a, 5);
    slow.points = 2;
    uint64_t before = qi_clock();
    quire_memory_destroy_all(&w->f.memory);
    CHECK(qi_clock() - before >= 50 * MILLISECOND);
    CHECK_EQ(slow.calls, 3);
    CHECK_EQ(lines.warnings, 1);
    CHECK_HAS(lines.text, "'ending'");
    CHECK_HAS(lines.text, "'a'");
}

/* The time limit starts once for all streams. */
CASE(all_streams_have_the_same_time)
{
    free_after_marks(w, w->a, 1);
    free_after_marks(w, w->b, 1);
    CHECK_OK(quire_free_on_stream(w->f.memory, ALLOCATE(&w->f, .size = KIB), w->b));
    uint64_t before = qi_clock();
    quire_memory_destroy_all(&w->f.memory);
    CHECK(qi_clock() - before < 20 * w->f.device->stall_timeout);
    CHECK_EQ(slow.calls, 1);
    CHECK_EQ(lines.warnings, 2);
}

/* A value that its owner announced, or only used in a point, and never signals. */
UNIT_EACH(deferred_end, the_wait_for_a_value_that_is_never_signalled_ends, bench, w, later, 0, 2,
          begin_slow(w), end)
{
    streams_state()->mark_answers = QUIRE_ERROR_UNSUPPORTED;
    CHECK_OK(quire_stream_announce(w->a, later ? 5 : 9));
    CHECK_OK(
        quire_free_after_point(w->f.memory, ALLOCATE(&w->f, .size = KIB), &(quire_point){w->a, 9}));
    CHECK_FAILS(quire_memory_destroy(&w->f.memory), QUIRE_ERROR_BUSY);
    quire_memory_destroy_all(&w->f.memory);
    CHECK(slow.longest && slow.longest <= 50 * MILLISECOND);
    CHECK_EQ(lines.warnings, 1);
}

CASE(capture_streams_and_lost_devices_cause_no_warning)
{
    quire_stream *held = make_capturing(w);
    CHECK_OK(quire_free_on_stream(w->f.memory, ALLOCATE(&w->f, .size = KIB), held));
    free_after_marks(w, w->a, 1);
    CHECK_OK(quire_free_on_stream(w->f.memory, ALLOCATE(&w->f, .size = KIB), w->a));
    streams_state()->mark_answers = QUIRE_ERROR_DEVICE_LOST;
    quire_memory_destroy_all(&w->f.memory);
    CHECK_EQ(lines.warnings, 0);
    CHECK_OK(quire_stream_destroy(&held));
}

/*
 * The warning lets every point pass. The sink cannot destroy the stream while the memory uses it.
 */
static quire_stream **to_end;

static void end_stream_at_line(void *user, quire_log_level level, const char *line)
{
    note_line(user, level, line);
    if (level != QUIRE_LOG_WARNING || !to_end)
        return;
    streams_pass(*to_end);
    CHECK_FAILS(quire_stream_destroy(to_end), QUIRE_ERROR_BUSY);
    to_end = NULL;
}

CASE(a_sink_that_receives_the_warning_of_a_stream_cannot_destroy_it)
{
    w->f.device->log.write = end_stream_at_line;
    free_after_marks(w, w->b, 1);
    free_after_marks(w, w->a, 2);
    to_end = &w->a; /* its queue is the first that is checked */
    quire_memory_destroy_all(&w->f.memory);
    CHECK(!to_end);
    CHECK_EQ(lines.warnings, 2);
}
