/* fake_cuda_linear.c - the fake CUDA driver: memory that has an address from the start, pools, and
   queries about addresses. */
#include "tests/support/cuda/fixture.h"
#include "tests/support/unit.h"

#include <stdlib.h>

UNIT(fake_cuda_linear, allocations_are_aligned_as_promised_and_not_more)
{
    qi_cu_ptr pointer, base;
    size_t size;
    (void)fc_fixture_open(NULL);
    CHECK_CODE(cu.MemAlloc(NULL, 8), INVALID_VALUE);
    CHECK_CODE(cu.MemAlloc(&pointer, 0), INVALID_VALUE);
    CHECK_CU(cu.MemAlloc(&pointer, 5000));
    CHECK_EQ(pointer % 1024, 512);
    CHECK_CU(cu.MemGetAddressRange(&base, &size, pointer + 4999));
    CHECK(base == pointer && size == 5000);
    CHECK_CODE(cu.MemGetAddressRange(&base, &size, pointer + 5000), NOT_FOUND);
    CHECK_CODE(cu.MemFree(pointer + 8), INVALID_VALUE);
    CHECK_CU(cu.MemFree(pointer));
    CHECK_CODE(cu.MemFree(pointer), INVALID_VALUE);
    CHECK_CU(cu.MemFree(0));
    fc_fixture_close();
}

UNIT(fake_cuda_linear, pinned_memory_has_one_address_for_both)
{
    void *pointer;
    qi_cu_ptr device;
    (void)fc_fixture_open(NULL);
    CHECK_CODE(cu.MemHostAlloc(&pointer, 0, 0), INVALID_VALUE);
    CHECK_CODE(cu.MemHostAlloc(&pointer, 8, 8), INVALID_VALUE);
    CHECK_CU(cu.MemHostAlloc(&pointer, 100, QI_CU_MEMHOSTALLOC_PORTABLE));
    CHECK_CU(cu.MemHostGetDevicePointer(&device, pointer, 0));
    CHECK_EQ(device, (uintptr_t)pointer);
    memset(pointer, 7, 100);
    CHECK_EQ(fc_read(device + 92), 0x0707070707070707);
    CHECK_CODE(cu.MemHostGetDevicePointer(&device, pointer, 1), INVALID_VALUE);
    CHECK_CODE(cu.MemHostGetDevicePointer(&device, &device, 0), INVALID_VALUE);
    CHECK_CODE(cu.MemFreeHost((char *)pointer + 1), INVALID_VALUE);
    CHECK_CODE(cu.MemFree((uintptr_t)pointer), INVALID_VALUE);
    CHECK_CU(cu.MemFreeHost(pointer));
    fc_set_capacity(-1, 4096);
    CHECK_CODE(cu.MemHostAlloc(&pointer, 4097, 0), OUT_OF_MEMORY);
    fc_fixture_close();
}

UNIT(fake_cuda_linear, memory_of_the_program_is_registered_once)
{
    char *memory = malloc(8192);
    qi_cu_ptr device;
    (void)fc_fixture_open(NULL);
    CHECK_CODE(cu.MemHostUnregister(memory), HOST_MEMORY_NOT_REGISTERED);
    CHECK_CODE(cu.MemHostRegister(NULL, 100, 0), INVALID_VALUE);
    CHECK_CODE(cu.MemHostRegister(memory, 0, 0), INVALID_VALUE);
    CHECK_CODE(cu.MemHostRegister(memory, 100, 16), INVALID_VALUE);
    CHECK_CODE(cu.MemHostRegister(memory, 100, QI_CU_MEMHOSTREGISTER_IOMEMORY), NOT_PERMITTED);
    CHECK_CU(cu.MemHostRegister(memory, 4096, QI_CU_MEMHOSTREGISTER_DEVICEMAP));
    CHECK_CODE(cu.MemHostRegister(memory + 4000, 200, 0), HOST_MEMORY_ALREADY_REGISTERED);
    CHECK_CU(cu.MemHostGetDevicePointer(&device, memory + 8, 0));
    CHECK_EQ(device, (uintptr_t)memory + 8);
    CHECK_CU(cu.MemsetD8(device, 3, 8));
    CHECK_EQ(memory[8], 3);
    CHECK_CODE(cu.MemHostUnregister(memory + 8), HOST_MEMORY_NOT_REGISTERED);
    CHECK_CU(cu.MemHostUnregister(memory));
    free(memory);
    fc_fixture_close();
}

UNIT(fake_cuda_linear, managed_memory_is_where_the_device_has_it)
{
    qi_cu_ptr pointer;
    unsigned is_managed;
    (void)fc_fixture_open(NULL);
    CHECK_CODE(cu.MemAllocManaged(&pointer, 100, 0), INVALID_VALUE);
    CHECK_CU(cu.MemAllocManaged(&pointer, 100, QI_CU_MEM_ATTACH_GLOBAL));
    *(uint64_t *)(uintptr_t)pointer = 17;
    CHECK_EQ(fc_read(pointer), 17);
    CHECK_CU(cu.PointerGetAttribute(&is_managed, QI_CU_POINTER_ATTRIBUTE_IS_MANAGED, pointer));
    CHECK_EQ(is_managed, 1);
    CHECK_CU(cu.MemFree(pointer));
    fc_fixture_close();
    (void)fc_fixture_open(&(fc_options){.models = {fc_model_named("vgpu")}});
    CHECK_CODE(cu.MemAllocManaged(&pointer, 100, QI_CU_MEM_ATTACH_GLOBAL), NOT_SUPPORTED);
    fc_fixture_close();
}

UNIT(fake_cuda_linear, an_address_says_what_it_is)
{
    qi_cu_handle handle;
    qi_cu_ptr base;
    unsigned word;
    size_t size;
    (void)fc_fixture_open(NULL);
    qi_cu_ptr pointer = fc_mapped(2 * FC_PIECE, &handle), empty = fc_reserve(FC_PIECE);
    CHECK_CU(cu.PointerGetAttribute(&word, QI_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer));
    CHECK_EQ(word, QI_CU_MEMORYTYPE_DEVICE);
    CHECK_CU(cu.PointerGetAttribute(&base, QI_CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR,
                                    pointer + FC_PIECE));
    CHECK_EQ(base, pointer);
    CHECK_CU(cu.PointerGetAttribute(&size, QI_CU_POINTER_ATTRIBUTE_MAPPING_SIZE, pointer));
    CHECK_EQ(size, 2 * FC_PIECE);
    CHECK_CU(cu.PointerGetAttribute(&word, QI_CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, pointer));
    CHECK_EQ(word, QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    CHECK_CU(
        cu.PointerGetAttribute(&word, QI_CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, pointer));
    CHECK_EQ(word, 0);
    CHECK_CU(cu.PointerGetAttribute(&word, QI_CU_POINTER_ATTRIBUTE_MAPPED, empty));
    CHECK_EQ(word, 0);
    CHECK_CODE(cu.PointerGetAttribute(&word, QI_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, empty),
               INVALID_VALUE);
    CHECK_CODE(cu.PointerGetAttribute(&base, QI_CU_POINTER_ATTRIBUTE_HOST_POINTER, pointer),
               INVALID_VALUE);
    CHECK_CODE(cu.PointerGetAttribute(NULL, QI_CU_POINTER_ATTRIBUTE_MAPPED, pointer),
               INVALID_VALUE);
    CHECK_CU(cu.MemAddressFree(empty, FC_PIECE));
    fc_unmapped(pointer, 2 * FC_PIECE, handle);
    fc_fixture_close();
}

/* ---- pools -------------------------------------------------------------------------------- */

static uint64_t pool_number(qi_cu_pool pool, qi_cu_pool_attribute attribute)
{
    uint64_t value = 0;
    CHECK_CU(cu.MemPoolGetAttribute(pool, attribute, &value));
    return value;
}

UNIT(fake_cuda_linear, a_pool_gives_and_takes_in_the_order_of_a_stream)
{
    qi_cu_pool pool;
    qi_cu_stream stream;
    qi_cu_ptr pointer;
    uint64_t most = UINT64_MAX, zero = 0;
    (void)fc_fixture_open(&(fc_options){.flags = FC_LATE});
    CHECK_CU(cu.DeviceGetDefaultMemPool(&pool, 0));
    CHECK_CODE(cu.DeviceGetDefaultMemPool(&pool, 1), INVALID_DEVICE);
    CHECK_CU(cu.MemPoolSetAttribute(pool, QI_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &most));
    CHECK_EQ(pool_number(pool, QI_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD), most);
    CHECK_CU(cu.StreamCreate(&stream, 0));
    CHECK_CU(cu.MemAllocAsync(&pointer, 100, stream));
    CHECK_CU(cu.MemsetD8Async(pointer, 1, 100, stream));
    CHECK_CU(cu.MemFreeAsync(pointer, stream));
    CHECK_CODE(cu.MemFreeAsync(pointer, stream), INVALID_VALUE); /* twice */
    CHECK_EQ(pool_number(pool, QI_CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 100);
    CHECK_CU(cu.StreamSynchronize(stream));
    CHECK_EQ(pool_number(pool, QI_CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
    CHECK_EQ(pool_number(pool, QI_CU_MEMPOOL_ATTR_USED_MEM_HIGH), 100);
    CHECK_CODE(cu.MemPoolSetAttribute(pool, QI_CU_MEMPOOL_ATTR_USED_MEM_HIGH, &most),
               INVALID_VALUE);
    CHECK_CU(cu.MemPoolSetAttribute(pool, QI_CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
    CHECK_EQ(pool_number(pool, QI_CU_MEMPOOL_ATTR_USED_MEM_HIGH), 0);
    CHECK_CU(cu.MemPoolTrimTo(pool, 0));
    CHECK_CODE(cu.MemPoolTrimTo(NULL, 0), INVALID_VALUE);
    CHECK_CU(cu.StreamDestroy(stream));
    fc_fixture_close();
}
