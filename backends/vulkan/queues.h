/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * queues.h - the queues of a device: locks, waiting and barriers, families, and the choice of
 * queues.
 */
#ifndef QUIRE_BACKENDS_VULKAN_QUEUES_H
#define QUIRE_BACKENDS_VULKAN_QUEUES_H

#include "backends/vulkan/vulkan.h"

typedef struct opening opening; /* open.h */

/* ---- locks -------------------------------------------------------------------------------- */

/* INVALID_ARGUMENT if a queue of the caller has one of the lock functions only, or locks without a
   queue. */
QUIRE_MUST_USE quire_result qi_vulkan_check_locks(const quire_vulkan_queue *queue);

/*
 * NOT_PERMITTED if the calling thread holds the device's queue by quire_vulkan_queue_lock. A
 * function that submits calls this before it acquires any lock, because another thread may hold
 * that lock while it waits for the queue.
 */
QUIRE_MUST_USE quire_result qi_vulkan_check_queue(const qi_vulkan *vulkan);

/*
 * Lock the device's queue for one submission: with the caller's lock if there is one, otherwise
 * with a mutex of the staging ring. It is the innermost lock.
 */
void qi_vulkan_queue_lock(const qi_vulkan *vulkan);
void qi_vulkan_queue_unlock(const qi_vulkan *vulkan);

/* The same for any queue, which may also be the device's. A queue without lock functions shares the
   lock of the device's queue. */
void qi_vulkan_any_queue_lock(const qi_vulkan *vulkan, const quire_vulkan_queue *queue);
void qi_vulkan_any_queue_unlock(const qi_vulkan *vulkan, const quire_vulkan_queue *queue);

/* ---- waiting and barriers ----------------------------------------------------------------- */

/* The number of times that a failed wait is repeated before its error is returned. */
enum { QI_VULKAN_MAX_WAITS = 8 };

/*
 * Waits for a fence without a timeout. A wait can fail, for example for lack of memory, while the
 * work continues; a caller that sees the failure may free memory that the device still writes to.
 * Therefore a failed wait is repeated up to QI_VULKAN_MAX_WAITS times, except after a device loss.
 */
VkResult qi_vulkan_wait_fence(const qi_vulkan *vulkan, VkFence fence);

/* Records a barrier that makes all writes of the stages `before` visible to the stages `after`. */
void qi_vulkan_record_barrier(const qi_vulkan *vulkan, VkCommandBuffer commands,
                              VkPipelineStageFlags before, VkPipelineStageFlags after);

/* ---- queue families ----------------------------------------------------------------------- */

/* Fills in the families of the state from the settings and the queues of its device. The state has
   its function table. INVALID_ARGUMENT for a family that does not exist or occurs twice. */
QUIRE_MUST_USE quire_result qi_vulkan_resolve_families(qi_vulkan *vulkan,
                                                       const quire_vulkan_wrap_options *options);

/* Sets the sharing mode of a buffer of quire's own. */
void qi_vulkan_share(const qi_vulkan *vulkan, VkBufferCreateInfo *info);

/* ---- the sparse queue --------------------------------------------------------------------- */

/* Returns the queue that binds sparse objects; its handle is NULL if the device has no queue. */
const quire_vulkan_queue *qi_vulkan_sparse_queue(const qi_vulkan *vulkan);

/* Whether the device has a queue that can bind sparse objects. */
bool qi_vulkan_has_sparse_queue(const qi_vulkan *vulkan);

/* UNSUPPORTED if the device has no queue that can bind sparse objects, NOT_PERMITTED if the thread
   holds the device's queue. */
QUIRE_MUST_USE quire_result qi_vulkan_check_sparse_queue(const qi_vulkan *vulkan);

/*
 * Submits binds to the sparse queue and waits for them, because binds are not ordered with the
 * submissions of other queues. On success they are complete. If the wait fails *fence, which is
 * VK_NULL_HANDLE on entry, is set to the fence, except after a device loss. The caller has called
 * qi_vulkan_check_queue.
 */
QUIRE_MUST_USE quire_result qi_vulkan_run_binds(const qi_vulkan *vulkan,
                                                const VkBindSparseInfo *info, VkFence *fence);

/* ---- the queues of a device of quire's own ------------------------------------------------ */

/* Chooses the family of each queue and fills queue_infos. Needs the features. UNSUPPORTED: the
   device does not have a wished queue. */
QUIRE_MUST_USE quire_result qi_vulkan_choose_queues(opening *o);

/* Gets the queues of the device that was created, and stores the further ones in its state. */
void qi_vulkan_get_queues(opening *o, quire_vulkan_queue *queue, quire_vulkan_queue *sparse_queue);

#endif
