/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * fake_cuda_misuse.c - the fake CUDA driver: what it tells of misuse that the real driver accepts
 * or does not survive, when it runs work, and which requests it refuses. The codes are the
 * documented ones. tests/plain/cuda_codes.c and cuda_answers.c have further codes, which a GPU
 * confirms.
 */
#include "tests/support/cuda/fixture.h"
#include "tests/support/cuda/kernel.h"
#include "tests/support/unit.h"

#define CASE(name, begin) UNIT_WITHIN(fake_cuda_misuse, name, (void)begin, fc_fixture_close())

/* ---- work that waits for the clock --------------------------------------------------------- */

typedef struct late {
    qi_cu_stream first, second; /* created streams do not wait for the default stream */
    qi_cu_ptr memory;
    uint64_t *pinned;
} late;

static late open_late(void)
{
    late l;
    void *pinned;
    (void)fc_fixture_open(&(fc_options){.flags = FC_LATE});
    CHECK_CU(cu.StreamCreate(&l.first, QI_CU_STREAM_NON_BLOCKING));
    CHECK_CU(cu.StreamCreate(&l.second, QI_CU_STREAM_NON_BLOCKING));
    CHECK_CU(cu.MemAlloc(&l.memory, 4096));
    CHECK_CU(cu.MemHostAlloc(&pinned, 4096, 0));
    l.pinned = pinned;
    return l;
}

static void close_late(const late *l)
{
    CHECK_CU(cu.StreamDestroy(l->first));
    CHECK_CU(cu.StreamDestroy(l->second));
    CHECK_CU(cu.MemFree(l->memory));
    CHECK_CU(cu.MemFreeHost(l->pinned));
    fc_fixture_close();
}

#define LATE_CASE(name) UNIT_ON(fake_cuda_misuse, name, late, l, *l = open_late(), close_late)

LATE_CASE(pinned_memory_is_read_late_and_pageable_memory_at_once)
{
    uint64_t value = 3;
    l->pinned[0] = 1;
    CHECK_CU(cu.MemcpyHtoDAsync(l->memory, l->pinned, 8, l->first));
    CHECK_CODE(cu.StreamQuery(l->first), NOT_READY);
    CHECK_CU(cu.StreamQuery(l->second));
    l->pinned[0] = 2;
    fc_advance(1);
    CHECK_CU(cu.StreamQuery(l->first));
    CHECK_EQ(fc_read(l->memory), 2);
    CHECK_CU(cu.MemcpyHtoDAsync(l->memory, &value, 8, l->first));
    CHECK_EQ(fc_pending(), 1);
    value = 4;
    CHECK_CU(cu.MemcpyDtoHAsync(&value, l->memory, 8, l->first));
    CHECK_EQ(fc_pending(), 0);
    CHECK_EQ(value, 3);
}

UNIT(fake_cuda_misuse, only_an_event_orders_two_streams)
{
    for (int is_ordered = 0; is_ordered < 2; is_ordered++) {
        late l = open_late();
        qi_cu_event event;
        CHECK_CU(cu.EventCreate(&event, QI_CU_EVENT_DISABLE_TIMING));
        for (unsigned char i = 1; i <= 5; i++)
            CHECK_CU(cu.MemsetD8Async(l.memory, i, 8, l.first));
        CHECK_CU(cu.EventRecord(event, l.first));
        if (is_ordered)
            CHECK_CU(cu.StreamWaitEvent(l.second, event, 0));
        CHECK_CU(cu.MemcpyDtoHAsync(l.pinned, l.memory, 8, l.second));
        fc_advance(4);
        CHECK_CODE(cu.EventQuery(event), NOT_READY);
        fc_advance(1);
        CHECK_CU(cu.EventQuery(event));
        CHECK_CU(cu.CtxSynchronize());
        CHECK_EQ(l.pinned[0], is_ordered ? 0x0505050505050505 : 0x0101010101010101);
        CHECK_CU(cu.EventDestroy(event));
        close_late(&l);
    }
}

LATE_CASE(the_default_stream_waits_for_blocking_ones_and_they_for_it)
{
    qi_cu_stream blocking;
    CHECK_CU(cu.StreamCreate(&blocking, QI_CU_STREAM_DEFAULT));
    CHECK_CU(cu.MemsetD8Async(l->memory, 1, 8, blocking));
    CHECK_CU(cu.MemsetD8Async(l->memory, 2, 8, NULL));
    CHECK_CU(cu.MemsetD8Async(l->memory, 3, 8, blocking));
    CHECK_CU(cu.MemsetD8Async(l->memory + 8, 4, 8, l->first));
    fc_advance(1);
    CHECK_EQ(fc_pending(), 2); /* the first piece and the one without a wait are done */
    fc_advance(1);
    CHECK_EQ(fc_pending(), 1);
    CHECK_CU(cu.StreamSynchronize(blocking));
    CHECK_EQ(fc_read(l->memory), 0x0303030303030303);
    CHECK_CU(cu.StreamDestroy(blocking));
}

static void call_back(void *user)
{
    qi_cu_ptr pointer;
    (void)user;
    CHECK_CODE(cu.MemAlloc(&pointer, 8), NOT_PERMITTED);
}

LATE_CASE(host_functions_may_not_call_back)
{
    CHECK_CU(cu.LaunchHostFunc(l->first, call_back, NULL));
    CHECK_EQ(fc_message_count(), 0);
    CHECK_CU(cu.StreamSynchronize(l->first));
    fc_fixture_expect("fc-callback: cuMemAlloc_v2");
}

/* ---- memory that work still uses ----------------------------------------------------------- */

/* Gives up the primary context, whose device is lost. */
static void end_lost(void)
{
    CHECK_CU(cu.CtxPopCurrent(NULL));
    CHECK_CU(cu.DevicePrimaryCtxRelease(0));
    CHECK_EQ(fc_leaks(), 0);
    CHECK_EQ(fc_message_count(), 0);
}

UNIT(fake_cuda_misuse, unmapping_does_not_wait_and_is_noticed)
{
    late l = open_late();
    qi_cu_handle handle;
    qi_cu_ptr pointer = fc_mapped(FC_PIECE, &handle);
    CHECK_CU(cu.MemsetD8Async(pointer, 1, 8, l.first));
    CHECK_CU(cu.MemUnmap(pointer, FC_PIECE));
    fc_fixture_expect("fc-in-use: cuMemUnmap");
    CHECK_CODE(cu.StreamSynchronize(l.first), ILLEGAL_ADDRESS);
    fc_fixture_expect("fc-address: cuMemsetD8Async");
    CHECK_CODE(cu.CtxSynchronize(), ILLEGAL_ADDRESS);
    CHECK_CODE(cu.StreamDestroy(l.second), ILLEGAL_ADDRESS); /* it still runs */
    CHECK_CU(cu.MemRelease(handle));
    CHECK_CU(cu.MemAddressFree(pointer, FC_PIECE));
    end_lost();
}

UNIT(fake_cuda_misuse, freeing_may_not_wait_and_is_noticed)
{
    late l = open_late();
    qi_cu_ptr pointer;
    void *pinned;
    CHECK_CU(cu.MemHostAlloc(&pinned, 64, 0));
    CHECK_CU(cu.MemsetD8Async((uintptr_t)pinned, 1, 64, l.first));
    CHECK_CU(cu.MemFreeHost(pinned));
    fc_fixture_expect("fc-in-use: cuMemFreeHost");
    CHECK_CU(cu.MemAlloc(&pointer, 64));
    CHECK_CU(cu.MemsetD8Async(pointer, 1, 64, l.first));
    CHECK_CU(cu.MemFree(pointer));
    fc_fixture_expect("fc-in-use: cuMemFree_v2");
    fc_lose(0, QI_CUDA_ERROR_ILLEGAL_ADDRESS); /* otherwise its work would do so */
    CHECK_CU(cu.CtxPopCurrent(NULL));
    CHECK_CU(cu.DevicePrimaryCtxRelease(0));
}

static qi_cu_ptr take(uint64_t size, qi_cu_stream stream)
{
    qi_cu_ptr pointer = 0;
    CHECK_CU(cu.MemAllocAsync(&pointer, size, stream));
    return pointer;
}

UNIT(fake_cuda_misuse, memory_of_a_pool_is_used_between_its_allocation_and_its_free)
{
    qi_cu_event event;
    late l = open_late();
    qi_cu_ptr pointer = take(100, l.first);
    CHECK_CU(cu.MemsetD8Async(pointer, 1, 100, l.first)); /* in the order of its stream */
    CHECK_EQ(fc_message_count(), 0);
    CHECK_CU(cu.MemsetD8Async(pointer, 1, 100, l.second));
    fc_fixture_expect("fc-early: cuMemsetD8Async");
    CHECK_CU(cu.StreamSynchronize(l.first));
    CHECK_CU(cu.MemsetD8Async(pointer, 1, 100, l.second)); /* the host has seen it done */
    CHECK_CODE(cu.MemFreeAsync(pointer + 8, l.first), INVALID_VALUE);
    CHECK_CU(cu.MemFreeAsync(pointer, l.first)); /* the fill may run afterwards */
    fc_fixture_expect("fc-in-use: cuMemFreeAsync");
    CHECK_CODE(cu.MemFreeAsync(pointer, l.first), INVALID_VALUE);
    qi_cu_ptr other = take(100, l.first);
    CHECK_CU(cu.EventCreate(&event, 0));
    CHECK_CU(cu.EventRecord(event, l.first));
    CHECK_CU(cu.StreamWaitEvent(l.second, event, 0));
    CHECK_CU(cu.MemsetD8Async(other, 1, 100, l.second)); /* an event orders it */
    CHECK_EQ(fc_message_count(), 0);
    CHECK_CU(cu.CtxSynchronize());
    CHECK_CU(cu.MemFreeAsync(other, l.first));
    CHECK_CU(cu.MemsetD8Async(other, 1, 100, l.second));
    CHECK_HAS(fc_message(0), "fc-freed: cuMemsetD8Async");
    fc_forget();
    (void)cu.CtxSynchronize(); /* the work of the fill finds nothing */
    fc_reset(NULL);
}

#define X(name, suffix, version, presence, parameters)                                             \
    typedef qi_cu_result(*fn_##name) parameters;                                                   \
    static fn_##name call_##name(void)                                                             \
    {                                                                                              \
        void *found = NULL;                                                                        \
        qi_cu_query_result why;                                                                    \
        fn_##name function;                                                                        \
        CHECK_EQ(fake_cuda()->find("cu" #name, &found, version, 0, &why), 0);                      \
        memcpy(&function, &found, sizeof function);                                                \
        return function;                                                                           \
    }
FAKE_CUDA_KERNEL_FUNCTIONS(X)
#undef X

UNIT(fake_cuda_misuse, a_store_of_a_kernel_to_nothing_loses_the_device)
{
    static const char text[] = ".version 6.3\n.visible .entry store(.param .u64 a)\n{\n  ret;\n}\n";
    uint64_t address = 16;
    void *module, *function, *parameters[] = {&address};
    (void)fc_fixture_open(NULL);
    CHECK_CU(call_ModuleLoadData()(&module, text));
    CHECK_CU(call_ModuleGetFunction()(&function, module, "store"));
    CHECK_CU(call_LaunchKernel()(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    CHECK_CODE(cu.CtxSynchronize(), ILLEGAL_ADDRESS);
    fc_fixture_expect("fc-address: cuLaunchKernel");
    fc_reset(NULL);
}

/* ---- handles of what is gone --------------------------------------------------------------- */

UNIT(fake_cuda_misuse, what_is_destroyed_is_not_used)
{
    qi_cu_context made, other, first = fc_fixture_open(NULL);
    qi_cu_ptr pointer;
    qi_cu_stream stream;
    qi_cu_event event;
    size_t size;
    CHECK_CODE(cu.MemRelease(12345), INVALID_VALUE); /* the driver does not guarantee this */
    fc_fixture_expect("fc-handle: cuMemRelease");
    CHECK_CODE(cu.MemGetAllocationGranularity(&size, NULL, 0), INVALID_VALUE); /* it would crash */
    fc_fixture_expect("fc-null");
    CHECK_CU(cu.StreamCreate(&stream, 0));
    CHECK_CU(cu.EventCreate(&event, 0));
    CHECK_CU(cu.StreamDestroy(stream));
    CHECK_CU(cu.EventDestroy(event));
    CHECK_CODE(cu.StreamSynchronize(stream), INVALID_HANDLE);
    fc_fixture_expect("fc-handle: cuStreamSynchronize");
    CHECK_CODE(cu.EventSynchronize(event), INVALID_HANDLE);
    fc_fixture_expect("fc-handle: cuEventSynchronize");
    CHECK_CU(cu.CtxCreate(&made, 0, 0));
    CHECK_CU(cu.MemAlloc(&pointer, 100));
    CHECK_CU(cu.StreamCreate(&stream, 0));
    CHECK_CU(cu.CtxDestroy(made));
    fc_fixture_expect("the context ends with 2 things alive");
    CHECK_CODE(cu.CtxPushCurrent(made), INVALID_CONTEXT);
    fc_fixture_expect("fc-handle: cuCtxPushCurrent_v2");
    /* a destroyed context below the top of the stack stays there, and using it adds a message */
    CHECK_CU(cu.CtxCreate(&other, 0, 0));
    CHECK_CU(cu.CtxPushCurrent(first));
    CHECK_CU(cu.CtxDestroy(other));
    CHECK_CU(cu.CtxPopCurrent(NULL));
    CHECK_CODE(cu.MemAlloc(&pointer, 100), CONTEXT_IS_DESTROYED);
    fc_fixture_expect("fc-context: cuMemAlloc_v2");
    CHECK_CU(cu.CtxPopCurrent(NULL));
    fc_fixture_close();
    CHECK_CODE(cu.DevicePrimaryCtxRelease(0), INVALID_CONTEXT);
    fc_fixture_expect("fc-primary: cuDevicePrimaryCtxRelease_v2");
}

CASE(a_destroyed_pool_ends_with_its_last_allocation, fc_fixture_open(NULL))
{
    qi_cu_pool pool;
    qi_cu_ptr pointer, none;
    qi_cu_pool_props props = {.allocType = QI_CU_MEM_ALLOCATION_TYPE_PINNED,
                              .location = {QI_CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CHECK_CU(cu.MemPoolCreate(&pool, &props));
    CHECK_CU(cu.MemAllocFromPoolAsync(&pointer, 100, pool, NULL));
    CHECK_CU(cu.MemPoolDestroy(pool));
    fc_write(pointer, 5);
    CHECK_CODE(cu.MemAllocFromPoolAsync(&none, 100, pool, NULL), INVALID_VALUE);
    fc_fixture_expect("fc-handle: cuMemAllocFromPoolAsync");
    CHECK_CODE(cu.MemPoolDestroy(pool), INVALID_VALUE);
    fc_fixture_expect("was destroyed");
    CHECK_EQ(fc_usage_of(0).bytes, 2 * FC_MIB);
    CHECK_CU(cu.MemFreeAsync(pointer, NULL));
}

/* ---- multicast ----------------------------------------------------------------------------- */

UNIT(fake_cuda_misuse, multicast_waits_until_all_have_joined)
{
    const qi_cu_multicast_prop two = {.numDevices = 2, .size = 2 * FC_PIECE};
    const fc_model *h200 = fc_model_named("h200");
    qi_cu_access_desc desc = fc_for_device(2, QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    qi_cu_handle object, memory;
    (void)fc_fixture_open(&(fc_options){.models = {h200, h200, h200}});
    CHECK_CU(cu.MulticastCreate(&object, &two));
    CHECK_CU(cu.MulticastAddDevice(object, 0));
    CHECK_CODE(cu.MulticastAddDevice(object, 0), INVALID_VALUE);
    memory = fc_make(2 * FC_PIECE);
    qi_cu_ptr pointer = fc_reserve(2 * FC_PIECE);
    /* the real driver waits here */
    CHECK_CODE(cu.MulticastBindMem(object, 0, memory, 0, 2 * FC_PIECE, 0), ILLEGAL_STATE);
    fc_fixture_expect("fc-waits: cuMulticastBindMem");
    CHECK_CODE(cu.MemMap(pointer, 2 * FC_PIECE, 0, object, 0), ILLEGAL_STATE);
    fc_fixture_expect("fc-waits: cuMemMap");
    CHECK_CU(cu.MulticastAddDevice(object, 1));
    CHECK_CU(cu.MulticastBindMem(object, FC_PIECE, memory, FC_PIECE, FC_PIECE, 0));
    CHECK_CODE(cu.MulticastBindMem(object, FC_PIECE, memory, 0, FC_PIECE, 0), INVALID_VALUE);
    CHECK_CODE(cu.MulticastBindMem(object, 0, object, 0, FC_PIECE, 0), INVALID_VALUE);
    CHECK_CODE(cu.MulticastBindMem(memory, 0, memory, 0, FC_PIECE, 0), INVALID_VALUE);
    CHECK_CODE(cu.MulticastUnbind(object, 7, 0, FC_PIECE), INVALID_DEVICE);
    CHECK_CODE(cu.MulticastUnbind(object, 1, FC_PIECE, FC_PIECE), INVALID_VALUE);
    CHECK_CU(cu.MemMap(pointer, 2 * FC_PIECE, 0, object, 0));
    CHECK_CODE(cu.MemSetAccess(pointer, 2 * FC_PIECE, &desc, 1), INVALID_DEVICE);
    desc.location.id = 0;
    CHECK_CU(cu.MemSetAccess(pointer, 2 * FC_PIECE, &desc, 1));
    CHECK_CODE(cu.MemsetD8(pointer, 0, 8), INVALID_VALUE); /* only kernels could use the mapping */
    CHECK_CU(cu.MemRelease(memory));
    fc_unmapped(pointer, 2 * FC_PIECE, object);
    fc_fixture_close();
}

CASE(memory_of_a_pool_is_not_freed_while_it_is_bound, fc_fixture_open(NULL))
{
    const qi_cu_multicast_prop one = {.numDevices = 1, .size = FC_PIECE};
    qi_cu_handle object;
    CHECK_CU(cu.MulticastCreate(&object, &one));
    CHECK_CU(cu.MulticastAddDevice(object, 0));
    qi_cu_ptr block = take(3 * FC_PIECE, NULL);
    CHECK_CODE(cu.MulticastBindAddr(object, 0, block, FC_PIECE, 0), INVALID_VALUE);
    qi_cu_ptr inside = (block + FC_PIECE - 1) & ~(FC_PIECE - 1); /* only whole granules */
    CHECK_CU(cu.MulticastBindAddr(object, 0, inside, FC_PIECE, 0));
    CHECK_CU(cu.MemFreeAsync(block, NULL));
    fc_fixture_expect("fc-bound: cuMemFreeAsync");
    CHECK_CU(cu.MulticastUnbind(object, 0, 0, FC_PIECE));
    CHECK_CU(cu.MemRelease(object));
    CHECK_CU(cu.CtxSynchronize());
}

/* ---- memory and addresses ------------------------------------------------------------------ */

UNIT(fake_cuda_misuse, mapping_and_access_at_their_limits)
{
    qi_cu_handle tiles, handle, small;
    qi_cu_allocation_prop prop = fc_on_device(0);
    qi_cu_access_desc desc = fc_for_device(0, QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    qi_cu_access_desc pair[2] = {desc, fc_for_device(0, 2)};
    (void)fc_fixture_open(NULL);
    qi_cu_ptr empty = fc_reserve(4 * FC_PIECE), mapped = fc_mapped(2 * FC_PIECE, &handle), none;
    small = fc_make(FC_PIECE);
    prop.allocFlags.usage = QI_CU_MEM_CREATE_USAGE_TILE_POOL;
    CHECK_CU(cu.MemCreate(&tiles, FC_PIECE, &prop, 0));
    CHECK_CODE(cu.MemMap(empty, FC_PIECE, 0, tiles, 0), INVALID_VALUE); /* it is for arrays */
    CHECK_CODE(cu.MemMap(empty + 4 * FC_PIECE, FC_PIECE, 0, small, 0), INVALID_VALUE);
    CHECK_CODE(cu.MemMap(empty + 3 * FC_PIECE, 2 * FC_PIECE, 0, handle, 0), INVALID_VALUE);
    CHECK_CODE(cu.MemMap(mapped + FC_PIECE, FC_PIECE, 0, small, 0), INVALID_VALUE);
    CHECK_CODE(cu.MemMap(empty, 0, 0, small, 0), INVALID_VALUE);
    CHECK_CODE(cu.MemUnmap(mapped + FC_PIECE, FC_PIECE), INVALID_VALUE);
    CHECK_CODE(cu.MemUnmap(mapped, 3 * FC_PIECE), INVALID_VALUE);
    CHECK_CODE(cu.MemUnmap(mapped, UINT64_MAX), INVALID_VALUE);
    CHECK_CODE(cu.MemSetAccess(mapped, 2 * FC_PIECE, &desc, 0), INVALID_VALUE);
    CHECK_CODE(cu.MemSetAccess(mapped, 2 * FC_PIECE, pair, 2), INVALID_VALUE);
    CHECK_CODE(cu.MemSetAccess(mapped, 3 * FC_PIECE, &desc, 1), INVALID_VALUE);
    CHECK_CODE(cu.MemSetAccess(mapped, FC_PIECE, &desc, 1), INVALID_VALUE);
    CHECK_CODE(cu.MemAddressReserve(&none, FC_PIECE, 0, empty + 100, 0), INVALID_VALUE);
    CHECK_CODE(cu.MemAddressFree(empty + FC_PIECE, 3 * FC_PIECE), INVALID_VALUE);
    CHECK_EQ(fc_live(FC_MEMORY), 3);
    CHECK_EQ(fc_live(FC_MAPPING), 1);
    CHECK_EQ(fc_live(FC_RESERVATION), 2);
    CHECK_CU(cu.MemRelease(tiles));
    CHECK_CU(cu.MemRelease(small));
    CHECK_CU(cu.MemAddressFree(empty, 4 * FC_PIECE));
    fc_unmapped(mapped, 2 * FC_PIECE, handle);
    fc_fixture_close();
}

/* Properties that no driver knows, of memory and of a pool. */
CASE(properties_that_are_none, fc_fixture_open(NULL))
{
    enum { WRONG = 7 };
    qi_cu_handle handle;
    qi_cu_pool pool;
    qi_cu_allocation_prop wrong[WRONG];
    qi_cu_pool_props props = {.allocType = QI_CU_MEM_ALLOCATION_TYPE_PINNED,
                              .location = {QI_CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    for (int i = 0; i < WRONG; i++)
        wrong[i] = fc_on_device(0);
    wrong[0].type = 0;
    wrong[1].location.type = 9;
    wrong[2].requestedHandleTypes = 16;
    wrong[3].allocFlags.compressionType = 2;
    wrong[4].allocFlags.gpuDirectRDMACapable = 2;
    wrong[5].allocFlags.usage = 4;
    wrong[6].allocFlags.reserved[3] = 1;
    for (int i = 0; i < WRONG; i++)
        if (cu.MemCreate(&handle, FC_PIECE, &wrong[i], 0) != QI_CUDA_ERROR_INVALID_VALUE)
            check_failed(__FILE__, __LINE__, "properties %d are accepted", i);
    props.reserved[53] = 1;
    CHECK_CODE(cu.MemPoolCreate(&pool, &props), INVALID_VALUE);
    props.reserved[53] = 0;
    props.allocType = 0;
    CHECK_CODE(cu.MemPoolCreate(&pool, &props), INVALID_VALUE);
}

CASE(copies_and_fills_outside_memory, fc_fixture_open(NULL))
{
    unsigned char bytes[64] = {0};
    qi_cu_ptr pointer;
    CHECK_CU(cu.MemAlloc(&pointer, 100));
    CHECK_CODE(cu.MemcpyHtoD(pointer + 50, bytes, 64), INVALID_VALUE);
    CHECK_CODE(cu.MemcpyDtoH(bytes, pointer + 50, 64), INVALID_VALUE);
    CHECK_CODE(cu.MemcpyDtoD(pointer, pointer + 99, 2), INVALID_VALUE);
    CHECK_CODE(cu.MemcpyHtoD((uintptr_t)bytes, bytes, 8), INVALID_VALUE);
    CHECK_CODE(cu.MemcpyDtoH((void *)(uintptr_t)pointer, pointer, 8), INVALID_VALUE);
    CHECK_CODE(cu.MemsetD8(pointer, 1, 101), INVALID_VALUE);
    CHECK_CODE(cu.MemsetD32(pointer, 1, UINT64_MAX / 2), INVALID_VALUE);
    qi_cu_memcpy2d box = {.srcMemoryType = QI_CU_MEMORYTYPE_HOST,
                          .srcHost = bytes,
                          .srcPitch = 8,
                          .dstMemoryType = QI_CU_MEMORYTYPE_DEVICE,
                          .dstDevice = pointer,
                          .dstPitch = 48, /* the third row is outside */
                          .WidthInBytes = 5,
                          .Height = 3};
    CHECK_CODE(cu.Memcpy2D(&box), INVALID_VALUE);
    box.dstPitch = 16;
    CHECK_CU(cu.Memcpy2D(&box));
    box.srcPitch = 4; /* rows would overlap */
    CHECK_CODE(cu.Memcpy2D(&box), INVALID_VALUE);
    CHECK_CU(cu.MemFree(pointer));
}

/* ---- arrays -------------------------------------------------------------------------------- */

static qi_cu_array3d_descriptor form(size_t width, size_t height, size_t depth, unsigned flags)
{
    return (qi_cu_array3d_descriptor){.Width = width,
                                      .Height = height,
                                      .Depth = depth,
                                      .Format = QI_CU_AD_FORMAT_UNSIGNED_INT8,
                                      .NumChannels = 4,
                                      .Flags = flags};
}

UNIT(fake_cuda_misuse, arrays_of_forms_that_are_none)
{
    const qi_cu_array3d_descriptor wrong[] = {
        form(0, 16, 0, 0),
        form(16, 0, 16, 0),
        form(16, 16, 0, QI_CUDA_ARRAY3D_LAYERED),
        form(16, 8, 6, QI_CUDA_ARRAY3D_CUBEMAP),
        form(16, 0, 0, QI_CUDA_ARRAY3D_SPARSE),
        form(16, 16, 0, QI_CUDA_ARRAY3D_SPARSE | QI_CUDA_ARRAY3D_DEFERRED_MAPPING),
    };
    qi_cu_array array;
    qi_cu_mipmap mipmap;
    qi_cu_array3d_descriptor desc = form(64, 32, 0, 0);
    (void)fc_fixture_open(NULL);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (cu.Array3DCreate(&array, &wrong[i]) != QI_CUDA_ERROR_INVALID_VALUE)
            check_failed(__FILE__, __LINE__, "form %zu is accepted", i);
    CHECK_CODE(cu.MipmappedArrayCreate(&mipmap, &desc, 8), INVALID_VALUE); /* it has 7 */
    CHECK_CU(cu.MipmappedArrayCreate(&mipmap, &desc, 7));
    CHECK_CU(cu.MipmappedArrayGetLevel(&array, mipmap, 3));
    CHECK_CODE(cu.ArrayDestroy(array), INVALID_HANDLE);
    fc_fixture_expect("fc-level");
    CHECK_CU(cu.MipmappedArrayDestroy(mipmap));
    fc_fixture_close();
}

/* Mappings of two tiles of a sparse array, each wrong in one way. */
UNIT(fake_cuda_misuse, mappings_of_tiles_that_are_wrong)
{
    qi_cu_mipmap mipmap;
    qi_cu_allocation_prop prop = fc_on_device(0);
    qi_cu_sparse_properties told;
    qi_cu_array3d_descriptor desc =
        form(512, 256, 2, QI_CUDA_ARRAY3D_SPARSE | QI_CUDA_ARRAY3D_LAYERED);
    qi_cu_handle pool, plain;
    fc_model model = *fc_model_named("h200");
    model.features |= FC_SINGLE_TAIL;
    (void)fc_fixture_open(&(fc_options){.models = {&model}});
    prop.allocFlags.usage = QI_CU_MEM_CREATE_USAGE_TILE_POOL;
    CHECK_CU(cu.MemCreate(&pool, FC_PIECE, &prop, 0));
    plain = fc_make(FC_PIECE); /* not created for it */
    CHECK_CU(cu.MipmappedArrayCreate(&mipmap, &desc, 10));
    qi_cu_array_map_info good = {.resourceType = QI_CU_RESOURCE_TYPE_MIPMAPPED_ARRAY,
                                 .resource = {.mipmap = mipmap},
                                 .memOperationType = QI_CU_MEM_OPERATION_TYPE_MAP,
                                 .memHandle = {pool},
                                 .deviceBitMask = 1};
    good.subresource.sparseLevel.extentWidth = 256;
    good.subresource.sparseLevel.extentHeight = 128;
    good.subresource.sparseLevel.extentDepth = 1;
    enum { WRONG = 10 };
    qi_cu_array_map_info wrong[WRONG];
    for (int i = 0; i < WRONG; i++)
        wrong[i] = good;
    wrong[0].subresource.sparseLevel.offsetX = 1;
    wrong[1].subresource.sparseLevel.extentWidth = 100;
    wrong[2].subresource.sparseLevel.level = 2; /* in the tail */
    wrong[3].memHandle.memHandle = plain;
    wrong[4].offset = 100;
    wrong[5].offset = FC_PIECE - 65536; /* only one tile is left there */
    wrong[6].deviceBitMask = 3;
    wrong[7].memOperationType = QI_CU_MEM_OPERATION_TYPE_UNMAP; /* with a handle */
    wrong[8].reserved[1] = 1;
    CHECK_CU(cu.MipmappedArrayGetSparseProperties(&told, mipmap));
    wrong[9].subresourceType = QI_CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL;
    wrong[9].subresource.miptail.layer = 1; /* one tail serves all layers */
    wrong[9].subresource.miptail.offset = 0;
    wrong[9].subresource.miptail.size = told.miptailSize;
    for (int i = 0; i < WRONG; i++)
        if (cu.MemMapArrayAsync(&wrong[i], 1, NULL) != QI_CUDA_ERROR_INVALID_VALUE)
            check_failed(__FILE__, __LINE__, "mapping %d is accepted", i);
    CHECK_CU(cu.MemMapArrayAsync(&good, 1, NULL));
    wrong[9].subresource.miptail.layer = 0;
    CHECK_CU(cu.MemMapArrayAsync(&wrong[9], 1, NULL));
    CHECK_CU(cu.MipmappedArrayDestroy(mipmap));
    CHECK_CU(cu.MemRelease(pool));
    CHECK_CU(cu.MemRelease(plain));
    fc_fixture_close();
}

UNIT(fake_cuda_misuse, a_copy_into_tiles_without_memory_is_noticed)
{
    uint32_t texel = 1;
    qi_cu_array array;
    qi_cu_array3d_descriptor desc = form(256, 256, 0, QI_CUDA_ARRAY3D_SPARSE);
    (void)fc_fixture_open(NULL);
    CHECK_CU(cu.Array3DCreate(&array, &desc));
    qi_cu_memcpy3d copy = {.srcMemoryType = QI_CU_MEMORYTYPE_HOST,
                           .srcHost = &texel,
                           .srcPitch = 4,
                           .srcHeight = 1,
                           .dstMemoryType = QI_CU_MEMORYTYPE_ARRAY,
                           .dstArray = array,
                           .WidthInBytes = 4,
                           .Height = 1,
                           .Depth = 1};
    CHECK_CODE(cu.Memcpy3D(&copy), ILLEGAL_ADDRESS);
    fc_fixture_expect("fc-address: cuMemcpy3D_v2");
    CHECK_CODE(cu.ArrayDestroy(array), ILLEGAL_ADDRESS);
    end_lost();
}
