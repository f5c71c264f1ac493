/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * fake_vulkan_queue.c - what the emulated Vulkan driver tells of commands, queues and semaphores
 * that are used against a rule of Vulkan.
 */
#include "tests/support/unit.h"
#include "tests/support/vulkan/fixture.h"

#include <pthread.h>

/* ---- commands ------------------------------------------------------------------------------- */

FV_UNIT_ON(fake_vulkan_queue, ranges_beyond_buffers_are_told_and_not_touched,
           fv_fixture_open(f, NULL, 0))
{
    fv_visible one = fv_fixture_visible(f, 64), two = fv_fixture_visible(f, 64);
    VkBufferCopy beyond = {32, 0, 64}, overlapping = {0, 4, 8};
    VkCommandBuffer commands = fv_fixture_begin(f);
    FV_TOLD(f, "VUID-vkCmdCopyBuffer-size-00115",
            FV(f, vkCmdCopyBuffer)(commands, one.buffer, two.buffer, 1, &beyond));
    FV_TOLD(f, "VUID-vkCmdCopyBuffer-pRegions-00117",
            FV(f, vkCmdCopyBuffer)(commands, one.buffer, one.buffer, 1, &overlapping));
    FV_TOLD(f, "VUID-vkCmdFillBuffer-size-00027",
            FV(f, vkCmdFillBuffer)(commands, one.buffer, 60, 8, 1));
    FV_TOLD(f, "VUID-vkCmdFillBuffer-dstOffset-00025",
            FV(f, vkCmdFillBuffer)(commands, one.buffer, 2, 8, 1));
    fv_fixture_run(f, commands);
}

static VkResult submit(fv_fixture *f, VkQueue queue, VkCommandBuffer commands, VkFence fence)
{
    const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                               .commandBufferCount = 1,
                               .pCommandBuffers = &commands};
    return FV(f, vkQueueSubmit)(queue, 1, &info, fence);
}

FV_UNIT_ON(fake_vulkan_queue, command_buffers_have_states, fv_fixture_open(f, NULL, 0))
{
    fv_visible one = fv_fixture_visible(f, 64);
    VkCommandBuffer commands = fv_fixture_begin(f);
    FV_TOLD(f, "VUID-vkQueueSubmit-pCommandBuffers-00070",
            submit(f, f->queue, commands, VK_NULL_HANDLE));
    CHECK_VK(FV(f, vkEndCommandBuffer)(commands));
    FV_TOLD(f, "VUID-vkEndCommandBuffer-commandBuffer-00059", FV(f, vkEndCommandBuffer)(commands));
    FV_TOLD(f, "fv-recording", FV(f, vkCmdFillBuffer)(commands, one.buffer, 0, 4, 1));
    CHECK_VK(submit(f, f->queue, commands, VK_NULL_HANDLE));
    FV_TOLD(f, "VUID-vkQueueSubmit-pCommandBuffers-00070", /* one-time */
            submit(f, f->queue, commands, VK_NULL_HANDLE));
    CHECK_VK(FV(f, vkResetCommandPool)(f->device, f->pool, 0));
    FV(f, vkFreeCommandBuffers)(f->device, f->pool, 1, &commands);
    FV_TOLD(f, "the command buffer was destroyed",
            FV(f, vkFreeCommandBuffers)(f->device, f->pool, 1, &commands));
}

/* ---- queues --------------------------------------------------------------------------------- */

FV_UNIT_ON(fake_vulkan_queue, a_queue_takes_command_buffers_of_its_family,
           fv_fixture_open(f, NULL, 0))
{
    VkQueue other;
    FV(f, vkGetDeviceQueue)(f->device, 1, 0, &other);
    VkCommandBuffer commands = fv_fixture_begin(f);
    CHECK_VK(FV(f, vkEndCommandBuffer)(commands));
    FV_TOLD(f, "VUID-vkQueueSubmit-pCommandBuffers-00074",
            submit(f, other, commands, VK_NULL_HANDLE));
}

FV_UNIT_ON(fake_vulkan_queue, what_is_at_work_must_not_be_destroyed_or_reset,
           fv_fixture_open(f, NULL, FV_LATE))
{
    const VkFenceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    VkFence fence;
    fv_visible one = fv_fixture_visible(f, 64);
    CHECK_VK(FV(f, vkCreateFence)(f->device, &info, NULL, &fence));
    VkCommandBuffer commands = fv_fixture_begin(f);
    FV(f, vkCmdFillBuffer)(commands, one.buffer, 0, 64, 9);
    CHECK_VK(FV(f, vkEndCommandBuffer)(commands));
    CHECK_VK(submit(f, f->queue, commands, fence));
    CHECK_EQ(fv_word(&one, 0), 0);
    FV_TOLD(f, "VUID-vkResetFences-pFences-01123", FV(f, vkResetFences)(f->device, 1, &fence));
    FV_TOLD(f, "VUID-vkDestroyBuffer-buffer-00922",
            FV(f, vkDestroyBuffer)(f->device, one.buffer, NULL));
    FV_TOLD(f, "VUID-vkFreeMemory-memory-00677", FV(f, vkFreeMemory)(f->device, one.memory, NULL));
    FV_TOLD(f, "VUID-vkFreeCommandBuffers-pCommandBuffers-00047",
            FV(f, vkFreeCommandBuffers)(f->device, f->pool, 1, &commands));
    CHECK_VK(FV(f, vkDeviceWaitIdle)(f->device));
}

FV_UNIT_ON(fake_vulkan_queue, semaphores_have_rules, fv_fixture_open(f, NULL, 0))
{
    const VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                            .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE,
                                            .initialValue = 4};
    VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO};
    VkSemaphore binary, timeline;
    CHECK_VK(FV(f, vkCreateSemaphore)(f->device, &info, NULL, &binary));
    info.pNext = &type;
    CHECK_VK(FV(f, vkCreateSemaphore)(f->device, &info, NULL, &timeline));
    const VkSemaphoreSignalInfo back = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, .semaphore = timeline, .value = 3};
    FV_TOLD(f, "VUID-VkSemaphoreSignalInfo-value-03258",
            FV(f, vkSignalSemaphore)(f->device, &back));
    const VkSubmitInfo signal = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                                 .signalSemaphoreCount = 1,
                                 .pSignalSemaphores = &binary};
    CHECK_VK(FV(f, vkQueueSubmit)(f->queue, 1, &signal, VK_NULL_HANDLE));
    FV_TOLD(f, "VUID-VkSubmitInfo-pSignalSemaphores-03242",
            FV(f, vkQueueSubmit)(f->queue, 1, &signal, VK_NULL_HANDLE));
}

/* Runs until the driver detects two threads on one queue, at most ten seconds. */
static void *submit_until_told(void *state)
{
    fv_fixture *f = state;
    PFN_vkQueueSubmit call = FV(f, vkQueueSubmit);
    for (uint32_t i = 0; i < 10000 && !fv_message(f->driver, 0); i++)
        CHECK_VK(call(f->queue, 0, NULL, VK_NULL_HANDLE));
    return NULL;
}

FV_UNIT(fake_vulkan_queue, two_threads_on_one_queue_are_told)
{
    fv_options options = {.linger_us = 1000};
    fv_fixture_open_with(f, &options);
    for (uint32_t i = 0; i < 20; i++) /* one thread at a time is allowed */
        CHECK_VK(FV(f, vkQueueSubmit)(f->queue, 0, NULL, VK_NULL_HANDLE));
    CHECK(!fv_message(f->driver, 0));
    pthread_t other;
    CHECK(!pthread_create(&other, NULL, submit_until_told, f));
    submit_until_told(f);
    pthread_join(other, NULL);
    CHECK(fv_message_with(f->driver, "fv-threads"));
    fv_forget(f->driver);
}

FV_UNIT_ON(fake_vulkan_queue, a_family_apart_binds_and_does_nothing_else,
           fv_fixture_open(f, NULL, FV_SPARSE_APART))
{
    const VkCommandPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .queueFamilyIndex = 3};
    FV_TOLD(f, "VUID-vkQueueBindSparse-queuetype",
            FV(f, vkQueueBindSparse)(f->queue, 0, NULL, VK_NULL_HANDLE));
    CHECK_VK(FV(f, vkCreateCommandPool)(f->device, &info, NULL, &f->pool));
    VkCommandBuffer commands = fv_fixture_begin(f);
    FV_TOLD(f, "family 3 supports no commands",
            FV(f, vkCmdPipelineBarrier)(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                                        VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 0, NULL, 0, NULL, 0,
                                        NULL));
}
