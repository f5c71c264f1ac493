/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * host.h - the state of a host device and its pages, and the functions that the files of the host
 * backend call in each other.
 *
 * Layers, from the bottom: device.c (description, budgets, heaps) and mapping.c (address space);
 * page.c; stream.c; table.c (function table, opening a device).
 *
 * Locks: `streams.mutex` protects all stream records of a device. Nothing else has a lock. The
 * fields of qi_host_device above `heap_used` never change after quire_host_open; the counters are
 * atomic; a page record is written only by calls that create, back, unback or destroy the page,
 * which the core never runs at the same time for one page.
 *
 * Invariant: heap_used[h] is the sum of the bytes that the live pages of heap h have, plus what a
 * running call has charged, and never exceeds profile.heaps[h].size.
 */
#ifndef QUIRE_BACKENDS_HOST_HOST_H
#define QUIRE_BACKENDS_HOST_HOST_H

#include <pthread.h>

#include "quire/host.h"
#include "src/base/atomic.h"
#include "src/base/host_memory.h"

/* Page sizes are multiples of the granularity. Every page address is a multiple of the alignment,
   so that transparent huge pages of 2 MiB can back it. */
#define QI_HOST_GRANULARITY UINT64_C(256)
#define QI_HOST_PAGE_ALIGNMENT (UINT64_C(2) << 20)
#define QI_HOST_HUGE_PAGE (UINT64_C(2) << 20)

/* State that all streams of a device share. */
typedef struct qi_host_streams {
    pthread_mutex_t mutex; /* protects every stream record of the device */
    /* broadcast when a job is done, a worker starts to wait, a stream closes, the device is lost */
    pthread_cond_t progress;
    qi_atomic_u32 is_lost; /* set by quire_host_lose, never cleared: no job runs any more */
    uint32_t forks;        /* forks between quire_host_open and this process */
} qi_host_streams;

typedef struct qi_host_device {
    qi_host host;
    char name[256];
    quire_host_profile profile; /* defaults resolved; `name` above replaces profile.name */
    quire_host_backing backing;
    quire_host_huge_pages huge_pages;
    uint64_t row_alignment;                   /* bytes; 0 means the profile's */
    uint64_t system_page;                     /* bytes of a page of the operating system */
    qi_atomic_u64 heap_used[QUIRE_MAX_HEAPS]; /* bytes of live pages */
    qi_atomic_u64 budgets[QUIRE_MAX_HEAPS];   /* bytes reported to the core; 0 means no budget */
    qi_host_streams streams;
} qi_host_device;

/* A page record. quire_native_page.handle points to it. */
typedef struct qi_host_page {
    char *bytes;      /* what copies, fills and device work use */
    char *host_bytes; /* what the host maps: `bytes`, or a copy if the kind is not coherent */
    uint64_t mapped;  /* bytes of addresses, a multiple of the system page */
    uint64_t size;    /* bytes charged to the heap, unless the page is elastic */
    uint64_t *backed; /* one bit for each chunk of an elastic page: it has memory; otherwise NULL */
    uint64_t chunk;   /* bytes of a chunk */
    uint64_t words;   /* of `backed` */
    uint32_t heap;
    int descriptor; /* memfd of the page, owned by it; -1 for anonymous pages */
} qi_host_page;

static inline qi_host_page *qi_host_page_of(const quire_native_page *page)
{
    return (qi_host_page *)(uintptr_t)page->handle;
}

/* ---- device.c ----------------------------------------------------------------------------- */

/* Returns the state of a device of this backend, or NULL after reporting INVALID_ARGUMENT. */
qi_host_device *qi_host_of(const quire_device *device);

static inline bool qi_host_is_lost(const qi_host_device *device)
{
    return qi_atomic_load_acquire_u32(&device->streams.is_lost);
}

/* DEVICE_LOST after quire_host_lose. */
QUIRE_MUST_USE quire_result qi_host_check_lost(const qi_host_device *device);

/*
 * Charges `size` bytes to a heap, or fails with OUT_OF_DEVICE_MEMORY and charges nothing. The
 * caller subtracts them from heap_used when the bytes are unmapped.
 */
QUIRE_MUST_USE quire_result qi_host_charge_heap(qi_host_device *device, uint32_t heap,
                                                uint64_t size);

/* Returns true if the pages of the device can be elastic: anonymous, without reserved huge pages.
 */
bool qi_host_can_resize(const qi_host_device *device);

/* Entries of the backend table, specified in quire/backend.h. */
quire_result qi_host_describe(void *state, quire_device_info *info);
quire_result qi_host_image_requirements(void *state, const quire_image_options *options,
                                        quire_requirements *requirements);
quire_result qi_host_heap_budget(void *state, uint32_t heap, quire_heap_budget *budget);

/* ---- mapping.c ---------------------------------------------------------------------------- */

/*
 * UNSUPPORTED if the system cannot provide the backing at all: memfd is missing, huge pages of
 * 2 MiB are missing, or their reserve is empty. Leaves nothing mapped or open.
 */
QUIRE_MUST_USE quire_result qi_host_check_system(quire_host_backing backing,
                                                 quire_host_huge_pages huge_pages);

/*
 * Fails with the error in errno, as "<what> of <size>: <text>". EPERM and EACCES become
 * NOT_PERMITTED, every other error OUT_OF_DEVICE_MEMORY.
 */
quire_result qi_host_fail_errno(const char *what, uint64_t size);

/* The three functions return MAP_FAILED or -1 and set errno on failure. */

/* Maps `size` bytes of anonymous memory at a multiple of `alignment`. */
char *qi_host_map_anonymous(uint64_t size, uint64_t alignment, int protection);

/*
 * Maps `size` bytes with `flags` of mmap and a descriptor at a multiple of `alignment`, readable
 * and writable, and never over a mapping of another thread.
 */
char *qi_host_map_at_free_address(uint64_t size, uint64_t alignment, int flags, int descriptor);

/* Creates a sealed memfd of `size` bytes for a page, named after the label. The caller owns it. */
int qi_host_create_memfd(const qi_host_device *device, const char *label, uint64_t size);

/* mmap's flags for anonymous memory from the system's reserve of 2 MiB pages. */
int qi_host_huge_flags(void);

/* ---- page.c ------------------------------------------------------------------------------- */

/* Copies the rows of a job, also on a lost device. Ends without a page are host pointers. */
void qi_host_copy_rows(const quire_copy_job *job);

/* Entries of the backend table, specified in quire/backend.h. */
quire_result qi_host_page_create(void *state, const quire_page_request *request,
                                 quire_native_page *page);
void qi_host_page_destroy(void *state, const quire_native_page *page);
quire_result qi_host_page_map(void *state, const quire_native_page *page, void **pointer);
void qi_host_page_unmap(void *state, const quire_native_page *page);
quire_result qi_host_page_flush(void *state, const quire_native_page *page, uint64_t offset,
                                uint64_t size);
quire_result qi_host_page_invalidate(void *state, const quire_native_page *page, uint64_t offset,
                                     uint64_t size);
quire_result qi_host_page_back(void *state, const quire_native_page *page, const quire_span *spans,
                               uint32_t count);
void qi_host_page_unback(void *state, const quire_native_page *page, const quire_span *spans,
                         uint32_t count, bool moves);

/* Entries of the backend table for bytes. All answer DEVICE_LOST on a lost device. */
quire_result qi_host_copy_to_page(void *state, const quire_native_page *page, uint64_t offset,
                                  const void *data, uint64_t size);
quire_result qi_host_copy_from_page(void *state, const quire_native_page *page, uint64_t offset,
                                    void *data, uint64_t size);
quire_result qi_host_copy_pages(void *state, const quire_copy_job *job); /* and copy_peer */
quire_result qi_host_fill_page(void *state, const quire_native_page *page, uint64_t offset,
                               uint64_t size, uint8_t value);

/* ---- stream.c ----------------------------------------------------------------------------- */

QUIRE_MUST_USE quire_result qi_host_streams_init(qi_host_streams *streams);
void qi_host_streams_destroy(qi_host_streams *streams);

/*
 * Corrects the shared state in the child of a fork. Requires the mutex, which the fork took in the
 * parent. Streams of the parent have no worker in the child and can only be destroyed.
 */
void qi_host_streams_forked(qi_host_streams *streams);

/* Entries of the backend table, specified in quire/backend.h. */
quire_result qi_host_stream_create(void *state, const void *description, uint64_t *stream);
void qi_host_stream_destroy(void *state, uint64_t stream);
quire_result qi_host_stream_mark(void *state, uint64_t stream, uint64_t *value);
quire_result qi_host_stream_passed(void *state, uint64_t stream, uint64_t *value);
quire_result qi_host_stream_await(void *state, uint64_t stream, uint64_t value,
                                  uint64_t nanoseconds, bool *has_passed);
quire_result qi_host_stream_order(void *state, uint64_t later, uint64_t earlier, uint64_t value);
quire_result qi_host_stream_copy(void *state, uint64_t stream, const quire_copy_job *job);
quire_result qi_host_stream_fill(void *state, uint64_t stream, const quire_native_page *page,
                                 uint64_t offset, uint64_t size, uint8_t value);

#endif
