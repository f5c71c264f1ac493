/*
 * default_memory.c - makes and ends the default memories of a device, and keeps their options (see
 * default_memory.h).
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
#include "src/core/memory/memory_options.h"

static quire_memory *default_at(const quire_device *device, uint32_t kind)
{
    return qi_atomic_load_acquire_pointer(&device->defaults[kind]);
}

/* ---- options ------------------------------------------------------------------------------ */

/* Returns the options that the default memory of a kind is made with, without a name. */
static quire_memory_options options_of(quire_device *device, uint32_t kind)
{
    quire_memory_options options = {.name = NULL};
    qi_lock_acquire(&device->lock);
    if (device->default_options)
        options = device->default_options[kind];
    qi_lock_release(&device->lock);
    options.kind = (quire_kind_request){.mask = UINT32_C(1) << kind};
    return options;
}

/* Writes the kinds that options are for, a bit for each. */
static quire_result select_kinds(const quire_device *device, const quire_memory_options *options,
                                 uint32_t *kinds)
{
    const quire_kind_request *request = &options->kind;
    if (options->name)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "options of default memories have no name: quire names each by its kind");
    if (request->intent || request->preferred || request->avoided || request->exact)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "options of default memories select kinds by "
                                                     "quire_kind_request.required and .mask alone");
    *kinds = 0;
    for (uint32_t kind = 0; kind < device->info.kind_count; kind++)
        if ((!request->mask || request->mask >> kind & 1) &&
            (device->info.kinds[kind].flags & request->required) == request->required)
            *kinds |= UINT32_C(1) << kind;
    return *kinds ? QUIRE_SUCCESS
                  : qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                                 "no memory kind of device '%s' is in the mask and has %s",
                                 device->info.name, qi_flags(request->required).text);
}

/* Whether memories of all these kinds can be made with the options. */
static quire_result try_kinds(quire_device *device, quire_memory_options options, uint32_t kinds)
{
    quire_result result = QUIRE_SUCCESS;
    for (uint32_t kind = 0; kind < device->info.kind_count && !result; kind++) {
        quire_memory resolved = {.kind = 0};
        options.kind = (quire_kind_request){.mask = UINT32_C(1) << kind};
        if (kinds >> kind & 1)
            result = qi_memory_resolve(device, &options, &resolved);
    }
    return result;
}

/* Requires the lock of the device, and the table of options. Returns a memory that exists for one
   of `kinds`, or sets the options and returns NULL. */
static quire_memory *set_options(quire_device *device, const quire_memory_options *options,
                                 uint32_t kinds)
{
    for (uint32_t kind = 0; kind < device->info.kind_count; kind++)
        if (kinds >> kind & 1 && default_at(device, kind))
            return default_at(device, kind);
    for (uint32_t kind = 0; kind < device->info.kind_count; kind++)
        if (kinds >> kind & 1)
            device->default_options[kind] = *options;
    return NULL;
}

quire_result qi_default_set_options(quire_device *device, const quire_memory_options *options)
{
    const uint32_t count = device->info.kind_count;
    uint32_t kinds = 0;
    quire_result result = select_kinds(device, options, &kinds);
    if (!result)
        result = try_kinds(device, *options, kinds);
    if (result)
        return result;
    quire_memory_options *table = qi_host_allocate(&device->host, count, sizeof *table);
    if (!table)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for options");
    qi_lock_acquire(&device->lock);
    if (!device->default_options) {
        device->default_options = table;
        table = NULL;
    }
    const quire_memory *present = set_options(device, options, kinds);
    qi_lock_release(&device->lock);
    qi_host_release(&device->host, table, count, sizeof *table);
    return present
               ? qi_fail_text(QUIRE_ERROR_WRONG_STATE, "memory '%s' of device '%s' exists already",
                              present->name, device->info.name)
               : QUIRE_SUCCESS;
}

/* ---- creation ----------------------------------------------------------------------------- */

static quire_result make(quire_device *device, uint32_t kind, quire_memory **out)
{
    char name[QUIRE_MAX_NAME + 1];
    snprintf(name, sizeof name, "default memory of kind %" PRIu32, kind);
    quire_memory_options options = options_of(device, kind);
    options.name = name;
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
            qi_atomic_store_release_u32(&memory->is_ending, false);
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
