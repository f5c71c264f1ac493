/*
 * device.c - a device of a plugin as quire sees it: its description, its sizes and budget, making
 * it current, its end.
 */
#include <stdio.h>

#include "backends/plugin/plugin.h"
#include "src/base/bits.h"
#include "src/base/result.h"

/* Of a heap whose size nobody tells: address space, not memory. */
static const uint64_t UNKNOWN_HEAP = UINT64_C(1) << 40;

/* Buffers begin at multiples of what divides min_chunk, within these; rows of images at those of
   the first. */
enum { LEAST_ALIGNMENT = 64, MAX_ALIGNMENT = 4096 };

/* ---- one call of the plugin ----------------------------------------------------------------- */

quire_result qi_plugin_enter(const qi_plugin *plugin, qi_plugin_turn *turn)
{
    *turn = (qi_plugin_turn){.before.id = -1};
    if (plugin->restores)
        turn->restores = plugin->f->get_device(&turn->before) == QI_PD_SUCCESS;
    qi_pd_status status = plugin->f->set_device(&plugin->unit->device);
    return status ? qi_plugin_fail(plugin->library, status, "set_device") : QUIRE_SUCCESS;
}

void qi_plugin_leave(const qi_plugin *plugin, const qi_plugin_turn *turn)
{
    qi_pd_device before = turn->before;
    if (turn->restores && before.id >= 0 && before.id != plugin->unit->device.id)
        plugin->f->set_device(&before); /* the call that stood between is what is answered */
}

/* ---- sizes ---------------------------------------------------------------------------------- */

typedef qi_pd_status (*size_callback)(qi_pd_device *, size_t *);

static uint64_t ask_size(const qi_plugin *plugin, size_callback callback)
{
    size_t size = 0;
    return callback && !callback(&plugin->unit->device, &size) ? size : 0;
}

/* A padding that is not known would leave a device to write over what lies behind. */
static quire_result ask_padding(const qi_plugin *plugin, uint64_t *padding)
{
    size_t size = 0;
    qi_pd_status status = plugin->f->device_extra_padding_size
                              ? plugin->f->device_extra_padding_size(&plugin->unit->device, &size)
                              : QI_PD_SUCCESS;
    *padding = status ? 0 : size;
    return status ? qi_plugin_fail(plugin->library, status, "device_extra_padding_size")
                  : QUIRE_SUCCESS;
}

/* A chunk as large as the device is no answer. */
static uint64_t sane_chunk(const qi_plugin *plugin, uint64_t min_chunk)
{
    uint64_t most = plugin->device_bytes ? plugin->device_bytes : UNKNOWN_HEAP;
    return min_chunk && min_chunk < most ? min_chunk : 1;
}

quire_result qi_plugin_ask_sizes(const qi_plugin *plugin, quire_paddle_sizes *sizes)
{
    const qi_pd_interface *f = plugin->f;
    qi_plugin_turn turn;
    *sizes = (quire_paddle_sizes){0};
    quire_result result = qi_plugin_enter(plugin, &turn);
    if (result)
        return result;
    sizes->min_chunk = sane_chunk(plugin, ask_size(plugin, f->device_min_chunk_size));
    sizes->max_chunk = ask_size(plugin, f->device_max_chunk_size);
    sizes->max_alloc = ask_size(plugin, f->device_max_alloc_size);
    sizes->init_alloc = ask_size(plugin, f->device_init_alloc_size);
    sizes->re_alloc = ask_size(plugin, f->device_realloc_size);
    result = ask_padding(plugin, &sizes->extra_padding);
    qi_plugin_leave(plugin, &turn);
    return result;
}

quire_result qi_plugin_ask_stats(const qi_plugin *plugin, size_t *total, size_t *free_bytes)
{
    qi_plugin_turn turn;
    *total = *free_bytes = 0;
    if (!plugin->f->device_memory_stats)
        return QUIRE_SUCCESS;
    quire_result result = qi_plugin_enter(plugin, &turn);
    if (result)
        return result;
    qi_pd_status status = plugin->f->device_memory_stats(&plugin->unit->device, total, free_bytes);
    qi_plugin_leave(plugin, &turn);
    return status ? qi_plugin_fail(plugin->library, status, "device_memory_stats") : QUIRE_SUCCESS;
}

/* ---- the entries of the table --------------------------------------------------------------- */

static const quire_memory_flags FLAGS[QI_PLUGIN_ROLES] = {
    [QI_PLUGIN_DEVICE] = QUIRE_DEVICE_LOCAL,
    [QI_PLUGIN_HOST] = QUIRE_HOST_VISIBLE | QUIRE_HOST_COHERENT | QUIRE_HOST_CACHED,
    [QI_PLUGIN_UNIFIED] = QUIRE_DEVICE_LOCAL | QUIRE_HOST_VISIBLE | QUIRE_HOST_COHERENT,
};

static uint64_t buffer_alignment(const qi_plugin *plugin)
{
    uint64_t power = plugin->multiple & (UINT64_C(0) - plugin->multiple);
    return power < LEAST_ALIGNMENT ? LEAST_ALIGNMENT
           : power > MAX_ALIGNMENT ? MAX_ALIGNMENT
                                   : power;
}

/* A heap a role: whether a plugin counts unified memory among the device's, nothing tells. */
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
        .image_row_alignment = LEAST_ALIGNMENT,
    };
    return QUIRE_SUCCESS;
}

/* What is not free is in use by somebody. */
quire_result qi_plugin_heap_budget(void *state, uint32_t heap, quire_heap_budget *budget)
{
    const qi_plugin *plugin = state;
    size_t total = 0, free_bytes = 0;
    if (heap) /* nothing is told of host memory */
        return QUIRE_SUCCESS;
    quire_result result = qi_plugin_ask_stats(plugin, &total, &free_bytes);
    if (result)
        return result;
    budget->budget = total;
    budget->usage = total > free_bytes ? total - free_bytes : 0;
    return QUIRE_SUCCESS;
}

/* Images are linear whatever their tiling, with rows of a multiple of the row alignment. */
quire_result qi_plugin_image_requirements(void *state, const quire_image_options *options,
                                          quire_requirements *out)
{
    const qi_plugin *plugin = state;
    uint64_t texel = (uint64_t)options->channel_count * quire_channel_size(options->channel_type);
    uint64_t row = options->width * texel, slice = 0, size = 0;
    if (qi_align_up_overflows(row, LEAST_ALIGNMENT, &row) ||
        qi_multiply_overflows(row, options->height, &slice) ||
        qi_multiply_overflows(slice, options->depth, &size))
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, 0,
                                  "an image of %u x %u x %u texels: its bytes cannot be counted",
                                  options->width, options->height, options->depth);
    out->size = size;
    out->alignment = buffer_alignment(plugin);
    out->kind_mask = UINT32_MAX;
    out->row_pitch = row;
    out->slice_pitch = slice;
    return QUIRE_SUCCESS;
}

/* ---- the end -------------------------------------------------------------------------------- */

static void end_stream(qi_plugin *plugin)
{
    qi_plugin_turn turn;
    if (!plugin->own_stream || plugin->library->has_forked)
        return;
    quire_result result = qi_plugin_enter(plugin, &turn);
    plugin->f->destroy_stream(&plugin->unit->device, plugin->own_stream);
    if (!result)
        qi_plugin_leave(plugin, &turn);
}

/* Pages and streams are gone; then the device, and with the last of the plugin's the plugin. */
void qi_plugin_end(void *state)
{
    qi_plugin *plugin = state;
    qi_host host = plugin->host;
    end_stream(plugin);
    qi_plugin_unit_give(plugin->library, plugin->unit);
    qi_plugin_library_give(plugin->library);
    qi_host_release(&host, plugin, 1, sizeof *plugin);
}

/* ---- forks ---------------------------------------------------------------------------------- */

/* What quire keeps of a device does not change; the list of plugins has handlers of its own. */
void qi_plugin_fork_prepare(void *state)
{
    (void)state;
}

void qi_plugin_fork_done(void *state)
{
    (void)state;
}

/* Whatever a plugin has of threads and drivers is its parent's. */
void qi_plugin_fork_child(void *state, const uint64_t heap_bytes[QUIRE_MAX_HEAPS])
{
    qi_plugin *plugin = state;
    (void)heap_bytes;
    plugin->library->has_forked = true;
}
