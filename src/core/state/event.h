/*
 * event.h - calls the hooks of a memory and of its device for events of allocations, pages and
 * shards.
 *
 * No function requires a lock, and the caller must hold none. Without a hook, and for a kind of
 * event that the hook does not want, a call is one test of a word.
 */
#ifndef QUIRE_SRC_CORE_STATE_EVENT_H
#define QUIRE_SRC_CORE_STATE_EVENT_H

#include "src/core/state/memory.h"

/* Calls the hook of the memory and that of the device. The thread's last error stays. */
void qi_event_report(quire_memory *memory, const quire_event *event);

static inline bool qi_event_is_wanted(const quire_memory *memory, quire_event_kinds kind)
{
    return qi_unlikely(memory->event_kinds & kind);
}

/*
 * Reports an event of a PRIVATE slot: it has a range and is not published yet, or a free has
 * claimed it and not returned it yet.
 */
void qi_event_report_slot(quire_memory *memory, quire_event_kinds kind, uint32_t slot);

static inline void qi_event_slot(quire_memory *memory, quire_event_kinds kind, uint32_t slot)
{
    if (qi_event_is_wanted(memory, kind))
        qi_event_report_slot(memory, kind, slot);
}

static inline void qi_event_page(quire_memory *memory, quire_event_kinds kind, uint32_t page,
                                 uint64_t size)
{
    if (qi_event_is_wanted(memory, kind))
        qi_event_report(memory, &(quire_event){.kind = kind, .page = page, .size = size});
}

static inline void qi_event_shards(quire_memory *memory, uint32_t count)
{
    if (qi_event_is_wanted(memory, QUIRE_EVENT_SHARDS))
        qi_event_report(memory, &(quire_event){.kind = QUIRE_EVENT_SHARDS, .size = count});
}

static inline void qi_event_refusal(quire_memory *memory, uint64_t size, quire_result reason)
{
    if (qi_event_is_wanted(memory, QUIRE_EVENT_REFUSED))
        qi_event_report(
            memory, &(quire_event){.kind = QUIRE_EVENT_REFUSED, .size = size, .reason = reason});
}

#endif
