/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * offer.c - moves that the caller executes: targets are offered, and then each is accepted or
 * declined. The compaction lists what was offered until then.
 */
#include "src/base/result.h"
#include "src/core/compact/source.h"
#include "src/core/copy/copy.h"
#include "src/core/deferred/deferred_free.h"
#include "src/core/device/disabled.h"
#include "src/core/page/range.h"
#include "src/core/slot/slot.h"
#include "src/core/state/event.h"

/* ---- the list ----------------------------------------------------------------------------- */

static bool make_room(quire_compaction *c, uint64_t more)
{
    if (c->offered_room - c->offered_count >= more)
        return true;
    const uint64_t room = 2 * c->offered_room + more;
    quire_compact_move *moves =
        qi_host_resize(&c->memory->host, c->offered, c->offered_room, room, sizeof *c->offered);
    if (!moves)
        return false;
    c->offered = moves;
    c->offered_room = room;
    return true;
}

/* Returns the move of the list with these handles, or NULL with the thread's error set. */
static quire_compact_move *find(const quire_compaction *c, const quire_compact_move *move)
{
    for (uint64_t i = 0; i < c->offered_count; i++)
        if (c->offered[i].source.id == move->source.id &&
            c->offered[i].target.id == move->target.id)
            return &c->offered[i];
    qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                 "the compaction has not offered a move from %x to %x, or it has ended",
                 move->source.id, move->target.id);
    return NULL;
}

/* The last one takes its place. */
static void leave_list(quire_compaction *c, quire_compact_move *offered)
{
    *offered = c->offered[--c->offered_count];
}

/* ---- offering ----------------------------------------------------------------------------- */

/* Publishes the targets of a lot; those behind a failure are released. */
static quire_result publish(quire_compaction *c, const qi_lot *l)
{
    quire_memory *memory = c->memory;
    quire_result result = QUIRE_SUCCESS;
    for (uint32_t i = 0; i < l->count; i++) {
        const qi_move *move = &l->moves[i];
        if (result) {
            qi_release_unpublished(memory, move->target);
            continue;
        }
        quire_compact_move *offered = &c->offered[c->offered_count];
        *offered = (quire_compact_move){.source = move->handle,
                                        .size = qi_memory_slot(memory, move->target)->requested};
        result = qi_move_publish(memory, move, &offered->target);
        c->offered_count += !result;
    }
    return result;
}

/* One source, or a part of it. */
static quire_result offer(quire_compaction *c, qi_allowance *left)
{
    qi_lot l;
    if (!make_room(c, QI_LOT))
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a list of moves");
    quire_result result = qi_lot_begin(c, left, qi_move_offer, &l);
    quire_result published = publish(c, &l);
    if (l.is_end)
        qi_source_end(c);
    return result ? result : published;
}

/* At the end of a round it is not known whether offers will free a page: they end first. */
quire_result qi_compact_offer(quire_compaction *c, const quire_compact_limits *limits,
                              quire_compact_move *moves, uint64_t room, uint64_t *count,
                              bool *is_complete)
{
    qi_allowance left = qi_allowance_from(limits);
    const uint64_t before = c->offered_count;
    quire_result result =
        c->memory->device->is_disabled ? qi_refuse_disabled() : qi_compact_claim(c, NULL);
    left.moves = left.moves < room ? left.moves : room;
    qi_source_resume(c, limits, true, NULL);
    while (!result && !c->is_round_over && !c->stats.is_complete && left.moves && left.bytes &&
           left.records) {
        result = offer(c, &left);
        c->is_round_over = !c->round;
        if (c->is_round_over && !c->offered_count)
            qi_round_end(c);
    }
    *is_complete = c->stats.is_complete;
    *count = c->offered_count - before;
    for (uint64_t i = 0; i < *count; i++)
        moves[i] = c->offered[before + i];
    return result;
}

/* ---- the end of an offer ------------------------------------------------------------------ */

/* Frees a claimed slot after a point, which a thread awaits that has no host memory. */
static void free_after(quire_memory *memory, uint32_t slot, const quire_point *after)
{
    const bool waits = after && after->stream && !qi_stream_has_passed(after->stream, after->value);
    if (waits && !qi_deferred_free_after(memory, slot, after->stream, after->value))
        return;
    if (waits)
        qi_ignore(qi_stream_await(after->stream, after->value, UINT64_MAX));
    qi_ignore(qi_deferred_free(memory, slot)); /* it is no checked build */
}

/* Frees a claimed target that has the old place, and counts the page if nothing lives in it. */
static void leave_place(quire_compaction *c, uint32_t target, const quire_point *after)
{
    qi_shard *shard = qi_shard_of_slot(c->memory, target);
    qi_lock_acquire(&shard->lock);
    const qi_page *page = qi_memory_page(c->memory, target);
    const uint64_t bytes = page->native.bytes;
    const bool is_left = qi_source_has_live(c->memory, page);
    if (!is_left)
        qi_source_close(page);
    qi_lock_release(&shard->lock);
    free_after(c->memory, target, after);
    if (!is_left)
        qi_source_count_freed(c, bytes);
}

/* `own`: the stream that copies the contents; NULL: the caller has copied them. */
static quire_result accept(quire_compaction *c, quire_compact_move *offered,
                           const quire_point *after, const quire_stream *own)
{
    quire_memory *memory = c->memory;
    uint32_t target = 0;
    quire_result result = qi_slot_claim(&memory->slots, offered->target, QI_ACCEPT_LIVE, &target);
    if (result == QUIRE_ERROR_STALE_HANDLE)
        leave_list(c, offered);
    if (result)
        return result;
    result = qi_move_make_object(memory, target);
    if (!result)
        result = qi_move_exchange(qi_shard_of_slot(memory, target), offered->source, target, own);
    if (result == QUIRE_ERROR_STALE_HANDLE) {
        leave_list(c, offered);
        qi_ignore(qi_deferred_free(memory, target));
    } else if (result) {
        qi_slot_unclaim(&memory->slots, target);
    }
    if (result)
        return result;
    const quire_allocation source = offered->source;
    c->stats.moves++;
    c->stats.bytes_moved += offered->size;
    leave_list(c, offered);
    leave_place(c, target, after);
    qi_event_changed(memory, QUIRE_EVENT_MOVED, source);
    return QUIRE_SUCCESS;
}

quire_result qi_compact_accept(quire_compaction *c, const quire_compact_move *move,
                               const quire_point *after)
{
    quire_compact_move *offered = find(c, move);
    return offered ? accept(c, offered, after, NULL) : QUIRE_ERROR_INVALID_ARGUMENT;
}

/* The page of an allocation that stays will not be empty: nothing else leaves it, and what is free
   in it is a place. */
static void keep_page(quire_compaction *c, quire_allocation stays)
{
    const uint32_t slot = qi_handle_slot(stays.id);
    qi_shard *shard = qi_shard_of_slot(c->memory, slot);
    qi_lock_acquire(&shard->lock); /* a slot that is live does not get another place */
    if (qi_slot_is_live(&c->memory->slots, stays.id)) {
        qi_page *page = qi_memory_page(c->memory, slot);
        page->emptied = 0;
        page->kept = c->first_round;
        if (c->source.page == page)
            c->source.page = NULL;
    }
    qi_lock_release(&shard->lock);
}

quire_result qi_compact_decline(quire_compaction *c, const quire_compact_move *move)
{
    quire_compact_move *offered = find(c, move);
    if (!offered)
        return QUIRE_ERROR_INVALID_ARGUMENT;
    keep_page(c, offered->source);
    quire_result result = qi_claim_and_free(c->memory, offered->target, QI_ACCEPT_LIVE);
    if (!result || result == QUIRE_ERROR_STALE_HANDLE)
        leave_list(c, offered);
    return result;
}

/* ---- on a stream -------------------------------------------------------------------------- */

/* Submits the copy of the last offer to a stream, and accepts it. What another call uses, maps or
   has freed meanwhile stays where it is. */
static quire_result move_last(quire_compaction *c, quire_stream *stream)
{
    quire_memory *memory = c->memory;
    quire_point done = {0};
    quire_compact_move *offered = &c->offered[c->offered_count - 1];
    const quire_compact_move move = *offered;
    const quire_copy_options copy = {.to = {.memory = memory, .allocation = move.target},
                                     .from = {.memory = memory, .allocation = move.source},
                                     .size = move.size};
    quire_result result = qi_copy_on_stream(stream, &copy, &done);
    if (!result)
        result = accept(c, offered, &done, stream);
    if (!result)
        return QUIRE_SUCCESS;
    qi_error error;
    qi_error_save(&error);
    qi_ignore(qi_compact_decline(c, &move)); /* it may have ended already */
    qi_error_restore(&error);
    return result == QUIRE_ERROR_BUSY || result == QUIRE_ERROR_STALE_HANDLE ? QUIRE_SUCCESS
                                                                            : result;
}

quire_result qi_compact_step_on_stream(quire_compaction *c, const quire_compact_limits *limits,
                                       quire_stream *stream, quire_compact_stats *stats)
{
    qi_allowance left = qi_allowance_from(limits);
    quire_result result =
        c->memory->device->is_disabled ? qi_refuse_disabled() : qi_compact_claim(c, NULL);
    if (!result)
        qi_source_resume(c, limits, false, stream);
    while (!result && !c->stats.is_complete && left.moves && left.bytes && left.records) {
        const uint64_t before = c->offered_count;
        result = offer(c, &left);
        while (c->offered_count > before) {
            quire_result moved = move_last(c, stream);
            result = result ? result : moved;
        }
        if (!c->round)
            qi_round_end(c);
    }
    *stats = c->stats;
    return result;
}

/* ---- the end of a compaction -------------------------------------------------------------- */

void qi_compact_decline_all(quire_compaction *c)
{
    qi_error error;
    qi_error_save(&error);
    for (uint64_t i = 0; i < c->offered_count; i++)
        qi_ignore(qi_claim_and_free(c->memory, c->offered[i].target, QI_ACCEPT_LIVE));
    qi_error_restore(&error);
    qi_host_release(&c->memory->host, c->offered, c->offered_room, sizeof *c->offered);
    c->offered = NULL;
    c->offered_count = c->offered_room = 0;
}
