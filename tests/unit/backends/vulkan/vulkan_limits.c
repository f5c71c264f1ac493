/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_limits.c - the largest memory object, the largest buffer and the number of memory objects
 * of a device, on the fake Vulkan driver. It reports buffers above maxBufferSize and too many
 * memory objects. Memory objects above maxMemoryAllocationSize are granted with FV_SOFT_SIZES only.
 */
#include "tests/support/unit.h"
#include "tests/support/vulkan_bench.h"
#include "tests/support/vulkan_native.h"

#define UNSUPPORTED QUIRE_ERROR_UNSUPPORTED
#define MIB (UINT64_C(1) << 20)

static const quire_memory_options LOCAL = {.kind.required = QUIRE_DEVICE_LOCAL};

/* A device with these limits. */
static quire_memory *begin(vulkan_bench *b, uint64_t max_allocation, uint64_t max_buffer,
                           uint32_t flags)
{
    fv_layout layout = *fv_layout_named("nvidia-11");
    layout.api_version = VK_API_VERSION_1_3; /* which has maxBufferSize */
    layout.max_allocation = max_allocation;
    layout.max_buffer = max_buffer;
    vulkan_bench_start_with(b, &(fv_options){.layouts = {&layout}, .flags = flags});
    quire_memory *memory = vulkan_bench_memory(b, &LOCAL);
    CHECK(memory != NULL);
    return memory;
}

VULKAN_UNIT_EACH(vulkan_limits,
                 one_allocation_above_the_largest_memory_object_gets_the_answer_of_the_driver, i, 2)
{
    quire_allocation a;
    quire_buffer buffer;
    quire_memory *memory = begin(b, 8 * MIB, 64 * MIB, i ? FV_SOFT_SIZES : 0);
    const quire_allocation_options options = {.size = 9 * MIB};
    const quire_buffer_options of_buffer = {.size = 9 * MIB};
    if (i) {
        CHECK_OK(quire_allocate(memory, &options, &a));
        CHECK_OK(quire_buffer_create(memory, &of_buffer, &buffer));
    } else {
        CHECK_FAILS(quire_allocate(memory, &options, &a), QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
        CHECK_EQ(quire_last_native_code(), VK_ERROR_OUT_OF_DEVICE_MEMORY);
        CHECK_FAILS(quire_buffer_create(memory, &of_buffer, &buffer),
                    QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
        CHECK_EQ(quire_last_native_code(), VK_ERROR_OUT_OF_DEVICE_MEMORY);
    }
}

VULKAN_UNIT_EACH(vulkan_limits, pages_of_the_policy_stay_within_both, i, 2)
{
    static const uint64_t limits[][2] = {{3 * MIB + 100, 64 * MIB}, {64 * MIB, 3 * MIB + 100}};
    quire_allocation a;
    quire_vulkan_range range;
    quire_page_info page;
    quire_memory_info info;
    quire_memory *memory = begin(b, limits[i][0], limits[i][1], 0);
    for (int k = 0; k < 20; k++)
        CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = MIB / 2}, &a));
    CHECK_OK(quire_memory_get_info(memory, &info));
    CHECK(info.page_count >= 3);
    for (uint32_t k = 0; k < info.page_count; k++) {
        CHECK_OK(quire_page_get_info(memory, k, &page));
        CHECK(page.size <= 3 * MIB + 100);
    }
    CHECK_OK(quire_vulkan_page_buffer(memory, a, &range));
}

VULKAN_UNIT_IN(vulkan_limits, no_buffer_covers_a_page_above_the_largest_buffer,
               begin(b, 64 * MIB, 4 * MIB, 0))
{
    quire_allocation large, small;
    quire_vulkan_range range;
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 5 * MIB}, &large));
    CHECK_FAILS(quire_vulkan_page_buffer(memory, large, &range), UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "the largest buffer of the device has 4 MiB");
    CHECK(range.buffer == VK_NULL_HANDLE);
    CHECK_FAILS(quire_write(memory, large, 0, "byte", 4), UNSUPPORTED);
    CHECK_OK(quire_vulkan_get_range(memory, large, &range));
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 4 * MIB}, &small));
    CHECK_OK(quire_vulkan_page_buffer(memory, small, &range));
}

VULKAN_UNIT_IN(vulkan_limits, a_buffer_above_the_largest_one_is_refused,
               begin(b, 64 * MIB, 4 * MIB, 0))
{
    const VkBufferCreateInfo info = VULKAN_BUFFER(4 * MIB + 1, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT);
    quire_buffer buffer;
    quire_requirements needs;
    CHECK_FAILS(quire_buffer_create(memory, &(quire_buffer_options){.size = 4 * MIB + 1}, &buffer),
                UNSUPPORTED);
    CHECK_FAILS(quire_vulkan_buffer_create(memory, &info, NULL, &buffer), UNSUPPORTED);
    CHECK_FAILS(quire_vulkan_buffer_requirements(b->device, &info, &needs), UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "the largest buffer of the device has 4 MiB");
    CHECK_OK(quire_buffer_create(memory, &(quire_buffer_options){.size = 4 * MIB}, &buffer));
}

/* ---- images ---------------------------------------------------------------------------------- */

VULKAN_UNIT_IN(vulkan_limits, the_driver_is_asked_once_for_each_kind_of_image,
               begin(b, 64 * MIB, 4 * MIB, 0))
{
    static const VkImageUsageFlags usages[] = {VK_IMAGE_USAGE_SAMPLED_BIT,
                                               VK_IMAGE_USAGE_STORAGE_BIT};
    VkImageCreateInfo info = {.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
                              .imageType = VK_IMAGE_TYPE_2D,
                              .format = VK_FORMAT_R8G8B8A8_UNORM,
                              .mipLevels = 1,
                              .arrayLayers = 1,
                              .samples = VK_SAMPLE_COUNT_1_BIT};
    quire_image image;
    fv_reset_counters(b->driver);
    for (uint32_t i = 0; i < 20; i++) {
        info.extent = (VkExtent3D){20 + i, 20, 1};
        info.usage = usages[i % 2];
        CHECK_OK(quire_vulkan_image_create(memory, &info, NULL, &image));
    }
    CHECK_EQ(fv_calls(b->driver, "vkGetPhysicalDeviceImageFormatProperties2"), 2);
    info.extent.width = 1 << 20; /* a limit that is known holds too */
    CHECK_FAILS(quire_vulkan_image_create(memory, &info, NULL, &image), UNSUPPORTED);
    info.format = VK_FORMAT_UNDEFINED + 1000000;
    info.extent.width = 20;
    for (int i = 0; i < 2; i++) /* a failure is not kept */
        CHECK(quire_vulkan_image_create(memory, &info, NULL, &image) != QUIRE_SUCCESS);
    CHECK_EQ(fv_calls(b->driver, "vkGetPhysicalDeviceImageFormatProperties2"), 4);
}

/* Only color images have the aspect whose pitches quire knows how to query. */
UNIT(vulkan_limits, a_linear_image_of_depth_has_no_known_pitches)
{
    VkImageCreateInfo info = {VULKAN_IMAGE_2D(VK_FORMAT_D32_SFLOAT, 20, 20, 1, 1),
                              .tiling = VK_IMAGE_TILING_LINEAR,
                              .usage = VK_IMAGE_USAGE_SAMPLED_BIT};
    vulkan_bench b;
    quire_requirements needs;
    (void)begin(&b, 64 * MIB, 4 * MIB, 0);
    fv_set_format(b.driver, info.format, VK_FORMAT_FEATURE_SAMPLED_IMAGE_BIT, 0);
    CHECK_OK(quire_vulkan_image_requirements(b.device, &info, &needs));
    CHECK(needs.size > 0 && !needs.row_pitch && !needs.slice_pitch);
    info.format = VK_FORMAT_R32_SFLOAT;
    CHECK_OK(quire_vulkan_image_requirements(b.device, &info, &needs));
    CHECK(needs.row_pitch >= 20 * sizeof(float));
    vulkan_bench_end(&b); /* the driver reports a wrong aspect */
}

/* ---- maxMemoryAllocationCount ---------------------------------------------------------------- */

enum { MAX_OBJECTS = 6, STREAMS = 2 };

/* With maxMemoryAllocationCount 6, of which the staging ring has one. */
static quire_memory *begin_few(vulkan_bench *b, quire_stream **streams)
{
    fv_layout few = *fv_layout_named("amd-bar");
    few.max_allocations = MAX_OBJECTS;
    vulkan_bench_start_with(b, &(fv_options){.layouts = {&few}});
    for (int i = 0; i < STREAMS; i++)
        CHECK_OK(quire_stream_create(b->device, NULL, &streams[i]));
    quire_memory *memory = vulkan_bench_memory(b, &LOCAL);
    CHECK(memory != NULL);
    return memory;
}

static void end_few(vulkan_bench *b, quire_stream **streams)
{
    for (int i = 0; i < STREAMS; i++)
        CHECK_OK(quire_stream_destroy(&streams[i]));
    vulkan_bench_end(b);
}

/* Copies host bytes on a stream, and returns whether the call did not wait. */
static bool copies_on(quire_memory *memory, quire_allocation a, quire_stream *stream)
{
    quire_point done;
    const quire_copy_options options = {.to = {.memory = memory, .allocation = a},
                                        .host_from = "byte",
                                        .size = 4,
                                        .stream = stream};
    CHECK_OK(quire_copy(&options, &done));
    return done.stream == stream;
}

static quire_result page(quire_memory *memory, quire_allocation *a)
{
    return quire_allocate(memory, &(quire_allocation_options){.size = 1000, .dedicated = true}, a);
}

UNIT(vulkan_limits, staging_memory_of_streams_counts_as_memory_objects)
{
    vulkan_bench b;
    quire_stream *streams[STREAMS];
    quire_allocation pages[MAX_OBJECTS], none;
    quire_memory *memory = begin_few(&b, streams);
    CHECK_OK(page(memory, &pages[0]));
    CHECK_OK(quire_write(memory, pages[0], 0, "byte", 4)); /* makes the staging ring */
    for (int i = 0; i < STREAMS; i++)
        CHECK(copies_on(memory, pages[0], streams[i]));
    for (int i = 1; i < MAX_OBJECTS - 1 - STREAMS; i++)
        CHECK_OK(page(memory, &pages[i]));
    CHECK_EQ(fv_live(b.driver, FV_MEMORY), MAX_OBJECTS);
    CHECK_FAILS(page(memory, &none), QUIRE_ERROR_TOO_MANY_PAGES);
    CHECK_HAS(quire_last_error(), "6 memory objects");
    CHECK_OK(quire_stream_destroy(&streams[0]));
    CHECK_OK(page(memory, &none)); /* the object of the stream is free */
    CHECK_OK(quire_stream_create(b.device, NULL, &streams[0]));
    end_few(&b, streams);
}

UNIT(vulkan_limits, a_stream_without_a_memory_object_copies_through_the_ring)
{
    vulkan_bench b;
    quire_stream *streams[STREAMS];
    quire_allocation pages[MAX_OBJECTS];
    quire_memory *memory = begin_few(&b, streams);
    for (int i = 0; i < MAX_OBJECTS - 1; i++)
        CHECK_OK(page(memory, &pages[i]));
    CHECK(!copies_on(memory, pages[0], streams[0]));
    CHECK_EQ(fv_live(b.driver, FV_MEMORY), MAX_OBJECTS);
    CHECK_OK(quire_free(memory, pages[1]));
    CHECK_OK(quire_memory_trim(memory, 0, NULL));
    CHECK(copies_on(memory, pages[0], streams[0]));
    end_few(&b, streams);
}

static void count_line(void *user, quire_log_level level, const char *line)
{
    int *count = user;
    *count += level == QUIRE_LOG_WARNING && strstr(line, "maxMemoryAllocationCount");
}

/* Makes twice as many pages as the driver states, on a driver that serves them. */
static void check_count(VkDriverId driver, VkPhysicalDeviceType type,
                        quire_vulkan_memory_limit limit, bool is_advice)
{
    vulkan_bench b;
    quire_device_info info;
    quire_allocation pages[2 * MAX_OBJECTS];
    int seen = 0;
    fv_layout few = *fv_layout_named("amd-bar");
    few.max_allocations = MAX_OBJECTS;
    few.driver = driver;
    few.type = type;
    vulkan_bench_begin_with(&b, &(fv_options){.layouts = {&few}, .flags = FV_SOFT_COUNT});
    CHECK(vulkan_bench_open(
        &b, &(quire_vulkan_settings){.device.log = {count_line, &seen, QUIRE_LOG_WARNING},
                                     .memory_limit = limit}));
    CHECK_OK(quire_device_get_info(b.device, &info));
    CHECK_EQ(info.limits.max_pages, MAX_OBJECTS - 1);
    CHECK_EQ(info.limits.max_pages_is_advice, is_advice);
    quire_memory *memory = vulkan_bench_memory(&b, &LOCAL);
    for (int i = 0; i < 2 * MAX_OBJECTS; i++)
        if (is_advice || i < MAX_OBJECTS - 1)
            CHECK_OK(page(memory, &pages[i]));
        else
            CHECK_FAILS(page(memory, &pages[i]), QUIRE_ERROR_TOO_MANY_PAGES);
    CHECK_EQ(seen, is_advice);
    vulkan_bench_end(&b);
}

UNIT(vulkan_limits, the_number_of_memory_objects_is_advice_where_drivers_serve_more)
{
    const VkPhysicalDeviceType integrated = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU,
                               discrete = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU,
                               cpu = VK_PHYSICAL_DEVICE_TYPE_CPU;
    check_count(0, discrete, QUIRE_VULKAN_LIMIT_BY_DRIVER, false);
    check_count(0, discrete, QUIRE_VULKAN_LIMIT_ADVICE, true);
    check_count(VK_DRIVER_ID_AMD_PROPRIETARY, integrated, QUIRE_VULKAN_LIMIT_BY_DRIVER, true);
    check_count(VK_DRIVER_ID_AMD_PROPRIETARY, integrated, QUIRE_VULKAN_LIMIT_STRICT, false);
    check_count(VK_DRIVER_ID_AMD_PROPRIETARY, discrete, QUIRE_VULKAN_LIMIT_BY_DRIVER, false);
    check_count(VK_DRIVER_ID_GOOGLE_SWIFTSHADER, cpu, QUIRE_VULKAN_LIMIT_BY_DRIVER, true);
}

VULKAN_UNIT_ON(vulkan_limits, an_unknown_meaning_of_the_number_is_refused,
               vulkan_bench_begin(b, NULL, 0))
{
    const quire_vulkan_settings wrong = {.memory_limit = (quire_vulkan_memory_limit)3};
    CHECK(!vulkan_bench_open(b, &wrong));
    CHECK_EQ(quire_last_result(), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_HAS(quire_last_error(), "memory_limit 3");
}

VULKAN_UNIT_ON(vulkan_limits, both_are_in_the_limits_of_the_device, begin(b, 64 * MIB, 4 * MIB, 0))
{
    quire_device_info info;
    CHECK_OK(quire_device_get_info(b->device, &info));
    CHECK_EQ(info.limits.max_page, 0);
    CHECK_EQ(info.limits.usual_page, 64 * MIB);
    CHECK_EQ(info.limits.max_buffer, 4 * MIB);
}
