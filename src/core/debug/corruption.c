/*
 * corruption.c - compares red zones and freed bytes with their patterns, and describes the first
 * difference (see corruption.h).
 */
#include "src/core/debug/corruption.h"

#include <inttypes.h>
#include <stdio.h>

#include "src/base/result.h"
#include "src/base/text.h"

/*
 * A slot in quarantine has no live bytes beside its zones. Otherwise the atoms at the edges may
 * hold bytes of the caller (see qi_debug_pattern_differs).
 */
bool qi_corruption_find(quire_memory *memory, uint32_t slot, qi_corruption *corruption)
{
    const qi_slot *record = qi_memory_slot(memory, slot);
    qi_page *page = qi_memory_page(memory, slot);
    const qi_watch *watch = &record->watch;
    if (!watch->is_written)
        return false;
    uint64_t offset = record->offset, tail = offset + watch->tail;
    qi_difference *difference = &corruption->difference;
    corruption->place = QI_CORRUPTION_BEFORE;
    if (qi_debug_pattern_differs(memory, page, (qi_span){offset - watch->front, offset}, QI_ZONE,
                                 !watch->is_held, difference))
        return true;
    corruption->place = QI_CORRUPTION_AFTER;
    if (qi_debug_pattern_edges_differ(memory, page, (qi_span){tail, offset + watch->end}, QI_ZONE,
                                      !watch->is_held, difference))
        return true;
    corruption->place = QI_CORRUPTION_AFTER_FREE;
    return watch->is_held && qi_debug_pattern_edges_differ(memory, page, (qi_span){offset, tail},
                                                           QI_FREED, false, difference);
}

/* Returns the handle that the caller has, or had before the free: messages name it. */
static uint64_t handle_of(const qi_slots *slots, uint32_t slot)
{
    uint64_t word = qi_atomic_load_acquire_u64(qi_slot_state(slots, slot));
    return qi_handle(slots->tag, qi_slot_generation(word), slot);
}

/* Requires the shard lock, which guards names. */
static void print_allocation(const quire_memory *memory, uint32_t slot, char *text, size_t room)
{
    const qi_slot *record = qi_memory_slot(memory, slot);
    const char *name = record->meta ? record->meta->name : NULL;
    if (record->watch.name)
        name = record->watch.name;
    snprintf(text, room,
             "'%.100s' (%#" PRIx64 ", %" PRIu64 " byte%s at page %u offset %" PRIu64
             ", user data %" PRIu64 ")",
             name ? name : "(unnamed)", handle_of(&memory->slots, slot), record->requested,
             qi_plural(record->requested), record->tally->page->number, record->offset,
             qi_slot_user_data(record));
}

qi_corruption_sentence qi_corruption_describe(quire_memory *memory, uint32_t slot,
                                              const qi_corruption *corruption)
{
    static const char *const WHAT[] = {
        [QI_CORRUPTION_BEFORE] = "overwritten before its first byte",
        [QI_CORRUPTION_AFTER] = "overwritten after its last byte",
        [QI_CORRUPTION_AFTER_FREE] = "written after it was freed",
    };
    char allocation[QI_CORRUPTION_TEXT / 2];
    qi_lock *lock = &qi_shard_of_slot(memory, slot)->lock;
    qi_lock_acquire(lock);
    print_allocation(memory, slot, allocation, sizeof allocation);
    qi_lock_release(lock);
    const qi_difference *found = &corruption->difference;
    int64_t at = (int64_t)(found->at - qi_memory_slot(memory, slot)->offset);
    qi_corruption_sentence sentence;
    snprintf(sentence.text, sizeof sentence.text,
             "memory '%.100s': allocation %s was %s: %" PRIu64 " byte%s, the first at byte %" PRId64
             ", which is 0x%02x",
             memory->name, allocation, WHAT[corruption->place], found->count,
             qi_plural(found->count), at, found->value);
    qi_make_printable(sentence.text);
    return sentence;
}

void qi_corruption_report(const quire_memory *memory, const char *sentence)
{
    const quire_log *log = &memory->device->log;
    if (log->write)
        qi_log(log, QUIRE_LOG_ERROR, "%s", sentence);
    else
        fprintf(stderr, "quire: %s\n", sentence);
}
