/*
 * checked.c - red zones and fill patterns (see checked.h): sizing, writing, verifying. What waits
 * after its free is quarantine.c.
 */
#include "src/core/state/checked.h"

#include <stdio.h>

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/core/debug/corruption.h"
#include "src/core/allocate/ladder.h"
#include "src/core/device/policy.h"

/*
 * Ranges begin and end at multiples of this where alignments go that far, so that an address
 * sanitizer, which knows groups of eight bytes, tells neighbours apart.
 */
static const uint64_t LEAST_ALIGNMENT = 16;

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
               "memory '%s' of kind %u has no red zones: it cannot be mapped, and backend %s does "
               "not copy both ways",
               memory->name, memory->kind, memory->device->info.backend);
}

/* ---- sizing ------------------------------------------------------------------------------- */

static uint64_t front_of(uint64_t alignment)
{
    if (alignment > QI_MAX_FRONT)
        return 0;
    return alignment > QI_ZONE_SIZE ? alignment : QI_ZONE_SIZE;
}

uint64_t qi_checked_max_added(const quire_memory *memory)
{
    uint64_t unit = memory->atom > LEAST_ALIGNMENT ? memory->atom : LEAST_ALIGNMENT;
    return qi_checked_is_on(memory) ? QI_MAX_FRONT + QI_ZONE_SIZE + unit + memory->granule : 0;
}

bool qi_checked_grow_overflows(const quire_memory *memory, uint64_t *alignment, uint64_t *size)
{
    if (!qi_checked_is_on(memory))
        return false;
    uint64_t least = LEAST_ALIGNMENT;
    if (least > memory->max_alignment)
        least = memory->max_alignment;
    if (*alignment < least)
        *alignment = least;
    uint64_t unit = memory->atom > LEAST_ALIGNMENT ? memory->atom : LEAST_ALIGNMENT;
    return qi_align_up_overflows(*size, memory->granule, size) ||
           qi_add_overflows(*size, front_of(*alignment) + QI_ZONE_SIZE, size) ||
           qi_align_up_overflows(*size, unit, size);
}

/* What would be told without red zones. It was placed: nothing overflows. */
static uint64_t size_without(const quire_memory *memory, uint64_t held, bool dedicated)
{
    uint64_t size = held;
    bool overflows = qi_policy_size_overflows(&memory->policy, held, &size) ||
                     qi_align_up_overflows(size, memory->atom, &size) ||
                     (!dedicated && qi_align_up_overflows(size, memory->granule, &size));
    return overflows ? held : size;
}

static uint64_t held_of(const qi_request *request)
{
    return request->held > request->size ? request->held : request->size;
}

uint64_t qi_checked_size_without(const quire_memory *memory, const qi_request *request,
                                 uint64_t size)
{
    return qi_checked_is_on(memory) && !request->tied ? size_without(memory, held_of(request), true)
                                                      : size;
}

void qi_checked_mark(const quire_memory *memory, uint32_t slot, const qi_request *request,
                     uint64_t alignment)
{
    qi_slot *record = qi_memory_slot(memory, slot);
    qi_watch *watch = &record->watch;
    *watch = (qi_watch){.tail = record->size, .end = record->size};
    if (!qi_checked_is_on(memory) || request->tied) /* a page as large as its object has no room */
        return;
    uint64_t held = held_of(request), front = front_of(alignment);
    watch->front = (uint32_t)front;
    watch->tail = held + memory->policy.extra_padding; /* which the caller asked for, too */
    watch->end = record->size - front;
    record->offset += front;
    record->left_padding += (uint32_t)front;
    record->size = size_without(memory, held, !record->range.id);
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

bool qi_checked_owns(quire_memory *memory, uint32_t slot, uint64_t offset)
{
    const qi_slot *record = qi_memory_slot(memory, slot);
    return !qi_checked_is_held(memory, slot) && offset >= record->offset &&
           offset - record->offset < record->size;
}

/* ---- writing ------------------------------------------------------------------------------ */

/* Without a lock: (re)writes the zones of a slot; whether they are there. */
static bool put_zones(quire_memory *memory, uint32_t slot)
{
    const qi_slot *record = qi_memory_slot(memory, slot);
    const qi_watch *watch = &record->watch;
    const qi_page *page = qi_memory_page(memory, slot);
    uint64_t offset = record->offset;
    qi_span front = {offset - watch->front, offset};
    qi_span behind = {offset + watch->tail, offset + watch->end};
    bool are_there = qi_debug_pattern_put(memory, page, front, QI_ZONE) &&
                     qi_debug_pattern_put_edges(memory, page, behind, QI_ZONE);
    qi_debug_pattern_shut(page, front);
    qi_debug_pattern_shut(page, behind);
    return are_there;
}

void qi_checked_placed(quire_memory *memory, uint32_t slot, bool zero)
{
    qi_slot *record = qi_memory_slot(memory, slot);
    const qi_page *page = qi_memory_page(memory, slot);
    qi_span own = {record->offset, record->offset + record->watch.tail};
    qi_debug_pattern_open(page, own);
    if (!qi_checked_is_on(memory))
        return;
    if (!zero)
        qi_debug_pattern_put_edges(memory, page, own,
                                   QI_FRESH); /* without it nothing else is amiss */
    record->watch.is_written = put_zones(memory, slot);
}

void qi_checked_page_made(const qi_page *page)
{
    qi_debug_pattern_shut(page, (qi_span){0, page->native.size});
}

void qi_checked_page_leaving(const qi_page *page)
{
    qi_debug_pattern_open(page, (qi_span){0, page->native.size});
}

void qi_checked_page_grown(const qi_page *page, uint64_t from, uint64_t to)
{
    qi_debug_pattern_shut(page, (qi_span){from, to});
}

void qi_checked_page_cut(const qi_page *page, uint64_t to, uint64_t from)
{
    qi_debug_pattern_open(page, (qi_span){to, from});
}

/* ---- verifying ---------------------------------------------------------------------------- */

void qi_checked_await_reader(quire_memory *memory, uint32_t slot)
{
    qi_lock_acquire(&memory->checked.lock);
    while (memory->checked.reading == slot + 1)
        qi_lock_wait(&memory->checked.lock, NULL);
    qi_lock_release(&memory->checked.lock);
}

bool qi_checked_is_corrupted(quire_memory *memory, uint32_t slot)
{
    qi_checked_await_reader(memory, slot);
    qi_corruption corruption;
    if (!qi_corruption_find(memory, slot, &corruption))
        return false;
    qi_corruption_sentence sentence = qi_corruption_describe(memory, slot, &corruption);
    qi_memory_slot(memory, slot)->watch.is_written = put_zones(memory, slot); /* told once */
    qi_corruption_report(memory, sentence.text);
    qi_fail_text(QUIRE_ERROR_CORRUPTED, "%s", sentence.text);
    return true;
}

/* Whether a slot is to be looked at; its range stays until end_reading, whoever frees it. */
static bool begin_reading(quire_memory *memory, uint32_t slot, bool *is_above)
{
    qi_lock_acquire(&memory->checked.lock);
    while (memory->checked.reading) /* another thread checks, too */
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

/* All zones of live allocations; the first sentence goes into `text`. */
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
    bool are_harmed = check_zones(memory, zones),
         is_corrupted = qi_quarantine_check(memory, quarantine);
    if (are_harmed || is_corrupted)
        return qi_fail_text(QUIRE_ERROR_CORRUPTED, "%s", are_harmed ? zones : quarantine);
    return QUIRE_SUCCESS;
}
