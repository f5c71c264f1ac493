/*
 * stream.c - entries of the backend table: creation and destruction of streams, points, order,
 * copies and fills. See stream.h.
 */
#include "backends/vulkan/stream.h"

#include "backends/vulkan/deferred_destroy.h"
#include "backends/vulkan/object.h"
#include "backends/vulkan/page.h"
#include "backends/vulkan/queue.h"
#include "backends/vulkan/result.h"
#include "src/base/result.h"

/* Maximum number of regions of one copy command. They are on the stack. */
enum { MAX_REGIONS = 128 };

/* vkCmdFillBuffer needs offsets and sizes that are multiples of 4. */
enum { FILL_WORD = 4 };

/* How long the destruction of a stream waits for its work, in nanoseconds. */
static const uint64_t DESTROY_TIMEOUT = UINT64_C(1000000000);

/* ---- creation -------------------------------------------------------------------------------- */

static quire_result check_timeline(const qi_vulkan *vulkan)
{
    return vulkan->enabled.timeline
               ? QUIRE_SUCCESS
               : quire_backend_fail(
                     QUIRE_ERROR_UNSUPPORTED, 0,
                     "streams need the feature timelineSemaphore of Vulkan 1.2 or of "
                     "VK_KHR_timeline_semaphore, which is not enabled");
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
    VkSemaphore created = VK_NULL_HANDLE;
    VkResult code = vulkan->f.CreateSemaphore(vulkan->device, &info, vulkan->callbacks, &created);
    if (code)
        return qi_vulkan_fail(code, "vkCreateSemaphore of a stream");
    qi_vulkan_set_name(vulkan, VK_OBJECT_TYPE_SEMAPHORE, QI_VULKAN_NUMBER(created), name);
    *out = created;
    return QUIRE_SUCCESS;
}

/* Sets queue and semaphore: the caller's semaphore, or an own semaphore with a queue, which is the
   caller's or the device's. */
static quire_result set_up(const qi_vulkan *vulkan, const qi_vulkan_stream_description *given,
                           qi_vulkan_stream *stream)
{
    if (given && given->semaphore) {
        stream->semaphore = given->semaphore;
        return QUIRE_SUCCESS;
    }
    stream->queue = given && given->queue.queue ? given->queue : vulkan->queue;
    if (!stream->queue.queue)
        return quire_backend_fail(
            QUIRE_ERROR_UNSUPPORTED, 0,
            "the device was wrapped without a queue: a stream needs a queue, or "
            "a semaphore that the caller signals");
    quire_result result = make_semaphore(vulkan, given ? given->name : NULL, &stream->semaphore);
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

/* ---- destruction ----------------------------------------------------------------------------- */

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

/*
 * Waits at most a second for the submissions of a stream with an own semaphore. They may wait for a
 * value that the caller never signals; after the timeout the stream is destroyed later. After a
 * device loss, or if all waits fail, it is destroyed immediately.
 */
void qi_vulkan_stream_destroy(void *state, uint64_t number)
{
    qi_vulkan *vulkan = state;
    qi_vulkan_stream *stream = qi_vulkan_stream_of(number);
    VkResult code = stream->is_own && stream->marked ? VK_ERROR_UNKNOWN : VK_SUCCESS;
    for (int i = 0;
         i < QI_VULKAN_MAX_WAITS && code && code != VK_TIMEOUT && code != VK_ERROR_DEVICE_LOST; i++)
        code = wait_for(vulkan, stream, stream->marked, DESTROY_TIMEOUT);
    if (code == VK_TIMEOUT)
        qi_vulkan_defer_stream(vulkan, stream);
    else
        qi_vulkan_stream_destroy_now(vulkan, stream);
}

/* ---- points ---------------------------------------------------------------------------------- */

/* UNSUPPORTED if the caller signals the semaphore of the stream. */
static quire_result check_own(const qi_vulkan_stream *stream)
{
    return stream->is_own
               ? QUIRE_SUCCESS
               : quire_backend_fail(
                     QUIRE_ERROR_UNSUPPORTED, 0,
                     "the stream is a semaphore that the caller signals: quire cannot submit "
                     "to it");
}

/* An empty submission: its value is signalled after everything submitted to the queue before. */
quire_result qi_vulkan_stream_mark(void *state, uint64_t number, uint64_t *value)
{
    qi_vulkan *vulkan = state;
    qi_vulkan_stream *stream = qi_vulkan_stream_of(number);
    quire_result result = check_own(stream);
    if (result)
        return result;
    pthread_mutex_lock(&stream->mutex);
    result = qi_vulkan_stream_submit(vulkan, stream, NULL);
    *value = stream->marked;
    pthread_mutex_unlock(&stream->mutex);
    return result;
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

/* ---- order ----------------------------------------------------------------------------------- */

/*
 * Submits a wait for a point of another stream. Everything submitted to the queue later, by quire
 * or by the caller, is executed after it. Nothing is submitted if the point has passed already. The
 * submission holds a reference to the other stream.
 */
quire_result qi_vulkan_stream_order(void *state, uint64_t later, uint64_t earlier, uint64_t value)
{
    qi_vulkan *vulkan = state;
    qi_vulkan_stream *stream = qi_vulkan_stream_of(later);
    qi_vulkan_stream *awaited = qi_vulkan_stream_of(earlier);
    qi_vulkan_submission *submission = NULL;
    uint64_t passed = 0;
    quire_result result = check_own(stream);
    if (!result)
        result = qi_vulkan_stream_counter(vulkan, awaited, &passed);
    if (result || passed >= value)
        return result;
    pthread_mutex_lock(&stream->mutex);
    result = qi_vulkan_submission_acquire(vulkan, stream, &submission);
    if (!result) {
        submission->earlier = awaited;
        submission->until = value;
        qi_atomic_add_u64(&awaited->references, 1);
        result = qi_vulkan_stream_submit(vulkan, stream, submission);
    }
    pthread_mutex_unlock(&stream->mutex);
    return result;
}

/* ---- work ------------------------------------------------------------------------------------ */

/* The work of one submission: a copy between two buffers, or a fill. */
typedef struct work {
    VkBuffer to, from;         /* VK_NULL_HANDLE: a fill */
    const quire_copy_job *job; /* of a copy */
    uint64_t offset, size;     /* of a fill */
    uint32_t word;
} work;

/* Records one region for each row, in commands of at most MAX_REGIONS regions. */
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
    quire_result result = qi_vulkan_submission_begin(vulkan, stream, submission);
    if (result)
        return result;
    if (w->from)
        record_copies(vulkan, submission->commands, w);
    else
        vulkan->f.CmdFillBuffer(submission->commands, w->to, w->offset, w->size, w->word);
    return qi_vulkan_submission_end(vulkan, submission);
}

/* Records the work and submits it. */
static quire_result run(qi_vulkan *vulkan, qi_vulkan_stream *stream, const work *w)
{
    qi_vulkan_submission *submission = NULL;
    pthread_mutex_lock(&stream->mutex);
    quire_result result = qi_vulkan_submission_acquire(vulkan, stream, &submission);
    if (!result) {
        result = record(vulkan, stream, submission, w);
        if (result)
            qi_vulkan_submission_release(stream, submission);
        else
            result = qi_vulkan_stream_submit(vulkan, stream, submission);
    }
    pthread_mutex_unlock(&stream->mutex);
    return result;
}

/* Whether a page of a copy job belongs to another device. NULL means this one. */
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
    quire_result result = check_own(stream);
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
                                  "on a stream Vulkan fills only whole words of 4 bytes");
    quire_result result = check_own(stream);
    if (!result)
        result = qi_vulkan_page_buffer(vulkan, page, &w.to);
    return result ? result : run(vulkan, stream, &w);
}
