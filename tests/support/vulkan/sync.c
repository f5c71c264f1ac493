/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * sync.c - fences and semaphores of the fake driver.
 */
#include <time.h>

#include "tests/support/vulkan/queue.h"
#include "tests/support/vulkan/table.h"

#define SECOND UINT64_C(1000000000)

/* ---- time --------------------------------------------------------------------------------- */

uint64_t fv_deadline(uint64_t timeout)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t from = (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
    return timeout > UINT64_MAX - from ? UINT64_MAX : from + timeout;
}

bool fv_wait_until(fv_driver *driver, uint64_t deadline)
{
    if (deadline == UINT64_MAX) {
        pthread_cond_wait(&driver->changed, &driver->lock);
        return true;
    }
    struct timespec time = {(time_t)(deadline / SECOND), (long)(deadline % SECOND)};
    return !pthread_cond_timedwait(&driver->changed, &driver->lock, &time);
}

/* ---- fences ------------------------------------------------------------------------------- */

VkResult fv_vkCreateFence(VkDevice handle, const VkFenceCreateInfo *info,
                          const VkAllocationCallbacks *callbacks, VkFence *out)
{
    fv_device *device = (fv_device *)handle;
    (void)callbacks;
    VkResult result = fv_enter(fv_driver_of(device), FV_CALL_vkCreateFence);
    *out = (VkFence)FV_GARBAGE;
    if (!result) {
        fv_fence *fence = fv_object_new(fv_driver_of(device), device, FV_FENCE, sizeof *fence);
        fence->signalled = info->flags & VK_FENCE_CREATE_SIGNALED_BIT;
        *out = FV_HANDLE(VkFence, &fence->object);
    }
    fv_leave(fv_driver_of(device));
    return result;
}

void fv_vkDestroyFence(VkDevice device, VkFence fence, const VkAllocationCallbacks *callbacks)
{
    (void)callbacks;
    fv_object_destroy(device, FV_CALL_vkDestroyFence, FV_FENCE, (uint64_t)fence,
                      "VUID-vkDestroyFence-fence-01120");
}

VkResult fv_vkResetFences(VkDevice handle, uint32_t count, const VkFence *list)
{
    fv_device *device = (fv_device *)handle;
    fv_driver *driver = fv_driver_of(device);
    VkResult result = fv_enter(driver, FV_CALL_vkResetFences);
    for (uint32_t i = 0; !result && i < count; i++) {
        fv_fence *fence = FV_FIND(device, vkResetFences, FV_FENCE, list[i]);
        if (fence && fence->object.pending)
            FV_WRONG(driver, "VUID-vkResetFences-pFences-01123", vkResetFences,
                     "the fence belongs to work that is not done");
        if (fence)
            fence->signalled = false;
    }
    fv_leave(driver);
    return result;
}

/* A program that polls repeatedly finally gets deferred work executed. */
static void poll(fv_device *device)
{
    if (++device->polls % 4 == 0)
        fv_catch_up(device);
}

/* Returns the number of signalled fences. */
static uint32_t count_signalled(fv_device *device, uint32_t count, const VkFence *list)
{
    uint32_t signalled = 0;
    for (uint32_t i = 0; i < count; i++) {
        const fv_fence *fence = FV_FIND(device, vkWaitForFences, FV_FENCE, list[i]);
        signalled += !fence || fence->signalled;
    }
    return signalled;
}

VkResult fv_vkWaitForFences(VkDevice handle, uint32_t count, const VkFence *list, VkBool32 all,
                            uint64_t timeout)
{
    fv_device *device = (fv_device *)handle;
    fv_driver *driver = fv_driver_of(device);
    uint64_t deadline = fv_deadline(timeout);
    VkResult result = fv_enter(driver, FV_CALL_vkWaitForFences);
    if (!result)
        fv_catch_up(device);
    while (!result && count_signalled(device, count, list) < (all ? count : 1)) {
        bool in_time = fv_wait_until(driver, deadline);
        fv_catch_up(device);
        result = driver->lost ? VK_ERROR_DEVICE_LOST : in_time ? VK_SUCCESS : VK_TIMEOUT;
    }
    if (result == VK_TIMEOUT && count_signalled(device, count, list) >= (all ? count : 1))
        result = VK_SUCCESS;
    fv_leave(driver);
    return result;
}

/* ---- semaphores --------------------------------------------------------------------------- */

VkResult fv_vkCreateSemaphore(VkDevice handle, const VkSemaphoreCreateInfo *info,
                              const VkAllocationCallbacks *callbacks, VkSemaphore *out)
{
    fv_device *device = (fv_device *)handle;
    fv_driver *driver = fv_driver_of(device);
    (void)callbacks;
    VkResult result = fv_enter(driver, FV_CALL_vkCreateSemaphore);
    *out = (VkSemaphore)FV_GARBAGE;
    if (!result) {
        const VkSemaphoreTypeCreateInfo *type =
            fv_chained(info->pNext, VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
        fv_semaphore *semaphore = fv_object_new(driver, device, FV_SEMAPHORE, sizeof *semaphore);
        semaphore->timeline = type && type->semaphoreType == VK_SEMAPHORE_TYPE_TIMELINE;
        semaphore->value = semaphore->timeline ? type->initialValue : 0;
        if (semaphore->timeline && !(device->features & FV_TIMELINE))
            FV_WRONG(driver, "VUID-VkSemaphoreTypeCreateInfo-timelineSemaphore-03252",
                     vkCreateSemaphore, "a timeline without the feature");
        *out = FV_HANDLE(VkSemaphore, &semaphore->object);
    }
    fv_leave(driver);
    return result;
}

void fv_vkDestroySemaphore(VkDevice device, VkSemaphore semaphore,
                           const VkAllocationCallbacks *callbacks)
{
    (void)callbacks;
    fv_object_destroy(device, FV_CALL_vkDestroySemaphore, FV_SEMAPHORE, (uint64_t)semaphore,
                      "VUID-vkDestroySemaphore-semaphore-01137");
}

/* Returns a timeline semaphore, or NULL with a message. */
static fv_semaphore *find_timeline(fv_device *device, fv_call call, VkSemaphore handle)
{
    fv_semaphore *semaphore = fv_object_find(device, call, FV_SEMAPHORE, (uint64_t)handle);
    if (!semaphore || semaphore->timeline)
        return semaphore;
    fv_say(fv_driver_of(device), FV_ERROR, "fv-timeline", call, "the semaphore is a binary one");
    return NULL;
}

VkResult fv_vkGetSemaphoreCounterValue(VkDevice handle, VkSemaphore semaphore_handle, uint64_t *out)
{
    fv_device *device = (fv_device *)handle;
    VkResult result = fv_enter(fv_driver_of(device), FV_CALL_vkGetSemaphoreCounterValue);
    poll(device);
    const fv_semaphore *semaphore =
        find_timeline(device, FV_CALL_vkGetSemaphoreCounterValue, semaphore_handle);
    *out = semaphore && !result ? semaphore->value : 0;
    fv_leave(fv_driver_of(device));
    return result;
}

static uint32_t count_reached(fv_device *device, const VkSemaphoreWaitInfo *info)
{
    uint32_t reached = 0;
    for (uint32_t i = 0; i < info->semaphoreCount; i++) {
        const fv_semaphore *semaphore =
            find_timeline(device, FV_CALL_vkWaitSemaphores, info->pSemaphores[i]);
        reached += !semaphore || semaphore->value >= info->pValues[i];
    }
    return reached;
}

VkResult fv_vkWaitSemaphores(VkDevice handle, const VkSemaphoreWaitInfo *info, uint64_t timeout)
{
    fv_device *device = (fv_device *)handle;
    fv_driver *driver = fv_driver_of(device);
    uint64_t deadline = fv_deadline(timeout);
    uint32_t needed = info->flags & VK_SEMAPHORE_WAIT_ANY_BIT ? 1 : info->semaphoreCount;
    VkResult result = fv_enter(driver, FV_CALL_vkWaitSemaphores);
    if (!result)
        fv_catch_up(device);
    while (!result && count_reached(device, info) < needed) {
        bool in_time = fv_wait_until(driver, deadline);
        fv_catch_up(device);
        result = driver->lost ? VK_ERROR_DEVICE_LOST : in_time ? VK_SUCCESS : VK_TIMEOUT;
    }
    if (result == VK_TIMEOUT && count_reached(device, info) >= needed)
        result = VK_SUCCESS;
    fv_leave(driver);
    return result;
}

VkResult fv_vkSignalSemaphore(VkDevice handle, const VkSemaphoreSignalInfo *info)
{
    fv_device *device = (fv_device *)handle;
    VkResult result = fv_enter(fv_driver_of(device), FV_CALL_vkSignalSemaphore);
    fv_semaphore *semaphore =
        result ? NULL : find_timeline(device, FV_CALL_vkSignalSemaphore, info->semaphore);
    if (semaphore && info->value <= semaphore->value)
        FV_WRONG(fv_driver_of(device), "VUID-VkSemaphoreSignalInfo-value-03258", vkSignalSemaphore,
                 "the semaphore is at %" PRIu64 " already", semaphore->value);
    if (semaphore) {
        semaphore->value = info->value;
        fv_go_on(device);
    }
    fv_leave(fv_driver_of(device));
    return result;
}
