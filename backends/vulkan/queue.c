/*
 * queue.c - the locks of queues, waiting and barriers: see queue.h.
 *
 * The public lock marks the thread that holds the device's queue. Only that thread sets and clears
 * its own mark, so that a thread that reads another value knows that it does not hold the queue.
 */
#include "backends/vulkan/queue.h"

#include "backends/vulkan/device.h"
#include "backends/vulkan/staging.h"
#include "src/base/result.h"
#include "src/base/thread.h"

/* ---- locks ----------------------------------------------------------------------------------- */

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

const quire_vulkan_queue *qi_vulkan_sparse_queue(const qi_vulkan *vulkan)
{
    return vulkan->sparse_queue.queue ? &vulkan->sparse_queue : &vulkan->queue;
}

/* ---- public functions ------------------------------------------------------------------------ */

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

/* ---- work ------------------------------------------------------------------------------------ */

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
