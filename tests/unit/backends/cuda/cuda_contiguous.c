/* cuda_contiguous.c - contiguous memories on the CUDA backend: one address for all allocations, the
   calls of the driver as the page grows and shrinks, and the access to added memory. */
#include "tests/support/cuda_bench.h"
#include "tests/support/unit.h"

#define MIB (UINT64_C(1) << 20)

static const quire_memory_options GROWS = {
    .contiguous = true, .address_space = 256 * MIB, .pages = {.page_size = 4 * MIB}};

static quire_memory *begin(cuda_bench *b, const fc_options *driver,
                           const quire_cuda_settings *settings)
{
    cuda_bench_begin(b, driver);
    CHECK(cuda_bench_open(b, settings));
    return cuda_bench_memory(b, QUIRE_CUDA_DEVICE, &GROWS);
}

static quire_allocation_info info_of(quire_memory *memory, quire_allocation a)
{
    quire_allocation_info info;
    CHECK_OK(quire_allocation_get_info(memory, a, &info));
    return info;
}

static void fill(quire_memory *memory, quire_allocation a, int value, uint64_t size)
{
    static unsigned char bytes[8 * MIB];
    CHECK(size <= sizeof bytes);
    memset(bytes, value, size);
    CHECK_OK(quire_write(memory, a, 0, bytes, size));
}

static void expect(quire_memory *memory, quire_allocation a, int value, uint64_t size)
{
    static unsigned char bytes[8 * MIB];
    CHECK_OK(quire_read(memory, a, 0, bytes, size));
    for (uint64_t i = 0; i < size; i += 4093)
        CHECK_EQ(bytes[i], value);
    CHECK_EQ(bytes[size - 1], value);
}

UNIT(cuda_contiguous, an_allocation_may_lie_across_handles)
{
    cuda_bench b;
    const fc_control *fc = cuda_bench_driver();
    quire_memory *memory = begin(&b, NULL, NULL);
    quire_allocation first = cuda_bench_allocate(memory, 3 * MIB);
    fill(memory, first, 1, 3 * MIB);
    fc->reset_counters();
    quire_allocation second = cuda_bench_allocate(memory, 3 * MIB);
    CHECK_EQ(fc->calls("cuMemCreate"), 1);
    CHECK_EQ(fc->calls("cuMemSetAccess"), 1);
    CHECK_EQ(fc->calls("cuMemAddressReserve"), 0);
    fill(memory, second, 2, 3 * MIB);
    expect(memory, first, 1, 3 * MIB);
    expect(memory, second, 2, 3 * MIB);
    quire_allocation_info low = info_of(memory, first), high = info_of(memory, second);
    CHECK_EQ(low.page, high.page);
    CHECK_EQ(low.address + 3 * MIB, high.address);

    quire_cuda_range range = {.handle_count = 0};
    CHECK_OK(quire_cuda_get_range(memory, second, &range));
    CHECK_EQ(range.handle_count, 2);
    CHECK_EQ(range.page_size, 8 * MIB);
    cuda_bench_end(&b);
}

UNIT(cuda_contiguous, in_steady_state_the_driver_is_not_asked)
{
    cuda_bench b;
    const fc_control *fc = cuda_bench_driver();
    quire_memory *memory = begin(&b, NULL, NULL);
    quire_allocation held[16];
    for (uint64_t i = 0; i < 16; i++)
        held[i] = cuda_bench_allocate(memory, (i + 1) * 300000);
    fc->reset_counters();
    for (uint64_t round = 0; round < 1000; round++) {
        uint64_t i = round * 7 % 16;
        CHECK_OK(quire_free(memory, held[i]));
        held[i] = cuda_bench_allocate(memory, (i + 1) * 300000);
    }
    CHECK_EQ(fc->calls(NULL), 0);
    cuda_bench_end(&b);
}

UNIT(cuda_contiguous, a_trim_gives_handles_back_and_growth_takes_others)
{
    cuda_bench b;
    const fc_control *fc = cuda_bench_driver();
    uint64_t released = 0;
    quire_memory *memory = begin(&b, NULL, NULL);
    quire_allocation first = cuda_bench_allocate(memory, 3 * MIB),
                     second = cuda_bench_allocate(memory, 20 * MIB);
    fill(memory, first, 7, 3 * MIB);
    uint64_t handles = fc->live(FC_MEMORY);
    CHECK_OK(quire_free(memory, second));
    CHECK_OK(quire_memory_trim(memory, 0, &released));
    CHECK_EQ(released, 20 * MIB); /* of 24 MiB; the first 4 MiB hold the first allocation */
    CHECK_EQ(fc->live(FC_MEMORY), handles - 1);
    CHECK_EQ(fc->live(FC_RESERVATION), 1);
    quire_allocation third = cuda_bench_allocate(memory, 7 * MIB);
    fill(memory, third, 8, 7 * MIB);
    expect(memory, first, 7, 3 * MIB);
    expect(memory, third, 8, 7 * MIB);
    cuda_bench_end(&b);
}

UNIT(cuda_contiguous, who_reaches_the_page_reaches_what_comes)
{
    cuda_bench b;
    const fc_model *h200 = fc_model_named("h200");
    fc_options driver = {.models = {h200, h200}, .peers = {0x2, 0x1}};
    quire_memory *memory = begin(&b, &driver, NULL);
    quire_allocation first = cuda_bench_allocate(memory, 3 * MIB);
    const quire_cuda_access both[] = {{QUIRE_CUDA_AT_DEVICE, 0, QUIRE_CUDA_READ_WRITE},
                                      {QUIRE_CUDA_AT_DEVICE, 1, QUIRE_CUDA_READ}};
    CHECK_OK(quire_cuda_set_access(memory, first, both, 2));
    quire_allocation second = cuda_bench_allocate(memory, 3 * MIB);
    quire_cuda_access access = {QUIRE_CUDA_AT_DEVICE, 1, QUIRE_CUDA_NO_ACCESS};
    CHECK_OK(quire_cuda_get_access(memory, second, &access));
    CHECK_EQ(access.flags, QUIRE_CUDA_READ);
    cuda_bench_end(&b);
}

UNIT(cuda_contiguous, what_wants_one_handle_is_refused)
{
    cuda_bench b;
    int descriptor = -1;
    uint32_t pinned = 0;
    quire_memory *memory = begin(&b, NULL, NULL);
    quire_allocation first = cuda_bench_allocate(memory, 3 * MIB);
    CHECK_FAILS(quire_cuda_export_dma_buf(memory, first, &descriptor), QUIRE_ERROR_UNSUPPORTED);
    CHECK_EQ(descriptor, -1);
    quire_memory *none = NULL;
    quire_memory_options options = GROWS;
    CHECK_OK(quire_cuda_find_kind(b.device, QUIRE_CUDA_PINNED, -1, &pinned));
    options.kind.mask = UINT32_C(1) << pinned;
    CHECK_FAILS(quire_memory_create(b.device, &options, &none), QUIRE_ERROR_UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "cannot grow");
    cuda_bench_end(&b);
}
