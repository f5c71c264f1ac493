/*
 * stream.h - a stream: what is known of its points without asking the backend, and who waits.
 *
 * Its two values only grow, so that any thread may look at them at any time; what is asked of the
 * backend raises them. A stream whose device is lost, and a held one that has ended, have passed
 * everything.
 */
#ifndef QUIRE_SRC_CORE_DEFERRED_STREAM_H
#define QUIRE_SRC_CORE_DEFERRED_STREAM_H

#include "quire/stream.h"
#include "src/core/device/device.h"

/* The value that has passed where nothing is waited for any more. */
#define QI_ALL_PASSED UINT64_MAX

/* Who sets the values of a stream; known once a mark was asked for. */
typedef enum qi_marking { QI_MARKING_UNKNOWN = 0, QI_MARKED_BY_BACKEND, QI_ANNOUNCED } qi_marking;

struct quire_stream {
    quire_device *device;
    quire_stream *next_of_device;
    char *name;
    uint64_t native;
    bool capture;
    qi_atomic_u32 marking; /* a qi_marking */
    qi_atomic_u64 marked;  /* the highest value known */
    qi_atomic_u64 passed;  /* the highest known to have passed */
    /* waits that name it, of allocations that were freed and of live ones that were used on it; and
       one more until it is destroyed: with the last the record goes */
    qi_atomic_u64 waits;
    qi_lock lock;     /* of the following */
    uint32_t lookers; /* threads that call the backend about it for a lane */
    const void
        *destroying_thread; /* the thread that destroys it: see fork.h; under the device's lock */
    bool is_over; /* made before the fork of this process: nothing runs on it, all has passed */
    struct qi_stream_queue *queues; /* what waits, by shard */
};

/* Whether a value is known to have passed. */
static inline bool qi_stream_has_passed(const quire_stream *stream, uint64_t value)
{
    return qi_atomic_load_acquire_u64(&stream->passed) >= value;
}

/* Whether the work before a value may be submitted later: its owner has not announced it. */
static inline bool qi_stream_is_ahead(const quire_stream *stream, uint64_t value)
{
    return !stream->capture && value > qi_atomic_load_acquire_u64(&stream->marked);
}

/* A value behind all that was submitted so far; 0 on failure. As quire_stream_mark. */
QUIRE_MUST_USE quire_result qi_stream_mark(quire_stream *stream, uint64_t *value);

/* Whether it can be marked or was announced to; asks the backend once. UNSUPPORTED if not.
   Of a lost device nothing is to be marked. */
QUIRE_MUST_USE quire_result qi_stream_check_marks(quire_stream *stream);

/* A value above the last mark: see qi_stream_check_point. */
QUIRE_MUST_USE quire_result qi_stream_check_unmarked_point(quire_stream *stream, uint64_t value);

/*
 * Whether a caller may name a point. Where the backend marks the stream that is a value up to the
 * last mark, so that a point lies behind work that was submitted, and no streams wait for each
 * other in a circle. Where the stream's owner signals its values it is any value. May ask the
 * backend once, who marks. Fails with INVALID_ARGUMENT, and as the backend's mark does.
 */
QUIRE_MUST_USE static inline quire_result qi_stream_check_point(const quire_point *point)
{
    quire_stream *stream = point->stream;
    if (!stream || point->value <= qi_atomic_load_acquire_u64(&stream->marked))
        return QUIRE_SUCCESS;
    return qi_stream_check_unmarked_point(stream, point->value);
}

/* Asks the backend how far it is. Of a lost device everything has passed. */
QUIRE_MUST_USE quire_result qi_stream_query(quire_stream *stream);

/* As quire_point_await. */
QUIRE_MUST_USE quire_result qi_stream_await(quire_stream *stream, uint64_t value,
                                            uint64_t nanoseconds);

/* Later work of a stream comes after another's value. As quire_stream_wait. */
QUIRE_MUST_USE quire_result qi_stream_order(quire_stream *later, quire_stream *earlier,
                                            uint64_t value);

/*
 * With the lock of a shard that has a lane of it, which is given up between the two: a call of the
 * backend for what waits. Who ends the stream sleeps until no such calls go on.
 */
void qi_stream_begin_look(quire_stream *stream);
void qi_stream_end_look(quire_stream *stream);

/* cut.c: NOT_PERMITTED, of a stream that is over. */
quire_result qi_stream_refuse_after_fork(const quire_stream *stream);

/* One wait more that names it, and one less: with the last one the record goes. */
void qi_stream_add_wait(quire_stream *stream);
void qi_stream_drop_wait(quire_stream *stream);

#endif
