/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * stream.h - streams of a CUDA device: the record of a CUstream, which is the caller's or created
 * by the backend.
 *
 * A point is an event, recorded in the stream: a mark. Marks not known to have passed stand in a
 * list in the order of their values. A mark that has passed is reused for a further point.
 *
 * CU_STREAM_PER_THREAD names another stream in each thread. A record of it is the default stream of
 * the thread that wrapped it. Calls of other threads use the legacy default stream instead: its
 * work comes after all earlier work of every thread's default stream, and before all later work.
 *
 * Lock: qi_cuda_stream.mutex protects the fields below it. No lock of quire is taken while it is
 * held. It is released while a thread waits for an event; `waiters` keeps the mark until then.
 */
#ifndef QUIRE_BACKENDS_CUDA_STREAM_H
#define QUIRE_BACKENDS_CUDA_STREAM_H

#include "backends/cuda/cuda.h"

/* The description that stream_create takes. NULL creates a stream. */
typedef struct qi_cuda_stream_description {
    qi_cu_stream stream; /* NULL: the context's default stream */
} qi_cuda_stream_description;

typedef struct qi_cuda_mark {
    struct qi_cuda_mark *next;
    qi_cu_event event;
    uint64_t value;
    uint32_t waiters; /* threads that wait for the event: it must not be recorded again */
    bool is_retired;  /* has passed and left the list; becomes spare when it has no waiters */
} qi_cuda_mark;

typedef struct qi_cuda_stream {
    struct qi_cuda_stream *next; /* in qi_cuda.deferred_streams */
    struct qi_cuda_stream *next_known, *previous_known;
    const qi_cuda *cuda;
    qi_cu_stream native;
    uint64_t owner; /* the thread whose default stream it is; 0: the stream of all threads */
    bool is_own;    /* created by the backend, which destroys it */
    pthread_mutex_t mutex;
    qi_cuda_mark *first, *last; /* not known to have passed: the values passed + 1 to marked */
    qi_cuda_mark *spare;        /* for further points */
    uint64_t marked, passed;    /* passed <= marked */
} qi_cuda_stream;

static inline qi_cuda_stream *qi_cuda_stream_of(uint64_t stream)
{
    return (qi_cuda_stream *)(uintptr_t)stream;
}

/* Entries of the backend table, specified in quire/backend.h. */
quire_result qi_cuda_stream_create(void *state, const void *description, uint64_t *stream);
void qi_cuda_stream_destroy(void *state, uint64_t stream);
quire_result qi_cuda_stream_mark(void *state, uint64_t stream, uint64_t *value);
quire_result qi_cuda_stream_passed(void *state, uint64_t stream, uint64_t *value);
quire_result qi_cuda_stream_await(void *state, uint64_t stream, uint64_t value,
                                  uint64_t nanoseconds, bool *has_passed);
quire_result qi_cuda_stream_order(void *state, uint64_t later, uint64_t earlier, uint64_t value);

/* The stream that a call of this thread passes to the driver. */
qi_cu_stream qi_cuda_stream_handle(const qi_cuda_stream *stream);

/* NOT_PERMITTED while the stream captures a graph. In the context. */
QUIRE_MUST_USE quire_result qi_cuda_check_capture(const qi_cuda *cuda,
                                                  const qi_cuda_stream *stream);

/* Retries the deferred streams. With `is_last` it releases the records of those that still fail. */
void qi_cuda_retry_deferred_streams(qi_cuda *cuda, bool is_last);

/* ---- waiting before a release ------------------------------------------------------------- */

/* Only with quire_cuda_settings.wait_before_release. In the context. */

/* Waits for work that may use a page. Returns false if that is not possible now. */
bool qi_cuda_await_work(const qi_cuda *cuda, const qi_cuda_page *page);

/* Waits for the work of the device's context. Returns false as above. */
bool qi_cuda_await_context(const qi_cuda *cuda);

#endif
