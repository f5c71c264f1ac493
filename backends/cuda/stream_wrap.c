/*
 * stream_wrap.c - the public calls on streams of the CUDA backend.
 */
#include "backends/cuda/stream.h"
#include "src/base/result.h"

quire_result quire_cuda_stream_wrap(quire_device *device, void *native, const char *name,
                                    quire_stream **stream)
{
    if (stream)
        *stream = NULL;
    if (!stream)
        return qi_fail_null("quire_cuda_stream_wrap", "stream");
    if (!qi_cuda_of(device))
        return quire_last_result();
    const qi_cuda_stream_description description = {.stream = native};
    return quire_stream_wrap(device, &description, name, stream);
}

quire_result quire_cuda_stream_get(const quire_stream *stream, void **native)
{
    quire_stream_info info;
    if (native)
        *native = NULL;
    if (!native)
        return qi_fail_null("quire_cuda_stream_get", "native");
    quire_result result = quire_stream_get_info(stream, &info);
    if (result)
        return result;
    if (!qi_cuda_of(info.device))
        return quire_last_result();
    if (info.capture)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "a capture stream has no CUstream");
    const qi_cuda_stream *found = qi_cuda_stream_of(quire_stream_native(stream));
    if (qi_cuda_stream_is_foreign(found))
        return qi_fail(QUIRE_ERROR_NOT_PERMITTED,
                       "the stream is the default stream of another thread: its CUstream means "
                       "another stream here");
    *native = found->native;
    return QUIRE_SUCCESS;
}
