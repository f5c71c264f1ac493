/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * sleep.c - all matching allocations become ASLEEP first, with a use, so that no other call uses or
 * frees them. Then each step can fail and is undone for all of them.
 *
 * Records and chunks change under one hold of the lock, after the contents are in host memory and
 * before the chunks lose their memory, and the other way when they wake: a fork in between finds
 * either of both states (qi_backing_settle, qi_slots_drop_uses).
 */
#include "src/core/copy/sleep.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/base/thread.h"
#include "src/core/copy/access.h"
#include "src/core/page/backing.h"
#include "src/core/page/lazy.h"
#include "src/core/state/event.h"
#include "src/core/state/peaks.h"

/* An allocation that a call puts to sleep or wakes. */
typedef struct sleeper {
    uint64_t offset; /* in the page */
    uint32_t slot;
    qi_asleep *asleep;
    qi_slot_meta *meta; /* for a record that has none */
} sleeper;

typedef struct sleepers {
    quire_memory *memory;
    qi_shard *shard; /* the only one of an elastic memory */
    qi_page *page;
    sleeper *items; /* in ascending order of their offsets */
    uint64_t count, room;
    bool lacks_room;    /* allocations were made since the room was */
    qi_chunk_run *runs; /* that lose or get memory, in ascending order */
    uint64_t run_count, run_room;
} sleepers;

static qi_slot *record_of(const sleepers *s, uint64_t i)
{
    return qi_memory_slot(s->memory, s->items[i].slot);
}

static bool is_lazy(const sleepers *s, uint64_t i)
{
    return qi_slot_is_lazy(record_of(s, i));
}

/* ---- selecting ---------------------------------------------------------------------------- */

/* Requires the shard's lock. */
static bool matches(const qi_slot *record, const char *prefix)
{
    return !record->tally->page->dedicated &&
           (!prefix ||
            (record->meta && qi_name_begins(record->meta->name, prefix, strlen(prefix))));
}

/* Room for the allocations that exist now, and some more. */
static quire_result make_room(sleepers *s)
{
    qi_host_release(&s->memory->host, s->items, s->room, sizeof *s->items);
    qi_lock_acquire(&s->shard->lock);
    s->page = qi_backing_page(s->shard);
    s->room = s->shard->stats.allocation_count + s->shard->stats.allocation_count / 8;
    qi_lock_release(&s->shard->lock);
    s->items = qi_host_allocate(&s->memory->host, s->room, sizeof *s->items);
    return s->items || !s->room
               ? QUIRE_SUCCESS
               : qi_fail_with(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                              "no host memory for a list of %u allocation%s", s->room);
}

/* Requires the shard's lock. */
static void drop_all(sleepers *s, qi_phase phase)
{
    for (uint64_t i = 0; i < s->count; i++) {
        record_of(s, i)->extras &= (uint8_t)~QI_EXTRA_CHANGING;
        qi_slot_end_sleep(&s->memory->slots, s->items[i].slot, phase);
    }
    s->count = 0;
}

static quire_result refuse_busy(const sleepers *s, uint32_t slot)
{
    return qi_fail_naming(QUIRE_ERROR_BUSY,
                          "allocation %x of memory '%t' is mapped, held, in use by another call, "
                          "or an object of the backend lies in it",
                          s->memory->name, qi_slot_public_handle(&s->memory->slots, slot).id);
}

/* Requires the shard's lock. Takes an allocation of the phase. Another one is GONE, unless it is
   about to get that phase. */
static qi_slot_begun take(const sleepers *s, uint32_t slot, const char *prefix, qi_phase from)
{
    const qi_slots *slots = &s->memory->slots;
    const qi_phase phase = qi_slot_phase(slots, slot);
    if (phase != QI_PHASE_LIVE && phase != QI_PHASE_ASLEEP)
        return QI_SLOT_GONE;
    const qi_slot *record = qi_memory_slot(s->memory, slot);
    if (!matches(record, prefix))
        return QI_SLOT_GONE;
    if (record->extras & QI_EXTRA_CHANGING || (phase == from && qi_slot_native(record)))
        return QI_SLOT_BUSY;
    return from == QI_PHASE_LIVE ? qi_slot_begin_sleep(slots, slot)
                                 : qi_slot_begin_wake(slots, slot);
}

/* Requires the shard's lock. Takes the allocations of the phase, or says that room lacks. Fails
   with BUSY if one is in use. */
static quire_result take_all(sleepers *s, const char *prefix, qi_phase from)
{
    s->lacks_room = false;
    for (uint32_t slot = 0; slot < qi_slots_top(&s->memory->slots); slot++) {
        const qi_slot_begun begun = take(s, slot, prefix, from);
        if (begun == QI_SLOT_BEGUN && s->count == s->room) {
            qi_slot_end_sleep(&s->memory->slots, slot, from);
            drop_all(s, from);
            s->lacks_room = true;
            return QUIRE_SUCCESS;
        }
        if (begun == QI_SLOT_BUSY) {
            drop_all(s, from);
            return refuse_busy(s, slot);
        }
        if (begun == QI_SLOT_BEGUN) {
            qi_slot *record = qi_memory_slot(s->memory, slot);
            record->extras |= QI_EXTRA_CHANGING;
            s->items[s->count++] = (sleeper){.offset = record->offset, .slot = slot};
        }
    }
    return QUIRE_SUCCESS;
}

static int compare(const void *one, const void *other)
{
    const sleeper *a = one, *b = other;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

static int compare_runs(const void *one, const void *other)
{
    const qi_chunk_run *a = one, *b = other;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

static quire_result select_all(sleepers *s, const char *prefix, qi_phase from)
{
    if (s->memory->device->is_disabled)
        return qi_refuse_disabled();
    if (s->memory->space.fit.slabs)
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                            "memory '%s' has slabs: its allocations cannot sleep", s->memory->name);
    quire_result result;
    do {
        result = make_room(s);
        if (result || !s->page)
            return result;
        qi_lock_acquire(&s->shard->lock);
        result = take_all(s, prefix, from);
        qi_lock_release(&s->shard->lock);
    } while (s->lacks_room);
    if (s->count)
        qsort(s->items, s->count, sizeof *s->items, compare);
    return result;
}

/* Requires no lock. */
static void report(const sleepers *s, quire_event_kinds kind)
{
    for (uint64_t i = 0; i < s->count; i++)
        qi_event_sleep(s->memory, kind, s->items[i].slot);
}

/* Releases the lists, and what no record has. The phase is that of all allocations now. */
static void end(sleepers *s, qi_phase phase)
{
    qi_host *host = &s->memory->host;
    for (uint64_t i = 0; i < s->count; i++) {
        qi_asleep_release(host, s->items[i].asleep);
        qi_slot_meta_release(host, s->items[i].meta);
    }
    qi_lock_acquire(&s->shard->lock);
    drop_all(s, phase);
    qi_lock_release(&s->shard->lock);
    qi_host_release(host, s->items, s->room, sizeof *s->items);
    qi_host_release(host, s->runs, s->run_room, sizeof *s->runs);
}

/* ---- the page ----------------------------------------------------------------------------- */

/* Requires the shard's lock. Releases and reacquires it. Room for one run of each allocation, for
   the edges of those that sleep already, and for the pieces of lazy ones, which only the owner of
   the page changes, as it does what sleeps. */
static quire_result make_runs(sleepers *s, qi_piece piece)
{
    s->run_room = s->count + 2 * s->shard->stats.asleep_count;
    for (uint64_t i = 0; i < s->count; i++) {
        qi_chunk_run run = {0};
        if (!is_lazy(s, i))
            continue;
        const qi_window window = qi_lazy_window(qi_slot_lazy(record_of(s, i)));
        while (qi_space_next_piece(s->shard->space, &window, piece, &run))
            s->run_room++;
    }
    qi_lock_release(&s->shard->lock);
    s->runs = qi_host_allocate(&s->memory->host, s->run_room, sizeof *s->runs);
    qi_lock_acquire(&s->shard->lock);
    return s->runs || !s->run_room
               ? QUIRE_SUCCESS
               : qi_fail_with(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                              "no host memory for a list of %u run%s of chunks", s->run_room);
}

static void add_run(sleepers *s, uint64_t offset, uint64_t size)
{
    qi_chunk_run *last = s->run_count ? &s->runs[s->run_count - 1] : NULL;
    if (last && last->offset + last->size == offset)
        last->size += size;
    else
        s->runs[s->run_count++] =
            (qi_chunk_run){.region = s->page->region, .offset = offset, .size = size};
}

static void add_pieces(sleepers *s, uint64_t i, qi_piece piece)
{
    const qi_window window = qi_lazy_window(qi_slot_lazy(record_of(s, i)));
    qi_chunk_run run = {0};
    while (qi_space_next_piece(s->shard->space, &window, piece, &run))
        add_run(s, run.offset, run.size);
}

static uint64_t bytes_of_runs(const sleepers *s)
{
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < s->run_count; i++)
        bytes += s->runs[i].size;
    return bytes;
}

/* The range of a sleeping allocation that is not lazy, and its chunks from `first` up to `last`. */
typedef struct stretch {
    quire_range range;
    uint64_t first, last;
} stretch;

static stretch stretch_of(const sleepers *s, const qi_slot *record)
{
    quire_placement at;
    const qi_asleep *asleep = record->meta->asleep;
    qi_ignore(qi_space_get(s->shard->space, asleep->range, &at)); /* it is live */
    return (stretch){asleep->range, qi_align_down(at.offset, s->memory->chunk),
                     qi_align_down(at.offset + at.size - 1, s->memory->chunk)};
}

/* ---- records ------------------------------------------------------------------------------ */

/*
 * All require the shard's lock.
 */

static uint64_t held_by(const qi_slot *record)
{
    return record->size + record->left_padding + qi_checked_behind(record);
}

/* The record of an allocation that is not lazy loses its sizes and its range to `asleep`. */
static void empty_record(const sleepers *s, qi_slot *record, qi_asleep *asleep)
{
    quire_memory_stats *stats = &s->shard->stats;
    const uint64_t held = held_by(record);
    asleep->size = record->size;
    asleep->requested = record->requested;
    asleep->range = record->range;
    asleep->behind = qi_checked_behind(record);
    asleep->named = qi_name_held_by(record);
    asleep->left_padding = record->left_padding;
    qi_shard_keep_peaks(stats);
    qi_raise(&record->tally->peak_live_bytes, record->tally->live_bytes);
    stats->live_bytes -= held;
    stats->requested_bytes -= record->requested;
    record->tally->live_bytes -= held;
    s->page->asleep_bytes += held;
    stats->asleep_bytes += held;
    record->size = record->requested = record->left_padding = 0;
    record->range = (quire_range){0};
    qi_checked_asleep(record, asleep);
}

static void fill_record(const sleepers *s, qi_slot *record, const qi_asleep *asleep)
{
    quire_memory_stats *stats = &s->shard->stats;
    record->size = asleep->size;
    record->requested = asleep->requested;
    record->range = asleep->range;
    record->left_padding = asleep->left_padding;
    qi_checked_awake(record, asleep);
    const uint64_t held = held_by(record);
    stats->live_bytes += held;
    stats->requested_bytes += record->requested;
    record->tally->live_bytes += held;
    s->page->asleep_bytes -= held;
    stats->asleep_bytes -= held;
}

/* The record gets what it had, and looks like that of a sleeping allocation. */
static void mark_record(sleepers *s, uint64_t i)
{
    sleeper *item = &s->items[i];
    qi_slot *record = record_of(s, i);
    if (!record->meta) {
        record->meta = item->meta;
        item->meta = NULL;
    }
    record->meta->asleep = item->asleep;
    record->extras |= QI_EXTRA_ASLEEP;
    if (!is_lazy(s, i))
        empty_record(s, record, item->asleep);
    item->asleep = NULL;
    s->shard->stats.asleep_count++;
}

/* The other way. `item` keeps what the caller releases. */
static void unmark_record(sleepers *s, uint64_t i)
{
    qi_slot *record = record_of(s, i);
    s->items[i].asleep = record->meta->asleep;
    record->meta->asleep = NULL;
    record->extras &= (uint8_t)~QI_EXTRA_ASLEEP;
    if (!is_lazy(s, i))
        fill_record(s, record, s->items[i].asleep);
    s->shard->stats.asleep_count--;
}

/* What an allocation counts in the accounts of its name while it is awake. */
typedef struct named {
    const char *name;
    uint64_t held, requested;
} named;

static named named_of(const sleepers *s, uint64_t i)
{
    const qi_slot *record = record_of(s, i);
    const qi_asleep *asleep = record->meta->asleep;
    if (is_lazy(s, i)) {
        const uint64_t bytes = qi_lazy_bytes(s->page, s->items[i].slot, QI_PIECE_ASLEEP);
        return (named){record->meta->name, bytes, bytes};
    }
    return (named){record->meta->name, asleep->named, asleep->requested};
}

/* Stops counting the first sleeping allocations. */
static void shrink_names(const sleepers *s, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        const named n = named_of(s, i);
        qi_names_shrink(&s->memory->names, n.name, n.held, n.requested);
    }
}

/* Counts all sleeping allocations, or none. Fails with OVER_BUDGET. */
static quire_result grow_names(const sleepers *s)
{
    for (uint64_t i = 0; i < s->count; i++) {
        const named n = named_of(s, i);
        quire_result result = qi_names_grow(&s->memory->names, n.name, n.held, n.requested);
        if (!result)
            continue;
        shrink_names(s, i);
        return result;
    }
    return QUIRE_SUCCESS;
}

/* ---- contents ----------------------------------------------------------------------------- */

/* Copies the contents of an allocation with memory to host memory, or back. */
static quire_result copy_contents(const sleepers *s, uint64_t i, const qi_asleep *asleep,
                                  qi_piece piece, bool reads)
{
    const uint32_t slot = s->items[i].slot;
    char *bytes = asleep->bytes;
    if (!is_lazy(s, i))
        return reads ? qi_access_read_slot(s->memory, slot, 0, bytes, asleep->count)
                     : qi_access_write_slot(s->memory, slot, 0, bytes, asleep->count);
    const qi_window window = qi_lazy_window(qi_slot_lazy(record_of(s, i)));
    qi_chunk_run run = {0};
    for (quire_result result;; bytes += run.size) {
        qi_lock_acquire(&s->shard->lock);
        const bool is_left = qi_space_next_piece(s->shard->space, &window, piece, &run);
        qi_lock_release(&s->shard->lock);
        if (!is_left)
            return QUIRE_SUCCESS;
        const uint64_t offset = run.offset - window.offset;
        result = reads ? qi_access_read_slot(s->memory, slot, offset, bytes, run.size)
                       : qi_access_write_slot(s->memory, slot, offset, bytes, run.size);
        if (result)
            return result;
    }
}

static uint64_t bytes_to_keep(const sleepers *s, uint64_t i)
{
    const qi_slot *record = record_of(s, i);
    if (!is_lazy(s, i))
        return record->requested;
    qi_lock_acquire(&s->shard->lock);
    const uint64_t bytes = qi_lazy_bytes(s->page, s->items[i].slot, QI_PIECE_BACKED);
    qi_lock_release(&s->shard->lock);
    return bytes;
}

/* Requires no lock. Makes room for what an allocation has, and copies it unless it is discarded. */
static quire_result keep(const sleepers *s, uint64_t i, bool discards)
{
    sleeper *item = &s->items[i];
    const uint64_t bytes = discards ? 0 : bytes_to_keep(s, i);
    quire_result result = qi_asleep_create(&s->memory->host, record_of(s, i), bytes,
                                           "a sleeping allocation", &item->asleep, &item->meta);
    return result || !bytes ? result : copy_contents(s, i, item->asleep, QI_PIECE_BACKED, true);
}

/* ---- falling asleep ----------------------------------------------------------------------- */

static bool is_asleep(const void *user, uint64_t slot)
{
    return qi_memory_slot(user, (uint32_t)slot)->extras & QI_EXTRA_ASLEEP;
}

/* Chunks that sleep lose that state, which the allocations gave them. */
static void wake_chunks(const sleepers *s, uint64_t i)
{
    const stretch at = stretch_of(s, record_of(s, i));
    for (uint64_t offset = at.first; offset <= at.last; offset += s->memory->chunk)
        if (qi_space_chunk_sleeps(s->shard->space, at.range, offset))
            qi_space_wake_chunk(s->shard->space, at.range, offset);
}

/* Lists a chunk if it falls asleep. The next one to look at is behind it. */
static quire_result sleep_chunk(sleepers *s, const stretch *at, uint64_t offset, uint64_t *next)
{
    bool falls_asleep;
    quire_result result = qi_space_sleep_chunk(s->shard->space, at->range, offset, is_asleep,
                                               s->memory, &falls_asleep);
    if (result)
        return result;
    if (falls_asleep)
        add_run(s, offset, s->memory->chunk);
    *next = offset + s->memory->chunk;
    return QUIRE_SUCCESS;
}

/* Lists the chunks that fall asleep with an allocation, from `next` on. */
static quire_result sleep_chunks(sleepers *s, uint64_t i, uint64_t *next)
{
    const stretch at = stretch_of(s, record_of(s, i));
    quire_result result = QUIRE_SUCCESS;
    for (uint64_t offset = at.first < *next ? *next : at.first; offset <= at.last && !result;
         offset = *next)
        result = sleep_chunk(s, &at, offset, next);
    return result;
}

/* Numbers for the free of each allocation, or none. */
static quire_result set_aside(const sleepers *s)
{
    for (uint64_t i = 0; i < s->count; i++) {
        quire_result result = is_lazy(s, i) ? QUIRE_SUCCESS : qi_space_set_aside(s->shard->space);
        if (!result)
            continue;
        while (i-- > 0)
            if (!is_lazy(s, i))
                qi_space_take_aside(s->shard->space);
        return result;
    }
    return QUIRE_SUCCESS;
}

/*
 * Chunks in which the last allocation that was awake has been freed lose their memory, too. A
 * refusal for lack of host memory leaves them theirs.
 */
static void sleep_edges(sleepers *s, const char *prefix)
{
    qi_error error;
    quire_result result = QUIRE_SUCCESS;
    qi_error_save(&error);
    for (uint32_t slot = 0; slot < qi_slots_top(&s->memory->slots) && !result; slot++) {
        if (qi_slot_phase(&s->memory->slots, slot) != QI_PHASE_ASLEEP)
            continue;
        const qi_slot *record = qi_memory_slot(s->memory, slot);
        if (qi_slot_is_lazy(record) || !matches(record, prefix) ||
            record->extras & QI_EXTRA_CHANGING)
            continue;
        uint64_t from = 0;
        const stretch at = stretch_of(s, record);
        result = sleep_chunk(s, &at, at.first, &from);
        if (!result && at.last > at.first)
            result = sleep_chunk(s, &at, at.last, &from);
    }
    qi_error_restore(&error);
    if (s->run_count)
        qsort(s->runs, s->run_count, sizeof *s->runs, compare_runs);
}

/* Wakes chunks and records. Of a lazy one without pieces that sleep nothing changes. */
static void unmark_all(sleepers *s)
{
    for (uint64_t i = 0; i < s->count; i++) {
        if (is_lazy(s, i)) {
            qi_lazy_wake(s->page, s->items[i].slot);
        } else {
            wake_chunks(s, i);
            qi_space_take_aside(s->shard->space);
        }
        unmark_record(s, i);
    }
}

/* Marks records and chunks. On failure all are as before. */
static quire_result mark_all(sleepers *s)
{
    uint64_t from = 0;
    quire_result result = set_aside(s);
    if (result)
        return result;
    for (uint64_t i = 0; i < s->count; i++)
        mark_record(s, i);
    for (uint64_t i = 0; i < s->count && !result; i++)
        if (is_lazy(s, i))
            add_pieces(s, i, QI_PIECE_BACKED);
        else
            result = sleep_chunks(s, i, &from);
    if (result) {
        unmark_all(s);
        return result;
    }
    for (uint64_t i = 0; i < s->count; i++)
        if (is_lazy(s, i))
            qi_lazy_sleep(s->page, s->items[i].slot);
    return QUIRE_SUCCESS;
}

/* Requires the shard's lock, for the sleeper of the page. Releases and reacquires the lock. */
static void await_chunks(const sleepers *s)
{
    while (!qi_resize_begin(s->page))
        qi_resize_await(s->shard, s->page);
}

/* Requires the shard's lock. Releases and reacquires it. */
static quire_result lose_memory(sleepers *s, const char *prefix, qi_page_events *events)
{
    if (!s->count && !s->shard->stats.asleep_count)
        return QUIRE_SUCCESS;
    quire_result result = qi_sleep_begin(s->shard, s->page);
    if (result)
        return result;
    await_chunks(s);
    result = make_runs(s, QI_PIECE_BACKED);
    if (!result)
        result = mark_all(s);
    if (!result) {
        sleep_edges(s, prefix);
        shrink_names(s, s->count);
        qi_backing_unback_runs(s->page, s->runs, s->run_count);
        if (s->run_count)
            events->given = (qi_page_change){
                .size = s->page->native.bytes, .number = s->page->number, .resized = true};
    }
    qi_resize_end(s->page, !result);
    qi_sleep_end(s->page);
    return result;
}

quire_result qi_memory_sleep(quire_memory *memory, const char *prefix, bool discards,
                             uint64_t *bytes)
{
    sleepers s = {.memory = memory, .shard = memory->shards[0]};
    qi_page_events events = {.gone = NULL};
    quire_result result = select_all(&s, prefix, QI_PHASE_LIVE);
    for (uint64_t i = 0; i < s.count && !result; i++)
        result = keep(&s, i, discards);
    if (!result && s.page) {
        qi_lock_acquire(&s.shard->lock);
        result = lose_memory(&s, prefix, &events);
        qi_lock_release(&s.shard->lock);
    }
    qi_page_events_report(memory, &events, "");
    if (!result) {
        *bytes = bytes_of_runs(&s);
        report(&s, QUIRE_EVENT_ASLEEP);
    }
    end(&s, result ? QI_PHASE_LIVE : QI_PHASE_ASLEEP);
    return result;
}

/* ---- waking ------------------------------------------------------------------------------- */

/* Lists the chunks of an allocation that sleep, from `from` on. */
static void list_chunks(sleepers *s, uint64_t i, uint64_t *from)
{
    const stretch at = stretch_of(s, record_of(s, i));
    const uint64_t chunk = s->memory->chunk;
    for (uint64_t offset = at.first < *from ? *from : at.first; offset <= at.last;
         offset += chunk) {
        if (qi_space_chunk_sleeps(s->shard->space, at.range, offset))
            add_run(s, offset, chunk);
        *from = offset + chunk;
    }
}

/* Whether limits of names allow that all wake: a refusal comes before memory is requested. The
   accounts stay those of the records, which other threads and a fork may see meanwhile. */
static quire_result admit_names(const sleepers *s)
{
    quire_result result = grow_names(s);
    if (!result)
        shrink_names(s, s->count);
    return result;
}

/* Requires the shard's lock. Releases and reacquires it. Gives memory to all chunks, or to none. */
static quire_result get_memory(sleepers *s, qi_page_progress *progress)
{
    uint64_t from = 0;
    quire_result result = make_runs(s, QI_PIECE_ASLEEP);
    if (!result)
        result = admit_names(s);
    if (result)
        return result;
    for (uint64_t i = 0; i < s->count; i++)
        if (is_lazy(s, i))
            add_pieces(s, i, QI_PIECE_ASLEEP);
        else
            list_chunks(s, i, &from);
    return qi_backing_back_runs(s->page, s->runs, s->run_count, progress);
}

/* Requires the shard's lock. The bytes of an allocation may be written. */
static void unpoison(const sleepers *s, uint64_t i)
{
    const qi_slot *record = record_of(s, i);
    qi_chunk_run run = {0};
    if (!is_lazy(s, i)) {
        qi_checked_page_used(s->page, record->offset, record->offset + qi_slot_usable(record));
        return;
    }
    const qi_window window = qi_lazy_window(qi_slot_lazy(record));
    while (qi_space_next_piece(s->shard->space, &window, QI_PIECE_ASLEEP, &run))
        qi_checked_page_used(s->page, run.offset, run.offset + run.size);
}

/* Requires no lock. Writes what was kept. */
static quire_result restore_contents(const sleepers *s)
{
    quire_result result = QUIRE_SUCCESS;
    for (uint64_t i = 0; i < s->count && !result; i++) {
        const qi_asleep *asleep = record_of(s, i)->meta->asleep;
        if (asleep->bytes)
            result = copy_contents(s, i, asleep, QI_PIECE_ASLEEP, false);
    }
    return result;
}

/* Requires the shard's lock, for the sleeper of the page. Releases and reacquires the lock. Other
   threads change the page while contents are copied. */
static quire_result wake_all(sleepers *s, qi_page_progress *progress)
{
    await_chunks(s);
    quire_result result = get_memory(s, progress);
    for (uint64_t i = 0; i < s->count && !result; i++)
        unpoison(s, i);
    s->page->waking_bytes = result ? 0 : bytes_of_runs(s);
    qi_resize_end(s->page, true);
    if (result)
        return result;
    qi_lock_release(&s->shard->lock);
    result = restore_contents(s);
    qi_lock_acquire(&s->shard->lock);
    await_chunks(s);
    if (!result)
        result = grow_names(s); /* other allocations may have taken the room */
    if (!result)
        unmark_all(s);
    else
        qi_backing_unback_runs(s->page, s->runs, s->run_count);
    s->page->waking_bytes = 0;
    qi_resize_end(s->page, true);
    return result;
}

static quire_result change_to_awake(sleepers *s, qi_page_progress *progress)
{
    qi_lock_acquire(&s->shard->lock);
    quire_result result = qi_sleep_begin(s->shard, s->page);
    if (!result) {
        result = wake_all(s, progress);
        if (!result && s->run_count) {
            progress->events.made = qi_page_made(s->page);
            progress->events.made.resized = true;
        }
        qi_sleep_end(s->page);
    }
    qi_lock_release(&s->shard->lock);
    return result;
}

quire_result qi_memory_wake(quire_memory *memory, const char *prefix, uint64_t *bytes)
{
    sleepers s = {.memory = memory, .shard = memory->shards[0]};
    qi_page_progress progress = {.within_budget = false};
    quire_result result = select_all(&s, prefix, QI_PHASE_ASLEEP);
    if (!result && s.count)
        result = change_to_awake(&s, &progress);
    qi_page_events_report(memory, &progress.events, "");
    if (!result) {
        *bytes = bytes_of_runs(&s);
        for (uint64_t i = 0; i < s.count; i++)
            qi_checked_woken(memory, s.items[i].slot, s.items[i].asleep);
        report(&s, QUIRE_EVENT_AWAKE);
    }
    end(&s, result ? QI_PHASE_ASLEEP : QI_PHASE_LIVE);
    return result;
}
