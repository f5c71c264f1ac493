/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_memory.c - pages of the CUDA backend on the fake driver: the calls of the driver and their
 * number, granularity and padding, chunks, alignment, budgets, access, and destruction that fails
 * half way.
 */
#include <unistd.h>

#include "tests/support/cuda_bench.h"
#include "tests/support/elastic_churn.h"
#include "tests/support/unit.h"

#define KIB UINT64_C(1024)
#define MIB (UINT64_C(1) << 20)

static const quire_memory_options SMALL = {.pages = {.page_size = 2 * MIB}};

static quire_memory *begin(cuda_bench *b, const fc_options *driver,
                           const quire_cuda_settings *settings, quire_cuda_page_kind page_kind,
                           const quire_memory_options *options)
{
    cuda_bench_begin(b, driver);
    CHECK(cuda_bench_open(b, settings));
    b->fc->reset_counters(); /* without the trial allocations of the opening */
    return cuda_bench_memory(b, page_kind, options);
}

static void trim(quire_memory *memory)
{
    CHECK_OK(quire_memory_trim(memory, 0, NULL));
}

/* ---- calls ---------------------------------------------------------------------------------- */

CUDA_UNIT_EACH(cuda_memory, ranges_cost_no_call_once_there_is_a_page, k, 2)
{
    static const quire_cuda_page_kind kinds[] = {QUIRE_CUDA_DEVICE, QUIRE_CUDA_PINNED};
    quire_allocation a[10];
    quire_memory *memory = begin(b, NULL, NULL, kinds[k], &SMALL);
    a[0] = cuda_bench_allocate(memory, 100);
    b->fc->reset_counters();
    for (int round = 0; round < 1000; round++) {
        for (int i = 1; i < 10; i++)
            CHECK_OK(quire_allocate(
                memory, &(quire_allocation_options){.size = 100u * (unsigned)i, .alignment = 256},
                &a[i]));
        CHECK_EQ(cuda_bench_range(memory, a[5]).address % 256, 0);
        for (int i = 1; i < 10; i++)
            CHECK_OK(quire_free(memory, a[i]));
    }
    CHECK_EQ(b->fc->calls(NULL), 0);
}

CUDA_UNIT_IN(cuda_memory, a_page_is_made_and_taken_down_in_the_documented_calls,
             begin(b, NULL, NULL, QUIRE_CUDA_DEVICE, &SMALL))
{
    static const char *const made[] = {"cuMemCreate",    "cuMemAddressReserve", "cuMemMap",
                                       "cuMemSetAccess", "cuCtxPushCurrent",    "cuCtxPopCurrent"};
    static const char *const ended[] = {"cuMemUnmap", "cuMemRelease", "cuMemAddressFree",
                                        "cuCtxPushCurrent", "cuCtxPopCurrent"};
    CHECK_OK(quire_free(memory, cuda_bench_allocate(memory, 100)));
    trim(memory);
    b->fc->reset_counters();
    quire_allocation a = cuda_bench_allocate(memory, 100);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(b->fc->calls(made[i]), 1);
    CHECK_EQ(b->fc->calls(made[4]), b->fc->calls(made[5]));
    CHECK_OK(quire_free(memory, a));
    b->fc->reset_counters();
    trim(memory);
    for (int i = 0; i < 5; i++)
        CHECK_EQ(b->fc->calls(ended[i]), 1);
    CHECK_EQ(b->fc->calls("cuThreadExchangeStreamCaptureMode"), 2);
    CHECK_EQ(b->fc->calls(NULL), 7); /* nothing is waited for: no work uses what was freed */
}

/* The fake driver adds a message if work uses memory that is unmapped. */
CUDA_UNIT_EACH(cuda_memory, running_work_is_waited_for_on_request, k, 3)
{
    static const quire_cuda_page_kind kinds[] = {QUIRE_CUDA_DEVICE, QUIRE_CUDA_PLAIN,
                                                 QUIRE_CUDA_PINNED};
    fc_options options = cuda_bench_options(NULL, FC_LATE);
    const quire_cuda_settings settings = {.kinds = CUDA_KIND(DEVICE) | CUDA_KIND(PLAIN) |
                                                   CUDA_KIND(PINNED),
                                          .wait_before_release = true};
    quire_memory *memory = begin(b, &options, &settings, kinds[k], &SMALL);
    quire_allocation a = cuda_bench_allocate(memory, 4096);
    cuda_bench_enter(b->device);
    qi_cu_stream stream = cuda_bench_make_stream(QI_CU_STREAM_NON_BLOCKING);
    CHECK_EQ(CUDA_BENCH_CALL(b, MemsetD8Async, 3020)(cuda_bench_range(memory, a).address, 1, 4096,
                                                     stream),
             0);
    CHECK(b->fc->pending() > 0);
    CHECK_OK(quire_free(memory, a));
    trim(memory);
    CHECK_EQ(b->fc->pending(), 0);
    CHECK_EQ(b->fc->message_count(), 0);
    cuda_bench_end_stream(stream);
    cuda_bench_leave();
}

/* The driver may return from a copy to the device or a fill before it has run. */
CUDA_UNIT(cuda_memory, copies_and_fills_are_complete_on_return)
{
    quire_allocation a;
    char bytes[100] = {1};
    fc_options options = cuda_bench_options(NULL, FC_LATE | FC_DIRTY);
    quire_memory *memory = begin(b, &options, NULL, QUIRE_CUDA_DEVICE, &SMALL);
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 100, .zero = true}, &a));
    CHECK_EQ(b->fc->calls("cuMemsetD8"), 1);
    CHECK_EQ(b->fc->calls("cuStreamSynchronize"), 1);
    CHECK_EQ(b->fc->pending(), 0);
    CHECK_OK(quire_write(memory, a, 0, bytes, sizeof bytes));
    CHECK_EQ(b->fc->calls("cuMemcpyHtoD"), 1);
    CHECK_EQ(b->fc->calls("cuStreamSynchronize"), 2);
    CHECK_EQ(b->fc->pending(), 0);
}

/* A page must not be given back under a fill that runs. */
CUDA_UNIT(cuda_memory, a_wait_that_fails_is_repeated)
{
    quire_allocation a;
    fc_options options = cuda_bench_options(NULL, FC_LATE);
    quire_memory *memory = begin(b, &options, NULL, QUIRE_CUDA_DEVICE, &SMALL);
    fc_fault fault = {
        .function = "cuStreamSynchronize", .call = 1, .result = QI_CUDA_ERROR_INVALID_HANDLE};
    const quire_allocation_options zeroed = {.size = 100, .zero = true};
    CHECK(b->fc->fail(&fault));
    CHECK_OK(quire_allocate(memory, &zeroed, &a));
    CHECK_EQ(b->fc->calls("cuStreamSynchronize"), 2);
    CHECK_EQ(b->fc->pending(), 0);
    b->fc->heal();
    fault.from_then = true;
    CHECK(b->fc->fail(&fault));
    CHECK_FAILS(quire_allocate(memory, &zeroed, &a), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(b->fc->calls("cuStreamSynchronize"), 4);
    b->fc->heal();
    b->fc->advance(1000000);
}

/* ---- granularity ---------------------------------------------------------------------------- */

UNIT(cuda_memory, pages_are_padded_to_the_granularity_of_their_kind)
{
    static const struct {
        quire_cuda_page_kind page_kind;
        uint64_t page, padded;
    } cases[] = {
        {QUIRE_CUDA_DEVICE, 64 * KIB, 64 * KIB},   {QUIRE_CUDA_COMPRESSED, 64 * KIB, 1 * MIB},
        {QUIRE_CUDA_REGISTERED, 4 * MIB, 4 * MIB}, {QUIRE_CUDA_HOST_NUMA, 64 * KIB, 8 * MIB},
        {QUIRE_CUDA_PINNED, 64 * KIB, 64 * KIB},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cuda_bench b;
        fc_model model = *fc_model_named("h200");
        model.granularity = 64 * KIB;
        model.compressed_granularity = MIB;
        if (cases[i].page_kind == QUIRE_CUDA_REGISTERED) /* device pages are RDMA-capable as well */
            model.rdma_granularity = 4 * MIB;
        model.host_granularity = 8 * MIB;
        const fc_options driver = {.models = {&model}};
        const quire_cuda_settings settings = {.kinds = cuda_bench_kinds(&model)};
        quire_memory *memory = begin(&b, &driver, &settings, cases[i].page_kind,
                                     &(quire_memory_options){.pages = {.page_size = 1}});
        quire_allocation a = cuda_bench_allocate(memory, 100);
        quire_cuda_range range = cuda_bench_range(memory, a);
        quire_page_info page;
        CHECK_OK(quire_page_get_info(memory, 0, &page));
        CHECK_EQ(range.page_size, cases[i].page);
        CHECK_EQ(range.padded_size, cases[i].padded);
        CHECK_EQ(page.size, cases[i].padded); /* all of the page is usable */
        CHECK_EQ(page.address, range.page_address);
        cuda_bench_end(&b);
    }
}

CUDA_UNIT_EACH(cuda_memory, the_recommended_granularity_is_used_where_it_is_wanted, wanted, 2)
{
    quire_cuda_kind_info kind;
    fc_options driver = cuda_bench_options("orin", 0);
    const quire_cuda_settings settings = {.recommended_granularity = wanted};
    cuda_bench_begin(b, &driver);
    CHECK(cuda_bench_open(b, &settings));
    CHECK_OK(quire_cuda_get_kind_info(b->device, 0, &kind));
    CHECK_EQ(kind.granularity, wanted ? 2 * MIB : 64 * KIB);
    CHECK_EQ(kind.recommended, 2 * MIB);
}

/* ---- chunks --------------------------------------------------------------------------------- */

CUDA_UNIT(cuda_memory, a_page_is_made_of_chunks_and_gets_access_once)
{
    quire_memory *memory =
        begin(b, NULL, &(quire_cuda_settings){.kinds = CUDA_KIND(DEVICE), .chunk_size = 5 * MIB},
              QUIRE_CUDA_DEVICE, &(quire_memory_options){.pages = {.page_size = 20 * MIB}});
    quire_allocation a = cuda_bench_allocate(memory, 20 * MIB);
    quire_cuda_range range = cuda_bench_range(memory, a);
    CHECK_EQ(range.handle_count, 4); /* of 6, 6, 6 and 2 MiB */
    CHECK_EQ(range.chunk_size, 6 * MIB);
    CHECK_EQ(b->fc->calls("cuMemCreate"), 4);
    CHECK_EQ(b->fc->calls("cuMemMap"), 4);
    CHECK_EQ(b->fc->calls("cuMemSetAccess"), 1);
    CHECK_EQ(b->fc->calls("cuMemAddressReserve"), 1);
    char in[200], out[200] = {0};
    memset(in, 9, sizeof in); /* across the border of two chunks */
    CHECK_OK(quire_write(memory, a, 6 * MIB - 100, in, sizeof in));
    CHECK_OK(quire_read(memory, a, 6 * MIB - 100, out, sizeof out));
    CHECK(!memcmp(in, out, sizeof in));
}

/* In one call, or mapping by mapping where the driver takes no more. */
CUDA_UNIT_EACH(cuda_memory, a_page_of_chunks_is_unmapped_in_one_call, one, 2)
{
    fc_options driver = cuda_bench_options(NULL, one ? FC_UNMAPS_ONE : 0);
    quire_memory *memory =
        begin(b, &driver, &(quire_cuda_settings){.kinds = CUDA_KIND(DEVICE), .chunk_size = 2 * MIB},
              QUIRE_CUDA_DEVICE, &(quire_memory_options){.pages = {.page_size = 16 * MIB}});
    CHECK_OK(quire_free(memory, cuda_bench_allocate(memory, 100)));
    CHECK_EQ(b->fc->live(FC_MAPPING), 8);
    trim(memory);
    CHECK_EQ(b->fc->calls("cuMemUnmap"), one ? 1 + 8 : 1);
    CHECK_EQ(b->fc->live(FC_MAPPING), 0);
    CHECK_EQ(b->fc->live(FC_RESERVATION), 0);
}

/* An allocation may lie across handles of an elastic page, so the page is not exported. */
CUDA_UNIT(cuda_memory, an_allocation_may_lie_across_handles)
{
    const quire_memory_options elastic = {
        .elastic = true, .address_space = 256 * MIB, .pages = {.page_size = 4 * MIB}};
    int descriptor = 5;
    quire_memory *memory = begin(b, NULL, NULL, QUIRE_CUDA_DEVICE, &elastic);
    (void)cuda_bench_allocate(memory, 3 * MIB);
    quire_allocation second = cuda_bench_allocate(memory, 3 * MIB);
    quire_cuda_range range = cuda_bench_range(memory, second);
    CHECK_EQ(range.handle_count, 2);
    CHECK_EQ(range.chunk_size, 4 * MIB);
    CHECK_EQ(range.page_size, 8 * MIB);
    CHECK_EQ(range.export_types, 0);
    CHECK(range.is_rdma_capable);
    CHECK_FAILS(quire_cuda_export_dma_buf(memory, second, &descriptor), QUIRE_ERROR_UNSUPPORTED);
    CHECK_EQ(descriptor, -1);
    CHECK_HAS(quire_last_error(), "quire_cuda_export_dma_buf_range");
    b->fc->reset_counters();
    CHECK_OK(quire_free(memory, second));
    (void)cuda_bench_allocate(memory, 3 * MIB); /* mapped memory is used again without a call */
    CHECK_EQ(b->fc->calls(NULL), 0);
}

/* ---- elastic memories ----------------------------------------------------------------------- */

enum { PLACES = 12 };

static quire_memory *begin_elastic(cuda_bench *b, const fc_options *driver,
                                   const quire_cuda_settings *settings, quire_allocation *made)
{
    const quire_memory_options options = {.elastic = true, .address_space = 256 * MIB};
    quire_memory *memory = begin(b, driver, settings, QUIRE_CUDA_DEVICE, &options);
    for (int i = 0; i < PLACES; i++) {
        made[i] = cuda_bench_allocate(memory, 2 * MIB);
        CHECK_OK(quire_fill(memory, made[i], &(quire_fill_options){.value = (uint8_t)i}, NULL));
    }
    return memory;
}

/* The first byte and the last one are those that begin_elastic wrote. */
static void check_place(quire_memory *memory, quire_allocation allocation, int i)
{
    uint8_t first = 99, last = 99;
    CHECK_OK(quire_read(memory, allocation, 0, &first, 1));
    CHECK_OK(quire_read(memory, allocation, 2 * MIB - 1, &last, 1));
    CHECK_EQ(first, i);
    CHECK_EQ(last, i);
}

/* The calls of the driver: for a new place, and for one whose memory is that of free chunks. */
CUDA_UNIT_EACH(cuda_memory, an_elastic_memory_moves_chunks, one_by_one, 2)
{
    quire_allocation made[PLACES];
    const fc_options driver =
        cuda_bench_options(NULL, one_by_one ? FC_UNMAPS_ONE | FC_ACCESS_ONE : 0);
    quire_memory *memory = begin_elastic(b, &driver, NULL, made);
    CHECK_EQ(b->fc->live(FC_MAPPING), PLACES);
    CHECK_EQ(b->fc->live(FC_RESERVATION), 1);
    for (int i = 0; i < PLACES; i += 2)
        CHECK_OK(quire_free(memory, made[i]));
    b->fc->reset_counters();
    quire_allocation large = cuda_bench_allocate(memory, 8 * MIB);
    CHECK_EQ(b->fc->calls("cuMemCreate"), 0);
    CHECK_EQ(b->fc->calls("cuMemRelease"), 0);
    CHECK_EQ(b->fc->calls("cuMemMap"), 4);
    CHECK_EQ(b->fc->calls("cuMemUnmap"), 4);
    CHECK_EQ(b->fc->calls("cuMemSetAccess"), one_by_one ? 5 : 1);
    CHECK_EQ(b->fc->usage_of(0).bytes, 24 * MIB);
    CHECK_OK(quire_fill(memory, large, &(quire_fill_options){.value = 55}, NULL));
    for (int i = 1; i < PLACES; i += 2)
        check_place(memory, made[i], i);
    CHECK_OK(quire_free(memory, large));
    CHECK_OK(quire_memory_trim(memory, 0, NULL));
    CHECK_EQ(b->fc->usage_of(0).bytes, 12 * MIB);
    for (int i = 1; i < PLACES; i += 2)
        check_place(memory, made[i], i);
}

/* Access that is set for an elastic page holds for memory that comes later, and its range is the
   chunk of the allocation. */
CUDA_UNIT(cuda_memory, an_elastic_memory_gives_access_to_what_comes)
{
    static const int peer = 1;
    quire_allocation made[PLACES];
    fc_options driver = cuda_bench_options(NULL, 0);
    driver.models[1] = driver.models[0] = fc_model_named("h200");
    driver.peers[0] = 2;
    driver.peers[1] = 1;
    quire_memory *memory =
        begin_elastic(b, &driver, &(quire_cuda_settings){.peers = &peer, .peer_count = 1}, made);
    quire_allocation large = cuda_bench_allocate(memory, 20 * MIB);
    quire_cuda_access access = {.location = QUIRE_CUDA_AT_DEVICE, .id = 1};
    CHECK_OK(quire_cuda_get_access(memory, large, &access));
    CHECK_EQ(access.flags, QUIRE_CUDA_READ_WRITE);
    quire_cuda_range range = cuda_bench_range(memory, large);
    CHECK_EQ(range.handle_count, PLACES + 10);
    CHECK_EQ(range.chunk_size, 2 * MIB);
    CHECK(range.handle != cuda_bench_range(memory, made[0]).handle);
}

CUDA_UNIT(cuda_memory, an_elastic_memory_that_is_nearly_full_refuses_nothing)
{
    const quire_memory_options options = {
        .elastic = true, .address_space = 4096 * MIB, .limit = CHURN_CHUNKS * 2 * MIB};
    elastic_churn(begin(b, NULL, NULL, QUIRE_CUDA_DEVICE, &options), 2 * MIB, 1000);
    CHECK(b->fc->usage_of(0).peak <= CHURN_CHUNKS * 2 * MIB);
}

static uint64_t kept(cuda_bench *b)
{
    quire_cuda_info info;
    CHECK_OK(quire_cuda_get_info(b->device, &info));
    return info.kept_bytes;
}

CUDA_UNIT(cuda_memory, handles_are_kept_for_further_pages)
{
    quire_memory *memory =
        begin(b, NULL,
              &(quire_cuda_settings){
                  .kinds = CUDA_KIND(DEVICE), .chunk_size = 2 * MIB, .kept_bytes = 6 * MIB},
              QUIRE_CUDA_DEVICE, &(quire_memory_options){.pages = {.page_size = 8 * MIB}});
    for (int i = 0; i < 5; i++) {
        CHECK_OK(quire_free(memory, cuda_bench_allocate(memory, 100)));
        trim(memory);
        CHECK_EQ(kept(b), 6 * MIB);
        CHECK_EQ(b->fc->live(FC_REFERENCE), 3);
    }
    CHECK_EQ(b->fc->calls("cuMemCreate"),
             4 + 4); /* 4 chunks at first, then each time the one that was not kept */
    quire_budget_info budget;
    CHECK_OK(quire_device_get_budget(b->device, 0, &budget));
    CHECK_EQ(budget.usage, 0); /* kept memory counts as available to us */
    CHECK_OK(quire_cuda_release_kept(b->device));
    CHECK_EQ(kept(b), 0);
    CHECK_EQ(b->fc->live(FC_REFERENCE), 0);
}

CUDA_UNIT(cuda_memory, kept_handles_are_given_back_before_memory_is_short)
{
    fc_model model = *fc_model_named("a100");
    model.bytes = 16 * MIB;
    const fc_options driver = {.models = {&model}};
    quire_memory *memory = begin(
        b, &driver, &(quire_cuda_settings){.kinds = CUDA_KIND(DEVICE), .kept_bytes = 16 * MIB},
        QUIRE_CUDA_DEVICE, &(quire_memory_options){.pages = {.page_size = 10 * MIB}});
    CHECK_OK(quire_free(memory, cuda_bench_allocate(memory, 100)));
    trim(memory);
    CHECK_EQ(kept(b), 10 * MIB);
    quire_allocation a;
    CHECK_OK(quire_allocate(memory,
                            &(quire_allocation_options){.size = 12 * MIB, .dedicated = true}, &a));
    CHECK_EQ(kept(b), 0);
}

/* The pages that need the memory are of another kind, which has no handles. */
CUDA_UNIT_EACH(cuda_memory, kept_handles_are_given_back_to_other_kinds_as_well, i, 2)
{
    static const quire_cuda_page_kind kinds[] = {QUIRE_CUDA_PLAIN, QUIRE_CUDA_POOL};
    cuda_bench_begin(b, NULL);
    CHECK(cuda_bench_open(
        b, &(quire_cuda_settings){.kinds = CUDA_KIND(DEVICE) | QUIRE_CUDA_KIND_BIT(kinds[i]),
                                  .kept_bytes = 16 * MIB}));
    quire_memory *memory = cuda_bench_memory(b, QUIRE_CUDA_DEVICE, &SMALL);
    CHECK_OK(quire_free(memory, cuda_bench_allocate(memory, 10 * MIB)));
    CHECK_OK(quire_memory_trim(memory, 0, NULL));
    CHECK_EQ(kept(b), 10 * MIB);
    b->fc->set_capacity(0, 16 * MIB);
    cuda_bench_allocate(cuda_bench_memory(b, kinds[i], &SMALL), 12 * MIB);
    CHECK_EQ(kept(b), 0);
}

/* ---- what is granted ------------------------------------------------------------------------ */

CUDA_UNIT_EACH(cuda_memory, compression_is_told_as_it_was_granted, grants, 2)
{
    fc_model model = *fc_model_named("a100");
    model.features &= grants ? ~UINT32_C(0) : ~FC_COMPRESSES;
    const fc_options driver = {.models = {&model}};
    quire_memory *memory = begin(b, &driver, &(quire_cuda_settings){.kinds = CUDA_KIND(COMPRESSED)},
                                 QUIRE_CUDA_COMPRESSED, &SMALL);
    CHECK_EQ(cuda_bench_range(memory, cuda_bench_allocate(memory, 100)).is_compressed, grants);
}

UNIT(cuda_memory, pages_for_hardware_decompression_are_granted_or_refused)
{
    static const struct {
        const char *model;
        quire_result result;
    } cases[] = {{"gh200", QUIRE_SUCCESS}, {"a100", QUIRE_ERROR_UNSUPPORTED}};
    for (int i = 0; i < 2; i++) {
        cuda_bench b;
        quire_allocation a;
        fc_options driver = cuda_bench_options(cases[i].model, 0);
        quire_memory *memory =
            begin(&b, &driver, &(quire_cuda_settings){.hardware_decompression = true},
                  QUIRE_CUDA_DEVICE, &SMALL);
        quire_result result = quire_allocate(memory, &(quire_allocation_options){.size = 100}, &a);
        CHECK_EQ(result, cases[i].result);
        if (!result)
            CHECK(cuda_bench_range(memory, a).is_decompressible);
        cuda_bench_end(&b);
    }
    cuda_bench b;
    fc_options driver = cuda_bench_options("vgpu", 0);
    cuda_bench_begin(&b, &driver);
    CHECK(!cuda_bench_open(&b, &(quire_cuda_settings){.hardware_decompression = true}));
    CHECK_EQ(b.result, QUIRE_ERROR_UNSUPPORTED);
    cuda_bench_end(&b);
}

/* Pages for registration: one handle whatever the chunk size, exportable, RDMA-capable. */
CUDA_UNIT(cuda_memory, pages_for_registration_are_one_exportable_handle)
{
    fc_model model = *fc_model_named("h200");
    model.granularity = 64 * KIB;
    model.recommended = 2 * MIB;
    const fc_options driver = {.models = {&model}};
    quire_memory *memory = begin(
        b, &driver, &(quire_cuda_settings){.kinds = CUDA_KIND(REGISTERED), .chunk_size = 64 * KIB},
        QUIRE_CUDA_REGISTERED, &(quire_memory_options){.pages = {.page_size = 3 * MIB}});
    quire_cuda_range range = cuda_bench_range(memory, cuda_bench_allocate(memory, 100));
    CHECK_EQ(range.handle_count, 1);
    CHECK_EQ(range.padded_size, 4 * MIB);
    CHECK_EQ(range.page_address % (2 * MIB), 0);
    CHECK(range.is_rdma_capable);
    CHECK_EQ(range.export_types, QUIRE_CUDA_FD);
}

/* ---- alignment, host memory, images ---------------------------------------------------------- */

UNIT(cuda_memory, pages_of_every_kind_are_as_aligned_as_asked)
{
    for (int i = 0; i < QUIRE_CUDA_TILES; i++) { /* which have no addresses */
        cuda_bench b;
        const quire_memory_options options = {.fit.max_alignment = 64 * MIB,
                                              .pages = {.page_size = 2 * MIB}};
        quire_allocation a;
        quire_memory *memory = begin(
            &b, NULL, &(quire_cuda_settings){.kinds = cuda_bench_kinds(fc_model_named("h200"))},
            (quire_cuda_page_kind)i, &options);
        CHECK_OK(quire_allocate(
            memory, &(quire_allocation_options){.size = MIB, .alignment = 64 * MIB}, &a));
        CHECK_EQ(cuda_bench_range(memory, a).address % (64 * MIB), 0);
        cuda_bench_end(&b);
    }
}

CUDA_UNIT_EACH(cuda_memory, host_pages_have_one_address_for_host_and_device, i, 5)
{
    static const quire_cuda_page_kind kinds[] = {QUIRE_CUDA_PINNED, QUIRE_CUDA_COMBINED,
                                                 QUIRE_CUDA_HOST_NUMA, QUIRE_CUDA_HOST,
                                                 QUIRE_CUDA_MANAGED};
    void *mapped = NULL;
    unsigned char seen[64];
    quire_memory *memory =
        begin(b, NULL, &(quire_cuda_settings){.kinds = cuda_bench_kinds(fc_model_named("h200"))},
              kinds[i], &SMALL);
    quire_allocation a = cuda_bench_allocate(memory, 64);
    quire_cuda_range range = cuda_bench_range(memory, a);
    CHECK_OK(quire_map(memory, a, &mapped));
    CHECK(mapped == range.host && (uintptr_t)mapped == range.address);
    memset(mapped, 0x5b, 64);
    cuda_bench_enter(b->device);
    CHECK_EQ(CUDA_BENCH_CALL(b, MemcpyDtoH, 3020)(seen, range.address, 64), 0);
    cuda_bench_leave();
    CHECK(!memcmp(mapped, seen, 64));
    CHECK_OK(quire_unmap(memory, a));
}

CUDA_UNIT(cuda_memory, images_are_pitched_as_textures_want_them)
{
    quire_image image;
    quire_image_info info;
    fc_model model = *fc_model_named("h200");
    model.texture_alignment = 1024;
    model.pitch_alignment = 128;
    const fc_options driver = {.models = {&model}};
    quire_memory *memory = begin(b, &driver, NULL, QUIRE_CUDA_DEVICE, &SMALL);
    cuda_bench_allocate(memory, 100);
    CHECK_OK(quire_image_create(
        memory, &(quire_image_options){.width = 33, .height = 5, .depth = 3}, &image));
    CHECK_OK(quire_image_get_info(memory, image, &info));
    CHECK_EQ(info.row_pitch, 128);
    CHECK_EQ(info.slice_pitch, 5 * 128);
    CHECK_EQ(cuda_bench_range(memory, image.allocation).address % 1024, 0);
}

/* ---- budgets -------------------------------------------------------------------------------- */

CUDA_UNIT(cuda_memory, what_others_have_is_taken_into_account)
{
    quire_allocation a;
    quire_budget_info budget;
    fc_model model = *fc_model_named("a100");
    model.bytes = 100 * MIB;
    const fc_options driver = {.models = {&model}};
    quire_memory *memory = begin(b, &driver, NULL, QUIRE_CUDA_DEVICE,
                                 &(quire_memory_options){.pages = {.page_size = 10 * MIB}});
    a = cuda_bench_allocate(memory, 100);
    b->fc->set_others(0, 70 * MIB);
    CHECK_OK(quire_device_get_budget(b->device, 0, &budget));
    CHECK_EQ(budget.size, 100 * MIB);
    CHECK_EQ(budget.reserved, 10 * MIB);
    CHECK_EQ(budget.usage, 80 * MIB);
    CHECK_EQ(budget.available, 20 * MIB);
    const quire_allocation_options more = {.size = 22 * MIB, .dedicated = true};
    uint64_t calls = b->fc->calls("cuMemCreate");
    CHECK_FAILS(quire_allocate(memory, &more, &a), QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_HAS(quire_last_error(), "CUDA_ERROR_OUT_OF_MEMORY"); /* the driver decides */
    CHECK_EQ(b->fc->calls("cuMemCreate"), calls + 1);
    quire_memory *strict;
    CHECK_OK(quire_memory_create(
        b->device, &(quire_memory_options){.kind.mask = 1, .within_budget = true}, &strict));
    CHECK_FAILS(quire_allocate(strict, &more, &a), QUIRE_ERROR_OVER_BUDGET);
    CHECK_EQ(b->fc->calls("cuMemCreate"), calls + 1);
    CHECK_OK(quire_memory_destroy(&strict));
}

/* ---- ends that fail half way ----------------------------------------------------------------- */

/* Returns the first documented code that does not mean that the driver is gone. */
static qi_cu_result passing_code(const fc_control *fc, const char *function)
{
    qi_cu_result codes[16];
    uint32_t count = fc->codes(function, codes, 16);
    for (uint32_t i = 0; i < count; i++)
        if (codes[i] == QI_CUDA_ERROR_INVALID_VALUE || codes[i] == QI_CUDA_ERROR_NOT_INITIALIZED ||
            codes[i] == QI_CUDA_ERROR_OUT_OF_MEMORY)
            return codes[i];
    check_failed(__FILE__, __LINE__, "%s fails in no passing way", function);
}

/*
 * Each step of the destruction fails for a while; the page is destroyed once the driver permits it.
 */
CUDA_UNIT_EACH(cuda_memory, a_page_whose_end_failed_is_gone_on_with, i, 5)
{
    static const char *const steps[] = {"cuCtxPushCurrent", "cuCtxSynchronize", "cuMemUnmap",
                                        "cuMemRelease", "cuMemAddressFree"};
    const quire_cuda_settings settings = {.wait_before_release = true};
    quire_memory *memory = begin(b, NULL, &settings, QUIRE_CUDA_DEVICE, &SMALL);
    quire_allocation a = cuda_bench_allocate(memory, 100);
    CHECK_OK(quire_free(memory, a));
    const fc_fault fault = {.function = steps[i],
                            .call = 1,
                            .from_then = true,
                            .result = passing_code(b->fc, steps[i])};
    CHECK(b->fc->fail(&fault));
    trim(memory);
    CHECK(b->fc->failed().times > 0);
    CHECK_EQ(b->fc->live(FC_RESERVATION), 1);
    b->fc->heal();
    a = cuda_bench_allocate(memory, 100); /* retries it first */
    CHECK_EQ(b->fc->live(FC_RESERVATION), 1);
    CHECK_EQ(b->fc->live(FC_MEMORY), 1);
    CHECK_OK(quire_free(memory, a));
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
    quire_memory *memory = begin(b, &driver, NULL, QUIRE_CUDA_DEVICE, &SMALL);
    quire_allocation a = cuda_bench_allocate(memory, 100), other = cuda_bench_allocate(memory, 100);
    CHECK_EQ(access_of(memory, a, QUIRE_CUDA_AT_DEVICE, 0), QUIRE_CUDA_READ_WRITE);
    CHECK_EQ(access_of(memory, a, QUIRE_CUDA_AT_DEVICE, 1), QUIRE_CUDA_NO_ACCESS);
    const quire_cuda_access both[] = {{QUIRE_CUDA_AT_DEVICE, 0, QUIRE_CUDA_READ},
                                      {QUIRE_CUDA_AT_DEVICE, 1, QUIRE_CUDA_READ_WRITE}};
    CHECK_OK(quire_cuda_set_access(memory, a, both, 2));
    CHECK_EQ(access_of(memory, other, QUIRE_CUDA_AT_DEVICE, 0), QUIRE_CUDA_READ);
    CHECK_EQ(access_of(memory, other, QUIRE_CUDA_AT_DEVICE, 1), QUIRE_CUDA_READ_WRITE);
    CHECK_OK(quire_read(memory, a, 0, &byte, 1));
    CHECK_FAILS(quire_write(memory, a, 0, &byte, 1),
                QUIRE_ERROR_INVALID_ARGUMENT); /* the page is read-only now */
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
    quire_memory *memory =
        begin(&b, &driver, &(quire_cuda_settings){.peers = &peer, .peer_count = 1},
              QUIRE_CUDA_DEVICE, &SMALL);
    quire_allocation a = cuda_bench_allocate(memory, 100);
    CHECK_EQ(access_of(memory, a, QUIRE_CUDA_AT_DEVICE, 1), QUIRE_CUDA_READ_WRITE);
    CHECK_EQ(b.fc->calls("cuMemSetAccess"), 1);
    cuda_bench_end(&b);
    const struct {
        const int32_t *peers;
        uint32_t count;
        quire_result code;
        const char *words;
    } wrong[] = {{both, 2, QUIRE_ERROR_UNSUPPORTED, "device 2 cannot reach device 0"},
                 {&none, 1, QUIRE_ERROR_UNSUPPORTED, "7"},
                 {&self, 1, QUIRE_ERROR_INVALID_ARGUMENT, "0"}};
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
    quire_memory *memory = begin(b, &driver, NULL, QUIRE_CUDA_DEVICE, &SMALL);
    quire_memory *pinned = cuda_bench_memory(b, QUIRE_CUDA_PINNED, &SMALL);
    quire_allocation a = cuda_bench_allocate(memory, 100);
    const quire_cuda_access host = {QUIRE_CUDA_AT_HOST, 0, QUIRE_CUDA_READ};
    const quire_cuda_access stranger[] = {{QUIRE_CUDA_AT_DEVICE, 1, QUIRE_CUDA_READ},
                                          {QUIRE_CUDA_AT_DEVICE, 2, QUIRE_CUDA_READ}};
    CHECK_FAILS(quire_cuda_set_access(memory, a, &host, 1), QUIRE_ERROR_UNSUPPORTED);
    CHECK_FAILS(quire_cuda_set_access(memory, a, stranger, 2), QUIRE_ERROR_UNSUPPORTED);
    CHECK_EQ(access_of(memory, a, QUIRE_CUDA_AT_DEVICE, 1), QUIRE_CUDA_NO_ACCESS);
    static const uint32_t counts[] = {0, QUIRE_CUDA_MAX_ACCESSES + 1};
    for (int i = 0; i < 2; i++) { /* refused before the list is read */
        CHECK_FAILS(quire_cuda_set_access(memory, a, &host, counts[i]),
                    QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK_HAS(quire_last_error(), "are possible");
    }
    quire_allocation p = cuda_bench_allocate(pinned, 100);
    quire_cuda_access own = {QUIRE_CUDA_AT_DEVICE, 0, QUIRE_CUDA_READ};
    CHECK_FAILS(quire_cuda_set_access(pinned, p, &own, 1), QUIRE_ERROR_UNSUPPORTED);
    CHECK_FAILS(quire_cuda_get_access(pinned, p, &own), QUIRE_ERROR_UNSUPPORTED);
    CHECK_OK(quire_free(memory, a));
    CHECK_FAILS(quire_cuda_set_access(memory, a, &own, 1), QUIRE_ERROR_STALE_HANDLE);
}
