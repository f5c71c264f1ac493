/*
 * open_select.c - selects the physical device that quire_vulkan_open uses: the first device of the
 * best type among those that the caller wants.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/vulkan/open.h"
#include "backends/vulkan/result.h"
#include "src/base/result.h"
#include "src/base/text.h"

enum { MAX_DEVICES = 64, NONE = -1 };

/* Ranks the device types. A lower rank is better. */
static int rank_of(VkPhysicalDeviceType type)
{
    switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
        return 0;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
        return 1;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
        return 2;
    default:
        return 3;
    }
}

/* Fails with a list of the devices that exist. */
static quire_result refuse(const opening *o, const VkPhysicalDevice *devices, uint32_t count)
{
    char list[512] = "none";
    size_t length = 0;
    for (uint32_t i = 0; i < count && length < sizeof list; i++) {
        VkPhysicalDeviceProperties p;
        o->get_properties(devices[i], &p);
        int more = snprintf(list + length, sizeof list - length, "%s%u '%s' (Vulkan %u.%u)",
                            length ? ", " : "", i, p.deviceName, VK_API_VERSION_MAJOR(p.apiVersion),
                            VK_API_VERSION_MINOR(p.apiVersion));
        length += more > 0 ? (size_t)more : 0;
    }
    return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                        "no device with Vulkan 1.1 and with memory matches '%s'; available: %s",
                        o->wanted ? o->wanted : "", list);
}

/* Some drivers list devices whose hardware is absent. These have no memory types. */
static bool has_memory(const opening *o, VkPhysicalDevice device)
{
    PFN_vkGetPhysicalDeviceMemoryProperties get =
        (PFN_vkGetPhysicalDeviceMemoryProperties)o->get_instance(
            o->vulkan->own_instance, "vkGetPhysicalDeviceMemoryProperties");
    VkPhysicalDeviceMemoryProperties memory = {.memoryTypeCount = 0};
    if (get)
        get(device, &memory);
    return memory.memoryTypeCount && memory.memoryHeapCount;
}

quire_result qi_vulkan_select(opening *o)
{
    VkPhysicalDevice devices[MAX_DEVICES];
    uint32_t count = MAX_DEVICES;
    VkResult code = o->list_devices(o->vulkan->own_instance, &count, devices);
    if (code && code != VK_INCOMPLETE)
        return qi_vulkan_fail(code, "vkEnumeratePhysicalDevices");
    int best = NONE, best_rank = 0;
    for (uint32_t i = 0; i < count; i++) {
        VkPhysicalDeviceProperties p;
        o->get_properties(devices[i], &p);
        int rank = rank_of(p.deviceType);
        bool is_better = best == NONE || rank < best_rank;
        if (p.apiVersion < VK_API_VERSION_1_1 || !qi_is_wanted(o->wanted, i, p.deviceName) ||
            !is_better || !has_memory(o, devices[i]))
            continue;
        best = (int)i;
        best_rank = rank;
    }
    if (best == NONE)
        return refuse(o, devices, count);
    o->physical_device = devices[best];
    return QUIRE_SUCCESS;
}
