/*
 * device.c - a CUDA device as quire sees it: its description, budgets, its tables.
 */
#include <stdio.h>

#include "backends/cuda/cuda.h"
#include "backends/cuda/growth.h"
#include "src/base/log.h"
#include "src/base/result.h"

/* ---- describing --------------------------------------------------------------------------- */

/* What an intent gets is the first kind: pages of these cannot be handed out. */
static bool is_exportable(const qi_cuda *cuda)
{
    switch (cuda->kinds[0].page_kind) {
    case QUIRE_CUDA_PLAIN:
    case QUIRE_CUDA_HOST:
    case QUIRE_CUDA_MANAGED:
    case QUIRE_CUDA_TILES:
        return false;
    default:
        return cuda->offers.fd && cuda->offers.host_register;
    }
}

static quire_result cuda_describe(void *state, quire_device_info *info)
{
    const qi_cuda *cuda = state;
    snprintf(info->name, sizeof info->name, "%s", cuda->name);
    info->heap_count = 2;
    info->heaps[0] = (quire_heap){.size = cuda->device_bytes, .flags = QUIRE_HEAP_DEVICE_LOCAL};
    info->heaps[1] = (quire_heap){.size = cuda->host_bytes};
    info->kind_count = cuda->kind_count;
    for (uint32_t i = 0; i < cuda->kind_count; i++)
        info->kinds[i] = cuda->kinds[i].description;
    info->limits = (quire_limits){
        .page_granularity = cuda->kinds[0].granularity,
        .page_alignment = cuda->page_alignment,
        .buffer_alignment = QI_CUDA_ALIGNMENT,
        .image_row_alignment = cuda->offers.row_alignment,
    };
    for (uint32_t i = 0; i < cuda->kind_count; i++)
        if (qi_cuda_kind_grows(&cuda->kinds[i]))
            info->limits.elastic_kinds |= UINT64_C(1) << i;
    info->exportable = is_exportable(cuda);
    return QUIRE_SUCCESS;
}

/* Of the device's heap: what is free there is free for everybody. Kept handles are not in use. */
static quire_result cuda_heap_budget(void *state, uint32_t heap, quire_heap_budget *budget)
{
    qi_cuda *cuda = state;
    size_t free = 0, total = 0;
    if (heap != 0)
        return QUIRE_SUCCESS;
    quire_result result = qi_cuda_enter(cuda);
    if (result)
        return result;
    qi_cu_result code = cuda->f.MemGetInfo(&free, &total);
    qi_cuda_leave(cuda);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuMemGetInfo");
    pthread_mutex_lock(&cuda->mutex);
    uint64_t kept = cuda->kept_bytes;
    pthread_mutex_unlock(&cuda->mutex);
    uint64_t used = total > free ? total - free : 0;
    budget->budget = total;
    budget->usage = used > kept ? used - kept : 0;
    return QUIRE_SUCCESS;
}

/* ---- the end ------------------------------------------------------------------------------ */

/* In a forked child the records alone go: the parent's are still in use. */
static void cuda_destroy(void *state)
{
    qi_cuda *cuda = state;
    bool is_ours = !qi_cuda_has_forked(cuda);
    bool is_entered = is_ours && !cuda->f.CtxPushCurrent(cuda->context);
    qi_cuda_finish_streams(cuda, true);
    qi_cuda_finish_arrays(cuda, true);
    qi_cuda_finish_pages(cuda, true);
    bool all = qi_cuda_release_chunks(cuda);
    while (cuda->kept) { /* those that the driver did not take back */
        qi_cuda_chunk *chunk = cuda->kept;
        cuda->kept = chunk->next;
        qi_host_release(&cuda->host, chunk, 1, sizeof *chunk);
    }
    if (!all && is_ours)
        qi_log(&cuda->log, QUIRE_LOG_ERROR, "device '%s': the driver refused to take memory back",
               cuda->name);
    if (is_entered)
        qi_cuda_leave(cuda);
    qi_cuda_end(cuda);
}

/* ---- the table ---------------------------------------------------------------------------- */

#define CUDA_FEATURES                                                                              \
    (QUIRE_BACKEND_MAP | QUIRE_BACKEND_COPY_TO_PAGE | QUIRE_BACKEND_COPY_FROM_PAGE |               \
     QUIRE_BACKEND_FILL | QUIRE_BACKEND_IMAGES | QUIRE_BACKEND_BUDGET | QUIRE_BACKEND_STREAMS |    \
     QUIRE_BACKEND_STREAM_ORDER | QUIRE_BACKEND_STREAM_COPY | QUIRE_BACKEND_STREAM_FILL |          \
     QUIRE_BACKEND_COPY_PAGES | QUIRE_BACKEND_COPY_PEER | QUIRE_BACKEND_ROWS |                     \
     QUIRE_BACKEND_ELASTIC | QUIRE_BACKEND_FORK)

#define CUDA_FUNCTIONS                                                                             \
    .size = sizeof(quire_backend), .name = "cuda", .describe = cuda_describe,                      \
    .page_create = qi_cuda_page_create, .page_destroy = qi_cuda_page_destroy,                      \
    .destroy = cuda_destroy, .map = qi_cuda_page_map, .unmap = qi_cuda_page_unmap,                 \
    .copy_to_page = qi_cuda_copy_to_page, .copy_from_page = qi_cuda_copy_from_page,                \
    .fill_page = qi_cuda_fill_page, .image_requirements = qi_cuda_image_requirements,              \
    .heap_budget = cuda_heap_budget, .stream_create = qi_cuda_stream_create,                       \
    .stream_destroy = qi_cuda_stream_destroy, .stream_mark = qi_cuda_stream_mark,                  \
    .stream_passed = qi_cuda_stream_passed, .stream_await = qi_cuda_stream_await,                  \
    .stream_order = qi_cuda_stream_order, .stream_copy = qi_cuda_stream_copy,                      \
    .stream_fill = qi_cuda_stream_fill, .copy_pages = qi_cuda_copy_pages,                          \
    .copy_peer = qi_cuda_copy_peer, .page_resize = qi_cuda_page_resize,                            \
    .fork_prepare = qi_cuda_fork_prepare, .fork_done = qi_cuda_fork_done,                          \
    .fork_child = qi_cuda_fork_child

static const quire_backend CUDA_BACKEND = {.features = CUDA_FEATURES, CUDA_FUNCTIONS};

/* Of devices with tile pools. All others are spared a call for each buffer. */
static const quire_backend CUDA_BACKEND_WITH_ARRAYS = {
    .features = CUDA_FEATURES | QUIRE_BACKEND_OBJECTS,
    CUDA_FUNCTIONS,
    .object_create = qi_cuda_object_create,
    .object_bind = qi_cuda_object_bind,
    .object_destroy = qi_cuda_object_destroy,
};

static const quire_backend *choose_table(const qi_cuda *cuda)
{
    for (uint32_t i = 0; i < cuda->kind_count; i++)
        if (cuda->kinds[i].page_kind == QUIRE_CUDA_TILES)
            return &CUDA_BACKEND_WITH_ARRAYS;
    return &CUDA_BACKEND;
}

quire_result qi_cuda_make_device(qi_cuda *cuda, const quire_cuda_settings *settings,
                                 quire_device **device)
{
    quire_result result = qi_cuda_enter(cuda);
    if (result)
        return result;
    result = qi_cuda_probe(cuda);
    qi_cuda_leave(cuda);
    return result ? result
                  : quire_device_create(choose_table(cuda), cuda, &settings->device, device);
}

/* ---- whose is it -------------------------------------------------------------------------- */

qi_cuda *qi_cuda_of(const quire_device *device)
{
    const quire_backend *table = quire_device_backend(device);
    if (table && (table == &CUDA_BACKEND || table == &CUDA_BACKEND_WITH_ARRAYS)) {
        qi_cuda *cuda = quire_device_state(device);
        return qi_cuda_check_process(cuda) ? NULL : cuda;
    }
    qi_ignore(
        qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "the device is null, or not of the CUDA backend"));
    return NULL;
}

static quire_result refuse_memory(void)
{
    return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "the memory is not of the CUDA backend");
}

quire_result qi_cuda_of_memory(quire_memory *memory, quire_memory_info *info, qi_cuda **cuda)
{
    quire_result result = quire_memory_get_info(memory, info);
    if (result)
        return result;
    *cuda = qi_cuda_of(info->device);
    return *cuda ? QUIRE_SUCCESS : refuse_memory();
}

quire_result qi_cuda_native(quire_memory *memory, quire_allocation allocation, quire_native *native,
                            qi_cuda **cuda)
{
    quire_result result = quire_get_native(memory, allocation, native);
    if (result)
        return result;
    *cuda = qi_cuda_of(native->device);
    return *cuda ? QUIRE_SUCCESS : refuse_memory();
}
