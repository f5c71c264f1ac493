/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_address.c - quire_allocation_info.address on the fake Vulkan driver: which allocations
 * have an address, which buffer it comes from, the Vulkan calls that it needs, and failures of the
 * driver.
 */
#include <pthread.h>

#include "tests/support/unit.h"
#include "tests/support/vulkan_bench.h"
#include "tests/support/vulkan_native.h"

#define KIB UINT64_C(1024)

static const quire_memory_options LOCAL = {.kind.required = QUIRE_DEVICE_LOCAL,
                                           .pages = {.page_size = 1024 * KIB}};

static const quire_intent EXPORTABLE = QUIRE_INTENT_EXPORT;

/* With FV_REQUIRE_DEDICATED the driver requires a dedicated page for each image, and for each
   exportable buffer. */
static const quire_memory_options SHARED = {.kind.intent = EXPORTABLE,
                                            .pages = {.page_size = 1024 * KIB}};

static quire_memory *begin(vulkan_bench *b, uint32_t flags, const quire_vulkan_settings *settings)
{
    vulkan_bench_begin(b, NULL, flags);
    CHECK(vulkan_bench_open(b, settings));
    return vulkan_bench_memory(b, flags & FV_REQUIRE_DEDICATED ? &SHARED : &LOCAL);
}

static quire_allocation allocate(quire_memory *memory)
{
    quire_allocation made;
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 1000}, &made));
    return made;
}

static uint64_t address_of(quire_memory *memory, quire_allocation allocation)
{
    quire_allocation_info info;
    CHECK_OK(quire_allocation_get_info(memory, allocation, &info));
    return info.address;
}

static uint64_t native_address(const vulkan_bench *b, VkBuffer buffer)
{
    const quire_vulkan_handles h = vulkan_bench_handles(b);
    PFN_vkGetBufferDeviceAddress get = VULKAN_CALL(h, vkGetBufferDeviceAddress);
    CHECK(get != NULL);
    return get(h.device,
               &(VkBufferDeviceAddressInfo){.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                            .buffer = buffer});
}

/* ---- ranges --------------------------------------------------------------------------------- */

VULKAN_UNIT_IN(vulkan_address, ranges_have_the_address_of_their_place_in_the_page,
               begin(b, 0, NULL))
{
    quire_vulkan_range range;
    for (int i = 0; i < 20; i++) {
        quire_allocation a = allocate(memory);
        uint64_t address = address_of(memory, a);
        CHECK_OK(quire_vulkan_page_buffer(memory, a, &range));
        CHECK(address != 0);
        CHECK_EQ(address, range.address);
        CHECK_EQ(address, native_address(b, range.buffer) + range.buffer_offset);
    }
    CHECK_EQ(fv_live(b->driver, FV_BUFFER), 1);
}

/* No buffer can cover a shared page if the driver requires a dedicated page for each. */
VULKAN_UNIT_IN(vulkan_address, a_page_that_no_buffer_can_cover_has_no_address,
               begin(b, FV_REQUIRE_DEDICATED, NULL))
{
    quire_vulkan_range range;
    quire_allocation raw = allocate(memory);
    CHECK_EQ(address_of(memory, raw), 0);
    CHECK_FAILS(quire_vulkan_page_buffer(memory, raw, &range), QUIRE_ERROR_UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "requires a dedicated page");
}

/* A memory that finds addresses queries each page when it is made, or the buffer that it is
   dedicated to. */
VULKAN_UNIT_EACH(vulkan_address, reported_addresses_are_found, dedicated, 2)
{
    quire_buffer buffer;
    quire_memory_options options = dedicated ? SHARED : LOCAL;
    options.find_by_address = true;
    vulkan_bench_start(b, NULL, dedicated ? FV_REQUIRE_DEDICATED : 0);
    quire_memory *memory = vulkan_bench_memory(b, &options);
    quire_allocation raw = allocate(memory), found;
    CHECK_OK(quire_buffer_create(memory, &(quire_buffer_options){.size = 1000}, &buffer));
    const quire_allocation both[] = {raw, buffer.allocation};
    for (uint32_t i = dedicated; i < 2; i++) {
        uint64_t address = address_of(memory, both[i]);
        CHECK(address != 0);
        CHECK_OK(quire_memory_find(memory, address, &found));
        CHECK_EQ(found.id, both[i].id);
        CHECK_OK(quire_memory_find(memory, address + 999, &found));
        CHECK_EQ(found.id, both[i].id);
        CHECK_OK(quire_free_at_address(memory, address, NULL));
        CHECK_FAILS(quire_memory_find(memory, address, &found), QUIRE_ERROR_OUT_OF_RANGE);
    }
}

/* The first query creates the buffer over the page. Later ones make no call. */
VULKAN_UNIT_IN(vulkan_address, a_page_is_asked_once, begin(b, 0, NULL))
{
    quire_allocation a = allocate(memory), another = allocate(memory);
    fv_reset_counters(b->driver);
    CHECK(address_of(memory, a) != 0);
    CHECK_EQ(fv_calls(b->driver, NULL), 4);
    fv_reset_counters(b->driver);
    CHECK(address_of(memory, another) > address_of(memory, a));
    CHECK_EQ(fv_calls(b->driver, NULL), 0);
}

/* A page has an address if the device has the feature: then the driver is queried. */
UNIT(vulkan_address, every_layout_tells_one_where_the_feature_is)
{
    uint32_t with = 0, without = 0;
    for (uint32_t i = 0; i < fv_layout_count; i++) {
        vulkan_bench b;
        vulkan_bench_start(&b, fv_layouts[i].name, 0);
        quire_memory *memory = vulkan_bench_memory(&b, &LOCAL);
        quire_allocation a = allocate(memory);
        bool addressed = vulkan_bench_page(&b, memory, a).addressed;
        CHECK_EQ(address_of(memory, a) != 0, addressed);
        with += addressed;
        without += !addressed;
        vulkan_bench_end(&b);
    }
    CHECK(with && without);
}

VULKAN_UNIT(vulkan_address, there_is_none_where_page_buffers_are_of_another_usage)
{
    const quire_vulkan_settings settings = {.page_usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT};
    quire_memory *memory = begin(b, 0, &settings);
    CHECK_EQ(address_of(memory, allocate(memory)), 0);
    CHECK_EQ(fv_live(b->driver, FV_BUFFER), 0);
}

/* ---- objects -------------------------------------------------------------------------------- */

/* A buffer of quire is queried itself, dedicated or not: no buffer over the page is created. */
VULKAN_UNIT_EACH(vulkan_address, a_buffer_has_the_address_of_its_own, dedicated, 2)
{
    const uint32_t flags = dedicated ? FV_REQUIRE_DEDICATED : 0;
    quire_buffer buffer;
    quire_buffer_info info;
    quire_vulkan_range range;
    quire_memory *memory = begin(b, flags, NULL);
    CHECK_OK(quire_buffer_create(memory, &(quire_buffer_options){.size = 1000}, &buffer));
    CHECK_OK(quire_buffer_get_info(memory, buffer, &info));
    CHECK(info.place.address != 0);
    CHECK_EQ(info.place.address, native_address(b, vulkan_buffer_of(memory, buffer)));
    CHECK_EQ(fv_live(b->driver, FV_BUFFER), 1);
    CHECK_OK(quire_vulkan_page_buffer(memory, buffer.allocation, &range));
    CHECK_EQ(range.address, info.place.address);
}

/*
 * quire does not know the usage of a buffer of the caller's create info, and does not query it. In
 * a shared page the address comes from the page's buffer; in a dedicated page it is 0.
 */
VULKAN_UNIT_EACH(vulkan_address, a_described_buffer_is_not_asked, dedicated, 2)
{
    const uint32_t flags = dedicated ? FV_REQUIRE_DEDICATED : 0;
    static const VkExternalMemoryBufferCreateInfo external = {
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
        .handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
    VkBufferCreateInfo described = VULKAN_BUFFER(1000, VK_BUFFER_USAGE_TRANSFER_DST_BIT);
    quire_buffer buffer;
    quire_vulkan_range range;
    quire_memory *memory = begin(b, flags, NULL);
    described.pNext = flags ? &external : NULL;
    CHECK_OK(quire_vulkan_buffer_create(memory, &described, NULL, &buffer));
    CHECK_EQ(address_of(memory, buffer.allocation) != 0, !flags);
    CHECK_OK(quire_vulkan_page_buffer(memory, buffer.allocation, &range));
    CHECK_EQ(range.address, address_of(memory, buffer.allocation));
}

VULKAN_UNIT_EACH(vulkan_address, an_image_has_that_of_its_page_unless_the_page_is_tied_to_it,
                 dedicated, 2)
{
    const uint32_t flags = dedicated ? FV_REQUIRE_DEDICATED : 0;
    quire_image image;
    quire_image_info info;
    quire_memory *memory = begin(b, flags, NULL);
    CHECK_OK(quire_image_create(memory, &(quire_image_options){.width = 16, .height = 16}, &image));
    CHECK_OK(quire_image_get_info(memory, image, &info));
    CHECK_EQ(info.place.address != 0, !flags);
}

/* ---- failures ------------------------------------------------------------------------------- */

/* get_info succeeds without an address, keeps the last error, and the next call queries again. */
static void expect_zero_once(const char *function)
{
    vulkan_bench b;
    quire_vulkan_range range;
    quire_memory *memory = begin(&b, 0, NULL);
    quire_allocation a = allocate(memory);
    CHECK_EQ(quire_vulkan_page_buffer(NULL, a, &range), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK(fv_fail(b.driver, &(fv_fault){.function = function, .call = 1}));
    CHECK_EQ(address_of(memory, a), 0);
    CHECK_EQ(fv_failed(b.driver).times, 1);
    CHECK_EQ(quire_last_result(), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(fv_live(b.driver, FV_BUFFER), 0);
    fv_heal(b.driver);
    CHECK(address_of(memory, a) != 0);
    vulkan_bench_end(&b);
}

UNIT(vulkan_address, a_driver_without_memory_tells_it_later)
{
    expect_zero_once("vkCreateBuffer");
    expect_zero_once("vkBindBufferMemory");
}

/* With this flag some memory types hold no buffers. If no buffer can be created none is tried
   again. */
VULKAN_UNIT_ON(vulkan_address, a_page_that_holds_no_buffers_is_tried_once,
               vulkan_bench_start(b, NULL, FV_FEW_TYPES))
{
    uint32_t tried = 0;
    quire_device_info info;
    CHECK_OK(quire_device_get_info(b->device, &info));
    for (uint32_t kind = 0; kind < info.kind_count; kind++) {
        quire_memory *memory = NULL;
        quire_allocation a;
        quire_memory_options options = {.kind.mask = UINT32_C(1) << kind,
                                        .pages = {.page_size = 1024 * KIB}};
        if (quire_memory_create(b->device, &options, &memory))
            continue;
        if (!quire_allocate(memory, &(quire_allocation_options){.size = 1000}, &a) &&
            !address_of(memory, a)) {
            fv_reset_counters(b->driver);
            CHECK_EQ(address_of(memory, a), 0);
            CHECK_EQ(fv_calls(b->driver, NULL), 0);
            tried++;
        }
        quire_memory_destroy_all(&memory);
    }
    CHECK(tried > 0);
}

/* ---- threads -------------------------------------------------------------------------------- */

enum { THREADS = 4, PAGES = 16 };

typedef struct asking {
    quire_memory *memory;
    const quire_allocation *made;
    uint64_t told[PAGES];
} asking;

static void *ask(void *user)
{
    asking *a = user;
    for (int i = 0; i < PAGES; i++)
        a->told[i] = address_of(a->memory, a->made[i]);
    return NULL;
}

VULKAN_UNIT_IN(vulkan_address, threads_that_ask_together_are_told_the_same, begin(b, 0, NULL))
{
    quire_allocation made[PAGES];
    pthread_t threads[THREADS];
    asking all[THREADS];
    for (int i = 0; i < PAGES; i++)
        CHECK_OK(quire_allocate(
            memory, &(quire_allocation_options){.size = 1000, .dedicated = true}, &made[i]));
    for (int i = 0; i < THREADS; i++) {
        all[i] = (asking){.memory = memory, .made = made};
        CHECK_EQ(pthread_create(&threads[i], NULL, ask, &all[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < PAGES; i++) {
        CHECK(all[0].told[i] != 0);
        for (int j = 1; j < THREADS; j++)
            CHECK_EQ(all[j].told[i], all[0].told[i]);
    }
    CHECK_EQ(fv_live(b->driver, FV_BUFFER), PAGES);
}
