/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quarantine.c - freed ranges of checked builds, kept before they can be reused (see
 * core/checked.h). They are filled with a pattern, and verified when they leave, so that a write
 * after the free is found.
 *
 * One ring of slots serves all shards of a memory. Its lock, of rank QI_RANK_QUARANTINE, is taken
 * after a shard's. Filling and verifying are done without a lock: a slot that enters belongs to the
 * freeing thread, and a slot that leaves is counted in `leaving` and belongs to the thread that
 * took it out. It is returned to its shard like any free, through the inbox from another shard.
 * Invariant: is_held of a slot is set until its range is free, so that statistics and walks never
 * show it.
 */
#include "src/core/checked.h"

#include <stdio.h>

#include "src/base/result.h"
#include "src/core/allocate/ladder.h"
#include "src/core/debug/debug_pattern.h"
#include "src/core/find/addresses.h"
#include "src/core/page/empty.h"
#include "src/core/page/life.h"
#include "src/core/page/map.h"
#include "src/core/page/range.h"

/* Bytes of the range of a slot, zones included. */
static uint64_t whole_of(const qi_slot *record)
{
    return record->left_padding + record->watch.end;
}

/* ---- the ring: both functions require its lock -------------------------------------------- */

static void push(qi_checked *checked, uint32_t slot)
{
    checked->ring[(checked->first + checked->count) % QI_QUARANTINE_COUNT] = slot;
    checked->count++;
}

static uint32_t pop(qi_checked *checked)
{
    uint32_t slot = checked->ring[checked->first];
    checked->first = (checked->first + 1) % QI_QUARANTINE_COUNT;
    checked->count--;
    checked->leaving++;
    return slot;
}

/* ---- leaving ------------------------------------------------------------------------------ */

/* The free has returned already: the next quire_memory_check returns this finding. Only the first
   finding is kept. */
static void keep_sentence(quire_memory *memory, const char *sentence)
{
    qi_lock_acquire(&memory->checked.lock);
    if (!memory->checked.is_corrupted)
        snprintf(memory->checked.corruption, QI_CORRUPTION_TEXT, "%s", sentence);
    memory->checked.is_corrupted = true;
    qi_lock_release(&memory->checked.lock);
}

static void note_left(quire_memory *memory)
{
    qi_lock_acquire(&memory->checked.lock);
    memory->checked.leaving--;
    qi_lock_wake_all(&memory->checked.lock);
    qi_lock_release(&memory->checked.lock);
}

/* Frees the name that was kept for messages, before the slot is released. */
static void forget_name(quire_memory *memory, qi_slot *record)
{
    qi_host_release_text(&memory->host, record->watch.name);
    record->watch.name = NULL;
}

/*
 * Ranges that the calling thread is releasing. A release can destroy a page, which is logged, and
 * the log sink may allocate. That allocation must not wait for the range, which is free by then.
 */
static _Thread_local uint32_t releasing;

/* Requires that no lock is held. Verifies and releases a slot that was taken out of the ring. */
static void leave(quire_memory *memory, uint32_t slot)
{
    qi_corruption corruption;
    qi_corruption_sentence sentence;
    bool is_corrupted = qi_corruption_find(memory, slot, &corruption);
    if (is_corrupted) {
        sentence = qi_corruption_describe(memory, slot, &corruption);
        keep_sentence(memory, sentence.text);
    }
    forget_name(memory, qi_memory_slot(memory, slot));
    releasing++;
    qi_release(memory, slot);
    releasing--;
    note_left(memory);
    if (is_corrupted) /* last: the sink may allocate, and wait for slots that are leaving */
        qi_corruption_report(memory, sentence.text);
}

/* Releases the oldest slot. Requires that no lock is held. Returns false if the ring is empty. */
static bool evict(quire_memory *memory)
{
    qi_lock_acquire(&memory->checked.lock);
    bool is_found = memory->checked.count != 0;
    uint32_t slot = is_found ? pop(&memory->checked) : 0;
    qi_lock_release(&memory->checked.lock);
    if (is_found)
        leave(memory, slot);
    return is_found;
}

/* Frees what other threads left in the inbox, and destroys pages that the policy does not keep. */
static void drain_inbox(qi_shard *shard)
{
    qi_lock_acquire(&shard->lock);
    qi_page *leaving = qi_shard_catch_up(shard, NULL);
    qi_lock_release(&shard->lock);
    if (leaving)
        qi_pages_destroy(shard->memory, leaving);
}

static uint32_t count_of(quire_memory *memory)
{
    qi_lock_acquire(&memory->checked.lock);
    uint32_t count = memory->checked.count;
    qi_lock_release(&memory->checked.lock);
    return count;
}

/*
 * Evicts as many slots as the ring holds now, not until it is empty: a log sink that is called for
 * a page may allocate and free, which adds slots. A memory that is being destroyed makes no page,
 * so that there the loop ends with the ring empty.
 */
void qi_checked_drain(quire_memory *memory)
{
    for (uint32_t left = count_of(memory);
         (left || qi_atomic_load_u32(&memory->is_ending)) && evict(memory); left--) {
    }
    qi_lock_acquire(&memory->checked.lock);
    while (memory->checked.leaving && !releasing)
        qi_lock_wait(&memory->checked.lock, NULL);
    qi_lock_release(&memory->checked.lock);
    for (uint32_t i = 0; i < qi_shard_count(memory); i++)
        drain_inbox(memory->shards[i]);
}

bool qi_checked_make_room(qi_shard *shard)
{
    quire_memory *memory = shard->memory;
    qi_lock_acquire(&memory->checked.lock);
    bool is_empty = !memory->checked.count && !memory->checked.leaving;
    qi_lock_release(&memory->checked.lock);
    if (is_empty)
        return false;
    qi_lock_release(&shard->lock);
    qi_checked_drain(memory);
    qi_lock_acquire(&shard->lock);
    return true;
}

void qi_checked_forked(quire_memory *memory)
{
    qi_checked *checked = &memory->checked;
    if (checked->leaving > releasing)
        checked->leaving = releasing;
    checked->last_attempts = 0;
    checked->reading = 0;
}

bool qi_checked_begin_out_of_memory(quire_memory *memory)
{
    if (!qi_checked_is_on(memory))
        return false;
    qi_lock_acquire(&memory->checked.lock);
    memory->checked.last_attempts++;
    qi_lock_release(&memory->checked.lock);
    qi_checked_drain(memory);
    return true;
}

void qi_checked_end_out_of_memory(quire_memory *memory)
{
    qi_lock_acquire(&memory->checked.lock);
    /* 0 if the allocation began before a fork, whose child resets it */
    memory->checked.last_attempts -= memory->checked.last_attempts != 0;
    qi_lock_release(&memory->checked.lock);
}

void qi_checked_forget(quire_memory *memory, qi_slot *record)
{
    qi_checked *checked = &memory->checked;
    qi_span whole = {record->offset - record->watch.front, record->offset + record->watch.end};
    qi_debug_pattern_poison(record->tally->page, whole);
    qi_lock_acquire(&memory->checked.lock);
    if (record->watch.is_held) {
        record->watch.is_held = false;
        checked->held_bytes -= whole_of(record);
        checked->held_requested -= record->requested;
        checked->held_count--;
    }
    qi_lock_release(&memory->checked.lock);
}

/* ---- entering ----------------------------------------------------------------------------- */

/* The object and the count of the name end with the free, not with the quarantine. The text of the
   name is kept for messages. */
static void release_object_and_name(quire_memory *memory, uint32_t slot, qi_slot *record)
{
    qi_slot_meta *meta = record->meta;
    if (record->extras & QI_EXTRA_ADDRESS)
        qi_addresses_hide(memory, slot);
    if (meta) {
        qi_lock *lock = &qi_shard_of(memory, record)->lock;
        qi_lock_acquire(lock);
        record->watch.name = meta->name;
        /* without a new name nothing is taken, so that it cannot fail */
        qi_ignore(qi_names_replace(&memory->names, meta->name, NULL, record));
        meta->name = NULL;
        qi_lock_release(lock);
    }
    qi_native_destroy(memory, record);
}

/* Requires the lock of the ring. A range larger than all bytes of the quarantine never gets
   here. */
static bool has_room(const qi_checked *checked, uint64_t bytes)
{
    return !checked->count || (checked->count < QI_QUARANTINE_COUNT &&
                               checked->held_bytes + bytes <= QI_QUARANTINE_BYTES);
}

/*
 * Takes a slot into the ring and evicts others to make room. Returns false if an allocation is
 * about to be refused and needs all free ranges, and if other threads refill the ring as fast.
 */
static bool enter(quire_memory *memory, uint32_t slot, qi_slot *record)
{
    qi_checked *checked = &memory->checked;
    uint64_t bytes = whole_of(record);
    qi_lock_acquire(&memory->checked.lock);
    uint32_t left = checked->count; /* bounded: log sinks may add slots (see qi_checked_drain) */
    while (left-- && !checked->last_attempts && !has_room(checked, bytes)) {
        qi_lock_release(&memory->checked.lock);
        evict(memory);
        qi_lock_acquire(&memory->checked.lock);
    }
    bool enters = !checked->last_attempts && has_room(checked, bytes);
    if (enters) {
        record->watch.is_held = true;
        checked->held_bytes += bytes;
        checked->held_requested += record->requested;
        checked->held_count++;
        push(checked, slot);
    }
    qi_lock_release(&memory->checked.lock);
    return enters;
}

bool qi_checked_hold(quire_memory *memory, uint32_t slot)
{
    qi_slot *record = qi_memory_slot(memory, slot);
    qi_page *page = qi_memory_page(memory, slot);
    qi_span own = {record->offset, record->offset + record->watch.tail};
    if (!record->watch.is_written)
        return false;
    release_object_and_name(memory, slot, record);
    bool is_filled = qi_debug_pattern_put_edges(memory, page, own, QI_FREED);
    qi_page_map_drop(memory, slot);
    qi_debug_pattern_poison(page, own);
    bool is_held = is_filled && !page->dedicated && whole_of(record) <= QI_QUARANTINE_BYTES &&
                   enter(memory, slot, record);
    if (!is_held)
        forget_name(memory, record);
    return is_held;
}

/* ---- queries and check -------------------------------------------------------------------- */

void qi_checked_correct(quire_memory *memory, quire_memory_stats *stats)
{
    const qi_checked *checked = &memory->checked;
    qi_lock_acquire(&memory->checked.lock);
    stats->live_bytes -= checked->held_bytes;
    stats->requested_bytes -= checked->held_requested;
    stats->allocation_count -= checked->held_count;
    stats->frees += checked->held_count;
    qi_lock_release(&memory->checked.lock);
}

bool qi_checked_is_held(quire_memory *memory, uint32_t slot)
{
    qi_lock_acquire(&memory->checked.lock);
    bool is_held = qi_memory_slot(memory, slot)->watch.is_held;
    qi_lock_release(&memory->checked.lock);
    return is_held;
}

/* Verifies the oldest slot and puts it back as the newest; releases it if it is corrupted. */
static void verify_oldest(quire_memory *memory)
{
    qi_checked *checked = &memory->checked;
    qi_lock_acquire(&memory->checked.lock);
    if (!checked->count) {
        qi_lock_release(&memory->checked.lock);
        return;
    }
    uint32_t slot = pop(checked);
    qi_lock_release(&memory->checked.lock);
    qi_corruption corruption;
    bool is_corrupted = qi_corruption_find(memory, slot, &corruption);
    qi_lock_acquire(&memory->checked.lock);
    bool stays = !is_corrupted && checked->count < QI_QUARANTINE_COUNT;
    if (stays) {
        push(checked, slot);
        checked->leaving--;
        qi_lock_wake_all(&memory->checked.lock);
    }
    qi_lock_release(&memory->checked.lock);
    if (!stays)
        leave(memory, slot);
}

bool qi_quarantine_check(quire_memory *memory, char corruption[QI_CORRUPTION_TEXT])
{
    qi_checked *checked = &memory->checked;
    qi_lock_acquire(&memory->checked.lock);
    uint32_t count = checked->count;
    qi_lock_release(&memory->checked.lock);
    for (uint32_t i = 0; i < count; i++)
        verify_oldest(memory);
    qi_lock_acquire(&memory->checked.lock);
    bool is_corrupted = checked->is_corrupted;
    if (is_corrupted)
        snprintf(corruption, QI_CORRUPTION_TEXT, "%s", checked->corruption);
    checked->is_corrupted = false;
    qi_lock_release(&memory->checked.lock);
    return is_corrupted;
}
