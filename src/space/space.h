/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * space.h - the record of a space, and the functions that the rest of the library calls: src/api
 * for stand-alone spaces, a memory for the space of each of its shards.
 *
 * A space owns its regions, their places on the line and, through its fit, its ranges. It has no
 * lock: the caller serializes all calls on one space. A memory holds the lock of the shard.
 *
 * Pointers must not be null and regions must exist; src/api checks both for callers outside the
 * library. Sizes, addresses, alignments and range identities are checked here, because a memory
 * passes on the values that its callers and its backend gave it.
 */
#ifndef QUIRE_SRC_SPACE_SPACE_H
#define QUIRE_SRC_SPACE_SPACE_H

#include "quire/space.h"
#include "src/base/host_memory.h"
#include "src/space/fit.h"
#include "src/space/line.h"
#include "src/space/pool.h"
#include "src/space/refusals.h"

typedef struct qi_region {
    uint64_t start; /* offset on the line, bytes */
    uint64_t size;
    uint64_t base; /* native address of the first byte */
    uint32_t node; /* the fit's node for the region itself */
    bool used;
    bool is_closed; /* to ranges from elsewhere: qi_space_allocate_elsewhere passes it over */
} qi_region;

/* What the sentence of a refusal reports, in bytes. */
typedef struct qi_room {
    uint64_t free;
    uint64_t largest_free;
    uint64_t largest_region;
} qi_room;

/*
 * Invariants:
 *  - region_bytes == live_bytes + padding_bytes + the sum of the free ranges
 *  - free ranges of one region never touch. Exceptions: free blocks of the buddy fit touch if they
 *    are not buddies, and free slots of one slab touch.
 */
struct quire_space {
    const qi_fit *fit;

    /*
     * The two calls of the hot path. The caller guarantees only that space and placement are not
     * null. By default these are qi_space_allocate and qi_space_free, which check their arguments
     * and call the fit; the fit's init may replace them with its own versions, free_range with
     * qi_space_set_free. On failure allocate_range zeroes the placement.
     */
    quire_result (*allocate_range)(quire_space *space, uint64_t size, uint64_t alignment,
                                   uint64_t user, uint32_t flags, quire_placement *placement);
    quire_result (*free_range)(quire_space *space, quire_range range);

    /* free_range while the space remembers no refusals. While it does, free_range forgets them
       first, so that a free pays for refusals only if there are any. */
    quire_result (*usual_free)(quire_space *space, quire_range range);

    uint64_t granule;
    uint64_t max_alignment;
    uint64_t kind_mask; /* buffer_image_granularity - 1; 0 means that kinds may share a stretch */
    uint32_t tag;
    uint32_t region_count; /* regions in use */
    uint64_t region_bytes; /* without hole_bytes */
    uint64_t hole_bytes;   /* of regions: holes, and windows that are reserved */
    uint64_t hole_nodes;   /* the fit's nodes for these */
    uint64_t asleep_bytes; /* of live ranges, in chunks that sleep: they have no memory */
    uint64_t live_bytes;
    uint64_t padding_bytes;
    uint64_t live_count;
    uint64_t full_passes, full_pass_hits;
    uint64_t max_looked_at; /* most free ranges that one bounded search examined */
    qi_region *regions;     /* by region number */
    uint32_t region_capacity;
    uint32_t region_hint; /* every lower region number is in use */
    qi_line line;
    qi_pool pool; /* the fit's nodes: at least one per live range, see qi_fit.region_nodes */
    qi_host host;
    qi_refusals refusals;
    qi_room room; /* see qi_space_no_room */
};

/* ---- creation and regions ------------------------------------------------------------------ */

/*
 * Creates a space and, if options->size is not 0, its first region. Null options mean {0}. On
 * failure *space is null.
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE (the line is shorter than the region),
 * OUT_OF_HOST_MEMORY.
 */
QUIRE_MUST_USE quire_result qi_space_create(const quire_space_options *options,
                                            quire_space **space);

/* Destroys a space with its regions and ranges. Null is allowed. */
void qi_space_destroy(quire_space *space);

/* Frees all ranges and keeps the regions. */
void qi_space_clear(quire_space *space);

/* Returns host memory that a past peak needed and the present state does not. */
void qi_space_trim(quire_space *space);

static inline bool qi_space_has_region(const quire_space *space, uint32_t region)
{
    return region < space->region_capacity && space->regions[region].used;
}

/* Errors: INVALID_ARGUMENT, WRONG_STATE (the fit has its maximum), OUT_OF_RANGE,
   OUT_OF_HOST_MEMORY. */
QUIRE_MUST_USE quire_result qi_space_add_region(quire_space *space, uint64_t size, uint64_t base,
                                                uint32_t *region);

/* Returns BUSY if the region has live ranges. */
QUIRE_MUST_USE quire_result qi_space_remove_region(quire_space *space, uint32_t region);

/* Errors: as quire_space_resize_region. A failed call changes nothing. */
QUIRE_MUST_USE quire_result qi_space_resize_region(quire_space *space, uint32_t region,
                                                   uint64_t size);

/*
 * Bytes of the free range at the end of a region, after deferred work is completed. 0 if a live
 * range touches the end or the fit cannot answer. Constant time.
 */
uint64_t qi_space_free_at_end(const quire_space *space, uint32_t region);

/* Size of the largest region that certainly fits after the last one on the line, for any base. */
uint64_t qi_space_line_left(const quire_space *space);

/* Upper bound: no larger region fits anywhere on the line. */
uint64_t qi_space_line_max(const quire_space *space);

/* ---- holes --------------------------------------------------------------------------------- */

/*
 * The functions of qi_fit_backing, for the segregated fit, with deferred work completed first.
 */

/* As qi_space_add_region, with a region that is one hole after its first `backed` bytes, which are
   free. Both sizes are multiples of the chunk. */
QUIRE_MUST_USE quire_result qi_space_add_hole(quire_space *space, uint64_t size, uint64_t backed,
                                              uint64_t base, uint64_t chunk, uint32_t *region);
bool qi_space_find_window(const quire_space *space, uint64_t size, uint64_t alignment,
                          qi_window *window);
bool qi_space_find_hole(const quire_space *space, uint64_t size, qi_window *window);
QUIRE_MUST_USE quire_result qi_space_reserve_window(quire_space *space, qi_window *window);
bool qi_space_next_piece(const quire_space *space, const qi_window *window, qi_piece piece,
                         qi_chunk_run *run);
bool qi_space_find_room(const quire_space *space, uint64_t size, uint64_t alignment,
                        qi_window *window);
void qi_space_keep_window(quire_space *space, const qi_window *window, uint32_t user);
QUIRE_MUST_USE quire_result qi_space_part_of_window(quire_space *space, const qi_window *window,
                                                    uint64_t offset, uint64_t size,
                                                    qi_window *part);
void qi_space_mark_waiting(quire_space *space, const qi_window *part, uint32_t number);
void qi_space_end_waiting(quire_space *space, const qi_window *window, uint32_t number);
void qi_space_mark_pieces(quire_space *space, const qi_window *part, qi_piece from, qi_piece to);
void qi_space_open_window(quire_space *space, const qi_window *window);
void qi_space_close_window(quire_space *space, const qi_window *window);
QUIRE_MUST_USE quire_result qi_space_take_chunks(quire_space *space, uint64_t max, bool all,
                                                 qi_chunk_run *taken);

/* The functions of qi_fit_asleep, likewise. */
QUIRE_MUST_USE quire_result qi_space_set_aside(quire_space *space);
void qi_space_take_aside(quire_space *space);
QUIRE_MUST_USE quire_result qi_space_sleep_chunk(quire_space *space, quire_range range,
                                                 uint64_t offset,
                                                 bool (*test)(const void *user, uint64_t value),
                                                 const void *user, bool *falls_asleep);
bool qi_space_chunk_sleeps(const quire_space *space, quire_range range, uint64_t offset);
void qi_space_wake_chunk(quire_space *space, quire_range range, uint64_t offset);
void qi_space_free_asleep(quire_space *space, quire_range range);

/* ---- ranges -------------------------------------------------------------------------------- */

/* The default of allocate_range and free_range, for every fit. */
quire_result qi_space_allocate(quire_space *space, uint64_t size, uint64_t alignment, uint64_t user,
                               uint32_t flags, quire_placement *placement);
quire_result qi_space_free(quire_space *space, quire_range range);

/*
 * Allocates `count` equal ranges, all or none. placements[i].user holds the user values. `flags` is
 * 0 or QI_EXHAUSTIVE. Returns NO_SPACE without recording an error sentence; on failure only the
 * user values are defined.
 */
quire_result qi_space_allocate_batch(quire_space *space, uint64_t size, uint64_t alignment,
                                     uint32_t flags, quire_placement *placements, uint64_t count);

/*
 * Allocates a range outside some regions, in one that has live ranges and is not closed, as
 * allocate_range with QI_TRY: by a bounded search, and the space remembers no refusal. `flags` is 0
 * or QI_OPTIMAL. Requires a fit that has the function.
 */
QUIRE_MUST_USE quire_result qi_space_allocate_elsewhere(quire_space *space,
                                                        const qi_avoided *avoided, uint64_t size,
                                                        uint64_t alignment, uint64_t user,
                                                        uint32_t flags, quire_placement *placement);

/* Frees `count` ranges, all or none. */
quire_result qi_space_free_batch(quire_space *space, const quire_range *ranges, uint64_t count);

quire_result qi_space_get(const quire_space *space, quire_range range, quire_placement *placement);
quire_result qi_space_set_user(quire_space *space, quire_range range, uint64_t user);

/* Prefetches the record of a range that is freed soon. Safe for any range value. */
static inline void qi_space_fetch(const quire_space *space, quire_range range)
{
    uintptr_t records = (uintptr_t)space->pool.items;
    __builtin_prefetch((const void *)(records + qi_handle_slot(range.id) * space->pool.item_size),
                       1);
}

/* Bytes of the range that a request of `size` receives, slabs ignored. Returns true on overflow. */
bool qi_space_range_overflows(const quire_space *space, uint64_t size, uint64_t *range);

/*
 * Bytes of an empty region that certainly holds the request if the region's base is a multiple of
 * `base`, a power of two. Returns true on overflow.
 */
bool qi_space_region_overflows(const quire_space *space, uint64_t size, uint64_t alignment,
                               uint64_t base, uint64_t *bytes);

/* ---- inspection ---------------------------------------------------------------------------- */

void qi_space_get_stats(const quire_space *space, quire_space_stats *stats);
uint64_t qi_space_largest_free(const quire_space *space); /* bytes */

/*
 * Visits the ranges of all regions, or of one region, in address order within a region. The visit
 * returns false to end the walk; qi_space_walk_region then returns false.
 */
void qi_space_walk(const quire_space *space,
                   bool (*visit)(void *user, const quire_space_item *item), void *user);
bool qi_space_walk_region(const quire_space *space, uint32_t region,
                          bool (*visit)(void *user, const quire_space_item *item), void *user);

/* Verifies every record. Returns CORRUPTED with a sentence that names the first contradiction. */
quire_result qi_space_check(const quire_space *space);

/* ---- for fits ------------------------------------------------------------------------------ */

/* Replaces the function that frees a range. */
void qi_space_set_free(quire_space *space,
                       quire_result (*free_range)(quire_space *space, quire_range range));

/*
 * Forgets what the space refused. Called by everything that can create or enlarge a free range,
 * except what returns a range that was allocated after the last refusal.
 */
static inline void qi_space_forget_refusals(quire_space *space)
{
    space->refusals.any = false;
    space->free_range = space->usual_free;
}

/* The errors that every fit reports. qi_space_no_room records no sentence if `flags` has QI_TRY. */
quire_result qi_space_no_room(quire_space *space, uint64_t size, uint64_t alignment,
                              uint32_t flags);
/* For `count` ranges, of which none remains allocated. */
quire_result qi_space_no_room_for(quire_space *space, uint64_t count, uint64_t size,
                                  uint64_t alignment);
quire_result qi_space_damaged(const char *what, uint32_t node);

/* Free ranges of fits that have a node for every range, free or live, and for every region. */
static inline uint64_t qi_space_free_count(const quire_space *space)
{
    return qi_pool_used(&space->pool) - space->live_count - space->region_count - space->hole_nodes;
}

/* Whether `node` is the node of region `region`. Both may be any number. */
static inline bool qi_space_is_region_node(const quire_space *space, uint32_t region, uint32_t node)
{
    return qi_space_has_region(space, region) && space->regions[region].node == node;
}

/*
 * Completes the work that the fit deferred, so that a reader sees a space without any. Casting
 * const away is allowed: every space is allocated from the heap, never defined const.
 */
static inline void qi_space_flush_deferred(const quire_space *space)
{
    if (space->fit->flush_deferred)
        space->fit->flush_deferred((quire_space *)(uintptr_t)space);
}

#endif
