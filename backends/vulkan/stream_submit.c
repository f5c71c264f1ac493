/*
 * stream_submit.c - the references of a stream, the records of its submissions, and submission.
 *
 * A record is in one of three states: acquired by a call, in the list of submissions whose value
 * has not passed (`first` to `last`), or spare. Spare records keep their command pool.
 */
#include "backends/vulkan/device.h"
#include "backends/vulkan/functions.h"
#include "backends/vulkan/queues.h"
#include "backends/vulkan/stream.h"
#include "src/base/result.h"

/* ---- references and the counter -------------------------------------------------------------- */

void qi_vulkan_stream_release(qi_vulkan *vulkan, qi_vulkan_stream *stream)
{
    if (qi_atomic_drop_u64(&stream->references) != 1)
        return;
    if (stream->is_own)
        vulkan->f.DestroySemaphore(vulkan->device, stream->semaphore, vulkan->callbacks);
    pthread_mutex_destroy(&stream->mutex);
    qi_host_release(&vulkan->host, stream, 1, sizeof *stream);
}

quire_result qi_vulkan_stream_counter(const qi_vulkan *vulkan, const qi_vulkan_stream *stream,
                                      uint64_t *value)
{
    VkResult code = vulkan->f.GetSemaphoreCounterValue(vulkan->device, stream->semaphore, value);
    return code ? qi_vulkan_fail(code, "vkGetSemaphoreCounterValue") : QUIRE_SUCCESS;
}

/* ---- records --------------------------------------------------------------------------------- */

void qi_vulkan_submission_release(qi_vulkan_stream *stream, qi_vulkan_submission *submission)
{
    submission->next = stream->spare;
    stream->spare = submission;
}

/* Releases the stream that a submission waits for. */
static void release_earlier(qi_vulkan *vulkan, qi_vulkan_submission *submission)
{
    qi_vulkan_stream *earlier = submission->earlier;
    submission->earlier = NULL;
    if (earlier)
        qi_vulkan_stream_release(vulkan, earlier);
}

/* Moves the records whose value has passed to the list of spare ones. Requires the mutex. */
static void recycle_submissions(qi_vulkan *vulkan, qi_vulkan_stream *stream, uint64_t passed)
{
    while (stream->first && stream->first->value <= passed) {
        qi_vulkan_submission *done = stream->first;
        stream->first = done->next;
        stream->last = stream->first ? stream->last : NULL;
        if (done->staged_to)
            stream->tail = done->staged_to;
        release_earlier(vulkan, done);
        qi_vulkan_submission_release(stream, done);
    }
}

quire_result qi_vulkan_submissions_recycle(qi_vulkan *vulkan, qi_vulkan_stream *stream)
{
    uint64_t passed = 0;
    quire_result result = qi_vulkan_stream_counter(vulkan, stream, &passed);
    if (!result)
        recycle_submissions(vulkan, stream, passed);
    return result;
}

/* Reads the counter only if no record is spare and some are in the list. */
quire_result qi_vulkan_submission_acquire(qi_vulkan *vulkan, qi_vulkan_stream *stream,
                                          qi_vulkan_submission **out)
{
    quire_result result = QUIRE_SUCCESS;
    if (!stream->spare && stream->first)
        result = qi_vulkan_submissions_recycle(vulkan, stream);
    if (result)
        return result;
    *out = stream->spare;
    if (*out) {
        stream->spare = (*out)->next;
        (*out)->next = NULL;
        (*out)->staged_to = 0;
        return QUIRE_SUCCESS;
    }
    *out = qi_host_allocate(&vulkan->host, 1, sizeof **out);
    return *out ? QUIRE_SUCCESS
                : quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0,
                                     "no host memory for a submission to a stream");
}

static void destroy_list(qi_vulkan *vulkan, qi_vulkan_submission **list)
{
    while (*list) {
        qi_vulkan_submission *submission = *list;
        *list = submission->next;
        release_earlier(vulkan, submission);
        if (submission->pool)
            vulkan->f.DestroyCommandPool(vulkan->device, submission->pool, vulkan->callbacks);
        qi_host_release(&vulkan->host, submission, 1, sizeof *submission);
    }
}

static void destroy_submissions(qi_vulkan *vulkan, qi_vulkan_stream *stream)
{
    destroy_list(vulkan, &stream->first);
    destroy_list(vulkan, &stream->spare);
    stream->last = NULL;
}

/* Other streams may still wait for the semaphore: it exists until its last reference is gone. */
void qi_vulkan_stream_destroy_now(qi_vulkan *vulkan, qi_vulkan_stream *stream)
{
    destroy_submissions(vulkan, stream);
    if (stream->staging.buffer) {
        qi_vulkan_staging_memory_destroy(vulkan, &stream->staging);
        qi_vulkan_uncount_memory(vulkan);
    }
    qi_vulkan_stream_release(vulkan, stream);
}

/* ---- commands -------------------------------------------------------------------------------- */

/* Creates the command pool of a record, which stays until the stream is destroyed. */
static quire_result make_commands(const qi_vulkan *vulkan, const qi_vulkan_stream *stream,
                                  qi_vulkan_submission *submission)
{
    const VkCommandPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT,
        .queueFamilyIndex = stream->queue.family,
    };
    VkCommandPool created = VK_NULL_HANDLE;
    VkResult code = vulkan->f.CreateCommandPool(vulkan->device, &pool, vulkan->callbacks, &created);
    if (code)
        return qi_vulkan_fail(code, "vkCreateCommandPool");
    const VkCommandBufferAllocateInfo commands = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = created,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    code = vulkan->f.AllocateCommandBuffers(vulkan->device, &commands, &submission->commands);
    if (code) {
        submission->commands = NULL;
        vulkan->f.DestroyCommandPool(vulkan->device, created, vulkan->callbacks);
        return qi_vulkan_fail(code, "vkAllocateCommandBuffers");
    }
    submission->pool = created;
    return QUIRE_SUCCESS;
}

quire_result qi_vulkan_submission_begin(qi_vulkan *vulkan, const qi_vulkan_stream *stream,
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
    qi_vulkan_record_barrier(vulkan, submission->commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                             VK_PIPELINE_STAGE_TRANSFER_BIT);
    return QUIRE_SUCCESS;
}

quire_result qi_vulkan_submission_end(qi_vulkan *vulkan, const qi_vulkan_submission *submission)
{
    qi_vulkan_record_barrier(vulkan, submission->commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                             VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT);
    VkResult code = vulkan->f.EndCommandBuffer(submission->commands);
    return code ? qi_vulkan_fail(code, "vkEndCommandBuffer") : QUIRE_SUCCESS;
}

/* ---- submission ------------------------------------------------------------------------------ */

/* Submits the commands of a record, or a wait for another stream, or nothing, and signals the next
   value. */
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
    qi_vulkan_any_queue_lock(vulkan, &stream->queue);
    VkResult code = vulkan->f.QueueSubmit(stream->queue.queue, 1, &info, VK_NULL_HANDLE);
    qi_vulkan_any_queue_unlock(vulkan, &stream->queue);
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

/* The value advances only if the submission succeeded, because the next one signals value + 1. */
quire_result qi_vulkan_stream_submit(qi_vulkan *vulkan, qi_vulkan_stream *stream,
                                     qi_vulkan_submission *submission)
{
    VkResult code = submit(vulkan, stream, submission);
    if (code) {
        if (submission) {
            release_earlier(vulkan, submission);
            qi_vulkan_submission_release(stream, submission);
        }
        return qi_vulkan_fail(code, "vkQueueSubmit to a stream");
    }
    stream->marked++;
    if (submission)
        append(stream, submission);
    return QUIRE_SUCCESS;
}
