/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_memory.c - pages, ranges, objects and maps on the fake Vulkan driver: the calls that the
 * driver receives, and their number; priorities, and the functions of a wrapped device.
 */
#include <math.h>

#include "tests/support/unit.h"
#include "tests/support/vulkan_bench.h"
#include "tests/support/vulkan_native.h"

#define KIB UINT64_C(1024)

static const quire_memory_options LOCAL = {
    .kind.required = QUIRE_DEVICE_LOCAL, .name = "local", .pages = {.page_size = 1024 * KIB}};

static quire_memory *begin(vulkan_bench *b, const char *layout, uint32_t flags,
                           const quire_memory_options *options)
{
    vulkan_bench_start(b, layout, flags);
    return vulkan_bench_memory(b, options);
}

/* ---- calls ---------------------------------------------------------------------------------- */

VULKAN_UNIT_IN(vulkan_memory, raw_ranges_cost_no_call_once_there_is_a_page,
               begin(b, NULL, 0, &LOCAL))
{
    quire_allocation a[10];
    quire_vulkan_range range;
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 100}, &a[0]));
    fv_reset_counters(b->driver);
    for (int round = 0; round < 1000; round++) {
        for (int i = 1; i < 10; i++)
            CHECK_OK(quire_allocate(
                memory, &(quire_allocation_options){.size = 100u * (unsigned)i, .alignment = 64},
                &a[i]));
        CHECK_OK(quire_vulkan_get_range(memory, a[5], &range));
        for (int i = 1; i < 10; i++)
            CHECK_OK(quire_free(memory, a[i]));
    }
    CHECK_EQ(fv_calls(b->driver, NULL), 0);
}

VULKAN_UNIT_IN(vulkan_memory, a_buffer_costs_three_calls_and_its_end_one, begin(b, NULL, 0, &LOCAL))
{
    quire_buffer buffer;
    CHECK_OK(quire_buffer_create(memory, &(quire_buffer_options){.size = 100}, &buffer));
    fv_reset_counters(b->driver);
    quire_buffer another;
    CHECK_OK(quire_buffer_create(memory, &(quire_buffer_options){.size = 100}, &another));
    CHECK_EQ(fv_calls(b->driver, NULL), 3);
    CHECK_EQ(fv_calls(b->driver, "vkCreateBuffer"), 1);
    CHECK_EQ(fv_calls(b->driver, "vkGetBufferMemoryRequirements2"), 1);
    CHECK_EQ(fv_calls(b->driver, "vkBindBufferMemory"), 1);
    CHECK_OK(quire_free(memory, another.allocation));
    CHECK_EQ(fv_calls(b->driver, NULL), 4);
}

/* ---- what a page is asked to be ------------------------------------------------------------- */

VULKAN_UNIT(vulkan_memory, pages_have_addresses_priorities_and_names)
{
    quire_allocation a;
    quire_vulkan_range range;
    char name[64];
    quire_memory_options options = LOCAL;
    options.priority = 0.75f;
    quire_memory *memory = begin(b, "amd-rebar", 0, &options);
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 1}, &a));
    fv_memory_info info = vulkan_bench_page(b, memory, a);
    CHECK(info.addressed);
    CHECK(!info.dedicated && !info.imported && !info.exportable);
    CHECK_OK(quire_vulkan_get_range(memory, a, &range));
    fv_name_of(b->driver, (uint64_t)(uintptr_t)range.memory, name, sizeof name);
    CHECK_STR(name, "local");
}

UNIT(vulkan_memory, priorities_are_the_memorys_or_the_middle)
{
    static const float asked[] = {0, 0.25f, 1, QUIRE_PRIORITY_LOWEST}, told[] = {0.5f, 0.25f, 1, 0};
    for (uint32_t i = 0; i < fv_layout_count; i++) {
        if (!(fv_layouts[i].extensions & FV_BIT(PRIORITY)))
            continue;
        for (int k = 0; k < 4; k++) {
            vulkan_bench b;
            quire_allocation a;
            quire_memory_options options = LOCAL;
            options.priority = asked[k];
            quire_memory *memory = begin(&b, fv_layouts[i].name, 0, &options);
            CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 1}, &a));
            CHECK(vulkan_bench_page(&b, memory, a).priority == told[k]);
            vulkan_bench_end(&b);
        }
    }
}

VULKAN_UNIT_EACH(vulkan_memory, a_zeroed_image_is_alone_only_where_the_driver_requires_it, i, 2)
{
    static const uint32_t flags[] = {FV_DIRTY, FV_DIRTY | FV_PREFER_DEDICATED};
    quire_image image;
    quire_image_info info;
    unsigned char bytes[16];
    quire_memory *memory = begin(b, NULL, flags[i], &LOCAL);
    CHECK_OK(quire_image_create(
        memory, &(quire_image_options){.width = 20, .height = 20, .zero = true}, &image));
    CHECK_OK(quire_image_get_info(memory, image, &info));
    CHECK(!info.place.dedicated);
    CHECK_OK(quire_read(memory, image.allocation, 0, bytes, sizeof bytes));
    CHECK_EQ(bytes[0] | bytes[15], 0);
}

/* With maxMemoryAllocationCount 9, of which the staging ring has one. */
VULKAN_UNIT_EACH(vulkan_memory, a_preference_leaves_a_quarter_of_the_allocations, by_quire, 2)
{
    const VkImageCreateInfo native = VULKAN_IMAGE(20, VK_IMAGE_USAGE_SAMPLED_BIT);
    const quire_image_options own = {.width = 20, .height = 20};
    fv_layout few = *fv_layout_named("amd-bar");
    few.max_allocations = 9;
    vulkan_bench_start_with(b, &(fv_options){.layouts = {&few}, .flags = FV_PREFER_DEDICATED});
    quire_memory *memory = vulkan_bench_memory(b, &LOCAL);
    for (int i = 0; i < 50; i++) {
        quire_image image;
        quire_image_info info;
        CHECK_OK(by_quire ? quire_image_create(memory, &own, &image)
                          : quire_vulkan_image_create(memory, &native, NULL, &image));
        CHECK_OK(quire_image_get_info(memory, image, &info));
        CHECK_EQ(info.place.dedicated, i < 6);
        CHECK_EQ(vulkan_bench_page(b, memory, image.allocation).dedicated, i < 6);
    }
    CHECK_EQ(fv_live(b->driver, FV_MEMORY), 7);
}

VULKAN_UNIT(vulkan_memory, a_preference_of_a_raw_range_leaves_a_quarter_of_the_allocations)
{
    fv_layout few = *fv_layout_named("amd-bar");
    few.max_allocations = 9;
    vulkan_bench_start_with(b, &(fv_options){.layouts = {&few}});
    quire_memory *memory = vulkan_bench_memory(b, &LOCAL);
    VkMemoryDedicatedRequirements dedicated = {.sType =
                                                   VK_STRUCTURE_TYPE_MEMORY_DEDICATED_REQUIREMENTS,
                                               .prefersDedicatedAllocation = VK_TRUE};
    const VkMemoryRequirements2 needs = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2,
        .pNext = &dedicated,
        .memoryRequirements = {.size = 1000, .alignment = 16, .memoryTypeBits = UINT32_MAX}};
    quire_allocation made[100];
    for (int i = 0; i < 100; i++) {
        quire_allocation_options options = {.size = 0};
        CHECK_OK(quire_vulkan_range_options(memory, &needs, QUIRE_TILING_LINEAR, &options));
        CHECK_EQ(options.dedicated, i < 6);
        CHECK_OK(quire_allocate(memory, &options, &made[i]));
    }
    CHECK_EQ(fv_live(b->driver, FV_MEMORY), 7);
    for (int i = 0; i < 100; i++)
        CHECK_OK(quire_free(memory, made[i]));
    CHECK_OK(quire_memory_trim(memory, 0, NULL));
    quire_allocation_options options = {.size = 0};
    CHECK_OK(quire_vulkan_range_options(memory, &needs, QUIRE_TILING_LINEAR, &options));
    CHECK(options.dedicated);
}

/* ---- limits --------------------------------------------------------------------------------- */

VULKAN_UNIT_IN(vulkan_memory, a_smaller_page_where_the_device_has_no_more,
               begin(b, NULL, 0, &LOCAL))
{
    quire_allocation a;
    quire_memory_info info;
    quire_device_info device;
    CHECK_OK(quire_memory_get_info(memory, &info));
    CHECK_OK(quire_device_get_info(b->device, &device));
    fv_set_capacity(b->driver, 0, device.kinds[info.kind].heap, 600 * KIB);
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 100 * KIB}, &a));
    CHECK_EQ(vulkan_bench_page(b, memory, a).size, 512 * KIB);
    quire_allocation more;
    CHECK_FAILS(quire_allocate(memory, &(quire_allocation_options){.size = 512 * KIB}, &more),
                QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_EQ(quire_last_native_code(), VK_ERROR_OUT_OF_DEVICE_MEMORY);
}

/* ---- neighbours ----------------------------------------------------------------------------- */

/* Whether two places share an aligned unit of `granularity` bytes. */
static bool share(const fv_place *a, const fv_place *b, uint64_t granularity)
{
    return a->memory == b->memory &&
           a->offset / granularity <= (b->offset + b->size - 1) / granularity &&
           b->offset / granularity <= (a->offset + a->size - 1) / granularity;
}

/* Buffers and images alternate, some are freed: a buffer and an image never share a unit. */
static void mix(const char *layout)
{
    enum { COUNT = 60 };
    vulkan_bench b;
    quire_device_info info;
    fv_place places[COUNT];
    quire_allocation made[COUNT];
    quire_memory *memory = begin(&b, layout, 0, &LOCAL);
    CHECK_OK(quire_device_get_info(b.device, &info));
    uint64_t granularity = info.limits.buffer_image_granularity;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < COUNT; i++) {
            quire_buffer buffer;
            quire_image image;
            if (round && i % 3)
                continue;
            if (round)
                CHECK_OK(quire_free(memory, made[i]));
            if ((i + round) % 2) {
                CHECK_OK(quire_buffer_create(
                    memory, &(quire_buffer_options){.size = 100u + (unsigned)i * 13}, &buffer));
                made[i] = buffer.allocation;
            } else {
                CHECK_OK(quire_image_create(
                    memory, &(quire_image_options){.width = 10u + (unsigned)i, .height = 7},
                    &image));
                made[i] = image.allocation;
            }
        }
    }
    bool is_image[COUNT];
    for (int i = 0; i < COUNT; i++) {
        quire_native native;
        CHECK_OK(quire_allocation_get_native(memory, made[i], &native));
        places[i] = fv_place_of(b.driver, native.handle);
        is_image[i] = native.object == QUIRE_OBJECT_IMAGE;
        for (int k = 0; k < i; k++)
            CHECK(is_image[i] == is_image[k] ||
                  !share(&places[i], &places[k], granularity ? granularity : 1));
    }
    vulkan_bench_end(&b);
}

UNIT(vulkan_memory, buffers_and_images_keep_the_granularity_apart)
{
    for (uint32_t i = 0; i < fv_layout_count; i++)
        mix(fv_layouts[i].name);
}

/* ---- contents ------------------------------------------------------------------------------- */

/* Every memory kind that can hold a buffer, with all unusual behaviour at the same time. */
static void contents(const char *layout, uint32_t flags)
{
    static unsigned char in[70001], out[70001];
    vulkan_bench b;
    quire_device_info info;
    vulkan_bench_begin(&b, layout, flags);
    CHECK(vulkan_bench_open(&b, &(quire_vulkan_settings){.staging_size = 16 * KIB}));
    CHECK_OK(quire_device_get_info(b.device, &info));
    for (size_t i = 0; i < sizeof in; i++)
        in[i] = (unsigned char)(i * 31 + i / 251);
    for (uint32_t kind = 0; kind < info.kind_count; kind++) {
        const quire_memory_flags special = QUIRE_LAZILY_ALLOCATED | QUIRE_PROTECTED |
                                           QUIRE_DEVICE_COHERENT | QUIRE_DEVICE_UNCACHED;
        quire_memory *memory = NULL;
        quire_buffer buffer;
        if (info.kinds[kind].flags & special)
            continue;
        CHECK_OK(quire_memory_create(
            b.device, &(quire_memory_options){.kind.mask = UINT32_C(1) << kind}, &memory));
        quire_result result = quire_buffer_create(
            memory, &(quire_buffer_options){.size = sizeof in, .zero = true}, &buffer);
        CHECK(!result || result == QUIRE_ERROR_UNSUPPORTED); /* a kind that holds no buffers */
        if (!result) {
            CHECK_OK(quire_read(memory, buffer.allocation, 0, out, sizeof out));
            for (size_t i = 0; i < sizeof out; i++)
                CHECK_EQ(out[i], 0);
            CHECK_OK(quire_write(memory, buffer.allocation, 1, in, sizeof in - 1));
            CHECK_OK(quire_read(memory, buffer.allocation, 1, out, sizeof out - 1));
            CHECK(!memcmp(in, out, sizeof in - 1));
            CHECK_OK(quire_free(memory, buffer.allocation));
        }
        CHECK_OK(quire_memory_destroy(&memory));
    }
    vulkan_bench_end(&b);
}

UNIT(vulkan_memory, contents_of_every_kind_on_every_layout)
{
    for (uint32_t i = 0; i < fv_layout_count; i++) {
        contents(fv_layouts[i].name, FV_DIRTY | FV_STALE);
        contents(fv_layouts[i].name, FV_DIRTY | FV_LATE | FV_ODD_SIZES | FV_LARGE_ALIGNMENTS);
    }
}

/* With maintenance4 the requirements of a buffer are queried without creating it. */
UNIT(vulkan_memory, needs_are_asked_without_an_object)
{
    static const struct {
        const char *layout;
        uint64_t created;
    } cases[] = {{"amd-bar", 0}, {"intel-2017", 1}};
    const VkBufferCreateInfo buffer = VULKAN_BUFFER(1000, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT);
    const quire_image_options image = {.width = 100, .height = 100};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        vulkan_bench b;
        quire_requirements needs;
        vulkan_bench_start(&b, cases[i].layout, 0);
        fv_reset_counters(b.driver);
        CHECK_OK(quire_vulkan_buffer_requirements(b.device, &buffer, &needs));
        CHECK_OK(quire_image_get_requirements(b.device, &image, &needs));
        CHECK_EQ(fv_calls(b.driver, "vkCreateBuffer"), cases[i].created);
        CHECK_EQ(fv_calls(b.driver, "vkCreateImage"), cases[i].created);
        CHECK_EQ(fv_calls(b.driver, "vkGetDeviceBufferMemoryRequirements"), !cases[i].created);
        CHECK_EQ(fv_calls(b.driver, "vkGetDeviceImageMemoryRequirements"), !cases[i].created);
        vulkan_bench_end(&b);
    }
}

/* The same device, declared as a group of one and as a group of two. */
VULKAN_UNIT_ON(vulkan_memory, a_group_of_several_devices_is_refused, vulkan_bench_start(b, NULL, 0))
{
    const quire_vulkan_handles h = vulkan_bench_handles(b);
    const VkPhysicalDevice both[] = {h.physical_device, h.physical_device};
    for (uint32_t count = 1; count <= 2; count++) {
        const VkDeviceGroupDeviceCreateInfo group = {
            .sType = VK_STRUCTURE_TYPE_DEVICE_GROUP_DEVICE_CREATE_INFO,
            .physicalDeviceCount = count,
            .pPhysicalDevices = both,
        };
        const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                         .pNext = &group};
        quire_vulkan_wrap_options options = vulkan_bench_wrap(b);
        options.device_info = &info;
        quire_device *device = NULL;
        quire_result result = quire_vulkan_wrap(&options, &device);
        CHECK_EQ(result, count == 1 ? QUIRE_SUCCESS : QUIRE_ERROR_UNSUPPORTED);
        if (result)
            CHECK_HAS(quire_last_error(), "a group of 2 physical devices");
        CHECK_OK(quire_device_destroy(&device));
    }
}

/* VkBufferUsageFlags2CreateInfoKHR of maintenance5, which older headers lack. */
typedef struct usage2 {
    VkStructureType type;
    const void *next;
    uint64_t usage;
} usage2;

VULKAN_UNIT_ON(vulkan_memory, usage_may_come_from_the_chain, vulkan_bench_start(b, NULL, 0))
{
    static const usage2 wide = {.type = (VkStructureType)1000470006,
                                .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                         VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT};
    const VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .pNext = &wide, .size = 1000};
    VkBufferCreateInfo narrow = VULKAN_BUFFER(1000, (VkBufferUsageFlags)wide.usage);
    quire_requirements needs, same;
    quire_buffer buffer;
    quire_memory *memory = vulkan_bench_memory(b, NULL);
    CHECK_OK(quire_vulkan_buffer_requirements(b->device, &info, &needs));
    CHECK_OK(quire_vulkan_buffer_requirements(b->device, &narrow, &same));
    CHECK_EQ(needs.alignment, same.alignment);
    CHECK_EQ(needs.kind_mask, same.kind_mask);
    CHECK_OK(quire_vulkan_buffer_create(memory, &info, NULL, &buffer));
    CHECK(vulkan_bench_page(b, memory, buffer.allocation).addressed);
    const quire_vulkan_handles h = vulkan_bench_handles(b);
    PFN_vkGetBufferDeviceAddress address_of = VULKAN_CALL(h, vkGetBufferDeviceAddress);
    const VkBufferDeviceAddressInfo asked = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                             .buffer = vulkan_buffer_of(memory, buffer)};
    CHECK(address_of(h.device, &asked) != 0); /* the driver reports nothing */
}

/* Without a flush or an invalidate the other side does not see the bytes. */
VULKAN_UNIT_ON(vulkan_memory, lists_of_ranges_are_one_call,
               vulkan_bench_start(b, "incoherent", FV_STALE | FV_DIRTY))
{
    enum { PARTS = 40, SIZE = 500 };
    const quire_memory_options options = {.kind.required = QUIRE_HOST_VISIBLE,
                                          .pages = {.page_size = 16384}};
    unsigned char *bytes[PARTS];
    quire_view views[PARTS];
    quire_memory_info info;
    quire_memory *memory = vulkan_bench_memory(b, &options);
    for (int i = 0; i < PARTS; i++) {
        void *pointer = NULL;
        views[i] = (quire_view){.size = SIZE};
        CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 2 * SIZE},
                                &views[i].allocation));
        CHECK_OK(quire_map(memory, views[i].allocation, &pointer));
        bytes[i] = pointer;
        memset(pointer, i + 1, SIZE);
    }
    CHECK_OK(quire_memory_get_info(memory, &info));
    CHECK(!(info.flags & QUIRE_HOST_COHERENT) && info.page_count > 1);
    fv_reset_counters(b->driver);
    CHECK_OK(quire_flush_batch(memory, views, PARTS));
    CHECK_EQ(fv_calls(b->driver, NULL), 1);
    CHECK_EQ(fv_calls(b->driver, "vkFlushMappedMemoryRanges"), 1);
    for (int i = 0; i < PARTS; i++)
        memset(bytes[i], 0xff, SIZE); /* not flushed: the device keeps the old bytes */
    CHECK_OK(quire_invalidate_batch(memory, views, PARTS));
    CHECK_EQ(fv_calls(b->driver, "vkInvalidateMappedMemoryRanges"), 1);
    for (int i = 0; i < PARTS; i++)
        for (int k = 0; k < SIZE; k++)
            CHECK_EQ(bytes[i][k], i + 1);
}

/* ---- devices -------------------------------------------------------------------------------- */

VULKAN_UNIT_ON(vulkan_memory, a_function_that_the_driver_lacks_is_named,
               vulkan_bench_begin(b, NULL, 0))
{
    fv_hide(b->driver, "vkBindImageMemory");
    CHECK(!vulkan_bench_open(b, NULL));
    CHECK_EQ(b->result, QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_HAS(quire_last_error(), "vkBindImageMemory");
}

VULKAN_UNIT(vulkan_memory, the_best_of_several_devices_is_opened)
{
    const fv_options options = {.layouts = {fv_layout_named("lavapipe"),
                                            fv_layout_named("intel-uma"),
                                            fv_layout_named("amd-bar")}};
    quire_device_info info, cpu;
    vulkan_bench_begin_with(b, &options);
    const quire_vulkan_options any = {.get_instance_proc_addr = fv_door(b->driver)};
    quire_vulkan_options first = any;
    first.device = "0";
    CHECK_OK(quire_vulkan_open(&any, &b->device));
    CHECK_OK(quire_device_get_info(b->device, &info));
    CHECK_EQ(info.kind_count, options.layouts[2]->type_count);
    CHECK_OK(quire_device_destroy(&b->device));
    CHECK_OK(quire_vulkan_open(&first, &b->device));
    CHECK_OK(quire_device_get_info(b->device, &cpu));
    CHECK_EQ(cpu.kind_count, options.layouts[0]->type_count);
}

/* ---- maps: the driver reports two of one memory, and flushes of memory without one ----------- */

enum { MAPPED = 1000 };

typedef struct scene {
    vulkan_bench b;
    quire_memory *memory;
} scene;

static void begin_mapping(scene *s, bool on_demand)
{
    static const quire_intent readback = QUIRE_INTENT_HOST_READ;
    vulkan_bench_start(&s->b, "amd-bar", 0);
    s->memory = vulkan_bench_memory(&s->b, &(quire_memory_options){.kind.intent = readback,
                                                                   .map_on_demand = on_demand,
                                                                   .pages.page_size = 1024 * KIB});
}

static void end_mapping(scene *s)
{
    vulkan_bench_end(&s->b);
}

#define CASE(name, begin) UNIT_ON(vulkan_map, name, scene, s, begin, end_mapping)

/* Checks the calls since the last check. */
static void expect_maps(scene *s, uint64_t maps, uint64_t unmaps)
{
    CHECK_EQ(fv_calls(s->b.driver, "vkMapMemory"), maps);
    CHECK_EQ(fv_calls(s->b.driver, "vkUnmapMemory"), unmaps);
    fv_reset_counters(s->b.driver);
}

CASE(a_page_is_mapped_once_without_the_option, begin_mapping(s, false))
{
    quire_buffer buffer;
    quire_allocation_info info;
    char bytes[MAPPED];
    for (int i = 0; i < 10; i++) {
        CHECK_OK(quire_buffer_create(
            s->memory, &(quire_buffer_options){.size = MAPPED, .mapped = true, .info = &info},
            &buffer));
        memset(info.host, i, MAPPED);
        CHECK_OK(quire_read(s->memory, buffer.allocation, 0, bytes, MAPPED));
        CHECK_EQ(bytes[MAPPED - 1], i);
        CHECK_OK(quire_free(s->memory, buffer.allocation));
    }
    expect_maps(s, 1, 0);
}

CASE(a_page_is_mapped_while_a_buffer_is, begin_mapping(s, true))
{
    quire_buffer first, second;
    quire_allocation_info info;
    const quire_buffer_options plain = {.size = MAPPED};
    const quire_buffer_options mapped = {.size = MAPPED, .mapped = true, .info = &info};
    CHECK_OK(quire_buffer_create(s->memory, &plain, &first));
    expect_maps(s, 0, 0);
    CHECK_OK(quire_write(s->memory, first.allocation, 0, "abc", 3));
    expect_maps(s, 1, 1);
    CHECK_OK(quire_buffer_create(s->memory, &mapped, &second));
    CHECK_OK(quire_write(s->memory, first.allocation, 0, "abc", 3));
    memset(info.host, 7, MAPPED);
    CHECK_OK(quire_flush(s->memory, second.allocation, 0, 0));
    expect_maps(s, 1, 0);
    CHECK_OK(quire_free(s->memory, second.allocation));
    expect_maps(s, 0, 1);
    CHECK_OK(quire_free(s->memory, first.allocation));
    CHECK_OK(quire_memory_trim(s->memory, 0, NULL));
    expect_maps(s, 0, 0);
}

CASE(objects_from_create_infos_are_mapped, begin_mapping(s, true))
{
    quire_buffer buffer;
    quire_allocation_info info;
    const VkBufferCreateInfo create = VULKAN_BUFFER(MAPPED, VK_BUFFER_USAGE_TRANSFER_SRC_BIT);
    const quire_vulkan_object_options options = {.mapped = true};
    for (int dedicated = 0; dedicated < 2; dedicated++) {
        quire_vulkan_object_options own = options;
        own.dedicated = dedicated;
        CHECK_OK(quire_vulkan_buffer_create(s->memory, &create, &own, &buffer));
        expect_maps(s, 1, 0);
        CHECK_OK(quire_allocation_get_info(s->memory, buffer.allocation, &info));
        CHECK(info.host != NULL);
        memset(info.host, 1, MAPPED);
        CHECK_OK(quire_free(s->memory, buffer.allocation));
        expect_maps(s, 0, 1);
    }
}

CASE(a_failed_map_is_the_error_of_the_call, begin_mapping(s, true))
{
    quire_buffer buffer;
    quire_allocation raw;
    void *pointer = s;
    const fv_fault fault = {
        .function = "vkMapMemory", .call = 1, .result = VK_ERROR_MEMORY_MAP_FAILED};
    CHECK_OK(quire_allocate(s->memory, &(quire_allocation_options){.size = MAPPED}, &raw));
    CHECK(fv_fail(s->b.driver, &fault));
    CHECK(quire_map(s->memory, raw, &pointer));
    CHECK(pointer == NULL);
    CHECK_EQ(quire_last_native_code(), (int64_t)VK_ERROR_MEMORY_MAP_FAILED);
    CHECK(fv_fail(s->b.driver, &fault));
    CHECK(quire_buffer_create(s->memory, &(quire_buffer_options){.size = MAPPED, .mapped = true},
                              &buffer));
    CHECK(!buffer.allocation.id);
    CHECK_OK(quire_map(s->memory, raw, &pointer));
    CHECK_OK(quire_unmap(s->memory, raw));
}

/* ---- priorities ------------------------------------------------------------------------------ */

static quire_allocation allocate(quire_memory *memory)
{
    quire_allocation made;
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 1000}, &made));
    return made;
}

/* The driver reports priorities that change on a device without the feature. */
VULKAN_UNIT_ON(vulkan_settings, priorities_of_an_own_device_change,
               vulkan_bench_start(b, "amd-rebar", 0))
{
    static const float good[] = {0.25f, 1, 0}, wrong[] = {-0.5f, 1.5f, NAN};
    quire_memory *memory = vulkan_bench_memory(b, &LOCAL);
    quire_allocation a = allocate(memory);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(quire_vulkan_set_priority(memory, a, good[i]));
        CHECK_FAILS(quire_vulkan_set_priority(memory, a, wrong[i]), QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK(vulkan_bench_page(b, memory, a).priority == good[i]);
    }
}

/* radv 23.1 has priorities of new memory only. */
VULKAN_UNIT_ON(vulkan_settings, priorities_do_not_change_without_the_feature,
               vulkan_bench_start(b, "amd-bar", 0))
{
    quire_memory *memory = vulkan_bench_memory(b, &LOCAL);
    CHECK_FAILS(quire_vulkan_set_priority(memory, allocate(memory), 0.25f),
                QUIRE_ERROR_UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "pageableDeviceLocalMemory");
}

/* ---- wrapping ------------------------------------------------------------------------------- */

static PFN_vkGetDeviceProcAddr next_one;
static uint64_t asked;

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL ask_next(VkDevice device, const char *name)
{
    asked++;
    return next_one(device, name);
}

/* Like a layer: the backend calls the functions of the given get_device_proc_addr. */
VULKAN_UNIT_ON(vulkan_settings, functions_come_from_the_next_layer_where_it_is_given,
               vulkan_bench_start(b, NULL, 0))
{
    const quire_vulkan_handles h = vulkan_bench_handles(b);
    next_one = VULKAN_CALL(h, vkGetDeviceProcAddr);
    quire_vulkan_wrap_options options = vulkan_bench_wrap(b);
    options.get_device_proc_addr = ask_next;
    quire_device *device = NULL;
    quire_memory *memory = NULL;
    asked = 0;
    CHECK_OK(quire_vulkan_wrap(&options, &device));
    CHECK(asked > 30); /* all functions of devices */
    CHECK_OK(quire_memory_create(device, &LOCAL, &memory));
    allocate(memory);
    quire_memory_destroy_all(&memory);
    CHECK_OK(quire_device_destroy(&device));
}
