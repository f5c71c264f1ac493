/*
 * event.c - see event.h.
 */
#include "src/core/state/event.h"

#include "src/base/result.h"
#include "src/base/transit.h"

void qi_event_report(quire_memory *memory, const quire_event *event)
{
    qi_transit_assert_none();
    qi_error error = qi_error_save();
    memory->hook.event(memory->hook.user, memory, event);
    qi_error_restore(&error);
}

void qi_event_report_slot(quire_memory *memory, quire_event_kinds kind, uint32_t slot)
{
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

quire_result quire_memory_set_hook(quire_memory *memory, const quire_hook *hook)
{
    const quire_event_kinds all = QUIRE_EVENT_ALLOCATED | QUIRE_EVENT_FREED | QUIRE_EVENT_REFUSED |
                                  QUIRE_EVENT_PAGE_MADE | QUIRE_EVENT_PAGE_GONE |
                                  QUIRE_EVENT_PAGE_RESIZED;
    if (!memory)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_memory_set_hook: memory is null");
    if (memory->device->is_disabled)
        return qi_refuse_disabled();
    if (hook && hook->kinds & ~all)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "there are no events %x",
                            hook->kinds & ~all);
    memory->hook = hook && hook->event ? *hook : (quire_hook){0};
    if (memory->hook.event && !memory->hook.kinds)
        memory->hook.kinds = all;
    return QUIRE_SUCCESS;
}
