/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_timeline.h - timeline semaphores of the caller, for tests of wrapped streams.
 */
#ifndef QUIRE_TESTS_SUPPORT_VULKAN_TIMELINE_H
#define QUIRE_TESTS_SUPPORT_VULKAN_TIMELINE_H

#include "tests/support/vulkan_native.h"

#define TIMELINE_CALL(handles, name) VULKAN_CALL(*(handles), name)

static inline VkSemaphore timeline_make(const quire_vulkan_handles *handles)
{
    const VkSemaphoreTypeCreateInfo type = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
        .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE,
    };
    const VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
                                        .pNext = &type};
    VkSemaphore made;
    CHECK_EQ(TIMELINE_CALL(handles, vkCreateSemaphore)(handles->device, &info, NULL, &made), 0);
    return made;
}

static inline void timeline_signal(const quire_vulkan_handles *handles, VkSemaphore semaphore,
                                   uint64_t value)
{
    const VkSemaphoreSignalInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, .semaphore = semaphore, .value = value};
    CHECK_EQ(TIMELINE_CALL(handles, vkSignalSemaphore)(handles->device, &info), 0);
}

static inline void timeline_end(const quire_vulkan_handles *handles, VkSemaphore semaphore)
{
    TIMELINE_CALL(handles, vkDestroySemaphore)(handles->device, semaphore, NULL);
}

#endif
