/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * abi.h - quire's own declarations of the part of the CUDA driver's binary interface that it uses:
 * types, constants and functions. With them the backend builds on machines without CUDA.
 *
 * A constant is named QI_ and NVIDIA's name. A type is named qi_cu_ and has the size, the alignment
 * and the members of NVIDIA's type in the same places. Enumerations of the driver are plain 32-bit
 * numbers here, because a driver may return values that are newer than this file.
 * tests/plain/cuda_abi.c compares everything with cuda.h if the CUDA Toolkit is installed.
 *
 * The driver exists on systems with 64-bit pointers only.
 */
#ifndef QUIRE_BACKENDS_CUDA_ABI_H
#define QUIRE_BACKENDS_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

#include "backends/cuda/abi_constants.h"

/* ---- plain types ------------------------------------------------------------------------ */

typedef uint32_t qi_cu_result;
typedef int qi_cu_device;                 /* an ordinal */
typedef uint64_t qi_cu_ptr;               /* a device address */
typedef uint64_t qi_cu_handle;            /* of memory without an address */
typedef uint32_t qi_cu_attribute;         /* of a device: QI_CU_DEVICE_ATTRIBUTE_* */
typedef uint32_t qi_cu_pointer_attribute; /* QI_CU_POINTER_ATTRIBUTE_* */
typedef uint32_t qi_cu_pool_attribute;    /* QI_CU_MEMPOOL_ATTR_* */
typedef uint32_t qi_cu_location_type;     /* QI_CU_MEM_LOCATION_TYPE_* */
typedef uint32_t qi_cu_allocation_type;   /* QI_CU_MEM_ALLOCATION_TYPE_* */
typedef uint32_t qi_cu_handle_type;       /* QI_CU_MEM_HANDLE_TYPE_*, a mask if several may be */
typedef uint32_t qi_cu_access_flags;      /* QI_CU_MEM_ACCESS_FLAGS_PROT_* */
typedef uint32_t qi_cu_granularity;       /* QI_CU_MEM_ALLOC_GRANULARITY_* */
typedef uint32_t qi_cu_multicast_granularity; /* QI_CU_MULTICAST_GRANULARITY_* */
typedef uint32_t qi_cu_range_type;            /* QI_CU_MEM_RANGE_HANDLE_TYPE_* */
typedef uint32_t qi_cu_memory_type;           /* QI_CU_MEMORYTYPE_* */
typedef uint32_t qi_cu_array_format;          /* QI_CU_AD_FORMAT_* */
typedef uint32_t qi_cu_resource_type;         /* QI_CU_RESOURCE_TYPE_* */
typedef uint32_t qi_cu_subresource_type;      /* QI_CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_* */
typedef uint32_t qi_cu_operation_type;        /* QI_CU_MEM_OPERATION_TYPE_* */
typedef uint32_t qi_cu_generic_type;          /* QI_CU_MEM_HANDLE_TYPE_GENERIC */
typedef uint32_t qi_cu_external_type;         /* QI_CU_EXTERNAL_MEMORY_HANDLE_TYPE_* */
typedef uint32_t qi_cu_capture_status;        /* QI_CU_STREAM_CAPTURE_STATUS_* */
typedef uint32_t qi_cu_capture_mode;          /* QI_CU_STREAM_CAPTURE_MODE_* */
typedef uint32_t qi_cu_query_result;          /* QI_CU_GET_PROC_ADDRESS_*: why a query failed */

typedef struct qi_cu_context_object *qi_cu_context;
typedef struct qi_cu_green_object *qi_cu_green;   /* a green context */
typedef struct qi_cu_stream_object *qi_cu_stream; /* NULL: the context's default stream */
typedef struct qi_cu_event_object *qi_cu_event;
typedef struct qi_cu_array_object *qi_cu_array;
typedef struct qi_cu_mipmap_object *qi_cu_mipmap;
typedef struct qi_cu_pool_object *qi_cu_pool;
typedef struct qi_cu_external_object *qi_cu_external;

typedef void (*qi_cu_host_function)(void *user);

/* ---- structs: unset members must be 0 ------------------------------------------------ */

typedef struct qi_cu_uuid {
    char bytes[16];
} qi_cu_uuid;

typedef struct qi_cu_location {
    qi_cu_location_type type;
    int id; /* ordinal of the device or number of the NUMA node; ignored for other types */
} qi_cu_location;

typedef struct qi_cu_allocation_prop {
    qi_cu_allocation_type type;
    qi_cu_handle_type requestedHandleTypes;
    qi_cu_location location;
    void *win32HandleMetaData;
    struct {
        unsigned char compressionType;
        unsigned char gpuDirectRDMACapable;
        unsigned short usage; /* QI_CU_MEM_CREATE_USAGE_* */
        unsigned char reserved[4];
    } allocFlags;
} qi_cu_allocation_prop;

typedef struct qi_cu_access_desc {
    qi_cu_location location;
    qi_cu_access_flags flags;
} qi_cu_access_desc;

typedef struct qi_cu_fabric_handle {
    unsigned char data[64];
} qi_cu_fabric_handle;

typedef struct qi_cu_ipc_handle {
    char reserved[64];
} qi_cu_ipc_handle;

typedef struct qi_cu_pool_props {
    qi_cu_allocation_type allocType;
    qi_cu_handle_type handleTypes;
    qi_cu_location location;
    void *win32SecurityAttributes;
    size_t maxSize; /* bytes; 0: no limit of the caller. Before 12.2 reserved, as `usage` is */
    unsigned short usage;
    unsigned char reserved[54];
} qi_cu_pool_props;

typedef struct qi_cu_multicast_prop {
    unsigned int numDevices;
    size_t size;
    unsigned long long handleTypes;
    unsigned long long flags;
} qi_cu_multicast_prop;

typedef struct qi_cu_array3d_descriptor {
    size_t Width, Height, Depth; /* elements; 0: no such dimension */
    qi_cu_array_format Format;
    unsigned int NumChannels;
    unsigned int Flags; /* QI_CUDA_ARRAY3D_* */
} qi_cu_array3d_descriptor;

typedef struct qi_cu_array_requirements {
    size_t size;
    size_t alignment;
    unsigned int reserved[4];
} qi_cu_array_requirements;

typedef struct qi_cu_sparse_properties {
    struct {
        unsigned int width, height, depth; /* elements */
    } tileExtent;
    unsigned int miptailFirstLevel;
    unsigned long long miptailSize; /* bytes */
    unsigned int flags;             /* QI_CU_ARRAY_SPARSE_PROPERTIES_SINGLE_MIPTAIL */
    unsigned int reserved[4];
} qi_cu_sparse_properties;

typedef struct qi_cu_array_map_info {
    qi_cu_resource_type resourceType;
    union {
        qi_cu_mipmap mipmap;
        qi_cu_array array;
    } resource;
    qi_cu_subresource_type subresourceType;
    union {
        struct {
            unsigned int level, layer;
            unsigned int offsetX, offsetY, offsetZ;              /* elements */
            unsigned int extentWidth, extentHeight, extentDepth; /* elements */
        } sparseLevel;
        struct {
            unsigned int layer;
            unsigned long long offset, size; /* bytes */
        } miptail;
    } subresource;
    qi_cu_operation_type memOperationType;
    qi_cu_generic_type memHandleType;
    union {
        qi_cu_handle memHandle;
    } memHandle;
    unsigned long long offset; /* bytes, in the memory */
    unsigned int deviceBitMask;
    unsigned int flags;
    unsigned int reserved[2];
} qi_cu_array_map_info;

typedef struct qi_cu_memcpy2d {
    size_t srcXInBytes, srcY;
    qi_cu_memory_type srcMemoryType;
    const void *srcHost;
    qi_cu_ptr srcDevice;
    qi_cu_array srcArray;
    size_t srcPitch;
    size_t dstXInBytes, dstY;
    qi_cu_memory_type dstMemoryType;
    void *dstHost;
    qi_cu_ptr dstDevice;
    qi_cu_array dstArray;
    size_t dstPitch;
    size_t WidthInBytes, Height;
} qi_cu_memcpy2d;

typedef struct qi_cu_memcpy3d {
    size_t srcXInBytes, srcY, srcZ, srcLOD;
    qi_cu_memory_type srcMemoryType;
    const void *srcHost;
    qi_cu_ptr srcDevice;
    qi_cu_array srcArray;
    void *reserved0;
    size_t srcPitch, srcHeight;
    size_t dstXInBytes, dstY, dstZ, dstLOD;
    qi_cu_memory_type dstMemoryType;
    void *dstHost;
    qi_cu_ptr dstDevice;
    qi_cu_array dstArray;
    void *reserved1;
    size_t dstPitch, dstHeight;
    size_t WidthInBytes, Height, Depth;
} qi_cu_memcpy3d;

typedef struct qi_cu_external_desc {
    qi_cu_external_type type;
    union {
        int fd;
        struct {
            void *handle;
            const void *name;
        } win32;
        const void *nvSciBufObject;
    } handle;
    unsigned long long size;
    unsigned int flags; /* QI_CUDA_EXTERNAL_MEMORY_DEDICATED */
    unsigned int reserved[16];
} qi_cu_external_desc;

typedef struct qi_cu_external_buffer {
    unsigned long long offset, size;
    unsigned int flags;
    unsigned int reserved[16];
} qi_cu_external_buffer;

/* ---- functions -------------------------------------------------------------------------- */

#include "backends/cuda/abi_functions.h"

/* qi_cu_fn_MemCreate and so on: pointers to the functions of the driver. */
#define QI_CU_TYPE(name, suffix, version, presence, parameters)                                    \
    typedef qi_cu_result(*qi_cu_fn_##name) parameters;
QI_CU_FUNCTIONS(QI_CU_TYPE)
#undef QI_CU_TYPE

#endif
