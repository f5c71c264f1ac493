/*
 * preset.c - the presets of VulkanMemoryAllocator, RMM and PyTorch create the pages that the
 * formulas of docs/policies.md give, table by table. Those of PaddlePaddle are in preset_paddle.c.
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
