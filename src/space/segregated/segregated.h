/*
 * segregated.h - the records of the segregated fit, shared by its algorithm (segregated.c), its
 * rare half (segregated_region.c) and its checker (segregated_check.c).
 *
 * Every range, free or live, is a node; the nodes of a region form a ring in address order, closed
 * by a node that stands for the region itself and has size 0. Free nodes are also in a list: one
 * list per size class and address bucket, where a bucket is a share of the line in use. A class has
 * 1, 4 or 16 buckets, the more the more nodes there are. Numbers, not pointers, name nodes; 0 is
 * none.
 *
 * Invariants:
 *  - node.offset + node.size == offset of the next node of its ring, or the end of the region
 *  - no two neighbours are both free
 *  - a free node is in the list heads[class << row_shift | bucket] of its size and offset, and
 *    fractions[list] is the fraction of the first node of that list
 *  - bits has the bit of each list that is not empty, and bit_words the bit of each word of bits
 *    that is not 0
 *  - with kinds kept apart: a stretch of the granularity holds live ranges of one kind only
 */
#ifndef QUIRE_SRC_SPACE_SEGREGATED_SEGREGATED_H
#define QUIRE_SRC_SPACE_SEGREGATED_SEGREGATED_H

#include "src/space/segregated/buckets.h"
#include "src/space/segregated/classes.h"
#include "src/space/space.h"

/* 32 bytes: two nodes a cache line, none across two. */
typedef struct qi_node {
    uint32_t generation; /* odd while live; first, with next, as pool.h wants it */
    uint32_t next;       /* free: next of its list. live: low half of the user's value */
    uint32_t offset;     /* granules on the line */
    uint32_t size;       /* granules; 0 in the node that stands for a region */
    uint32_t before;     /* neighbour below in the region's ring */
    uint32_t after;      /* neighbour above */
    uint32_t owner;      /* the region's number; of a live range with its kind, of a free one with
                            its fraction: see below */
    uint32_t back;       /* free: the node or, with QI_AT_HEAD, the list that points here.
                      live: high half of the user's value */
} qi_node;

/* Free ranges that one bounded search looks at, at most; aligned, refused or not. */
enum { QI_MAX_EXAMINED = 90 };

#define QI_NO_LIST UINT32_MAX
#define QI_AT_HEAD UINT32_C(0x80000000)

/* Words of bits for all lists there can be, with one more to start a search in. */
enum { QI_MAX_BIT_WORDS = QI_CLASS_LIMIT * QI_MAX_BUCKETS / 64 + 1 };

enum { QI_DEFERRED_FREES = 32 };

/*
 * Fetching records ahead costs more than it gains while they are near: below the first number all
 * are, below the second those that lists lead to.
 */
enum { QI_DEFER_MIN_NODES = 16000, QI_PREFETCH_MIN_NODES = 250000 };

typedef struct qi_slabs qi_slabs;

typedef struct qi_segregated {
    quire_space space;  /* first: the part all fits share */
    qi_node *nodes;     /* pool.items */
    uint64_t *is_free;  /* bit per node: testing a neighbour does not touch its node */
    uint64_t *bits;     /* bit per list that has nodes; one block with the two below */
    uint32_t *heads;    /* first node per list */
    uint8_t *fractions; /* per list, and 16 more to read beyond the last */
    uint32_t granule_shift;
    uint32_t bucket_shift;  /* granule offset >> bucket_shift is the bucket */
    uint32_t row_shift;     /* 1 << row_shift buckets a class */
    uint32_t row_mask;      /* a bit for each of them */
    uint32_t list_count;    /* lists the tables reach, 32 classes or a multiple */
    uint32_t free_capacity; /* bits in is_free */
    uint32_t kind_mask;     /* granules of the granularity - 1, where kinds are kept apart */
    uint32_t tight_size;    /* granules from which a tight place is examined for */
    uint32_t tail_size;     /* granules from which a request is cut from a range's upper end */
    uint32_t
        *deferred; /* QI_DEFERRED_FREES freed nodes not yet merged, 0: none; NULL: not asked for */
    qi_slabs *slabs;         /* NULL: not asked for */
    uint32_t deferred_total; /* counts them all; the oldest is at its place */
    uint64_t bit_words[QI_MAX_BIT_WORDS / 64 + 1];
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

/*
 * node.owner, from its lowest bit: 23 bits region, 1 bit kind of a live range (1: an image of
 * optimal tiling), 8 bits fraction of a listed one, kept here so that nobody computes it again; the
 * lowest of these is set in a live node that carries a slab.
 */
enum { QI_REGION_BITS = 23 };

#define QI_MAX_REGIONS (UINT32_C(1) << QI_REGION_BITS)
#define QI_OPTIMAL_MARK QI_MAX_REGIONS
#define QI_SLAB_MARK (QI_MAX_REGIONS << 1)

static inline uint32_t qi_node_region(const qi_node *node)
{
    return node->owner & (QI_MAX_REGIONS - 1);
}

static inline bool qi_node_is_optimal(const qi_node *node)
{
    return (node->owner & QI_OPTIMAL_MARK) != 0;
}

static inline bool qi_node_is_slab(const qi_node *node)
{
    return node->generation & 1 && node->owner & QI_SLAB_MARK;
}

static inline uint8_t qi_node_fraction(const qi_node *node)
{
    return (uint8_t)(node->owner >> (QI_REGION_BITS + 1));
}

static inline void qi_node_set_fraction(qi_node *node, uint32_t fraction)
{
    node->owner = qi_node_region(node) | fraction << (QI_REGION_BITS + 1);
}

static inline uint64_t qi_node_user(const qi_node *node)
{
    return (uint64_t)node->back << 32 | node->next;
}

/* Makes `count` node numbers spare, so that what follows cannot fail half way. */
QUIRE_MUST_USE quire_result qi_segregated_reserve(qi_segregated *s, uint32_t count);

/*
 * Lets the tables reach the class of a range of so many granules, and the buckets the line in use.
 * Fails with OUT_OF_HOST_MEMORY and changes nothing then; the links of free nodes may be others.
 */
QUIRE_MUST_USE quire_result qi_segregated_cover(qi_segregated *s, uint32_t granules);

/* Shrinks the tables to the nodes that the pool has. */
void qi_segregated_trim_tables(qi_segregated *s);

/* Returns the host memory of the tables. */
void qi_segregated_release_tables(qi_segregated *s);

/* Fills in where a node lies; range and user mean something for a live one only. */
void qi_segregated_describe(const qi_segregated *s, uint32_t number, quire_placement *out);

/* What a space calls where its options leave all as usual; see fit.h. */
quire_result qi_segregated_fast_allocate(quire_space *space, uint64_t size, uint64_t alignment,
                                         uint64_t user, uint32_t how, quire_placement *placement);
quire_result qi_segregated_fast_free(quire_space *space, quire_range range);
quire_result qi_segregated_allocate_batch(quire_space *space, uint64_t size, uint64_t alignment,
                                          uint32_t count, quire_placement *placements);

/* With s->deferred: lets a claimed node wait, and merges the one that waited longest. */
void qi_segregated_defer_free(qi_segregated *s, uint32_t number);

/* Merges all that waits. */
void qi_segregated_flush_deferred(quire_space *space);

/* The entries of the fit's table that are not in segregated.c, as fit.h wants them. */
quire_result qi_segregated_allocate(quire_space *space, uint64_t size, uint64_t alignment,
                                    uint64_t user, uint32_t how, quire_placement *placement);
quire_result qi_segregated_add_region(quire_space *space, uint32_t number);
bool qi_segregated_region_is_empty(const quire_space *space, uint32_t region);
void qi_segregated_remove_region(quire_space *space, uint32_t region);
quire_result qi_segregated_resize_region(quire_space *space, uint32_t number, uint64_t size);
uint64_t qi_segregated_free_at_end(const quire_space *space, uint32_t region);
uint64_t qi_segregated_largest_free(const quire_space *space);
bool qi_segregated_walk(const quire_space *space, uint32_t region,
                        bool (*visit)(void *, const quire_space_item *), void *user);
quire_result qi_segregated_check(const quire_space *space);
bool qi_segregated_in_use(const void *space, uint32_t number);
uint64_t qi_segregated_free_count(const quire_space *space);

#endif
