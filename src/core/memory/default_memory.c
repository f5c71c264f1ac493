/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * default_memory.c - a default memory is made without a lock, because the device's callbacks supply
 * its host memory, and is published under the device's lock. A thread that finds another one
 * published there releases its own, which nobody has seen.
 *
 * Also the options and the end of default memories, and the choice of a kind for a request (see
 * default_memory.h).
 */
#include "src/core/memory/default_memory.h"

#include <inttypes.h>
#include <stdio.h>

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/core/allocate/oom_report.h"
#include "src/core/memory/device_members.h"
#include "src/core/memory/memory.h"
#include "src/core/memory/options.h"

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

static quire_result make_default(quire_device *device, uint32_t kind, quire_memory **out)
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
    return *memory ? QUIRE_SUCCESS : make_default(device, kind, memory);
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

/* ---- by kind ------------------------------------------------------------------------------ */

/*
 * Options that no memory accepts are refused first, so that no memory is made for them. The best
 * kind is chosen from those that were not tried, until one has room. So only the memories that are
 * tried are made, and the usual case looks at the kinds once.
 */

/* ---- the choice --------------------------------------------------------------------------- */

quire_result qi_by_kind_resolve(const quire_device *device, const quire_kind_request *given,
                                bool host_read, bool host_write, quire_kind_request *request)
{
    quire_kind_request wanted = given ? *given : (quire_kind_request){.intent = 0};
    bool is_open = !wanted.intent && !qi_kind_has_flags(&wanted);
    if (wanted.intent & QUIRE_INTENT_EXPORT)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "default memories do not export pages: create a memory with the intent");
    if (is_open)
        wanted.intent =
            (host_read ? QUIRE_INTENT_HOST_READ : 0) | (host_write ? QUIRE_INTENT_HOST_WRITE : 0);
    quire_result result = qi_kind_resolve(device, &wanted, request);
    if (result)
        return result;
    if (is_open && !wanted.intent) /* only preferred: another kind can serve a full device */
        request->preferred = QUIRE_DEVICE_LOCAL;
    if ((host_read || host_write) && !request->exact)
        request->required |= QUIRE_HOST_VISIBLE;
    return QUIRE_SUCCESS;
}

/* ---- the search --------------------------------------------------------------------------- */

/* Whether another memory may serve what one has refused. */
static bool is_refusal_of_one(quire_result result)
{
    return qi_is_out_of_pages(result) || result == QUIRE_ERROR_TOO_MANY_ALLOCATIONS ||
           result == QUIRE_ERROR_UNSUPPORTED;
}

typedef quire_result (*make_function)(void *work, quire_memory *memory);

static quire_result make_in_kind(quire_device *device, uint32_t kind, void *work,
                                 make_function make, quire_memory **memory)
{
    quire_result result = qi_default_memory(device, kind, memory);
    if (!result)
        result = make(work, *memory);
    if (result)
        *memory = NULL;
    return result;
}

/* Notes the kinds that have refused a call in their memories. `since`: see qi_oom_note_kinds. */
static void note_kinds(const quire_device *device, uint32_t kinds, uint64_t since)
{
    for (uint32_t left = kinds; left; left &= left - 1) {
        quire_memory *memory = default_at(device, qi_lowest_bit(left));
        if (memory)
            qi_oom_note_kinds(memory, kinds, since);
    }
}

/* Tries the kinds after the best one, which failed. Returns NO_SPACE if none is left; *refused then
   has a bit for each kind. */
static quire_result search_on(quire_device *device, quire_kind_request request, uint32_t kind,
                              void *work, make_function make, quire_memory **memory,
                              uint32_t *refused)
{
    *refused = 0;
    if (!request.mask)
        request.mask = UINT32_MAX;
    for (;;) {
        *refused |= UINT32_C(1) << kind;
        request.mask &= ~(UINT32_C(1) << kind);
        if (!request.mask || qi_kind_choose(device, &request, &kind))
            return QUIRE_ERROR_NO_SPACE;
        quire_result result = make_in_kind(device, kind, work, make, memory);
        if (!is_refusal_of_one(result))
            return result;
    }
}

/* Returns the error of the best kind if all refuse. A success keeps the thread's last error. */
static quire_result search(quire_device *device, const quire_kind_request *request, void *work,
                           make_function make, quire_memory **memory)
{
    uint32_t kind = 0, refused = 0;
    uint64_t since = qi_oom_thread_count();
    qi_error before;
    qi_error_save(&before);
    quire_result first = qi_kind_choose(device, request, &kind);
    if (first)
        return first;
    first = make_in_kind(device, kind, work, make, memory);
    if (!is_refusal_of_one(first))
        return first;
    qi_error error;
    qi_error_save(&error);
    quire_result result = search_on(device, *request, kind, work, make, memory, &refused);
    if (!result)
        qi_error_restore(&before);
    if (result != QUIRE_ERROR_NO_SPACE)
        return result;
    note_kinds(device, refused, since);
    qi_error_restore(&error);
    return first;
}

/* ---- raw ranges --------------------------------------------------------------------------- */

typedef struct wanted_range {
    const quire_allocation_options *options;
    quire_allocation *allocation;
} wanted_range;

static quire_result allocate_in(void *work, quire_memory *memory)
{
    const wanted_range *wanted = work;
    return qi_allocation_create(memory, wanted->options, QI_COMMITTED, wanted->allocation);
}

quire_result qi_by_kind_allocate(quire_device *device, const quire_kind_request *request,
                                 const quire_allocation_options *options, quire_memory **memory,
                                 quire_allocation *allocation)
{
    wanted_range wanted = {options, allocation};
    const qi_request values = {.range = qi_range_request_from(options), .name = options->name};
    quire_result result = qi_check_unused(options, "quire_allocation_options");
    if (!result)
        result = qi_request_check_values(&values);
    return result ? result : search(device, request, &wanted, allocate_in, memory);
}

/* ---- buffers and images ------------------------------------------------------------------- */

typedef struct wanted_object {
    qi_object_build *build;
    quire_allocation *allocation;
} wanted_object;

static quire_result build_in(void *work, quire_memory *memory)
{
    const wanted_object *wanted = work;
    return qi_object_try(wanted->build, memory, false, wanted->allocation);
}

/* Whether no kind of the mask has bytes. */
static bool are_objects_only(const quire_device *device, uint32_t mask)
{
    for (uint32_t i = 0; i < device->info.kind_count; i++)
        if (mask >> i & 1 && !(device->info.kinds[i].flags & QUIRE_OBJECTS_ONLY))
            return false;
    return true;
}

/* Leaves the kinds that can hold the object. Kinds without bytes are otherwise chosen only by
   their flag, which an object implies that no other kind can hold. */
static quire_result restrict_kinds(const quire_device *device, quire_kind_request *kinds,
                                   uint32_t needed)
{
    uint32_t allowed = kinds->mask ? kinds->mask : UINT32_MAX;
    if (!(allowed & needed))
        return qi_fail_with(QUIRE_ERROR_UNSUPPORTED,
                            "the object needs one of kinds %x, and the request allows %x", needed,
                            allowed);
    if (needed != UINT32_MAX) /* a mask of 0 allows all as well, and the sentences leave it out */
        kinds->mask = allowed & needed;
    if (are_objects_only(device, needed) && !kinds->exact && !(kinds->avoided & QUIRE_OBJECTS_ONLY))
        kinds->preferred |= QUIRE_OBJECTS_ONLY;
    return QUIRE_SUCCESS;
}

quire_result qi_by_kind_build(quire_device *device, const quire_kind_request *request,
                              qi_object_build *build, quire_memory **memory,
                              quire_allocation *allocation)
{
    quire_kind_request kinds = *request;
    wanted_object wanted = {build, allocation};
    quire_result result = qi_request_check_values(&build->request);
    if (!result)
        result = qi_object_require(build, device, NULL, false);
    if (!result)
        result = restrict_kinds(device, &kinds, build->needs.kind_mask);
    if (!result)
        result = search(device, &kinds, &wanted, build_in, memory);
    return result ? qi_object_give_up(build, result) : QUIRE_SUCCESS;
}
