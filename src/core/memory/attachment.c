/*
 * attachment.c - what backends keep in a memory beside allocations: a list under the device's lock.
 */
#include "src/core/state/memory.h"

void quire_memory_attach(quire_memory *memory, quire_attachment *attachment)
{
    if (!memory || !attachment)
        return;
    qi_lock_acquire(&memory->device->lock);
    attachment->previous = NULL;
    attachment->next = memory->attachments;
    if (attachment->next)
        attachment->next->previous = attachment;
    memory->attachments = attachment;
    qi_lock_release(&memory->device->lock);
}

void quire_memory_detach(quire_memory *memory, quire_attachment *attachment)
{
    if (!memory || !attachment)
        return;
    qi_lock_acquire(&memory->device->lock);
    if (attachment->next)
        attachment->next->previous = attachment->previous;
    if (attachment->previous)
        attachment->previous->next = attachment->next;
    else
        memory->attachments = attachment->next;
    attachment->next = attachment->previous = NULL;
    qi_lock_release(&memory->device->lock);
}
