/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_abi.c - backends/cuda/abi.h against the headers of the CUDA Toolkit: sizes and offsets of
 * members, constants, and the exact types of functions under the versions in the table.
 *
 * It compares everything that the installed release has, and counts and reports newer entries.
 */
#include "tests/support/plain.h"

#include <stdio.h>

/* declares also the symbols of older releases, each under its own name */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cudaTypedefs.h>

#include "backends/cuda/abi.h"
#include "tests/support/cuda/more.h"

/* own type, the toolkit's */
#define NUMBERS(X)                                                                                 \
    X(qi_cu_device, CUdevice)                                                                      \
    X(qi_cu_ptr, CUdeviceptr)                                                                      \
    X(qi_cu_handle, CUmemGenericAllocationHandle)

#define ENUMERATIONS_11_2(X)                                                                       \
    X(qi_cu_result, CUresult)                                                                      \
    X(qi_cu_attribute, CUdevice_attribute)                                                         \
    X(qi_cu_pointer_attribute, CUpointer_attribute)                                                \
    X(qi_cu_pool_attribute, CUmemPool_attribute)                                                   \
    X(qi_cu_location_type, CUmemLocationType)                                                      \
    X(qi_cu_allocation_type, CUmemAllocationType)                                                  \
    X(qi_cu_handle_type, CUmemAllocationHandleType)                                                \
    X(qi_cu_access_flags, CUmemAccess_flags)                                                       \
    X(qi_cu_granularity, CUmemAllocationGranularity_flags)                                         \
    X(qi_cu_memory_type, CUmemorytype)                                                             \
    X(qi_cu_array_format, CUarray_format)                                                          \
    X(qi_cu_resource_type, CUresourcetype)                                                         \
    X(qi_cu_subresource_type, CUarraySparseSubresourceType)                                        \
    X(qi_cu_operation_type, CUmemOperationType)                                                    \
    X(qi_cu_generic_type, CUmemHandleType)                                                         \
    X(qi_cu_external_type, CUexternalMemoryHandleType)                                             \
    X(qi_cu_capture_status, CUstreamCaptureStatus)                                                 \
    X(qi_cu_capture_mode, CUstreamCaptureMode)

#define ENUMERATIONS_11_7(X) X(qi_cu_range_type, CUmemRangeHandleType)

#define ENUMERATIONS_12_1(X)                                                                       \
    X(qi_cu_multicast_granularity, CUmulticastGranularity_flags)                                   \
    X(qi_cu_query_result, CUdriverProcAddressQueryResult)

#define POINTERS(X)                                                                                \
    X(qi_cu_context, CUcontext)                                                                    \
    X(qi_cu_stream, CUstream)                                                                      \
    X(qi_cu_event, CUevent)                                                                        \
    X(qi_cu_array, CUarray)                                                                        \
    X(qi_cu_mipmap, CUmipmappedArray)                                                              \
    X(qi_cu_pool, CUmemoryPool)                                                                    \
    X(qi_cu_external, CUexternalMemory)                                                            \
    X(qi_cu_graph, CUgraph)                                                                        \
    X(qi_cu_exec, CUgraphExec)                                                                     \
    X(qi_cu_host_function, CUhostFn)

static unsigned compared, newer;

/* The value changes its sign where the type is signed. */
#define IS_SIGNED(type) ((type)-1 < (type)1)

static void check_size(const char *name, size_t own, size_t theirs)
{
    compared++;
    if (own != theirs)
        check_failed(__FILE__, __LINE__, "%s has %zu bytes, not %zu", name, own, theirs);
}

#define CHECK_SIZE(own, theirs)                                                                    \
    check_size(#own, sizeof(own), sizeof(theirs));                                                 \
    check_size("alignment of " #own, _Alignof(own), _Alignof(theirs));

#define CHECK_NUMBER(own, theirs)                                                                  \
    CHECK_SIZE(own, theirs)                                                                        \
    CHECK_EQ(IS_SIGNED(own), IS_SIGNED(theirs));

static void numbers_and_pointers_have_the_same_size(void)
{
    NUMBERS(CHECK_NUMBER)
    ENUMERATIONS_11_2(CHECK_NUMBER)
    ENUMERATIONS_11_7(CHECK_NUMBER)
#if CUDA_VERSION >= 12010
    ENUMERATIONS_12_1(CHECK_NUMBER)
#endif
    POINTERS(CHECK_SIZE)
}

/* ---- structs -------------------------------------------------------------------------------- */

static void check_place(const char *name, size_t own, size_t theirs, size_t own_size,
                        size_t their_size)
{
    compared++;
    if (own != theirs || own_size != their_size)
        check_failed(__FILE__, __LINE__, "%s: %zu bytes at %zu, not %zu at %zu", name, own_size,
                     own, their_size, theirs);
}

#define MEMBER(member)                                                                             \
    check_place(#member, offsetof(OWN, member), offsetof(THEIRS, member),                          \
                sizeof(((OWN *)0)->member), sizeof(((THEIRS *)0)->member));

#define OWN qi_cu_allocation_prop
#define THEIRS CUmemAllocationProp
static void properties_of_memory(void)
{
    CHECK_SIZE(qi_cu_uuid, CUuuid)
    CHECK_SIZE(qi_cu_location, CUmemLocation)
    check_place("type", offsetof(qi_cu_location, type), offsetof(CUmemLocation, type), 4,
                sizeof(CUmemLocationType));
    check_place("id", offsetof(qi_cu_location, id), offsetof(CUmemLocation, id), 4, sizeof(int));
    CHECK_SIZE(OWN, THEIRS)
    MEMBER(type)
    MEMBER(requestedHandleTypes)
    MEMBER(location)
    MEMBER(win32HandleMetaData)
    MEMBER(allocFlags)
    MEMBER(allocFlags.compressionType)
    MEMBER(allocFlags.gpuDirectRDMACapable)
    MEMBER(allocFlags.usage)
    MEMBER(allocFlags.reserved)
    CHECK_SIZE(qi_cu_access_desc, CUmemAccessDesc)
    check_place("flags", offsetof(qi_cu_access_desc, flags), offsetof(CUmemAccessDesc, flags), 4,
                sizeof(CUmemAccess_flags));
    CHECK_EQ(offsetof(qi_cu_access_desc, location), offsetof(CUmemAccessDesc, location));
}
#undef OWN
#undef THEIRS

#define OWN qi_cu_pool_props
#define THEIRS CUmemPoolProps
static void properties_of_pools(void)
{
    CHECK_SIZE(qi_cu_ipc_handle, CUipcMemHandle)
    CHECK_SIZE(OWN, THEIRS)
    MEMBER(allocType)
    MEMBER(handleTypes)
    MEMBER(location)
    MEMBER(win32SecurityAttributes)
#if CUDA_VERSION >= 13000
    MEMBER(maxSize)
    MEMBER(usage)
    MEMBER(reserved)
#endif
}
#undef OWN
#undef THEIRS

#if CUDA_VERSION >= 12010
#define OWN qi_cu_multicast_prop
#define THEIRS CUmulticastObjectProp
static void properties_of_multicast_objects(void)
{
    CHECK_SIZE(OWN, THEIRS)
    MEMBER(numDevices)
    MEMBER(size)
    MEMBER(handleTypes)
    MEMBER(flags)
}
#undef OWN
#undef THEIRS
#endif

#if CUDA_VERSION >= 13000
static void fabric_handles(void)
{
    CHECK_SIZE(qi_cu_fabric_handle, CUmemFabricHandle)
}
#endif

#define OWN qi_cu_array3d_descriptor
#define THEIRS CUDA_ARRAY3D_DESCRIPTOR
static void descriptors_of_arrays(void)
{
    CHECK_SIZE(OWN, THEIRS)
    MEMBER(Width)
    MEMBER(Height)
    MEMBER(Depth)
    MEMBER(Format)
    MEMBER(NumChannels)
    MEMBER(Flags)
}
#undef OWN
#undef THEIRS

#define OWN qi_cu_array_requirements
#define THEIRS CUDA_ARRAY_MEMORY_REQUIREMENTS
static void requirements_of_arrays(void)
{
    CHECK_SIZE(OWN, THEIRS)
    MEMBER(size)
    MEMBER(alignment)
    MEMBER(reserved)
}
#undef OWN
#undef THEIRS

#define OWN qi_cu_sparse_properties
#define THEIRS CUDA_ARRAY_SPARSE_PROPERTIES
static void properties_of_sparse_arrays(void)
{
    CHECK_SIZE(OWN, THEIRS)
    MEMBER(tileExtent)
    MEMBER(tileExtent.width)
    MEMBER(tileExtent.height)
    MEMBER(tileExtent.depth)
    MEMBER(miptailFirstLevel)
    MEMBER(miptailSize)
    MEMBER(flags)
    MEMBER(reserved)
}
#undef OWN
#undef THEIRS

#define OWN qi_cu_array_map_info
#define THEIRS CUarrayMapInfo
static void what_maps_arrays(void)
{
    CHECK_SIZE(OWN, THEIRS)
    MEMBER(resourceType)
    MEMBER(resource.mipmap)
    MEMBER(resource.array)
    MEMBER(subresourceType)
    MEMBER(subresource.sparseLevel.level)
    MEMBER(subresource.sparseLevel.layer)
    MEMBER(subresource.sparseLevel.offsetX)
    MEMBER(subresource.sparseLevel.offsetY)
    MEMBER(subresource.sparseLevel.offsetZ)
    MEMBER(subresource.sparseLevel.extentWidth)
    MEMBER(subresource.sparseLevel.extentHeight)
    MEMBER(subresource.sparseLevel.extentDepth)
    MEMBER(subresource.miptail.layer)
    MEMBER(subresource.miptail.offset)
    MEMBER(subresource.miptail.size)
    MEMBER(memOperationType)
    MEMBER(memHandleType)
    MEMBER(memHandle.memHandle)
    MEMBER(offset)
    MEMBER(deviceBitMask)
    MEMBER(flags)
    MEMBER(reserved)
}
#undef OWN
#undef THEIRS

#define BOTH_COPIES                                                                                \
    CHECK_SIZE(OWN, THEIRS)                                                                        \
    MEMBER(srcXInBytes)                                                                            \
    MEMBER(srcY)                                                                                   \
    MEMBER(srcMemoryType)                                                                          \
    MEMBER(srcHost)                                                                                \
    MEMBER(srcDevice)                                                                              \
    MEMBER(srcArray)                                                                               \
    MEMBER(srcPitch)                                                                               \
    MEMBER(dstXInBytes)                                                                            \
    MEMBER(dstY)                                                                                   \
    MEMBER(dstMemoryType)                                                                          \
    MEMBER(dstHost)                                                                                \
    MEMBER(dstDevice)                                                                              \
    MEMBER(dstArray)                                                                               \
    MEMBER(dstPitch)                                                                               \
    MEMBER(WidthInBytes)                                                                           \
    MEMBER(Height)

#define OWN qi_cu_memcpy2d
#define THEIRS CUDA_MEMCPY2D
static void copies_in_two_dimensions(void)
{
    BOTH_COPIES
}
#undef OWN
#undef THEIRS

#define OWN qi_cu_memcpy3d
#define THEIRS CUDA_MEMCPY3D
static void copies_in_three_dimensions(void)
{
    BOTH_COPIES
    MEMBER(srcZ)
    MEMBER(srcLOD)
    MEMBER(reserved0)
    MEMBER(srcHeight)
    MEMBER(dstZ)
    MEMBER(dstLOD)
    MEMBER(reserved1)
    MEMBER(dstHeight)
    MEMBER(Depth)
}
#undef OWN
#undef THEIRS

#define OWN qi_cu_external_desc
#define THEIRS CUDA_EXTERNAL_MEMORY_HANDLE_DESC
static void external_memory(void)
{
    CHECK_SIZE(OWN, THEIRS)
    MEMBER(type)
    MEMBER(handle.fd)
    MEMBER(handle.win32.handle)
    MEMBER(handle.win32.name)
    MEMBER(handle.nvSciBufObject)
    MEMBER(size)
    MEMBER(flags)
    MEMBER(reserved)
}
#undef OWN
#undef THEIRS

#define OWN qi_cu_external_buffer
#define THEIRS CUDA_EXTERNAL_MEMORY_BUFFER_DESC
static void buffers_of_external_memory(void)
{
    CHECK_SIZE(OWN, THEIRS)
    MEMBER(offset)
    MEMBER(size)
    MEMBER(flags)
    MEMBER(reserved)
}
#undef OWN
#undef THEIRS

static void structs_have_their_members_in_the_same_places(void)
{
    properties_of_memory();
    properties_of_pools();
#if CUDA_VERSION >= 12010
    properties_of_multicast_objects();
#endif
#if CUDA_VERSION >= 13000
    fabric_handles();
#endif
    descriptors_of_arrays();
    requirements_of_arrays();
    properties_of_sparse_arrays();
    what_maps_arrays();
    copies_in_two_dimensions();
    copies_in_three_dimensions();
    external_memory();
    buffers_of_external_memory();
}

/* ---- numbers -------------------------------------------------------------------------------- */

static void check_value(const char *name, long long own, long long theirs)
{
    compared++;
    if (own != theirs)
        check_failed(__FILE__, __LINE__, "%s is %lld, not %lld", name, own, theirs);
}

#define CHECK_VALUE(name, value) check_value(#name, QI_##name, (long long)(name));
#define COUNT_NEWER(name, ...) newer++;

static void numbers_are_the_same(void)
{
    QI_CU_CONSTANTS_11_2(CHECK_VALUE)
    QI_CU_CONSTANTS_11_7(CHECK_VALUE)
#if CUDA_VERSION >= 12010
    QI_CU_CONSTANTS_12_1(CHECK_VALUE)
#else
    QI_CU_CONSTANTS_12_1(COUNT_NEWER)
#endif
#if CUDA_VERSION >= 13000
    QI_CU_CONSTANTS_13_0(CHECK_VALUE)
#else
    QI_CU_CONSTANTS_13_0(COUNT_NEWER)
#endif
}

/* ---- functions ------------------------------------------------------------------------------ */

/* From here on quire's names are the toolkit's types, so the rows of the table are too. */
#define qi_cu_device CUdevice
#define qi_cu_ptr CUdeviceptr
#define qi_cu_handle CUmemGenericAllocationHandle
#define qi_cu_result CUresult
#define qi_cu_attribute CUdevice_attribute
#define qi_cu_pointer_attribute CUpointer_attribute
#define qi_cu_pool_attribute CUmemPool_attribute
#define qi_cu_handle_type CUmemAllocationHandleType
#define qi_cu_granularity CUmemAllocationGranularity_flags
#define qi_cu_multicast_granularity CUmulticastGranularity_flags
#define qi_cu_range_type CUmemRangeHandleType
#define qi_cu_query_result CUdriverProcAddressQueryResult
#define qi_cu_context CUcontext
#define qi_cu_green CUgreenCtx
#define qi_cu_resources CUdevResourceDesc
#define qi_cu_stream CUstream
#define qi_cu_event CUevent
#define qi_cu_array CUarray
#define qi_cu_mipmap CUmipmappedArray
#define qi_cu_pool CUmemoryPool
#define qi_cu_external CUexternalMemory
#define qi_cu_graph CUgraph
#define qi_cu_exec CUgraphExec
#define qi_cu_capture_status CUstreamCaptureStatus
#define qi_cu_capture_mode CUstreamCaptureMode
#define qi_cu_host_function CUhostFn
#define qi_cu_uuid CUuuid
#define qi_cu_location CUmemLocation
#define qi_cu_allocation_prop CUmemAllocationProp
#define qi_cu_access_desc CUmemAccessDesc
#define qi_cu_access_flags CUmemAccess_flags
#define qi_cu_pool_props CUmemPoolProps
#define qi_cu_ipc_handle CUipcMemHandle
#define qi_cu_multicast_prop CUmulticastObjectProp
#define qi_cu_array3d_descriptor CUDA_ARRAY3D_DESCRIPTOR
#define qi_cu_array_requirements CUDA_ARRAY_MEMORY_REQUIREMENTS
#define qi_cu_sparse_properties CUDA_ARRAY_SPARSE_PROPERTIES
#define qi_cu_array_map_info CUarrayMapInfo
#define qi_cu_memcpy2d CUDA_MEMCPY2D
#define qi_cu_memcpy3d CUDA_MEMCPY3D
#define qi_cu_external_desc CUDA_EXTERNAL_MEMORY_HANDLE_DESC
#define qi_cu_external_buffer CUDA_EXTERNAL_MEMORY_BUFFER_DESC

static void check_function(const char *name, int version, bool same)
{
    compared++;
    if (!same)
        check_failed(__FILE__, __LINE__, "cu%s has other parameters in %d", name, version);
}

/* The toolkit names each type after the function and the version that introduced it. */
#define CHECK_FUNCTION(name, suffix, version, presence, parameters)                                \
    check_function(                                                                                \
        #name, version,                                                                            \
        __builtin_types_compatible_p(PFN_cu##name##_v##version, CUresult(*) parameters));

/* A symbol without its suffix is another release's function. */
#define CHECK_SYMBOL(name, suffix, version, presence, parameters)                                  \
    check_function(                                                                                \
        #name #suffix, version,                                                                    \
        __builtin_types_compatible_p(__typeof__(&cu##name##suffix), CUresult(*) parameters));

static void functions_have_the_same_parameters(void)
{
    QI_CU_FUNCTIONS_11_2(CHECK_FUNCTION)
    FAKE_CUDA_FUNCTIONS_10_1(CHECK_FUNCTION)
    QI_CU_FUNCTIONS_11_7(CHECK_FUNCTION)
#if CUDA_VERSION >= 12010
    QI_CU_FUNCTIONS_12_1(CHECK_FUNCTION)
    QI_CU_FINDERS(CHECK_FUNCTION)
#else
    QI_CU_FUNCTIONS_12_1(COUNT_NEWER)
    QI_CU_FINDERS(COUNT_NEWER)
#endif
#if CUDA_VERSION >= 12080
    QI_CU_FUNCTIONS_12_8(CHECK_FUNCTION)
    FAKE_CUDA_FUNCTIONS_12_5(CHECK_FUNCTION)
#else
    QI_CU_FUNCTIONS_12_8(COUNT_NEWER)
    FAKE_CUDA_FUNCTIONS_12_5(COUNT_NEWER)
#endif
}

static void symbols_have_the_same_parameters(void)
{
    QI_CU_FUNCTIONS_11_2(CHECK_SYMBOL)
    FAKE_CUDA_FUNCTIONS_10_1(CHECK_SYMBOL)
    QI_CU_FUNCTIONS_11_7(CHECK_SYMBOL)
#if CUDA_VERSION >= 12010
    QI_CU_FUNCTIONS_12_1(CHECK_SYMBOL)
    QI_CU_FINDERS(CHECK_SYMBOL)
#endif
#if CUDA_VERSION >= 12080
    QI_CU_FUNCTIONS_12_8(CHECK_SYMBOL)
    FAKE_CUDA_FUNCTIONS_12_5(CHECK_SYMBOL)
#endif
}

int main(void)
{
    plain_case("numbers and pointers have the same size", numbers_and_pointers_have_the_same_size);
    plain_case("structs have their members in the same places",
               structs_have_their_members_in_the_same_places);
    plain_case("constants have the same values", numbers_are_the_same);
    plain_case("functions have the same parameters", functions_have_the_same_parameters);
    plain_case("symbols have the same parameters", symbols_have_the_same_parameters);
    printf("# CUDA %d.%d: %u entries compared, %u newer ones skipped\n", CUDA_VERSION / 1000,
           CUDA_VERSION % 1000 / 10, compared, newer);
    return plain_end();
}
