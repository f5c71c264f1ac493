/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_zero.c - VK_EXT_zero_initialize_device_memory on the fake Vulkan driver: dedicated pages
 * for zeros are made with them, and nothing is filled.
 */
#include "tests/support/unit.h"
#include "tests/support/vulkan_bench.h"

static const quire_memory_options LOCAL = {.kind.required = QUIRE_DEVICE_LOCAL};
static const uint64_t SIZE = 1000;

/* With the extension. */
static fv_layout make_layout(void)
{
    fv_layout layout = *fv_layout_named("amd-rebar");
    layout.extensions |= FV_BIT(ZERO);
    return layout;
}

/* A driver with the extension, whose other memory has garbage. */
static quire_memory *begin(vulkan_bench *b, uint32_t flags)
{
    fv_layout layout = make_layout();
    const fv_options options = {.layouts = {&layout}, .flags = flags | FV_DIRTY};
    quire_vulkan_features features;
    vulkan_bench_start_with(b, &options);
    CHECK_OK(quire_vulkan_get_features(b->device, &features));
    CHECK(features.zero_initialize);
    return vulkan_bench_memory(b, &LOCAL);
}

static void expect_zeros(quire_memory *memory, quire_allocation allocation)
{
    unsigned char bytes[1000];
    memset(bytes, 0xff, SIZE);
    CHECK_OK(quire_read(memory, allocation, 0, bytes, SIZE));
    for (uint64_t i = 0; i < SIZE; i++)
        CHECK_EQ(bytes[i], 0);
}

VULKAN_UNIT_IN(vulkan_zero, a_dedicated_page_needs_no_fill_the_first_time, begin(b, 0))
{
    const quire_allocation_options zero = {.size = SIZE, .zero = true, .dedicated = true};
    const quire_buffer_options of_buffer = {.size = SIZE, .zero = true, .dedicated = true};
    quire_allocation a;
    quire_buffer buffer;
    for (uint64_t round = 0; round < 2; round++) {
        fv_reset_counters(b->driver);
        CHECK_OK(quire_allocate(memory, &zero, &a));
        CHECK_EQ(fv_calls(b->driver, "vkAllocateMemory"), !round); /* then the page is kept */
        CHECK_EQ(fv_calls(b->driver, "vkQueueSubmit"), round);
        CHECK(vulkan_bench_page(b, memory, a).zeroed);
        expect_zeros(memory, a);
        CHECK_OK(quire_fill(memory, a, &(quire_fill_options){.value = 0xff}, NULL));
        CHECK_OK(quire_free(memory, a));
    }
    CHECK_OK(quire_memory_trim(memory, 0, NULL));
    fv_reset_counters(b->driver);
    CHECK_OK(quire_buffer_create(memory, &of_buffer, &buffer));
    CHECK_EQ(fv_calls(b->driver, "vkQueueSubmit"), 0);
    expect_zeros(memory, buffer.allocation);
}

VULKAN_UNIT_IN(vulkan_zero, other_pages_are_made_without, begin(b, 0))
{
    quire_allocation shared, dedicated;
    CHECK_OK(
        quire_allocate(memory, &(quire_allocation_options){.size = SIZE, .zero = true}, &shared));
    CHECK(!vulkan_bench_page(b, memory, shared).zeroed);
    expect_zeros(memory, shared);
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = SIZE, .dedicated = true},
                            &dedicated));
    CHECK(!vulkan_bench_page(b, memory, dedicated).zeroed);
}

/* An image that must have a page of its own could not be filled. */
UNIT(vulkan_zero, an_image_with_a_required_page_gets_zeros)
{
    const quire_image_options zero = {.width = 64, .height = 64, .zero = true};
    vulkan_bench b;
    quire_image image;
    quire_memory *memory = begin(&b, FV_REQUIRE_DEDICATED);
    CHECK_OK(quire_image_create(memory, &zero, &image));
    CHECK(vulkan_bench_page(&b, memory, image.allocation).zeroed);
    vulkan_bench_end(&b);
    vulkan_bench_start(&b, "amd-rebar", FV_REQUIRE_DEDICATED);
    CHECK_FAILS(quire_image_create(vulkan_bench_memory(&b, &LOCAL), &zero, &image),
                QUIRE_ERROR_UNSUPPORTED);
    vulkan_bench_end(&b);
}

/* The driver reports zeros in memory of a protected type. */
VULKAN_UNIT(vulkan_zero, protected_pages_are_made_without)
{
    fv_layout layout = make_layout();
    layout.features |= FV_PROTECTED;
    layout.types[0].propertyFlags |= VK_MEMORY_PROPERTY_PROTECTED_BIT;
    VkPhysicalDeviceProtectedMemoryFeatures protected = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROTECTED_MEMORY_FEATURES,
        .protectedMemory = VK_TRUE};
    const fv_options options = {.layouts = {&layout}};
    quire_allocation a = {0};
    vulkan_bench_begin_with(b, &options);
    CHECK(vulkan_bench_open_with(b, (quire_vulkan_options){.chain = &protected}));
    quire_memory *memory = vulkan_bench_memory(b, &(quire_memory_options){.kind.mask = 1});
    CHECK(quire_allocate(
        memory, &(quire_allocation_options){.size = SIZE, .zero = true, .dedicated = true}, &a));
    CHECK_EQ(a.id, 0);
    CHECK_EQ(fv_message_count(b->driver, FV_ERROR), 0);
}

UNIT(vulkan_zero, the_feature_is_checked_and_merged_with_the_programs)
{
    struct {
        VkStructureType type;
        void *next;
        VkBool32 zero;
    } of_program = {.type = (VkStructureType)1000620000, .zero = VK_TRUE};
    vulkan_bench b;
    vulkan_bench_begin(&b, "amd-rebar", 0);
    CHECK(!vulkan_bench_open_with(&b, (quire_vulkan_options){.chain = &of_program}));
    CHECK_EQ(b.result, QUIRE_ERROR_UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "zeroInitializeDeviceMemory");
    vulkan_bench_end(&b);
    fv_layout layout = make_layout();
    const fv_options options = {.layouts = {&layout}};
    of_program.zero = VK_FALSE;
    vulkan_bench_begin_with(&b, &options);
    CHECK(vulkan_bench_open_with(&b, (quire_vulkan_options){.chain = &of_program}));
    CHECK(of_program.zero); /* until the device is destroyed */
    vulkan_bench_end(&b);
}
