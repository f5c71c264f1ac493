/*
 * batch.c - many equal allocations, and many frees, in groups of QI_MAX_BATCH: one hold of the lock
 * and one search for a group.
 */
#include "src/core/allocate/batch.h"

#include "src/base/result.h"
#include "src/core/allocate/allocation.h"
#include "src/core/deferred/deferred_free.h"
#include "src/core/page/empty.h"
#include "src/core/page/life.h"
#include "src/core/page/range.h"

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
        !qi_space_allocate_batch(shard->space, range_request->size, range_request->alignment, 0,
                                 g->placements, count)) {
        for (uint32_t i = 0; i < count; i++)
            qi_range_fill_record(shard, range_request, g->slots[i], &g->placements[i]);
        return true;
    }
    while (taken-- > 0)
        qi_slot_give(&shard->memory->slots, &shard->queue, g->slots[taken]);
    return false;
}

/* Equal allocations that are made in groups. */
typedef struct batch {
    quire_memory *memory;
    const quire_allocation_options *options;
    qi_request request; /* of the options; without their stream */
    quire_allocation *allocations;
    uint64_t made; /* how many are LIVE */
} batch;

/* Makes a PRIVATE slot the next allocation of the batch. */
static void publish(batch *b, uint32_t slot)
{
    quire_allocation_info *info = b->options->info;
    qi_allocation_publish_early(b->memory, slot, QI_PHASE_LIVE, b->options->alignment,
                                b->options->stream, info ? &info[b->made] : NULL,
                                &b->allocations[b->made]);
    b->made++;
}

/* Places a group of plain ranges in existing pages. Returns false if that is not possible. */
static bool place_group(batch *b, uint32_t count)
{
    quire_memory *memory = b->memory;
    if (b->options->stream || !qi_request_is_fast(memory, &b->request))
        return false;
    group g;
    qi_error before;
    qi_error_save(&before);
    qi_shard *shard = qi_shard_mine(memory);
    const qi_range_request range_request = qi_range_request_of(&b->request);
    qi_shard_enter(shard);
    qi_page *leaving = qi_shard_catch_up(shard, NULL);
    bool is_placed = take_group(shard, &range_request, &g, count);
    qi_lock_release(&shard->lock);
    if (leaving)
        qi_pages_destroy(memory, leaving);
    for (uint32_t i = 0; i < count && is_placed; i++)
        publish(b, g.slots[i]);
    if (!is_placed)
        qi_error_restore(&before);
    return is_placed;
}

/* Places a group one by one, on the stream or with the whole ladder. */
static quire_result place_each(batch *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = 0;
        quire_result result = b->options->stream
                                  ? qi_allocate_on(b->memory, b->options, QI_COMMITTED, &slot)
                                  : qi_allocate(b->memory, &b->request, QUIRE_SUCCESS, &slot);
        if (result)
            return result;
        publish(b, slot);
    }
    return QUIRE_SUCCESS;
}

/*
 * Frees an allocation of a batch on a stream. Earlier work of the stream may still use its range.
 * Without host memory for a deferred free the thread waits for that work. The statistics count the
 * allocation and the free.
 */
static void take_back_on(quire_memory *memory, quire_allocation allocation, quire_stream *stream)
{
    uint64_t value = 0;
    if (qi_deferred_claim_and_free(memory, allocation, stream, 0) != QUIRE_ERROR_OUT_OF_HOST_MEMORY)
        return;
    if (!qi_stream_mark(stream, &value) && !qi_stream_await(stream, value, QUIRE_FOREVER))
        qi_ignore(qi_claim_and_free(memory, allocation, QI_ACCEPT_LIVE)); /* CORRUPTED is logged */
}

/* Takes back the allocations made so far. The caller has not received their handles. */
static void undo(const batch *b)
{
    uint32_t slot = 0;
    qi_error error;
    qi_error_save(&error);
    for (uint64_t i = 0; i < b->made; i++)
        if (b->options->stream) {
            take_back_on(b->memory, b->allocations[i], b->options->stream);
        } else if (!qi_slot_claim(&b->memory->slots, b->allocations[i], QI_ACCEPT_LIVE, &slot)) {
            qi_event_freed(b->memory, slot, NULL);
            qi_checked_await_reader(b->memory, slot);
            qi_release_unpublished(b->memory, slot);
        }
    qi_error_restore(&error);
}

/* A group that does not fit at once is placed one by one; the next group is tried at once again. */
quire_result qi_allocate_batch(quire_memory *memory, const quire_allocation_options *options,
                               quire_allocation *allocations, uint64_t count)
{
    batch b = {.memory = memory, .options = options, .allocations = allocations};
    quire_result result = qi_request_from(memory, options, &b.request);
    while (!result && b.made < count) {
        uint64_t left = count - b.made;
        uint32_t part = left < QI_MAX_BATCH ? (uint32_t)left : QI_MAX_BATCH;
        if (!place_group(&b, part))
            result = place_each(&b, part);
    }
    if (result)
        undo(&b);
    else
        qi_memory_catch_up(memory);
    return result;
}

/* ---- freeing ------------------------------------------------------------------------------ */

/* The error of an allocation that cannot be claimed; those before it are claimed. */
static quire_result refuse_claim(const quire_allocation *allocations, uint64_t index,
                                 quire_result result)
{
    for (uint64_t i = 0; i < index; i++)
        if (allocations[i].id == allocations[index].id)
            return qi_fail_with(result, "allocation %x occurs twice in the list: nothing is freed",
                                allocations[i].id);
    return result;
}

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
        result = refuse_claim(allocations, i, result);
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
        if (QI_IS_CHECKED || record->meta || record->extras || record->shard != shard->index) {
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
        qi_event_freed(memory, p.plain[i], NULL);
    qi_lock_acquire(&shard->lock);
    qi_ignore(qi_space_free_batch(shard->space, p.ranges,
                                  p.range_count)); /* all ranges are live: this cannot fail */
    for (uint32_t i = 0; i < p.plain_count; i++)
        qi_shard_note_given(
            shard, qi_range_give_slot(shard, qi_memory_slot(memory, p.plain[i]), p.plain[i]));
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
