/*
 * batch.c - many equal allocations, and many frees, in groups of QI_MAX_BATCH: one hold of the lock
 * and one search for a group.
 */
#include "src/core/allocate/batch.h"

#include "src/base/result.h"
#include "src/core/allocate/allocation.h"
#include "src/core/deferred/deferred_free.h"
#include "src/core/page/page_give_back.h"
#include "src/core/page/retention.h"
#include "src/core/release/release.h"

/* ---- allocating --------------------------------------------------------------------------- */

/* Slots and placements of a group, until the records are filled. */
typedef struct group {
    uint32_t slots[QI_MAX_BATCH];
    quire_placement placements[QI_MAX_BATCH];
} group;

/* Requires the lock. Takes slots, which the ranges refer to. Returns how many it got. */
static uint32_t take_slots(qi_shard *shard, group *g, uint32_t count)
{
    quire_memory *memory = shard->memory;
    for (uint32_t i = 0; i < count; i++) {
        if (qi_slot_take(&memory->slots, &shard->queue, &memory->host, &g->slots[i]))
            return i;
        g->placements[i] = (quire_placement){.user = g->slots[i]};
    }
    return count;
}

/* Requires the lock. Returns false, and changes nothing, if not all of the group fits. */
static bool take_group(qi_shard *shard, const qi_range_request *range_request, group *g,
                       uint32_t count)
{
    uint32_t taken = take_slots(shard, g, count);
    if (taken == count &&
        !qi_space_allocate_batch(shard->space, range_request->size, range_request->alignment,
                                 g->placements, count)) {
        for (uint32_t i = 0; i < count; i++)
            qi_range_fill_record(shard, range_request, g->slots[i], &g->placements[i]);
        return true;
    }
    while (taken-- > 0)
        qi_slot_give(&shard->memory->slots, &shard->queue, g->slots[taken]);
    return false;
}

/* Makes a PRIVATE slot LIVE, and reports it to the hook first. */
static quire_allocation publish(quire_memory *memory, uint32_t slot)
{
    qi_event_slot(memory, QUIRE_EVENT_ALLOCATED, slot);
    return qi_slot_publish(&memory->slots, slot, QI_PHASE_LIVE);
}

/* Places a group of plain ranges in existing pages. Returns false if that is not possible. */
static bool place_group(quire_memory *memory, const qi_request *request,
                        quire_allocation *allocations, uint32_t count)
{
    if (!qi_request_is_fast(memory, request))
        return false;
    group g;
    qi_error before = qi_error_save();
    qi_shard *shard = qi_shard_mine(memory);
    const qi_range_request range_request = qi_range_request_of(request);
    qi_lock_acquire(&shard->lock);
    qi_page *leaving = qi_shard_catch_up(shard, NULL);
    bool is_placed = take_group(shard, &range_request, &g, count);
    qi_lock_release(&shard->lock);
    if (leaving)
        qi_pages_destroy(memory, leaving);
    for (uint32_t i = 0; i < count && is_placed; i++)
        allocations[i] = publish(memory, g.slots[i]);
    if (!is_placed)
        qi_error_restore(&before);
    return is_placed;
}

/* Places the group one by one, with the whole ladder. *done receives how many succeeded. */
static quire_result place_each(quire_memory *memory, const qi_request *request,
                               quire_allocation *allocations, uint32_t count, uint32_t *done)
{
    for (*done = 0; *done < count; ++*done) {
        uint32_t slot = 0;
        quire_result result = qi_allocate(memory, request, QUIRE_SUCCESS, &slot);
        if (result)
            return result;
        allocations[*done] = publish(memory, slot);
    }
    return QUIRE_SUCCESS;
}

/* Takes back the allocations made so far. The caller has not received their handles. */
static void undo(quire_memory *memory, quire_allocation *allocations, uint64_t count)
{
    uint32_t slot = 0;
    for (uint64_t i = 0; i < count; i++)
        if (!qi_slot_claim(&memory->slots, allocations[i], QI_ACCEPT_LIVE, &slot)) {
            qi_event_slot(memory, QUIRE_EVENT_FREED, slot);
            qi_checked_await_reader(memory, slot);
            qi_release_unpublished(memory, slot);
        }
}

/* A group that does not fit at once is placed one by one; the next group is tried at once again. */
static quire_result place_all(quire_memory *memory, const qi_request *request,
                              quire_allocation *allocations, uint64_t count)
{
    for (uint64_t begin = 0; begin < count; begin += QI_MAX_BATCH) {
        uint64_t left = count - begin;
        uint32_t part = left < QI_MAX_BATCH ? (uint32_t)left : QI_MAX_BATCH, done = 0;
        if (place_group(memory, request, allocations + begin, part))
            continue;
        quire_result result = place_each(memory, request, allocations + begin, part, &done);
        if (result) {
            qi_error error = qi_error_save();
            undo(memory, allocations, begin + done);
            qi_error_restore(&error);
            return result;
        }
    }
    return QUIRE_SUCCESS;
}

quire_result qi_allocate_batch(quire_memory *memory, const quire_allocation_options *options,
                               quire_allocation *allocations, uint64_t count)
{
    qi_request request;
    quire_result result = qi_request_from(memory, options, &request);
    return result ? result : place_all(memory, &request, allocations, count);
}

/* ---- freeing ------------------------------------------------------------------------------ */

/* Claims all allocations, or none. Fails as quire_free does for the first one that cannot be
   claimed. */
static quire_result claim_all(quire_memory *memory, const quire_allocation *allocations,
                              uint64_t count)
{
    uint32_t slot = 0;
    for (uint64_t i = 0; i < count; i++) {
        quire_result result = qi_slot_claim(&memory->slots, allocations[i], QI_ACCEPT_LIVE, &slot);
        if (!result)
            continue;
        while (i-- > 0) /* publishes the claimed ones again: their handles stay valid */
            qi_slot_publish(&memory->slots, qi_handle_slot(allocations[i].id), QI_PHASE_LIVE);
        return result;
    }
    return QUIRE_SUCCESS;
}

/* The claimed slots of a group, sorted by what their release needs. */
typedef struct sorting {
    uint32_t plain[QI_MAX_BATCH], other[QI_MAX_BATCH];
    quire_range ranges[QI_MAX_BATCH]; /* of the plain ones, in shared pages */
    uint32_t plain_count, other_count, range_count;
} sorting;

/* A plain slot needs nothing but the release of a range in this shard. */
static void sort(const quire_memory *memory, const qi_shard *shard,
                 const quire_allocation *allocations, uint32_t count, sorting *p)
{
    p->plain_count = p->other_count = p->range_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = qi_handle_slot(allocations[i].id);
        const qi_slot *record = qi_memory_slot(memory, slot);
        if (QI_IS_CHECKED || record->meta || record->object || record->shard != shard->index) {
            p->other[p->other_count++] = slot;
            continue;
        }
        p->plain[p->plain_count++] = slot;
        if (record->range.id) /* 0 on a dedicated page */
            p->ranges[p->range_count++] = record->range;
    }
}

/*
 * Frees a group of claimed allocations. Sets *corruption to CORRUPTED if bytes beside one of them
 * were written (checked builds).
 */
static void free_group(quire_memory *memory, const quire_allocation *allocations, uint32_t count,
                       quire_result *corruption)
{
    sorting p;
    qi_shard *shard = qi_shard_mine(memory);
    sort(memory, shard, allocations, count, &p);
    for (uint32_t i = 0; i < p.plain_count; i++)
        qi_event_slot(memory, QUIRE_EVENT_FREED, p.plain[i]);
    qi_lock_acquire(&shard->lock);
    qi_ignore(qi_space_free_batch(shard->space, p.ranges,
                                  p.range_count)); /* all ranges are live: this cannot fail */
    for (uint32_t i = 0; i < p.plain_count; i++)
        shard->emptied |= qi_range_give_slot(shard, qi_memory_slot(memory, p.plain[i]), p.plain[i]);
    qi_page *leaving = qi_shard_catch_up(shard, NULL);
    qi_lock_release(&shard->lock);
    if (leaving)
        qi_pages_destroy(memory, leaving);
    for (uint32_t i = 0; i < p.other_count; i++)
        if (qi_deferred_free(memory, p.other[i]))
            *corruption = QUIRE_ERROR_CORRUPTED;
}

quire_result qi_free_batch(quire_memory *memory, const quire_allocation *allocations,
                           uint64_t count)
{
    quire_result result = claim_all(memory, allocations, count), corruption = QUIRE_SUCCESS;
    for (uint64_t begin = 0; begin < count && !result; begin += QI_MAX_BATCH) {
        uint64_t left = count - begin;
        free_group(memory, allocations + begin, left < QI_MAX_BATCH ? (uint32_t)left : QI_MAX_BATCH,
                   &corruption);
    }
    return result ? result : corruption;
}
