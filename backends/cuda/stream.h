/*
 * stream.h - streams of a CUDA device: what the backend knows of a CUstream, the caller's or one of
 * its own.
 *
 * A point is an event, recorded in the stream. The events that are not known to have passed stand
 * in a list in the order of their values; one that has passed goes back to those for further marks.
 */
#ifndef QUIRE_BACKENDS_CUDA_STREAM_H
#define QUIRE_BACKENDS_CUDA_STREAM_H

#include "backends/cuda/cuda.h"

/* What stream_create is given; NULL: make one. */
typedef struct qi_cuda_stream_description {
    qi_cu_stream stream; /* NULL: the context's default stream */
} qi_cuda_stream_description;

typedef struct qi_cuda_mark {
    struct qi_cuda_mark *next;
    qi_cu_event event;
    uint64_t value;
    uint32_t waiters; /* threads that wait for the event, which is not used anew meanwhile */
    bool is_retired;  /* known to have passed; no longer in the list */
} qi_cuda_mark;

typedef struct qi_cuda_stream {
    struct qi_cuda_stream *next; /* of those that have ended and could not be taken down yet */
    qi_cu_stream native;
    bool is_own;                /* and to be destroyed */
    pthread_mutex_t mutex;      /* of the following; no lock of quire is held under it */
    qi_cuda_mark *first, *last; /* not known to have passed: values passed + 1 to marked */
    qi_cuda_mark *spare;        /* for further marks */
    uint64_t marked, passed;    /* passed <= marked */
} qi_cuda_stream;

static inline qi_cuda_stream *qi_cuda_stream_of(uint64_t stream)
{
    return (qi_cuda_stream *)(uintptr_t)stream;
}

/*
 * qi_cuda_enter for calls on streams and events: they are also permitted while a thread captures
 * a graph, which they do not touch.
 */
typedef struct qi_cuda_entered {
    qi_cu_capture_mode mode; /* the thread's */
    bool is_changed;
} qi_cuda_entered;

QUIRE_MUST_USE quire_result qi_cuda_stream_enter(const qi_cuda *cuda, qi_cuda_entered *entered);
void qi_cuda_stream_leave(const qi_cuda *cuda, qi_cuda_entered *entered);

/* NOT_PERMITTED while the stream captures a graph. In the context. */
QUIRE_MUST_USE quire_result qi_cuda_check_capture(const qi_cuda *cuda,
                                                  const qi_cuda_stream *stream);

#endif
