/*
 * event.h - telling the caller's hook what happens in a memory. Never with a lock; without a hook,
 * or for a kind that it does not want, one test of a word.
 */
#ifndef QUIRE_SRC_CORE_STATE_EVENT_H
#define QUIRE_SRC_CORE_STATE_EVENT_H

#include "src/core/state/memory.h"

void qi_event_report(quire_memory *memory, const quire_event *event);

static inline bool qi_event_is_wanted(const quire_memory *memory, quire_event_kinds kind)
{
    return qi_unlikely(memory->hook.kinds & kind);
}

/* A private slot: placed and not handed out yet, or won by a free and not given back yet. */
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

static inline void qi_event_refusal(quire_memory *memory, uint64_t size, quire_result reason)
{
    if (qi_event_is_wanted(memory, QUIRE_EVENT_REFUSED))
        qi_event_report(
            memory, &(quire_event){.kind = QUIRE_EVENT_REFUSED, .size = size, .reason = reason});
}

#endif
