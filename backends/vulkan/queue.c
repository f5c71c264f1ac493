/*
 * queue.c - submission to the device's queue: see queue.h.
 */
#include "backends/vulkan/queue.h"

#include "backends/vulkan/staging.h"

/* The mutex is in the staging record, because every device has that record. */
void qi_vulkan_queue_lock(const qi_vulkan *vulkan)
{
    if (vulkan->queue.lock)
        vulkan->queue.lock(vulkan->queue.user);
    else
        pthread_mutex_lock(&vulkan->staging->queue_mutex);
}

void qi_vulkan_queue_unlock(const qi_vulkan *vulkan)
{
    if (vulkan->queue.unlock)
        vulkan->queue.unlock(vulkan->queue.user);
    else
        pthread_mutex_unlock(&vulkan->staging->queue_mutex);
}

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
