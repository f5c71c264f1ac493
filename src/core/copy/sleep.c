/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * sleep.c - all matching allocations are held first. Then each step can fail and is undone for all
 * of them: they stay awake, or asleep. A hold keeps an allocation from being freed, and the mark of
 * a sleeping one keeps other calls from its bytes while they are copied.
 */
#include "src/core/copy/sleep.h"

#include <string.h>

#include "src/base/result.h"
#include "src/core/copy/access.h"
#include "src/core/page/lazy.h"

/* The allocations that a call puts to sleep or wakes. */
typedef struct sleepers {
    quire_memory *memory;
    uint32_t *slots;
    uint64_t count, room;
    uint64_t bytes; /* of their runs */
} sleepers;

static qi_lazy *lazy_of(const sleepers *s, uint64_t i)
{
    return qi_slot_lazy(qi_memory_slot(s->memory, s->slots[i]));
}

static quire_allocation handle_of(const sleepers *s, uint64_t i)
{
    return qi_slot_public_handle(&s->memory->slots, s->slots[i]);
}

/* ---- selecting ---------------------------------------------------------------------------- */

/* Requires the shard's lock. */
static bool matches(const quire_memory *memory, uint32_t slot, const char *prefix)
{
    if (qi_slot_phase(&memory->slots, slot) != QI_PHASE_LIVE)
        return false;
    const qi_slot *record = qi_memory_slot(memory, slot);
    return qi_slot_is_lazy(record) &&
           (!prefix ||
            (record->meta && qi_name_begins(record->meta->name, prefix, strlen(prefix))));
}

static quire_result make_room(sleepers *s)
{
    s->room = qi_lazy_count(s->memory);
    s->slots = qi_host_allocate(&s->memory->host, s->room, sizeof *s->slots);
    return s->slots || !s->room
               ? QUIRE_SUCCESS
               : qi_fail_with(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                              "no host memory for a list of %u allocation%s", s->room);
}

/* Requires the shard's lock. Drops what is held; `is_asleep` is the mark that it gets. */
static void drop_all(sleepers *s, bool is_asleep)
{
    for (uint64_t i = 0; i < s->count; i++) {
        lazy_of(s, i)->is_asleep = is_asleep;
        qi_lazy_drop(s->memory, s->slots[i]);
    }
    s->count = 0;
}

/* Requires the shard's lock. Holds the allocations that are in the other state. An allocation that
   was made since make_room may be left out. Fails with BUSY if one is in use. */
static quire_result hold_all(sleepers *s, const char *prefix, bool is_asleep)
{
    quire_memory *memory = s->memory;
    for (uint32_t slot = 0; slot < qi_slots_top(&memory->slots) && s->count < s->room; slot++) {
        if (!matches(memory, slot, prefix) ||
            qi_slot_lazy(qi_memory_slot(memory, slot))->is_asleep != is_asleep ||
            !qi_lazy_hold(memory, slot))
            continue;
        s->slots[s->count++] = slot;
        if (qi_lazy_is_idle(memory, slot))
            continue;
        const quire_allocation busy = handle_of(s, s->count - 1);
        drop_all(s, is_asleep);
        return qi_fail_naming(QUIRE_ERROR_BUSY,
                              "allocation %x of memory '%t' is mapped, in use by another call, or "
                              "an object of the backend lies in it",
                              memory->name, busy.id);
    }
    for (uint64_t i = 0; i < s->count; i++)
        lazy_of(s, i)->is_asleep = true;
    return QUIRE_SUCCESS;
}

static quire_result select_all(sleepers *s, const char *prefix, bool is_asleep)
{
    quire_result result = make_room(s);
    if (result)
        return result;
    qi_lock_acquire(&s->memory->shards[0]->lock);
    result = hold_all(s, prefix, is_asleep);
    qi_lock_release(&s->memory->shards[0]->lock);
    return result;
}

static void end(sleepers *s, bool is_asleep)
{
    const uint64_t room = s->room;
    qi_lock_acquire(&s->memory->shards[0]->lock);
    drop_all(s, is_asleep);
    qi_lock_release(&s->memory->shards[0]->lock);
    qi_host_release(&s->memory->host, s->slots, room, sizeof *s->slots);
}

/* ---- contents ----------------------------------------------------------------------------- */

/* Lists the runs of an allocation, and makes room for their bytes unless they are discarded. */
static bool list_runs(sleepers *s, uint64_t i, bool discards)
{
    quire_memory *memory = s->memory;
    qi_lock *lock = &memory->shards[0]->lock;
    qi_asleep *asleep = &lazy_of(s, i)->asleep;
    qi_lock_acquire(lock);
    asleep->count = qi_lazy_runs(memory, s->slots[i], NULL, 0); /* which only this call changes */
    qi_lock_release(lock);
    asleep->runs = qi_host_allocate(&memory->host, asleep->count, sizeof *asleep->runs);
    if (asleep->count && !asleep->runs)
        return false;
    qi_lock_acquire(lock);
    (void)qi_lazy_runs(memory, s->slots[i], asleep->runs, asleep->count);
    qi_lock_release(lock);
    uint64_t bytes = 0;
    for (uint64_t k = 0; k < asleep->count; k++)
        bytes += asleep->runs[k].size;
    if (discards || !bytes)
        return true;
    asleep->bytes = qi_host_allocate(&memory->host, bytes, 1);
    asleep->size = asleep->bytes ? bytes : 0;
    return asleep->bytes;
}

/* Copies the contents of an allocation to its record, or back. */
static quire_result copy_runs(const sleepers *s, uint64_t i, bool reads)
{
    const qi_asleep *asleep = &lazy_of(s, i)->asleep;
    quire_result result = QUIRE_SUCCESS;
    char *at = asleep->bytes;
    for (uint64_t k = 0; at && k < asleep->count && !result; k++) {
        const qi_asleep_run *run = &asleep->runs[k];
        result = reads ? qi_access_read_slot(s->memory, s->slots[i], run->offset, at, run->size)
                       : qi_access_write_slot(s->memory, s->slots[i], run->offset, at, run->size);
        at += run->size;
    }
    return result;
}

static quire_result keep_all(sleepers *s, bool discards)
{
    quire_result result = QUIRE_SUCCESS;
    for (uint64_t i = 0; i < s->count && !result; i++) {
        result = list_runs(s, i, discards)
                     ? copy_runs(s, i, true)
                     : qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                               "no host memory for what a sleeping allocation has");
    }
    return result;
}

static void forget_all(const sleepers *s)
{
    for (uint64_t i = 0; i < s->count; i++)
        qi_asleep_release(&s->memory->host, &lazy_of(s, i)->asleep);
}

/* ---- chunks ------------------------------------------------------------------------------- */

/* Applies a change of chunks to all runs, or to none. Sets the bytes of the runs. */
static quire_result change_all(sleepers *s,
                               quire_result (*change)(quire_memory *, const quire_view *, uint64_t,
                                                      bool))
{
    uint64_t count = 0, next = 0;
    for (uint64_t i = 0; i < s->count; i++)
        count += lazy_of(s, i)->asleep.count;
    quire_view *ranges = qi_host_allocate(&s->memory->host, count, sizeof *ranges);
    if (count && !ranges)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                            "no host memory for a list of %u range%s", count);
    s->bytes = 0;
    for (uint64_t i = 0; i < s->count; i++)
        for (uint64_t k = 0; k < lazy_of(s, i)->asleep.count; k++) {
            const qi_asleep_run *run = &lazy_of(s, i)->asleep.runs[k];
            s->bytes += run->size;
            const uint64_t left = lazy_of(s, i)->requested - run->offset;
            ranges[next++] =
                (quire_view){handle_of(s, i), run->offset, run->size < left ? run->size : left};
        }
    quire_result result = change(s->memory, ranges, count, true);
    qi_host_release(&s->memory->host, ranges, count, sizeof *ranges);
    return result;
}

quire_result qi_memory_sleep(quire_memory *memory, const char *prefix, bool discards,
                             uint64_t *bytes)
{
    sleepers s = {.memory = memory};
    quire_result result = select_all(&s, prefix, false);
    if (!result)
        result = keep_all(&s, discards);
    if (!result)
        result = change_all(&s, qi_lazy_unback);
    if (result)
        forget_all(&s);
    else
        *bytes = s.bytes;
    end(&s, !result);
    return result;
}

quire_result qi_memory_wake(quire_memory *memory, const char *prefix, uint64_t *bytes)
{
    sleepers s = {.memory = memory};
    quire_result result = select_all(&s, prefix, true);
    if (!result)
        result = change_all(&s, qi_lazy_back);
    const bool has_memory = !result;
    for (uint64_t i = 0; i < s.count && !result; i++)
        result = copy_runs(&s, i, false);
    if (result && has_memory) {
        qi_error error;
        qi_error_save(&error);
        qi_ignore(change_all(&s, qi_lazy_unback));
        qi_error_restore(&error); /* the caller gets the first one */
    }
    if (!result) {
        forget_all(&s);
        *bytes = s.bytes;
    }
    end(&s, result != QUIRE_SUCCESS);
    return result;
}
