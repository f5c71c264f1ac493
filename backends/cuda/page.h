/*
 * page.h - pages of a CUDA device and the chunks that they consist of: creating, sharing, resizing,
 * copying and destroying them.
 *
 * A page record does not change between its creation and its destruction, so readers take no lock.
 * Elastic pages are the exception. qi_cuda_elastic.resize_mutex serialises changes of the size with
 * changes of the access. It is held across calls of the driver, so that access is not set for a
 * range whose end moves; only threads that change the same page wait for it. The fields
 * `requested`, `padded` and `chunk_count` are written under qi_cuda.mutex as well, for threads that
 * only read.
 */
#ifndef QUIRE_BACKENDS_CUDA_PAGE_H
#define QUIRE_BACKENDS_CUDA_PAGE_H

#include "backends/cuda/cuda.h"

/* An allocation handle of the driver: physical memory without an address. */
struct qi_cuda_chunk {
    struct qi_cuda_chunk *next;
    qi_cu_handle handle;
    uint64_t size;
    uint32_t kind;
    quire_cuda_handle_types types; /* it can be exported as */
    bool is_mapped;
    bool is_never_kept;   /* for another page: created elsewhere, or on trial */
    bool is_caller_owned; /* not taken over yet: never released */
    bool is_compressed;
    bool is_rdma_capable;
    bool is_decompressible;
};

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
 * The record of an elastic page. The chunks up to `end` are the page's: page->padded bytes, mapped
 * and accessible. Chunks behind `end` belong to no page any more; the driver refused to release
 * them. The next change of the size retries them first, as does the page's destruction.
 */
typedef struct qi_cuda_elastic {
    pthread_mutex_t resize_mutex;
    uint64_t max_bytes; /* bytes of reserved addresses */
    qi_cuda_chunk **end;
    uint32_t access_count;
    qi_cu_access_desc access[QUIRE_CUDA_MAX_ACCESSES]; /* for chunks that are added later */
} qi_cuda_elastic;

/*
 * A page beyond the core's record; quire_native_page.data points to it. Destruction releases what
 * the page has in the reverse order of its creation and zeroes each field as it goes, so that it
 * can be interrupted by a failure and continued later.
 */
struct qi_cuda_page {
    struct qi_cuda_page *next; /* in qi_cuda.deferred_pages */
    qi_cuda_page_type type;
    uint32_t kind;
    bool was_used; /* the core had it: work on the device may use it */
    uint64_t requested;
    uint64_t padded;               /* bytes created; of an elastic page the bytes mapped now */
    quire_cuda_handle_types types; /* it can be exported as */
    qi_cu_ptr address;             /* of its first byte, on the device; 0 for tiles */
    void *host; /* the same byte for the host; NULL if the host cannot reach it */

    qi_cuda_chunk *chunks; /* in the order of their addresses */
    uint32_t chunk_count;
    qi_cu_ptr reserved; /* start of the address range: `padded` bytes, or elastic->max_bytes */
    qi_cu_ptr block;    /* start of the driver's allocation, or the buffer of external memory */
    qi_cu_external external;
    void *locked; /* start of the page-locked allocation */
    void *bytes;  /* mapping of the memfd, `padded` bytes */
    bool is_registered;
    int descriptor;           /* owned by the page; -1: none */
    qi_cuda_elastic *elastic; /* NULL: the page keeps its size */
};

static inline qi_cuda_page *qi_cuda_page_of(const quire_native_page *page)
{
    return (qi_cuda_page *)(uintptr_t)page->data;
}

/* ---- chunk.c: all in the context, except qi_cuda_release_kept_chunks in a forked child ---- */

/* Acquires a chunk of a kind that can be exported as `types`: a kept one, or a new one.
   chunk->types may lack the fabric handle that the driver refused. */
QUIRE_MUST_USE quire_result qi_cuda_chunk_acquire(qi_cuda *cuda, uint32_t kind, uint64_t size,
                                                  quire_cuda_handle_types types,
                                                  qi_cuda_chunk **chunk);

/* Creates a record for a handle that exists. The chunk owns the handle. */
QUIRE_MUST_USE quire_result qi_cuda_chunk_import(qi_cuda *cuda, uint32_t kind, uint64_t size,
                                                 qi_cu_handle handle, qi_cuda_chunk **chunk);

/* Keeps or releases a chunk that is not mapped. Returns false if the driver refused the release;
   the chunk is then unchanged and the caller's. */
bool qi_cuda_chunk_release(qi_cuda *cuda, qi_cuda_chunk *chunk);

/* Releases all kept chunks. Returns false if the driver refused some; they stay kept. */
bool qi_cuda_release_kept_chunks(qi_cuda *cuda);

/* Releases all kept chunks if a call of the driver ran out of memory. Returns true if the call can
   be repeated. */
bool qi_cuda_make_room(qi_cuda *cuda, qi_cu_result code);

/* Queries which of the requested properties the driver granted. */
void qi_cuda_chunk_query(const qi_cuda *cuda, qi_cuda_chunk *chunk);

/* ---- virtual.c: pages of virtual memory management. All in the context ------------------ */

/* On failure the page holds what was created; the caller destroys it. */
QUIRE_MUST_USE quire_result qi_cuda_virtual_create(qi_cuda *cuda, const quire_page_request *request,
                                                   qi_cuda_page *page);

/* Reserves addresses, maps the page's chunks and sets access. On failure as above. */
QUIRE_MUST_USE quire_result qi_cuda_virtual_map(qi_cuda *cuda, uint64_t alignment,
                                                qi_cuda_page *page);

/*
 * Maps `size` further bytes behind the mapped bytes of an elastic page and sets access: `count`
 * chunks from elastic->end up to *end. Does not change the page's record. On failure the caller
 * releases the chunks from elastic->end on. Requires the resize mutex. Releases and reacquires it
 * while the driver is not ready.
 */
QUIRE_MUST_USE quire_result qi_cuda_virtual_extend(qi_cuda *cuda, const qi_cuda_page *page,
                                                   uint64_t size, qi_cuda_chunk ***end,
                                                   uint32_t *count);

/* Unmaps and releases the chunks from *link on; the first lies at address `at`. Returns false if
   the driver refused; the chunks that it did not take remain in the list. */
bool qi_cuda_virtual_release_chunks(qi_cuda *cuda, qi_cuda_chunk **link, qi_cu_ptr at);

/* Returns false if the driver refused a step; the rest can be retried. */
bool qi_cuda_virtual_destroy(qi_cuda *cuda, qi_cuda_page *page);

/* Lists who may access new pages of a kind: at most QUIRE_CUDA_MAX_ACCESSES. */
uint32_t qi_cuda_list_access(const qi_cuda *cuda, const qi_cuda_kind *kind,
                             qi_cu_access_desc *list);

/* ---- pool.c: pages of the device's pool. In the context --------------------------------- */

/* On failure the page holds what was created. */
QUIRE_MUST_USE quire_result qi_cuda_pool_page_create(qi_cuda *cuda,
                                                     const quire_page_request *request,
                                                     qi_cuda_page *page);

/* False: the driver refused, and the page can be destroyed later. */
bool qi_cuda_pool_page_destroy(qi_cuda *cuda, qi_cuda_page *page);

/* ---- access.c --------------------------------------------------------------------------- */

/*
 * Returns true after a pause, so that the caller repeats a call: for about a second, counted by
 * *pauses, which begins at 0. Releases the mutex `held` during the pause; NULL: the caller holds
 * none.
 */
bool qi_cuda_pause(uint32_t *pauses, pthread_mutex_t *held);

/* The same if `code` is NOT_READY, which cuMemSetAccess may return while other threads submit
   work. */
bool qi_cuda_retry_access(qi_cu_result code, uint32_t *pauses, pthread_mutex_t *held);

/* INVALID_ARGUMENT if the location is unknown; or for a list, its length or flags, or if it names a
   location twice. */
QUIRE_MUST_USE quire_result qi_cuda_check_location(const quire_cuda_access *access);
QUIRE_MUST_USE quire_result qi_cuda_check_accesses(const quire_cuda_access *list, uint32_t count);

/* UNSUPPORTED if device `id` cannot access this one. In the context. */
QUIRE_MUST_USE quire_result qi_cuda_check_peer(const qi_cuda *cuda, int id);

/* quire_cuda_set_access for a page, with a valid list. In the context. */
QUIRE_MUST_USE quire_result qi_cuda_page_set_access(qi_cuda *cuda, const qi_cuda_page *page,
                                                    const quire_cuda_access *list, uint32_t count);

/* ---- elastic.c -------------------------------------------------------------------------- */

/* Creates page->elastic. UNSUPPORTED if the request cannot be elastic. */
QUIRE_MUST_USE quire_result qi_cuda_elastic_create(qi_cuda *cuda, const quire_page_request *request,
                                                   qi_cuda_page *page);

/* Releases the record only. Accepts a page that is not elastic. */
void qi_cuda_elastic_destroy(qi_cuda *cuda, qi_cuda_page *page);

/* ---- shared.c: page-locked memory that other processes can map -------------------------- */

/* Creates a memfd and maps it as below. */
QUIRE_MUST_USE quire_result qi_cuda_shared_create(qi_cuda *cuda, const quire_page_request *request,
                                                  qi_cuda_page *page);

/* Maps and registers page->padded bytes of a memfd. The page owns the descriptor, also on failure.
   In the context. */
QUIRE_MUST_USE quire_result qi_cuda_shared_map(qi_cuda *cuda, uint64_t alignment, int descriptor,
                                               qi_cuda_page *page);

/* Duplicates a descriptor with close-on-exec. */
QUIRE_MUST_USE quire_result qi_cuda_copy_descriptor(int from, int *descriptor);

/* Closes the page's descriptor, if it has one. */
void qi_cuda_page_close_descriptor(qi_cuda_page *page);

/* ---- block.c: pages that the driver allocates as a whole. In the context ---------------- */

QUIRE_MUST_USE quire_result qi_cuda_block_create(qi_cuda *cuda, const quire_page_request *request,
                                                 qi_cuda_page *page);

/* Destroys pages of all types but those of virtual.c and external.c. False: the rest can be
   retried. */
bool qi_cuda_block_destroy(qi_cuda *cuda, qi_cuda_page *page);

/* ---- external.c: memory of other APIs --------------------------------------------------- */

/* UNSUPPORTED if `uuid` names another GPU than the device. NULL is not checked. */
QUIRE_MUST_USE quire_result qi_cuda_check_uuid(const qi_cuda *cuda, const void *uuid);

/* The page owns the descriptor until the driver accepts it. In the context. */
QUIRE_MUST_USE quire_result qi_cuda_external_import(qi_cuda *cuda, const quire_cuda_import *import,
                                                    int descriptor, qi_cuda_page *page);
bool qi_cuda_external_destroy(qi_cuda *cuda, qi_cuda_page *page);

/* ---- ipc.c: blocks of other processes. In the context ----------------------------------- */

/* On failure the page holds what was opened. */
QUIRE_MUST_USE quire_result qi_cuda_ipc_import(qi_cuda *cuda, const quire_cuda_import *import,
                                               qi_cuda_page *page);

/* Closes the block. False: the driver refused, and the page can be destroyed later. */
bool qi_cuda_ipc_destroy(qi_cuda *cuda, qi_cuda_page *page);

/* ---- import.c --------------------------------------------------------------------------- */

/* Makes a page of memory created elsewhere. request->description is a quire_cuda_import. In the
   context. */
QUIRE_MUST_USE quire_result qi_cuda_import_page(qi_cuda *cuda, const quire_page_request *request,
                                                qi_cuda_page *page);

/* ---- await.c: only with quire_cuda_settings.wait_before_release. In the context ---------- */

/* Waits for work that may use a page. Returns false if that is not possible now. */
bool qi_cuda_await_work(const qi_cuda *cuda, const qi_cuda_page *page);

/* Waits for the work of the device's context. Returns false as above. */
bool qi_cuda_await_context(const qi_cuda *cuda);

/* ---- page_destroy.c --------------------------------------------------------------------- */

/* Destroys a page that page creation could not complete; defers what the driver refuses. In the
   context. */
void qi_cuda_page_discard(qi_cuda *cuda, qi_cuda_page *page);

/* Retries the deferred pages. With `is_last` it releases the records of those that still fail, and
   logs each. In the context. */
void qi_cuda_retry_deferred_pages(qi_cuda *cuda, bool is_last);

/* ---- copy.c ----------------------------------------------------------------------------- */

/* Waits for the default stream, also after an error, because earlier calls may have left work in
   it, and leaves the context. Returns `code`, or else the error of the wait. */
qi_cu_result qi_cuda_finish_default(const qi_cuda *cuda, qi_cu_result code);

/* ---- entries of the backend table, specified in quire/backend.h ------------------------- */

quire_result qi_cuda_page_create(void *state, const quire_page_request *request,
                                 quire_native_page *page);
void qi_cuda_page_destroy(void *state, const quire_native_page *page);
quire_result qi_cuda_page_map(void *state, const quire_native_page *page, void **pointer);
void qi_cuda_page_unmap(void *state, const quire_native_page *page);
quire_result qi_cuda_page_resize(void *state, const quire_native_page *page, uint64_t from,
                                 uint64_t to);
quire_result qi_cuda_copy_to_page(void *state, const quire_native_page *page, uint64_t offset,
                                  const void *data, uint64_t size);
quire_result qi_cuda_copy_from_page(void *state, const quire_native_page *page, uint64_t offset,
                                    void *data, uint64_t size);
quire_result qi_cuda_fill_page(void *state, const quire_native_page *page, uint64_t offset,
                               uint64_t size, uint8_t value);
quire_result qi_cuda_copy_pages(void *state, const quire_copy_job *job);
quire_result qi_cuda_copy_peer(void *state, const quire_copy_job *job);

#endif
