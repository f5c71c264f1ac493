/*
 * await.c - waits for work before something is released, if the settings ask for it. Otherwise the
 * caller's frees mean that no work uses what is released, and nothing waits.
 *
 * cuCtxSynchronize invalidates every graph that a stream of the context captures, in all capture
 * modes. quire therefore asks all streams that it knows first, and does not wait while one of them
 * captures: the caller puts the release off. A capture that begins between the question and the
 * wait, or in a non-blocking stream that quire does not know, is not seen.
 */
#include "backends/cuda/page.h"
#include "backends/cuda/stream.h"

/* Waits for the work of the current context, which is of the device. */
static bool await_current(const qi_cuda *cuda, qi_cu_device device)
{
    if (qi_cuda_any_captures(cuda, device))
        return false;
    qi_cu_result code = cuda->f.CtxSynchronize();
    return !code || qi_cuda_is_lost(code);
}

bool qi_cuda_await_context(const qi_cuda *cuda)
{
    return !cuda->settings.wait_before_release || await_current(cuda, cuda->device);
}

/* ---- other devices ---------------------------------------------------------------------- */

/* A primary context that is not active has no work. */
static bool is_active(const qi_cuda *cuda, qi_cu_device device)
{
    unsigned flags = 0;
    int active = 1;
    return !cuda->f.DevicePrimaryCtxGetState ||
           cuda->f.DevicePrimaryCtxGetState(device, &flags, &active) || active;
}

/* Waits for the work of the primary context of another device. */
static bool await_device(const qi_cuda *cuda, qi_cu_device device)
{
    qi_cu_context context = NULL;
    if (!is_active(cuda, device))
        return true;
    qi_cu_result code = cuda->f.DevicePrimaryCtxRetain(&context, device);
    if (code)
        return qi_cuda_is_lost(code);
    code = cuda->f.CtxPushCurrent(context);
    bool is_done = code ? qi_cuda_is_lost(code) : await_current(cuda, device);
    if (!code)
        cuda->f.CtxPopCurrent(&context);
    cuda->f.DevicePrimaryCtxRelease(device);
    return is_done;
}

/* Pages that are not of virtual memory management may be accessible to every device. */
static bool has_access(const qi_cuda *cuda, const qi_cuda_page *page, qi_cu_device device)
{
    unsigned long long flags = 0;
    const qi_cu_location location = {.type = QI_CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
    return page->type != QI_CUDA_PAGE_VIRTUAL || !cuda->f.MemGetAccess ||
           cuda->f.MemGetAccess(&flags, &location, page->reserved) ||
           flags != QI_CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

/* ---- pages ------------------------------------------------------------------------------ */

/* Nothing is released for a borrowed page, and destroying an array waits for the work that uses its
   part of a tile pool. */
bool qi_cuda_await_work(const qi_cuda *cuda, const qi_cuda_page *page)
{
    int count = 0;
    if (!page->was_used || !cuda->settings.wait_before_release ||
        page->type == QI_CUDA_PAGE_BORROWED || page->type == QI_CUDA_PAGE_TILES)
        return true;
    if (!qi_cuda_await_context(cuda) || cuda->f.DeviceGetCount(&count))
        return false;
    for (qi_cu_device device = 0; device < count; device++)
        if (device != cuda->device && has_access(cuda, page, device) && !await_device(cuda, device))
            return false;
    return true;
}
