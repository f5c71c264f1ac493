/*
 * stream_wrap.c - public functions that wrap a semaphore or a queue as a stream.
 */
#include "backends/vulkan/device.h"
#include "backends/vulkan/stream.h"
#include "src/base/result.h"

static quire_result check(const quire_vulkan_stream_options *options)
{
    const quire_vulkan_queue *queue = &options->queue;
    if (!queue->lock != !queue->unlock)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "the queue has only one of lock and unlock: give both or neither");
    if (!queue->queue && queue->lock)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "queue.lock is set without a queue");
    if (options->semaphore && queue->queue)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "semaphore and queue are both set: quire does not submit to a stream whose "
                       "semaphore the caller signals");
    return qi_check_unused(options, "quire_vulkan_stream_options");
}

quire_result quire_vulkan_stream_wrap(quire_device *device,
                                      const quire_vulkan_stream_options *options,
                                      quire_stream **stream)
{
    if (stream)
        *stream = NULL;
    if (!options || !stream)
        return qi_fail_null("quire_vulkan_stream_wrap", !options ? "options" : "stream");
    if (!qi_vulkan_of(device))
        return quire_last_result();
    quire_result result = check(options);
    if (result)
        return result;
    const qi_vulkan_stream_description description = {
        .semaphore = options->semaphore,
        .queue = options->queue,
        .name = options->name,
    };
    return quire_stream_wrap(device, &description, options->name, stream);
}

quire_result quire_vulkan_stream_get(const quire_stream *stream, VkSemaphore *semaphore)
{
    quire_stream_info info;
    if (semaphore)
        *semaphore = VK_NULL_HANDLE;
    if (!semaphore)
        return qi_fail_null("quire_vulkan_stream_get", "semaphore");
    quire_result result = quire_stream_get_info(stream, &info);
    if (result)
        return result;
    if (!qi_vulkan_of(info.device))
        return quire_last_result();
    if (info.capture)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "the stream is held: it has no semaphore");
    *semaphore = qi_vulkan_stream_of(quire_stream_native(stream))->semaphore;
    return QUIRE_SUCCESS;
}
