/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * visitors.c - a walk counts itself in the next memory before it leaves the present one, so that
 * both stay in the list.
 */
#include "src/core/state/visitors.h"

#include "src/core/state/event.h"

/* A walk, on the stack of its thread. */
typedef struct walk {
    quire_memory *memory; /* that it visits; NULL after the last */
    bool has_moved;       /* the memory before it was destroyed in its visit */
    struct walk *outer;   /* of the same thread */
} walk;

static _Thread_local walk *own_walks;

/* Requires the lock of the device. In the child of a fork that a hook has made, the count is 0
   already. */
static void leave(quire_memory *memory)
{
    if (memory->visitors && !--memory->visitors)
        qi_lock_wake_all(&memory->device->lock);
}

/* Requires the lock of the device. Visits a memory, or the first after it that is not closed.
   Returns that, or NULL. */
static quire_memory *enter(quire_memory *memory)
{
    while (memory && memory->is_closed)
        memory = memory->next_of_device;
    if (memory)
        memory->visitors++;
    return memory;
}

quire_memory *qi_visitors_next(quire_device *device, quire_memory *previous)
{
    qi_lock_acquire(&device->lock);
    quire_memory *next = enter(previous ? previous->next_of_device : device->memories);
    if (previous)
        leave(previous);
    qi_lock_release(&device->lock);
    return next;
}

void qi_visitors_leave(quire_memory *memory)
{
    qi_lock_acquire(&memory->device->lock);
    leave(memory);
    qi_lock_release(&memory->device->lock);
}

void qi_visitors_walk(quire_device *device, bool (*visit)(void *user, quire_memory *memory),
                      void *user)
{
    walk own = {.memory = qi_visitors_next(device, NULL), .outer = own_walks};
    bool goes_on = true;
    own_walks = &own;
    while (own.memory && goes_on) {
        own.has_moved = false;
        goes_on = visit(user, own.memory);
        if (goes_on && !own.has_moved)
            own.memory = qi_visitors_next(device, own.memory);
    }
    own_walks = own.outer;
    if (own.memory)
        qi_visitors_leave(own.memory);
}

static uint32_t own_visits(const quire_memory *memory)
{
    uint32_t count = 0;
    for (const walk *w = own_walks; w; w = w->outer)
        count += w->memory == memory;
    return count;
}

/* Requires the lock of the device. Releases and reacquires it while the memory has visitors, except
   walks of the calling thread. */
static void await_others(const quire_memory *memory)
{
    while (memory->visitors > own_visits(memory))
        qi_lock_wait(&memory->device->lock, NULL);
}

void qi_visitors_close(quire_memory *memory)
{
    qi_lock_acquire(&memory->device->lock);
    memory->is_closed = true;
    await_others(memory);
    qi_lock_release(&memory->device->lock);
}

void qi_visitors_move_own(const quire_memory *memory)
{
    for (walk *w = own_walks; w; w = w->outer) {
        if (w->memory != memory)
            continue;
        w->memory = enter(memory->next_of_device);
        w->has_moved = true;
    }
}

void qi_visitors_set_hook(quire_memory *memory, const quire_hook *hook)
{
    qi_lock_acquire(&memory->device->lock);
    await_others(memory);
    memory->hook = *hook;
    qi_event_refresh(memory);
    qi_lock_release(&memory->device->lock);
}

void qi_visitors_set_device_hook(quire_device *device, const quire_hook *hook)
{
    qi_lock_acquire(&device->lock);
    device->hook = *hook;
    for (quire_memory *m = device->memories; m; m = m->next_of_device)
        qi_event_refresh(m);
    qi_lock_release(&device->lock);
}
