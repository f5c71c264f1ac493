/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * device.c - a host device reports the profile that it poses as. Its heaps are counters, which
 * pages charge by a compare-exchange. Also image requirements, and the public calls that need a
 * device or an allocation only.
 */
#include "backends/host/host.h"

#include <stdio.h>
#include <string.h>

#include "src/base/bits.h"
#include "src/base/result.h"

bool qi_host_can_resize(const qi_host_device *device)
{
    return device->backing == QUIRE_HOST_ANONYMOUS &&
           device->huge_pages != QUIRE_HOST_HUGE_RESERVED;
}

quire_result qi_host_describe(void *state, quire_device_info *info)
{
    const qi_host_device *device = state;
    const quire_host_profile *profile = &device->profile;
    snprintf(info->name, sizeof info->name, "%s", device->name);
    info->heap_count = profile->heap_count;
    info->kind_count = profile->kind_count;
    memcpy(info->heaps, profile->heaps, sizeof info->heaps);
    memcpy(info->kinds, profile->kinds, sizeof info->kinds);
    info->limits = profile->limits;
    if (info->limits.elastic_granularity < device->system_page)
        info->limits.elastic_granularity = device->system_page;
    info->limits.elastic_kinds =
        qi_host_can_resize(device) ? (UINT64_C(1) << profile->kind_count) - 1 : 0;
    info->exportable = device->backing == QUIRE_HOST_MEMFD;
    info->survives_fork =
        device->backing == QUIRE_HOST_ANONYMOUS; /* parent and child would share a memfd's bytes */
    return QUIRE_SUCCESS;
}

/* Every image is linear, also one of optimal tiling. Rows are multiples of the row alignment. */
quire_result qi_host_image_requirements(void *state, const quire_image_options *options,
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
                                  "an image of %u x %u x %u texels: its size overflows 64 bits",
                                  options->width, options->height, options->depth);
    out->size = size;
    out->alignment = limits->buffer_alignment;
    out->kind_mask = UINT32_MAX;
    out->row_pitch = row;
    out->slice_pitch = slice;
    return QUIRE_SUCCESS;
}

/* Reads two counters without a lock: they may belong to different moments. */
quire_result qi_host_heap_budget(void *state, uint32_t heap, quire_heap_budget *budget)
{
    const qi_host_device *device = state;
    budget->budget = qi_atomic_load_u64(&device->budgets[heap]);
    budget->usage = qi_atomic_load_u64(&device->heap_used[heap]);
    return QUIRE_SUCCESS;
}

/* Charges with one compare-exchange, so that threads together never exceed the heap. */
quire_result qi_host_charge_heap(qi_host_device *device, uint32_t heap, uint64_t size)
{
    uint64_t limit = device->profile.heaps[heap].size;
    uint64_t used = qi_atomic_load_u64(&device->heap_used[heap]);
    do {
        if (size > limit - used)
            return quire_backend_fail(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, 0,
                                      "heap %u of '%s' has %s of %s left, %s requested", heap,
                                      device->name, qi_bytes(limit - used).text,
                                      qi_bytes(limit).text, qi_bytes(size).text);
    } while (!qi_atomic_exchange_if_u64(&device->heap_used[heap], &used, used + size));
    return QUIRE_SUCCESS;
}

quire_result qi_host_check_lost(const qi_host_device *device)
{
    if (!qi_host_is_lost(device))
        return QUIRE_SUCCESS;
    return quire_backend_fail(QUIRE_ERROR_DEVICE_LOST, 0,
                              "the host device is lost: quire_host_lose was called");
}

/* ---- whose device is it ----------------------------------------------------------------- */

/* Compares the entry that every host table has, because table.c lies above this file. */
qi_host_device *qi_host_of(const quire_device *device)
{
    if (device && quire_device_backend(device)->describe == qi_host_describe)
        return quire_device_state(device);
    qi_ignore(qi_fail_backend(device ? quire_device_backend(device)->name : NULL, "host"));
    return NULL;
}

/* ---- public calls ----------------------------------------------------------------------- */

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

/* The native page and offset of an allocation, which must be of a host device. */
static quire_result get_native(quire_memory *memory, quire_allocation allocation,
                               quire_native *native)
{
    quire_result result = quire_allocation_get_native(memory, allocation, native);
    if (!result && !qi_host_of(native->device))
        result = qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "the memory is not of the host backend");
    return result;
}

quire_result quire_host_pointer(quire_memory *memory, quire_allocation allocation, void **pointer)
{
    if (!pointer)
        return qi_fail_null("quire_host_pointer", "pointer");
    quire_native native;
    quire_memory_info info = {.mappable = false};
    quire_result result = get_native(memory, allocation, &native);
    if (!result)
        result = quire_memory_get_info(memory, &info);
    /* from the page itself: the core's map may exist on demand only */
    *pointer = info.mappable ? qi_host_page_of(&native.page)->host_bytes + native.offset : NULL;
    return result;
}

/* The descriptor is the page's and lives as long as the page. */
quire_result quire_host_descriptor(quire_memory *memory, quire_allocation allocation,
                                   int *descriptor, uint64_t *offset)
{
    if (descriptor)
        *descriptor = -1;
    if (offset)
        *offset = 0;
    if (!descriptor || !offset)
        return qi_fail_null("quire_host_descriptor", !descriptor ? "descriptor" : "offset");
    quire_native native;
    quire_result result = get_native(memory, allocation, &native);
    if (result)
        return result;
    int found = qi_host_page_of(&native.page)->descriptor;
    if (found < 0)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "the pages are anonymous: open the device with QUIRE_HOST_MEMFD");
    *descriptor = found;
    *offset = native.offset;
    return QUIRE_SUCCESS;
}
