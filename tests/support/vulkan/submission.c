/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * submission.c - creates submissions, and tracks the objects that they use.
 */
#include <stdlib.h>

#include "tests/support/vulkan/queue.h"

static void *take(void *array, size_t item, uint32_t count)
{
    void *grown = realloc(array, item * ((size_t)count + 1));
    if (!grown)
        abort();
    return grown;
}

fv_submission *fv_submission_new(fv_call call)
{
    fv_submission *work = calloc(1, sizeof *work);
    if (!work)
        abort();
    work->call = call;
    return work;
}

void fv_submission_use(fv_submission *work, fv_object *object)
{
    if (work->used_count == work->used_room) {
        work->used_room = work->used_room ? work->used_room * 2 : 16;
        work->used = take(work->used, sizeof *work->used, work->used_room);
    }
    work->used[work->used_count++] = object->handle;
    object->pending++;
}

/* Returns an object of one of these kinds. NULL: it was destroyed. */
static fv_object *any_object(fv_driver *driver, uint64_t handle)
{
    static const fv_kind KINDS[] = {FV_BUFFER, FV_IMAGE,     FV_MEMORY,
                                    FV_FENCE,  FV_SEMAPHORE, FV_COMMAND_BUFFER};
    fv_object *found = NULL;
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS && !found; i++)
        found = fv_object_peek(driver, KINDS[i], handle);
    return found;
}

void fv_submission_end(fv_driver *driver, fv_submission *work)
{
    for (uint32_t i = 0; i < work->used_count; i++) {
        fv_object *object = any_object(driver, work->used[i]);
        if (object)
            object->pending--;
    }
    for (uint32_t i = 0; i < work->buffer_count; i++) {
        fv_command_buffer *buffer = work->buffers[i];
        if (!buffer->object.dead && !buffer->object.pending)
            buffer->state = buffer->once ? FV_INVALID : FV_EXECUTABLE;
    }
    free(work->waits);
    free(work->signals);
    free(work->buffers);
    free(work->changes);
    free(work->used);
    free(work);
}

/* ---- what it uses ------------------------------------------------------------------------- */

static void use_resource(fv_driver *driver, fv_submission *work, uint64_t handle)
{
    fv_object *object = any_object(driver, handle);
    if (!object || (object->kind != FV_BUFFER && object->kind != FV_IMAGE))
        return;
    fv_resource *resource = (fv_resource *)object;
    fv_submission_use(work, object);
    if (resource->memory)
        fv_submission_use(work, &resource->memory->object);
    for (uint32_t i = 0; i < resource->piece_count; i++) {
        fv_object *memory = fv_object_peek(driver, FV_MEMORY, resource->pieces[i].memory);
        if (memory)
            fv_submission_use(work, memory);
    }
}

/*
 * Checks the queue family that uses a buffer. What one family has written to an exclusive buffer
 * another one may read only after a transfer of ownership, which the fake does not know.
 */
static void use_in_family(fv_driver *driver, const fv_submission *work, uint64_t handle,
                          uint32_t family, bool is_written)
{
    fv_buffer *buffer = (fv_buffer *)fv_object_peek(driver, FV_BUFFER, handle);
    if (!buffer)
        return;
    if (buffer->sharing && !(buffer->sharing >> family & 1))
        fv_say(driver, FV_ERROR, "fv-family", work->call,
               "'%s' is not shared with family %u, which uses it", buffer->resource.object.name,
               family);
    if (!buffer->sharing && !is_written && buffer->owner && buffer->owner != family + 1)
        fv_say(driver, FV_ERROR, "fv-ownership", work->call,
               "'%s' belongs to family %u, and family %u reads it", buffer->resource.object.name,
               buffer->owner - 1, family);
    if (is_written)
        buffer->owner = family + 1;
}

static void use_commands(fv_driver *driver, fv_submission *work, const fv_command_buffer *buffer)
{
    for (const fv_command *command = buffer->first; command; command = command->next) {
        use_resource(driver, work, command->source);
        use_resource(driver, work, command->target);
        use_in_family(driver, work, command->source, buffer->family, false);
        use_in_family(driver, work, command->target, buffer->family, true);
        bool barrier = command->call == FV_CALL_vkCmdPipelineBarrier;
        for (uint32_t i = 0; barrier && i < command->count; i++)
            use_resource(driver, work, ((const fv_transition *)command->items)[i].image);
    }
}

void fv_submission_take(fv_queue *queue, fv_submission *work, VkCommandBuffer handle)
{
    fv_device *device = queue->object.device;
    fv_driver *driver = fv_driver_of(device);
    fv_command_buffer *buffer = (fv_command_buffer *)handle;
    if (!fv_object_check(&buffer->object, work->call, FV_COMMAND_BUFFER))
        return;
    if (buffer->object.device != device)
        fv_say(driver, FV_ERROR, "fv-parent", work->call, "a command buffer of another device");
    if (buffer->family != queue->family)
        fv_say(driver, FV_ERROR, "VUID-vkQueueSubmit-pCommandBuffers-00074", work->call,
               "a command buffer of family %u on a queue of family %u", buffer->family,
               queue->family);
    if (buffer->state == FV_PENDING && !buffer->again)
        fv_say(driver, FV_ERROR, "VUID-vkQueueSubmit-pCommandBuffers-00071", work->call,
               "a command buffer is not done");
    else if (buffer->state != FV_EXECUTABLE && buffer->state != FV_PENDING) {
        fv_say(driver, FV_ERROR, "VUID-vkQueueSubmit-pCommandBuffers-00070", work->call,
               "a command buffer was not recorded to its end, or is used up");
        return;
    }
    work->buffers = take(work->buffers, sizeof *work->buffers, work->buffer_count);
    work->buffers[work->buffer_count++] = buffer;
    buffer->state = FV_PENDING;
    fv_submission_use(work, &buffer->object);
    use_commands(driver, work, buffer);
}

/* ---- what it waits for and tells ---------------------------------------------------------- */

static fv_semaphore *find_semaphore(fv_device *device, fv_submission *work, VkSemaphore handle)
{
    fv_semaphore *semaphore = fv_object_find(device, work->call, FV_SEMAPHORE, (uint64_t)handle);
    if (semaphore)
        fv_submission_use(work, &semaphore->object);
    return semaphore;
}

void fv_submission_wait(fv_device *device, fv_submission *work, VkSemaphore handle, uint64_t value)
{
    const fv_semaphore *semaphore = find_semaphore(device, work, handle);
    if (!semaphore)
        return;
    work->waits = take(work->waits, sizeof *work->waits, work->wait_count);
    work->waits[work->wait_count++] = (fv_point){(uint64_t)handle, semaphore->timeline ? value : 1};
}

void fv_submission_signal(fv_device *device, fv_submission *work, VkSemaphore handle,
                          uint64_t value)
{
    const fv_semaphore *semaphore = find_semaphore(device, work, handle);
    if (!semaphore)
        return;
    work->signals = take(work->signals, sizeof *work->signals, work->signal_count);
    work->signals[work->signal_count++] =
        (fv_point){(uint64_t)handle, semaphore->timeline ? value : 1};
}

void fv_submission_fence(fv_device *device, fv_submission *work, VkFence handle)
{
    fv_fence *fence = fv_object_find(device, work->call, FV_FENCE, (uint64_t)handle);
    if (!fence)
        return;
    if (fence->signalled)
        fv_say(fv_driver_of(device), FV_ERROR, "VUID-vkQueueSubmit-fence-00063", work->call,
               "the fence is signalled already");
    if (fence->object.pending)
        fv_say(fv_driver_of(device), FV_ERROR, "VUID-vkQueueSubmit-fence-00064", work->call,
               "the fence belongs to other work that is not done");
    fv_submission_use(work, &fence->object);
    work->fence = (uint64_t)handle;
}
