/*
 * fixture.c - see fixture.h.
 */
#include "tests/support/vulkan/fixture.h"

#include <stdlib.h>

#define MOST_EXTENSIONS 64

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
    VkExtensionProperties all[MOST_EXTENSIONS];
    const char *names[MOST_EXTENSIONS];
    uint32_t count = MOST_EXTENSIONS;
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

/* Every feature the device offers is enabled by handing back what it told. */
static void open_device(fv_fixture *f)
{
    VkExtensionProperties all[MOST_EXTENSIONS];
    const char *names[MOST_EXTENSIONS];
    uint32_t count = MOST_EXTENSIONS;
    CHECK_VK(FV(f, vkEnumerateDeviceExtensionProperties)(f->physical, NULL, &count, all));
    for (uint32_t i = 0; i < count; i++)
        names[i] = all[i].extensionName;
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

void fv_fixture_close(fv_fixture *f)
{
    if (f->device)
        FV(f, vkDestroyDevice)(f->device, NULL);
    f->device = VK_NULL_HANDLE;
    FV(f, vkDestroyInstance)(f->instance, NULL);
    check_silent(f);
    for (uint32_t kind = 0; kind < FV_KINDS; kind++)
        CHECK_EQ(fv_live(f->driver, (fv_kind)kind), 0);
    fv_destroy(f->driver);
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

uint32_t fv_fixture_type(const fv_fixture *f, VkMemoryPropertyFlags flags)
{
    VkPhysicalDeviceMemoryProperties all;
    FV(f, vkGetPhysicalDeviceMemoryProperties)(f->physical, &all);
    for (uint32_t i = 0; i < all.memoryTypeCount; i++)
        if (all.memoryTypes[i].propertyFlags == flags)
            return i;
    check_failed(__FILE__, __LINE__, "there is no memory type with flags 0x%x", flags);
}
