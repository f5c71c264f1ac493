/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/stream.h - streams of device work, points in them, and allocation in the order of streams.
 *
 * A *stream* is a sequence of work on a device: a CUstream, a Vulkan timeline semaphore, a stream
 * of a plugin, a worker thread of the host backend. A *point* is a position in that sequence. It
 * has passed once all work before it is done. A range that is freed after a point can be allocated
 * again once the point has passed. A request on the same stream can have it earlier, because its
 * work follows the point anyway. quire runs no thread for this and does not poll: it checks points
 * in quire_collect and before it creates a page.
 *
 * A *capture* stream exists for graph capture. No device runs it, and none of its points passes
 * before it is destroyed. Allocate and free on it what a captured graph uses: the ranges are then
 * reused within the graph, and by nothing else while the graph lives.
 *
 * Thread-safety: any thread may call any function on a live stream, except quire_stream_destroy.
 */
#ifndef QUIRE_STREAM_H
#define QUIRE_STREAM_H

#include "quire/allocation.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A point of a stream. {0} has passed. There are two sorts of streams:
 *  - quire or its backend marks the points. A value is valid up to the last mark. Every function
 *    that takes a point rejects a later value with INVALID_ARGUMENT.
 *  - The owner of the stream signals the values. Any value is valid, also one that is not announced
 *    yet. Whether the point ever passes is up to the owner.
 */
typedef struct quire_point {
    quire_stream *stream;
    uint64_t value; /* higher is later; on a timeline semaphore the value of the semaphore */
} quire_point;

/* A timeout: wait without a limit. */
#define QUIRE_FOREVER UINT64_MAX

typedef struct quire_stream_options {
    const char *name;   /* copied, at most QUIRE_MAX_NAME bytes; NULL: "stream" */
    bool capture;       /* create a capture stream */
    uint64_t unused[4]; /* must be zero */
} quire_stream_options;

typedef struct quire_stream_info {
    const char *name; /* valid as long as the stream */
    quire_device *device;
    bool capture;
    uint64_t native; /* The backend's own number; 0 for a capture stream. quire_cuda_stream_get and
                         quire_vulkan_stream_get return native handles. */
    uint64_t marked; /* value of the last known point */
    uint64_t passed; /* value of the last point known to have passed; the backend is not queried */
    /* allocations of all memories that wait for its points, or that will wait once they are freed
       (quire_record_use), and native objects that wait after their ranges were reused */
    uint64_t deferred;
    uint64_t unused[4];
} quire_stream_info;

/* ---- streams and points --------------------------------------------------------------------- */

/*
 * Creates a stream of the device's backend, or a capture stream. NULL options mean {0}. To use a
 * stream that exists, call the function of the backend: quire_cuda_stream_wrap,
 * quire_vulkan_stream_wrap, quire_plugin_stream_wrap.
 * Errors: INVALID_ARGUMENT, UNSUPPORTED (the backend has no streams), OUT_OF_HOST_MEMORY, and
 * errors of the backend.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_stream_create(quire_device *device,
                                                          const quire_stream_options *options,
                                                          quire_stream **stream);

/*
 * Destroys a stream. A wrapped native stream stays with its owner. Frees everything that waits for
 * points of the stream, and waits at most one second for points that have not passed, and for the
 * copies and fills of quire (transfer.h). Returns BUSY if one has not passed then, or if live
 * allocations have a use of the stream that the caller recorded (quire_record_use). The error has
 * their number, and *stream stays valid.
 *
 * Destroying a capture stream makes all its points pass. Live allocations with a recorded use of it
 * stay live, and its device cannot be destroyed before they are freed.
 *
 * The call counts as a call on every memory of which an allocation ever waited for the stream. No
 * function may use points of the stream afterwards.
 */
QUIRE_API quire_result quire_stream_destroy(quire_stream **stream);

/* Writes the description of a stream. Errors: INVALID_ARGUMENT. */
QUIRE_API QUIRE_MUST_USE quire_result quire_stream_get_info(const quire_stream *stream,
                                                            quire_stream_info *info);

/*
 * Creates a point after all work submitted to the stream so far. On a capture stream the point
 * never passes.
 * Errors: INVALID_ARGUMENT, UNSUPPORTED (the owner of the stream signals its values and has
 * announced none: quire_stream_announce), and errors of the backend.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_stream_mark(quire_stream *stream, quire_point *point);

/*
 * Announces that submitted work will signal `value`, above 0, on a timeline semaphore whose owner
 * signals it. quire_stream_mark and frees on the stream use the highest announced value; a lower
 * one changes nothing.
 * Errors: INVALID_ARGUMENT, UNSUPPORTED (quire or its backend marks this stream).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_stream_announce(quire_stream *stream, uint64_t value);

/*
 * Makes later work of the stream wait on the device for a point of another stream of the same
 * device. The host does not wait. A point that has passed, such as {0}, costs nothing.
 * Errors: INVALID_ARGUMENT (also for a value after the last mark, or a capture stream),
 * UNSUPPORTED (the backend cannot order streams), FOREIGN_HANDLE (the point is of another device),
 * and errors of the backend.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_stream_wait(quire_stream *stream,
                                                        const quire_point *point);

/*
 * Queries the backend whether a point has passed. Errors: INVALID_ARGUMENT (also for a value after
 * the last mark), and errors of the backend, such as DEVICE_LOST.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_point_has_passed(const quire_point *point,
                                                             bool *has_passed);

/*
 * Sleeps until a point has passed, for at most `nanoseconds`. 0 does not sleep. QUIRE_FOREVER
 * sleeps without a limit, and never returns if the owner of a stream never signals the value.
 * Errors: INVALID_ARGUMENT (also for a value after the last mark), BUSY (the time is over and the
 * point has not passed; for a capture stream at once), and errors of the backend.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_point_await(const quire_point *point,
                                                        uint64_t nanoseconds);

/* ---- memory in the order of streams --------------------------------------------------------- */

/*
 * Allocations, buffers and images whose options name a stream get memory for work that is submitted
 * to the stream after the call. quire uses the first of these that fits:
 *  1. a range that was freed on this stream and is at most an eighth larger than the request;
 *  2. a free range;
 *  3. a range that was freed on another stream of the device; quire then orders this stream after
 *     the other's point;
 *  4. a new page.
 * Earlier work of the stream may still use the range. Free such an allocation in the order of that
 * stream too, or when that work is done; this applies to quire_abort as well. Where two native
 * objects use the same bytes in this way, the caller issues the barrier that the backend requires
 * for aliased memory. Requests with `zero` reuse no range before its point has passed.
 *
 * A range allocated on a capture stream returns to that stream only, whichever function frees it.
 */

/*
 * Frees an allocation and destroys its object once the point has passed, and once the uses recorded
 * by quire_record_use have. The handle is stale at once. Until then the range counts as live and in
 * quire_memory_stats.deferred_bytes. Requests whose options name the point's stream can reuse the
 * range at once. The point may be of another device.
 * Errors as quire_free; INVALID_ARGUMENT (also for a value after the last mark),
 * OUT_OF_HOST_MEMORY (the allocation stays live), and errors of the backend at the stream's first
 * mark.
 */
QUIRE_API quire_result quire_free_after_point(quire_memory *memory, quire_allocation allocation,
                                              const quire_point *point);

/*
 * Frees an allocation after all work submitted to the stream so far, like quire_free_after_point
 * with a mark. quire sets one mark for many such frees, later.
 * Errors as quire_free_after_point; UNSUPPORTED (the owner of the stream signals its values and has
 * announced none).
 */
QUIRE_API quire_result quire_free_on_stream(quire_memory *memory, quire_allocation allocation,
                                            quire_stream *stream);

/*
 * Records that work on a stream uses an allocation. Whichever function frees the allocation, the
 * free then also waits for the work that was submitted to the stream until the free, as
 * quire_free_on_stream does. A free that waits for several streams marks each of them. Recording
 * the same use again changes nothing.
 * Errors: those of handles, UNSUPPORTED (as quire_free_on_stream), OUT_OF_HOST_MEMORY, and errors
 * of the backend at the stream's first mark.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_record_use(quire_memory *memory,
                                                       quire_allocation allocation,
                                                       quire_stream *stream);

/*
 * Frees everything that waits for points that have passed, and writes the bytes to *released, which
 * may be NULL. Waits for nothing. The points of a stream whose device is lost count as passed.
 * Errors: INVALID_ARGUMENT, and the first error of a backend; everything that it does not concern
 * is freed.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_collect(quire_memory *memory, uint64_t *released);

#ifdef __cplusplus
}
#endif

#endif
