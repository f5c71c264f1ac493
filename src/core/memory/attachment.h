/*
 * attachment.h - the list of what a backend keeps in a memory besides allocations.
 *
 * The device's lock protects the list; both functions acquire it. The backend owns the attachments.
 * Invariant: an attachment is in the list from the add to the remove, and in one list only.
 */
#ifndef QUIRE_SRC_CORE_MEMORY_ATTACHMENT_H
#define QUIRE_SRC_CORE_MEMORY_ATTACHMENT_H

#include "src/core/state/memory.h"

/* Adds an attachment at the front. It must stay valid until it is removed. */
void qi_attachment_add(quire_memory *memory, quire_attachment *attachment);
void qi_attachment_remove(quire_memory *memory, quire_attachment *attachment);

#endif
