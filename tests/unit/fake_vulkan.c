/*
 * fake_vulkan.c - the fake Vulkan driver itself: what it poses as, and which functions it has.
 */
#include "tests/support/unit.h"
#include "tests/support/vulkan/fixture.h"

UNIT(fake_vulkan, every_layout_opens_and_ends_in_silence)
{
    for (uint32_t i = 0; i < fv_layout_count; i++) {
        fv_fixture f;
        fv_fixture_open(&f, fv_layouts[i].name, 0);
        VkPhysicalDeviceMemoryProperties memory;
        FV(&f, vkGetPhysicalDeviceMemoryProperties)(f.physical, &memory);
        CHECK_EQ(memory.memoryHeapCount, fv_layouts[i].heap_count);
        CHECK_EQ(memory.memoryTypeCount, fv_layouts[i].type_count);
        for (uint32_t k = 0; k < memory.memoryTypeCount; k++) {
            CHECK_EQ(memory.memoryTypes[k].propertyFlags, fv_layouts[i].types[k].propertyFlags);
            CHECK(memory.memoryTypes[k].heapIndex < memory.memoryHeapCount);
        }
        fv_fixture_close(&f);
    }
}

UNIT(fake_vulkan, a_leak_is_told_with_its_kind)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, 0);
    fv_fixture_memory(&f, 1000, 0);
    FV(&f, vkDestroyDevice)(f.device, NULL);
    f.device = VK_NULL_HANDLE;
    fv_fixture_expect(&f, "VUID-vkDestroyDevice-device-00378: vkDestroyDevice: a memory is still");
    fv_fixture_close(&f);
}
