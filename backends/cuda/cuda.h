/*
 * cuda.h - the state of a CUDA device and of its pages; what the files of the backend share.
 */
#ifndef QUIRE_BACKENDS_CUDA_CUDA_H
#define QUIRE_BACKENDS_CUDA_CUDA_H

#include <pthread.h>
#include <sys/types.h>

#include "backends/cuda/functions.h"
#include "quire/cuda.h"
#include "src/base/atomic.h"
#include "src/base/host_memory.h"

/* What cuMemAlloc promises. */
#define QI_CUDA_ALIGNMENT UINT64_C(256)

enum { QI_CUDA_MOST_PEERS = QUIRE_CUDA_MAX_ACCESSES - 2 };

/* What driver and device have: attribute and functions together. */
typedef struct qi_cuda_offers {
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
    bool deferred_arrays;
    bool sparse_arrays;
    int numa_node; /* nearest to the device; -1: not known */
    uint64_t texture_alignment;
    uint64_t row_alignment;
} qi_cuda_offers;

/* A memory kind, beyond what quire_device_info says. */
typedef struct qi_cuda_kind {
    quire_cuda_page_kind page_kind;
    int node; /* of host NUMA kinds; else -1 */
    bool is_virtual;
    uint64_t granularity; /* of its pages */
    uint64_t recommended; /* of virtual memory management; else 0 */
    quire_kind description;
} qi_cuda_kind;

/* An allocation handle of the driver: physical memory. */
typedef struct qi_cuda_chunk {
    struct qi_cuda_chunk *next;
    qi_cu_handle handle;
    uint64_t size;
    uint32_t kind;
    quire_cuda_handle_types types; /* it can be exported as */
    bool is_mapped;
    bool is_foreign; /* imported: never kept for another page */
    bool is_callers; /* not taken over yet: never released */
    bool is_compressed;
    bool is_rdma_capable;
    bool is_decompressible;
} qi_cuda_chunk;

/* How a page is made, and so how it is taken down. */
typedef enum qi_cuda_make {
    QI_CUDA_VIRTUAL = 0, /* chunks mapped into a range of addresses */
    QI_CUDA_ALLOCATED,   /* cuMemAlloc, cuMemAllocManaged: cuMemFree */
    QI_CUDA_LOCKED,      /* cuMemHostAlloc: cuMemFreeHost */
    QI_CUDA_SHARED,      /* a memfd, mapped and registered */
    QI_CUDA_EXTERNAL,    /* another API's, with one buffer over all of it */
    QI_CUDA_BORROWED,    /* somebody else's */
    QI_CUDA_POOL         /* chunks that are mapped nowhere: arrays are given parts of them */
} qi_cuda_make;

/*
 * A page beyond the core's record: quire_native_page.data. What is there of it is taken down in the
 * reverse order of its making, and set to 0 one by one, so that it can be gone on with later.
 */
typedef struct qi_cuda_page {
    struct qi_cuda_page *next; /* of those to be gone on with */
    qi_cuda_make make;
    uint32_t kind;
    bool was_used; /* was handed out: work may run on it */
    uint64_t requested;
    uint64_t padded;               /* bytes made; of a page that grows, those that are mapped */
    quire_cuda_handle_types types; /* it can be exported as */
    qi_cu_ptr address;             /* of its first byte */
    void *host;                    /* the same for the host, or NULL */

    qi_cuda_chunk *chunks; /* in the order of their addresses */
    uint32_t chunk_count;
    qi_cu_ptr reserved; /* the addresses: `padded` bytes of them, or growth->most */
    qi_cu_ptr block;    /* allocated, where it begins; the buffer of external memory */
    qi_cu_external external;
    void *locked;
    void *bytes; /* mapping of the memfd, `padded` bytes */
    bool is_registered;
    int descriptor;                /* -1: none */
    struct qi_cuda_growth *growth; /* growth.h; NULL: it keeps its size */
} qi_cuda_page;

typedef struct qi_cuda_array qi_cuda_array; /* array.h */

typedef struct qi_cuda {
    qi_host host;
    quire_log log;
    void *library;
    qi_cuda_functions f;
    bool has_forked; /* this is the copy of a child: nothing can be called */
    qi_cu_device device;
    qi_cu_context context;
    bool is_primary; /* retained here */
    int driver_version;
    char name[256];
    unsigned char uuid[QUIRE_CUDA_UUID_SIZE]; /* all 0: not told */
    qi_cuda_offers offers;
    qi_cuda_kind kinds[QUIRE_MAX_KINDS];
    uint32_t kind_count;
    uint64_t device_bytes, host_bytes;
    uint64_t page_alignment;      /* promised of all pages; 0: as asked */
    quire_cuda_settings settings; /* defaults resolved; the lists are not looked at any more */
    int peers[QI_CUDA_MOST_PEERS];
    uint32_t peer_count;
    qi_atomic_u32 fabric;      /* quire_cuda_fabric */
    qi_atomic_u32 fabric_code; /* CUresult */

    pthread_mutex_t mutex; /* of the following; no lock of quire is held under it */
    qi_cuda_chunk *kept;   /* for further pages */
    uint64_t kept_bytes;
    qi_cuda_page *unfinished; /* whose taking down failed half way */
    qi_cuda_array *unfinished_arrays;
    struct qi_cuda_stream *ended; /* likewise */
} qi_cuda;

static inline qi_cuda_page *qi_cuda_page_of(const quire_native_page *page)
{
    return (qi_cuda_page *)(uintptr_t)page->data;
}

/* ---- result.c ------------------------------------------------------------------------------- */

/* Fails with what a CUresult means and "<what>: CUDA_ERROR_... (CUresult 1)". */
quire_result qi_cuda_fail(const qi_cuda_functions *f, qi_cu_result code, const char *format, ...)
    QUIRE_PRINTF(3, 4);

/* What a CUresult other than CUDA_SUCCESS is to quire. */
quire_result qi_cuda_result(qi_cu_result code);

/* The context is lost, or the driver gone: nothing can be given back any more, nor has to be. */
bool qi_cuda_is_lost(qi_cu_result code);

/* ---- context.c ------------------------------------------------------------------------------ */

/* In a child that was forked from the process that opened the device nothing can be called. */
bool qi_cuda_has_forked(const qi_cuda *cuda);

/* NOT_PERMITTED in a process that was forked from the one that opened the device. */
QUIRE_MUST_USE quire_result qi_cuda_check_process(const qi_cuda *cuda);

/* Entries of the backend table, as quire/backend.h says. */
void qi_cuda_fork_prepare(void *state);
void qi_cuda_fork_done(void *state);
void qi_cuda_fork_child(void *state, const uint64_t heap_bytes[QUIRE_MAX_HEAPS]);

/*
 * Makes the context current for the calling thread; on success `leave` ends it and gives the
 * thread its own one back.
 */
QUIRE_MUST_USE quire_result qi_cuda_enter(const qi_cuda *cuda);
void qi_cuda_leave(const qi_cuda *cuda);

/* ---- probe.c -------------------------------------------------------------------------------- */

/* What driver and device have, and the kinds that the settings ask for. In the context. */
QUIRE_MUST_USE quire_result qi_cuda_probe(qi_cuda *cuda);

/* Withdraws what there are no functions for. */
void qi_cuda_match_functions(const qi_cuda *cuda, qi_cuda_offers *offers);

/* ---- kind.c --------------------------------------------------------------------------------- */

/* Those that are wanted and there. In the context. */
QUIRE_MUST_USE quire_result qi_cuda_add_kinds(qi_cuda *cuda);

/* Whether pages of the kind can grow: limits.elastic_kinds. */
bool qi_cuda_kind_grows(const qi_cuda_kind *kind);

/* What memory of a kind is made as, exportable as `types`. */
qi_cu_allocation_prop qi_cuda_prop(const qi_cuda *cuda, const qi_cuda_kind *kind,
                                   quire_cuda_handle_types types);

/* ---- device.c ------------------------------------------------------------------------------- */

/*
 * Makes a quire device of a state whose library, functions, device and context are set. On failure
 * the state is as it was.
 */
QUIRE_MUST_USE quire_result qi_cuda_make_device(qi_cuda *cuda, const quire_cuda_settings *settings,
                                                quire_device **device);

/* The state of a device of this backend, or NULL with INVALID_ARGUMENT. */
qi_cuda *qi_cuda_of(const quire_device *device);

/* The native side of an allocation in a memory of this backend. */
QUIRE_MUST_USE quire_result qi_cuda_native(quire_memory *memory, quire_allocation allocation,
                                           quire_native *native, qi_cuda **cuda);

/* The state behind a memory, and what is known of it. */
QUIRE_MUST_USE quire_result qi_cuda_of_memory(quire_memory *memory, quire_memory_info *info,
                                              qi_cuda **cuda);

/* ---- open.c --------------------------------------------------------------------------------- */

/* Settings must be valid before anything is made. */
QUIRE_MUST_USE quire_result qi_cuda_check_settings(const quire_cuda_settings *settings);

/* Ends what open made; the state itself too. */
void qi_cuda_end(qi_cuda *cuda);

/* ---- chunk.c -------------------------------------------------------------------------------- */

/* A chunk of a kind that can be exported as `types`: a kept one, else a new one. In the context. */
QUIRE_MUST_USE quire_result qi_cuda_chunk_take(qi_cuda *cuda, uint32_t kind, uint64_t size,
                                               quire_cuda_handle_types types,
                                               qi_cuda_chunk **chunk);

/* A record for a handle that is there. */
QUIRE_MUST_USE quire_result qi_cuda_chunk_adopt(qi_cuda *cuda, uint32_t kind, uint64_t size,
                                                qi_cu_handle handle, qi_cuda_chunk **chunk);

/*
 * Gives a chunk that is not mapped back, or keeps it. False: the driver failed, and the chunk is as
 * it was.
 */
bool qi_cuda_chunk_give(qi_cuda *cuda, qi_cuda_chunk *chunk);

/* Releases all that are kept; false: some could not be. */
bool qi_cuda_release_chunks(qi_cuda *cuda);

/* What was granted of what pages of a kind are made for: asks the driver. */
void qi_cuda_chunk_look(const qi_cuda *cuda, qi_cuda_chunk *chunk);

/* ---- virtual.c: pages of virtual memory management ------------------------------------------ */

/* In the context. On failure the page holds what is to be taken down. */
QUIRE_MUST_USE quire_result qi_cuda_virtual_make(qi_cuda *cuda, const quire_page_request *request,
                                                 qi_cuda_page *page);
bool qi_cuda_virtual_take_down(qi_cuda *cuda, qi_cuda_page *page);

/* Reserves, maps the page's chunks and gives access. */
QUIRE_MUST_USE quire_result qi_cuda_virtual_map(qi_cuda *cuda, uint64_t alignment,
                                                qi_cuda_page *page);

/*
 * Unmaps the chunks from *link on, the first of which lies at the address, and gives them back.
 * False: the driver refused, and what it did not take hangs there still.
 */
bool qi_cuda_virtual_drop(qi_cuda *cuda, qi_cuda_chunk **link, qi_cu_ptr at);

/* Who may read and write pages of a kind when they are made: QUIRE_CUDA_MAX_ACCESSES at most. */
uint32_t qi_cuda_list_access(const qi_cuda *cuda, const qi_cuda_kind *kind,
                             qi_cu_access_desc *list);

/* ---- access.c ------------------------------------------------------------------------------- */

/* quire_cuda_set_access for a page, of a valid list. In the context. */
QUIRE_MUST_USE quire_result qi_cuda_page_set_access(qi_cuda *cuda, const qi_cuda_page *page,
                                                    const quire_cuda_access *list, uint32_t count);

/* ---- block.c: pages that the driver allocates whole, and shared ones ------------------------ */

QUIRE_MUST_USE quire_result qi_cuda_block_make(qi_cuda *cuda, const quire_page_request *request,
                                               qi_cuda_page *page);

/* A memfd of this process or another: maps and registers it. The descriptor is the page's. */
QUIRE_MUST_USE quire_result qi_cuda_shared_map(qi_cuda *cuda, uint64_t alignment, int descriptor,
                                               qi_cuda_page *page);
bool qi_cuda_block_take_down(qi_cuda *cuda, qi_cuda_page *page);

/* ---- page.c: entries of the table ------------------------------------------------------------ */

quire_result qi_cuda_page_create(void *state, const quire_page_request *request,
                                 quire_native_page *page);
void qi_cuda_page_destroy(void *state, const quire_native_page *page);
quire_result qi_cuda_page_map(void *state, const quire_native_page *page, void **pointer);
void qi_cuda_page_unmap(void *state, const quire_native_page *page);

/* The size of a page of a kind for as much; OUT_OF_DEVICE_MEMORY: never to be had. */
QUIRE_MUST_USE quire_result qi_cuda_round_size(const qi_cuda *cuda, uint32_t kind, uint64_t size,
                                               uint64_t *padded);

/* Waits for work that may run on a page that was handed out; false: it cannot be waited for. */
bool qi_cuda_await_work(qi_cuda *cuda, const qi_cuda_page *page);

/* Closes the page's descriptor, where it has one. */
void qi_cuda_close(qi_cuda_page *page);

/* Goes on with the pages that could not be taken down; `last`: what still fails is given up. */
void qi_cuda_finish_pages(qi_cuda *cuda, bool last);

/* ---- copy.c: entries of the table ----------------------------------------------------------- */

quire_result qi_cuda_copy_to_page(void *state, const quire_native_page *page, uint64_t offset,
                                  const void *data, uint64_t size);
quire_result qi_cuda_copy_from_page(void *state, const quire_native_page *page, uint64_t offset,
                                    void *data, uint64_t size);
quire_result qi_cuda_fill_page(void *state, const quire_native_page *page, uint64_t offset,
                               uint64_t size, uint8_t value);

/* ---- array.c -------------------------------------------------------------------------------- */

/* As qi_cuda_finish_pages. In the context. */
void qi_cuda_finish_arrays(qi_cuda *cuda, bool last);

/* ---- image.c: entries of the table ---------------------------------------------------------- */

quire_result qi_cuda_image_requirements(void *state, const quire_image_options *options,
                                        quire_requirements *requirements);
quire_result qi_cuda_object_create(void *state, const quire_object_request *request,
                                   uint64_t *native, quire_requirements *requirements);
quire_result qi_cuda_object_bind(void *state, quire_object object, uint64_t native,
                                 const quire_native_page *page, uint64_t offset);
void qi_cuda_object_destroy(void *state, quire_object object, uint64_t native);

/* ---- external.c ----------------------------------------------------------------------------- */

/* UNSUPPORTED where the GPU is another one; NULL is anyone's. */
QUIRE_MUST_USE quire_result qi_cuda_check_uuid(const qi_cuda *cuda, const void *uuid);

/* The descriptor is the page's, and then the driver's. In the context. */
QUIRE_MUST_USE quire_result qi_cuda_external_adopt(qi_cuda *cuda, const quire_cuda_import *import,
                                                   int descriptor, qi_cuda_page *page);
bool qi_cuda_external_take_down(qi_cuda *cuda, qi_cuda_page *page);

/* ---- copy_pages.c: entries of the table ----------------------------------------------------- */

quire_result qi_cuda_copy_pages(void *state, const quire_copy_job *job);
quire_result qi_cuda_copy_peer(void *state, const quire_copy_job *job);

/* ---- stream.c, stream_work.c: entries of the table ------------------------------------------ */

quire_result qi_cuda_stream_create(void *state, const void *description, uint64_t *stream);
void qi_cuda_stream_destroy(void *state, uint64_t stream);
quire_result qi_cuda_stream_mark(void *state, uint64_t stream, uint64_t *value);
quire_result qi_cuda_stream_passed(void *state, uint64_t stream, uint64_t *value);
quire_result qi_cuda_stream_await(void *state, uint64_t stream, uint64_t value,
                                  uint64_t nanoseconds, bool *has_passed);
quire_result qi_cuda_stream_order(void *state, uint64_t later, uint64_t earlier, uint64_t value);
quire_result qi_cuda_stream_copy(void *state, uint64_t stream, const quire_copy_job *job);
quire_result qi_cuda_stream_fill(void *state, uint64_t stream, const quire_native_page *page,
                                 uint64_t offset, uint64_t size, uint8_t value);

/* Goes on with the streams that could not be taken down; `last`: what still fails is given up. */
void qi_cuda_finish_streams(qi_cuda *cuda, bool last);

/* ---- share.c -------------------------------------------------------------------------------- */

/* The page of what somebody else made: request->description is a quire_cuda_import. */
QUIRE_MUST_USE quire_result qi_cuda_adopt(qi_cuda *cuda, const quire_page_request *request,
                                          qi_cuda_page *page);

#endif
