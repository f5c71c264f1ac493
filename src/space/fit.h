/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * fit.h - the interface that each fit (the placement algorithm of a space) implements: one table of
 * functions, qi_fit. The common code of src/space calls a fit only through its table.
 *
 * A fit owns its nodes, its free structures and the statistics live_bytes, padding_bytes and
 * live_count of the space; the common code owns everything else. A fit's own struct begins with a
 * quire_space. A fit has no lock: the caller of the space serializes all calls.
 *
 * The common code checks arguments before it calls a fit: sizes are above 0, alignments are powers
 * of two up to the space's largest, regions exist. A fit updates the sums of the invariant in
 * space.h with every change of its ranges.
 */
#ifndef QUIRE_SRC_SPACE_FIT_H
#define QUIRE_SRC_SPACE_FIT_H

#include "quire/space.h"

typedef struct qi_fit qi_fit;

/* Regions that a request is not placed in, or parts of them: `offset` is that of a free range. */
typedef struct qi_avoided {
    bool (*has)(const void *user, uint32_t region, uint64_t offset);
    const void *user;
} qi_avoided;

/* Flags of a request, combined with |. 0 means a bounded search for a linear resource. */
enum {
    QI_TRY = 1,        /* NO_SPACE records no error sentence: the caller has alternatives */
    QI_EXHAUSTIVE = 2, /* a full pass if the bounded search finds nothing */
    QI_OPTIMAL = 4,    /* an image of optimal tiling; passed only to fits with keeps_kinds_apart */
    QI_UPPER = 8,      /* from the upper end; passed only to fits with has_upper_end */
    QI_LOWEST = 16     /* at the lowest address; passed only to fits with has_lowest */
};

/* Ranges of one call to allocate_batch. */
enum { QI_MAX_BATCH = 64 };

/* Chunks in a row. */
typedef struct qi_chunk_run {
    uint32_t region;
    uint64_t offset, size; /* bytes in the region */
} qi_chunk_run;

/* What the stretches of a reserved window are. */
typedef enum qi_piece {
    QI_PIECE_HOLE = 0,
    QI_PIECE_BACKED,
    /* of a kept window: */
    QI_PIECE_FRESH,   /* backed by a call that has not ended */
    QI_PIECE_LEAVING, /* about to lose its memory */
    QI_PIECE_WAITING, /* backed until a point passes, whose number it has */
    QI_PIECE_ASLEEP   /* a hole that gets its memory back when its owner wakes */
} qi_piece;

/* A run of free ranges and holes, of which one request takes a part. */
typedef struct qi_window {
    uint32_t region;
    uint32_t node;         /* the fit's first node of it */
    uint64_t offset, size; /* bytes in the region; an edge that lies in a hole is that of a chunk */
    uint64_t unbacked;     /* bytes of it that are holes: whole chunks */
} qi_window;

/*
 * Chunks that sleep: they hold live ranges and have no memory. What is free in them serves no
 * request until they wake. `range` is a live range, and the chunk at `offset` of its region is one
 * that it touches. A space with slabs has no such chunks.
 */
typedef struct qi_fit_asleep {
    /* Puts node numbers aside for the free of one range, and gives them back. Each range that
       touches a chunk that sleeps has some. Fails as reserve_window. */
    quire_result (*set_aside)(quire_space *space);
    void (*take_aside)(quire_space *space);
    /* A chunk falls asleep if the user values of all its ranges satisfy the test, and it does not
       sleep already. Fails as reserve_window. */
    quire_result (*sleep_chunk)(quire_space *space, quire_range range, uint64_t offset,
                                bool (*test)(const void *user, uint64_t value), const void *user,
                                bool *falls_asleep);
    bool (*chunk_sleeps)(const quire_space *space, quire_range range, uint64_t offset);
    /* What is free in a chunk that sleeps serves requests again. */
    void (*wake_chunk)(quire_space *space, quire_range range, uint64_t offset);
    /* Frees a range for which numbers were put aside. A chunk that sleeps becomes a hole with its
       last range. */
    void (*free_asleep)(quire_space *space, quire_range range);
} qi_fit_asleep;

/*
 * Regions with holes: stretches without memory, in whole chunks. A hole is neither live nor free. A
 * fit that has these functions may have them in regions that were hollowed.
 */
typedef struct qi_fit_backing {
    /* Makes an empty region one hole. All such regions of a space have the same chunk, a power of
       two of granules. Fails with OUT_OF_HOST_MEMORY. */
    quire_result (*hollow)(quire_space *space, uint32_t region, uint64_t chunk);
    /* Finds the window that needs the fewest new chunks for a request; returns false if none has
       room. */
    bool (*find_window)(const quire_space *space, uint64_t size, uint64_t alignment,
                        qi_window *window);
    /* Finds the window of up to `size` bytes, whole chunks, at the start of the largest hole;
       returns false if there is no hole. */
    bool (*find_hole)(const quire_space *space, uint64_t size, qi_window *window);
    /* Takes a window that was found, with no change of the space since, from every search, until it
       is opened (all of it is free) or closed (as it was before). Fails with OUT_OF_HOST_MEMORY or
       TOO_MANY_ALLOCATIONS. */
    quire_result (*reserve_window)(quire_space *space, qi_window *window);
    void (*open_window)(quire_space *space, const qi_window *window);
    void (*close_window)(quire_space *space, const qi_window *window);
    /* The first piece of this kind in a reserved window above *run, {0} at first; false: there is
       none. */
    bool (*next_piece)(const quire_space *space, const qi_window *window, qi_piece piece,
                       qi_chunk_run *run);
    /* Finds the least hole with room for `size` bytes, whole chunks; returns false if there is
       none. */
    bool (*find_room)(const quire_space *space, uint64_t size, uint64_t alignment,
                      qi_window *window);
    /* A reserved window of whole chunks stays reserved: until it is closed, it is a live range for
       the walk, with this user value, below UINT32_MAX. Its node stays. */
    void (*keep_window)(quire_space *space, const qi_window *window, uint32_t user);
    /* Finds the pieces of whole chunks in a kept window. Fails as reserve_window. */
    quire_result (*part_of_window)(quire_space *space, const qi_window *window, uint64_t offset,
                                   uint64_t size, qi_window *part);
    /* The pieces of one kind in a part become pieces of another. Merges pieces that are alike:
       other parts of the window are invalid then. */
    void (*mark_pieces)(quire_space *space, const qi_window *part, qi_piece from, qi_piece to);
    /* The same from LEAVING to WAITING, with a number above 0; and of those with this number to
       LEAVING. */
    void (*mark_waiting)(quire_space *space, const qi_window *part, uint32_t number);
    void (*end_waiting)(quire_space *space, const qi_window *window, uint32_t number);
    /* Makes up to `max` whole free chunks in a row a hole. *taken has size 0 if none of the free
       ranges that were examined has a whole chunk: a few, or with `all` every one. Fails as
       reserve_window. */
    quire_result (*take_chunks)(quire_space *space, uint64_t max, bool all, qi_chunk_run *taken);
    const qi_fit_asleep *asleep;
} qi_fit_backing;

struct qi_fit {
    size_t state_size;        /* bytes of the fit's own struct */
    uint64_t default_granule; /* bytes, of a space whose size is not known when it is created */
    uint64_t least_granule;   /* bytes, the default of a space that is created with a small size */
    uint64_t max_granule;     /* bytes */
    uint64_t max_granules;    /* length of the line */
    uint32_t max_regions;     /* at a time; 0 means any number */
    uint32_t region_nodes; /* nodes that an empty region uses: its own and one free range; or 0 */

    bool has_segregated_options; /* accepts the options that belong to the segregated fit */
    quire_result (*init)(quire_space *space, const quire_space_options *options);
    void (*finish)(quire_space *space);

    /* The record of the region is complete. The fit turns the region into free ranges. */
    quire_result (*add_region)(quire_space *space, uint32_t region);
    bool (*region_is_empty)(const quire_space *space, uint32_t region);
    void (*remove_region)(quire_space *space, uint32_t region);

    /*
     * Moves the end of a region. A fit has both functions or neither; null means that regions keep
     * their size. The record of the region still has the old size. Growing: the line is long
     * enough; the fit may fail with OUT_OF_HOST_MEMORY or TOO_MANY_ALLOCATIONS and then changes
     * nothing. Shrinking: removes at most free_at_end bytes of a region that keeps some bytes, and
     * does not fail.
     */
    quire_result (*resize_region)(quire_space *space, uint32_t region, uint64_t size);
    uint64_t (*free_at_end)(const quire_space *space, uint32_t region); /* bytes */

    const qi_fit_backing *backing; /* null: regions have no holes */

    bool keeps_kinds_apart; /* false: range.c rounds ranges of optimal tiling to whole stretches */
    bool has_upper_end;
    bool has_lowest;
    bool refuses_at_once; /* a refusal takes constant time: the space need not remember it */
    bool clears_at_once; /* clear takes constant time, and the nodes need no renumbering after it */

    /*
     * Fails with NO_SPACE (without a sentence if `flags` has QI_TRY), OUT_OF_HOST_MEMORY or
     * TOO_MANY_ALLOCATIONS. Writes the placement only on success.
     */
    quire_result (*allocate)(quire_space *space, uint64_t size, uint64_t alignment, uint64_t user,
                             uint32_t flags, quire_placement *placement);

    /*
     * Allocates up to QI_MAX_BATCH equal ranges with one search. Arguments are valid; the
     * placements hold the user values. Returns NO_SPACE without a sentence if one search does not
     * find them all; the caller then allocates one by one. Null: the fit has no batch search.
     */
    quire_result (*allocate_batch)(quire_space *space, uint64_t size, uint64_t alignment,
                                   uint32_t count, quire_placement *placements);

    /*
     * The same outside some regions, in one that has live ranges: a bounded search. Returns
     * NO_SPACE without a sentence. Null: the fit does not move ranges out of regions.
     */
    quire_result (*allocate_elsewhere)(quire_space *space, const qi_avoided *avoided, uint64_t size,
                                       uint64_t alignment, uint64_t user, uint32_t flags,
                                       quire_placement *placement);

    /*
     * A free in two steps, for batches. claim makes a range stale and removes it from the
     * statistics. Then either release_claimed makes it free, or unclaim makes it live again; ranges
     * are unclaimed in reverse order.
     */
    bool (*claim)(quire_space *space, uint32_t slot, uint32_t generation);
    void (*unclaim)(quire_space *space, uint32_t slot);
    void (*release_claimed)(quire_space *space, uint32_t slot);

    /*
     * Prefetches the records that release_claimed touches. Null: prefetching costs more than it
     * saves.
     */
    void (*prefetch)(const quire_space *space, uint32_t slot);

    /* These three, and claim, return false if no live range has this slot and generation. */
    bool (*release)(quire_space *space, uint32_t slot, uint32_t generation);
    bool (*get)(const quire_space *space, uint32_t slot, uint32_t generation,
                quire_placement *placement);
    bool (*set_user)(quire_space *space, uint32_t slot, uint32_t generation, uint64_t user);

    void (*clear)(quire_space *space);
    uint64_t (*largest_free)(const quire_space *space); /* bytes */
    uint64_t (*free_count)(const quire_space *space);   /* free ranges that a walk visits */

    /*
     * For fits that serve a request with a block aligned to its own size: the bytes of that block,
     * or 0 if they exceed 64 bits. Null: a range has the size of the request in whole granules.
     */
    uint64_t (*block_size)(const quire_space *space, uint64_t size);

    /*
     * Completes deferred work. Called before every entry except those that allocate and free. Null:
     * the fit defers nothing.
     */
    void (*flush_deferred)(quire_space *space);

    /* Releases ranges that the fit caches, before a region must be empty. May be null. */
    void (*release_cached)(quire_space *space);

    /*
     * Allocates storage for the user value of a live range. Fails with OUT_OF_HOST_MEMORY. Null:
     * every record has that storage.
     */
    quire_result (*reserve_user)(quire_space *space, uint32_t slot, uint64_t user);

    /* Visits one region in address order. Returns false if the visit ended the walk. */
    bool (*walk)(const quire_space *space, uint32_t region,
                 bool (*visit)(void *user, const quire_space_item *item), void *user);

    /*
     * Verifies the fit's records. The caller verified only that pool.top is not above
     * pool.capacity; everything else may be damaged.
     */
    quire_result (*check)(const quire_space *space);

    /* Whether a node number names a range or a region. `space` is untyped for the pool. */
    bool (*in_use)(const void *space, uint32_t number);
    void (*trim)(quire_space *space);
};

/* Only space.c, which maps quire_fit to these, and the tests name a fit. */
extern const qi_fit qi_segregated_fit;
extern const qi_fit qi_first_fit;
extern const qi_fit qi_buddy_fit;
extern const qi_fit qi_linear_fit;

#endif
