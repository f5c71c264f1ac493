/*
 * quire/insight.h - seeing a memory: figures, a walk over every range, the owner of an address, a
 * report, JSON and a picture.
 *
 * Figures are kept all the time and asked in constant time, except where a field says otherwise.
 */
#ifndef QUIRE_INSIGHT_H
#define QUIRE_INSIGHT_H

#include "quire/allocation.h"
#include "quire/resource.h"
#include "quire/space.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- figures -------------------------------------------------------------------------------- */

/* Four views of what is lost, on the same data. */
typedef struct quire_fragmentation {
    double reserved; /* 1 - peak live / peak reserved: what the pages cost beyond their contents */
    double free;     /* 1 - largest free / all free: how cut up the free bytes are */
    uint64_t internal; /* bytes held by live allocations beyond those asked for */
    uint64_t split; /* free bytes in pages that also hold allocations: they cannot be given back */
} quire_fragmentation;

typedef struct quire_memory_stats {
    uint64_t live_bytes;      /* held by allocations, left padding included */
    uint64_t requested_bytes; /* asked for by those allocations */
    uint64_t reserved_bytes;  /* sum of the pages */
    uint64_t free_bytes;      /* reserved_bytes - live_bytes */
    uint64_t empty_bytes;     /* of it, in pages without an allocation */
    uint64_t largest_free;    /* in shared pages; looks at the ranges of one size class */
    uint64_t allocation_count;
    uint64_t page_count;

    /* each peak since creation, or the last quire_memory_push_stats, on its own. Those of pages are
       exact. The others are upper bounds where peaks_are_bounds says so, as it does where several
       shards had allocations: sums of the shards' peaks, of bytes at most the peak of the pages */
    uint64_t peak_live_bytes;
    uint64_t peak_requested_bytes;
    uint64_t peak_reserved_bytes;
    uint64_t peak_allocation_count;
    uint64_t peak_page_count;

    uint64_t allocations; /* made since creation */
    uint64_t frees;
    uint64_t failures; /* allocations refused for want of memory, pages or handles */
    uint64_t pages_created;
    uint64_t pages_destroyed;
    uint64_t backend_calls;       /* calls into the backend for this memory, all kinds */
    uint64_t backend_nanoseconds; /* spent in them, those for objects apart */
    uint64_t metadata_bytes;      /* host memory of the memory's own records, now */
    uint64_t metadata_peak;
    uint64_t full_passes;    /* exhaustive searches before an allocation was refused */
    uint64_t full_pass_hits; /* of them, those that found what the bounded search had missed */
    quire_fragmentation fragmentation;
    uint64_t deferred_bytes; /* of live_bytes: freed, until a point has passed (quire/stream.h) */
    uint64_t deferred_count; /* of allocation_count: likewise */
    bool peaks_are_bounds;   /* peaks of live and requested bytes and of allocations; with them
                               fragmentation.reserved is a lower bound. false: all are exact */
    uint64_t unused[1];
} quire_memory_stats;

typedef struct quire_device_stats {
    uint64_t heap_reserved_bytes[QUIRE_MAX_HEAPS]; /* of pages, those being made among them */
    uint64_t reserved_bytes;
    uint64_t peak_reserved_bytes;
    uint64_t live_bytes; /* over all memories; looks at each */
    uint64_t allocation_count;
    uint64_t page_count;
    uint64_t memory_count;
    uint64_t backend_calls;
    uint64_t backend_nanoseconds;
    uint64_t metadata_bytes; /* host memory of the device and its memories; looks at each */
    uint64_t unused[4];
} quire_device_stats;

QUIRE_API QUIRE_MUST_USE quire_result quire_memory_get_stats(quire_memory *memory,
                                                             quire_memory_stats *stats);

/*
 * The figures of a part of a program: a push begins a section, the pop that belongs to it tells the
 * figures as quire_memory_get_stats does, with peaks and all that only grows counted from the push
 * on. Sections are the memory's, whatever threads work on it, and nest: a pop ends the one pushed
 * last, so that threads with sections of their own must take turns. The figures of
 * quire_memory_get_stats go on, but for the peaks and fragmentation.reserved, which in a section
 * are the section's. Those of the metadata are since creation. What is never popped ends with the
 * memory. Errors: INVALID_ARGUMENT, OUT_OF_HOST_MEMORY (push), WRONG_STATE (pop without a push).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_memory_push_stats(quire_memory *memory);
QUIRE_API QUIRE_MUST_USE quire_result quire_memory_pop_stats(quire_memory *memory,
                                                             quire_memory_stats *stats);

QUIRE_API QUIRE_MUST_USE quire_result quire_device_get_stats(quire_device *device,
                                                             quire_device_stats *stats);

/*
 * Verifies every record of a memory, in time proportional to its ranges. CORRUPTED with a sentence
 * that names the first contradiction. Checked builds then verify the red zones of every allocation
 * and what is in quarantine, and tell of writes after a free found since the last check.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_memory_check(quire_memory *memory);

/* ---- events --------------------------------------------------------------------------------- */

/* What can happen in a memory; or'ed together, what a hook wants to be told. */
typedef uint32_t quire_event_kinds;
#define QUIRE_EVENT_ALLOCATED UINT32_C(0x01) /* reserved ones, buffers and images too */
#define QUIRE_EVENT_FREED UINT32_C(0x02)     /* aborted ones too */
#define QUIRE_EVENT_REFUSED UINT32_C(0x04)   /* a request for want of memory, pages or handles */
#define QUIRE_EVENT_PAGE_MADE UINT32_C(0x08)
#define QUIRE_EVENT_PAGE_GONE UINT32_C(0x10) /* given back; its number is used again afterwards */
#define QUIRE_EVENT_PAGE_RESIZED UINT32_C(0x20) /* of a contiguous memory, to this size */

typedef struct quire_event {
    quire_event_kinds kind; /* one of the above */
    uint32_t page;
    uint64_t size;               /* held by the allocation, of the page, or asked for */
    uint64_t offset;             /* of an allocation in its page */
    uint64_t requested;          /* of an allocation */
    quire_allocation allocation; /* not to be used: it does not live yet, or no longer */
    quire_result reason;         /* of a refusal */
    uint64_t unused[4];
} quire_event;

/*
 * Called by the thread that caused the event, without a lock. Of an allocation it hears before the
 * allocation is handed out, of a free before the range can be used again. Of pages it hears once
 * this thread is not making, resizing or giving back any: a page made is in use, one that is gone
 * counts no longer, and the backend has destroyed it. Where one call moves the end of a page
 * several times, the hook hears of the last. It hears of a page's end before it hears of the next
 * page with that number. Events of different threads may come at the same time, and in another
 * order than their effects.
 *
 * It may call quire, with the conditions of a log sink (quire/base.h): what it does causes events,
 * too, and a memory that is being destroyed refuses.
 */
typedef struct quire_hook {
    void (*event)(void *user, quire_memory *memory, const quire_event *event);
    void *user;
    quire_event_kinds kinds; /* 0: all */
} quire_hook;

/*
 * Sets the hook of a memory, instead of one set before; NULL, or one without a function: none.
 * Thread-safety: no other call on the memory may be running. Errors: INVALID_ARGUMENT (a null
 * memory, unknown kinds).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_memory_set_hook(quire_memory *memory,
                                                            const quire_hook *hook);

/* ---- walk and owner ------------------------------------------------------------------------- */

/* One range of a page. Texts are valid during the call only. */
typedef struct quire_item {
    uint32_t page;
    bool dedicated; /* the page is */
    bool is_free;
    uint64_t page_size;
    uint64_t offset; /* bytes from the start of the page */
    uint64_t left_padding;
    uint64_t size;
    /* The rest is of allocations only. */
    uint64_t requested;
    uint64_t user_data;
    quire_allocation allocation; /* {0} when free, while it waits for a point (quire/stream.h), or
                                    while another thread makes or frees it */
    quire_object object;
    const char *name; /* "" without one */
} quire_item;

/*
 * Calls `visit` for every range, free and live, page by page and by address within a page; not for
 * less than a granule at a page's edges, which no allocation can have and which counts as free.
 * Each page is one moment's picture; other threads may change the memory between pages. `visit` may
 * call quire; false ends the walk. Errors: INVALID_ARGUMENT, OUT_OF_HOST_MEMORY.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_memory_walk(
    quire_memory *memory, bool (*visit)(void *user, const quire_item *item), void *user);

/* Who lies at a native address. */
typedef struct quire_owner {
    uint32_t page;
    bool is_free;                /* nobody: a free range of the page, or left padding */
    uint64_t page_offset;        /* of the address in the page */
    quire_allocation allocation; /* {0} as there */
    uint64_t offset;             /* of the address in the allocation */
} quire_owner;

/*
 * Finds the allocation that a device address, or a host pointer into a mapped page, lies in: a look
 * at every page, then at every range of the one found. The device form asks every memory and tells
 * which it was; `memory` may be NULL. Only the device addresses of pages whose quire_page_info has
 * one are known: of Vulkan's none is.
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE (no page holds the address).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_memory_find_owner(quire_memory *memory,
                                                              uint64_t address, quire_owner *owner);
QUIRE_API QUIRE_MUST_USE quire_result quire_device_find_owner(quire_device *device,
                                                              uint64_t address,
                                                              quire_memory **memory,
                                                              quire_owner *owner);

/* ---- report --------------------------------------------------------------------------------- */

/*
 * Text for people: the memory and its heap, the last refusal of an allocation with what was asked
 * and tried, the ten pages with the largest free ranges, and the live bytes by the first part of
 * the allocations' names, up to '/', '.' or ':': the twenty largest and the rest in one. The form
 * may change from version to version. `sink` is called without a lock, after all was gathered.
 * Errors: INVALID_ARGUMENT, OUT_OF_HOST_MEMORY, BAD_FILE.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_memory_write_report(quire_memory *memory,
                                                                quire_sink sink, void *user);

/* ---- JSON and picture ----------------------------------------------------------------------- */

/* The version of the JSON form below; docs/formats.md describes it. */
#define QUIRE_JSON_SCHEMA 1

/*
 * One JSON object: the memory, its figures, its pages and every range in them; a space likewise.
 * Numbers are exact 64-bit integers. Errors: INVALID_ARGUMENT, OUT_OF_HOST_MEMORY, BAD_FILE.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_memory_write_json(quire_memory *memory, quire_sink sink,
                                                              void *user);
QUIRE_API QUIRE_MUST_USE quire_result quire_space_write_json(const quire_space *space,
                                                             quire_sink sink, void *user);

/*
 * An SVG picture: one bar per page on a common scale, free bytes light, left padding hatched, every
 * allocation coloured by its name and labelled when the pointer rests on it. Errors as above.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_memory_write_svg(quire_memory *memory, quire_sink sink,
                                                             void *user);

#ifdef __cplusplus
}
#endif

#endif
