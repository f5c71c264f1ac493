/*
 * fake_vulkan_layout.c - layouts of the fake Vulkan driver from files: a file that the test writes,
 * and every profile in the folder "devices" below the folder that the environment variable
 * QUIRE_TEST_DATA names.
 */
#include "tests/support/unit.h"
#include "tests/support/vulkan/fixture.h"
#include "tests/support/vulkan/layout_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    CHECK(file);
    CHECK(fputs(text, file) >= 0 && !fclose(file));
}

UNIT(fake_vulkan_layout, a_profile_becomes_a_device)
{
    char path[] = "/tmp/fake-vulkan-XXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0 && !close(fd));
    write_file(path,
               "{\"name\": \"Some GPU\", \"deviceType\": \"PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU\","
               "\"vendorID\": \"0x1002\", \"deviceID\": \"0x15dd\","
               "\"apiVersion\": \"4206809 (1.2.217)\","
               "\"heaps\": [{\"size\": 1000000, \"flags\": []}, {\"flags\": [\"DEVICE_LOCAL\"]}],"
               "\"types\": [{\"heap\": 1, \"flags\": [\"DEVICE_LOCAL\"]},"
               "{\"heap\": 0, \"flags\": [\"HOST_VISIBLE\", \"HOST_COHERENT\"]}],"
               "\"limits\": {\"bufferImageGranularity\": 512, \"nonCoherentAtomSize\": 128,"
               "\"sparseAddressSpaceSize\": \"18446744073709551615\"},"
               "\"extensions\": [\"VK_EXT_memory_budget\", \"VK_KHR_unheard_of\"],"
               "\"features\": {\"sparseBinding\": true}}");
    fv_layout layout;
    CHECK(fv_layout_file_read(path, &layout));
    unlink(path);
    CHECK_STR(layout.name, "Some GPU");
    CHECK_EQ(layout.type, VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU);
    CHECK_EQ(layout.api_version, VK_API_VERSION_1_2);
    CHECK_EQ(layout.vendor, 0x1002);
    CHECK_EQ(layout.device, 0x15dd);
    CHECK_EQ(layout.heaps[0].size, 1000000);
    CHECK_EQ(layout.heaps[1].size, UINT64_C(8) << 30);
    CHECK_EQ(layout.types[0].heapIndex, 1);
    CHECK_EQ(layout.granularity, 512);
    CHECK_EQ(layout.sparse_space, UINT64_MAX);
    CHECK_EQ(layout.extensions, FV_BIT(BUDGET));
    CHECK_EQ(layout.features, FV_SPARSE_BINDING);
    fv_fixture f;
    fv_fixture_open_with(&f, &(fv_options){.layouts = {&layout}});
    fv_layout_file_end(&layout); /* the driver has copied it */
    VkPhysicalDeviceProperties properties;
    FV(&f, vkGetPhysicalDeviceProperties)(f.physical, &properties);
    CHECK_STR(properties.deviceName, "fake Some GPU");
    CHECK_EQ(properties.limits.nonCoherentAtomSize, 128);
    fv_fixture_close(&f);
    CHECK(!fv_layout_file_read("/nonexistent/profile.json", &layout));
}

static void pose(const fv_layout *layout, void *state)
{
    (void)state;
    fv_fixture f;
    fv_fixture_open_with(&f, &(fv_options){.layouts = {layout}});
    VkPhysicalDeviceMemoryProperties memory;
    FV(&f, vkGetPhysicalDeviceMemoryProperties)(f.physical, &memory);
    CHECK_EQ(memory.memoryTypeCount, layout->type_count);
    VkDeviceMemory made = fv_fixture_memory(&f, 65536, fv_fixture_coherent(&f));
    FV(&f, vkFreeMemory)(f.device, made, NULL);
    fv_fixture_close(&f);
}

UNIT(fake_vulkan_layout, every_recorded_device_can_be_posed_as)
{
    if (!fv_layout_files(pose, NULL))
        fprintf(stderr, "skipped: QUIRE_TEST_DATA names no folder with device profiles\n");
}
