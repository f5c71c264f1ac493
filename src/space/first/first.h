/*
 * first.h - the records of the first fit, shared by its parts: the tree of free ranges
 * (free_tree.c), the algorithm (first.c) and the check (first_check.c).
 *
 * As in the segregated fit every range is a node and the nodes of a region form a ring in address
 * order, closed by the region's own node. Free nodes are also in one balanced tree over all
 * regions, ordered by address, whose nodes know the most that any free range below them can hold.
 * Offsets and sizes are bytes.
 *
 * Invariants:
 *  - node.offset + node.size == begin of the next node of its ring, where a live node begins at
 *    offset - left_padding
 *  - no two neighbours are both free, and the tree holds exactly the free nodes
 *  - heights of siblings in the tree differ by at most 1
 *  - node.best[c] is the maximum of own[c] over the node's subtree
 */
#ifndef QUIRE_SRC_SPACE_FIRST_FIRST_H
#define QUIRE_SRC_SPACE_FIRST_FIRST_H

#include "src/base/bits.h"
#include "src/space/space.h"

/*
 * What a free range can hold depends on the alignment asked for. Each node keeps it for these
 * powers of two, rounded down to a 16-bit floating point number: enough to leave out almost every
 * subtree without a fitting range, while the exact test is made on the ranges that remain.
 */
enum { QI_COLUMNS = 12 };

/* The column for an alignment: the next one that is tracked and not larger. */
static inline uint32_t qi_column_of(uint64_t alignment)
{
    uint32_t exponent = qi_highest_bit(alignment);
    if (exponent < 6)
        return 0;
    return exponent > 16 ? QI_COLUMNS - 1 : exponent - 5;
}

static inline uint64_t qi_column_alignment(uint32_t column)
{
    return column ? UINT64_C(1) << (column + 5) : 1;
}

/* A size as a number that orders as sizes do, 9 bits of mantissa; fits 15 bits. */
static inline uint16_t qi_measure(uint64_t size)
{
    if (size < 1024)
        return (uint16_t)size;
    uint32_t shift = qi_highest_bit(size) - 9;
    return (uint16_t)((shift << 9) + (uint32_t)(size >> shift));
}

typedef struct qi_free_part {
    uint32_t left, right;
    uint16_t height;
    uint16_t own[QI_COLUMNS];  /* qi_measure of what this range holds, per column */
    uint16_t best[QI_COLUMNS]; /* the same, most in the subtree */
} qi_free_part;

typedef struct qi_live_part {
    uint64_t left_padding;
    uint64_t user;
} qi_live_part;

typedef struct qi_first_node {
    uint32_t generation; /* odd while live; first, with next, as pool.h wants it */
    uint32_t next;
    uint64_t offset; /* bytes on the line; of a live range, behind its left padding */
    uint64_t size;   /* bytes; 0 in the node that stands for a region */
    uint32_t before, after;
    uint32_t region;
    bool is_free;
    union {
        qi_free_part free;
        qi_live_part live;
    } as;
} qi_first_node;

typedef struct qi_first {
    quire_space space; /* first: the part all fits share */
    qi_first_node *nodes;
    uint32_t root; /* of the tree of free ranges */
} qi_first;

static inline const qi_first *qi_first_of_const(const quire_space *space)
{
    return (const qi_first *)(const void *)space;
}

/* Where the bytes of a node begin: a live range owns its left padding. */
static inline uint64_t qi_first_begin(const qi_first_node *node)
{
    bool is_live = node->generation & 1;
    return node->offset - (is_live ? node->as.live.left_padding : 0);
}

/* first_check.c */
quire_result qi_first_check(const quire_space *space);

/* free_tree.c: the tree keyed by offset. None of these needs host memory. */
void qi_free_tree_insert(qi_first *f, uint32_t node);
void qi_free_tree_remove(qi_first *f, uint32_t node);

/* After a free node changed its place or size without passing a neighbour in the tree. */
void qi_free_tree_update(qi_first *f, uint32_t node);

/* The free range at the lowest address that holds size bytes at a multiple of alignment, or 0. */
uint32_t qi_free_tree_find(const qi_first *f, uint64_t size, uint64_t alignment);

/* Bytes of the largest free range, 0 when there is none. */
uint64_t qi_free_tree_largest(const qi_first *f);

quire_result qi_free_tree_check(const qi_first *f, uint64_t *count);

#endif
