/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_result.c - what the error codes of the driver become: lost devices, and the sentences for
 * devices that cannot be used.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "backends/cuda/driver.h"
#include "tests/support/child.h"
#include "tests/support/cuda_bench.h"
#include "tests/support/unit.h"

#define MIB (UINT64_C(1) << 20)

/* ---- lost devices ---------------------------------------------------------------------------- */

/*
 * The codes after which CUDA cannot be used any more, as the comments of cuda.h 13.0 state, or
 * after which the context or the driver is gone.
 */
static const qi_cu_result LOST[] = {
    QI_CUDA_ERROR_DEINITIALIZED,        QI_CUDA_ERROR_ECC_UNCORRECTABLE,
    QI_CUDA_ERROR_NVLINK_UNCORRECTABLE, QI_CUDA_ERROR_CONTAINED,
    QI_CUDA_ERROR_ILLEGAL_ADDRESS,      QI_CUDA_ERROR_LAUNCH_TIMEOUT,
    QI_CUDA_ERROR_CONTEXT_IS_DESTROYED, QI_CUDA_ERROR_ASSERT,
    QI_CUDA_ERROR_HARDWARE_STACK_ERROR, QI_CUDA_ERROR_ILLEGAL_INSTRUCTION,
    QI_CUDA_ERROR_MISALIGNED_ADDRESS,   QI_CUDA_ERROR_INVALID_ADDRESS_SPACE,
    QI_CUDA_ERROR_INVALID_PC,           QI_CUDA_ERROR_LAUNCH_FAILED,
    QI_CUDA_ERROR_TENSOR_MEMORY_LEAK,   QI_CUDA_ERROR_MPS_CLIENT_TERMINATED,
    QI_CUDA_ERROR_EXTERNAL_DEVICE,
};

enum { LOST_CODES = sizeof LOST / sizeof *LOST };

static bool is_listed(qi_cu_result code)
{
    for (int i = 0; i < LOST_CODES; i++)
        if (LOST[i] == code)
            return true;
    return false;
}

/* 1,200 is beyond the last code of cuda.h 13.0. */
UNIT(cuda_result, the_codes_of_a_lost_device_are_those_and_no_others)
{
    for (qi_cu_result code = 1; code < 1200; code++) {
        CHECK_EQ(qi_cuda_is_lost(code), is_listed(code));
        CHECK_EQ(qi_cuda_result(code) == QUIRE_ERROR_DEVICE_LOST, is_listed(code));
        CHECK(qi_cuda_result(code) < 0);
    }
}

/* Every call fails with the code from some point on. Everything can still be destroyed. */
UNIT(cuda_result, with_every_lost_code_everything_can_be_ended)
{
    for (int i = 0; i < LOST_CODES; i++) {
        cuda_bench b;
        quire_allocation a;
        char byte = 0;
        cuda_bench_start(&b, NULL);
        quire_memory *memory = cuda_bench_memory(
            &b, QUIRE_CUDA_DEVICE, &(quire_memory_options){.pages = {.page_size = 2 * MIB}});
        CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 100}, &a));
        b.fc->lose(0, LOST[i]);
        CHECK_FAILS(quire_read(memory, a, 0, &byte, 1), QUIRE_ERROR_DEVICE_LOST);
        CHECK_EQ(quire_last_native_code(), LOST[i]);
        CHECK_OK(quire_free(memory, a));
        CHECK_OK(quire_memory_destroy(&b.memories[0]));
        CHECK_OK(quire_device_destroy(&b.device));
        CHECK_EQ(b.host_memory.blocks, 0);
    }
}

/* ---- devices that cannot be used ------------------------------------------------------------- */

/* What cuInit returns, what it becomes, and a part of what the sentence advises. */
static const struct {
    qi_cu_result code;
    quire_result result;
    const char *advice;
} UNAVAILABLE[] = {
    {QI_CUDA_ERROR_NOT_INITIALIZED, QUIRE_ERROR_NOT_PERMITTED, "child of a fork"},
    {QI_CUDA_ERROR_STUB_LIBRARY, QUIRE_ERROR_UNSUPPORTED, "the Toolkit's stub"},
    {QI_CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, QUIRE_ERROR_UNSUPPORTED, "newer driver"},
    {QI_CUDA_ERROR_DEVICE_UNAVAILABLE, QUIRE_ERROR_NOT_PERMITTED, "compute mode"},
    {QI_CUDA_ERROR_NO_DEVICE, QUIRE_ERROR_UNSUPPORTED, "CUDA_VISIBLE_DEVICES"},
    {QI_CUDA_ERROR_INVALID_DEVICE, QUIRE_ERROR_UNSUPPORTED, "CUDA_VISIBLE_DEVICES"},
    {QI_CUDA_ERROR_DEVICE_NOT_LICENSED, QUIRE_ERROR_UNSUPPORTED, "licence"},
    {QI_CUDA_ERROR_SYSTEM_NOT_READY, QUIRE_ERROR_UNSUPPORTED, "nvidia-fabricmanager"},
    {QI_CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, QUIRE_ERROR_UNSUPPORTED, "kernel module"},
    {QI_CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, QUIRE_ERROR_UNSUPPORTED, "cuda-compat"},
    {QI_CUDA_ERROR_MPS_CONNECTION_FAILED, QUIRE_ERROR_BACKEND_FAILURE, "MPS"},
    {QI_CUDA_ERROR_MPS_RPC_FAILURE, QUIRE_ERROR_BACKEND_FAILURE, "MPS"},
    {QI_CUDA_ERROR_MPS_SERVER_NOT_READY, QUIRE_ERROR_BACKEND_FAILURE, "MPS"},
    {QI_CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, QUIRE_ERROR_BACKEND_FAILURE, "MPS"},
    {QI_CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED, QUIRE_ERROR_BACKEND_FAILURE, "MPS"},
    {QI_CUDA_ERROR_UNKNOWN, QUIRE_ERROR_BACKEND_FAILURE, "dmesg"},
};

UNIT(cuda_result, a_device_that_cannot_be_used_says_what_to_do)
{
    for (size_t i = 0; i < sizeof UNAVAILABLE / sizeof *UNAVAILABLE; i++) {
        cuda_bench b;
        cuda_bench_begin(&b, &(fc_options){.no_init = UNAVAILABLE[i].code});
        CHECK(!cuda_bench_open(&b, NULL));
        CHECK_EQ(b.result, UNAVAILABLE[i].result);
        CHECK_EQ(quire_last_native_code(), UNAVAILABLE[i].code);
        CHECK_HAS(quire_last_error(), "cuInit: CUDA_ERROR_");
        CHECK_HAS(quire_last_error(), UNAVAILABLE[i].advice);
        cuda_bench_end(&b);
    }
}

/* cuInit of a child fails with NOT_INITIALIZED if its parent had called it. */
CUDA_UNIT_ON(cuda_result, a_forked_child_that_opens_a_device_is_not_permitted,
             cuda_bench_begin(b, NULL))
{
    CHECK(cuda_bench_open(b, NULL));
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child) {
        quire_device *device = NULL;
        const quire_cuda_options options = {.library = FAKE_CUDA_LIBRARY};
        bool refused = quire_cuda_open(&options, &device) == QUIRE_ERROR_NOT_PERMITTED &&
                       strstr(quire_last_error(), "child of a fork");
        child_end(refused && !device);
    }
    CHECK(child_was_well(child));
}

/* A device in exclusive mode is refused when its context is made, not by cuInit. */
CUDA_UNIT_ON(cuda_result, a_device_that_another_process_holds_is_not_permitted,
             cuda_bench_begin(b, NULL))
{
    CHECK(b->fc->fail(&(fc_fault){.function = "cuDevicePrimaryCtxRetain",
                                  .call = 1,
                                  .result = QI_CUDA_ERROR_DEVICE_UNAVAILABLE}));
    CHECK(!cuda_bench_open(b, NULL));
    CHECK_EQ(b->result, QUIRE_ERROR_NOT_PERMITTED);
    CHECK_HAS(quire_last_error(), "CUDA_ERROR_DEVICE_UNAVAILABLE");
}
