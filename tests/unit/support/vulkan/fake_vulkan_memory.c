/*
 * fake_vulkan_memory.c - the fake Vulkan driver: allocation, mapping, flushing, sharing.
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

static void *map(fv_fixture *f, VkDeviceMemory memory)
{
    void *data = NULL;
    CHECK_VK(FV(f, vkMapMemory)(f->device, memory, 0, VK_WHOLE_SIZE, 0, &data));
    return data;
}

static void free_memory(fv_fixture *f, VkDeviceMemory memory)
{
    FV(f, vkFreeMemory)(f->device, memory, NULL);
}

UNIT(fake_vulkan_memory, huge_memory_costs_nothing_until_it_is_touched)
{
    fv_fixture f;
    fv_fixture_open(&f, "intel-uma", 0);
    VkDeviceMemory memory = fv_fixture_memory(&f, UINT64_C(11) << 30, 1);
    unsigned char *bytes = map(&f, memory);
    bytes[0] = 1;
    bytes[(UINT64_C(11) << 30) - 1] = 2;
    CHECK_EQ(bytes[UINT64_C(5) << 30], 0);
    CHECK_EQ(fv_usage(f.driver, 0, 0).bytes, UINT64_C(11) << 30);
    free_memory(&f, memory); /* freeing mapped memory is allowed */
    CHECK_EQ(fv_usage(f.driver, 0, 0).bytes, 0);
    CHECK_EQ(fv_usage(f.driver, 0, 0).peak_bytes, UINT64_C(11) << 30);
    fv_fixture_close(&f);
}

UNIT(fake_vulkan_memory, wrong_allocations_are_told_and_refused)
{
    fv_fixture f;
    fv_layout layout = *fv_layout_named("swiftshader");
    layout.max_allocations = 2;
    fv_fixture_open_with(&f, &(fv_options){.layouts = {&layout}});
    VkDeviceMemory memory[3];
    CHECK_EQ(allocate(&f, 0, 0, NULL, memory), VK_ERROR_OUT_OF_DEVICE_MEMORY);
    fv_fixture_expect(&f, "VUID-VkMemoryAllocateInfo-allocationSize-00638");
    CHECK(memory[0] == (VkDeviceMemory)0xdeadbeefdeadbeef);
    CHECK_EQ(allocate(&f, 100, 1, NULL, memory), VK_ERROR_OUT_OF_DEVICE_MEMORY);
    fv_fixture_expect(&f, "VUID-vkAllocateMemory-pAllocateInfo-01714");
    CHECK_VK(allocate(&f, 100, 0, NULL, &memory[0]));
    CHECK_VK(allocate(&f, 100, 0, NULL, &memory[1]));
    CHECK_EQ(allocate(&f, 100, 0, NULL, &memory[2]), VK_ERROR_OUT_OF_DEVICE_MEMORY);
    fv_fixture_expect(&f, "VUID-vkAllocateMemory-maxMemoryAllocationCount-04101");
    free_memory(&f, memory[0]);
    free_memory(&f, memory[1]);
    fv_fixture_close(&f);
}

UNIT(fake_vulkan_memory, the_largest_allocation_is_a_limit_that_some_drivers_exceed)
{
    static const uint32_t FLAGS[] = {0, FV_SOFT_SIZES};
    for (int i = 0; i < 2; i++) {
        fv_fixture f;
        fv_layout layout = *fv_layout_named("swiftshader");
        layout.max_allocation = 1000;
        fv_fixture_open_with(&f, &(fv_options){.layouts = {&layout}, .flags = FLAGS[i]});
        VkDeviceMemory memory;
        CHECK_EQ(allocate(&f, 1001, 0, NULL, &memory), i ? 0 : VK_ERROR_OUT_OF_DEVICE_MEMORY);
        if (i)
            free_memory(&f, memory);
        fv_fixture_close(&f);
    }
}

UNIT(fake_vulkan_memory, an_export_can_require_a_dedicated_allocation)
{
    fv_fixture f;
    VkDeviceMemory memory;
    fv_fixture_open(&f, NULL, FV_DEDICATED_ONLY);
    VkExportMemoryAllocateInfo exported = {.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO,
                                           .handleTypes =
                                               VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
    CHECK_VK(allocate(&f, 1000, 0, &exported, &memory));
    fv_fixture_expect(&f, "VUID-VkMemoryAllocateInfo-pNext-00639");
    free_memory(&f, memory);
    fv_fixture_close(&f);
}

UNIT(fake_vulkan_memory, a_heap_is_full_when_its_capacity_is_taken)
{
    fv_fixture f;
    fv_fixture_open(&f, "intel-uma", 0);
    VkDeviceMemory first, second;
    fv_set_capacity(f.driver, 0, 0, 1000);
    CHECK_VK(allocate(&f, 600, 0, NULL, &first));
    CHECK_EQ(allocate(&f, 401, 0, NULL, &second), VK_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_VK(allocate(&f, 400, 0, NULL, &second));
    fv_set_capacity(f.driver, 0, 0, 0);
    CHECK_EQ(fv_usage(f.driver, 0, 0).allocations, 2);
    free_memory(&f, first);
    free_memory(&f, second);
    fv_fixture_close(&f);
}

static VkPhysicalDeviceMemoryBudgetPropertiesEXT budget_of(fv_fixture *f)
{
    VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
    VkPhysicalDeviceMemoryProperties2 all = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2, .pNext = &budget};
    FV(f, vkGetPhysicalDeviceMemoryProperties2)(f->physical, &all);
    return budget;
}

UNIT(fake_vulkan_memory, budgets_shrink_where_told)
{
    fv_fixture f;
    fv_fixture_open(&f, "intel-uma", 0);
    VkDeviceMemory memory = fv_fixture_memory(&f, 4096, 0);
    uint64_t before = budget_of(&f).heapBudget[0];
    CHECK_EQ(before, UINT64_C(12274556928) / 5 * 4);
    CHECK_EQ(budget_of(&f).heapUsage[0], 4096);
    CHECK_EQ(budget_of(&f).heapBudget[1], 0);
    fv_set_budget(f.driver, 0, 0, 0, 1000000);
    CHECK_EQ(budget_of(&f).heapBudget[0], before - 1000000);
    fv_set_budget(f.driver, 0, 0, 12345, 0);
    CHECK_EQ(budget_of(&f).heapBudget[0], 12345);
    free_memory(&f, memory);
    fv_fixture_close(&f);
}

UNIT(fake_vulkan_memory, mapping_has_rules)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, 0);
    VkDeviceMemory hidden = fv_fixture_memory(&f, 1000, fv_fixture_type(&f, LOCAL));
    VkDeviceMemory memory = fv_fixture_memory(&f, 1000, fv_fixture_coherent(&f));
    PFN_vkMapMemory map_memory = FV(&f, vkMapMemory);
    void *data;
    CHECK_EQ(map_memory(f.device, hidden, 0, 10, 0, &data), VK_ERROR_MEMORY_MAP_FAILED);
    fv_fixture_expect(&f, "VUID-vkMapMemory-memory-00682");
    CHECK_EQ(map_memory(f.device, memory, 1000, 1, 0, &data), VK_ERROR_MEMORY_MAP_FAILED);
    fv_fixture_expect(&f, "VUID-vkMapMemory-offset-00679");
    CHECK_EQ(map_memory(f.device, memory, 0, 0, 0, &data), VK_ERROR_MEMORY_MAP_FAILED);
    fv_fixture_expect(&f, "VUID-vkMapMemory-size-00680");
    CHECK_EQ(map_memory(f.device, memory, 999, 2, 0, &data), VK_ERROR_MEMORY_MAP_FAILED);
    fv_fixture_expect(&f, "VUID-vkMapMemory-size-00681");
    CHECK_VK(map_memory(f.device, memory, 100, 900, 0, &data));
    CHECK_EQ(map_memory(f.device, memory, 0, 10, 0, &data), VK_ERROR_MEMORY_MAP_FAILED);
    fv_fixture_expect(&f, "VUID-vkMapMemory-memory-00678");
    FV(&f, vkUnmapMemory)(f.device, memory);
    FV(&f, vkUnmapMemory)(f.device, memory);
    fv_fixture_expect(&f, "VUID-vkUnmapMemory-memory-00689");
    free_memory(&f, hidden);
    free_memory(&f, memory);
    fv_fixture_close(&f);
}

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

UNIT(fake_vulkan_memory, flushes_are_whole_atoms_within_the_mapping)
{
    fv_fixture f;
    fv_fixture_open(&f, "incoherent", 0); /* atoms of 256 */
    VkDeviceMemory memory = fv_fixture_memory(&f, 1000, 1);
    flush(&f, memory, 0, 256);
    fv_fixture_expect(&f, "VUID-VkMappedMemoryRange-memory-00684");
    void *data;
    CHECK_VK(FV(&f, vkMapMemory)(f.device, memory, 256, 600, 0, &data)); /* to 856 */
    flush(&f, memory, 0, 256);
    fv_fixture_expect(&f, "VUID-VkMappedMemoryRange-size-00685");
    flush(&f, memory, 512, 512);
    fv_fixture_expect(&f, "VUID-VkMappedMemoryRange-size-00685");
    flush(&f, memory, 300, 256);
    fv_fixture_expect(&f, "VUID-VkMappedMemoryRange-offset-00687");
    invalidate(&f, memory, 256, 100);
    fv_fixture_expect(&f, "VUID-VkMappedMemoryRange-size-01390");
    flush(&f, memory, 256, VK_WHOLE_SIZE); /* the mapping ends within an atom */
    fv_fixture_expect(&f, "VUID-VkMappedMemoryRange-size-01389");
    flush(&f, memory, 256, 256);
    FV(&f, vkUnmapMemory)(f.device, memory);
    map(&f, memory);
    flush(&f, memory, 512, 488); /* to the end of the memory */
    invalidate(&f, memory, 768, VK_WHOLE_SIZE);
    free_memory(&f, memory);
    fv_fixture_close(&f);
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
    VkDeviceMemory memory;
    VkBuffer copy = fv_fixture_bound(f, 4, fv_fixture_coherent(f), &memory);
    VkBufferCopy region = {.srcOffset = offset, .size = 4};
    VkCommandBuffer commands = fv_fixture_begin(f);
    FV(f, vkCmdCopyBuffer)(commands, buffer, copy, 1, &region);
    fv_fixture_run(f, commands);
    uint32_t value;
    memcpy(&value, map(f, memory), sizeof value);
    fv_fixture_free(f, copy, memory);
    return value;
}

UNIT(fake_vulkan_memory, without_a_flush_the_device_does_not_see_what_the_host_wrote)
{
    fv_fixture f;
    fv_fixture_open(&f, "adreno", FV_STALE);
    VkDeviceMemory memory;
    uint32_t type = fv_fixture_type(&f, LOCAL | VISIBLE | VK_MEMORY_PROPERTY_HOST_CACHED_BIT);
    VkBuffer buffer = fv_fixture_bound(&f, 4096, type, &memory);
    uint32_t *words = map(&f, memory);
    words[0] = 7;
    words[100] = 8;
    CHECK_EQ(seen_by_device(&f, buffer, 0), 0);
    flush(&f, memory, 0, 64); /* only the atom of word 0 */
    CHECK_EQ(seen_by_device(&f, buffer, 0), 7);
    CHECK_EQ(seen_by_device(&f, buffer, 400), 0);
    flush(&f, memory, 0, VK_WHOLE_SIZE);
    CHECK_EQ(seen_by_device(&f, buffer, 400), 8);
    fv_fixture_free(&f, buffer, memory);
    fv_fixture_close(&f);
}

UNIT(fake_vulkan_memory, without_an_invalidate_the_host_sees_garbage)
{
    fv_fixture f;
    fv_fixture_open(&f, "adreno", FV_STALE);
    VkDeviceMemory memory;
    uint32_t type = fv_fixture_type(&f, LOCAL | VISIBLE | VK_MEMORY_PROPERTY_HOST_CACHED_BIT);
    VkBuffer buffer = fv_fixture_bound(&f, 4096, type, &memory);
    const uint32_t *words = map(&f, memory);
    fill(&f, buffer, 0, 1024, 5);
    CHECK(words[0] != 0 && words[0] != 5);
    flush(&f, memory, 0, VK_WHOLE_SIZE); /* copies nothing, because the host wrote nothing */
    CHECK_EQ(seen_by_device(&f, buffer, 0), 5);
    invalidate(&f, memory, 0, 512);
    CHECK_EQ(words[0], 5);
    CHECK(words[200] != 5);
    fv_fixture_free(&f, buffer, memory);
    fv_fixture_close(&f);
}

/* If host and device write to the same atom, the host's flush overwrites the device's bytes. */
UNIT(fake_vulkan_memory, a_shared_atom_is_corrupted)
{
    fv_fixture f;
    fv_fixture_open(&f, "adreno", FV_STALE);
    VkDeviceMemory memory;
    uint32_t type = fv_fixture_type(&f, LOCAL | VISIBLE | VK_MEMORY_PROPERTY_HOST_CACHED_BIT);
    VkBuffer buffer = fv_fixture_bound(&f, 4096, type, &memory);
    uint32_t *words = map(&f, memory);
    fill(&f, buffer, 4, 4, 5);
    fill(&f, buffer, 64, 4, 6);
    words[0] = 1; /* in the atom of the first 5, not in that of the 6 */
    flush(&f, memory, 0, 128);
    CHECK_EQ(seen_by_device(&f, buffer, 0), 1);
    CHECK(seen_by_device(&f, buffer, 4) != 5);
    CHECK_EQ(seen_by_device(&f, buffer, 64), 6);
    fv_fixture_free(&f, buffer, memory);
    fv_fixture_close(&f);
}

UNIT(fake_vulkan_memory, files_are_shared_between_exporter_and_importer)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, 0);
    VkExportMemoryAllocateInfo exported = {.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO,
                                           .handleTypes =
                                               VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
    VkDeviceMemory memory, twin, plain;
    uint32_t type = fv_fixture_coherent(&f);
    CHECK_VK(allocate(&f, 8192, type, &exported, &memory));
    VkMemoryGetFdInfoKHR get = {.sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR,
                                .memory = memory,
                                .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
    VkImportMemoryFdInfoKHR imported = {.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR,
                                        .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
    CHECK_VK(FV(&f, vkGetMemoryFdKHR)(f.device, &get, &imported.fd));
    CHECK_EQ(allocate(&f, 1 << 20, type, &imported, &twin), VK_ERROR_INVALID_EXTERNAL_HANDLE);
    CHECK_VK(allocate(&f, 8192, type, &imported, &twin)); /* the driver now owns the file */
    memcpy(map(&f, memory), "written", 8);
    const char *text = map(&f, twin);
    CHECK_STR(text, "written");
    CHECK_EQ(fv_usage(f.driver, 0, 1).bytes, 8192); /* counted once */
    plain = fv_fixture_memory(&f, 100, type);
    get.memory = plain;
    CHECK_EQ(FV(&f, vkGetMemoryFdKHR)(f.device, &get, &imported.fd), VK_ERROR_TOO_MANY_OBJECTS);
    fv_fixture_expect(&f, "VUID-VkMemoryGetFdInfoKHR-handleType-00671");
    free_memory(&f, memory);
    CHECK_STR(text, "written"); /* the other side keeps it */
    free_memory(&f, twin);
    free_memory(&f, plain);
    fv_fixture_close(&f);
}

UNIT(fake_vulkan_memory, a_host_pointer_becomes_memory)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, 0);
    char *bytes = aligned_alloc(4096, 8192);
    VkMemoryHostPointerPropertiesEXT can = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
    VkImportMemoryHostPointerInfoEXT imported = {
        .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
        .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT,
        .pHostPointer = bytes};
    VkDeviceMemory memory;
    uint32_t type = fv_fixture_coherent(&f);
    CHECK_VK(
        FV(&f, vkGetMemoryHostPointerPropertiesEXT)(f.device, imported.handleType, bytes, &can));
    CHECK(can.memoryTypeBits >> type & 1);
    CHECK(!(can.memoryTypeBits & 1)); /* device memory */
    CHECK_VK(allocate(&f, 8192, type, &imported, &memory));
    CHECK(map(&f, memory) == (void *)bytes);
    free_memory(&f, memory);
    CHECK_VK(allocate(&f, 100, type, &imported, &memory));
    fv_fixture_expect(&f, "VUID-VkMemoryAllocateInfo-allocationSize-01745");
    free_memory(&f, memory);
    imported.pHostPointer = bytes + 64;
    CHECK_VK(allocate(&f, 4096, type, &imported, &memory));
    fv_fixture_expect(&f, "VUID-VkImportMemoryHostPointerInfoEXT-pHostPointer-01749");
    free_memory(&f, memory);
    free(bytes);
    fv_fixture_close(&f);
}

UNIT(fake_vulkan_memory, priorities_and_dedication_are_kept)
{
    fv_fixture f;
    fv_fixture_open(&f, "amd-rebar", 0);
    VkBuffer buffer = fv_fixture_buffer(&f, 1000, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT);
    VkMemoryDedicatedAllocateInfo dedicated = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO, .buffer = buffer};
    VkMemoryPriorityAllocateInfoEXT priority = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_PRIORITY_ALLOCATE_INFO_EXT,
        .pNext = &dedicated,
        .priority = 0.75f};
    VkDeviceMemory memory;
    fv_memory_info info;
    uint64_t size = fv_fixture_needs(&f, buffer).size;
    CHECK_VK(allocate(&f, size + 64, 0, &dedicated, &memory));
    fv_fixture_expect(&f, "VUID-VkMemoryDedicatedAllocateInfo-buffer-02965");
    free_memory(&f, memory);
    CHECK_VK(allocate(&f, size, 0, &priority, &memory));
    CHECK(fv_memory_of(f.driver, memory, &info));
    CHECK(info.dedicated && info.priority == 0.75f && info.size == size);
    FV(&f, vkSetDeviceMemoryPriorityEXT)(f.device, memory, 0.25f);
    CHECK(fv_memory_of(f.driver, memory, &info) && info.priority == 0.25f);
    priority.priority = 1.5f;
    FV(&f, vkSetDeviceMemoryPriorityEXT)(f.device, memory, 1.5f);
    fv_fixture_expect(&f, "VUID-vkSetDeviceMemoryPriorityEXT-priority-06258");
    free_memory(&f, memory);
    CHECK(!fv_memory_of(f.driver, memory, &info));
    FV(&f, vkDestroyBuffer)(f.device, buffer, NULL);
    fv_fixture_close(&f);
}
