/*
 * cuda.h - the state of a CUDA device, and the functions that need nothing but this state. Pages
 * are page.h, streams stream.h, arrays array.h.
 *
 * Layers, from the bottom:
 *   functions.c, result.c, context.c           the driver's library, its error codes, its context
 *   settings.c                                 what the program and its user select
 *   capability.c, kind.c, device.c             what the device has and reports
 *   chunk.c, virtual.c, elastic.c, shared.c,   parts of pages
 *   block.c, pool.c, external.c, import.c
 *   await.c, array.c, page_destroy.c, page.c,  arrays and pages
 *   resize.c
 *   copy.c, copy_pages.c, image.c,             entries of the backend table
 *   stream.c, stream_point.c, stream_copy.c
 *   access.c, export.c, info.c, ipc.c,         public calls
 *   multicast*.c, pool_share.c, stream_wrap.c
 *   trial.c, probe.c                           trial allocations, finding out all of this
 *   open.c, table.c                            opening a device, the function table
 *
 * "In the context" means: between qi_cuda_enter and qi_cuda_leave on the calling thread. Most calls
 * of the driver require it.
 *
 * Locks: qi_cuda.mutex protects the fields below it, and no lock of quire is taken while it is
 * held. The two fabric fields are atomic. Every other field is constant once the device is open,
 * except has_forked, which only a fork sets. Elastic pages and streams have a mutex each.
 */
#ifndef QUIRE_BACKENDS_CUDA_CUDA_H
#define QUIRE_BACKENDS_CUDA_CUDA_H

#include <pthread.h>
#include <sys/types.h>

#include "backends/cuda/functions.h"
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

typedef struct qi_cuda_chunk qi_cuda_chunk; /* page.h */
typedef struct qi_cuda_page qi_cuda_page;   /* page.h */
typedef struct qi_cuda_array qi_cuda_array; /* array.h */

/* The memory pool of the device. Constant once the device is open. */
typedef struct qi_cuda_pool {
    quire_cuda_pool_options options;
    qi_cu_pool handle;   /* NULL: the device has no pool pages */
    qi_cu_stream stream; /* quire's own, in whose order pages are allocated and freed */
} qi_cuda_pool;

typedef struct qi_cuda {
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
     * Objects whose destruction the driver refused half way, or that a capture put off. Creating or
     * growing a page retries pages and arrays, creating an array retries arrays, destroying a
     * stream retries streams; the destruction of the device retries all for the last time.
     */
    qi_cuda_page *deferred_pages;
    qi_cuda_array *deferred_arrays;
    struct qi_cuda_stream *deferred_streams;
} qi_cuda;

/* ---- result.c --------------------------------------------------------------------------- */

/* Fails with the quire result for a CUresult, as "<what>: CUDA_ERROR_... (CUresult 1)", for some
   codes with ": <what to do>". */
quire_result qi_cuda_fail(const qi_cuda_functions *f, qi_cu_result code, const char *format, ...)
    QUIRE_PRINTF(3, 4);

/* The quire result for a CUresult other than CUDA_SUCCESS. */
quire_result qi_cuda_result(qi_cu_result code);

/* Returns true if the context is lost or the driver shut down. Nothing can be released any more,
   and nothing needs to be: callers treat such a release as done. */
bool qi_cuda_is_lost(qi_cu_result code);

/* ---- context.c -------------------------------------------------------------------------- */

/* Returns true in a child of the process that opened the device. It must not call the driver. */
bool qi_cuda_has_forked(const qi_cuda *cuda);

/* NOT_PERMITTED in a child of the process that opened the device. */
QUIRE_MUST_USE quire_result qi_cuda_check_process(const qi_cuda *cuda);

/* Entries of the backend table, specified in quire/backend.h. */
void qi_cuda_fork_prepare(void *state);
void qi_cuda_fork_done(void *state);
void qi_cuda_fork_child(void *state, const uint64_t heap_bytes[QUIRE_MAX_HEAPS]);

/*
 * Makes the context current on the calling thread, and the thread's capture mode relaxed. After
 * success, qi_cuda_leave restores both. May be nested. qi_cuda_push returns the driver's code and
 * must not be called in a forked child, where qi_cuda_enter is NOT_PERMITTED.
 */
QUIRE_MUST_USE quire_result qi_cuda_enter(const qi_cuda *cuda);
qi_cu_result qi_cuda_push(const qi_cuda *cuda);
void qi_cuda_leave(const qi_cuda *cuda);

/* Returns true if a stream captures a graph, or, for the legacy default stream, if a stream that
   waits for it does. In the context. */
bool qi_cuda_is_capturing(const qi_cuda *cuda, qi_cu_stream stream);

/* Like qi_cuda_enter, for calls that use the legacy default stream. NOT_PERMITTED while a capture
   makes that stream unusable. */
QUIRE_MUST_USE quire_result qi_cuda_enter_default(const qi_cuda *cuda);

/* ---- capability.c ----------------------------------------------------------------------- */

/* Reads the attributes of the device, without regard to the driver's functions. */
QUIRE_MUST_USE quire_result qi_cuda_query_capabilities(const qi_cuda *cuda,
                                                       qi_cuda_capabilities *capabilities);

/* Clears every capability for which the driver lacks a function. */
void qi_cuda_match_functions(const qi_cuda *cuda, qi_cuda_capabilities *capabilities);

/* ---- settings.c ------------------------------------------------------------------------- */

/* INVALID_ARGUMENT if the settings contradict themselves. */
QUIRE_MUST_USE quire_result qi_cuda_check_settings(const quire_cuda_settings *settings);

/* Applies the variables QUIRE_CUDA_KINDS, QUIRE_CUDA_PAGES and QUIRE_CUDA_PEERS of the environment.
   INVALID_ARGUMENT names a word that is unknown. */
QUIRE_MUST_USE quire_result qi_cuda_read_variables(qi_cuda *cuda);

/* ---- kind.c ----------------------------------------------------------------------------- */

/* The names of the page kinds in messages and, with dashes, in QUIRE_CUDA_KINDS. */
extern const char *const qi_cuda_kind_names[QUIRE_CUDA_PAGE_KINDS];

/* Adds the memory kinds that the settings request. UNSUPPORTED if the device lacks one. In the
   context. */
QUIRE_MUST_USE quire_result qi_cuda_add_kinds(qi_cuda *cuda);

/* Sets the granularities of a kind of virtual memory management. In the context. */
QUIRE_MUST_USE quire_result qi_cuda_find_granularity(const qi_cuda *cuda, qi_cuda_kind *kind);

/* Returns true if the device has a memory kind of this page kind. */
bool qi_cuda_has_kind(const qi_cuda *cuda, quire_cuda_page_kind page_kind);

/* Returns true if pages of the kind can be elastic: limits.elastic_kinds. */
bool qi_cuda_kind_is_elastic(const qi_cuda_kind *kind);

/* The properties of a chunk of a kind that can be exported as `types`. */
qi_cu_allocation_prop qi_cuda_allocation_prop(const qi_cuda *cuda, const qi_cuda_kind *kind,
                                              quire_cuda_handle_types types);

/* RAM of the machine now, in bytes, because virtual machines grow. 1 TiB if the system does not
   report it. */
uint64_t qi_cuda_host_bytes(void);

/* Rounds a page size up to the granularity of a kind. OUT_OF_DEVICE_MEMORY if the size exceeds the
   heap or overflows. */
QUIRE_MUST_USE quire_result qi_cuda_round_size(const qi_cuda *cuda, uint32_t kind, uint64_t size,
                                               uint64_t *padded);

/* ---- pool.c: pages of the pool are in page.h ------------------------------------------------ */

QUIRE_MUST_USE quire_result qi_cuda_check_pool_options(const quire_cuda_settings *settings);

/* Creates or finds the pool if the device has pool pages. In the context. On failure
   qi_cuda_pool_close removes what was created. */
QUIRE_MUST_USE quire_result qi_cuda_pool_open(qi_cuda *cuda);

/* cuMemPoolSetAccess, repeated for about a second while the driver is not ready. In the context,
   without a lock. */
qi_cu_result qi_cuda_pool_set_access(const qi_cuda *cuda, const qi_cu_access_desc *list,
                                     uint32_t count);

/* Destroys the stream, and the pool if it is quire's. Accepts a state without a pool. */
void qi_cuda_pool_close(qi_cuda *cuda);

/* ---- trial.c ---------------------------------------------------------------------------- */

/*
 * Creates a page of the smallest size of each kind that may exist as an attribute only, and
 * releases it. A host node at which the driver creates none is UNSUPPORTED. Device pages get
 * GPUDirect RDMA and descriptors if the driver grants these. In the context.
 */
QUIRE_MUST_USE quire_result qi_cuda_try_kinds(qi_cuda *cuda);

/* Returns true if the system reports the host node and reports no memory for it. `folder` is the
   system's list of nodes. */
bool qi_cuda_lacks_memory(const char *folder, int node);

/* ---- probe.c ---------------------------------------------------------------------------- */

/* Fills in everything that describes the device, and its memory kinds. In the context. */
QUIRE_MUST_USE quire_result qi_cuda_probe(qi_cuda *cuda);

/* ---- device.c --------------------------------------------------------------------------- */

/* Entries of the backend table. */
quire_result qi_cuda_describe(void *state, quire_device_info *info);
quire_result qi_cuda_heap_budget(void *state, uint32_t heap, quire_heap_budget *budget);

/* Returns the state of a device of this backend. NULL after reporting INVALID_ARGUMENT for another
   device, or NOT_PERMITTED in a forked child. */
qi_cuda *qi_cuda_of(const quire_device *device);

/* Finds the native page and offset of an allocation in a memory of this backend. */
QUIRE_MUST_USE quire_result qi_cuda_find_native(const quire_memory *memory,
                                                quire_allocation allocation, quire_native *native,
                                                qi_cuda **cuda);

/* Finds the device state of a memory of this backend, and the memory's information. */
QUIRE_MUST_USE quire_result qi_cuda_of_memory(const quire_memory *memory, quire_memory_info *info,
                                              qi_cuda **cuda);

/* ---- open.c ----------------------------------------------------------------------------- */

/*
 * Creates a state whose library, functions, device and context are set: the primary context of the
 * device that the options select, or the caller's context. On failure nothing is left.
 */
QUIRE_MUST_USE quire_result qi_cuda_open_primary(const quire_cuda_options *options, qi_cuda **cuda);
QUIRE_MUST_USE quire_result qi_cuda_open_context(const quire_cuda_wrap_options *options,
                                                 qi_cuda **cuda);

/* Releases the context, the library and the state. Pages, arrays and streams must be gone. */
void qi_cuda_release_state(qi_cuda *cuda);

#endif
