/*
 * slabs.h - small ranges of the segregated fit, several to one node, as an option of a space.
 *
 * A slab is a live node of the fit cut into up to 64 slots of one size class, with a bit for each
 * slot that is free. Classes are eighths of a power of two, so that a slot is at most an eighth
 * larger than the size rounded up to its alignment; the placement tells the slot. A slot costs four
 * bytes, its generation, and its share of the slab's record, both for 64 slots where a slab has
 * fewer; user values cost eight more a slot once one that is not 0 is given. Slabs start small and
 * grow with the class they belong to, so that a few small ranges do not hold much room. A free slot
 * serves its own class only.
 *
 * Invariants:
 *  - slab.live == slots with an odd generation; a slot is free when its bit is set, and then its
 *    generation is even; slots that are neither are worn out
 *  - the slabs of a class with a free slot are in its list, and at most one of them has no live
 *    slot
 *  - the node of a slab has QI_SLAB_MARK, and its figures count the slots, not the node
 */
#ifndef QUIRE_SRC_SPACE_SEGREGATED_SLABS_H
#define QUIRE_SRC_SPACE_SEGREGATED_SLABS_H

#include "src/space/segregated/segregated.h"

enum {
    QI_SLAB_SLOTS = 64,
    QI_SLAB_MAX_BYTES = 4096, /* bytes of a slot */
    QI_SLAB_CLASSES = 96      /* above the class of 4096 granules */
};

/* The slot of a range identity that names a slot of a slab: this bit, slab and slot number. */
#define QI_SLAB_SLOT (QI_SLOT_COUNT / 2)
#define QI_MAX_SLABS (QI_SLAB_SLOT / QI_SLAB_SLOTS)

typedef struct qi_slab {
    uint64_t free;   /* bit per free slot */
    uint32_t offset; /* granules on the line */
    uint32_t node;   /* of the fit; 0 in a number that is not in use */
    uint32_t next;   /* of its class's list, or of the chain of unused numbers */
    uint32_t before; /* of its class's list */
    uint32_t region;
    uint16_t stride; /* granules */
    uint8_t class;
    uint8_t slots;
    uint8_t live;
    uint8_t worn; /* 1: a slot used its generations up, and the number is not used again */
} qi_slab;

typedef struct qi_slab_class {
    uint32_t head;  /* slabs with a free slot */
    uint32_t empty; /* the one of them without a live slot, kept in reserve; or 0 */
    uint32_t slots; /* of all slabs of the class */
} qi_slab_class;

struct qi_slabs {
    qi_slab *items;        /* by number; 0 is none */
    uint32_t *generations; /* 64 a slab; odd while live */
    uint64_t *users;       /* 64 a slab, or NULL: all 0 */
    uint32_t capacity, top, unused;
    uint32_t first_generation; /* of slots of a new number; even, above all that are forgotten */
    uint32_t empty;            /* slabs without a live slot */
    uint64_t slots;            /* of all slabs; worn out ones too, free on a walk */
    uint64_t count;            /* slabs */
    /* what allocates from the fit itself, and frees to it */
    quire_result (*free_range)(quire_space *space, quire_range range);
    quire_result (*allocate)(quire_space *space, uint64_t size, uint64_t alignment, uint64_t user,
                             uint32_t how, quire_placement *placement);
    qi_slab_class classes[QI_SLAB_CLASSES];
};

QUIRE_MUST_USE quire_result qi_slabs_init(qi_segregated *s);
void qi_slabs_finish(qi_segregated *s);

/* What a space with slabs has as its two calls; see fit.h. */
quire_result qi_slabs_allocate(quire_space *space, uint64_t size, uint64_t alignment, uint64_t user,
                               uint32_t how, quire_placement *placement);
quire_result qi_slabs_free(quire_space *space, quire_range range);

/* The steps of fit.h for a slot; `slot` has QI_SLAB_SLOT. */
bool qi_slabs_claim(qi_segregated *s, uint32_t slot, uint32_t generation);
void qi_slabs_unclaim(qi_segregated *s, uint32_t slot);
void qi_slabs_release_claimed(qi_segregated *s, uint32_t slot);
bool qi_slabs_get(const qi_segregated *s, uint32_t slot, uint32_t generation, quire_placement *out);

bool qi_slabs_set_user(qi_segregated *s, uint32_t slot, uint32_t generation, uint64_t user);

/* Makes sure that one more slab has a number; NO_SPACE, without a sentence, when all are used. */
QUIRE_MUST_USE quire_result qi_slabs_reserve_number(qi_segregated *s);

/* Makes room for user values, if this one is not 0. Fails with OUT_OF_HOST_MEMORY. */
QUIRE_MUST_USE quire_result qi_slabs_reserve_user(qi_segregated *s, uint64_t user);

/* Gives up the slabs without a live slot; whether there were any. */
bool qi_slabs_release_empty(qi_segregated *s);

/* Frees all live slots, and their slabs. */
void qi_slabs_clear(qi_segregated *s);

/* Gives records of a past peak back, once there is no slab. */
void qi_slabs_trim(qi_segregated *s);

/* Visits the slots of the slab that a node carries, each by itself. */
bool qi_slabs_walk(const qi_segregated *s, uint32_t node,
                   bool (*visit)(void *, const quire_space_item *), void *user);

/* Verifies all slabs, and tells what the one of a node holds, for the fit's own check. */
quire_result qi_slabs_check(const qi_segregated *s);
const qi_slab *qi_slab_of_node(const qi_segregated *s, uint32_t node);

#endif
