/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/cuda.h - the CUDA backend: pages of device memory, which the driver's virtual memory
 * management maps if it exists, and pages of host memory that the device reaches.
 *
 * Neither building nor running needs the CUDA Toolkit. quire opens the driver's library at run
 * time, and CUDA's handles appear here as the integers and pointers that they are. The minimum is
 * CUDA 11.2; features of later drivers are used if they exist. In a build without this backend
 * every function here returns UNSUPPORTED, so that programs link either way. docs/cuda.md has more.
 * Exports, imports and multicast are in quire/cuda_share.h, which this header includes; arrays are
 * in quire/cuda_array.h, and calls on memory pools in quire/cuda_pool.h.
 *
 * Thread-safety: any thread may call any function on live objects. quire makes the context current
 * and the thread's capture mode relaxed for the call, and then restores the thread's own. In the
 * child of a fork every call returns NOT_PERMITTED, except those that destroy, which release host
 * records only.
 *
 * Errors: a device, memory or allocation of another backend is INVALID_ARGUMENT. A function that
 * takes an allocation also has the errors of quire_allocation_get_info. quire_last_native_code has
 * the CUresult.
 */
#ifndef QUIRE_CUDA_H
#define QUIRE_CUDA_H

#include "quire/backend.h"
#include "quire/cuda_share.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- page kinds ----------------------------------------------------------------------------- */

/* Sorts of pages. A device has a memory kind for each sort that is selected and available. */
typedef enum quire_cuda_page_kind {
    /* device-local: by virtual memory management, or by cuMemAlloc if the device has none; with
       GPUDirect RDMA and descriptors as far as quire_cuda_kind_info says */
    QUIRE_CUDA_DEVICE = 0,
    QUIRE_CUDA_PLAIN, /* device-local, by cuMemAlloc */
    /* device-local, compressible if the driver grants it: quire_cuda_range.is_compressed */
    QUIRE_CUDA_COMPRESSED,
    /* device-local, for registration with network cards and NCCL: one handle per page, exportable,
       capable of GPUDirect RDMA, with the recommended granularity */
    QUIRE_CUDA_REGISTERED,
    QUIRE_CUDA_PINNED,   /* host-visible, coherent, cached: page-locked */
    QUIRE_CUDA_COMBINED, /* host-visible, coherent: page-locked and write-combined, for uploads */
    /* host-visible, coherent, cached: memory of a host node by virtual memory management (EGM);
       driver 12.2 */
    QUIRE_CUDA_HOST_NUMA,
    QUIRE_CUDA_HOST, /* likewise, of any node; driver 13.0 */
    /* host-visible, coherent, cached: migrates between host and device; on devices with concurrent
       managed access */
    QUIRE_CUDA_MANAGED,
    /* device-local, for objects only: tile pools, which hold CUDA arrays (quire/cuda_array.h) */
    QUIRE_CUDA_TILES,
    /* device-local, from a memory pool of the driver that other libraries may use as well:
       quire_cuda_settings.pool (quire/cuda_pool.h) */
    QUIRE_CUDA_POOL
} quire_cuda_page_kind;

#define QUIRE_CUDA_PAGE_KINDS 11

/* The bit of a page kind in a mask. */
#define QUIRE_CUDA_KIND_BIT(page_kind) (UINT32_C(1) << (page_kind))

/* ---- opening -------------------------------------------------------------------------------- */

/* Which memory pool serves pages of kind QUIRE_CUDA_POOL. */
typedef enum quire_cuda_pool_source {
    QUIRE_CUDA_POOL_OWN = 0, /* quire creates the pool and destroys it with the device; all peers of
                                the settings may read and write its memory */
    QUIRE_CUDA_POOL_OF_CALLER, /* the caller's: `pool`, with memory of this device */
    QUIRE_CUDA_POOL_CURRENT,   /* the device's current pool at the time of opening: that of
                                  cuMemAllocAsync */
    QUIRE_CUDA_POOL_DEFAULT    /* the device's default pool */
} quire_cuda_pool_source;

/* quire never destroys a pool that it did not create, and does not change its attributes. Such a
   pool must outlive the device. */
typedef struct quire_cuda_pool_options {
    quire_cuda_pool_source source;
    void *pool; /* CUmemoryPool of QUIRE_CUDA_POOL_OF_CALLER; otherwise NULL */
    /* of QUIRE_CUDA_POOL_OWN: its maximum size, driver 12.2; drivers may exceed it by their
       granularity; 0: no limit */
    uint64_t max_bytes;
    uint64_t release_threshold; /* of QUIRE_CUDA_POOL_OWN: bytes that it keeps for later pages when
                                   pages are released; 0: none */
    uint64_t unused[4];         /* must be zero */
} quire_cuda_pool_options;

/* What pages of QUIRE_CUDA_DEVICE do without: bits of quire_cuda_settings.without. */
typedef uint32_t quire_cuda_without;
/* They are made by cuMemAlloc: other libraries can share them by cuIpcGetMemHandle, and the driver
   copies them between devices without access of a peer. */
#define QUIRE_CUDA_WITHOUT_VIRTUAL_MEMORY UINT32_C(1)
#define QUIRE_CUDA_WITHOUT_RDMA UINT32_C(2) /* they are not requested with GPUDirect RDMA */
/* They are requested with a handle type only if the memory's intent is exportable. */
#define QUIRE_CUDA_WITHOUT_EXPORT UINT32_C(4)

/*
 * Options that open and wrap have in common.
 *
 * The user of a program selects as well, by environment variables with words between commas.
 * QUIRE_CUDA_KINDS lists page kinds ("device,pinned,combined,host-numa"): settings that name none
 * get these, and a kind that is named and not listed is UNSUPPORTED. QUIRE_CUDA_PAGES adds to
 * `without`: "plain", "no-rdma", "no-export". QUIRE_CUDA_PEERS limits reachable_peers: ordinals, or
 * "none". An unknown word is INVALID_ARGUMENT.
 */
typedef struct quire_cuda_settings {
    quire_device_options device;
    /*
     * A mask of page kinds (QUIRE_CUDA_KIND_BIT). 0: device, pinned and combined, and host NUMA if
     * numa_nodes names nodes. A kind that is named and not available is UNSUPPORTED.
     */
    uint32_t kinds;
    /* Export types of exportable pages; 0: file descriptors. With FABRIC and FD, quire tries FABRIC
       and continues without it if the driver refuses: quire_cuda_info.fabric. */
    quire_cuda_handle_types export_types;
    /* Host nodes that get a QUIRE_CUDA_HOST_NUMA kind each; bit i is node i. 0: the node nearest to
       the device. */
    uint64_t numa_nodes;
    /*
     * Bytes of one allocation handle of the driver. A page of virtual memory management consists of
     * as many handles as it needs; the size is rounded up to the granularity. Creating a handle
     * costs about the same for every size. 0: one handle per page. The handles of elastic pages
     * have the chunk size of the memory instead.
     */
    uint64_t chunk_size;
    /* Maximum bytes of handles of released pages that quire keeps for the next page of the kind.
       quire releases them if memory runs out, by quire_cuda_release_kept and when the device is
       destroyed. 0: none. */
    uint64_t kept_bytes;
    /* Ordinals of other devices that may read and write all pages of virtual memory management, as
       if by quire_cuda_set_access. A device that cannot reach this one is UNSUPPORTED. */
    const int32_t *peers;
    uint32_t peer_count;
    /* Page sizes are multiples of the granularity that the driver recommends, not of the least. */
    bool recommended_granularity;
    /* The device's hardware can decompress into device-local pages of virtual memory management.
       Such pages are UNSUPPORTED if the driver cannot provide that. */
    bool hardware_decompression;
    /*
     * Before quire releases a page or a part of one, or destroys an array, it waits for the work of
     * the device's context and of the primary contexts of the devices with access to the page. Not
     * needed if every free follows the last use (docs/streams.md). Nothing waits while a stream
     * captures a graph, because that would invalidate the graph: the release is deferred. quire
     * sees captures in streams that it created or wrapped and in streams that wait for the default
     * stream; wrap every other stream that captures.
     */
    bool wait_before_release;
    quire_cuda_without without; /* QUIRE_CUDA_WITHOUT_...; 0: nothing that the driver grants */
    /*
     * For programs that copy between all devices of the process and do not ask quire: every other
     * device is a peer. If one cannot reach this device, nothing has access, and pages of
     * QUIRE_CUDA_DEVICE are without virtual memory management instead. `peers` must be empty.
     */
    bool reachable_peers;
    /* The pool of kind QUIRE_CUDA_POOL, which `kinds` must name; copied. NULL: all 0. */
    const quire_cuda_pool_options *pool;
    /* Of a driver that offers CUDA's interface on top of another one: what that one demands, and
       the number of allocation handles that a page may have. They become limits of the device. 0:
       nothing, no limit, as with NVIDIA's driver. */
    quire_elastic_rules elastic_rules;
    uint64_t max_chunks;
    uint64_t unused[4]; /* must be zero */
} quire_cuda_settings;

typedef struct quire_cuda_options {
    /*
     * Selects the device: its ordinal ("0"), or a part of its name in any case. NULL: the value of
     * the environment variable QUIRE_CUDA_DEVICE in the same form; if it is not set, device 0.
     */
    const char *device;
    const char *library; /* of the driver; NULL: "libcuda.so.1" */
    quire_cuda_settings settings;
    uint64_t unused[4]; /* must be zero */
} quire_cuda_options;

/*
 * Opens a device on its primary context and retains the context until the device is destroyed.
 * Other parts of the program that use it, such as the CUDA runtime, share it. NULL options mean
 * {0}. Errors: INVALID_ARGUMENT, UNSUPPORTED (no driver, a driver older than CUDA 11.2, no such
 * device, or a kind or peer that is not available), OUT_OF_HOST_MEMORY, and errors of the driver.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_open(const quire_cuda_options *options,
                                                      quire_device **device);

/* A context of the caller, which must outlive the quire device. */
typedef struct quire_cuda_wrap_options {
    void *context;       /* CUcontext */
    const char *library; /* the driver that the context is from; NULL: "libcuda.so.1" */
    quire_cuda_settings settings;
    uint64_t unused[4]; /* must be zero */
} quire_cuda_wrap_options;

/* Opens a device on a context of the caller. Errors as quire_cuda_open. */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_wrap(const quire_cuda_wrap_options *options,
                                                      quire_device **device);

/* Whether pages have fabric handles. */
typedef enum quire_cuda_fabric {
    QUIRE_CUDA_FABRIC_ABSENT = 0, /* the device has none */
    QUIRE_CUDA_FABRIC_UNTRIED,    /* the device reports them; no page was created with one yet */
    QUIRE_CUDA_FABRIC_GRANTED,
    QUIRE_CUDA_FABRIC_REFUSED /* by the driver, for lack of a channel or a permission */
} quire_cuda_fabric;

typedef struct quire_cuda_info {
    void *context; /* CUcontext */
    int32_t ordinal;
    uint32_t driver_version; /* 1000 * major + 10 * minor: 11020 */
    bool is_primary;         /* quire_cuda_open retained the primary context */
    bool has_virtual_memory;
    bool has_fd;
    bool has_dma_buf;
    bool has_rdma;
    bool has_compression;
    bool has_multicast;
    bool has_host_numa; /* the device reports memory of host nodes */
    bool has_host;
    bool has_deferred_arrays; /* with this or the next the device has tile pools */
    bool has_sparse_arrays;
    bool has_pools;    /* the device has pages of kind QUIRE_CUDA_POOL on request */
    int32_t numa_node; /* host node nearest to the device; -1: unknown */
    quire_cuda_fabric fabric;
    int32_t fabric_code; /* CUresult of the refusal */
    uint64_t kept_bytes; /* of handles kept for further pages */
    /* Identity of the GPU as other APIs report it (VkPhysicalDeviceIDProperties.deviceUUID); all 0:
       the driver reports none. */
    uint8_t uuid[QUIRE_CUDA_UUID_SIZE];
    uint64_t unused[4];
} quire_cuda_info;

/* Writes the properties of a device. Errors: INVALID_ARGUMENT. */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_get_info(const quire_device *device,
                                                          quire_cuda_info *info);

/* One memory kind of a device. */
typedef struct quire_cuda_kind_info {
    quire_cuda_page_kind page_kind;
    int32_t node;           /* of QUIRE_CUDA_HOST_NUMA; otherwise -1 */
    bool is_virtual_memory; /* created by virtual memory management */
    uint64_t granularity;   /* bytes; page sizes are rounded up to it */
    uint64_t recommended;   /* recommended granularity; 0 without virtual memory management */
    bool is_rdma_capable; /* pages are requested with GPUDirect RDMA; quire_cuda_range reports what
                               the driver granted */
    quire_cuda_handle_types export_types; /* requested for pages of one handle without an exportable
                                             intent */
    uint64_t unused[4];
} quire_cuda_kind_info;

/* Writes the properties of a memory kind. Errors: INVALID_ARGUMENT, OUT_OF_RANGE (no such kind). */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_get_kind_info(const quire_device *device,
                                                               uint32_t kind,
                                                               quire_cuda_kind_info *info);

/*
 * Finds the memory kind of a page kind, for quire_kind_request.mask. `node` selects one of
 * several host nodes (-1: the first). Errors: INVALID_ARGUMENT, UNSUPPORTED (the device has no such
 * kind; *kind is 0).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_find_kind(const quire_device *device,
                                                           quire_cuda_page_kind page_kind,
                                                           int32_t node, uint32_t *kind);

/*
 * Releases the handles kept for further pages. Errors: INVALID_ARGUMENT, NOT_PERMITTED,
 * BACKEND_FAILURE (the driver refused some, which stay kept).
 */
QUIRE_API quire_result quire_cuda_release_kept(quire_device *device);

/* ---- position of an allocation -------------------------------------------------------------- */

typedef struct quire_cuda_range {
    uint64_t address; /* CUdeviceptr; 0 in tile pools, which have no addresses */
    uint64_t size;
    void *host;             /* host pointer to the same bytes; NULL: the host cannot reach them */
    uint64_t page_address;  /* CUdeviceptr of the page */
    uint64_t page_offset;   /* of the allocation in the page */
    uint64_t page_size;     /* bytes requested from the backend; of a growing page the present
                               size */
    uint64_t padded_size;   /* bytes created, a multiple of the granularity; of a growing page the
                               bytes mapped now, up to one chunk more than it needs */
    uint64_t handle;        /* CUmemGenericAllocationHandle of the page's first chunk; belongs to
                               quire; 0 without virtual memory management */
    uint64_t chunk_size;    /* bytes of that handle */
    uint32_t handle_count;  /* of the page */
    bool is_compressed;     /* the driver granted that handle compression */
    bool is_rdma_capable;   /* likewise */
    bool is_decompressible; /* likewise */
    bool is_borrowed;       /* the page is memory that something else created and destroys */
    quire_cuda_handle_types export_types; /* types that the page can be exported as */
    uint64_t unused[4];
} quire_cuda_range;

/* Writes the position of an allocation. Calls no function of the driver. */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_get_range(const quire_memory *memory,
                                                           quire_allocation allocation,
                                                           quire_cuda_range *range);

/* ---- access --------------------------------------------------------------------------------- */

/* The values are CUmemAccess_flags. */
typedef enum quire_cuda_access_flags {
    QUIRE_CUDA_NO_ACCESS = 0,
    QUIRE_CUDA_READ = 1,
    QUIRE_CUDA_READ_WRITE = 3
} quire_cuda_access_flags;

/* Where an access comes from; the values are CUmemLocationType. */
typedef enum quire_cuda_location {
    QUIRE_CUDA_AT_DEVICE = 1,
    QUIRE_CUDA_AT_HOST = 2,     /* driver 12.2 */
    QUIRE_CUDA_AT_HOST_NUMA = 3 /* driver 12.2 */
} quire_cuda_location;

typedef struct quire_cuda_access {
    quire_cuda_location location;
    int32_t id; /* ordinal of the device, or number of the node; 0 for the host */
    quire_cuda_access_flags flags;
} quire_cuda_access;

#define QUIRE_CUDA_MAX_ACCESSES 64

/*
 * Sets in one call what each of `count` locations may do with the whole page of an allocation.
 * Other locations keep their access. Bytes by which the page grows later get the same access. The
 * caller ensures that nothing works on the page during the call.
 * Errors: INVALID_ARGUMENT (no locations, more than QUIRE_CUDA_MAX_ACCESSES, unknown values, or a
 * location named twice), UNSUPPORTED (the page is not of virtual memory management; the driver does
 * not grant the access, because the host reaches host pages only and a peer needs
 * cuDeviceCanAccessPeer; or more than QUIRE_CUDA_MAX_ACCESSES locations in all would reach a page
 * that grows).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_set_access(quire_memory *memory,
                                                            quire_allocation allocation,
                                                            const quire_cuda_access *accesses,
                                                            uint32_t count);

/* Queries the driver for the access of the location in *access and writes its flags. */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_get_access(const quire_memory *memory,
                                                            quire_allocation allocation,
                                                            quire_cuda_access *access);

/* ---- streams -------------------------------------------------------------------------------- */

/*
 * Wraps a CUstream of the device's context, or of a green context of its device. It stays the
 * caller's and must outlive the quire_stream, which may use it long after the last free on it: a
 * driver that is asked about a destroyed stream ends the process. `name` is copied; NULL: "stream".
 * quire_stream_create creates a stream of quire's own, which does not wait for the default stream.
 *
 * NULL and CU_STREAM_LEGACY are the legacy default stream of the context, also in programs compiled
 * for per-thread default streams. CU_STREAM_PER_THREAD is the default stream of the calling thread,
 * and stays that. Only this thread submits work to it and allocates on it. Other threads may free
 * on it, mark it, wait for its points, and copy and fill on it: their marks and work go to the
 * legacy default stream, which comes after all earlier work of the thread and before its later
 * work. The quire_stream may outlive the thread.
 *
 * While a stream captures a graph, quire submits nothing to it: quire_stream_mark, and everything
 * that needs a mark, an order or a copy, returns NOT_PERMITTED, and the capture continues. Allocate
 * and free what the graph uses on a capture stream. Earlier points can be queried and awaited at
 * any time, also by a thread that captures. While a stream captures that waits for the default
 * stream, the same holds for the default stream, and for copies and fills without a stream, which
 * use it. Everything else works during captures, in every capture mode and from every thread, and
 * invalidates no graph.
 *
 * Errors: INVALID_ARGUMENT (also for a stream of another context or device), OUT_OF_HOST_MEMORY,
 * and errors of the driver.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_stream_wrap(quire_device *device, void *native,
                                                             const char *name,
                                                             quire_stream **stream);

/*
 * Writes the CUstream of a stream, to submit work to. One that quire created lives as long as the
 * quire_stream. Errors: INVALID_ARGUMENT (also for a stream of another backend, or a capture
 * stream), NOT_PERMITTED (the default stream of another thread than the calling one).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_stream_get(const quire_stream *stream,
                                                            void **native);

#ifdef __cplusplus
}
#endif

#endif
