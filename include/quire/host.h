/*
 * quire/host.h - the host backend: pages are anonymous or memfd mappings of this process.
 *
 * It needs nothing, and it can pose as any device: heaps, memory kinds and limits are options, so
 * that the choice of memory and the refusals of real devices can be tried on a machine without
 * them.
 *
 * Pages take address space at once and physical memory when they are touched; heaps are as large as
 * the options say, not as RAM. Memory of a kind that is not host-visible is never mapped for the
 * caller and its address is not told; quire_write and quire_read reach it as they reach a GPU's.
 */
#ifndef QUIRE_HOST_H
#define QUIRE_HOST_H

#include "quire/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the pages are made of. */
typedef enum quire_host_backing {
    QUIRE_HOST_ANONYMOUS = 0, /* private anonymous mappings */
    QUIRE_HOST_MEMFD          /* one memfd a page, which can be handed to another process */
} quire_host_backing;

typedef enum quire_host_huge_pages {
    QUIRE_HOST_HUGE_NONE = 0,
    QUIRE_HOST_HUGE_ADVISE,  /* ask for transparent huge pages */
    QUIRE_HOST_HUGE_RESERVED /* take 2 MiB pages from the system's reserve; where it has none at
                                all the device is UNSUPPORTED, without any left a page is
                                OUT_OF_DEVICE_MEMORY */
} quire_host_huge_pages;

/* A device to pose as. */
typedef struct quire_host_profile {
    const char *name;
    uint32_t heap_count;               /* 1 to QUIRE_MAX_HEAPS */
    uint32_t kind_count;               /* 1 to QUIRE_MAX_KINDS */
    quire_heap heaps[QUIRE_MAX_HEAPS]; /* size 0: 8 GiB */
    quire_kind kinds[QUIRE_MAX_KINDS];
    quire_limits limits; /* 0: the host backend's own; granularity and alignments are raised to what
                            the host needs: 256 B, and 64 B for buffers and image rows; pages are
                            aligned to 2 MiB or as the core asks, or to a larger page_alignment */
} quire_host_profile;

typedef struct quire_host_options {
    /*
     * Copied; NULL: two heaps of 1 TiB, one of the device and one of the host, with the kinds
     * device-local, host (coherent), host cached, and device-local reachable by the host.
     */
    const quire_host_profile *profile;
    quire_host_backing backing;
    quire_host_huge_pages huge_pages;
    uint64_t row_alignment; /* of images, a power of two; 0: the profile's, or 64 bytes */
    uint64_t budgets[QUIRE_MAX_HEAPS]; /* bytes of each heap, to be told as a driver's; 0: none;
                                           quire_host_set_budget changes them */
    quire_device_options device;
    uint64_t unused[4]; /* must be zero */
} quire_host_options;

/*
 * Opens a host device. NULL options mean {0}.
 * Errors: INVALID_ARGUMENT (also for a profile that cannot be a device), OUT_OF_HOST_MEMORY,
 * UNSUPPORTED (the options ask for memfds or for reserved huge pages, and the system offers no
 * memfd, no huge pages of 2 MiB or none in its reserve).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_host_open(const quire_host_options *options,
                                                      quire_device **device);

/*
 * Changes what the device tells as the budget of a heap, as other programs change a driver's; 0:
 * none but the heap's size. The device's own pages are all that is in use. At any time; see
 * quire_device_get_budget for what a budget means.
 * Errors: INVALID_ARGUMENT (also for a device of another backend), OUT_OF_RANGE (no such heap).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_host_set_budget(quire_device *device, uint32_t heap,
                                                            uint64_t bytes);

/*
 * The host pointer of an allocation without mapping it; NULL in memory that is not host-visible.
 * Errors as quire_allocation_get_info; INVALID_ARGUMENT for a memory of another backend.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_host_pointer(quire_memory *memory,
                                                         quire_allocation allocation,
                                                         void **pointer);

/*
 * The memfd of the page an allocation lies in, and its offset there. Its size is sealed: nobody can
 * change it. The descriptor stays quire's: duplicate it to keep it. On failure it is -1. Errors as
 * above; UNSUPPORTED for anonymous backing.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_host_descriptor(quire_memory *memory,
                                                            quire_allocation allocation,
                                                            int *descriptor, uint64_t *offset);

/* ---- streams -------------------------------------------------------------------------------- */

/*
 * A stream of the host backend does its work, copies, fills and the caller's functions, in order.
 * A worker thread of the stream's own does it (quire_stream_create makes such a one), which sleeps
 * while there is none; or, where the stream is *manual*, the caller, so that a program or a test
 * decides when a point passes:
 *  - Each quire_stream_mark of a manual stream is work, too: its point has passed when it was run,
 *    also where no other work lies before it.
 *  - quire_point_await never sleeps for work that only quire_host_stream_run does: it is BUSY at
 *    once, also on a stream with a worker that waits for a manual one.
 * quire_stream_destroy does what is left, and does not wait for points of manual streams that have
 * not passed.
 */
typedef struct quire_host_stream_options {
    const char *name; /* copied; NULL: "stream" */
    bool manual;
    uint64_t unused[4]; /* must be zero */
} quire_host_stream_options;

/*
 * Makes a stream; NULL options mean {0}. Errors: INVALID_ARGUMENT (also for a device of another
 * backend), OUT_OF_HOST_MEMORY (also where the system has no more threads), DEVICE_LOST.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_host_stream_create(
    quire_device *device, const quire_host_stream_options *options, quire_stream **stream);

/*
 * Does work of a manual stream in the calling thread, `most` pieces at most (UINT64_MAX: all) and
 * until one waits for another stream's point that has not passed; *done, which may be NULL, gets
 * how many. Waiting for a point that has passed is a piece, too. Where several threads call it they
 * take turns. Errors: INVALID_ARGUMENT (also for a stream of another backend, or a held one),
 * WRONG_STATE (the stream has a worker), DEVICE_LOST.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_host_stream_run(quire_stream *stream, uint64_t most,
                                                            uint64_t *done);

/*
 * Submits a call of a function as a piece of work. It must not destroy or run the stream, nor wait
 * for its points. Errors: INVALID_ARGUMENT (also as above), OUT_OF_HOST_MEMORY, DEVICE_LOST.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_host_stream_submit(quire_stream *stream,
                                                               void (*function)(void *user),
                                                               void *user);

/*
 * The device is lost from now on, as a GPU's driver loses it: streams do no more work, and they,
 * new pages and copies through the backend answer DEVICE_LOST; what there is can be destroyed.
 * Errors: INVALID_ARGUMENT (also for a device of another backend).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_host_lose(quire_device *device);

#ifdef __cplusplus
}
#endif

#endif
