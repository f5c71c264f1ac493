/*
 * vulkan_map_driver.c - maps of pages on a driver of this machine under the validation layer: pages
 * that are mapped while they are used, and allocations that are mapped while they live.
 */
#include "tests/support/real_vulkan.h"

enum { SIZE = 1000 };

static quire_memory *memory_of(real_vulkan *r)
{
    static const quire_intent readback = QUIRE_INTENT_HOST_READ;
    return real_memory(r, &(quire_memory_options){.kind.intent = readback,
                                                  .map_on_demand = true,
                                                  .pages.page_size = UINT64_C(1) << 20});
}

UNIT(vulkan_map_driver, bytes_stay_while_the_page_is_not_mapped)
{
    real_vulkan r;
    quire_buffer buffer, other;
    unsigned char bytes[SIZE];
    void *pointer = NULL;
    if (!real_begin_wrapped(&r))
        return;
    quire_memory *memory = memory_of(&r);
    CHECK_OK(
        quire_buffer_create(memory, &(quire_buffer_options){.size = SIZE, .zero = true}, &buffer));
    CHECK_OK(quire_buffer_create(memory, &(quire_buffer_options){.size = SIZE}, &other));
    for (int i = 1; i < 20; i++) {
        CHECK_OK(quire_map(memory, buffer.allocation, &pointer));
        CHECK_OK(quire_invalidate(memory, buffer.allocation, 0, 0));
        CHECK_EQ(((unsigned char *)pointer)[SIZE - 1], i - 1);
        memset(pointer, i, SIZE);
        CHECK_OK(quire_flush(memory, buffer.allocation, 0, 0));
        CHECK_OK(quire_unmap(memory, buffer.allocation));
        const quire_copy_options copy = {
            .to = {.memory = memory, .allocation = other.allocation},
            .from = {.memory = memory, .allocation = buffer.allocation},
            .size = SIZE,
        };
        CHECK_OK(quire_copy(&copy, NULL));
        CHECK_OK(quire_read(memory, other.allocation, 0, bytes, SIZE));
        CHECK(bytes[0] == i && !memcmp(bytes, bytes + 1, SIZE - 1));
    }
    CHECK_OK(quire_free(memory, buffer.allocation));
    CHECK_OK(quire_free(memory, other.allocation));
    real_memory_end(memory);
    real_end(&r);
}

UNIT(vulkan_map_driver, a_mapped_buffer_is_freed_without_an_unmap)
{
    real_vulkan r;
    quire_buffer buffer;
    quire_allocation raw;
    quire_allocation_info info;
    unsigned char bytes[SIZE];
    if (!real_begin_wrapped(&r))
        return;
    quire_memory *memory = memory_of(&r);
    for (int dedicated = 0; dedicated < 2; dedicated++) {
        const quire_buffer_options options = {
            .size = SIZE, .mapped = true, .dedicated = dedicated, .info = &info};
        CHECK_OK(quire_buffer_create(memory, &options, &buffer));
        memset(info.host, 5, SIZE);
        CHECK_OK(quire_flush(memory, buffer.allocation, 0, 0));
        CHECK_OK(quire_allocate(
            memory, &(quire_allocation_options){.size = SIZE, .mapped = true, .info = &info},
            &raw));
        memset(info.host, 6, SIZE);
        CHECK_OK(quire_free(memory, raw));
        CHECK_OK(quire_read(memory, buffer.allocation, 0, bytes, SIZE));
        CHECK(bytes[0] == 5 && !memcmp(bytes, bytes + 1, SIZE - 1));
        CHECK_OK(quire_free(memory, buffer.allocation));
    }
    real_memory_end(memory);
    real_end(&r);
}
