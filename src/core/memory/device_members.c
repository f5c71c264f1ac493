/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * device_members.c - links the memories of a device and lists what keeps a device in use.
 */
#include "src/core/memory/device_members.h"

#include <stdio.h>

#include "src/base/result.h"
#include "src/core/deferred/stream.h"
#include "src/core/memory/memory.h"
#include "src/core/state/event.h"
#include "src/core/state/visitors.h"

/* Requires the lock of the device. */
static void link_memory(quire_device *device, quire_memory *memory)
{
    if (device->last_memory)
        device->last_memory->next_of_device = memory;
    else
        device->memories = memory;
    device->last_memory = memory;
    device->memory_count++;
    qi_event_refresh(memory);
    qi_owner_add(memory);
}

void qi_device_add_memory(quire_device *device, quire_memory *memory)
{
    qi_lock_acquire(&device->lock);
    link_memory(device, memory);
    qi_lock_release(&device->lock);
}

bool qi_device_add_default(quire_device *device, quire_memory *memory, quire_memory **present)
{
    void *_Atomic *place = &device->defaults[memory->kind];
    qi_lock_acquire(&device->lock);
    bool is_wanted = !device->is_ending && !qi_atomic_load_acquire_pointer(place);
    if (is_wanted) {
        link_memory(device, memory);
        qi_atomic_store_release_pointer(place, memory);
    }
    *present = device->is_ending ? NULL : qi_atomic_load_acquire_pointer(place);
    qi_lock_release(&device->lock);
    return is_wanted;
}

void qi_device_forget_default(quire_device *device, quire_memory *memory)
{
    qi_lock_acquire(&device->lock);
    qi_atomic_store_release_pointer(&device->defaults[memory->kind], NULL);
    qi_lock_release(&device->lock);
    memory->is_default = false;
}

/* A linear search: a device has few memories, and removing is rare. */
void qi_device_remove_memory(quire_device *device, quire_memory *memory)
{
    qi_lock_acquire(&device->lock);
    qi_visitors_move_own(memory);
    qi_owner_remove(memory);
    quire_memory *previous = NULL, **link = &device->memories;
    for (; *link != memory; link = &previous->next_of_device)
        previous = *link;
    *link = memory->next_of_device;
    if (device->last_memory == memory)
        device->last_memory = previous;
    device->memory_count--;
    qi_lock_release(&device->lock);
}

/* Requires the lock of the device. Writes the names of the memories that the program created, cut
   when `text` is full. Returns their number. */
static uint32_t list_memories(const quire_device *device, char *text, size_t size)
{
    uint32_t count = 0;
    size_t length = 0;
    text[0] = '\0';
    for (quire_memory *m = device->memories; m; m = m->next_of_device) {
        count += !m->is_default;
        if (m->is_default || length + 1 >= size)
            continue;
        int written = snprintf(text + length, size - length, "%s'%s'", length ? ", " : "", m->name);
        length += written > 0 ? (size_t)written : 0;
    }
    return count;
}

/* Requires no lock: the log sink may call the library. */
static quire_result refuse_memories(const quire_device *device, uint32_t count, const char *names)
{
    qi_log(&device->log, QUIRE_LOG_WARNING, "device '%s' is not destroyed: %u live memor%s: %s",
           device->info.name, count, count == 1 ? "y" : "ies", names);
    return qi_fail_text(QUIRE_ERROR_BUSY, "device '%s' still has %u live memor%s: %s",
                        device->info.name, count, count == 1 ? "y" : "ies", names);
}

quire_result qi_device_check_unused(quire_device *device)
{
    char names[512];
    qi_lock_acquire(&device->lock);
    uint32_t count = list_memories(device, names, sizeof names);
    qi_lock_release(&device->lock);
    if (count)
        return refuse_memories(device, count, names);
    if (device->streams)
        return qi_fail_text(QUIRE_ERROR_BUSY, "device '%s' still has streams: '%s' is one",
                            device->info.name, device->streams->name);
    return QUIRE_SUCCESS;
}

quire_result qi_device_check_stream_records(quire_device *device)
{
    /* waits in memories of other devices name streams of this device, whose records remain */
    if (qi_atomic_load_acquire_u64(&device->stream_records) && !device->is_copy)
        return qi_fail_text(QUIRE_ERROR_BUSY,
                            "device '%s': live allocations of another device were used on a "
                            "destroyed capture stream of it",
                            device->info.name);
    return QUIRE_SUCCESS;
}
