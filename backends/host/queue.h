/*
 * queue.h - the job queue of a host stream: submitting a job, deciding whether the first job must
 * wait, and running it.
 *
 * Lock: qi_host_streams.mutex protects all queues of a device. Every function below requires it,
 * except qi_host_submit and qi_host_lock_streams. qi_host_run_first releases it while the job runs.
 *
 * Invariant: a job waits only for a point that was submitted before the job itself
 * (qi_host_check_value). Streams therefore never wait for each other in a cycle.
 */
#ifndef QUIRE_BACKENDS_HOST_QUEUE_H
#define QUIRE_BACKENDS_HOST_QUEUE_H

#include "backends/host/job.h"

static inline void qi_host_lock_streams(qi_host_device *device)
{
    pthread_mutex_lock(&device->streams.mutex);
}

static inline void qi_host_unlock_streams(qi_host_device *device)
{
    pthread_mutex_unlock(&device->streams.mutex);
}

static inline void qi_host_signal_progress(qi_host_device *device)
{
    pthread_cond_broadcast(&device->streams.progress);
}

/* Releases the mutex while the thread sleeps. */
static inline void qi_host_wait_for_progress(qi_host_device *device)
{
    pthread_cond_wait(&device->streams.progress, &device->streams.mutex);
}

static inline bool qi_host_has_passed(const qi_host_stream *stream, uint64_t value)
{
    return stream->done >= value;
}

/* Returns true if the stream was created before a fork of this process. Such a stream has no worker
   here, and its condition may have recorded sleepers of the parent, so it is never destroyed. */
static inline bool qi_host_is_inherited(const qi_host_device *device, const qi_host_stream *stream)
{
    return stream->forks != device->streams.forks;
}

/* INVALID_ARGUMENT for a point that was not submitted yet: it might never pass. */
QUIRE_MUST_USE quire_result qi_host_check_value(const qi_host_stream *stream, uint64_t value);

/*
 * Returns true if no worker will finish the first job of the stream: the stream is manual, so only
 * a call of quire_host_stream_run advances it, or its job waits for a stream that is stuck itself.
 */
bool qi_host_is_stuck(const qi_host_stream *stream);

/* Returns true if the first job must still wait. Requires a queued job. */
bool qi_host_must_wait(const qi_host_device *device, const qi_host_stream *stream);

/* Runs and removes the first job, which must not have to wait. On a lost device it only removes it.
 */
void qi_host_run_first(qi_host_device *device, qi_host_stream *stream);

/* Drops one reference. The last one releases the record. */
void qi_host_stream_drop(qi_host_device *device, qi_host_stream *stream);

/*
 * Appends a copy of the job. Takes the mutex. NOT_PERMITTED on a stream of the parent, DEVICE_LOST
 * on a lost device, OUT_OF_HOST_MEMORY; on failure the queue is unchanged.
 */
QUIRE_MUST_USE quire_result qi_host_submit(qi_host_device *device, qi_host_stream *stream,
                                           const qi_host_job *job);

#endif
