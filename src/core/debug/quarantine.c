/*
 * quarantine.c - freed ranges that wait before they are used again (see checked.h): filled with a
 * pattern, and verified when they leave, so that a write after the free is found.
 *
 * A ring of slots for all shards, under a lock of its own, which is taken after a shard's. Filling
 * and verifying are done without any: a slot on its way in is its thread's own, one on its way out
 * is counted as leaving and nobody else's; it goes back to its shard as any free, by its inbox from
 * another one. It is held until its range is free, so that figures and walks never show it.
 */
#include "src/core/state/checked.h"

#include <stdio.h>

#include "src/base/result.h"
#include "src/core/debug/corruption.h"
#include "src/core/allocate/ladder.h"

static uint64_t whole_of(const qi_slot *record)
{
    return record->left_padding + record->watch.end;
}

/* ---- the ring, with its lock -------------------------------------------------------------- */

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

/* What is told by nobody's call is kept for the next quire_memory_check. */
static void keep_harm(quire_memory *memory, const char *sentence)
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

/* Without a lock: what was kept, before the slot is given back. */
static void forget_name(quire_memory *memory, qi_slot *record)
{
    qi_host_release_text(&memory->host, record->watch.name);
    record->watch.name = NULL;
}

/*
 * Ranges that the thread is giving back: when a page goes with one, the sink that is told of it may
 * allocate, and must not wait for that range. It is free by then.
 */
static _Thread_local uint32_t given_back;

/* Without a lock: a slot out of the ring is verified and given back. */
static void leave(quire_memory *memory, uint32_t slot)
{
    qi_corruption corruption;
    qi_corruption_sentence sentence;
    bool is_corrupted = qi_corruption_find(memory, slot, &corruption);
    if (is_corrupted) {
        sentence = qi_corruption_describe(memory, slot, &corruption);
        keep_harm(memory, sentence.text);
    }
    forget_name(memory, qi_memory_slot(memory, slot));
    given_back++;
    qi_release(memory, slot);
    given_back--;
    note_left(memory);
    if (is_corrupted) /* after all is done: a sink may allocate, and wait for what is leaving */
        qi_corruption_report(memory, sentence.text);
}

/* Without a lock. False: there is none. */
static bool evict(quire_memory *memory)
{
    qi_lock_acquire(&memory->checked.lock);
    bool is_there = memory->checked.count != 0;
    uint32_t slot = is_there ? pop(&memory->checked) : 0;
    qi_lock_release(&memory->checked.lock);
    if (is_there)
        leave(memory, slot);
    return is_there;
}

/* What other threads' frees left in it; the policy has its say on pages that become empty. */
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
 * No more than there is now: a sink that hears of a page may allocate and free, and what it freed
 * comes in meanwhile. A memory that ends makes no page, so that the lines come to an end.
 */
void qi_checked_drain(quire_memory *memory)
{
    for (uint32_t left = count_of(memory); (left || memory->is_ending) && evict(memory); left--) {
    }
    qi_lock_acquire(&memory->checked.lock);
    while (memory->checked.leaving && !given_back)
        qi_lock_wait(&memory->checked.lock, NULL);
    qi_lock_release(&memory->checked.lock);
    for (uint32_t i = 0; i < memory->shard_count; i++)
        drain_inbox(&memory->shards[i]);
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
    if (checked->leaving > given_back)
        checked->leaving = given_back;
    checked->shortages = 0;
    checked->reading = 0;
}

bool qi_checked_begin_out_of_memory(quire_memory *memory)
{
    if (!qi_checked_is_on(memory))
        return false;
    qi_lock_acquire(&memory->checked.lock);
    memory->checked.shortages++;
    qi_lock_release(&memory->checked.lock);
    qi_checked_drain(memory);
    return true;
}

void qi_checked_end_out_of_memory(quire_memory *memory)
{
    qi_lock_acquire(&memory->checked.lock);
    memory->checked.shortages -= memory->checked.shortages != 0; /* 0: it began before a fork */
    qi_lock_release(&memory->checked.lock);
}

void qi_checked_forget(quire_memory *memory, qi_slot *record)
{
    qi_checked *checked = &memory->checked;
    qi_span whole = {record->offset - record->watch.front, record->offset + record->watch.end};
    qi_debug_pattern_shut(record->tally->page, whole);
    qi_lock_acquire(&memory->checked.lock);
    if (record->watch.is_held) {
        record->watch.is_held = false;
        checked->held_bytes -= whole_of(record);
        checked->held_requested -= record->requested;
        checked->held_count--;
    }
    qi_lock_release(&memory->checked.lock);
}

/* ---- coming in ---------------------------------------------------------------------------- */

/* Object and name end with the free, not with the quarantine; the name is kept for the harm. */
static void end_object_and_name(quire_memory *memory, qi_slot *record)
{
    qi_slot_meta *meta = record->meta;
    if (meta) {
        qi_lock *lock = &qi_shard_of(memory, record)->lock;
        qi_lock_acquire(lock);
        record->watch.name = meta->name;
        qi_ignore(qi_names_replace(&memory->names, meta->name, NULL, record)); /* takes nothing */
        meta->name = NULL;
        qi_lock_release(lock);
    }
    qi_native_release(memory, record);
}

static bool has_room(const qi_checked *checked, uint64_t bytes)
{
    return !checked->count || (checked->count < QI_QUARANTINE_COUNT &&
                               checked->held_bytes + bytes <= QI_QUARANTINE_BYTES);
}

/* False: somebody needs all that is free just now, or others bring as much as leaves. */
static bool enter(quire_memory *memory, uint32_t slot, qi_slot *record)
{
    qi_checked *checked = &memory->checked;
    uint64_t bytes = whole_of(record);
    qi_lock_acquire(&memory->checked.lock);
    uint32_t left = checked->count; /* sinks may bring as many more: see qi_checked_drain */
    while (left-- && !checked->shortages && !has_room(checked, bytes)) {
        qi_lock_release(&memory->checked.lock);
        evict(memory);
        qi_lock_acquire(&memory->checked.lock);
    }
    bool enters = !checked->shortages && has_room(checked, bytes);
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
    const qi_page *page = qi_memory_page(memory, slot);
    qi_span own = {record->offset, record->offset + record->watch.tail};
    if (!record->watch.is_written)
        return false;
    end_object_and_name(memory, record);
    bool is_filled = qi_debug_pattern_put_edges(memory, page, own, QI_FREED);
    qi_debug_pattern_shut(page, own);
    bool is_held = is_filled && !page->dedicated && whole_of(record) <= QI_QUARANTINE_BYTES &&
                   enter(memory, slot, record);
    if (!is_held)
        forget_name(memory, record);
    return is_held;
}

/* ---- asking ------------------------------------------------------------------------------- */

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

/* Verifies the oldest and puts it back as the newest. */
static void turn(quire_memory *memory)
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
        turn(memory);
    qi_lock_acquire(&memory->checked.lock);
    bool is_corrupted = checked->is_corrupted;
    if (is_corrupted)
        snprintf(corruption, QI_CORRUPTION_TEXT, "%s", checked->corruption);
    checked->is_corrupted = false;
    qi_lock_release(&memory->checked.lock);
    return is_corrupted;
}
