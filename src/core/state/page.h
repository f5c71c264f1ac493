/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * state/page.h - the records of pages: of one page, of the pages of a memory, and of the empty
 * pages of a shard.
 *
 * A shared page is a region of its shard's space while it is LIVE. The backend is called without a
 * lock: between MAKING and LIVE to make the page, in ENDING to destroy it. The records do not move
 * while the memory lives.
 *
 *          number         made        taken out      backend call      destroyed       reported
 *   NONE ------> MAKING ------> LIVE ---------> LEAVING --------> ENDING -------> GONE ------> NONE
 *                   |            | ^                ^                                ^
 *                   |            v |                | no host memory                 |
 *                   |           MOVING -------------+                                |
 *                   |      between two shards                                        |
 *                   +----------------------------------------------------------------+
 *                                               refused
 *
 * Locks: the lock of qi_pages protects phase, shard and number of every page. A LIVE page leaves
 * only while its shard's lock is held too. The shard's lock protects the rest of the record.
 * Invariants: stats.reserved_bytes is the sum of native.bytes over the LIVE pages; the bytes of a
 * qi_empty_pages are the sum over the shard's LIVE pages without allocations.
 */
#ifndef QUIRE_SRC_CORE_STATE_PAGE_H
#define QUIRE_SRC_CORE_STATE_PAGE_H

#include "quire/insight.h"
#include "src/base/table.h"
#include "src/core/device/device.h"
#include "src/space/fit.h"

typedef struct qi_shard qi_shard;

typedef enum qi_page_phase {
    QI_PAGE_NONE = 0, /* the number is free */
    QI_PAGE_MAKING,
    QI_PAGE_LIVE,
    QI_PAGE_MOVING,  /* between two shards */
    QI_PAGE_LEAVING, /* out of the space and the statistics */
    QI_PAGE_ENDING,  /* the backend destroys it */
    QI_PAGE_GONE,    /* destroyed, or never made; nobody uses the number yet */
    QI_PAGE_NOWHERE  /* constant: the page without memory of a shard, where what is evicted lies */
} qi_page_phase;

/*
 * The object that a dedicated page is created for, if the backend wants to know it. The page has
 * exactly the object's size and is destroyed with it.
 */
typedef struct qi_tie {
    quire_object object; /* NONE: existing memory, named by its description */
    uint64_t native;
    const void *description; /* of the existing memory, or of the object; NULL: quire's options */
} qi_tie;

typedef struct qi_page qi_page;

/*
 * Sums over the allocations of a page. Every allocation and every free updates one. The tallies of
 * shared pages therefore lie together in an array indexed by region, not in the pages' records.
 */
typedef struct qi_tally {
    qi_page *page;
    uint64_t live_bytes;
    uint64_t peak_live_bytes; /* valid up to the last fall of live_bytes: see qi_shard_keep_peaks */
    uint32_t allocation_count;
    uint32_t skipped; /* bytes before the region, if the native base is below a granule */
} qi_tally;

struct qi_page {
    qi_shard *shard;
    qi_tally *tally; /* of a region: an entry of its shard's by_region; otherwise &own */
    qi_tally own;
    uint32_t region; /* of a shared page: its number in the space */
    uint32_t slot;   /* of a dedicated page: its allocation */
    uint32_t number;
    /* native objects that wait for a point after their range was reused; the tally counts them as
       allocations, so that the page stays */
    uint32_t objects;
    bool dedicated;
    bool elastic;          /* the shared page of an elastic memory: see page/backing.h */
    bool tied;             /* to an object: see qi_tie */
    bool resizing;         /* a thread changes its bytes; protected by the lock of qi_pages */
    uint32_t lazy_count;   /* lazy allocations in it: page/lazy.h */
    uint64_t asleep_bytes; /* of ranges of allocations that sleep: copy/sleep.h */
    uint64_t waking_bytes; /* of chunks that have memory, and are still marked as asleep */
    const void *sleeper;   /* qi_thread_self of the thread that puts to sleep or wakes; or NULL */
    uint32_t last_point;   /* number of the last point that chunks of them wait for */
    bool over_budget;      /* its creation or last growth exceeded the backend's budget */
    uint32_t compacted;    /* the last round of a compaction that looked at it: compact/compact.h */
    uint32_t emptied;      /* the last round that selected it as a source */
    uint32_t kept;         /* first round of the last compaction that declined a move of it */
    bool fresh; /* a dedicated page that the backend made with zeros for its allocation */
    qi_page_phase phase;
    /* qi_thread_self of the thread that makes, moves, resizes or destroys the page. In the child of
       a fork no other thread can complete that (memory/fork.h). */
    const void *owner;

    qi_device_page native;  /* constant from LIVE to GONE, except its size, and `host` on demand */
    qi_atomic_u32 map_word; /* with map_on_demand: who uses the map (page/map.h) */
    qi_window window;       /* of an elastic page: reserved while it is backed; size 0: none */
    uint64_t to_give;       /* bytes of free chunks to take from it, until that is done; or 0 */
    uint64_t least_free;    /* of an elastic page: least free bytes since emptied_at */
    uint64_t policy_size;   /* of a shared page: the policy's size when it was made */
    uint64_t wanted;        /* the size requested from the backend */
    uint64_t to_join;       /* while MAKING: bytes that waiting threads may still claim in it */
    uint64_t turn;          /* the value of qi_pages.turns when it was begun */
    struct qi_page *next;   /* in being_made, or in a list of leaving pages */
    struct qi_page_addresses *addresses; /* find/page_addresses.h; or NULL */

    /* while it is empty: its links in the shard's qi_empty_pages */
    struct qi_page *older, *newer, *previous_alike, *next_alike;
    uint64_t emptied_at; /* nanoseconds; 0: not known yet, and counted from the next look on */
};

/* The pages of a memory. */
typedef struct qi_pages {
    qi_lock lock;
    qi_table records;
    uint32_t top;       /* numbers below were used at least once */
    uint32_t free_hint; /* no number below is free */
    uint32_t in_use;    /* numbers that are not free, without those of GONE pages */
    uint32_t leaving;   /* numbers in the phases LEAVING and ENDING */
    uint32_t moving;    /* numbers in phase MOVING */
    uint64_t changes;   /* how often a page was published, moved, resized or destroyed */
    qi_page *being_made;
    uint64_t turns;           /* pages begun so far */
    uint32_t compact_rounds;  /* begun so far: compact/compact.h */
    uint64_t last_size;       /* policy_size of the shared page made last; 0 before the first */
    uint64_t shared_bytes;    /* of shared pages: sizes.h */
    uint64_t floor;           /* bytes of pages to keep: quire_memory_preallocate */
    uint64_t refused;         /* page size that the backend refused: sizes.h; 0: none */
    uint64_t refused_as_of;   /* qi_heap_releases before it was refused; later ones outdate it */
    quire_memory_stats stats; /* what pages count: reserved bytes, pages and their peaks */
} qi_pages;

/* A page that was made or resized. */
typedef struct qi_page_change {
    uint64_t size; /* bytes; 0: no such page */
    uint32_t number;
    bool resized;     /* the bytes of an elastic page have changed */
    bool over_budget; /* of the backend */
} qi_page_change;

/* {0} means that nothing happened. */
typedef struct qi_page_events {
    qi_page *gone; /* destroyed pages, in phase GONE; only this call knows them */
    qi_page_change
        renewed;          /* a destroyed page whose number the call reuses for the page it makes */
    qi_page_change given; /* the last page that lost memory */
    qi_page_change made;  /* the last page that was made or got memory */
} qi_page_events;

/* What a call that needs a page has done so far. */
typedef struct qi_page_progress {
    bool gave_back_empty; /* empty pages, to make room for the page */
    bool is_smaller;      /* requested less than the policy's size, because memory is exhausted */
    bool within_budget;   /* set by the caller: no page exceeds the backend's budget */
    bool zero;            /* set by the caller: a dedicated page is made for zeros */
    bool may_exceed;      /* set by the caller: pages may exceed it; never set with within_budget */
    bool is_over_budget;  /* the last page was refused by that budget alone */
    uint64_t excess;      /* bytes of the heap's pages above that budget when it was refused */
    qi_page_events events;
} qi_page_progress;

enum { QI_EMPTY_SIZES = 64 };

/* The pages of a shard without allocations, oldest first. Protected by the shard's lock. */
typedef struct qi_empty_pages {
    qi_page *oldest, *newest;
    uint64_t bytes;
    uint64_t least; /* a lower bound of their sizes */
    uint32_t tied;  /* how many are tied to an object that is destroyed: none of these is kept */
    qi_page *dedicated[QI_EMPTY_SIZES]; /* lists by the highest bit of the size */
} qi_empty_pages;

/* Whether a page of an allocation is that of the evicted ones. */
static inline bool qi_page_is_nowhere(const qi_page *page)
{
    return page->phase == QI_PAGE_NOWHERE;
}

/* Requires the lock of the pages. Returns the record of a number below top, NULL above. */
static inline qi_page *qi_page_at(const qi_pages *pages, uint32_t number)
{
    return number < pages->top ? qi_table_get(&pages->records, number) : NULL;
}

/* Requires the lock of the pages. From now on the number may become another page's. */
static inline void qi_page_free_number(qi_pages *pages, qi_page *page)
{
    page->phase = QI_PAGE_NONE;
    if (page->number < pages->free_hint)
        pages->free_hint = page->number;
}

/* Returns the bytes of all pages. Takes the lock of the pages. */
static inline uint64_t qi_pages_reserved(qi_pages *pages)
{
    qi_lock_acquire(&pages->lock);
    uint64_t reserved = pages->stats.reserved_bytes;
    qi_lock_release(&pages->lock);
    return reserved;
}

/* Returns the bytes of pages above the floor. Takes the lock of the pages. */
static inline uint64_t qi_pages_above_floor(qi_pages *pages)
{
    qi_lock_acquire(&pages->lock);
    uint64_t reserved = pages->stats.reserved_bytes, floor = pages->floor;
    qi_lock_release(&pages->lock);
    return reserved > floor ? reserved - floor : 0;
}

/* Returns the bytes of pages that are missing to the floor. Takes the lock of the pages. */
static inline uint64_t qi_pages_below_floor(qi_pages *pages)
{
    qi_lock_acquire(&pages->lock);
    uint64_t reserved = pages->stats.reserved_bytes, floor = pages->floor;
    qi_lock_release(&pages->lock);
    return floor > reserved ? floor - reserved : 0;
}

#endif
