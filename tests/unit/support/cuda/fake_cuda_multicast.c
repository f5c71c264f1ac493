/*
 * fake_cuda_multicast.c - the fake CUDA driver: multicast objects.
 */
#include <fcntl.h>
#include <unistd.h>

#include "tests/support/child.h"
#include "tests/support/cuda/fixture.h"
#include "tests/support/unit.h"

static const qi_cu_multicast_prop TWO = {.numDevices = 2, .size = 2 * FC_PIECE};

static void open_two(void)
{
    fc_options options = {.models = {fc_model_named("h200"), fc_model_named("h200")},
                          .peers = {2, 1}};
    (void)fc_fixture_open(&options);
}

static qi_cu_handle make_on(int device, qi_cu_handle_type types)
{
    qi_cu_handle handle;
    qi_cu_allocation_prop prop = fc_on_device(device);
    prop.requestedHandleTypes = types;
    CHECK_CU(cu.MemCreate(&handle, 2 * FC_PIECE, &prop, 0));
    return handle;
}

UNIT(fake_cuda_multicast, it_is_joined_bound_mapped_and_given_back)
{
    qi_cu_handle object, first, second;
    qi_cu_access_desc descs[2] = {fc_for_device(0, QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE),
                                  fc_for_device(1, QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE)};
    open_two();
    CHECK_CU(cu.MulticastCreate(&object, &TWO));
    CHECK_EQ(fc_usage_of(0).bytes, 0); /* the object has no memory */
    CHECK_CU(cu.MulticastAddDevice(object, 0));
    CHECK_CU(cu.MulticastAddDevice(object, 1));
    first = make_on(0, 0);
    second = make_on(1, 0);
    CHECK_CU(cu.MulticastBindMem(object, 0, first, 0, 2 * FC_PIECE, 0));
    CHECK_CU(cu.MulticastBindMem(object, 0, second, 0, 2 * FC_PIECE, 0));
    qi_cu_ptr pointer = fc_reserve(2 * FC_PIECE);
    CHECK_CU(cu.MemMap(pointer, 2 * FC_PIECE, 0, object, 0));
    CHECK_CU(cu.MemSetAccess(pointer, 2 * FC_PIECE, descs, 2));
    CHECK_CODE(cu.MemsetD8(pointer, 0, 8), INVALID_VALUE); /* only kernels could use the mapping */
    CHECK_CU(cu.MemUnmap(pointer, 2 * FC_PIECE));
    CHECK_CU(cu.MemAddressFree(pointer, 2 * FC_PIECE));
    CHECK_CU(cu.MemRelease(second)); /* bound memory stays alive */
    CHECK_EQ(fc_usage_of(1).bytes, 2 * FC_PIECE);
    CHECK_CU(cu.MulticastUnbind(object, 1, 0, 2 * FC_PIECE));
    CHECK_EQ(fc_usage_of(1).bytes, 0);
    CHECK_CODE(cu.MulticastUnbind(object, 1, 0, 2 * FC_PIECE), INVALID_VALUE);
    CHECK_CU(cu.MemRelease(object)); /* destroying unbinds the rest */
    CHECK_CU(cu.MemRelease(first));
    fc_fixture_close();
}

UNIT(fake_cuda_multicast, nothing_is_bound_or_mapped_until_all_have_joined)
{
    qi_cu_handle object, memory;
    open_two();
    CHECK_CU(cu.MulticastCreate(&object, &TWO));
    CHECK_CU(cu.MulticastAddDevice(object, 0));
    CHECK_CODE(cu.MulticastAddDevice(object, 0), INVALID_VALUE);
    memory = make_on(0, 0);
    qi_cu_ptr pointer = fc_reserve(2 * FC_PIECE);
    /* the real driver waits here */
    CHECK_CODE(cu.MulticastBindMem(object, 0, memory, 0, 2 * FC_PIECE, 0), ILLEGAL_STATE);
    fc_fixture_expect("fc-waits: cuMulticastBindMem");
    CHECK_CODE(cu.MemMap(pointer, 2 * FC_PIECE, 0, object, 0), ILLEGAL_STATE);
    fc_fixture_expect("fc-waits: cuMemMap");
    CHECK_CU(cu.MulticastAddDevice(object, 1));
    CHECK_CU(cu.MulticastBindMem(object, FC_PIECE, memory, FC_PIECE, FC_PIECE, 0));
    CHECK_CODE(cu.MulticastBindMem(object, FC_PIECE, memory, 0, FC_PIECE, 0), INVALID_VALUE);
    CHECK_CU(cu.MemRelease(object));
    CHECK_CU(cu.MemRelease(memory));
    CHECK_CU(cu.MemAddressFree(pointer, 2 * FC_PIECE));
    fc_fixture_close();
}

UNIT(fake_cuda_multicast, wrong_use_is_refused)
{
    qi_cu_handle object, memory, mapped;
    size_t size;
    qi_cu_multicast_prop prop = TWO;
    open_two();
    CHECK_CU(cu.MulticastGetGranularity(&size, &TWO, 0));
    CHECK_EQ(size, FC_PIECE);
    CHECK_CODE(cu.MulticastGetGranularity(&size, &TWO, 2), INVALID_VALUE);
    CHECK_CODE(cu.MulticastGetGranularity(NULL, &TWO, 0), INVALID_VALUE);
    CHECK_CODE(cu.MulticastCreate(NULL, &TWO), INVALID_VALUE);
    CHECK_CODE(cu.MulticastCreate(&object, NULL), INVALID_VALUE);
    prop.size = FC_PIECE + 1;
    CHECK_CODE(cu.MulticastCreate(&object, &prop), INVALID_VALUE);
    prop = (qi_cu_multicast_prop){.numDevices = 3, .size = FC_PIECE};
    CHECK_CODE(cu.MulticastCreate(&object, &prop), INVALID_VALUE);
    prop = (qi_cu_multicast_prop){
        .numDevices = 2, .size = FC_PIECE, .handleTypes = QI_CU_MEM_HANDLE_TYPE_FABRIC};
    CHECK_CODE(cu.MulticastCreate(&object, &prop), NOT_PERMITTED);
    prop.handleTypes = QI_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    CHECK_CU(cu.MulticastCreate(&object, &prop));
    CHECK_CODE(cu.MulticastAddDevice(object, 5), INVALID_DEVICE);
    CHECK_CU(cu.MulticastAddDevice(object, 0));
    CHECK_CU(cu.MulticastAddDevice(object, 1));
    memory = make_on(0, 0);
    qi_cu_ptr pointer = fc_mapped(FC_PIECE, &mapped);
    CHECK_CODE(cu.MulticastBindMem(object, 0, memory, 0, FC_PIECE, 0), INVALID_VALUE);
    CHECK_CODE(cu.MulticastBindMem(object, 0, object, 0, FC_PIECE, 0), INVALID_VALUE);
    CHECK_CODE(cu.MulticastBindMem(memory, 0, memory, 0, FC_PIECE, 0), INVALID_VALUE);
    CHECK_CODE(cu.MulticastBindAddr(object, 0, pointer, FC_PIECE, 0), INVALID_VALUE);
    CHECK_CODE(cu.MulticastUnbind(object, 7, 0, FC_PIECE), INVALID_DEVICE);
    fc_unmapped(pointer, FC_PIECE, mapped);
    CHECK_CU(cu.MemRelease(memory));
    CHECK_CU(cu.MemRelease(object));
    fc_fixture_close();
}

UNIT(fake_cuda_multicast, mapped_memory_is_bound_by_its_address)
{
    qi_cu_handle object, mapped;
    open_two();
    CHECK_CU(cu.MulticastCreate(&object, &TWO));
    CHECK_CU(cu.MulticastAddDevice(object, 0));
    CHECK_CU(cu.MulticastAddDevice(object, 1));
    qi_cu_ptr pointer = fc_mapped(2 * FC_PIECE, &mapped);
    CHECK_CU(cu.MulticastBindAddr(object, 0, pointer + FC_PIECE, FC_PIECE, 0));
    CHECK_CODE(cu.MulticastBindAddr(object, FC_PIECE, pointer + FC_PIECE, 2 * FC_PIECE, 0),
               INVALID_VALUE);
    CHECK_CU(cu.MulticastUnbind(object, 0, 0, FC_PIECE));
    CHECK_CU(cu.MemRelease(object));
    fc_unmapped(pointer, 2 * FC_PIECE, mapped);
    fc_fixture_close();
}

/* Pools place their memory as they like: only whole granules inside an allocation can be bound. */
UNIT(fake_cuda_multicast, memory_of_a_pool_is_bound_by_its_address)
{
    qi_cu_handle object;
    qi_cu_pool pool;
    qi_cu_ptr block;
    open_two();
    CHECK_CU(cu.MulticastCreate(&object, &TWO));
    CHECK_CU(cu.MulticastAddDevice(object, 0));
    CHECK_CU(cu.MulticastAddDevice(object, 1));
    CHECK_CU(cu.DeviceGetDefaultMemPool(&pool, 0));
    CHECK_CU(cu.MemAllocFromPoolAsync(&block, 3 * FC_PIECE, pool, NULL));
    CHECK_CODE(cu.MulticastBindAddr(object, 0, block, FC_PIECE, 0), INVALID_VALUE);
    qi_cu_ptr inside = (block + FC_PIECE - 1) & ~(FC_PIECE - 1);
    CHECK_CU(cu.MulticastBindAddr(object, 0, inside, FC_PIECE, 0));
    CHECK_CU(cu.MemFreeAsync(block, NULL));
    fc_fixture_expect("fc-bound: cuMemFreeAsync");
    CHECK_CU(cu.MulticastUnbind(object, 0, 0, FC_PIECE));
    CHECK_CU(cu.MemRelease(object));
    CHECK_CU(cu.CtxSynchronize());
    fc_fixture_close();
}

/* ---- another process ------------------------------------------------------------------------ */

static const qi_cu_handle_type FD = QI_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

/* Opens the descriptor of the parent, which the pipe names. */
static int joins(int end)
{
    int fd, pid;
    char path[64];
    qi_cu_handle object, mine, other;
    open_two();
    CHECK_EQ(read(end, &pid, sizeof pid) + read(end, &fd, sizeof fd), sizeof pid + sizeof fd);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK_CU(cu.MemImportFromShareableHandle(&object, (void *)(intptr_t)fd, FD));
    CHECK(!close(fd));
    CHECK_CODE(cu.MulticastAddDevice(object, 0), INVALID_VALUE); /* the parent has added it */
    mine = make_on(1, 0);
    other = make_on(1, FD);
    CHECK_CODE(cu.MulticastBindMem(object, 0, other, 0, FC_PIECE, 0), ILLEGAL_STATE);
    fc_fixture_expect("fc-waits");
    CHECK_CU(cu.MulticastAddDevice(object, 1));
    CHECK_CODE(cu.MulticastBindMem(object, 0, mine, 0, FC_PIECE, 0), INVALID_VALUE);
    CHECK_CU(cu.MulticastBindMem(object, 0, other, 0, FC_PIECE, 0));
    CHECK_CU(cu.MemRelease(object));
    CHECK_CU(cu.MemRelease(mine));
    CHECK_CU(cu.MemRelease(other));
    fc_fixture_close();
    return 0;
}

UNIT(fake_cuda_multicast, another_process_joins)
{
    int ends[2], fd = -1, pid = (int)getpid();
    qi_cu_handle object, again, memory;
    qi_cu_multicast_prop prop = TWO;
    CHECK_EQ(pipe(ends), 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child)
        child_end(!joins(ends[0]));
    open_two();
    prop.handleTypes = FD;
    CHECK_CU(cu.MulticastCreate(&object, &prop));
    CHECK_CU(cu.MulticastAddDevice(object, 0));
    CHECK_CU(cu.MemExportToShareableHandle(&fd, object, FD, 0));
    CHECK_CU(cu.MemImportFromShareableHandle(&again, (void *)(intptr_t)fd, FD));
    CHECK_EQ(again, object); /* here it is the same object */
    CHECK_CU(cu.MemRelease(again));
    CHECK_EQ(write(ends[1], &pid, sizeof pid) + write(ends[1], &fd, sizeof fd),
             sizeof pid + sizeof fd);
    CHECK(child_was_well(child));
    memory = make_on(0, FD); /* the child has added the second device */
    CHECK_CU(cu.MulticastBindMem(object, 0, memory, 0, FC_PIECE, 0));
    CHECK(!close(fd) && !close(ends[0]) && !close(ends[1]));
    CHECK_CU(cu.MemRelease(object));
    CHECK_CU(cu.MemRelease(memory));
    fc_fixture_close();
}

UNIT(fake_cuda_multicast, only_devices_that_joined_get_access)
{
    qi_cu_handle object;
    const fc_model *h200 = fc_model_named("h200");
    qi_cu_access_desc desc = fc_for_device(2, QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    (void)fc_fixture_open(&(fc_options){.models = {h200, h200, h200}});
    CHECK_CU(cu.MulticastCreate(&object, &TWO));
    CHECK_CU(cu.MulticastAddDevice(object, 0));
    CHECK_CU(cu.MulticastAddDevice(object, 1));
    qi_cu_ptr pointer = fc_reserve(2 * FC_PIECE);
    CHECK_CU(cu.MemMap(pointer, 2 * FC_PIECE, 0, object, 0));
    CHECK_CODE(cu.MemSetAccess(pointer, 2 * FC_PIECE, &desc, 1), INVALID_DEVICE);
    fc_unmapped(pointer, 2 * FC_PIECE, object);
    fc_fixture_close();
}

UNIT(fake_cuda_multicast, it_may_recommend_a_coarser_granularity)
{
    size_t size;
    fc_model model = *fc_model_named("h200");
    model.multicast_recommended = 8 * FC_PIECE;
    (void)fc_fixture_open(&(fc_options){.models = {&model, &model}});
    CHECK_CU(cu.MulticastGetGranularity(&size, &TWO, QI_CU_MULTICAST_GRANULARITY_MINIMUM));
    CHECK_EQ(size, FC_PIECE);
    CHECK_CU(cu.MulticastGetGranularity(&size, &TWO, QI_CU_MULTICAST_GRANULARITY_RECOMMENDED));
    CHECK_EQ(size, 8 * FC_PIECE);
    fc_fixture_close();
}

UNIT(fake_cuda_multicast, a_machine_without_it_says_so)
{
    qi_cu_handle object;
    size_t size;
    qi_cu_multicast_prop prop = {.numDevices = 1, .size = FC_PIECE};
    (void)fc_fixture_open(&(fc_options){.models = {fc_model_named("a100")}});
    CHECK_CODE(cu.MulticastCreate(&object, &prop), NOT_SUPPORTED);
    CHECK_CODE(cu.MulticastGetGranularity(&size, &prop, 0), NOT_SUPPORTED);
    fc_fixture_close();
}
