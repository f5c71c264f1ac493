/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * devices.c - the memory functions that the host program calls: a block is a range of quire's pages
 * on a device of the wrapped plugin, which is open while the host program has it initialised.
 *
 * Before a block is freed, the adapter waits for the work of the device (synchronize_device). The
 * plugin's own deallocate may wait in this way and programs rely on it, while quire would reuse the
 * range at once.
 */
#include "src/adapters/paddle_runtime/runtime.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "src/base/bits.h"
#include "src/base/result.h"

/* Bytes. Sizes are multiples of it, so that blocks that the host program splits stay aligned. */
static const uint64_t MIN_CHUNK = 256;
static const uint64_t MAX_ALIGNMENT = 4096;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* The mutex protects everything except `functions`, which do not change while a device is open. */
static struct runtime {
    char path[RUNTIME_MAX_PATH + 1];
    qi_pd_interface functions;
    qi_plugin_library *library;
    uint32_t users; /* calls of initialize minus calls of finalize */
    runtime_device devices[RUNTIME_MAX_DEVICES];
} runtime;

void runtime_log(const char *format, ...)
{
    va_list args;
    char text[1024];
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "quire_paddle_runtime: %s\n", text);
}

/*
 * Translates a quire result for the host program. A null pointer reports exhausted memory instead.
 */
static qi_pd_status status_of(quire_result result)
{
    return result == QUIRE_SUCCESS                  ? QI_PD_SUCCESS
           : result == QUIRE_ERROR_INVALID_ARGUMENT ? QI_PD_ERROR
                                                    : QI_PD_INTERNAL_ERROR;
}

void runtime_wrap(const char *path, const qi_pd_interface *functions)
{
    pthread_mutex_lock(&mutex);
    snprintf(runtime.path, sizeof runtime.path, "%s", path);
    runtime.functions = *functions;
    pthread_mutex_unlock(&mutex);
}

/* ---- opening and closing -------------------------------------------------------------------- */

/* The wrapped plugin is loaded at the host program's first call, not when InitPlugin runs. */
qi_pd_status runtime_initialize(void)
{
    quire_result result = QUIRE_SUCCESS;
    pthread_mutex_lock(&mutex);
    if (!runtime.users)
        result = qi_plugin_library_acquire(runtime.path, NULL, &runtime.library);
    runtime.users += !result;
    pthread_mutex_unlock(&mutex);
    if (result)
        runtime_log("%s", quire_last_error());
    return status_of(result);
}

/* Requires the mutex. Also closes a device that open_device could not complete. */
static void close_device(runtime_device *d)
{
    for (int role = 0; role < RUNTIME_ROLES; role++)
        quire_memory_destroy_all(&d->memories[role]);
    quire_device_destroy(&d->device);
    runtime_blocks_finish(&d->blocks);
    *d = (runtime_device){.users = 0};
}

qi_pd_status runtime_finalize(void)
{
    pthread_mutex_lock(&mutex);
    if (runtime.users && !--runtime.users) {
        for (int i = 0; i < RUNTIME_MAX_DEVICES; i++)
            if (runtime.devices[i].users)
                close_device(&runtime.devices[i]);
        qi_plugin_library_release(runtime.library);
        runtime.library = NULL;
    }
    pthread_mutex_unlock(&mutex);
    return QI_PD_SUCCESS;
}

/* Leaves memories[role] NULL if the plugin has no memory of the kind. */
static quire_result create_memory(runtime_device *d, runtime_role role, uint32_t kind)
{
    static const char *const NAMES[] = {"device", "host", "unified"};
    const quire_memory_options options = {.name = NAMES[role],
                                          .kind.mask = UINT32_C(1) << (kind & 31)};
    return kind == QUIRE_PLUGIN_NO_KIND
               ? QUIRE_SUCCESS
               : quire_memory_create(d->device, &options, &d->memories[role]);
}

static quire_result fill_device(runtime_device *d, uint32_t index)
{
    const quire_plugin_options options = {.path = runtime.path, .device = index};
    quire_plugin_info info;
    quire_result result = quire_plugin_open(&options, &d->device);
    if (!result)
        result = quire_plugin_get_info(d->device, &info);
    if (result)
        return result;
    uint64_t chunk = info.sizes.min_chunk, power = chunk & (UINT64_C(0) - chunk);
    power = power < MAX_ALIGNMENT ? power : MAX_ALIGNMENT;
    d->alignment = power > MIN_CHUNK ? power : MIN_CHUNK;
    d->id = info.id;
    const uint32_t kinds[] = {0, info.host_kind, info.unified_kind};
    for (int role = 0; role < RUNTIME_ROLES && !result; role++)
        result = create_memory(d, (runtime_role)role, kinds[role]);
    return result;
}

/* Requires the mutex. On failure the device is closed. */
static quire_result open_device(runtime_device *d, uint32_t index)
{
    if (!runtime_blocks_init(&d->blocks))
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a device");
    quire_result result = fill_device(d, index);
    if (result)
        close_device(d);
    return result;
}

/* Requires the mutex. The position of a device in the wrapped plugin's list; UINT32_MAX if it is
   not in the list. */
static uint32_t index_of(const qi_pd_device *device)
{
    const qi_plugin_library *library = runtime.library;
    for (uint32_t i = 0; library && i < library->unit_count && i < RUNTIME_MAX_DEVICES; i++)
        if (library->units[i].listed == device->id)
            return i;
    return UINT32_MAX;
}

qi_pd_status runtime_init_device(qi_pd_device *device)
{
    pthread_mutex_lock(&mutex);
    uint32_t index = index_of(device);
    runtime_device *d = index < RUNTIME_MAX_DEVICES ? &runtime.devices[index] : NULL;
    quire_result result = QUIRE_SUCCESS;
    if (!d)
        result = qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT, "there is no device %d", device->id);
    else if (!d->users)
        result = open_device(d, index);
    if (!result) {
        d->users++;
        device->id = d->id; /* the number that the wrapped plugin assigned */
    }
    pthread_mutex_unlock(&mutex);
    if (result)
        runtime_log("%s", quire_last_error());
    return status_of(result);
}

/* Finds an open device by its number, which init_device may have changed. */
static runtime_device *find_device(const qi_pd_device *device)
{
    runtime_device *found = NULL;
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < RUNTIME_MAX_DEVICES && !found; i++)
        if (runtime.devices[i].users && runtime.devices[i].id == device->id)
            found = &runtime.devices[i];
    pthread_mutex_unlock(&mutex);
    return found;
}

qi_pd_status runtime_deinit_device(qi_pd_device *device)
{
    runtime_device *d = find_device(device);
    if (!d)
        return QI_PD_ERROR;
    pthread_mutex_lock(&mutex);
    if (!--d->users)
        close_device(d);
    pthread_mutex_unlock(&mutex);
    return QI_PD_SUCCESS;
}

/* ---- memory --------------------------------------------------------------------------------- */

/* Returns true for results that releasing memory may cure. */
static bool is_exhausted(quire_result result)
{
    return result == QUIRE_ERROR_OUT_OF_DEVICE_MEMORY || result == QUIRE_ERROR_OVER_BUDGET ||
           result == QUIRE_ERROR_TOO_MANY_PAGES || result == QUIRE_ERROR_OUT_OF_RANGE;
}

/* Allocates a range and records its address. */
static quire_result allocate_block(runtime_device *d, runtime_role role, size_t size,
                                   uint64_t *address)
{
    const quire_allocation_options options = {.size = size, .alignment = d->alignment};
    runtime_block block = {.size = size, .role = role};
    quire_native native;
    quire_result result = quire_allocate(d->memories[role], &options, &block.allocation);
    if (result)
        return result;
    result = quire_allocation_get_native(d->memories[role], block.allocation, &native);
    *address = native.page.address + native.offset;
    if (!result && runtime_blocks_add(&d->blocks, *address, &block))
        return QUIRE_SUCCESS;
    quire_free(d->memories[role], block.allocation);
    return result ? result : qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a block");
}

/* Reports exhausted memory as success with a null pointer. Paddle then releases its idle blocks and
   retries, while it treats an error as fatal. */
static qi_pd_status allocate(const qi_pd_device *device, void **pointer, size_t size,
                             runtime_role role)
{
    runtime_device *d = find_device(device);
    uint64_t address = 0;
    *pointer = NULL;
    if (!d || !d->memories[role])
        return QI_PD_ERROR;
    quire_result result = allocate_block(d, role, size, &address);
    if (is_exhausted(result))
        return QI_PD_SUCCESS;
    if (result) {
        runtime_log("%s", quire_last_error());
        return status_of(result);
    }
    *pointer = (void *)(uintptr_t)address;
    return QI_PD_SUCCESS;
}

/* Work that was submitted earlier may still use the block. */
static qi_pd_status await_device(const qi_pd_device *device)
{
    const qi_pd_interface *f = &runtime.functions;
    qi_pd_device copy = *device;
    qi_pd_status status = f->synchronize_device ? f->set_device(&copy) : QI_PD_SUCCESS;
    return status || !f->synchronize_device ? status : f->synchronize_device(&copy);
}

/* Frees the block even if waiting fails, and then reports the failure of the wait. */
static qi_pd_status deallocate(const qi_pd_device *device, void *pointer, size_t size,
                               runtime_role role)
{
    runtime_device *d = find_device(device);
    runtime_block block;
    if (!d || !pointer ||
        !runtime_blocks_remove(&d->blocks, (uintptr_t)pointer, size, role, &block)) {
        runtime_log("%p with %zu byte%s is freed on device %d, which has no such block", pointer,
                    size, qi_plural(size), device->id);
        return QI_PD_ERROR;
    }
    qi_pd_status status = await_device(device);
    quire_result result = quire_free(d->memories[role], block.allocation);
    if (result)
        runtime_log("%s", quire_last_error());
    return status ? status : status_of(result);
}

#define PAIR(name, role)                                                                           \
    qi_pd_status runtime_##name##_allocate(qi_pd_device *device, void **pointer, size_t size)      \
    {                                                                                              \
        return allocate(device, pointer, size, role);                                              \
    }                                                                                              \
    qi_pd_status runtime_##name##_deallocate(qi_pd_device *device, void *pointer, size_t size)     \
    {                                                                                              \
        return deallocate(device, pointer, size, role);                                            \
    }

PAIR(device, RUNTIME_DEVICE)
PAIR(host, RUNTIME_HOST)
PAIR(unified, RUNTIME_UNIFIED)

/* ---- sizes ---------------------------------------------------------------------------------- */

/* Free memory in quire's pages counts as free for the host program. */
qi_pd_status runtime_stats(qi_pd_device *device, size_t *total, size_t *free_bytes)
{
    runtime_device *d = find_device(device);
    quire_budget_info budget;
    quire_memory_stats stats;
    *total = *free_bytes = 0;
    if (!d)
        return QI_PD_ERROR;
    quire_result result = quire_device_get_budget(d->device, 0, &budget);
    if (!result)
        result = quire_memory_get_stats(d->memories[RUNTIME_DEVICE], &stats);
    if (result)
        return status_of(result);
    uint64_t left = budget.available + stats.free_bytes;
    *total = budget.budget;
    *free_bytes = left < budget.budget ? left : budget.budget;
    return QI_PD_SUCCESS;
}

qi_pd_status runtime_min_chunk(qi_pd_device *device, size_t *size)
{
    size_t asked = 0;
    qi_pd_status status = runtime.functions.device_min_chunk_size
                              ? runtime.functions.device_min_chunk_size(device, &asked)
                              : QI_PD_ERROR;
    *size = status || asked < MIN_CHUNK ? MIN_CHUNK : asked;
    return QI_PD_SUCCESS;
}

/* With 0 the host program keeps no pool of its own above quire's. */
qi_pd_status runtime_max_chunk(qi_pd_device *device, size_t *size)
{
    (void)device;
    *size = 0;
    return QI_PD_SUCCESS;
}
