/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * stretches.h - the bytes of a page that have memory, as stretches in order that do not touch. A
 * page that is not elastic is one stretch. Events of an elastic page have its bytes, not their
 * places: these come from a walk, and what differs from those known before is what happened.
 */
#ifndef QUIRE_SRC_TOOL_STRETCHES_H
#define QUIRE_SRC_TOOL_STRETCHES_H

#include "quire/quire.h"

/* Offsets in bytes. */
typedef struct stretch {
    uint64_t begin, end;
} stretch;

/* A zeroed list is empty. The owner frees `items`. */
typedef struct stretches {
    stretch *items;
    uint64_t count, room;
} stretches;

/* Adds a stretch behind all others. Returns false without host memory. */
bool stretches_add(stretches *s, uint64_t begin, uint64_t end);

/* Adds those of an elastic page, which lives. Returns false without host memory. */
bool stretches_read(stretches *s, quire_memory *memory, uint32_t page);

/* Calls `found` for all parts of `of` that `without` does not have. */
void stretches_differ(const stretches *of, const stretches *without,
                      void (*found)(void *user, uint64_t begin, uint64_t end), void *user);

#endif
