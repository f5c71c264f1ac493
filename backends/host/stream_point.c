/*
 * stream_point.c - points of host streams, and the jobs that are submitted to them.
 */
#include <errno.h>
#include <time.h>

#include "backends/host/queue.h"
#include "src/base/result.h"
#include "src/base/system.h"

#define SECOND UINT64_C(1000000000)

/*
 * On a manual stream the point is an empty job, so that the caller decides when it passes. With a
 * worker the number of the last submitted job serves as the point.
 */
quire_result qi_host_stream_mark(void *state, uint64_t number, uint64_t *value)
{
    qi_host_device *device = state;
    qi_host_stream *stream = qi_host_stream_of(number);
    quire_result result = stream->is_manual
                              ? qi_host_submit(device, stream, &(qi_host_job){.next = NULL})
                              : qi_host_check_lost(device);
    if (result)
        return result;
    qi_host_lock_streams(device);
    *value = stream->submitted;
    qi_host_unlock_streams(device);
    return QUIRE_SUCCESS;
}

quire_result qi_host_stream_passed(void *state, uint64_t number, uint64_t *value)
{
    qi_host_device *device = state;
    quire_result result = qi_host_check_lost(device);
    if (result)
        return result;
    qi_host_lock_streams(device);
    *value = qi_host_stream_of(number)->done;
    qi_host_unlock_streams(device);
    return QUIRE_SUCCESS;
}

/*
 * Requires the mutex; releases and reacquires it. `deadline` is in nanoseconds of CLOCK_MONOTONIC,
 * UINT64_MAX means none. Returns false once the deadline has passed.
 */
static bool sleep_until(qi_host_device *device, uint64_t deadline)
{
    if (deadline == UINT64_MAX) {
        qi_host_wait_for_progress(device);
        return true;
    }
    const struct timespec time = {(time_t)(deadline / SECOND), (long)(deadline % SECOND)};
    return pthread_cond_timedwait(&device->streams.progress, &device->streams.mutex, &time) !=
           ETIMEDOUT;
}

/* Does not sleep for a stuck stream: only the caller can advance it, which is BUSY. */
quire_result qi_host_stream_await(void *state, uint64_t number, uint64_t value,
                                  uint64_t nanoseconds, bool *passed)
{
    qi_host_device *device = state;
    const qi_host_stream *stream = qi_host_stream_of(number);
    uint64_t now = nanoseconds ? qi_clock() : 0;
    uint64_t deadline = nanoseconds > UINT64_MAX - now ? UINT64_MAX : now + nanoseconds;
    bool in_time = nanoseconds > 0;
    qi_host_lock_streams(device);
    quire_result result = qi_host_check_value(stream, value);
    while (!result && !qi_host_is_lost(device) && !qi_host_has_passed(stream, value) && in_time &&
           !qi_host_is_stuck(stream))
        in_time = sleep_until(device, deadline);
    *passed = qi_host_has_passed(stream, value);
    bool is_stuck = !*passed && qi_host_is_stuck(stream);
    qi_host_unlock_streams(device);
    if (!result)
        result = qi_host_check_lost(device);
    return result || !is_stuck
               ? result
               : quire_backend_fail(QUIRE_ERROR_BUSY, 0,
                                    "point %llu passes only by a call of quire_host_stream_run",
                                    (unsigned long long)value);
}

/* A point that has passed needs no job, and neither does a point of the same stream: its jobs run
   in order. */
quire_result qi_host_stream_order(void *state, uint64_t later, uint64_t earlier, uint64_t value)
{
    qi_host_device *device = state;
    qi_host_stream *awaited = qi_host_stream_of(earlier);
    if (later == earlier)
        return QUIRE_SUCCESS;
    qi_host_lock_streams(device);
    quire_result result = qi_host_check_value(awaited, value);
    bool passed = qi_host_has_passed(awaited, value);
    qi_host_unlock_streams(device);
    if (result || passed)
        return result;
    return qi_host_submit(device, qi_host_stream_of(later),
                          &(qi_host_job){.earlier = awaited, .until = value});
}

quire_result qi_host_stream_copy(void *state, uint64_t stream, const quire_copy_job *job)
{
    const qi_host_job copy = qi_host_job_copy(job);
    return qi_host_submit(state, qi_host_stream_of(stream), &copy);
}

quire_result qi_host_stream_fill(void *state, uint64_t stream, const quire_native_page *page,
                                 uint64_t offset, uint64_t size, uint8_t value)
{
    const qi_host_job fill = qi_host_job_fill(page, offset, size, value);
    return qi_host_submit(state, qi_host_stream_of(stream), &fill);
}

quire_result qi_host_stream_submit_call(qi_host_device *device, qi_host_stream *stream,
                                        void (*function)(void *user), void *user)
{
    return qi_host_submit(device, stream, &(qi_host_job){.function = function, .user = user});
}

uint64_t qi_host_stream_run(qi_host_device *device, qi_host_stream *stream, uint64_t max)
{
    uint64_t count = 0;
    qi_host_lock_streams(device);
    while (count < max && !qi_host_is_lost(device)) {
        if (stream->is_running) {
            qi_host_wait_for_progress(device); /* another thread runs a job of this stream */
            continue;
        }
        if (!stream->first || qi_host_must_wait(device, stream))
            break;
        qi_host_run_first(device, stream);
        count++;
    }
    qi_host_unlock_streams(device);
    return count;
}
