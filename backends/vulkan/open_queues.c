/*
 * open_queues.c - the queues of a device of quire's own: one that computes, one of another family
 * for sparse objects if the first cannot bind them, and those that the program wishes.
 */
#include "backends/vulkan/open.h"
#include "src/base/bits.h"
#include "src/base/result.h"

enum { NONE = -1, MAX_QUEUES = QUIRE_VULKAN_MAX_QUEUES + 2 };

static void read_families(opening *o)
{
    o->get_families(o->physical_device, &o->family_count, NULL);
    if (o->family_count > QI_VULKAN_MAX_FAMILIES)
        o->family_count = QI_VULKAN_MAX_FAMILIES;
    o->get_families(o->physical_device, &o->family_count, o->families);
}

/* Families that compute or draw also transfer, and need not say so. */
static VkQueueFlags flags_of(const opening *o, uint32_t family)
{
    VkQueueFlags flags = o->families[family].queueFlags;
    return flags & (VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT) ? flags | VK_QUEUE_TRANSFER_BIT
                                                                  : flags;
}

static bool can_give(const opening *o, uint32_t family, VkQueueFlags wanted)
{
    return !(wanted & ~flags_of(o, family)) && o->used[family] < o->families[family].queueCount;
}

static uint32_t count_flags(VkQueueFlags flags)
{
    uint32_t count = 0;
    for (; flags; flags &= flags - 1)
        count++;
    return count;
}

/* Returns the first family with the flags, and a queue that is not taken, that has the fewest
   flags. */
static int find_smallest(const opening *o, VkQueueFlags wanted)
{
    int found = NONE;
    for (uint32_t i = 0; i < o->family_count; i++)
        if (can_give(o, i, wanted) &&
            (found == NONE ||
             count_flags(flags_of(o, i)) < count_flags(flags_of(o, (uint32_t)found))))
            found = (int)i;
    return found;
}

/* The first family that computes is the one with most uses on all known drivers. */
static quire_result choose_main(opening *o)
{
    VkQueueFlags wanted = VK_QUEUE_COMPUTE_BIT | o->options->queue_flags;
    for (uint32_t i = 0; i < o->family_count; i++)
        if (can_give(o, i, wanted)) {
            o->family = i;
            o->used[i] = 1;
            return QUIRE_SUCCESS;
        }
    return o->options->queue_flags
               ? qi_fail_text(
                     QUIRE_ERROR_UNSUPPORTED,
                     "the device has no queue family with compute and the queue_flags 0x%x",
                     o->options->queue_flags)
               : qi_fail(QUIRE_ERROR_UNSUPPORTED,
                         "the device has no queue family that supports compute");
}

static bool is_sparse_enabled(const opening *o)
{
    for (const VkBaseInStructure *link = o->device_info.pNext; link; link = link->pNext)
        if (link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2)
            return ((const VkPhysicalDeviceFeatures2 *)link)->features.sparseBinding;
    return false;
}

/* Without a family that binds, sparse objects are UNSUPPORTED although the feature is enabled. */
static void choose_sparse(opening *o)
{
    if (!is_sparse_enabled(o) || flags_of(o, o->family) & VK_QUEUE_SPARSE_BINDING_BIT)
        return;
    int found = find_smallest(o, VK_QUEUE_SPARSE_BINDING_BIT);
    o->has_sparse_queue = found != NONE;
    if (!o->has_sparse_queue)
        return;
    o->sparse_family = (uint32_t)found;
    o->used[found]++;
}

static quire_result choose_further(opening *o)
{
    const quire_vulkan_options *options = o->options;
    for (uint32_t i = 0; i < options->queue_count; i++) {
        int found = find_smallest(o, options->queues[i]);
        if (found == NONE)
            return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                                "the device has no queue for queues[%u]: none with the flags 0x%x "
                                "is left",
                                i, options->queues[i]);
        o->vulkan->further[i].family = (uint32_t)found;
        o->further_index[i] = o->used[found]++;
    }
    return QUIRE_SUCCESS;
}

quire_result qi_vulkan_choose_queues(opening *o)
{
    static const float priorities[MAX_QUEUES] = {1, 1, 1, 1, 1, 1, 1, 1, 1,
                                                 1, 1, 1, 1, 1, 1, 1, 1, 1};
    read_families(o);
    quire_result result = choose_main(o);
    if (result)
        return result;
    choose_sparse(o);
    result = choose_further(o);
    VkDeviceQueueCreateInfo *next = o->queue_infos;
    for (uint32_t i = 0; i < o->family_count; i++)
        if (o->used[i])
            *next++ = (VkDeviceQueueCreateInfo){
                .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                .queueFamilyIndex = i,
                .queueCount = o->used[i],
                .pQueuePriorities = priorities,
            };
    o->device_info.queueCreateInfoCount = (uint32_t)(next - o->queue_infos);
    o->device_info.pQueueCreateInfos = o->queue_infos;
    return result;
}

void qi_vulkan_get_queues(opening *o, quire_vulkan_queue *queue, quire_vulkan_queue *sparse_queue)
{
    qi_vulkan *vulkan = o->vulkan;
    queue->family = o->family;
    o->get_queue(vulkan->own_device, o->family, 0, &queue->queue);
    if (o->has_sparse_queue) {
        sparse_queue->family = o->sparse_family;
        o->get_queue(vulkan->own_device, o->sparse_family, 0, &sparse_queue->queue);
    }
    vulkan->further_count = o->options->queue_count;
    for (uint32_t i = 0; i < vulkan->further_count; i++)
        o->get_queue(vulkan->own_device, vulkan->further[i].family, o->further_index[i],
                     &vulkan->further[i].queue);
}
