/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * segregated.h - the records of the segregated fit: a ring of all ranges in address order, and
 * lists of the free ones by size class and address. Also the functions that its files share. Files
 * outside this folder use the fit only through qi_segregated_fit.
 *
 * Every range, free or live, is a node. The nodes of a region form a ring in address order, closed
 * by a node of size 0 for the region itself. A free node is also in one list: there is one list per
 * size class and address bucket. A bucket is a section of the used part of the line. A class has 1,
 * 4 or 16 buckets; more nodes mean more buckets. Nodes refer to each other by number; 0 means none.
 *
 * The space has no lock: the caller serializes all calls.
 *
 * Invariants:
 *  - node.offset + node.size == offset of the next node of the ring, or the end of the region
 *  - no two neighbours in a ring are both free
 *  - a free node is in the list heads[class << row_shift | bucket] of its size and offset
 *  - fractions[list] is the fraction of the first node of that list
 *  - bits has a bit set for each list that is not empty; bit_words has a bit set for each word of
 *    bits that is not 0
 *  - if kinds are kept apart, a stretch of the granularity holds live ranges of one kind only
 *  - a node with a bit in is_hole is neither live nor free: a hole, or a piece of a reserved
 *    window, or a filler of a chunk that sleeps; holes do not touch, are whole chunks, and form the
 *    list first_hole
 */
#ifndef QUIRE_SRC_SPACE_SEGREGATED_SEGREGATED_H
#define QUIRE_SRC_SPACE_SEGREGATED_SEGREGATED_H

#include "src/space/segregated/buckets.h"
#include "src/space/segregated/classes.h"
#include "src/space/space.h"

/* 32 bytes: two nodes per cache line, and none crosses a line. */
typedef struct qi_node {
    uint32_t generation; /* odd while live; first, followed by next, as pool.h requires */
    uint32_t next;       /* free: next of the list; live: low half of the user value */
    uint32_t offset;     /* granules on the line */
    uint32_t size;       /* granules; 0 in the node of a region */
    uint32_t before;     /* neighbour below in the region's ring */
    uint32_t after;      /* neighbour above */
    uint32_t owner;      /* the region's number; of a live range with its kind, of a free one with
                            its fraction: see below */
    uint32_t back;       /* free: the node or, with QI_AT_HEAD, the list that points here.
                      live: high half of the user's value */
} qi_node;

/* Upper bound of the free ranges that one bounded search examines, for any request. */
enum { QI_MAX_EXAMINED = 90 };

#define QI_NO_LIST UINT32_MAX
#define QI_AT_HEAD UINT32_C(0x80000000)

/* Words of bits for the maximum number of lists, and one more in which a search may start. */
enum { QI_MAX_BIT_WORDS = QI_CLASS_LIMIT * QI_MAX_BUCKETS / 64 + 1 };

/* Freed nodes that deferred coalescing holds back; a power of two. */
enum { QI_DEFERRED_FREES = 32 };

/* Prefetching costs more than it saves while the records are in the cache: below so many nodes,
   which take 8 MB. */
enum { QI_PREFETCH_MIN_NODES = 250000 };

typedef struct qi_slabs qi_slabs;

typedef struct qi_segregated {
    quire_space space;  /* must be first: the part that all fits share */
    qi_node *nodes;     /* pool.items */
    uint64_t *is_free;  /* bit per node: testing a neighbour does not read its node */
    uint64_t *is_hole;  /* bit per node, see backing.c; null: no region has holes */
    uint64_t *bits;     /* bit per list with nodes; in one block with heads and fractions */
    uint32_t *heads;    /* first node per list */
    uint8_t *fractions; /* per list; 16 more bytes allow a 16-byte read at the last */
    uint32_t granule_shift;
    uint32_t bucket_shift;  /* granule offset >> bucket_shift is the bucket */
    uint32_t row_shift;     /* a class has 1 << row_shift buckets */
    uint32_t row_mask;      /* one bit per bucket of a class */
    uint32_t list_count;    /* lists in the tables: a multiple of 32 classes */
    uint32_t free_capacity; /* bits in is_free */
    uint32_t hole_capacity; /* bits in is_hole */
    uint32_t first_hole;    /* list of the holes that no window has reserved */
    uint32_t chunk;         /* granules that are backed together; 0: no region has holes */
    uint32_t first_aside;   /* chain of the numbers that are put aside, see asleep.c */
    uint32_t asleep_words;
    uint64_t *is_asleep; /* bit per chunk of the line, see asleep.c; null: none ever slept */
    uint32_t kind_mask;  /* granularity in granules - 1; 0: kinds may share a stretch */
    uint32_t tight_size; /* requests of so many granules search for a tight place first */
    uint32_t tail_size;  /* requests of so many granules take a range's upper end */
    qi_slabs *slabs;     /* null: option off */
    uint64_t bit_words[QI_MAX_BIT_WORDS / 64 + 1];

    /* Deferred coalescing, see deferred_coalescing.c. */
    uint32_t defer_from;     /* with so many nodes in use, frees are deferred */
    uint32_t deferred_total; /* deferred frees so far; modulo the ring size the oldest's place */
    uint32_t deferred[QI_DEFERRED_FREES]; /* ring of node numbers; 0: none */
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

/* A hole or a piece of a window. */
static inline bool qi_node_is_hole(const qi_segregated *s, uint32_t node)
{
    return s->is_hole && (s->is_hole[node / 64] >> node % 64 & 1) != 0;
}

/* Whether the chunk with this number on the line sleeps. */
static inline bool qi_chunk_sleeps(const qi_segregated *s, uint32_t number)
{
    return number / 64 < s->asleep_words && (s->is_asleep[number / 64] >> number % 64 & 1) != 0;
}

/*
 * node.owner, from the lowest bit: 23 bits region; 1 bit kind of a live range (1 means an image of
 * optimal tiling); 8 bits fraction of a free node, cached so that it is computed once. In a live
 * node the lowest of these 8 bits marks a node that carries a slab. In a node that is_hole has, it
 * marks a piece of a window, and the next three bits are the qi_piece.
 */
enum { QI_REGION_BITS = 23 };

#define QI_MAX_REGIONS (UINT32_C(1) << QI_REGION_BITS)
#define QI_OPTIMAL_MARK QI_MAX_REGIONS
#define QI_SLAB_MARK (QI_MAX_REGIONS << 1)
#define QI_RESERVED_MARK (QI_MAX_REGIONS << 1)
#define QI_PIECE_SHIFT (QI_REGION_BITS + 2)
#define QI_PIECE_MASK (UINT32_C(7) << QI_PIECE_SHIFT)

static inline uint32_t qi_node_region(const qi_node *node)
{
    return node->owner & (QI_MAX_REGIONS - 1);
}

/* A piece of a window. */
static inline bool qi_node_is_reserved(const qi_segregated *s, uint32_t node)
{
    return qi_node_is_hole(s, node) && (s->nodes[node].owner & QI_RESERVED_MARK) != 0;
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

/*
 * Ensures that `count` node numbers can be taken, so that a later step cannot fail half way.
 * Errors: OUT_OF_HOST_MEMORY, TOO_MANY_ALLOCATIONS. May move the nodes.
 */
QUIRE_MUST_USE quire_result qi_segregated_reserve(qi_segregated *s, uint32_t count);

/*
 * Extends the tables to the class of a range of `granules`, and the buckets to the used part of the
 * line. Fails with OUT_OF_HOST_MEMORY and then changes nothing. On success lists may have a new
 * order.
 */
QUIRE_MUST_USE quire_result qi_segregated_cover(qi_segregated *s, uint32_t granules);

/* Allocates the bits of is_hole for the first region with holes. Fails with OUT_OF_HOST_MEMORY. */
QUIRE_MUST_USE quire_result qi_segregated_cover_holes(qi_segregated *s);

/* Shrinks the tables to the capacity of the pool. Keeps them if host memory is exhausted. */
void qi_segregated_trim_tables(qi_segregated *s);

/* Releases the host memory of the tables. */
void qi_segregated_release_tables(qi_segregated *s);

/* Fills in the placement of a node; range and user are meaningful only for a live node. */
void qi_segregated_describe(const qi_segregated *s, uint32_t number, quire_placement *out);

/* The hot calls, see space.h: for spaces without options that need the general form. */
quire_result qi_segregated_fast_allocate(quire_space *space, uint64_t size, uint64_t alignment,
                                         uint64_t user, uint32_t flags, quire_placement *placement);
quire_result qi_segregated_fast_free(quire_space *space, quire_range range);
quire_result qi_segregated_allocate_batch(quire_space *space, uint64_t size, uint64_t alignment,
                                          uint32_t count, quire_placement *placements);

/* Whether frees may be deferred: the pool is large enough. */
static inline bool qi_segregated_defers(const qi_segregated *s)
{
    return s->space.pool.capacity > s->defer_from;
}

/* Selects the function that frees ranges. Called when the capacity of the pool has changed. */
void qi_segregated_choose_free(qi_segregated *s);

/*
 * Requires qi_segregated_defers. Defers a claimed node, and frees the one that was deferred first.
 */
void qi_segregated_defer_free(qi_segregated *s, uint32_t number);

/* Frees all deferred nodes. */
void qi_segregated_flush_deferred(quire_space *space);

/* Entries of the fit's table, as fit.h describes them. */
quire_result qi_segregated_allocate(quire_space *space, uint64_t size, uint64_t alignment,
                                    uint64_t user, uint32_t flags, quire_placement *placement);
quire_result qi_segregated_allocate_elsewhere(quire_space *space, const qi_avoided *avoided,
                                              uint64_t size, uint64_t alignment, uint64_t user,
                                              uint32_t flags, quire_placement *placement);
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

/* backing.c: makes all holes of a region free ranges. Needs no number. */
void qi_segregated_fill(qi_segregated *s, uint32_t region);
/* And the functions of qi_fit_backing. */
QUIRE_MUST_USE quire_result qi_segregated_hollow(quire_space *space, uint32_t region,
                                                 uint64_t chunk);
bool qi_segregated_find_window(const quire_space *space, uint64_t size, uint64_t alignment,
                               qi_window *window);
QUIRE_MUST_USE quire_result qi_segregated_reserve_window(quire_space *space, qi_window *window);
bool qi_segregated_find_hole(const quire_space *space, uint64_t size, qi_window *window);
bool qi_segregated_find_room(const quire_space *space, uint64_t size, uint64_t alignment,
                             qi_window *window);
bool qi_segregated_next_piece(const quire_space *space, const qi_window *window, qi_piece piece,
                              qi_chunk_run *run);
void qi_segregated_keep_window(quire_space *space, const qi_window *window, uint32_t user);
QUIRE_MUST_USE quire_result qi_segregated_part_of_window(quire_space *space,
                                                         const qi_window *window, uint64_t offset,
                                                         uint64_t size, qi_window *part);
void qi_segregated_mark_pieces(quire_space *space, const qi_window *part, qi_piece from,
                               qi_piece to);
void qi_segregated_open_window(quire_space *space, const qi_window *window);
void qi_segregated_close_window(quire_space *space, const qi_window *window);
QUIRE_MUST_USE quire_result qi_segregated_take_chunks(quire_space *space, uint64_t max, bool all,
                                                      qi_chunk_run *taken);
void qi_segregated_mark_waiting(quire_space *space, const qi_window *part, uint32_t number);
void qi_segregated_end_waiting(quire_space *space, const qi_window *window, uint32_t number);
uint64_t qi_segregated_free_count(const quire_space *space);

/* asleep.c: the functions of qi_fit_asleep, and what check.c verifies. */
extern const qi_fit_asleep qi_segregated_asleep;

#endif
