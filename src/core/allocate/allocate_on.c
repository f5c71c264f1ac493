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
#include "src/core/deferred/recorded_use.h"
#include "src/core/release/release.h"

/* Does what can still fail after the placement: sets the name, and records a captured use. */
static quire_result complete(quire_memory *memory, quire_allocation allocation, const char *name,
                             quire_stream *stream)
{
    quire_result result = QUIRE_SUCCESS;
    if (name)
        result = qi_allocation_set_name(memory, allocation, name);
    if (!result && stream->capture)
        result = qi_record_use(memory, allocation, stream);
    return result;
}

/*
 * Defers the free of a reused range again. The record of its wait has just become a spare one, so
 * that this fails only if another thread took that and host memory is exhausted: the range then
 * stays live until the memory is destroyed. The statistics count neither call.
 */
static void defer_again(quire_memory *memory, quire_allocation allocation, quire_stream *stream)
{
    qi_shard *shard = qi_shard_of_slot(memory, qi_handle_slot(allocation.id));
    qi_ignore(qi_deferred_claim_and_free(memory, allocation, stream, 0));
    qi_lock_acquire(&shard->lock);
    shard->stats.allocations--;
    shard->stats.frees--;
    qi_lock_release(&shard->lock);
}

/* Takes back an allocation that cannot be completed. Keeps the thread's last error. */
static void take_back(quire_memory *memory, quire_allocation allocation, quire_stream *stream,
                      bool has_waited)
{
    uint32_t slot = 0;
    qi_error error = qi_error_save();
    if (has_waited) {
        defer_again(memory, allocation, stream);
    } else if (!qi_slot_claim(&memory->slots, allocation, QI_ACCEPT_LIVE, &slot)) {
        qi_event_slot(memory, QUIRE_EVENT_FREED, slot);
        qi_checked_await_reader(memory, slot);
        qi_release_unpublished(memory, slot);
    }
    qi_error_restore(&error);
}

/* The common case: what was freed on the stream, or a range of an existing page. */
static quire_result allocate_fast(quire_memory *memory, const quire_allocation_options *options,
                                  quire_stream *stream, bool *has_waited, uint32_t *slot)
{
    const qi_range_request request = qi_range_request_from(options);
    qi_shard *shard = qi_shard_mine(memory);
    qi_lock_acquire(&shard->lock);
    *has_waited = qi_deferred_reuse(shard, stream, &request, false, slot);
    qi_lock_release(&shard->lock);
    return *has_waited ? QUIRE_SUCCESS : qi_allocate_fast(memory, &request, slot);
}

/*
 * Tries the common case, then the ladder. The name is given later (complete), but its limits are
 * checked in the ladder. Any failure of the common case leads to the ladder, which reports it.
 */
static quire_result place(quire_memory *memory, const quire_allocation_options *options,
                          quire_stream *stream, bool *has_waited, uint32_t *slot)
{
    *has_waited = false;
    if (qi_request_is_plain(memory, options) &&
        !allocate_fast(memory, options, stream, has_waited, slot))
        return QUIRE_SUCCESS;
    qi_request request;
    quire_result result = qi_request_from(memory, options, &request);
    request.stream = stream;
    request.has_waited = has_waited;
    request.name_later = request.name;
    request.name = NULL;
    return result ? result : qi_allocate(memory, &request, QUIRE_SUCCESS, slot);
}

quire_result qi_allocate_on(quire_memory *memory, const quire_allocation_options *options,
                            quire_stream *stream, quire_allocation *allocation)
{
    uint32_t slot = 0;
    bool has_waited = false;
    quire_result result = place(memory, options, stream, &has_waited, &slot);
    if (result)
        return result;
    qi_allocation_publish(memory, slot, QI_PHASE_LIVE, allocation);
    result = complete(memory, *allocation, options->name, stream);
    if (!result)
        return QUIRE_SUCCESS;
    take_back(memory, *allocation, stream, has_waited);
    *allocation = (quire_allocation){0};
    const qi_oom_request request = {.name = options->name,
                                    .size = options->size,
                                    .alignment = options->alignment + !options->alignment,
                                    .tried = ""};
    return qi_oom_report(memory, &request, result);
}
