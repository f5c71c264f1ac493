/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * table.c - the two function tables of the CUDA backend: without tile pools a device has no object
 * functions, which saves a call per buffer. Also opens a device, and ends it.
 */
#include "backends/cuda/array.h"
#include "backends/cuda/copy.h"
#include "backends/cuda/device.h"
#include "backends/cuda/open.h"
#include "backends/cuda/page.h"
#include "backends/cuda/pool.h"
#include "backends/cuda/stream.h"
#include "backends/cuda/virtual.h"
#include "src/base/log.h"
#include "src/base/result.h"

/* ---- destruction -------------------------------------------------------------------------- */

static void end_streams(qi_cuda *cuda)
{
    if (cuda->array_stream)
        qi_cuda_stream_destroy(cuda, cuda->array_stream);
    qi_cuda_retry_deferred_streams(cuda, true);
}

/* The core has destroyed all pages, objects and streams. Retries what the driver refused for the
   last time. A forked child releases records only, because the parent still uses the objects. */
static void cuda_destroy(void *state)
{
    qi_cuda *cuda = state;
    bool is_ours = !qi_cuda_has_forked(cuda);
    bool is_entered = is_ours && !qi_cuda_push(cuda);
    qi_cuda_retry_deferred_arrays(cuda, true);
    end_streams(cuda);
    qi_cuda_retry_deferred_pages(cuda, true);
    bool all = qi_cuda_release_kept_chunks(cuda);
    while (cuda->kept) { /* the driver refused to release these */
        qi_cuda_chunk *chunk = cuda->kept;
        cuda->kept = chunk->next;
        qi_host_release(&cuda->host, chunk, 1, sizeof *chunk);
    }
    if (!all && is_ours)
        qi_log(&cuda->log, QUIRE_LOG_ERROR, "device '%s': the driver refused to release memory",
               cuda->name);
    if (is_entered)
        qi_cuda_leave(cuda);
    qi_cuda_pool_close(cuda);
    qi_cuda_release_state(cuda);
}

/* ---- the tables --------------------------------------------------------------------------- */

#define CUDA_FEATURES                                                                              \
    (QUIRE_BACKEND_MAP | QUIRE_BACKEND_COPY_TO_PAGE | QUIRE_BACKEND_COPY_FROM_PAGE |               \
     QUIRE_BACKEND_FILL | QUIRE_BACKEND_IMAGES | QUIRE_BACKEND_BUDGET | QUIRE_BACKEND_STREAMS |    \
     QUIRE_BACKEND_STREAM_ORDER | QUIRE_BACKEND_STREAM_COPY | QUIRE_BACKEND_STREAM_FILL |          \
     QUIRE_BACKEND_COPY_PAGES | QUIRE_BACKEND_COPY_PEER | QUIRE_BACKEND_ROWS |                     \
     QUIRE_BACKEND_ELASTIC | QUIRE_BACKEND_FORK)

#define CUDA_FUNCTIONS                                                                             \
    .size = sizeof(quire_backend), .name = "cuda", .describe = qi_cuda_describe,                   \
    .page_create = qi_cuda_page_create, .page_destroy = qi_cuda_page_destroy,                      \
    .destroy = cuda_destroy, .map = qi_cuda_page_map, .unmap = qi_cuda_page_unmap,                 \
    .copy_to_page = qi_cuda_copy_to_page, .copy_from_page = qi_cuda_copy_from_page,                \
    .fill_page = qi_cuda_fill_page, .image_requirements = qi_cuda_image_requirements,              \
    .heap_budget = qi_cuda_heap_budget, .stream_create = qi_cuda_stream_create,                    \
    .stream_destroy = qi_cuda_stream_destroy, .stream_mark = qi_cuda_stream_mark,                  \
    .stream_passed = qi_cuda_stream_passed, .stream_await = qi_cuda_stream_await,                  \
    .stream_order = qi_cuda_stream_order, .stream_copy = qi_cuda_stream_copy,                      \
    .stream_fill = qi_cuda_stream_fill, .copy_pages = qi_cuda_copy_pages,                          \
    .copy_peer = qi_cuda_copy_peer, .page_back = qi_cuda_page_back,                                \
    .page_unback = qi_cuda_page_unback, .fork_prepare = qi_cuda_fork_prepare,                      \
    .fork_done = qi_cuda_fork_done, .fork_child = qi_cuda_fork_child

static const quire_backend CUDA_BACKEND = {.features = CUDA_FEATURES, CUDA_FUNCTIONS};

/* For devices with tile pools. Others have no object functions, which saves a call per buffer. */
static const quire_backend CUDA_BACKEND_WITH_ARRAYS = {
    .features = CUDA_FEATURES | QUIRE_BACKEND_OBJECTS,
    CUDA_FUNCTIONS,
    .object_create = qi_cuda_object_create,
    .object_bind = qi_cuda_object_bind,
    .object_destroy = qi_cuda_object_destroy,
};

static const quire_backend *choose_table(const qi_cuda *cuda)
{
    return qi_cuda_has_kind(cuda, QUIRE_CUDA_TILES) ? &CUDA_BACKEND_WITH_ARRAYS : &CUDA_BACKEND;
}

/* ---- opening a device --------------------------------------------------------------------- */

/* Fills in what describes the device, and creates what its kinds need. */
static quire_result prepare(qi_cuda *cuda)
{
    quire_result result = qi_cuda_enter(cuda);
    if (result)
        return result;
    result = qi_cuda_probe(cuda);
    if (!result && qi_cuda_has_kind(cuda, QUIRE_CUDA_TILES))
        result = qi_cuda_stream_create(cuda, NULL, &cuda->array_stream);
    if (!result)
        result = qi_cuda_pool_open(cuda);
    qi_cuda_leave(cuda);
    return result;
}

/* Takes over the state: on failure it is released. */
static quire_result create_device(qi_cuda *cuda, const quire_device_options *options,
                                  quire_device **device)
{
    quire_result result = prepare(cuda);
    if (!result)
        result = quire_device_create(choose_table(cuda), cuda, options, device);
    if (result)
        cuda_destroy(cuda);
    return result;
}

quire_result quire_cuda_open(const quire_cuda_options *options, quire_device **device)
{
    if (device)
        *device = NULL;
    if (!device)
        return qi_fail_null("quire_cuda_open", "device");
    const quire_cuda_options resolved = options ? *options : (quire_cuda_options){.device = NULL};
    qi_cuda *cuda = NULL;
    quire_result result = qi_check_unused(&resolved, "quire_cuda_options");
    if (!result)
        result = qi_cuda_open_primary(&resolved, &cuda);
    return result ? result : create_device(cuda, &resolved.settings.device, device);
}

quire_result quire_cuda_wrap(const quire_cuda_wrap_options *options, quire_device **device)
{
    if (device)
        *device = NULL;
    if (!options || !device)
        return qi_fail_null("quire_cuda_wrap", !options ? "options" : "device");
    if (!options->context)
        return qi_fail_null("quire_cuda_wrap", "the context");
    qi_cuda *cuda = NULL;
    quire_result result = qi_check_unused(options, "quire_cuda_wrap_options");
    if (!result)
        result = qi_cuda_open_context(options, &cuda);
    return result ? result : create_device(cuda, &options->settings.device, device);
}
