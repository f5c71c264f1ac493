/*
 * fake_vulkan.c - the fake Vulkan driver: the layouts that it imitates, and its functions.
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

UNIT(fake_vulkan, layouts_follow_the_rules_of_the_specification)
{
    for (uint32_t i = 0; i < fv_layout_count; i++) {
        VkMemoryPropertyFlags needed =
            VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
        bool coherent = false, local = false;
        for (uint32_t k = 0; k < fv_layouts[i].type_count; k++) {
            VkMemoryPropertyFlags flags = fv_layouts[i].types[k].propertyFlags;
            coherent |= (flags & needed) == needed;
            local |= flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
        }
        /* "incoherent" breaks this one on purpose */
        CHECK_EQ(coherent, strcmp(fv_layouts[i].name, "incoherent") != 0);
        CHECK(local);
        CHECK(fv_layout_named(fv_layouts[i].name) == &fv_layouts[i]);
        CHECK(fv_layouts[i].source && *fv_layouts[i].source);
    }
    CHECK(!fv_layout_named("no such device"));
}

UNIT(fake_vulkan, limits_are_those_of_the_layout)
{
    fv_fixture f;
    fv_fixture_open(&f, "swiftshader", 0);
    VkPhysicalDeviceMaintenance3Properties most = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES};
    VkPhysicalDeviceProperties2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                       .pNext = &most};
    FV(&f, vkGetPhysicalDeviceProperties2)(f.physical, &all);
    CHECK_STR(all.properties.deviceName, "fake swiftshader");
    CHECK_EQ(all.properties.apiVersion, VK_API_VERSION_1_3);
    CHECK_EQ(all.properties.limits.bufferImageGranularity, 4096);
    CHECK_EQ(all.properties.limits.nonCoherentAtomSize, 256);
    CHECK_EQ(all.properties.limits.maxMemoryAllocationCount, 4096);
    CHECK_EQ(most.maxMemoryAllocationSize, 1073741824);
    fv_fixture_close(&f);
}

UNIT(fake_vulkan, a_driver_can_have_several_devices)
{
    fv_options options = {.layouts = {fv_layout_named("nvidia-bar"), fv_layout_named("lavapipe")}};
    fv_fixture f;
    fv_fixture_open_with(&f, &options);
    VkPhysicalDevice list[4];
    uint32_t count = 4;
    CHECK_VK(FV(&f, vkEnumeratePhysicalDevices)(f.instance, &count, list));
    CHECK_EQ(count, 2);
    VkPhysicalDeviceProperties second;
    FV(&f, vkGetPhysicalDeviceProperties)(list[1], &second);
    CHECK_STR(second.deviceName, "fake lavapipe");
    count = 1;
    CHECK_EQ(FV(&f, vkEnumeratePhysicalDevices)(f.instance, &count, list), VK_INCOMPLETE);
    fv_fixture_close(&f);
}

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

UNIT(fake_vulkan, functions_are_there_where_version_and_extensions_have_them)
{
    fv_fixture f;
    fv_fixture_open(&f, "nvidia-11", 0); /* 1.1, with a timeline extension */
    const char *timeline = "VK_KHR_timeline_semaphore", *fd = "VK_KHR_external_memory_fd";
    VkDevice none = open_plain(&f, 0, NULL, NULL), one = open_plain(&f, 1, &timeline, NULL);
    VkDevice other = open_plain(&f, 1, &fd, NULL);
    CHECK(f.get_of_device(none, "vkBindBufferMemory2"));     /* 1.1 */
    CHECK(!f.get_of_device(none, "vkBindBufferMemory2KHR")); /* its extension is not enabled */
    CHECK(!f.get_of_device(none, "vkWaitSemaphores"));       /* 1.2 */
    CHECK(!f.get_of_device(none, "vkWaitSemaphoresKHR"));
    CHECK(!f.get_of_device(one, "vkWaitSemaphores"));
    CHECK(f.get_of_device(one, "vkWaitSemaphoresKHR"));
    CHECK(!f.get_of_device(none, "vkGetMemoryFdKHR"));
    CHECK(f.get_of_device(other, "vkGetMemoryFdKHR"));
    CHECK(!f.get_of_device(none, "vkCreateInstance"));
    CHECK(!f.get_of_device(none, "vkNoSuchFunction"));
    CHECK(!f.get(NULL, "vkDestroyInstance"));
    CHECK(f.get(NULL, "vkCreateInstance"));
    fv_hide(f.driver, "vkBindBufferMemory2");
    CHECK(!f.get_of_device(none, "vkBindBufferMemory2"));
    fv_heal(f.driver);
    CHECK(f.get_of_device(none, "vkBindBufferMemory2"));
    FV(&f, vkDestroyDevice)(none, NULL);
    FV(&f, vkDestroyDevice)(one, NULL);
    FV(&f, vkDestroyDevice)(other, NULL);
    fv_fixture_close(&f);
}

UNIT(fake_vulkan, a_device_refuses_what_it_does_not_offer)
{
    fv_fixture f;
    fv_fixture_open(&f, "nvidia-11", 0);
    const char *priority = "VK_EXT_memory_priority";
    VkPhysicalDeviceBufferDeviceAddressFeatures address = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES,
        .bufferDeviceAddress = VK_TRUE};
    CHECK(!open_plain(&f, 1, &priority, NULL));
    CHECK(!open_plain(&f, 0, NULL, &address));
    CHECK_EQ(fv_live(f.driver, FV_DEVICE), 1);
    fv_fixture_close(&f);
    fv_fixture_open(&f, "moltenvk", 0);
    VkDevice device = open_plain(&f, 0, NULL, NULL);
    fv_fixture_expect(&f, "VUID-VkDeviceCreateInfo-pProperties-04451");
    FV(&f, vkDestroyDevice)(device, NULL);
    fv_fixture_close(&f);
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
    FV(&f, vkFreeMemory)(second, memory, NULL);
    fv_fixture_expect(&f, "fv-parent");
    FV(&f, vkFreeMemory)(f.device, (VkDeviceMemory)buffer, NULL);
    fv_fixture_expect(&f, "is a buffer and no memory");
    FV(&f, vkFreeMemory)(f.device, memory, NULL);
    FV(&f, vkFreeMemory)(f.device, memory, NULL);
    fv_fixture_expect(&f, "destroyed or never made");
    FV(&f, vkDestroyBuffer)(f.device, buffer, NULL);
    FV(&f, vkDestroyBuffer)(f.device, buffer, NULL);
    fv_fixture_expect(&f, "destroyed or never made");
    FV(&f, vkDestroyDevice)(second, NULL);
    FV(&f, vkDestroyDevice)(second, NULL);
    fv_fixture_expect(&f, "the device was destroyed");
    FV(&f, vkFreeMemory)(f.device, VK_NULL_HANDLE, NULL);
    fv_fixture_close(&f);
}

UNIT(fake_vulkan, names_are_kept_and_allowed_messages_are_not_counted)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, 0);
    char name[16];
    VkBuffer buffer = fv_fixture_buffer(&f, 100, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT);
    VkDebugUtilsObjectNameInfoEXT info = {.sType =
                                              VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT,
                                          .objectType = VK_OBJECT_TYPE_BUFFER,
                                          .objectHandle = (uint64_t)buffer,
                                          .pObjectName = "weights of layer 7"};
    CHECK_VK(FV(&f, vkSetDebugUtilsObjectNameEXT)(f.device, &info));
    fv_name_of(f.driver, (uint64_t)buffer, name, sizeof name);
    CHECK_STR(name, "weights of laye"); /* truncated to the buffer */
    fv_allow(f.driver, "fv-handle");
    FV(&f, vkDestroyBuffer)(f.device, buffer, NULL);
    FV(&f, vkDestroyBuffer)(f.device, buffer, NULL);
    CHECK_EQ(fv_message_count(f.driver, FV_ERROR), 0);
    fv_fixture_close(&f);
}
