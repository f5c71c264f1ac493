/*
 * info.c - the public calls on a plugin's device: information, page policies, streams.
 */
#include <string.h>

#include "backends/plugin/plugin.h"
#include "src/base/result.h"

/* ---- checks ----------------------------------------------------------------------------- */

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
