/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * slabs.h - an option of the segregated fit: small ranges as slots of slabs.
 *
 * A slab is a live node cut into up to 64 slots of one size class, with a bit for each free slot.
 * Size classes are eighths of a power of two: a slot is at most an eighth larger than the size
 * rounded up to its alignment; the placement reports the slot's size. A slot costs four bytes for
 * its generation and a share of the slab's record, both counted for 64 slots even if the slab has
 * fewer. User values cost eight more bytes per slot from the first value that is not 0. The first
 * slabs of a class are small and later ones grow with the class, so that a few small ranges do not
 * occupy much space. A free slot serves only its own class.
 *
 * Invariants:
 *  - slab.live is the number of slots with an odd generation
 *  - a free slot has its bit set and an even generation; a slot that is neither live nor free is
 *    worn out
 *  - the list of a class holds its slabs with a free slot; at most one of them has no live slot
 *  - the node of a slab has QI_SLAB_MARK; the statistics of the space count the slots, not the node
 */
#ifndef QUIRE_SRC_SPACE_SEGREGATED_SLABS_H
#define QUIRE_SRC_SPACE_SEGREGATED_SLABS_H

#include "src/space/segregated/segregated.h"

enum {
    QI_SLAB_SLOTS = 64,
    QI_SLAB_MAX_BYTES = 4096, /* bytes of a slot */
    QI_SLAB_CLASSES = 96      /* above the class of 4096 granules */
};

/* A range identity names a slot of a slab by this bit, the slab number and the slot number. */
#define QI_SLAB_SLOT (QI_SLOT_COUNT / 2)
#define QI_MAX_SLABS (QI_SLAB_SLOT / QI_SLAB_SLOTS)

typedef struct qi_slab {
    uint64_t free;   /* bit per free slot */
    uint32_t offset; /* granules on the line */
    uint32_t node;   /* of the fit; 0 if the slab number is unused */
    uint32_t next;   /* of its class's list, or of the chain of unused numbers */
    uint32_t before; /* of its class's list */
    uint32_t region;
    uint16_t stride; /* granules */
    uint8_t class;
    uint8_t slots;
    uint8_t live;
    uint8_t worn; /* 1 if a slot used up its generations: the slab number is not reused */
} qi_slab;

typedef struct qi_slab_class {
    uint32_t head;  /* slabs with a free slot */
    uint32_t empty; /* the one of them without a live slot, kept as a cache; or 0 */
    uint32_t slots; /* of all slabs of the class */
} qi_slab_class;

struct qi_slabs {
    qi_slab *items;        /* by number; 0 is none */
    uint32_t *generations; /* 64 per slab; odd while live */
    uint64_t *users;       /* 64 per slab; null means that all are 0 */
    uint32_t capacity, top, unused;
    uint32_t first_generation; /* of new slabs' slots; even, above all that a trim discarded */
    uint32_t empty;            /* slabs without a live slot */
    uint64_t slots;            /* of all slabs; worn-out ones too, free on a walk */
    uint64_t count;            /* slabs */
    /* allocate from the fit and free to it, without slabs */
    quire_result (*free_range)(quire_space *space, quire_range range);
    quire_result (*allocate)(quire_space *space, uint64_t size, uint64_t alignment, uint64_t user,
                             uint32_t flags, quire_placement *placement);
    qi_slab_class classes[QI_SLAB_CLASSES];
};

QUIRE_MUST_USE quire_result qi_slabs_init(qi_segregated *s);
void qi_slabs_finish(qi_segregated *s);

/* allocate_range and free_range of a space with slabs; see space.h. */
quire_result qi_slabs_allocate(quire_space *space, uint64_t size, uint64_t alignment, uint64_t user,
                               uint32_t flags, quire_placement *placement);
quire_result qi_slabs_free(quire_space *space, quire_range range);

/* The steps of fit.h for a slot; `slot` has QI_SLAB_SLOT. */
bool qi_slabs_claim(qi_segregated *s, uint32_t slot, uint32_t generation);
void qi_slabs_unclaim(qi_segregated *s, uint32_t slot);
void qi_slabs_release_claimed(qi_segregated *s, uint32_t slot);
bool qi_slabs_get(const qi_segregated *s, uint32_t slot, uint32_t generation, quire_placement *out);

bool qi_slabs_set_user(qi_segregated *s, uint32_t slot, uint32_t generation, uint64_t user);

/*
 * Ensures that one more slab number can be taken. Returns NO_SPACE without a sentence if all are
 * used, or OUT_OF_HOST_MEMORY.
 */
QUIRE_MUST_USE quire_result qi_slabs_reserve_number(qi_segregated *s);

/* Allocates storage for user values if `user` is not 0. Fails with OUT_OF_HOST_MEMORY. */
QUIRE_MUST_USE quire_result qi_slabs_reserve_user(qi_segregated *s, uint64_t user);

/* Releases the slabs without a live slot. Returns whether there were any. */
bool qi_slabs_release_empty(qi_segregated *s);

/* Frees all live slots and releases all slabs. */
void qi_slabs_clear(qi_segregated *s);

/* Releases records of a past peak. Has an effect only if no slab exists. */
void qi_slabs_trim(qi_segregated *s);

/* Visits each slot of the slab that a node carries. Returns false if the visit ended the walk. */
bool qi_slabs_walk(const qi_segregated *s, uint32_t node,
                   bool (*visit)(void *, const quire_space_item *), void *user);

/* Verifies all slabs. Returns the slab of a node, or null; for the check of the fit. */
quire_result qi_slabs_check(const qi_segregated *s);
const qi_slab *qi_slab_of_node(const qi_segregated *s, uint32_t node);

#endif
