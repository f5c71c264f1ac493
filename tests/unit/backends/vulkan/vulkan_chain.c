/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_chain.c - the pNext chain of VkMemoryAllocateInfo on the fake Vulkan driver: first the
 * backend's structs, then the caller's.
 */
#include "tests/support/unit.h"
#include "tests/support/vulkan_bench.h"
#include "tests/support/vulkan_native.h"

#define FLAGS VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO
#define PRIORITY VK_STRUCTURE_TYPE_MEMORY_PRIORITY_ALLOCATE_INFO_EXT
#define DEDICATED VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO
#define EXPORT VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO
#define CAPTURE VK_STRUCTURE_TYPE_MEMORY_OPAQUE_CAPTURE_ADDRESS_ALLOCATE_INFO

static const VkMemoryOpaqueCaptureAddressAllocateInfo OURS = {.sType = CAPTURE};

static bool has(const fv_memory_info *info, VkStructureType type)
{
    for (uint32_t i = 0; i < info->link_count; i++)
        if (info->links[i] == type)
            return true;
    return false;
}

static quire_memory *make(vulkan_bench *b, const quire_memory_options *options, const void *next)
{
    const quire_vulkan_memory_options own = {.next = next};
    quire_memory *memory = NULL;
    CHECK_OK(quire_vulkan_memory_create(b->device, options, &own, &memory));
    b->memories[b->memory_count++] = memory;
    return memory;
}

static void begin(vulkan_bench *b, uint32_t flags)
{
    vulkan_bench_start(b, NULL, flags);
}

VULKAN_UNIT_ON(vulkan_chain, every_page_has_the_callers_behind_those_of_quire, begin(b, 0))
{
    const quire_memory_options options = {.pages = {.page_size = 65536}};
    quire_memory *memory = make(b, &options, &OURS);
    for (int i = 0; i < 5; i++) {
        quire_allocation made;
        CHECK_OK(quire_allocate(
            memory, &(quire_allocation_options){.size = 50000, .dedicated = i > 3}, &made));
        fv_memory_info page = vulkan_bench_page(b, memory, made);
        CHECK_EQ(page.links[page.link_count - 1], CAPTURE);
        CHECK(has(&page, FLAGS) && has(&page, PRIORITY));
    }
}

VULKAN_UNIT_ON(vulkan_chain, so_have_pages_that_are_tied_and_exported,
               begin(b, FV_REQUIRE_DEDICATED))
{
    const quire_intent shared = QUIRE_INTENT_EXPORT;
    const VkBufferCreateInfo info = VULKAN_BUFFER(1000, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT);
    quire_allocation made;
    quire_buffer buffer;
    quire_memory *memory = make(b, &(quire_memory_options){.kind.intent = shared}, &OURS);
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 1}, &made));
    fv_memory_info page = vulkan_bench_page(b, memory, made);
    CHECK(has(&page, EXPORT) && has(&page, CAPTURE) && !has(&page, DEDICATED));
    memory = make(b, NULL, &OURS);
    CHECK_OK(quire_vulkan_buffer_create(memory, &info, NULL, &buffer));
    page = vulkan_bench_page(b, memory, buffer.allocation);
    CHECK(has(&page, CAPTURE));
    CHECK_EQ(has(&page, DEDICATED), page.dedicated);
}

VULKAN_UNIT_ON(vulkan_chain, without_one_pages_are_as_ever, begin(b, 0))
{
    quire_allocation made;
    quire_memory *memory = NULL;
    CHECK_OK(quire_vulkan_memory_create(b->device, NULL, NULL, &memory));
    b->memories[b->memory_count++] = memory;
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 1}, &made));
    fv_memory_info with = vulkan_bench_page(b, memory, made);
    memory = vulkan_bench_memory(b, NULL);
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 1}, &made));
    fv_memory_info without = vulkan_bench_page(b, memory, made);
    CHECK_EQ(with.link_count, 2);
    CHECK_EQ(without.link_count, 2);
    CHECK(!has(&with, CAPTURE) && !has(&without, CAPTURE));
}

VULKAN_UNIT_ON(vulkan_chain, what_quire_chains_itself_and_doubles_are_refused, begin(b, 0))
{
    static const VkStructureType refused[] = {
        FLAGS,
        PRIORITY,
        DEDICATED,
        EXPORT,
        VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR,
        VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
        VK_STRUCTURE_TYPE_IMPORT_MEMORY_WIN32_HANDLE_INFO_KHR,
        CAPTURE, /* twice */
    };
    uint64_t blocks = b->host_memory.blocks;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        VkBaseInStructure second = {.sType = refused[i]};
        VkBaseInStructure first = {.sType = CAPTURE, .pNext = &second};
        const quire_vulkan_memory_options own = {.next = &first};
        quire_memory *memory = (quire_memory *)b;
        CHECK_FAILS(quire_vulkan_memory_create(b->device, NULL, &own, &memory),
                    QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK_HAS(quire_last_error(),
                  refused[i] == CAPTURE ? "chained twice" : "quire chains its own Vk");
        CHECK(memory == NULL);
    }
    CHECK_EQ(b->host_memory.blocks, blocks);
}

VULKAN_UNIT_ON(vulkan_chain, unknown_fields_and_other_errors_are_those_of_memories, begin(b, 0))
{
    quire_memory *memory = NULL;
    for (int i = 0; i < 4; i++) {
        quire_vulkan_memory_options own = {.next = NULL};
        own.unused[i] = 1;
        CHECK_FAILS(quire_vulkan_memory_create(b->device, NULL, &own, &memory),
                    QUIRE_ERROR_INVALID_ARGUMENT);
    }
    CHECK_FAILS(quire_vulkan_memory_create(
                    b->device, &(quire_memory_options){.kind.mask = 1u << 31}, NULL, &memory),
                QUIRE_ERROR_UNSUPPORTED);
}
