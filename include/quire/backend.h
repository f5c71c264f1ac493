/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/backend.h - the interface of a backend: its function table and the feature bits.
 *
 * A backend is a constant table of functions and a state pointer. Only describe, page_create and
 * page_destroy are required. The other functions come in groups, and each group has a feature bit.
 * The core checks the table against the bits when a device is created. The comment of each bit says
 * what happens without the group. docs/examples/backend.c is a complete backend.
 *
 * This header includes backend_types.h (the data that functions exchange) and backend_core.h (the
 * functions that the core offers).
 *
 * Rules for every function of the table, unless it says otherwise:
 *  - Several threads may call it at once. The core holds no lock during the call.
 *  - It must not call quire on its own device, except quire_backend_fail. It must not call a log
 *    sink or another callback that may do so, because the thread is working on a page. A request
 *    made from there anyway never waits for a page, and may be refused for that. It must not fork.
 *  - Its arguments are valid: kinds exist, ranges lie inside the present size of their page, sizes
 *    are above 0.
 *  - On failure it returns by quire_backend_fail, has changed nothing and left no output to
 *    release. It may return INVALID_ARGUMENT, OUT_OF_DEVICE_MEMORY, OUT_OF_HOST_MEMORY,
 *    TOO_MANY_PAGES, UNSUPPORTED, NOT_PERMITTED, DEVICE_LOST and BACKEND_FAILURE. Any other result
 *    becomes BACKEND_FAILURE, with the result as its native code.
 */
#ifndef QUIRE_BACKEND_H
#define QUIRE_BACKEND_H

#include "quire/backend_core.h"
#include "quire/backend_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- features ------------------------------------------------------------------------------- */

/* Groups of functions that a backend offers. */
typedef uint64_t quire_backend_features;
/* map, unmap: maps pages of host-visible kinds. Required if a kind is host-visible. */
#define QUIRE_BACKEND_MAP (UINT64_C(1) << 0)
/* flush, invalidate. Required if a host-visible kind is not coherent. */
#define QUIRE_BACKEND_FLUSH (UINT64_C(1) << 1)
/*
 * copy_to_page. Without it the host writes host-visible pages through their mapping, and writing
 * other pages is UNSUPPORTED.
 */
#define QUIRE_BACKEND_COPY_TO_PAGE (UINT64_C(1) << 2)
/* copy_from_page. Without it likewise for reading. */
#define QUIRE_BACKEND_COPY_FROM_PAGE (UINT64_C(1) << 3)
/* image_requirements. Without it images are UNSUPPORTED. */
#define QUIRE_BACKEND_IMAGES (UINT64_C(1) << 4)
/*
 * object_create, object_bind, object_destroy: buffers and images are native objects. Without it
 * they are ranges that the caller addresses by page and offset.
 */
#define QUIRE_BACKEND_OBJECTS (UINT64_C(1) << 5)
/*
 * heap_budget. Without it the core respects the caller's limits (quire_device_set_heap_limit) and
 * nothing else; page_create fails if the heap is full, and the reported budget of a heap is its
 * size.
 */
#define QUIRE_BACKEND_BUDGET (UINT64_C(1) << 6)
/*
 * fill_page, for pages that are not host-visible; the host fills others through their mapping.
 * Without it, and where it returns UNSUPPORTED, the core writes the bytes with copy_to_page.
 */
#define QUIRE_BACKEND_FILL (UINT64_C(1) << 7)
/*
 * copy_pages. Without it bytes go from page to page through a mapping if one page has one,
 * otherwise through host memory with copy_from_page and copy_to_page.
 */
#define QUIRE_BACKEND_COPY_PAGES (UINT64_C(1) << 8)
/* copy_peer. Without it likewise between two devices of the backend. */
#define QUIRE_BACKEND_COPY_PEER (UINT64_C(1) << 9)
/*
 * stream_create, stream_destroy, stream_mark, stream_passed, stream_await. Without it a device has
 * capture streams only.
 */
#define QUIRE_BACKEND_STREAMS (UINT64_C(1) << 10)
/*
 * stream_order. Requires QUIRE_BACKEND_STREAMS, as the next two do. Without it ordering a stream
 * after a point is UNSUPPORTED, and a range freed on one stream is given to another stream only
 * once its point has passed.
 */
#define QUIRE_BACKEND_STREAM_ORDER (UINT64_C(1) << 11)
/*
 * stream_copy. Without it, and where it returns UNSUPPORTED, a copy on a stream waits for the
 * stream's work so far and is complete on return.
 */
#define QUIRE_BACKEND_STREAM_COPY (UINT64_C(1) << 12)
/* stream_fill. Without it, and where it returns UNSUPPORTED, likewise for fills. */
#define QUIRE_BACKEND_STREAM_FILL (UINT64_C(1) << 13)
/*
 * copy_pages, copy_peer and stream_copy accept jobs with many rows, and copy_pages also jobs
 * between a page and host memory. Without it each row is a job, or a call of copy_to_page or
 * copy_from_page. Has no functions; requires one of the three.
 */
#define QUIRE_BACKEND_ROWS (UINT64_C(1) << 14)
/*
 * copy_to_page and copy_from_page go through memory of the backend's own, so that
 * quire_copy_get_path reports QUIRE_COPY_STAGED. Has no functions.
 */
#define QUIRE_BACKEND_STAGES (UINT64_C(1) << 15)
/* flush_many, invalidate_many. Without it the core calls flush and invalidate for each range. */
#define QUIRE_BACKEND_FLUSH_MANY (UINT64_C(1) << 16)

/*
 * page_back, page_unback, for the kinds in limits.elastic_kinds. Required if there are such kinds.
 * Without it elastic memories are UNSUPPORTED.
 */
#define QUIRE_BACKEND_ELASTIC (UINT64_C(1) << 17)

/*
 * fork_prepare, fork_done, fork_child. Without it the core takes no lock of the backend around a
 * fork. If the device does not survive a fork (info.survives_fork), the child then abandons the
 * backend's records: the core calls no function of the table there. See docs/backends.md, "Fork".
 */
#define QUIRE_BACKEND_FORK (UINT64_C(1) << 18)

/*
 * device_address, for pages whose native address is 0. Without it allocations in such pages have no
 * address.
 */
#define QUIRE_BACKEND_DEVICE_ADDRESS (UINT64_C(1) << 19)

/*
 * write_many, read_many: for pages that are not host-visible. Without it, and where they return
 * UNSUPPORTED, the core calls copy_to_page or copy_from_page for each part of a batch.
 */
#define QUIRE_BACKEND_COPY_MANY (UINT64_C(1) << 20)
/*
 * stream_write_many. Requires QUIRE_BACKEND_STREAMS. Without it, and where it returns UNSUPPORTED,
 * the core calls stream_copy for each part of a batch.
 */
#define QUIRE_BACKEND_STREAM_WRITE_MANY (UINT64_C(1) << 21)

/* ---- the function table --------------------------------------------------------------------- */

struct quire_backend {
    size_t size;      /* sizeof(quire_backend) as the backend was compiled */
    const char *name; /* "host", "vulkan", ... */
    quire_backend_features features;

    /* ---- required ---- */

    /*
     * Fills in name, heaps, kinds and limits, and sets survives_fork if all pages are private
     * memory of the process, so that a child can use and destroy its copy of them (default: false).
     * Called once, when the device is created. The core rejects a device without kinds, with a heap
     * index out of range, or with a limit that must be a power of two and is not.
     */
    quire_result (*describe)(void *state, quire_device_info *info);

    /* Creates a page. May take long: other threads continue to allocate. */
    quire_result (*page_create)(void *state, const quire_page_request *request,
                                quire_native_page *page);

    /* Destroys a page that is not mapped and has no objects bound to it. Cannot fail. */
    void (*page_destroy)(void *state, const quire_native_page *page);

    /* Destroys the state, after the last page. NULL: nothing to destroy. Cannot fail. */
    void (*destroy)(void *state);

    /* ---- QUIRE_BACKEND_MAP ---- */

    /*
     * Map maps a whole page until unmap. Called once, before the page is used; in a memory with
     * map_on_demand at any time, also again after unmap. The core never calls the two at the same
     * time for one page, nor maps a mapped page. unmap cannot fail.
     */
    quire_result (*map)(void *state, const quire_native_page *page, void **pointer);
    void (*unmap)(void *state, const quire_native_page *page);

    /* ---- QUIRE_BACKEND_FLUSH: offset and size are multiples of limits.non_coherent_atom, except
       that a range may end at the end of the page ---- */
    quire_result (*flush)(void *state, const quire_native_page *page, uint64_t offset,
                          uint64_t size);
    quire_result (*invalidate)(void *state, const quire_native_page *page, uint64_t offset,
                               uint64_t size);

    /* ---- QUIRE_BACKEND_COPY_TO_PAGE, QUIRE_BACKEND_COPY_FROM_PAGE: complete on return ---- */
    quire_result (*copy_to_page)(void *state, const quire_native_page *page, uint64_t offset,
                                 const void *data, uint64_t size);
    quire_result (*copy_from_page)(void *state, const quire_native_page *page, uint64_t offset,
                                   void *data, uint64_t size);

    /* ---- QUIRE_BACKEND_IMAGES ---- */

    /* Writes what an image would need, or returns UNSUPPORTED. Options are valid, with defaults
       resolved. */
    quire_result (*image_requirements)(void *state, const quire_image_options *options,
                                       quire_requirements *requirements);

    /* ---- QUIRE_BACKEND_OBJECTS ---- */

    /*
     * Creates an object without memory and writes its requirements. A handle of 0 means that the
     * object is only a range of its page: the core neither binds nor destroys it.
     */
    quire_result (*object_create)(void *state, const quire_object_request *request,
                                  uint64_t *native, quire_requirements *requirements);
    quire_result (*object_bind)(void *state, quire_object object, uint64_t native,
                                const quire_native_page *page, uint64_t offset);
    void (*object_destroy)(void *state, quire_object object, uint64_t native);

    /* ---- QUIRE_BACKEND_BUDGET ---- */

    /*
     * Writes the budget of a heap; *budget is zero on entry. Called before each attempt to create a
     * page and by quire_device_get_budget, at no other time. An answer with a lifetime serves
     * further pages instead of a call until the lifetime ends, pages of a sixteenth of the bytes
     * that were left are begun, or a page fails; it never serves within_budget. The core first
     * requests pages with which the sum of quire's pages and of other use is within the budget. It
     * requests a page beyond the budget where none of these serves the request, unless the memory
     * or the request has the option within_budget. If this function fails, the page is refused.
     */
    quire_result (*heap_budget)(void *state, uint32_t heap, quire_heap_budget *budget);

    /* ---- QUIRE_BACKEND_FILL: sets each byte to `value`, complete on return ---- */
    quire_result (*fill_page)(void *state, const quire_native_page *page, uint64_t offset,
                              uint64_t size, uint8_t value);

    /*
     * ---- QUIRE_BACKEND_COPY_PAGES: between two pages of this device, complete on return; with
     * QUIRE_BACKEND_ROWS also many rows between one of its pages and host memory. The rows of the
     * two ends share no byte ----
     */
    quire_result (*copy_pages)(void *state, const quire_copy_job *job);

    /* ---- QUIRE_BACKEND_COPY_PEER: to a page of this device from a page of another device of the
       backend, complete on return; UNSUPPORTED if the two devices are not peers ---- */
    quire_result (*copy_peer)(void *state, const quire_copy_job *job);

    /* ---- QUIRE_BACKEND_STREAMS ---- */

    /*
     * Wraps the stream that the backend's own `description` names (quire_stream_wrap), or creates
     * one if it is NULL. The backend chooses the number *stream.
     */
    quire_result (*stream_create)(void *state, const void *description, uint64_t *stream);
    /* Destroys a stream whose points have passed or are no longer needed. Cannot fail. */
    void (*stream_destroy)(void *state, uint64_t stream);
    /*
     * Creates a point after all work submitted so far. Its value is above 0 and never falls.
     * Returns UNSUPPORTED if the stream's owner signals its values. The core calls stream_await and
     * stream_order with values up to the last one that stream_mark returned, so that streams never
     * wait for each other in a circle; if the owner signals, with any value.
     */
    quire_result (*stream_mark)(void *state, uint64_t stream, uint64_t *value);
    /* Writes the highest value whose work is done, with all work before it. Does not wait. */
    quire_result (*stream_passed)(void *state, uint64_t stream, uint64_t *value);
    /*
     * Sleeps until the value has passed, for at most `nanoseconds` (UINT64_MAX: no limit), and does
     * not spin. Returns in time for every value, also for one that never passes. A value that was
     * never marked has not passed: *has_passed is false, or the result is INVALID_ARGUMENT. BUSY
     * means that it passes only if the program lets it, by a call of the backend; stream_destroy
     * then runs the work first.
     */
    quire_result (*stream_await)(void *state, uint64_t stream, uint64_t value, uint64_t nanoseconds,
                                 bool *has_passed);

    /* ---- QUIRE_BACKEND_STREAM_ORDER: everything submitted to `later` from now on, including
       marks, runs after `value` of `earlier`, a stream of the same device ---- */
    quire_result (*stream_order)(void *state, uint64_t later, uint64_t earlier, uint64_t value);

    /*
     * ---- QUIRE_BACKEND_STREAM_COPY, QUIRE_BACKEND_STREAM_FILL: submitted on return. Pages and
     * host memory stay valid until the stream has passed the work ----
     */
    quire_result (*stream_copy)(void *state, uint64_t stream, const quire_copy_job *job);
    quire_result (*stream_fill)(void *state, uint64_t stream, const quire_native_page *page,
                                uint64_t offset, uint64_t size, uint8_t value);

    /* ---- QUIRE_BACKEND_FLUSH_MANY: 1 to QUIRE_MAX_RANGES ranges like those of flush; on failure
       some may be done ---- */
    quire_result (*flush_many)(void *state, const quire_page_range *ranges, uint32_t count);
    quire_result (*invalidate_many)(void *state, const quire_page_range *ranges, uint32_t count);

    /*
     * ---- QUIRE_BACKEND_ELASTIC: for pages that were created with a `max_size`. The list has one
     * or more spans in ascending order, which share no byte. Each is one or more whole chunks of
     * the page. The page keeps its address and its other bytes, which other threads and the device
     * may use during the call. The core makes one of these calls at a time for a page ----
     */

    /* Backs spans that have no memory: all, or on failure none. The bytes are as in a new page. */
    quire_result (*page_back)(void *state, const quire_native_page *page, const quire_span *spans,
                              uint32_t count);
    /*
     * Takes the memory of spans that have some, and that nobody uses. Cannot fail. With `moves` the
     * thread is about to back as many bytes of the page: a backend may keep the memory until
     * page_back ends, or until the next call without `moves`, one of which always follows. That may
     * have no spans.
     */
    void (*page_unback)(void *state, const quire_native_page *page, const quire_span *spans,
                        uint32_t count, bool moves);

    /*
     * ---- QUIRE_BACKEND_FORK: the thread that forks calls these from handlers of pthread_atfork,
     * without a lock of quire. They cannot fail and must not wait for a device ----
     */

    /* Before the fork: acquires the backend's locks, so that its records are consistent in the
       child. */
    void (*fork_prepare)(void *state);
    /* After the fork, in the parent and in the child: releases them. */
    void (*fork_done)(void *state);
    /*
     * In the child, last. Only the thread that forked exists: calls of other threads never return.
     *
     * If the device survives, `heap_bytes` has for each heap the bytes of the pages that are left.
     * A page that was being created is not among them and is never destroyed. For each page to
     * which another thread was giving memory, or whose memory it was taking, the core calls
     * page_unback before this function, with a span of which any chunk may have no memory. A
     * page that another thread was mapping or unmapping counts as not mapped. The core destroys the
     * streams and calls nothing else for them.
     *
     * If the device does not survive, the core calls only unmap, page_destroy, object_destroy,
     * stream_destroy, destroy and the `end` of attachments from now on. They release records of the
     * host and must not call the driver.
     */
    void (*fork_child)(void *state, const uint64_t heap_bytes[QUIRE_MAX_HEAPS]);

    /*
     * ---- QUIRE_BACKEND_DEVICE_ADDRESS: returns the device address of `buffer`, which
     * object_create made from quire_buffer_options and which is bound to the page; if `buffer` is
     * 0, that of the first byte of the page. 0: there is none, or it cannot be determined now.
     * Cannot fail and leaves the thread's last error unchanged. The core calls it only for
     * quire_allocation_info.address, each time, and keeps the allocation live during the call. The
     * address does not influence placement ----
     */
    uint64_t (*device_address)(void *state, const quire_native_page *page, uint64_t buffer);

    /*
     * ---- QUIRE_BACKEND_COPY_MANY: copies `count` runs of bytes, above 0, from host memory to
     * pages of this device (write) or back (read), complete on return. Where targets share bytes,
     * the later copy of the list wins ----
     */
    quire_result (*write_many)(void *state, const quire_page_copy *copies, uint64_t count);
    quire_result (*read_many)(void *state, const quire_page_copy *copies, uint64_t count);

    /* ---- QUIRE_BACKEND_STREAM_WRITE_MANY: as write_many, submitted on return. The list is valid
       during the call only; pages and host memory as for stream_copy ---- */
    quire_result (*stream_write_many)(void *state, uint64_t stream, const quire_page_copy *copies,
                                      uint64_t count);
};

#ifdef __cplusplus
}
#endif

#endif
