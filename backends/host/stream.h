/*
 * stream.h - streams of the host backend: jobs that are done in order, by a worker thread of the
 * stream or, where it is manual, by whoever calls quire_host_stream_run.
 *
 * A job has the number of its place in the stream; a point is such a number, and has passed when
 * the job is done. All records of a device are under its stream mutex, which is not held while a
 * job's bytes move. Workers sleep at their stream's `work` until there is a job; whoever waits for
 * a point, a worker or a caller, sleeps at the device's `progress`.
 */
#ifndef QUIRE_BACKENDS_HOST_STREAM_H
#define QUIRE_BACKENDS_HOST_STREAM_H

#include "backends/host/host.h"

/* What stream_create is given; NULL: a stream with a worker. */
typedef struct qi_host_stream_description {
    bool manual;
} qi_host_stream_description;

typedef struct qi_host_job qi_host_job;

typedef struct qi_host_stream {
    bool is_manual;
    bool has_ended;      /* no job comes any more */
    bool is_running;     /* somebody does the first job, or waits for what it waits for */
    bool is_waiting;     /* its worker sleeps until the first job's point has passed */
    uint32_t references; /* the owner's, and one of each job that waits for a point of it */
    uint32_t forks;      /* of the device when it was made */
    qi_host_job *first, *last;
    uint64_t submitted; /* the number of the last job; it begins with 1, which has passed */
    uint64_t done;      /* of the last one that is done: done <= submitted */
    pthread_t worker;
    pthread_cond_t work;
} qi_host_stream;

QUIRE_MUST_USE quire_result qi_host_streams_init(qi_host_streams *streams);
void qi_host_streams_finish(qi_host_streams *streams);

/* In the child of a fork: nobody sleeps there, and streams there are have no
   worker: what is left of them are records. */
void qi_host_streams_forked(qi_host_streams *streams);

/* Entries of the backend table, as quire/backend.h says. */
quire_result qi_host_stream_make(void *state, const void *description, uint64_t *stream);
void qi_host_stream_end(void *state, uint64_t stream);
quire_result qi_host_stream_mark(void *state, uint64_t stream, uint64_t *value);
quire_result qi_host_stream_passed(void *state, uint64_t stream, uint64_t *value);
quire_result qi_host_stream_await(void *state, uint64_t stream, uint64_t value,
                                  uint64_t nanoseconds, bool *has_passed);
quire_result qi_host_stream_order(void *state, uint64_t later, uint64_t earlier, uint64_t value);
quire_result qi_host_stream_copy(void *state, uint64_t stream, const quire_copy_job *job);
quire_result qi_host_stream_fill(void *state, uint64_t stream, const quire_native_page *page,
                                 uint64_t offset, uint64_t size, uint8_t value);

/* The caller's function as a job. */
QUIRE_MUST_USE quire_result qi_host_stream_call(qi_host_device *device, qi_host_stream *stream,
                                                void (*function)(void *user), void *user);

/* Nothing is done any more, and everybody who waits is told. */
void qi_host_streams_lose(qi_host_device *device);

/* Does jobs of a manual stream, `most` at most, until one has to wait; returns how many. */
uint64_t qi_host_stream_run(qi_host_device *device, qi_host_stream *stream, uint64_t most);

#endif
