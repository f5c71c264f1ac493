/*
 * page.h - the pages of a memory and how they come and go.
 *
 * A page is numbered when it is wanted (phase MAKING), made without a lock, and published (LIVE): a
 * shared page becomes a region of its shard's space. To give one back it is taken out of the space
 * and the figures under the locks (LEAVING) and destroyed without them. Page records do not move,
 * and the number of a page is used again only after it is gone.
 *
 * Phase, shard and number of a page change under the lock of qi_pages only, and a live page leaves
 * only under its shard's lock too; the rest is its shard's.
 */
#ifndef QUIRE_SRC_CORE_PAGE_PAGE_H
#define QUIRE_SRC_CORE_PAGE_PAGE_H

#include "quire/insight.h"
#include "src/base/table.h"
#include "src/core/device/device.h"

typedef struct qi_shard qi_shard;

typedef enum qi_page_phase {
    QI_PAGE_NONE = 0, /* the number is free */
    QI_PAGE_MAKING,
    QI_PAGE_LIVE,
    QI_PAGE_MOVING, /* between two shards */
    QI_PAGE_LEAVING,
    QI_PAGE_GONE /* given back; the number is free once the hook has been told */
} qi_page_phase;

/*
 * The one object that a dedicated page is made for, where the backend wants that. Such a page is
 * exactly as large as the object and goes with it.
 */
typedef struct qi_tie {
    quire_object object; /* NONE: memory that exists, by its description */
    uint64_t native;
    const void *description;
} qi_tie;

typedef struct qi_page qi_page;

/*
 * What the allocations of a page add up to. Every allocation and free comes by here, so that the
 * tallies of shared pages lie together, by region, and not in their pages' records.
 */
typedef struct qi_tally {
    qi_page *page;
    uint64_t live_bytes;
    uint64_t peak_live_bytes; /* until live_bytes last fell: see qi_shard_keep_peaks */
    uint32_t allocation_count;
    uint32_t skipped; /* bytes before the region, where the native base is below a granule */
} qi_tally;

struct qi_page {
    qi_shard *shard;
    qi_tally *tally; /* of a page that is a region: in its shard's by_region; else `own` */
    qi_tally own;
    uint32_t region; /* of the space; of shared pages */
    uint32_t slot;   /* the allocation of a dedicated page */
    uint32_t number;
    bool dedicated;
    bool tied;     /* to its object: see qi_tie */
    bool resizing; /* its end is being moved: see growth.h; under the lock of qi_pages */
    bool ending;   /* while it leaves: its thread has begun to give it back to the backend */
    qi_page_phase phase;
    /* qi_thread_self of the thread that makes, moves or gives it back, or moves its end: what no
       other thread can go on with in the child of a fork */
    const void *owner;

    qi_device_page native; /* set before LIVE, constant until the page is gone but for its size */
    uint64_t cut_from;     /* its size before its end was cut off, until that is given back; or 0 */
    uint64_t policy_size;  /* what the policy said when a shared page was made */
    uint64_t wanted;       /* its size for the request that it is made for */
    uint64_t to_join;      /* while it is made: bytes that others may wait for in it */
    uint64_t turn;         /* pages begun up to this one */
    struct qi_page *next;  /* of those being made, or of those leaving together */

    /* while it is empty: its place in the shard's qi_empty_pages */
    struct qi_page *older, *newer, *previous_alike, *next_alike;
    uint64_t emptied_at;
};

typedef struct qi_pages {
    qi_lock lock;
    qi_table records;
    uint32_t top;       /* numbers below were used at least once */
    uint32_t free_hint; /* no number below is free */
    uint32_t in_use;    /* numbers not free, but for those of pages that are gone */
    uint32_t leaving;   /* numbers in phase LEAVING */
    uint32_t moving;    /* numbers in phase MOVING */
    uint64_t changes;   /* pages that came to a shard or were given back, ever */
    qi_page *being_made;
    uint64_t turns;           /* pages begun so far */
    uint64_t last_size;       /* policy_size of the shared page made last; 0: none yet */
    uint64_t floor;           /* bytes of pages that the memory keeps: quire_memory_preallocate */
    quire_memory_stats stats; /* what pages count: reserved, pages and their peaks */
} qi_pages;

/* With the lock of the pages: the record of a number below top; NULL above. */
static inline qi_page *qi_page_at(const qi_pages *pages, uint32_t number)
{
    return number < pages->top ? qi_table_get(&pages->records, number) : NULL;
}

/* Requires the lock of the pages. The number can be another page's from now on. */
static inline void qi_page_free_number(qi_pages *pages, qi_page *page)
{
    page->phase = QI_PAGE_NONE;
    if (page->number < pages->free_hint)
        pages->free_hint = page->number;
}

/* Bytes of pages beyond what quire_memory_preallocate asked for. Takes the lock of the pages. */
static inline uint64_t qi_pages_above_floor(qi_pages *pages)
{
    qi_lock_acquire(&pages->lock);
    uint64_t reserved = pages->stats.reserved_bytes, floor = pages->floor;
    qi_lock_release(&pages->lock);
    return reserved > floor ? reserved - floor : 0;
}

/* A page that was made, or made larger. */
typedef struct qi_page_change {
    uint64_t size; /* 0: none was */
    uint32_t number;
    bool grown;
} qi_page_change;

/*
 * What a call did to pages, until the hook and the log are told: after all of it is done, when the
 * call holds no lock and has no page under way (transit.h). {0}: nothing.
 */
typedef struct qi_page_events {
    qi_page *gone;          /* given back: in phase GONE, nobody else's */
    qi_page_change renewed; /* likewise, but the page that this call makes has its number */
    qi_page_change cut;     /* the last time that the end of a page went */
    qi_page_change made;    /* the last page made, or made larger */
} qi_page_events;

/* Tells it, with something to add to the line of a page made, and forgets it. */
void qi_page_events_report(quire_memory *memory, qi_page_events *events, const char *more);

/*
 * Of a page that is GONE, made in vain: whether it has the renewed number. If so, its record tells
 * of the page before it.
 */
bool qi_page_events_keep_number(qi_page_events *events, qi_page *page);

void qi_pages_init(qi_pages *pages);
void qi_pages_finish(qi_pages *pages, qi_host *host);

/* The live page of this number with its shard's lock taken; NULL, and no lock: there is none. */
qi_page *qi_page_acquire(quire_memory *memory, uint32_t number);

void qi_empty_pages_add(qi_page *page);
void qi_empty_pages_remove(qi_page *page);

/* With the shard's lock: an allocation of `bytes`, padding included, came to or left the page. */
static inline void qi_tally_add(qi_tally *tally, uint64_t bytes)
{
    if (qi_unlikely(!tally->allocation_count++))
        qi_empty_pages_remove(tally->page);
    tally->live_bytes += bytes;
}

static inline void qi_tally_remove(qi_tally *tally, uint64_t bytes)
{
    qi_raise(&tally->peak_live_bytes, tally->live_bytes);
    tally->live_bytes -= bytes;
    if (qi_unlikely(!--tally->allocation_count))
        qi_empty_pages_add(tally->page);
}

/*
 * With the shard's lock: take pages out of the memory, to be given back without it.
 *  - take: one page without allocations, put in front of a list
 *  - take_all: every page of a memory that ends; the spaces are left as they are, so that no host
 *    memory is needed
 */
qi_page *qi_page_take(qi_page *page, qi_page *list);
qi_page *qi_pages_take_all(quire_memory *memory);

/*
 * Without a lock: gives the pages back to the backend, and adds them to the news. Returns the
 * bytes. Their numbers come free when that is told, so that a hook hears of the end of a page
 * before it hears of the next one with its number.
 */
uint64_t qi_pages_give_back(quire_memory *memory, qi_page *list, qi_page_events *events);

/* The same, told at once. */
uint64_t qi_pages_destroy(quire_memory *memory, qi_page *list);

/*
 * The same of a page whose making was not told, nor is its end. Where it had the number of a page
 * that the news tell of, that number comes free when they are told.
 */
void qi_page_undo(quire_memory *memory, qi_page *page, qi_page_events *events);

/* With the shard's lock: a shared page becomes a region of its space. OUT_OF_HOST_MEMORY. */
QUIRE_MUST_USE quire_result qi_page_add_region(qi_shard *shard, qi_page *page);

/*
 * An empty shared page goes from one shard to another: out of the one under its lock, then into the
 * other under that one's. False: there is no host memory, and the page is in front of the list.
 */
void qi_page_leave_shard(qi_page *page);
bool qi_page_enter_shard(qi_page *page, qi_shard *shard, qi_page **leaving);

/* ---- page_make.c ---------------------------------------------------------------------------- */

/* What a call that needs a page has done so far. */
typedef struct qi_page_progress {
    unsigned tried; /* qi_tried */
    qi_page_events events;
} qi_page_progress;

/*
 * Makes a page for `size` bytes at `alignment` and publishes it. The shard's lock is held on entry
 * and on return, whatever the result, and given up between: the caller places in the page before
 * anybody else can. The shard's empty pages are given back first; those of all shards where no
 * page can be had otherwise. A shared page that is refused for want of memory, or over a budget, is
 * asked for again at half the size, and at last at the size of the request. Fails with
 * TOO_MANY_PAGES, OVER_BUDGET, OUT_OF_DEVICE_MEMORY, OUT_OF_HOST_MEMORY, OUT_OF_RANGE, WRONG_STATE
 * (the memory ends) and what the backend answers. Whatever the result, the caller tells the news
 * once it has given the lock up for good.
 */
QUIRE_MUST_USE quire_result qi_page_make(qi_shard *shard, uint64_t size, uint64_t alignment,
                                         bool dedicated, qi_page **page,
                                         qi_page_progress *progress);

/* The same for a dedicated page of exactly `size` bytes that is tied to an object. */
QUIRE_MUST_USE quire_result qi_page_make_tied(qi_shard *shard, uint64_t size, const qi_tie *tie,
                                              qi_page **page, qi_page_progress *progress);

/* The request was placed in the page made for it: growth goes on from its size. */
void qi_page_keep(const qi_page *page);

/* Without a lock: gives back the empty pages of every shard, inboxes seen to. False: none. */
bool qi_pages_give_back_empty(quire_memory *memory, qi_page_events *events);

/*
 * With the shard's lock, given up meanwhile: waits for a page being made in it in which `size`
 * bytes will be left. `joined`, NULL at first, is where the caller's share was taken, which happens
 * once. False: there is none, or this thread has a page under way; true: it waited, and the caller
 * should look again.
 */
bool qi_page_wait_for_room(qi_shard *shard, uint64_t size, const qi_page **joined);

/* What a thread that needs a page remembers while it waits for those of others. */
typedef struct qi_page_wait {
    uint64_t changes; /* seen before the page was asked for */
    uint64_t turn;    /* pages begun up to this one are waited for; 0: not refused yet */
    uint64_t as_of;   /* the changes seen before that page was asked for */
} qi_page_wait;

/*
 * After a page could not be had: waits while pages are on their way that can change this. They are
 * leaving, or go from shard to shard, or a cut end is leaving; or the memory has as many pages as
 * it may and some of them are being made; or some are that were begun before the refusal: what is
 * begun later, and nothing has changed since, may be refused for the same reason, and would be
 * waited for in turn. True: it waited, or there were changes, and the caller should look again.
 * False also where this thread has a page under way.
 */
bool qi_page_wait_for_change(qi_shard *shard, quire_result refusal, qi_page_wait *stall_timeout);
uint64_t qi_pages_changes(const qi_shard *shard);

#endif
