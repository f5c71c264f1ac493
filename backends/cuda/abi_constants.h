/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * abi_constants.h - the numbers of the CUDA driver's interface that quire knows, grouped by the
 * release that introduced them. Included by abi.h.
 */
#ifndef QUIRE_BACKENDS_CUDA_ABI_CONSTANTS_H
#define QUIRE_BACKENDS_CUDA_ABI_CONSTANTS_H

#define QI_CU_RESULTS(X)                                                                           \
    X(CUDA_SUCCESS, 0)                                                                             \
    X(CUDA_ERROR_INVALID_VALUE, 1)                                                                 \
    X(CUDA_ERROR_OUT_OF_MEMORY, 2)                                                                 \
    X(CUDA_ERROR_NOT_INITIALIZED, 3)                                                               \
    X(CUDA_ERROR_DEINITIALIZED, 4)                                                                 \
    X(CUDA_ERROR_STUB_LIBRARY, 34)                                                                 \
    X(CUDA_ERROR_NO_DEVICE, 100)                                                                   \
    X(CUDA_ERROR_INVALID_DEVICE, 101)                                                              \
    X(CUDA_ERROR_INVALID_CONTEXT, 201)                                                             \
    X(CUDA_ERROR_MAP_FAILED, 205)                                                                  \
    X(CUDA_ERROR_ECC_UNCORRECTABLE, 214)                                                           \
    X(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, 217)                                                     \
    X(CUDA_ERROR_NVLINK_UNCORRECTABLE, 220)                                                        \
    X(CUDA_ERROR_OPERATING_SYSTEM, 304)                                                            \
    X(CUDA_ERROR_INVALID_HANDLE, 400)                                                              \
    X(CUDA_ERROR_ILLEGAL_STATE, 401)                                                               \
    X(CUDA_ERROR_NOT_FOUND, 500)                                                                   \
    X(CUDA_ERROR_NOT_READY, 600)                                                                   \
    X(CUDA_ERROR_ILLEGAL_ADDRESS, 700)                                                             \
    X(CUDA_ERROR_LAUNCH_TIMEOUT, 702)                                                              \
    X(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, 704)                                                 \
    X(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, 705)                                                     \
    X(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709)                                                        \
    X(CUDA_ERROR_ASSERT, 710)                                                                      \
    X(CUDA_ERROR_TOO_MANY_PEERS, 711)                                                              \
    X(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, 712)                                              \
    X(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, 713)                                                  \
    X(CUDA_ERROR_HARDWARE_STACK_ERROR, 714)                                                        \
    X(CUDA_ERROR_ILLEGAL_INSTRUCTION, 715)                                                         \
    X(CUDA_ERROR_MISALIGNED_ADDRESS, 716)                                                          \
    X(CUDA_ERROR_INVALID_ADDRESS_SPACE, 717)                                                       \
    X(CUDA_ERROR_INVALID_PC, 718)                                                                  \
    X(CUDA_ERROR_LAUNCH_FAILED, 719)                                                               \
    X(CUDA_ERROR_NOT_PERMITTED, 800)                                                               \
    X(CUDA_ERROR_NOT_SUPPORTED, 801)                                                               \
    X(CUDA_ERROR_SYSTEM_NOT_READY, 802)                                                            \
    X(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803)                                                      \
    X(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, 804)                                              \
    X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900)                                                  \
    X(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, 901)                                                  \
    X(CUDA_ERROR_STREAM_CAPTURE_MERGE, 902)                                                        \
    X(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, 903)                                                    \
    X(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, 904)                                                     \
    X(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, 905)                                                    \
    X(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, 906)                                                     \
    X(CUDA_ERROR_CAPTURED_EVENT, 907)                                                              \
    X(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 908)                                                 \
    X(CUDA_ERROR_UNKNOWN, 999)

/* The releases up to 13.0 introduced these one by one. */
#define QI_CU_RESULTS_13_0(X)                                                                      \
    X(CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, 36)                                                   \
    X(CUDA_ERROR_DEVICE_UNAVAILABLE, 46)                                                           \
    X(CUDA_ERROR_DEVICE_NOT_LICENSED, 102)                                                         \
    X(CUDA_ERROR_CONTAINED, 226)                                                                   \
    X(CUDA_ERROR_TENSOR_MEMORY_LEAK, 721)                                                          \
    X(CUDA_ERROR_MPS_CONNECTION_FAILED, 805)                                                       \
    X(CUDA_ERROR_MPS_RPC_FAILURE, 806)                                                             \
    X(CUDA_ERROR_MPS_SERVER_NOT_READY, 807)                                                        \
    X(CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, 808)                                                     \
    X(CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED, 809)                                                 \
    X(CUDA_ERROR_MPS_CLIENT_TERMINATED, 810)                                                       \
    X(CUDA_ERROR_EXTERNAL_DEVICE, 911)

#define QI_CU_ATTRIBUTES_11_2(X)                                                                   \
    X(CU_DEVICE_ATTRIBUTE_MAX_PITCH, 11)                                                           \
    X(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 14)                                                   \
    X(CU_DEVICE_ATTRIBUTE_INTEGRATED, 18)                                                          \
    X(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 19)                                                 \
    X(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH, 21)                                             \
    X(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH, 22)                                             \
    X(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT, 23)                                            \
    X(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH, 24)                                             \
    X(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT, 25)                                            \
    X(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH, 26)                                             \
    X(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS, 29)                                    \
    X(CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, 30)                                                   \
    X(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 33)                                                          \
    X(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 34)                                                       \
    X(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 41)                                                  \
    X(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 50)                                                       \
    X(CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 51)                                             \
    X(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH, 70)                                      \
    X(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT, 71)                                     \
    X(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH, 72)                                      \
    X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)                                            \
    X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)                                            \
    X(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 83)                                                      \
    X(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 88)                                              \
    X(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 89)                                           \
    X(CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 91)                             \
    X(CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 99)                                             \
    X(CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED, 102)                               \
    X(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 103)                        \
    X(CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED, 107)                                      \
    X(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 110)                            \
    X(CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED, 112)                                        \
    X(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 115)

#define QI_CU_ATTRIBUTES_11_7(X)                                                                   \
    X(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 116)                                          \
    X(CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED, 121)                              \
    X(CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 124)

#define QI_CU_ATTRIBUTES_12_1(X) X(CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 132)

#define QI_CU_ATTRIBUTES_13_0(X)                                                                   \
    X(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, 128)                                       \
    X(CU_DEVICE_ATTRIBUTE_NUMA_CONFIG, 130)                                                        \
    X(CU_DEVICE_ATTRIBUTE_NUMA_ID, 131)                                                            \
    X(CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, 134)                                                       \
    X(CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 141)                      \
    X(CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED, 143)                                  \
    X(CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 145)

#define QI_CU_POINTER_ATTRIBUTES(X)                                                                \
    X(CU_POINTER_ATTRIBUTE_CONTEXT, 1)                                                             \
    X(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 2)                                                         \
    X(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, 3)                                                      \
    X(CU_POINTER_ATTRIBUTE_HOST_POINTER, 4)                                                        \
    X(CU_POINTER_ATTRIBUTE_IS_MANAGED, 8)                                                          \
    X(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 9)                                                      \
    X(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, 10)                                         \
    X(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, 11)                                                   \
    X(CU_POINTER_ATTRIBUTE_RANGE_SIZE, 12)                                                         \
    X(CU_POINTER_ATTRIBUTE_MAPPED, 13)                                                             \
    X(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, 14)                                               \
    X(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, 16)

/* Constants of memory, addresses, streams and events. */
#define QI_CU_MEMORY_CONSTANTS(X)                                                                  \
    X(CU_MEM_ALLOCATION_TYPE_PINNED, 1)                                                            \
    X(CU_MEM_LOCATION_TYPE_INVALID, 0)                                                             \
    X(CU_MEM_LOCATION_TYPE_DEVICE, 1)                                                              \
    X(CU_MEM_HANDLE_TYPE_NONE, 0)                                                                  \
    X(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1)                                                 \
    X(CU_MEM_HANDLE_TYPE_WIN32, 2)                                                                 \
    X(CU_MEM_HANDLE_TYPE_WIN32_KMT, 4)                                                             \
    X(CU_MEM_ACCESS_FLAGS_PROT_NONE, 0)                                                            \
    X(CU_MEM_ACCESS_FLAGS_PROT_READ, 1)                                                            \
    X(CU_MEM_ACCESS_FLAGS_PROT_READWRITE, 3)                                                       \
    X(CU_MEM_ALLOC_GRANULARITY_MINIMUM, 0)                                                         \
    X(CU_MEM_ALLOC_GRANULARITY_RECOMMENDED, 1)                                                     \
    X(CU_MEM_ALLOCATION_COMP_NONE, 0)                                                              \
    X(CU_MEM_ALLOCATION_COMP_GENERIC, 1)                                                           \
    X(CU_MEM_CREATE_USAGE_TILE_POOL, 1)                                                            \
    X(CU_MEM_ATTACH_GLOBAL, 1)                                                                     \
    X(CU_MEM_ATTACH_HOST, 2)                                                                       \
    X(CU_MEMORYTYPE_HOST, 1)                                                                       \
    X(CU_MEMORYTYPE_DEVICE, 2)                                                                     \
    X(CU_MEMORYTYPE_ARRAY, 3)                                                                      \
    X(CU_MEMORYTYPE_UNIFIED, 4)                                                                    \
    X(CU_MEMHOSTALLOC_PORTABLE, 1)                                                                 \
    X(CU_MEMHOSTALLOC_DEVICEMAP, 2)                                                                \
    X(CU_MEMHOSTALLOC_WRITECOMBINED, 4)                                                            \
    X(CU_MEMHOSTREGISTER_PORTABLE, 1)                                                              \
    X(CU_MEMHOSTREGISTER_DEVICEMAP, 2)                                                             \
    X(CU_MEMHOSTREGISTER_IOMEMORY, 4)                                                              \
    X(CU_MEMHOSTREGISTER_READ_ONLY, 8)                                                             \
    X(CU_STREAM_DEFAULT, 0)                                                                        \
    X(CU_STREAM_NON_BLOCKING, 1)                                                                   \
    X(CU_STREAM_LEGACY, 1)                                                                         \
    X(CU_STREAM_PER_THREAD, 2)                                                                     \
    X(CU_STREAM_CAPTURE_STATUS_NONE, 0)                                                            \
    X(CU_STREAM_CAPTURE_STATUS_ACTIVE, 1)                                                          \
    X(CU_STREAM_CAPTURE_STATUS_INVALIDATED, 2)                                                     \
    X(CU_STREAM_CAPTURE_MODE_GLOBAL, 0)                                                            \
    X(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 1)                                                      \
    X(CU_STREAM_CAPTURE_MODE_RELAXED, 2)                                                           \
    X(CU_EVENT_DEFAULT, 0)                                                                         \
    X(CU_EVENT_BLOCKING_SYNC, 1)                                                                   \
    X(CU_EVENT_DISABLE_TIMING, 2)                                                                  \
    X(CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, 1)                                          \
    X(CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, 2)                                                \
    X(CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, 3)                                        \
    X(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 4)                                                        \
    X(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, 5)                                                     \
    X(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, 6)                                                        \
    X(CU_MEMPOOL_ATTR_USED_MEM_CURRENT, 7)                                                         \
    X(CU_MEMPOOL_ATTR_USED_MEM_HIGH, 8)                                                            \
    X(CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, 1)                                                       \
    X(CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, 1)                                                 \
    X(CUDA_EXTERNAL_MEMORY_DEDICATED, 1)

#define QI_CU_ARRAY_CONSTANTS(X)                                                                   \
    X(CU_AD_FORMAT_UNSIGNED_INT8, 1)                                                               \
    X(CU_AD_FORMAT_UNSIGNED_INT16, 2)                                                              \
    X(CU_AD_FORMAT_UNSIGNED_INT32, 3)                                                              \
    X(CU_AD_FORMAT_SIGNED_INT8, 8)                                                                 \
    X(CU_AD_FORMAT_SIGNED_INT16, 9)                                                                \
    X(CU_AD_FORMAT_SIGNED_INT32, 10)                                                               \
    X(CU_AD_FORMAT_HALF, 16)                                                                       \
    X(CU_AD_FORMAT_FLOAT, 32)                                                                      \
    X(CUDA_ARRAY3D_LAYERED, 1)                                                                     \
    X(CUDA_ARRAY3D_SURFACE_LDST, 2)                                                                \
    X(CUDA_ARRAY3D_CUBEMAP, 4)                                                                     \
    X(CUDA_ARRAY3D_TEXTURE_GATHER, 8)                                                              \
    X(CUDA_ARRAY3D_SPARSE, 0x40)                                                                   \
    X(CU_ARRAY_SPARSE_PROPERTIES_SINGLE_MIPTAIL, 1)                                                \
    X(CU_RESOURCE_TYPE_ARRAY, 0)                                                                   \
    X(CU_RESOURCE_TYPE_MIPMAPPED_ARRAY, 1)                                                         \
    X(CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL, 0)                                            \
    X(CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL, 1)                                                 \
    X(CU_MEM_OPERATION_TYPE_MAP, 1)                                                                \
    X(CU_MEM_OPERATION_TYPE_UNMAP, 2)                                                              \
    X(CU_MEM_HANDLE_TYPE_GENERIC, 0)

#define QI_CU_CONSTANTS_11_2(X)                                                                    \
    QI_CU_RESULTS(X)                                                                               \
    QI_CU_ATTRIBUTES_11_2(X)                                                                       \
    QI_CU_POINTER_ATTRIBUTES(X)                                                                    \
    QI_CU_MEMORY_CONSTANTS(X)                                                                      \
    QI_CU_ARRAY_CONSTANTS(X)

#define QI_CU_CONSTANTS_11_7(X)                                                                    \
    QI_CU_ATTRIBUTES_11_7(X)                                                                       \
    X(CUDA_ARRAY3D_DEFERRED_MAPPING, 0x80)                                                         \
    X(CU_POINTER_ATTRIBUTE_MAPPING_SIZE, 18)                                                       \
    X(CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, 19)                                                  \
    X(CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, 20)                                                    \
    X(CU_GET_PROC_ADDRESS_DEFAULT, 0)                                                              \
    X(CU_GET_PROC_ADDRESS_LEGACY_STREAM, 1)                                                        \
    X(CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, 2)                                            \
    X(CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 1)

#define QI_CU_CONSTANTS_12_1(X)                                                                    \
    QI_CU_ATTRIBUTES_12_1(X)                                                                       \
    X(CU_GET_PROC_ADDRESS_SUCCESS, 0)                                                              \
    X(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, 1)                                                     \
    X(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT, 2)                                               \
    X(CU_MULTICAST_GRANULARITY_MINIMUM, 0)                                                         \
    X(CU_MULTICAST_GRANULARITY_RECOMMENDED, 1)

/* The releases from 12.2 on introduced these one by one; 13.0 has all of them. */
#define QI_CU_CONSTANTS_13_0(X)                                                                    \
    QI_CU_RESULTS_13_0(X)                                                                          \
    QI_CU_ATTRIBUTES_13_0(X)                                                                       \
    X(CU_MEM_ALLOCATION_TYPE_MANAGED, 2)                                                           \
    X(CU_MEM_LOCATION_TYPE_HOST, 2)                                                                \
    X(CU_MEM_LOCATION_TYPE_HOST_NUMA, 3)                                                           \
    X(CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 4)                                                   \
    X(CU_MEM_HANDLE_TYPE_FABRIC, 8)                                                                \
    X(CU_MEM_CREATE_USAGE_HW_DECOMPRESS, 2)                                                        \
    X(CU_DEVICE_NUMA_CONFIG_NONE, 0)                                                               \
    X(CU_DEVICE_NUMA_CONFIG_NUMA_NODE, 1)

#define QI_CU_CONSTANTS(X)                                                                         \
    QI_CU_CONSTANTS_11_2(X)                                                                        \
    QI_CU_CONSTANTS_11_7(X)                                                                        \
    QI_CU_CONSTANTS_12_1(X)                                                                        \
    QI_CU_CONSTANTS_13_0(X)

/* QI_CUDA_SUCCESS and so on. */
enum {
#define QI_CU_CONSTANT(name, value) QI_##name = value,
    QI_CU_CONSTANTS(QI_CU_CONSTANT)
#undef QI_CU_CONSTANT
};

#endif
