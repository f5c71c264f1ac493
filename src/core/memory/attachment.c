/*
 * attachment.c - links the attachments of a memory: what a backend keeps in it besides
 * allocations. A doubly linked list, so that removing takes constant time.
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
