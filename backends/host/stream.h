/*
 * stream.h - streams of the host backend: queues of jobs that run in order. A worker thread runs
 * the jobs of a normal stream; quire_host_stream_run runs those of a manual stream.
 *
 * Each job has a number: its position in the stream. A point is such a number, and has passed when
 * the job is done.
 *
 * Lock: qi_host_streams.mutex of the device protects every record. It is released while a job runs.
 * Threads sleep at two conditions: a worker without a job at its stream's `work`; a thread that
 * waits for a point, worker or caller, at the device's `progress`.
 */
#ifndef QUIRE_BACKENDS_HOST_STREAM_H
#define QUIRE_BACKENDS_HOST_STREAM_H

#include "backends/host/host.h"

/* The description that stream_create takes. NULL means a stream with a worker. */
typedef struct qi_host_stream_description {
    bool manual;
} qi_host_stream_description;

typedef struct qi_host_job qi_host_job; /* job.h */

typedef struct qi_host_stream {
    bool is_manual;
    bool is_closing; /* stream_destroy was called: no job follows */
    bool is_running; /* a thread runs the first job with the mutex released */
    bool is_waiting; /* its worker sleeps until the point that the first job awaits has passed */
    uint32_t references;       /* one of the owner, and one of each job that awaits a point of it */
    uint32_t forks;            /* qi_host_streams.forks at creation */
    qi_host_job *first, *last; /* queued jobs; NULL when none is queued */
    uint64_t submitted;        /* number of the last job submitted; starts at 1, which has passed */
    uint64_t done;             /* number of the last job done; done <= submitted */
    pthread_t worker;          /* unless is_manual */
    pthread_cond_t work;
} qi_host_stream;

static inline qi_host_stream *qi_host_stream_of(uint64_t number)
{
    return (qi_host_stream *)(uintptr_t)number;
}

/* ---- stream.c --------------------------------------------------------------------------- */

QUIRE_MUST_USE quire_result qi_host_streams_init(qi_host_streams *streams);
void qi_host_streams_destroy(qi_host_streams *streams);

/*
 * Corrects the shared state in the child of a fork. Requires the mutex, which the fork took in the
 * parent. Streams of the parent have no worker in the child and can only be destroyed.
 */
void qi_host_streams_forked(qi_host_streams *streams);

/* Marks the device lost and wakes every thread that waits. No further job runs. */
void qi_host_streams_lose(qi_host_device *device);

/* Entries of the backend table, specified in quire/backend.h. */
quire_result qi_host_stream_create(void *state, const void *description, uint64_t *stream);
void qi_host_stream_destroy(void *state, uint64_t stream);

/* ---- stream_point.c --------------------------------------------------------------------- */

/* Entries of the backend table. */
quire_result qi_host_stream_mark(void *state, uint64_t stream, uint64_t *value);
quire_result qi_host_stream_passed(void *state, uint64_t stream, uint64_t *value);
quire_result qi_host_stream_await(void *state, uint64_t stream, uint64_t value,
                                  uint64_t nanoseconds, bool *has_passed);
quire_result qi_host_stream_order(void *state, uint64_t later, uint64_t earlier, uint64_t value);
quire_result qi_host_stream_copy(void *state, uint64_t stream, const quire_copy_job *job);
quire_result qi_host_stream_fill(void *state, uint64_t stream, const quire_native_page *page,
                                 uint64_t offset, uint64_t size, uint8_t value);

/* Submits a call of the caller's function as a job. */
QUIRE_MUST_USE quire_result qi_host_stream_submit_call(qi_host_device *device,
                                                       qi_host_stream *stream,
                                                       void (*function)(void *user), void *user);

/*
 * Runs jobs of a manual stream, at most `max`, until the queue is empty or the first job must wait.
 * Returns the number of jobs it ran.
 */
uint64_t qi_host_stream_run(qi_host_device *device, qi_host_stream *stream, uint64_t max);

#endif
