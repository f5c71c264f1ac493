/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * compact.c - rounds over the pages of a shard, in lots: a lot of moves begins under one hold of
 * the shard's lock, is copied without it, and completes under another hold.
 */
#include "src/core/compact/compact.h"

#include "src/base/result.h"
#include "src/base/thread.h"
#include "src/core/compact/move.h"
#include "src/core/compact/source.h"
#include "src/core/copy/copy_path.h"
#include "src/core/device/device.h"
#include "src/core/device/disabled.h"
#include "src/core/state/event.h"
#include "src/core/stats/compactable.h"

/* ---- begin and end ------------------------------------------------------------------------ */

static quire_result refuse(const quire_memory *memory, const char *why)
{
    return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "memory '%s' cannot be compacted: %s",
                        memory->name, why);
}

quire_result qi_compact_claim(quire_compaction *c, const void *mover)
{
    quire_memory *memory = c->memory;
    qi_lock_acquire(&memory->pages.lock);
    const bool is_free = !memory->compaction || memory->compaction == c;
    if (!memory->compaction)
        c->source.page = NULL; /* another one may have changed it meanwhile */
    if (is_free) {
        memory->compaction = c;
        memory->mover = mover;
    }
    qi_lock_release(&memory->pages.lock);
    if (is_free)
        return QUIRE_SUCCESS;
    return qi_fail_text(QUIRE_ERROR_BUSY, "a compaction of memory '%s' has not ended",
                        memory->name);
}

quire_result qi_compact_begin(quire_memory *memory, quire_compaction **compaction)
{
    *compaction = NULL;
    const char *obstacle = qi_compact_obstacle(memory);
    if (obstacle)
        return refuse(memory, obstacle);
    quire_compaction *c = qi_host_allocate(&memory->host, 1, sizeof *c);
    if (!c)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a compaction");
    *c = (quire_compaction){.memory = memory};
    quire_result result = qi_compact_claim(c, NULL);
    if (result) {
        qi_host_release(&memory->host, c, 1, sizeof *c);
        return result;
    }
    qi_source_open_all(c); /* another one may have vanished with a fork */
    *compaction = c;
    return QUIRE_SUCCESS;
}

void qi_compact_end(quire_compaction *c)
{
    quire_memory *memory = c->memory;
    qi_compact_decline_all(c);
    qi_source_give_back(c);
    qi_source_open_all(c);
    qi_lock_acquire(&memory->pages.lock);
    if (memory->compaction == c) /* the child of a fork may have another one */
        memory->compaction = NULL;
    qi_lock_release(&memory->pages.lock);
    qi_host_release(&memory->host, c, 1, sizeof *c);
}

quire_result qi_compact_estimate(quire_memory *memory, quire_compact_stats *stats)
{
    const char *obstacle = qi_compact_obstacle(memory);
    if (obstacle)
        return refuse(memory, obstacle);
    const qi_compactable most = qi_compactable_get(memory, UINT64_MAX);
    *stats = (quire_compact_stats){.moves = most.moves,
                                   .bytes_moved = most.move_bytes,
                                   .pages_freed = most.pages,
                                   .bytes_freed = most.page_bytes,
                                   .is_complete = !most.pages};
    return QUIRE_SUCCESS;
}

quire_compact_stats qi_compact_stats(const quire_compaction *c)
{
    return c->stats;
}

/* ---- lots --------------------------------------------------------------------------------- */

/* Requires no lock. Copies all of a lot, completes the moves that were copied, and ends all. */
static quire_result run_lot(quire_compaction *c, qi_lot *l)
{
    quire_memory *memory = c->memory;
    qi_shard *shard = qi_compact_shard(c);
    quire_result result = QUIRE_SUCCESS;
    uint32_t copied = 0;
    for (; copied < l->count && !result; copied += !result)
        result = qi_move_copy(memory, &l->moves[copied]);
    qi_lock_acquire(&shard->lock);
    for (uint32_t i = 0; i < copied; i++) {
        c->stats.bytes_moved += qi_memory_slot(memory, l->moves[i].source)->requested;
        qi_move_complete(memory, &l->moves[i]);
    }
    qi_lock_release(&shard->lock);
    c->stats.moves += copied;
    for (uint32_t i = 0; i < l->count; i++)
        qi_move_end(memory, &l->moves[i]);
    for (uint32_t i = 0; i < l->count; i++)
        qi_move_release(memory, &l->moves[i]);
    for (uint32_t i = 0; i < copied; i++)
        qi_event_changed(memory, QUIRE_EVENT_MOVED, l->moves[i].handle);
    return result;
}

/* Requires no lock. The source has no allocation left, or only those that have no place. */
static void end_source(quire_compaction *c)
{
    qi_shard *shard = qi_compact_shard(c);
    qi_lock_acquire(&shard->lock);
    const bool is_empty = !qi_source_is_left(c);
    if (!is_empty)
        c->source.page->emptied = 0; /* its free ranges are places again */
    qi_lock_release(&shard->lock);
    qi_source_end(c);
    if (is_empty)
        qi_source_count_freed(c, c->page_size);
}

static quire_result run(quire_compaction *c, qi_allowance *left)
{
    qi_lot l;
    quire_result result = qi_lot_begin(c, left, qi_move_begin, &l);
    quire_result copied = run_lot(c, &l);
    if (result || copied)
        c->offset = 0; /* the next step looks again at what has not moved */
    if (l.is_end)
        end_source(c);
    if (!c->round)
        qi_round_end(c);
    return result ? result : copied;
}

static quire_result check_copies(const quire_memory *memory)
{
    if (memory->device->is_disabled)
        return qi_refuse_disabled();
    const char *obstacle = qi_move_obstacle(memory);
    if (obstacle)
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                            "memory '%s' cannot be compacted: %s: use quire_compact_offer, whose "
                            "moves the caller executes",
                            memory->name, obstacle);
    return qi_device_check_bytes(memory->device, memory->kind);
}

quire_result qi_compact_step(quire_compaction *c, const quire_compact_limits *limits,
                             quire_compact_stats *stats)
{
    qi_allowance left = qi_allowance_from(limits);
    quire_result result = check_copies(c->memory);
    if (!result)
        result = qi_compact_claim(c, qi_thread_self());
    if (result) {
        *stats = c->stats;
        return result;
    }
    qi_source_resume(c, limits, false, NULL);
    while (!result && !c->stats.is_complete && left.moves && left.bytes && left.records)
        result = run(c, &left);
    *stats = c->stats;
    qi_ignore(qi_compact_claim(c, NULL)); /* it has the memory */
    return result;
}
