/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * preset.c - the presets of VulkanMemoryAllocator, RMM, PyTorch and PaddlePaddle create the pages
 * that the formulas of docs/policies.md give, table by table.
 */
#include "tests/support/course.h"
#include "tests/support/random.h"

static quire_page_policy policy_of(fixture *b, quire_preset preset)
{
    quire_page_policy policy;
    CHECK_OK(quire_page_policy_preset(preset, b->device, 0, &policy));
    return policy;
}

#define CASE(name, ...) UNIT_ON(preset, name, fixture, b, open_heap(b, __VA_ARGS__), fixture_end)

static void expect_vma(uint64_t heap, uint64_t preferred)
{
    fixture b;
    open_heap(&b, heap);
    quire_page_policy policy = policy_of(&b, QUIRE_PRESET_VMA);
    CHECK_EQ(policy.page_size, preferred);
    CHECK_EQ(policy.first_page_size, preferred / 8);
    CHECK_EQ(policy.dedicated_threshold, preferred / 2 + 1);
    make(&b, policy);
    fixture_end(&b);
}

UNIT(preset, vma_prefers_an_eighth_of_a_heap_up_to_1_gib)
{
    expect_vma(1 * GIB, 128 * MIB);
    expect_vma(1 * GIB + 1, 256 * MIB);
    expect_vma(100 * MIB, 13107200);
    expect_vma(100 * MIB + 8, 13107232); /* a multiple of 32 */
    expect_vma(1 * MIB, 128 * KIB);
}

/*
 * Halves the preferred size up to three times, while half of it is above the largest page and holds
 * the request twice.
 */
static uint64_t vma_block(uint64_t preferred, uint64_t largest, uint64_t request)
{
    uint64_t block = preferred;
    for (int i = 0; i < 3 && block / 2 > largest && block / 2 >= 2 * request; i++)
        block /= 2;
    return block;
}

typedef struct live {
    quire_allocation allocation;
    uint64_t page_size;
    uint32_t page;
    bool dedicated;
} live;

/* Empty pages are destroyed when a page is created: they do not count. */
static uint64_t max_of(const live *all, int count)
{
    uint64_t largest = 0;
    for (int i = 0; i < count; i++)
        if (!all[i].dedicated && all[i].page_size > largest)
            largest = all[i].page_size;
    return largest;
}

static live vma_step(fixture *b, const live *all, int count, uint64_t request, uint64_t preferred)
{
    uint64_t calls = b->fake.calls[FAKE_PAGE_CREATE];
    live new = {.allocation = ALLOCATE(b, .size = request)};
    if (b->fake.calls[FAKE_PAGE_CREATE] != calls) {
        bool own = request > preferred / 2;
        CHECK_EQ(b->fake.last_page.dedicated, own);
        CHECK_EQ(b->fake.last_page.size, own ? (request + 255) / 256 * 256
                                             : vma_block(preferred, max_of(all, count), request));
    }
    quire_allocation_info info = fixture_info(b, new.allocation);
    quire_page_info page;
    CHECK_OK(quire_page_get_info(b->memory, info.page, &page));
    new.page = info.page;
    new.page_size = page.size;
    new.dedicated = page.dedicated;
    return new;
}

UNIT(preset, vma_keeps_its_sizes_while_pages_are_created_and_destroyed)
{
    enum { MAX_COUNT = 60 };
    const uint64_t preferred = 8 * MIB;
    live all[MAX_COUNT];
    int count = 0;
    test_random r = {.state = 3};
    fixture b;
    open_heap(&b, 8 * preferred);
    make(&b, policy_of(&b, QUIRE_PRESET_VMA));
    for (int i = 0; i < 4000; i++) {
        uint64_t request = 1 + random_below(&r, preferred >> random_below(&r, 8));
        bool filling = i / 200 % 2 == 0;
        if (count < MAX_COUNT && (!count || random_below(&r, 10) < (filling ? 7u : 2u))) {
            all[count] = vma_step(&b, all, count, request, preferred);
            count++;
        } else {
            int gone = (int)random_below(&r, (uint64_t)count);
            CHECK_OK(quire_free(b.memory, all[gone].allocation));
            all[gone] = all[--count];
        }
    }
    fixture_end(&b);
}

CASE(rmm_doubles_the_pool, 1 * GIB)
{
    quire_page_policy policy = policy_of(b, QUIRE_PRESET_RMM);
    CHECK_EQ(policy.first_page_size, 512 * MIB);
    policy.first_page_size = 4 * MIB;
    make(b, policy);
    EXPECT_COURSE(b, {3 * MIB, 4 * MIB, false}, {3 * MIB, 4 * MIB, false},
                  {3 * MIB, 8 * MIB, false}, {5 * MIB, 0, false}, {3 * MIB, 16 * MIB, false},
                  {13 * MIB, 0, false}, {3 * MIB, 32 * MIB, false});
}

CASE(rmm_creates_no_page_below_the_request, 1 * GIB)
{
    quire_page_policy policy = policy_of(b, QUIRE_PRESET_RMM);
    policy.first_page_size = 1;
    make(b, policy);
    EXPECT_COURSE(b, {1000, 1024, false}, {1, 1024, false}, {20000, 20224, false},
                  {20000, 22272, false}, {30000, 44544, false});
}

CASE(rmm_halves_unavailable_sizes, 1 * GIB)
{
    quire_page_policy policy = policy_of(b, QUIRE_PRESET_RMM);
    policy.first_page_size = 4 * MIB;
    make(b, policy);
    EXPECT_COURSE(b, {4 * MIB, 4 * MIB, false}, {4 * MIB, 4 * MIB, false});
    b->fake.page_budget = 11 * MIB;
    ALLOCATE(b, .size = 1 * MIB); /* attempts of 8, 4, 2 MiB */
    CHECK_EQ(b->fake.last_page.size, 2 * MIB);
    CHECK_EQ(b->fake.calls[FAKE_PAGE_CREATE], 5);
    b->fake.page_budget = 0;
    CHECK_OK(quire_memory_set_limit(b->memory, 0)); /* forgets the refused size */
    EXPECT_COURSE(b, {4 * MIB, 10 * MIB, false});
}

CASE(pytorch_has_pages_of_2_and_20_mib_and_of_large_requests, 1 * GIB)
{
    EXPECT_FIRST(b, policy_of(b, QUIRE_PRESET_PYTORCH), {1, 2 * MIB, false},
                 {1 * MIB, 2 * MIB, false}, {1 * MIB + 1, 20 * MIB, false},
                 {2 * MIB, 20 * MIB, false}, {10 * MIB - 512, 20 * MIB, false},
                 {10 * MIB - 511, 10 * MIB, false}, {10 * MIB, 10 * MIB, false},
                 {10 * MIB + 1, 12 * MIB, false}, {12 * MIB, 12 * MIB, false},
                 {12 * MIB + 512, 14 * MIB, false}, {100 * MIB + 1, 102 * MIB, false});
    EXPECT_COURSE(b, {600 * KIB, 2 * MIB, false}, {600 * KIB, 0, false}, {600 * KIB, 0, false},
                  {600 * KIB, 2 * MIB, false}, {3 * MIB, 20 * MIB, false}, {3 * MIB, 0, false});
    CHECK_EQ(fixture_info(b, ALLOCATE(b, .size = 513)).size, 1024);
}

static void expect_usable(uint64_t heap, uint64_t granularity, quire_preset preset)
{
    fixture b;
    fixture_prepare(&b);
    b.fake.info.heaps[0].size = heap;
    b.fake.info.limits.page_granularity = granularity;
    b.fake.page_budget = 64 * MIB; /* so that no page is larger */
    CHECK_OK(fake_open(&b.fake, unit_memory(), &b.device));
    make(&b, policy_of(&b, preset));
    if (heap >= granularity)
        ALLOCATE(&b, .size = 1);
    fixture_end(&b);
}

UNIT(preset, each_preset_creates_a_memory_in_every_heap)
{
    for (uint64_t heap = 512; heap <= 64 * GIB; heap *= 8)
        for (uint64_t granularity = 1; granularity <= 64 * MIB; granularity *= 64)
            for (int preset = 0; preset < 3; preset++)
                expect_usable(heap + heap / 3, granularity, (quire_preset)preset);
}

CASE(invalid_options_are_refused, GIB)
{
    const quire_result invalid = QUIRE_ERROR_INVALID_ARGUMENT;
    quire_page_policy p;
    CHECK_FAILS(quire_page_policy_preset((quire_preset)3, b->device, 0, &p), invalid);
    CHECK_HAS(quire_last_error(), "there is no preset 3");
    CHECK_FAILS(quire_page_policy_preset(QUIRE_PRESET_VMA, b->device, 4, &p), invalid);
    CHECK_HAS(quire_last_error(), "there is no memory kind 4: the device has 4");
    CHECK_EQ(p.page_size, 0);
    make(b, policy_of(b, QUIRE_PRESET_PYTORCH));
}

/* ---- PaddlePaddle --------------------------------------------------------------------------- */

static quire_page_policy paddle(quire_paddle_strategy strategy, quire_paddle_sizes sizes)
{
    quire_page_policy policy;
    CHECK_OK(quire_page_policy_paddle(strategy, &sizes, &policy));
    return policy;
}

static const quire_paddle_strategy AUTO = QUIRE_PADDLE_AUTO_GROWTH,
                                   NAIVE = QUIRE_PADDLE_NAIVE_BEST_FIT;

CASE(auto_growth_creates_pages_of_a_request_or_of_a_chunk, 1 * GIB)
{
    quire_paddle_sizes npu = {.min_chunk = 512, .extra_padding = 32};
    EXPECT_FIRST(b, paddle(AUTO, npu), {1, 512, false}, {480, 512, false}, {481, 1024, false},
                 {1 * MIB, 1 * MIB + 512, false});
    quire_memory_destroy_all(&b->memory);
    npu.chunk = 1 * MIB;
    EXPECT_FIRST(b, paddle(AUTO, npu), {1, 1 * MIB, false}, {1 * MIB - 32, 1 * MIB, false},
                 {1 * MIB - 31, 1 * MIB + 512, false});
    EXPECT_COURSE(b, {500 * KIB, 1 * MIB, false}, {500 * KIB, 0, false},
                  {500 * KIB, 1 * MIB, false});
}

/* size' and the chunk, for every number min_chunk; pages are multiples of 256 here. */
CASE(auto_growth_rounds_to_any_min_chunk, 1 * GIB)
{
    quire_page_policy odd =
        paddle(AUTO, (quire_paddle_sizes){.min_chunk = 1000, .extra_padding = 7, .chunk = 10500});
    CHECK_EQ(odd.page_size, 11000);
    CHECK_OK(quire_memory_create(
        b->device, &(quire_memory_options){.fit.algorithm = QUIRE_FIT_FIRST, .pages = odd},
        &b->memory));
    EXPECT_COURSE(b, {1, 11008, false}, {20000, 21248, false});
    CHECK_EQ(fixture_info(b, ALLOCATE(b, .size = 993)).size, 1000);
    CHECK_EQ(fixture_info(b, ALLOCATE(b, .size = 994)).size, 2000);
    CHECK_EQ(paddle(AUTO, (quire_paddle_sizes){0}).page_size, 1);
    CHECK_EQ(paddle(AUTO, (quire_paddle_sizes){.min_chunk = 4096}).page_size, 4096);
}

CASE(naive_best_fit_counts_the_64_bytes_of_a_descriptor, 1 * GIB)
{
    /* Paddle's test device in a build without CUDA and HIP: every page is max_chunk */
    const quire_paddle_sizes fake_cpu = {.min_chunk = 4096, .max_chunk = 64 * KIB};
    EXPECT_FIRST(b, paddle(NAIVE, fake_cpu), {1, 64 * KIB, false}, {4032, 64 * KIB, false},
                 {64 * KIB - 64, 64 * KIB, false}, {64 * KIB - 63, 68 * KIB, true},
                 {1 * MIB, 1 * MIB + 4096, true});
    for (int i = 0; i < 8; i++) /* 2 x 4096 each */
        EXPECT_COURSE(b, {4033, i ? 0 : 64 * KIB, false});
    EXPECT_COURSE(b, {4032, 64 * KIB, false});
}

CASE(naive_best_fit_without_max_chunk_pools_nothing, 1 * GIB)
{
    quire_paddle_sizes gcu = {.min_chunk = 256, .extra_padding = 32, .init_alloc = 1 * MIB};
    EXPECT_FIRST(b, paddle(NAIVE, gcu), {1, 256, true}, {160, 256, true}, {161, 512, true},
                 {1 * MIB, 1 * MIB + 256, true});
    quire_memory_destroy_all(&b->memory);
    gcu.max_chunk = 511; /* 256 is the only smaller size */
    CHECK_EQ(paddle(NAIVE, gcu).dedicated_threshold, 161);
    gcu.max_chunk = 255;
    CHECK_EQ(paddle(NAIVE, gcu).dedicated, QUIRE_DEDICATED_ALWAYS);
    gcu.min_chunk = 1;
    gcu.max_chunk = 96;
    CHECK_EQ(paddle(NAIVE, gcu).dedicated, QUIRE_DEDICATED_ALWAYS);
    gcu.max_chunk = 97;
    CHECK_EQ(paddle(NAIVE, gcu).dedicated_threshold, 2);
    make(b, paddle(NAIVE, gcu));
}

CASE(naive_best_fit_compares_rounded_sizes, 1 * GIB)
{
    const quire_paddle_sizes odd = {.min_chunk = 1000, .max_chunk = 4999};
    EXPECT_FIRST(b, paddle(NAIVE, odd), {3936, 5120, false}, {3937, 5120, true});
}

CASE(naive_best_fit_starts_with_init_and_continues_with_realloc, 1 * GIB)
{
    quire_paddle_sizes gpu = {
        .min_chunk = 256, .max_chunk = 2 * MIB, .init_alloc = 4 * MIB, .re_alloc = 1 * MIB};
    make(b, paddle(NAIVE, gpu));
    quire_allocation made[5];
    made[0] = expect_row(b, (row){2 * MIB - 64, 4 * MIB, false});
    made[1] = expect_row(b, (row){2 * MIB - 64, 0, false});
    made[2] = expect_row(b, (row){1000, 1 * MIB, false});
    made[3] = expect_row(b, (row){2 * MIB - 64, 2 * MIB, false}); /* at least size' */
    made[4] = expect_row(b, (row){2 * MIB, 2 * MIB + 256, true});
    for (int i = 0; i < 5; i++)
        CHECK_OK(quire_free(b->memory, made[i]));
    CHECK_OK(quire_memory_trim(b->memory, 0, NULL));
    EXPECT_COURSE(b, {1000, 4 * MIB, false}); /* from the first size again */
    quire_memory_destroy_all(&b->memory);
    gpu.max_alloc = 3 * MIB;
    make(b, paddle(NAIVE, gpu));
    EXPECT_COURSE(b, {1000, 3 * MIB, false});
    gpu.chunk = 0;
    CHECK_EQ(paddle(AUTO, gpu).page_size, 256);
    gpu.chunk = 4 * MIB;
    CHECK_EQ(paddle(AUTO, gpu).page_size, 3 * MIB);
}

UNIT(preset, invalid_sizes_are_refused)
{
    const quire_result invalid = QUIRE_ERROR_INVALID_ARGUMENT;
    quire_page_policy p;
    quire_paddle_sizes sizes = {.chunk = 1};
    CHECK_FAILS(quire_page_policy_paddle(NAIVE, &sizes, &p), invalid);
    CHECK_HAS(quire_last_error(), "a chunk of 1 B is given: naive_best_fit has none");
    sizes = (quire_paddle_sizes){.min_chunk = 512, .chunk = UINT64_MAX};
    CHECK_FAILS(quire_page_policy_paddle(AUTO, &sizes, &p), invalid);
    CHECK_HAS(quire_last_error(), "cannot be rounded up to a multiple of 512");
    sizes = (quire_paddle_sizes){.extra_padding = UINT64_MAX - 63};
    CHECK_FAILS(quire_page_policy_paddle(NAIVE, &sizes, &p), invalid);
    CHECK_HAS(quire_last_error(), "bytes of padding and 64 of a descriptor exceed 64 bits");
    sizes = (quire_paddle_sizes){.unused = {0, 0, 1}};
    CHECK_FAILS(quire_page_policy_paddle(AUTO, &sizes, &p), invalid);
    CHECK_HAS(quire_last_error(), "quire_paddle_sizes.unused[2]");
    sizes = (quire_paddle_sizes){0};
    CHECK_FAILS(quire_page_policy_paddle((quire_paddle_strategy)2, &sizes, &p), invalid);
    CHECK_HAS(quire_last_error(), "there is no strategy 2");
}
