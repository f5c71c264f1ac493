/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * stream.c - streams of the host backend: queues of jobs that run in order. A worker thread runs
 * the jobs of a normal stream; quire_host_stream_run runs those of a manual stream.
 *
 * Each job has a number: its position in the stream. A point is such a number, and has passed when
 * the job is done.
 *
 * Lock: qi_host_streams.mutex of the device protects every record. It is released while a job runs.
 * Threads sleep at two conditions: a worker without a job at its stream's `work`; a thread that
 * waits for a point, worker or caller, at the device's `progress`.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "backends/host/host.h"
#include "src/base/result.h"
#include "src/base/system.h"

/* ---- records ------------------------------------------------------------------------------ */

/* The description that stream_create takes. NULL means a stream with a worker. */
typedef struct qi_host_stream_description {
    bool manual;
} qi_host_stream_description;

typedef struct qi_host_stream {
    bool is_manual;
    bool is_closing; /* stream_destroy was called: no job follows */
    bool is_running; /* a thread runs the first job with the mutex released */
    bool is_waiting; /* its worker sleeps until the point that the first job awaits has passed */
    uint32_t references; /* one of the owner, and one of each job that awaits a point of it */
    uint32_t forks;      /* qi_host_streams.forks at creation */
    struct qi_host_job *first, *last; /* queued jobs; NULL when none is queued */
    uint64_t submitted; /* number of the last job submitted; starts at 1, which has passed */
    uint64_t done;      /* number of the last job done; done <= submitted */
    pthread_t worker;   /* unless is_manual */
    pthread_cond_t work;
} qi_host_stream;

static qi_host_stream *qi_host_stream_of(uint64_t number)
{
    return (qi_host_stream *)(uintptr_t)number;
}

/*
 * A job of a stream: a copy, a fill, a call of the caller's function, a wait for a point of another
 * stream, or an empty job, whose number serves as a point.
 *
 * Invariant: a job waits only for a point that was submitted before the job itself (check_value).
 * Streams therefore never wait for each other in a cycle.
 */
typedef struct qi_host_job {
    struct qi_host_job *next;
    qi_host_stream *earlier; /* the job waits until `until` of this stream has passed; or NULL */
    uint64_t until;
    void (*function)(void *user); /* NULL: the job calls nothing */
    void *user;
    /* between host addresses; size 0: no bytes move; host_from NULL: fills with `value` */
    quire_copy_job copy;
    uint8_t value;
} qi_host_job;

static void lock_streams(qi_host_device *device)
{
    pthread_mutex_lock(&device->streams.mutex);
}

static void unlock_streams(qi_host_device *device)
{
    pthread_mutex_unlock(&device->streams.mutex);
}

static void signal_progress(qi_host_device *device)
{
    pthread_cond_broadcast(&device->streams.progress);
}

/* Releases the mutex while the thread sleeps. */
static void wait_for_progress(qi_host_device *device)
{
    pthread_cond_wait(&device->streams.progress, &device->streams.mutex);
}

static bool has_passed(const qi_host_stream *stream, uint64_t value)
{
    return stream->done >= value;
}

/* Returns true if the stream was created before a fork of this process. Such a stream has no worker
   here, and its condition may have recorded sleepers of the parent, so it is never destroyed. */
static bool is_inherited(const qi_host_device *device, const qi_host_stream *stream)
{
    return stream->forks != device->streams.forks;
}

/* ---- jobs --------------------------------------------------------------------------------- */

/* Describe a copy or a fill. Page offsets become host addresses: the job keeps no caller pointer
   to a quire_native_page. */
static qi_host_job copy_of(const quire_copy_job *copy)
{
    qi_host_job job = {.copy = *copy};
    if (copy->to)
        job.copy.host_to = qi_host_page_of(copy->to)->bytes + copy->to_offset;
    if (copy->from)
        job.copy.host_from = qi_host_page_of(copy->from)->bytes + copy->from_offset;
    job.copy.to = job.copy.from = NULL; /* valid for the caller's call only; the job runs later */
    return job;
}

static qi_host_job fill_of(const quire_native_page *page, uint64_t offset, uint64_t size,
                           uint8_t value)
{
    return (qi_host_job){
        .copy = {.host_to = qi_host_page_of(page)->bytes + offset, .size = size},
        .value = value,
    };
}

/* Runs a job, without its wait. Requires that no lock is held: the caller's function may block. */
static void run_job(const qi_host_job *job)
{
    if (job->function)
        job->function(job->user);
    if (job->copy.size && job->copy.host_from)
        qi_host_copy_rows(&job->copy);
    else if (job->copy.size)
        memset(job->copy.host_to, job->value, job->copy.size);
}

/* ---- the queue ---------------------------------------------------------------------------- */

/*
 * The functions require the mutex, except submit, which takes it. run_first releases it while the
 * job runs.
 */

static quire_result refuse_inherited(void)
{
    return quire_backend_fail(
        QUIRE_ERROR_NOT_PERMITTED, 0,
        "the stream was created before a fork: its jobs do not run in the child");
}

/* Drops one reference. The last one releases the record. */
static void drop(qi_host_device *device, qi_host_stream *stream)
{
    if (--stream->references)
        return;
    if (!is_inherited(device, stream))
        pthread_cond_destroy(&stream->work);
    qi_host_release(&device->host, stream, 1, sizeof *stream);
}

/* INVALID_ARGUMENT for a point that was not submitted yet: it might never pass, and such waits
   could form a cycle of streams. */
static quire_result check_value(const qi_host_stream *stream, uint64_t value)
{
    if (value <= stream->submitted)
        return QUIRE_SUCCESS;
    return quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, 0,
                              "point %llu of a stream on which only %llu were submitted",
                              (unsigned long long)value, (unsigned long long)stream->submitted);
}

/*
 * Returns true if the stream is stuck: no worker will finish its first job. The stream is manual,
 * so that only a call of quire_host_stream_run advances it, or its job waits for a stream that is
 * stuck itself. The loop ends: streams never wait for each other in a cycle.
 */
static bool waits_for_caller(const qi_host_stream *stream)
{
    while (!stream->is_manual) {
        const qi_host_job *job = stream->first;
        if (!stream->is_waiting || has_passed(job->earlier, job->until))
            return false;
        stream = job->earlier;
    }
    return true;
}

/*
 * Returns true if the first job must still wait. Requires a queued job.
 *
 * A closing stream does not wait for a stuck one: only the caller could advance that stream, and
 * the caller is inside stream_destroy. On a lost device no job waits, because none runs.
 */
static bool must_wait(const qi_host_device *device, const qi_host_stream *stream)
{
    const qi_host_job *job = stream->first;
    if (!job->earlier || qi_host_is_lost(device) || has_passed(job->earlier, job->until))
        return false;
    return !stream->is_closing || !waits_for_caller(job->earlier);
}

/*
 * Runs and removes the first job, which must not have to wait. On a lost device it only removes it.
 * `is_running` keeps other threads from running the job while the mutex is released.
 */
static void run_first(qi_host_device *device, qi_host_stream *stream)
{
    qi_host_job *job = stream->first;
    stream->is_running = true;
    if (!qi_host_is_lost(device)) {
        unlock_streams(device);
        run_job(job);
        lock_streams(device);
    }
    stream->is_running = false;
    stream->first = job->next;
    stream->last = stream->first ? stream->last : NULL;
    stream->done++;
    if (job->earlier)
        drop(device, job->earlier);
    qi_host_release(&device->host, job, 1, sizeof *job);
    signal_progress(device);
}

/*
 * Appends a copy of the job. Takes the mutex. NOT_PERMITTED on a stream of the parent, DEVICE_LOST
 * on a lost device, OUT_OF_HOST_MEMORY; on failure the queue is unchanged.
 */
static quire_result submit(qi_host_device *device, qi_host_stream *stream, const qi_host_job *job)
{
    if (is_inherited(device, stream))
        return refuse_inherited();
    qi_host_job *made = qi_host_allocate(&device->host, 1, sizeof *made);
    if (!made)
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0,
                                  "no host memory for a job of a stream");
    *made = *job;
    /* the device may be lost between this check and the run; run_first checks again */
    lock_streams(device);
    if (qi_host_is_lost(device)) {
        unlock_streams(device);
        qi_host_release(&device->host, made, 1, sizeof *made);
        return qi_host_check_lost(device);
    }
    if (made->earlier)
        made->earlier->references++; /* dropped when the job is done or discarded */
    if (stream->last)
        stream->last->next = made;
    else
        stream->first = made;
    stream->last = made;
    stream->submitted++;
    pthread_cond_signal(&stream->work);
    unlock_streams(device);
    return QUIRE_SUCCESS;
}

/* ---- shared by the streams of a device ---------------------------------------------------- */

/* Waits with a deadline use CLOCK_MONOTONIC, as qi_clock does. */
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

void qi_host_streams_destroy(qi_host_streams *streams)
{
    pthread_cond_destroy(&streams->progress);
    pthread_mutex_destroy(&streams->mutex);
}

/*
 * Initialises the condition again instead of destroying it first: destroying waits for the sleepers
 * that the condition has recorded, and those threads exist in the parent only.
 */
void qi_host_streams_forked(qi_host_streams *streams)
{
    streams->forks++;
    make_condition(&streams->progress); /* takes no resource, so it cannot fail here */
}

/* Marks the device lost and wakes every thread that waits. No further job runs. */
static void lose(qi_host_device *device)
{
    lock_streams(device);
    qi_atomic_store_release_u32(&device->streams.is_lost, 1);
    signal_progress(device);
    unlock_streams(device);
}

/* ---- the worker --------------------------------------------------------------------------- */

typedef struct worker_start {
    qi_host_device *device;
    qi_host_stream *stream;
} worker_start;

/* Requires the mutex; releases it while it sleeps, until the first job can run. */
static void wait_for_turn(qi_host_device *device, qi_host_stream *stream)
{
    if (!must_wait(device, stream))
        return;
    stream->is_waiting = true;
    signal_progress(device); /* threads that await this stream check again whether it is stuck */
    while (must_wait(device, stream))
        wait_for_progress(device);
    stream->is_waiting = false;
}

/* Runs until the stream is closing and its queue is empty. */
static void *work(void *argument)
{
    worker_start *start = argument;
    qi_host_device *device = start->device;
    qi_host_stream *stream = start->stream;
    qi_host_release(&device->host, start, 1, sizeof *start);
    lock_streams(device);
    for (;;) {
        while (!stream->first && !stream->is_closing)
            pthread_cond_wait(&stream->work, &device->streams.mutex);
        if (!stream->first)
            break;
        wait_for_turn(device, stream);
        run_first(device, stream);
    }
    unlock_streams(device);
    return NULL;
}

/* The worker blocks every signal, so that signals reach the program's own threads. */
static int start_thread(qi_host_stream *stream, worker_start *start)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&stream->worker, NULL, work, start);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

/* The worker thread releases `start` as its first action. */
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

/* ---- creating and destroying streams ------------------------------------------------------ */

quire_result qi_host_stream_create(void *state, const void *description, uint64_t *out)
{
    qi_host_device *device = state;
    const qi_host_stream_description *requested = description;
    quire_result result = qi_host_check_lost(device);
    if (result)
        return result;
    qi_host_stream *stream = qi_host_allocate(&device->host, 1, sizeof *stream);
    if (!stream)
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0, "no host memory for a stream");
    stream->is_manual = requested && requested->manual;
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

/* Releases a stream of the parent process: its jobs never run in the child. */
static void discard_inherited(qi_host_device *device, qi_host_stream *stream)
{
    lock_streams(device);
    for (qi_host_job *job = stream->first, *next; job; job = next) {
        next = job->next;
        if (job->earlier)
            drop(device, job->earlier);
        qi_host_release(&device->host, job, 1, sizeof *job);
    }
    drop(device, stream);
    unlock_streams(device);
}

/*
 * Runs the queued jobs first: in the worker, or in the calling thread if the stream is manual.
 * Jobs that wait for a stuck stream run without that wait.
 */
void qi_host_stream_destroy(void *state, uint64_t number)
{
    qi_host_device *device = state;
    qi_host_stream *stream = qi_host_stream_of(number);
    if (is_inherited(device, stream)) {
        discard_inherited(device, stream);
        return;
    }
    lock_streams(device);
    stream->is_closing = true;
    pthread_cond_signal(&stream->work);
    signal_progress(device);
    while (stream->is_manual && (stream->first || stream->is_running))
        if (stream->is_running || must_wait(device, stream))
            wait_for_progress(device);
        else
            run_first(device, stream);
    unlock_streams(device);
    if (!stream->is_manual)
        pthread_join(stream->worker, NULL);
    lock_streams(device);
    drop(device, stream);
    unlock_streams(device);
}

/* ---- points and work ---------------------------------------------------------------------- */

#define SECOND UINT64_C(1000000000)

/*
 * On a manual stream the point is an empty job, so that the caller decides when it passes. With a
 * worker the number of the last submitted job serves as the point.
 */
quire_result qi_host_stream_mark(void *state, uint64_t number, uint64_t *value)
{
    qi_host_device *device = state;
    qi_host_stream *stream = qi_host_stream_of(number);
    quire_result result = stream->is_manual ? submit(device, stream, &(qi_host_job){.next = NULL})
                                            : qi_host_check_lost(device);
    if (result)
        return result;
    lock_streams(device);
    *value = stream->submitted;
    unlock_streams(device);
    return QUIRE_SUCCESS;
}

quire_result qi_host_stream_passed(void *state, uint64_t number, uint64_t *value)
{
    qi_host_device *device = state;
    quire_result result = qi_host_check_lost(device);
    if (result)
        return result;
    lock_streams(device);
    *value = qi_host_stream_of(number)->done;
    unlock_streams(device);
    return QUIRE_SUCCESS;
}

/*
 * Requires the mutex; releases and reacquires it. `deadline` is in nanoseconds of CLOCK_MONOTONIC,
 * UINT64_MAX means none. Returns false once the deadline has passed.
 */
static bool sleep_until(qi_host_device *device, uint64_t deadline)
{
    if (deadline == UINT64_MAX) {
        wait_for_progress(device);
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
    lock_streams(device);
    quire_result result = check_value(stream, value);
    while (!result && !qi_host_is_lost(device) && !has_passed(stream, value) && in_time &&
           !waits_for_caller(stream))
        in_time = sleep_until(device, deadline);
    *passed = has_passed(stream, value);
    bool is_stuck = !*passed && waits_for_caller(stream);
    unlock_streams(device);
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
    lock_streams(device);
    quire_result result = check_value(awaited, value);
    bool passed = has_passed(awaited, value);
    unlock_streams(device);
    if (result || passed)
        return result;
    return submit(device, qi_host_stream_of(later),
                  &(qi_host_job){.earlier = awaited, .until = value});
}

quire_result qi_host_stream_copy(void *state, uint64_t stream, const quire_copy_job *job)
{
    const qi_host_job copy = copy_of(job);
    return submit(state, qi_host_stream_of(stream), &copy);
}

quire_result qi_host_stream_fill(void *state, uint64_t stream, const quire_native_page *page,
                                 uint64_t offset, uint64_t size, uint8_t value)
{
    const qi_host_job fill = fill_of(page, offset, size, value);
    return submit(state, qi_host_stream_of(stream), &fill);
}

/* Submits a call of the caller's function as a job. */
static quire_result submit_call(qi_host_device *device, qi_host_stream *stream,
                                void (*function)(void *user), void *user)
{
    return submit(device, stream, &(qi_host_job){.function = function, .user = user});
}

/*
 * Runs jobs of a manual stream, at most `max`, until the queue is empty or the first job must wait.
 * Returns the number of jobs it ran.
 */
static uint64_t run_jobs(qi_host_device *device, qi_host_stream *stream, uint64_t max)
{
    uint64_t count = 0;
    lock_streams(device);
    while (count < max && !qi_host_is_lost(device)) {
        if (stream->is_running) {
            wait_for_progress(device); /* another thread runs a job of this stream */
            continue;
        }
        if (!stream->first || must_wait(device, stream))
            break;
        run_first(device, stream);
        count++;
    }
    unlock_streams(device);
    return count;
}

/* ---- public calls ------------------------------------------------------------------------- */

quire_result quire_host_stream_create(quire_device *device,
                                      const quire_host_stream_options *options,
                                      quire_stream **stream)
{
    if (stream)
        *stream = NULL;
    if (!stream)
        return qi_fail_null("quire_host_stream_create", "stream");
    const quire_host_stream_options requested = options ? *options : (quire_host_stream_options){0};
    quire_result result = qi_check_unused(&requested, "quire_host_stream_options");
    if (!result && !qi_host_of(device))
        result = QUIRE_ERROR_INVALID_ARGUMENT;
    if (result)
        return result;
    const qi_host_stream_description description = {.manual = requested.manual};
    return quire_stream_wrap(device, &description, requested.name, stream);
}

/* Finds the record of a stream. INVALID_ARGUMENT for a capture stream and for other backends. */
static quire_result find_stream(quire_stream *stream, qi_host_device **device,
                                qi_host_stream **found)
{
    quire_stream_info info;
    quire_result result = quire_stream_get_info(stream, &info);
    if (result)
        return result;
    *device = qi_host_of(info.device);
    if (!*device)
        return QUIRE_ERROR_INVALID_ARGUMENT;
    if (info.capture)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "the stream is held: no work runs on it");
    *found = (qi_host_stream *)(uintptr_t)quire_stream_native(stream);
    return QUIRE_SUCCESS;
}

/* Reports DEVICE_LOST also if the device was lost while jobs ran. */
quire_result quire_host_stream_run(quire_stream *stream, uint64_t most, uint64_t *done)
{
    qi_host_device *device = NULL;
    qi_host_stream *found = NULL;
    if (done)
        *done = 0;
    quire_result result = find_stream(stream, &device, &found);
    if (result)
        return result;
    if (!found->is_manual)
        return qi_fail(QUIRE_ERROR_WRONG_STATE,
                       "the stream is not manual: its worker runs the jobs");
    uint64_t count = run_jobs(device, found, most);
    if (done)
        *done = count;
    return qi_host_check_lost(device);
}

quire_result quire_host_stream_submit(quire_stream *stream, void (*function)(void *user),
                                      void *user)
{
    qi_host_device *device = NULL;
    qi_host_stream *found = NULL;
    if (!function)
        return qi_fail_null("quire_host_stream_submit", "function");
    quire_result result = find_stream(stream, &device, &found);
    return result ? result : submit_call(device, found, function, user);
}

quire_result quire_host_lose(quire_device *device)
{
    qi_host_device *host = qi_host_of(device);
    if (!host)
        return QUIRE_ERROR_INVALID_ARGUMENT;
    lose(host);
    return QUIRE_SUCCESS;
}
