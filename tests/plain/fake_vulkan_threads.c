/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * fake_vulkan_threads.c - the fake Vulkan driver from many threads at once, as Vulkan permits: each
 * with its own objects, pool and queue, and one handing work to another through a timeline.
 *
 *     fake_vulkan_threads [--steps N]
 */
#include "tests/support/plain.h"

#include <pthread.h>

#include "tests/support/vulkan/fixture.h"

enum { THREADS = 6 }; /* one per queue */

static uint64_t steps;

typedef struct worker {
    fv_fixture *f;
    uint32_t number;
    VkQueue queue;
    VkCommandPool pool;
    VkSemaphore timeline;
} worker;

static void begin_worker(worker *w, fv_fixture *f, uint32_t number)
{
    VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                    .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                    .queueFamilyIndex = number / 2};
    *w = (worker){.f = f, .number = number};
    FV(f, vkGetDeviceQueue)(f->device, number / 2, number % 2, &w->queue);
    CHECK_VK(FV(f, vkCreateCommandPool)(f->device, &pool, NULL, &w->pool));
}

static VkCommandBuffer begin_commands(worker *w)
{
    VkCommandBuffer commands;
    VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                        .commandPool = w->pool,
                                        .commandBufferCount = 1};
    VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    CHECK_VK(FV(w->f, vkAllocateCommandBuffers)(w->f->device, &info, &commands));
    CHECK_VK(FV(w->f, vkBeginCommandBuffer)(commands, &begin));
    return commands;
}

/* Fills a buffer on the device and reads it on the host. */
static void step(worker *w, uint32_t value)
{
    fv_fixture *f = w->f;
    VkDeviceMemory memory;
    VkBuffer buffer = fv_fixture_bound(f, 4096, fv_fixture_coherent(f), &memory);
    VkFenceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    VkFence fence;
    void *data;
    VkCommandBuffer commands = begin_commands(w);
    FV(f, vkCmdFillBuffer)(commands, buffer, 0, VK_WHOLE_SIZE, value);
    CHECK_VK(FV(f, vkEndCommandBuffer)(commands));
    VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                           .commandBufferCount = 1,
                           .pCommandBuffers = &commands};
    CHECK_VK(FV(f, vkCreateFence)(f->device, &info, NULL, &fence));
    CHECK_VK(FV(f, vkQueueSubmit)(w->queue, 1, &submit, fence));
    CHECK_VK(FV(f, vkWaitForFences)(f->device, 1, &fence, VK_TRUE, UINT64_MAX));
    CHECK_VK(FV(f, vkMapMemory)(f->device, memory, 0, VK_WHOLE_SIZE, 0, &data));
    for (uint32_t i = 0; i < 1024; i++)
        CHECK_EQ(((const uint32_t *)data)[i], value);
    FV(f, vkDestroyFence)(f->device, fence, NULL);
    FV(f, vkFreeCommandBuffers)(f->device, w->pool, 1, &commands);
    fv_fixture_free(f, buffer, memory);
}

static void *work(void *state)
{
    worker *w = state;
    for (uint64_t i = 0; i < steps; i++)
        step(w, (uint32_t)(w->number << 20 | i));
    return NULL;
}

static void run_all(fv_fixture *f, void *(*body)(void *), VkSemaphore timeline)
{
    worker workers[THREADS];
    pthread_t threads[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        begin_worker(&workers[i], f, i);
        workers[i].timeline = timeline;
        CHECK(!pthread_create(&threads[i], NULL, body, &workers[i]));
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        FV(f, vkDestroyCommandPool)(f->device, workers[i].pool, NULL);
    }
}

static void threads_with_objects_of_their_own(void)
{
    static const uint32_t FLAGS[] = {0, FV_LATE, FV_STALE | FV_ODD_SIZES | FV_DIRTY};
    for (uint32_t i = 0; i < 3; i++) {
        fv_fixture f;
        fv_fixture_open(&f, "adreno", FLAGS[i]);
        run_all(&f, work, VK_NULL_HANDLE);
        CHECK_EQ(fv_calls(f.driver, "vkAllocateMemory"), THREADS * steps);
        CHECK_EQ(fv_usage(f.driver, 0, 0).bytes, 0);
        fv_fixture_close(&f);
    }
}

/* Thread n waits for n, alternately on its queue and on the host, and signals n + 1. */
static void *pass_on(void *state)
{
    worker *w = state;
    fv_fixture *f = w->f;
    VkPipelineStageFlags stage = VK_PIPELINE_STAGE_TRANSFER_BIT;
    for (uint64_t i = 0; i < steps; i++) {
        uint64_t value = i * THREADS + w->number, next = value + 1;
        bool on_queue = (w->number + i) % 2;
        VkTimelineSemaphoreSubmitInfo values = {
            .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
            .waitSemaphoreValueCount = on_queue,
            .pWaitSemaphoreValues = &value,
            .signalSemaphoreValueCount = 1,
            .pSignalSemaphoreValues = &next};
        VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                               .pNext = &values,
                               .waitSemaphoreCount = on_queue,
                               .pWaitSemaphores = &w->timeline,
                               .pWaitDstStageMask = &stage,
                               .signalSemaphoreCount = 1,
                               .pSignalSemaphores = &w->timeline};
        VkSemaphoreWaitInfo wait = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                    .semaphoreCount = 1,
                                    .pSemaphores = &w->timeline,
                                    .pValues = &value};
        if (!on_queue)
            CHECK_VK(FV(f, vkWaitSemaphores)(f->device, &wait, UINT64_MAX));
        CHECK_VK(FV(f, vkQueueSubmit)(w->queue, 1, &submit, VK_NULL_HANDLE));
    }
    CHECK_VK(FV(f, vkQueueWaitIdle)(w->queue));
    return NULL;
}

static void a_timeline_passes_through_all_threads(void)
{
    fv_fixture f;
    uint64_t value;
    VkSemaphore timeline;
    VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                      .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
    fv_fixture_open(&f, NULL, 0);
    CHECK_VK(FV(&f, vkCreateSemaphore)(f.device, &info, NULL, &timeline));
    run_all(&f, pass_on, timeline);
    CHECK_VK(FV(&f, vkGetSemaphoreCounterValue)(f.device, timeline, &value));
    CHECK_EQ(value, steps * THREADS);
    FV(&f, vkDestroySemaphore)(f.device, timeline, NULL);
    fv_fixture_close(&f);
}

int main(int argc, char **argv)
{
    steps = plain_option(argc, argv, "steps", 200);
    plain_case("threads with objects of their own", threads_with_objects_of_their_own);
    plain_case("a timeline passes through all threads", a_timeline_passes_through_all_threads);
    return plain_end();
}
