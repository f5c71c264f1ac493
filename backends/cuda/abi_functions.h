/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * abi_functions.h - the functions of the CUDA driver that quire knows, one row each. Included by
 * abi.h, whose types the rows use.
 *
 * A row is X(name, suffix, version, presence, parameters):
 *   "cu" name         what quire requests from cuGetProcAddress, together with the version
 *   "cu" name suffix  the symbol of libcuda.so.1, for drivers that have no cuGetProcAddress
 *   version           the first driver that has the function with these parameters, 1000 * major +
 *                     10 * minor; asking for a later one may answer another function
 *   presence          REQUIRED: without it the backend does not open; OPTIONAL: it does without
 */
#ifndef QUIRE_BACKENDS_CUDA_ABI_FUNCTIONS_H
#define QUIRE_BACKENDS_CUDA_ABI_FUNCTIONS_H

#define QI_CU_DEVICE_FUNCTIONS(X)                                                                  \
    X(Init, , 2000, REQUIRED, (unsigned int flags))                                                \
    X(DriverGetVersion, , 2020, REQUIRED, (int *version))                                          \
    X(GetErrorName, , 6000, OPTIONAL, (qi_cu_result error, const char **name))                     \
    X(GetErrorString, , 6000, OPTIONAL, (qi_cu_result error, const char **text))                   \
    X(DeviceGetCount, , 2000, REQUIRED, (int *count))                                              \
    X(DeviceGet, , 2000, REQUIRED, (qi_cu_device * device, int ordinal))                           \
    X(DeviceGetName, , 2000, REQUIRED, (char *name, int size, qi_cu_device device))                \
    X(DeviceGetUuid, _v2, 11040, OPTIONAL, (qi_cu_uuid * uuid, qi_cu_device device))               \
    X(DeviceTotalMem, _v2, 3020, REQUIRED, (size_t * bytes, qi_cu_device device))                  \
    X(DeviceGetAttribute, , 2000, REQUIRED,                                                        \
      (int *value, qi_cu_attribute attribute, qi_cu_device device))                                \
    X(DeviceCanAccessPeer, , 4000, OPTIONAL, (int *can, qi_cu_device device, qi_cu_device peer))

#define QI_CU_CONTEXT_FUNCTIONS(X)                                                                 \
    X(DevicePrimaryCtxRetain, , 7000, REQUIRED, (qi_cu_context * context, qi_cu_device device))    \
    X(DevicePrimaryCtxRelease, _v2, 11000, REQUIRED, (qi_cu_device device))                        \
    X(DevicePrimaryCtxGetState, , 7000, OPTIONAL,                                                  \
      (qi_cu_device device, unsigned int *flags, int *active))                                     \
    X(CtxPushCurrent, _v2, 4000, REQUIRED, (qi_cu_context context))                                \
    X(CtxPopCurrent, _v2, 4000, REQUIRED, (qi_cu_context * context))                               \
    X(CtxGetCurrent, , 4000, REQUIRED, (qi_cu_context * context))                                  \
    X(CtxGetDevice, , 2000, REQUIRED, (qi_cu_device * device))                                     \
    X(CtxSynchronize, , 2000, REQUIRED, (void))                                                    \
    X(CtxEnablePeerAccess, , 4000, OPTIONAL, (qi_cu_context peer, unsigned int flags))             \
    X(CtxDisablePeerAccess, , 4000, OPTIONAL, (qi_cu_context peer))

#define QI_CU_MEMORY_FUNCTIONS(X)                                                                  \
    X(MemGetInfo, _v2, 3020, REQUIRED, (size_t * free, size_t * total))                            \
    X(MemAlloc, _v2, 3020, REQUIRED, (qi_cu_ptr * pointer, size_t size))                           \
    X(MemFree, _v2, 3020, REQUIRED, (qi_cu_ptr pointer))                                           \
    X(MemGetAddressRange, _v2, 3020, OPTIONAL,                                                     \
      (qi_cu_ptr * base, size_t * size, qi_cu_ptr pointer))                                        \
    X(MemHostAlloc, , 2020, REQUIRED, (void **pointer, size_t size, unsigned int flags))           \
    X(MemFreeHost, , 2000, REQUIRED, (void *pointer))                                              \
    X(MemHostRegister, _v2, 6050, OPTIONAL, (void *pointer, size_t size, unsigned int flags))      \
    X(MemHostUnregister, , 4000, OPTIONAL, (void *pointer))                                        \
    X(MemHostGetDevicePointer, _v2, 3020, REQUIRED,                                                \
      (qi_cu_ptr * device, void *pointer, unsigned int flags))                                     \
    X(MemAllocManaged, , 6000, OPTIONAL, (qi_cu_ptr * pointer, size_t size, unsigned int flags))   \
    X(PointerGetAttribute, , 4000, OPTIONAL,                                                       \
      (void *value, qi_cu_pointer_attribute attribute, qi_cu_ptr pointer))

/* Physical memory, address ranges, and mappings of the one into the other. */
#define QI_CU_VIRTUAL_FUNCTIONS(X)                                                                 \
    X(MemGetAllocationGranularity, , 10020, OPTIONAL,                                              \
      (size_t * size, const qi_cu_allocation_prop *prop, qi_cu_granularity option))                \
    X(MemCreate, , 10020, OPTIONAL,                                                                \
      (qi_cu_handle * handle, size_t size, const qi_cu_allocation_prop *prop,                      \
       unsigned long long flags))                                                                  \
    X(MemRelease, , 10020, OPTIONAL, (qi_cu_handle handle))                                        \
    X(MemAddressReserve, , 10020, OPTIONAL,                                                        \
      (qi_cu_ptr * pointer, size_t size, size_t alignment, qi_cu_ptr hint,                         \
       unsigned long long flags))                                                                  \
    X(MemAddressFree, , 10020, OPTIONAL, (qi_cu_ptr pointer, size_t size))                         \
    X(MemMap, , 10020, OPTIONAL,                                                                   \
      (qi_cu_ptr pointer, size_t size, size_t offset, qi_cu_handle handle,                         \
       unsigned long long flags))                                                                  \
    X(MemUnmap, , 10020, OPTIONAL, (qi_cu_ptr pointer, size_t size))                               \
    X(MemSetAccess, , 10020, OPTIONAL,                                                             \
      (qi_cu_ptr pointer, size_t size, const qi_cu_access_desc *desc, size_t count))               \
    X(MemGetAccess, , 10020, OPTIONAL,                                                             \
      (unsigned long long *flags, const qi_cu_location *location, qi_cu_ptr pointer))              \
    X(MemExportToShareableHandle, , 10020, OPTIONAL,                                               \
      (void *shared, qi_cu_handle handle, qi_cu_handle_type type, unsigned long long flags))       \
    X(MemImportFromShareableHandle, , 10020, OPTIONAL,                                             \
      (qi_cu_handle * handle, void *shared, qi_cu_handle_type type))                               \
    X(MemGetAllocationPropertiesFromHandle, , 10020, OPTIONAL,                                     \
      (qi_cu_allocation_prop * prop, qi_cu_handle handle))                                         \
    X(MemRetainAllocationHandle, , 11000, OPTIONAL, (qi_cu_handle * handle, void *address))

#define QI_CU_COPY_FUNCTIONS(X)                                                                    \
    X(MemcpyHtoD, _v2, 3020, REQUIRED, (qi_cu_ptr to, const void *from, size_t size))              \
    X(MemcpyDtoH, _v2, 3020, REQUIRED, (void *to, qi_cu_ptr from, size_t size))                    \
    X(MemcpyDtoD, _v2, 3020, REQUIRED, (qi_cu_ptr to, qi_cu_ptr from, size_t size))                \
    X(MemcpyHtoDAsync, _v2, 3020, REQUIRED,                                                        \
      (qi_cu_ptr to, const void *from, size_t size, qi_cu_stream stream))                          \
    X(MemcpyDtoHAsync, _v2, 3020, REQUIRED,                                                        \
      (void *to, qi_cu_ptr from, size_t size, qi_cu_stream stream))                                \
    X(MemcpyDtoDAsync, _v2, 3020, REQUIRED,                                                        \
      (qi_cu_ptr to, qi_cu_ptr from, size_t size, qi_cu_stream stream))                            \
    X(MemcpyPeer, , 4000, OPTIONAL,                                                                \
      (qi_cu_ptr to, qi_cu_context to_context, qi_cu_ptr from, qi_cu_context from_context,         \
       size_t size))                                                                               \
    X(MemcpyPeerAsync, , 4000, OPTIONAL,                                                           \
      (qi_cu_ptr to, qi_cu_context to_context, qi_cu_ptr from, qi_cu_context from_context,         \
       size_t size, qi_cu_stream stream))                                                          \
    X(Memcpy2D, _v2, 3020, OPTIONAL, (const qi_cu_memcpy2d *copy))                                 \
    X(Memcpy2DAsync, _v2, 3020, OPTIONAL, (const qi_cu_memcpy2d *copy, qi_cu_stream stream))       \
    X(Memcpy3D, _v2, 3020, OPTIONAL, (const qi_cu_memcpy3d *copy))                                 \
    X(Memcpy3DAsync, _v2, 3020, OPTIONAL, (const qi_cu_memcpy3d *copy, qi_cu_stream stream))       \
    X(MemsetD8, _v2, 3020, REQUIRED, (qi_cu_ptr to, unsigned char value, size_t count))            \
    X(MemsetD32, _v2, 3020, OPTIONAL, (qi_cu_ptr to, unsigned int value, size_t count))            \
    X(MemsetD8Async, , 3020, REQUIRED,                                                             \
      (qi_cu_ptr to, unsigned char value, size_t count, qi_cu_stream stream))                      \
    X(MemsetD32Async, , 3020, OPTIONAL,                                                            \
      (qi_cu_ptr to, unsigned int value, size_t count, qi_cu_stream stream))

#define QI_CU_STREAM_FUNCTIONS(X)                                                                  \
    X(StreamCreate, , 2000, REQUIRED, (qi_cu_stream * stream, unsigned int flags))                 \
    X(StreamDestroy, _v2, 4000, REQUIRED, (qi_cu_stream stream))                                   \
    X(StreamQuery, , 2000, REQUIRED, (qi_cu_stream stream))                                        \
    X(StreamSynchronize, , 2000, REQUIRED, (qi_cu_stream stream))                                  \
    X(StreamWaitEvent, , 3020, REQUIRED,                                                           \
      (qi_cu_stream stream, qi_cu_event event, unsigned int flags))                                \
    X(StreamGetCtx, , 9020, OPTIONAL, (qi_cu_stream stream, qi_cu_context * context))              \
    X(StreamIsCapturing, , 10000, OPTIONAL, (qi_cu_stream stream, qi_cu_capture_status * status))  \
    X(ThreadExchangeStreamCaptureMode, , 10010, OPTIONAL, (qi_cu_capture_mode * mode))             \
    X(LaunchHostFunc, , 10000, OPTIONAL,                                                           \
      (qi_cu_stream stream, qi_cu_host_function function, void *user))                             \
    X(EventCreate, , 2000, REQUIRED, (qi_cu_event * event, unsigned int flags))                    \
    X(EventDestroy, _v2, 4000, REQUIRED, (qi_cu_event event))                                      \
    X(EventRecord, , 2000, REQUIRED, (qi_cu_event event, qi_cu_stream stream))                     \
    X(EventQuery, , 2000, REQUIRED, (qi_cu_event event))                                           \
    X(EventSynchronize, , 2000, REQUIRED, (qi_cu_event event))                                     \
    X(EventElapsedTime, , 2000, OPTIONAL, (float *milliseconds, qi_cu_event start, qi_cu_event end))

/* The driver's own allocator: pools of memory in the order of streams. */
#define QI_CU_POOL_FUNCTIONS(X)                                                                    \
    X(MemAllocAsync, , 11020, OPTIONAL, (qi_cu_ptr * pointer, size_t size, qi_cu_stream stream))   \
    X(MemFreeAsync, , 11020, OPTIONAL, (qi_cu_ptr pointer, qi_cu_stream stream))                   \
    X(DeviceGetDefaultMemPool, , 11020, OPTIONAL, (qi_cu_pool * pool, qi_cu_device device))        \
    X(MemPoolSetAttribute, , 11020, OPTIONAL,                                                      \
      (qi_cu_pool pool, qi_cu_pool_attribute attribute, void *value))                              \
    X(MemPoolGetAttribute, , 11020, OPTIONAL,                                                      \
      (qi_cu_pool pool, qi_cu_pool_attribute attribute, void *value))                              \
    X(MemPoolTrimTo, , 11020, OPTIONAL, (qi_cu_pool pool, size_t keep))                            \
    X(MemPoolCreate, , 11020, OPTIONAL, (qi_cu_pool * pool, const qi_cu_pool_props *props))        \
    X(MemPoolDestroy, , 11020, OPTIONAL, (qi_cu_pool pool))                                        \
    X(MemPoolSetAccess, , 11020, OPTIONAL,                                                         \
      (qi_cu_pool pool, const qi_cu_access_desc *list, size_t count))                              \
    X(MemPoolGetAccess, , 11020, OPTIONAL,                                                         \
      (qi_cu_access_flags * flags, qi_cu_pool pool, qi_cu_location * location))                    \
    X(MemAllocFromPoolAsync, , 11020, OPTIONAL,                                                    \
      (qi_cu_ptr * pointer, size_t size, qi_cu_pool pool, qi_cu_stream stream))                    \
    X(DeviceGetMemPool, , 11020, OPTIONAL, (qi_cu_pool * pool, qi_cu_device device))

/* Handles of cuMemAlloc's blocks for other processes. */
#define QI_CU_IPC_FUNCTIONS(X)                                                                     \
    X(IpcGetMemHandle, , 4010, OPTIONAL, (qi_cu_ipc_handle * handle, qi_cu_ptr pointer))           \
    X(IpcOpenMemHandle, _v2, 11000, OPTIONAL,                                                      \
      (qi_cu_ptr * pointer, qi_cu_ipc_handle handle, unsigned int flags))                          \
    X(IpcCloseMemHandle, , 4010, OPTIONAL, (qi_cu_ptr pointer))

#define QI_CU_ARRAY_FUNCTIONS(X)                                                                   \
    X(Array3DCreate, _v2, 3020, OPTIONAL,                                                          \
      (qi_cu_array * array, const qi_cu_array3d_descriptor *descriptor))                           \
    X(Array3DGetDescriptor, _v2, 3020, OPTIONAL,                                                   \
      (qi_cu_array3d_descriptor * descriptor, qi_cu_array array))                                  \
    X(ArrayDestroy, , 2000, OPTIONAL, (qi_cu_array array))                                         \
    X(MipmappedArrayCreate, , 5000, OPTIONAL,                                                      \
      (qi_cu_mipmap * mipmap, const qi_cu_array3d_descriptor *descriptor, unsigned int levels))    \
    X(MipmappedArrayGetLevel, , 5000, OPTIONAL,                                                    \
      (qi_cu_array * array, qi_cu_mipmap mipmap, unsigned int level))                              \
    X(MipmappedArrayDestroy, , 5000, OPTIONAL, (qi_cu_mipmap mipmap))                              \
    X(ArrayGetSparseProperties, , 11010, OPTIONAL,                                                 \
      (qi_cu_sparse_properties * properties, qi_cu_array array))                                   \
    X(MipmappedArrayGetSparseProperties, , 11010, OPTIONAL,                                        \
      (qi_cu_sparse_properties * properties, qi_cu_mipmap mipmap))                                 \
    X(MemMapArrayAsync, , 11010, OPTIONAL,                                                         \
      (qi_cu_array_map_info * list, unsigned int count, qi_cu_stream stream))

#define QI_CU_EXTERNAL_FUNCTIONS(X)                                                                \
    X(ImportExternalMemory, , 10000, OPTIONAL,                                                     \
      (qi_cu_external * external, const qi_cu_external_desc *desc))                                \
    X(ExternalMemoryGetMappedBuffer, , 10000, OPTIONAL,                                            \
      (qi_cu_ptr * pointer, qi_cu_external external, const qi_cu_external_buffer *buffer))         \
    X(DestroyExternalMemory, , 10000, OPTIONAL, (qi_cu_external external))

/* The functions of the oldest supported driver, CUDA 11.2. */
#define QI_CU_FUNCTIONS_11_2(X)                                                                    \
    QI_CU_DEVICE_FUNCTIONS(X)                                                                      \
    QI_CU_CONTEXT_FUNCTIONS(X)                                                                     \
    QI_CU_MEMORY_FUNCTIONS(X)                                                                      \
    QI_CU_VIRTUAL_FUNCTIONS(X)                                                                     \
    QI_CU_COPY_FUNCTIONS(X)                                                                        \
    QI_CU_STREAM_FUNCTIONS(X)                                                                      \
    QI_CU_POOL_FUNCTIONS(X)                                                                        \
    QI_CU_IPC_FUNCTIONS(X)                                                                         \
    QI_CU_ARRAY_FUNCTIONS(X)                                                                       \
    QI_CU_EXTERNAL_FUNCTIONS(X)

/* Functions that later drivers added. */
#define QI_CU_FUNCTIONS_11_7(X)                                                                    \
    X(ArrayGetMemoryRequirements, , 11060, OPTIONAL,                                               \
      (qi_cu_array_requirements * requirements, qi_cu_array array, qi_cu_device device))           \
    X(MipmappedArrayGetMemoryRequirements, , 11060, OPTIONAL,                                      \
      (qi_cu_array_requirements * requirements, qi_cu_mipmap mipmap, qi_cu_device device))         \
    X(MemGetHandleForAddressRange, , 11070, OPTIONAL,                                              \
      (void *handle, qi_cu_ptr pointer, size_t size, qi_cu_range_type type,                        \
       unsigned long long flags))

#define QI_CU_FUNCTIONS_12_1(X)                                                                    \
    X(MulticastCreate, , 12010, OPTIONAL,                                                          \
      (qi_cu_handle * multicast, const qi_cu_multicast_prop *prop))                                \
    X(MulticastAddDevice, , 12010, OPTIONAL, (qi_cu_handle multicast, qi_cu_device device))        \
    X(MulticastBindMem, , 12010, OPTIONAL,                                                         \
      (qi_cu_handle multicast, size_t offset, qi_cu_handle memory, size_t memory_offset,           \
       size_t size, unsigned long long flags))                                                     \
    X(MulticastBindAddr, , 12010, OPTIONAL,                                                        \
      (qi_cu_handle multicast, size_t offset, qi_cu_ptr pointer, size_t size,                      \
       unsigned long long flags))                                                                  \
    X(MulticastUnbind, , 12010, OPTIONAL,                                                          \
      (qi_cu_handle multicast, qi_cu_device device, size_t offset, size_t size))                   \
    X(MulticastGetGranularity, , 12010, OPTIONAL,                                                  \
      (size_t * size, const qi_cu_multicast_prop *prop, qi_cu_multicast_granularity option))

#define QI_CU_FUNCTIONS_12_8(X)                                                                    \
    X(StreamGetGreenCtx, , 12040, OPTIONAL, (qi_cu_stream stream, qi_cu_green * green))            \
    X(StreamGetDevice, , 12080, OPTIONAL, (qi_cu_stream stream, qi_cu_device * device))

#define QI_CU_FUNCTIONS(X)                                                                         \
    QI_CU_FUNCTIONS_11_2(X)                                                                        \
    QI_CU_FUNCTIONS_11_7(X)                                                                        \
    QI_CU_FUNCTIONS_12_1(X)                                                                        \
    QI_CU_FUNCTIONS_12_8(X)

/*
 * The functions that find all others. Both are symbols of the library, found by dlsym: the form
 * with the suffix exists from 12.0 on, the other from 11.3 on. The form of 12.0 also reports why a
 * function is missing. Before 11.3 every function is a symbol.
 */
#define QI_CU_FINDERS(X)                                                                           \
    X(GetProcAddress, _v2, 12000, OPTIONAL,                                                        \
      (const char *name, void **function, int version, uint64_t flags, qi_cu_query_result *why))   \
    X(GetProcAddress, , 11030, OPTIONAL,                                                           \
      (const char *name, void **function, int version, uint64_t flags))

#endif
