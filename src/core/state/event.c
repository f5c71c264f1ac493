/*
 * event.c - calls the hooks of a memory and of its device.
 */
#include "src/core/state/event.h"

#include "src/base/result.h"
#include "src/base/transit.h"

void qi_event_report(quire_memory *memory, const quire_event *event)
{
    qi_transit_assert_none(); /* a callback must not wait for a page of its own thread */
    qi_error error;
    qi_error_save(&error);
    const quire_hook *hooks[] = {&memory->hook, &memory->device->hook};
    for (int i = 0; i < 2; i++)
        if (hooks[i]->kinds & event->kind)
            hooks[i]->event(hooks[i]->user, memory, event);
    qi_error_restore(&error);
}

void qi_event_report_slot(quire_memory *memory, quire_event_kinds kind, uint32_t slot)
{
    /* the slot is PRIVATE, so that its generation and its record do not change */
    const qi_slot *record = qi_memory_slot(memory, slot);
    uint32_t generation =
        qi_slot_generation(qi_atomic_load_u64(qi_slot_state(&memory->slots, slot)));
    qi_event_report(memory, &(quire_event){
                                .kind = kind,
                                .page = record->tally->page->number,
                                .offset = record->offset,
                                .size = record->size,
                                .requested = record->requested,
                                .allocation = {qi_handle(memory->slots.tag, generation, slot)},
                            });
}
