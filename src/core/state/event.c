/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * event.c - calls the watchers and hooks that want an event; one word of the memory has the kinds
 * that any of them wants (see event.h).
 */
#include "src/core/state/event.h"

#include "src/base/result.h"
#include "src/base/system.h"
#include "src/base/thread.h"

/* ---- watchers ----------------------------------------------------------------------------- */

static void *_Atomic *list_of(quire_device *device, quire_memory *memory)
{
    return memory ? &memory->watchers : &device->watchers;
}

qi_watcher *qi_event_watchers(const quire_device *device, const quire_memory *memory)
{
    return qi_atomic_load_acquire_pointer(memory ? &memory->watchers : &device->watchers);
}

void qi_event_add_watcher(quire_device *device, quire_memory *memory, qi_watcher *watcher)
{
    watcher->next = qi_event_watchers(device, memory);
    qi_atomic_store_release_pointer(list_of(device, memory), watcher);
}

void qi_event_end_watchers(quire_device *device, quire_memory *memory, bool is_child)
{
    qi_watcher *watcher = qi_event_watchers(device, memory);
    if (!is_child)
        qi_atomic_store_release_pointer(list_of(device, memory), NULL);
    for (qi_watcher *next; watcher; watcher = next) {
        next = watcher->next;
        watcher->end(watcher, is_child);
    }
}

static bool is_watched(const quire_device *device, const quire_memory *memory)
{
    qi_watcher *watcher = qi_event_watchers(device, memory);
    while (watcher && !qi_atomic_load_u32(&watcher->is_on))
        watcher = watcher->next;
    return watcher != NULL;
}

void qi_event_refresh(quire_memory *memory)
{
    const quire_device *device = memory->device;
    bool is_any = is_watched(device, memory) || is_watched(device, NULL);
    qi_atomic_store_release_u32(&memory->event_kinds, memory->hook.kinds | device->hook.kinds |
                                                          (is_any ? QI_WATCHED : 0));
}

void qi_event_refresh_all(quire_device *device)
{
    qi_lock_acquire(&device->lock);
    for (quire_memory *m = device->memories; m; m = m->next_of_device)
        qi_event_refresh(m);
    qi_lock_release(&device->lock);
}

static void call_watchers(const quire_memory *memory, const qi_watched_event *event)
{
    const quire_device *device = memory->device;
    for (qi_watcher *w = qi_event_watchers(device, memory); w; w = w->next)
        w->event(w, event);
    for (qi_watcher *w = qi_event_watchers(device, NULL); w; w = w->next)
        w->event(w, event);
}

/* ---- events ------------------------------------------------------------------------------- */

void qi_event_report(quire_memory *memory, quire_event *event)
{
    qi_transit_assert_none(); /* a callback must not wait for a page of its own thread */
    quire_device *device = memory->device;
    const quire_hook *hooks[] = {&memory->hook, &device->hook};
    qi_error error;
    qi_error_save(&error);
    event->number = qi_atomic_add_u64(&device->events, 1) + 1;
    event->time_ns = qi_clock();
    for (int i = 0; i < 2; i++)
        if (hooks[i]->kinds & event->kind)
            hooks[i]->event(hooks[i]->user, memory, event);
    qi_error_restore(&error);
}

static uint64_t handle_of(const quire_memory *memory, uint32_t slot)
{
    const uint64_t word = qi_atomic_load_u64(qi_slot_state(&memory->slots, slot));
    return qi_handle(memory->slots.tag, qi_slot_generation(word), slot);
}

/* An event of a slot that only the caller changes. */
static quire_event event_of(const quire_memory *memory, quire_event_kinds kind, uint32_t slot)
{
    const qi_slot *record = qi_memory_slot(memory, slot);
    return (quire_event){
        .kind = kind,
        .page = record->tally->page->number,
        .offset = record->offset,
        .size = qi_slot_extent(record),
        .requested = qi_slot_usable(record),
        .allocation = {handle_of(memory, slot)},
        .name = record->meta ? record->meta->name : NULL,
    };
}

void qi_event_report_slot(quire_memory *memory, quire_event_kinds kind, uint32_t slot,
                          uint64_t alignment, quire_stream *stream)
{
    qi_transit_assert_none();
    /* the slot is PRIVATE, so that its generation and its record do not change */
    const qi_slot *record = qi_memory_slot(memory, slot);
    const qi_watched_event watched = {
        .kind = kind,
        .allocation = handle_of(memory, slot),
        .requested = qi_slot_usable(record),
        .alignment = kind == QUIRE_EVENT_FREED ? 0 : alignment + !alignment,
        .name = record->meta ? record->meta->name : NULL,
        .stream = stream,
    };
    call_watchers(memory, &watched);
    if (!((memory->hook.kinds | memory->device->hook.kinds) & kind))
        return; /* recorders alone: they need no event */
    quire_event event = event_of(memory, kind, slot);
    event.alignment = watched.alignment;
    event.stream = stream;
    qi_event_report(memory, &event);
}

void qi_event_report_sleep(quire_memory *memory, quire_event_kinds kind, uint32_t slot)
{
    quire_event event = event_of(memory, kind, slot);
    qi_event_report(memory, &event);
}

/* The hook may use the allocation, and another thread may free it: it is in use only while it is
   read. */
void qi_event_report_changed(quire_memory *memory, quire_event_kinds kind,
                             quire_allocation allocation)
{
    const int accept = QI_ACCEPT_LIVE | QI_ACCEPT_ASLEEP;
    uint32_t slot = 0;
    char name[QUIRE_MAX_NAME + 1];
    qi_error error;
    qi_error_save(&error);
    quire_result result = qi_slot_begin_use(&memory->slots, allocation, accept, &slot);
    qi_error_restore(&error);
    if (result)
        return;
    qi_lock *lock = &qi_shard_of_slot(memory, slot)->lock;
    qi_lock_acquire(lock);
    quire_event event = event_of(memory, kind, slot);
    if (event.name)
        qi_copy_text(name, sizeof name, event.name);
    qi_lock_release(lock);
    qi_slot_end_use(&memory->slots, slot);
    event.name = event.name ? name : NULL;
    qi_event_report(memory, &event);
}
