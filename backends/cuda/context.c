/*
 * context.c - the context of a device: current on the calling thread while a call needs it, and the
 * rules for forks and captures.
 *
 * Each thread has a stack of contexts. Pushing and popping restores the context that was current
 * before a call, also if there was none.
 *
 * While a stream captures a graph, the driver refuses calls that a graph could not contain, such as
 * cuMemAlloc or cuEventQuery, and invalidates the graph. Nothing that quire does belongs into a
 * caller's graph, so every call of quire runs in the relaxed capture mode, which permits them.
 */
#include "backends/cuda/cuda.h"

bool qi_cuda_has_forked(const qi_cuda *cuda)
{
    return cuda->has_forked;
}

quire_result qi_cuda_check_process(const qi_cuda *cuda)
{
    if (!qi_cuda_has_forked(cuda))
        return QUIRE_SUCCESS;
    return quire_backend_fail(
        QUIRE_ERROR_NOT_PERMITTED, 0,
        "the device was opened before a fork: CUDA does not work in the child");
}

/* ---- forks ------------------------------------------------------------------------------ */

/* The fork holds the mutex, so that the child finds the lists of the state consistent. */
void qi_cuda_fork_prepare(void *state)
{
    qi_cuda *cuda = state;
    pthread_mutex_lock(&cuda->mutex);
}

void qi_cuda_fork_done(void *state)
{
    qi_cuda *cuda = state;
    pthread_mutex_unlock(&cuda->mutex);
}

/* CUDA does not work in a forked child: from now on no call of the driver is made here. */
void qi_cuda_fork_child(void *state, const uint64_t heap_bytes[QUIRE_MAX_HEAPS])
{
    qi_cuda *cuda = state;
    (void)heap_bytes;
    cuda->has_forked = true;
}

/* ---- the context ------------------------------------------------------------------------ */

/* How often the calling thread has entered contexts and not left them, and its capture mode before
   the first time. */
static _Thread_local struct {
    uint32_t depth;
    bool is_changed; /* false: the driver lacks modes */
    qi_cu_capture_mode mode;
} thread;

qi_cu_result qi_cuda_push(const qi_cuda *cuda)
{
    qi_cu_result code = cuda->f.CtxPushCurrent(cuda->context);
    if (code || thread.depth++ || !cuda->f.ThreadExchangeStreamCaptureMode)
        return code;
    thread.mode = QI_CU_STREAM_CAPTURE_MODE_RELAXED;
    thread.is_changed = !cuda->f.ThreadExchangeStreamCaptureMode(&thread.mode);
    return QI_CUDA_SUCCESS;
}

quire_result qi_cuda_enter(const qi_cuda *cuda)
{
    quire_result result = qi_cuda_check_process(cuda);
    if (result)
        return result;
    qi_cu_result code = qi_cuda_push(cuda);
    return code ? qi_cuda_fail(&cuda->f, code, "cuCtxPushCurrent") : QUIRE_SUCCESS;
}

void qi_cuda_leave(const qi_cuda *cuda)
{
    qi_cu_context popped = NULL;
    if (!--thread.depth && thread.is_changed) {
        cuda->f.ThreadExchangeStreamCaptureMode(&thread.mode);
        thread.is_changed = false;
    }
    cuda->f.CtxPopCurrent(&popped); /* fails only if the driver has shut down */
}

/* ---- captures --------------------------------------------------------------------------- */

/* The legacy default stream answers IMPLICIT while a stream that waits for it captures. */
bool qi_cuda_is_capturing(const qi_cuda *cuda, qi_cu_stream stream)
{
    qi_cu_capture_status status = QI_CU_STREAM_CAPTURE_STATUS_NONE;
    if (!cuda->f.StreamIsCapturing)
        return false;
    qi_cu_result code = cuda->f.StreamIsCapturing(stream, &status);
    return code ? code == QI_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
                : status != QI_CU_STREAM_CAPTURE_STATUS_NONE;
}

quire_result qi_cuda_enter_default(const qi_cuda *cuda)
{
    quire_result result = qi_cuda_enter(cuda);
    if (result || !qi_cuda_is_capturing(cuda, NULL))
        return result;
    qi_cuda_leave(cuda);
    return quire_backend_fail(
        QUIRE_ERROR_NOT_PERMITTED, QI_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
        "a stream that waits for the default stream captures a graph, so the default stream "
        "cannot be used now: copy and fill on a stream of quire's own, or after the capture");
}
