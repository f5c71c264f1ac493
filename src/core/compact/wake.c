/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * wake.c - evicted allocations get a place again: all that a call names, or none.
 *
 * Each gets a target first, with the means of any request: an on_out_of_memory may be called, so
 * that nothing moves yet. Then all begin to move, in the order of their slots, so that two calls do
 * not wait for each other, and get their contents. At last all exchange their places.
 */
#include "src/core/compact/evict.h"

#include <string.h>

#include "src/base/result.h"
#include "src/core/allocate/allocation.h"
#include "src/core/compact/move.h"
#include "src/core/copy/access.h"
#include "src/core/find/addresses.h"
#include "src/core/page/range.h"
#include "src/core/state/event.h"

typedef struct waking {
    qi_move move;
    bool has_target, is_moving;
    qi_asleep *asleep; /* what it had, once it is awake */
} waking;

typedef struct wakings {
    waking *items; /* in ascending order of their slots */
    uint64_t count, room;
    bool is_snapshot; /* what was freed since does not wake, and is no error */
} wakings;

/* ---- targets ------------------------------------------------------------------------------ */

/* What an evicted allocation needs. */
typedef struct needs {
    char name[QUIRE_MAX_NAME + 1];
    uint64_t size, requested, alignment;
    quire_object object;
    uint8_t usage;
} needs;

/* Requires the slot of a move. */
static needs read_needs(quire_memory *memory, uint32_t slot)
{
    needs n = {.name = ""};
    qi_lock *lock = &qi_shard_of_slot(memory, slot)->lock;
    qi_lock_acquire(lock);
    const qi_slot *record = qi_memory_slot(memory, slot);
    const qi_asleep *asleep = record->meta->asleep;
    n.requested = asleep->requested;
    /* the policy adds its padding again; a raw range had nothing else */
    n.size = record->object ? asleep->size - memory->policy.extra_padding : asleep->requested;
    n.alignment = qi_slot_alignment(record);
    n.object = record->object;
    n.usage = record->usage;
    if (record->meta->name)
        qi_copy_text(n.name, sizeof n.name, record->meta->name);
    qi_lock_release(lock);
    return n;
}

/* Begins the move of an allocation; `is_moving` is false if it is awake, or was freed. */
static quire_result begin_move(quire_memory *memory, waking *w)
{
    const qi_slot_begun begun = qi_slot_begin_waking_move(&memory->slots, w->move.handle);
    w->is_moving = begun == QI_SLOT_BEGUN;
    return begun == QI_SLOT_BUSY
               ? qi_fail_with(QUIRE_ERROR_BUSY,
                              "another call reads allocation %x, which is to wake",
                              w->move.handle.id)
               : QUIRE_SUCCESS;
}

/* Takes a PRIVATE slot with a place and an object. It is not found by its address. */
static quire_result take_target(quire_memory *memory, const needs *n, uint32_t *target)
{
    const qi_request request = {.range = {.size = n->size,
                                          .alignment = n->alignment,
                                          .requested = n->requested,
                                          .object = n->object,
                                          .extras = n->object ? QI_EXTRA_OBJECT : 0},
                                .deferred_name = n->name[0] ? n->name : NULL,
                                .reserved = true};
    quire_result result = qi_allocate(memory, &request, QUIRE_SUCCESS, target);
    if (result)
        return result;
    qi_slot *record = qi_memory_slot(memory, *target);
    qi_lock *lock = &qi_shard_of(memory, record)->lock;
    if (memory->addresses)
        qi_addresses_remove(memory, *target);
    qi_lock_acquire(lock); /* a walk may read the record */
    record->extras &= (uint8_t)~QI_EXTRA_ADDRESS;
    record->usage = n->object ? n->usage : record->usage;
    qi_lock_release(lock);
    result = qi_move_make_object(memory, *target);
    if (result)
        qi_release_unpublished(memory, *target);
    return result;
}

/* Fails as handles do. One that is awake gets no target. A free waits while the record is read. */
static quire_result prepare(quire_memory *memory, waking *w)
{
    quire_result result =
        qi_slot_check(&memory->slots, w->move.handle, QI_ACCEPT_LIVE | QI_ACCEPT_ASLEEP);
    if (!result)
        result = begin_move(memory, w);
    if (result || !w->is_moving)
        return result;
    const needs n = read_needs(memory, w->move.source);
    qi_move_end(memory, &w->move);
    w->is_moving = false;
    result = take_target(memory, &n, &w->move.target);
    w->has_target = !result;
    return result;
}

/* ---- contents ----------------------------------------------------------------------------- */

/* One that another call has woken or freed meanwhile does not move. */
static quire_result begin(quire_memory *memory, waking *w)
{
    qi_move *move = &w->move;
    quire_result result = w->has_target ? begin_move(memory, w) : QUIRE_SUCCESS;
    if (result || !w->is_moving)
        return result;
    move->is_entered =
        memory->addresses && qi_addresses_enter_move(memory, move->source, move->target);
    if (memory->addresses && !move->is_entered)
        return qi_addresses_refuse();
    const qi_asleep *asleep = qi_memory_slot(memory, move->source)->meta->asleep;
    return asleep->bytes
               ? qi_access_write_slot(memory, move->target, 0, asleep->bytes, asleep->count)
               : QUIRE_SUCCESS;
}

/* ---- the exchange ------------------------------------------------------------------------- */

/* All require the locks of all shards. */

static const char *name_of(const quire_memory *memory, const waking *w)
{
    return qi_memory_slot(memory, w->move.source)->meta->name;
}

/* Stops counting the first ones in the accounts of their names. */
static void shrink_names(quire_memory *memory, const wakings *all, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        const waking *w = &all->items[i];
        const qi_slot *target = qi_memory_slot(memory, w->move.target);
        if (w->is_moving)
            qi_names_shrink(&memory->names, name_of(memory, w), qi_name_held_by(target),
                            target->requested);
    }
}

/* Counts all, or none. Fails with OVER_BUDGET. */
static quire_result grow_names(quire_memory *memory, const wakings *all)
{
    for (uint64_t i = 0; i < all->count; i++) {
        const waking *w = &all->items[i];
        const qi_slot *target = qi_memory_slot(memory, w->move.target);
        if (!w->is_moving)
            continue;
        quire_result result = qi_names_grow(&memory->names, name_of(memory, w),
                                            qi_name_held_by(target), target->requested);
        if (!result)
            continue;
        shrink_names(memory, all, i);
        return result;
    }
    return QUIRE_SUCCESS;
}

/* The slot of the source belongs to the shard of its place, and that of the target to the other. */
static void exchange(quire_memory *memory, waking *w)
{
    qi_slot *source = qi_memory_slot(memory, w->move.source);
    qi_shard *from = qi_shard_of(memory, source);
    qi_shard *to = qi_shard_of_slot(memory, w->move.target);
    w->asleep = source->meta->asleep;
    source->meta->asleep = NULL;
    source->extras &= (uint8_t)~QI_EXTRA_ASLEEP;
    from->stats.asleep_count--;
    from->stats.asleep_bytes -= w->asleep->size + w->asleep->left_padding;
    qi_move_complete(memory, &w->move);
    qi_slot_exchange_queues(&from->queue, w->move.source, &to->queue, w->move.target);
    to->has_had_movable = true;
}

static quire_result exchange_all(quire_memory *memory, const wakings *all)
{
    qi_shards_acquire(memory);
    quire_result result = grow_names(memory, all);
    for (uint64_t i = 0; i < all->count && !result; i++)
        if (all->items[i].is_moving)
            exchange(memory, &all->items[i]);
    qi_shards_release(memory);
    return result;
}

/* ---- all ---------------------------------------------------------------------------------- */

static void end(quire_memory *memory, const wakings *all)
{
    for (uint64_t i = 0; i < all->count; i++)
        if (all->items[i].is_moving)
            qi_move_end(memory, &all->items[i].move);
    for (uint64_t i = 0; i < all->count; i++)
        if (all->items[i].has_target)
            qi_move_release(memory, &all->items[i].move);
}

static quire_result prepare_all(quire_memory *memory, const wakings *all)
{
    qi_error before;
    quire_result result = QUIRE_SUCCESS;
    qi_error_save(&before);
    for (uint64_t i = 0; i < all->count && !result; i++) {
        result = prepare(memory, &all->items[i]);
        if (result != QUIRE_ERROR_STALE_HANDLE || !all->is_snapshot)
            continue;
        qi_error_restore(&before);
        result = QUIRE_SUCCESS;
    }
    return result;
}

/* Wakes all, or none. *bytes receives those of the allocations. */
static quire_result wake(quire_memory *memory, const wakings *all, uint64_t *bytes)
{
    quire_result result = prepare_all(memory, all);
    for (uint64_t i = 0; i < all->count && !result; i++)
        result = begin(memory, &all->items[i]);
    if (!result)
        result = exchange_all(memory, all);
    end(memory, all);
    *bytes = 0;
    for (uint64_t i = 0; i < all->count; i++) {
        const waking *w = &all->items[i];
        if (!w->asleep)
            continue;
        *bytes += w->asleep->requested;
        qi_asleep_release(&memory->host, w->asleep);
        qi_event_changed(memory, QUIRE_EVENT_AWAKE, w->move.handle);
    }
    return result;
}

quire_result qi_wake(quire_memory *memory, quire_allocation allocation)
{
    uint64_t bytes;
    waking one = {.move = {.source = qi_handle_slot(allocation.id), .handle = allocation}};
    quire_result result = qi_evict_check_call(memory);
    return result ? result : wake(memory, &(wakings){.items = &one, .count = 1}, &bytes);
}

/* ---- by name ------------------------------------------------------------------------------ */

/* Requires the locks of all shards. */
static bool matches(const quire_memory *memory, uint32_t slot, const char *prefix)
{
    if (qi_slot_phase(&memory->slots, slot) != QI_PHASE_ASLEEP)
        return false;
    const qi_slot *record = qi_memory_slot(memory, slot);
    return record->extras & QI_EXTRA_ASLEEP &&
           (!prefix || qi_name_begins(record->meta->name, prefix, strlen(prefix)));
}

/* Requires the locks of all shards. */
static void list_named(const quire_memory *memory, const char *prefix, wakings *all)
{
    all->count = 0;
    for (uint32_t slot = 0; slot < qi_slots_top(&memory->slots); slot++) {
        if (!matches(memory, slot, prefix))
            continue;
        const quire_allocation handle = qi_slot_public_handle(&memory->slots, slot);
        if (!handle.id) /* a free has claimed it at this moment */
            continue;
        if (all->count < all->room)
            all->items[all->count] = (waking){.move = {.source = slot, .handle = handle}};
        all->count++;
    }
}

/* The caller releases the list. As list_candidates of evict.c. */
static quire_result make_list(quire_memory *memory, const char *prefix, wakings *all)
{
    qi_host *host = &memory->host;
    for (;;) {
        qi_shards_acquire(memory);
        list_named(memory, prefix, all);
        qi_shards_release(memory);
        if (all->count <= all->room)
            return QUIRE_SUCCESS;
        qi_host_release(host, all->items, all->room, sizeof *all->items);
        all->room = all->count + all->count / 8;
        all->items = qi_host_allocate(host, all->room, sizeof *all->items);
        if (all->items)
            continue;
        all->count = all->room = 0;
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                       "no host memory for a list of evicted allocations");
    }
}

quire_result qi_wake_named(quire_memory *memory, const char *prefix, uint64_t *bytes)
{
    wakings all = {.is_snapshot = true};
    quire_result result = qi_evict_check_call(memory);
    *bytes = 0;
    if (!result)
        result = make_list(memory, prefix, &all);
    if (!result)
        result = wake(memory, &all, bytes);
    qi_host_release(&memory->host, all.items, all.room, sizeof *all.items);
    return result;
}
