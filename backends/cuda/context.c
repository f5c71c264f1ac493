/*
 * context.c - the context of a device, current for the calling thread while a call needs it.
 *
 * Contexts stand in a stack of each thread: what was current before a call is so again after it,
 * also where it was none.
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

/* ---- forks -------------------------------------------------------------------------------- */

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

void qi_cuda_fork_child(void *state, const uint64_t heap_bytes[QUIRE_MAX_HEAPS])
{
    qi_cuda *cuda = state;
    (void)heap_bytes;
    cuda->has_forked = true;
}

/* ---- the context -------------------------------------------------------------------------- */

quire_result qi_cuda_enter(const qi_cuda *cuda)
{
    quire_result result = qi_cuda_check_process(cuda);
    if (result)
        return result;
    qi_cu_result code = cuda->f.CtxPushCurrent(cuda->context);
    return code ? qi_cuda_fail(&cuda->f, code, "making the context current") : QUIRE_SUCCESS;
}

void qi_cuda_leave(const qi_cuda *cuda)
{
    qi_cu_context popped = NULL;
    cuda->f.CtxPopCurrent(&popped); /* can only fail where the driver is gone */
}
