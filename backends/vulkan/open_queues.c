/*
 * open_queues.c - the queues of a device of quire's own: one that computes, those that the program
 * wishes, and one of another family for sparse objects if the first cannot bind them.
 *
 * Each queue in turn gets its preferred family. If all families that suit it are full, a queue that
 * has one of them moves to another family. So every queue gets a family if that is possible at all
 * (Kuhn's algorithm for bipartite matching).
 */
#include "backends/vulkan/open.h"
#include "src/base/bits.h"
#include "src/base/result.h"

enum { NONE = -1, MAIN = 0 };

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

static uint32_t count_flags(VkQueueFlags flags)
{
    uint32_t count = 0;
    for (; flags; flags &= flags - 1)
        count++;
    return count;
}

/*
 * Returns the preferred one of the families with the flags that are not excluded, or NONE. For the
 * device's queue it is the first, which has the most uses on all known drivers; for any other queue
 * the first one with the fewest flags.
 */
static int find_family(const opening *o, uint32_t queue, uint32_t excluded)
{
    int found = NONE;
    uint32_t least = UINT32_MAX;
    for (uint32_t i = 0; i < o->family_count; i++) {
        uint32_t rank = queue == MAIN ? 0 : count_flags(flags_of(o, i));
        if (excluded >> i & 1 || o->queues[queue].wanted & ~flags_of(o, i) || rank >= least)
            continue;
        least = rank;
        found = (int)i;
    }
    return found;
}

/* Returns a mask of the families without a free queue. */
static uint32_t full_families(const opening *o)
{
    uint32_t full = 0;
    for (uint32_t i = 0; i < o->family_count; i++)
        full |= (uint32_t)(o->used[i] >= o->families[i].queueCount) << i;
    return full;
}

/*
 * Gives a queue a family. If need be it moves earlier queues, the device's as the last one. `tried`
 * is a mask of the full families in which all queues were asked to move. False: none suits.
 */
static bool place(opening *o, uint32_t queue, uint32_t *tried)
{
    int family = find_family(o, queue, full_families(o));
    if (family != NONE) {
        o->queues[queue].family = (uint32_t)family;
        o->used[family]++;
        return true;
    }
    while ((family = find_family(o, queue, *tried)) != NONE) {
        *tried |= UINT32_C(1) << family;
        for (uint32_t i = o->queue_count; i-- > 0;)
            if (o->queues[i].family == (uint32_t)family && place(o, i, tried)) {
                o->queues[queue].family = (uint32_t)family;
                return true;
            }
    }
    return false;
}

/* Adds a queue with these flags. Returns false if the device does not have it. */
static bool add(opening *o, VkQueueFlags wanted)
{
    uint32_t tried = 0;
    o->queues[o->queue_count].wanted = wanted;
    if (!place(o, o->queue_count, &tried))
        return false;
    o->queue_count++;
    return true;
}

static bool is_sparse_enabled(const opening *o)
{
    for (const VkBaseInStructure *link = o->device_info.pNext; link; link = link->pNext)
        if (link->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2)
            return ((const VkPhysicalDeviceFeatures2 *)link)->features.sparseBinding;
    return false;
}

/* The sparse queue is last: without one, sparse objects are UNSUPPORTED although the feature is
   enabled. */
static quire_result add_all(opening *o)
{
    const quire_vulkan_options *options = o->options;
    if (!add(o, VK_QUEUE_COMPUTE_BIT | options->queue_flags))
        return options->queue_flags
                   ? qi_fail_text(
                         QUIRE_ERROR_UNSUPPORTED,
                         "the device has no queue family with compute and the queue_flags 0x%x",
                         options->queue_flags)
                   : qi_fail(QUIRE_ERROR_UNSUPPORTED,
                             "the device has no queue family that supports compute");
    for (uint32_t i = 0; i < options->queue_count; i++)
        if (!add(o, options->queues[i]))
            return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                                "the device has no queue for queues[%u]: none with the flags 0x%x "
                                "is left",
                                i, options->queues[i]);
    bool can_bind = flags_of(o, o->queues[MAIN].family) & VK_QUEUE_SPARSE_BINDING_BIT;
    o->has_sparse_queue = is_sparse_enabled(o) && !can_bind && add(o, VK_QUEUE_SPARSE_BINDING_BIT);
    return QUIRE_SUCCESS;
}

quire_result qi_vulkan_choose_queues(opening *o)
{
    static const float priorities[QI_VULKAN_MAX_QUEUES] = {1, 1, 1, 1, 1, 1, 1, 1, 1,
                                                           1, 1, 1, 1, 1, 1, 1, 1, 1};
    read_families(o);
    quire_result result = add_all(o);
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

/* Gets a queue of the device: in its family it has the number of the earlier queues. */
static VkQueue get_queue(const opening *o, uint32_t number)
{
    uint32_t family = o->queues[number].family, index = 0;
    for (uint32_t i = 0; i < number; i++)
        index += o->queues[i].family == family;
    VkQueue queue = NULL;
    o->get_queue(o->vulkan->own_device, family, index, &queue);
    return queue;
}

void qi_vulkan_get_queues(opening *o, quire_vulkan_queue *queue, quire_vulkan_queue *sparse_queue)
{
    qi_vulkan *vulkan = o->vulkan;
    queue->family = o->queues[MAIN].family;
    queue->queue = get_queue(o, MAIN);
    vulkan->further_count = o->options->queue_count;
    for (uint32_t i = 0; i < vulkan->further_count; i++)
        vulkan->further[i] = (qi_vulkan_further){.family = o->queues[MAIN + 1 + i].family,
                                                 .queue = get_queue(o, MAIN + 1 + i)};
    if (o->has_sparse_queue) {
        sparse_queue->family = o->queues[o->queue_count - 1].family;
        sparse_queue->queue = get_queue(o, o->queue_count - 1);
    }
}
