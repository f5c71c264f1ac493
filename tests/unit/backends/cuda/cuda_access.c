/* cuda_access.c - access to pages of the CUDA backend. */
#include "tests/support/cuda_bench.h"
#include "tests/support/unit.h"

#define INVALID QUIRE_ERROR_INVALID_ARGUMENT
#define UNSUPPORTED QUIRE_ERROR_UNSUPPORTED
#define MIB (UINT64_C(1) << 20)

static const quire_memory_options SMALL = {.pages = {.page_size = 2 * MIB}};

static quire_memory *begin(cuda_bench *b, const fc_options *driver,
                           const quire_cuda_settings *settings, quire_cuda_page_kind page_kind)
{
    cuda_bench_begin(b, driver);
    CHECK(cuda_bench_open(b, settings));
    b->fc->reset_counters();
    return cuda_bench_memory(b, page_kind, &SMALL);
}

/* ---- access --------------------------------------------------------------------------------- */

static quire_cuda_access_flags access_of(quire_memory *memory, quire_allocation a,
                                         quire_cuda_location location, int32_t id)
{
    quire_cuda_access access = {location, id, QUIRE_CUDA_READ_WRITE};
    CHECK_OK(quire_cuda_get_access(memory, a, &access));
    return access.flags;
}

/* Devices 0 and 1 can access each other; device 2 can access no other device. */
static fc_options three_devices(void)
{
    const fc_model *h200 = fc_model_named("h200");
    fc_options options = {.models = {h200, h200, h200}, .peers = {0x2, 0x1, 0}};
    return options;
}

CUDA_UNIT(cuda_access, access_is_of_the_page_and_changes_at_run_time)
{
    char byte = 1;
    fc_options driver = three_devices();
    quire_memory *memory = begin(b, &driver, NULL, QUIRE_CUDA_DEVICE);
    quire_allocation a = cuda_bench_allocate(memory, 100), other = cuda_bench_allocate(memory, 100);
    CHECK_EQ(access_of(memory, a, QUIRE_CUDA_AT_DEVICE, 0), QUIRE_CUDA_READ_WRITE);
    CHECK_EQ(access_of(memory, a, QUIRE_CUDA_AT_DEVICE, 1), QUIRE_CUDA_NO_ACCESS);
    const quire_cuda_access both[] = {{QUIRE_CUDA_AT_DEVICE, 0, QUIRE_CUDA_READ},
                                      {QUIRE_CUDA_AT_DEVICE, 1, QUIRE_CUDA_READ_WRITE}};
    CHECK_OK(quire_cuda_set_access(memory, a, both, 2));
    CHECK_EQ(access_of(memory, other, QUIRE_CUDA_AT_DEVICE, 0), QUIRE_CUDA_READ);
    CHECK_EQ(access_of(memory, other, QUIRE_CUDA_AT_DEVICE, 1), QUIRE_CUDA_READ_WRITE);
    CHECK_OK(quire_read(memory, a, 0, &byte, 1));
    CHECK_FAILS(quire_write(memory, a, 0, &byte, 1), INVALID); /* the page is read-only now */
    const quire_cuda_access back = {QUIRE_CUDA_AT_DEVICE, 0, QUIRE_CUDA_READ_WRITE};
    const quire_cuda_access revoked = {QUIRE_CUDA_AT_DEVICE, 1, QUIRE_CUDA_NO_ACCESS};
    CHECK_OK(quire_cuda_set_access(memory, a, &back, 1));
    CHECK_OK(quire_cuda_set_access(memory, a, &revoked, 1));
    CHECK_OK(quire_write(memory, a, 0, &byte, 1));
    CHECK_EQ(access_of(memory, a, QUIRE_CUDA_AT_DEVICE, 1), QUIRE_CUDA_NO_ACCESS);
}

UNIT(cuda_access, peers_reach_every_page)
{
    static const int32_t peer = 1, both[] = {1, 2}, none = 7, self = 0;
    cuda_bench b;
    fc_options driver = three_devices();
    quire_memory *memory = begin(
        &b, &driver, &(quire_cuda_settings){.peers = &peer, .peer_count = 1}, QUIRE_CUDA_DEVICE);
    quire_allocation a = cuda_bench_allocate(memory, 100);
    CHECK_EQ(access_of(memory, a, QUIRE_CUDA_AT_DEVICE, 1), QUIRE_CUDA_READ_WRITE);
    CHECK_EQ(b.fc->calls("cuMemSetAccess"), 1);
    cuda_bench_end(&b);
    const struct {
        const int32_t *peers;
        uint32_t count;
        quire_result code;
        const char *words;
    } wrong[] = {{both, 2, UNSUPPORTED, "device 2 cannot reach device 0"},
                 {&none, 1, UNSUPPORTED, "7"},
                 {&self, 1, INVALID, "0"}};
    for (int i = 0; i < 3; i++) {
        cuda_bench_begin(&b, &driver);
        CHECK(!cuda_bench_open(
            &b, &(quire_cuda_settings){.peers = wrong[i].peers, .peer_count = wrong[i].count}));
        CHECK_EQ(b.result, wrong[i].code);
        CHECK_HAS(quire_last_error(), wrong[i].words);
        cuda_bench_end(&b);
    }
}

CUDA_UNIT(cuda_access, access_that_cannot_be_is_refused_and_changes_nothing)
{
    fc_options driver = three_devices();
    quire_memory *memory = begin(b, &driver, NULL, QUIRE_CUDA_DEVICE);
    quire_memory *pinned = cuda_bench_memory(b, QUIRE_CUDA_PINNED, &SMALL);
    quire_allocation a = cuda_bench_allocate(memory, 100);
    const quire_cuda_access host = {QUIRE_CUDA_AT_HOST, 0, QUIRE_CUDA_READ};
    const quire_cuda_access stranger[] = {{QUIRE_CUDA_AT_DEVICE, 1, QUIRE_CUDA_READ},
                                          {QUIRE_CUDA_AT_DEVICE, 2, QUIRE_CUDA_READ}};
    CHECK_FAILS(quire_cuda_set_access(memory, a, &host, 1), UNSUPPORTED);
    CHECK_FAILS(quire_cuda_set_access(memory, a, stranger, 2), UNSUPPORTED);
    CHECK_EQ(access_of(memory, a, QUIRE_CUDA_AT_DEVICE, 1), QUIRE_CUDA_NO_ACCESS);
    static const uint32_t counts[] = {0, QUIRE_CUDA_MAX_ACCESSES + 1};
    for (int i = 0; i < 2; i++) { /* refused before the list is read */
        CHECK_FAILS(quire_cuda_set_access(memory, a, &host, counts[i]), INVALID);
        CHECK_HAS(quire_last_error(), "are possible");
    }
    quire_allocation p = cuda_bench_allocate(pinned, 100);
    quire_cuda_access own = {QUIRE_CUDA_AT_DEVICE, 0, QUIRE_CUDA_READ};
    CHECK_FAILS(quire_cuda_set_access(pinned, p, &own, 1), UNSUPPORTED);
    CHECK_FAILS(quire_cuda_get_access(pinned, p, &own), UNSUPPORTED);
    CHECK_OK(quire_free(memory, a));
    CHECK_FAILS(quire_cuda_set_access(memory, a, &own, 1), QUIRE_ERROR_STALE_HANDLE);
}
