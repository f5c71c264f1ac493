/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * range.h - a slot together with its range: taking both, giving both back, and what is released
 * before them, the native object and the name.
 *
 * Every allocation and every free calls the functions of the first part, which are inline for that
 * reason.
 */
#ifndef QUIRE_SRC_CORE_PAGE_RANGE_H
#define QUIRE_SRC_CORE_PAGE_RANGE_H

#include "src/base/bits.h"
#include "src/core/page/empty.h"
#include "src/core/state/memory.h"
#include "src/core/state/peaks.h"
#include "src/space/space.h"

/* ---- taking and giving -------------------------------------------------------------------- */

/*
 * Every function of this part requires the lock of the shard. Invariant: the shard's statistics and
 * the page's tally change together with slot and range.
 */

/* A request for a range, and what its record keeps for the caller. */
typedef struct qi_range_request {
    uint64_t size; /* bytes, with all that the policy and checked builds add */
    uint64_t alignment;
    uint64_t requested; /* bytes that the caller requested */
    uint64_t user_data; /* of an object: its native handle, as in qi_slot */
    qi_slot_meta *meta;
    quire_object object;
    uint8_t extras; /* QI_EXTRA_... */
} qi_range_request;

/* Requires the shard's lock. Notes the alignment of a movable allocation in its record. */
static inline void qi_range_note_alignment(qi_slot *record, const qi_range_request *request)
{
    if (!(request->extras & QI_EXTRA_MOVABLE))
        record->usage = 0;
    else if (request->object)
        record->meta->alignment = (uint8_t)qi_highest_bit(request->alignment);
    else
        record->usage = (uint8_t)qi_highest_bit(request->alignment);
}

/*
 * Count an allocation of `bytes`, left padding included, in or out of a page. A page leaves the
 * list of empty pages with its first allocation and enters it with the free of its last.
 */
static inline void qi_tally_add(qi_tally *tally, uint64_t bytes)
{
    if (qi_unlikely(!tally->allocation_count++))
        qi_empty_pages_remove(tally->page);
    tally->live_bytes += bytes;
}

static inline void qi_tally_remove(qi_tally *tally, uint64_t bytes)
{
    qi_raise(&tally->peak_live_bytes, tally->live_bytes);
    tally->live_bytes -= bytes;
    if (qi_unlikely(!--tally->allocation_count))
        qi_empty_pages_add(tally->page);
}

/* Counts an allocation in the statistics of the shard and in the tally of its page. */
static inline void qi_range_count_in(qi_shard *shard, const qi_slot *slot)
{
    quire_memory_stats *stats = &shard->stats;
    uint64_t held = slot->size + slot->left_padding;
    stats->live_bytes += held;
    stats->requested_bytes += slot->requested;
    stats->allocation_count++;
    qi_shard_count_allocation(shard, 1);
    if (qi_unlikely(shard->peaks.mode))
        qi_peaks_count_in(shard, slot);
    qi_tally_add(slot->tally, held);
}

/*
 * Counts it out again. The peaks of a memory with one shard are raised here, before values fall,
 * and not in every allocation.
 */
static inline void qi_range_count_out(qi_shard *shard, qi_slot *slot)
{
    quire_memory_stats *stats = &shard->stats;
    uint64_t held = slot->size + slot->left_padding + qi_checked_behind(slot);
    if (qi_unlikely(shard->peaks.mode))
        qi_peaks_count_out(shard, slot);
    qi_checked_forget(shard->memory, slot);
    qi_shard_keep_peaks(stats);
    stats->live_bytes -= held;
    stats->requested_bytes -= slot->requested;
    stats->allocation_count--;
    qi_tally_remove(slot->tally, held);
}

/* Fills the record of a PRIVATE slot from its placement. */
static inline void qi_range_fill_record(qi_shard *shard, const qi_range_request *request,
                                        uint32_t slot, const quire_placement *at)
{
    qi_tally *tally = qi_shard_tally(shard, at->region);
    qi_slot *record = qi_memory_slot(shard->memory, slot);
    *record = (qi_slot){
        .offset = at->offset + tally->skipped,
        .size = at->size,
        .requested = request->requested,
        .user_data = request->user_data,
        .range = at->range,
        .meta = request->meta,
        .tally = tally,
        .left_padding = (uint32_t)at->left_padding,
        .shard = (uint8_t)shard->index,
        .object = (uint8_t)request->object,
        .extras = request->extras,
    };
    if (qi_unlikely(request->extras)) {
        qi_range_note_alignment(record, request);
        shard->has_had_movable |= (request->extras & QI_EXTRA_MOVABLE) != 0;
    }
    qi_range_count_in(shard, record);
}

/*
 * Takes a slot, which stays PRIVATE, and a range. Returns NO_SPACE if no range fits; with QI_TRY it
 * writes no error text in that case. On failure nothing has changed.
 */
QUIRE_MUST_USE QI_ALWAYS_INLINE quire_result qi_range_take(qi_shard *shard,
                                                           const qi_range_request *request,
                                                           uint32_t flags, uint32_t *slot)
{
    quire_memory *memory = shard->memory;
    quire_result result = qi_slot_take(&memory->slots, &shard->queue, &memory->host, slot);
    if (qi_unlikely(result))
        return result;
    quire_placement at;
    result = shard->space->allocate_range(shard->space, request->size, request->alignment, *slot,
                                          flags, &at);
    if (qi_unlikely(result)) {
        qi_slot_give(&memory->slots, &shard->queue, *slot);
        return result;
    }
    qi_range_fill_record(shard, request, *slot, &at);
    return QUIRE_SUCCESS;
}

/*
 * Takes a slot, which stays PRIVATE, for a dedicated page, which has no region and no range. Its
 * record starts at the page's first byte, aligned by padding. A tied page has exactly the object's
 * size, without room for padding. On failure nothing has changed.
 */
QUIRE_MUST_USE quire_result qi_range_take_page(qi_page *page, const qi_range_request *request,
                                               uint32_t *slot);

/* Makes the page without memory of a new shard, and takes a slot there, which stays PRIVATE. Taking
   fails as qi_slot_take. */
void qi_nowhere_init(qi_shard *shard);
QUIRE_MUST_USE quire_result qi_range_take_nowhere(qi_shard *shard, const qi_range_request *request,
                                                  uint32_t *slot);

/* Returns the kept window of a lazy allocation. Its `unbacked` is 0. */
static inline qi_window qi_lazy_window(const qi_lazy *lazy)
{
    return (qi_window){
        .region = lazy->region, .node = lazy->node, .offset = lazy->offset, .size = lazy->size};
}

/* Gives back the range of a lazy or sleeping slot. Chunks of a lazy one with memory are free. */
void qi_range_give_partial(qi_shard *shard, const qi_slot *record);

/* Gives back a PRIVATE slot whose range is free already. Returns whether its page became empty. */
static inline bool qi_range_give_slot(qi_shard *shard, qi_slot *record, uint32_t slot)
{
    const qi_tally *tally = record->tally;
    qi_range_count_out(shard, record);
    qi_slot_give(&shard->memory->slots, &shard->queue, slot);
    return !tally->allocation_count;
}

/*
 * Gives back a PRIVATE slot of this shard and its range. The slot has no object and no name any
 * more. Returns whether its page became empty, for qi_shard_note_given.
 */
static inline bool qi_range_give(qi_shard *shard, qi_slot *record, uint32_t slot)
{
    __builtin_prefetch(record->tally, 1);
    if (record->range.id) /* The range is live: this cannot fail. */
        (void)shard->space->free_range(shard->space, record->range);
    else if (qi_slot_is_partial(record)) /* and not on a dedicated page */
        qi_range_give_partial(shard, record);
    return qi_range_give_slot(shard, record, slot);
}

/* ---- the inbox ---------------------------------------------------------------------------- */

/*
 * The shard's lock protects everything that a drained free changes. Invariant: a slot in an inbox
 * is PRIVATE, and its object and name are released already.
 */

/* Requires the shard's lock. Frees every slot in its inbox. */
void qi_shard_drain(qi_shard *shard);

/*
 * Acquires the locks of all shards in the order of their ranks, and drains their inboxes. For calls
 * that read or change a whole memory.
 */
void qi_shards_acquire(quire_memory *memory);

/* Releases the locks of all shards, in the opposite order. */
void qi_shards_release(quire_memory *memory);

/* ---- native objects ----------------------------------------------------------------------- */

/*
 * No function requires a lock. The caller owns the slot: it is PRIVATE. Invariant: `native` of the
 * record is 0 once the object is destroyed.
 */

/* Binds a native object to the slot's range; 0 binds nothing. Fails as the backend does. */
QUIRE_MUST_USE quire_result qi_native_bind(quire_memory *memory, uint32_t slot, quire_object object,
                                           uint64_t native);

/* Destroys the slot's native object, unless there is none or the application owns it. */
void qi_native_destroy(quire_memory *memory, qi_slot *record);

/* ---- release ------------------------------------------------------------------------------ */

/*
 * A slot is PRIVATE because its allocation was never published, or because a free claimed it. The
 * calling thread owns it. No function requires a lock; the lock of the slot's shard protects the
 * range and the statistics. Invariant: a slot is given back once, after its object and name.
 */

/*
 * Gives the slot back. A slot of another thread's shard goes into that shard's inbox. Beyond 1,024
 * queued frees the calling thread drains the inbox itself.
 */
void qi_release(quire_memory *memory, uint32_t slot);

/*
 * Like qi_release, for a slot that the application freed. Checked builds keep it in quarantine
 * first. Returns CORRUPTED if bytes beside the allocation were written (checked builds only); the
 * slot is released all the same.
 */
static inline quire_result qi_release_checked(quire_memory *memory, uint32_t slot)
{
    bool is_corrupted = qi_checked_report_corruption(memory, slot);
    if (!qi_checked_hold(memory, slot))
        qi_release(memory, slot);
    return is_corrupted ? QUIRE_ERROR_CORRUPTED : QUIRE_SUCCESS;
}

/* Releases the name of a slot without an object. */
void qi_release_name(quire_memory *memory, uint32_t slot);

/*
 * Gives back a slot that was never published. The statistics do not count it as an allocation and a
 * free. Its native object stays with the thread that created it.
 */
void qi_release_unpublished(quire_memory *memory, uint32_t slot);

#endif
