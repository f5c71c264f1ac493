/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * callbacks_cuda.c - callbacks that use the memory they are called for (tests/support/callbacks.h),
 * on the CUDA backend and the fake driver.
 */
#include "tests/support/callbacks.h"
#include "tests/support/cuda_bench.h"
#include "tests/support/plain.h"

static cuda_bench bench;
static quire_cuda_page_kind page_kind;

static void open_device(quire_log log, quire_device **device)
{
    cuda_bench_begin(&bench, NULL);
    CHECK_OK(quire_cuda_open(
        &(quire_cuda_options){
            .device = "0",
            .library = FAKE_CUDA_LIBRARY,
            .settings = {.kinds = QUIRE_CUDA_KIND_BIT(page_kind),
                         .device = {.host_memory = &bench.host_memory.callbacks, .log = log}}},
        device));
}

static void close_device(void)
{
    cuda_bench_end(&bench);
}

static void with(quire_cuda_page_kind kind)
{
    page_kind = kind;
    callbacks_try(&(callbacks_subject){UINT64_C(2) << 20, 0, open_device, close_device});
}

static void device_memory(void)
{
    with(QUIRE_CUDA_DEVICE);
}

static void pinned_memory(void)
{
    with(QUIRE_CUDA_PINNED);
}

int main(void)
{
    plain_case("callbacks on the CUDA backend, device memory", device_memory);
    plain_case("callbacks on the CUDA backend, pinned memory", pinned_memory);
    return plain_end();
}
