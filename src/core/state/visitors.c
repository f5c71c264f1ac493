/*
 * visitors.c - counts the visitors of each memory of a device.
 */
#include "src/core/state/visitors.h"

/* Requires the lock of the device. In the child of a fork that a hook has made, the count is 0
   already. */
static void leave(quire_memory *memory)
{
    if (memory->visitors && !--memory->visitors)
        qi_lock_wake_all(&memory->device->lock);
}

quire_memory *qi_visitors_next(quire_device *device, quire_memory *previous)
{
    qi_lock_acquire(&device->lock);
    quire_memory *next = previous ? previous->next_of_device : device->memories;
    if (previous)
        leave(previous);
    if (next)
        next->visitors++;
    qi_lock_release(&device->lock);
    return next;
}

void qi_visitors_leave(quire_memory *memory)
{
    qi_lock_acquire(&memory->device->lock);
    leave(memory);
    qi_lock_release(&memory->device->lock);
}

void qi_visitors_await(const quire_memory *memory)
{
    while (memory->visitors)
        qi_lock_wait(&memory->device->lock, NULL);
}

void qi_visitors_set_hook(quire_memory *memory, const quire_hook *hook)
{
    qi_lock_acquire(&memory->device->lock);
    qi_visitors_await(memory);
    memory->hook = *hook;
    qi_lock_release(&memory->device->lock);
}
