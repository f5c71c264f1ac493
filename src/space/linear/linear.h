/*
 * linear.h - the records of the linear fit, shared by its algorithm (linear.c), their numbers
 * (linear_numbers.c), what is told of them (linear_view.c) and the checker (linear_check.c).
 *
 * The one region holds two groups of ranges. The lower ones are appended behind the newest of them
 * and begin again at the start of the region (they *wrap*) where they meet its end; the upper ones
 * are put below the newest of them, from the end of the region downward. Only live ranges have a
 * record. They form one ring in address order, closed by record 0, which stands for the region.
 * What a freed range leaves is the gap between its neighbours: nothing is swept, and a gap can be
 * used as soon as it lies beside the newest lower range, in front of the oldest one, or below the
 * newest upper one. Every operation takes a fixed number of steps, but for an allocation that grows
 * the records or makes all numbers new.
 *
 *     | free | oldest ... newest |        free        | upper ... |
 *     | ... newest |     free     | oldest ... | free | upper ... |     wrapped
 *
 * A clear gives the whole ring to the chain of unused numbers and starts a new epoch; a record is
 * live while its epoch is the space's. So no record is touched, and ranges from before are stale.
 *
 * Generations: a number counts its uses, all 2^26 - 1 of them (unlike in the other fits they do not
 * tell live from free, so that none are lost). Per-frame use wears all numbers of a frame alike: at
 * 1000 clears a second they are used up after 18 hours. When a worn number turns up in an empty
 * space, all numbers are made new and name later slots from then on (`window`), so that the same
 * few records serve for as long as there are slots: 2^52 ids in all, 142 years of 1000 frames a
 * second with 1000 ranges each. A worn number that turns up while ranges live is retired until
 * then. A space that is never empty loses 48 bytes for 67 million ranges this way.
 *
 * Invariants:
 *  - the ring leads up in address, and its ranges do not overlap
 *  - where the lower ranges have not wrapped, the oldest is the first of the ring and the newest
 *    the last in front of the upper ones; where they have, the oldest follows the newest
 *  - gaps is the number of neighbours in the ring, record 0 included, that do not touch
 *  - every slot handed out so far is at most window + pool.top - 1
 */
#ifndef QUIRE_SRC_SPACE_LINEAR_LINEAR_H
#define QUIRE_SRC_SPACE_LINEAR_LINEAR_H

#include "src/base/bits.h"
#include "src/base/handle.h"
#include "src/space/space.h"

typedef struct qi_linear_record {
    uint32_t generation; /* uses so far; first, with next, as pool.h wants it */
    uint32_t next;       /* the neighbour above; unused: the next unused number */
    uint32_t before;     /* the neighbour below */
    uint32_t left_padding;
    uint64_t epoch;  /* live: the space's; 0 once freed */
    uint64_t offset; /* bytes on the line, behind the left padding */
    uint64_t size;   /* bytes */
    uint64_t user;
} qi_linear_record;

typedef struct qi_linear {
    quire_space space; /* first: the part all fits share */
    qi_linear_record *records;
    uint64_t epoch; /* from 1; rises with each clear */
    uint64_t gaps;
    uint32_t oldest, newest; /* lower ranges; 0: there are none */
    uint32_t upper;          /* the newest upper range; 0: there is none */
    uint32_t window;         /* the slot of a number is the number + window */
} qi_linear;

static inline qi_linear *qi_linear_of(quire_space *space)
{
    return (qi_linear *)(void *)space;
}

static inline const qi_linear *qi_linear_of_const(const quire_space *space)
{
    return (const qi_linear *)(const void *)space;
}

/*
 * Where the bytes of a record begin and end. Record 0 lies at the end of the region with a size
 * that leads, modulo 2^64, back to its start: as the neighbour above it is the region's end, as the
 * neighbour below the region's start, and no step has to ask for it.
 */
static inline uint64_t qi_linear_begin(const qi_linear_record *record)
{
    return record->offset - record->left_padding;
}

static inline uint64_t qi_linear_end(const qi_linear_record *record)
{
    return record->offset + record->size;
}

/* The newest lower range is the topmost of all: behind it comes the end of the region. */
static inline bool qi_linear_can_wrap(const qi_linear *l)
{
    return l->records[l->newest].next == 0;
}

static inline void qi_linear_describe(const qi_linear *l, uint32_t number, quire_placement *out)
{
    const qi_linear_record *record = &l->records[number];
    *out = (quire_placement){
        .range.id = qi_handle(l->space.tag, record->generation, number + l->window),
        .offset = record->offset - l->space.regions[0].start,
        .left_padding = record->left_padding,
        .size = record->size,
        .user = record->user,
    };
}

/*
 * linear_numbers.c: makes the next unused number one that can be used once more, so that an
 * allocation that found its place cannot fail. Errors: OUT_OF_HOST_MEMORY, TOO_MANY_ALLOCATIONS.
 */
QUIRE_MUST_USE quire_result qi_linear_prepare(qi_linear *l);
bool qi_linear_in_use(const void *space, uint32_t number);
void qi_linear_trim(quire_space *space);

/* linear_view.c: NO_SPACE with what is left at each end, or without a sentence at QI_TRY. */
quire_result qi_linear_refuse(const qi_linear *l, uint64_t size, uint64_t alignment, uint32_t how);
uint64_t qi_linear_largest_free(const quire_space *space);
bool qi_linear_walk(const quire_space *space, uint32_t region,
                    bool (*visit)(void *user, const quire_space_item *item), void *user);

/* linear_check.c */
quire_result qi_linear_check(const quire_space *space);

#endif
