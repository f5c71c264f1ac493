/* fake_cuda_faults.c - the fake CUDA driver: planned faults of every function. */
#include "tests/support/cuda/fixture.h"
#include "tests/support/unit.h"

#include <time.h>

UNIT(fake_cuda_faults, codes_are_those_that_are_documented)
{
    qi_cu_result codes[16];
    CHECK_EQ(fc_codes("cuMemCreate", codes, 16), 7);
    CHECK_EQ(codes[0], QI_CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_EQ(fc_codes("cuMemSetAccess", codes, 16), 3);
    CHECK_EQ(codes[0], QI_CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(fc_codes("cuMemUnmap", codes, 1), 5); /* more codes than the array holds */
    CHECK_EQ(fc_codes("cuMemAlloc", codes, 16), fc_codes("cuMemAlloc_v2", codes, 16));
    CHECK_EQ(fc_codes("cuNoSuchFunction", codes, 16), 0);
}

static qi_cu_result create(void)
{
    qi_cu_handle handle;
    qi_cu_allocation_prop prop = fc_on_device(0);
    qi_cu_result result = cu.MemCreate(&handle, FC_PIECE, &prop, 0);
    if (!result)
        CHECK_CU(cu.MemRelease(handle));
    return result;
}

UNIT(fake_cuda_faults, the_nth_call_of_a_function_fails_once_or_from_then_on)
{
    (void)fc_fixture_open(NULL);
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
    fc_fixture_close();
}

UNIT(fake_cuda_faults, impossible_faults_are_refused)
{
    (void)fc_fixture_open(NULL);
    CHECK(!fc_fail(&(fc_fault){.function = "cuNoSuchFunction", .call = 1}));
    CHECK(!fc_fail(
        &(fc_fault){.function = "cuMemRelease", .call = 1, .result = QI_CUDA_ERROR_OUT_OF_MEMORY}));
    CHECK(!fc_fail(&(fc_fault){.function = "cuMemRelease", .call = 1, .code_index = 5}));
    for (int i = 0; i < 8; i++)
        CHECK(fc_fail(&(fc_fault){.call = 1000000}));
    CHECK(!fc_fail(&(fc_fault){.call = 1000000}));
    fc_heal();
    fc_fixture_close();
}

UNIT(fake_cuda_faults, a_function_may_do_its_work_and_fail_still)
{
    (void)fc_fixture_open(NULL);
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
    CHECK_CU(cu.MemRelease(first));
    fc_fixture_close();
}

UNIT(fake_cuda_faults, what_ends_something_fails_only_by_its_name)
{
    (void)fc_fixture_open(NULL);
    qi_cu_handle first = fc_make(FC_PIECE), second = fc_make(FC_PIECE);
    CHECK(fc_fail(&(fc_fault){.call = 1, .from_then = true}));
    CHECK_CODE(create(), OUT_OF_MEMORY);
    CHECK_CU(cu.MemRelease(first));
    CHECK_CU(cu.MemRelease(second));
    fc_heal();
    fc_fixture_close();
}

/* Calls many functions and releases everything. Returns the first failure. */
static qi_cu_result scenario(void)
{
    qi_cu_allocation_prop prop = fc_on_device(0);
    qi_cu_access_desc desc = fc_for_device(0, QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    qi_cu_handle handle = 0;
    qi_cu_ptr pointer = 0;
    qi_cu_stream stream = NULL;
    uint64_t value = 1;
    bool mapped = false;
    qi_cu_result result = cu.MemCreate(&handle, FC_PIECE, &prop, 0);
    if (!result)
        result = cu.MemAddressReserve(&pointer, FC_PIECE, 0, 0, 0);
    if (!result) {
        result = cu.MemMap(pointer, FC_PIECE, 0, handle, 0);
        mapped = !result;
    }
    if (!result)
        result = cu.MemSetAccess(pointer, FC_PIECE, &desc, 1);
    if (!result)
        result = cu.StreamCreate(&stream, 0);
    if (!result)
        result = cu.MemcpyHtoDAsync(pointer, &value, 8, stream);
    if (!result)
        result = cu.StreamSynchronize(stream);
    if (stream)
        CHECK_CU(cu.StreamDestroy(stream));
    if (mapped)
        CHECK_CU(cu.MemUnmap(pointer, FC_PIECE));
    if (pointer)
        CHECK_CU(cu.MemAddressFree(pointer, FC_PIECE));
    if (handle)
        CHECK_CU(cu.MemRelease(handle));
    return result;
}

UNIT(fake_cuda_faults, every_call_fails_with_every_code)
{
    qi_cu_result codes[16];
    uint32_t failures = 0;
    (void)fc_fixture_open(NULL);
    fc_reset_counters();
    CHECK_CU(scenario());
    uint64_t calls = fc_fallible_calls();
    CHECK_EQ(calls, 7);
    for (uint64_t call = 1; call <= calls; call++)
        for (uint32_t code = 0;; code++) {
            CHECK(fc_fail(&(fc_fault){.call = call, .code_index = code}));
            qi_cu_result result = scenario();
            fc_failure failure = fc_failed();
            fc_heal();
            if (!failure.times)
                break; /* the function has no further codes */
            CHECK_EQ(result, failure.result);
            CHECK(fc_codes(failure.function, codes, 16) > code && codes[code] == result);
            CHECK_EQ(fc_leaks(), 1); /* the context */
            failures++;
        }
    CHECK_EQ(failures, 7 + 6 + 8 + 3 + 5 + 5 + 4);
    CHECK_CU(scenario());
    fc_fixture_close();
}

UNIT(fake_cuda_faults, each_function_can_be_missing)
{
#define X(name, suffix, version, presence, parameters)                                             \
    do {                                                                                           \
        void *function;                                                                            \
        qi_cu_query_result why;                                                                    \
        fc_reset(NULL);                                                                            \
        CHECK(fc_hide("cu" #name #suffix));                                                        \
        CHECK_CU(fake_cuda()->find("cu" #name, &function, version, 0, &why));                      \
        CHECK(!function && why == QI_CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);                        \
        fc_heal();                                                                                 \
        CHECK_CU(fake_cuda()->find("cu" #name, &function, version, 0, &why));                      \
        CHECK(function &&why == QI_CU_GET_PROC_ADDRESS_SUCCESS);                                   \
    } while (0);
    QI_CU_FUNCTIONS(X)
#undef X
}

UNIT(fake_cuda_faults, a_lost_device_answers_the_same_until_its_contexts_are_gone)
{
    qi_cu_context second;
    qi_cu_ptr pointer;
    qi_cu_handle handle;
    fc_options options = {.models = {fc_model_named("h200"), fc_model_named("h200")}};
    (void)fc_fixture_open(&options);
    CHECK_CU(cu.DevicePrimaryCtxRetain(&second, 1));
    qi_cu_ptr mapped = fc_mapped(FC_PIECE, &handle);
    fc_lose(0, QI_CUDA_ERROR_ECC_UNCORRECTABLE);
    CHECK_CODE(cu.MemAlloc(&pointer, 8), ECC_UNCORRECTABLE);
    CHECK_CODE(cu.MemGetInfo(&(size_t){0}, &(size_t){0}), ECC_UNCORRECTABLE);
    CHECK_CODE(cu.CtxSynchronize(), ECC_UNCORRECTABLE);
    /* these belong to no context */
    CHECK_CU(create());
    CHECK_CU(cu.DeviceGetCount(&(int){0}));
    CHECK_CU(cu.MemUnmap(mapped, FC_PIECE));
    CHECK_CU(cu.MemRelease(handle));
    CHECK_CU(cu.MemAddressFree(mapped, FC_PIECE));
    CHECK_CU(cu.CtxPopCurrent(NULL));
    CHECK_CU(cu.DevicePrimaryCtxRelease(0));
    CHECK_CU(cu.CtxPushCurrent(second)); /* the other device is not lost */
    CHECK_CU(cu.MemAlloc(&pointer, 8));
    CHECK_CU(cu.MemFree(pointer));
    CHECK_CU(cu.CtxPopCurrent(NULL));
    CHECK_CU(cu.DevicePrimaryCtxRelease(1));
    CHECK_EQ(fc_leaks(), 0);
    CHECK_EQ(fc_message_count(), 0);
}

static uint64_t microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

UNIT(fake_cuda_faults, a_function_can_be_slow)
{
    (void)fc_fixture_open(NULL);
    fc_slow("cuMemCreate", 20000);
    uint64_t start = microseconds();
    CHECK_CU(create());
    CHECK(microseconds() - start >= 20000);
    fc_slow(NULL, 100);
    start = microseconds();
    CHECK_CU(scenario());
    CHECK(microseconds() - start >= 19300 + 1900 + 3600);
    fc_heal();
    fc_fixture_close();
}
