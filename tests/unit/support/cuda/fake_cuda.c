/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * fake_cuda.c - the fake CUDA driver: how functions are found, planned faults, lost devices, and
 * what the options of a test change. The tests of the backend rely on these to find its faults.
 */
#include "tests/support/child.h"
#include "tests/support/cuda/fixture.h"
#include "tests/support/unit.h"

#include <signal.h>

#define CASE(name, begin) UNIT_WITHIN(fake_cuda, name, (void)begin, fc_fixture_close())

UNIT(fake_cuda, after_the_end_every_call_says_so)
{
    qi_cu_handle handle;
    (void)fc_fixture_open(NULL);
    qi_cu_ptr pointer = fc_mapped(FC_PIECE, &handle);
    fc_deinitialize();
    CHECK_EQ(fc_leaks(), 0);
    CHECK_CODE(cu.MemUnmap(pointer, FC_PIECE), DEINITIALIZED);
    CHECK_CODE(cu.DevicePrimaryCtxRelease(0), DEINITIALIZED);
    CHECK_EQ(fc_message_count(), 0);
}

/* ---- finding functions -------------------------------------------------------------------- */

typedef struct answer {
    qi_cu_result result;
    void *function;
    qi_cu_query_result why;
} answer;

static answer find(const char *name, int version)
{
    answer of = {.why = 77};
    of.result = fake_cuda()->find(name, &of.function, version, 0, &of.why);
    return of;
}

UNIT(fake_cuda, functions_are_found_by_name_and_version)
{
    static const struct {
        const char *name;
        int version;
        qi_cu_query_result why;
    } rows[] = {
        {"cuMemAlloc", 3020, QI_CU_GET_PROC_ADDRESS_SUCCESS},
        {"cuNoSuchFunction", 12000, QI_CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND},
        {"cuMemAlloc_v2", 3020, QI_CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND},
        {"cuMemCreate", 10010, QI_CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT},
        {"cuMulticastCreate", 12000, QI_CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT},
        {"cuMemMap", 12000, QI_CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND}, /* hidden */
    };
    fc_fixture_load(&(fc_options){.version = 12000});
    CHECK(fc_hide("cuMemMap") && !fc_hide("cuNoSuchFunction"));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        answer found = find(rows[i].name, rows[i].version);
        if (found.result || found.why != rows[i].why || !found.function != !!found.why)
            check_failed(__FILE__, __LINE__, "%s of %d: result %u, %sfound, why %u", rows[i].name,
                         rows[i].version, found.result, found.function ? "" : "not ", found.why);
    }
    CHECK_EQ(find("cuMemCreate", 12010).result, QI_CUDA_ERROR_INVALID_VALUE);
    /* the newer of two of the same name, and the older where that is asked for */
    CHECK(find("cuGetProcAddress", 12000).function != find("cuGetProcAddress", 11030).function);
}

/* ---- faults ------------------------------------------------------------------------------- */

static qi_cu_result create(void)
{
    qi_cu_handle handle;
    qi_cu_allocation_prop prop = fc_on_device(0);
    qi_cu_result result = cu.MemCreate(&handle, FC_PIECE, &prop, 0);
    if (!result)
        CHECK_CU(cu.MemRelease(handle));
    return result;
}

CASE(the_nth_call_of_a_function_fails_once_or_from_then_on, fc_fixture_open(NULL))
{
    CHECK(fc_fail(
        &(fc_fault){.function = "cuMemCreate", .call = 2, .result = QI_CUDA_ERROR_NOT_PERMITTED}));
    CHECK_CU(create());
    CHECK_CODE(create(), NOT_PERMITTED);
    CHECK_CU(create());
    CHECK_EQ(fc_failed().times, 1);
    CHECK_STR(fc_failed().function, "cuMemCreate");
    fc_heal();
    CHECK(fc_fail(&(fc_fault){.function = "cuMemCreate", .call = 2, .from_then = true}));
    CHECK_CU(create());
    CHECK_CODE(create(), OUT_OF_MEMORY); /* the first code that the function may return */
    CHECK_CODE(create(), OUT_OF_MEMORY);
    fc_heal();
    CHECK_CU(create());
}

CASE(impossible_faults_are_refused, fc_fixture_open(NULL))
{
    CHECK(!fc_fail(&(fc_fault){.function = "cuNoSuchFunction", .call = 1}));
    CHECK(!fc_fail(
        &(fc_fault){.function = "cuMemRelease", .call = 1, .result = QI_CUDA_ERROR_OUT_OF_MEMORY}));
    CHECK(!fc_fail(&(fc_fault){.function = "cuMemRelease", .call = 1, .code_index = 5}));
    for (int i = 0; i < 8; i++)
        CHECK(fc_fail(&(fc_fault){.call = 1000000}));
    CHECK(!fc_fail(&(fc_fault){.call = 1000000}));
    fc_heal();
}

CASE(what_ends_something_fails_only_by_its_name_and_may_do_its_work_still, fc_fixture_open(NULL))
{
    qi_cu_handle first = fc_make(FC_PIECE), second = fc_make(FC_PIECE);
    CHECK(fc_fail(&(fc_fault){.function = "cuMemRelease", .call = 1}));
    CHECK(fc_fail(&(fc_fault){.function = "cuMemRelease",
                              .call = 2,
                              .done = true,
                              .result = QI_CUDA_ERROR_LAUNCH_FAILED}));
    CHECK_CODE(cu.MemRelease(first), INVALID_VALUE);
    CHECK_EQ(fc_live(FC_MEMORY), 2);
    CHECK_CODE(cu.MemRelease(second), LAUNCH_FAILED);
    CHECK_EQ(fc_live(FC_MEMORY), 1);
    fc_heal();
    CHECK(fc_fail(&(fc_fault){.call = 1, .from_then = true}));
    CHECK_CODE(create(), OUT_OF_MEMORY);
    CHECK_CU(cu.MemRelease(first));
    fc_heal();
}

UNIT(fake_cuda, a_lost_device_answers_the_same_until_its_contexts_are_gone)
{
    qi_cu_context second;
    qi_cu_ptr pointer;
    fc_options options = {.models = {fc_model_named("h200"), fc_model_named("h200")}};
    (void)fc_fixture_open(&options);
    CHECK_CU(cu.DevicePrimaryCtxRetain(&second, 1));
    fc_lose(0, QI_CUDA_ERROR_ECC_UNCORRECTABLE);
    CHECK_CODE(cu.MemAlloc(&pointer, 8), ECC_UNCORRECTABLE);
    CHECK_CODE(cu.CtxSynchronize(), ECC_UNCORRECTABLE);
    CHECK_CU(create()); /* physical memory belongs to no context */
    CHECK_CU(cu.CtxPopCurrent(NULL));
    CHECK_CU(cu.CtxPushCurrent(second)); /* the other device is not lost */
    CHECK_CU(cu.MemAlloc(&pointer, 8));
    CHECK_CU(cu.MemFree(pointer));
    CHECK_CU(cu.CtxPopCurrent(NULL));
    CHECK_CU(cu.DevicePrimaryCtxRelease(1));
    CHECK_CU(cu.DevicePrimaryCtxRelease(0));
    (void)cu.DevicePrimaryCtxRetain(&second, 0);
    CHECK_CU(cu.CtxPushCurrent(second));
    fc_fixture_close();
}

/* ---- options ------------------------------------------------------------------------------ */

CASE(a_driver_may_want_a_context_for_all_of_it,
     fc_fixture_open(&(fc_options){.flags = FC_NEEDS_CONTEXT}))
{
    qi_cu_context context;
    qi_cu_handle handle;
    qi_cu_ptr mapped = fc_mapped(FC_PIECE, &handle), none;
    CHECK_CU(cu.CtxPopCurrent(&context));
    CHECK_CODE(cu.MemAddressReserve(&none, FC_PIECE, 0, 0, 0), INVALID_CONTEXT);
    CHECK_CODE(create(), INVALID_CONTEXT);
    CHECK_CODE(cu.MemUnmap(mapped, FC_PIECE), INVALID_CONTEXT);
    CHECK_CU(cu.CtxPushCurrent(context));
    fc_unmapped(mapped, FC_PIECE, handle);
}

CASE(one_mapping_is_unmapped_at_a_time_and_fresh_memory_holds_garbage,
     fc_fixture_open(&(fc_options){.flags = FC_UNMAPS_ONE | FC_DIRTY}))
{
    qi_cu_handle handle;
    qi_cu_ptr read = fc_mapped(FC_PIECE, &handle), pair = fc_reserve(2 * FC_PIECE);
    CHECK_EQ(fc_read(read), 0xc5c5c5c5c5c5c5c5);
    for (uint64_t i = 0; i < 2; i++)
        CHECK_CU(cu.MemMap(pair + i * FC_PIECE, FC_PIECE, 0, handle, 0));
    CHECK_CODE(cu.MemUnmap(pair, 2 * FC_PIECE), INVALID_VALUE);
    for (uint64_t i = 0; i < 2; i++)
        CHECK_CU(cu.MemUnmap(pair + i * FC_PIECE, FC_PIECE));
    CHECK_CU(cu.MemAddressFree(pair, 2 * FC_PIECE));
    fc_unmapped(read, FC_PIECE, handle);
}

CASE(access_is_set_for_one_mapping_at_a_time,
     fc_fixture_open(&(fc_options){.flags = FC_ACCESS_ONE}))
{
    qi_cu_handle handle = fc_make(FC_PIECE);
    qi_cu_ptr pair = fc_reserve(2 * FC_PIECE);
    const qi_cu_access_desc desc = {.location = {QI_CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                    .flags = QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    for (uint64_t i = 0; i < 2; i++)
        CHECK_CU(cu.MemMap(pair + i * FC_PIECE, FC_PIECE, 0, handle, 0));
    CHECK_CODE(cu.MemSetAccess(pair, 2 * FC_PIECE, &desc, 1), INVALID_VALUE);
    for (uint64_t i = 0; i < 2; i++)
        CHECK_CU(cu.MemSetAccess(pair + i * FC_PIECE, FC_PIECE, &desc, 1));
    CHECK_CU(cu.MemUnmap(pair, 2 * FC_PIECE));
    CHECK_CU(cu.MemAddressFree(pair, 2 * FC_PIECE));
    CHECK_CU(cu.MemRelease(handle));
}

CASE(memory_returns_with_its_addresses, fc_fixture_open(&(fc_options){.flags = FC_KEEPS_MEMORY}))
{
    qi_cu_handle handle;
    qi_cu_ptr at = fc_mapped(FC_PIECE, &handle);
    CHECK_CU(cu.MemUnmap(at, FC_PIECE));
    CHECK_CU(cu.MemRelease(handle));
    CHECK_EQ(fc_usage_of(0).bytes, FC_PIECE);
    CHECK_CU(cu.MemAddressFree(at, FC_PIECE));
    CHECK_EQ(fc_usage_of(0).bytes, 0);
}

CASE(a_handle_more_than_there_are_descriptors, fc_fixture_open(&(fc_options){.max_handles = 2}))
{
    const qi_cu_allocation_prop prop = fc_on_device(0);
    qi_cu_handle first = fc_make(FC_PIECE), second = fc_make(FC_PIECE), third = 0;
    CHECK_CODE(cu.MemCreate(&third, FC_PIECE, &prop, 0), OUT_OF_MEMORY);
    CHECK_CU(cu.MemRelease(first));
    CHECK_CU(cu.MemCreate(&third, FC_PIECE, &prop, 0));
    CHECK_CU(cu.MemRelease(second));
    CHECK_CU(cu.MemRelease(third));
}

CASE(mappings_change_beside_work, fc_fixture_open(&(fc_options){.flags = FC_NEEDS_IDLE | FC_LATE}))
{
    qi_cu_handle handle, worked;
    qi_cu_ptr at = fc_mapped(FC_PIECE, &handle), work = fc_mapped(FC_PIECE, &worked);
    CHECK_EQ(fc_message_count(), 0);
    CHECK_CU(cu.MemsetD8Async(work, 1, 100, NULL));
    CHECK_CU(cu.MemUnmap(at, FC_PIECE));
    CHECK_HAS(fc_message(0), "fc-not-idle: cuMemUnmap");
    fc_forget();
    CHECK_CU(cu.CtxSynchronize());
    CHECK_CU(cu.MemAddressFree(at, FC_PIECE));
    CHECK_CU(cu.MemRelease(handle));
    fc_unmapped(work, FC_PIECE, worked);
}

UNIT(fake_cuda, a_device_has_so_much_and_not_more)
{
    size_t free_bytes, total;
    qi_cu_handle handle, none;
    qi_cu_allocation_prop prop = fc_on_device(0);
    (void)fc_fixture_open(NULL);
    fc_set_capacity(0, 4 * FC_PIECE);
    fc_set_others(0, FC_PIECE);
    CHECK_CODE(cu.MemCreate(&none, 4 * FC_PIECE, &prop, 0), OUT_OF_MEMORY);
    handle = fc_make(2 * FC_PIECE);
    CHECK_CU(cu.MemGetInfo(&free_bytes, &total));
    CHECK_EQ(free_bytes, FC_PIECE);
    CHECK_EQ(total, fc_model_named("h200")->bytes);
    CHECK_CODE(cu.MemAlloc(&(qi_cu_ptr){0}, FC_PIECE + 1), OUT_OF_MEMORY);
    CHECK_CU(cu.MemRelease(handle));
    CHECK_EQ(fc_usage_of(0).peak, 2 * FC_PIECE);
    fc_fixture_close();
}

/* ---- what the processor and other devices may touch --------------------------------------- */

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

UNIT(fake_cuda, the_processor_reaches_memory_where_it_has_access)
{
    qi_cu_handle handle, device;
    qi_cu_allocation_prop prop = fc_on_device(0);
    prop.location = (qi_cu_location){QI_CU_MEM_LOCATION_TYPE_HOST_NUMA, 1};
    qi_cu_access_desc descs[2] = {fc_for_device(0, QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE),
                                  {prop.location, QI_CU_MEM_ACCESS_FLAGS_PROT_READ}};
    uint64_t size = 4 * FC_MIB;
    (void)fc_fixture_open(&(fc_options){.models = {fc_model_named("gh200")}, .numa_nodes = 2});
    qi_cu_ptr pointer = fc_mapped(FC_PIECE, &device);
    CHECK(touching_kills(pointer)); /* memory of the device */
    fc_unmapped(pointer, FC_PIECE, device);
    CHECK_CU(cu.MemCreate(&handle, size, &prop, 0));
    CHECK_CU(cu.MemAddressReserve(&pointer, size, size, 0, 0));
    CHECK_CU(cu.MemMap(pointer, size, 0, handle, 0));
    CHECK_CU(cu.MemSetAccess(pointer, size, descs, 1));
    void *as_host = (void *)(uintptr_t)(pointer + 4096);
    CHECK(touching_kills(pointer));
    CHECK_CODE(cu.MemcpyHtoD(pointer, as_host, 8), INVALID_VALUE);
    CHECK_CU(cu.MemSetAccess(pointer, size, descs, 2));
    CHECK_CU(cu.MemcpyHtoD(pointer, as_host, 8));
    CHECK(touching_kills(pointer)); /* by writing */
    CHECK_CODE(cu.MemcpyDtoH(as_host, pointer, 8), INVALID_VALUE);
    descs[1].flags = QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    CHECK_CU(cu.MemSetAccess(pointer, size, descs, 2));
    *(uint64_t *)(uintptr_t)pointer = 99; /* the same address for both */
    CHECK_EQ(fc_read(pointer), 99);
    fc_unmapped(pointer, size, handle);
    fc_fixture_close();
}

UNIT(fake_cuda, other_devices_reach_memory_where_they_are_let_and_can)
{
    const fc_model *h200 = fc_model_named("h200");
    qi_cu_context first, second;
    qi_cu_handle handle;
    qi_cu_ptr other;
    uint64_t value;
    fc_options options = {.models = {h200, h200, h200}, .peers = {2}};
    qi_cu_access_desc one = fc_for_device(1, QI_CU_MEM_ACCESS_FLAGS_PROT_READ);
    qi_cu_access_desc two = fc_for_device(2, QI_CU_MEM_ACCESS_FLAGS_PROT_READ);
    first = fc_fixture_open(&options);
    qi_cu_ptr pointer = fc_mapped(FC_PIECE, &handle);
    fc_write(pointer, 8);
    CHECK_CODE(cu.MemSetAccess(pointer, FC_PIECE, &two, 1), INVALID_DEVICE);
    CHECK_CU(cu.DevicePrimaryCtxRetain(&second, 1));
    CHECK_CU(cu.CtxPushCurrent(second));
    CHECK_CU(cu.MemAlloc(&other, 64));
    CHECK_CODE(cu.MemcpyDtoD(other, pointer, 8), INVALID_VALUE);
    CHECK_CU(cu.MemcpyPeer(other, second, pointer, first, 8)); /* by what each device reaches */
    CHECK_EQ(fc_read(other), 8);
    CHECK_CODE(cu.MemcpyPeer(pointer, second, other, first, 8), INVALID_VALUE);
    CHECK_CU(cu.MemFree(other));
    CHECK_CU(cu.MemSetAccess(pointer, FC_PIECE, &one, 1));
    CHECK_CU(cu.MemcpyDtoH(&value, pointer, 8));
    CHECK_CODE(cu.MemcpyHtoD(pointer, &value, 8), INVALID_VALUE);
    CHECK_CU(cu.CtxPopCurrent(NULL));
    CHECK_CU(cu.DevicePrimaryCtxRelease(1));
    fc_unmapped(pointer, FC_PIECE, handle);
    fc_fixture_close();
}
