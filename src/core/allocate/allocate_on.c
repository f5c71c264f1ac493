/*
 * allocate_on.c - allocates on a stream: first what was freed on it, then the whole ladder.
 *
 * The name is given after the range is placed, so that a reused slot is renewed without one.
 */
#include "src/core/allocate/allocate_on.h"

#include "src/base/result.h"
#include "src/core/allocate/allocation.h"
#include "src/core/allocate/oom_report.h"
#include "src/core/deferred/deferred_free.h"
#include "src/core/deferred/deferred_reuse.h"
#include "src/core/find/addresses.h"
#include "src/core/page/range.h"

quire_result qi_allocate_on_complete(quire_memory *memory, uint32_t slot, const char *name,
                                     quire_stream *stream)
{
    quire_result result = QUIRE_SUCCESS;
    if (name)
        result = qi_allocation_set_slot_name(memory, slot, name);
    if (!result && stream->capture)
        result = qi_record_slot_use(memory, slot, stream);
    return result;
}

/* Takes back a slot that cannot be completed, and reports the refusal. Returns `result`. */
static quire_result refuse(quire_memory *memory, const quire_allocation_options *options,
                           uint32_t slot, qi_reuse *reuse, quire_result result)
{
    qi_error error;
    qi_error_save(&error);
    qi_allocate_undo(memory, slot, reuse);
    qi_error_restore(&error);
    const qi_oom_request request = {.name = options->name,
                                    .size = options->size,
                                    .alignment = options->alignment + !options->alignment};
    return qi_oom_report(memory, &request, result);
}

/* The common case for a memory with find_by_address: see place_with_address in allocation.c. */
static quire_result allocate_with_address(quire_memory *memory,
                                          const quire_allocation_options *options, int how,
                                          uint32_t *slot)
{
    if (options->stream->capture ||
        !qi_request_is_plain_up_to(memory, options, memory->addresses->max_fast_size) ||
        qi_allocate_on_fast(memory, options, QI_EXTRA_ADDRESS, slot))
        return QUIRE_ERROR_NO_SPACE;
    if (qi_addresses_add(memory, *slot, how & QI_COMMITTED))
        return QUIRE_SUCCESS;
    qi_release_unpublished(memory, *slot); /* it is new: a range that is reused was added before */
    return qi_addresses_refuse();
}

/* Climbs the ladder. The name is given later (qi_allocate_on_complete), but its limits are
   checked in the ladder. */
static quire_result place(quire_memory *memory, const quire_allocation_options *options, int how,
                          quire_result failed, uint32_t *slot, qi_reuse *reuse)
{
    qi_request request;
    quire_result result = qi_request_from(memory, options, &request);
    if (result)
        return result;
    request.stream = options->stream;
    request.reuse = reuse;
    request.is_unaided = how & QI_UNAIDED;
    request.reserved = !(how & QI_COMMITTED);
    request.name_later = request.name;
    request.name = NULL;
    return qi_allocate(memory, &request, failed, slot);
}

quire_result qi_allocate_on_slow(quire_memory *memory, const quire_allocation_options *options,
                                 int how, uint32_t *slot)
{
    qi_reuse reuse = {.wait = NULL};
    quire_result result = QUIRE_ERROR_NO_SPACE;
    if (memory->addresses)
        result = allocate_with_address(memory, options, how, slot);
    if (!result)
        return QUIRE_SUCCESS;
    result = place(memory, options, how, result == QUIRE_ERROR_NO_SPACE ? QUIRE_SUCCESS : result,
                   slot, &reuse);
    if (result)
        return result;
    result = qi_allocate_on_complete(memory, *slot, options->name, options->stream);
    if (result)
        return refuse(memory, options, *slot, &reuse, result);
    if (reuse.wait)
        qi_deferred_end_reuse(memory, *slot, &reuse);
    return QUIRE_SUCCESS;
}

quire_result qi_allocate_on(quire_memory *memory, const quire_allocation_options *options, int how,
                            uint32_t *slot)
{
    return qi_allocate_on_inline(memory, options, how, slot);
}
