/*
 * staging.h - work on the queue that a call waits for: copies through a ring of host memory, fills,
 * layout changes.
 *
 * The ring is one buffer in two halves, made when it is first needed: while the device works on one
 * half the host fills or empties the other. One call uses it at a time; others wait at its mutex,
 * under which there is no lock of quire. The queue is held only while something is submitted, here
 * and by whoever else submits (sparse_bind.c).
 */
#ifndef QUIRE_BACKENDS_VULKAN_STAGING_H
#define QUIRE_BACKENDS_VULKAN_STAGING_H

#include <pthread.h>

#include "backends/vulkan/vulkan.h"

enum { QI_VULKAN_HALVES = 2 };

struct qi_vulkan_staging {
    pthread_mutex_t mutex;
    pthread_mutex_t queue_mutex; /* innermost; where the caller has no lock */
    bool is_made;
    bool is_lost; /* with the device: nothing is known of what ran, and nothing runs any more */
    VkDeviceMemory memory;
    VkBuffer buffer;
    char *bytes; /* mapped for good */
    bool is_coherent;
    uint64_t half;                         /* bytes of each half */
    VkCommandPool pools[QI_VULKAN_HALVES]; /* one each, reset as a whole */
    VkCommandBuffer commands[QI_VULKAN_HALVES];
    VkFence fences[QI_VULKAN_HALVES];
    bool is_running[QI_VULKAN_HALVES];  /* submitted, and not known to be done */
    bool is_signaled[QI_VULKAN_HALVES]; /* the fence, which is reset before it is used again */
    qi_atomic_u32 is_left; /* 1: something runs that the call that submitted it has left */
};

/* The queue, for one submission: no other thread has it meanwhile. By the caller's lock, if any. */
void qi_vulkan_queue_take(const qi_vulkan *vulkan);
void qi_vulkan_queue_give(const qi_vulkan *vulkan);

/*
 * Waits for a fence. A wait may fail for want of memory while the work goes on, and whoever hears
 * of it may free what the device still writes to. So it is tried again, unless the device is lost.
 */
VkResult qi_vulkan_wait(const qi_vulkan *vulkan, VkFence fence);

/* The record and its mutex; nothing of Vulkan is made before it is needed. */
QUIRE_MUST_USE quire_result qi_vulkan_staging_init(qi_vulkan *vulkan);

/* Destroys what was made; accepts a state without staging. Nothing is running. */
void qi_vulkan_staging_finish(qi_vulkan *vulkan);

/*
 * Takes the ring for the calling thread, which ends with `leave` whatever happens in between; leave
 * waits for what runs and returns the first failure. UNSUPPORTED without a queue.
 */
QUIRE_MUST_USE quire_result qi_vulkan_staging_enter(qi_vulkan *vulkan);
quire_result qi_vulkan_staging_leave(qi_vulkan *vulkan, quire_result result);

/*
 * Whether nothing runs of what was left because it could not be waited for; waits for it once more.
 * Until then nothing may go that such a call named. Not between enter and leave.
 */
bool qi_vulkan_staging_settle(qi_vulkan *vulkan);

/*
 * Waits until a half is idle; then begins its commands, with a barrier behind which everything
 * submitted before is visible to transfers.
 */
QUIRE_MUST_USE quire_result qi_vulkan_staging_await(qi_vulkan *vulkan, int half);
QUIRE_MUST_USE quire_result qi_vulkan_staging_begin(qi_vulkan *vulkan, int half);

/* What the host wrote into a half reaches the device, what the device wrote reaches the host; where
   the ring is coherent there is nothing to do. */
QUIRE_MUST_USE quire_result qi_vulkan_staging_flush(qi_vulkan *vulkan, int half);
QUIRE_MUST_USE quire_result qi_vulkan_staging_invalidate(qi_vulkan *vulkan, int half);

/* Everything that was written before is visible to everything behind. */
void qi_vulkan_add_barrier(const qi_vulkan *vulkan, VkCommandBuffer commands,
                           VkPipelineStageFlags before, VkPipelineStageFlags behind);

/* Ends them, with a barrier that makes what they did visible to everything, and submits them. */
QUIRE_MUST_USE quire_result qi_vulkan_staging_submit(qi_vulkan *vulkan, int half);

#endif
