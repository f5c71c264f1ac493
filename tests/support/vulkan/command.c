/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * command.c - command pools, and creation and states of command buffers. record.c records commands.
 */
#include "tests/support/vulkan/command.h"

#include <stdlib.h>

#include "tests/support/vulkan/table.h"

static const char *const STATES[] = {"initial", "recording", "executable", "pending", "invalid"};

void fv_commands_forget(fv_command_buffer *buffer)
{
    while (buffer->first) {
        fv_command *next = buffer->first->next;
        free(buffer->first->items);
        free(buffer->first);
        buffer->first = next;
    }
    buffer->last = NULL;
}

static void end_buffer(fv_command_buffer *buffer)
{
    fv_commands_forget(buffer);
    buffer->state = FV_INVALID;
    fv_object_end(&buffer->object);
}

/* Returns the next command buffer of a pool, starting at index. NULL: no more. */
static fv_command_buffer *next_of(const fv_pool *pool, uint64_t *index)
{
    fv_object *object;
    while ((object = fv_object_next(pool->object.driver, index)))
        if (object->kind == FV_COMMAND_BUFFER &&
            ((fv_command_buffer *)object)->pool == pool->object.handle)
            return (fv_command_buffer *)object;
    return NULL;
}

void fv_pool_end(fv_pool *pool)
{
    uint64_t index = 0;
    for (fv_command_buffer *buffer = next_of(pool, &index); buffer;
         buffer = next_of(pool, &index)) {
        end_buffer(buffer);
        index = 0; /* the table changed */
    }
    fv_object_end(&pool->object);
}

/* ---- pools -------------------------------------------------------------------------------- */

VkResult fv_vkCreateCommandPool(VkDevice handle, const VkCommandPoolCreateInfo *info,
                                const VkAllocationCallbacks *callbacks, VkCommandPool *out)
{
    fv_device *device = (fv_device *)handle;
    fv_driver *driver = fv_driver_of(device);
    (void)callbacks;
    VkResult result = fv_enter(driver, FV_CALL_vkCreateCommandPool);
    *out = (VkCommandPool)FV_GARBAGE;
    if (!result) {
        if (info->queueFamilyIndex >= fv_family_count(device->physical))
            FV_WRONG(driver, "VUID-vkCreateCommandPool-queueFamilyIndex-01937", vkCreateCommandPool,
                     "there is no queue family %u", info->queueFamilyIndex);
        fv_pool *pool = fv_object_new(driver, device, FV_COMMAND_POOL, sizeof *pool);
        pool->family = info->queueFamilyIndex;
        pool->flags = info->flags;
        *out = FV_HANDLE(VkCommandPool, &pool->object);
    }
    fv_leave(driver);
    return result;
}

/* Checks that no command buffer of the pool is pending. */
static void check_idle(const fv_pool *pool, fv_call call)
{
    uint64_t index = 0;
    for (fv_command_buffer *buffer = next_of(pool, &index); buffer; buffer = next_of(pool, &index))
        if (buffer->state == FV_PENDING)
            fv_say(pool->object.driver, FV_ERROR,
                   call == FV_CALL_vkResetCommandPool
                       ? "VUID-vkResetCommandPool-commandPool-00040"
                       : "VUID-vkDestroyCommandPool-commandPool-00041",
                   call, "a command buffer of the pool is not done");
}

void fv_vkDestroyCommandPool(VkDevice handle, VkCommandPool pool_handle,
                             const VkAllocationCallbacks *callbacks)
{
    fv_device *device = (fv_device *)handle;
    fv_driver *driver = fv_driver_of(device);
    (void)callbacks;
    fv_claim_handle(driver, FV_CALL_vkDestroyCommandPool, (uint64_t)pool_handle);
    (void)fv_enter(driver, FV_CALL_vkDestroyCommandPool);
    fv_pool *pool =
        pool_handle ? FV_FIND(device, vkDestroyCommandPool, FV_COMMAND_POOL, pool_handle) : NULL;
    if (pool) {
        check_idle(pool, FV_CALL_vkDestroyCommandPool);
        fv_pool_end(pool);
    }
    fv_leave(driver);
    fv_release_handle(driver, (uint64_t)pool_handle);
}

static void reset(fv_command_buffer *buffer)
{
    fv_commands_forget(buffer);
    buffer->state = FV_INITIAL;
}

VkResult fv_vkResetCommandPool(VkDevice handle, VkCommandPool pool_handle,
                               VkCommandPoolResetFlags flags)
{
    fv_device *device = (fv_device *)handle;
    fv_driver *driver = fv_driver_of(device);
    uint64_t index = 0;
    (void)flags;
    fv_claim_handle(driver, FV_CALL_vkResetCommandPool, (uint64_t)pool_handle);
    VkResult result = fv_enter(driver, FV_CALL_vkResetCommandPool);
    fv_pool *pool =
        result ? NULL : FV_FIND(device, vkResetCommandPool, FV_COMMAND_POOL, pool_handle);
    if (pool) {
        check_idle(pool, FV_CALL_vkResetCommandPool);
        for (fv_command_buffer *buffer; (buffer = next_of(pool, &index));)
            reset(buffer);
    }
    fv_leave(driver);
    fv_release_handle(driver, (uint64_t)pool_handle);
    return result;
}

/* ---- command buffers ---------------------------------------------------------------------- */

static VkCommandBuffer make_buffer(fv_device *device, const fv_pool *pool)
{
    fv_command_buffer *buffer =
        fv_object_new(fv_driver_of(device), device, FV_COMMAND_BUFFER, sizeof *buffer);
    buffer->pool = pool->object.handle;
    buffer->family = pool->family;
    buffer->resettable = pool->flags & VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
    return (VkCommandBuffer)buffer;
}

VkResult fv_vkAllocateCommandBuffers(VkDevice handle, const VkCommandBufferAllocateInfo *info,
                                     VkCommandBuffer *out)
{
    fv_device *device = (fv_device *)handle;
    fv_driver *driver = fv_driver_of(device);
    fv_claim_handle(driver, FV_CALL_vkAllocateCommandBuffers, (uint64_t)info->commandPool);
    VkResult result = fv_enter(driver, FV_CALL_vkAllocateCommandBuffers);
    const fv_pool *pool =
        result ? NULL
               : FV_FIND(device, vkAllocateCommandBuffers, FV_COMMAND_POOL, info->commandPool);
    if (info->level != VK_COMMAND_BUFFER_LEVEL_PRIMARY)
        fv_say(driver, FV_WARNING, "fv-secondary", FV_CALL_vkAllocateCommandBuffers,
               "the fake has no commands for secondary command buffers");
    for (uint32_t i = 0; i < info->commandBufferCount; i++)
        out[i] = pool ? make_buffer(device, pool) : NULL; /* NULL, as the specification requires */
    fv_leave(driver);
    fv_release_handle(driver, (uint64_t)info->commandPool);
    return result;
}

void fv_vkFreeCommandBuffers(VkDevice handle, VkCommandPool pool, uint32_t count,
                             const VkCommandBuffer *list)
{
    fv_driver *driver = fv_driver_of((fv_device *)handle);
    fv_claim_handle(driver, FV_CALL_vkFreeCommandBuffers, (uint64_t)pool);
    (void)fv_enter(driver, FV_CALL_vkFreeCommandBuffers);
    for (uint32_t i = 0; i < count; i++) {
        fv_command_buffer *buffer = (fv_command_buffer *)list[i];
        if (!buffer ||
            !fv_object_check(&buffer->object, FV_CALL_vkFreeCommandBuffers, FV_COMMAND_BUFFER))
            continue;
        if (buffer->pool != (uint64_t)pool)
            FV_WRONG(driver, "VUID-vkFreeCommandBuffers-pCommandBuffers-parent",
                     vkFreeCommandBuffers, "a command buffer of another pool");
        if (buffer->state == FV_PENDING)
            FV_WRONG(driver, "VUID-vkFreeCommandBuffers-pCommandBuffers-00047",
                     vkFreeCommandBuffers, "a command buffer is not done");
        end_buffer(buffer);
    }
    fv_leave(driver);
    fv_release_handle(driver, (uint64_t)pool);
}

/* ---- beginning and ending ----------------------------------------------------------------- */

/* Begins a call on a command buffer. No other thread may use its pool during the call. */
static VkResult enter(fv_command_buffer *buffer, fv_call call)
{
    fv_claim_handle(buffer->object.driver, call, buffer->pool);
    VkResult result = fv_enter(buffer->object.driver, call);
    return fv_object_check(&buffer->object, call, FV_COMMAND_BUFFER) ? result
                                                                     : VK_ERROR_OUT_OF_HOST_MEMORY;
}

static VkResult leave(fv_command_buffer *buffer, VkResult result)
{
    fv_leave(buffer->object.driver);
    fv_release_handle(buffer->object.driver, buffer->pool);
    return result;
}

VkResult fv_vkBeginCommandBuffer(VkCommandBuffer handle, const VkCommandBufferBeginInfo *info)
{
    fv_command_buffer *buffer = (fv_command_buffer *)handle;
    fv_driver *driver = buffer->object.driver;
    VkResult result = enter(buffer, FV_CALL_vkBeginCommandBuffer);
    if (result)
        return leave(buffer, result);
    if (buffer->state == FV_RECORDING || buffer->state == FV_PENDING)
        FV_WRONG(driver, "VUID-vkBeginCommandBuffer-commandBuffer-00049", vkBeginCommandBuffer,
                 "the command buffer is %s", STATES[buffer->state]);
    else if (buffer->state != FV_INITIAL && !buffer->resettable)
        FV_WRONG(driver, "VUID-vkBeginCommandBuffer-commandBuffer-00050", vkBeginCommandBuffer,
                 "the pool does not let its command buffers be reset");
    else
        reset(buffer);
    buffer->state = FV_RECORDING;
    buffer->once = info->flags & VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    buffer->again = info->flags & VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;
    return leave(buffer, VK_SUCCESS);
}

VkResult fv_vkEndCommandBuffer(VkCommandBuffer handle)
{
    fv_command_buffer *buffer = (fv_command_buffer *)handle;
    VkResult result = enter(buffer, FV_CALL_vkEndCommandBuffer);
    if (buffer->state != FV_RECORDING)
        FV_WRONG(buffer->object.driver, "VUID-vkEndCommandBuffer-commandBuffer-00059",
                 vkEndCommandBuffer, "the command buffer is %s", STATES[buffer->state]);
    buffer->state = result ? FV_INVALID : FV_EXECUTABLE;
    return leave(buffer, result);
}
