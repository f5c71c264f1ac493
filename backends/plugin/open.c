/*
 * open.c - opening a device of a plugin, and the questions of quire/plugin.h.
 */
#include <string.h>
#include <unistd.h>

#include "backends/plugin/plugin.h"
#include "src/base/bits.h"
#include "src/base/result.h"

/* ---- the state ------------------------------------------------------------------------------ */

static quire_result check_options(const quire_plugin_options *options)
{
    if (!options->path || !*options->path)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_plugin_open: there is no path");
    if (options->alignment && !qi_is_power_of_two(options->alignment))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "alignment %u is not a power of two",
                            options->alignment);
    return qi_check_unused(options, "quire_plugin_options");
}

static quire_result make_state(const quire_plugin_options *options, qi_plugin **out)
{
    qi_host host;
    quire_result result = qi_host_init(&host, options->device_options.host_memory);
    if (result)
        return result;
    qi_plugin *plugin = qi_host_allocate(&host, 1, sizeof *plugin);
    if (!plugin)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a plugin's device");
    plugin->host = host;
    plugin->index = options->device;
    plugin->restores = options->restores_device;
    plugin->alignment = options->alignment ? options->alignment : 1;
    *out = plugin;
    return QUIRE_SUCCESS;
}

static quire_result take_device(qi_plugin *plugin, const char *path)
{
    quire_result result = qi_plugin_library_take(path, &plugin->library);
    if (result)
        return result;
    plugin->f = qi_plugin_functions(plugin->library);
    if (plugin->restores && !plugin->f->get_device)
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                            "plugin '%s' has no get_device, with which to restore the device",
                            plugin->library->device_type);
    return qi_plugin_unit_take(plugin->library, plugin->index, &plugin->unit);
}

static uint64_t bytes_of_host(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : UINT64_C(1) << 40;
}

static quire_result measure(qi_plugin *plugin)
{
    size_t total = 0, free_bytes = 0;
    quire_paddle_sizes sizes;
    quire_result result = qi_plugin_ask_stats(plugin, &total, &free_bytes);
    plugin->device_bytes = total;
    plugin->host_bytes = bytes_of_host();
    if (!result)
        result = qi_plugin_ask_sizes(plugin, &sizes);
    plugin->multiple = result ? 1 : sizes.min_chunk;
    return result;
}

static void list_kinds(qi_plugin *plugin)
{
    const qi_pd_interface *f = plugin->f;
    plugin->roles[plugin->kind_count++] = QI_PLUGIN_DEVICE;
    if (f->host_memory_allocate && f->host_memory_deallocate)
        plugin->roles[plugin->kind_count++] = QI_PLUGIN_HOST;
    if (f->unified_memory_allocate && f->unified_memory_deallocate)
        plugin->roles[plugin->kind_count++] = QI_PLUGIN_UNIFIED;
}

/* For copies that the plugin makes on streams alone. One that hands out none leaves it NULL. */
static quire_result make_own_stream(qi_plugin *plugin)
{
    qi_plugin_turn turn;
    if (!qi_plugin_needs_stream(plugin->f))
        return QUIRE_SUCCESS;
    quire_result result = qi_plugin_enter(plugin, &turn);
    if (result)
        return result;
    void *stream = NULL;
    qi_pd_status status = plugin->f->create_stream(&plugin->unit->device, &stream);
    qi_plugin_leave(plugin, &turn);
    if (status)
        return qi_plugin_fail(plugin->library, status, "create_stream");
    plugin->own_stream = stream;
    return QUIRE_SUCCESS;
}

quire_result quire_plugin_open(const quire_plugin_options *options, quire_device **device)
{
    if (device)
        *device = NULL;
    if (!options || !device)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_plugin_open: options or device is null");
    qi_plugin *plugin = NULL;
    quire_result result = check_options(options);
    if (!result)
        result = make_state(options, &plugin);
    if (result)
        return result;
    result = take_device(plugin, options->path);
    if (!result)
        result = measure(plugin);
    if (!result) {
        list_kinds(plugin);
        result = make_own_stream(plugin);
    }
    if (!result)
        result =
            quire_device_create(&plugin->library->table, plugin, &options->device_options, device);
    if (result)
        qi_plugin_end(plugin);
    return result;
}

/* ---- questions ------------------------------------------------------------------------------ */

/* Its table lies in its own record of the plugin, which no other backend's does. */
qi_plugin *qi_plugin_of(const quire_device *device)
{
    const quire_backend *table = quire_device_backend(device);
    return table && table->describe == qi_plugin_describe ? quire_device_state(device) : NULL;
}

static quire_result find_plugin(const quire_device *device, const void *output,
                                const qi_plugin **plugin)
{
    *plugin = qi_plugin_of(device);
    if (*plugin && (*plugin)->library->has_forked)
        return qi_fail(
            QUIRE_ERROR_NOT_PERMITTED,
            "the plugin was initialised before a fork: in the child its devices can only "
            "be destroyed");
    if (*plugin && output)
        return QUIRE_SUCCESS;
    return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                   "the device is null or not of the plugin backend, or an output is null");
}

static uint32_t kind_of(const qi_plugin *plugin, qi_plugin_role role)
{
    for (uint32_t i = 0; i < plugin->kind_count; i++)
        if (plugin->roles[i] == role)
            return i;
    return QUIRE_PLUGIN_NO_KIND;
}

/* What a missing max_chunk stands for. */
static quire_result resolve_sizes(const qi_plugin *plugin, quire_paddle_sizes *sizes)
{
    size_t total = 0, free_bytes = 0;
    quire_result result = qi_plugin_ask_sizes(plugin, sizes);
    if (result || plugin->f->device_max_chunk_size)
        return result;
    sizes->max_chunk = sizes->max_alloc;
    if (sizes->max_chunk)
        return QUIRE_SUCCESS;
    result = qi_plugin_ask_stats(plugin, &total, &free_bytes);
    sizes->max_chunk = free_bytes;
    return result;
}

static uint64_t least_alignment(const qi_plugin *plugin)
{
    uint64_t joined = qi_atomic_load_u64(&plugin->addresses);
    return joined & (UINT64_C(0) - joined);
}

quire_result quire_plugin_get_info(quire_device *device, quire_plugin_info *info)
{
    const qi_plugin *plugin = NULL;
    quire_paddle_sizes sizes;
    if (info)
        memset(info, 0, sizeof *info);
    quire_result result = find_plugin(device, info, &plugin);
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

quire_result quire_plugin_get_policy(quire_device *device, quire_paddle_strategy strategy,
                                     quire_page_policy *policy)
{
    const qi_plugin *plugin = NULL;
    quire_paddle_sizes sizes;
    if (policy)
        memset(policy, 0, sizeof *policy);
    quire_result result = find_plugin(device, policy, &plugin);
    if (!result)
        result = resolve_sizes(plugin, &sizes);
    if (result)
        return result;
    if (strategy == QUIRE_PADDLE_NAIVE_BEST_FIT && !sizes.max_chunk &&
        !plugin->f->device_max_chunk_size)
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                            "plugin '%s' tells no largest chunk, no largest allocation and no free "
                            "memory, without which naive_best_fit has no size",
                            plugin->library->device_type);
    return quire_page_policy_paddle(strategy, &sizes, policy);
}

quire_result quire_plugin_stream_wrap(quire_device *device, void *plugin_stream, const char *name,
                                      quire_stream **stream)
{
    const qi_plugin *plugin = NULL;
    if (stream)
        *stream = NULL;
    quire_result result = find_plugin(device, stream, &plugin);
    if (!result && !plugin_stream)
        result = qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "the plugin's stream is null");
    return result ? result : quire_stream_wrap(device, plugin_stream, name, stream);
}

quire_result quire_plugin_get_stream(quire_stream *stream, void **plugin_stream)
{
    quire_stream_info info;
    if (plugin_stream)
        *plugin_stream = NULL;
    if (!plugin_stream)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_plugin_get_stream: output is null");
    quire_result result = quire_stream_get_info(stream, &info);
    if (result)
        return result;
    if (info.capture || !qi_plugin_of(info.device))
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "the stream is held, or not of the plugin backend");
    *plugin_stream = qi_plugin_stream_handle(info.native);
    return QUIRE_SUCCESS;
}
