/*
 * stream.c - creates and destroys streams, and enters the context for calls on them. Points are
 * stream_point.c, copies and fills stream_copy.c.
 */
#include "backends/cuda/stream.h"

#include <time.h>

#include "src/base/clock.h"
#include "src/base/result.h"

/* ---- in the context --------------------------------------------------------------------- */

/* Works without the mode change on drivers that lack the function. */
quire_result qi_cuda_stream_enter(const qi_cuda *cuda, qi_cuda_stream_scope *scope)
{
    *scope = (qi_cuda_stream_scope){.mode = QI_CU_STREAM_CAPTURE_MODE_RELAXED};
    quire_result result = qi_cuda_enter(cuda);
    if (!result && cuda->f.ThreadExchangeStreamCaptureMode)
        scope->is_changed = !cuda->f.ThreadExchangeStreamCaptureMode(&scope->mode);
    return result;
}

void qi_cuda_stream_leave(const qi_cuda *cuda, qi_cuda_stream_scope *scope)
{
    if (scope->is_changed)
        cuda->f.ThreadExchangeStreamCaptureMode(&scope->mode);
    qi_cuda_leave(cuda);
}

/* Asks the driver before each call on the stream: an event that is recorded or queried during a
   capture would become part of the graph or invalidate it. */
quire_result qi_cuda_check_capture(const qi_cuda *cuda, const qi_cuda_stream *stream)
{
    qi_cu_capture_status status = QI_CU_STREAM_CAPTURE_STATUS_NONE;
    if (!cuda->f.StreamIsCapturing)
        return QUIRE_SUCCESS;
    qi_cu_result code = cuda->f.StreamIsCapturing(stream->native, &status);
    if (code && code != QI_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
        return qi_cuda_fail(&cuda->f, code, "cuStreamIsCapturing");
    if (!code && status == QI_CU_STREAM_CAPTURE_STATUS_NONE)
        return QUIRE_SUCCESS;
    return quire_backend_fail(
        QUIRE_ERROR_NOT_PERMITTED, code,
        "the stream captures a graph, whose work does not run now: allocate and free the memory of "
        "the graph on a capture stream (quire_stream_options.held)");
}

/* ---- creation and destruction ----------------------------------------------------------- */

/*
 * INVALID_ARGUMENT for a stream of another context. Only the driver knows the context of a stream.
 */
static quire_result check_context(const qi_cuda *cuda, qi_cu_stream stream)
{
    qi_cu_context context = cuda->context;
    if (!stream || (uintptr_t)stream == QI_CU_STREAM_LEGACY || !cuda->f.StreamGetCtx)
        return QUIRE_SUCCESS;
    qi_cu_result code = cuda->f.StreamGetCtx(stream, &context);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuStreamGetCtx");
    return context == cuda->context
               ? QUIRE_SUCCESS
               : quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, 0,
                                    "the stream belongs to another context than the device");
}

/* Takes the caller's stream, or creates one that does not wait for the default stream. */
static quire_result find_native(const qi_cuda *cuda, const qi_cuda_stream_description *requested,
                                qi_cuda_stream *stream)
{
    qi_cuda_stream_scope scope;
    quire_result result = qi_cuda_stream_enter(cuda, &scope);
    if (result)
        return result;
    if (requested) {
        stream->native = requested->stream;
        result = check_context(cuda, requested->stream);
    } else {
        qi_cu_result code = cuda->f.StreamCreate(&stream->native, QI_CU_STREAM_NON_BLOCKING);
        stream->is_own = !code;
        result = code ? qi_cuda_fail(&cuda->f, code, "cuStreamCreate") : QUIRE_SUCCESS;
    }
    qi_cuda_stream_leave(cuda, &scope);
    return result;
}

quire_result qi_cuda_stream_create(void *state, const void *description, uint64_t *out)
{
    qi_cuda *cuda = state;
    qi_cuda_stream *stream = qi_host_allocate(&cuda->host, 1, sizeof *stream);
    if (!stream)
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0, "no host memory for a stream");
    quire_result result = find_native(cuda, description, stream);
    if (result) {
        qi_host_release(&cuda->host, stream, 1, sizeof *stream);
        return result;
    }
    pthread_mutex_init(&stream->mutex, NULL);
    *out = (uintptr_t)stream;
    return QUIRE_SUCCESS;
}

/* Returns true if the driver destroyed the object, or is gone and has none. */
static bool is_ended(qi_cu_result code)
{
    return !code || qi_cuda_is_lost(code);
}

/*
 * Destroys a list of marks; without the driver only their records. False: the driver refused one.
 */
static bool destroy_marks(qi_cuda *cuda, qi_cuda_mark **marks, bool has_driver)
{
    while (*marks) {
        qi_cuda_mark *mark = *marks;
        if (has_driver && !is_ended(cuda->f.EventDestroy(mark->event)))
            return false;
        *marks = mark->next;
        qi_host_release(&cuda->host, mark, 1, sizeof *mark);
    }
    return true;
}

/* Returns false if the driver refused a step; the rest can be retried. Running work is not
   affected. */
static bool destroy_native(qi_cuda *cuda, qi_cuda_stream *stream, bool has_driver)
{
    if (!destroy_marks(cuda, &stream->first, has_driver) ||
        !destroy_marks(cuda, &stream->spare, has_driver))
        return false;
    if (!stream->is_own || !has_driver)
        return true;
    stream->is_own = !is_ended(cuda->f.StreamDestroy(stream->native));
    return !stream->is_own;
}

static void release_record(qi_cuda *cuda, qi_cuda_stream *stream)
{
    pthread_mutex_destroy(&stream->mutex);
    qi_host_release(&cuda->host, stream, 1, sizeof *stream);
}

static qi_cuda_stream *take_deferred(qi_cuda *cuda)
{
    pthread_mutex_lock(&cuda->mutex);
    qi_cuda_stream *list = cuda->deferred_streams;
    cuda->deferred_streams = NULL;
    pthread_mutex_unlock(&cuda->mutex);
    return list;
}

static void defer(qi_cuda *cuda, qi_cuda_stream *stream)
{
    pthread_mutex_lock(&cuda->mutex);
    stream->next = cuda->deferred_streams;
    cuda->deferred_streams = stream;
    pthread_mutex_unlock(&cuda->mutex);
}

/* In a forked child only the records are released. */
void qi_cuda_retry_deferred_streams(qi_cuda *cuda, bool is_last)
{
    bool has_driver = !qi_cuda_has_forked(cuda);
    qi_cuda_stream *stream = take_deferred(cuda);
    while (stream) {
        qi_cuda_stream *next = stream->next;
        if (destroy_native(cuda, stream, has_driver) || is_last) {
            destroy_marks(cuda, &stream->first, false);
            destroy_marks(cuda, &stream->spare, false);
            release_record(cuda, stream);
        } else {
            defer(cuda, stream);
        }
        stream = next;
    }
}

/* Defers the stream and retries the list, so that one path handles both. */
void qi_cuda_stream_destroy(void *state, uint64_t number)
{
    qi_cuda *cuda = state;
    bool is_entered = !qi_cuda_has_forked(cuda) && !cuda->f.CtxPushCurrent(cuda->context);
    defer(cuda, qi_cuda_stream_of(number));
    qi_cuda_retry_deferred_streams(cuda, false);
    if (is_entered)
        qi_cuda_leave(cuda);
}
