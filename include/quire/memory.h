/*
 * quire/memory.h - memories: pages of one memory kind, one page policy and one fit.
 */
#ifndef QUIRE_MEMORY_H
#define QUIRE_MEMORY_H

#include "quire/device.h"
#include "quire/space.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quire_memory quire_memory;

/*
 * When an allocation gets a page of its own. NEVER: only where the backend cannot do without; what
 * it would rather have counts for nothing, and options that ask for one are INVALID_ARGUMENT.
 */
typedef enum quire_dedicated {
    QUIRE_DEDICATED_BY_SIZE = 0, /* from the policy's threshold on */
    QUIRE_DEDICATED_ALWAYS,      /* one page per object */
    QUIRE_DEDICATED_NEVER
} quire_dedicated;

/* What growth_percent refers to. */
typedef enum quire_growth {
    QUIRE_GROWTH_LAST = 0, /* the shared page made last: each is this much larger */
    /*
     * The steps first_page_size, this much more, and so on: a page is the lowest step above the
     * largest shared page there is. A memory whose shared pages are gone begins anew, also without
     * growth_percent, where the steps are first_page_size for the only page and page_size beside
     * others.
     */
    QUIRE_GROWTH_LARGEST,
    /*
     * All bytes in shared pages: a page is this share of them, so that 100 doubles what there is;
     * first_page_size where there is none. Needs growth_percent.
     */
    QUIRE_GROWTH_RESERVED
} quire_growth;

/* Requests of some sizes, and the pages made for them in the place of the one that is due. */
typedef struct quire_page_class {
    /* bytes placed, padding and rounding included, above those of the class before; 0: no class,
       and none behind it */
    uint64_t max_request;
    uint64_t page_size; /* at least max_request */
} quire_page_class;

#define QUIRE_MAX_PAGE_CLASSES 4

/*
 * How a memory takes pages from the backend. All sizes are bytes, rounded up to the backend's page
 * granularity. A page is never smaller than what it is made for; where the backend has too little
 * memory for more than that, less is asked for. quire/preset.h has the policies of other systems.
 */
typedef struct quire_page_policy {
    uint64_t page_size;       /* 0: 32 MiB, or an eighth of the heap where that is less */
    uint64_t first_page_size; /* of the first page; 0: page_size */
    /* 0: pages after the first have page_size; else each is this much larger than what `growth`
       says, up to max_page, which must be above the first; most 1000 */
    uint32_t growth_percent;
    uint32_t max_pages; /* pages at one time; 0: no limit but the device's */
    uint64_t max_page;  /* growth stops here; 0: page_size or first_page_size */
    quire_growth growth;
    /* steps of growth are skipped until a page has this many times the bytes it is made for, or is
       the largest; 0 or 1: none. Needs growth_percent, and not QUIRE_GROWTH_RESERVED */
    uint32_t request_factor;
    /* page sizes are multiples of it, also where a request makes the page larger, unless the
       backend has too little memory; a power of two; 0 or less than the backend's: the backend's */
    uint64_t page_granularity;
    quire_page_class classes[QUIRE_MAX_PAGE_CLASSES]; /* {0}: none; not with ALWAYS */
    quire_dedicated dedicated;
    uint64_t dedicated_threshold; /* sizes from here on are dedicated; 0: none */
    uint64_t size_granularity;    /* sizes are rounded up to a multiple, any number; 0: none */
    uint64_t extra_padding;       /* bytes added behind each allocation, before rounding; 0: none */
    /*
     * Empty pages, those of dedicated allocations too, are kept for what comes next, and given back
     * before a new page is made (with shards: those of its shard, and all where no page can be had
     * otherwise). These bound what is kept meanwhile: the bytes of empty pages (1: none), and how
     * long a page may have been empty. 0: no bound. They are held after each free that empties a
     * page, when a page is made and by a trim: a memory that does none of it keeps what it has.
     * With shards each has its share of the bytes.
     *
     * No call gives back all that has become empty: one that makes a page gives back as many bytes
     * as its request needs and up to 32 pages more, one that frees up to 32 pages beyond a bound,
     * and the next calls go on. All go before a request is refused, by quire_memory_trim, and at
     * the memory's end.
     */
    uint64_t retained_empty_bytes;
    uint64_t retention_nanoseconds;
    uint64_t unused[4]; /* must be zero */
} quire_page_policy;

/*
 * What time it is, for retention: nanoseconds from any start. Where it falls, pages that became
 * empty at a later time stay until it is reached again.
 */
typedef struct quire_clock {
    uint64_t (*now)(void *user); /* any thread, under a lock: must not call quire and must not fork.
                                    NULL: the system's monotonic clock */
    void *user;
} quire_clock;

/* A request that finds no room and can have no page. */
typedef struct quire_out_of_memory {
    uint64_t size; /* bytes to be placed */
    uint64_t alignment;
    quire_result reason; /* OUT_OF_DEVICE_MEMORY, OVER_BUDGET, TOO_MANY_PAGES, OUT_OF_RANGE */
    uint32_t times;      /* how often this request has asked, this time included */
} quire_out_of_memory;

/* Most times one request asks. */
#define QUIRE_MAX_OUT_OF_MEMORY_CALLS 16

/*
 * Asked before a request is refused for want of memory, by the thread that makes it and without a
 * lock: it may free, trim and allocate (what it allocates may ask in turn). Empty pages of other
 * memories are theirs: trim them. True: something was freed, try again; false: refuse. NULL: nobody
 * is asked.
 */
typedef struct quire_on_out_of_memory {
    bool (*callback)(void *user, quire_memory *memory, const quire_out_of_memory *shortage);
    void *user;
} quire_on_out_of_memory;

typedef struct quire_memory_options {
    const char *name; /* copied; NULL: "memory" */

    /*
     * The kind: either flags (0: QUIRE_DEVICE_LOCAL), subset or exact, or an intent with flags 0.
     * kind_mask restricts both; with one bit in it and no flags that kind is taken as it is.
     */
    quire_memory_flags flags;
    bool exact;
    /*
     * One shared page that grows in place, instead of several: at its end, where what lies there
     * free is used first, so that no request needs a page to itself. What is free at its end is
     * given back where empty pages would be. Each growth adds what the policy makes the next page
     * (page_size), or as little as the request needs; dedicated pages are as ever. UNSUPPORTED for
     * memory kinds without virtual memory (quire_limits.elastic_kinds), with several shards, and
     * with the fits buddy and linear.
     */
    bool contiguous;
    uint32_t kind_mask;
    const quire_intent *intent;

    /*
     * The linear fit works in one shared page; what is larger than page_size gets a dedicated page,
     * and what finds no room in it is refused with TOO_MANY_PAGES.
     */
    quire_fit fit;
    bool least_fragmentation; /* of the segregated fit: see quire_space_options */
    bool deferred_coalescing;
    bool slabs;

    /*
     * Parts with a lock and pages of their own, most 64: threads that allocate at the same time go
     * to different ones. About as many as such threads; 0 or 1: one, with which identical requests
     * give identical placements. The linear fit has one only (UNSUPPORTED). Each shard in which
     * something is allocated has a page at least: with pages of 32 MiB, 16 of them reserve 512 MiB,
     * however little is in them. Where that is too much, pages.page_size should be smaller.
     */
    uint32_t shards;
    uint64_t granule;       /* see quire_space_options; 0: the fit's default */
    uint64_t max_alignment; /* that can be asked for, up to 1 GiB; 0: 2 MiB */
    quire_page_policy pages;
    quire_clock clock;
    quire_on_out_of_memory on_out_of_memory;
    uint64_t limit; /* bytes of its pages; 0: none; see quire_memory_set_limit */
    /* the same in hundredths of its heap's whole size, up to 100, rounded down to bytes; 0: none.
       The lower of the two holds, and quire_memory_set_limit replaces both. */
    uint32_t limit_percent;
    /* how dear its pages are when device memory runs short, up to 1; 0: 0.5. A hint, which backends
       without priorities have no use for */
    float priority;
    /* bytes of addresses that the page of a contiguous memory may grow over; 0: as much as the
       memory kind's heap has. Where the system has not got so many together (a limit of addresses,
       a sanitizer), the first allocation is OUT_OF_DEVICE_MEMORY. INVALID_ARGUMENT in other
       memories */
    uint64_t address_space;
    uint64_t unused[3]; /* must be zero */
} quire_memory_options;

typedef struct quire_memory_info {
    const char *name; /* lives as long as the memory */
    quire_device *device;
    uint32_t kind;
    quire_memory_flags flags; /* of the kind, a superset of those asked for */
    bool mappable;            /* host-visible */
    bool checked;             /* has red zones and a quarantine: see docs/checked.md */
    quire_fit fit;
    uint64_t page_size; /* of the next page, unless the size of a request calls for another */
    uint64_t granule;
    uint32_t page_count; /* now; 0 when new */
    uint32_t shards;
    uint64_t limit;         /* bytes of its pages; 0: none */
    uint64_t address_space; /* bytes that its shared page may grow to; 0: it is not contiguous */
    uint64_t unused[3];
} quire_memory_info;

typedef struct quire_page_info {
    uint32_t page;
    bool dedicated;
    bool mappable;
    uint64_t size;
    /* native address of the page's first byte; 0 where the backend tells none with its pages, as
       Vulkan's does: see quire_allocation_info.address */
    uint64_t address;
    uint64_t live_bytes;
    uint64_t free_bytes;
    uint64_t largest_free; /* looks at every range of the page */
    uint64_t allocation_count;
    uint64_t peak_live_bytes;
    uint64_t unused[4];
} quire_page_info;

/*
 * Makes a memory without pages; the first comes with the first allocation. NULL options mean {0}.
 * Errors: INVALID_ARGUMENT, UNSUPPORTED (no such kind, or an option of a later version),
 * OUT_OF_HOST_MEMORY.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_memory_create(quire_device *device,
                                                          const quire_memory_options *options,
                                                          quire_memory **memory);

/*
 * Gives all pages back and ends the memory. BUSY while allocations live, or objects of the backend
 * that belong to it: the first ones are named in the error, all of them in the log at warning
 * level, nothing changes, and *memory stays valid.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_memory_destroy(quire_memory **memory);

/*
 * The same, freeing whatever still lives first, mapped or reserved ones too, and what hooks and log
 * sinks allocate meanwhile. Never fails; *memory becomes NULL. Sleeps until the points of streams
 * that freed allocations wait for have passed. Where no point passes for a minute, it frees the
 * rest all the same and logs a warning that names the stream. The caller awaits work that takes
 * longer than that between two points beforehand.
 */
QUIRE_API void quire_memory_destroy_all(quire_memory **memory);

/* Describes a memory. Errors: INVALID_ARGUMENT. */
QUIRE_API QUIRE_MUST_USE quire_result quire_memory_get_info(quire_memory *memory,
                                                            quire_memory_info *info);

/*
 * Describes one page. Page numbers are stable while a page lives; the lowest free number is used
 * for a new one. Errors: INVALID_ARGUMENT, OUT_OF_RANGE (no live page has this number).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_page_get_info(quire_memory *memory, uint32_t page,
                                                          quire_page_info *info);

/*
 * Gives empty pages back until no more than `target` bytes of them are kept, the highest numbers
 * first, and host memory that is not needed; *released, which may be NULL, gets the bytes of the
 * pages. Whatever the target, pages that the policy keeps no longer go too. What
 * quire_memory_preallocate asked for is given up. Errors: INVALID_ARGUMENT.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_memory_trim(quire_memory *memory, uint64_t target,
                                                        uint64_t *released);

/*
 * Makes pages until the memory has at least `bytes` of them, used or empty, and keeps that many
 * from then on, beyond what retention says; 0 keeps none. They are not given back for a request
 * that finds no room either: trim where that is wanted. A trim or another reserve, by any thread,
 * takes its place, also while it makes pages. Errors: INVALID_ARGUMENT, UNSUPPORTED
 * (QUIRE_DEDICATED_ALWAYS: no page is made before its allocation), and those of making a page (see
 * quire_allocate): then what was kept before is kept, and the memory's empty pages beyond it are
 * given back.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_memory_preallocate(quire_memory *memory,
                                                               uint64_t bytes);
/* ---- budgets -------------------------------------------------------------------------------- */

/*
 * Limits the bytes of the memory's pages (0: no limit), at any time. A page that would exceed it is
 * OVER_BUDGET before the backend is asked; smaller pages are tried first, and the pages that exist
 * serve what fits in them. A limit below what there is takes nothing away but empty pages, as
 * quire_memory_trim does, until enough is given back. Calls that are running may still use the
 * limit there was. The limits of heaps and of the device are in quire/device.h; a page needs room
 * in all.
 * Errors: INVALID_ARGUMENT.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_memory_set_limit(quire_memory *memory, uint64_t bytes);

/* What the allocations hold whose names begin alike. */
typedef struct quire_name_usage {
    uint64_t limit;           /* bytes, of exactly this prefix; 0: none */
    uint64_t held_bytes;      /* left padding included */
    uint64_t requested_bytes; /* asked for by these allocations */
    uint64_t allocation_count;
    uint64_t unused[4];
} quire_name_usage;

/*
 * Limits the bytes held by allocations whose names begin with `prefix` (0: no longer), at any time.
 * "" is the beginning of every name; an allocation without a name has none. Where several prefixes
 * fit a name each holds. An allocation that would exceed one, or a new name for one, is OVER_BUDGET
 * and changes nothing. A limit below what is held takes nothing away. Setting one looks at every
 * allocation; from then on each allocation and free with a name looks at each limit.
 * Errors: INVALID_ARGUMENT (a null prefix, or one longer than a name), OUT_OF_HOST_MEMORY.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_memory_set_name_limit(quire_memory *memory,
                                                                  const char *prefix,
                                                                  uint64_t bytes);

/*
 * What such allocations hold now, whether there is a limit or not: with one it is known, else every
 * allocation is looked at. Errors: INVALID_ARGUMENT.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_memory_get_name_usage(quire_memory *memory,
                                                                  const char *prefix,
                                                                  quire_name_usage *usage);

#ifdef __cplusplus
}
#endif

#endif
