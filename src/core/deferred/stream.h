/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * stream.h - a stream as two values that only grow: `marked`, the highest value known to be set,
 * and `passed`, the highest value known to have passed.
 *
 * Both are atomic, and answers of the backend raise them. All points of a stream count as passed if
 * its device is lost, or if it is a capture stream that was destroyed.
 *
 * The stream's lock protects callers and queues. Functions that call the backend require that the
 * caller holds no lock; the others may be called under any lock. Invariant: `waits` is 1 + the
 * number of qi_wait records that name the stream, until it is destroyed.
 */
#ifndef QUIRE_SRC_CORE_DEFERRED_STREAM_H
#define QUIRE_SRC_CORE_DEFERRED_STREAM_H

#include "quire/stream.h"
#include "src/core/device/device.h"

/* The value of `passed` when nothing of the stream is waited for any more. */
#define QI_ALL_PASSED UINT64_MAX

/* Who sets the values of a stream. Known after the first request for a mark. */
typedef enum qi_marking { QI_MARKING_UNKNOWN = 0, QI_MARKED_BY_BACKEND, QI_ANNOUNCED } qi_marking;

struct quire_stream {
    quire_device *device;
    quire_stream *next_of_device;
    char *name;
    uint64_t native;
    bool capture;          /* nothing runs on it, and no point passes before it is destroyed */
    qi_atomic_u32 marking; /* a qi_marking */
    qi_atomic_u64 marked;
    qi_atomic_u64 passed;
    qi_atomic_u64 waits; /* the record is released with the last one */
    qi_lock lock;
    uint32_t callers; /* threads that call the backend for a queue of the stream */
    /* the thread that destroys it (memory/fork.h); protected by the device's lock */
    const void *destroying_thread;
    bool is_over; /* created before the fork of this process: nothing runs on it any more */
    struct qi_stream_queue *queues; /* its queues, one for each shard with deferred frees */
};

/* Whether a value is known to have passed. */
static inline bool qi_stream_has_passed(const quire_stream *stream, uint64_t value)
{
    return qi_atomic_load_acquire_u64(&stream->passed) >= value;
}

/* Whether the owner of the stream may still submit the work before a value. */
static inline bool qi_stream_is_ahead(const quire_stream *stream, uint64_t value)
{
    return !stream->capture && value > qi_atomic_load_acquire_u64(&stream->marked);
}

/* How many deferred frees and recorded uses name the stream. */
static inline uint64_t qi_stream_waits(const quire_stream *stream)
{
    return qi_atomic_load_acquire_u64(&stream->waits) - 1;
}

/*
 * Sets *value to a value after all work submitted so far, or to 0 on failure. If the owner
 * signals the values it is the last announced one. Fails with UNSUPPORTED if none was announced,
 * and as the backend does.
 */
QUIRE_MUST_USE quire_result qi_stream_mark(quire_stream *stream, uint64_t *value);

/* As quire_stream_announce, for arguments that are checked. */
QUIRE_MUST_USE quire_result qi_stream_announce(quire_stream *stream, uint64_t value);

/*
 * Whether frees can be deferred on the stream: the backend marks it, or a value was announced.
 * Calls the backend at most once. Succeeds on a lost device, which needs no marks. Fails with
 * UNSUPPORTED, and as the backend does.
 */
QUIRE_MUST_USE quire_result qi_stream_check_marks(quire_stream *stream);

/* The part of qi_stream_check_point for a value above the last mark. */
QUIRE_MUST_USE quire_result qi_stream_check_unmarked_point(quire_stream *stream, uint64_t value);

/*
 * Whether a caller may name a point. If the backend marks the stream, the value must not exceed
 * the last mark: every point then follows work that was submitted, and no streams can wait for each
 * other in a circle. If the owner signals the values, any value is allowed. Calls the backend at
 * most once. Fails with INVALID_ARGUMENT, and as the backend's mark does.
 */
QUIRE_MUST_USE static inline quire_result qi_stream_check_point(const quire_point *point)
{
    quire_stream *stream = point->stream;
    if (!stream || point->value <= qi_atomic_load_acquire_u64(&stream->marked))
        return QUIRE_SUCCESS;
    return qi_stream_check_unmarked_point(stream, point->value);
}

/* Queries the backend for the value that has passed, and raises `passed`. */
QUIRE_MUST_USE quire_result qi_stream_query(quire_stream *stream);

/*
 * For a stream that is destroyed. Returns true if the work submitted so far is done within
 * `nanoseconds`, or is run by the destruction of the native stream.
 */
bool qi_stream_finish(quire_stream *stream, uint64_t nanoseconds);

/* As quire_point_await: waits up to `nanoseconds`. Fails with BUSY. */
QUIRE_MUST_USE quire_result qi_stream_await(quire_stream *stream, uint64_t value,
                                            uint64_t nanoseconds);

/* As quire_stream_wait: work submitted to `later` from now on follows a value of `earlier`. */
QUIRE_MUST_USE quire_result qi_stream_order(quire_stream *later, quire_stream *earlier,
                                            uint64_t value);

/*
 * Bracket a backend call for a queue of the stream. Both require the lock of the queue's shard,
 * which the caller releases between them. The thread that destroys the stream waits for the end.
 */
void qi_stream_begin_query(quire_stream *stream);
void qi_stream_end_query(quire_stream *stream);

/* Count one more and one fewer qi_wait. The last one releases the record of a destroyed stream. */
void qi_stream_add_wait(quire_stream *stream);
void qi_stream_drop_wait(quire_stream *stream);

/* Returns NOT_PERMITTED, for a stream that was created before the fork of this process. */
quire_result qi_stream_refuse_after_fork(const quire_stream *stream);

/* ---- creation and destruction ------------------------------------------------------------- */

/* No function requires a lock. */

/*
 * Creates a stream of the backend (`description` NULL) or wraps one that the application owns, or
 * creates a capture stream. `name` may be NULL. Fails with NOT_PERMITTED, UNSUPPORTED,
 * INVALID_ARGUMENT (name too long), OUT_OF_HOST_MEMORY, and as the backend does.
 */
QUIRE_MUST_USE quire_result qi_stream_create(quire_device *device, const void *description,
                                             const char *name, bool capture, quire_stream **out);

/*
 * Releases the deferred frees whose points pass within a second, then destroys the stream. Fails
 * with BUSY, and changes nothing, if deferred frees or recorded uses remain. Otherwise *destroyed
 * becomes NULL.
 */
QUIRE_MUST_USE quire_result qi_stream_destroy(quire_stream **destroyed);

#endif
