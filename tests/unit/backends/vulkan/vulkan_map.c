/*
 * vulkan_map.c - maps of pages on the fake Vulkan driver: how often vkMapMemory and vkUnmapMemory
 * are called. The driver reports two maps of one memory, and flushes of memory that is not mapped.
 */
#include "tests/support/unit.h"
#include "tests/support/vulkan_bench.h"
#include "tests/support/vulkan_native.h"

#define KIB UINT64_C(1024)

enum { SIZE = 1000 };

typedef struct scene {
    vulkan_bench b;
    quire_memory *memory;
} scene;

static void begin(scene *s, bool on_demand)
{
    static const quire_intent readback = QUIRE_INTENT_HOST_READ;
    vulkan_bench_start(&s->b, "amd-bar", 0);
    s->memory = vulkan_bench_memory(&s->b, &(quire_memory_options){.kind.intent = readback,
                                                                   .map_on_demand = on_demand,
                                                                   .pages.page_size = 1024 * KIB});
}

static void end(scene *s)
{
    vulkan_bench_end(&s->b);
}

#define CASE(name, begin) UNIT_ON(vulkan_map, name, scene, s, begin, end)

/* Checks the calls since the last check. */
static void expect(scene *s, uint64_t maps, uint64_t unmaps)
{
    CHECK_EQ(fv_calls(s->b.driver, "vkMapMemory"), maps);
    CHECK_EQ(fv_calls(s->b.driver, "vkUnmapMemory"), unmaps);
    fv_reset_counters(s->b.driver);
}

CASE(a_page_is_mapped_once_without_the_option, begin(s, false))
{
    quire_buffer buffer;
    quire_allocation_info info;
    char bytes[SIZE];
    for (int i = 0; i < 10; i++) {
        CHECK_OK(quire_buffer_create(
            s->memory, &(quire_buffer_options){.size = SIZE, .mapped = true, .info = &info},
            &buffer));
        memset(info.host, i, SIZE);
        CHECK_OK(quire_read(s->memory, buffer.allocation, 0, bytes, SIZE));
        CHECK_EQ(bytes[SIZE - 1], i);
        CHECK_OK(quire_free(s->memory, buffer.allocation));
    }
    expect(s, 1, 0);
}

CASE(a_page_is_mapped_while_a_buffer_is, begin(s, true))
{
    quire_buffer first, second;
    quire_allocation_info info;
    const quire_buffer_options plain = {.size = SIZE};
    const quire_buffer_options mapped = {.size = SIZE, .mapped = true, .info = &info};
    CHECK_OK(quire_buffer_create(s->memory, &plain, &first));
    expect(s, 0, 0);
    CHECK_OK(quire_write(s->memory, first.allocation, 0, "abc", 3));
    expect(s, 1, 1);
    CHECK_OK(quire_buffer_create(s->memory, &mapped, &second));
    CHECK_OK(quire_write(s->memory, first.allocation, 0, "abc", 3));
    memset(info.host, 7, SIZE);
    CHECK_OK(quire_flush(s->memory, second.allocation, 0, 0));
    expect(s, 1, 0);
    CHECK_OK(quire_free(s->memory, second.allocation));
    expect(s, 0, 1);
    CHECK_OK(quire_free(s->memory, first.allocation));
    CHECK_OK(quire_memory_trim(s->memory, 0, NULL));
    expect(s, 0, 0);
}

CASE(objects_from_create_infos_are_mapped, begin(s, true))
{
    quire_buffer buffer;
    quire_allocation_info info;
    const VkBufferCreateInfo create = VULKAN_BUFFER(SIZE, VK_BUFFER_USAGE_TRANSFER_SRC_BIT);
    const quire_vulkan_object_options options = {.mapped = true};
    for (int dedicated = 0; dedicated < 2; dedicated++) {
        quire_vulkan_object_options own = options;
        own.dedicated = dedicated;
        CHECK_OK(quire_vulkan_buffer_create(s->memory, &create, &own, &buffer));
        expect(s, 1, 0);
        CHECK_OK(quire_allocation_get_info(s->memory, buffer.allocation, &info));
        CHECK(info.host != NULL);
        memset(info.host, 1, SIZE);
        CHECK_OK(quire_free(s->memory, buffer.allocation));
        expect(s, 0, 1);
    }
}

CASE(a_failed_map_is_the_error_of_the_call, begin(s, true))
{
    quire_buffer buffer;
    quire_allocation raw;
    void *pointer = s;
    const fv_fault fault = {
        .function = "vkMapMemory", .call = 1, .result = VK_ERROR_MEMORY_MAP_FAILED};
    CHECK_OK(quire_allocate(s->memory, &(quire_allocation_options){.size = SIZE}, &raw));
    CHECK(fv_fail(s->b.driver, &fault));
    CHECK(quire_map(s->memory, raw, &pointer));
    CHECK(pointer == NULL);
    CHECK_EQ(quire_last_native_code(), (int64_t)VK_ERROR_MEMORY_MAP_FAILED);
    CHECK(fv_fail(s->b.driver, &fault));
    CHECK(quire_buffer_create(s->memory, &(quire_buffer_options){.size = SIZE, .mapped = true},
                              &buffer));
    CHECK(!buffer.allocation.id);
    CHECK_OK(quire_map(s->memory, raw, &pointer));
    CHECK_OK(quire_unmap(s->memory, raw));
}
