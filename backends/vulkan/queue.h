/*
 * queue.h - submission to the device's queue: its lock, waiting for a fence, memory barriers.
 */
#ifndef QUIRE_BACKENDS_VULKAN_QUEUE_H
#define QUIRE_BACKENDS_VULKAN_QUEUE_H

#include "backends/vulkan/vulkan.h"

/* The number of times that a failed wait is repeated before its error is returned. */
enum { QI_VULKAN_MAX_WAITS = 8 };

/*
 * Locks the device's queue for one submission: with the caller's lock if there is one, otherwise
 * with a mutex of the staging ring. It is the innermost lock.
 */
void qi_vulkan_queue_lock(const qi_vulkan *vulkan);
void qi_vulkan_queue_unlock(const qi_vulkan *vulkan);

/*
 * Waits for a fence without a timeout. A wait can fail, for example for lack of memory, while the
 * work continues; a caller that sees the failure may free memory that the device still writes to.
 * Therefore a failed wait is repeated up to QI_VULKAN_MAX_WAITS times, except after a device loss.
 */
VkResult qi_vulkan_wait_fence(const qi_vulkan *vulkan, VkFence fence);

/* Records a barrier that makes all writes of the stages `before` visible to the stages `after`. */
void qi_vulkan_record_barrier(const qi_vulkan *vulkan, VkCommandBuffer commands,
                              VkPipelineStageFlags before, VkPipelineStageFlags after);

#endif
