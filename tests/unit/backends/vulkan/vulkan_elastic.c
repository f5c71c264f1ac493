/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_elastic.c - elastic pages on the fake Vulkan driver, without the core: what a device
 * offers, calls of the driver, contents, failures, and binds that cannot be waited for.
 */
#include "backends/vulkan/elastic.h"
#include "tests/support/random.h"
#include "tests/support/unit.h"
#include "tests/support/vulkan_bench.h"

#define BLOCK UINT64_C(65536) /* block size of the fake driver */
#define UNSUPPORTED QUIRE_ERROR_UNSUPPORTED

enum { CHUNKS = 200 }; /* binds of four submissions */

typedef struct page_bench {
    vulkan_bench b;
    const quire_backend *table;
    qi_vulkan *vulkan;
    quire_native_page page; /* data 0: there is none */
} page_bench;

static void begin_with(page_bench *p, const char *layout, uint32_t flags)
{
    *p = (page_bench){0};
    vulkan_bench_start(&p->b, layout, flags);
    p->table = quire_device_backend(p->b.device);
    p->vulkan = quire_device_state(p->b.device);
    fv_reset_counters(p->b.driver);
}

static void end(page_bench *p)
{
    fv_heal(p->b.driver);
    if (p->page.data)
        p->table->page_destroy(p->vulkan, &p->page);
    vulkan_bench_end(&p->b);
}

/* Kind 0 of the layouts with this driver is device-local and not host-visible. */
static quire_page_request request_of(uint64_t first)
{
    return (quire_page_request){.size = first * BLOCK,
                                .max_size = CHUNKS * BLOCK,
                                .chunk = BLOCK,
                                .alignment = 1,
                                .label = "elastic"};
}

static quire_result make(page_bench *p, uint64_t first)
{
    const quire_page_request request = request_of(first);
    quire_result result = qi_vulkan_elastic_create(p->vulkan, &request, &p->page);
    fv_reset_counters(p->b.driver);
    return result;
}

static void begin(page_bench *p, uint64_t first)
{
    begin_with(p, NULL, 0);
    CHECK_OK(make(p, first));
}

#define CASE(name, first) UNIT_ON(vulkan_elastic, name, page_bench, p, begin(p, first), end)

static quire_result back(page_bench *p, uint64_t first, uint64_t count)
{
    const quire_span span = {first * BLOCK, count * BLOCK};
    return qi_vulkan_page_back(p->vulkan, &p->page, &span, 1);
}

static void unback(page_bench *p, uint64_t first, uint64_t count, bool moves)
{
    const quire_span span = {first * BLOCK, count * BLOCK};
    qi_vulkan_page_unback(p->vulkan, &p->page, &span, count ? 1 : 0, moves);
}

static const qi_vulkan_elastic *record(const page_bench *p)
{
    return qi_vulkan_page_of(&p->page)->elastic;
}

/* Bytes of the page on the driver. The staging ring is in another heap of the layout. */
static uint64_t bytes(page_bench *p)
{
    return fv_usage(p->b.driver, 0, 0).bytes;
}

static uint64_t calls(page_bench *p, const char *function)
{
    return fv_calls(p->b.driver, function);
}

static void write(page_bench *p, uint64_t chunk, uint32_t word)
{
    CHECK_OK(p->table->copy_to_page(p->vulkan, &p->page, chunk * BLOCK, &word, 4));
    word++;
    CHECK_OK(p->table->copy_to_page(p->vulkan, &p->page, (chunk + 1) * BLOCK - 4, &word, 4));
}

static void expect(page_bench *p, uint64_t chunk, uint32_t word)
{
    uint32_t first = 0, last = 0;
    CHECK_OK(p->table->copy_from_page(p->vulkan, &p->page, chunk * BLOCK, &first, 4));
    CHECK_OK(p->table->copy_from_page(p->vulkan, &p->page, (chunk + 1) * BLOCK - 4, &last, 4));
    CHECK_EQ(first, word);
    CHECK_EQ(last, word + 1);
}

/* ---- what is offered ------------------------------------------------------------------------- */

UNIT_EACH(vulkan_elastic, the_features_of_a_device_decide, page_bench, p, i, 0, 5, (void)p, end)
{
    static const struct {
        const char *layout;
        uint32_t
            kinds; /* the fake driver's sparse buffers can have every kind but a protected one */
        const char *missing;
    } offers[] = {
        {"amd-bar", 0x7f, "memory of this kind"},
        {"nvidia-bar", 0x780, "memory of this kind"},
        {"nvidia-11", 0x780, "memory of this kind"},
        {"intel-2017", 0, "the feature sparseBinding"},
        {"swiftshader", 0, "the feature sparseBinding"},
    };
    begin_with(p, offers[i].layout, 0);
    const qi_vulkan_elastic_limits *limits = &p->vulkan->elastic;
    CHECK_EQ(limits->kinds, offers[i].kinds);
    CHECK_HAS(limits->missing, offers[i].missing);
    if (!offers[i].kinds)
        return;
    CHECK_EQ(limits->granularity, BLOCK);
    CHECK(limits->max_size && limits->max_size % BLOCK == 0);
    CHECK(limits->max_size <= p->vulkan->limits.sparseAddressSpaceSize);
    CHECK(limits->max_size <= p->vulkan->max_buffer_size);
}

/* A family of its own binds. quire opens a queue of it; a program that wraps must give one. */
UNIT_ON(vulkan_elastic, a_queue_that_binds_is_needed, page_bench, p,
        begin_with(p, NULL, FV_SPARSE_APART), end)
{
    const quire_vulkan_handles h = vulkan_bench_handles(&p->b);
    const VkPhysicalDeviceFeatures2 features = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
        .features = {.sparseBinding = true, .sparseResidencyBuffer = true}};
    VkPhysicalDeviceFeatures2 some = features;
    some.features.sparseResidencyBuffer = false;
    const struct {
        const VkPhysicalDeviceFeatures2 *features;
        VkQueue queue;
        bool sparse;
        const char *missing;
    } wraps[] = {
        {&features, h.queue, true, NULL},
        {&features, NULL, true, NULL},
        {&features, h.queue, false, "quire_vulkan_wrap_options.sparse_queue takes a queue"},
        {&features, NULL, false, "wrapped without a queue"},
        {&some, h.queue, true, "the feature sparseResidencyBuffer"},
        {NULL, h.queue, true, "the feature sparseBinding"},
    };
    CHECK(p->vulkan->elastic.kinds);
    for (size_t i = 0; i < sizeof wraps / sizeof *wraps; i++) {
        quire_device *device = NULL;
        quire_vulkan_wrap_options options = vulkan_bench_wrap(&p->b);
        options.features = wraps[i].features;
        options.queue = (quire_vulkan_queue){.queue = wraps[i].queue, .family = h.queue_family};
        if (wraps[i].sparse)
            options.sparse_queue =
                (quire_vulkan_queue){.queue = h.sparse_queue, .family = h.sparse_family};
        CHECK_OK(quire_vulkan_wrap(&options, &device));
        const qi_vulkan *vulkan = quire_device_state(device);
        CHECK_EQ(vulkan->elastic.kinds != 0, !wraps[i].missing);
        if (wraps[i].missing)
            CHECK_HAS(vulkan->elastic.missing, wraps[i].missing);
        CHECK_OK(quire_device_destroy(&device));
    }
    CHECK_OK(make(p, 2));
    write(p, 1, 5);
    expect(p, 1, 5);
}

UNIT_ON(vulkan_elastic, what_cannot_be_is_refused_and_leaves_nothing, page_bench, p,
        begin_with(p, "intel-2017", 0), end)
{
    quire_page_request request = request_of(1);
    CHECK_FAILS(qi_vulkan_elastic_create(p->vulkan, &request, &p->page), UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "memory kind 0 cannot be elastic: the device was created "
                                  "without the feature sparseBinding");
    vulkan_bench_end(&p->b);
    begin_with(p, NULL, 0);
    request.exportable = true;
    CHECK_FAILS(qi_vulkan_elastic_create(p->vulkan, &request, &p->page), UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "cannot be exported");
    request.exportable = false;
    request.description = &request;
    CHECK_FAILS(qi_vulkan_elastic_create(p->vulkan, &request, &p->page), UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "adopted");
    request.description = NULL;
    request.chunk = BLOCK / 2;
    CHECK_FAILS(qi_vulkan_elastic_create(p->vulkan, &request, &p->page), UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "chunks of 32 KiB: sparse blocks have 64 KiB");
    request.chunk = BLOCK;
    request.max_size = p->vulkan->elastic.max_size + BLOCK;
    CHECK_FAILS(qi_vulkan_elastic_create(p->vulkan, &request, &p->page),
                QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_HAS(quire_last_error(), "a sparse buffer of the device has at most");
    CHECK_EQ(fv_calls(p->b.driver, NULL), 0);
}

UNIT_ON(vulkan_elastic, kinds_that_no_buffer_can_have_are_refused, page_bench, p,
        begin_with(p, NULL, FV_FEW_TYPES), end)
{
    uint32_t refused = 0;
    for (uint32_t kind = 0; kind < p->vulkan->memory.memoryTypeCount; kind++) {
        quire_page_request request = request_of(1);
        request.kind = kind;
        quire_result result = qi_vulkan_any_page_create(p->vulkan, &request, &p->page);
        CHECK_EQ(!result, p->vulkan->elastic.kinds >> kind & 1);
        if (result) {
            CHECK_EQ(result, UNSUPPORTED);
            refused++;
            continue;
        }
        p->table->page_destroy(p->vulkan, &p->page);
        p->page.data = 0;
    }
    CHECK(refused > 0);
}

/* ---- giving and taking ----------------------------------------------------------------------- */

CASE(addresses_come_without_memory, 0)
{
    CHECK_EQ(fv_live(p->b.driver, FV_MEMORY), 0);
    CHECK_EQ(fv_live(p->b.driver, FV_BUFFER), 1);
    CHECK_EQ(p->page.size, CHUNKS * BLOCK);
    CHECK_EQ(p->page.handle, qi_atomic_load_u64(&qi_vulkan_page_of(&p->page)->buffer));
    char name[16];
    fv_name_of(p->b.driver, p->page.handle, name, sizeof name);
    CHECK_STR(name, "elastic");
}

UNIT_ON(vulkan_elastic, an_ordinary_page_stays_one_memory, page_bench, p, begin_with(p, NULL, 0),
        end)
{
    quire_page_request request = request_of(3);
    request.max_size = request.chunk = 0;
    CHECK_OK(qi_vulkan_any_page_create(p->vulkan, &request, &p->page));
    CHECK(!record(p));
    CHECK_EQ(fv_live(p->b.driver, FV_MEMORY), 1);
}

CASE(a_chunk_is_a_memory_and_a_call_is_a_submission, 4)
{
    CHECK_EQ(bytes(p), 4 * BLOCK);
    CHECK_OK(back(p, 10, 20));
    CHECK_EQ(calls(p, "vkAllocateMemory"), 20);
    CHECK_EQ(calls(p, "vkQueueBindSparse"), 1);
    CHECK_EQ(calls(p, "vkCreateFence"), 1);
    CHECK_EQ(fv_live(p->b.driver, FV_FENCE), 0);
    unback(p, 12, 5, false);
    CHECK_EQ(calls(p, "vkQueueBindSparse"), 2);
    CHECK_EQ(calls(p, "vkFreeMemory"), 5);
    CHECK_EQ(bytes(p), 19 * BLOCK);
    CHECK_EQ(record(p)->leftovers, 0);
}

/* More binds than one submission has. Every other chunk is a bind of its own also when it goes. */
CASE(long_lists_are_several_submissions, 0)
{
    enum { SPANS = 100 };
    quire_span odd[SPANS];
    CHECK_OK(back(p, 0, CHUNKS));
    CHECK_EQ(calls(p, "vkQueueBindSparse"), 4);
    CHECK_EQ(bytes(p), CHUNKS * BLOCK);
    for (uint32_t i = 0; i < CHUNKS; i++)
        write(p, i, i);
    for (uint32_t i = 0; i < SPANS; i++)
        odd[i] = (quire_span){(2 * i + 1) * BLOCK, BLOCK};
    fv_reset_counters(p->b.driver);
    qi_vulkan_page_unback(p->vulkan, &p->page, odd, SPANS, false);
    CHECK_EQ(calls(p, "vkQueueBindSparse"), 2);
    CHECK_EQ(bytes(p), SPANS * BLOCK);
    for (uint32_t i = 0; i < CHUNKS; i += 2)
        expect(p, i, i);
    CHECK_OK(qi_vulkan_page_back(p->vulkan, &p->page, odd, SPANS));
    for (uint32_t i = 1; i < CHUNKS; i += 2)
        write(p, i, i);
    for (uint32_t i = 0; i < CHUNKS; i++)
        expect(p, i, i);
}

CASE(memory_that_moves_is_not_freed_and_allocated_again, 8)
{
    unback(p, 0, 5, true);
    CHECK_EQ(bytes(p), 8 * BLOCK);
    CHECK_OK(back(p, 100, 3));
    CHECK_EQ(calls(p, "vkAllocateMemory"), 0);
    CHECK_EQ(calls(p, "vkFreeMemory"), 2); /* what the call did not need */
    CHECK_EQ(bytes(p), 6 * BLOCK);
    unback(p, 5, 3, true);
    CHECK_EQ(bytes(p), 6 * BLOCK);
    unback(p, 0, 0, false); /* the move does not take place */
    CHECK_EQ(bytes(p), 3 * BLOCK);
}

/* More than the record keeps for another place. */
CASE(as_much_memory_moves_as_there_is_room_for, CHUNKS)
{
    unback(p, 0, CHUNKS, true);
    CHECK_EQ(bytes(p), QI_VULKAN_MAX_MOVING * BLOCK);
    CHECK_OK(back(p, 0, CHUNKS));
    CHECK_EQ(bytes(p), CHUNKS * BLOCK);
}

/* Against a model, which knows the chunks with memory. */
CASE(chunks_come_and_go_at_random, 0)
{
    test_random r = {7};
    uint32_t words[CHUNKS] = {0}, next = 1;
    uint64_t backed = 0;
    for (int step = 0; step < 300; step++) {
        const uint64_t first = random_next(&r) % CHUNKS;
        uint64_t count = 0;
        while (first + count < CHUNKS && count < 9 && !words[first + count] == !words[first])
            count++;
        if (words[first])
            unback(p, first, count, random_next(&r) % 2);
        else
            CHECK_OK(back(p, first, count));
        for (uint64_t i = first; i < first + count; i++) {
            backed += words[i] ? UINT64_MAX : 1;
            words[i] = words[i] ? 0 : next++;
            if (words[i])
                write(p, i, words[i]);
        }
        if (step % 50 == 0)
            for (uint32_t i = 0; i < CHUNKS; i++)
                if (words[i])
                    expect(p, i, words[i]);
    }
    unback(p, 0, 0, false);
    CHECK_EQ(bytes(p), backed * BLOCK);
    CHECK_EQ(fv_live(p->b.driver, FV_MEMORY), backed + 1); /* and the staging ring */
}

/* ---- failures -------------------------------------------------------------------------------- */

/* Each call of the driver fails once: nothing of the new span stays, and the next try succeeds. */
CASE(a_failed_call_gives_nothing, 2)
{
    write(p, 0, 1);
    write(p, 1, 3);
    fv_reset_counters(p->b.driver);
    CHECK_OK(back(p, 10, 70));
    const uint64_t count = fv_fallible_calls(p->b.driver);
    unback(p, 10, 70, false);
    for (uint64_t call = 1; call <= count; call++) {
        const fv_fault fault = {.call = call, .result = VK_SUCCESS};
        CHECK(fv_fail(p->b.driver, &fault));
        quire_result result = back(p, 10, 70);
        const bool has_failed = fv_failed(p->b.driver).times != 0;
        fv_heal(p->b.driver);
        CHECK(!result || has_failed);
        if (!result)
            unback(p, 10, 70, false);
        unback(p, 0, 0, false);
        CHECK_EQ(record(p)->leftovers, 0);
        CHECK_EQ(bytes(p), 2 * BLOCK);
        expect(p, 0, 1);
        expect(p, 1, 3);
    }
}

UNIT_ON(vulkan_elastic, a_failed_creation_leaves_nothing, page_bench, p, begin_with(p, NULL, 0),
        end)
{
    uint64_t failures = 0;
    bool has_failed = true;
    for (uint64_t call = 1; has_failed; call++) {
        const quire_page_request request = request_of(3);
        const fv_fault fault = {.call = call};
        CHECK(fv_fail(p->b.driver, &fault));
        quire_result result = qi_vulkan_elastic_create(p->vulkan, &request, &p->page);
        has_failed = fv_failed(p->b.driver).times != 0;
        fv_heal(p->b.driver);
        failures += result != QUIRE_SUCCESS;
        if (!result)
            p->table->page_destroy(p->vulkan, &p->page);
        p->page.data = 0;
        CHECK_EQ(fv_live(p->b.driver, FV_MEMORY) + fv_live(p->b.driver, FV_BUFFER), 0);
    }
    CHECK(failures >= 4);
}

UNIT_ON(vulkan_elastic, without_host_memory_there_is_no_page, page_bench, p, begin_with(p, NULL, 0),
        end)
{
    static const char *const says[] = {"a page record", "200 chunks", "200 chunks", "200 chunks"};
    for (uint64_t call = 1; call <= 4; call++) {
        test_memory_fail(&p->b.host_memory, call, false);
        CHECK_FAILS(make(p, 1), QUIRE_ERROR_OUT_OF_HOST_MEMORY);
        CHECK_HAS(quire_last_error(), says[call - 1]);
    }
    test_memory_fail(&p->b.host_memory, 0, false);
}

UNIT_ON(vulkan_elastic, chunks_count_as_memory_objects, page_bench, p, (void)p, end)
{
    fv_layout layout = *fv_layout_named("amd-bar");
    layout.max_allocations = 20;
    const fv_options options = {.layouts = {&layout}};
    *p = (page_bench){0};
    vulkan_bench_begin_with(&p->b, &options);
    CHECK(vulkan_bench_open(&p->b,
                            &(quire_vulkan_settings){.memory_limit = QUIRE_VULKAN_LIMIT_STRICT}));
    p->table = quire_device_backend(p->b.device);
    p->vulkan = quire_device_state(p->b.device);
    CHECK_OK(make(p, 10));
    CHECK_FAILS(back(p, 10, 10), QUIRE_ERROR_TOO_MANY_PAGES);
    CHECK_EQ(bytes(p), 10 * BLOCK);
    CHECK_OK(back(p, 10, 9));
}

/* The thread holds the queue: it cannot bind. What it takes goes at the next call. */
CASE(a_thread_that_holds_the_queue_cannot_bind, 4)
{
    CHECK_OK(quire_vulkan_queue_lock(p->b.device));
    CHECK_FAILS(back(p, 10, 1), QUIRE_ERROR_NOT_PERMITTED);
    unback(p, 0, 2, false);
    CHECK_EQ(bytes(p), 4 * BLOCK);
    CHECK_EQ(record(p)->leftovers, 2);
    CHECK_OK(quire_vulkan_queue_unlock(p->b.device));
    unback(p, 2, 1, false);
    CHECK_EQ(record(p)->leftovers, 0);
    CHECK_EQ(bytes(p), BLOCK);
}

CASE(a_refused_unbind_is_retried, 4)
{
    static const char *const functions[] = {"vkCreateFence", "vkQueueBindSparse"};
    for (uint64_t i = 0; i < 2; i++) {
        const fv_fault fault = {.function = functions[i], .call = 1, .from_then = true};
        CHECK(fv_fail(p->b.driver, &fault));
        unback(p, 2 * i, 2, false);
        CHECK_OK(quire_last_result());
        CHECK_EQ(record(p)->leftovers, 2);
        CHECK_EQ(bytes(p), (4 - 2 * i) * BLOCK);
        fv_heal(p->b.driver);
        unback(p, 0, 0, false);
        CHECK_EQ(record(p)->leftovers, 0);
        CHECK_EQ(bytes(p), (2 - 2 * i) * BLOCK);
    }
}

/* While the driver refuses unbinds, a leftover that is backed again keeps its memory. */
CASE(a_leftover_serves_again, 4)
{
    const fv_fault fault = {.function = "vkQueueBindSparse", .call = 1};
    CHECK(fv_fail(p->b.driver, &fault));
    unback(p, 1, 2, false);
    fv_heal(p->b.driver);
    const fv_fault next = {.function = "vkQueueBindSparse", .call = 1};
    CHECK(fv_fail(p->b.driver, &next)); /* the retry of the unbind */
    fv_reset_counters(p->b.driver);
    CHECK_OK(back(p, 1, 2));
    CHECK_EQ(calls(p, "vkAllocateMemory"), 0);
    CHECK_EQ(record(p)->leftovers, 0);
    write(p, 2, 9);
    expect(p, 2, 9);
}

/* ---- binds that cannot be waited for --------------------------------------------------------- */

CASE(memory_stays_until_an_unbind_is_known_to_be_complete, 4)
{
    vulkan_bench_stop_waits(&p->b);
    unback(p, 0, 3, false);
    CHECK(record(p)->fence);
    CHECK_EQ(record(p)->leftovers, 3);
    CHECK_EQ(bytes(p), 4 * BLOCK);
    CHECK_FAILS(back(p, 10, 1), QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    CHECK_HAS(quire_last_error(), "earlier binds of an elastic page");
    unback(p, 3, 1, false);
    CHECK_EQ(record(p)->leftovers, 4);
    fv_heal(p->b.driver);
    unback(p, 0, 0, false);
    CHECK(!record(p)->fence);
    CHECK_EQ(bytes(p), 0);
}

CASE(a_bind_of_unknown_outcome_gives_nothing, 1)
{
    write(p, 0, 4);
    vulkan_bench_stop_waits(&p->b);
    CHECK_FAILS(back(p, 10, 3), QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    CHECK_EQ(record(p)->leftovers, 3);
    CHECK_EQ(bytes(p), 4 * BLOCK);
    fv_heal(p->b.driver);
    CHECK_OK(back(p, 10, 3));
    CHECK_EQ(bytes(p), 4 * BLOCK);
    expect(p, 0, 4);
}

/* The page is destroyed with the next one, or with the device. */
CASE(a_page_with_a_running_bind_is_destroyed_later, 1)
{
    quire_native_page other;
    vulkan_bench_stop_waits(&p->b);
    CHECK_FAILS(back(p, 10, 3), QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    p->table->page_destroy(p->vulkan, &p->page);
    p->page.data = 0;
    CHECK_EQ(fv_live(p->b.driver, FV_MEMORY), 4);
    CHECK_FAILS(make(p, 1), QUIRE_ERROR_OUT_OF_HOST_MEMORY); /* deferred as well */
    CHECK_EQ(fv_live(p->b.driver, FV_MEMORY), 5);
    CHECK_EQ(fv_live(p->b.driver, FV_BUFFER), 2);
    fv_heal(p->b.driver);
    quire_page_request request = request_of(1);
    request.max_size = request.chunk = 0;
    CHECK_OK(qi_vulkan_any_page_create(p->vulkan, &request, &other));
    p->table->page_destroy(p->vulkan, &other);
    CHECK_EQ(fv_live(p->b.driver, FV_MEMORY), 0);
    vulkan_bench_stop_waits(&p->b);
    CHECK_FAILS(make(p, 1), QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    p->page.data = 0;
    CHECK_EQ(fv_live(p->b.driver, FV_MEMORY), 1);
}

CASE(on_a_lost_device_memory_is_freed, 6)
{
    fv_lose_devices(p->b.driver);
    unback(p, 0, 2, false);
    CHECK_EQ(bytes(p), 4 * BLOCK);
    CHECK_FAILS(back(p, 10, 2), QUIRE_ERROR_DEVICE_LOST);
    CHECK_EQ(record(p)->leftovers, 0);
    CHECK_EQ(bytes(p), 4 * BLOCK);
}

/* ---- memories -------------------------------------------------------------------------------- */

/* Kind 3 of the layout is device-local and host-visible. */
static quire_memory *make_memory(page_bench *p, uint32_t kind)
{
    quire_memory *memory =
        vulkan_bench_memory(&p->b, &(quire_memory_options){.elastic = true,
                                                           .name = "cache",
                                                           .kind.mask = UINT32_C(1) << kind,
                                                           .pages.page_size = BLOCK});
    CHECK(memory);
    return memory;
}

#define MEMORY_CASE(name, kind)                                                                    \
    static void in_##name(page_bench *p, quire_memory *memory);                                    \
    UNIT_ON(vulkan_elastic, name, page_bench, p, begin_with(p, NULL, 0), end)                      \
    {                                                                                              \
        in_##name(p, make_memory(p, kind));                                                        \
    }                                                                                              \
    static void in_##name(__attribute__((unused)) page_bench *p, quire_memory *memory)

UNIT_ON(vulkan_elastic, a_device_tells_what_its_pages_can_be, page_bench, p, begin_with(p, NULL, 0),
        end)
{
    quire_device_info info;
    CHECK_OK(quire_device_get_info(p->b.device, &info));
    CHECK_EQ(info.limits.elastic_kinds, 0x7f);
    CHECK_EQ(info.limits.elastic_granularity, BLOCK);
    CHECK_EQ(info.limits.max_elastic_page, p->vulkan->elastic.max_size);
    CHECK(info.limits.elastic_unmapped);
    CHECK_EQ(info.limits.max_chunks, (UINT32_MAX - UINT64_C(1)) / 2);
    quire_memory *memory = NULL;
    CHECK_FAILS(quire_memory_create(p->b.device,
                                    &(quire_memory_options){.elastic = true, .kind.mask = 0x80},
                                    &memory),
                UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "kind 7 of backend vulkan cannot be elastic: the driver or the "
                                  "features of the device do not let a sparse buffer have");
    const uint64_t most = info.limits.max_elastic_page;
    CHECK_FAILS(quire_memory_create(p->b.device,
                                    &(quire_memory_options){
                                        .elastic = true, .kind.mask = 1, .address_space = most + 1},
                                    &memory),
                UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "an elastic page of backend vulkan has at most");
    quire_memory_info made;
    CHECK_OK(quire_memory_get_info(make_memory(p, 0), &made)); /* four times its heap is more */
    CHECK_EQ(made.address_space, most);
}

UNIT_ON(vulkan_elastic, a_device_without_sparse_buffers_says_so, page_bench, p,
        begin_with(p, "intel-2017", 0), end)
{
    quire_memory *memory = NULL;
    quire_device_info info;
    CHECK_OK(quire_device_get_info(p->b.device, &info));
    CHECK_EQ(info.limits.elastic_kinds, 0);
    CHECK_FAILS(quire_memory_create(p->b.device, &(quire_memory_options){.elastic = true}, &memory),
                UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "of backend vulkan cannot be elastic: the device was created "
                                  "without the feature sparseBinding");
}

/* Few memory objects: they bound the default addresses, and given ones make the chunks larger. */
UNIT_ON(vulkan_elastic, a_page_has_at_most_half_of_the_memory_objects, page_bench, p,
        begin_with(p, "nvidia-nvk", 0), end)
{
    quire_memory_info info;
    quire_device_info device;
    quire_memory_options options = {
        .elastic = true, .kind.mask = 1, .pages.page_size = BLOCK, .address_space = 4096 * BLOCK};
    CHECK_OK(quire_device_get_info(p->b.device, &device));
    CHECK_EQ(device.limits.max_chunks, 4095 / 2);
    CHECK_OK(quire_memory_get_info(make_memory(p, 0), &info));
    CHECK_EQ(info.address_space, 4095 / 2 * BLOCK);
    CHECK_OK(quire_memory_get_info(vulkan_bench_memory(&p->b, &options), &info));
    CHECK_EQ(info.page_size, 4 * BLOCK);
    CHECK_EQ(info.address_space, 4096 * BLOCK);
}

/* A hole between live allocations serves a larger one elsewhere: the memory of its chunks goes. */
MEMORY_CASE(a_memory_gives_and_takes_chunks, 0)
{
    quire_allocation made[4];
    quire_page_info page;
    uint32_t word = 0;
    for (uint32_t i = 0; i < 4; i++) {
        CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 2 * BLOCK}, &made[i]));
        CHECK_OK(quire_write(memory, made[i], BLOCK, &i, 4));
    }
    CHECK_OK(quire_free(memory, made[1]));
    CHECK_OK(quire_memory_trim(memory, 0, NULL));
    CHECK_EQ(bytes(p), 6 * BLOCK);
    CHECK_OK(quire_page_get_info(memory, 0, &page));
    CHECK_EQ(page.size, 6 * BLOCK);
    for (uint32_t i = 0; i < 4; i += i ? 1 : 2) {
        CHECK_OK(quire_read(memory, made[i], BLOCK, &word, 4));
        CHECK_EQ(word, i);
    }
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 4 * BLOCK}, &made[1]));
    CHECK_EQ(bytes(p), 10 * BLOCK);
    for (uint32_t i = 0; i < 4; i++)
        CHECK_OK(quire_free(memory, made[i]));
}

/* Its range is reached through the buffer of the page, at one address. */
MEMORY_CASE(an_allocation_is_a_range_of_the_buffer, 0)
{
    quire_allocation first, made;
    quire_vulkan_range range, other;
    quire_allocation_info info;
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = BLOCK}, &first));
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = BLOCK}, &made));
    CHECK_OK(quire_vulkan_page_buffer(memory, first, &other));
    CHECK_OK(quire_vulkan_page_buffer(memory, made, &range));
    CHECK(range.buffer == other.buffer && range.memory == VK_NULL_HANDLE);
    CHECK_EQ(range.buffer_offset, BLOCK);
    CHECK(range.address && range.address == other.address + BLOCK);
    CHECK_OK(quire_allocation_get_info(memory, made, &info));
    CHECK_EQ(info.address, range.address);
    CHECK_OK(quire_free(memory, first));
    CHECK_OK(quire_free(memory, made));
}

MEMORY_CASE(what_needs_one_memory_is_refused, 0)
{
    static const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                            .size = 256,
                                            .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT};
    static const VkBufferCreateInfo sparse = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                              .flags = VK_BUFFER_CREATE_SPARSE_BINDING_BIT,
                                              .size = BLOCK,
                                              .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT};
    const quire_image_options texels = {
        .width = 16, .height = 16, .channel_count = 4, .usage = QUIRE_USAGE_SAMPLED};
    quire_allocation made;
    quire_buffer buffer;
    quire_image image;
    quire_vulkan_range range;
    quire_vulkan_alias *alias = NULL;
    quire_vulkan_sparse *object = NULL;
    int descriptor = -1;
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = BLOCK}, &made));
    CHECK_FAILS(quire_buffer_create(memory, &(quire_buffer_options){.size = 256}, &buffer),
                UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "a VkBuffer cannot lie in an elastic page");
    CHECK_FAILS(quire_image_create(memory, &texels, &image), UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "a VkImage cannot lie in an elastic page");
    CHECK_FAILS(quire_vulkan_alias_buffer_create(memory, made, &info, NULL, &alias), UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "a VkBuffer cannot lie in an elastic page");
    CHECK_FAILS(quire_vulkan_sparse_buffer_create(memory, &sparse, NULL, &object), UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "quire_vulkan_get_range: the allocation lies in an elastic page");
    CHECK_FAILS(quire_vulkan_get_range(memory, made, &range), UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "quire_vulkan_get_range: the allocation lies in an elastic page");
    CHECK_FAILS(quire_vulkan_set_priority(memory, made, 1), UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "quire_vulkan_set_priority: the allocation lies in an elastic");
    CHECK_FAILS(quire_vulkan_export_fd(memory, made, VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT,
                                       &descriptor),
                UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "cannot be exported");
    CHECK_OK(quire_free(memory, made));
}

/* A page of its own is one VkDeviceMemory. */
MEMORY_CASE(an_object_lives_in_a_page_of_its_own, 0)
{
    quire_buffer buffer;
    CHECK_OK(quire_buffer_create(memory, &(quire_buffer_options){.size = 256, .dedicated = true},
                                 &buffer));
    CHECK_EQ(fv_live(p->b.driver, FV_MEMORY), 1);
    CHECK_OK(quire_free(memory, buffer.allocation));
}

/* The host's flags are gone, and with them maps. Bytes go through the staging ring. */
MEMORY_CASE(a_host_visible_kind_is_not_mapped, 3)
{
    quire_memory_info info;
    quire_allocation made;
    quire_native_page page;
    quire_native native;
    void *pointer = NULL;
    uint32_t word = 77, read = 0;
    CHECK_OK(quire_memory_get_info(memory, &info));
    CHECK_EQ(info.flags, QUIRE_DEVICE_LOCAL);
    CHECK(!info.mappable);
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = BLOCK}, &made));
    CHECK_FAILS(quire_map(memory, made, &pointer), QUIRE_ERROR_NOT_HOST_VISIBLE);
    CHECK_OK(quire_write(memory, made, 4, &word, 4));
    CHECK_OK(quire_read(memory, made, 4, &read, 4));
    CHECK_EQ(read, 77);
    CHECK_OK(quire_fill(memory, made, &(quire_fill_options){.value = 1}, NULL));
    CHECK_OK(quire_read(memory, made, BLOCK - 4, &read, 4));
    CHECK_EQ(read, 0x01010101);
    CHECK_OK(quire_allocation_get_native(memory, made, &native));
    page = native.page;
    CHECK_FAILS(p->table->map(p->vulkan, &page, &pointer), UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "an elastic page cannot be mapped");
    CHECK_OK(quire_free(memory, made));
    quire_memory *other = NULL;
    CHECK_FAILS(quire_memory_create(p->b.device,
                                    &(quire_memory_options){.elastic = true,
                                                            .kind.intent = QUIRE_INTENT_HOST_WRITE},
                                    &other),
                UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "requires HOST_VISIBLE, and elastic pages of backend vulkan");
}
