/*
 * host.c - the host backend: opening a host device, its profile, and its table. Pages are
 * host_page.c, streams stream.c.
 */
#include "backends/host/stream.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/base/bits.h"
#include "src/base/result.h"

#define DEFAULT_HEAP_SIZE (UINT64_C(1) << 40) /* address space, not RAM */

static const uint64_t UNKNOWN_HEAP = UINT64_C(8) << 30; /* of a profile that gives no size */
static const uint64_t DEFAULT_ROW_ALIGNMENT = 64;       /* a cache line */
static const uint64_t BUFFER_ALIGNMENT = 64;            /* likewise; what lavapipe asks, too */

/* A device whose memory is apart from the host's, with a part of it that the host can reach. */
static const quire_host_profile DEFAULT_PROFILE = {
    .name = "host",
    .heap_count = 2,
    .kind_count = 4,
    .heaps = {{.size = DEFAULT_HEAP_SIZE, .flags = QUIRE_HEAP_DEVICE_LOCAL},
              {.size = DEFAULT_HEAP_SIZE}},
    .kinds = {{.flags = QUIRE_DEVICE_LOCAL, .heap = 0},
              {.flags = QUIRE_HOST_VISIBLE | QUIRE_HOST_COHERENT, .heap = 1},
              {.flags = QUIRE_HOST_VISIBLE | QUIRE_HOST_COHERENT | QUIRE_HOST_CACHED, .heap = 1},
              {.flags = QUIRE_DEVICE_LOCAL | QUIRE_HOST_VISIBLE | QUIRE_HOST_COHERENT, .heap = 0}},
};

/* ---- the profile -------------------------------------------------------------------------- */

/* Raised to what the host needs; a value that is no power of two is left for the core to refuse. */
static void raise_to(uint64_t *value, uint64_t least)
{
    if (*value < least && (!*value || qi_is_power_of_two(*value)))
        *value = least;
}

static void resolve_profile(qi_host_device *device, const quire_host_profile *asked)
{
    quire_host_profile *profile = &device->profile;
    *profile = asked ? *asked : DEFAULT_PROFILE;
    for (uint32_t i = 0; i < profile->heap_count && i < QUIRE_MAX_HEAPS; i++)
        if (!profile->heaps[i].size)
            profile->heaps[i].size = UNKNOWN_HEAP;
    quire_limits *limits = &profile->limits;
    bool reserved = device->huge_pages == QUIRE_HOST_HUGE_RESERVED;
    uint64_t unit = reserved ? QI_HOST_HUGE_PAGE : QI_HOST_GRANULARITY;
    raise_to(&limits->page_granularity, unit);
    raise_to(&limits->buffer_alignment, BUFFER_ALIGNMENT);
    if (qi_is_power_of_two(limits->page_alignment) &&
        limits->page_alignment <= QI_HOST_PAGE_ALIGNMENT)
        limits->page_alignment = 0; /* pages are as aligned as the core asks */
    raise_to(&limits->image_row_alignment, DEFAULT_ROW_ALIGNMENT);
    if (device->row_alignment)
        limits->image_row_alignment = device->row_alignment;
}

static quire_result host_describe(void *state, quire_device_info *info)
{
    const qi_host_device *device = state;
    const quire_host_profile *profile = &device->profile;
    snprintf(info->name, sizeof info->name, "%s", device->name);
    info->heap_count = profile->heap_count;
    info->kind_count = profile->kind_count;
    memcpy(info->heaps, profile->heaps, sizeof info->heaps);
    memcpy(info->kinds, profile->kinds, sizeof info->kinds);
    info->limits = profile->limits;
    info->limits.elastic_kinds =
        qi_host_can_grow(device) ? (UINT64_C(1) << profile->kind_count) - 1 : 0;
    info->exportable = device->backing == QUIRE_HOST_MEMFD;
    info->survives_fork = device->backing == QUIRE_HOST_ANONYMOUS; /* memfds are the parent's too */
    return QUIRE_SUCCESS;
}

/* ---- images ------------------------------------------------------------------------------- */

/* Images are linear whatever their tiling, with rows of a multiple of the row alignment. */
static quire_result host_image_requirements(void *state, const quire_image_options *options,
                                            quire_requirements *out)
{
    const qi_host_device *device = state;
    const quire_limits *limits = &device->profile.limits;
    uint64_t texel = (uint64_t)options->channel_count * quire_channel_size(options->channel_type);
    uint64_t row = options->width * texel, slice = 0, size = 0;
    if (qi_align_up_overflows(row, limits->image_row_alignment, &row) ||
        qi_multiply_overflows(row, options->height, &slice) ||
        qi_multiply_overflows(slice, options->depth, &size))
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, 0,
                                  "an image of %u x %u x %u texels: its bytes cannot be counted",
                                  options->width, options->height, options->depth);
    out->size = size;
    out->alignment = limits->buffer_alignment;
    out->kind_mask = UINT32_MAX;
    out->row_pitch = row;
    out->slice_pitch = slice;
    return QUIRE_SUCCESS;
}

/* ---- budgets ------------------------------------------------------------------------------ */

static quire_result host_heap_budget(void *state, uint32_t heap, quire_heap_budget *budget)
{
    const qi_host_device *device = state;
    budget->budget = qi_atomic_load_u64(&device->budgets[heap]);
    budget->usage = qi_atomic_load_u64(&device->heap_used[heap]);
    return QUIRE_SUCCESS;
}

/* ---- the end ------------------------------------------------------------------------------ */

static void host_destroy(void *state)
{
    qi_host_device *device = state;
    qi_host host = device->host;
    qi_host_streams_finish(&device->streams);
    qi_host_release(&host, device, 1, sizeof *device);
}

/* ---- forks -------------------------------------------------------------------------------- */

static void host_fork_prepare(void *state)
{
    qi_host_device *device = state;
    pthread_mutex_lock(&device->streams.mutex);
}

static void host_fork_done(void *state)
{
    qi_host_device *device = state;
    pthread_mutex_unlock(&device->streams.mutex);
}

static void host_fork_child(void *state, const uint64_t heap_bytes[QUIRE_MAX_HEAPS])
{
    qi_host_device *device = state;
    for (int i = 0; i < QUIRE_MAX_HEAPS; i++)
        qi_atomic_store_release_u64(&device->heap_used[i], heap_bytes[i]);
    qi_host_streams_forked(&device->streams);
}

/* ---- the table ---------------------------------------------------------------------------- */

static const quire_backend HOST_BACKEND = {
    .size = sizeof(quire_backend),
    .name = "host",
    .features = QUIRE_BACKEND_MAP | QUIRE_BACKEND_FLUSH | QUIRE_BACKEND_COPY_TO_PAGE |
                QUIRE_BACKEND_COPY_FROM_PAGE | QUIRE_BACKEND_IMAGES | QUIRE_BACKEND_BUDGET |
                QUIRE_BACKEND_STREAMS | QUIRE_BACKEND_STREAM_ORDER | QUIRE_BACKEND_STREAM_COPY |
                QUIRE_BACKEND_STREAM_FILL | QUIRE_BACKEND_FILL | QUIRE_BACKEND_COPY_PAGES |
                QUIRE_BACKEND_COPY_PEER | QUIRE_BACKEND_ROWS | QUIRE_BACKEND_ELASTIC |
                QUIRE_BACKEND_FORK,
    .describe = host_describe,
    .page_create = qi_host_page_create,
    .page_destroy = qi_host_page_destroy,
    .destroy = host_destroy,
    .map = qi_host_page_map,
    .unmap = qi_host_page_unmap,
    .flush = qi_host_page_sync,
    .invalidate = qi_host_page_sync,
    .copy_to_page = qi_host_copy_to_page,
    .copy_from_page = qi_host_copy_from_page,
    .image_requirements = host_image_requirements,
    .heap_budget = host_heap_budget,
    .stream_create = qi_host_stream_make,
    .stream_destroy = qi_host_stream_end,
    .stream_mark = qi_host_stream_mark,
    .stream_passed = qi_host_stream_passed,
    .stream_await = qi_host_stream_await,
    .stream_order = qi_host_stream_order,
    .stream_copy = qi_host_stream_copy,
    .stream_fill = qi_host_stream_fill,
    .fill_page = qi_host_fill_page,
    .page_resize = qi_host_page_resize,
    .copy_pages = qi_host_copy_pages,
    .copy_peer = qi_host_copy_pages,
    .fork_prepare = host_fork_prepare,
    .fork_done = host_fork_done,
    .fork_child = host_fork_child,
};

qi_host_device *qi_host_of(const quire_device *device)
{
    if (device && quire_device_backend(device) == &HOST_BACKEND)
        return quire_device_state(device);
    qi_ignore(
        qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "the device is null, or not of the host backend"));
    return NULL;
}

/* ---- public calls ------------------------------------------------------------------------- */

static quire_result check_budgets(const quire_host_options *options)
{
    const quire_host_profile *profile = options->profile ? options->profile : &DEFAULT_PROFILE;
    for (uint32_t i = profile->heap_count; i < QUIRE_MAX_HEAPS; i++)
        if (options->budgets[i])
            return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                                "a budget for heap %u of a device with %u heaps", i,
                                profile->heap_count);
    return QUIRE_SUCCESS;
}

static quire_result check_options(const quire_host_options *options)
{
    if (options->backing != QUIRE_HOST_ANONYMOUS && options->backing != QUIRE_HOST_MEMFD)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "there is no host backing %u",
                            (uint64_t)options->backing);
    if (options->huge_pages > QUIRE_HOST_HUGE_RESERVED)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "there is no huge page mode %u",
                            (uint64_t)options->huge_pages);
    if (options->row_alignment && !qi_is_power_of_two(options->row_alignment))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "row alignment %u is not a power of two",
                            options->row_alignment);
    quire_result result = check_budgets(options);
    return result ? result : qi_check_unused(options, "quire_host_options");
}

static quire_result make_state(const quire_host_options *options, qi_host_device **out)
{
    qi_host host;
    quire_result result = qi_host_init(&host, options->device.host_memory);
    if (result)
        return result;
    qi_host_device *device = qi_host_allocate(&host, 1, sizeof *device);
    if (!device)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a host device");
    device->host = host;
    result = qi_host_streams_init(&device->streams);
    if (result) {
        qi_host_release(&host, device, 1, sizeof *device);
        return result;
    }
    device->backing = options->backing;
    device->huge_pages = options->huge_pages;
    device->row_alignment = options->row_alignment;
    device->system_page = (uint64_t)sysconf(_SC_PAGESIZE);
    resolve_profile(device, options->profile);
    for (int i = 0; i < QUIRE_MAX_HEAPS; i++)
        qi_atomic_init_u64(&device->budgets[i], options->budgets[i]);
    const char *name = device->profile.name ? device->profile.name : "host";
    snprintf(device->name, sizeof device->name, "%s", name);
    *out = device;
    return QUIRE_SUCCESS;
}

quire_result quire_host_open(const quire_host_options *options, quire_device **device)
{
    if (device)
        *device = NULL;
    if (!device)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_host_open: device is null");
    quire_host_options resolved = options ? *options : (quire_host_options){0};
    qi_host_device *state = NULL;
    quire_result result = check_options(&resolved);
    if (!result)
        result = qi_host_check_system(resolved.backing, resolved.huge_pages);
    if (!result)
        result = make_state(&resolved, &state);
    if (result)
        return result;
    result = quire_device_create(&HOST_BACKEND, state, &resolved.device, device);
    if (result)
        host_destroy(state);
    return result;
}

quire_result quire_host_set_budget(quire_device *device, uint32_t heap, uint64_t bytes)
{
    qi_host_device *host = qi_host_of(device);
    if (!host)
        return QUIRE_ERROR_INVALID_ARGUMENT;
    if (heap >= host->profile.heap_count)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE, "the device has no heap %u, it has %u", heap,
                            host->profile.heap_count);
    qi_atomic_store_release_u64(&host->budgets[heap], bytes);
    return QUIRE_SUCCESS;
}

/* The native side of an allocation of a host device. */
static quire_result get_native(quire_memory *memory, quire_allocation allocation,
                               quire_native *native)
{
    quire_result result = quire_get_native(memory, allocation, native);
    if (!result && !qi_host_of(native->device))
        result = qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "the memory is not of the host backend");
    return result;
}

quire_result quire_host_pointer(quire_memory *memory, quire_allocation allocation, void **pointer)
{
    if (!pointer)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_host_pointer: pointer is null");
    quire_native native;
    quire_result result = get_native(memory, allocation, &native);
    *pointer = result ? NULL : native.host;
    return result;
}

quire_result quire_host_descriptor(quire_memory *memory, quire_allocation allocation,
                                   int *descriptor, uint64_t *offset)
{
    if (descriptor)
        *descriptor = -1;
    if (offset)
        *offset = 0;
    if (!descriptor || !offset)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_host_descriptor: descriptor or offset is null");
    quire_native native;
    quire_result result = get_native(memory, allocation, &native);
    if (result)
        return result;
    int found = qi_host_page_descriptor(&native.page);
    if (found < 0)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "the pages are anonymous: open the device with QUIRE_HOST_MEMFD");
    *descriptor = found;
    *offset = native.offset;
    return QUIRE_SUCCESS;
}
