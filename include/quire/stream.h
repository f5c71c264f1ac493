/*
 * quire/stream.h - streams of device work, points in them, and memory that is used in their order.
 *
 * A *stream* is a sequence of work on a device: a CUstream, a Vulkan timeline semaphore, a stream
 * of a plugin, a worker of the host backend. A *point* is a place in that sequence; it has passed
 * once all work before it is done. What is freed after a point is handed out again when the point
 * has passed, and earlier to whoever allocates on the same stream, for whose work comes later
 * anyway. Nothing runs in the background and nothing spins: points are looked at by quire_collect,
 * and before a page is made.
 *
 * A *held* stream has no device behind it, and none of its points passes before it is destroyed:
 * what a captured graph uses is allocated and freed on one, so that it is used again within the
 * graph, and by nobody else while the graph lives.
 */
#ifndef QUIRE_STREAM_H
#define QUIRE_STREAM_H

#include "quire/allocation.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quire_stream quire_stream;

/*
 * A place in a stream. {0} has passed. On a stream that quire or its backend marks, a value is one
 * up to the last mark: every call that takes a point refuses a later value with INVALID_ARGUMENT.
 * On a stream whose owner signals its values, a point may name any value, also one that was not
 * announced yet; whether it ever passes is up to the owner.
 */
typedef struct quire_point {
    quire_stream *stream;
    uint64_t value; /* higher is later; of a stream on a timeline semaphore its values */
} quire_point;

/* As long as it takes. */
#define QUIRE_FOREVER UINT64_MAX

typedef struct quire_stream_options {
    const char *name;   /* copied; NULL: "stream" */
    bool capture;       /* see above */
    uint64_t unused[4]; /* must be zero */
} quire_stream_options;

typedef struct quire_stream_info {
    const char *name; /* lives as long as the stream */
    quire_device *device;
    bool capture;
    uint64_t native;   /* the backend's own number of it (quire_cuda_stream_get and
                         quire_vulkan_stream_get tell its handles); 0 of a held one */
    uint64_t marked;   /* the last point known */
    uint64_t passed;   /* the last point known to have passed; nobody is asked */
    uint64_t deferred; /* allocations of all memories that wait for its points, or will once they
                         are freed (quire_record_use) */
    uint64_t unused[4];
} quire_stream_info;

/*
 * Makes a stream of the device's backend, or a held one. Streams that exist are taken by the
 * backends' own calls: quire_cuda_stream_wrap, quire_vulkan_stream_wrap, quire_plugin_stream_wrap.
 * NULL options mean {0}. Errors: INVALID_ARGUMENT, UNSUPPORTED (the backend has no streams),
 * OUT_OF_HOST_MEMORY, and what the backend answers.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_stream_create(quire_device *device,
                                                          const quire_stream_options *options,
                                                          quire_stream **stream);

/*
 * Ends a stream; one that was wrapped stays its owner's. What waits for its points is freed; those
 * that have not passed are waited for, a second at most, and then it is BUSY, as while live
 * allocations were used on it (quire_record_use): the error has their number, and *stream stays
 * valid. On a held stream
 * everything passes at once, and live allocations that were used on it are live without it; its
 * device stays until they are freed. It is a call on every memory something of which ever waited
 * for the stream, and the stream's points must not be used any more.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_stream_destroy(quire_stream **stream);

QUIRE_API QUIRE_MUST_USE quire_result quire_stream_get_info(quire_stream *stream,
                                                            quire_stream_info *info);

/*
 * A point behind all that was submitted to the stream so far. Errors: INVALID_ARGUMENT,
 * UNSUPPORTED (the stream's owner signals its values: quire_stream_announce), and what the backend
 * answers. A point of a held stream can be had and never passes.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_stream_mark(quire_stream *stream, quire_point *point);

/*
 * Tells that submitted work will signal this value, for a stream on a timeline semaphore that its
 * owner signals: quire_stream_mark, and what is freed on the stream, take the highest value
 * announced. A lower one changes nothing. Errors: INVALID_ARGUMENT, UNSUPPORTED (the stream marks
 * its points itself).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_stream_announce(quire_stream *stream, uint64_t value);

/*
 * Later work of the stream comes after the point, which is of the same device; the host does not
 * wait. {0} and what has passed cost nothing. Errors: INVALID_ARGUMENT (also a point that was never
 * marked), UNSUPPORTED (the backend cannot order), FOREIGN_HANDLE (another device's point) and what
 * the backend answers.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_stream_wait(quire_stream *stream,
                                                        const quire_point *point);

/* Whether a point has passed. Asks the backend. Errors: INVALID_ARGUMENT (also a point that was
   never marked), DEVICE_LOST, ... */
QUIRE_API QUIRE_MUST_USE quire_result quire_point_has_passed(const quire_point *point,
                                                             bool *has_passed);

/*
 * Sleeps until a point has passed, `nanoseconds` at most (0: does not sleep, QUIRE_FOREVER: as long
 * as it takes, which is for ever where a stream's owner never signals the value).
 * Errors: INVALID_ARGUMENT (also a point that was never marked), BUSY (it has not passed in that
 * time; on a held stream at once), and what the backend answers.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_point_await(const quire_point *point,
                                                        uint64_t nanoseconds);

/* ---- memory in the order of streams --------------------------------------------------------- */

/*
 * Frees an allocation with its object once the point has passed. Its handle is stale at once. Until
 * then the range counts as live, and in quire_memory_stats.deferred_bytes; it can be allocated on
 * the point's stream meanwhile, when it is a raw range. The point may be of another device. Errors
 * as quire_free (those of quire_record_use are waited for too); INVALID_ARGUMENT (point NULL, or
 * never marked), OUT_OF_HOST_MEMORY, and what the backend answers to the stream's first mark.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_free_after(quire_memory *memory,
                                                       quire_allocation allocation,
                                                       const quire_point *point);

/*
 * Frees an allocation in the order of a stream: after all work that was submitted to it so far, as
 * quire_free_after with a mark, which is set once for many of them, later. Errors as there,
 * UNSUPPORTED where the stream can neither be marked nor was announced to, and what the backend
 * answers to the stream's first mark.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_free_on(quire_memory *memory,
                                                    quire_allocation allocation,
                                                    quire_stream *stream);

/*
 * Allocates a raw range for work on a stream: what was freed on it and fits closely is handed out
 * again at once, without asking the backend; then what is free; then what was freed on other
 * streams of the device, behind whose points the stream is ordered; then a new page. On a held
 * stream a free of any kind gives it back to the stream alone. Errors as quire_allocate.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_allocate_on(quire_memory *memory,
                                                        const quire_allocation_options *options,
                                                        quire_stream *stream,
                                                        quire_allocation *allocation);

/*
 * Notes that work on a stream uses an allocation: when it is freed, by whichever call, what was
 * submitted to the stream until then is waited for as by quire_free_on. Noting it again changes
 * nothing. Errors as quire_allocation_get_info, WRONG_STATE (reserved), UNSUPPORTED as
 * quire_free_on, OUT_OF_HOST_MEMORY.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_record_use(quire_memory *memory,
                                                       quire_allocation allocation,
                                                       quire_stream *stream);

/*
 * Frees what waits for points that have passed; *released, which may be NULL, gets the bytes. A
 * stream whose device is lost holds nothing back any more. Errors: INVALID_ARGUMENT, and the first
 * that a backend answers to a question; what it did not concern is freed.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_collect(quire_memory *memory, uint64_t *released);

#ifdef __cplusplus
}
#endif

#endif
