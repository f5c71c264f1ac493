/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * entries.h - every function of the fake CUDA driver, once, and the codes that are documented for
 * it (CUDA 13.0). Calls, counters, faults and what cuGetProcAddress finds are made of it.
 *
 * Only DEINITIALIZED, NOT_INITIALIZED and what follows from the function's own arguments are there;
 * that any function may also tell of the failure of earlier work is what fc_lose and `done` of a
 * fault are for.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_ENTRIES_H
#define QUIRE_TESTS_SUPPORT_CUDA_ENTRIES_H

#include "tests/support/cuda/kernel.h"
#include "tests/support/cuda/more.h"

#define FC_ENTRIES(X)                                                                              \
    QI_CU_FUNCTIONS(X)                                                                             \
    FAKE_CUDA_MORE_FUNCTIONS(X)                                                                    \
    FAKE_CUDA_KERNEL_FUNCTIONS(X)                                                                  \
    QI_CU_FINDERS(X)

typedef enum fc_call {
#define X(name, suffix, version, presence, parameters) FC_CALL_##name##suffix,
    FC_ENTRIES(X)
#undef X
        FC_CALL_COUNT
} fc_call;

/* fc_MemCreate, fc_MemAlloc_v2 and so on. */
#define X(name, suffix, version, presence, parameters) qi_cu_result fc_##name##suffix parameters;
FC_ENTRIES(X)
#undef X

/* ---- codes ---------------------------------------------------------------------------------- */

#define FC_CODES(X)                                                                                \
    X(MEMORY, OUT_OF_MEMORY)                                                                       \
    X(VALUE, INVALID_VALUE)                                                                        \
    X(PERMITTED, NOT_PERMITTED)                                                                    \
    X(SUPPORTED, NOT_SUPPORTED)                                                                    \
    X(DEVICE, INVALID_DEVICE)                                                                      \
    X(CONTEXT, INVALID_CONTEXT)                                                                    \
    X(HANDLE, INVALID_HANDLE)                                                                      \
    X(STATE, ILLEGAL_STATE)                                                                        \
    X(READY, NOT_READY)                                                                            \
    X(SYSTEM_READY, SYSTEM_NOT_READY)                                                              \
    X(FOUND, NOT_FOUND)                                                                            \
    X(OS, OPERATING_SYSTEM)                                                                        \
    X(ENABLED, PEER_ACCESS_ALREADY_ENABLED)                                                        \
    X(DISABLED, PEER_ACCESS_NOT_ENABLED)                                                           \
    X(PEER, PEER_ACCESS_UNSUPPORTED)                                                               \
    X(REGISTERED, HOST_MEMORY_ALREADY_REGISTERED)                                                  \
    X(UNREGISTERED, HOST_MEMORY_NOT_REGISTERED)                                                    \
    X(DESTROYED, CONTEXT_IS_DESTROYED)                                                             \
    X(UNKNOWN, UNKNOWN)                                                                            \
    X(UNAVAILABLE, DEVICE_UNAVAILABLE)                                                             \
    X(MAP, MAP_FAILED)                                                                             \
    X(PEERS, TOO_MANY_PEERS)                                                                       \
    X(IMPLICIT, STREAM_CAPTURE_IMPLICIT)                                                           \
    X(THREAD, STREAM_CAPTURE_WRONG_THREAD)                                                         \
    X(INIT, NOT_INITIALIZED)                                                                       \
    X(DEINIT, DEINITIALIZED)

enum {
#define X(code, name) FC_INDEX_##code,
    FC_CODES(X)
#undef X
        FC_CODE_COUNT
};

enum {
#define X(code, name) FC_##code##_CODE = 1 << FC_INDEX_##code,
    FC_CODES(X)
#undef X
        FC_DRIVER_CODES = FC_INIT_CODE | FC_DEINIT_CODE,
    FC_DEVICE_CODES = FC_DRIVER_CODES | FC_VALUE_CODE | FC_DEVICE_CODE,
    FC_CONTEXT_CODES = FC_DRIVER_CODES | FC_CONTEXT_CODE,
    FC_VALUE_CODES = FC_CONTEXT_CODES | FC_VALUE_CODE,
    FC_TAKE_CODES = FC_VALUE_CODES | FC_MEMORY_CODE,
    FC_VIRTUAL_CODES = FC_DRIVER_CODES | FC_VALUE_CODE | FC_PERMITTED_CODE | FC_SUPPORTED_CODE,
    FC_STREAM_CODES = FC_CONTEXT_CODES | FC_HANDLE_CODE,
    FC_QUEUE_CODES = FC_VALUE_CODES | FC_HANDLE_CODE,
    FC_BIND_CODES =
        FC_VIRTUAL_CODES | FC_DEVICE_CODE | FC_MEMORY_CODE | FC_STATE_CODE | FC_SYSTEM_READY_CODE
};

/* X(function, codes) */
#define FC_CODES_OF_DEVICES(X)                                                                     \
    X(Init, FC_VALUE_CODE | FC_DEVICE_CODE)                                                        \
    X(DriverGetVersion, FC_VALUE_CODE)                                                             \
    X(GetErrorName, FC_VALUE_CODE)                                                                 \
    X(GetErrorString, FC_VALUE_CODE)                                                               \
    X(DeviceGetCount, FC_VALUE_CODES)                                                              \
    X(DeviceGet, FC_DEVICE_CODES | FC_CONTEXT_CODE)                                                \
    X(DeviceGetName, FC_DEVICE_CODES | FC_CONTEXT_CODE)                                            \
    X(DeviceGetUuid_v2, FC_DEVICE_CODES)                                                           \
    X(DeviceTotalMem_v2, FC_DEVICE_CODES | FC_CONTEXT_CODE)                                        \
    X(DeviceGetAttribute, FC_DEVICE_CODES | FC_CONTEXT_CODE)                                       \
    X(DeviceCanAccessPeer, FC_DRIVER_CODES | FC_DEVICE_CODE)                                       \
    X(DevicePrimaryCtxGetState, FC_DEVICE_CODES)                                                   \
    X(DevicePrimaryCtxRetain,                                                                      \
      FC_DEVICE_CODES | FC_CONTEXT_CODE | FC_MEMORY_CODE | FC_UNKNOWN_CODE | FC_UNAVAILABLE_CODE)  \
    X(CtxPushCurrent_v2, FC_VALUE_CODES)                                                           \
    X(CtxGetCurrent, FC_DRIVER_CODES)                                                              \
    X(CtxSetCurrent, FC_CONTEXT_CODES)                                                             \
    X(CtxGetDevice, FC_VALUE_CODES)                                                                \
    X(CtxSynchronize, FC_CONTEXT_CODES)                                                            \
    X(CtxCreate_v2,                                                                                \
      FC_DEVICE_CODES | FC_CONTEXT_CODE | FC_SUPPORTED_CODE | FC_MEMORY_CODE | FC_UNKNOWN_CODE)    \
    X(GreenCtxCreate, FC_DEVICE_CODES | FC_SUPPORTED_CODE | FC_MEMORY_CODE)                        \
    X(CtxFromGreenCtx, FC_VALUE_CODES)                                                             \
    X(CtxEnablePeerAccess, FC_VALUE_CODES | FC_ENABLED_CODE | FC_PEER_CODE)                        \
    X(GetProcAddress, FC_VALUE_CODE | FC_SUPPORTED_CODE)                                           \
    X(GetProcAddress_v2, FC_VALUE_CODE | FC_SUPPORTED_CODE)

#define FC_CODES_OF_MEMORY(X)                                                                      \
    X(MemGetInfo_v2, FC_VALUE_CODES)                                                               \
    X(MemAlloc_v2, FC_TAKE_CODES)                                                                  \
    X(MemGetAddressRange_v2, FC_VALUE_CODES | FC_FOUND_CODE)                                       \
    X(MemHostAlloc, FC_TAKE_CODES)                                                                 \
    X(MemHostRegister_v2,                                                                          \
      FC_TAKE_CODES | FC_REGISTERED_CODE | FC_PERMITTED_CODE | FC_SUPPORTED_CODE)                  \
    X(MemHostGetDevicePointer_v2, FC_VALUE_CODES)                                                  \
    X(MemAllocManaged, FC_TAKE_CODES | FC_SUPPORTED_CODE)                                          \
    X(PointerGetAttribute, FC_VALUE_CODES | FC_DEVICE_CODE)                                        \
    X(MemGetAllocationGranularity, FC_VIRTUAL_CODES)                                               \
    X(MemCreate, FC_VIRTUAL_CODES | FC_MEMORY_CODE | FC_DEVICE_CODE)                               \
    X(MemAddressReserve, FC_VIRTUAL_CODES | FC_MEMORY_CODE)                                        \
    X(MemMap, FC_VIRTUAL_CODES | FC_MEMORY_CODE | FC_DEVICE_CODE | FC_STATE_CODE)                  \
    X(MemSetAccess, FC_VALUE_CODE | FC_DEVICE_CODE | FC_SUPPORTED_CODE)                            \
    X(MemGetAccess, FC_VIRTUAL_CODES | FC_DEVICE_CODE)                                             \
    X(MemExportToShareableHandle, FC_VIRTUAL_CODES)                                                \
    X(MemImportFromShareableHandle, FC_VIRTUAL_CODES)                                              \
    X(MemGetAllocationPropertiesFromHandle, FC_VIRTUAL_CODES)                                      \
    X(MemRetainAllocationHandle, FC_VIRTUAL_CODES)                                                 \
    X(MemGetHandleForAddressRange, FC_VALUE_CODE | FC_SUPPORTED_CODE)                              \
    X(MulticastCreate, FC_VIRTUAL_CODES | FC_MEMORY_CODE | FC_DEVICE_CODE)                         \
    X(MulticastAddDevice, FC_VIRTUAL_CODES | FC_MEMORY_CODE | FC_DEVICE_CODE)                      \
    X(MulticastBindMem, FC_BIND_CODES)                                                             \
    X(MulticastBindAddr, FC_BIND_CODES)                                                            \
    X(MulticastGetGranularity, FC_VIRTUAL_CODES)                                                   \
    X(ImportExternalMemory, FC_INIT_CODE | FC_VALUE_CODE | FC_HANDLE_CODE | FC_OS_CODE)            \
    X(ExternalMemoryGetMappedBuffer, FC_INIT_CODE | FC_VALUE_CODE | FC_HANDLE_CODE)

#define FC_CODES_OF_STREAMS(X)                                                                     \
    X(MemcpyHtoD_v2, FC_VALUE_CODES)                                                               \
    X(MemcpyDtoH_v2, FC_VALUE_CODES)                                                               \
    X(MemcpyDtoD_v2, FC_VALUE_CODES)                                                               \
    X(MemcpyPeer, FC_VALUE_CODES)                                                                  \
    X(Memcpy2D_v2, FC_VALUE_CODES)                                                                 \
    X(Memcpy3D_v2, FC_VALUE_CODES)                                                                 \
    X(MemsetD8_v2, FC_VALUE_CODES)                                                                 \
    X(MemsetD32_v2, FC_VALUE_CODES)                                                                \
    X(MemcpyHtoDAsync_v2, FC_QUEUE_CODES)                                                          \
    X(MemcpyDtoHAsync_v2, FC_QUEUE_CODES)                                                          \
    X(MemcpyDtoDAsync_v2, FC_QUEUE_CODES)                                                          \
    X(MemcpyPeerAsync, FC_QUEUE_CODES)                                                             \
    X(Memcpy2DAsync_v2, FC_QUEUE_CODES)                                                            \
    X(Memcpy3DAsync_v2, FC_QUEUE_CODES)                                                            \
    X(MemsetD8Async, FC_VALUE_CODES)                                                               \
    X(MemsetD32Async, FC_VALUE_CODES)                                                              \
    X(StreamCreate, FC_TAKE_CODES)                                                                 \
    X(StreamQuery, FC_STREAM_CODES | FC_READY_CODE)                                                \
    X(StreamSynchronize, FC_STREAM_CODES)                                                          \
    X(StreamWaitEvent, FC_STREAM_CODES)                                                            \
    X(StreamGetCtx, FC_QUEUE_CODES | FC_SUPPORTED_CODE)                                            \
    X(StreamGetGreenCtx, FC_VALUE_CODES | FC_HANDLE_CODE)                                          \
    X(StreamGetDevice, FC_TAKE_CODES | FC_HANDLE_CODE)                                             \
    X(GreenCtxStreamCreate, FC_TAKE_CODES)                                                         \
    X(StreamIsCapturing, FC_VALUE_CODES | FC_IMPLICIT_CODE)                                        \
    X(ThreadExchangeStreamCaptureMode, FC_DRIVER_CODES | FC_VALUE_CODE)                            \
    X(StreamBeginCapture_v2, FC_DRIVER_CODES | FC_VALUE_CODE)                                      \
    X(StreamEndCapture, FC_VALUE_CODES | FC_THREAD_CODE)                                           \
    X(GraphInstantiateWithFlags, FC_DRIVER_CODES | FC_VALUE_CODE)                                  \
    X(GraphLaunch, FC_DRIVER_CODES | FC_VALUE_CODE)                                                \
    X(LaunchHostFunc, FC_STREAM_CODES | FC_SUPPORTED_CODE)                                         \
    X(EventCreate, FC_TAKE_CODES)                                                                  \
    X(EventRecord, FC_QUEUE_CODES)                                                                 \
    X(EventQuery, FC_DRIVER_CODES | FC_HANDLE_CODE | FC_VALUE_CODE | FC_READY_CODE)                \
    X(EventSynchronize, FC_STREAM_CODES)                                                           \
    X(EventElapsedTime, FC_STREAM_CODES | FC_READY_CODE | FC_UNKNOWN_CODE)                         \
    X(MemAllocAsync,                                                                               \
      FC_INIT_CODE | FC_CONTEXT_CODE | FC_VALUE_CODE | FC_SUPPORTED_CODE | FC_MEMORY_CODE)         \
    X(DeviceGetDefaultMemPool, FC_DEVICE_CODES | FC_SUPPORTED_CODE)                                \
    X(MemPoolSetAttribute, FC_VALUE_CODE)                                                          \
    X(MemPoolGetAttribute, FC_VALUE_CODE | FC_INIT_CODE)                                           \
    X(MemPoolTrimTo, FC_VALUE_CODE | FC_INIT_CODE)                                                 \
    X(MemPoolCreate,                                                                               \
      FC_DRIVER_CODES | FC_VALUE_CODE | FC_MEMORY_CODE | FC_PERMITTED_CODE | FC_SUPPORTED_CODE)    \
    X(MemPoolSetAccess, FC_VALUE_CODES)                                                            \
    X(MemPoolGetAccess, FC_VALUE_CODES)                                                            \
    X(MemAllocFromPoolAsync,                                                                       \
      FC_INIT_CODE | FC_CONTEXT_CODE | FC_VALUE_CODE | FC_SUPPORTED_CODE | FC_MEMORY_CODE)         \
    X(DeviceGetMemPool, FC_VALUE_CODE | FC_SUPPORTED_CODE)                                         \
    X(DeviceSetMemPool, FC_VALUE_CODE)                                                             \
    X(IpcGetMemHandle, FC_VALUE_CODES | FC_HANDLE_CODE | FC_MEMORY_CODE | FC_SUPPORTED_CODE)       \
    X(IpcOpenMemHandle_v2, FC_VALUE_CODES | FC_HANDLE_CODE | FC_MAP_CODE | FC_PEERS_CODE)          \
    X(Array3DCreate_v2, FC_TAKE_CODES | FC_UNKNOWN_CODE)                                           \
    X(Array3DGetDescriptor_v2, FC_QUEUE_CODES | FC_DESTROYED_CODE)                                 \
    X(MipmappedArrayCreate, FC_TAKE_CODES | FC_UNKNOWN_CODE)                                       \
    X(MipmappedArrayGetLevel, FC_QUEUE_CODES)                                                      \
    X(ArrayGetSparseProperties, FC_VALUE_CODE)                                                     \
    X(MipmappedArrayGetSparseProperties, FC_VALUE_CODE)                                            \
    X(ArrayGetMemoryRequirements, FC_VALUE_CODE)                                                   \
    X(MipmappedArrayGetMemoryRequirements, FC_VALUE_CODE)                                          \
    X(MemMapArrayAsync, FC_VALUE_CODE | FC_HANDLE_CODE)

/* Those that end or give back something: a caller can do nothing but go on. */
#define FC_CODES_OF_ENDS(X)                                                                        \
    X(DevicePrimaryCtxRelease_v2, FC_CONTEXT_CODES | FC_DEVICE_CODE)                               \
    X(CtxDestroy_v2, FC_VALUE_CODES)                                                               \
    X(CtxPopCurrent_v2, FC_CONTEXT_CODES)                                                          \
    X(GreenCtxDestroy, FC_CONTEXT_CODES)                                                           \
    X(CtxDisablePeerAccess, FC_CONTEXT_CODES | FC_DISABLED_CODE)                                   \
    X(MemFree_v2, FC_VALUE_CODES)                                                                  \
    X(MemFreeHost, FC_VALUE_CODES)                                                                 \
    X(MemHostUnregister, FC_TAKE_CODES | FC_UNREGISTERED_CODE)                                     \
    X(MemRelease, FC_VIRTUAL_CODES)                                                                \
    X(MemAddressFree, FC_VIRTUAL_CODES)                                                            \
    X(MemUnmap, FC_VIRTUAL_CODES)                                                                  \
    X(MulticastUnbind, FC_VIRTUAL_CODES | FC_DEVICE_CODE)                                          \
    X(StreamDestroy_v2, FC_QUEUE_CODES)                                                            \
    X(EventDestroy_v2, FC_STREAM_CODES)                                                            \
    X(GraphDestroy, FC_DRIVER_CODES | FC_VALUE_CODE)                                               \
    X(GraphExecDestroy, FC_DRIVER_CODES | FC_VALUE_CODE)                                           \
    X(MemFreeAsync, FC_INIT_CODE | FC_CONTEXT_CODE | FC_VALUE_CODE | FC_SUPPORTED_CODE)            \
    X(ArrayDestroy, FC_STREAM_CODES | FC_DESTROYED_CODE)                                           \
    X(MipmappedArrayDestroy, FC_STREAM_CODES | FC_DESTROYED_CODE)                                  \
    X(MemPoolDestroy, FC_VALUE_CODE | FC_INIT_CODE)                                                \
    X(IpcCloseMemHandle, FC_VALUE_CODES | FC_HANDLE_CODE | FC_MAP_CODE)                            \
    X(DestroyExternalMemory, FC_INIT_CODE | FC_HANDLE_CODE)

#endif
