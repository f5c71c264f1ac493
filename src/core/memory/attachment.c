/*
 * attachment.c - what a backend keeps in a memory besides allocations.
 */
#include "src/core/memory/attachment.h"

void qi_attachment_add(quire_memory *memory, quire_attachment *attachment)
{
    qi_lock_acquire(&memory->device->lock);
    attachment->previous = NULL;
    attachment->next = memory->attachments;
    if (attachment->next)
        attachment->next->previous = attachment;
    memory->attachments = attachment;
    qi_lock_release(&memory->device->lock);
}

void qi_attachment_remove(quire_memory *memory, quire_attachment *attachment)
{
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
