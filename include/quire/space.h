/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/space.h - the range allocator alone: integers in, integers out.
 *
 * A space allocates ranges from regions that the caller adds and removes. It touches no memory but
 * its own records. Use it for ranges of anything: one large buffer, a file, descriptor heaps,
 * addresses of another process. Memories use it for the ranges of their pages.
 *
 *     quire_space *space = NULL;
 *     quire_space_create(&(quire_space_options){.size = 1 << 20}, &space);
 *     quire_placement at;
 *     quire_space_allocate(space, 1000, 256, 0, &at);       // at.offset, at.size, at.range
 *     quire_space_free(space, at.range);
 *     quire_space_destroy(&space);
 *
 * Internally all regions lie on one *line* of numbers, which limits their total size: see
 * quire_fit_options.granule.
 *
 * Thread-safety: a space has no lock. Calls on one space must not overlap; calls on different
 * spaces may.
 *
 * Errors of ranges: INVALID_ARGUMENT ({0}), STALE_HANDLE (freed or cleared), FOREIGN_HANDLE (of
 * another space).
 */
#ifndef QUIRE_SPACE_H
#define QUIRE_SPACE_H

#include "quire/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quire_space quire_space;

/* A handle of a range of one space; a plain value. {0} is no range. */
typedef struct quire_range {
    uint64_t id;
} quire_range;

/* The search algorithm of a space. */
typedef enum quire_fit {
    /*
     * Size classes with address buckets, over all regions at once. Takes a range of the request's
     * own class that is large enough, otherwise the range at the lowest address in the next class
     * that has any. Constant time. Left padding becomes a free range.
     *
     * While 250,000 ranges or more exist, live and free, a freed range merges with its neighbours
     * up to 32 frees later, so that their records are in the cache by then. Statistics, walks and
     * trims, and a search that finds nothing, merge all at once. Among so many ranges they
     * therefore influence later placements.
     */
    QUIRE_FIT_SEGREGATED = 0,
    /*
     * The lowest address that fits, byte-exact, in O(log n). The left padding belongs to the range.
     * Places and pads exactly as Lluvia's free-space manager does.
     */
    QUIRE_FIT_FIRST,
    /*
     * Blocks of a power of two of granules, each at a multiple of its own size. Takes the smallest
     * free block that is large and aligned enough and halves it down to the size of the request.
     * The time does not depend on the number of live ranges. The size of the placement is the size
     * of the block, so that sizes that are no power of two waste a quarter on average. A new region
     * is cut into the largest possible blocks. Free blocks merge only with the other half of the
     * block they were cut from, so that free ranges may touch. Needs two bits of host memory per
     * granule while the region exists.
     */
    QUIRE_FIT_BUDDY,
    /*
     * Stack, ring and double stack in one region, byte-exact, for data of a frame and other
     * transient data. A range is placed after the newest one, its left padding included. If it does
     * not fit there and nothing lies above, it is placed at the start of the region, up to the
     * oldest range. With `upper` a range is placed below the newest upper range, from the end of
     * the region downward; alignment gaps stay free there. Upper and other ranges share the region
     * until they meet.
     *
     * Ranges may be freed in any order. Freed bytes count as free at once. They are reused once
     * they lie after the newest range, before the oldest, or below the newest upper range: newest
     * first gives a stack, oldest first a ring. When only upper ranges are left, the next one
     * starts at offset 0. Every call on ranges takes constant time, including quire_space_clear at
     * the end of a frame, except for allocations that grow the records.
     *
     * A space with this fit has one region. Adding a second is WRONG_STATE.
     */
    QUIRE_FIT_LINEAR
} quire_fit;

/* The fit of a space or a memory and its parameters. {0}: the segregated fit and its defaults. */
typedef struct quire_fit_options {
    quire_fit algorithm; /* 0: segregated */
    /*
     * Requests of 64 KiB and more take the upper end of a free range. This separates small and
     * large ranges: fewer refusals in a nearly full space, a somewhat slower allocation. Requires
     * the segregated fit; other fits are INVALID_ARGUMENT.
     */
    bool least_fragmentation;
    /*
     * Ranges of up to 4 KiB share slabs of up to 256 KiB. This halves the time and needs a tenth of
     * the records. The cost: free slots serve only their own size class, and sizes are rounded up
     * to the alignment and then by at most an eighth (the placement has the size). Use it if most
     * ranges are small and much space is free. Requires the segregated fit; other fits are
     * INVALID_ARGUMENT.
     */
    bool slabs;
    /*
     * Smallest unit that is allocated, in bytes, a power of two up to 1 GiB; sizes are rounded up
     * to it. The line of the segregated and buddy fits has 2^32 - 1 granules (4 GiB with 1 byte,
     * 1 TiB with 256), that of the others 2^62 bytes. The regions and the alignment gaps between
     * them must fit on it.
     *
     * 0 selects by the fit. Segregated: 256 for memories and for spaces that are created without
     * `size`; with a size, 1, or the smallest power of two with which the size fits on the line.
     * Set a granule if you add more regions than that line holds. Buddy: 256, because it needs two
     * bits of host memory per granule; more if the size does not fit otherwise. First and linear:
     * 1; they accept no other. quire_space_stats and quire_memory_info report the granule.
     */
    uint64_t granule;
    /*
     * Largest alignment that a request may have, in bytes, a power of two up to 1 GiB; 0: 2 MiB. A
     * region starts on the line at a number congruent to its base modulo this alignment, so that
     * many small regions and a large alignment use much of the line.
     */
    uint64_t max_alignment;
    uint64_t unused[4]; /* must be zero */
} quire_fit_options;

typedef struct quire_space_options {
    quire_fit_options fit;
    /* Bytes of region 0, which is added at creation; 0: none, the caller adds regions. */
    uint64_t size;
    /*
     * Ranges for linear resources (buffers, linear images) and ranges for images of optimal tiling
     * never share an aligned block of this many bytes, counted from native address 0: Vulkan's
     * bufferImageGranularity. A power of two up to 1 GiB; max_alignment is raised to it. 0 or
     * 1: they may share, at no cost.
     */
    uint64_t buffer_image_granularity;
    const quire_host_memory *host_memory; /* copied; NULL: malloc and free */
    uint64_t unused[4];                   /* must be zero */
} quire_space_options;

/* One request. */
typedef struct quire_range_options {
    uint64_t size;      /* bytes, above 0 */
    uint64_t alignment; /* a power of two up to the largest alignment of the space; 0: 1 */
    uint64_t user;      /* value of the caller, stored with the range */
    bool bounded;       /* NO_SPACE after the bounded search: see quire_space_allocate */
    bool optimal;       /* for an image of optimal tiling: see buffer_image_granularity */
    bool upper;         /* linear fit: from the upper end; other fits: INVALID_ARGUMENT */
    /* At the lowest address of the line where the range fits, outside of slabs. The first fit does
       this for every request. The segregated fit examines every range below that address, so that
       the time grows with their number; `bounded` has no effect. Other fits: INVALID_ARGUMENT. */
    bool lowest;
    uint64_t unused[4]; /* must be zero */
} quire_range_options;

/* The position of a range. */
typedef struct quire_placement {
    quire_range range;
    uint32_t region; /* its number */
    uint32_t reserved;
    uint64_t offset;       /* bytes from the start of the region */
    uint64_t left_padding; /* bytes before `offset` that belong to the range */
    uint64_t size;         /* bytes: the request rounded up to the granule; with the buddy fit the
                              size of the block, with slabs that of the slot */
    uint64_t user;         /* value of the caller */
} quire_placement;

typedef struct quire_space_stats {
    uint64_t granule;       /* bytes, with the default resolved */
    uint64_t region_bytes;  /* sum of the regions */
    uint64_t live_bytes;    /* sum of the sizes of live ranges */
    uint64_t padding_bytes; /* sum of their left paddings */
    uint64_t free_bytes;    /* region_bytes == live_bytes + padding_bytes + free_bytes */
    /* Bytes of the largest free range, found by a look at one size class; with the linear fit, of
       the largest request, lower or upper, that would succeed. */
    uint64_t largest_free;
    uint64_t live_count;
    uint64_t free_count; /* free ranges; with the buddy fit free blocks */
    uint64_t region_count;
    uint64_t metadata_bytes; /* current host memory of the space's own records */
    uint64_t metadata_peak;  /* its maximum so far */
    uint64_t full_passes; /* full searches; a request that is refused without a search makes none */
    uint64_t full_pass_hits; /* full searches that found a range the bounded search had missed */
    uint64_t max_looked_at;  /* maximum number of free ranges that a bounded search examined */
    uint64_t unused[4];
} quire_space_stats;

/* One range on a walk, free or live. */
typedef struct quire_space_item {
    uint32_t region;
    bool is_free;
    uint64_t offset;       /* bytes from the start of the region */
    uint64_t left_padding; /* live ranges only */
    uint64_t size;
    quire_range range; /* live ranges only */
    uint64_t user;     /* live ranges only */
} quire_space_item;

/* ---- spaces and regions --------------------------------------------------------------------- */

/*
 * Creates a space. If options->size is not 0, adds region 0 with that size and base 0. NULL options
 * mean {0}.
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE (the region exceeds the line), OUT_OF_HOST_MEMORY.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_space_create(const quire_space_options *options,
                                                         quire_space **space);

/* Destroys a space with all its regions and ranges. Never fails. */
QUIRE_API void quire_space_destroy(quire_space **space);

/*
 * Adds a region of `size` bytes, a multiple of the granule above 0. `base` is the native address of
 * its first byte, a multiple of the granule; alignments hold for base + offset. Bases may be equal
 * and regions may overlap: quire does not compare regions. *region gets the lowest unused region
 * number. The last byte, base + size - 1, may have the address 2^64 - 1. The time is described at
 * quire_space_remove_region.
 * Errors: INVALID_ARGUMENT (also if the last byte lies beyond that address), WRONG_STATE (the
 * linear fit has its region), OUT_OF_RANGE (the line is full), OUT_OF_HOST_MEMORY.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_space_add_region(quire_space *space, uint64_t size,
                                                             uint64_t base, uint32_t *region);

/*
 * Removes a region without live ranges. Errors: INVALID_ARGUMENT (no such region), BUSY.
 *
 * The time of removing, and of adding into a gap between regions, grows with the number of regions.
 * Removing moves 16 bytes for each region that is higher on the line. Adding does the same, and
 * looks at the gaps below the one it takes. With 4,000 regions of one size this took 0.7 and 3
 * microseconds, with 64,000 it took 8 and 40. Adding after the last region takes constant time
 * while there is no gap. Few large regions cost less than many small ones.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_space_remove_region(quire_space *space,
                                                                uint32_t region);

/*
 * Changes the size of a region to `size` bytes, a multiple of the granule above 0. Growing adds
 * free bytes at the end and merges them with a free range there. Shrinking removes free bytes. Live
 * ranges keep their place and handle. The present size succeeds and changes nothing. Regions follow
 * each other closely on the line, so that a region can be sure to grow only while no region was
 * added after it. The segregated and first fits support this.
 * Errors: INVALID_ARGUMENT (no such region, or its last byte would lie beyond the address
 * 2^64 - 1), BUSY (a live range, or a slab with one, reaches beyond the new end), OUT_OF_RANGE (the
 * next region on the line is in the way, or the line ends), UNSUPPORTED (the buddy and linear fits,
 * for any size), OUT_OF_HOST_MEMORY, TOO_MANY_ALLOCATIONS (the space has no number left for a
 * range).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_space_resize_region(quire_space *space, uint32_t region,
                                                                uint64_t size);

/* ---- allocating and freeing ----------------------------------------------------------------- */

/*
 * Allocates `size` bytes, above 0, at a multiple of `alignment`, a power of two (0: 1), and stores
 * `user` with the range. NO_SPACE means that no free range can hold the request. Two options limit
 * which free ranges count: the linear fit uses the three ends that quire_fit describes, and a free
 * slot of a slab serves its own size class.
 *
 * A bounded search comes first. Its time does not depend on the number of ranges and regions. It
 * finds a range whenever a free range of at least size + alignment - granule bytes exists in a size
 * class above the request's, and most of those below. The buddy fit finds a range whenever a free
 * block of the larger of size and alignment exists. If the bounded search finds nothing, the full
 * search examines every free range that could hold the request, at most all of them. Set `bounded`
 * in quire_space_allocate_with to omit it.
 *
 * The space remembers what a full search did not find. It refuses a request that is at least as
 * large, at least as aligned and of the same tiling without a search, until a range is freed, the
 * space is cleared, or a region is added or grown.
 * Errors: INVALID_ARGUMENT, NO_SPACE, OUT_OF_HOST_MEMORY, TOO_MANY_ALLOCATIONS.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_space_allocate(quire_space *space, uint64_t size,
                                                           uint64_t alignment, uint64_t user,
                                                           quire_placement *placement);

/* Like quire_space_allocate, with all options. Errors as quire_space_allocate. */
QUIRE_API QUIRE_MUST_USE quire_result quire_space_allocate_with(quire_space *space,
                                                                const quire_range_options *options,
                                                                quire_placement *placement);

/*
 * Allocates `count` equal ranges, all or none. The caller sets placements[i].user; the call fills
 * in the rest. The segregated fit searches for up to 64 ranges at once, which then lie side by
 * side, if the size is a multiple of the alignment or the alignment is at most the granule. On
 * failure everything but the user values is zeroed. A count of 0 succeeds. Errors as
 * quire_space_allocate.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_space_allocate_batch(quire_space *space, uint64_t size,
                                                                 uint64_t alignment,
                                                                 quire_placement *placements,
                                                                 uint64_t count);

/* Frees a range. Never allocates host memory. Errors: those of ranges. */
QUIRE_API quire_result quire_space_free(quire_space *space, quire_range range);

/*
 * Frees `count` ranges, all or none. If one is not live or occurs twice, nothing is freed. Faster
 * than one by one in large spaces, because the records of all ranges are fetched at once. A count
 * of 0 succeeds. Errors: those of ranges.
 */
QUIRE_API quire_result quire_space_free_batch(quire_space *space, const quire_range *ranges,
                                              uint64_t count);

/*
 * Frees all ranges at once and keeps the regions. Takes time proportional to the peak number of
 * live ranges; constant time with the linear fit. Errors: INVALID_ARGUMENT.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_space_clear(quire_space *space);

/* ---- information ---------------------------------------------------------------------------- */

/* Writes the position of a range. Errors: those of ranges. */
QUIRE_API QUIRE_MUST_USE quire_result quire_space_get(const quire_space *space, quire_range range,
                                                      quire_placement *placement);

/*
 * Changes the caller's value of a range. Errors: those of ranges; with slabs also
 * OUT_OF_HOST_MEMORY, because the first nonzero value of a small range allocates the values of all.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_space_set_user(quire_space *space, quire_range range,
                                                           uint64_t user);

/* Writes the statistics. Errors: INVALID_ARGUMENT. */
QUIRE_API QUIRE_MUST_USE quire_result quire_space_get_stats(const quire_space *space,
                                                            quire_space_stats *stats);

/*
 * Calls `visit` for every range, free and live: regions by number, ranges of a region by address.
 * Returning false ends the walk. `visit` must not change the space. Errors: INVALID_ARGUMENT.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_space_walk(
    const quire_space *space, bool (*visit)(void *user, const quire_space_item *item), void *user);

/*
 * Verifies every record of the space, in time proportional to their number. Errors:
 * INVALID_ARGUMENT, CORRUPTED (the sentence names the first contradiction). Part of release builds,
 * for bug reports and tests.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_space_check(const quire_space *space);

/*
 * Releases host memory that a past peak left unused, in time proportional to that peak. Never
 * fails. Records that cannot be moved stay, and so do records that more than 16 million ranges have
 * used. quire_space_remove_region does this itself when fewer than an eighth of the records are in
 * use.
 */
QUIRE_API void quire_space_trim(quire_space *space);

#ifdef __cplusplus
}
#endif

#endif
