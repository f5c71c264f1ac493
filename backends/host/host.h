/*
 * host.h - the state of a host device, shared by the parts of the host backend: opening and
 * describing (host.c), pages (host_page.c) and streams (stream.h).
 */
#ifndef QUIRE_BACKENDS_HOST_HOST_H
#define QUIRE_BACKENDS_HOST_HOST_H

#include <pthread.h>

#include "quire/host.h"
#include "src/base/atomic.h"
#include "src/base/host_memory.h"

/* The smallest page the backend makes, and what all its pages are aligned to at least. */
#define QI_HOST_GRANULARITY UINT64_C(256)
#define QI_HOST_PAGE_ALIGNMENT (UINT64_C(2) << 20)
#define QI_HOST_HUGE_PAGE (UINT64_C(2) << 20)

/* What the streams of a device share. */
typedef struct qi_host_streams {
    pthread_mutex_t mutex; /* of all their records */
    pthread_cond_t
        progress;          /* a job is done, a worker begins to wait, a stream ends, all is lost */
    qi_atomic_u32 is_lost; /* quire_host_lose: nothing is done any more */
    uint32_t forks;        /* before this process: streams made before the last one are over */
} qi_host_streams;

typedef struct qi_host_device {
    qi_host host;
    char name[256];
    quire_host_profile profile; /* resolved; its name is not used */
    quire_host_backing backing;
    quire_host_huge_pages huge_pages;
    uint64_t row_alignment;
    uint64_t system_page;                     /* bytes of a page of the operating system */
    qi_atomic_u64 heap_used[QUIRE_MAX_HEAPS]; /* bytes; kept within the heaps' sizes */
    qi_atomic_u64 budgets[QUIRE_MAX_HEAPS];   /* bytes, told to the core; 0: none */
    qi_host_streams streams;
} qi_host_device;

/* The state of a device of this backend, or NULL with INVALID_ARGUMENT. */
qi_host_device *qi_host_of(const quire_device *device);

/* DEVICE_LOST after quire_host_lose. */
QUIRE_MUST_USE quire_result qi_host_check_lost(const qi_host_device *device);

/*
 * UNSUPPORTED when the system has not got at all what pages are to be made of: no memfd, no huge
 * pages of 2 MiB, or none in its reserve. Takes nothing.
 */
QUIRE_MUST_USE quire_result qi_host_check_system(quire_host_backing backing,
                                                 quire_host_huge_pages huge_pages);

/* A page: quire_native_page.handle. */
typedef struct qi_host_page {
    char *bytes;
    uint64_t mapped;   /* bytes of the mapping, whole system pages */
    uint64_t reserved; /* bytes of addresses, of which so many are mapped; 0: it does not grow */
    uint64_t size;     /* bytes of the page, taken from the heap */
    uint32_t heap;
    int descriptor; /* -1 for anonymous pages */
} qi_host_page;

static inline qi_host_page *qi_host_page_of(const quire_native_page *page)
{
    return (qi_host_page *)(uintptr_t)page->handle;
}

/* Fails with the system's error. */
quire_result qi_host_fail_errno(const char *what, uint64_t size);

/* Anonymous memory: what is left of a reservation when the edges are given back; or MAP_FAILED. */
char *qi_host_map_anonymous(uint64_t size, uint64_t alignment, int protection);

/* Bytes of the heap, or OUT_OF_DEVICE_MEMORY. */
QUIRE_MUST_USE quire_result qi_host_take_from_heap(qi_host_device *device, uint32_t heap,
                                                   uint64_t size);

/* ---- host_growth.c: pages that grow in place, of anonymous memory ---------------------------- */

/* Whether the pages of a device can. */
bool qi_host_can_grow(const qi_host_device *device);

/* Reserves addresses for as much as the page may have and maps what it has. */
QUIRE_MUST_USE quire_result qi_host_map_growing(const qi_host_device *device,
                                                const quire_page_request *request,
                                                uint64_t alignment, qi_host_page *page);
quire_result qi_host_page_resize(void *state, const quire_native_page *page, uint64_t from,
                                 uint64_t to);

/* The entries of the backend table that deal with pages, as quire/backend.h says. */
quire_result qi_host_page_create(void *state, const quire_page_request *request,
                                 quire_native_page *page);
void qi_host_page_destroy(void *state, const quire_native_page *page);
quire_result qi_host_page_map(void *state, const quire_native_page *page, void **pointer);
void qi_host_page_unmap(void *state, const quire_native_page *page);
quire_result qi_host_page_sync(void *state, const quire_native_page *page, uint64_t offset,
                               uint64_t size);
quire_result qi_host_copy_to_page(void *state, const quire_native_page *page, uint64_t offset,
                                  const void *data, uint64_t size);
quire_result qi_host_copy_from_page(void *state, const quire_native_page *page, uint64_t offset,
                                    void *data, uint64_t size);
/* Serves as copy_peer, too. */
quire_result qi_host_copy_pages(void *state, const quire_copy_job *job);
quire_result qi_host_fill_page(void *state, const quire_native_page *page, uint64_t offset,
                               uint64_t size, uint8_t value);

char *qi_host_page_bytes(const quire_native_page *page);

/* The bytes of a job, whatever has become of the device. */
void qi_host_copy_rows(const quire_copy_job *job);

/* The memfd of a page, or -1. */
int qi_host_page_descriptor(const quire_native_page *page);

#endif
