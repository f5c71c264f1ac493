/*
 * quire/space.h - the pure range allocator, usable alone: integers in, integers out.
 *
 * A space is a line of bytes of which regions are added and removed; ranges are allocated from the
 * regions. It touches no memory but its own records. Use it for ranges of anything: one large
 * buffer, a file, descriptor heaps, addresses of another process.
 *
 *     quire_space *space = NULL;
 *     quire_space_create(&(quire_space_options){.size = 1 << 20}, &space);
 *     quire_placement at;
 *     quire_space_allocate(space, 1000, 256, 0, &at);       // at.offset, at.size, at.range
 *     quire_space_free(space, at.range);
 *     quire_space_destroy(&space);
 *
 * Thread-safety: a space has no lock; calls on one space must not overlap, calls on different
 * spaces may.
 */
#ifndef QUIRE_SPACE_H
#define QUIRE_SPACE_H

#include "quire/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quire_space quire_space;

/* A range of one space; {0} is none. Using one after its free or a clear is STALE_HANDLE. */
typedef struct quire_range {
    uint64_t id;
} quire_range;

/* How a space searches. */
typedef enum quire_fit {
    /*
     * Size classes with address buckets, over all regions at once: a range of the request's class
     * that is large enough, else the lowest address in the next class that has any. Constant time;
     * left padding goes back as a free range.
     */
    QUIRE_FIT_SEGREGATED = 0,
    /*
     * The lowest address that fits, byte-exact, in O(log n); the left padding belongs to the range.
     * Places and pads exactly as Lluvia's free-space manager does.
     */
    QUIRE_FIT_FIRST,
    /*
     * Blocks of a power of two of granules, each at a multiple of its own size: the smallest that
     * is free and large and aligned enough is halved down to the request's. No step depends on how
     * many ranges live. The placement's size is that of the block, so that other sizes than powers
     * of two waste a quarter on average. A region is cut into the largest such blocks; free blocks
     * merge with the other half of what they were cut from, and with nothing else, so that free
     * ranges may touch. Takes two bits of host memory a granule, as long as a region is there.
     */
    QUIRE_FIT_BUDDY,
    /*
     * Stack, ring and two stacks in one region, byte-exact, for per-frame and transient data. A
     * range is put behind the newest one, its left padding included; where it does not fit there
     * and nothing lies above, at the start of the region, up to the oldest one. With `upper` it is
     * put below the newest upper one, from the end of the region downward; what alignment costs
     * there stays a free range. Upper and other ranges share the region until they meet.
     *
     * Ranges may be freed in any order. What was freed is free bytes at once, and is handed out
     * again when it lies behind the newest range, in front of the oldest, or below the newest upper
     * one: newest first makes a stack, oldest first a ring. When all but the upper ones are free,
     * the next one begins at offset 0. Every call on ranges takes a fixed number of steps,
     * quire_space_clear too, however many live (but for allocations that grow the records); that
     * makes one the end of a frame.
     *
     * A space of this fit has one region: a second is refused with WRONG_STATE.
     */
    QUIRE_FIT_LINEAR
} quire_fit;

typedef struct quire_space_options {
    quire_fit fit;
    /* The three below belong to the segregated fit; the others refuse them. */
    /*
     * Requests of 64 KiB and more take the upper end of a free range, which keeps small and large
     * ones apart: fewer refusals when nearly full, a somewhat slower allocation.
     */
    bool least_fragmentation;
    /*
     * From 16,000 ranges on, a freed range waits behind 31 others before it merges with its
     * neighbours, while their records are fetched: faster frees in spaces too large for the caches.
     * What waits is merged at once when a request finds no place, and before any figure or walk.
     */
    bool deferred_coalescing;
    /*
     * Ranges of up to 4 KiB share slabs of up to 256 KiB: half the time and a tenth of the records,
     * for the room of slots that stay free, which serve their own sizes only, and of sizes rounded
     * up to the alignment and then by at most an eighth (the placement tells the size). For spaces
     * of which most ranges are small and much is free.
     */
    bool slabs;
    /* Bytes of a region added at creation, region 0; 0: none, add regions yourself. */
    uint64_t size;
    /*
     * Smallest unit handed out, a power of two; sizes are rounded up to it. 0: 256 for the
     * segregated and the buddy fit and 1 for the first and linear fits, which take no other. The
     * line of the segregated and the buddy fit has 2^32 - 1 granules (1 TiB with 256 bytes), that
     * of the others 2^62 bytes; regions and the gaps that their alignment leaves between them have
     * to fit on it.
     */
    uint64_t granule;
    /*
     * Largest alignment that may be asked for, a power of two up to 1 GiB; 0: 2 MiB. A region is
     * laid at a place of the line congruent to its base modulo this alignment, so that many small
     * regions and a large one take much of the line.
     */
    uint64_t max_alignment;
    /*
     * Ranges for linear resources (buffers, linear images) and for images of optimal tiling never
     * share an aligned stretch of this many bytes, counted from native address 0: Vulkan's
     * bufferImageGranularity, a power of two up to 1 GiB. Raises max_alignment to it. 0 or 1:
     * they may share, and nothing is spent on it.
     */
    uint64_t buffer_image_granularity;
    const quire_host_memory *host_memory; /* NULL: malloc and free */
    uint64_t unused[4];                   /* must be zero */
} quire_space_options;

/* One request. */
typedef struct quire_range_options {
    uint64_t size;      /* bytes, above 0 */
    uint64_t alignment; /* a power of two up to the space's largest; 0: 1 */
    uint64_t user;      /* kept with the range */
    bool exhaustive;    /* a full pass before NO_SPACE, as quire_space_allocate_exhaustive */
    bool optimal;       /* holds an image of optimal tiling: see buffer_image_granularity */
    bool upper;         /* linear fit: from the upper end; the other fits refuse it */
    uint64_t unused[2]; /* must be zero */
} quire_range_options;

/* Where a range lies. */
typedef struct quire_placement {
    quire_range range;
    uint32_t region;
    uint32_t reserved;
    uint64_t offset;       /* bytes from the start of the region */
    uint64_t left_padding; /* bytes in front of offset that belong to the range */
    uint64_t size;         /* bytes, the request rounded up to the granule; buddy fit: the block;
                              with slabs: the slot */
    uint64_t user;         /* the caller's value */
} quire_placement;

typedef struct quire_space_stats {
    uint64_t granule;       /* bytes, as the options resolved to */
    uint64_t region_bytes;  /* sum of the regions */
    uint64_t live_bytes;    /* sum of live sizes */
    uint64_t padding_bytes; /* sum of live left paddings */
    uint64_t free_bytes;    /* region_bytes == live_bytes + padding_bytes + free_bytes */
    /* Bytes of the largest free range, told from one size class; linear: of the largest request
       that can be had, lower or upper. */
    uint64_t largest_free;
    uint64_t live_count;
    uint64_t free_count; /* free ranges; buddy fit: free blocks */
    uint64_t region_count;
    uint64_t metadata_bytes; /* host memory of the space's own records, now */
    uint64_t metadata_peak;  /* and at most so far */
    uint64_t full_passes;    /* exhaustive searches made */
    uint64_t full_pass_hits; /* those that found what the bounded search had missed */
    uint64_t max_looked_at;  /* free ranges that one bounded search looked at in lists, at most */
    uint64_t unused[3];
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

/*
 * Makes a space; a region of options->size bytes, base 0, is added when that is not 0. NULL options
 * mean {0}.
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE (the line is shorter than the region),
 * OUT_OF_HOST_MEMORY.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_space_create(const quire_space_options *options,
                                                         quire_space **space);

/* Ends a space with all its regions and ranges. Never fails. */
QUIRE_API void quire_space_destroy(quire_space **space);

/*
 * Adds a region of `size` bytes, a multiple of the granule. `base` is the native address at which
 * the region starts, a multiple of the granule; alignments hold for base + offset. *region gets its
 * number: the lowest one not in use.
 * Errors: INVALID_ARGUMENT, WRONG_STATE (the linear fit has its region), OUT_OF_RANGE (the line is
 * full), OUT_OF_HOST_MEMORY.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_space_add_region(quire_space *space, uint64_t size,
                                                             uint64_t base, uint32_t *region);

/* Removes a region without live ranges. Errors: INVALID_ARGUMENT (no such region), BUSY. */
QUIRE_API QUIRE_MUST_USE quire_result quire_space_remove_region(quire_space *space,
                                                                uint32_t region);

/*
 * Makes a region end `size` bytes from its start, a multiple of the granule above 0. A larger size
 * adds free bytes at its end, merged with a free range that lies there; a smaller one takes free
 * bytes away. Live ranges stay where they are and keep their identities. The size that it has is a
 * success and changes nothing. Regions follow each other closely on the line, so that one grows for
 * sure only while none was added behind it. The segregated and the first fit have it.
 * Errors: INVALID_ARGUMENT (no such region, or it would reach beyond the last native address),
 * BUSY (a live range, or a slab that has one, reaches beyond the new end), OUT_OF_RANGE (another
 * region lies in the way on the line, or the line ends), UNSUPPORTED (the buddy and the linear fit,
 * whatever the size), OUT_OF_HOST_MEMORY, TOO_MANY_ALLOCATIONS (the space can number no further
 * range).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_space_resize_region(quire_space *space, uint32_t region,
                                                                uint64_t size);

/*
 * Allocates `size` bytes at a multiple of `alignment` (a power of two; 0: 1). `user` is kept with
 * the range. The search is bounded: it finds a range whenever one of at least size + alignment -
 * granule bytes exists in a size class above the request's, and most of those below; it costs the
 * same with one region and with ten thousand. The buddy fit finds one whenever there is a free
 * block of the larger of size and alignment.
 * Errors: INVALID_ARGUMENT, NO_SPACE, OUT_OF_HOST_MEMORY.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_space_allocate(quire_space *space, uint64_t size,
                                                           uint64_t alignment, uint64_t user,
                                                           quire_placement *placement);

/*
 * The same with a full pass over every free range that could hold the request when the bounded
 * search finds none: NO_SPACE then means that no range fits.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_space_allocate_exhaustive(quire_space *space,
                                                                      uint64_t size,
                                                                      uint64_t alignment,
                                                                      uint64_t user,
                                                                      quire_placement *placement);

/* The same with every option. Errors: INVALID_ARGUMENT, NO_SPACE, OUT_OF_HOST_MEMORY. */
QUIRE_API QUIRE_MUST_USE quire_result quire_space_allocate_with(quire_space *space,
                                                                const quire_range_options *options,
                                                                quire_placement *placement);

/*
 * Allocates `count` equal ranges, all or none. The caller writes the user values into
 * placements[i].user; the rest is filled in. The segregated fit looks for up to 64 of them at once,
 * when size is a multiple of the alignment or the alignment is no more than the granule: they then
 * lie side by side. On failure all but the user values is zeroed. A count of 0 is a success.
 * Errors: as quire_space_allocate.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_space_allocate_batch(quire_space *space, uint64_t size,
                                                                 uint64_t alignment,
                                                                 quire_placement *placements,
                                                                 uint64_t count);

/* Frees a range. Errors: INVALID_ARGUMENT ({0}), FOREIGN_HANDLE, STALE_HANDLE. Never allocates. */
QUIRE_API QUIRE_MUST_USE quire_result quire_space_free(quire_space *space, quire_range range);

/*
 * Frees `count` ranges, all or none: when one of them is not live, or named twice, nothing is freed
 * and the error is that of quire_space_free. Faster than one by one in large spaces, because the
 * records of all are fetched at once. A count of 0 is a success.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_space_free_batch(quire_space *space,
                                                             const quire_range *ranges,
                                                             uint64_t count);

/*
 * Frees every range at once and keeps the regions; all ranges become stale. In time proportional to
 * the most that lived at once; with the linear fit in constant time.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_space_clear(quire_space *space);

/* Where a range lies. Errors as quire_space_free. */
QUIRE_API QUIRE_MUST_USE quire_result quire_space_get(const quire_space *space, quire_range range,
                                                      quire_placement *placement);

/*
 * Changes the caller's value of a range. Errors as quire_space_free, and with slabs
 * OUT_OF_HOST_MEMORY: the first value of a small range that is not 0 makes room for those of all.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_space_set_user(quire_space *space, quire_range range,
                                                           uint64_t user);

/* Fills in the figures. Errors: INVALID_ARGUMENT. */
QUIRE_API QUIRE_MUST_USE quire_result quire_space_get_stats(const quire_space *space,
                                                            quire_space_stats *stats);

/*
 * Calls `visit` for every range, free and live, region by region in the order of their numbers and
 * within a region by address. A visit that returns false ends the walk. `visit` must not change the
 * space.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_space_walk(
    const quire_space *space, bool (*visit)(void *user, const quire_space_item *item), void *user);

/*
 * Verifies every record of the space, in time proportional to their number. CORRUPTED with a
 * sentence that names the first contradiction. Ships in release builds, for bug reports and tests.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_space_check(const quire_space *space);

/*
 * Gives host memory back that a past peak left unused, in time proportional to that peak. Never
 * fails: what cannot be moved stays, and so do records that over 16 million ranges have used.
 * Happens by itself when a region is removed and the records are nearly all unused.
 */
QUIRE_API void quire_space_trim(quire_space *space);

#ifdef __cplusplus
}
#endif

#endif
