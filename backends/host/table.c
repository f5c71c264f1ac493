/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * table.c - the function table of the host backend, opening a host device, and its end.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backends/host/host.h"
#include "src/base/bits.h"
#include "src/base/result.h"

#define DEFAULT_HEAP_SIZE (UINT64_C(1) << 40) /* bytes of address space, not of RAM */

static const uint64_t UNKNOWN_HEAP = UINT64_C(8) << 30; /* for a profile heap of size 0 */
static const uint64_t DEFAULT_ROW_ALIGNMENT = 64;       /* a cache line */
static const uint64_t BUFFER_ALIGNMENT = 64;            /* a cache line; lavapipe requires it too */

/* Models a discrete GPU: a device heap of which the host reaches one kind, and a host heap. */
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

/* ---- the profile ------------------------------------------------------------------------ */

/* Raises a limit to the minimum of the host. Leaves an invalid limit (not a power of two)
   unchanged, so that the core rejects it by name. */
static void raise_to(uint64_t *value, uint64_t least)
{
    if (*value < least && (!*value || qi_is_power_of_two(*value)))
        *value = least;
}

/* Requires device->huge_pages and device->row_alignment. */
static void resolve_profile(qi_host_device *device, const quire_host_profile *requested)
{
    quire_host_profile *profile = &device->profile;
    *profile = requested ? *requested : DEFAULT_PROFILE;
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
        limits->page_alignment = 0; /* 0: pages honour the alignment of each request */
    raise_to(&limits->image_row_alignment, DEFAULT_ROW_ALIGNMENT);
    if (device->row_alignment)
        limits->image_row_alignment = device->row_alignment;
}

/* ---- destruction ------------------------------------------------------------------------ */

static void host_destroy(void *state)
{
    qi_host_device *device = state;
    qi_host host = device->host;
    qi_host_streams_destroy(&device->streams);
    qi_host_release(&host, device, 1, sizeof *device);
}

/* ---- forks ------------------------------------------------------------------------------ */

/* The fork holds the stream mutex, so that the child finds the stream records consistent. */

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

/* Restores heap_used to the bytes of the live pages: a page creation that another thread was
   running at the fork has charged its heap and never finishes here. */
static void host_fork_child(void *state, const uint64_t heap_bytes[QUIRE_MAX_HEAPS])
{
    qi_host_device *device = state;
    for (int i = 0; i < QUIRE_MAX_HEAPS; i++)
        qi_atomic_store_release_u64(&device->heap_used[i], heap_bytes[i]);
    qi_host_streams_forked(&device->streams);
}

/* ---- the table -------------------------------------------------------------------------- */

static const quire_backend HOST_BACKEND = {
    .size = sizeof(quire_backend),
    .name = "host",
    .features = QUIRE_BACKEND_MAP | QUIRE_BACKEND_FLUSH | QUIRE_BACKEND_COPY_TO_PAGE |
                QUIRE_BACKEND_COPY_FROM_PAGE | QUIRE_BACKEND_IMAGES | QUIRE_BACKEND_BUDGET |
                QUIRE_BACKEND_STREAMS | QUIRE_BACKEND_STREAM_ORDER | QUIRE_BACKEND_STREAM_COPY |
                QUIRE_BACKEND_STREAM_FILL | QUIRE_BACKEND_FILL | QUIRE_BACKEND_COPY_PAGES |
                QUIRE_BACKEND_COPY_PEER | QUIRE_BACKEND_ROWS | QUIRE_BACKEND_ELASTIC |
                QUIRE_BACKEND_FORK,
    .describe = qi_host_describe, /* also identifies the backend: qi_host_of */
    .page_create = qi_host_page_create,
    .page_destroy = qi_host_page_destroy,
    .destroy = host_destroy,
    .map = qi_host_page_map,
    .unmap = qi_host_page_unmap,
    .flush = qi_host_page_flush,
    .invalidate = qi_host_page_invalidate,
    .copy_to_page = qi_host_copy_to_page,
    .copy_from_page = qi_host_copy_from_page,
    .image_requirements = qi_host_image_requirements,
    .heap_budget = qi_host_heap_budget,
    .stream_create = qi_host_stream_create,
    .stream_destroy = qi_host_stream_destroy,
    .stream_mark = qi_host_stream_mark,
    .stream_passed = qi_host_stream_passed,
    .stream_await = qi_host_stream_await,
    .stream_order = qi_host_stream_order,
    .stream_copy = qi_host_stream_copy,
    .stream_fill = qi_host_stream_fill,
    .fill_page = qi_host_fill_page,
    .page_back = qi_host_page_back,
    .page_unback = qi_host_page_unback,
    .copy_pages = qi_host_copy_pages,
    .copy_peer = qi_host_copy_pages,
    .fork_prepare = host_fork_prepare,
    .fork_done = host_fork_done,
    .fork_child = host_fork_child,
};

/* ---- opening a device ------------------------------------------------------------------- */

static quire_result check_budgets(const quire_host_options *options)
{
    const quire_host_profile *profile = options->profile ? options->profile : &DEFAULT_PROFILE;
    for (uint32_t i = profile->heap_count; i < QUIRE_MAX_HEAPS; i++)
        if (options->budgets[i])
            return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                                "a budget for heap %u of a device with %u heap%s", i,
                                profile->heap_count);
    return QUIRE_SUCCESS;
}

static quire_result check_options(const quire_host_options *options)
{
    if (options->backing != QUIRE_HOST_ANONYMOUS && options->backing != QUIRE_HOST_MEMFD)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "unknown host backing %u",
                            (uint64_t)options->backing);
    if (options->huge_pages > QUIRE_HOST_HUGE_RESERVED)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "unknown huge page mode %u",
                            (uint64_t)options->huge_pages);
    if (options->row_alignment && !qi_is_power_of_two(options->row_alignment))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "row alignment %u is not a power of two",
                            options->row_alignment);
    quire_result result = check_budgets(options);
    if (!result && options->profile)
        result = qi_check_unused(options->profile, "quire_host_profile");
    return result ? result : qi_check_unused(options, "quire_host_options");
}

/* The caller releases the state with host_destroy. On failure nothing is allocated. */
static quire_result create_state(const quire_host_options *options, qi_host_device **out)
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
        return qi_fail_null("quire_host_open", "device");
    quire_host_options resolved = options ? *options : (quire_host_options){0};
    qi_host_device *state = NULL;
    quire_result result = check_options(&resolved);
    if (!result)
        result = qi_host_check_system(resolved.backing, resolved.huge_pages);
    if (!result)
        result = create_state(&resolved, &state);
    if (result)
        return result;
    result = quire_device_create(&HOST_BACKEND, state, &resolved.device, device);
    if (result)
        host_destroy(state);
    return result;
}
