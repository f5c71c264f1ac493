/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/host.h - the host backend: pages are anonymous or memfd mappings of this process.
 *
 * It requires no device. It can simulate any device: heaps, memory kinds and limits are options, so
 * that the memory choice and the refusals of a real device can be tested without it.
 *
 * Pages take address space when they are created and physical memory when they are touched. Heaps
 * have the size that the options give, whatever the size of RAM. Memory of a kind that is not
 * host-visible is not mapped for the caller, and its address is not reported; quire_write and
 * quire_read reach it as they reach memory of a GPU. Pages of a host-visible kind that is not
 * coherent have two mappings: the host's bytes, which a flush copies to the device's and an
 * invalidation from them, and the device's, which everything else uses.
 *
 * Thread-safety: any thread may call any function on live objects. INVALID_ARGUMENT is also the
 * error for a device, memory or stream of another backend.
 */
#ifndef QUIRE_HOST_H
#define QUIRE_HOST_H

#include "quire/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The memory that backs pages. */
typedef enum quire_host_backing {
    QUIRE_HOST_ANONYMOUS = 0, /* private anonymous mappings */
    QUIRE_HOST_MEMFD          /* one memfd per page, which can be passed to another process */
} quire_host_backing;

typedef enum quire_host_huge_pages {
    QUIRE_HOST_HUGE_NONE = 0,
    QUIRE_HOST_HUGE_ADVISE,  /* advise the kernel to use transparent huge pages */
    QUIRE_HOST_HUGE_RESERVED /* Use the system's reserved 2 MiB pages. Opening the device is
                                UNSUPPORTED if the system reserves none. Creating a page is
                                OUT_OF_DEVICE_MEMORY if all of them are in use. */
} quire_host_huge_pages;

/* A device to simulate. */
typedef struct quire_host_profile {
    const char *name;
    uint32_t heap_count;               /* 1 to QUIRE_MAX_HEAPS */
    uint32_t kind_count;               /* 1 to QUIRE_MAX_KINDS */
    quire_heap heaps[QUIRE_MAX_HEAPS]; /* size 0: 8 GiB */
    quire_kind kinds[QUIRE_MAX_KINDS];
    /*
     * 0: the host backend's own. Granularity and alignments are raised to what the host needs: 256
     * bytes, and 64 bytes for buffers and image rows. Pages are aligned to 2 MiB or as requested,
     * or to a larger page_alignment.
     */
    quire_limits limits;
    uint64_t unused[4]; /* must be zero */
} quire_host_profile;

typedef struct quire_host_options {
    /*
     * Copied. NULL: two heaps of 1 TiB, one of the device and one of the host, with four kinds:
     * device-local, host (coherent), host cached, and device-local that is host-visible.
     */
    const quire_host_profile *profile;
    quire_host_backing backing;
    quire_host_huge_pages huge_pages;
    uint64_t row_alignment; /* bytes, of images, a power of two; 0: the profile's, or 64 */
    uint64_t budgets[QUIRE_MAX_HEAPS]; /* bytes that the device reports as the budget of each heap;
                                           0: none; quire_host_set_budget changes them */
    quire_device_options device;
    uint64_t unused[4]; /* must be zero */
} quire_host_options;

/*
 * Opens a host device. NULL options mean {0}.
 * Errors: INVALID_ARGUMENT (also for a profile that is not a valid device), OUT_OF_HOST_MEMORY,
 * UNSUPPORTED (the options require memfds or reserved huge pages, and the system has no memfd, no
 * huge pages of 2 MiB, or none in its reserve).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_host_open(const quire_host_options *options,
                                                      quire_device **device);

/*
 * Changes the budget that the device reports for a heap, in bytes, as other programs change the
 * budget of a driver; 0: only the size of the heap. The reported use is that of the device's own
 * pages. May be called at any time. quire_device_get_budget describes budgets.
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE (no such heap).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_host_set_budget(quire_device *device, uint32_t heap,
                                                            uint64_t bytes);

/*
 * Writes the host pointer of an allocation without mapping it, which quire_map would give; NULL for
 * memory that is not host-visible. Errors as quire_allocation_get_info.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_host_pointer(quire_memory *memory,
                                                         quire_allocation allocation,
                                                         void **pointer);

/*
 * Writes the memfd of the page of an allocation, and the offset of the allocation in it. The size
 * of the memfd is sealed: it cannot change. The descriptor belongs to quire and is valid as long as
 * the page; duplicate it to keep it. On failure *descriptor is -1. Errors as
 * quire_allocation_get_info; UNSUPPORTED (anonymous backing).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_host_descriptor(quire_memory *memory,
                                                            quire_allocation allocation,
                                                            int *descriptor, uint64_t *offset);

/* ---- streams -------------------------------------------------------------------------------- */

/*
 * A stream of the host backend runs copies, fills and functions of the caller in order. It has a
 * worker thread, which sleeps when there is no work; quire_stream_create creates such a stream. Or
 * it is *manual*: the caller runs its work, so that a program or test decides when a point passes.
 *  - On a manual stream every quire_stream_mark is a piece of work too. Its point passes when it is
 *    run, even if no other work is before it.
 *  - quire_point_await never sleeps for work that only quire_host_stream_run can do. It returns
 *    BUSY at once, also for a stream with a worker that waits for a manual one.
 * quire_stream_destroy runs the remaining work, and does not wait for points of manual streams that
 * have not passed. It is BUSY, and runs nothing, while freed allocations wait for such a point. No
 * other thread may free meanwhile what copies and fills on a manual stream use.
 */
typedef struct quire_host_stream_options {
    const char *name; /* copied; NULL: "stream" */
    bool manual;
    uint64_t unused[4]; /* must be zero */
} quire_host_stream_options;

/*
 * Creates a stream. NULL options mean {0}. Errors: INVALID_ARGUMENT, OUT_OF_HOST_MEMORY (also if
 * the system cannot create a thread), DEVICE_LOST.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_host_stream_create(
    quire_device *device, const quire_host_stream_options *options, quire_stream **stream);

/*
 * Runs work of a manual stream in the calling thread: at most `most` pieces (UINT64_MAX: all), and
 * until a piece waits for a point of another stream that has not passed. A wait for a point that
 * has passed is a piece too. Writes the number of pieces to *done, which may be NULL. Several
 * threads that call it take turns.
 * Errors: INVALID_ARGUMENT (also for a capture stream), WRONG_STATE (the stream has a worker),
 * DEVICE_LOST.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_host_stream_run(quire_stream *stream, uint64_t most,
                                                            uint64_t *done);

/*
 * Submits a call of a function as a piece of work. The function must not destroy or run the stream,
 * nor wait for its points.
 * Errors: INVALID_ARGUMENT (also for a capture stream), OUT_OF_HOST_MEMORY, DEVICE_LOST.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_host_stream_submit(quire_stream *stream,
                                                               void (*function)(void *user),
                                                               void *user);

/*
 * Makes the device lost, as the driver of a GPU does. Streams then run no more work. Streams, new
 * pages and copies through the backend fail with DEVICE_LOST. Existing objects can be destroyed.
 * Errors: INVALID_ARGUMENT.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_host_lose(quire_device *device);

#ifdef __cplusplus
}
#endif

#endif
