/*
 * stream.c - entries of the backend table: creation and destruction of streams, points and
 * order. See stream.h.
 */
#include "backends/vulkan/stream.h"

#include "backends/vulkan/deferred_destroy.h"
#include "backends/vulkan/functions.h"
#include "backends/vulkan/object.h"
#include "backends/vulkan/queues.h"
#include "src/base/result.h"

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

VkResult qi_vulkan_stream_wait(const qi_vulkan *vulkan, const qi_vulkan_stream *stream,
                               uint64_t value, uint64_t nanoseconds)
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
        code = qi_vulkan_stream_wait(vulkan, stream, stream->marked, DESTROY_TIMEOUT);
    if (code == VK_TIMEOUT)
        qi_vulkan_defer_stream(vulkan, stream);
    else
        qi_vulkan_stream_destroy_now(vulkan, stream);
}

/* ---- points ---------------------------------------------------------------------------------- */

quire_result qi_vulkan_stream_check_own(const qi_vulkan *vulkan, const qi_vulkan_stream *stream)
{
    return stream->is_own
               ? qi_vulkan_check_queue(vulkan)
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
    quire_result result = qi_vulkan_stream_check_own(vulkan, stream);
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
    VkResult code = qi_vulkan_stream_wait(state, qi_vulkan_stream_of(number), value, nanoseconds);
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
    quire_result result = qi_vulkan_stream_check_own(vulkan, stream);
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
