/*
 * stream.c - creates and destroys streams, and asks which of them capture. Points are
 * stream_point.c, copies and fills stream_copy.c.
 */
#include "backends/cuda/stream.h"

#include "src/base/atomic.h"
#include "src/base/result.h"

/* ---- default streams of threads ---------------------------------------------------------- */

/* The number of the calling thread. A thread that begins later gets another one. */
static uint64_t thread_number(void)
{
    static qi_atomic_u64 last;
    static _Thread_local uint64_t number;
    if (!number)
        number = qi_atomic_add_u64(&last, 1) + 1;
    return number;
}

bool qi_cuda_stream_is_foreign(const qi_cuda_stream *stream)
{
    return stream->owner && stream->owner != thread_number();
}

qi_cu_stream qi_cuda_stream_handle(const qi_cuda_stream *stream)
{
    return qi_cuda_stream_is_foreign(stream) ? NULL : stream->native;
}

/* ---- captures --------------------------------------------------------------------------- */

/*
 * All streams of all devices. A forked child leaves the list and its mutex as they are: CUDA does
 * not work there, so that it has no streams of its own.
 */
static pthread_mutex_t known_mutex = PTHREAD_MUTEX_INITIALIZER;
static qi_cuda_stream *known;

static void add_known(qi_cuda_stream *stream)
{
    pthread_mutex_lock(&known_mutex);
    stream->next_known = known;
    if (known)
        known->previous_known = stream;
    known = stream;
    pthread_mutex_unlock(&known_mutex);
}

static void remove_known(qi_cuda_stream *stream)
{
    pthread_mutex_lock(&known_mutex);
    if (stream->next_known)
        stream->next_known->previous_known = stream->previous_known;
    if (stream->previous_known)
        stream->previous_known->next_known = stream->next_known;
    else
        known = stream->next_known;
    pthread_mutex_unlock(&known_mutex);
}

/* Default streams of other threads need no question: they wait for the legacy default stream. */
bool qi_cuda_any_captures(const qi_cuda *cuda, qi_cu_device device)
{
    bool any = qi_cuda_is_capturing(cuda, NULL) ||
               qi_cuda_is_capturing(cuda, (qi_cu_stream)(uintptr_t)QI_CU_STREAM_PER_THREAD);
    pthread_mutex_lock(&known_mutex); /* so that no stream is destroyed before the question */
    for (const qi_cuda_stream *s = known; s && !any; s = s->next_known)
        any = s->cuda->device == device && !s->owner && qi_cuda_is_capturing(s->cuda, s->native);
    pthread_mutex_unlock(&known_mutex);
    return any;
}

/* Asks the driver before each call on the stream: an event that is recorded or queried during a
   capture would become part of the graph or invalidate it. */
quire_result qi_cuda_check_capture(const qi_cuda *cuda, const qi_cuda_stream *stream)
{
    qi_cu_capture_status status = QI_CU_STREAM_CAPTURE_STATUS_NONE;
    if (!cuda->f.StreamIsCapturing)
        return QUIRE_SUCCESS;
    qi_cu_result code = cuda->f.StreamIsCapturing(qi_cuda_stream_handle(stream), &status);
    if (code && code != QI_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
        return qi_cuda_fail(&cuda->f, code, "cuStreamIsCapturing");
    if (!code && status == QI_CU_STREAM_CAPTURE_STATUS_NONE)
        return QUIRE_SUCCESS;
    return quire_backend_fail(
        QUIRE_ERROR_NOT_PERMITTED, code,
        "the stream captures a graph, whose work does not run now: allocate and free the memory of "
        "the graph on a capture stream (quire_stream_options.capture)");
}

/* ---- creation and destruction ----------------------------------------------------------- */

/* Drivers that cannot say which device a stream has can say which its context has. */
static qi_cu_result device_of(const qi_cuda *cuda, qi_cu_stream stream, qi_cu_context context,
                              qi_cu_device *device)
{
    if (cuda->f.StreamGetDevice)
        return cuda->f.StreamGetDevice(stream, device);
    qi_cu_result code = cuda->f.CtxPushCurrent(context);
    if (code)
        return code;
    code = cuda->f.CtxGetDevice(device);
    cuda->f.CtxPopCurrent(&context);
    return code;
}

/*
 * The stream of a green context shares the memory and the events of its device's primary context.
 * Its own context is never the device's. Drivers without cuStreamGetGreenCtx have no green
 * contexts.
 */
static quire_result check_green(const qi_cuda *cuda, qi_cu_stream stream, qi_cu_context context)
{
    qi_cu_green green = NULL;
    qi_cu_device device = cuda->device;
    qi_cu_result code = QI_CUDA_SUCCESS;
    if (cuda->f.StreamGetGreenCtx)
        code = cuda->f.StreamGetGreenCtx(stream, &green);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuStreamGetGreenCtx");
    if (!green)
        return quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, 0,
                                  "the stream belongs to another context than the device");
    code = device_of(cuda, stream, context, &device);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "querying the device of a stream");
    return device == cuda->device
               ? QUIRE_SUCCESS
               : quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, 0,
                                    "the stream belongs to device %d, not to device %d", device,
                                    cuda->device);
}

/* INVALID_ARGUMENT for a stream that does not work with the memory of the device's context. The
   default streams are those of whichever context is current. */
static quire_result check_context(const qi_cuda *cuda, qi_cu_stream stream)
{
    qi_cu_context context = cuda->context;
    if ((uintptr_t)stream <= QI_CU_STREAM_PER_THREAD || !cuda->f.StreamGetCtx)
        return QUIRE_SUCCESS;
    qi_cu_result code = cuda->f.StreamGetCtx(stream, &context);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuStreamGetCtx");
    return context == cuda->context ? QUIRE_SUCCESS : check_green(cuda, stream, context);
}

/* Takes the caller's stream, or creates one that does not wait for the default stream. */
static quire_result find_native(const qi_cuda *cuda, const qi_cuda_stream_description *requested,
                                qi_cuda_stream *stream)
{
    quire_result result = qi_cuda_enter(cuda);
    if (result)
        return result;
    if (requested) {
        stream->native = requested->stream;
        if ((uintptr_t)stream->native == QI_CU_STREAM_PER_THREAD)
            stream->owner = thread_number();
        result = check_context(cuda, requested->stream);
    } else {
        qi_cu_result code = cuda->f.StreamCreate(&stream->native, QI_CU_STREAM_NON_BLOCKING);
        stream->is_own = !code;
        result = code ? qi_cuda_fail(&cuda->f, code, "cuStreamCreate") : QUIRE_SUCCESS;
    }
    qi_cuda_leave(cuda);
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
    stream->cuda = cuda;
    add_known(stream);
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

/* Returns false if the driver refused a step, or if the caller captures a graph in quire's stream;
   the rest can be retried. Running work is not affected. */
static bool destroy_native(qi_cuda *cuda, qi_cuda_stream *stream, bool has_driver, bool is_last)
{
    if (has_driver && stream->is_own && !is_last && qi_cuda_is_capturing(cuda, stream->native))
        return false;
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
        if (destroy_native(cuda, stream, has_driver, is_last) || is_last) {
            if (has_driver)
                remove_known(stream);
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
    bool is_entered = !qi_cuda_has_forked(cuda) && !qi_cuda_push(cuda);
    defer(cuda, qi_cuda_stream_of(number));
    qi_cuda_retry_deferred_streams(cuda, false);
    if (is_entered)
        qi_cuda_leave(cuda);
}
