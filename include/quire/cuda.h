/*
 * quire/cuda.h - the CUDA backend: pages of device memory, mapped by the driver's virtual memory
 * management where it has it, and of host memory that the device reaches.
 *
 * Nothing of the CUDA Toolkit is needed, to build or to run: the driver's library is opened at run
 * time, and CUDA's handles stand here as the integers and pointers that they are. CUDA 11.2 is the
 * least; what later drivers have is used where it is there. In a build without the backend every
 * function here answers UNSUPPORTED, so that programs link either way.
 *
 * Any thread may call: the context is made current for the call and the thread's own afterwards. A
 * child that was forked cannot use a device of its parent: every call answers NOT_PERMITTED there
 * but for the ends, which give back the records alone.
 *
 * Where a function takes a memory or an allocation, the errors of handles are those of
 * quire_allocation_get_info, and one of another backend is INVALID_ARGUMENT. CUresult codes are
 * kept: see quire_last_native_code. docs/cuda.md tells more.
 */
#ifndef QUIRE_CUDA_H
#define QUIRE_CUDA_H

#include "quire/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- page kinds ----------------------------------------------------------------------------- */

/* What pages are made of. A device has a memory kind for each that is wanted and there. */
typedef enum quire_cuda_page_kind {
    /* device-local: virtual memory management, or cuMemAlloc where the device has none */
    QUIRE_CUDA_DEVICE = 0,
    QUIRE_CUDA_PLAIN, /* device-local, by cuMemAlloc */
    /* device-local, compressible where the driver grants it: quire_cuda_range.is_compressed */
    QUIRE_CUDA_COMPRESSED,
    /* device-local, for registration with network cards and NCCL: one handle a page, exportable,
       capable of GPUDirect RDMA, of the recommended granularity */
    QUIRE_CUDA_REGISTERED,
    QUIRE_CUDA_PINNED,   /* host-visible, coherent, cached: page-locked */
    QUIRE_CUDA_COMBINED, /* host-visible, coherent: page-locked and write-combined, for uploads */
    /* host-visible, coherent, cached: a host node's memory by virtual memory management (EGM);
       driver 12.2 */
    QUIRE_CUDA_HOST_NUMA,
    QUIRE_CUDA_HOST, /* likewise of whatever node; driver 13.0 */
    /* host-visible, coherent, cached: migrates between host and device; of devices with concurrent
       managed access */
    QUIRE_CUDA_MANAGED,
    /* device-local, for objects only: tile pools, in which CUDA arrays lie (quire/cuda_array.h) */
    QUIRE_CUDA_TILES
} quire_cuda_page_kind;

#define QUIRE_CUDA_PAGE_KINDS 10

/* A mask of them. */
#define QUIRE_CUDA_KIND_BIT(page_kind) (UINT32_C(1) << (page_kind))

/* How pages can be handed to other processes; the values are CUmemAllocationHandleType. */
typedef uint32_t quire_cuda_handle_types;
#define QUIRE_CUDA_FD UINT32_C(1)     /* a POSIX file descriptor */
#define QUIRE_CUDA_FABRIC UINT32_C(8) /* 64 bytes that hold on other nodes of an NVLink fabric */

#define QUIRE_CUDA_FABRIC_SIZE 64
#define QUIRE_CUDA_UUID_SIZE 16

/* ---- opening -------------------------------------------------------------------------------- */

/* What open and wrap have in common. */
typedef struct quire_cuda_settings {
    quire_device_options device;
    /*
     * A mask of page kinds (QUIRE_CUDA_KIND_BIT). 0: device, pinned and combined, and host NUMA
     * where the device has it. One that is named and not there is UNSUPPORTED.
     */
    uint32_t kinds;
    /* how exportable pages can be handed out; 0: as file descriptors. FABRIC beside FD is tried and
       done without where the driver refuses it: quire_cuda_info.fabric */
    quire_cuda_handle_types export_types;
    /* host nodes of which there is a QUIRE_CUDA_HOST_NUMA kind each, bit i being node i; 0: the
       node that the device lies at */
    uint64_t numa_nodes;
    /*
     * Bytes of one allocation handle of the driver: a page of virtual memory management is made of
     * as many as it takes, rounded up to the granularity. Making one costs about the same whatever
     * its size. 0: one handle a page.
     */
    uint64_t chunk_size;
    /* bytes of handles of pages given back that are kept for the next page of the kind, most; given
       back where memory runs short, by quire_cuda_release_kept and at the end. 0: none */
    uint64_t kept_bytes;
    /* other devices, by ordinal, that may read and write all pages of virtual memory management, as
       if quire_cuda_set_access had named them; UNSUPPORTED for a device that cannot reach this */
    const int32_t *peers;
    uint32_t peer_count;
    /*
     * Pages are made in multiples of the granularity that the driver recommends, not of the least.
     */
    bool recommended_granularity;
    /* device-local pages of virtual memory management can be decompressed into by the device's
       hardware; where that cannot be had they are UNSUPPORTED */
    bool hardware_decompression;
    /* the caller sees to it that no device works on a page that is given back. Else the context's
       work is waited for first, as cuMemFree does; of other contexts it is never waited for */
    bool unsynchronized;
    uint64_t unused[4]; /* must be zero */
} quire_cuda_settings;

typedef struct quire_cuda_options {
    /*
     * Which device: its ordinal ("0"), or a part of its name, whatever the case. NULL: the
     * environment variable QUIRE_CUDA_DEVICE, which says the same; without it the first.
     */
    const char *device;
    const char *library; /* of the driver; NULL: "libcuda.so.1" */
    quire_cuda_settings settings;
    uint64_t unused[4]; /* must be zero */
} quire_cuda_options;

/*
 * Opens a device on its primary context, which is retained until the device's end; other parts of
 * the program that use it (the CUDA runtime does) share it. NULL options mean {0}. Errors:
 * INVALID_ARGUMENT, UNSUPPORTED (driver not found, or older than CUDA 11.2, no such device, a kind
 * or peer that is not there), OUT_OF_HOST_MEMORY, and what the driver answers.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_open(const quire_cuda_options *options,
                                                      quire_device **device);

/* The caller's context, which outlives the quire device. */
typedef struct quire_cuda_wrap_options {
    void *context;       /* CUcontext */
    const char *library; /* that the context comes from; NULL: "libcuda.so.1" */
    quire_cuda_settings settings;
    uint64_t unused[4]; /* must be zero */
} quire_cuda_wrap_options;

/* Takes memory in the caller's context. Errors as quire_cuda_open. */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_wrap(const quire_cuda_wrap_options *options,
                                                      quire_device **device);

/* What came of asking for fabric handles. */
typedef enum quire_cuda_fabric {
    QUIRE_CUDA_FABRIC_ABSENT = 0, /* the device has none */
    QUIRE_CUDA_FABRIC_UNTRIED,    /* the device says it has them; no page was made with one yet */
    QUIRE_CUDA_FABRIC_GRANTED,
    QUIRE_CUDA_FABRIC_REFUSED /* by the driver, for want of a channel or a permission */
} quire_cuda_fabric;

typedef struct quire_cuda_info {
    void *context; /* CUcontext */
    int32_t ordinal;
    uint32_t driver_version; /* 1000 * major + 10 * minor: 11020 */
    bool is_primary;         /* the context, retained by quire_cuda_open */
    bool has_virtual_memory;
    bool has_fd;
    bool has_dma_buf;
    bool has_rdma;
    bool has_compression;
    bool has_multicast;
    bool has_host_numa;
    bool has_host;
    bool has_deferred_arrays; /* either: there are tile pools */
    bool has_sparse_arrays;
    int32_t numa_node; /* of the host, nearest to the device; -1: not known */
    quire_cuda_fabric fabric;
    int32_t fabric_code; /* CUresult of the refusal */
    uint64_t kept_bytes; /* of handles kept for further pages */
    /* of the GPU, as other APIs tell it (VkPhysicalDeviceIDProperties.deviceUUID); all 0: the
       driver does not */
    uint8_t uuid[QUIRE_CUDA_UUID_SIZE];
    uint64_t unused[4];
} quire_cuda_info;

/* Errors: INVALID_ARGUMENT (also for a device of another backend). */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_get_info(quire_device *device,
                                                          quire_cuda_info *info);

/* One memory kind of a device. */
typedef struct quire_cuda_kind_info {
    quire_cuda_page_kind page_kind;
    int32_t node;           /* of QUIRE_CUDA_HOST_NUMA; else -1 */
    bool is_virtual_memory; /* made by virtual memory management */
    uint64_t granularity;   /* page sizes are rounded up to it, bytes */
    uint64_t recommended;   /* granularity; 0 where it is not virtual memory management */
    uint64_t unused[4];
} quire_cuda_kind_info;

/* Errors: INVALID_ARGUMENT, OUT_OF_RANGE (no such kind). */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_get_kind_info(quire_device *device, uint32_t kind,
                                                               quire_cuda_kind_info *info);

/*
 * The memory kind of a page kind, for quire_memory_options.kind_mask; of several host nodes the one
 * of `node` (-1: the first). Errors: INVALID_ARGUMENT, UNSUPPORTED (there is none; *kind is 0).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_find_kind(quire_device *device,
                                                           quire_cuda_page_kind page_kind,
                                                           int32_t node, uint32_t *kind);

/* Gives back the handles kept for further pages. Errors: INVALID_ARGUMENT, NOT_PERMITTED. */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_release_kept(quire_device *device);

/* ---- where an allocation lies --------------------------------------------------------------- */

typedef struct quire_cuda_range {
    uint64_t address; /* CUdeviceptr; 0 in tile pools, which have none */
    uint64_t size;
    void *host;             /* the same bytes for the host; NULL: it cannot reach them */
    uint64_t page_address;  /* CUdeviceptr of the page */
    uint64_t page_offset;   /* of the allocation */
    uint64_t page_size;     /* bytes asked of the backend; of a page that grows, its size now */
    uint64_t padded_size;   /* bytes made: a multiple of the granularity; of a page that grows those
                               mapped now, up to a chunk more than it would take */
    uint64_t handle;        /* CUmemGenericAllocationHandle of the page's first chunk, which stays
                               quire's; 0 where it is not virtual memory management */
    uint64_t chunk_size;    /* of that handle, bytes */
    uint32_t handle_count;  /* of the page */
    bool is_compressed;     /* that handle, granted by the driver */
    bool is_rdma_capable;   /* likewise */
    bool is_decompressible; /* likewise */
    bool is_borrowed;       /* the page is memory that somebody else made and ends */
    quire_cuda_handle_types export_types; /* that the page can be handed out as */
    uint64_t unused[4];
} quire_cuda_range;

/* Makes no call of the driver. */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_get_range(quire_memory *memory,
                                                           quire_allocation allocation,
                                                           quire_cuda_range *range);

/* ---- access --------------------------------------------------------------------------------- */

/* The values are CUmemAccess_flags. */
typedef enum quire_cuda_access_flags {
    QUIRE_CUDA_NO_ACCESS = 0,
    QUIRE_CUDA_READ = 1,
    QUIRE_CUDA_READ_WRITE = 3
} quire_cuda_access_flags;

/* Who: the values are CUmemLocationType. */
typedef enum quire_cuda_location {
    QUIRE_CUDA_AT_DEVICE = 1,
    QUIRE_CUDA_AT_HOST = 2,     /* driver 12.2 */
    QUIRE_CUDA_AT_HOST_NUMA = 3 /* likewise */
} quire_cuda_location;

typedef struct quire_cuda_access {
    quire_cuda_location location;
    int32_t id; /* ordinal of the device, number of the node; the host: 0 */
    quire_cuda_access_flags flags;
} quire_cuda_access;

#define QUIRE_CUDA_MAX_ACCESSES 64

/*
 * Sets what each of `count` locations may do with the whole page that an allocation lies in, at
 * once; others keep what they have. What a page grows by later has the same. The caller sees to it
 * that nobody works on the page meanwhile. INVALID_ARGUMENT: no or too many locations, unknown
 * values, one named twice. UNSUPPORTED: the page is not of virtual memory management, the driver
 * does not grant it (the host reaches host pages only, a peer what cuDeviceCanAccessPeer says), or
 * more than QUIRE_CUDA_MAX_ACCESSES locations in all would reach a page that grows.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_set_access(quire_memory *memory,
                                                            quire_allocation allocation,
                                                            const quire_cuda_access *accesses,
                                                            uint32_t count);

/* What the driver says that the location, set in *access, may do; its flags are filled in. */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_get_access(quire_memory *memory,
                                                            quire_allocation allocation,
                                                            quire_cuda_access *access);

/* ---- other processes and APIs --------------------------------------------------------------- */

/*
 * A descriptor of the page that an allocation lies in, made with an exportable intent (pages of
 * QUIRE_CUDA_REGISTERED are in any case); where the allocation lies in it is told by
 * quire_cuda_get_range: page_offset and padded_size. The caller closes it. Of pinned pages it is a
 * memfd, else the driver's. UNSUPPORTED for pages that cannot be exported so: of several handles,
 * or made without the intent.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_export_fd(quire_memory *memory,
                                                           quire_allocation allocation,
                                                           int *descriptor);

/* The same as a fabric handle, QUIRE_CUDA_FABRIC_SIZE bytes that nobody has to give back. */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_export_fabric(quire_memory *memory,
                                                               quire_allocation allocation,
                                                               void *fabric);

/*
 * A dma-buf of the page, device-local, for drivers of other hardware. The caller closes it.
 * UNSUPPORTED where driver or device have none, and for a page that grows.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_export_dma_buf(quire_memory *memory,
                                                                quire_allocation allocation,
                                                                int *descriptor);

typedef enum quire_cuda_import_type {
    QUIRE_CUDA_IMPORT_FD = 1, /* from quire_cuda_export_fd, or the driver; of a memory of the same
                                 page kind; a memfd must be sealed (F_SEAL_SHRINK) */
    QUIRE_CUDA_IMPORT_FABRIC,
    QUIRE_CUDA_IMPORT_HANDLE,  /* a CUmemGenericAllocationHandle of this process */
    QUIRE_CUDA_IMPORT_POINTER, /* a CUdeviceptr of memory that is there, and stays the caller's */
    /* an opaque descriptor of another API's memory: of quire_vulkan_export_fd; for device-local
       kinds with addresses. Of Vulkan's memory offsets are the same here: a range of the page lies
       at page_address and its offset there */
    QUIRE_CUDA_IMPORT_EXTERNAL_FD
} quire_cuda_import_type;

/* Memory that somebody else made. */
typedef struct quire_cuda_import {
    quire_cuda_import_type type;
    int descriptor;     /* FD, EXTERNAL_FD; stays the caller's, who may close it after the call */
    const void *fabric; /* QUIRE_CUDA_FABRIC_SIZE bytes */
    uint64_t handle;    /* taken over on success, and released with the allocation */
    uint64_t pointer;   /* must outlive the allocation */
    uint64_t size; /* bytes, all of it: padded_size of the exporter; not with POINTER a multiple
                           of the granularity; EXTERNAL_FD: VkMemoryAllocateInfo.allocationSize */
    const char *name;
    uint64_t user_data;
    /* EXTERNAL_FD: QUIRE_CUDA_UUID_SIZE bytes that tell which GPU the memory is of; an import into
       a device on another one is UNSUPPORTED and names both. NULL: the caller sees to it, for what
       the wrong GPU makes of a descriptor is not defined */
    const void *device_uuid;
    bool is_dedicated;  /* EXTERNAL_FD: made for one buffer or image (dedicated allocation) */
    uint64_t unused[4]; /* must be zero */
} quire_cuda_import;

/*
 * Makes an allocation of memory that exists: a page of its own, given back with the allocation. It
 * is mapped at an address of its own with the access that pages of the memory have. It counts in
 * figures and budgets like any other.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_import_range(quire_memory *memory,
                                                              const quire_cuda_import *import,
                                                              quire_allocation *allocation);

/*
 * The allocation handle behind an address in memory that virtual memory management mapped, by
 * whomever, with a reference of its own: quire_cuda_release_handle, or an import, takes it back.
 * UNSUPPORTED: nothing so mapped lies there. *handle is 0 on failure.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_retain_handle(quire_device *device,
                                                               uint64_t address, uint64_t *handle);
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_release_handle(quire_device *device,
                                                                uint64_t handle);

/* ---- streams -------------------------------------------------------------------------------- */

/*
 * Takes a CUstream of the device's context, which stays the caller's and outlives the quire_stream.
 * NULL and CU_STREAM_LEGACY are the context's legacy default stream, in programs that are compiled
 * for per-thread default streams, too. quire_stream_create makes a stream of quire's own, which
 * does not wait for the default stream. `name` is copied, NULL: "stream".
 *
 * While a stream captures a graph nothing is submitted to it: quire_stream_mark and what needs a
 * mark, order or copies is NOT_PERMITTED, and the capture goes on; what the graph uses is allocated
 * and freed on a held stream. Points from before can be asked and waited for all the time, also by
 * a thread that captures.
 *
 * Errors: INVALID_ARGUMENT (also for a device of another backend, a stream of another context),
 * UNSUPPORTED (CU_STREAM_PER_THREAD, which is another stream in each thread), OUT_OF_HOST_MEMORY,
 * and what the driver answers.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_stream_wrap(quire_device *device, void *native,
                                                             const char *name,
                                                             quire_stream **stream);

/*
 * The CUstream, to submit work to; one of quire's own lives as long as the quire_stream. Errors:
 * INVALID_ARGUMENT (also for a stream of another backend, or a held one).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_stream_get(quire_stream *stream, void **native);

/* ---- multicast ------------------------------------------------------------------------------ */

/* Memory of several devices behind one address: what is written there is written to all. */
typedef struct quire_cuda_multicast quire_cuda_multicast;

typedef struct quire_cuda_multicast_options {
    uint64_t size;          /* bytes of each device's memory, rounded up to the granularity */
    const int32_t *devices; /* ordinals, each once */
    uint32_t device_count;
    quire_cuda_handle_types handle_types; /* it can be exported as; 0: none */
    uint64_t unused[4];                   /* must be zero */
} quire_cuda_multicast_options;

/*
 * Makes a multicast object and adds the devices. It is ended before the device, which does not know
 * of it. UNSUPPORTED where the driver or one of the devices has no multicast.
 */
QUIRE_API QUIRE_MUST_USE quire_result
quire_cuda_multicast_create(quire_device *device, const quire_cuda_multicast_options *options,
                            quire_cuda_multicast **multicast);

/*
 * Binds the page that an allocation lies in, of a memory on one of the devices, at an offset of the
 * object. The page must be of one handle, a multiple of the granularity and none that grows, and
 * must be unbound before it is given back: keep the allocation. Errors: OUT_OF_RANGE, and what the
 * driver answers.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_multicast_bind(quire_cuda_multicast *multicast,
                                                                uint64_t offset,
                                                                quire_memory *memory,
                                                                quire_allocation allocation);

/* Takes a binding back: as it was bound. */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_multicast_unbind(quire_cuda_multicast *multicast,
                                                                  int32_t ordinal, uint64_t offset,
                                                                  uint64_t size);

typedef struct quire_cuda_multicast_info {
    uint64_t handle; /* CUmemGenericAllocationHandle; stays quire's */
    uint64_t size;   /* bytes, rounded up */
    uint64_t granularity;
    uint64_t address; /* CUdeviceptr at which the devices read and write; 0: not mapped yet */
    uint64_t unused[4];
} quire_cuda_multicast_info;

QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_multicast_get_info(
    const quire_cuda_multicast *multicast, quire_cuda_multicast_info *info);

/* Maps the object for the device it was made with. WRONG_STATE: it is mapped. */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_multicast_map(quire_cuda_multicast *multicast);

/* Unmaps and releases it; bindings end with it. No device works on it any more. */
QUIRE_API QUIRE_MUST_USE quire_result
quire_cuda_multicast_destroy(quire_cuda_multicast **multicast);

#ifdef __cplusplus
}
#endif

#endif
