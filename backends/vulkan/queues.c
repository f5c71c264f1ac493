/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * queues.c - a queue is locked by the program's functions, or by the lock of the device's queue if
 * it has none. Also waiting and barriers; the families that share buffers; the queue that binds
 * sparse objects; and the choice of queues for a device of quire's own, a bipartite matching.
 *
 * The public lock marks the thread that holds the device's queue. Only that thread sets and clears
 * its own mark, so that a thread that reads another value knows that it does not hold the queue.
 */
#include "backends/vulkan/queues.h"

#include "backends/vulkan/device.h"
#include "backends/vulkan/open.h"
#include "backends/vulkan/staging.h"
#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/base/thread.h"

/* ---- locks -------------------------------------------------------------------------------- */

static uint64_t this_thread(void)
{
    return (uintptr_t)qi_thread_self();
}

static bool is_holder(const qi_vulkan *vulkan)
{
    return qi_atomic_load_acquire_u64(&vulkan->queue_holder) == this_thread();
}

/* The mutex is in the staging record, because every device has that record. */
static void take(const qi_vulkan *vulkan, const quire_vulkan_queue *guard)
{
    if (guard->lock)
        guard->lock(guard->user);
    else
        pthread_mutex_lock(&vulkan->staging->queue_mutex);
}

static void give(const qi_vulkan *vulkan, const quire_vulkan_queue *guard)
{
    if (guard->unlock)
        guard->unlock(guard->user);
    else
        pthread_mutex_unlock(&vulkan->staging->queue_mutex);
}

/* Returns the queue whose lock functions guard this one. */
static const quire_vulkan_queue *guard_of(const qi_vulkan *vulkan, const quire_vulkan_queue *queue)
{
    if (queue->queue == vulkan->queue.queue)
        return &vulkan->queue;
    if (queue->queue == vulkan->sparse_queue.queue)
        return &vulkan->sparse_queue;
    return queue->lock ? queue : &vulkan->queue;
}

quire_result qi_vulkan_check_locks(const quire_vulkan_queue *queue)
{
    if (!queue->lock != !queue->unlock)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "the queue has only one of lock and unlock: give both or neither");
    return !queue->queue && queue->lock
               ? qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "queue.lock is set without a queue")
               : QUIRE_SUCCESS;
}

quire_result qi_vulkan_check_queue(const qi_vulkan *vulkan)
{
    return is_holder(vulkan)
               ? quire_backend_fail(QUIRE_ERROR_NOT_PERMITTED, 0,
                                    "the thread holds the device's queue: call "
                                    "quire_vulkan_queue_unlock before a function that submits")
               : QUIRE_SUCCESS;
}

void qi_vulkan_any_queue_lock(const qi_vulkan *vulkan, const quire_vulkan_queue *queue)
{
    take(vulkan, guard_of(vulkan, queue));
}

void qi_vulkan_any_queue_unlock(const qi_vulkan *vulkan, const quire_vulkan_queue *queue)
{
    give(vulkan, guard_of(vulkan, queue));
}

void qi_vulkan_queue_lock(const qi_vulkan *vulkan)
{
    take(vulkan, &vulkan->queue);
}

void qi_vulkan_queue_unlock(const qi_vulkan *vulkan)
{
    give(vulkan, &vulkan->queue);
}

/* ---- the program's lock ------------------------------------------------------------------- */

quire_result quire_vulkan_queue_lock(quire_device *device)
{
    qi_vulkan *vulkan = qi_vulkan_of(device);
    if (!vulkan)
        return quire_last_result();
    if (!vulkan->queue.queue)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "quire_vulkan_queue_lock: the device was wrapped without a queue");
    if (is_holder(vulkan))
        return qi_fail(QUIRE_ERROR_NOT_PERMITTED,
                       "quire_vulkan_queue_lock: the thread holds the queue already");
    take(vulkan, &vulkan->queue);
    qi_atomic_store_release_u64(&vulkan->queue_holder, this_thread());
    return QUIRE_SUCCESS;
}

quire_result quire_vulkan_queue_unlock(quire_device *device)
{
    qi_vulkan *vulkan = qi_vulkan_of(device);
    if (!vulkan)
        return quire_last_result();
    if (!is_holder(vulkan))
        return qi_fail(QUIRE_ERROR_NOT_PERMITTED,
                       "quire_vulkan_queue_unlock: the thread does not hold the queue");
    qi_atomic_store_release_u64(&vulkan->queue_holder, 0);
    give(vulkan, &vulkan->queue);
    return QUIRE_SUCCESS;
}

/* ---- waiting and barriers ----------------------------------------------------------------- */

VkResult qi_vulkan_wait_fence(const qi_vulkan *vulkan, VkFence fence)
{
    VkResult code = VK_ERROR_UNKNOWN;
    for (int i = 0; i < QI_VULKAN_MAX_WAITS && code && code != VK_ERROR_DEVICE_LOST; i++)
        code = vulkan->f.WaitForFences(vulkan->device, 1, &fence, VK_TRUE, UINT64_MAX);
    return code;
}

/* A global barrier: the backend does not track which resources the commands around it use. */
void qi_vulkan_record_barrier(const qi_vulkan *vulkan, VkCommandBuffer commands,
                              VkPipelineStageFlags before, VkPipelineStageFlags after)
{
    const VkMemoryBarrier barrier = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT,
        .dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT,
    };
    vulkan->f.CmdPipelineBarrier(commands, before, after, 0, 1, &barrier, 0, NULL, 0, NULL);
}

/* ---- queue families ----------------------------------------------------------------------- */

static bool has_family(const qi_vulkan *vulkan, uint32_t family)
{
    for (uint32_t i = 0; i < vulkan->family_count; i++)
        if (vulkan->families[i] == family)
            return true;
    return false;
}

/* Adds the families of all queues of the device. A family can occur twice: with and without
   protected queues. */
static quire_result add_families(qi_vulkan *vulkan, const VkDeviceCreateInfo *info)
{
    if (!info->queueCreateInfoCount)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "QUIRE_VULKAN_ALL_FAMILIES needs the queues of device_info: list the "
                       "families in queue_families");
    for (uint32_t i = 0; i < info->queueCreateInfoCount; i++) {
        uint32_t family = info->pQueueCreateInfos[i].queueFamilyIndex;
        if (!has_family(vulkan, family) && vulkan->family_count < QUIRE_VULKAN_MAX_FAMILIES)
            vulkan->families[vulkan->family_count++] = family;
    }
    return QUIRE_SUCCESS;
}

/* Fails if the device has no queue family of this number, of `existing` ones. `what`: whose number
   it is. */
static quire_result check_family(uint32_t family, uint32_t existing, const char *what)
{
    if (family < existing)
        return QUIRE_SUCCESS;
    return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT,
                        "%s is queue family %u: the families of the device are below %u", what,
                        family, existing);
}

static quire_result check_queues(const quire_vulkan_wrap_options *options, uint32_t existing)
{
    quire_result result = QUIRE_SUCCESS;
    if (options->queue.queue)
        result = check_family(options->queue.family, existing, "queue.family");
    if (!result && options->sparse_queue.queue)
        result = check_family(options->sparse_queue.family, existing, "sparse_queue.family");
    return result;
}

static quire_result add_listed(qi_vulkan *vulkan, const quire_vulkan_settings *settings,
                               uint32_t existing)
{
    for (uint32_t i = 0; i < settings->queue_family_count; i++) {
        uint32_t family = settings->queue_families[i];
        quire_result result = check_family(family, existing, "one of queue_families");
        if (result)
            return result;
        if (has_family(vulkan, family))
            return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "queue_families has %u twice",
                                family);
        vulkan->families[vulkan->family_count++] = family;
    }
    return QUIRE_SUCCESS;
}

quire_result qi_vulkan_resolve_families(qi_vulkan *vulkan, const quire_vulkan_wrap_options *options)
{
    const quire_vulkan_settings *settings = &options->settings;
    uint32_t existing = 0;
    vulkan->f.GetPhysicalDeviceQueueFamilyProperties2(vulkan->physical_device, &existing, NULL);
    quire_result result = check_queues(options, existing);
    if (result || !settings->queue_family_count)
        return result;
    result = settings->queue_family_count == QUIRE_VULKAN_ALL_FAMILIES
                 ? add_families(vulkan, options->device_info)
                 : add_listed(vulkan, settings, existing);
    if (!result && options->queue.queue && !has_family(vulkan, options->queue.family))
        vulkan->families[vulkan->family_count++] = options->queue.family;
    return result;
}

void qi_vulkan_share(const qi_vulkan *vulkan, VkBufferCreateInfo *info)
{
    info->sharingMode = VK_SHARING_MODE_EXCLUSIVE;
    if (vulkan->family_count < 2)
        return;
    info->sharingMode = VK_SHARING_MODE_CONCURRENT;
    info->queueFamilyIndexCount = vulkan->family_count;
    info->pQueueFamilyIndices = vulkan->families;
}

/* ---- the sparse queue --------------------------------------------------------------------- */

const quire_vulkan_queue *qi_vulkan_sparse_queue(const qi_vulkan *vulkan)
{
    return vulkan->sparse_queue.queue ? &vulkan->sparse_queue : &vulkan->queue;
}

/* Whether a queue family of the device can bind sparse objects. */
static bool can_bind(const qi_vulkan *vulkan, uint32_t family)
{
    VkQueueFamilyProperties2 families[QI_VULKAN_MAX_FAMILIES];
    uint32_t count = 0;
    for (int i = 0; i < QI_VULKAN_MAX_FAMILIES; i++)
        families[i] =
            (VkQueueFamilyProperties2){.sType = VK_STRUCTURE_TYPE_QUEUE_FAMILY_PROPERTIES_2};
    vulkan->f.GetPhysicalDeviceQueueFamilyProperties2(vulkan->physical_device, &count, NULL);
    count = count < QI_VULKAN_MAX_FAMILIES ? count : QI_VULKAN_MAX_FAMILIES;
    vulkan->f.GetPhysicalDeviceQueueFamilyProperties2(vulkan->physical_device, &count, families);
    return family < count &&
           families[family].queueFamilyProperties.queueFlags & VK_QUEUE_SPARSE_BINDING_BIT;
}

bool qi_vulkan_has_sparse_queue(const qi_vulkan *vulkan)
{
    const quire_vulkan_queue *queue = qi_vulkan_sparse_queue(vulkan);
    return queue->queue && can_bind(vulkan, queue->family);
}

quire_result qi_vulkan_check_sparse_queue(const qi_vulkan *vulkan)
{
    const quire_vulkan_queue *queue = qi_vulkan_sparse_queue(vulkan);
    if (!queue->queue)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "the device was wrapped without a queue, which binds sparse objects");
    if (!can_bind(vulkan, queue->family))
        return qi_fail_with(QUIRE_ERROR_UNSUPPORTED,
                            "the queue for sparse objects has family %u, which cannot bind them: "
                            "quire_vulkan_wrap_options.sparse_queue takes one that can",
                            queue->family);
    return qi_vulkan_check_queue(vulkan);
}

quire_result qi_vulkan_run_binds(const qi_vulkan *vulkan, const VkBindSparseInfo *info,
                                 VkFence *fence)
{
    const VkFenceCreateInfo fence_info = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    VkFence created = VK_NULL_HANDLE;
    VkResult code = vulkan->f.CreateFence(vulkan->device, &fence_info, vulkan->callbacks, &created);
    if (code)
        return qi_vulkan_fail(code, "vkCreateFence");
    const quire_vulkan_queue *queue = qi_vulkan_sparse_queue(vulkan);
    qi_vulkan_any_queue_lock(vulkan, queue);
    code = vulkan->f.QueueBindSparse(queue->queue, 1, info, created);
    qi_vulkan_any_queue_unlock(vulkan, queue);
    quire_result result = code ? qi_vulkan_fail(code, "vkQueueBindSparse") : QUIRE_SUCCESS;
    if (!result) {
        code = qi_vulkan_wait_fence(vulkan, created);
        result = code ? qi_vulkan_fail(code, "vkWaitForFences") : QUIRE_SUCCESS;
        *fence = code && code != VK_ERROR_DEVICE_LOST ? created : VK_NULL_HANDLE;
    }
    if (!*fence)
        vulkan->f.DestroyFence(vulkan->device, created, vulkan->callbacks);
    return result;
}

/* ---- the queues of a device of quire's own ------------------------------------------------ */

/*
 * One that computes, those that the program wishes, and one of another family for sparse objects if
 * the first cannot bind them.
 *
 * Each queue in turn gets its preferred family. If all families that suit it are full, a queue that
 * has one of them moves to another family. So every queue gets a family if that is possible at all
 * (Kuhn's algorithm for bipartite matching).
 */

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
