/*
 * buddy.h - the records of the buddy fit, shared by its algorithm (buddy.c), its rare half
 * (buddy_region.c) and its check (buddy_check.c).
 *
 * A region is cut into blocks of 2^order granules, each at a multiple of its own size. Places are
 * granules counted from the region's origin: the last multiple of the largest alignment on the line
 * that is not above the region's start. Up to that alignment a block is so aligned at its native
 * address too, and the cut does not depend on where on the line the region lies.
 *
 * A free block is a bit in its region's bitmap of its order, and nothing else: the bitmaps of all
 * orders take two bits a granule. A live range is a node, in the list of its region. That list has
 * no order until a walk or a check sorts it; this is all they ever change.
 *
 * Invariants:
 *  - the free blocks and live ranges of a region cover it, and none overlaps another
 *  - no free block has a free buddy of its order, which is at place ^ size
 *  - region.orders has the bit of each bitmap of the region that is not empty
 *  - order_regions[order] has the regions in which that bit is set, and buddy.orders the bit of
 *    each of these sets that is not empty
 */
#ifndef QUIRE_SRC_SPACE_BUDDY_BUDDY_H
#define QUIRE_SRC_SPACE_BUDDY_BUDDY_H

#include "src/space/bitmap.h"
#include "src/space/space.h"

/* The line ends below 2^32 granules, so that no block is larger than half of that. */
enum { QI_ORDERS = 32 };

/* A live range; 32 bytes: two nodes a cache line, none across two. */
typedef struct qi_buddy_node {
    uint32_t generation; /* odd while live; first, with next, as pool.h wants it */
    uint32_t next;       /* of the region's list; 0: the last */
    uint32_t before;     /* of the region's list; 0: the first */
    uint32_t place;
    uint32_t region;
    uint32_t order;
    uint64_t user;
} qi_buddy_node;

/* How the bitmaps of a region lie; follows from its start and size alone. */
typedef struct qi_buddy_layout {
    uint32_t begin, end;       /* places */
    uint32_t order_count;      /* a block of the highest order fits, one of a higher does not */
    uint32_t word_count;       /* of all bitmaps */
    uint32_t first[QI_ORDERS]; /* word of the bitmap of each order */
} qi_buddy_layout;

typedef struct qi_buddy_region {
    uint64_t *words; /* the bitmaps; NULL while there is no such region */
    uint64_t orders;
    uint32_t newest; /* first of the list of live ranges */
    qi_buddy_layout layout;
} qi_buddy_region;

typedef struct qi_buddy {
    quire_space space;        /* first: the part all fits share */
    qi_buddy_node *nodes;     /* pool.items */
    qi_buddy_region *regions; /* by number */
    uint64_t *order_regions;  /* per order a bitmap of region numbers */
    uint32_t capacity;        /* of regions, and the size of those bitmaps */
    uint32_t stride;          /* words from one of them to the next */
    uint32_t granule_shift;
    uint64_t orders;
    uint64_t free_count;
} qi_buddy;

/* A place and size in a region. */
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

/* The order of the smallest block that holds so many granules, above 0. */
static inline uint32_t qi_order_of(uint64_t granules)
{
    return granules > 1 ? qi_highest_bit(granules - 1) + 1 : 0;
}

/* How many numbers the bitmap of an order has. */
static inline uint32_t qi_buddy_size(const qi_buddy_layout *l, uint32_t order)
{
    return ((l->end - 1) >> order) - (l->begin >> order) + 1;
}

/* The number of a block in the bitmap of its order; none of that for a place outside the region. */
static inline uint32_t qi_buddy_index(const qi_buddy_layout *l, uint32_t order, uint32_t place)
{
    return (place >> order) - (l->begin >> order);
}

/* The bitmap of the regions that have free blocks of an order. */
static inline uint64_t *qi_buddy_regions_of(const qi_buddy *b, uint32_t order)
{
    return b->order_regions + (size_t)order * b->stride;
}

/* Whether that very block is free; the place may lie outside the region. */
static inline bool qi_buddy_is_free(const qi_buddy_region *r, uint32_t order, uint32_t place)
{
    uint32_t index = qi_buddy_index(&r->layout, order, place);
    return r->orders >> order & 1 && index < qi_buddy_size(&r->layout, order) &&
           qi_bitmap_has(r->words + r->layout.first[order], index);
}

/* Puts a block into the bitmaps or takes it out, as it is: no split, no merge. */
void qi_buddy_add_free(qi_buddy *b, qi_block block);
void qi_buddy_remove_free(qi_buddy *b, qi_block block);

/* Makes a node number spare, so that what follows cannot fail half way. */
QUIRE_MUST_USE quire_result qi_buddy_reserve(qi_buddy *b);

/* The layout of a region at its place on the line. */
qi_buddy_layout qi_buddy_lay_out(const qi_buddy *b, uint32_t region);

/* The free block that begins at a place of a region; QI_ORDERS when there is none. */
uint32_t qi_buddy_order_at(const qi_buddy_region *r, uint32_t place);

/* Puts the list of a region's live ranges into address order. */
void qi_buddy_sort(const qi_buddy *b, uint32_t region);

/* Fills in where a live range lies. */
void qi_buddy_describe(const qi_buddy *b, uint32_t number, quire_placement *out);

/* The rare entries of the fit's table, as fit.h wants them. */
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
