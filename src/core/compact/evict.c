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
    uint64_t count, room; /* the count may exceed the room */
} candidates;

/* Requires the locks of all shards. */
static bool may_leave(const quire_memory *memory, uint32_t slot, const quire_evict_options *options,
                      qi_recency *recency)
{
    if (!qi_move_is_possible(memory, slot, false, NULL))
        return false;
    *recency = qi_recency_get(&memory->slots, slot, qi_atomic_load_u32(&memory->frame));
    return recency->age > options->recent_frames && recency->priority != QUIRE_PRIORITY_STAYS;
}

/* Requires the locks of all shards. */
static void take_snapshot(const quire_memory *memory, const quire_evict_options *options,
                          candidates *list)
{
    list->count = 0;
    for (uint32_t slot = 0; slot < qi_slots_top(&memory->slots); slot++) {
        qi_recency recency;
        if (!may_leave(memory, slot, options, &recency))
            continue;
        const qi_page *page = qi_memory_page(memory, slot);
        if (list->count < list->room)
            list->items[list->count] =
                (candidate){.handle = qi_slot_public_handle(&memory->slots, slot),
                            .live = page->tally->live_bytes,
                            .page = page->number,
                            .recency = recency};
        list->count++;
    }
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

/* The caller releases the items. A list that lacks room is taken again, with some more. */
static quire_result list_candidates(quire_memory *memory, const quire_evict_options *options,
                                    candidates *list)
{
    qi_host *host = &memory->host;
    for (;;) {
        qi_shards_acquire(memory);
        take_snapshot(memory, options, list);
        qi_shards_release(memory);
        if (list->count <= list->room)
            break;
        qi_host_release(host, list->items, list->room, sizeof *list->items);
        list->room = list->count + list->count / 8;
        list->items = qi_host_allocate(host, list->room, sizeof *list->items);
        if (list->items)
            continue;
        list->count = list->room = 0;
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                       "no host memory for a list of allocations to evict");
    }
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

/* Requires no lock. Begins the move of an allocation if it may still leave. */
static bool begin(quire_memory *memory, const qi_move *move)
{
    const qi_slots *slots = &memory->slots;
    qi_shards_acquire(memory); /* a slot that has the handle does not get another one */
    const bool has_begun = qi_slot_public_handle(slots, move->source).id == move->handle.id &&
                           qi_move_is_possible(memory, move->source, false, NULL) &&
                           qi_slot_begin_move(slots, move->source, NULL);
    qi_shards_release(memory);
    return has_begun;
}

/* Requires no lock, and the slot of a move. Copies the contents, unless they are discarded. */
static quire_result keep(quire_memory *memory, uint32_t slot, bool discards, evicted *kept)
{
    const qi_slot *record = qi_memory_slot(memory, slot);
    const uint64_t bytes = discards ? 0 : record->requested;
    quire_result result = qi_asleep_create(&memory->host, record, bytes, "an evicted allocation",
                                           &kept->asleep, &kept->meta);
    return result || !bytes ? result
                            : qi_access_read_slot(memory, slot, 0, kept->asleep->bytes, bytes);
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
    if (!begin(memory, &move))
        return QUIRE_SUCCESS;
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
    if (!obstacle && !discards)
        obstacle = qi_move_obstacle(memory);
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
