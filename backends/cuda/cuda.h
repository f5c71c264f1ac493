/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda.h - the records of the CUDA backend: a device, its memory kinds, pages and chunks.
 *
 * Modules, from the bottom:
 *   driver             the driver's library, its error codes, its context
 *   device             what the device has and reports, its memory kinds
 *   access             who may access a page
 *   virtual, pool      chunks, pages of virtual memory management, and of the device's memory pool
 *   backing            pages of virtual memory management whose chunks come and go
 *   share              pages for and from other processes and APIs
 *   stream, array      streams and the waits for work; images that are arrays
 *   page               pages of all kinds: creating, destroying
 *   copy, multicast    copies and fills; memory of several devices behind one address
 *   open               settings, finding a device and what it has
 *   table              the function table; the end of a device
 *
 * "In the context" means: between qi_cuda_enter and qi_cuda_leave on the calling thread. Most calls
 * of the driver require it.
 *
 * Locks: qi_cuda.mutex protects the fields below it, and no lock of quire is taken while it is
 * held. The two fabric fields are atomic. Every other field is constant once the device is open,
 * except has_forked, which only a fork sets. Elastic pages and streams have a mutex each.
 *
 * A page record does not change between its creation and its destruction, so readers take no lock.
 * Elastic pages are the exception. qi_cuda_elastic.mutex serialises changes of the backing with
 * changes of the access. It is held across calls of the driver, so that access is not set for
 * chunks that come and go; only threads that change the same page wait for it. The fields
 * `requested`, `padded` and `chunk_count` are written under qi_cuda.mutex as well, for threads that
 * only read.
 */
#ifndef QUIRE_BACKENDS_CUDA_CUDA_H
#define QUIRE_BACKENDS_CUDA_CUDA_H

#include <pthread.h>
#include <sys/types.h>

#include "backends/cuda/driver.h"
#include "quire/cuda.h"
#include "src/base/atomic.h"
#include "src/base/host_memory.h"

/* Bytes. cuMemAlloc guarantees this alignment. */
#define QI_CUDA_ALIGNMENT UINT64_C(256)

/* The device itself and the host take two places of an access list. */
enum { QI_CUDA_MAX_PEERS = QUIRE_CUDA_MAX_ACCESSES - 2 };

/* What the device offers: its attribute says so and the driver has the functions for it. */
typedef struct qi_cuda_capabilities {
    bool virtual_memory;
    bool fd;
    bool fabric;
    bool dma_buf;
    bool rdma;
    bool compression;
    bool multicast;
    bool host_numa;
    bool host;
    bool managed;
    bool host_register;
    bool deferred_mapping_arrays;
    bool sparse_arrays;
    bool pools;
    int numa_node;              /* the host node nearest to the device; -1 if unknown */
    uint64_t texture_alignment; /* bytes, of linear textures */
    uint64_t row_alignment;     /* bytes, of the rows of linear textures */
} qi_cuda_capabilities;

/* A memory kind, beyond quire_device_info. */
typedef struct qi_cuda_kind {
    quire_cuda_page_kind page_kind;
    int node; /* of a host NUMA kind; -1 otherwise */
    bool is_virtual;
    bool is_rdma;                  /* its pages are requested with GPUDirect RDMA */
    quire_cuda_handle_types types; /* requested for every page of one handle */
    uint64_t granularity;          /* of its page sizes, bytes */
    uint64_t recommended;          /* granularity that the driver recommends; 0 unless is_virtual */
    quire_kind description;
} qi_cuda_kind;

/* ---- pages -------------------------------------------------------------------------------- */

/* An allocation handle of the driver: physical memory without an address. */
typedef struct qi_cuda_chunk {
    struct qi_cuda_chunk *next;
    qi_cu_handle handle;
    uint64_t size;
    uint32_t kind;
    quire_cuda_handle_types types; /* it can be exported as */
    bool is_mapped;
    bool is_backed;       /* of an elastic page: the page's, and accessible */
    bool is_never_kept;   /* for another page: created elsewhere, or on trial */
    bool is_caller_owned; /* not taken over yet: never released */
    bool is_compressed;
    bool is_rdma_capable;
    bool is_decompressible;
} qi_cuda_chunk;

/* How a page was created. It decides how the page is destroyed. */
typedef enum qi_cuda_page_type {
    QI_CUDA_PAGE_VIRTUAL = 0, /* chunks, mapped into a range of addresses */
    QI_CUDA_PAGE_ALLOCATED,   /* cuMemAlloc or cuMemAllocManaged, freed by cuMemFree */
    QI_CUDA_PAGE_LOCKED,      /* cuMemHostAlloc, freed by cuMemFreeHost */
    QI_CUDA_PAGE_SHARED,      /* a memfd, mapped and registered */
    QI_CUDA_PAGE_EXTERNAL,    /* memory of another API, with one buffer over all of it */
    QI_CUDA_PAGE_BORROWED,    /* a pointer of the caller: never freed */
    QI_CUDA_PAGE_POOLED,      /* from the device's pool */
    QI_CUDA_PAGE_OPENED,      /* a block of another process, opened by its legacy handle */
    QI_CUDA_PAGE_TILES        /* one chunk without an address; arrays are mapped to parts of it */
} qi_cuda_page_type;

/*
 * The record of an elastic page. chunks[i] is the memory of the bytes from i * chunk_size on; NULL:
 * they have none. A chunk that is not backed is a leftover: the driver refused to unmap it, or work
 * could not be awaited. The next change of the backing retries it, as does the page's destruction.
 */
typedef struct qi_cuda_elastic {
    pthread_mutex_t mutex;
    qi_cuda_chunk **chunks;
    uint64_t chunk_size;
    uint64_t count; /* of `chunks`: they cover the reserved addresses */
    uint64_t leftovers;
    qi_cuda_chunk *moving; /* without a place, for the next call that backs; a list */
    uint32_t access_count;
    qi_cu_access_desc access[QUIRE_CUDA_MAX_ACCESSES]; /* for chunks that are added later */
} qi_cuda_elastic;

/*
 * A page beyond the core's record; quire_native_page.data points to it. Destruction releases what
 * the page has in the reverse order of its creation and zeroes each field as it goes, so that it
 * can be interrupted by a failure and continued later.
 */
typedef struct qi_cuda_page {
    struct qi_cuda_page *next; /* in qi_cuda.deferred_pages */
    qi_cuda_page_type type;
    uint32_t kind;
    bool was_used; /* the core had it: work on the device may use it */
    uint64_t requested;
    uint64_t padded;               /* bytes created; of an elastic page the bytes backed now */
    quire_cuda_handle_types types; /* it can be exported as */
    qi_cu_ptr address;             /* of its first byte, on the device; 0 for tiles */
    void *host; /* the same byte for the host; NULL if the host cannot reach it */

    qi_cuda_chunk *chunks; /* in the order of their addresses; NULL if the page is elastic */
    uint32_t chunk_count;  /* of an elastic page those that are backed now */
    qi_cu_ptr reserved; /* start of the address range: `padded` bytes, or elastic->count chunks */
    qi_cu_ptr block;    /* start of the driver's allocation, or the buffer of external memory */
    qi_cu_external external;
    void *locked; /* start of the page-locked allocation */
    void *bytes;  /* mapping of the memfd, `padded` bytes */
    bool is_registered;
    int descriptor;           /* owned by the page; -1: none */
    qi_cuda_elastic *elastic; /* NULL: the page keeps its size */
} qi_cuda_page;

static inline qi_cuda_page *qi_cuda_page_of(const quire_native_page *page)
{
    return (qi_cuda_page *)(uintptr_t)page->data;
}

/* ---- devices ------------------------------------------------------------------------------ */

/* The memory pool of the device. Constant once the device is open. */
typedef struct qi_cuda_pool {
    quire_cuda_pool_options options;
    qi_cu_pool handle;   /* NULL: the device has no pool pages */
    qi_cu_stream stream; /* quire's own, in whose order pages are allocated and freed */
} qi_cuda_pool;

struct qi_cuda {
    qi_host host;
    quire_log log;
    void *library;
    qi_cuda_functions f;
    bool has_forked; /* this process is a child of the one that opened the device */
    qi_cu_device device;
    qi_cu_context context;
    bool is_primary; /* the context is the primary one, retained by this state */
    int driver_version;
    char name[256];
    unsigned char uuid[QUIRE_CUDA_UUID_SIZE]; /* all 0 if the driver does not report it */
    qi_cuda_capabilities capabilities;
    qi_cuda_kind kinds[QUIRE_MAX_KINDS];
    uint32_t kind_count;
    uint64_t device_bytes;
    uint64_t page_alignment;      /* alignment of every page, bytes; 0: as each request asks */
    quire_cuda_settings settings; /* defaults resolved; its pointers are not used after opening */
    uint32_t allowed_kinds;       /* mask of page kinds, of the user's variable; 0: all */
    uint64_t allowed_peers;       /* mask of ordinals, of the user's variable */
    int peers[QI_CUDA_MAX_PEERS];
    uint32_t peer_count;
    qi_cuda_pool pool;
    qi_atomic_u32 fabric;      /* quire_cuda_fabric */
    qi_atomic_u32 fabric_code; /* CUresult of the last attempt to create a fabric handle */
    uint64_t array_stream; /* from stream_create: maps arrays; 0: the device has no tile pools */

    pthread_mutex_t mutex;
    qi_cuda_chunk *kept; /* released chunks that further pages reuse */
    uint64_t kept_bytes; /* sum of their sizes, at most settings.kept_bytes in normal operation */
    /*
     * Objects whose destruction the driver refused half way, or a capture deferred. Creating a page
     * or giving it memory retries pages and arrays, creating an array retries arrays, destroying a
     * stream retries streams; the destruction of the device retries all for the last time.
     */
    qi_cuda_page *deferred_pages;
    struct qi_cuda_array *deferred_arrays;
    struct qi_cuda_stream *deferred_streams;
};

#endif
