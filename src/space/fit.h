/*
 * fit.h - what a fit (the algorithm of a space) offers to space.c and range.c, and the part of a
 * space that all fits share.
 *
 * A fit's own struct begins with a quire_space. Arguments are valid when a fit is called: sizes are
 * above 0, alignments are powers of two up to the largest, regions exist. A fit keeps the sums of
 * the invariant below in step with its ranges.
 */
#ifndef QUIRE_SRC_SPACE_FIT_H
#define QUIRE_SRC_SPACE_FIT_H

#include "quire/space.h"
#include "src/base/host_memory.h"
#include "src/space/line.h"
#include "src/space/pool.h"

typedef struct qi_region {
    uint64_t start; /* bytes on the line */
    uint64_t size;
    uint64_t base; /* native address of its first byte */
    uint32_t node; /* the fit's node that stands for the region itself */
    bool used;
} qi_region;

typedef struct qi_fit qi_fit;

/*
 * Invariant: region_bytes == live_bytes + padding_bytes + (sum of the free ranges), and free
 * neighbours of one region never touch; those of the buddy fit do where they are no buddies, and
 * slots of a slab do.
 */
struct quire_space {
    const qi_fit *fit;

    /*
     * The two calls that a program makes millions of, whole: of their arguments only space and
     * placement are known to be there. qi_space_allocate and qi_space_free, which check, zero the
     * placement on failure and call the fit, unless the fit's init puts its own ones here.
     */
    quire_result (*allocate_range)(quire_space *space, uint64_t size, uint64_t alignment,
                                   uint64_t user, uint32_t how, quire_placement *placement);
    quire_result (*free_range)(quire_space *space, quire_range range);

    uint64_t granule;
    uint64_t max_alignment;
    uint64_t kind_mask; /* buffer_image_granularity - 1; 0: kinds may share */
    uint32_t tag;
    uint32_t region_count; /* in use */
    uint64_t region_bytes;
    uint64_t live_bytes;
    uint64_t padding_bytes;
    uint64_t live_count;
    uint64_t full_passes, full_pass_hits;
    uint64_t max_looked_at; /* free ranges, by one bounded search */
    qi_region *regions;     /* by number */
    uint32_t region_capacity;
    uint32_t region_hint; /* every lower number is in use */
    qi_line line;
    qi_pool pool; /* of the fit's nodes: one per live range at least, see region_nodes */
    qi_host host;
};

/* How a request is to be served, or'ed together; 0: a bounded search for a linear resource. */
enum {
    QI_TRY = 1,        /* finding nothing is no error: the caller has other ways */
    QI_EXHAUSTIVE = 2, /* a full pass after the bounded search */
    QI_OPTIMAL = 4,    /* an image of optimal tiling; only where the fit keeps kinds apart */
    QI_UPPER = 8       /* from the upper end; only where the fit has one */
};

enum { QI_MAX_TOGETHER = 64 };

struct qi_fit {
    size_t state_size;        /* of the fit's own struct */
    uint64_t default_granule; /* bytes */
    uint64_t max_granule;     /* bytes */
    uint64_t max_granules;    /* how far the line reaches */
    uint32_t max_regions;     /* at a time; 0: any number */
    uint32_t region_nodes;    /* an empty region takes: its own and that of its free range; or 0 */

    bool has_segregated_options; /* those that say so in quire/space.h */
    quire_result (*init)(quire_space *space, const quire_space_options *options);
    void (*finish)(quire_space *space);

    /* The region's place and size are filled in; the fit makes it one free range. */
    quire_result (*add_region)(quire_space *space, uint32_t region);
    bool (*region_is_empty)(const quire_space *space, uint32_t region);
    void (*remove_region)(quire_space *space, uint32_t region);

    /*
     * A region ends in another place; both are there or neither. The region's record still has its
     * old size. Growing, the line reaches far enough, and the fit fails with OUT_OF_HOST_MEMORY or
     * TOO_MANY_ALLOCATIONS and changes nothing then. Shrinking takes no more than free_at_end
     * tells, of a region that keeps some bytes, and does not fail. NULL: regions stay as they are.
     */
    quire_result (*resize_region)(quire_space *space, uint32_t region, uint64_t size);
    uint64_t (*free_at_end)(const quire_space *space, uint32_t region); /* bytes */

    bool keeps_kinds_apart; /* else range.c rounds ranges of optimal tiling to whole stretches */
    bool has_upper_end;
    bool clears_at_once; /* O(1), and the records need no new order afterwards */

    /*
     * Fails with NO_SPACE (without a sentence at QI_TRY), OUT_OF_HOST_MEMORY or
     * TOO_MANY_ALLOCATIONS; writes the placement on success only.
     */
    quire_result (*allocate)(quire_space *space, uint64_t size, uint64_t alignment, uint64_t user,
                             uint32_t how, quire_placement *placement);

    /*
     * Up to QI_MAX_TOGETHER equal ranges by one search, for valid arguments; the user values are
     * in the placements. NO_SPACE without a sentence where they cannot be had so: one by one they
     * may. NULL: they never can.
     */
    quire_result (*allocate_batch)(quire_space *space, uint64_t size, uint64_t alignment,
                                   uint32_t count, quire_placement *placements);

    /*
     * Freeing in two steps, for batches: a claimed range is not live any more, in the figures too,
     * and either becomes free by release_claimed or live again by unclaim, last claimed first.
     */
    bool (*claim)(quire_space *space, uint32_t slot, uint32_t generation);
    void (*unclaim)(quire_space *space, uint32_t slot);
    void (*release_claimed)(quire_space *space, uint32_t slot);

    /* Asks for records that releasing a claimed range will touch; NULL: they are near. */
    void (*fetch)(const quire_space *space, uint32_t slot);

    /* The three below, and claim, answer false when no live range has this slot and generation. */
    bool (*release)(quire_space *space, uint32_t slot, uint32_t generation);
    bool (*get)(const quire_space *space, uint32_t slot, uint32_t generation,
                quire_placement *placement);
    bool (*set_user)(quire_space *space, uint32_t slot, uint32_t generation, uint64_t user);

    void (*clear)(quire_space *space);
    uint64_t (*largest_free)(const quire_space *space); /* bytes */
    uint64_t (*free_count)(const quire_space *space);   /* free ranges, as a walk tells them */

    /*
     * Of fits that serve a request with a block aligned to its own size: the bytes of that block,
     * 0 when 64 bits cannot count them. NULL: ranges take whole granules.
     */
    uint64_t (*block_size)(const quire_space *space, uint64_t size);

    /*
     * Brings to an end what the fit put off, before anything but allocate and free is called. NULL:
     * it puts nothing off.
     */
    void (*settle)(quire_space *space);

    /* Gives up what the fit keeps in reserve, before a region is asked to be empty. May be NULL. */
    void (*shed)(quire_space *space);

    /*
     * Makes room for the user value of a live range. NULL: every record has it. Fails with
     * OUT_OF_HOST_MEMORY.
     */
    quire_result (*reserve_user)(quire_space *space, uint32_t slot, uint64_t user);

    /* Visits one region in address order; false when the visit ended the walk. */
    bool (*walk)(const quire_space *space, uint32_t region,
                 bool (*visit)(void *user, const quire_space_item *item), void *user);

    /*
     * Verifies the fit's own records; the numbers below pool.top are there, nothing else is known.
     */
    quire_result (*check)(const quire_space *space);

    /* Whether a number names a range or a region; takes the space, in the form the pool wants. */
    bool (*in_use)(const void *space, uint32_t number);
    void (*trim)(quire_space *space);
};

extern const qi_fit qi_segregated_fit;
extern const qi_fit qi_first_fit;
extern const qi_fit qi_buddy_fit;
extern const qi_fit qi_linear_fit;

/* Free ranges, told from the nodes in use, of fits that have a node for each. */
static inline uint64_t qi_space_free_count(const quire_space *space)
{
    return qi_pool_used(&space->pool) - space->live_count - space->region_count;
}

/* Whether a region is in use and says that this number is its node; any numbers may be given. */
static inline bool qi_space_is_region_node(const quire_space *space, uint32_t region, uint32_t node)
{
    return region < space->region_capacity && space->regions[region].used &&
           space->regions[region].node == node;
}

/* Asks for the record of a range ahead of its free; of any range it does no harm. */
static inline void qi_space_fetch(const quire_space *space, quire_range range)
{
    uintptr_t records = (uintptr_t)space->pool.items;
    __builtin_prefetch((const void *)(records + qi_handle_slot(range.id) * space->pool.item_size),
                       1);
}

/* The general form of the two calls, for any fit. */
quire_result qi_space_allocate(quire_space *space, uint64_t size, uint64_t alignment, uint64_t user,
                               uint32_t how, quire_placement *placement);
quire_result qi_space_free(quire_space *space, quire_range range);

/*
 * Several equal ranges, all or none, with user values in the placements; NO_SPACE without a
 * sentence.
 */
quire_result qi_space_allocate_batch(quire_space *space, uint64_t size, uint64_t alignment,
                                     quire_placement *placements, uint64_t count);

/* Visits one region that exists; false when the visit ended the walk. */
bool qi_space_walk_region(const quire_space *space, uint32_t region,
                          bool (*visit)(void *user, const quire_space_item *item), void *user);

/* The refusals that every fit gives, with the numbers of the case. */
quire_result qi_space_no_room(const quire_space *space, uint64_t size, uint64_t alignment,
                              uint32_t how);
quire_result qi_space_damaged(const char *what, uint32_t node);

/* The bytes of the range that a request of a size gets, slabs apart; true when they overflow. */
bool qi_space_range_overflows(const quire_space *space, uint64_t size, uint64_t *range);

/*
 * The bytes of an empty region that surely holds the request when its base is a multiple of `base`,
 * a power of two; true when they overflow.
 */
bool qi_space_region_overflows(const quire_space *space, uint64_t size, uint64_t alignment,
                               uint64_t base, uint64_t *bytes);

/*
 * Bytes of the free range that touches the end of a region that exists, once what is put off is
 * settled; 0 where a live range does, or the fit cannot tell. In constant time.
 */
uint64_t qi_space_free_at_end(const quire_space *space, uint32_t region);

/* The largest region that surely has a place behind the last one, whatever its base. */
uint64_t qi_space_line_left(const quire_space *space);

/* No larger region has a place anywhere on the line. */
uint64_t qi_space_line_max(const quire_space *space);

/*
 * A caller that only reads sees a space in which nothing is put off. Every space comes from the
 * heap, so that a pointer to a constant one is no promise that it cannot be written.
 */
static inline void qi_space_settle(const quire_space *space)
{
    if (space->fit->settle)
        space->fit->settle((quire_space *)(uintptr_t)space);
}

#endif
