/*
 * stream_wrap.c - the public calls on streams of the host backend. They validate their arguments
 * and call stream.c and stream_point.c.
 */
#include "backends/host/stream.h"
#include "src/base/result.h"

quire_result quire_host_stream_create(quire_device *device,
                                      const quire_host_stream_options *options,
                                      quire_stream **stream)
{
    if (stream)
        *stream = NULL;
    if (!stream)
        return qi_fail_null("quire_host_stream_create", "stream");
    const quire_host_stream_options requested = options ? *options : (quire_host_stream_options){0};
    quire_result result = qi_check_unused(&requested, "quire_host_stream_options");
    if (!result && !qi_host_of(device))
        result = QUIRE_ERROR_INVALID_ARGUMENT;
    if (result)
        return result;
    const qi_host_stream_description description = {.manual = requested.manual};
    return quire_stream_wrap(device, &description, requested.name, stream);
}

/* Finds the record of a stream. INVALID_ARGUMENT for a capture stream and for other backends. */
static quire_result find(quire_stream *stream, qi_host_device **device, qi_host_stream **found)
{
    quire_stream_info info;
    quire_result result = quire_stream_get_info(stream, &info);
    if (result)
        return result;
    *device = qi_host_of(info.device);
    if (!*device)
        return QUIRE_ERROR_INVALID_ARGUMENT;
    if (info.capture)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "the stream is held: no work runs on it");
    *found = (qi_host_stream *)(uintptr_t)quire_stream_native(stream);
    return QUIRE_SUCCESS;
}

/* Reports DEVICE_LOST also if the device was lost while jobs ran. */
quire_result quire_host_stream_run(quire_stream *stream, uint64_t most, uint64_t *done)
{
    qi_host_device *device = NULL;
    qi_host_stream *found = NULL;
    if (done)
        *done = 0;
    quire_result result = find(stream, &device, &found);
    if (result)
        return result;
    if (!found->is_manual)
        return qi_fail(QUIRE_ERROR_WRONG_STATE,
                       "the stream is not manual: its worker runs the jobs");
    uint64_t count = qi_host_stream_run(device, found, most);
    if (done)
        *done = count;
    return qi_host_check_lost(device);
}

quire_result quire_host_stream_submit(quire_stream *stream, void (*function)(void *user),
                                      void *user)
{
    qi_host_device *device = NULL;
    qi_host_stream *found = NULL;
    if (!function)
        return qi_fail_null("quire_host_stream_submit", "function");
    quire_result result = find(stream, &device, &found);
    return result ? result : qi_host_stream_submit_call(device, found, function, user);
}

quire_result quire_host_lose(quire_device *device)
{
    qi_host_device *host = qi_host_of(device);
    if (!host)
        return QUIRE_ERROR_INVALID_ARGUMENT;
    qi_host_streams_lose(host);
    return QUIRE_SUCCESS;
}
