/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * device.c - the record of a device: creation and destruction.
 *
 * A device is created in two steps, the record here and its registration for forks
 * (memory/fork.c), which is why qi_device_create does not log and qi_device_free exists.
 */
#include "src/core/device/device.h"

#include <string.h>

#include "src/base/result.h"

/* 60 s: longer than submitted work takes between two points. A program with longer work waits for
   its point before it destroys the memory. */
static const uint64_t DEFAULT_STALL_TIMEOUT = UINT64_C(60000000000);

/* A table of an older version is shorter: the functions that it lacks stay NULL. */
static void copy_table(quire_device *device, const quire_backend *table)
{
    size_t size = table->size < sizeof device->table ? table->size : sizeof device->table;
    memcpy(&device->table, table, size);
    device->original = table;
}

quire_result qi_device_create(const quire_backend *table, void *state,
                              const quire_device_options *options, quire_device **out)
{
    qi_host host;
    quire_result result = qi_host_init(&host, options->host_memory);
    if (result)
        return result;
    quire_device *device = qi_host_allocate(&host, 1, sizeof *device);
    if (!device)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a device");
    device->host = host;
    device->log = options->log;
    device->state = state;
    device->stall_timeout = DEFAULT_STALL_TIMEOUT;
    qi_lock_init(&device->lock, "device", QI_RANK_DEVICE);
    copy_table(device, table);
    result = qi_device_describe(device);
    if (result)
        qi_device_free(device);
    else
        *out = device;
    return result;
}

void qi_device_free(quire_device *device)
{
    qi_host_release(&device->host, device->default_options, device->info.kind_count,
                    sizeof *device->default_options);
    qi_host host = device->host; /* the record holds the callbacks that free it */
    qi_host_release(&host, device, 1, sizeof *device);
}

void qi_device_destroy(quire_device *device)
{
    bool is_named = qi_atomic_load_acquire_u64(&device->stream_records) != 0;
    if (device->table.destroy)
        device->table.destroy(device->state);
    qi_log(&device->log, QUIRE_LOG_INFO, "device '%s' closed", device->info.name);
    if (!is_named) /* true only in the child of a fork */
        qi_device_free(device);
}
