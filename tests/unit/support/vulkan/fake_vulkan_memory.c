/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * fake_vulkan_memory.c - what the emulated Vulkan driver tells of memory that is allocated, mapped
 * or shared against a rule of Vulkan, and which bytes are wrong without a flush.
 */
#include "tests/support/unit.h"
#include "tests/support/vulkan/fixture.h"

#include <stdlib.h>

#define LOCAL VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT
#define VISIBLE VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT

/* Allocates memory. After a failure the memory is VK_NULL_HANDLE. */
static VkResult allocate(fv_fixture *f, uint64_t size, uint32_t type, const void *chain,
                         VkDeviceMemory *memory)
{
    VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                 .pNext = chain,
                                 .allocationSize = size,
                                 .memoryTypeIndex = type};
    return FV(f, vkAllocateMemory)(f->device, &info, NULL, memory);
}

static void *map(fv_fixture *f, VkDeviceMemory memory, uint64_t offset, uint64_t size)
{
    void *data = NULL;
    CHECK_VK(FV(f, vkMapMemory)(f->device, memory, offset, size, 0, &data));
    return data;
}

FV_UNIT(fake_vulkan_memory, wrong_allocations_are_told_and_refused)
{
    static const struct {
        uint64_t size;
        uint32_t type;
        const char *part;
    } wrong[] = {
        {0, 0, "VUID-VkMemoryAllocateInfo-allocationSize-00638"},
        {100, 1, "VUID-vkAllocateMemory-pAllocateInfo-01714"},
        {100, 0, "VUID-vkAllocateMemory-maxMemoryAllocationCount-04101"},
    };
    fv_layout layout = *fv_layout_named("swiftshader");
    layout.max_allocations = 2;
    fv_fixture_open_with(f, &(fv_options){.layouts = {&layout}});
    fv_fixture_memory(f, 100, 0);
    fv_fixture_memory(f, 100, 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        VkDeviceMemory memory;
        CHECK_EQ(allocate(f, wrong[i].size, wrong[i].type, NULL, &memory),
                 VK_ERROR_OUT_OF_DEVICE_MEMORY);
        fv_fixture_expect(f, wrong[i].part);
        CHECK(memory == (VkDeviceMemory)0xdeadbeefdeadbeef);
    }
}

FV_UNIT_ON(fake_vulkan_memory, mapping_has_rules, fv_fixture_open(f, NULL, 0))
{
    VkDeviceMemory hidden = fv_fixture_memory(f, 1000, fv_fixture_type(f, LOCAL));
    VkDeviceMemory memory = fv_fixture_memory(f, 1000, fv_fixture_coherent(f));
    VkDeviceMemory mapped = fv_fixture_memory(f, 1000, fv_fixture_coherent(f));
    map(f, mapped, 100, 900);
    const struct {
        VkDeviceMemory memory;
        uint64_t offset, size;
        const char *part;
    } wrong[] = {
        {hidden, 0, 10, "VUID-vkMapMemory-memory-00682"},
        {memory, 1000, 1, "VUID-vkMapMemory-offset-00679"},
        {memory, 0, 0, "VUID-vkMapMemory-size-00680"},
        {memory, 999, 2, "VUID-vkMapMemory-size-00681"},
        {mapped, 0, 10, "VUID-vkMapMemory-memory-00678"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        void *data;
        CHECK_EQ(FV(f, vkMapMemory)(f->device, wrong[i].memory, wrong[i].offset, wrong[i].size, 0,
                                    &data),
                 VK_ERROR_MEMORY_MAP_FAILED);
        fv_fixture_expect(f, wrong[i].part);
    }
    FV(f, vkUnmapMemory)(f->device, memory);
    fv_fixture_expect(f, "VUID-vkUnmapMemory-memory-00689");
}

/* ---- flushes -------------------------------------------------------------------------------- */

static void flush(fv_fixture *f, VkDeviceMemory memory, uint64_t offset, uint64_t size)
{
    VkMappedMemoryRange range = {.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE,
                                 .memory = memory,
                                 .offset = offset,
                                 .size = size};
    CHECK_VK(FV(f, vkFlushMappedMemoryRanges)(f->device, 1, &range));
}

static void invalidate(fv_fixture *f, VkDeviceMemory memory, uint64_t offset, uint64_t size)
{
    VkMappedMemoryRange range = {.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE,
                                 .memory = memory,
                                 .offset = offset,
                                 .size = size};
    CHECK_VK(FV(f, vkInvalidateMappedMemoryRanges)(f->device, 1, &range));
}

FV_UNIT(fake_vulkan_memory, flushes_are_whole_atoms_within_the_mapping)
{
    static const struct {
        uint64_t offset, size;
        const char *part;
    } wrong[] = {
        {0, 256, "VUID-VkMappedMemoryRange-size-00685"},
        {512, 512, "VUID-VkMappedMemoryRange-size-00685"},
        {300, 256, "VUID-VkMappedMemoryRange-offset-00687"},
        {256, 100, "VUID-VkMappedMemoryRange-size-01390"},
        {256, VK_WHOLE_SIZE, "VUID-VkMappedMemoryRange-size-01389"}, /* ends within an atom */
    };
    fv_fixture_open(f, "incoherent", 0); /* atoms of 256 */
    VkDeviceMemory memory = fv_fixture_memory(f, 1000, 1);
    flush(f, memory, 0, 256);
    fv_fixture_expect(f, "VUID-VkMappedMemoryRange-memory-00684");
    map(f, memory, 256, 600); /* to 856 */
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        flush(f, memory, wrong[i].offset, wrong[i].size);
        fv_fixture_expect(f, wrong[i].part);
        invalidate(f, memory, wrong[i].offset, wrong[i].size);
        fv_fixture_expect(f, wrong[i].part);
    }
    flush(f, memory, 256, 256);
    FV(f, vkUnmapMemory)(f->device, memory);
    map(f, memory, 0, VK_WHOLE_SIZE);
    flush(f, memory, 512, 488); /* to the end of the memory */
    invalidate(f, memory, 768, VK_WHOLE_SIZE);
}

/* A buffer in memory that is not coherent, with atoms of 64 bytes. */
static uint32_t *open_stale(fv_fixture *f, VkBuffer *buffer, VkDeviceMemory *memory)
{
    fv_fixture_open(f, "adreno", FV_STALE);
    uint32_t type = fv_fixture_type(f, LOCAL | VISIBLE | VK_MEMORY_PROPERTY_HOST_CACHED_BIT);
    *buffer = fv_fixture_bound(f, 4096, type, memory);
    return map(f, *memory, 0, VK_WHOLE_SIZE);
}

/* Fills a buffer on the device. */
static void fill(fv_fixture *f, VkBuffer buffer, uint64_t offset, uint64_t size, uint32_t value)
{
    VkCommandBuffer commands = fv_fixture_begin(f);
    FV(f, vkCmdFillBuffer)(commands, buffer, offset, size, value);
    fv_fixture_run(f, commands);
}

/* Returns the first four bytes of a buffer as the device sees them. */
static uint32_t seen_by_device(fv_fixture *f, VkBuffer buffer, uint64_t offset)
{
    fv_visible copy = fv_fixture_visible(f, 4);
    VkBufferCopy region = {.srcOffset = offset, .size = 4};
    VkCommandBuffer commands = fv_fixture_begin(f);
    FV(f, vkCmdCopyBuffer)(commands, buffer, copy.buffer, 1, &region);
    fv_fixture_run(f, commands);
    uint32_t value = fv_word(&copy, 0);
    fv_fixture_hide(f, &copy);
    return value;
}

FV_UNIT(fake_vulkan_memory, without_a_flush_the_device_does_not_see_what_the_host_wrote)
{
    VkBuffer buffer;
    VkDeviceMemory memory;
    uint32_t *words = open_stale(f, &buffer, &memory);
    words[0] = 7;
    words[100] = 8;
    CHECK_EQ(seen_by_device(f, buffer, 0), 0);
    flush(f, memory, 0, 64); /* only the atom of word 0 */
    CHECK_EQ(seen_by_device(f, buffer, 0), 7);
    CHECK_EQ(seen_by_device(f, buffer, 400), 0);
    flush(f, memory, 0, VK_WHOLE_SIZE);
    CHECK_EQ(seen_by_device(f, buffer, 400), 8);
}

FV_UNIT(fake_vulkan_memory, without_an_invalidate_the_host_sees_garbage)
{
    VkBuffer buffer;
    VkDeviceMemory memory;
    const uint32_t *words = open_stale(f, &buffer, &memory);
    fill(f, buffer, 0, 1024, 5);
    CHECK(words[0] != 0 && words[0] != 5);
    flush(f, memory, 0, VK_WHOLE_SIZE); /* copies nothing, because the host wrote nothing */
    CHECK_EQ(seen_by_device(f, buffer, 0), 5);
    invalidate(f, memory, 0, 512);
    CHECK_EQ(words[0], 5);
    CHECK(words[200] != 5);
}

/* If host and device write to the same atom, the host's flush overwrites the device's bytes. */
FV_UNIT(fake_vulkan_memory, a_shared_atom_is_corrupted)
{
    VkBuffer buffer;
    VkDeviceMemory memory;
    uint32_t *words = open_stale(f, &buffer, &memory);
    fill(f, buffer, 4, 4, 5);
    fill(f, buffer, 64, 4, 6);
    words[0] = 1; /* in the atom of the first 5, not in that of the 6 */
    flush(f, memory, 0, 128);
    CHECK_EQ(seen_by_device(f, buffer, 0), 1);
    CHECK(seen_by_device(f, buffer, 4) != 5);
    CHECK_EQ(seen_by_device(f, buffer, 64), 6);
}

/* ---- chains --------------------------------------------------------------------------------- */

UNIT(fake_vulkan_memory, exports_imports_and_dedication_have_rules)
{
    fv_fixture f;
    VkDeviceMemory memory;
    VkExportMemoryAllocateInfo exported = {.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO,
                                           .handleTypes =
                                               VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
    fv_fixture_open(&f, NULL, FV_DEDICATED_ONLY);
    FV_TOLD(&f, "VUID-VkMemoryAllocateInfo-pNext-00639", allocate(&f, 1000, 0, &exported, &memory));
    char *bytes = aligned_alloc(4096, 8192);
    VkImportMemoryHostPointerInfoEXT imported = {
        .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
        .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT,
        .pHostPointer = bytes};
    uint32_t type = fv_fixture_coherent(&f);
    FV_TOLD(&f, "VUID-VkMemoryAllocateInfo-allocationSize-01745",
            allocate(&f, 100, type, &imported, &memory));
    imported.pHostPointer = bytes + 64;
    FV_TOLD(&f, "VUID-VkImportMemoryHostPointerInfoEXT-pHostPointer-01749",
            allocate(&f, 4096, type, &imported, &memory));
    int descriptor;
    const VkMemoryGetFdInfoKHR get = {.sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR,
                                      .memory = fv_fixture_memory(&f, 100, type),
                                      .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
    FV_TOLD(&f, "VUID-VkMemoryGetFdInfoKHR-handleType-00671",
            FV(&f, vkGetMemoryFdKHR)(f.device, &get, &descriptor));
    VkMemoryDedicatedAllocateInfo dedicated = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO,
        .buffer = fv_fixture_buffer(&f, 1000, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT)};
    uint64_t size = fv_fixture_needs(&f, dedicated.buffer).size;
    FV_TOLD(&f, "VUID-VkMemoryDedicatedAllocateInfo-buffer-02965",
            allocate(&f, size + 64, 0, &dedicated, &memory));
    fv_fixture_leave(&f);
    free(bytes);
}

FV_UNIT_ON(fake_vulkan_memory, priorities_are_from_0_to_1, fv_fixture_open(f, "amd-rebar", 0))
{
    VkDeviceMemory memory = fv_fixture_memory(f, 1000, 0);
    FV(f, vkSetDeviceMemoryPriorityEXT)(f->device, memory, 0.25f);
    FV(f, vkSetDeviceMemoryPriorityEXT)(f->device, memory, 1.5f);
    fv_fixture_expect(f, "VUID-vkSetDeviceMemoryPriorityEXT-priority-06258");
}
