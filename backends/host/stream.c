/*
 * stream.c - creates and destroys host streams and their worker threads, and owns the state that
 * the streams of a device share.
 */
#include <signal.h>
#include <string.h>

#include "backends/host/queue.h"
#include "src/base/result.h"

/* ---- shared by the streams of a device -------------------------------------------------- */

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

void qi_host_streams_lose(qi_host_device *device)
{
    qi_host_lock_streams(device);
    qi_atomic_store_release_u32(&device->streams.is_lost, 1);
    qi_host_signal_progress(device);
    qi_host_unlock_streams(device);
}

/* ---- the worker ------------------------------------------------------------------------- */

typedef struct worker_start {
    qi_host_device *device;
    qi_host_stream *stream;
} worker_start;

/* Requires the mutex; releases it while it sleeps, until the first job can run. */
static void wait_for_turn(qi_host_device *device, qi_host_stream *stream)
{
    if (!qi_host_must_wait(device, stream))
        return;
    stream->is_waiting = true;
    qi_host_signal_progress(
        device); /* threads that await this stream check again whether it is stuck */
    while (qi_host_must_wait(device, stream))
        qi_host_wait_for_progress(device);
    stream->is_waiting = false;
}

/* Runs until the stream is closing and its queue is empty. */
static void *work(void *argument)
{
    worker_start *start = argument;
    qi_host_device *device = start->device;
    qi_host_stream *stream = start->stream;
    qi_host_release(&device->host, start, 1, sizeof *start);
    qi_host_lock_streams(device);
    for (;;) {
        while (!stream->first && !stream->is_closing)
            pthread_cond_wait(&stream->work, &device->streams.mutex);
        if (!stream->first)
            break;
        wait_for_turn(device, stream);
        qi_host_run_first(device, stream);
    }
    qi_host_unlock_streams(device);
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

/* ---- creating and destroying ------------------------------------------------------------ */

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
    qi_host_lock_streams(device);
    for (qi_host_job *job = stream->first, *next; job; job = next) {
        next = job->next;
        if (job->earlier)
            qi_host_stream_drop(device, job->earlier);
        qi_host_release(&device->host, job, 1, sizeof *job);
    }
    qi_host_stream_drop(device, stream);
    qi_host_unlock_streams(device);
}

/*
 * Runs the queued jobs first: in the worker, or in the calling thread where the stream is manual.
 * Jobs that wait for a stuck stream run without that wait.
 */
void qi_host_stream_destroy(void *state, uint64_t number)
{
    qi_host_device *device = state;
    qi_host_stream *stream = qi_host_stream_of(number);
    if (qi_host_is_inherited(device, stream)) {
        discard_inherited(device, stream);
        return;
    }
    qi_host_lock_streams(device);
    stream->is_closing = true;
    pthread_cond_signal(&stream->work);
    qi_host_signal_progress(device);
    while (stream->is_manual && (stream->first || stream->is_running))
        if (stream->is_running || qi_host_must_wait(device, stream))
            qi_host_wait_for_progress(device);
        else
            qi_host_run_first(device, stream);
    qi_host_unlock_streams(device);
    if (!stream->is_manual)
        pthread_join(stream->worker, NULL);
    qi_host_lock_streams(device);
    qi_host_stream_drop(device, stream);
    qi_host_unlock_streams(device);
}
