/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_pointer.c - adopting a pointer of the caller: memory of another device, of the host, or
 * beyond the end of its block is refused, and nothing is adopted.
 */
#include "tests/support/cuda_bench.h"
#include "tests/support/unit.h"

#define INVALID QUIRE_ERROR_INVALID_ARGUMENT
#define UNSUPPORTED QUIRE_ERROR_UNSUPPORTED
#define MIB (UINT64_C(1) << 20)

/* Device 0 is open, with a memory; both devices can reach each other. */
static quire_memory *begin(cuda_bench *b)
{
    const fc_model *h200 = fc_model_named("h200");
    const fc_options driver = {.models = {h200, h200}, .peers = {0x2, 0x1}};
    cuda_bench_start(b, &driver);
    return cuda_bench_memory(b, QUIRE_CUDA_DEVICE, NULL);
}

/* Makes the primary context of a device current, and ends that. */
static void enter(cuda_bench *b, qi_cu_device device)
{
    qi_cu_context context = NULL;
    CHECK_EQ(CUDA_BENCH_CALL(b, DevicePrimaryCtxRetain, 7000)(&context, device), 0);
    CHECK_EQ(CUDA_BENCH_CALL(b, CtxPushCurrent, 4000)(context), 0);
}

static void leave(cuda_bench *b, qi_cu_device device)
{
    cuda_bench_leave();
    CHECK_EQ(CUDA_BENCH_CALL(b, DevicePrimaryCtxRelease, 11000)(device), 0);
}

/* Allocates with the driver in a primary context, which free_block releases. */
static qi_cu_ptr block_of(cuda_bench *b, qi_cu_device device, uint64_t size)
{
    qi_cu_ptr block = 0;
    enter(b, device);
    CHECK_EQ(CUDA_BENCH_CALL(b, MemAlloc, 3020)(&block, size), 0);
    cuda_bench_leave();
    return block;
}

static void free_block(cuda_bench *b, qi_cu_device device, qi_cu_ptr block)
{
    enter(b, device);
    CHECK_EQ(CUDA_BENCH_CALL(b, MemFree, 3020)(block), 0);
    leave(b, device);
    CHECK_EQ(CUDA_BENCH_CALL(b, DevicePrimaryCtxRelease, 11000)(device), 0);
}

static quire_cuda_import pointer_to(qi_cu_ptr address, uint64_t size)
{
    return (quire_cuda_import){.type = QUIRE_CUDA_IMPORT_POINTER, .pointer = address, .size = size};
}

static void refuses(quire_memory *memory, qi_cu_ptr address, uint64_t size, quire_result code,
                    const char *part)
{
    quire_allocation none = {77};
    quire_page_info page;
    const quire_cuda_import import = pointer_to(address, size);
    CHECK_FAILS(quire_cuda_import_range(memory, &import, &none), code);
    CHECK_HAS(quire_last_error(), part);
    CHECK_EQ(none.id, 0);
    CHECK_FAILS(quire_page_get_info(memory, 0, &page), QUIRE_ERROR_OUT_OF_RANGE);
}

static void accepts(quire_memory *memory, qi_cu_ptr address, uint64_t size)
{
    quire_allocation a;
    const quire_cuda_import import = pointer_to(address, size);
    CHECK_OK(quire_cuda_import_range(memory, &import, &a));
    CHECK_OK(quire_free(memory, a));
}

CUDA_UNIT_IN(cuda_pointer, memory_of_another_device_is_refused, begin(b))
{
    qi_cu_ptr mine = block_of(b, 0, 4096), theirs = block_of(b, 1, 4096);
    refuses(memory, theirs, 4096, UNSUPPORTED, "device 1");
    accepts(memory, mine, 4096);
    free_block(b, 1, theirs);
    free_block(b, 0, mine);
}

CUDA_UNIT_IN(cuda_pointer, a_size_beyond_the_block_is_refused, begin(b))
{
    qi_cu_ptr block = block_of(b, 0, 4096);
    refuses(memory, block, 4097, INVALID, "ends after 4 KiB");
    refuses(memory, block + 4000, 97, INVALID, "ends after 96 B");
    refuses(memory, block, 1024 * MIB, INVALID, "ends after 4 KiB");
    accepts(memory, block, 4096);
    accepts(memory, block + 4000, 96);
    free_block(b, 0, block);
}

/* The driver reports the whole reservation as the range of an address in it. */
CUDA_UNIT_IN(cuda_pointer, reserved_addresses_that_are_not_mapped_are_refused, begin(b))
{
    const qi_cu_allocation_prop prop = {.type = QI_CU_MEM_ALLOCATION_TYPE_PINNED,
                                        .location = {QI_CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    qi_cu_handle handle = 0;
    qi_cu_ptr at = 0;
    CHECK_EQ(CUDA_BENCH_CALL(b, MemCreate, 10020)(&handle, 2 * MIB, &prop, 0), 0);
    CHECK_EQ(CUDA_BENCH_CALL(b, MemAddressReserve, 10020)(&at, 8 * MIB, 0, 0, 0), 0);
    CHECK_EQ(CUDA_BENCH_CALL(b, MemMap, 10020)(at, 2 * MIB, 0, handle, 0), 0);
    refuses(memory, at, 9 * MIB, INVALID, "ends after 8 MiB");
    refuses(memory, at, 4 * MIB, INVALID, "not mapped");
    accepts(memory, at, 2 * MIB);
    CHECK_EQ(CUDA_BENCH_CALL(b, MemUnmap, 10020)(at, 2 * MIB), 0);
    CHECK_EQ(CUDA_BENCH_CALL(b, MemAddressFree, 10020)(at, 8 * MIB), 0);
    CHECK_EQ(CUDA_BENCH_CALL(b, MemRelease, 10020)(handle), 0);
}

CUDA_UNIT_IN(cuda_pointer, host_memory_and_unknown_addresses_are_refused, begin(b))
{
    void *host = NULL;
    enter(b, 0);
    CHECK_EQ(CUDA_BENCH_CALL(b, MemHostAlloc, 3020)(&host, 4096, 0), 0);
    refuses(memory, (uintptr_t)host, 4096, INVALID, "not an address of device memory");
    refuses(memory, 4096, 4096, INVALID, "not an address of device memory");
    CHECK_EQ(CUDA_BENCH_CALL(b, MemFreeHost, 2000)(host), 0);
    leave(b, 0);
}

/* A driver without the query, or without one of its attributes: the caller answers for it. */
CUDA_UNIT_EACH(cuda_pointer, what_the_driver_does_not_tell_is_not_checked, i, 2)
{
    cuda_bench_begin(b, NULL);
    if (i)
        CHECK(b->fc->hide("cuPointerGetAttribute"));
    CHECK(cuda_bench_open(b, NULL));
    quire_memory *memory = cuda_bench_memory(b, QUIRE_CUDA_DEVICE, NULL);
    qi_cu_ptr block = block_of(b, 0, 4096);
    if (!i)
        CHECK(b->fc->fail(&(fc_fault){.function = "cuPointerGetAttribute",
                                      .call = 2,
                                      .from_then = true,
                                      .result = QI_CUDA_ERROR_INVALID_VALUE}));
    accepts(memory, block, 4096);
    free_block(b, 0, block);
}
