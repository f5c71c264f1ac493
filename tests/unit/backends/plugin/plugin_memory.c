/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* plugin_memory.c - pages of a plugin: exact sizes, addresses without a guaranteed alignment,
   statuses, budgets, and the page policies derived from its size callbacks. */
#include "tests/support/plugin_bench.h"
#include "tests/support/unit.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)

static quire_memory *open_with(plugin_bench *b, const tp_options *options, uint32_t kind,
                               const quire_memory_options *memory)
{
    plugin_bench_begin(b, options);
    CHECK(plugin_bench_open(b, 0, NULL));
    quire_memory *m = plugin_bench_memory(b, 0, kind, memory);
    CHECK(m);
    return m;
}

static quire_allocation allocate(quire_memory *m, quire_allocation_options options)
{
    quire_allocation a;
    CHECK_OK(quire_allocate(m, &options, &a));
    return a;
}

/* ---- sizes and addresses -------------------------------------------------------------------- */

/* The plugin refuses a wrong size in both functions, so every freed size was exact. */
UNIT(plugin_memory, pages_come_and_go_with_their_exact_size)
{
    static const uint64_t CHUNKS[] = {0, 1, 512, 4096, 1000, 65536};
    for (size_t i = 0; i < sizeof CHUNKS / sizeof *CHUNKS; i++) {
        for (uint32_t kind = 0; kind < 3; kind++) {
            plugin_bench b;
            quire_memory *m = open_with(&b, &(tp_options){.sizes = {CHUNKS[i]}}, kind,
                                        &(quire_memory_options){.pages = {.page_size = MIB + 1}});
            quire_allocation shared = allocate(m, (quire_allocation_options){.size = 5000});
            quire_allocation alone =
                allocate(m, (quire_allocation_options){.size = 12345, .dedicated = true});
            quire_memory_stats stats;
            CHECK_OK(quire_memory_get_stats(m, &stats));
            CHECK_EQ(stats.page_count, 2);
            CHECK_EQ(b.tp->blocks(), 2);
            CHECK(kind || b.tp->bytes(0) == stats.reserved_bytes);
            CHECK_OK(quire_free(m, shared));
            CHECK_OK(quire_free(m, alone));
            CHECK_OK(quire_memory_trim(m, 0, NULL));
            CHECK_EQ(b.tp->freed(), 2);
            plugin_bench_end(&b);
        }
    }
}

/* A plugin with min_chunk 512 has returned addresses of 16 modulo 512: alignment refers to
   addresses. */
UNIT(plugin_memory, alignment_holds_at_addresses_however_pages_lie)
{
    static const uint64_t OFFSETS[] = {16, 1, 8, 2064, 4095, 0};
    for (size_t i = 0; i < sizeof OFFSETS / sizeof *OFFSETS; i++) {
        plugin_bench b;
        quire_plugin_info info;
        quire_memory *m =
            open_with(&b, &(tp_options){.base_offset = OFFSETS[i], .sizes = {512}}, 0, NULL);
        for (uint64_t alignment = 1; alignment <= 2 * MIB; alignment *= 4)
            for (int dedicated = 0; dedicated < 2; dedicated++) {
                quire_native native;
                quire_allocation a =
                    allocate(m, (quire_allocation_options){.size = 1000 + alignment,
                                                           .alignment = alignment,
                                                           .zero = true,
                                                           .dedicated = dedicated});
                CHECK_OK(quire_allocation_get_native(m, a, &native));
                CHECK_EQ((native.page.address + native.offset) % alignment, 0);
                CHECK(native.offset + native.size <= native.page.size);
            }
        CHECK_OK(quire_plugin_get_info(b.device, &info));
        CHECK_EQ(info.least_alignment, OFFSETS[i] ? OFFSETS[i] & (0 - OFFSETS[i]) : 4096);
        plugin_bench_end(&b);
    }
}

/* With a known alignment a page for one allocation needs no padding, and a misaligned page is
   refused. */
UNIT(plugin_memory, an_alignment_that_is_known_is_held_to)
{
    plugin_bench b;
    const quire_plugin_options known = {.alignment = 4096};
    plugin_bench_begin(&b, &(tp_options){.sizes = {512}});
    CHECK(plugin_bench_open(&b, 0, &known));
    quire_memory *m = plugin_bench_memory(&b, 0, 0, NULL);
    allocate(m, (quire_allocation_options){.size = 4096, .alignment = 4096, .dedicated = true});
    CHECK_EQ(b.tp->bytes(0), 4096);
    plugin_bench_end(&b);

    plugin_bench_begin(&b, &(tp_options){.base_offset = 16});
    CHECK(plugin_bench_open(&b, 0, &known));
    m = plugin_bench_memory(&b, 0, 0, NULL);
    quire_allocation a;
    CHECK_FAILS(quire_allocate(m, &(quire_allocation_options){.size = 100}, &a),
                QUIRE_ERROR_BACKEND_FAILURE);
    CHECK_HAS(quire_last_error(), "which is not a multiple of 4 KiB");
    CHECK_EQ(b.tp->blocks(), 0);
    plugin_bench_end(&b);
}

UNIT(plugin_memory, the_hosts_kinds_are_mapped_where_they_lie)
{
    for (uint32_t kind = 1; kind < 3; kind++) {
        plugin_bench b;
        void *pointer = NULL;
        quire_native native;
        quire_memory *m = open_with(&b, &(tp_options){.base_offset = 16}, kind, NULL);
        quire_allocation a = allocate(m, (quire_allocation_options){.size = 1000});
        CHECK_OK(quire_map(m, a, &pointer));
        CHECK_OK(quire_allocation_get_native(m, a, &native));
        CHECK_EQ((uintptr_t)pointer, native.page.address + native.offset);
        memset(pointer, 3, 1000);
        CHECK_OK(quire_unmap(m, a));
        plugin_bench_end(&b);
    }
}

PLUGIN_UNIT(plugin_memory, pages_are_made_in_one_way)
{
    quire_allocation a;
    char bytes[100];
    quire_memory *m = open_with(b, NULL, 1, NULL);
    CHECK_FAILS(quire_page_adopt(m, bytes, &(quire_allocation_options){.size = 100}, &a),
                QUIRE_ERROR_UNSUPPORTED);
    quire_memory *other = NULL;
    const quire_page_extra extra = {.number = 1};
    CHECK_OK(quire_memory_create_with(b->device, NULL, extra, &other));
    CHECK_FAILS(quire_allocate(other, &(quire_allocation_options){.size = 100}, &a),
                QUIRE_ERROR_UNSUPPORTED);
    CHECK_OK(quire_memory_destroy(&other));
}

/* ---- answers -------------------------------------------------------------------------------- */

static void answers(int32_t status, bool works, quire_result code)
{
    plugin_bench b;
    quire_allocation a;
    quire_memory *m = open_with(&b, NULL, 0, NULL);
    b.tp->fail(&(tp_fault){.offset = 216, .call = 1, .status = status, .works = works});
    const quire_allocation_options options = {.size = 100, .dedicated = true};
    quire_result result = quire_allocate(m, &options, &a);
    CHECK(b.tp->has_failed());
    CHECK_EQ(result, code);
    if (code) {
        CHECK_HAS(quire_last_error(), "device_memory_allocate of plugin 'test_device'");
        CHECK_EQ(quire_last_native_code(), status);
        CHECK_EQ(b.tp->blocks(), 0);
    }
    plugin_bench_end(&b);
}

UNIT(plugin_memory, what_allocate_answers)
{
    answers(TP_WARNING, true, QUIRE_SUCCESS); /* with a pointer */
    answers(TP_WARNING, false, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    answers(TP_SUCCESS, false, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY); /* and no pointer */
    answers(TP_FAILED, false, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    answers(TP_ERROR, false, QUIRE_ERROR_INVALID_ARGUMENT);
    answers(TP_INTERNAL_ERROR, false, QUIRE_ERROR_BACKEND_FAILURE);
    answers(99, false, QUIRE_ERROR_BACKEND_FAILURE);
}

/* On a full device the core releases empty pages and repeats the request. */
PLUGIN_UNIT(plugin_memory, empty_pages_are_given_back_where_the_device_is_full)
{
    /* without budgets: the plugin itself reports exhausted memory */
    quire_memory *m =
        open_with(b, &(tp_options){.bytes = 8 * MIB, .absent = TP_BIT(416), .base_offset = 16}, 0,
                  &(quire_memory_options){.pages = {.dedicated = QUIRE_DEDICATED_ALWAYS}});
    quire_memory *other = plugin_bench_memory(
        b, 0, 0, &(quire_memory_options){.pages = {.dedicated = QUIRE_DEDICATED_ALWAYS}});
    quire_allocation a = allocate(m, (quire_allocation_options){.size = 3 * MIB});
    quire_allocation kept = allocate(other, (quire_allocation_options){.size = 3 * MIB}), none;
    CHECK_OK(quire_free(m, a)); /* kept empty */
    CHECK_EQ(b->tp->blocks(), 2);
    uint64_t calls = b->tp->calls(216);
    a = allocate(m, (quire_allocation_options){.size = 4 * MIB});
    CHECK_EQ(b->tp->calls(216), calls + 1);
    CHECK_FAILS(quire_allocate(m, &(quire_allocation_options){.size = 4 * MIB}, &none),
                QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_OK(quire_free(other, kept));
}

/* ---- budgets -------------------------------------------------------------------------------- */

UNIT(plugin_memory, the_budget_is_what_the_plugin_tells)
{
    plugin_bench b;
    quire_budget_info info;
    quire_memory *m =
        open_with(&b, &(tp_options){.bytes = 64 * MIB, .sizes = {4096}}, 0,
                  &(quire_memory_options){.pages = {.page_size = MIB}, .within_budget = true});
    allocate(m, (quire_allocation_options){.size = 1000});
    CHECK_OK(quire_device_get_budget(b.device, 0, &info));
    CHECK_EQ(info.size, 64 * MIB);
    CHECK_EQ(info.budget, 64 * MIB);
    CHECK_EQ(info.usage, b.tp->bytes(0));
    b.tp->tell(2 * MIB);
    CHECK_OK(quire_device_get_budget(b.device, 0, &info));
    CHECK_EQ(info.budget, 2 * MIB);
    quire_allocation a;
    CHECK_FAILS(quire_allocate(m, &(quire_allocation_options){.size = MIB, .dedicated = true}, &a),
                QUIRE_ERROR_OVER_BUDGET);
    b.tp->fail(&(tp_fault){.offset = 416, .call = 1, .status = TP_FAILED});
    CHECK_FAILS(quire_device_get_budget(b.device, 0, &info), QUIRE_ERROR_BACKEND_FAILURE);
    plugin_bench_end(&b);

    m = open_with(&b, &(tp_options){.absent = TP_BIT(416)}, 0, NULL);
    CHECK_OK(quire_device_get_budget(b.device, 0, &info));
    CHECK_EQ(info.size, UINT64_C(1) << 40);
    CHECK_EQ(info.budget, info.size);
    plugin_bench_end(&b);
}

/* ---- policies ------------------------------------------------------------------------------- */

static quire_page_policy policy_of(plugin_bench *b, quire_paddle_strategy strategy)
{
    quire_page_policy policy;
    CHECK_OK(quire_plugin_get_policy(b->device, strategy, &policy));
    return policy;
}

static void expect_page(plugin_bench *b, quire_memory *m, uint64_t request, uint64_t bytes)
{
    uint64_t before = b->tp->bytes(0);
    allocate(m, (quire_allocation_options){.size = request});
    CHECK_EQ(b->tp->bytes(0) - before, bytes);
}

/* auto_growth: each request gets a page of size plus padding, rounded up to min_chunk. */
PLUGIN_UNIT(plugin_memory, auto_growth_with_the_plugins_numbers)
{
    const quire_plugin_options aligned = {.alignment = 4096};
    plugin_bench_begin(b, &(tp_options){.sizes = {512, 0, 0, 32}});
    CHECK(plugin_bench_open(b, 0, &aligned));
    quire_page_policy policy = policy_of(b, QUIRE_PADDLE_AUTO_GROWTH);
    CHECK_EQ(policy.page_size, 512);
    CHECK_EQ(policy.size_granularity, 512);
    CHECK_EQ(policy.extra_padding, 32);
    quire_memory *m = plugin_bench_memory(
        b, 0, 0, &(quire_memory_options){.pages = policy, .fit.max_alignment = 4096});
    expect_page(b, m, 480, 512);
    expect_page(b, m, 481, 1024);
    expect_page(b, m, MIB, MIB + 512);
}

/* The numbers of Paddle's test device: requests from 65,473 bytes on get their own page. */
UNIT(plugin_memory, naive_best_fit_with_the_plugins_numbers)
{
    plugin_bench b;
    const quire_plugin_options aligned = {.alignment = 4096};
    plugin_bench_begin(&b, &(tp_options){.bytes = 16 * MIB, .sizes = {4096, 65536, 996147}});
    CHECK(plugin_bench_open(&b, 0, &aligned));
    quire_page_policy policy = policy_of(&b, QUIRE_PADDLE_NAIVE_BEST_FIT);
    CHECK_EQ(policy.dedicated_threshold, 65473);
    CHECK_EQ(policy.page_size, 65536);
    CHECK_EQ(policy.extra_padding, 64);
    quire_memory *m = plugin_bench_memory(
        &b, 0, 0, &(quire_memory_options){.pages = policy, .fit.max_alignment = 4096});
    expect_page(&b, m, 4032, 65536);
    for (int i = 0; i < 15; i++)
        expect_page(&b, m, 4032, 0);
    expect_page(&b, m, 4032, 65536);
    expect_page(&b, m, 65473, 69632);
    plugin_bench_end(&b);

    /* a largest chunk of 0 pools nothing */
    plugin_bench_begin(&b, &(tp_options){.sizes = {256, 0}});
    CHECK(plugin_bench_open(&b, 0, NULL));
    CHECK_EQ(policy_of(&b, QUIRE_PADDLE_NAIVE_BEST_FIT).dedicated, QUIRE_DEDICATED_ALWAYS);
    plugin_bench_end(&b);

    /* first and further pages */
    plugin_bench_begin(&b, &(tp_options){.sizes = {4096, MIB, 0, 0, 4 * MIB, 2 * MIB}});
    CHECK(plugin_bench_open(&b, 0, NULL));
    policy = policy_of(&b, QUIRE_PADDLE_NAIVE_BEST_FIT);
    CHECK_EQ(policy.first_page_size, 4 * MIB);
    CHECK_EQ(policy.page_size, 2 * MIB);
    plugin_bench_end(&b);
}

static quire_paddle_sizes sizes_without(uint64_t absent, const tp_options *options)
{
    plugin_bench b;
    quire_plugin_info info;
    tp_options all = *options;
    all.absent = absent;
    plugin_bench_begin(&b, &all);
    CHECK(plugin_bench_open(&b, 0, NULL));
    CHECK_OK(quire_plugin_get_info(b.device, &info));
    plugin_bench_end(&b);
    return info.sizes;
}

/* The documented default of each callback. */
PLUGIN_UNIT(plugin_memory, size_callbacks_that_are_missing)
{
    const tp_options all = {.bytes = 64 * MIB, .sizes = {512, MIB, 2 * MIB, 32, 3 * MIB, 4 * MIB}};
    quire_paddle_sizes sizes = sizes_without(0, &all);
    CHECK_EQ(sizes.min_chunk, 512);
    CHECK_EQ(sizes.max_chunk, MIB);
    CHECK_EQ(sizes.max_alloc, 2 * MIB);
    CHECK_EQ(sizes.extra_padding, 32);
    CHECK_EQ(sizes.init_alloc, 3 * MIB);
    CHECK_EQ(sizes.re_alloc, 4 * MIB);
    CHECK_EQ(sizes_without(TP_BIT(424), &all).min_chunk, 1);
    CHECK_EQ(sizes_without(TP_BIT(432), &all).max_chunk, 2 * MIB);
    CHECK_EQ(sizes_without(TP_BIT(432) | TP_BIT(440), &all).max_chunk, 64 * MIB);
    CHECK_EQ(sizes_without(TP_BIT(440), &all).max_alloc, 0);
    CHECK_EQ(sizes_without(TP_BIT(448), &all).extra_padding, 0);
    CHECK_EQ(sizes_without(TP_BIT(456), &all).init_alloc, 0);
    CHECK_EQ(sizes_without(TP_BIT(464), &all).re_alloc, 0);
    /* a smallest chunk of 0, and one that no device can hold */
    CHECK_EQ(sizes_without(0, &(tp_options){.bytes = MIB, .sizes = {0}}).min_chunk, 1);
    CHECK_EQ(sizes_without(0, &(tp_options){.bytes = MIB, .sizes = {SIZE_MAX}}).min_chunk, 1);

    quire_page_policy policy;
    plugin_bench_begin(b, &(tp_options){.absent = TP_BIT(432) | TP_BIT(440) | TP_BIT(416)});
    CHECK(plugin_bench_open(b, 0, NULL));
    CHECK_FAILS(quire_plugin_get_policy(b->device, QUIRE_PADDLE_NAIVE_BEST_FIT, &policy),
                QUIRE_ERROR_UNSUPPORTED);
    CHECK_EQ(policy.page_size, 0);
    CHECK_OK(quire_plugin_get_policy(b->device, QUIRE_PADDLE_AUTO_GROWTH, &policy));
}

/* A failing size callback counts as missing, except the padding. */
PLUGIN_UNIT(plugin_memory, size_callbacks_that_fail)
{
    quire_plugin_info info;
    plugin_bench_begin(b, &(tp_options){.sizes = {512, MIB, 0, 32}});
    CHECK(plugin_bench_open(b, 0, NULL));
    b->tp->fail(&(tp_fault){.offset = 424, .call = 1, .status = TP_FAILED, .works = true});
    CHECK_OK(quire_plugin_get_info(b->device, &info));
    CHECK_EQ(info.sizes.min_chunk, 1);
    b->tp->fail(&(tp_fault){.offset = 448, .call = 1, .status = TP_WARNING});
    CHECK_FAILS(quire_plugin_get_info(b->device, &info), QUIRE_ERROR_BACKEND_FAILURE);
    CHECK_EQ(info.functions, 0);
}
