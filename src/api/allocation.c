/*
 * allocation.c - the public functions of quire/allocation.h that create, free and describe
 * allocations; access.c has those that read and write their bytes.
 */
#include "quire/allocation.h"

#include <string.h>

#include "src/api/check.h"
#include "src/base/result.h"
#include "src/core/allocate/allocation.h"
#include "src/core/allocate/batch.h"
#include "src/core/allocate/fallback.h"
#include "src/core/deferred/deferred_free.h"

/* ---- allocating ----------------------------------------------------------------------------- */

static inline quire_result allocate(quire_memory *memory, const quire_allocation_options *options,
                                    int how, quire_allocation *allocation)
{
    if (allocation)
        *allocation = (quire_allocation){0};
    if (!memory || !options || !allocation)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_allocate: memory, options or allocation is null");
    return qi_allocation_create(memory, options, how, allocation);
}

quire_result quire_allocate(quire_memory *memory, const quire_allocation_options *options,
                            quire_allocation *allocation)
{
    return allocate(memory, options, QI_COMMITTED, allocation);
}

quire_result quire_reserve(quire_memory *memory, const quire_allocation_options *options,
                           quire_allocation *allocation)
{
    return allocate(memory, options, 0, allocation);
}

quire_result quire_allocate_batch(quire_memory *memory, const quire_allocation_options *options,
                                  quire_allocation *allocations, uint64_t count)
{
    if (allocations)
        memset(allocations, 0, count * sizeof *allocations);
    if (!memory || !options || (!allocations && count))
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_allocate_batch: memory, options or allocations is null");
    quire_result result = qi_allocate_batch(memory, options, allocations, count);
    if (result && allocations)
        memset(allocations, 0, count * sizeof *allocations);
    return result;
}

static quire_result allocate_in(const qi_fallback *fallback, quire_memory *memory, bool is_unaided)
{
    quire_allocation *allocation = fallback->made;
    *allocation = (quire_allocation){0};
    return qi_allocation_create(memory, fallback->options,
                                QI_COMMITTED | (is_unaided ? QI_UNAIDED : 0), allocation);
}

quire_result quire_allocate_fallback(quire_memory *const *memories, uint32_t count,
                                     const quire_allocation_options *options, uint32_t *chosen,
                                     quire_allocation *allocation)
{
    if (allocation)
        *allocation = (quire_allocation){0};
    const qi_fallback fallback = {memories, count, options, allocation, allocate_in};
    return qi_fallback_run(&fallback, chosen);
}

/* ---- committing and freeing ----------------------------------------------------------------- */

quire_result quire_commit(quire_memory *memory, quire_allocation allocation)
{
    return memory ? qi_slot_commit(&memory->slots, allocation) : refuse_null_memory();
}

quire_result quire_abort(quire_memory *memory, quire_allocation allocation)
{
    return memory ? qi_claim_and_free(memory, allocation, QI_ACCEPT_RESERVED)
                  : refuse_null_memory();
}

quire_result quire_free(quire_memory *memory, quire_allocation allocation)
{
    return memory ? qi_claim_and_free(memory, allocation, QI_ACCEPT_LIVE) : refuse_null_memory();
}

quire_result quire_free_batch(quire_memory *memory, const quire_allocation *allocations,
                              uint64_t count)
{
    if (!memory || (!allocations && count))
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_free_batch: memory or allocations is null");
    return qi_free_batch(memory, allocations, count);
}

/* ---- records -------------------------------------------------------------------------------- */

quire_result quire_allocation_get_info(quire_memory *memory, quire_allocation allocation,
                                       quire_allocation_info *info)
{
    if (info)
        *info = (quire_allocation_info){0};
    if (!memory || !info)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_allocation_get_info: memory or info is null");
    return qi_allocation_get_info(memory, allocation, info);
}

quire_result quire_allocation_get_name(quire_memory *memory, quire_allocation allocation,
                                       char *name, size_t size)
{
    if (name && size)
        name[0] = '\0';
    if (!memory || !name || !size)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_allocation_get_name: memory or name is null, or size is 0");
    return qi_allocation_get_name(memory, allocation, name, size);
}

quire_result quire_allocation_set_name(quire_memory *memory, quire_allocation allocation,
                                       const char *name)
{
    return memory ? qi_allocation_set_name(memory, allocation, name) : refuse_null_memory();
}

quire_result quire_allocation_set_user_data(quire_memory *memory, quire_allocation allocation,
                                            uint64_t user_data)
{
    return memory ? qi_allocation_set_user_data(memory, allocation, user_data)
                  : refuse_null_memory();
}
