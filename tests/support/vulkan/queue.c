/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * queue.c - submits work and executes it.
 */
#include "tests/support/vulkan/queue.h"

#include "tests/support/vulkan/table.h"

/* ---- doing it ----------------------------------------------------------------------------- */

static fv_semaphore *semaphore_of(fv_driver *driver, const fv_point *point)
{
    return (fv_semaphore *)fv_object_peek(driver, FV_SEMAPHORE, point->semaphore);
}

static bool is_ready(fv_driver *driver, const fv_submission *work)
{
    for (uint32_t i = 0; i < work->wait_count; i++) {
        const fv_semaphore *semaphore = semaphore_of(driver, &work->waits[i]);
        if (semaphore && semaphore->value < work->waits[i].value)
            return false;
    }
    return true;
}

static void tell_done(fv_driver *driver, const fv_submission *work)
{
    for (uint32_t i = 0; i < work->signal_count; i++) {
        fv_semaphore *semaphore = semaphore_of(driver, &work->signals[i]);
        if (!semaphore)
            continue;
        if (semaphore->value >= work->signals[i].value)
            fv_say(driver, FV_ERROR, "VUID-VkSubmitInfo-pSignalSemaphores-03242", work->call,
                   "a semaphore is at %" PRIu64 " and signalled to %" PRIu64, semaphore->value,
                   work->signals[i].value);
        semaphore->value = work->signals[i].value;
    }
    fv_fence *fence = (fv_fence *)fv_object_peek(driver, FV_FENCE, work->fence);
    if (fence)
        fence->signalled = true;
}

static void carry_out(fv_device *device, fv_submission *work)
{
    fv_driver *driver = fv_driver_of(device);
    for (uint32_t i = 0; i < work->wait_count; i++) {
        fv_semaphore *semaphore = semaphore_of(driver, &work->waits[i]);
        if (semaphore && !semaphore->timeline)
            semaphore->value = 0;
    }
    for (uint32_t i = 0; i < work->change_count; i++)
        fv_sparse_bind(device, &work->changes[i]);
    for (uint32_t i = 0; i < work->buffer_count; i++)
        fv_execute(device, work->buffers[i]);
    tell_done(driver, work);
    fv_submission_end(driver, work);
}

static bool progress_of(fv_queue *queue)
{
    fv_device *device = queue->object.device;
    bool any = false;
    while (queue->first && is_ready(fv_driver_of(device), queue->first)) {
        fv_submission *work = queue->first;
        queue->first = work->next;
        queue->last = queue->first ? queue->last : NULL;
        fv_driver_of(device)->pending--;
        carry_out(device, work);
        any = true;
    }
    return any;
}

bool fv_progress(fv_device *device)
{
    bool any = false;
    if (fv_driver_of(device)->lost)
        fv_drop_work(device);
    for (uint32_t i = 0; i < FV_FAMILIES; i++)
        for (uint32_t k = 0; k < FV_FAMILY_QUEUES; k++)
            any |= progress_of(&device->queues[i][k]);
    return any;
}

void fv_drop_work(fv_device *device)
{
    for (uint32_t i = 0; i < FV_FAMILIES * FV_FAMILY_QUEUES; i++) {
        fv_queue *queue = &device->queues[i / FV_FAMILY_QUEUES][i % FV_FAMILY_QUEUES];
        while (queue->first) {
            fv_submission *work = queue->first;
            queue->first = work->next;
            fv_driver_of(device)->pending--;
            fv_submission_end(fv_driver_of(device), work);
        }
        queue->last = NULL;
    }
}

bool fv_has_work(const fv_device *device)
{
    for (uint32_t i = 0; i < FV_FAMILIES; i++)
        for (uint32_t k = 0; k < FV_FAMILY_QUEUES; k++)
            if (device->queues[i][k].first)
                return true;
    return false;
}

/* ---- submitting --------------------------------------------------------------------------- */

void fv_queue_append(fv_queue *queue, fv_submission *work)
{
    fv_driver *driver = queue->object.driver;
    driver->pending++;
    if (driver->pending > driver->most_pending)
        driver->most_pending = driver->pending;
    if (queue->last)
        queue->last->next = work;
    else
        queue->first = work;
    queue->last = work;
}

void fv_queue_fence(fv_queue *queue, fv_call call, fv_submission *last, VkFence fence)
{
    fv_submission *work = last;
    if (!fence)
        return;
    if (!work) {
        work = fv_submission_new(call);
        fv_queue_append(queue, work);
    }
    fv_submission_fence(queue->object.device, work, fence);
}

static fv_submission *submission_of(fv_queue *queue, const VkSubmitInfo *info)
{
    fv_device *device = queue->object.device;
    const VkTimelineSemaphoreSubmitInfo *values =
        fv_chained(info->pNext, VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO);
    fv_submission *work = fv_submission_new(FV_CALL_vkQueueSubmit);
    FV_CHECK_CHAIN(fv_driver_of(device), vkQueueSubmit, info->pNext,
                   VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                   VK_STRUCTURE_TYPE_PROTECTED_SUBMIT_INFO);
    for (uint32_t i = 0; i < info->waitSemaphoreCount; i++)
        fv_submission_wait(
            device, work, info->pWaitSemaphores[i],
            values && i < values->waitSemaphoreValueCount ? values->pWaitSemaphoreValues[i] : 0);
    for (uint32_t i = 0; i < info->commandBufferCount; i++)
        fv_submission_take(queue, work, info->pCommandBuffers[i]);
    for (uint32_t i = 0; i < info->signalSemaphoreCount; i++)
        fv_submission_signal(device, work, info->pSignalSemaphores[i],
                             values && i < values->signalSemaphoreValueCount
                                 ? values->pSignalSemaphoreValues[i]
                                 : 0);
    return work;
}

/* Begins a call on a queue. No other thread may use the queue during the call. */
static VkResult enter(fv_queue *queue, fv_call call)
{
    fv_claim_handle(queue->object.driver, call, queue->object.handle);
    VkResult result = fv_enter(queue->object.driver, call);
    if (!queue->used)
        fv_say(queue->object.driver, FV_ERROR, "fv-handle", call, "a queue nobody asked for");
    return result;
}

static VkResult leave(fv_queue *queue, VkResult result)
{
    fv_leave(queue->object.driver);
    fv_release_handle(queue->object.driver, queue->object.handle);
    return result;
}

VkResult fv_vkQueueSubmit(VkQueue handle, uint32_t count, const VkSubmitInfo *infos, VkFence fence)
{
    fv_queue *queue = (fv_queue *)handle;
    VkResult result = enter(queue, FV_CALL_vkQueueSubmit);
    fv_submission *work = NULL;
    for (uint32_t i = 0; !result && i < count; i++) {
        work = submission_of(queue, &infos[i]);
        fv_queue_append(queue, work);
    }
    if (!result) {
        fv_queue_fence(queue, FV_CALL_vkQueueSubmit, work, fence);
        fv_go_on(queue->object.device);
    }
    return leave(queue, result);
}

/* ---- waiting ------------------------------------------------------------------------------ */

VkResult fv_vkQueueWaitIdle(VkQueue handle)
{
    fv_queue *queue = (fv_queue *)handle;
    fv_driver *driver = queue->object.driver;
    VkResult result = enter(queue, FV_CALL_vkQueueWaitIdle);
    fv_catch_up(queue->object.device);
    while (!result && queue->first && fv_wait_until(driver, UINT64_MAX)) {
        fv_catch_up(queue->object.device);
        result = driver->lost ? VK_ERROR_DEVICE_LOST : VK_SUCCESS;
    }
    pthread_cond_broadcast(&driver->changed);
    return leave(queue, result);
}

VkResult fv_vkDeviceWaitIdle(VkDevice handle)
{
    fv_device *device = (fv_device *)handle;
    fv_driver *driver = fv_driver_of(device);
    fv_queue *all = &device->queues[0][0];
    for (uint32_t i = 0; i < FV_FAMILIES * FV_FAMILY_QUEUES; i++)
        fv_claim_handle(driver, FV_CALL_vkDeviceWaitIdle, all[i].used ? all[i].object.handle : 0);
    VkResult result = fv_enter(driver, FV_CALL_vkDeviceWaitIdle);
    fv_catch_up(device);
    while (!result && fv_has_work(device) && fv_wait_until(driver, UINT64_MAX)) {
        fv_catch_up(device);
        result = driver->lost ? VK_ERROR_DEVICE_LOST : VK_SUCCESS;
    }
    pthread_cond_broadcast(&driver->changed);
    fv_leave(driver);
    for (uint32_t i = 0; i < FV_FAMILIES * FV_FAMILY_QUEUES; i++)
        fv_release_handle(driver, all[i].used ? all[i].object.handle : 0);
    return result;
}
