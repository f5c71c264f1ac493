/*
 * default_memory.c - makes and ends the default memories of a device (see default_memory.h).
 *
 * A memory is made without a lock, because the device's callbacks supply its host memory, and is
 * published under the device's lock. A thread that finds another one published there releases its
 * own, which nobody has seen.
 */
#include "src/core/memory/default_memory.h"

#include <inttypes.h>
#include <stdio.h>

#include "src/base/result.h"
#include "src/core/memory/device_members.h"
#include "src/core/memory/memory_life.h"

static quire_memory *default_at(const quire_device *device, uint32_t kind)
{
    return qi_atomic_load_acquire_pointer(&device->defaults[kind]);
}

static quire_result make(quire_device *device, uint32_t kind, quire_memory **out)
{
    char name[QUIRE_MAX_NAME + 1];
    snprintf(name, sizeof name, "default memory of kind %" PRIu32, kind);
    const quire_memory_options options = {.name = name, .kind.mask = UINT32_C(1) << kind};
    quire_memory *memory = NULL;
    quire_result result =
        qi_memory_make(device, &options, (quire_page_extra){.pointer = NULL}, &memory);
    if (result)
        return result;
    memory->is_default = true;
    if (qi_device_add_default(device, memory, out)) {
        qi_memory_announce(memory);
        return QUIRE_SUCCESS;
    }
    qi_memory_release(memory);
    return *out ? QUIRE_SUCCESS
                : qi_fail_text(QUIRE_ERROR_WRONG_STATE, "device '%s' is being destroyed",
                               device->info.name);
}

quire_result qi_default_memory(quire_device *device, uint32_t kind, quire_memory **memory)
{
    *memory = default_at(device, kind);
    return *memory ? QUIRE_SUCCESS : make(device, kind, memory);
}

/* ---- the end ------------------------------------------------------------------------------ */

static void set_ending(quire_device *device, bool is_ending)
{
    qi_lock_acquire(&device->lock);
    device->is_ending = is_ending;
    qi_lock_release(&device->lock);
}

/* Prepares all, also after a failure, so that the log has what is in use in each of them. */
static quire_result prepare_all(quire_device *device)
{
    quire_result first = QUIRE_SUCCESS;
    qi_error error;
    for (uint32_t kind = 0; kind < device->info.kind_count; kind++) {
        quire_memory *memory = default_at(device, kind);
        quire_result result = memory ? qi_memory_prepare_end(memory) : QUIRE_SUCCESS;
        if (!result || first)
            continue;
        first = result;
        qi_error_save(&error);
    }
    if (first)
        qi_error_restore(&error);
    return first;
}

static void keep_all(quire_device *device)
{
    for (uint32_t kind = 0; kind < device->info.kind_count; kind++) {
        quire_memory *memory = default_at(device, kind);
        if (memory)
            memory->is_ending = false;
    }
}

quire_result qi_device_prepare_end(quire_device *device)
{
    quire_result result = qi_device_check_unused(device);
    if (result)
        return result;
    set_ending(device, true);
    result = prepare_all(device);
    if (!result)
        result = qi_device_check_stream_records(device);
    if (!result)
        return QUIRE_SUCCESS;
    keep_all(device);
    set_ending(device, false);
    return result;
}

/* Also frees what hooks and log sinks allocate meanwhile. */
void qi_default_memories_destroy(quire_device *device)
{
    for (uint32_t kind = 0; kind < device->info.kind_count; kind++) {
        quire_memory *memory = default_at(device, kind);
        if (memory)
            qi_memory_destroy_all(&memory);
    }
}
