/*
 * stream_submit.c - what is submitted to a stream's queue, and the records of it.
 */
#include "backends/vulkan/staging.h"
#include "backends/vulkan/stream.h"
#include "src/base/result.h"

/* ---- records ------------------------------------------------------------------------------ */

void qi_vulkan_stream_put(qi_vulkan_stream *stream, qi_vulkan_submission *submission)
{
    submission->next = stream->spare;
    stream->spare = submission;
}

static void let_go(qi_vulkan *vulkan, qi_vulkan_submission *submission)
{
    qi_vulkan_stream *earlier = submission->earlier;
    submission->earlier = NULL;
    if (earlier)
        qi_vulkan_stream_drop(vulkan, earlier);
}

void qi_vulkan_stream_recycle(qi_vulkan *vulkan, qi_vulkan_stream *stream, uint64_t passed)
{
    while (stream->first && stream->first->value <= passed) {
        qi_vulkan_submission *done = stream->first;
        stream->first = done->next;
        stream->last = stream->first ? stream->last : NULL;
        let_go(vulkan, done);
        qi_vulkan_stream_put(stream, done);
    }
}

quire_result qi_vulkan_stream_take(qi_vulkan *vulkan, qi_vulkan_stream *stream,
                                   qi_vulkan_submission **out)
{
    uint64_t passed = 0;
    quire_result result = QUIRE_SUCCESS;
    if (!stream->spare && stream->first)
        result = qi_vulkan_stream_counter(vulkan, stream, &passed);
    if (result)
        return result;
    qi_vulkan_stream_recycle(vulkan, stream, passed);
    *out = stream->spare;
    if (*out) {
        stream->spare = (*out)->next;
        (*out)->next = NULL;
        return QUIRE_SUCCESS;
    }
    *out = qi_host_allocate(&vulkan->host, 1, sizeof **out);
    return *out ? QUIRE_SUCCESS
                : quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0,
                                     "no host memory for a submission to a stream");
}

static void end_list(qi_vulkan *vulkan, qi_vulkan_submission **list)
{
    while (*list) {
        qi_vulkan_submission *submission = *list;
        *list = submission->next;
        let_go(vulkan, submission);
        if (submission->pool)
            vulkan->f.DestroyCommandPool(vulkan->device, submission->pool, vulkan->callbacks);
        qi_host_release(&vulkan->host, submission, 1, sizeof *submission);
    }
}

void qi_vulkan_stream_clear(qi_vulkan *vulkan, qi_vulkan_stream *stream)
{
    end_list(vulkan, &stream->first);
    end_list(vulkan, &stream->spare);
    stream->last = NULL;
}

/* ---- commands ----------------------------------------------------------------------------- */

static quire_result make_commands(const qi_vulkan *vulkan, const qi_vulkan_stream *stream,
                                  qi_vulkan_submission *submission)
{
    const VkCommandPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT,
        .queueFamilyIndex = stream->queue.family,
    };
    VkCommandPool made = VK_NULL_HANDLE;
    VkResult code = vulkan->f.CreateCommandPool(vulkan->device, &pool, vulkan->callbacks, &made);
    if (code)
        return qi_vulkan_fail(code, "vkCreateCommandPool");
    const VkCommandBufferAllocateInfo commands = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = made,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    code = vulkan->f.AllocateCommandBuffers(vulkan->device, &commands, &submission->commands);
    if (code) {
        submission->commands = NULL;
        vulkan->f.DestroyCommandPool(vulkan->device, made, vulkan->callbacks);
        return qi_vulkan_fail(code, "vkAllocateCommandBuffers");
    }
    submission->pool = made;
    return QUIRE_SUCCESS;
}

quire_result qi_vulkan_stream_begin(qi_vulkan *vulkan, const qi_vulkan_stream *stream,
                                    qi_vulkan_submission *submission)
{
    VkResult code = VK_SUCCESS;
    if (submission->pool) {
        code = vulkan->f.ResetCommandPool(vulkan->device, submission->pool, 0);
        if (code)
            return qi_vulkan_fail(code, "vkResetCommandPool");
    } else {
        quire_result result = make_commands(vulkan, stream, submission);
        if (result)
            return result;
    }
    const VkCommandBufferBeginInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
    };
    code = vulkan->f.BeginCommandBuffer(submission->commands, &info);
    if (code)
        return qi_vulkan_fail(code, "vkBeginCommandBuffer");
    qi_vulkan_add_barrier(vulkan, submission->commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                          VK_PIPELINE_STAGE_TRANSFER_BIT);
    return QUIRE_SUCCESS;
}

quire_result qi_vulkan_stream_end(qi_vulkan *vulkan, const qi_vulkan_submission *submission)
{
    qi_vulkan_add_barrier(vulkan, submission->commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                          VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT);
    VkResult code = vulkan->f.EndCommandBuffer(submission->commands);
    return code ? qi_vulkan_fail(code, "vkEndCommandBuffer") : QUIRE_SUCCESS;
}

/* ---- submitting --------------------------------------------------------------------------- */

/* A queue without a lock of the caller's is used under the one that all of quire's have. */
static void take_queue(const qi_vulkan *vulkan, const quire_vulkan_queue *queue)
{
    if (queue->lock && queue->queue != vulkan->queue.queue)
        queue->lock(queue->user);
    else
        qi_vulkan_queue_take(vulkan);
}

static void give_queue(const qi_vulkan *vulkan, const quire_vulkan_queue *queue)
{
    if (queue->unlock && queue->queue != vulkan->queue.queue)
        queue->unlock(queue->user);
    else
        qi_vulkan_queue_give(vulkan);
}

static VkResult submit(const qi_vulkan *vulkan, const qi_vulkan_stream *stream,
                       const qi_vulkan_submission *s)
{
    const VkPipelineStageFlags all = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    const uint64_t next = stream->marked + 1;
    const VkSemaphore awaited = s && s->earlier ? s->earlier->semaphore : VK_NULL_HANDLE;
    const VkTimelineSemaphoreSubmitInfo values = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .waitSemaphoreValueCount = awaited ? 1 : 0,
        .pWaitSemaphoreValues = awaited ? &s->until : NULL,
        .signalSemaphoreValueCount = 1,
        .pSignalSemaphoreValues = &next,
    };
    const bool has_commands = s && !s->earlier;
    const VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .pNext = &values,
        .waitSemaphoreCount = values.waitSemaphoreValueCount,
        .pWaitSemaphores = awaited ? &awaited : NULL,
        .pWaitDstStageMask = awaited ? &all : NULL,
        .commandBufferCount = has_commands ? 1 : 0,
        .pCommandBuffers = has_commands ? &s->commands : NULL,
        .signalSemaphoreCount = 1,
        .pSignalSemaphores = &stream->semaphore,
    };
    take_queue(vulkan, &stream->queue);
    VkResult code = vulkan->f.QueueSubmit(stream->queue.queue, 1, &info, VK_NULL_HANDLE);
    give_queue(vulkan, &stream->queue);
    return code;
}

static void append(qi_vulkan_stream *stream, qi_vulkan_submission *submission)
{
    submission->value = stream->marked;
    submission->next = NULL;
    if (stream->last)
        stream->last->next = submission;
    else
        stream->first = submission;
    stream->last = submission;
}

quire_result qi_vulkan_stream_submit(qi_vulkan *vulkan, qi_vulkan_stream *stream,
                                     qi_vulkan_submission *submission)
{
    VkResult code = submit(vulkan, stream, submission);
    if (code) {
        if (submission) {
            let_go(vulkan, submission);
            qi_vulkan_stream_put(stream, submission);
        }
        return qi_vulkan_fail(code, "vkQueueSubmit to a stream");
    }
    stream->marked++;
    if (submission)
        append(stream, submission);
    return QUIRE_SUCCESS;
}
