/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * fixture.c - the fixture of tests on the fake driver: see fixture.h.
 */
#include "tests/support/vulkan/fixture.h"

#include <stdlib.h>
#include <string.h>

#define MAX_EXTENSIONS 64

PFN_vkVoidFunction fv_fixture_function(const fv_fixture *f, const char *name)
{
    PFN_vkVoidFunction found = f->device ? f->get_of_device(f->device, name) : NULL;
    if (!found)
        found = f->get(f->instance, name);
    if (!found)
        check_failed(__FILE__, __LINE__, "there is no %s", name);
    return found;
}

static void open_instance(fv_fixture *f)
{
    VkExtensionProperties all[MAX_EXTENSIONS];
    const char *names[MAX_EXTENSIONS];
    uint32_t count = MAX_EXTENSIONS;
    CHECK_VK(FV(f, vkEnumerateInstanceExtensionProperties)(NULL, &count, all));
    for (uint32_t i = 0; i < count; i++)
        names[i] = all[i].extensionName;
    VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                     .apiVersion = VK_API_VERSION_1_3};
    VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                 .pApplicationInfo = &application,
                                 .enabledExtensionCount = count,
                                 .ppEnabledExtensionNames = names};
    CHECK_VK(FV(f, vkCreateInstance)(&info, NULL, &f->instance));
    uint32_t one = 1;
    (void)FV(f, vkEnumeratePhysicalDevices)(f->instance, &one, &f->physical);
    CHECK_EQ(one, 1);
}

/* Enables every offered feature by passing the queried structs back, and every extension but the
   older one of two that exclude each other. */
static void open_device(fv_fixture *f)
{
    VkExtensionProperties all[MAX_EXTENSIONS];
    const char *names[MAX_EXTENSIONS];
    uint32_t offered = MAX_EXTENSIONS, count = 0;
    CHECK_VK(FV(f, vkEnumerateDeviceExtensionProperties)(f->physical, NULL, &offered, all));
    for (uint32_t i = 0; i < offered; i++)
        if (strcmp(all[i].extensionName, VK_EXT_BUFFER_DEVICE_ADDRESS_EXTENSION_NAME) != 0)
            names[count++] = all[i].extensionName;
    VkPhysicalDeviceCoherentMemoryFeaturesAMD coherent = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COHERENT_MEMORY_FEATURES_AMD};
    VkPhysicalDevicePageableDeviceLocalMemoryFeaturesEXT pageable = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PAGEABLE_DEVICE_LOCAL_MEMORY_FEATURES_EXT,
        .pNext = &coherent};
    VkPhysicalDeviceMemoryPriorityFeaturesEXT priority = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PRIORITY_FEATURES_EXT,
        .pNext = &pageable};
    VkPhysicalDeviceMaintenance4Features maintenance4 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_FEATURES, .pNext = &priority};
    VkPhysicalDeviceSynchronization2Features sync2 = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SYNCHRONIZATION_2_FEATURES,
        .pNext = &maintenance4};
    VkPhysicalDeviceTimelineSemaphoreFeatures timeline = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES, .pNext = &sync2};
    VkPhysicalDeviceBufferDeviceAddressFeatures address = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES,
        .pNext = &timeline};
    VkPhysicalDeviceProtectedMemoryFeatures guarded = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROTECTED_MEMORY_FEATURES, .pNext = &address};
    VkPhysicalDeviceFeatures2 features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                          .pNext = &guarded};
    FV(f, vkGetPhysicalDeviceFeatures2)(f->physical, &features);
    VkDeviceQueueCreateInfo queues[3];
    float priorities[2] = {1, 1};
    for (uint32_t i = 0; i < 3; i++)
        queues[i] = (VkDeviceQueueCreateInfo){.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                              .queueFamilyIndex = i,
                                              .queueCount = 2,
                                              .pQueuePriorities = priorities};
    VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                               .pNext = &features,
                               .queueCreateInfoCount = 3,
                               .pQueueCreateInfos = queues,
                               .enabledExtensionCount = count,
                               .ppEnabledExtensionNames = names};
    f->get_of_device = FV(f, vkGetDeviceProcAddr);
    CHECK_VK(FV(f, vkCreateDevice)(f->physical, &info, NULL, &f->device));
    FV(f, vkGetDeviceQueue)(f->device, 0, 0, &f->queue);
}

void fv_fixture_open_over(fv_fixture *f, const fv_options *options,
                          PFN_vkGetInstanceProcAddr (*over)(PFN_vkGetInstanceProcAddr door))
{
    *f = (fv_fixture){.driver = fv_create(options)};
    f->get = fv_door(f->driver);
    if (over)
        f->get = over(f->get);
    open_instance(f);
    open_device(f);
}

void fv_fixture_open_with(fv_fixture *f, const fv_options *options)
{
    fv_fixture_open_over(f, options, NULL);
}

void fv_fixture_open(fv_fixture *f, const char *layout, uint32_t flags)
{
    const fv_layout *found = fv_layout_named(layout ? layout : "amd-bar");
    CHECK(found);
    fv_fixture_open_with(f, &(fv_options){.layouts = {found}, .flags = flags});
}

static void check_silent(const fv_fixture *f)
{
    const char *first = fv_message(f->driver, 0);
    if (first)
        check_failed(__FILE__, __LINE__, "%u errors, %u warnings, the first: %s",
                     fv_message_count(f->driver, FV_ERROR), fv_message_count(f->driver, FV_WARNING),
                     first);
}

static void destroy_all(fv_fixture *f)
{
    if (f->pool)
        FV(f, vkDestroyCommandPool)(f->device, f->pool, NULL);
    if (f->device)
        FV(f, vkDestroyDevice)(f->device, NULL);
    f->device = VK_NULL_HANDLE;
    FV(f, vkDestroyInstance)(f->instance, NULL);
}

static void end_driver(fv_fixture *f)
{
    for (uint32_t kind = 0; kind < FV_KINDS; kind++)
        CHECK_EQ(fv_live(f->driver, (fv_kind)kind), 0);
    fv_destroy(f->driver);
}

void fv_fixture_close(fv_fixture *f)
{
    destroy_all(f);
    check_silent(f);
    end_driver(f);
}

void fv_fixture_leave(fv_fixture *f)
{
    check_silent(f);
    destroy_all(f);
    end_driver(f);
}

void fv_fixture_expect(fv_fixture *f, const char *part)
{
    uint32_t count =
        fv_message_count(f->driver, FV_ERROR) + fv_message_count(f->driver, FV_WARNING);
    const char *text = fv_message(f->driver, 0);
    CHECK_HAS(text ? text : "(no message)", part);
    if (count != 1)
        check_failed(__FILE__, __LINE__, "%u messages; the second: %s", count,
                     fv_message(f->driver, 1));
    fv_forget(f->driver);
}

VkDeviceMemory fv_fixture_memory(fv_fixture *f, uint64_t size, uint32_t type)
{
    VkDeviceMemory memory;
    VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                 .allocationSize = size,
                                 .memoryTypeIndex = type};
    CHECK_VK(FV(f, vkAllocateMemory)(f->device, &info, NULL, &memory));
    return memory;
}

VkBuffer fv_fixture_buffer(fv_fixture *f, uint64_t size, VkBufferUsageFlags usage)
{
    VkBuffer buffer;
    VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = size, .usage = usage};
    CHECK_VK(FV(f, vkCreateBuffer)(f->device, &info, NULL, &buffer));
    return buffer;
}

VkMemoryRequirements fv_fixture_needs(fv_fixture *f, VkBuffer buffer)
{
    VkMemoryRequirements needs;
    FV(f, vkGetBufferMemoryRequirements)(f->device, buffer, &needs);
    return needs;
}

VkBuffer fv_fixture_bound(fv_fixture *f, uint64_t size, uint32_t type, VkDeviceMemory *memory)
{
    VkBuffer buffer = fv_fixture_buffer(
        f, size, VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT);
    *memory = fv_fixture_memory(f, fv_fixture_needs(f, buffer).size, type);
    CHECK_VK(FV(f, vkBindBufferMemory)(f->device, buffer, *memory, 0));
    return buffer;
}

fv_visible fv_fixture_visible(fv_fixture *f, uint64_t size)
{
    fv_visible visible;
    void *data;
    visible.buffer = fv_fixture_bound(f, size, fv_fixture_coherent(f), &visible.memory);
    CHECK_VK(FV(f, vkMapMemory)(f->device, visible.memory, 0, VK_WHOLE_SIZE, 0, &data));
    visible.bytes = data;
    return visible;
}

void fv_fixture_hide(fv_fixture *f, const fv_visible *visible)
{
    fv_fixture_free(f, visible->buffer, visible->memory);
}

uint32_t fv_word(const fv_visible *visible, uint32_t index)
{
    uint32_t value;
    memcpy(&value, visible->bytes + index * sizeof value, sizeof value);
    return value;
}

void fv_fixture_free(fv_fixture *f, VkBuffer buffer, VkDeviceMemory memory)
{
    FV(f, vkDestroyBuffer)(f->device, buffer, NULL);
    FV(f, vkFreeMemory)(f->device, memory, NULL);
}

VkCommandBuffer fv_fixture_begin(fv_fixture *f)
{
    VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    if (!f->pool)
        CHECK_VK(FV(f, vkCreateCommandPool)(f->device, &pool, NULL, &f->pool));
    VkCommandBuffer commands;
    VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                        .commandPool = f->pool,
                                        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                        .commandBufferCount = 1};
    VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                      .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
    CHECK_VK(FV(f, vkAllocateCommandBuffers)(f->device, &info, &commands));
    CHECK_VK(FV(f, vkBeginCommandBuffer)(commands, &begin));
    return commands;
}

void fv_fixture_run(fv_fixture *f, VkCommandBuffer commands)
{
    VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                         .commandBufferCount = 1,
                         .pCommandBuffers = &commands};
    CHECK_VK(FV(f, vkEndCommandBuffer)(commands));
    CHECK_VK(FV(f, vkQueueSubmit)(f->queue, 1, &info, VK_NULL_HANDLE));
    CHECK_VK(FV(f, vkQueueWaitIdle)(f->queue));
    FV(f, vkFreeCommandBuffers)(f->device, f->pool, 1, &commands);
}

uint32_t fv_fixture_type(const fv_fixture *f, VkMemoryPropertyFlags flags)
{
    VkPhysicalDeviceMemoryProperties all;
    FV(f, vkGetPhysicalDeviceMemoryProperties)(f->physical, &all);
    for (uint32_t i = 0; i < all.memoryTypeCount; i++)
        if (all.memoryTypes[i].propertyFlags == flags)
            return i;
    check_failed(__FILE__, __LINE__, "there is no memory type with flags 0x%x", flags);
}

uint32_t fv_fixture_coherent(const fv_fixture *f)
{
    VkPhysicalDeviceMemoryProperties all;
    FV(f, vkGetPhysicalDeviceMemoryProperties)(f->physical, &all);
    for (uint32_t i = 0; i < all.memoryTypeCount; i++)
        if (all.memoryTypes[i].propertyFlags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT)
            return i;
    check_failed(__FILE__, __LINE__, "there is no coherent memory type");
}
