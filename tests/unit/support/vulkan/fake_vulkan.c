/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * fake_vulkan.c - what the emulated Vulkan driver tells of devices and handles that are used
 * against a rule of Vulkan, and the functions and codes that it has by its version.
 */
#include "tests/support/unit.h"
#include "tests/support/vulkan/fixture.h"

/* Creates a device with only the listed extensions. */
static VkDevice open_plain(fv_fixture *f, uint32_t count, const char *const *names,
                           const void *features)
{
    float priority = 1;
    VkDevice device;
    VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                     .queueCount = 1,
                                     .pQueuePriorities = &priority};
    VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                               .pNext = features,
                               .queueCreateInfoCount = 1,
                               .pQueueCreateInfos = &queue,
                               .enabledExtensionCount = count,
                               .ppEnabledExtensionNames = names};
    VkResult result = FV(f, vkCreateDevice)(f->physical, &info, NULL, &device);
    CHECK_EQ(device == (VkDevice)(uintptr_t)0xdeadbeefdeadbeef, result != VK_SUCCESS);
    return result ? NULL : device;
}

FV_UNIT(fake_vulkan, functions_are_there_where_version_and_extensions_have_them)
{
    fv_fixture_open(f, "nvidia-11", 0); /* 1.1, with a timeline extension */
    const char *timeline = "VK_KHR_timeline_semaphore", *fd = "VK_KHR_external_memory_fd";
    VkDevice none = open_plain(f, 0, NULL, NULL), one = open_plain(f, 1, &timeline, NULL);
    VkDevice other = open_plain(f, 1, &fd, NULL);
    CHECK(f->get_of_device(none, "vkBindBufferMemory2"));     /* 1.1 */
    CHECK(!f->get_of_device(none, "vkBindBufferMemory2KHR")); /* its extension is not enabled */
    CHECK(!f->get_of_device(none, "vkWaitSemaphores"));       /* 1.2 */
    CHECK(!f->get_of_device(none, "vkWaitSemaphoresKHR"));
    CHECK(!f->get_of_device(one, "vkWaitSemaphores"));
    CHECK(f->get_of_device(one, "vkWaitSemaphoresKHR"));
    CHECK(!f->get_of_device(none, "vkGetMemoryFdKHR"));
    CHECK(f->get_of_device(other, "vkGetMemoryFdKHR"));
    CHECK(!f->get_of_device(none, "vkCreateInstance"));
    CHECK(!f->get_of_device(none, "vkNoSuchFunction"));
    CHECK(!f->get(NULL, "vkDestroyInstance"));
    CHECK(f->get(NULL, "vkCreateInstance"));
    fv_hide(f->driver, "vkBindBufferMemory2");
    CHECK(!f->get_of_device(none, "vkBindBufferMemory2"));
    fv_heal(f->driver);
    CHECK(f->get_of_device(none, "vkBindBufferMemory2"));
}

FV_UNIT_ON(fake_vulkan, a_device_refuses_what_it_does_not_offer, fv_fixture_open(f, "nvidia-11", 0))
{
    const char *priority = "VK_EXT_memory_priority";
    VkPhysicalDeviceBufferDeviceAddressFeatures address = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES,
        .bufferDeviceAddress = VK_TRUE};
    CHECK(!open_plain(f, 1, &priority, NULL));
    CHECK(!open_plain(f, 0, NULL, &address));
    CHECK_EQ(fv_live(f->driver, FV_DEVICE), 1);
    fv_fixture_close(f);
    fv_fixture_open(f, "moltenvk", 0);
    FV_TOLD(f, "VUID-VkDeviceCreateInfo-pProperties-04451", open_plain(f, 0, NULL, NULL));
}

UNIT(fake_vulkan, a_leak_is_told_with_its_kind)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, 0);
    fv_fixture_memory(&f, 1000, 0);
    FV(&f, vkDestroyDevice)(f.device, NULL);
    f.device = VK_NULL_HANDLE;
    fv_fixture_expect(&f, "VUID-vkDestroyDevice-device-00378: vkDestroyDevice: a memory is still");
    CHECK_EQ(fv_usage(f.driver, 0, 0).bytes, 0);
    fv_fixture_close(&f);
}

UNIT(fake_vulkan, a_leaked_device_is_told_with_all_on_it)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, 0);
    fv_fixture_buffer(&f, 100, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT);
    FV(&f, vkDestroyInstance)(f.instance, NULL);
    CHECK(fv_message_with(f.driver, "VUID-vkDestroyInstance-instance-00629"));
    CHECK(fv_message_with(f.driver, "a buffer is still alive"));
    CHECK_EQ(fv_message_count(f.driver, FV_ERROR), 2);
    for (uint32_t kind = 0; kind < FV_KINDS; kind++)
        CHECK_EQ(fv_live(f.driver, (fv_kind)kind), 0);
    fv_destroy(f.driver);
}

UNIT(fake_vulkan, stale_and_foreign_handles_are_told_and_not_used)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, 0);
    VkDevice second = open_plain(&f, 0, NULL, NULL);
    VkDeviceMemory memory = fv_fixture_memory(&f, 1000, 0);
    VkBuffer buffer = fv_fixture_buffer(&f, 100, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT);
    FV_TOLD(&f, "fv-parent", FV(&f, vkFreeMemory)(second, memory, NULL));
    FV_TOLD(&f, "is a buffer and no memory",
            FV(&f, vkFreeMemory)(f.device, (VkDeviceMemory)buffer, NULL));
    FV(&f, vkFreeMemory)(f.device, memory, NULL);
    FV_TOLD(&f, "destroyed or never made", FV(&f, vkFreeMemory)(f.device, memory, NULL));
    FV(&f, vkDestroyBuffer)(f.device, buffer, NULL);
    FV_TOLD(&f, "destroyed or never made", FV(&f, vkDestroyBuffer)(f.device, buffer, NULL));
    FV(&f, vkDestroyDevice)(second, NULL);
    FV_TOLD(&f, "the device was destroyed", FV(&f, vkDestroyDevice)(second, NULL));
    FV(&f, vkFreeMemory)(f.device, VK_NULL_HANDLE, NULL);
    fv_fixture_close(&f);
}

/* Vulkan's rules for the chain of a device. */
FV_UNIT_ON(fake_vulkan, structs_of_features_that_exclude_each_other_are_told,
           fv_fixture_open(f, NULL, 0))
{
    VkPhysicalDeviceVulkan12Features core = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    VkPhysicalDeviceTimelineSemaphoreFeatures again = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES};
    VkPhysicalDeviceTimelineSemaphoreFeatures single = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES, .pNext = &core};
    FV_TOLD(f, "VUID-VkDeviceCreateInfo-pNext-02830", open_plain(f, 0, NULL, &single));
    single.pNext = &again;
    FV_TOLD(f, "VUID-VkDeviceCreateInfo-sType-unique", open_plain(f, 0, NULL, &single));
}

UNIT(fake_vulkan, codes_are_those_of_the_specification)
{
    VkResult codes[8];
    CHECK_EQ(fv_codes("vkMapMemory", codes, 8), 3);
    CHECK_EQ((uint32_t)codes[0], (uint32_t)VK_ERROR_OUT_OF_HOST_MEMORY);
    CHECK_EQ((uint32_t)codes[1], (uint32_t)VK_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_EQ((uint32_t)codes[2], (uint32_t)VK_ERROR_MEMORY_MAP_FAILED);
    CHECK_EQ(fv_codes("vkFreeMemory", codes, 8), 0);
    CHECK_EQ(fv_codes("vkCreateDevice", codes, 1), 7); /* more than the array can hold */
    CHECK_EQ(fv_codes("vkBindBufferMemory2KHR", codes, 8), 3);
}
