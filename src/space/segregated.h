/*
 * segregated.h - the records of the segregated fit, shared by its algorithm (segregated.c) and its
 * checker (segregated_check.c).
 *
 * Every range, free or live, is a node; the nodes of a region form a ring in address order, closed
 * by a node that stands for the region itself and has size 0. Free nodes are also in a list: one
 * list per size class and address bucket, where a bucket is a sixteenth of the line in use.
 * Numbers, not pointers, name nodes; 0 is none.
 *
 * Invariants:
 *  - node.offset + node.size == offset of the next node of its ring, or the end of the region
 *  - no two neighbours are both free
 *  - a free node is in the list heads[class * 16 + bucket] of its size and offset, and
 *    fractions[list] is the fraction of the first node of that list
 *  - masks[class] has the bit of each list that is not empty, class_bits the bit of each mask that
 *    is not 0, and top_bits the bit of each word of class_bits that is not 0
 */
#ifndef QUIRE_SRC_SPACE_SEGREGATED_H
#define QUIRE_SRC_SPACE_SEGREGATED_H

#include "src/space/buckets.h"
#include "src/space/classes.h"
#include "src/space/fit.h"

/* 32 bytes: two nodes a cache line, none across two. */
typedef struct qi_node {
    uint32_t generation; /* odd while live; first, with next, as pool.h wants it */
    uint32_t next;       /* free: next of its list. live: low half of the user's value */
    uint32_t offset;     /* granules on the line */
    uint32_t size;       /* granules; 0 in the node that stands for a region */
    uint32_t before;     /* neighbour below in the region's ring */
    uint32_t after;      /* neighbour above */
    uint32_t region;
    uint32_t back; /* free: the node or, with QI_AT_HEAD, the list that points here.
                      live: high half of the user's value */
} qi_node;

#define QI_AT_HEAD UINT32_C(0x80000000)

typedef struct qi_segregated {
    quire_space space; /* first: the part all fits share */
    qi_node *nodes;    /* pool.items */
    uint64_t *is_free; /* bit per node: testing a neighbour does not touch its node */
    uint32_t *heads;   /* first node per list */
    uint8_t *fractions;
    uint16_t *masks; /* bit per bucket that has nodes, per class */
    uint32_t granule_shift;
    uint32_t bucket_shift;  /* granule offset >> bucket_shift is the bucket */
    uint32_t class_count;   /* classes the tables reach, a multiple of 64 */
    uint32_t free_capacity; /* bits in is_free */
    uint64_t top_bits;
    uint64_t class_bits[QI_CLASS_LIMIT / 64];
} qi_segregated;

static inline qi_segregated *qi_segregated_of(quire_space *space)
{
    return (qi_segregated *)(void *)space;
}

static inline const qi_segregated *qi_segregated_of_const(const quire_space *space)
{
    return (const qi_segregated *)(const void *)space;
}

static inline bool qi_node_is_free(const qi_segregated *s, uint32_t node)
{
    return (s->is_free[node / 64] >> node % 64 & 1) != 0;
}

/* The list in which a free range belongs. */
static inline uint32_t qi_list_of(const qi_segregated *s, uint32_t offset, uint32_t size)
{
    return qi_class_of_range(size).index * QI_BUCKETS + (offset >> s->bucket_shift);
}

static inline uint64_t qi_node_user(const qi_node *node)
{
    return (uint64_t)node->back << 32 | node->next;
}

/* Makes `count` node numbers spare, so that what follows cannot fail half way. */
QUIRE_MUST_USE quire_result qi_segregated_reserve(qi_segregated *s, uint32_t count);

/* Fills in where a node lies; range and user mean something for a live one only. */
void qi_segregated_describe(const qi_segregated *s, uint32_t number, quire_placement *out);

/* The rare entries of the fit's table, as fit.h wants them. */
quire_result qi_segregated_init(quire_space *space);
void qi_segregated_finish(quire_space *space);
quire_result qi_segregated_add_region(quire_space *space, uint32_t number);
bool qi_segregated_region_is_empty(const quire_space *space, uint32_t region);
void qi_segregated_remove_region(quire_space *space, uint32_t region);
uint64_t qi_segregated_largest_free(const quire_space *space);
bool qi_segregated_walk(const quire_space *space, uint32_t region,
                        bool (*visit)(void *, const quire_space_item *), void *user);
quire_result qi_segregated_check(const quire_space *space);
bool qi_segregated_in_use(const void *space, uint32_t number);
void qi_segregated_trim(quire_space *space);

#endif
