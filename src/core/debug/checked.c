/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * checked.c - red zones and fill patterns of checked builds (see core/checked.h): computes their
 * sizes, writes them and verifies them. quarantine.c keeps freed ranges.
 *
 * Zones are written and read without a lock, by the thread that owns the slot. A check of live
 * slots (quire_memory_check) announces the slot it reads in `reading`, and a free waits for it.
 */
#include "src/core/checked.h"

#include <stdio.h>

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/core/allocate/ladder.h"
#include "src/core/debug/debug_pattern.h"
#include "src/core/device/policy.h"

/*
 * Ranges begin and end at multiples of this, if the memory's alignments go that far. An address
 * sanitizer keeps state for groups of eight bytes, and so distinguishes neighbours.
 */
static const uint64_t MIN_ALIGNMENT = 16;

void qi_checked_init(quire_memory *memory)
{
    qi_lock_init(&memory->checked.lock, "quarantine", QI_RANK_QUARANTINE);
}

bool qi_checked_is_on(const quire_memory *memory)
{
    if (memory->flags & QUIRE_OBJECTS_ONLY)
        return false;
    return memory->flags & QUIRE_HOST_VISIBLE ||
           (qi_device_offers(memory->device, QUIRE_BACKEND_COPY_TO_PAGE) &&
            qi_device_offers(memory->device, QUIRE_BACKEND_COPY_FROM_PAGE));
}

void qi_checked_report_state(const quire_memory *memory)
{
    if (!qi_checked_is_on(memory))
        qi_log(&memory->device->log, QUIRE_LOG_WARNING,
               "memory '%s' of kind %u has no red zones: it cannot be mapped, and backend %s "
               "cannot copy in both directions",
               memory->name, memory->kind, memory->device->info.backend);
}

/* ---- sizing ------------------------------------------------------------------------------- */

/* Bytes of the zone before an allocation; 0 above QI_MAX_FRONT: it would be too large. */
static uint64_t front_of(uint64_t alignment)
{
    if (alignment > QI_MAX_FRONT)
        return 0;
    return alignment > QI_ZONE_SIZE ? alignment : QI_ZONE_SIZE;
}

uint64_t qi_checked_max_added(const quire_memory *memory)
{
    uint64_t unit = memory->atom > MIN_ALIGNMENT ? memory->atom : MIN_ALIGNMENT;
    return qi_checked_is_on(memory) ? QI_MAX_FRONT + QI_ZONE_SIZE + unit + memory->granule : 0;
}

bool qi_checked_grow_overflows(const quire_memory *memory, uint64_t *alignment, uint64_t *size)
{
    if (!qi_checked_is_on(memory))
        return false;
    uint64_t min = MIN_ALIGNMENT;
    if (min > memory->max_alignment)
        min = memory->max_alignment;
    if (*alignment < min)
        *alignment = min;
    uint64_t unit = memory->atom > MIN_ALIGNMENT ? memory->atom : MIN_ALIGNMENT;
    return qi_align_up_overflows(*size, memory->granule, size) ||
           qi_add_overflows(*size, front_of(*alignment) + QI_ZONE_SIZE, size) ||
           qi_align_up_overflows(*size, unit, size);
}

/* The size that a build without red zones reports. The range was placed, so nothing overflows. */
static uint64_t size_without(const quire_memory *memory, uint64_t held, bool dedicated)
{
    uint64_t size = held;
    bool overflows = qi_policy_size_overflows(&memory->policy, held, &size) ||
                     qi_align_up_overflows(size, memory->atom, &size) ||
                     (!dedicated && qi_align_up_overflows(size, memory->granule, &size));
    return overflows ? held : size;
}

uint64_t qi_checked_size_without(const quire_memory *memory, const qi_request *request,
                                 uint64_t size)
{
    return qi_checked_is_on(memory) && !request->tied
               ? size_without(memory, request->range.size, true)
               : size;
}

void qi_checked_mark(const quire_memory *memory, uint32_t slot, const qi_request *request,
                     uint64_t alignment)
{
    qi_slot *record = qi_memory_slot(memory, slot);
    qi_watch *watch = &record->watch;
    *watch = (qi_watch){.tail = record->size, .end = record->size};
    /* a tied page has the size of its object: there is no room for zones */
    if (!qi_checked_is_on(memory) || request->tied)
        return;
    uint64_t held = request->range.size, front = front_of(alignment);
    watch->front = (uint32_t)front;
    watch->tail = held + memory->policy.extra_padding; /* the padding belongs to the caller */
    watch->end = record->size - front;
    record->offset += front;
    record->left_padding += (uint32_t)front;
    record->size = size_without(memory, held, !record->range.id);
}

bool qi_checked_moved(qi_slot *record, uint64_t bytes)
{
    qi_watch *watch = &record->watch;
    watch->end -= bytes;
    if (watch->tail > watch->end)
        watch->tail = watch->end;
    if (record->size > watch->end)
        record->size = watch->end;
    return true;
}

uint64_t qi_checked_front(const qi_slot *record)
{
    return record->watch.front;
}

uint64_t qi_checked_behind(const qi_slot *record)
{
    return record->watch.end - record->size;
}

uint64_t qi_checked_usable(const qi_slot *record, uint64_t size)
{
    return size < record->watch.tail ? size : record->watch.tail;
}

/* ---- writing ------------------------------------------------------------------------------ */

/* Requires that no lock is held. Writes both zones of a slot; returns whether that succeeded. */
static bool put_zones(quire_memory *memory, uint32_t slot)
{
    const qi_slot *record = qi_memory_slot(memory, slot);
    const qi_watch *watch = &record->watch;
    qi_page *page = qi_memory_page(memory, slot);
    uint64_t offset = record->offset;
    qi_span before = {offset - watch->front, offset};
    qi_span after = {offset + watch->tail, offset + watch->end};
    bool are_written = qi_debug_pattern_put(memory, page, before, QI_ZONE) &&
                       qi_debug_pattern_put_edges(memory, page, after, QI_ZONE);
    qi_debug_pattern_poison(page, before);
    qi_debug_pattern_poison(page, after);
    return are_written;
}

void qi_checked_placed(quire_memory *memory, uint32_t slot, bool zero)
{
    qi_slot *record = qi_memory_slot(memory, slot);
    qi_page *page = qi_memory_page(memory, slot);
    qi_span own = {record->offset, record->offset + record->watch.tail};
    qi_debug_pattern_unpoison(page, own);
    if (!qi_checked_is_on(memory))
        return;
    if (!zero) /* a failure loses the pattern and nothing else */
        qi_debug_pattern_put_edges(memory, page, own, QI_FRESH);
    record->watch.is_written = put_zones(memory, slot);
}

void qi_checked_page_made(const qi_page *page)
{
    qi_debug_pattern_poison(page, (qi_span){0, page->native.native.size});
}

void qi_checked_page_leaving(const qi_page *page)
{
    qi_debug_pattern_unpoison(page, (qi_span){0, page->native.native.size});
}

void qi_checked_page_grown(const qi_page *page, uint64_t from, uint64_t to)
{
    qi_debug_pattern_poison(page, (qi_span){from, to});
}

void qi_checked_page_used(const qi_page *page, uint64_t from, uint64_t to)
{
    qi_debug_pattern_unpoison(page, (qi_span){from, to});
}

void qi_checked_resized(qi_slot *record)
{
    record->watch = (qi_watch){.tail = record->size, .end = record->size};
}

void qi_checked_asleep(qi_slot *record, qi_asleep *asleep)
{
    asleep->watch = record->watch;
    record->watch = (qi_watch){.tail = 0};
}

void qi_checked_awake(qi_slot *record, const qi_asleep *asleep)
{
    record->watch = asleep->watch;
    record->watch.is_written = false;
}

void qi_checked_woken(quire_memory *memory, uint32_t slot, const qi_asleep *asleep)
{
    if (asleep->watch.is_written)
        qi_memory_slot(memory, slot)->watch.is_written = put_zones(memory, slot);
}

/* ---- verifying ---------------------------------------------------------------------------- */

void qi_checked_await_reader(quire_memory *memory, uint32_t slot)
{
    qi_lock_acquire(&memory->checked.lock);
    while (memory->checked.reading == slot + 1)
        qi_lock_wait(&memory->checked.lock, NULL);
    qi_lock_release(&memory->checked.lock);
}

bool qi_checked_report_corruption(quire_memory *memory, uint32_t slot)
{
    qi_checked_await_reader(memory, slot);
    qi_corruption corruption;
    if (!qi_corruption_find(memory, slot, &corruption))
        return false;
    qi_corruption_sentence sentence = qi_corruption_describe(memory, slot, &corruption);
    /* the zones are restored, so that the finding is reported once */
    qi_memory_slot(memory, slot)->watch.is_written = put_zones(memory, slot);
    qi_corruption_report(memory, sentence.text);
    qi_fail_text(QUIRE_ERROR_CORRUPTED, "%s", sentence.text);
    return true;
}

/*
 * Returns whether a slot has zones to verify. If so its range stays until end_reading: a free in
 * another thread waits. *is_above is set once no slot from here on was ever used.
 */
static bool begin_reading(quire_memory *memory, uint32_t slot, bool *is_above)
{
    qi_lock_acquire(&memory->checked.lock);
    while (memory->checked.reading) /* another thread is checking */
        qi_lock_wait(&memory->checked.lock, NULL);
    *is_above = slot >= qi_slots_top(&memory->slots);
    qi_phase phase = *is_above ? QI_PHASE_FREE : qi_slot_phase(&memory->slots, slot);
    bool is_read = (phase == QI_PHASE_LIVE || phase == QI_PHASE_RESERVED) &&
                   qi_memory_slot(memory, slot)->watch.is_written;
    if (is_read)
        memory->checked.reading = slot + 1;
    qi_lock_release(&memory->checked.lock);
    return is_read;
}

static void end_reading(quire_memory *memory)
{
    qi_lock_acquire(&memory->checked.lock);
    memory->checked.reading = 0;
    qi_lock_wake_all(&memory->checked.lock);
    qi_lock_release(&memory->checked.lock);
}

/* Verifies the zones of all live allocations. Reports each finding; `text` receives the first. */
static bool check_zones(quire_memory *memory, char text[QI_CORRUPTION_TEXT])
{
    bool is_corrupted = false, is_above = false;
    for (uint32_t slot = 0; !is_above; slot++) {
        qi_corruption corruption;
        qi_corruption_sentence sentence;
        if (!begin_reading(memory, slot, &is_above))
            continue;
        bool is_found = qi_corruption_find(memory, slot, &corruption);
        if (is_found)
            sentence = qi_corruption_describe(memory, slot, &corruption);
        end_reading(memory);
        if (!is_found)
            continue;
        qi_corruption_report(memory, sentence.text);
        if (!is_corrupted)
            snprintf(text, QI_CORRUPTION_TEXT, "%s", sentence.text);
        is_corrupted = true;
    }
    return is_corrupted;
}

quire_result qi_checked_check(quire_memory *memory)
{
    char zones[QI_CORRUPTION_TEXT], quarantine[QI_CORRUPTION_TEXT];
    bool has_bad_zone = check_zones(memory, zones),
         has_bad_range = qi_quarantine_check(memory, quarantine);
    if (has_bad_zone || has_bad_range)
        return qi_fail_text(QUIRE_ERROR_CORRUPTED, "%s", has_bad_zone ? zones : quarantine);
    return QUIRE_SUCCESS;
}
