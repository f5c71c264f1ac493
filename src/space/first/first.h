/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * first.h - the records of the first fit: a ring of all ranges, and a balanced tree of the free
 * ones, both in address order. Files outside this folder use the fit only through qi_first_fit.
 *
 * Every range, free or live, is a node. The nodes of a region form a ring in address order, closed
 * by a node of size 0 for the region itself. A free node is also in a balanced tree over all
 * regions, ordered by address; each tree node knows the largest request that its subtree can hold,
 * for several alignments. Offsets and sizes are bytes. The space has no lock: the caller serializes
 * all calls.
 *
 * Invariants:
 *  - node.offset + node.size == begin of the next node of its ring; a live node begins at offset -
 *    left_padding
 *  - no two neighbours are both free, and the tree holds exactly the free nodes
 *  - heights of siblings in the tree differ by at most 1
 *  - node.best[c] is the maximum of own[c] over the node's subtree, node.largest that of the sizes
 */
#ifndef QUIRE_SRC_SPACE_FIRST_FIRST_H
#define QUIRE_SRC_SPACE_FIRST_FIRST_H

#include "src/base/bits.h"
#include "src/space/space.h"

/*
 * The largest request that a free range holds depends on the alignment. Each node stores it for
 * these powers of two (columns), rounded down to a 16-bit floating-point number. That is precise
 * enough to skip almost every subtree without a fitting range; the exact test runs on the ranges
 * that remain.
 */
enum { QI_COLUMNS = 12 };

/* The column of an alignment: the largest stored alignment that is not above it. */
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

/* Rounds a size down to a 15-bit number with 9 bits of mantissa; keeps the order of sizes. */
static inline int16_t qi_measure(uint64_t size)
{
    if (size < 1024)
        return (int16_t)size;
    uint32_t shift = qi_highest_bit(size) - 9;
    return (int16_t)((shift << 9) + (uint32_t)(size >> shift));
}

typedef struct qi_free_part {
    uint32_t left, right;
    uint64_t largest;         /* bytes of the largest range of the subtree */
    int16_t own[QI_COLUMNS];  /* per column: qi_measure of the largest request here */
    int16_t best[QI_COLUMNS]; /* maximum of own in the subtree */
} qi_free_part;

typedef struct qi_live_part {
    uint64_t left_padding;
    uint64_t user;
} qi_live_part;

typedef struct qi_first_node {
    uint32_t generation; /* odd while live; first, followed by next, as pool.h requires */
    uint32_t next;
    uint64_t offset; /* bytes on the line; of a live range, after its left padding */
    uint64_t size;   /* bytes; 0 in the node of a region */
    uint32_t before, after;
    uint32_t region;
    bool is_free;
    uint16_t height; /* of the subtree of a free node */
    union {
        qi_free_part free;
        qi_live_part live;
    } as;
} qi_first_node;

typedef struct qi_first {
    quire_space space; /* must be first: the part that all fits share */
    qi_first_node *nodes;
    uint32_t root; /* of the tree of free ranges */
} qi_first;

static inline const qi_first *qi_first_of_const(const quire_space *space)
{
    return (const qi_first *)(const void *)space;
}

/* The begin of a node: a live range owns its left padding. */
static inline uint64_t qi_first_begin(const qi_first_node *node)
{
    bool is_live = node->generation & 1;
    return node->offset - (is_live ? node->as.live.left_padding : 0);
}

/* check.c: verifies every record. Returns CORRUPTED with a sentence. */
quire_result qi_first_check(const quire_space *space);

/* free_tree.c: the tree, ordered by offset. None of these allocates host memory. */
void qi_free_tree_insert(qi_first *f, uint32_t node);
void qi_free_tree_remove(qi_first *f, uint32_t node);

/* Call after a free node changed offset or size and kept its order in the tree. */
void qi_free_tree_update(qi_first *f, uint32_t node);

/*
 * The free range at the lowest address that holds `size` bytes at a multiple of `alignment`, or 0.
 */
uint32_t qi_free_tree_find(const qi_first *f, uint64_t size, uint64_t alignment);

/* Bytes of the largest free range; 0 if no range is free. */
uint64_t qi_free_tree_largest(const qi_first *f);

/* Verifies the tree; *count gets the number of its nodes. The records may be damaged. */
quire_result qi_free_tree_check(const qi_first *f, uint64_t *count);

#endif
