/* fake_cuda_virtual.c - the fake CUDA driver: physical memory, address ranges, and mappings. */
#include "tests/support/child.h"
#include "tests/support/cuda/fixture.h"
#include "tests/support/unit.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

UNIT(fake_cuda_virtual, a_page_from_beginning_to_end)
{
    qi_cu_handle handle;
    (void)fc_fixture_open(NULL);
    qi_cu_ptr pointer = fc_mapped(2 * FC_PIECE, &handle);
    CHECK_EQ(pointer % FC_PIECE, 0);
    CHECK_EQ(fc_usage_of(0).bytes, 2 * FC_PIECE);
    fc_write(pointer + 2 * FC_PIECE - 8, 1234);
    CHECK_EQ(fc_read(pointer + 2 * FC_PIECE - 8), 1234);
    CHECK_EQ(fc_read(pointer), 0);
    fc_unmapped(pointer, 2 * FC_PIECE, handle);
    fc_fixture_close();
}

UNIT(fake_cuda_virtual, memory_mapped_twice_shows_the_same_bytes)
{
    qi_cu_handle handle;
    qi_cu_access_desc desc = fc_for_device(0, QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    (void)fc_fixture_open(NULL);
    qi_cu_ptr first = fc_mapped(FC_PIECE, &handle), second = fc_reserve(FC_PIECE);
    CHECK_CU(cu.MemMap(second, FC_PIECE, 0, handle, 0));
    CHECK_CU(cu.MemSetAccess(second, FC_PIECE, &desc, 1));
    fc_write(first + 4096, 77);
    CHECK_EQ(fc_read(second + 4096), 77);
    fc_unmapped(first, FC_PIECE, 0);
    CHECK_EQ(fc_read(second + 4096), 77);
    fc_unmapped(second, FC_PIECE, handle);
    fc_fixture_close();
}

UNIT(fake_cuda_virtual, different_memory_has_different_bytes)
{
    qi_cu_handle handles[2];
    qi_cu_ptr pointers[2], allocation;
    (void)fc_fixture_open(NULL);
    for (uint32_t i = 0; i < 2; i++)
        pointers[i] = fc_mapped(FC_PIECE, &handles[i]);
    CHECK_CU(cu.MemAlloc(&allocation, 8));
    fc_write(pointers[0], 1);
    fc_write(pointers[1], 2);
    fc_write(allocation, 3);
    CHECK_EQ(fc_read(pointers[0]), 1);
    CHECK_EQ(fc_read(pointers[1]), 2);
    CHECK_EQ(fc_read(allocation), 3);
    CHECK_CU(cu.MemFree(allocation));
    for (uint32_t i = 0; i < 2; i++)
        fc_unmapped(pointers[i], FC_PIECE, handles[i]);
    fc_fixture_close();
}

UNIT(fake_cuda_virtual, released_memory_lives_as_long_as_it_is_mapped)
{
    qi_cu_handle handle, again;
    (void)fc_fixture_open(NULL);
    qi_cu_ptr pointer = fc_mapped(FC_PIECE, &handle);
    CHECK_CU(cu.MemRelease(handle));
    CHECK_EQ(fc_live(FC_REFERENCE), 0);
    CHECK_EQ(fc_live(FC_MEMORY), 1);
    fc_write(pointer, 5);
    CHECK_EQ(fc_read(pointer), 5);
    CHECK_CU(cu.MemRetainAllocationHandle(&again, (void *)(uintptr_t)(pointer + 100)));
    CHECK_EQ(fc_live(FC_REFERENCE), 1);
    fc_unmapped(pointer, FC_PIECE, 0);
    CHECK_EQ(fc_usage_of(0).bytes, FC_PIECE);
    CHECK_CU(cu.MemRelease(again));
    fc_fixture_close();
}

UNIT(fake_cuda_virtual, memory_is_mapped_to_parts_of_a_reservation)
{
    qi_cu_access_desc desc = fc_for_device(0, QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    (void)fc_fixture_open(NULL);
    qi_cu_handle large = fc_make(2 * FC_PIECE), small = fc_make(FC_PIECE);
    qi_cu_ptr pointer = fc_reserve(4 * FC_PIECE);
    CHECK_CU(cu.MemMap(pointer + FC_PIECE, 2 * FC_PIECE, 0, large, 0));
    CHECK_CU(cu.MemMap(pointer + 3 * FC_PIECE, FC_PIECE, 0, small, 0));
    CHECK_CU(cu.MemSetAccess(pointer + FC_PIECE, 3 * FC_PIECE, &desc, 1));
    fc_write(pointer + 3 * FC_PIECE - 4, 0x1122334455667788); /* across both mappings */
    CHECK_EQ(fc_read(pointer + 3 * FC_PIECE - 4), 0x1122334455667788);
    CHECK_CU(cu.MemUnmap(pointer, 4 * FC_PIECE)); /* one call unmaps both, and a gap */
    CHECK_EQ(fc_live(FC_MAPPING), 0);
    CHECK_CU(cu.MemRelease(large));
    CHECK_CU(cu.MemRelease(small));
    CHECK_CU(cu.MemAddressFree(pointer, 4 * FC_PIECE));
    fc_fixture_close();
}

UNIT(fake_cuda_virtual, one_mapping_is_unmapped_at_a_time_where_a_test_asks)
{
    (void)fc_fixture_open(&(fc_options){.flags = FC_UNMAPS_ONE});
    qi_cu_handle handle = fc_make(FC_PIECE);
    qi_cu_ptr pointer = fc_reserve(2 * FC_PIECE);
    for (uint64_t i = 0; i < 2; i++)
        CHECK_CU(cu.MemMap(pointer + i * FC_PIECE, FC_PIECE, 0, handle, 0));
    CHECK_CODE(cu.MemUnmap(pointer, 2 * FC_PIECE), INVALID_VALUE);
    CHECK_EQ(fc_live(FC_MAPPING), 2);
    for (uint64_t i = 0; i < 2; i++)
        CHECK_CU(cu.MemUnmap(pointer + i * FC_PIECE, FC_PIECE));
    CHECK_CU(cu.MemRelease(handle));
    CHECK_CU(cu.MemAddressFree(pointer, 2 * FC_PIECE));
    fc_fixture_close();
}

UNIT(fake_cuda_virtual, access_is_given_by_mappings_and_counts_in_copies)
{
    uint64_t value = 9;
    unsigned long long flags;
    qi_cu_access_desc reads = fc_for_device(0, QI_CU_MEM_ACCESS_FLAGS_PROT_READ);
    qi_cu_access_desc writes = fc_for_device(0, QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    qi_cu_access_desc none = fc_for_device(0, QI_CU_MEM_ACCESS_FLAGS_PROT_NONE);
    (void)fc_fixture_open(NULL);
    qi_cu_handle handle = fc_make(FC_PIECE), other = fc_make(FC_PIECE);
    qi_cu_ptr pointer = fc_reserve(2 * FC_PIECE);
    CHECK_CU(cu.MemMap(pointer, FC_PIECE, 0, handle, 0));
    CHECK_CU(cu.MemMap(pointer + FC_PIECE, FC_PIECE, 0, other, 0));
    CHECK_CU(cu.MemSetAccess(pointer, 2 * FC_PIECE, &writes, 1));
    fc_write(pointer + FC_PIECE, 3);
    CHECK_CU(cu.MemSetAccess(pointer + FC_PIECE, FC_PIECE, &reads, 1));
    CHECK_CODE(cu.MemcpyHtoD(pointer + FC_PIECE, &value, 8), INVALID_VALUE);
    CHECK_CODE(cu.MemcpyHtoD(pointer + FC_PIECE - 4, &value, 8), INVALID_VALUE);
    CHECK_CODE(cu.MemsetD8(pointer, 0, 2 * FC_PIECE), INVALID_VALUE);
    CHECK_CU(cu.MemcpyHtoD(pointer + FC_PIECE - 8, &value, 8));
    CHECK_EQ(fc_read(pointer + FC_PIECE), 3);
    CHECK_CU(cu.MemSetAccess(pointer, 2 * FC_PIECE, &none, 1));
    CHECK_CODE(cu.MemcpyDtoH(&value, pointer + FC_PIECE, 8), INVALID_VALUE);
    CHECK_CU(cu.MemGetAccess(&flags, &none.location, pointer));
    CHECK_EQ(flags, QI_CU_MEM_ACCESS_FLAGS_PROT_NONE);
    CHECK_CU(cu.MemSetAccess(pointer, 2 * FC_PIECE, &reads, 1));
    CHECK_CU(cu.MemGetAccess(&flags, &none.location, pointer + 2 * FC_PIECE - 1));
    CHECK_EQ(flags, QI_CU_MEM_ACCESS_FLAGS_PROT_READ);
    CHECK_CU(cu.MemRelease(other));
    fc_unmapped(pointer, 2 * FC_PIECE, handle);
    fc_fixture_close();
}

UNIT(fake_cuda_virtual, a_busy_driver_sets_no_access_for_a_while)
{
    qi_cu_handle handle;
    unsigned long long flags;
    qi_cu_access_desc none = fc_for_device(0, QI_CU_MEM_ACCESS_FLAGS_PROT_NONE);
    (void)fc_fixture_open(NULL);
    qi_cu_ptr pointer = fc_mapped(FC_PIECE, &handle);
    fc_busy(2);
    for (int i = 0; i < 2; i++)
        CHECK_CODE(cu.MemSetAccess(pointer, FC_PIECE, &none, 1), NOT_READY);
    CHECK_CU(cu.MemGetAccess(&flags, &none.location, pointer));
    CHECK_EQ(flags, QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    CHECK_CU(cu.MemSetAccess(pointer, FC_PIECE, &none, 1));
    fc_unmapped(pointer, FC_PIECE, handle);
    fc_fixture_close();
}

UNIT(fake_cuda_virtual, a_mapping_begins_without_access)
{
    uint64_t value = 1;
    qi_cu_handle handle;
    (void)fc_fixture_open(NULL);
    qi_cu_ptr pointer = fc_mapped(FC_PIECE, &handle);
    CHECK_CU(cu.MemUnmap(pointer, FC_PIECE));
    CHECK_CU(cu.MemMap(pointer, FC_PIECE, 0, handle, 0));
    CHECK_CODE(cu.MemcpyHtoD(pointer, &value, 8), INVALID_VALUE);
    fc_unmapped(pointer, FC_PIECE, handle);
    fc_fixture_close();
}

UNIT(fake_cuda_virtual, other_devices_reach_it_where_they_are_let_and_can)
{
    qi_cu_context second;
    qi_cu_handle handle;
    fc_options options = {
        .models = {fc_model_named("h200"), fc_model_named("h200"), fc_model_named("h200")},
        .peers = {2}}; /* device 1 can access device 0 */
    qi_cu_access_desc one = fc_for_device(1, QI_CU_MEM_ACCESS_FLAGS_PROT_READ);
    qi_cu_access_desc two = fc_for_device(2, QI_CU_MEM_ACCESS_FLAGS_PROT_READ);
    (void)fc_fixture_open(&options);
    qi_cu_ptr pointer = fc_mapped(FC_PIECE, &handle);
    fc_write(pointer, 8);
    CHECK_CODE(cu.MemSetAccess(pointer, FC_PIECE, &two, 1), INVALID_DEVICE);
    CHECK_CU(cu.DevicePrimaryCtxRetain(&second, 1));
    CHECK_CU(cu.CtxPushCurrent(second));
    CHECK_CODE(cu.MemcpyDtoH(&(uint64_t){0}, pointer, 8), INVALID_VALUE);
    CHECK_CU(cu.MemSetAccess(pointer, FC_PIECE, &one, 1));
    CHECK_EQ(fc_read(pointer), 8);
    CHECK_CODE(cu.MemcpyHtoD(pointer, &(uint64_t){0}, 8), INVALID_VALUE);
    fc_address_info info;
    CHECK(fc_address_of(pointer + 5, &info));
    CHECK_EQ(info.read, 3);
    CHECK_EQ(info.write, 1);
    CHECK(info.base == pointer && info.size == FC_PIECE && info.handle == handle);
    CHECK_CU(cu.CtxPopCurrent(NULL));
    CHECK_CU(cu.DevicePrimaryCtxRelease(1));
    fc_unmapped(pointer, FC_PIECE, handle);
    fc_fixture_close();
}

/* ---- what the processor may touch --------------------------------------------------------- */

static bool touching_kills(qi_cu_ptr pointer)
{
    pid_t child = fork();
    if (!child) {
        signal(SIGSEGV, SIG_DFL);
        *(volatile char *)(uintptr_t)pointer = 1;
        child_end(true);
    }
    return !child_was_well(child);
}

UNIT(fake_cuda_virtual, the_processor_does_not_reach_device_memory)
{
    qi_cu_handle handle;
    (void)fc_fixture_open(NULL);
    qi_cu_ptr pointer = fc_mapped(FC_PIECE, &handle);
    CHECK(touching_kills(pointer));
    fc_unmapped(pointer, FC_PIECE, handle);
    fc_fixture_close();
    (void)fc_fixture_open(&(fc_options){.flags = FC_HOST_REACHES});
    pointer = fc_mapped(FC_PIECE, &handle);
    CHECK(!touching_kills(pointer));
    *(uint64_t *)(uintptr_t)pointer = 4321;
    CHECK_EQ(fc_read(pointer), 4321);
    fc_unmapped(pointer, FC_PIECE, handle);
    fc_fixture_close();
}

UNIT(fake_cuda_virtual, memory_of_a_host_node_is_reached_by_both_once_it_is_allowed)
{
    qi_cu_handle handle;
    qi_cu_allocation_prop prop = fc_on_device(0);
    prop.location = (qi_cu_location){QI_CU_MEM_LOCATION_TYPE_HOST_NUMA, 1};
    qi_cu_access_desc descs[2] = {fc_for_device(0, QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE),
                                  {prop.location, QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE}};
    (void)fc_fixture_open(&(fc_options){.models = {fc_model_named("gh200")}, .numa_nodes = 2});
    uint64_t size = 4 * FC_MIB;
    CHECK_CODE(cu.MemCreate(&handle, FC_PIECE, &prop, 0),
               INVALID_VALUE); /* finer than the granularity */
    CHECK_CU(cu.MemCreate(&handle, size, &prop, 0));
    CHECK_EQ(fc_usage_of(-1).bytes, size);
    CHECK_EQ(fc_usage_of(0).bytes, 0);
    qi_cu_ptr pointer;
    CHECK_CU(cu.MemAddressReserve(&pointer, size, size, 0, 0));
    CHECK_CU(cu.MemMap(pointer, size, 0, handle, 0));
    CHECK_CU(cu.MemSetAccess(pointer, size, descs, 1));
    CHECK(touching_kills(pointer));
    const void *as_host = (const void *)(uintptr_t)(pointer + 4096);
    CHECK_CODE(cu.MemcpyHtoD(pointer, as_host, 8), INVALID_VALUE);
    descs[1].flags = QI_CU_MEM_ACCESS_FLAGS_PROT_READ;
    CHECK_CU(cu.MemSetAccess(pointer, size, descs, 2));
    CHECK_CU(cu.MemcpyHtoD(pointer, as_host, 8));
    CHECK(touching_kills(pointer)); /* by writing */
    CHECK_CODE(cu.MemcpyDtoH((void *)(uintptr_t)as_host, pointer, 8), INVALID_VALUE);
    descs[1].flags = QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    CHECK_CU(cu.MemSetAccess(pointer, size, descs, 2));
    *(uint64_t *)(uintptr_t)pointer = 99; /* the same address for both */
    CHECK_EQ(fc_read(pointer), 99);
    fc_unmapped(pointer, size, handle);
    fc_fixture_close();
}

/* ---- sizes -------------------------------------------------------------------------------- */

static size_t granularity(qi_cu_allocation_prop prop, qi_cu_granularity option)
{
    size_t size = 0;
    CHECK_CU(cu.MemGetAllocationGranularity(&size, &prop, option));
    return size;
}

UNIT(fake_cuda_virtual, granularity_is_that_of_the_exact_properties)
{
    fc_model model = *fc_model_named("h200");
    model.granularity = 64 << 10;
    model.recommended = FC_PIECE;
    model.compressed_granularity = 4 * FC_MIB;
    model.rdma_granularity = 512 << 10;
    model.host_granularity = 8 * FC_MIB;
    (void)fc_fixture_open(&(fc_options){.models = {&model}});
    qi_cu_allocation_prop plain = fc_on_device(0), compressed = plain, rdma = plain, host = plain;
    compressed.allocFlags.compressionType = QI_CU_MEM_ALLOCATION_COMP_GENERIC;
    rdma.allocFlags.gpuDirectRDMACapable = 1;
    host.location = (qi_cu_location){QI_CU_MEM_LOCATION_TYPE_HOST, 0};
    CHECK_EQ(granularity(plain, QI_CU_MEM_ALLOC_GRANULARITY_MINIMUM), 64 << 10);
    CHECK_EQ(granularity(plain, QI_CU_MEM_ALLOC_GRANULARITY_RECOMMENDED), FC_PIECE);
    CHECK_EQ(granularity(compressed, QI_CU_MEM_ALLOC_GRANULARITY_MINIMUM), 4 * FC_MIB);
    CHECK_EQ(granularity(rdma, QI_CU_MEM_ALLOC_GRANULARITY_MINIMUM), 512 << 10);
    CHECK_EQ(granularity(host, QI_CU_MEM_ALLOC_GRANULARITY_MINIMUM), 8 * FC_MIB);
    fc_fixture_close();
}

UNIT(fake_cuda_virtual, granted_compression_is_read_back)
{
    for (int i = 0; i < 2; i++) {
        fc_model model = *fc_model_named("h200");
        model.features &= i ? ~0u : ~FC_COMPRESSES;
        (void)fc_fixture_open(&(fc_options){.models = {&model}});
        qi_cu_allocation_prop prop = fc_on_device(0), granted;
        qi_cu_handle handle;
        prop.allocFlags.compressionType = QI_CU_MEM_ALLOCATION_COMP_GENERIC;
        CHECK_CU(cu.MemCreate(&handle, FC_PIECE, &prop, 0));
        CHECK_CU(cu.MemGetAllocationPropertiesFromHandle(&granted, handle));
        CHECK_EQ(granted.allocFlags.compressionType, i);
        CHECK_EQ(granted.location.type, QI_CU_MEM_LOCATION_TYPE_DEVICE);
        CHECK_CU(cu.MemRelease(handle));
        fc_fixture_close();
    }
}

/* What attributes promise and the driver refuses, or does not grant. */
UNIT(fake_cuda_virtual, promises_are_broken_where_a_test_asks)
{
    static const struct {
        uint32_t feature;
        bool is_rdma;
        qi_cu_result created, allowed;
    } cases[] = {
        {FC_RDMA_REFUSED, true, QI_CUDA_ERROR_NOT_SUPPORTED, 0},
        {FC_RDMA_REFUSED, false, 0, 0},
        {FC_FD_REFUSED, false, QI_CUDA_ERROR_NOT_SUPPORTED, 0},
        {FC_RDMA_INACCESSIBLE, true, 0, QI_CUDA_ERROR_UNKNOWN},
        {FC_RDMA_INACCESSIBLE, false, 0, 0},
        {FC_RDMA_UNGRANTED, true, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fc_model model = *fc_model_named("h200");
        qi_cu_allocation_prop prop = fc_on_device(0), granted;
        qi_cu_access_desc desc = fc_for_device(0, QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        qi_cu_handle handle = 0;
        model.features |= cases[i].feature;
        (void)fc_fixture_open(&(fc_options){.models = {&model}});
        prop.requestedHandleTypes = QI_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
        prop.allocFlags.gpuDirectRDMACapable = cases[i].is_rdma;
        CHECK_EQ(cu.MemCreate(&handle, FC_PIECE, &prop, 0), cases[i].created);
        if (handle) {
            qi_cu_ptr pointer = fc_reserve(FC_PIECE);
            CHECK_CU(cu.MemMap(pointer, FC_PIECE, 0, handle, 0));
            CHECK_EQ(cu.MemSetAccess(pointer, FC_PIECE, &desc, 1), cases[i].allowed);
            CHECK_CU(cu.MemGetAllocationPropertiesFromHandle(&granted, handle));
            CHECK_EQ(granted.allocFlags.gpuDirectRDMACapable,
                     cases[i].is_rdma && cases[i].feature != FC_RDMA_UNGRANTED);
            fc_unmapped(pointer, FC_PIECE, handle);
        }
        fc_fixture_close();
    }
}

UNIT(fake_cuda_virtual, a_node_may_have_no_memory)
{
    qi_cu_handle handle;
    qi_cu_allocation_prop prop = fc_on_device(0);
    (void)fc_fixture_open(
        &(fc_options){.models = {fc_model_named("gh200")}, .numa_nodes = 2, .refused_nodes = 0x2});
    prop.location = (qi_cu_location){QI_CU_MEM_LOCATION_TYPE_HOST_NUMA, 1};
    CHECK_CODE(cu.MemCreate(&handle, 4 * FC_MIB, &prop, 0), INVALID_VALUE);
    prop.location.id = 0;
    CHECK_CU(cu.MemCreate(&handle, 4 * FC_MIB, &prop, 0));
    CHECK_CU(cu.MemRelease(handle));
    fc_fixture_close();
}

UNIT(fake_cuda_virtual, a_device_has_so_much_and_not_more)
{
    size_t free_bytes, total;
    qi_cu_handle handle;
    qi_cu_allocation_prop prop = fc_on_device(0);
    (void)fc_fixture_open(NULL);
    fc_set_capacity(0, 4 * FC_PIECE);
    fc_set_others(0, FC_PIECE);
    CHECK_CODE(cu.MemCreate(&handle, 4 * FC_PIECE, &prop, 0), OUT_OF_MEMORY);
    handle = fc_make(2 * FC_PIECE);
    CHECK_CU(cu.MemGetInfo(&free_bytes, &total));
    CHECK_EQ(free_bytes, FC_PIECE);
    CHECK_EQ(total, fc_model_named("h200")->bytes);
    CHECK_CODE(cu.MemCreate(&(qi_cu_handle){0}, 2 * FC_PIECE, &prop, 0), OUT_OF_MEMORY);
    CHECK_CODE(cu.MemAlloc(&(qi_cu_ptr){0}, FC_PIECE + 1), OUT_OF_MEMORY);
    CHECK_CU(cu.MemRelease(handle));
    CHECK_EQ(fc_usage_of(0).peak, 2 * FC_PIECE);
    fc_fixture_close();
}

UNIT(fake_cuda_virtual, fresh_memory_may_hold_garbage)
{
    qi_cu_handle handle;
    (void)fc_fixture_open(&(fc_options){.flags = FC_DIRTY});
    qi_cu_ptr pointer = fc_mapped(FC_PIECE, &handle);
    CHECK_EQ(fc_read(pointer), 0xc5c5c5c5c5c5c5c5);
    fc_unmapped(pointer, FC_PIECE, handle);
    fc_fixture_close();
}

UNIT(fake_cuda_virtual, a_device_without_it_says_so)
{
    size_t size;
    qi_cu_ptr pointer;
    qi_cu_handle handle;
    qi_cu_allocation_prop prop = fc_on_device(0);
    (void)fc_fixture_open(&(fc_options){.models = {fc_model_named("vgpu")}});
    CHECK_CODE(cu.MemGetAllocationGranularity(&size, &prop, 0), NOT_SUPPORTED);
    CHECK_CODE(cu.MemCreate(&handle, FC_PIECE, &prop, 0), NOT_SUPPORTED);
    CHECK_CODE(cu.MemAddressReserve(&pointer, FC_PIECE, 0, 0, 0), NOT_SUPPORTED);
    fc_fixture_close();
}

UNIT(fake_cuda_virtual, a_hint_for_an_address_is_a_hint)
{
    qi_cu_ptr first, second;
    (void)fc_fixture_open(NULL);
    CHECK_CU(cu.MemAddressReserve(&first, 64 * FC_PIECE, 64 * FC_PIECE, 0, 0));
    CHECK_EQ(first % (64 * FC_PIECE), 0);
    CHECK_CU(cu.MemAddressReserve(&second, FC_PIECE, 0, first, 0));
    CHECK(second != first);
    CHECK_CU(cu.MemAddressFree(first, 64 * FC_PIECE));
    qi_cu_ptr hint = first, third;
    CHECK_CU(cu.MemAddressReserve(&third, FC_PIECE, 0, hint, 0));
    CHECK_EQ(third, hint);
    CHECK_CU(cu.MemAddressFree(second, FC_PIECE));
    CHECK_CU(cu.MemAddressFree(third, FC_PIECE));
    fc_fixture_close();
}
