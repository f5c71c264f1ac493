/*
 * quarantine.c - freed ranges that wait before they are used again (see checked.h): filled with a
 * pattern, and verified when they leave, so that a write after the free is found.
 *
 * A ring of slots under the memory's lock. Filling and verifying are done without it: a slot on its
 * way in is its thread's own, one on its way out is counted as leaving and nobody else's.
 */
#include "src/memory/checked.h"

#include <stdio.h>

#include "src/base/result.h"
#include "src/memory/harm.h"
#include "src/memory/place.h"

static uint64_t whole_of(const qi_slot *record)
{
    return record->left_padding + record->watch.end;
}

/* ---- the ring, with the lock -------------------------------------------------------------- */

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
    qi_lock_acquire(&memory->lock);
    if (!memory->checked.is_harmed)
        snprintf(memory->checked.harm, QI_HARM_TEXT, "%s", sentence);
    memory->checked.is_harmed = true;
    qi_lock_release(&memory->lock);
}

static void note_left(quire_memory *memory)
{
    qi_lock_acquire(&memory->lock);
    memory->checked.leaving--;
    qi_lock_wake_all(&memory->lock);
    qi_lock_release(&memory->lock);
}

/* Without the lock: a slot out of the ring is verified and given back. */
static void leave(quire_memory *memory, uint32_t slot)
{
    qi_harm harm;
    qi_harm_sentence sentence;
    bool is_harmed = qi_harm_find(memory, slot, &harm);
    if (is_harmed) {
        sentence = qi_harm_describe(memory, slot, &harm);
        keep_harm(memory, sentence.text);
    }
    qi_place_give_back(memory, slot);
    note_left(memory);
    if (is_harmed) /* after all is done: a sink may allocate, and wait for what is leaving */
        qi_harm_tell(memory, sentence.text);
}

/* Without the lock. False: there is none. */
static bool evict(quire_memory *memory)
{
    qi_lock_acquire(&memory->lock);
    bool is_there = memory->checked.count != 0;
    uint32_t slot = is_there ? pop(&memory->checked) : 0;
    qi_lock_release(&memory->lock);
    if (is_there)
        leave(memory, slot);
    return is_there;
}

void qi_checked_drain(quire_memory *memory)
{
    while (evict(memory)) {
    }
    qi_lock_acquire(&memory->lock);
    while (memory->checked.leaving)
        qi_lock_wait(&memory->lock);
    qi_lock_release(&memory->lock);
}

bool qi_checked_make_room(quire_memory *memory)
{
    if (!memory->checked.count && !memory->checked.leaving)
        return false;
    qi_lock_release(&memory->lock);
    qi_checked_drain(memory);
    qi_lock_acquire(&memory->lock);
    return true;
}

void qi_checked_forget(quire_memory *memory, qi_slot *record)
{
    qi_checked *checked = &memory->checked;
    const qi_page *page = qi_page_of_allocation(&memory->pages, record->page);
    qi_stretch whole = {record->offset - record->watch.front, record->offset + record->watch.end};
    qi_pattern_shut(page, whole);
    if (!record->watch.is_held)
        return;
    record->watch.is_held = false;
    checked->held_bytes -= whole_of(record);
    checked->held_requested -= record->requested;
    checked->held_count--;
}

/* ---- coming in ---------------------------------------------------------------------------- */

/* The native object ends with the free, not with the quarantine. */
static void end_object(quire_memory *memory, const qi_slot *record)
{
    quire_object object = QUIRE_OBJECT_NONE;
    uint64_t native = 0;
    qi_lock_acquire(&memory->lock);
    if (record->extra) {
        object = record->extra->object;
        native = record->extra->native;
        record->extra->native = 0;
    }
    qi_lock_release(&memory->lock);
    if (native)
        qi_device_object_destroy(memory->device, &memory->calls, object, native);
}

static bool has_room(const qi_checked *checked, uint64_t bytes)
{
    return !checked->count || (checked->count < QI_QUARANTINE_COUNT &&
                               checked->held_bytes + bytes <= QI_QUARANTINE_BYTES);
}

static void enter(quire_memory *memory, uint32_t slot, qi_slot *record)
{
    qi_checked *checked = &memory->checked;
    uint64_t bytes = whole_of(record);
    qi_lock_acquire(&memory->lock);
    while (!has_room(checked, bytes)) {
        qi_lock_release(&memory->lock);
        evict(memory);
        qi_lock_acquire(&memory->lock);
    }
    record->watch.is_held = true;
    checked->held_bytes += bytes;
    checked->held_requested += record->requested;
    checked->held_count++;
    push(checked, slot);
    qi_lock_release(&memory->lock);
}

bool qi_checked_hold(quire_memory *memory, uint32_t slot)
{
    qi_slot *record = qi_memory_slot(memory, slot);
    const qi_page *page = qi_memory_page(memory, slot);
    qi_stretch own = {record->offset, record->offset + record->watch.tail};
    if (!record->watch.is_written || record->dedicated || whole_of(record) > QI_QUARANTINE_BYTES)
        return false;
    end_object(memory, record);
    if (!qi_pattern_put_edges(memory, page, own, QI_FREED))
        return false;
    qi_pattern_shut(page, own);
    enter(memory, slot, record);
    return true;
}

/* ---- asking ------------------------------------------------------------------------------- */

void qi_checked_correct(const quire_memory *memory, quire_memory_stats *stats)
{
    const qi_checked *checked = &memory->checked;
    stats->live_bytes -= checked->held_bytes;
    stats->requested_bytes -= checked->held_requested;
    stats->allocation_count -= checked->held_count;
    stats->frees += checked->held_count;
}

bool qi_checked_is_held(const quire_memory *memory, uint32_t slot)
{
    return qi_memory_slot(memory, slot)->watch.is_held;
}

/* Verifies the oldest and puts it back as the newest. */
static void turn(quire_memory *memory)
{
    qi_checked *checked = &memory->checked;
    qi_lock_acquire(&memory->lock);
    if (!checked->count) {
        qi_lock_release(&memory->lock);
        return;
    }
    uint32_t slot = pop(checked);
    qi_lock_release(&memory->lock);
    qi_harm harm;
    bool is_harmed = qi_harm_find(memory, slot, &harm);
    qi_lock_acquire(&memory->lock);
    bool stays = !is_harmed && checked->count < QI_QUARANTINE_COUNT;
    if (stays) {
        push(checked, slot);
        checked->leaving--;
        qi_lock_wake_all(&memory->lock);
    }
    qi_lock_release(&memory->lock);
    if (!stays)
        leave(memory, slot);
}

bool qi_quarantine_check(quire_memory *memory, char harm[QI_HARM_TEXT])
{
    qi_checked *checked = &memory->checked;
    qi_lock_acquire(&memory->lock);
    uint32_t count = checked->count;
    qi_lock_release(&memory->lock);
    for (uint32_t i = 0; i < count; i++)
        turn(memory);
    qi_lock_acquire(&memory->lock);
    bool is_harmed = checked->is_harmed;
    if (is_harmed)
        snprintf(harm, QI_HARM_TEXT, "%s", checked->harm);
    checked->is_harmed = false;
    qi_lock_release(&memory->lock);
    return is_harmed;
}
