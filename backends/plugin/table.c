/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * table.c - the function table of the plugin backend, opening a device of a plugin, and its end.
 *
 * Each plugin has its own table, with the entries that the plugin's functions can serve. The core
 * replaces a missing entry as it does for every backend.
 */
#include <unistd.h>

#include "backends/plugin/plugin.h"
#include "src/base/bits.h"
#include "src/base/result.h"

/* ---- destruction ------------------------------------------------------------------------ */

static void destroy_own_stream(qi_plugin *plugin)
{
    qi_plugin_saved_device saved;
    if (!plugin->own_stream || plugin->library->has_forked)
        return;
    quire_result result = qi_plugin_enter(plugin, &saved);
    plugin->f->destroy_stream(&plugin->unit->device, plugin->own_stream);
    if (!result)
        qi_plugin_leave(plugin, &saved);
}

/* The core has destroyed all pages and streams. The last device of a plugin unloads the plugin.
   Also releases a state that quire_plugin_open could not complete. */
static void plugin_destroy(void *state)
{
    qi_plugin *plugin = state;
    qi_host host = plugin->host;
    destroy_own_stream(plugin);
    qi_plugin_unit_release(plugin->library, plugin->unit);
    qi_plugin_library_release(plugin->library);
    qi_host_release(&host, plugin, 1, sizeof *plugin);
}

/* ---- forks ------------------------------------------------------------------------------ */

/* Nothing to lock: device records are constant, and library.c handles its list itself. */
static void plugin_fork_prepare(void *state)
{
    (void)state;
}

static void plugin_fork_done(void *state)
{
    (void)state;
}

/* The plugin's threads and its driver exist in the parent only: the child never calls it. */
static void plugin_fork_child(void *state, const uint64_t heap_bytes[QUIRE_MAX_HEAPS])
{
    qi_plugin *plugin = state;
    (void)heap_bytes;
    plugin->library->has_forked = true;
}

/* ---- the table -------------------------------------------------------------------------- */

/* copy_pages serves copy_peer too: direction_of in copy.c distinguishes the two. */
static void add_copies(const qi_pd_interface *f, quire_backend *t)
{
    if (qi_plugin_can_copy(f, QI_PLUGIN_H2D)) {
        t->features |= QUIRE_BACKEND_COPY_TO_PAGE;
        t->copy_to_page = qi_plugin_copy_to_page;
    }
    if (qi_plugin_can_copy(f, QI_PLUGIN_D2H)) {
        t->features |= QUIRE_BACKEND_COPY_FROM_PAGE;
        t->copy_from_page = qi_plugin_copy_from_page;
    }
    if (qi_plugin_can_copy(f, QI_PLUGIN_D2D)) {
        t->features |= QUIRE_BACKEND_COPY_PAGES;
        t->copy_pages = qi_plugin_copy_pages;
    }
    if (qi_plugin_can_copy(f, QI_PLUGIN_P2P)) {
        t->features |= QUIRE_BACKEND_COPY_PEER;
        t->copy_peer = qi_plugin_copy_pages;
    }
    if (f->device_memory_set) {
        t->features |= QUIRE_BACKEND_FILL;
        t->fill_page = qi_plugin_fill_page;
    }
}

/* Stream copies need one asynchronous copy function; copy.c refuses the directions that are
   missing. */
static void add_streams(const qi_pd_interface *f, quire_backend *t)
{
    if (!qi_plugin_has_streams(f))
        return;
    t->features |= QUIRE_BACKEND_STREAMS;
    t->stream_create = qi_plugin_stream_create;
    t->stream_destroy = qi_plugin_stream_destroy;
    t->stream_mark = qi_plugin_stream_mark;
    t->stream_passed = qi_plugin_stream_passed;
    t->stream_await = qi_plugin_stream_await;
    if (qi_plugin_has_order(f)) {
        t->features |= QUIRE_BACKEND_STREAM_ORDER;
        t->stream_order = qi_plugin_stream_order;
    }
    if (f->async_memory_copy_h2d || f->async_memory_copy_d2h || f->async_memory_copy_d2d ||
        f->async_memory_copy_p2p) {
        t->features |= QUIRE_BACKEND_STREAM_COPY;
        t->stream_copy = qi_plugin_stream_copy;
    }
}

/* Matches qi_plugin_fill_table. */
static void fill_table(const qi_pd_interface *f, quire_backend *table)
{
    *table = (quire_backend){
        .size = sizeof *table,
        .name = "plugin",
        .features = QUIRE_BACKEND_IMAGES | QUIRE_BACKEND_FORK,
        .image_requirements = qi_plugin_image_requirements,
        .describe = qi_plugin_describe, /* also identifies the backend: qi_plugin_of */
        .page_create = qi_plugin_page_create,
        .page_destroy = qi_plugin_page_destroy,
        .destroy = plugin_destroy,
        .fork_prepare = plugin_fork_prepare,
        .fork_done = plugin_fork_done,
        .fork_child = plugin_fork_child,
    };
    if ((f->host_memory_allocate && f->host_memory_deallocate) ||
        (f->unified_memory_allocate && f->unified_memory_deallocate)) {
        table->features |= QUIRE_BACKEND_MAP;
        table->map = qi_plugin_page_map;
        table->unmap = qi_plugin_page_unmap;
    }
    if (f->device_memory_stats) {
        table->features |= QUIRE_BACKEND_BUDGET;
        table->heap_budget = qi_plugin_heap_budget;
    }
    add_copies(f, table);
    add_streams(f, table);
}

/* ---- opening a device ------------------------------------------------------------------- */

static quire_result check_options(const quire_plugin_options *options)
{
    if (!options->path || !*options->path)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_plugin_open: quire_plugin_options.path is null or empty");
    if (options->alignment && !qi_is_power_of_two(options->alignment))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "alignment %u is not a power of two",
                            options->alignment);
    return qi_check_unused(options, "quire_plugin_options");
}

static quire_result create_state(const quire_plugin_options *options, qi_plugin **out)
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

/* On failure the state keeps what it has acquired; plugin_destroy releases it. */
static quire_result acquire_device(qi_plugin *plugin, const char *path)
{
    quire_result result = qi_plugin_library_acquire(path, fill_table, &plugin->library);
    if (result)
        return result;
    plugin->f = qi_plugin_functions(plugin->library);
    if (plugin->restores && !plugin->f->get_device)
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                            "plugin '%s' has no get_device, which restores_device requires",
                            plugin->library->device_type);
    return qi_plugin_unit_acquire(plugin->library, plugin->index, &plugin->unit);
}

/* RAM of the machine in bytes; 1 TiB if the system does not report it. */
static uint64_t bytes_of_host(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : UINT64_C(1) << 40;
}

/* Page sizes are multiples of min_chunk. Requires acquire_device. */
static quire_result measure(qi_plugin *plugin)
{
    size_t total = 0, free_bytes = 0;
    quire_paddle_sizes sizes;
    quire_result result = qi_plugin_query_stats(plugin, &total, &free_bytes);
    plugin->device_bytes = total;
    plugin->host_bytes = bytes_of_host();
    if (!result)
        result = qi_plugin_query_sizes(plugin, &sizes);
    plugin->multiple = result ? 1 : sizes.min_chunk;
    return result;
}

/* A role needs both functions, so that every page can be deallocated. */
static void list_kinds(qi_plugin *plugin)
{
    const qi_pd_interface *f = plugin->f;
    plugin->roles[plugin->kind_count++] = QI_PLUGIN_DEVICE;
    if (f->host_memory_allocate && f->host_memory_deallocate)
        plugin->roles[plugin->kind_count++] = QI_PLUGIN_HOST;
    if (f->unified_memory_allocate && f->unified_memory_deallocate)
        plugin->roles[plugin->kind_count++] = QI_PLUGIN_UNIFIED;
}

/* For synchronous copies that the plugin has on streams only. Some plugins return a null stream:
   own_stream then stays NULL and those copies are UNSUPPORTED. */
static quire_result create_own_stream(qi_plugin *plugin)
{
    qi_plugin_saved_device saved;
    if (!qi_plugin_needs_stream(plugin->f))
        return QUIRE_SUCCESS;
    quire_result result = qi_plugin_enter(plugin, &saved);
    if (result)
        return result;
    void *stream = NULL;
    qi_pd_status status = plugin->f->create_stream(&plugin->unit->device, &stream);
    qi_plugin_leave(plugin, &saved);
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
        return qi_fail_null("quire_plugin_open", !options ? "options" : "device");
    qi_plugin *plugin = NULL;
    quire_result result = check_options(options);
    if (!result)
        result = create_state(options, &plugin);
    if (result)
        return result;
    result = acquire_device(plugin, options->path);
    if (!result)
        result = measure(plugin);
    if (!result) {
        list_kinds(plugin);
        result = create_own_stream(plugin);
    }
    if (!result)
        result =
            quire_device_create(&plugin->library->table, plugin, &options->device_options, device);
    if (result)
        plugin_destroy(plugin);
    return result;
}
