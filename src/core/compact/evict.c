/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * evict.c - lists what may leave, in the order in which it leaves, and evicts one after the other.
 * The list is a snapshot: an allocation that was used, freed or moved since stays, or is gone.
 */
#include "src/core/compact/evict.h"

#include <stdlib.h>

#include "src/base/result.h"
#include "src/base/thread.h"
#include "src/core/compact/move.h"
#include "src/core/copy/access.h"
#include "src/core/copy/copy_path.h"
#include "src/core/deferred/deferred_free.h"
#include "src/core/device/disabled.h"
#include "src/core/find/addresses.h"
#include "src/core/page/empty.h"
#include "src/core/page/life.h"
#include "src/core/page/range.h"
#include "src/core/slot/recency.h"
#include "src/core/state/event.h"
#include "src/core/state/peaks.h"
#include "src/core/stats/compactable.h"

/* ---- the list ----------------------------------------------------------------------------- */

typedef struct candidate {
    quire_allocation handle;
    uint64_t live; /* bytes of its page */
    uint32_t page;
    qi_recency recency;
} candidate;

typedef struct candidates {
    candidate *items;
    uint64_t count, room;
    bool lacks_room; /* allocations were made since the room was */
} candidates;

/* Requires the locks of all shards. */
static bool may_leave(const quire_memory *memory, uint32_t slot, const quire_evict_options *options,
                      qi_recency *recency)
{
    if (qi_slot_phase(&memory->slots, slot) != QI_PHASE_LIVE ||
        !qi_move_is_possible(memory, slot, false, NULL))
        return false;
    *recency = qi_recency_get(&memory->slots, slot, qi_atomic_load_u32(&memory->frame));
    return recency->age > options->recent_frames && recency->priority != QUIRE_PRIORITY_STAYS;
}

/* Requires the locks of all shards. */
static void take_snapshot(const quire_memory *memory, const quire_evict_options *options,
                          candidates *list)
{
    list->count = 0;
    list->lacks_room = false;
    for (uint32_t slot = 0; slot < qi_slots_top(&memory->slots) && !list->lacks_room; slot++) {
        qi_recency recency;
        if (!may_leave(memory, slot, options, &recency))
            continue;
        const qi_page *page = qi_memory_page(memory, slot);
        list->lacks_room = list->count == list->room;
        if (!list->lacks_room)
            list->items[list->count++] =
                (candidate){.handle = qi_slot_public_handle(&memory->slots, slot),
                            .live = page->tally->live_bytes,
                            .page = page->number,
                            .recency = recency};
    }
}

/* Requires the locks of all shards. */
static uint64_t count_allocations(const quire_memory *memory)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < qi_shard_count(memory); i++)
        count += memory->shards[i]->stats.allocation_count;
    return count;
}

#define COMPARE(a, b)                                                                              \
    if ((a) != (b))                                                                                \
    return (a) < (b) ? -1 : 1

static int compare(const void *one, const void *other)
{
    const candidate *a = one, *b = other;
    COMPARE(a->recency.priority, b->recency.priority);
    COMPARE(b->recency.age, a->recency.age);
    COMPARE(a->live, b->live);
    COMPARE(a->page, b->page);
    COMPARE(qi_handle_slot(a->handle.id), qi_handle_slot(b->handle.id));
    return 0;
}

/* The caller releases the items. */
static quire_result list_candidates(quire_memory *memory, const quire_evict_options *options,
                                    candidates *list)
{
    qi_host *host = &memory->host;
    do {
        qi_host_release(host, list->items, list->room, sizeof *list->items);
        qi_shards_acquire(memory);
        list->room = count_allocations(memory);
        qi_shards_release(memory);
        list->room += list->room / 8;
        list->items = qi_host_allocate(host, list->room, sizeof *list->items);
        if (!list->items && list->room)
            return qi_fail_with(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                                "no host memory for a list of %u allocation%s", list->room);
        qi_shards_acquire(memory);
        take_snapshot(memory, options, list);
        qi_shards_release(memory);
    } while (list->lacks_room);
    if (list->count)
        qsort(list->items, list->count, sizeof *list->items, compare);
    return QUIRE_SUCCESS;
}

/* ---- one allocation ----------------------------------------------------------------------- */

/* What a record gets. */
typedef struct evicted {
    qi_asleep *asleep;
    qi_slot_meta *meta; /* for a record that has none */
} evicted;

/* Requires no lock, and the slot of a move. */
static bool may_leave_now(quire_memory *memory, quire_allocation handle)
{
    const uint32_t slot = qi_handle_slot(handle.id);
    const qi_slot *record = qi_memory_slot(memory, slot);
    qi_lock *lock = &qi_shard_of(memory, record)->lock;
    if (qi_slot_public_handle(&memory->slots, slot).id != handle.id)
        return false;
    qi_lock_acquire(lock);
    const bool may = qi_slot_is_movable(record) && !(record->extras & QI_EXTRA_MAPPED) &&
                     qi_uses_are_over(record, NULL);
    qi_lock_release(lock);
    return may;
}

/* Requires no lock, and the slot of a move. Copies the contents, unless they are discarded. */
static quire_result keep(quire_memory *memory, uint32_t slot, bool discards, evicted *kept)
{
    qi_host *host = &memory->host;
    const qi_slot *record = qi_memory_slot(memory, slot);
    kept->asleep = qi_host_allocate(host, 1, sizeof *kept->asleep);
    kept->meta = record->meta ? NULL : qi_slot_meta_create_empty(host);
    if (!kept->asleep || (!kept->meta && !record->meta))
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                       "no host memory for the record of an evicted allocation");
    if (discards)
        return QUIRE_SUCCESS;
    kept->asleep->bytes = qi_host_allocate(host, record->requested, 1);
    if (!kept->asleep->bytes)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                            "no host memory for the contents of an evicted allocation: %b",
                            record->requested);
    kept->asleep->count = record->requested;
    return qi_access_read_slot(memory, slot, 0, kept->asleep->bytes, kept->asleep->count);
}

/* Requires the locks of all shards. */
static void mark(quire_memory *memory, qi_slot *record, evicted *kept)
{
    qi_shard *shard = qi_shard_of(memory, record);
    qi_asleep *asleep = kept->asleep;
    asleep->size = record->size;
    asleep->requested = record->requested;
    asleep->left_padding = record->left_padding;
    asleep->named = qi_name_held_by(record);
    if (!record->meta)
        record->meta = kept->meta;
    record->meta->asleep = asleep;
    record->extras |= QI_EXTRA_ASLEEP;
    qi_names_shrink(&memory->names, record->meta->name, asleep->named, asleep->requested);
    qi_uses_forget(shard, record);
    shard->stats.asleep_count++;
    shard->stats.asleep_bytes += asleep->size + asleep->left_padding;
    *kept = (evicted){.asleep = NULL};
}

/* Requires no lock, and the slot of a move. The target has its place then. */
static quire_result vacate(quire_memory *memory, qi_move *move, evicted *kept)
{
    qi_slot *record = qi_memory_slot(memory, move->source);
    qi_tally *tally = record->tally;
    const qi_range_request request = {.object = record->object,
                                      .extras = record->object ? QI_EXTRA_OBJECT : 0};
    qi_shards_acquire(memory);
    qi_peaks_keep(memory); /* the release of the target leaves no trace in them */
    qi_raise(&tally->peak_live_bytes, tally->live_bytes);
    quire_result result =
        qi_range_take_nowhere(qi_shard_of(memory, record), &request, &move->target);
    if (!result) {
        if (record->extras & QI_EXTRA_ADDRESS)
            qi_addresses_remove(memory, move->source);
        mark(memory, record, kept);
        qi_move_complete(memory, move);
    }
    qi_shards_release(memory);
    return result;
}

/* Requires no lock. *bytes receives what has left. */
static quire_result evict_one(quire_memory *memory, quire_allocation handle, bool discards,
                              uint64_t *bytes)
{
    qi_host *host = &memory->host;
    qi_move move = {.source = qi_handle_slot(handle.id), .handle = handle};
    evicted kept = {.asleep = NULL};
    if (!qi_slot_begin_move(&memory->slots, move.source, NULL))
        return QUIRE_SUCCESS;
    if (!may_leave_now(memory, handle)) {
        qi_move_end(memory, &move);
        return QUIRE_SUCCESS;
    }
    quire_result result = keep(memory, move.source, discards, &kept);
    if (!result)
        result = vacate(memory, &move, &kept);
    if (!result)
        *bytes = qi_memory_slot(memory, move.target)->requested;
    qi_move_end(memory, &move);
    qi_asleep_release(host, kept.asleep);
    qi_slot_meta_release(host, kept.meta);
    if (result)
        return result;
    qi_move_release(memory, &move);
    qi_event_changed(memory, QUIRE_EVENT_ASLEEP, handle);
    return QUIRE_SUCCESS;
}

/* ---- all ---------------------------------------------------------------------------------- */

quire_result qi_evict_check_call(const quire_memory *memory)
{
    if (memory->device->is_disabled)
        return qi_refuse_disabled();
    if (qi_transit_is_on())
        return qi_fail(QUIRE_ERROR_BUSY, "a call from inside a backend's function evicts nothing "
                                         "and wakes nothing");
    return QUIRE_SUCCESS;
}

static quire_result check(const quire_memory *memory, bool discards)
{
    const char *obstacle = qi_compact_obstacle(memory);
    quire_result result = qi_evict_check_call(memory);
    if (result)
        return result;
    if (!obstacle && !discards &&
        qi_copy_path_public(qi_copy_path_first(memory, memory), memory, memory) ==
            QUIRE_COPY_UNSUPPORTED)
        obstacle = "its backend copies no contents of its kind";
    if (obstacle)
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                            "allocations of memory '%s' cannot be evicted: %s", memory->name,
                            obstacle);
    return discards ? QUIRE_SUCCESS : qi_device_check_bytes(memory->device, memory->kind);
}

/* Gives back the pages that are empty now. */
static void give_back(quire_memory *memory)
{
    qi_page_events events = {.gone = NULL};
    if (qi_deferred_count(memory))
        (void)qi_deferred_collect_quietly(memory);
    (void)qi_pages_give_back_empty(memory, UINT64_MAX, &events);
    qi_page_events_report(memory, &events, "");
}

quire_result qi_evict(quire_memory *memory, const quire_evict_options *options, uint64_t *bytes)
{
    candidates list = {.items = NULL};
    const bool discards = options->mode == QUIRE_SLEEP_DISCARD;
    quire_result result = check(memory, discards);
    *bytes = 0;
    if (!result && qi_deferred_count(memory))
        (void)qi_deferred_collect_quietly(memory);
    if (!result)
        result = list_candidates(memory, options, &list);
    for (uint64_t i = 0; i < list.count && *bytes < options->bytes && !result; i++) {
        uint64_t more = 0;
        result = evict_one(memory, list.items[i].handle, discards, &more);
        *bytes += more;
    }
    qi_host_release(&memory->host, list.items, list.room, sizeof *list.items);
    if (*bytes)
        give_back(memory);
    return result;
}
