/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * devices.c - a device is opened when it is first used and stays open. Also the handlers that mark
 * the child of a fork, and messages: see state.h.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/adapters/torch/state.h"

static _Atomic(torch_device *) devices[TORCH_MAX_DEVICES];
static pthread_mutex_t open_mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int device_count; /* of torch_init; 0: unknown */
static atomic_bool is_forked;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static _Thread_local char message[768];

/* ---- messages ------------------------------------------------------------------------------- */

quire_result torch_fail(quire_result result, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return result;
}

quire_result torch_fail_quire(const char *what)
{
    return torch_fail(quire_last_result(), "%s: %s", what, quire_last_error());
}

const char *torch_message(void)
{
    return message;
}

/* ---- forks ---------------------------------------------------------------------------------- */

static void note_fork(void)
{
    atomic_store(&is_forked, true);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, note_fork);
}

bool torch_is_forked(void)
{
    return atomic_load_explicit(&is_forked, memory_order_relaxed);
}

quire_result torch_check_fork(void)
{
    return torch_is_forked() ? torch_fail(QUIRE_ERROR_NOT_PERMITTED,
                                          "CUDA does not work in the child of a fork: start "
                                          "processes by spawn")
                             : QUIRE_SUCCESS;
}

/* ---- opening -------------------------------------------------------------------------------- */

/* torch aligns to 512 bytes; with granules of this size every range is. */
quire_result torch_memory_create(torch_device *d, const char *name, torch_pool_id id,
                                 torch_pages *pages, quire_memory **memory)
{
    const quire_memory_options options = {
        .name = name, .find_by_address = true, .fit = {.granule = 512}};
    if (quire_memory_create(d->device, &options, memory))
        return torch_fail_quire("a memory");
    quire_result result = torch_pages_watch(pages, d->ordinal, id, *memory);
    if (result) {
        quire_memory_destroy_all(memory);
        torch_pages_finish(pages);
    }
    return result;
}

static quire_result fill(torch_device *d)
{
    char ordinal[16];
    quire_cuda_info info;
    snprintf(ordinal, sizeof ordinal, "%d", d->ordinal);
    const quire_cuda_options options = {
        .device = ordinal,
        .settings = {.kinds = QUIRE_CUDA_KIND_BIT(QUIRE_CUDA_DEVICE), .reachable_peers = true}};
    if (quire_cuda_open(&options, &d->device) || quire_cuda_get_info(d->device, &info))
        return torch_fail_quire("the device cannot be opened");
    d->context = info.context;
    return torch_memory_create(d, "torch", (torch_pool_id){0, 0}, &d->pages, &d->memory);
}

static void destroy(torch_device *d)
{
    torch_late_retry(d);
    torch_pools_destroy(d); /* first: frees of the device's memory may wait for capture streams */
    if (d->memory) {
        quire_memory_destroy_all(&d->memory);
        torch_pages_finish(&d->pages);
    }
    torch_streams_destroy(&d->streams);
    if (d->device && quire_device_destroy(&d->device))
        torch_fail_quire("the device");
    pthread_mutex_destroy(&d->streams.mutex);
    pthread_rwlock_destroy(&d->lock);
    pthread_mutex_destroy(&d->late_mutex);
    free(d);
}

/* Requires the mutex. */
static quire_result make(int ordinal, torch_device **device)
{
    torch_device *d = calloc(1, sizeof *d);
    if (!d)
        return torch_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a device");
    d->ordinal = ordinal;
    pthread_rwlock_init(&d->lock, NULL);
    pthread_mutex_init(&d->late_mutex, NULL);
    torch_streams_init(&d->streams, false);
    quire_result result = fill(d);
    if (result) {
        destroy(d);
        return result;
    }
    *device = d;
    atomic_store(&devices[ordinal], d);
    return QUIRE_SUCCESS;
}

static quire_result check_ordinal(int ordinal)
{
    int count = atomic_load(&device_count);
    if (ordinal < 0 || ordinal >= TORCH_MAX_DEVICES)
        return torch_fail(QUIRE_ERROR_INVALID_ARGUMENT, "there is no device %d", ordinal);
    if (count && ordinal >= count)
        return torch_fail(QUIRE_ERROR_INVALID_ARGUMENT, "device %d of %d", ordinal, count);
    return QUIRE_SUCCESS;
}

quire_result torch_device_open(int ordinal, torch_device **device)
{
    *device = torch_device_get(ordinal);
    if (*device)
        return QUIRE_SUCCESS;
    quire_result result = check_ordinal(ordinal);
    if (result)
        return result;
    pthread_once(&fork_once, watch_forks);
    pthread_mutex_lock(&open_mutex);
    *device = torch_device_get(ordinal);
    if (!*device)
        result = make(ordinal, device);
    pthread_mutex_unlock(&open_mutex);
    return result;
}

torch_device *torch_device_get(int ordinal)
{
    return ordinal >= 0 && ordinal < TORCH_MAX_DEVICES ? atomic_load(&devices[ordinal]) : NULL;
}

quire_result torch_init(int count)
{
    if (count < 0 || count > TORCH_MAX_DEVICES)
        return torch_fail(QUIRE_ERROR_INVALID_ARGUMENT, "%d devices; at most %d", count,
                          TORCH_MAX_DEVICES);
    atomic_store(&device_count, count);
    return torch_check_fork();
}

void torch_close(void)
{
    for (int i = 0; i < TORCH_MAX_DEVICES; i++) {
        torch_device *d = torch_device_get(i);
        atomic_store(&devices[i], NULL);
        if (d)
            destroy(d);
    }
    atomic_store(&device_count, 0);
    torch_record_history(0);
}
