/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * allocation.c - the public functions of quire/allocation.h that create, free and describe
 * allocations; access.c has those that read and write their bytes.
 */
#include "quire/allocation.h"

#include <string.h>

#include "src/api/check.h"
#include "src/base/result.h"
#include "src/core/allocate/allocation.h"
#include "src/core/deferred/deferred_free.h"
#include "src/core/find/addresses.h"
#include "src/core/memory/memory.h"

/* ---- allocating ----------------------------------------------------------------------------- */

/* Not inlined: quire_allocate saves no registers for it. */
__attribute__((noinline)) static quire_result allocate_on(quire_memory *memory,
                                                          const quire_allocation_options *options,
                                                          quire_allocation *allocation)
{
    uint32_t slot = 0;
    quire_result result = qi_allocate_on_inline(memory, options, QI_COMMITTED, &slot);
    if (result)
        return zero_info(result, options->info, 1);
    qi_allocation_publish(memory, slot, QI_PHASE_LIVE, options->alignment, options->stream,
                          options->info, allocation);
    return QUIRE_SUCCESS;
}

/* For a call with a null pointer among memory, options and output. */
static quire_result refuse_null(const char *call, const quire_memory *memory,
                                const quire_allocation_options *options)
{
    return zero_info(refuse_null_request(call, memory, options, "allocation"),
                     options ? options->info : NULL, 1);
}

quire_result quire_allocate(quire_memory *memory, const quire_allocation_options *options,
                            quire_allocation *allocation)
{
    if (allocation)
        *allocation = (quire_allocation){0};
    if (!memory || !options || !allocation)
        return refuse_null("quire_allocate", memory, options);
    if (qi_unlikely(options->stream != NULL))
        return allocate_on(memory, options, allocation);
    quire_result result = qi_allocation_create_inline(memory, options, QI_COMMITTED, allocation);
    return qi_unlikely(result) ? zero_info(result, options->info, 1) : QUIRE_SUCCESS;
}

quire_result quire_reserve(quire_memory *memory, const quire_allocation_options *options,
                           quire_allocation *allocation)
{
    if (allocation)
        *allocation = (quire_allocation){0};
    if (!memory || !options || !allocation)
        return refuse_null("quire_reserve", memory, options);
    quire_result result = qi_allocation_create(memory, options, 0, allocation);
    return result ? zero_info(result, options->info, 1) : QUIRE_SUCCESS;
}

quire_result quire_allocate_batch(quire_memory *memory, const quire_allocation_options *options,
                                  quire_allocation *allocations, uint64_t count)
{
    if (allocations)
        memset(allocations, 0, count * sizeof *allocations);
    if (!memory || !options || (!allocations && count))
        return zero_info(
            refuse_null_request("quire_allocate_batch", memory, options, "allocations"),
            options ? options->info : NULL, count);
    quire_result result = qi_allocate_batch(memory, options, allocations, count);
    if (!result)
        return QUIRE_SUCCESS;
    if (allocations)
        memset(allocations, 0, count * sizeof *allocations);
    return zero_info(result, options->info, count);
}

/* What quire_allocate_fallback is asked for. */
typedef struct wanted {
    const quire_allocation_options *options;
    quire_allocation *allocation;
} wanted;

static quire_result allocate_in(void *work, quire_memory *memory, bool skip_callback)
{
    const wanted *w = work;
    return qi_allocation_create(
        memory, w->options, QI_COMMITTED | (skip_callback ? QI_SKIP_CALLBACK : 0), w->allocation);
}

quire_result quire_allocate_fallback(quire_memory *const *memories, uint32_t count,
                                     const quire_allocation_options *options, uint32_t *chosen,
                                     quire_allocation *allocation)
{
    if (allocation)
        *allocation = (quire_allocation){0};
    wanted w = {options, allocation};
    const qi_fallback fallback = {memories, count, &w, allocate_in};
    quire_result result =
        qi_fallback_check("quire_allocate_fallback", memories, count, options, chosen, allocation);
    if (!result)
        result = qi_fallback_run(&fallback, chosen);
    return result ? zero_info(result, options ? options->info : NULL, 1) : QUIRE_SUCCESS;
}

/* ---- committing and freeing ----------------------------------------------------------------- */

quire_result quire_commit(quire_memory *memory, quire_allocation allocation)
{
    if (!memory)
        return qi_fail_null("quire_commit", "memory");
    return memory->addresses ? qi_addresses_commit(memory, allocation)
                             : qi_slot_commit(&memory->slots, allocation);
}

quire_result quire_abort(quire_memory *memory, quire_allocation allocation)
{
    return memory ? qi_claim_and_free(memory, allocation, QI_ACCEPT_RESERVED)
                  : qi_fail_null("quire_abort", "memory");
}

quire_result quire_free(quire_memory *memory, quire_allocation allocation)
{
    return memory ? qi_claim_and_free(memory, allocation, QI_ACCEPT_LIVE)
                  : qi_fail_null("quire_free", "memory");
}

quire_result quire_free_at_address(quire_memory *memory, uint64_t address, quire_stream *stream)
{
    quire_allocation allocation = {0};
    quire_result result = check_memory(memory, "quire_free_at_address");
    if (!result)
        result = qi_find_start(memory, address, &allocation);
    if (!result && stream)
        result = qi_stream_check_marks(stream);
    if (result)
        return result;
    return stream ? qi_deferred_claim_and_free(memory, allocation, stream, 0)
                  : qi_claim_and_free(memory, allocation, QI_ACCEPT_LIVE);
}

quire_result quire_device_owner(const quire_device *device, quire_allocation allocation,
                                quire_memory **memory)
{
    if (memory)
        *memory = NULL;
    if (!device || !memory)
        return qi_fail_null("quire_device_owner", !device ? "device" : "memory");
    if (device->is_disabled)
        return qi_refuse_disabled();
    quire_memory *owner = NULL;
    quire_result result = qi_owner_find(qi_device_queried(device), allocation, &owner);
    if (!result)
        result = qi_slot_check(&owner->slots, allocation, QI_ACCEPT_LIVE | QI_ACCEPT_RESERVED);
    if (!result)
        *memory = owner;
    return result;
}

quire_result quire_device_free(quire_device *device, quire_allocation allocation)
{
    quire_memory *memory = NULL;
    quire_result result = check_device(device, "quire_device_free");
    if (!result)
        result = qi_owner_find(device, allocation, &memory);
    return result ? result : qi_claim_and_free(memory, allocation, QI_ACCEPT_LIVE);
}

quire_result quire_free_batch(quire_memory *memory, const quire_allocation *allocations,
                              uint64_t count)
{
    if (!memory || (!allocations && count))
        return qi_fail_null("quire_free_batch", !memory ? "memory" : "allocations");
    return qi_free_batch(memory, allocations, count);
}

/* ---- finding by address ---------------------------------------------------------------------- */

quire_result quire_memory_find(const quire_memory *memory, uint64_t address,
                               quire_allocation *allocation)
{
    if (allocation)
        *allocation = (quire_allocation){0};
    if (!memory || !allocation)
        return qi_fail_null("quire_memory_find", !memory ? "memory" : "allocation");
    if (memory->device->is_disabled)
        return qi_refuse_disabled();
    if (memory->addresses && qi_addresses_find_start(memory, address, allocation))
        return QUIRE_SUCCESS;
    return qi_find(qi_memory_queried(memory), address, allocation);
}

quire_result quire_device_find(const quire_device *device, uint64_t address, quire_memory **memory,
                               quire_allocation *allocation)
{
    quire_memory *found = NULL;
    if (allocation)
        *allocation = (quire_allocation){0};
    if (memory)
        *memory = NULL;
    if (!device || !allocation)
        return qi_fail_null("quire_device_find", !device ? "device" : "allocation");
    if (device->is_disabled)
        return qi_refuse_disabled();
    quire_result result = qi_find_in_device(qi_device_queried(device), address, &found, allocation);
    if (memory)
        *memory = found;
    return result;
}

/* ---- records -------------------------------------------------------------------------------- */

quire_result quire_allocation_get_info(const quire_memory *memory, quire_allocation allocation,
                                       quire_allocation_info *info)
{
    if (info)
        *info = (quire_allocation_info){0};
    if (!memory || !info)
        return qi_fail_null("quire_allocation_get_info", !memory ? "memory" : "info");
    return qi_allocation_get_info(qi_memory_queried(memory), allocation, info);
}

quire_result quire_allocation_get_name(const quire_memory *memory, quire_allocation allocation,
                                       char *name, size_t size)
{
    if (name && size)
        name[0] = '\0';
    if (!memory || !name)
        return qi_fail_null("quire_allocation_get_name", !memory ? "memory" : "name");
    if (!size)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_allocation_get_name: size is 0");
    return qi_allocation_get_name(qi_memory_queried(memory), allocation, name, size);
}

quire_result quire_allocation_set_name(quire_memory *memory, quire_allocation allocation,
                                       const char *name)
{
    return memory ? qi_allocation_set_name(memory, allocation, name)
                  : qi_fail_null("quire_allocation_set_name", "memory");
}

quire_result quire_allocation_set_user_data(quire_memory *memory, quire_allocation allocation,
                                            uint64_t user_data)
{
    return memory ? qi_allocation_set_user_data(memory, allocation, user_data)
                  : qi_fail_null("quire_allocation_set_user_data", "memory");
}
