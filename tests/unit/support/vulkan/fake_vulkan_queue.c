/*
 * fake_vulkan_queue.c - the fake Vulkan driver: when submitted work is executed, what it waits for,
 * and which threads may submit; sparse binding.
 */
#include "tests/support/unit.h"
#include "tests/support/vulkan/fixture.h"

#include <pthread.h>

UNIT(fake_vulkan_queue, a_queue_takes_command_buffers_of_its_family)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, 0);
    VkQueue other;
    FV(&f, vkGetDeviceQueue)(f.device, 1, 0, &other);
    VkCommandBuffer commands = fv_fixture_begin(&f);
    VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                           .commandBufferCount = 1,
                           .pCommandBuffers = &commands};
    CHECK_VK(FV(&f, vkEndCommandBuffer)(commands));
    CHECK_VK(FV(&f, vkQueueSubmit)(other, 1, &submit, VK_NULL_HANDLE));
    fv_fixture_expect(&f, "VUID-vkQueueSubmit-pCommandBuffers-00074");
    fv_fixture_close(&f);
}

UNIT(fake_vulkan_queue, late_work_is_done_when_somebody_waits)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, FV_LATE);
    fv_visible one = fv_fixture_visible(&f, 64);
    VkFenceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    VkFence fence;
    CHECK_VK(FV(&f, vkCreateFence)(f.device, &info, NULL, &fence));
    VkCommandBuffer commands = fv_fixture_begin(&f);
    FV(&f, vkCmdFillBuffer)(commands, one.buffer, 0, 64, 9);
    CHECK_VK(FV(&f, vkEndCommandBuffer)(commands));
    VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                           .commandBufferCount = 1,
                           .pCommandBuffers = &commands};
    CHECK_VK(FV(&f, vkQueueSubmit)(f.queue, 1, &submit, fence));
    CHECK_EQ(fv_word(&one, 0), 0);
    CHECK_EQ(FV(&f, vkGetFenceStatus)(f.device, fence), VK_NOT_READY);
    CHECK_VK(FV(&f, vkResetFences)(f.device, 1, &fence));
    fv_fixture_expect(&f, "VUID-vkResetFences-pFences-01123");
    FV(&f, vkFreeCommandBuffers)(f.device, f.pool, 0, NULL);
    CHECK_VK(FV(&f, vkWaitForFences)(f.device, 1, &fence, VK_TRUE, UINT64_MAX));
    CHECK_EQ(fv_word(&one, 15), 9);
    CHECK_VK(FV(&f, vkGetFenceStatus)(f.device, fence));
    FV(&f, vkDestroyFence)(f.device, fence, NULL);
    fv_fixture_hide(&f, &one);
    fv_fixture_close(&f);
}

UNIT(fake_vulkan_queue, what_is_at_work_must_not_be_destroyed)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, FV_LATE);
    fv_visible one = fv_fixture_visible(&f, 64);
    VkCommandBuffer commands = fv_fixture_begin(&f);
    FV(&f, vkCmdFillBuffer)(commands, one.buffer, 0, 64, 9);
    CHECK_VK(FV(&f, vkEndCommandBuffer)(commands));
    VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                           .commandBufferCount = 1,
                           .pCommandBuffers = &commands};
    CHECK_VK(FV(&f, vkQueueSubmit)(f.queue, 1, &submit, VK_NULL_HANDLE));
    FV(&f, vkDestroyBuffer)(f.device, one.buffer, NULL);
    fv_fixture_expect(&f, "VUID-vkDestroyBuffer-buffer-00922");
    FV(&f, vkFreeMemory)(f.device, one.memory, NULL);
    fv_fixture_expect(&f, "VUID-vkFreeMemory-memory-00677");
    FV(&f, vkFreeCommandBuffers)(f.device, f.pool, 1, &commands);
    fv_fixture_expect(&f, "VUID-vkFreeCommandBuffers-pCommandBuffers-00047");
    CHECK_VK(FV(&f, vkDeviceWaitIdle)(f.device));
    fv_fixture_close(&f);
}

static VkSemaphore make_semaphore(fv_fixture *f, bool timeline)
{
    VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                      .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
                                  .pNext = timeline ? &type : NULL};
    VkSemaphore semaphore;
    CHECK_VK(FV(f, vkCreateSemaphore)(f->device, &info, NULL, &semaphore));
    return semaphore;
}

UNIT(fake_vulkan_queue, work_waits_for_a_timeline)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, 0);
    fv_visible one = fv_fixture_visible(&f, 64);
    VkSemaphore semaphore = make_semaphore(&f, true);
    uint64_t three = 3, four = 4, value;
    VkTimelineSemaphoreSubmitInfo values = {.sType =
                                                VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                            .waitSemaphoreValueCount = 1,
                                            .pWaitSemaphoreValues = &three,
                                            .signalSemaphoreValueCount = 1,
                                            .pSignalSemaphoreValues = &four};
    VkPipelineStageFlags stage = VK_PIPELINE_STAGE_TRANSFER_BIT;
    VkCommandBuffer commands = fv_fixture_begin(&f);
    FV(&f, vkCmdFillBuffer)(commands, one.buffer, 0, 64, 9);
    CHECK_VK(FV(&f, vkEndCommandBuffer)(commands));
    VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                           .pNext = &values,
                           .waitSemaphoreCount = 1,
                           .pWaitSemaphores = &semaphore,
                           .pWaitDstStageMask = &stage,
                           .commandBufferCount = 1,
                           .pCommandBuffers = &commands,
                           .signalSemaphoreCount = 1,
                           .pSignalSemaphores = &semaphore};
    CHECK_VK(FV(&f, vkQueueSubmit)(f.queue, 1, &submit, VK_NULL_HANDLE));
    VkSemaphoreWaitInfo wait = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                .semaphoreCount = 1,
                                .pSemaphores = &semaphore,
                                .pValues = &four};
    CHECK_EQ(FV(&f, vkWaitSemaphores)(f.device, &wait, 1000000), VK_TIMEOUT);
    CHECK_EQ(fv_word(&one, 0), 0);
    VkSemaphoreSignalInfo signal = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, .semaphore = semaphore, .value = 3};
    CHECK_VK(FV(&f, vkSignalSemaphore)(f.device, &signal));
    CHECK_EQ(fv_word(&one, 0), 9);
    CHECK_VK(FV(&f, vkWaitSemaphores)(f.device, &wait, UINT64_MAX));
    CHECK_VK(FV(&f, vkGetSemaphoreCounterValue)(f.device, semaphore, &value));
    CHECK_EQ(value, 4);
    CHECK_VK(FV(&f, vkSignalSemaphore)(f.device, &signal));
    fv_fixture_expect(&f, "VUID-VkSemaphoreSignalInfo-value-03258");
    FV(&f, vkDestroySemaphore)(f.device, semaphore, NULL);
    fv_fixture_hide(&f, &one);
    fv_fixture_close(&f);
}

UNIT(fake_vulkan_queue, a_binary_semaphore_joins_two_queues)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, 0);
    VkSemaphore semaphore = make_semaphore(&f, false);
    VkQueue other;
    VkPipelineStageFlags stage = VK_PIPELINE_STAGE_TRANSFER_BIT;
    FV(&f, vkGetDeviceQueue)(f.device, 2, 1, &other);
    VkSubmitInfo signal = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                           .signalSemaphoreCount = 1,
                           .pSignalSemaphores = &semaphore};
    VkSubmitInfo wait = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                         .waitSemaphoreCount = 1,
                         .pWaitSemaphores = &semaphore,
                         .pWaitDstStageMask = &stage};
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_VK(FV(&f, vkQueueSubmit)(other, 1, &wait, VK_NULL_HANDLE));
        CHECK_VK(FV(&f, vkQueueSubmit)(f.queue, 1, &signal, VK_NULL_HANDLE));
        CHECK_VK(FV(&f, vkQueueWaitIdle)(other));
    }
    CHECK_VK(FV(&f, vkQueueSubmit)(f.queue, 1, &signal, VK_NULL_HANDLE));
    CHECK_VK(FV(&f, vkQueueSubmit)(f.queue, 1, &signal, VK_NULL_HANDLE));
    fv_fixture_expect(&f, "VUID-VkSubmitInfo-pSignalSemaphores-03242");
    FV(&f, vkDestroySemaphore)(f.device, semaphore, NULL);
    fv_fixture_close(&f);
}

/* Runs until the driver detects two threads on one queue, at most ten seconds. */
static void *submit_until_told(void *state)
{
    fv_fixture *f = state;
    PFN_vkQueueSubmit submit = FV(f, vkQueueSubmit);
    for (uint32_t i = 0; i < 10000 && !fv_message(f->driver, 0); i++)
        CHECK_VK(submit(f->queue, 0, NULL, VK_NULL_HANDLE));
    return NULL;
}

UNIT(fake_vulkan_queue, two_threads_on_one_queue_are_told)
{
    fv_fixture f;
    fv_options options = {.linger_us = 1000};
    fv_fixture_open_with(&f, &options);
    for (uint32_t i = 0; i < 20; i++) /* one thread at a time is allowed */
        CHECK_VK(FV(&f, vkQueueSubmit)(f.queue, 0, NULL, VK_NULL_HANDLE));
    CHECK(!fv_message(f.driver, 0));
    pthread_t other;
    CHECK(!pthread_create(&other, NULL, submit_until_told, &f));
    submit_until_told(&f);
    pthread_join(other, NULL);
    CHECK(fv_message_with(f.driver, "fv-threads"));
    fv_forget(f.driver);
    fv_fixture_close(&f);
}

UNIT(fake_vulkan_queue, sparse_buffers_lie_where_they_are_bound)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, 0);
    VkBuffer sparse;
    VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .flags = VK_BUFFER_CREATE_SPARSE_BINDING_BIT | VK_BUFFER_CREATE_SPARSE_RESIDENCY_BIT,
        .size = 65536 * 4,
        .usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT};
    CHECK_VK(FV(&f, vkCreateBuffer)(f.device, &info, NULL, &sparse));
    CHECK_EQ(fv_fixture_needs(&f, sparse).alignment, 65536);
    VkDeviceMemory memory = fv_fixture_memory(&f, 65536 * 2, fv_fixture_coherent(&f));
    VkSparseMemoryBind binds[2] = {{.size = 65536, .memory = memory, .memoryOffset = 65536},
                                   {.resourceOffset = 131072, .size = 65536, .memory = memory}};
    VkSparseBufferMemoryBindInfo of_buffer = {sparse, 2, binds};
    VkBindSparseInfo bind = {.sType = VK_STRUCTURE_TYPE_BIND_SPARSE_INFO,
                             .bufferBindCount = 1,
                             .pBufferBinds = &of_buffer};
    CHECK_VK(FV(&f, vkQueueBindSparse)(f.queue, 1, &bind, VK_NULL_HANDLE));
    VkCommandBuffer commands = fv_fixture_begin(&f);
    FV(&f, vkCmdFillBuffer)(commands, sparse, 65532, 65536 * 3 - 65532, 5); /* across a hole */
    fv_fixture_run(&f, commands);
    void *data;
    CHECK_VK(FV(&f, vkMapMemory)(f.device, memory, 0, VK_WHOLE_SIZE, 0, &data));
    const uint32_t *words = data;
    CHECK_EQ(words[0], 5);
    CHECK_EQ(words[16383], 5);
    CHECK_EQ(words[16384], 0);
    CHECK_EQ(words[32767], 5);
    binds[0].memoryOffset = 4;
    CHECK_VK(FV(&f, vkQueueBindSparse)(f.queue, 1, &bind, VK_NULL_HANDLE));
    fv_fixture_expect(&f, "fv-sparse-alignment");
    binds[0] = (VkSparseMemoryBind){.size = 65536}; /* unbinds the memory */
    CHECK_VK(FV(&f, vkQueueBindSparse)(f.queue, 1, &bind, VK_NULL_HANDLE));
    FV(&f, vkDestroyBuffer)(f.device, sparse, NULL);
    FV(&f, vkFreeMemory)(f.device, memory, NULL);
    fv_fixture_close(&f);
}

UNIT(fake_vulkan_queue, a_family_apart_binds_and_does_nothing_else)
{
    fv_fixture f;
    VkQueueFamilyProperties families[8];
    uint32_t count = 8;
    VkCommandPool pool;
    VkCommandBuffer commands;
    fv_fixture_open(&f, NULL, FV_SPARSE_APART);
    FV(&f, vkGetPhysicalDeviceQueueFamilyProperties)(f.physical, &count, families);
    CHECK_EQ(count, 4);
    for (uint32_t i = 0; i < count; i++)
        CHECK_EQ(!!(families[i].queueFlags & VK_QUEUE_SPARSE_BINDING_BIT), i == 3);
    CHECK_EQ(families[3].queueFlags, VK_QUEUE_SPARSE_BINDING_BIT);
    CHECK_VK(FV(&f, vkQueueBindSparse)(f.queue, 0, NULL, VK_NULL_HANDLE));
    fv_fixture_expect(&f, "VUID-vkQueueBindSparse-queuetype");
    const VkCommandPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .queueFamilyIndex = 3};
    const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    CHECK_VK(FV(&f, vkCreateCommandPool)(f.device, &info, NULL, &pool));
    const VkCommandBufferAllocateInfo one = {.sType =
                                                 VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                             .commandPool = pool,
                                             .commandBufferCount = 1};
    CHECK_VK(FV(&f, vkAllocateCommandBuffers)(f.device, &one, &commands));
    CHECK_VK(FV(&f, vkBeginCommandBuffer)(commands, &begin));
    FV(&f, vkCmdPipelineBarrier)
    (commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 0, NULL,
     0, NULL, 0, NULL);
    fv_fixture_expect(&f, "family 3 supports no commands");
    FV(&f, vkDestroyCommandPool)(f.device, pool, NULL);
    fv_fixture_close(&f);
}

/* Vulkan's rules for the chain of a device. */
UNIT(fake_vulkan_queue, structs_of_features_that_exclude_each_other_are_told)
{
    fv_fixture f;
    VkDevice device;
    fv_fixture_open(&f, NULL, 0);
    VkPhysicalDeviceVulkan12Features core = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
    VkPhysicalDeviceTimelineSemaphoreFeatures single = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES, .pNext = &core};
    VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .pNext = &single};
    CHECK_VK(FV(&f, vkCreateDevice)(f.physical, &info, NULL, &device));
    fv_fixture_expect(&f, "VUID-VkDeviceCreateInfo-pNext-02830");
    FV(&f, vkDestroyDevice)(device, NULL);
    VkPhysicalDeviceTimelineSemaphoreFeatures again = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES};
    single.pNext = &again;
    CHECK_VK(FV(&f, vkCreateDevice)(f.physical, &info, NULL, &device));
    fv_fixture_expect(&f, "VUID-VkDeviceCreateInfo-sType-unique");
    FV(&f, vkDestroyDevice)(device, NULL);
    fv_fixture_close(&f);
}

UNIT(fake_vulkan_queue, a_hole_in_a_sparse_buffer_leaves_the_rest_where_it_was)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, 0);
    VkBuffer sparse;
    VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                               .flags = VK_BUFFER_CREATE_SPARSE_BINDING_BIT |
                                        VK_BUFFER_CREATE_SPARSE_RESIDENCY_BIT,
                               .size = 65536 * 3,
                               .usage = VK_BUFFER_USAGE_TRANSFER_DST_BIT};
    CHECK_VK(FV(&f, vkCreateBuffer)(f.device, &info, NULL, &sparse));
    VkDeviceMemory memory = fv_fixture_memory(&f, 65536 * 3, fv_fixture_coherent(&f));
    VkSparseMemoryBind binds[2] = {{.size = 65536 * 3, .memory = memory},
                                   {.resourceOffset = 65536, .size = 65536}};
    VkSparseBufferMemoryBindInfo of_buffer = {sparse, 2, binds};
    VkBindSparseInfo bind = {.sType = VK_STRUCTURE_TYPE_BIND_SPARSE_INFO,
                             .bufferBindCount = 1,
                             .pBufferBinds = &of_buffer};
    CHECK_VK(FV(&f, vkQueueBindSparse)(f.queue, 1, &bind, VK_NULL_HANDLE));
    VkCommandBuffer commands = fv_fixture_begin(&f);
    FV(&f, vkCmdFillBuffer)(commands, sparse, 0, VK_WHOLE_SIZE, 5);
    fv_fixture_run(&f, commands);
    void *data;
    CHECK_VK(FV(&f, vkMapMemory)(f.device, memory, 0, VK_WHOLE_SIZE, 0, &data));
    const uint32_t *words = data;
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_EQ(words[i * 16384], i == 1 ? 0 : 5);
        CHECK_EQ(words[i * 16384 + 16383], i == 1 ? 0 : 5);
    }
    FV(&f, vkDestroyBuffer)(f.device, sparse, NULL);
    FV(&f, vkFreeMemory)(f.device, memory, NULL);
    fv_fixture_close(&f);
}
