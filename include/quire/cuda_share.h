/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/cuda_share.h - sharing memory of the CUDA backend with other processes, APIs and devices:
 * exports, imports, allocation handles, multicast objects. Included by quire/cuda.h, whose rules on
 * threads and errors hold here.
 */
#ifndef QUIRE_CUDA_SHARE_H
#define QUIRE_CUDA_SHARE_H

#include "quire/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- export --------------------------------------------------------------------------------- */

/* Handles by which pages are exported; the values are CUmemAllocationHandleType. */
typedef uint32_t quire_cuda_handle_types;
#define QUIRE_CUDA_FD UINT32_C(1)     /* a POSIX file descriptor */
#define QUIRE_CUDA_FABRIC UINT32_C(8) /* 64 bytes, valid on other nodes of an NVLink fabric */

#define QUIRE_CUDA_FABRIC_SIZE 64
#define QUIRE_CUDA_UUID_SIZE 16

/*
 * Exports the page of an allocation as a file descriptor, which the caller closes. The memory must
 * have an exportable intent, or be of kind QUIRE_CUDA_REGISTERED, or of a kind whose
 * quire_cuda_kind_info.export_types has descriptors. quire_cuda_get_range has the
 * position of the allocation: page_offset and padded_size. For pinned pages the descriptor is a
 * memfd, otherwise one of the driver. On failure it is -1. UNSUPPORTED: the page consists of
 * several handles or was created without a descriptor (quire_cuda_range.export_types).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_export_fd(quire_memory *memory,
                                                           quire_allocation allocation,
                                                           int *descriptor);

/*
 * Like quire_cuda_export_fd, but writes a fabric handle: QUIRE_CUDA_FABRIC_SIZE bytes, which need
 * no release.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_export_fabric(quire_memory *memory,
                                                               quire_allocation allocation,
                                                               void *fabric);

/*
 * Exports a device-local page as a dma-buf, for drivers of other hardware. The caller closes the
 * descriptor. UNSUPPORTED: the driver or the device has no dma-bufs, or the page is elastic.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_export_dma_buf(quire_memory *memory,
                                                                quire_allocation allocation,
                                                                int *descriptor);

/* A part of a page as a dma-buf. */
typedef struct quire_cuda_dma_buf {
    int descriptor;   /* the caller closes it; -1: none */
    uint64_t offset;  /* of the range's first byte in the dma-buf */
    uint64_t size;    /* bytes of the dma-buf */
    uint64_t address; /* CUdeviceptr of its first byte */
    uint64_t unused[4];
} quire_cuda_dma_buf;

/*
 * Exports a range of an allocation as one dma-buf: in an elastic page the chunks that it touches,
 * also if they are several handles of the driver; in another page the whole page. A size of 0 means
 * up to the end of the allocation. The dma-buf keeps its memory: bytes of it that the allocation
 * loses (quire_unback_range, quire_memory_sleep, its free) are not those that the address gets
 * later, and their memory is not free before the descriptor and every import of it is closed.
 * Errors: INVALID_ARGUMENT, those of handles, OUT_OF_RANGE, WRONG_STATE (a byte has no memory, or
 * the allocation is asleep), UNSUPPORTED (as above, without the elastic page), and errors of the
 * driver. Source: cuMemGetHandleForAddressRange.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_export_dma_buf_range(quire_memory *memory,
                                                                      const quire_view *range,
                                                                      quire_cuda_dma_buf *exported);

#define QUIRE_CUDA_IPC_SIZE 64

/*
 * Writes the legacy handle (CUipcMemHandle) of a page of kind QUIRE_CUDA_PLAIN, or of
 * QUIRE_CUDA_DEVICE on a device without virtual memory management: QUIRE_CUDA_IPC_SIZE bytes, which
 * need no release. No intent is required. The handle names the whole block that cuMemAlloc
 * returned, which is the page: quire_cuda_get_range has its size (padded_size) and the position of
 * the allocation in it (page_offset).
 *
 * The page must live until every other process has freed what it imported. The driver may share
 * other memory of this process as well if the page is not a multiple of 2 MiB. UNSUPPORTED: the
 * page is not of cuMemAlloc (a page of virtual memory management, of a pool, an import), or the
 * driver has no legacy handles.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_export_ipc(quire_memory *memory,
                                                            quire_allocation allocation, void *ipc);

/* ---- import --------------------------------------------------------------------------------- */

typedef enum quire_cuda_import_type {
    QUIRE_CUDA_IMPORT_FD = 1, /* from quire_cuda_export_fd or the driver; of a memory of the same
                                 page kind; a memfd must be sealed (F_SEAL_SHRINK) */
    QUIRE_CUDA_IMPORT_FABRIC,
    QUIRE_CUDA_IMPORT_HANDLE,  /* a CUmemGenericAllocationHandle of this process */
    QUIRE_CUDA_IMPORT_POINTER, /* a CUdeviceptr of existing memory, which stays the caller's */
    /* An opaque descriptor of memory of another API, such as from quire_vulkan_export_fd. For
       device-local kinds with addresses. Offsets are the same as in Vulkan: a range of the page
       lies at page_address plus its offset there. */
    QUIRE_CUDA_IMPORT_EXTERNAL_FD,
    /* A legacy handle of another process: from quire_cuda_export_ipc, or of any block of
       cuMemAlloc. For device-local kinds with addresses. The page is the block, and is_borrowed;
       freeing the allocation closes the handle. The process that made the handle cannot open it,
       and one context of each device opens the handles of a process: otherwise UNSUPPORTED. The
       same handle imported twice gives the same address. */
    QUIRE_CUDA_IMPORT_IPC
} quire_cuda_import_type;

/* Memory that something else created. */
typedef struct quire_cuda_import {
    quire_cuda_import_type type;
    int descriptor;     /* FD, EXTERNAL_FD; stays the caller's, who may close it after the call */
    const void *fabric; /* FABRIC: QUIRE_CUDA_FABRIC_SIZE bytes */
    uint64_t handle;    /* HANDLE: quire owns it on success and releases it with the allocation */
    /* POINTER: memory of this device, otherwise UNSUPPORTED, which must outlive the allocation. The
       driver must know `size` bytes there, otherwise INVALID_ARGUMENT. */
    uint64_t pointer;
    const void *ipc; /* IPC: QUIRE_CUDA_IPC_SIZE bytes */
    /* Bytes of the whole memory: padded_size of the exporter; for EXTERNAL_FD
       VkMemoryAllocateInfo.allocationSize. Except for POINTER and IPC a multiple of the
       granularity. */
    uint64_t size;
    const char *name; /* copied; NULL: none */
    uint64_t user_data;
    /* EXTERNAL_FD: QUIRE_CUDA_UUID_SIZE bytes that identify the GPU of the memory. An import on
       another GPU is UNSUPPORTED, and the sentence names both. NULL: the caller ensures that the
       GPU is the same; what the wrong GPU does with a descriptor is undefined. */
    const void *device_uuid;
    bool is_dedicated;  /* EXTERNAL_FD: made for one buffer or image (dedicated allocation) */
    uint64_t unused[4]; /* must be zero */
} quire_cuda_import;

/*
 * Makes an allocation of existing memory: a dedicated page, released with the allocation. The page
 * has an address of its own, and the access that pages of the memory have. It counts in statistics
 * and budgets like other pages.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_import_range(quire_memory *memory,
                                                              const quire_cuda_import *import,
                                                              quire_allocation *allocation);

/* ---- allocation handles --------------------------------------------------------------------- */

/*
 * Writes the allocation handle at an address that virtual memory management mapped, by quire or by
 * anything else, with a reference of its own. quire_cuda_release_handle or an import takes the
 * reference back. *handle is 0 on failure. UNSUPPORTED: the address is not mapped in this way.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_retain_handle(quire_device *device,
                                                               uint64_t address, uint64_t *handle);
QUIRE_API quire_result quire_cuda_release_handle(quire_device *device, uint64_t handle);

/* ---- multicast ------------------------------------------------------------------------------ */

/*
 * Memory of several devices behind one object: a write to its address goes to all of them. The
 * devices are its team. Several processes may have the object, each with its own devices: one
 * creates and exports it, the others import it.
 *
 * Until all devices of the team have been added, by whichever process, the driver lets each bind
 * and each map wait.
 */
typedef struct quire_cuda_multicast quire_cuda_multicast;

typedef struct quire_cuda_multicast_options {
    uint64_t size;          /* bytes of each device's memory, rounded up to the granularity; to the
                      recommended one with quire_cuda_settings.recommended_granularity */
    const int32_t *devices; /* ordinals of those that this process adds, each once */
    uint32_t device_count;
    uint32_t team_size; /* devices of all processes together; 0: device_count */
    /* For its export; 0: none. With FABRIC and FD, quire tries FABRIC and continues without it if
       the driver refuses: quire_cuda_multicast_info.fabric_code. */
    quire_cuda_handle_types handle_types;
    uint64_t unused[4]; /* must be zero */
} quire_cuda_multicast_options;

/*
 * Creates a multicast object and adds the devices. The caller destroys it before the device, which
 * does not know it. Errors: INVALID_ARGUMENT (no size, no devices, a device named twice, more
 * devices than the team has), UNSUPPORTED (the driver or one of the devices has no multicast, or
 * the device has no fabric handles), NOT_PERMITTED (the driver refuses a fabric handle alone),
 * OUT_OF_HOST_MEMORY, and errors of the driver.
 */
QUIRE_API QUIRE_MUST_USE quire_result
quire_cuda_multicast_create(quire_device *device, const quire_cuda_multicast_options *options,
                            quire_cuda_multicast **multicast);

/*
 * Exports a multicast object that was created with QUIRE_CUDA_FD as a file descriptor, which the
 * caller closes. On failure it is -1. UNSUPPORTED: the object has no such handle, or was imported.
 */
QUIRE_API QUIRE_MUST_USE quire_result
quire_cuda_multicast_export_fd(const quire_cuda_multicast *multicast, int *descriptor);

/*
 * Likewise with QUIRE_CUDA_FABRIC: writes QUIRE_CUDA_FABRIC_SIZE bytes, which need no release. If
 * the driver refused the fabric handle at the creation, the error is the one of that refusal
 * (NOT_PERMITTED), otherwise UNSUPPORTED.
 */
QUIRE_API QUIRE_MUST_USE quire_result
quire_cuda_multicast_export_fabric(const quire_cuda_multicast *multicast, void *fabric);

/* A multicast object of another process. */
typedef struct quire_cuda_multicast_import_options {
    quire_cuda_import_type type; /* FD or FABRIC */
    int descriptor;              /* FD; stays the caller's, who may close it after the call */
    const void *fabric;          /* FABRIC: QUIRE_CUDA_FABRIC_SIZE bytes */
    uint64_t size;               /* of the exporter's quire_cuda_multicast_info */
    uint32_t team_size;          /* likewise */
    uint32_t device_count;
    const int32_t *devices; /* ordinals of those that this process adds, each once; none: NULL */
    uint64_t unused[4];     /* must be zero */
} quire_cuda_multicast_import_options;

/*
 * Imports a multicast object and adds the devices. The caller destroys it like one that it created.
 * Errors: INVALID_ARGUMENT (as quire_cuda_multicast_create; also for another type, a negative
 * descriptor, or a size that is no multiple of the granularity), UNSUPPORTED, NOT_PERMITTED,
 * OUT_OF_HOST_MEMORY, and errors of the driver.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_multicast_import(
    quire_device *device, const quire_cuda_multicast_import_options *options,
    quire_cuda_multicast **multicast);

/*
 * Binds the page of an allocation, of a memory on one of the devices, at an offset of the object.
 * Unbind it before it is released: keep the allocation. Errors: INVALID_ARGUMENT (offset or page
 * are no multiples of the granularity), OUT_OF_RANGE, UNSUPPORTED (the page consists of several
 * handles, grows, or is not device memory of virtual memory management; or the object can be
 * exported or was imported, and the page cannot be exported), WRONG_STATE (memory of the device is
 * bound in the range), OUT_OF_HOST_MEMORY, and errors of the driver.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_multicast_bind(quire_cuda_multicast *multicast,
                                                                uint64_t offset,
                                                                quire_memory *memory,
                                                                quire_allocation allocation);

/*
 * Binds memory by its device address: a part of a page of virtual memory management or of a memory
 * pool, or memory that something else created in these ways. `address`, `offset` and `size` are
 * multiples of the granularity, and the memory consists of one handle. The memory must live until
 * it is unbound. Errors as quire_cuda_multicast_bind; INVALID_ARGUMENT also if the driver does not
 * know the address.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_multicast_bind_address(
    quire_cuda_multicast *multicast, uint64_t offset, uint64_t address, uint64_t size);

/*
 * Removes a binding of the device `ordinal`; offset and size as it was bound. Errors:
 * INVALID_ARGUMENT, OUT_OF_RANGE, WRONG_STATE (this process bound no memory of the device in
 * exactly this range), and errors of the driver.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_multicast_unbind(quire_cuda_multicast *multicast,
                                                                  int32_t ordinal, uint64_t offset,
                                                                  uint64_t size);

typedef struct quire_cuda_multicast_info {
    uint64_t handle;      /* CUmemGenericAllocationHandle; belongs to quire */
    uint64_t size;        /* bytes, rounded up */
    uint64_t granularity; /* bytes; of offsets and sizes that are bound */
    uint64_t recommended; /* bytes; the driver is fastest with multiples of it */
    uint32_t team_size;
    quire_cuda_handle_types export_types; /* by which this process can export it */
    int32_t fabric_code; /* CUresult of a refused fabric handle; 0: none was refused */
    bool is_imported;
    uint64_t unused[4];
} quire_cuda_multicast_info;

/* Writes the description of a multicast object. Errors: INVALID_ARGUMENT. */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_multicast_get_info(
    const quire_cuda_multicast *multicast, quire_cuda_multicast_info *info);

/*
 * Maps the object for the device `ordinal`, which this process has added, and writes the
 * CUdeviceptr at which this device reads and writes: quire_cuda_multicast_info.size bytes. Each
 * device has an address of its own. Errors: INVALID_ARGUMENT, WRONG_STATE (the object is mapped for
 * the device), and errors of the driver. On failure *address is 0.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_multicast_map(quire_cuda_multicast *multicast,
                                                               int32_t ordinal, uint64_t *address);

/*
 * Removes the mapping for a device. The caller ensures that the device does not work on it. Errors:
 * INVALID_ARGUMENT, WRONG_STATE (the object is not mapped for the device), BACKEND_FAILURE (the
 * driver refused a step; another call does the rest).
 */
QUIRE_API quire_result quire_cuda_multicast_unmap(quire_cuda_multicast *multicast, int32_t ordinal);

/*
 * Destroys the object with the mappings and bindings of this process, and sets *multicast to NULL.
 * NULL objects are accepted. The caller ensures that no device works on it and no thread uses it.
 * Errors: INVALID_ARGUMENT, BACKEND_FAILURE (the driver refused a step; another call does the
 * rest).
 */
QUIRE_API quire_result quire_cuda_multicast_destroy(quire_cuda_multicast **multicast);

#ifdef __cplusplus
}
#endif

#endif
