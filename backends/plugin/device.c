/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * device.c - what a plugin says of its device becomes quire's description: one heap for each role
 * of memory, alignments from its smallest chunk. Also makes the device current on a thread; and the
 * public calls on a device.
 */
#include <stdio.h>
#include <string.h>

#include "backends/plugin/plugin.h"
#include "src/base/bits.h"
#include "src/base/result.h"

/* Size of the device heap if the plugin does not report it: address space, not memory. */
static const uint64_t UNKNOWN_HEAP = UINT64_C(1) << 40;

/* Buffer alignment is the largest power of two that divides min_chunk, clamped to these bounds.
   Rows of images are aligned to the first. */
enum { MIN_ALIGNMENT = 64, MAX_ALIGNMENT = 4096 };

/* ---- the current device ------------------------------------------------------------------- */

/* Some plugins end the process when get_device finds no current device, so `restores` is off by
   default. */
quire_result qi_plugin_enter(const qi_plugin *plugin, qi_plugin_saved_device *saved)
{
    *saved = (qi_plugin_saved_device){.before.id = -1};
    if (plugin->restores)
        saved->restores = plugin->f->get_device(&saved->before) == QI_PD_SUCCESS;
    qi_pd_status status = plugin->f->set_device(&plugin->unit->device);
    return status ? qi_plugin_fail(plugin->library, status, "set_device") : QUIRE_SUCCESS;
}

void qi_plugin_leave(const qi_plugin *plugin, const qi_plugin_saved_device *saved)
{
    qi_pd_device before = saved->before;
    if (saved->restores && before.id >= 0 && before.id != plugin->unit->device.id)
        plugin->f->set_device(
            &before); /* the caller reports the call between enter and leave, not this one */
}

/* ---- sizes -------------------------------------------------------------------------------- */

typedef qi_pd_status (*size_callback)(qi_pd_device *, size_t *);

static uint64_t query_size(const qi_plugin *plugin, size_callback callback)
{
    size_t size = 0;
    return callback && !callback(&plugin->unit->device, &size) ? size : 0;
}

/* Fails instead of assuming 0: a device that needs padding could write over the next allocation. */
static quire_result query_padding(const qi_plugin *plugin, uint64_t *padding)
{
    size_t size = 0;
    qi_pd_status status = plugin->f->device_extra_padding_size
                              ? plugin->f->device_extra_padding_size(&plugin->unit->device, &size)
                              : QI_PD_SUCCESS;
    *padding = status ? 0 : size;
    return status ? qi_plugin_fail(plugin->library, status, "device_extra_padding_size")
                  : QUIRE_SUCCESS;
}

/* A chunk of 0 or as large as the device is ignored: 1. */
static uint64_t sane_chunk(const qi_plugin *plugin, uint64_t min_chunk)
{
    uint64_t max = plugin->device_bytes ? plugin->device_bytes : UNKNOWN_HEAP;
    return min_chunk && min_chunk < max ? min_chunk : 1;
}

quire_result qi_plugin_query_sizes(const qi_plugin *plugin, quire_paddle_sizes *sizes)
{
    const qi_pd_interface *f = plugin->f;
    qi_plugin_saved_device saved;
    *sizes = (quire_paddle_sizes){0};
    quire_result result = qi_plugin_enter(plugin, &saved);
    if (result)
        return result;
    sizes->min_chunk = sane_chunk(plugin, query_size(plugin, f->device_min_chunk_size));
    sizes->max_chunk = query_size(plugin, f->device_max_chunk_size);
    sizes->max_alloc = query_size(plugin, f->device_max_alloc_size);
    sizes->init_alloc = query_size(plugin, f->device_init_alloc_size);
    sizes->re_alloc = query_size(plugin, f->device_realloc_size);
    result = query_padding(plugin, &sizes->extra_padding);
    qi_plugin_leave(plugin, &saved);
    return result;
}

quire_result qi_plugin_query_stats(const qi_plugin *plugin, size_t *total, size_t *free_bytes)
{
    qi_plugin_saved_device saved;
    *total = *free_bytes = 0;
    if (!plugin->f->device_memory_stats)
        return QUIRE_SUCCESS;
    quire_result result = qi_plugin_enter(plugin, &saved);
    if (result)
        return result;
    qi_pd_status status = plugin->f->device_memory_stats(&plugin->unit->device, total, free_bytes);
    qi_plugin_leave(plugin, &saved);
    return status ? qi_plugin_fail(plugin->library, status, "device_memory_stats") : QUIRE_SUCCESS;
}

/* ---- entries of the backend table --------------------------------------------------------- */

static const quire_memory_flags FLAGS[QI_PLUGIN_ROLES] = {
    [QI_PLUGIN_DEVICE] = QUIRE_DEVICE_LOCAL,
    [QI_PLUGIN_HOST] = QUIRE_HOST_VISIBLE | QUIRE_HOST_COHERENT | QUIRE_HOST_CACHED,
    [QI_PLUGIN_UNIFIED] = QUIRE_DEVICE_LOCAL | QUIRE_HOST_VISIBLE | QUIRE_HOST_COHERENT,
};

static uint64_t buffer_alignment(const qi_plugin *plugin)
{
    uint64_t power = plugin->multiple & (UINT64_C(0) - plugin->multiple);
    return power < MIN_ALIGNMENT ? MIN_ALIGNMENT : power > MAX_ALIGNMENT ? MAX_ALIGNMENT : power;
}

/* One heap per role: the interface does not say whether unified memory counts as device memory. */
quire_result qi_plugin_describe(void *state, quire_device_info *info)
{
    const qi_plugin *plugin = state;
    uint64_t device = plugin->device_bytes ? plugin->device_bytes : UNKNOWN_HEAP;
    const quire_heap heaps[QI_PLUGIN_ROLES] = {
        [QI_PLUGIN_DEVICE] = {.size = device, .flags = QUIRE_HEAP_DEVICE_LOCAL},
        [QI_PLUGIN_HOST] = {.size = plugin->host_bytes},
        [QI_PLUGIN_UNIFIED] = {.size = device > plugin->host_bytes ? device : plugin->host_bytes,
                               .flags = QUIRE_HEAP_DEVICE_LOCAL},
    };
    snprintf(info->name, sizeof info->name, "%s %d", plugin->library->device_type,
             (int)plugin->unit->device.id);
    info->heap_count = info->kind_count = plugin->kind_count;
    for (uint32_t i = 0; i < plugin->kind_count; i++) {
        info->heaps[i] = heaps[plugin->roles[i]];
        info->kinds[i] = (quire_kind){.flags = FLAGS[plugin->roles[i]], .heap = i};
    }
    info->limits = (quire_limits){
        .page_granularity = qi_is_power_of_two(plugin->multiple) ? plugin->multiple : 1,
        .page_alignment = plugin->alignment,
        .buffer_alignment = buffer_alignment(plugin),
        .image_row_alignment = MIN_ALIGNMENT,
    };
    return QUIRE_SUCCESS;
}

/* Memory that is not free counts as used, also by other processes. */
quire_result qi_plugin_heap_budget(void *state, uint32_t heap, quire_heap_budget *budget)
{
    const qi_plugin *plugin = state;
    size_t total = 0, free_bytes = 0;
    if (heap) /* plugins report nothing about host memory */
        return QUIRE_SUCCESS;
    quire_result result = qi_plugin_query_stats(plugin, &total, &free_bytes);
    if (result)
        return result;
    budget->budget = total;
    budget->usage = total > free_bytes ? total - free_bytes : 0;
    return QUIRE_SUCCESS;
}

/* Every image is linear, also one of optimal tiling. Rows are multiples of the row alignment. */
quire_result qi_plugin_image_requirements(void *state, const quire_image_options *options,
                                          quire_requirements *out)
{
    const qi_plugin *plugin = state;
    uint64_t texel = (uint64_t)options->channel_count * quire_channel_size(options->channel_type);
    uint64_t row = options->width * texel, slice = 0, size = 0;
    if (qi_align_up_overflows(row, MIN_ALIGNMENT, &row) ||
        qi_multiply_overflows(row, options->height, &slice) ||
        qi_multiply_overflows(slice, options->depth, &size))
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, 0,
                                  "an image of %u x %u x %u texels: its size overflows 64 bits",
                                  options->width, options->height, options->depth);
    out->size = size;
    out->alignment = buffer_alignment(plugin);
    out->kind_mask = UINT32_MAX;
    out->row_pitch = row;
    out->slice_pitch = slice;
    return QUIRE_SUCCESS;
}

/* ---- whose device it is ------------------------------------------------------------------- */

/* Every plugin has its own table, but all tables share this entry. */
qi_plugin *qi_plugin_of(const quire_device *device)
{
    const quire_backend *table = quire_device_backend(device);
    return table && table->describe == qi_plugin_describe ? quire_device_state(device) : NULL;
}

/* ---- public calls ------------------------------------------------------------------------- */

/* Finds the state of a device that its plugin still serves. `output` is checked for NULL; `name`
   is that of the argument. */
static quire_result find_plugin(const quire_device *device, const void *output, const char *name,
                                const char *call, const qi_plugin **plugin)
{
    *plugin = qi_plugin_of(device);
    if (*plugin && (*plugin)->library->has_forked)
        return qi_fail(
            QUIRE_ERROR_NOT_PERMITTED,
            "the plugin was initialised before a fork: in the child its devices can only "
            "be destroyed");
    if (*plugin && output)
        return QUIRE_SUCCESS;
    return *plugin ? qi_fail_null(call, name)
                   : qi_fail_backend(device ? quire_device_backend(device)->name : NULL, "plugin");
}

static uint32_t kind_of(const qi_plugin *plugin, qi_plugin_role role)
{
    for (uint32_t i = 0; i < plugin->kind_count; i++)
        if (plugin->roles[i] == role)
            return i;
    return QUIRE_PLUGIN_NO_KIND;
}

/*
 * Queries the sizes and replaces a missing max_chunk as Paddle does: by max_alloc, or by the free
 * device memory. 0 remains if the plugin reports neither.
 */
static quire_result resolve_sizes(const qi_plugin *plugin, quire_paddle_sizes *sizes)
{
    size_t total = 0, free_bytes = 0;
    quire_result result = qi_plugin_query_sizes(plugin, sizes);
    if (result || plugin->f->device_max_chunk_size)
        return result;
    sizes->max_chunk = sizes->max_alloc;
    if (sizes->max_chunk)
        return QUIRE_SUCCESS;
    result = qi_plugin_query_stats(plugin, &total, &free_bytes);
    sizes->max_chunk = free_bytes;
    return result;
}

/* The alignment in bytes that all pages had so far; 0 before the first page. */
static uint64_t least_alignment(const qi_plugin *plugin)
{
    uint64_t joined = qi_atomic_load_u64(&plugin->addresses);
    return joined & (UINT64_C(0) - joined);
}

quire_result quire_plugin_get_info(const quire_device *device, quire_plugin_info *info)
{
    const qi_plugin *plugin = NULL;
    quire_paddle_sizes sizes;
    if (info)
        memset(info, 0, sizeof *info);
    quire_result result = find_plugin(device, info, "info", "quire_plugin_get_info", &plugin);
    if (!result)
        result = resolve_sizes(plugin, &sizes);
    if (result)
        return result;
    const qi_plugin_library *library = plugin->library;
    const qi_pd_params *params = &library->params.params;
    *info = (quire_plugin_info){
        .device_type = library->device_type,
        .sub_device_type = library->sub_device_type,
        .version_major = (uint32_t)params->major,
        .version_minor = (uint32_t)params->minor,
        .version_patch = (uint32_t)params->patch,
        .device = plugin->index,
        .device_count = library->unit_count,
        .id = plugin->unit->device.id,
        .host_kind = kind_of(plugin, QI_PLUGIN_HOST),
        .unified_kind = kind_of(plugin, QI_PLUGIN_UNIFIED),
        .functions = qi_plugin_present(plugin->f),
        .sizes = sizes,
        .least_alignment = least_alignment(plugin),
    };
    return QUIRE_SUCCESS;
}

const char *quire_plugin_function_name(uint32_t bit)
{
    return bit < 64 ? qi_plugin_name_at(8 + 8 * (size_t)bit) : NULL;
}

/* naive_best_fit needs a largest chunk. A callback that returns 0 means "no pool". A missing
   callback without a substitute is an error. */
quire_result quire_plugin_get_policy(const quire_device *device, quire_paddle_strategy strategy,
                                     quire_page_policy *policy)
{
    const qi_plugin *plugin = NULL;
    quire_paddle_sizes sizes;
    if (policy)
        memset(policy, 0, sizeof *policy);
    quire_result result = find_plugin(device, policy, "policy", "quire_plugin_get_policy", &plugin);
    if (!result)
        result = resolve_sizes(plugin, &sizes);
    if (result)
        return result;
    if (strategy == QUIRE_PADDLE_NAIVE_BEST_FIT && !sizes.max_chunk &&
        !plugin->f->device_max_chunk_size)
        return qi_fail_text(
            QUIRE_ERROR_UNSUPPORTED,
            "plugin '%s' reports no largest chunk, no largest allocation and no free "
            "memory: naive_best_fit needs one of them",
            plugin->library->device_type);
    return quire_page_policy_paddle(strategy, &sizes, policy);
}

/* The stream stays the caller's. */
quire_result quire_plugin_stream_wrap(quire_device *device, void *plugin_stream, const char *name,
                                      quire_stream **stream)
{
    const qi_plugin *plugin = NULL;
    if (stream)
        *stream = NULL;
    quire_result result =
        find_plugin(device, stream, "stream", "quire_plugin_stream_wrap", &plugin);
    if (!result && !plugin_stream)
        result = qi_fail_null("quire_plugin_stream_wrap", "plugin_stream");
    return result ? result : quire_stream_wrap(device, plugin_stream, name, stream);
}

quire_result quire_plugin_get_stream(const quire_stream *stream, void **plugin_stream)
{
    quire_stream_info info;
    if (plugin_stream)
        *plugin_stream = NULL;
    if (!plugin_stream)
        return qi_fail_null("quire_plugin_get_stream", "output");
    quire_result result = quire_stream_get_info(stream, &info);
    if (result)
        return result;
    if (info.capture || !qi_plugin_of(info.device))
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "the stream is held, or not of the plugin backend");
    *plugin_stream = qi_plugin_stream_handle(info.native);
    return QUIRE_SUCCESS;
}
