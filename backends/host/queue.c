/*
 * queue.c - the job queue of a host stream. See queue.h for the lock and the invariant.
 */
#include "backends/host/queue.h"

#include "src/base/result.h"

static quire_result refuse_inherited(void)
{
    return quire_backend_fail(
        QUIRE_ERROR_NOT_PERMITTED, 0,
        "the stream was created before a fork: its jobs do not run in the child");
}

void qi_host_stream_drop(qi_host_device *device, qi_host_stream *stream)
{
    if (--stream->references)
        return;
    if (!qi_host_is_inherited(device, stream))
        pthread_cond_destroy(&stream->work);
    qi_host_release(&device->host, stream, 1, sizeof *stream);
}

/* Waits for points that are not submitted yet could also form a cycle of streams. */
quire_result qi_host_check_value(const qi_host_stream *stream, uint64_t value)
{
    if (value <= stream->submitted)
        return QUIRE_SUCCESS;
    return quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, 0,
                              "point %llu of a stream on which only %llu were submitted",
                              (unsigned long long)value, (unsigned long long)stream->submitted);
}

/* The loop ends: streams never wait for each other in a cycle (qi_host_check_value). */
bool qi_host_is_stuck(const qi_host_stream *stream)
{
    while (!stream->is_manual) {
        const qi_host_job *job = stream->first;
        if (!stream->is_waiting || qi_host_has_passed(job->earlier, job->until))
            return false;
        stream = job->earlier;
    }
    return true;
}

/*
 * A closing stream does not wait for a stuck one: only the caller could advance that stream, and
 * the caller is inside stream_destroy. On a lost device no job waits, because none runs.
 */
bool qi_host_must_wait(const qi_host_device *device, const qi_host_stream *stream)
{
    const qi_host_job *job = stream->first;
    if (!job->earlier || qi_host_is_lost(device) || qi_host_has_passed(job->earlier, job->until))
        return false;
    return !stream->is_closing || !qi_host_is_stuck(job->earlier);
}

/* `is_running` keeps other threads from running the job while the mutex is released. */
void qi_host_run_first(qi_host_device *device, qi_host_stream *stream)
{
    qi_host_job *job = stream->first;
    stream->is_running = true;
    if (!qi_host_is_lost(device)) {
        qi_host_unlock_streams(device);
        qi_host_job_run(job);
        qi_host_lock_streams(device);
    }
    stream->is_running = false;
    stream->first = job->next;
    stream->last = stream->first ? stream->last : NULL;
    stream->done++;
    if (job->earlier)
        qi_host_stream_drop(device, job->earlier);
    qi_host_release(&device->host, job, 1, sizeof *job);
    qi_host_signal_progress(device);
}

quire_result qi_host_submit(qi_host_device *device, qi_host_stream *stream, const qi_host_job *job)
{
    if (qi_host_is_inherited(device, stream))
        return refuse_inherited();
    qi_host_job *made = qi_host_allocate(&device->host, 1, sizeof *made);
    if (!made)
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0,
                                  "no host memory for a job of a stream");
    *made = *job;
    /* the device may be lost between this check and the run; run_first checks again */
    qi_host_lock_streams(device);
    if (qi_host_is_lost(device)) {
        qi_host_unlock_streams(device);
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
    qi_host_unlock_streams(device);
    return QUIRE_SUCCESS;
}
