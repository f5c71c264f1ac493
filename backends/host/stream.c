/*
 * stream.c - see stream.h: streams and their points. What a job does is job.c.
 */
#include "backends/host/stream.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "backends/host/job.h"
#include "src/base/clock.h"
#include "src/base/result.h"

#define SECOND UINT64_C(1000000000)

static qi_host_stream *stream_of(uint64_t number)
{
    return (qi_host_stream *)(uintptr_t)number;
}

static void lock(qi_host_device *device)
{
    pthread_mutex_lock(&device->streams.mutex);
}

static void unlock(qi_host_device *device)
{
    pthread_mutex_unlock(&device->streams.mutex);
}

static void tell_progress(qi_host_device *device)
{
    pthread_cond_broadcast(&device->streams.progress);
}

static void await_progress(qi_host_device *device)
{
    pthread_cond_wait(&device->streams.progress, &device->streams.mutex);
}

/* ---- a device's streams ------------------------------------------------------------------- */

static bool make_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes))
        return false;
    bool is_made = !pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) &&
                   !pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
    return is_made;
}

quire_result qi_host_streams_init(qi_host_streams *streams)
{
    qi_atomic_init_u32(&streams->is_lost, 0);
    if (pthread_mutex_init(&streams->mutex, NULL))
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no mutex for the streams of a host device");
    if (make_condition(&streams->progress))
        return QUIRE_SUCCESS;
    pthread_mutex_destroy(&streams->mutex);
    return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no condition for the streams of a host device");
}

void qi_host_streams_finish(qi_host_streams *streams)
{
    pthread_cond_destroy(&streams->progress);
    pthread_mutex_destroy(&streams->mutex);
}

/* A condition at which threads slept that are gone is not to be destroyed, which waits for them. */
void qi_host_streams_forked(qi_host_streams *streams)
{
    streams->forks++;
    make_condition(&streams->progress); /* it was made before: this takes nothing */
}

/* Made before a fork: without its worker, and with a condition that must stay as it is. */
static bool is_over(const qi_host_device *device, const qi_host_stream *stream)
{
    return stream->forks != device->streams.forks;
}

static quire_result refuse_over(void)
{
    return quire_backend_fail(QUIRE_ERROR_NOT_PERMITTED, 0,
                              "the stream was made before a fork: nothing runs on it in the child");
}

static bool is_lost(const qi_host_device *device)
{
    return qi_atomic_load_acquire_u32(&device->streams.is_lost);
}

static quire_result refuse_lost(void)
{
    return quire_backend_fail(QUIRE_ERROR_DEVICE_LOST, 0,
                              "the host device is lost: quire_host_lose was called");
}

quire_result qi_host_check_lost(const qi_host_device *device)
{
    return is_lost(device) ? refuse_lost() : QUIRE_SUCCESS;
}

void qi_host_streams_lose(qi_host_device *device)
{
    lock(device);
    qi_atomic_store_release_u32(&device->streams.is_lost, 1);
    tell_progress(device);
    unlock(device);
}

/* ---- jobs of a stream --------------------------------------------------------------------- */

static void drop_reference(qi_host_device *device, qi_host_stream *stream)
{
    if (--stream->references)
        return;
    if (!is_over(device, stream))
        pthread_cond_destroy(&stream->work);
    qi_host_release(&device->host, stream, 1, sizeof *stream);
}

static bool has_passed(const qi_host_stream *stream, uint64_t value)
{
    return stream->done >= value;
}

/* With the mutex: what was not submitted may never pass, and two such waits could make a circle. */
static quire_result check_value(const qi_host_stream *stream, uint64_t value)
{
    if (value <= stream->submitted)
        return QUIRE_SUCCESS;
    return quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, 0,
                              "point %llu of a stream on which only %llu were submitted",
                              (unsigned long long)value, (unsigned long long)stream->submitted);
}

/*
 * Nobody will bring the stream's next job about: it is manual, and perhaps never run, or it waits
 * for such a one. Streams never wait for each other in a circle, for nobody may wait for a point
 * that was not submitted: see check_value.
 */
static bool is_stuck(const qi_host_stream *stream)
{
    while (!stream->is_manual) {
        const qi_host_job *job = stream->first;
        if (!stream->is_waiting || has_passed(job->earlier, job->until))
            return false;
        stream = job->earlier;
    }
    return true;
}

/* Whether the first job still has to wait; one that waits for what is stuck does not when the
   stream ends, nor does any when the device is lost. */
static bool must_wait(const qi_host_device *device, const qi_host_stream *stream)
{
    const qi_host_job *job = stream->first;
    if (!job->earlier || is_lost(device) || has_passed(job->earlier, job->until))
        return false;
    return !stream->has_ended || !is_stuck(job->earlier);
}

/* Does the first job, which need not wait, without the mutex. */
static void do_first(qi_host_device *device, qi_host_stream *stream)
{
    qi_host_job *job = stream->first;
    stream->is_running = true;
    if (!is_lost(device)) {
        unlock(device);
        qi_host_job_do(job);
        lock(device);
    }
    stream->is_running = false;
    stream->first = job->next;
    stream->last = stream->first ? stream->last : NULL;
    stream->done++;
    if (job->earlier)
        drop_reference(device, job->earlier);
    qi_host_release(&device->host, job, 1, sizeof *job);
    tell_progress(device);
}

static quire_result submit(qi_host_device *device, qi_host_stream *stream, const qi_host_job *job)
{
    if (is_over(device, stream))
        return refuse_over();
    qi_host_job *made = qi_host_allocate(&device->host, 1, sizeof *made);
    if (!made)
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0,
                                  "no host memory for a job of a stream");
    *made = *job;
    lock(device);
    if (is_lost(device)) {
        unlock(device);
        qi_host_release(&device->host, made, 1, sizeof *made);
        return refuse_lost();
    }
    if (made->earlier)
        made->earlier->references++;
    if (stream->last)
        stream->last->next = made;
    else
        stream->first = made;
    stream->last = made;
    stream->submitted++;
    pthread_cond_signal(&stream->work);
    unlock(device);
    return QUIRE_SUCCESS;
}

/* ---- the worker --------------------------------------------------------------------------- */

typedef struct worker_start {
    qi_host_device *device;
    qi_host_stream *stream;
} worker_start;

/* Sleeps until the first job can be done. */
static void wait_for_turn(qi_host_device *device, qi_host_stream *stream)
{
    if (!must_wait(device, stream))
        return;
    stream->is_waiting = true;
    tell_progress(device); /* whoever waits for this stream may have to wait for long */
    while (must_wait(device, stream))
        await_progress(device);
    stream->is_waiting = false;
}

static void *work(void *argument)
{
    worker_start *start = argument;
    qi_host_device *device = start->device;
    qi_host_stream *stream = start->stream;
    qi_host_release(&device->host, start, 1, sizeof *start);
    lock(device);
    for (;;) {
        while (!stream->first && !stream->has_ended)
            pthread_cond_wait(&stream->work, &device->streams.mutex);
        if (!stream->first)
            break;
        wait_for_turn(device, stream);
        do_first(device, stream);
    }
    unlock(device);
    return NULL;
}

/* Signals are for the program's own threads. */
static int start_thread(qi_host_stream *stream, worker_start *start)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&stream->worker, NULL, work, start);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

static quire_result start_worker(qi_host_device *device, qi_host_stream *stream)
{
    worker_start *start = qi_host_allocate(&device->host, 1, sizeof *start);
    if (!start)
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0,
                                  "no host memory for the worker of a stream");
    *start = (worker_start){device, stream};
    int code = start_thread(stream, start);
    if (!code)
        return QUIRE_SUCCESS;
    qi_host_release(&device->host, start, 1, sizeof *start);
    return quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, code,
                              "no thread for the worker of a stream: %s", strerror(code));
}

/* ---- making and ending -------------------------------------------------------------------- */

quire_result qi_host_stream_make(void *state, const void *description, uint64_t *out)
{
    qi_host_device *device = state;
    const qi_host_stream_description *asked = description;
    quire_result result = qi_host_check_lost(device);
    if (result)
        return result;
    qi_host_stream *stream = qi_host_allocate(&device->host, 1, sizeof *stream);
    if (!stream)
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0, "no host memory for a stream");
    stream->is_manual = asked && asked->manual;
    stream->references = 1;
    stream->forks = device->streams.forks;
    stream->submitted = stream->done = 1;
    if (pthread_cond_init(&stream->work, NULL))
        result = quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0, "no condition for a stream");
    else if (!stream->is_manual) {
        result = start_worker(device, stream);
        if (result)
            pthread_cond_destroy(&stream->work);
    }
    if (result) {
        qi_host_release(&device->host, stream, 1, sizeof *stream);
        return result;
    }
    *out = (uintptr_t)stream;
    return QUIRE_SUCCESS;
}

/* Nothing of it is done any more. */
static void end_over(qi_host_device *device, qi_host_stream *stream)
{
    lock(device);
    for (qi_host_job *job = stream->first, *next; job; job = next) {
        next = job->next;
        if (job->earlier)
            drop_reference(device, job->earlier);
        qi_host_release(&device->host, job, 1, sizeof *job);
    }
    drop_reference(device, stream);
    unlock(device);
}

/* Does what is queued still; what is stuck is not waited for. */
void qi_host_stream_end(void *state, uint64_t number)
{
    qi_host_device *device = state;
    qi_host_stream *stream = stream_of(number);
    if (is_over(device, stream)) {
        end_over(device, stream);
        return;
    }
    lock(device);
    stream->has_ended = true;
    pthread_cond_signal(&stream->work);
    tell_progress(device);
    while (stream->is_manual && (stream->first || stream->is_running))
        if (stream->is_running || must_wait(device, stream))
            await_progress(device);
        else
            do_first(device, stream);
    unlock(device);
    if (!stream->is_manual)
        pthread_join(stream->worker, NULL);
    lock(device);
    drop_reference(device, stream);
    unlock(device);
}

/* ---- points ------------------------------------------------------------------------------- */

/* On a manual stream the point is a job, so that the caller decides when it passes. */
quire_result qi_host_stream_mark(void *state, uint64_t number, uint64_t *value)
{
    qi_host_device *device = state;
    qi_host_stream *stream = stream_of(number);
    quire_result result = stream->is_manual ? submit(device, stream, &(qi_host_job){.next = NULL})
                                            : qi_host_check_lost(device);
    if (result)
        return result;
    lock(device);
    *value = stream->submitted;
    unlock(device);
    return QUIRE_SUCCESS;
}

quire_result qi_host_stream_passed(void *state, uint64_t number, uint64_t *value)
{
    qi_host_device *device = state;
    quire_result result = qi_host_check_lost(device);
    if (result)
        return result;
    lock(device);
    *value = stream_of(number)->done;
    unlock(device);
    return QUIRE_SUCCESS;
}

static bool sleep_until(qi_host_device *device, uint64_t deadline)
{
    if (deadline == UINT64_MAX) {
        await_progress(device);
        return true;
    }
    const struct timespec time = {(time_t)(deadline / SECOND), (long)(deadline % SECOND)};
    return pthread_cond_timedwait(&device->streams.progress, &device->streams.mutex, &time) !=
           ETIMEDOUT;
}

quire_result qi_host_stream_await(void *state, uint64_t number, uint64_t value,
                                  uint64_t nanoseconds, bool *passed)
{
    qi_host_device *device = state;
    const qi_host_stream *stream = stream_of(number);
    uint64_t now = nanoseconds ? qi_clock() : 0;
    uint64_t deadline = nanoseconds > UINT64_MAX - now ? UINT64_MAX : now + nanoseconds;
    bool in_time = nanoseconds > 0;
    lock(device);
    quire_result result = check_value(stream, value);
    while (!result && !is_lost(device) && !has_passed(stream, value) && in_time &&
           !is_stuck(stream))
        in_time = sleep_until(device, deadline);
    *passed = has_passed(stream, value);
    unlock(device);
    return result ? result : qi_host_check_lost(device);
}

quire_result qi_host_stream_order(void *state, uint64_t later, uint64_t earlier, uint64_t value)
{
    qi_host_device *device = state;
    qi_host_stream *awaited = stream_of(earlier);
    if (later == earlier)
        return QUIRE_SUCCESS;
    lock(device);
    quire_result result = check_value(awaited, value);
    bool passed = has_passed(awaited, value);
    unlock(device);
    if (result || passed)
        return result;
    return submit(device, stream_of(later), &(qi_host_job){.earlier = awaited, .until = value});
}

/* ---- work --------------------------------------------------------------------------------- */

quire_result qi_host_stream_copy(void *state, uint64_t stream, const quire_copy_job *job)
{
    const qi_host_job copy = qi_host_job_copy(job);
    return submit(state, stream_of(stream), &copy);
}

quire_result qi_host_stream_fill(void *state, uint64_t stream, const quire_native_page *page,
                                 uint64_t offset, uint64_t size, uint8_t value)
{
    const qi_host_job fill = qi_host_job_fill(page, offset, size, value);
    return submit(state, stream_of(stream), &fill);
}

quire_result qi_host_stream_call(qi_host_device *device, qi_host_stream *stream,
                                 void (*function)(void *user), void *user)
{
    return submit(device, stream, &(qi_host_job){.function = function, .user = user});
}

uint64_t qi_host_stream_run(qi_host_device *device, qi_host_stream *stream, uint64_t most)
{
    uint64_t count = 0;
    lock(device);
    while (count < most && !is_lost(device)) {
        if (stream->is_running) {
            await_progress(device); /* another thread runs it, too */
            continue;
        }
        if (!stream->first || must_wait(device, stream))
            break;
        do_first(device, stream);
        count++;
    }
    unlock(device);
    return count;
}
