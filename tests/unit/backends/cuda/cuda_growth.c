/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* cuda_growth.c - pages of the CUDA backend that grow in place, on the fake driver: contents, calls
   of the driver, released memory, and access. */
#include <pthread.h>

#include "backends/cuda/access.h"
#include "tests/support/cuda_growing.h"
#include "tests/support/random.h"
#include "tests/support/unit.h"

#define UNSUPPORTED QUIRE_ERROR_UNSUPPORTED

/* ---- what is offered ------------------------------------------------------------------------ */

UNIT(cuda_growth, kinds_of_virtual_memory_management_grow)
{
    static const char *const models[] = {"h200", "a100", "orin", "gh200", "vgpu"};
    for (int m = 0; m < 5; m++) {
        growing g;
        quire_device_info info;
        fc_options driver = cuda_bench_options(models[m], 0);
        const quire_cuda_settings settings = {.kinds = cuda_bench_kinds(driver.models[0])};
        growing_open(&g, &driver, &settings);
        CHECK_OK(quire_device_get_info(g.b.device, &info));
        CHECK(g.table->features & QUIRE_BACKEND_ELASTIC);
        for (uint32_t i = 0; i < info.kind_count; i++) {
            quire_cuda_kind_info kind;
            CHECK_OK(quire_cuda_get_kind_info(g.b.device, i, &kind));
            bool grows = kind.is_virtual_memory && kind.page_kind != QUIRE_CUDA_REGISTERED;
            CHECK_EQ(info.limits.elastic_kinds >> i & 1, grows);
        }
        CHECK_EQ(info.limits.elastic_kinds != 0, m != 4);
        cuda_bench_end(&g.b);
    }
}

UNIT(cuda_growth, what_cannot_grow_is_refused_and_leaves_nothing)
{
    static const quire_cuda_page_kind kinds[] = {QUIRE_CUDA_PLAIN, QUIRE_CUDA_PINNED,
                                                 QUIRE_CUDA_MANAGED, QUIRE_CUDA_REGISTERED,
                                                 QUIRE_CUDA_TILES};
    growing g;
    quire_native_page none;
    const quire_cuda_settings settings = {.kinds = cuda_bench_kinds(fc_model_named("h200")) |
                                                   CUDA_KIND(TILES)};
    growing_open(&g, NULL, &settings);
    for (int i = 0; i < 5; i++) {
        quire_page_request request = growing_request(g.b.device, kinds[i], 2 * MIB, 4 * MIB);
        CHECK_FAILS(g.table->page_create(g.cuda, &request, &none), UNSUPPORTED);
        CHECK_HAS(quire_last_error(), "cannot be elastic");
    }
    quire_page_request request = growing_request(g.b.device, QUIRE_CUDA_DEVICE, 2 * MIB, 4 * MIB);
    request.exportable = true;
    CHECK_FAILS(g.table->page_create(g.cuda, &request, &none), UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "cannot be exported");
    const quire_cuda_import import = {.type = QUIRE_CUDA_IMPORT_FD, .size = 2 * MIB};
    request.exportable = false;
    request.description = &import;
    CHECK_FAILS(g.table->page_create(g.cuda, &request, &none), UNSUPPORTED);
    request.description = NULL;
    request.size = 0;
    request.chunk = UINT64_C(1) << 40;
    request.max_size = UINT64_C(1) << 60;
    CHECK_FAILS(g.table->page_create(g.cuda, &request, &none), QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_EQ(g.fc->live(FC_RESERVATION) + g.fc->live(FC_MEMORY), 0);
    cuda_bench_end(&g.b);
}

GROWING_UNIT_ON(cuda_growth, addresses_are_reserved_for_the_most_and_mapped_as_far_as_used,
                growing_open(g, NULL, NULL))
{
    quire_page_request request =
        growing_request(g->b.device, QUIRE_CUDA_DEVICE, 4 * MIB, 1024 * MIB);
    request.alignment = 64 * MIB;
    request.chunk = 4 * MIB;
    g->fc->reset_counters();
    CHECK_OK(g->table->page_create(g->cuda, &request, &g->page));
    CHECK_EQ(g->fc->calls(NULL), 9);
    static const char *const calls[] = {"cuMemCreate", "cuMemGetAllocationPropertiesFromHandle",
                                        "cuMemAddressReserve", "cuMemMap", "cuMemSetAccess"};
    for (int i = 0; i < 5; i++)
        CHECK_EQ(g->fc->calls(calls[i]), 1);
    CHECK_EQ(g->page.size, 1024 * MIB);
    CHECK_EQ(g->page.address % (64 * MIB), 0);
    CHECK_EQ(g->fc->usage_of(0).bytes, 4 * MIB);
    growing_check_handles(g, 4 * MIB, 1);
}

/* ---- growing -------------------------------------------------------------------------------- */

GROWING_UNIT_ON(cuda_growth, bytes_stay_where_they_are_and_new_ones_serve,
                growing_begin(g, NULL, 2 * MIB, 16 * MIB))
{
    growing_write(g, 0, 2 * MIB);
    for (uint64_t to = 4 * MIB; to <= 16 * MIB; to += 2 * MIB) {
        CHECK_OK(growing_resize(g, to));
        growing_write(g, to - 2 * MIB, to);
        growing_check(g, 0, to);
        CHECK_EQ(g->fc->usage_of(0).bytes, to);
    }
    growing_check_handles(g, 16 * MIB, 8);                            /* the maximum size */
    CHECK_OK(g->table->fill_page(g->cuda, &g->page, 0, 16 * MIB, 7)); /* across all chunk borders */
}

GROWING_UNIT(cuda_growth, a_span_is_a_handle_for_each_chunk_and_one_call_for_access)
{
    growing_begin(g, &(quire_cuda_settings){.chunk_size = 128 * MIB}, 128 * MIB, 1024 * MIB);
    CHECK_OK(growing_resize(g, 512 * MIB));
    static const char *const calls[] = {"cuMemCreate", "cuMemGetAllocationPropertiesFromHandle",
                                        "cuMemMap"};
    for (int i = 0; i < 3; i++)
        CHECK_EQ(g->fc->calls(calls[i]), 3);
    CHECK_EQ(g->fc->calls("cuMemSetAccess"), 1);
    CHECK_EQ(g->fc->calls(NULL), 14); /* and those that change context and capture mode and back */
    growing_check_handles(g, 512 * MIB, 4);
}

/* Spans that do not touch have one call for access each. */
GROWING_UNIT(cuda_growth, spans_are_backed_and_unbacked_in_one_call)
{
    static const quire_span odd[] = {{2 * MIB, 2 * MIB}, {6 * MIB, 4 * MIB}, {14 * MIB, 2 * MIB}};
    growing_begin(g, NULL, 0, 16 * MIB);
    CHECK_EQ(g->fc->usage_of(0).bytes, 0);
    CHECK_OK(g->table->page_back(g->cuda, &g->page, odd, 3));
    CHECK_EQ(g->fc->calls("cuMemCreate"), 4);
    CHECK_EQ(g->fc->calls("cuMemSetAccess"), 3);
    CHECK_EQ(growing_record(g)->padded, 8 * MIB);
    for (int i = 0; i < 3; i++)
        growing_write(g, odd[i].offset, odd[i].offset + odd[i].size);
    g->fc->reset_counters();
    g->table->page_unback(g->cuda, &g->page, odd, 2, false);
    CHECK_EQ(g->fc->calls("cuMemUnmap"), 2);
    CHECK_EQ(g->fc->calls("cuMemRelease"), 3);
    CHECK_EQ(g->fc->usage_of(0).bytes, 2 * MIB);
    growing_check(g, 14 * MIB, 16 * MIB);
}

/* The device reports one page granularity; a kind may have a coarser one. */
GROWING_UNIT(cuda_growth, the_coarsest_kind_sets_the_granularity)
{
    quire_device_info info;
    fc_model model = *fc_model_named("h200");
    model.granularity = 64 * KIB;
    model.host_granularity = 8 * MIB;
    const fc_options driver = {.models = {&model}};
    const quire_cuda_settings settings = {.kinds = CUDA_KIND(DEVICE) | CUDA_KIND(HOST_NUMA)};
    growing_begin_with(g, &driver, &settings, QUIRE_CUDA_HOST_NUMA, 8 * MIB, 16 * MIB);
    CHECK_OK(quire_device_get_info(g->b.device, &info));
    CHECK_EQ(info.limits.page_granularity, 64 * KIB);
    CHECK_EQ(info.limits.elastic_granularity, 8 * MIB);
    CHECK_OK(growing_resize(g, 16 * MIB));
    void *mapped = NULL;
    CHECK_OK(g->table->map(g->cuda, &g->page, &mapped));
    memset((char *)mapped, 3, 16 * MIB); /* the host reaches the added memory */
}

GROWING_UNIT(cuda_growth, more_than_there_is_is_refused)
{
    fc_model model = *fc_model_named("a100");
    model.bytes = 16 * MIB;
    const fc_options driver = {.models = {&model}};
    growing_begin_with(g, &driver, NULL, QUIRE_CUDA_DEVICE, 2 * MIB, 64 * MIB);
    CHECK_FAILS(growing_resize(g, 32 * MIB), QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_EQ(g->fc->calls("cuMemCreate"), 0); /* known before */
    g->fc->set_others(0, 10 * MIB);
    CHECK_FAILS(growing_resize(g, 16 * MIB), QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    growing_check_handles(g, 2 * MIB, 1);
    CHECK_OK(growing_resize(g, 6 * MIB));
}

/* ---- becoming smaller ----------------------------------------------------------------------- */

GROWING_UNIT(cuda_growth, what_lies_behind_the_new_end_is_given_back)
{
    growing_begin(g, &(quire_cuda_settings){.chunk_size = 2 * MIB}, 16 * MIB, 16 * MIB);
    growing_write(g, 0, 16 * MIB);
    g->fc->reset_counters();
    CHECK_OK(growing_resize(g, 6 * MIB));
    CHECK_EQ(g->fc->calls("cuMemUnmap"), 1);
    CHECK_EQ(g->fc->calls("cuMemRelease"), 5);
    CHECK_EQ(g->fc->calls(NULL), 10); /* and those that change context and capture mode and back */
    CHECK_EQ(g->fc->usage_of(0).bytes, 6 * MIB);
    CHECK_EQ(g->fc->live(FC_RESERVATION), 1);
    growing_check_handles(g, 6 * MIB, 3);
    CHECK_OK(growing_resize(g, 12 * MIB));
    growing_write(g, 6 * MIB, 12 * MIB);
    growing_check(g, 0, 12 * MIB);
    growing_check_handles(g, 12 * MIB, 6);
}

GROWING_UNIT(cuda_growth, handles_are_kept_and_used_by_the_next_growth)
{
    quire_cuda_info info;
    growing_begin(g, &(quire_cuda_settings){.chunk_size = 2 * MIB, .kept_bytes = 8 * MIB}, 2 * MIB,
                  64 * MIB);
    CHECK_OK(growing_resize(g, 10 * MIB));
    CHECK_EQ(g->fc->calls("cuMemCreate"), 4);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(growing_resize(g, 2 * MIB));
        CHECK_OK(quire_cuda_get_info(g->b.device, &info));
        CHECK_EQ(info.kept_bytes, 8 * MIB);
        CHECK_OK(growing_resize(g, 10 * MIB));
    }
    CHECK_EQ(g->fc->calls("cuMemCreate"), 4);
    CHECK_EQ(g->fc->calls("cuMemRelease"), 0);
}

/* The fake driver adds a message if work uses memory that is unmapped. */
GROWING_UNIT_EACH(cuda_growth, running_work_is_waited_for_on_request, waits, 2)
{
    uint64_t stream = 0;
    fc_options driver = cuda_bench_options(NULL, FC_LATE);
    growing_begin_with(g, &driver, &(quire_cuda_settings){.wait_before_release = waits},
                       QUIRE_CUDA_DEVICE, 2 * MIB, 8 * MIB);
    CHECK_OK(growing_resize(g, 4 * MIB));
    CHECK_OK(g->table->stream_create(g->cuda, NULL, &stream));
    CHECK_OK(g->table->stream_fill(g->cuda, stream, &g->page, 2 * MIB, 4096, 1));
    CHECK(g->fc->pending() > 0);
    CHECK_OK(growing_resize(g, 2 * MIB));
    g->fc->advance(100);
    CHECK_EQ(g->fc->message_count() > 0, !waits); /* the caller must wait otherwise */
    g->fc->forget();
    g->table->stream_destroy(g->cuda, stream);
}

/* Memory that moves within a page creates and releases no handle, whatever is kept. */
GROWING_UNIT(cuda_growth, memory_moves_with_its_handles)
{
    static const quire_span from[] = {{0, 2 * MIB}, {4 * MIB, 2 * MIB}, {8 * MIB, 2 * MIB}};
    static const quire_span to = {20 * MIB, 8 * MIB};
    growing_begin(g, NULL, 12 * MIB, 32 * MIB);
    g->fc->reset_counters();
    g->table->page_unback(g->cuda, &g->page, from, 3, true);
    CHECK_EQ(g->fc->calls("cuMemRelease"), 0);
    CHECK_OK(g->table->page_back(g->cuda, &g->page, &to, 1));
    CHECK_EQ(g->fc->calls("cuMemCreate"), 1);
    CHECK_EQ(g->fc->calls("cuMemUnmap"), 3);
    CHECK_EQ(g->fc->calls("cuMemRelease"), 0);
    growing_write(g, 20 * MIB, 28 * MIB);
    growing_check(g, 20 * MIB, 28 * MIB);
    CHECK_EQ(g->fc->usage_of(0).bytes, 14 * MIB);
}

/* What the call that backs does not use, or what no call backs, is released. */
GROWING_UNIT(cuda_growth, memory_that_was_to_move_is_released_at_last)
{
    static const quire_span from = {0, 6 * MIB}, to = {20 * MIB, 2 * MIB};
    growing_begin(g, NULL, 12 * MIB, 32 * MIB);
    g->table->page_unback(g->cuda, &g->page, &from, 1, true);
    CHECK_OK(g->table->page_back(g->cuda, &g->page, &to, 1));
    CHECK_EQ(g->fc->usage_of(0).bytes, 8 * MIB);
    g->table->page_unback(g->cuda, &g->page, &to, 1, true);
    CHECK_EQ(g->fc->usage_of(0).bytes, 8 * MIB);
    g->table->page_unback(g->cuda, &g->page, NULL, 0, false);
    CHECK_EQ(g->fc->usage_of(0).bytes, 6 * MIB);
    g->table->page_unback(g->cuda, &g->page, &(quire_span){6 * MIB, 2 * MIB}, 1, true);
    CHECK_EQ(g->fc->usage_of(0).bytes, 6 * MIB); /* the page ends with it */
}

/* ---- chunks at random ----------------------------------------------------------------------- */

enum { PLACES = 64 };

/* Collects up to 8 random runs of places that are backed, or are not. Writes or clears them. */
static uint32_t choose_spans(test_random *random, bool places[PLACES], bool is_backed,
                             quire_span spans[8])
{
    uint32_t count = 0;
    for (uint64_t at = random_below(random, PLACES); at < PLACES && count < 8; at++) {
        uint64_t end = at;
        while (end < PLACES && places[end] == is_backed && random_below(random, 4))
            places[end++] = !is_backed;
        if (end > at)
            spans[count++] = (quire_span){at * 64 * KIB, (end - at) * 64 * KIB};
        at = end + random_below(random, 8);
    }
    return count;
}

static void check_places(growing *g, const bool places[PLACES])
{
    fc_address_info info;
    uint64_t count = 0;
    for (uint64_t i = 0; i < PLACES; i++) {
        count += places[i];
        CHECK_EQ(g->fc->address_of(g->page.address + i * 64 * KIB, &info), places[i]);
        if (places[i])
            growing_check(g, i * 64 * KIB, (i + 1) * 64 * KIB);
    }
    CHECK_EQ(growing_record(g)->padded, count * 64 * KIB);
    CHECK_EQ(growing_record(g)->chunk_count, count);
    CHECK_EQ(g->fc->live(FC_MAPPING), count);
}

/* Compares with a model of the backed places; every byte keeps its value. */
UNIT(cuda_growth, spans_come_and_go_at_random)
{
    for (uint32_t round = 0; round < 8; round++) {
        growing g;
        quire_span spans[8];
        test_random random = {round};
        bool places[PLACES] = {false};
        fc_model model = *fc_model_named("h200");
        model.granularity = 64 * KIB;
        const fc_options driver = {.models = {&model}, .flags = round & 2 ? FC_UNMAPS_ONE : 0};
        const quire_cuda_settings settings = {.kept_bytes = round % 2 * MIB};
        growing_begin_with(&g, &driver, &settings, QUIRE_CUDA_DEVICE, 0, PLACES * 64 * KIB);
        for (int i = 0; i < 60; i++) {
            bool backs = random_below(&random, 2);
            uint32_t count = choose_spans(&random, places, !backs, spans);
            if (count && backs)
                CHECK_OK(g.table->page_back(g.cuda, &g.page, spans, count));
            else if (count)
                g.table->page_unback(g.cuda, &g.page, spans, count, i % 2);
            if (i % 2 && !backs) /* nothing moves after all, now and then */
                g.table->page_unback(g.cuda, &g.page, NULL, 0, i % 3);
            for (uint32_t k = 0; backs && k < count; k++)
                growing_write(&g, spans[k].offset, spans[k].offset + spans[k].size);
            check_places(&g, places);
        }
        growing_end(&g);
    }
}

/* ---- the rules of other drivers ------------------------------------------------------------- */

static quire_result create(cuda_bench *b, uint64_t address_space, quire_memory **memory)
{
    const quire_memory_options options = {
        .elastic = true, .address_space = address_space, .pages.page_size = 2 * MIB};
    return quire_memory_create(b->device, &options, memory);
}

/* A driver that keeps memory, or needs an idle device, makes no elastic memory. */
UNIT_EACH(cuda_growth, rules_that_a_page_cannot_keep_are_refused_by_name, cuda_bench, b, i, 0, 2,
          (void)b, cuda_bench_end)
{
    static const quire_elastic_rules rules[] = {QUIRE_ELASTIC_KEEPS_MEMORY,
                                                QUIRE_ELASTIC_NEEDS_IDLE};
    static const uint32_t flags[] = {FC_KEEPS_MEMORY, FC_NEEDS_IDLE | FC_LATE};
    static const char *const names[] = {"QUIRE_ELASTIC_KEEPS_MEMORY", "QUIRE_ELASTIC_NEEDS_IDLE"};
    const fc_options driver = cuda_bench_options(NULL, flags[i]);
    quire_memory *memory = NULL;
    quire_device_info info;
    cuda_bench_begin(b, &driver);
    CHECK(cuda_bench_open(b, &(quire_cuda_settings){.elastic_rules = rules[i]}));
    CHECK_OK(quire_device_get_info(b->device, &info));
    CHECK_EQ(info.limits.elastic_rules, rules[i]);
    CHECK_FAILS(create(b, 64 * MIB, &memory), UNSUPPORTED);
    CHECK_HAS(quire_last_error(), names[i]);
    memory = cuda_bench_memory(b, QUIRE_CUDA_DEVICE, NULL); /* pages are no problem */
    CHECK_OK(quire_free(memory, cuda_bench_allocate(memory, MIB)));
    CHECK_OK(quire_memory_trim(memory, 0, NULL));
    CHECK_EQ(b->fc->usage_of(0).bytes, 0);
    CHECK_EQ(b->fc->message_count(), 0);
}

/* Handles are few: the chunks are so large that they suffice for all addresses. */
UNIT_ON(cuda_growth, chunks_are_no_more_than_there_are_handles, cuda_bench, b, (void)b,
        cuda_bench_end)
{
    fc_options driver = cuda_bench_options(NULL, FC_UNMAPS_ONE | FC_ACCESS_ONE);
    quire_memory *memory = NULL;
    driver.max_handles = 8;
    cuda_bench_begin(b, &driver);
    CHECK(cuda_bench_open(b, &(quire_cuda_settings){.max_chunks = 8}));
    CHECK_OK(create(b, 64 * MIB, &memory));
    for (int i = 0; i < 9; i++)
        CHECK_EQ(cuda_bench_range(memory, cuda_bench_allocate(memory, 7 * MIB)).chunk_size,
                 8 * MIB);
    CHECK_EQ(b->fc->live(FC_MEMORY), 8);
    quire_memory_destroy_all(&memory);
}

/* ---- access --------------------------------------------------------------------------------- */

/* Devices 0 and 1 can access each other. */
static fc_options two_devices(void)
{
    const fc_model *h200 = fc_model_named("h200");
    fc_options options = {.models = {h200, h200}, .peers = {0x2, 0x1}};
    return options;
}

/* Checks the bits of the devices that may read and write at an offset. */
static void check_access(growing *g, uint64_t offset, uint32_t read, uint32_t write)
{
    fc_address_info info = {.size = 0};
    CHECK(g->fc->address_of(g->page.address + offset, &info));
    CHECK_EQ(info.read, read);
    CHECK_EQ(info.write, write);
}

static quire_result set_access(growing *g, const quire_cuda_access *list, uint32_t count)
{
    CHECK_OK(qi_cuda_enter(g->cuda));
    quire_result result = qi_cuda_page_set_access(g->cuda, growing_record(g), list, count);
    qi_cuda_leave(g->cuda);
    return result;
}

GROWING_UNIT(cuda_growth, peers_reach_what_was_added)
{
    static const int32_t peer = 1;
    fc_options driver = two_devices();
    growing_begin_with(g, &driver, &(quire_cuda_settings){.peers = &peer, .peer_count = 1},
                       QUIRE_CUDA_DEVICE, 2 * MIB, 8 * MIB);
    CHECK_OK(growing_resize(g, 6 * MIB));
    CHECK_EQ(g->fc->calls("cuMemSetAccess"), 1);
    check_access(g, 0, 3, 3);
    check_access(g, 6 * MIB - 1, 3, 3);
}

GROWING_UNIT(cuda_growth, access_set_at_run_time_holds_for_what_is_added)
{
    static const quire_cuda_access both[] = {{QUIRE_CUDA_AT_DEVICE, 0, QUIRE_CUDA_READ},
                                             {QUIRE_CUDA_AT_DEVICE, 1, QUIRE_CUDA_READ_WRITE}};
    static const quire_cuda_access nobody[] = {{QUIRE_CUDA_AT_DEVICE, 0, QUIRE_CUDA_NO_ACCESS},
                                               {QUIRE_CUDA_AT_DEVICE, 1, QUIRE_CUDA_NO_ACCESS}};
    static const quire_cuda_access own = {QUIRE_CUDA_AT_DEVICE, 0, QUIRE_CUDA_READ_WRITE};
    fc_options driver = two_devices();
    growing_begin_with(g, &driver, NULL, QUIRE_CUDA_DEVICE, 2 * MIB, 16 * MIB);
    CHECK_OK(set_access(g, both, 2));
    CHECK_OK(growing_resize(g, 4 * MIB));
    check_access(g, 0, 3, 2);
    check_access(g, 4 * MIB - 1, 3, 2);
    CHECK_OK(set_access(g, nobody, 2));
    check_access(g, 2 * MIB, 0, 0); /* all mapped bytes */
    CHECK_OK(growing_resize(g, 6 * MIB));
    check_access(g, 4 * MIB, 0, 0);
    CHECK_OK(set_access(g, &own, 1));
    CHECK_OK(growing_resize(g, 8 * MIB));
    check_access(g, 0, 1, 1);
    check_access(g, 8 * MIB - 1, 1, 1);
}

GROWING_UNIT(cuda_growth, access_that_was_refused_is_not_given_later)
{
    static const quire_cuda_access peer = {QUIRE_CUDA_AT_DEVICE, 1, QUIRE_CUDA_READ};
    fc_options driver = two_devices();
    growing_begin_with(g, &driver, NULL, QUIRE_CUDA_DEVICE, 2 * MIB, 8 * MIB);
    CHECK(g->fc->fail(&(fc_fault){.function = "cuMemSetAccess", .call = 1}));
    CHECK(set_access(g, &peer, 1));
    g->fc->heal();
    CHECK_OK(growing_resize(g, 4 * MIB));
    check_access(g, 2 * MIB, 1, 1);
}

/* The host is one location, whichever node names it. */
GROWING_UNIT(cuda_growth, the_host_reaches_what_was_added_to_host_pages)
{
    static const quire_cuda_access reads = {QUIRE_CUDA_AT_HOST, 0, QUIRE_CUDA_READ};
    static const quire_cuda_access none = {QUIRE_CUDA_AT_HOST_NUMA, 0, QUIRE_CUDA_NO_ACCESS};
    fc_address_info info;
    growing_begin_with(g, NULL, &(quire_cuda_settings){.kinds = CUDA_KIND(HOST_NUMA)},
                       QUIRE_CUDA_HOST_NUMA, 2 * MIB, 16 * MIB);
    growing_write(g, 0, 2 * MIB);
    CHECK_OK(growing_resize(g, 4 * MIB));
    growing_write(g, 2 * MIB, 4 * MIB);
    CHECK_OK(set_access(g, &reads, 1));
    CHECK_OK(growing_resize(g, 6 * MIB));
    CHECK(g->fc->address_of(g->page.address + 4 * MIB, &info));
    CHECK(info.host_reads && !info.host_writes);
    growing_check(g, 0, 4 * MIB);
    CHECK_OK(set_access(g, &none, 1));
    CHECK_OK(growing_resize(g, 8 * MIB));
    CHECK(g->fc->address_of(g->page.address + 6 * MIB, &info));
    CHECK(!info.host_reads && !info.host_writes && info.read == 1);
}

static void *let_the_peer_write(void *user)
{
    const quire_cuda_access peer = {QUIRE_CUDA_AT_DEVICE, 1, QUIRE_CUDA_READ_WRITE};
    CHECK_OK(set_access(user, &peer, 1));
    return NULL;
}

/* Added memory gets the access that was set before, or that is set after it. */
GROWING_UNIT_EACH(cuda_growth, access_is_set_while_the_page_grows, round, 30)
{
    pthread_t thread;
    fc_options driver = two_devices();
    growing_begin_with(g, &driver, NULL, QUIRE_CUDA_DEVICE, 2 * MIB, 4 * MIB);
    g->fc->slow("cuMemSetAccess", 1000);
    CHECK_EQ(pthread_create(&thread, NULL, let_the_peer_write, g), 0);
    CHECK_OK(growing_resize(g, 4 * MIB));
    CHECK_EQ(pthread_join(thread, NULL), 0);
    check_access(g, 0, 3, 3);
    check_access(g, 2 * MIB, 3, 3);
}
