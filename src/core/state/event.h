/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * event.h - calls the hooks and watchers of a memory and of its device for events of allocations,
 * pages and shards.
 *
 * No function requires a lock, unless it says so; those that report require that none is held.
 * Without a hook, and for a kind of event that nothing wants, a call is one test of a word.
 *
 * A hook changes only while no other thread uses its memory or device. Watchers come at any time,
 * and are switched off at any time: a thread that has found one may still call it. They therefore
 * stay in the list of their memory or device until that is released.
 */
#ifndef QUIRE_SRC_CORE_STATE_EVENT_H
#define QUIRE_SRC_CORE_STATE_EVENT_H

#include "src/core/state/memory.h"

/* The events that watchers get. */
#define QI_WATCHED (QUIRE_EVENT_ALLOCATED | QUIRE_EVENT_FREED)

/* What a watcher gets of them. The fields are those of quire_event. */
typedef struct qi_watched_event {
    quire_event_kinds kind;
    uint64_t allocation;
    uint64_t requested;
    uint64_t alignment;
    const char *name;
    const quire_stream *stream;
} qi_watched_event;

/* What records the allocations of a memory or device (record/recorder.h). */
typedef struct qi_watcher {
    struct qi_watcher *next; /* of the same memory or device; constant once it is in the list */
    qi_atomic_u32 is_on;
    /* Leaves the thread's last error as it is. */
    void (*event)(struct qi_watcher *watcher, const qi_watched_event *event);
    /* The memory or device is released, and the watcher with it; or this is the child of a fork, in
       which the watcher stays, switched off. No other thread exists or uses it. */
    void (*end)(struct qi_watcher *watcher, bool is_child);
} qi_watcher;

/* Returns the first watcher of a memory, or of a device if `memory` is NULL. */
qi_watcher *qi_event_watchers(const quire_device *device, const quire_memory *memory);

/* Requires the lock of the device. Adds a watcher likewise. */
void qi_event_add_watcher(quire_device *device, quire_memory *memory, qi_watcher *watcher);

/* Calls `end` of all watchers of a memory or device; unless this is a child, the list is empty
   then. */
void qi_event_end_watchers(quire_device *device, quire_memory *memory, bool is_child);

/* Set which events of a memory, or of all memories of a device, are wanted. The first requires the
   lock of the device. */
void qi_event_refresh(quire_memory *memory);
void qi_event_refresh_all(quire_device *device);

/* Calls the hooks. Sets number and time. The thread's last error stays. */
void qi_event_report(quire_memory *memory, quire_event *event);

static inline bool qi_event_is_wanted(const quire_memory *memory, quire_event_kinds kind)
{
    return qi_unlikely(qi_atomic_load_u32(&memory->event_kinds) & kind);
}

/*
 * Calls the watchers and the hooks for an event of a PRIVATE slot: it has a range and is not
 * published yet, or a free has claimed it and not returned it yet. `alignment` is that of a
 * request. `stream` orders it, or is NULL.
 */
void qi_event_report_slot(quire_memory *memory, quire_event_kinds kind, uint32_t slot,
                          uint64_t alignment, quire_stream *stream);

/* Calls the hooks for a slot that the caller puts to sleep or wakes. Watchers do not get it. */
void qi_event_report_sleep(quire_memory *memory, quire_event_kinds kind, uint32_t slot);

static inline void qi_event_sleep(quire_memory *memory, quire_event_kinds kind, uint32_t slot)
{
    if (qi_event_is_wanted(memory, kind))
        qi_event_report_sleep(memory, kind, slot);
}

/* Calls the hooks for an allocation that has moved, was evicted or woken; does nothing if it was
   freed since. Watchers do not get it. */
void qi_event_report_changed(quire_memory *memory, quire_event_kinds kind,
                             quire_allocation allocation);

static inline void qi_event_changed(quire_memory *memory, quire_event_kinds kind,
                                    quire_allocation allocation)
{
    if (qi_event_is_wanted(memory, kind))
        qi_event_report_changed(memory, kind, allocation);
}

static inline void qi_event_allocated(quire_memory *memory, uint32_t slot, uint64_t alignment,
                                      quire_stream *stream)
{
    if (qi_event_is_wanted(memory, QUIRE_EVENT_ALLOCATED))
        qi_event_report_slot(memory, QUIRE_EVENT_ALLOCATED, slot, alignment, stream);
}

static inline void qi_event_freed(quire_memory *memory, uint32_t slot, quire_stream *stream)
{
    if (qi_event_is_wanted(memory, QUIRE_EVENT_FREED))
        qi_event_report_slot(memory, QUIRE_EVENT_FREED, slot, 0, stream);
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
