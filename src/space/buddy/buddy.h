/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * buddy.h - the records of the buddy fit: a bit for each free block, and a node for each live
 * range. Files outside this folder use the fit only through qi_buddy_fit. The space has no lock:
 * the caller serializes all calls.
 *
 * A region is cut into blocks of 2^order granules, each at a multiple of its own size. Places are
 * granules from the region's origin: the highest multiple of the largest alignment on the line that
 * is not above the region's start. A block is therefore aligned at its native address too, up to
 * that alignment, and the cut does not depend on the position of the region on the line.
 *
 * A free block is one bit in its region's bitmap of its order and nothing else; the bitmaps of all
 * orders take two bits per granule. A live range is a node in the list of its region. The list is
 * unordered until a walk or a check sorts it; walk and check change nothing else.
 *
 * Invariants:
 *  - the free blocks and live ranges of a region cover it without overlap
 *  - no free block has a free buddy of its order; the buddy is at place ^ size
 *  - region.orders has a bit set for each bitmap of the region that is not empty
 *  - order_regions[order] has a bit set for each region in which that bit is set; buddy.orders has
 *    a bit set for each of these sets that is not empty
 */
#ifndef QUIRE_SRC_SPACE_BUDDY_BUDDY_H
#define QUIRE_SRC_SPACE_BUDDY_BUDDY_H

#include "src/base/bitmap.h"
#include "src/space/space.h"

/* The line is shorter than 2^32 granules: the largest block has 2^31. */
enum { QI_ORDERS = 32 };

/* A live range. 32 bytes: two nodes per cache line, and none crosses a line. */
typedef struct qi_buddy_node {
    uint32_t generation; /* odd while live; first, followed by next, as pool.h requires */
    uint32_t next;       /* in the region's list; 0: the last */
    uint32_t before;     /* in the region's list; 0: the first */
    uint32_t place;
    uint32_t region;
    uint32_t order;
    uint64_t user;
} qi_buddy_node;

/* The layout of a region's bitmaps. Depends only on the start and size of the region. */
typedef struct qi_buddy_layout {
    uint32_t begin, end;       /* places */
    uint32_t order_count;      /* orders of which a block fits into the region */
    uint32_t word_count;       /* words of all bitmaps */
    uint32_t first[QI_ORDERS]; /* first word of the bitmap of each order */
} qi_buddy_layout;

typedef struct qi_buddy_region {
    uint64_t *words; /* the bitmaps; null if the region does not exist */
    uint64_t orders;
    uint32_t newest; /* head of the list of live ranges */
    qi_buddy_layout layout;
} qi_buddy_region;

typedef struct qi_buddy {
    quire_space space;        /* must be first: the part that all fits share */
    qi_buddy_node *nodes;     /* pool.items */
    qi_buddy_region *regions; /* by number */
    uint64_t *order_regions;  /* one bitmap of region numbers per order */
    uint32_t capacity;        /* of regions; also the size of those bitmaps */
    uint32_t stride;          /* words from one of these bitmaps to the next */
    uint32_t granule_shift;
    uint64_t orders;
    uint64_t free_count;
} qi_buddy;

/* A block of a region. */
typedef struct qi_block {
    uint32_t region;
    uint32_t order;
    uint32_t place;
} qi_block;

static inline qi_buddy *qi_buddy_of(quire_space *space)
{
    return (qi_buddy *)(void *)space;
}

static inline const qi_buddy *qi_buddy_of_const(const quire_space *space)
{
    return (const qi_buddy *)(const void *)space;
}

/* The order of the smallest block that holds `granules`, a number above 0. */
static inline uint32_t qi_order_of(uint64_t granules)
{
    return granules > 1 ? qi_highest_bit(granules - 1) + 1 : 0;
}

/* The size of the bitmap of an order. */
static inline uint32_t qi_buddy_size(const qi_buddy_layout *l, uint32_t order)
{
    return ((l->end - 1) >> order) - (l->begin >> order) + 1;
}

/* The index of a block in the bitmap of its order; not below its size for a place outside. */
static inline uint32_t qi_buddy_index(const qi_buddy_layout *l, uint32_t order, uint32_t place)
{
    return (place >> order) - (l->begin >> order);
}

/* The bitmap of the regions that have free blocks of an order. */
static inline uint64_t *qi_buddy_regions_of(const qi_buddy *b, uint32_t order)
{
    return b->order_regions + (size_t)order * b->stride;
}

/* Whether exactly this block is free. The place may lie outside the region. */
static inline bool qi_buddy_is_free(const qi_buddy_region *r, uint32_t order, uint32_t place)
{
    uint32_t index = qi_buddy_index(&r->layout, order, place);
    return r->orders >> order & 1 && index < qi_buddy_size(&r->layout, order) &&
           qi_bitmap_has(r->words + r->layout.first[order], index);
}

/* Add a block to the bitmaps or remove it. They neither split nor coalesce. */
void qi_buddy_add_free(qi_buddy *b, qi_block block);
void qi_buddy_remove_free(qi_buddy *b, qi_block block);

/* Ensures a spare node number, so that a later step cannot fail half way. May move the nodes. */
QUIRE_MUST_USE quire_result qi_buddy_reserve(qi_buddy *b);

/* Computes the layout of a region. */
qi_buddy_layout qi_buddy_lay_out(const qi_buddy *b, uint32_t region);

/* The order of the free block that starts at a place of a region; QI_ORDERS if none does. */
uint32_t qi_buddy_order_at(const qi_buddy_region *r, uint32_t place);

/* Sorts the list of a region's live ranges by address. */
void qi_buddy_sort(const qi_buddy *b, uint32_t region);

/* Fills in the placement of a live range. */
void qi_buddy_describe(const qi_buddy *b, uint32_t number, quire_placement *out);

/* Entries of the fit's table that are not in buddy.c, as fit.h describes them. */
quire_result qi_buddy_init(quire_space *space, const quire_space_options *options);
void qi_buddy_finish(quire_space *space);
quire_result qi_buddy_add_region(quire_space *space, uint32_t number);
bool qi_buddy_region_is_empty(const quire_space *space, uint32_t region);
void qi_buddy_remove_region(quire_space *space, uint32_t region);
bool qi_buddy_walk(const quire_space *space, uint32_t region,
                   bool (*visit)(void *, const quire_space_item *), void *user);
quire_result qi_buddy_check(const quire_space *space);
bool qi_buddy_in_use(const void *space, uint32_t number);
void qi_buddy_trim(quire_space *space);

#endif
