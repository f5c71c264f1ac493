/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_commands.h - commands of the caller on the queue of a Vulkan device that nothing else uses
 * meanwhile, and the parts of a sparse object.
 */
#ifndef QUIRE_TESTS_SUPPORT_VULKAN_COMMANDS_H
#define QUIRE_TESTS_SUPPORT_VULKAN_COMMANDS_H

#include "quire/vulkan_sparse.h"
#include "tests/support/vulkan_native.h"

typedef struct vulkan_commands {
    quire_vulkan_handles handles;
    VkCommandPool pool;
    VkCommandBuffer buffer;
} vulkan_commands;

#define COMMANDS_CALL(commands, name) VULKAN_CALL((commands)->handles, name)

static inline vulkan_commands vulkan_commands_begin(const quire_device *device)
{
    vulkan_commands c = {.pool = VK_NULL_HANDLE};
    CHECK_OK(quire_vulkan_get_handles(device, &c.handles));
    const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT,
                                          .queueFamilyIndex = c.handles.queue_family};
    CHECK_EQ(COMMANDS_CALL(&c, vkCreateCommandPool)(c.handles.device, &pool, NULL, &c.pool), 0);
    const VkCommandBufferAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = c.pool,
        .commandBufferCount = 1,
    };
    const VkCommandBufferBeginInfo once = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
    };
    CHECK_EQ(COMMANDS_CALL(&c, vkAllocateCommandBuffers)(c.handles.device, &info, &c.buffer), 0);
    CHECK_EQ(COMMANDS_CALL(&c, vkBeginCommandBuffer)(c.buffer, &once), 0);
    return c;
}

/* Submits the commands, waits for them and destroys them. */
static inline void vulkan_commands_run(const vulkan_commands *c)
{
    const VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                                 .commandBufferCount = 1,
                                 .pCommandBuffers = &c->buffer};
    CHECK_EQ(COMMANDS_CALL(c, vkEndCommandBuffer)(c->buffer), 0);
    CHECK_EQ(COMMANDS_CALL(c, vkQueueSubmit)(c->handles.queue, 1, &submit, VK_NULL_HANDLE), 0);
    CHECK_EQ(COMMANDS_CALL(c, vkQueueWaitIdle)(c->handles.queue), 0);
    COMMANDS_CALL(c, vkDestroyCommandPool)(c->handles.device, c->pool, NULL);
}

/* Fills a range of a buffer with a command. */
static inline void vulkan_commands_fill(const quire_device *device, VkBuffer buffer,
                                        uint64_t offset, uint64_t size, uint32_t word)
{
    const vulkan_commands c = vulkan_commands_begin(device);
    COMMANDS_CALL(&c, vkCmdFillBuffer)(c.buffer, buffer, offset, size, word);
    vulkan_commands_run(&c);
}

static inline quire_vulkan_sparse_info sparse_info(quire_vulkan_sparse *sparse)
{
    quire_vulkan_sparse_info info;
    CHECK_OK(quire_vulkan_sparse_get_info(sparse, &info));
    return info;
}

static inline quire_vulkan_part sparse_part(quire_vulkan_sparse *sparse, uint64_t offset)
{
    quire_vulkan_part part;
    CHECK_OK(quire_vulkan_sparse_get_part(sparse, offset, &part));
    return part;
}

#endif
