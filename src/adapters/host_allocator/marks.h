/*
 * marks.h - the state of each small block, found by its address.
 *
 * A mark is a byte beside the blocks, one for each HOST_BLOCK_UNIT bytes of addresses. Marks exist
 * until the allocator is destroyed, so that a free can look at the mark of any pointer, also of one
 * whose page was released. The thread that changes a mark from LIVE to FREED owns the block. It
 * alone may read the header, because nothing releases the page of a live block.
 *
 * The marks are two levels of arrays, which the system fills with pages where they are used: 4 KiB
 * for each 512 KiB of addresses with small blocks. Finding a mark takes no lock.
 */
#ifndef QUIRE_SRC_ADAPTERS_HOST_ALLOCATOR_MARKS_H
#define QUIRE_SRC_ADAPTERS_HOST_ALLOCATOR_MARKS_H

#include <stdatomic.h>

#include "src/adapters/host_allocator/block.h"

enum {
    HOST_MARK_SHIFT = 7,  /* HOST_BLOCK_UNIT bytes have one mark */
    HOST_PART_SHIFT = 28, /* bytes of addresses in a part: 256 MiB, with 2 MiB of marks */
    HOST_MARKS_SHIFT = 48 /* bytes of addresses in all: what systems give without a hint */
};

_Static_assert(HOST_BLOCK_UNIT == 1 << HOST_MARK_SHIFT, "a block has a mark of its own");

#define HOST_PART_MARKS (UINT64_C(1) << (HOST_PART_SHIFT - HOST_MARK_SHIFT))
#define HOST_PART_COUNT (UINT64_C(1) << (HOST_MARKS_SHIFT - HOST_PART_SHIFT))

typedef struct host_marks {
    _Atomic(host_mark *) *parts; /* HOST_PART_COUNT; NULL: no block was there yet */
} host_marks;

/* create fails with OUT_OF_HOST_MEMORY. destroy accepts marks that were not created. */
QUIRE_MUST_USE quire_result host_marks_create(host_marks *marks);
void host_marks_destroy(host_marks *marks);

/* Returns the mark of a new block, or NULL with OUT_OF_HOST_MEMORY as the last error. Any thread
   may call it. */
host_mark *host_marks_add(host_marks *marks, const host_block *block);

/* Returns the mark of an address, which may be any value. NULL: no block was near it yet. */
static inline host_mark *host_marks_find(const host_marks *marks, const void *pointer)
{
    const uint64_t address = (uintptr_t)pointer;
    if (address >> HOST_MARKS_SHIFT)
        return NULL;
    host_mark *part =
        atomic_load_explicit(&marks->parts[address >> HOST_PART_SHIFT], memory_order_acquire);
    return part ? &part[(address >> HOST_MARK_SHIFT) % HOST_PART_MARKS] : NULL;
}

#endif
