/* fake_cuda_pool.c - the fake CUDA driver: pools that programs create, and the order in which their
   memory may be used. */
#include "tests/support/cuda/fixture.h"
#include "tests/support/unit.h"

static qi_cu_pool_props properties(int device)
{
    return (qi_cu_pool_props){.allocType = QI_CU_MEM_ALLOCATION_TYPE_PINNED,
                              .location = {.type = QI_CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
}

static qi_cu_pool make_pool(uint64_t max)
{
    qi_cu_pool pool = NULL;
    qi_cu_pool_props props = properties(0);
    props.maxSize = max;
    CHECK_CU(cu.MemPoolCreate(&pool, &props));
    return pool;
}

static qi_cu_ptr take(qi_cu_pool pool, uint64_t size, qi_cu_stream stream)
{
    qi_cu_ptr pointer = 0;
    CHECK_CU(cu.MemAllocFromPoolAsync(&pointer, size, pool, stream));
    return pointer;
}

static uint64_t number(qi_cu_pool pool, qi_cu_pool_attribute attribute)
{
    uint64_t value = 77;
    CHECK_CU(cu.MemPoolGetAttribute(pool, attribute, &value));
    return value;
}

#define RESERVED QI_CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT
#define USED QI_CU_MEMPOOL_ATTR_USED_MEM_CURRENT

/* ---- order ---------------------------------------------------------------------------------- */

static qi_cu_stream first, second;

/* Two streams whose work waits until a thread waits for it. */
static qi_cu_pool open_late(void)
{
    (void)fc_fixture_open(&(fc_options){.flags = FC_LATE});
    CHECK_CU(cu.StreamCreate(&first, QI_CU_STREAM_NON_BLOCKING));
    CHECK_CU(cu.StreamCreate(&second, QI_CU_STREAM_NON_BLOCKING));
    return make_pool(0);
}

static void close_late(qi_cu_pool pool)
{
    CHECK_CU(cu.CtxSynchronize());
    CHECK_CU(cu.MemPoolDestroy(pool));
    CHECK_CU(cu.StreamDestroy(first));
    CHECK_CU(cu.StreamDestroy(second));
    fc_fixture_close();
}

UNIT(fake_cuda_pool, memory_is_used_after_its_allocation_is_done)
{
    qi_cu_event event;
    qi_cu_pool pool = open_late();
    qi_cu_ptr pointer = take(pool, 100, first);
    CHECK_CU(cu.MemsetD8Async(pointer, 1, 100, first)); /* in the order of its stream */
    CHECK_EQ(fc_message_count(), 0);
    CHECK_CU(cu.MemsetD8Async(pointer, 1, 100, second));
    fc_fixture_expect("fc-early: cuMemsetD8Async");
    CHECK_CU(cu.StreamSynchronize(first));
    CHECK_CU(cu.MemsetD8Async(pointer, 1, 100, second)); /* the host has seen it done */
    qi_cu_ptr other = take(pool, 100, first);
    CHECK_CU(cu.EventCreate(&event, 0));
    CHECK_CU(cu.EventRecord(event, first));
    CHECK_CU(cu.StreamWaitEvent(second, event, 0));
    CHECK_CU(cu.MemsetD8Async(other, 1, 100, second)); /* an event orders it */
    CHECK_EQ(fc_message_count(), 0);
    CHECK_CU(cu.CtxSynchronize());
    CHECK_CU(cu.EventDestroy(event));
    CHECK_CU(cu.MemFreeAsync(pointer, first));
    CHECK_CU(cu.MemFreeAsync(other, second));
    close_late(pool);
}

UNIT(fake_cuda_pool, memory_is_freed_once_and_after_its_last_use)
{
    qi_cu_pool pool = open_late();
    qi_cu_ptr pointer = take(pool, 100, first);
    CHECK_CU(cu.StreamSynchronize(first));
    CHECK_CU(cu.MemsetD8Async(pointer, 1, 100, second));
    CHECK_CODE(cu.MemFreeAsync(pointer + 8, first), INVALID_VALUE);
    CHECK_CU(cu.MemFreeAsync(pointer, first)); /* the fill may run afterwards */
    fc_fixture_expect("fc-in-use: cuMemFreeAsync");
    CHECK_CODE(cu.MemFreeAsync(pointer, first), INVALID_VALUE);
    CHECK_CU(cu.CtxSynchronize());
    pointer = take(pool, 100, first);
    CHECK_CU(cu.MemFreeAsync(pointer, first));
    CHECK_CU(cu.MemsetD8Async(pointer, 1, 100, second));
    CHECK_HAS(fc_message(0), "fc-freed: cuMemsetD8Async");
    fc_forget();
    (void)cu.CtxSynchronize(); /* the work of the fill finds nothing */
    fc_reset(NULL);
}

UNIT(fake_cuda_pool, an_allocation_is_no_part_of_another_streams_capture)
{
    qi_cu_graph graph;
    qi_cu_ptr pointer;
    qi_cu_pool pool = open_late();
    CHECK_CU(cu.StreamBeginCapture(second, QI_CU_STREAM_CAPTURE_MODE_RELAXED));
    qi_cu_ptr outside = take(pool, 100, first);
    CHECK_CU(cu.MemFreeAsync(outside, first));
    CHECK_CU(cu.StreamEndCapture(second, &graph));
    CHECK_CU(cu.StreamBeginCapture(second, QI_CU_STREAM_CAPTURE_MODE_GLOBAL));
    CHECK_CODE(cu.MemAllocFromPoolAsync(&pointer, 100, pool, first), STREAM_CAPTURE_UNSUPPORTED);
    CHECK_CODE(cu.StreamEndCapture(second, &graph), STREAM_CAPTURE_INVALIDATED);
    CHECK_CU(cu.CtxSynchronize());
    CHECK_EQ(number(pool, USED), 0); /* the refused one took nothing */
    close_late(pool);
}

/* ---- bytes ---------------------------------------------------------------------------------- */

UNIT(fake_cuda_pool, a_pool_keeps_what_its_threshold_says)
{
    uint64_t threshold = 4 * FC_MIB, zero = 0;
    (void)fc_fixture_open(NULL);
    qi_cu_pool pool = make_pool(0);
    qi_cu_ptr large = take(pool, 7 * FC_MIB, NULL), small = take(pool, 100, NULL);
    CHECK_EQ(number(pool, USED), 7 * FC_MIB + 100);
    CHECK_EQ(number(pool, RESERVED), 8 * FC_MIB);
    CHECK_EQ(fc_usage_of(0).bytes, 8 * FC_MIB);
    CHECK_CU(cu.MemPoolSetAttribute(pool, QI_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    CHECK_CU(cu.MemFreeAsync(large, NULL));
    CHECK_EQ(number(pool, RESERVED), 8 * FC_MIB); /* until something is synchronised */
    CHECK_CU(cu.StreamSynchronize(NULL));
    CHECK_EQ(number(pool, RESERVED), 4 * FC_MIB);
    CHECK_CU(cu.MemPoolTrimTo(pool, FC_MIB)); /* in pieces, and not below the use */
    CHECK_EQ(number(pool, RESERVED), 2 * FC_MIB);
    CHECK_EQ(number(pool, QI_CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 8 * FC_MIB);
    CHECK_CU(cu.MemPoolSetAttribute(pool, QI_CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &zero));
    CHECK_EQ(number(pool, QI_CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), 2 * FC_MIB);
    CHECK_EQ(number(pool, QI_CU_MEMPOOL_ATTR_USED_MEM_HIGH), 7 * FC_MIB + 100);
    CHECK_CODE(cu.MemPoolSetAttribute(pool, USED, &zero), INVALID_VALUE);
    CHECK_CU(cu.MemFree(small)); /* cuMemFree takes it as well */
    CHECK_CU(cu.MemPoolDestroy(pool));
    fc_fixture_close();
}

UNIT(fake_cuda_pool, a_pool_and_the_device_have_an_end)
{
    qi_cu_ptr pointer, more;
    (void)fc_fixture_open(NULL);
    qi_cu_pool pool = make_pool(4 * FC_MIB), other = make_pool(0);
    pointer = take(pool, 3 * FC_MIB, NULL);
    CHECK_CODE(cu.MemAllocFromPoolAsync(&more, 2 * FC_MIB, pool, NULL), OUT_OF_MEMORY);
    fc_set_capacity(0, 8 * FC_MIB);
    CHECK_CODE(cu.MemAllocFromPoolAsync(&more, 5 * FC_MIB, other, NULL), OUT_OF_MEMORY);
    more = take(other, 4 * FC_MIB, NULL);
    CHECK_CU(cu.MemFreeAsync(pointer, NULL));
    CHECK_CU(cu.MemFreeAsync(more, NULL));
    CHECK_CU(cu.MemPoolDestroy(pool));
    CHECK_CU(cu.MemPoolDestroy(other));
    fc_fixture_close();
}

UNIT(fake_cuda_pool, a_destroyed_pool_ends_with_its_last_allocation)
{
    (void)fc_fixture_open(NULL);
    qi_cu_pool pool = make_pool(0);
    qi_cu_ptr a = take(pool, 100, NULL), b = take(pool, 100, NULL), none;
    CHECK_CU(cu.MemPoolDestroy(pool));
    CHECK_EQ(fc_live(FC_POOL), 0);
    fc_write(b, 5);
    CHECK_EQ(fc_read(b), 5);
    CHECK_CODE(cu.MemAllocFromPoolAsync(&none, 100, pool, NULL), INVALID_VALUE);
    fc_fixture_expect("fc-handle: cuMemAllocFromPoolAsync");
    CHECK_CODE(cu.MemPoolDestroy(pool), INVALID_VALUE);
    fc_fixture_expect("was destroyed");
    CHECK_CU(cu.MemFreeAsync(a, NULL));
    CHECK_EQ(fc_usage_of(0).bytes, 2 * FC_MIB);
    CHECK_CU(cu.MemFreeAsync(b, NULL));
    CHECK_EQ(fc_usage_of(0).bytes, 0);
    fc_fixture_close();
}

/* ---- which pool, and who reaches it --------------------------------------------------------- */

UNIT(fake_cuda_pool, a_device_has_a_current_pool)
{
    qi_cu_pool current, standard;
    qi_cu_ptr pointer;
    (void)fc_fixture_open(NULL);
    qi_cu_pool pool = make_pool(0);
    CHECK_CU(cu.DeviceGetDefaultMemPool(&standard, 0));
    CHECK_CU(cu.DeviceGetMemPool(&current, 0));
    CHECK(current == standard);
    CHECK_CODE(cu.MemPoolDestroy(standard), INVALID_VALUE);
    CHECK_CU(cu.DeviceSetMemPool(0, pool));
    CHECK_CU(cu.DeviceGetMemPool(&current, 0));
    CHECK(current == pool);
    CHECK_CU(cu.MemAllocAsync(&pointer, 100, NULL));
    CHECK_EQ(number(pool, USED), 100);
    CHECK_CU(cu.MemFreeAsync(pointer, NULL));
    CHECK_CODE(cu.DeviceGetMemPool(&current, 1), INVALID_DEVICE);
    CHECK_CODE(cu.DeviceGetMemPool(NULL, 0), INVALID_VALUE);
    CHECK_CU(cu.MemPoolDestroy(pool));
    CHECK_CU(cu.DeviceGetMemPool(&current, 0));
    CHECK(current == standard);
    fc_fixture_close();
}

UNIT(fake_cuda_pool, other_devices_need_access)
{
    fc_address_info info;
    qi_cu_access_flags flags = 9;
    qi_cu_location there = {QI_CU_MEM_LOCATION_TYPE_DEVICE, 1};
    qi_cu_access_desc descs[2] = {fc_for_device(1, QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE),
                                  fc_for_device(2, QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE)};
    const fc_model *h200 = fc_model_named("h200");
    (void)fc_fixture_open(&(fc_options){.models = {h200, h200, h200}, .peers = {2, 1}});
    qi_cu_pool pool = make_pool(0);
    qi_cu_ptr pointer = take(pool, 100, NULL);
    CHECK(fc_address_of(pointer, &info) && info.write == 1);
    CHECK_CODE(cu.MemPoolSetAccess(pool, descs, 2), INVALID_VALUE); /* 2 is no peer */
    CHECK_CU(cu.MemPoolGetAccess(&flags, pool, &there));
    CHECK_EQ(flags, 0);
    CHECK_CU(cu.MemPoolSetAccess(pool, descs, 1));
    CHECK_CU(cu.MemPoolGetAccess(&flags, pool, &there));
    CHECK_EQ(flags, QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    CHECK(fc_address_of(pointer, &info) && info.write == 3);       /* also what is there already */
    descs[0] = fc_for_device(0, QI_CU_MEM_ACCESS_FLAGS_PROT_NONE); /* its own */
    CHECK_CODE(cu.MemPoolSetAccess(pool, descs, 1), INVALID_VALUE);
    descs[0].location.type = QI_CU_MEM_LOCATION_TYPE_HOST;
    CHECK_CODE(cu.MemPoolSetAccess(pool, descs, 1), INVALID_VALUE);
    CHECK_CODE(cu.MemPoolSetAccess(pool, NULL, 1), INVALID_VALUE);
    CHECK_CODE(cu.MemPoolGetAccess(NULL, pool, &there), INVALID_VALUE);
    CHECK_CU(cu.MemFreeAsync(pointer, NULL));
    CHECK_CU(cu.MemPoolDestroy(pool));
    fc_fixture_close();
}

UNIT(fake_cuda_pool, wrong_properties_are_refused)
{
    qi_cu_pool pool;
    qi_cu_ptr pointer;
    qi_cu_pool_props props = properties(0);
    (void)fc_fixture_open(NULL);
    CHECK_CODE(cu.MemPoolCreate(NULL, &props), INVALID_VALUE);
    CHECK_CODE(cu.MemPoolCreate(&pool, NULL), INVALID_VALUE);
    props.allocType = 0;
    CHECK_CODE(cu.MemPoolCreate(&pool, &props), INVALID_VALUE);
    props = properties(7);
    CHECK_CODE(cu.MemPoolCreate(&pool, &props), INVALID_VALUE);
    props = properties(0);
    props.reserved[53] = 1;
    CHECK_CODE(cu.MemPoolCreate(&pool, &props), INVALID_VALUE);
    props = properties(0);
    props.handleTypes = QI_CU_MEM_HANDLE_TYPE_FABRIC;
    CHECK_CODE(cu.MemPoolCreate(&pool, &props), NOT_SUPPORTED);
    pool = make_pool(0);
    CHECK_CODE(cu.MemAllocFromPoolAsync(NULL, 1, pool, NULL), INVALID_VALUE);
    CHECK_CU(cu.MemAllocFromPoolAsync(&pointer, 0, pool, NULL));
    CHECK_CODE(cu.MemAllocFromPoolAsync(&pointer, 1, NULL, NULL), INVALID_VALUE);
    CHECK_CU(cu.MemPoolDestroy(pool));
    fc_fixture_close();
    (void)fc_fixture_open(&(fc_options){.version = 11020}); /* has no maximum size yet */
    props = properties(0);
    props.maxSize = 1;
    CHECK_CODE(cu.MemPoolCreate(&pool, &props), INVALID_VALUE);
    fc_fixture_close();
    (void)fc_fixture_open(&(fc_options){.models = {fc_model_named("vgpu")}});
    props = properties(0);
    CHECK_CODE(cu.MemPoolCreate(&pool, &props), NOT_SUPPORTED);
    CHECK_CODE(cu.DeviceGetMemPool(&pool, 0), NOT_SUPPORTED);
    fc_fixture_close();
}
