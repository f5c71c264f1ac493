/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma_macros.c - a program that defines macros of VMA before it includes the header.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static struct {
    char text[64][200];
    unsigned count;
} lines;

__attribute__((format(printf, 1, 2))) static void keep_line(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(lines.text[lines.count++ % 64], sizeof lines.text[0], format, list);
    va_end(list);
}

#define VMA_LEAK_LOG_FORMAT(format, ...) keep_line(format, __VA_ARGS__)
#define VMA_STATIC_VULKAN_FUNCTIONS 1
#define VMA_DYNAMIC_VULKAN_FUNCTIONS 0
#include "quire/quire_vma.h"
#undef VMA_STATIC_VULKAN_FUNCTIONS

#include "tests/support/unit.h"
#include "tests/support/vma_fixture.h"

static vma_fixture v;

/* Stands for that of the loader, which the tests are not linked with. */
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetInstanceProcAddr(VkInstance instance,
                                                               const char *name)
{
    return v.vulkan.get(instance, name);
}

/* VMA does not read these members then, and programs leave them uninitialized. */
UNIT(vma_macros, getters_are_not_read_without_dynamic_functions)
{
    const VmaAllocationCreateInfo options = {.usage = VMA_MEMORY_USAGE_AUTO};
    vma_fixture_begin(&v, NULL, 0);
    memset(&v.functions.vkGetInstanceProcAddr, 0xcd, sizeof v.functions.vkGetInstanceProcAddr);
    memset(&v.functions.vkGetDeviceProcAddr, 0xcd, sizeof v.functions.vkGetDeviceProcAddr);
    v.functions.vkCreateBuffer = FV(&v.vulkan, vkCreateBuffer);
    CHECK_VK(vmaCreateAllocator(&v.info, &v.allocator));
    vma_fixture_hold(&v, 1000, &options);
    vma_fixture_close(&v);
}

/* ---- leaks ---------------------------------------------------------------------------------- */

/* Leaks `count` buffers; the lines must name 16 of them, and one more line counts all. */
static void check_leaks(VmaPool pool, const char *owner, unsigned count)
{
    enum { MOST = 20 };
    const VmaAllocationCreateInfo options = {.usage = VMA_MEMORY_USAGE_AUTO, .pool = pool};
    VkBuffer buffers[MOST];
    VmaAllocation a[MOST];
    unsigned named = 0, counted = 0;
    char sum[100];
    for (unsigned i = 0; i < count; i++)
        a[i] = vma_fixture_buffer(&v, 1024, &options, &buffers[i]);
    lines.count = 0;
    if (pool)
        vmaDestroyPool(v.allocator, pool);
    else
        vmaDestroyAllocator(v.allocator);
    snprintf(sum, sizeof sum, "holds %u allocations with %u bytes; %u more lines", count,
             count * 1024, count - 16);
    for (unsigned i = 0; i < lines.count; i++) {
        named += strstr(lines.text[i], "still holds") != NULL;
        counted += strstr(lines.text[i], sum) != NULL;
    }
    CHECK_EQ(named, count < 16 ? count : 16);
    CHECK_EQ(counted, count > 16);
    CHECK_EQ(lines.count, named + counted + 1);
    CHECK_HAS(lines.text[lines.count - 1], owner);
    for (unsigned i = 0; i < count; i++)
        vmaDestroyBuffer(v.allocator, buffers[i], a[i]);
}

UNIT(vma_macros, leaks_go_to_the_log_of_the_program_up_to_16_lines)
{
    const VmaPoolCreateInfo pool_info = {.memoryTypeIndex = 0};
    VmaPool pool;
    vma_fixture_open(&v, NULL, 0);
    check_leaks(NULL, "vmaDestroyAllocator", 20);
    check_leaks(NULL, "vmaDestroyAllocator", 16);
    CHECK_VK(vmaCreatePool(v.allocator, &pool_info, &pool));
    check_leaks(pool, "vmaDestroyPool", 17);
    lines.count = 0;
    vmaDestroyPool(v.allocator, pool);
    vma_fixture_close(&v);
    CHECK_EQ(lines.count, 0);
}

UNIT(vma_macros, live_ranges_of_a_virtual_block_go_there_too)
{
    const VmaVirtualBlockCreateInfo info = {.size = 1024};
    const VmaVirtualAllocationCreateInfo request = {.size = 100};
    VmaVirtualBlock block;
    VmaVirtualAllocation range;
    CHECK_VK(vmaCreateVirtualBlock(&info, &block));
    CHECK_VK(vmaVirtualAllocate(block, &request, &range, NULL));
    lines.count = 0;
    vmaDestroyVirtualBlock(block);
    CHECK_EQ(lines.count, 1);
    CHECK_HAS(lines.text[0], "live allocations, which vmaClearVirtualBlock frees: 1");
    vmaVirtualFree(block, range);
    vmaDestroyVirtualBlock(block);
    CHECK_EQ(lines.count, 1);
}
