/*
 * stream.c - see stream.h: making and ending streams, their points, order, copies and fills.
 */
#include "backends/vulkan/stream.h"

#include "backends/vulkan/staging.h"
#include "src/base/result.h"

/* Regions of one command, on the stack. */
enum { MAX_REGIONS = 128 };

/* vkCmdFillBuffer works on whole words. */
enum { FILL_WORD = 4 };

/* Times that a failed wait is tried: see qi_vulkan_wait. */
enum { MAX_WAITS = 8 };

/* That the end of a stream waits for what runs on it, in nanoseconds. */
static const uint64_t MAX_END = UINT64_C(1000000000);

/* ---- making ------------------------------------------------------------------------------- */

static quire_result check_timeline(const qi_vulkan *vulkan)
{
    return vulkan->enabled.timeline
               ? QUIRE_SUCCESS
               : quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                    "streams want timeline semaphores: the feature "
                                    "timelineSemaphore of Vulkan 1.2 or VK_KHR_timeline_semaphore, "
                                    "which is not enabled");
}

static quire_result make_semaphore(const qi_vulkan *vulkan, const char *name, VkSemaphore *out)
{
    const VkSemaphoreTypeCreateInfo type = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
        .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE,
    };
    const VkSemaphoreCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
        .pNext = &type,
    };
    VkSemaphore made = VK_NULL_HANDLE;
    VkResult code = vulkan->f.CreateSemaphore(vulkan->device, &info, vulkan->callbacks, &made);
    if (code)
        return qi_vulkan_fail(code, "vkCreateSemaphore of a stream");
    qi_vulkan_name(vulkan, VK_OBJECT_TYPE_SEMAPHORE, QI_VULKAN_NUMBER(made), name);
    *out = made;
    return QUIRE_SUCCESS;
}

/* Its queue and semaphore, or those of the caller's. */
static quire_result set_up(const qi_vulkan *vulkan, const qi_vulkan_stream_description *asked,
                           qi_vulkan_stream *stream)
{
    if (asked && asked->semaphore) {
        stream->semaphore = asked->semaphore;
        return QUIRE_SUCCESS;
    }
    stream->queue = asked && asked->queue.queue ? asked->queue : vulkan->queue;
    if (!stream->queue.queue)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "the device was wrapped without a queue: a stream needs one, or "
                                  "a semaphore that the caller signals");
    quire_result result = make_semaphore(vulkan, asked ? asked->name : NULL, &stream->semaphore);
    stream->is_own = !result;
    return result;
}

quire_result qi_vulkan_stream_create(void *state, const void *description, uint64_t *out)
{
    qi_vulkan *vulkan = state;
    quire_result result = check_timeline(vulkan);
    if (result)
        return result;
    qi_vulkan_stream *stream = qi_host_allocate(&vulkan->host, 1, sizeof *stream);
    if (!stream)
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0, "no host memory for a stream");
    result = set_up(vulkan, description, stream);
    if (result) {
        qi_host_release(&vulkan->host, stream, 1, sizeof *stream);
        return result;
    }
    qi_atomic_init_u64(&stream->references, 1);
    pthread_mutex_init(&stream->mutex, NULL);
    *out = (uintptr_t)stream;
    return QUIRE_SUCCESS;
}

/* ---- ending ------------------------------------------------------------------------------- */

void qi_vulkan_stream_drop(qi_vulkan *vulkan, qi_vulkan_stream *stream)
{
    if (qi_atomic_drop_u64(&stream->references) != 1)
        return;
    if (stream->is_own)
        vulkan->f.DestroySemaphore(vulkan->device, stream->semaphore, vulkan->callbacks);
    pthread_mutex_destroy(&stream->mutex);
    qi_host_release(&vulkan->host, stream, 1, sizeof *stream);
}

static VkResult wait_for(const qi_vulkan *vulkan, const qi_vulkan_stream *stream, uint64_t value,
                         uint64_t nanoseconds)
{
    const VkSemaphoreWaitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
        .semaphoreCount = 1,
        .pSemaphores = &stream->semaphore,
        .pValues = &value,
    };
    return vulkan->f.WaitSemaphores(vulkan->device, &info, nanoseconds);
}

void qi_vulkan_stream_finish(qi_vulkan *vulkan, qi_vulkan_stream *stream)
{
    qi_vulkan_stream_clear(vulkan, stream);
    qi_vulkan_stream_drop(vulkan, stream);
}

/*
 * What runs on a stream of quire's own is waited for, a second at most: it may stand behind a value
 * that the caller never signals, and then goes later. With the device lost nothing runs.
 */
void qi_vulkan_stream_destroy(void *state, uint64_t number)
{
    qi_vulkan *vulkan = state;
    qi_vulkan_stream *stream = qi_vulkan_stream_of(number);
    VkResult code = stream->is_own && stream->marked ? VK_ERROR_UNKNOWN : VK_SUCCESS;
    for (int i = 0; i < MAX_WAITS && code && code != VK_TIMEOUT && code != VK_ERROR_DEVICE_LOST;
         i++)
        code = wait_for(vulkan, stream, stream->marked, MAX_END);
    if (code == VK_TIMEOUT)
        qi_vulkan_late_end(vulkan, stream);
    else
        qi_vulkan_stream_finish(vulkan, stream);
}

/* ---- points ------------------------------------------------------------------------------- */

quire_result qi_vulkan_stream_check_own(const qi_vulkan_stream *stream)
{
    return stream->is_own
               ? QUIRE_SUCCESS
               : quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                    "the stream is a semaphore that the caller signals: nothing is "
                                    "submitted to it here");
}

quire_result qi_vulkan_stream_mark(void *state, uint64_t number, uint64_t *value)
{
    qi_vulkan *vulkan = state;
    qi_vulkan_stream *stream = qi_vulkan_stream_of(number);
    quire_result result = qi_vulkan_stream_check_own(stream);
    if (result)
        return result;
    pthread_mutex_lock(&stream->mutex);
    result = qi_vulkan_stream_submit(vulkan, stream, NULL);
    *value = stream->marked;
    pthread_mutex_unlock(&stream->mutex);
    return result;
}

quire_result qi_vulkan_stream_counter(const qi_vulkan *vulkan, const qi_vulkan_stream *stream,
                                      uint64_t *value)
{
    VkResult code = vulkan->f.GetSemaphoreCounterValue(vulkan->device, stream->semaphore, value);
    return code ? qi_vulkan_fail(code, "vkGetSemaphoreCounterValue") : QUIRE_SUCCESS;
}

quire_result qi_vulkan_stream_passed(void *state, uint64_t number, uint64_t *value)
{
    return qi_vulkan_stream_counter(state, qi_vulkan_stream_of(number), value);
}

quire_result qi_vulkan_stream_await(void *state, uint64_t number, uint64_t value,
                                    uint64_t nanoseconds, bool *has_passed)
{
    VkResult code = wait_for(state, qi_vulkan_stream_of(number), value, nanoseconds);
    *has_passed = code == VK_SUCCESS;
    return code && code != VK_TIMEOUT ? qi_vulkan_fail(code, "vkWaitSemaphores") : QUIRE_SUCCESS;
}

/* ---- order -------------------------------------------------------------------------------- */

/* Submits the wait at once: what is submitted to the queue later, by whomever, comes behind it. */
quire_result qi_vulkan_stream_order(void *state, uint64_t later, uint64_t earlier, uint64_t value)
{
    qi_vulkan *vulkan = state;
    qi_vulkan_stream *stream = qi_vulkan_stream_of(later);
    qi_vulkan_stream *awaited = qi_vulkan_stream_of(earlier);
    qi_vulkan_submission *submission = NULL;
    uint64_t passed = 0;
    quire_result result = qi_vulkan_stream_check_own(stream);
    if (!result)
        result = qi_vulkan_stream_counter(vulkan, awaited, &passed);
    if (result || passed >= value)
        return result;
    pthread_mutex_lock(&stream->mutex);
    result = qi_vulkan_stream_take(vulkan, stream, &submission);
    if (!result) {
        submission->earlier = awaited;
        submission->until = value;
        qi_atomic_add_u64(&awaited->references, 1);
        result = qi_vulkan_stream_submit(vulkan, stream, submission);
    }
    pthread_mutex_unlock(&stream->mutex);
    return result;
}

/* ---- work --------------------------------------------------------------------------------- */

/* What one submission does: a copy between two buffers, or a fill. */
typedef struct work {
    VkBuffer to, from;         /* VK_NULL_HANDLE: a fill */
    const quire_copy_job *job; /* of a copy */
    uint64_t offset, size;     /* of a fill */
    uint32_t word;
} work;

static void record_copies(const qi_vulkan *vulkan, VkCommandBuffer commands, const work *w)
{
    const quire_copy_job *job = w->job;
    VkBufferCopy regions[MAX_REGIONS];
    uint32_t count = 0;
    for (uint64_t slice = 0; slice < job->slices; slice++)
        for (uint64_t row = 0; row < job->rows; row++) {
            regions[count++] = (VkBufferCopy){
                .srcOffset = job->from_offset + slice * job->from_slice + row * job->from_row,
                .dstOffset = job->to_offset + slice * job->to_slice + row * job->to_row,
                .size = job->size,
            };
            bool is_last = slice + 1 == job->slices && row + 1 == job->rows;
            if (count < MAX_REGIONS && !is_last)
                continue;
            vulkan->f.CmdCopyBuffer(commands, w->from, w->to, count, regions);
            count = 0;
        }
}

static quire_result record(qi_vulkan *vulkan, const qi_vulkan_stream *stream,
                           qi_vulkan_submission *submission, const work *w)
{
    quire_result result = qi_vulkan_stream_begin(vulkan, stream, submission);
    if (result)
        return result;
    if (w->from)
        record_copies(vulkan, submission->commands, w);
    else
        vulkan->f.CmdFillBuffer(submission->commands, w->to, w->offset, w->size, w->word);
    return qi_vulkan_stream_end(vulkan, submission);
}

static quire_result run(qi_vulkan *vulkan, qi_vulkan_stream *stream, const work *w)
{
    qi_vulkan_submission *submission = NULL;
    pthread_mutex_lock(&stream->mutex);
    quire_result result = qi_vulkan_stream_take(vulkan, stream, &submission);
    if (!result) {
        result = record(vulkan, stream, submission, w);
        if (result)
            qi_vulkan_stream_put(stream, submission);
        else
            result = qi_vulkan_stream_submit(vulkan, stream, submission);
    }
    pthread_mutex_unlock(&stream->mutex);
    return result;
}

static bool is_of_another(const qi_vulkan *vulkan, const void *named)
{
    return named && named != vulkan;
}

quire_result qi_vulkan_stream_copy(void *state, uint64_t number, const quire_copy_job *job)
{
    qi_vulkan *vulkan = state;
    qi_vulkan_stream *stream = qi_vulkan_stream_of(number);
    work w = {.job = job};
    if (!job->to || !job->from)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "the Vulkan backend copies between pages on a stream, not "
                                  "between a page and host memory");
    if (is_of_another(vulkan, job->to_state) || is_of_another(vulkan, job->from_state))
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "the Vulkan backend does not copy between devices");
    quire_result result = qi_vulkan_stream_check_own(stream);
    if (!result)
        result = qi_vulkan_page_buffer(vulkan, job->to, &w.to);
    if (!result)
        result = qi_vulkan_page_buffer(vulkan, job->from, &w.from);
    return result ? result : run(vulkan, stream, &w);
}

quire_result qi_vulkan_stream_fill(void *state, uint64_t number, const quire_native_page *page,
                                   uint64_t offset, uint64_t size, uint8_t value)
{
    qi_vulkan *vulkan = state;
    qi_vulkan_stream *stream = qi_vulkan_stream_of(number);
    work w = {.offset = offset, .size = size, .word = value * UINT32_C(0x01010101)};
    if (offset % FILL_WORD || size % FILL_WORD)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "Vulkan fills whole words of 4 bytes on a stream");
    quire_result result = qi_vulkan_stream_check_own(stream);
    if (!result)
        result = qi_vulkan_page_buffer(vulkan, page, &w.to);
    return result ? result : run(vulkan, stream, &w);
}
