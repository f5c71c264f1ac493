/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/insight.h - observing a memory or a device: statistics, checks, events, a walk over every
 * range, a report, JSON and a picture. quire/allocation.h finds allocations by address.
 *
 * quire keeps statistics all the time. Reading them takes constant time, except where a field says
 * otherwise.
 *
 * Thread-safety: any thread may call any function on a live memory or device, except
 * quire_memory_set_hook and quire_device_set_hook.
 */
#ifndef QUIRE_INSIGHT_H
#define QUIRE_INSIGHT_H

#include "quire/allocation.h"
#include "quire/resource.h"
#include "quire/space.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- statistics ----------------------------------------------------------------------------- */

/* Four measures of lost memory, from the same data. The first two are shares from 0 to 1. */
typedef struct quire_fragmentation {
    double reserved;   /* 1 - peak live / peak reserved: bytes of pages beyond their contents */
    double free;       /* 1 - largest free / all free: how divided the free bytes are */
    uint64_t internal; /* bytes that live allocations hold beyond the requested ones */
    uint64_t split;    /* free bytes in pages that also hold allocations, which thus cannot be
                          released */
} quire_fragmentation;

typedef struct quire_memory_stats {
    uint64_t live_bytes;      /* held by allocations, including left padding */
    uint64_t requested_bytes; /* requested by those allocations */
    uint64_t reserved_bytes;  /* sum of the pages */
    uint64_t free_bytes;      /* reserved_bytes - live_bytes */
    uint64_t empty_bytes;     /* part of free_bytes: in pages without an allocation */
    uint64_t largest_free;    /* in shared pages; takes a look at the ranges of one size class */
    uint64_t allocation_count;
    uint64_t page_count;

    /*
     * Peaks since creation or the last quire_memory_push_stats, each on its own. They are exact,
     * also with several shards. A free by a thread of another shard lowers a sum when that shard
     * takes note of it; calls on the whole memory see every free that returned before them.
     */
    uint64_t peak_live_bytes;
    uint64_t peak_requested_bytes;
    uint64_t peak_reserved_bytes;
    uint64_t peak_allocation_count;
    uint64_t peak_page_count;

    uint64_t allocations; /* counts since creation */
    uint64_t frees;
    uint64_t failures; /* allocations refused for lack of memory, pages or handles */
    uint64_t pages_created;
    uint64_t pages_destroyed;
    uint64_t backend_calls;       /* calls of all backend functions for this memory */
    uint64_t backend_nanoseconds; /* time in them, except calls for objects */
    uint64_t metadata_bytes;      /* current host memory of the memory's own records */
    uint64_t metadata_peak;       /* its maximum since creation */
    uint64_t full_passes;         /* full searches before an allocation was refused */
    uint64_t full_pass_hits; /* full searches that found a range the bounded search had missed */
    quire_fragmentation fragmentation;
    uint64_t deferred_bytes; /* part of live_bytes: freed, until a point passes (quire/stream.h) */
    uint64_t deferred_count; /* part of allocation_count: likewise */
    /* Since creation: how often a page was made, or an elastic page got memory, beyond the
       budget of the backend. 0 with quire_memory_options.within_budget. */
    uint64_t pages_over_budget;
    uint64_t asleep_bytes; /* of allocations that sleep (quire/elastic.h); no part of live_bytes */
    uint64_t asleep_count; /* part of allocation_count: likewise */
    uint64_t unused[2];
} quire_memory_stats;

typedef struct quire_device_stats {
    uint64_t heap_reserved_bytes[QUIRE_MAX_HEAPS]; /* of pages, including those being created */
    uint64_t reserved_bytes;                       /* sum over the heaps */
    uint64_t peak_reserved_bytes;
    uint64_t live_bytes; /* sum over all memories; takes a look at each */
    uint64_t allocation_count;
    uint64_t page_count;
    uint64_t memory_count;
    uint64_t backend_calls;
    uint64_t backend_nanoseconds;
    uint64_t metadata_bytes; /* host memory of the device and its memories; takes a look at each */
    /* Sums over the memories that live now, of the fields with these names. */
    uint64_t requested_bytes;
    uint64_t free_bytes;
    uint64_t empty_bytes;
    uint64_t deferred_bytes;
    uint64_t allocations;
    uint64_t frees;
    uint64_t failures;
    uint64_t pages_created;
    uint64_t pages_destroyed;
    uint64_t pages_over_budget;
    uint64_t unused[4];
} quire_device_stats;

/* Writes the statistics of a memory. Errors: INVALID_ARGUMENT. */
QUIRE_API QUIRE_MUST_USE quire_result quire_memory_get_stats(const quire_memory *memory,
                                                             quire_memory_stats *stats);

/*
 * Statistics of a part of a program: a stats scope. Push begins a scope. The matching pop ends it
 * and writes the statistics as quire_memory_get_stats does, with peaks and counts counted from the
 * push on. Statistics of the metadata stay those since creation.
 *
 * Scopes belong to the memory, not to a thread, and nest: a pop ends the scope that was pushed
 * last. Threads that push separate scopes must take turns. During a scope quire_memory_get_stats
 * reports counts since creation, but the peaks and fragmentation.reserved of the scope. A scope
 * that is never popped ends with the memory.
 * Errors: INVALID_ARGUMENT, OUT_OF_HOST_MEMORY (push), WRONG_STATE (pop without a push).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_memory_push_stats(quire_memory *memory);
QUIRE_API quire_result quire_memory_pop_stats(quire_memory *memory, quire_memory_stats *stats);

/* Writes the statistics of a device. Errors: INVALID_ARGUMENT. */
QUIRE_API QUIRE_MUST_USE quire_result quire_device_get_stats(const quire_device *device,
                                                             quire_device_stats *stats);

/*
 * Verifies every record of a memory, in time proportional to the number of its ranges. Checked
 * builds then verify the red zones of every allocation and the contents of the quarantine, and
 * report writes after a free that were found since the last check.
 * Errors: INVALID_ARGUMENT, CORRUPTED (the sentence names the first contradiction).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_memory_check(const quire_memory *memory);

/* ---- events --------------------------------------------------------------------------------- */

/* Kinds of events in a memory; a hook combines those that it wants. */
typedef uint32_t quire_event_kinds;
#define QUIRE_EVENT_ALLOCATED UINT32_C(0x01) /* includes reserve, buffers and images */
#define QUIRE_EVENT_FREED UINT32_C(0x02)     /* includes abort */
#define QUIRE_EVENT_REFUSED UINT32_C(0x04)   /* a request, for lack of memory, pages or handles */
#define QUIRE_EVENT_PAGE_MADE UINT32_C(0x08)
#define QUIRE_EVENT_PAGE_GONE UINT32_C(0x10)    /* released; its number is free afterwards */
#define QUIRE_EVENT_PAGE_RESIZED UINT32_C(0x20) /* an elastic page got or lost memory: bytes now */
#define QUIRE_EVENT_SHARDS UINT32_C(0x40) /* the memory has more shards: quire_memory_options */
/* a page was made or resized although the heap's pages exceed the backend's budget with it; comes
   after the event of the page, with the same number and size */
#define QUIRE_EVENT_OVER_BUDGET UINT32_C(0x80)
/* quire_memory_sleep has put an allocation to sleep, or quire_memory_evict has evicted one, whose
   page is QUIRE_NO_PAGE then */
#define QUIRE_EVENT_ASLEEP UINT32_C(0x100)
#define QUIRE_EVENT_AWAKE UINT32_C(0x200) /* quire_memory_wake or quire_wake has woken one */
/* a compaction has moved an allocation: page and offset are the new ones, and the allocation can be
   used; comes before the step returns, or quire_compact_accept */
#define QUIRE_EVENT_MOVED UINT32_C(0x400)

typedef struct quire_event {
    quire_event_kinds kind; /* one of the above */
    uint32_t page;          /* its number; 0 for QUIRE_EVENT_SHARDS and refusals */
    uint64_t size;          /* bytes: held by the allocation, of the page, or requested; of
                                    QUIRE_EVENT_SHARDS: the number of shards now */
    uint64_t offset;        /* of an allocation: in its page */
    uint64_t requested;     /* of an allocation: bytes requested */
    quire_allocation
        allocation;       /* must not be used, unless it has moved or was evicted or woken in a
                                    memory of pages: it is not live yet, or no longer, or a call
                                    puts it to sleep or wakes it */
    quire_result reason;  /* of a refusal */
    const char *name;     /* of an allocation, valid during the call; NULL: it has none */
    uint64_t alignment;   /* bytes, of QUIRE_EVENT_ALLOCATED, as requested; at least 1 */
    quire_stream *stream; /* on which it is allocated or freed; NULL: none */
    /* The events of a device count from 1. An event that happens after another one, at the same
       address for example, has a higher number. */
    uint64_t number;
    uint64_t time_ns; /* of the monotonic clock */
    uint64_t unused[4];
} quire_event;

/*
 * A callback for events. The thread that causes an event calls it, without holding a lock. That may
 * be a thread that needs a page in another memory of the device, and takes an empty one of this.
 *
 * Order: the hook gets an allocation before the caller gets the handle, and a free before the range
 * can be used again. It gets events of pages when its thread is not creating, resizing or releasing
 * a page: a created page is in use already; a released page no longer counts, and the backend has
 * destroyed it. If one call moves the end of a page several times, the hook gets the last one. The
 * hook gets the release of a page before the next page with that number. It gets QUIRE_EVENT_SHARDS
 * from an allocating call, before the event of the allocation. Events of different threads may come
 * at the same time, and in another order than their effects.
 *
 * The hook may call quire, under the conditions of a log sink (quire_log). What it does causes
 * further events. A memory that is being destroyed refuses requests.
 */
typedef struct quire_hook {
    void (*event)(void *user, quire_memory *memory, const quire_event *event);
    void *user;
    quire_event_kinds kinds; /* 0: all */
    uint64_t unused[4];      /* must be zero */
} quire_hook;

/*
 * Sets the hook of a memory and replaces the previous one. NULL, or a hook without a function,
 * removes it. The struct is copied.
 * Thread-safety: no other call on the memory may run. Waits while a call on another memory takes
 * empty pages of this one, and for the hook that it calls: hold no lock that the hook acquires.
 * Errors: INVALID_ARGUMENT (also for unknown kinds).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_memory_set_hook(quire_memory *memory,
                                                            const quire_hook *hook);

/*
 * Sets the hook of a device, which gets the events of all its memories, also of those that are made
 * later. A memory's own hook gets an event first.
 * Thread-safety: no other call on the device or on its memories may run.
 * Errors: INVALID_ARGUMENT (also for unknown kinds).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_device_set_hook(quire_device *device,
                                                            const quire_hook *hook);

/* ---- walk ----------------------------------------------------------------------------------- */

/* One range of a page. Texts are valid during the call only. */
typedef struct quire_item {
    uint32_t page;  /* its number */
    bool dedicated; /* the page is dedicated */
    bool is_free;
    bool asleep;         /* it sleeps (quire/elastic.h); set for allocations only */
    uint64_t page_size;  /* bytes; of an elastic page those up to the last that has memory */
    uint64_t page_bytes; /* that have memory: less than page_size if an elastic page has gaps */
    uint64_t offset;     /* from the start of the page, bytes */
    uint64_t left_padding;
    uint64_t size;
    /* The fields below are set for allocations only. */
    uint64_t requested;
    uint64_t user_data;
    quire_allocation allocation; /* {0} if free, while it waits for a point (quire/stream.h), and
                                    while another thread makes or frees it */
    quire_object object;
    const char *name; /* "" if it has none */
    uint64_t backed;  /* bytes of `size` that have memory: fewer in a lazy allocation, 0 asleep */
} quire_item;

/*
 * Calls `visit` for every range, free and live: pages by number, ranges of a page by address. Less
 * than a granule at the edges of a page is not visited: no allocation can use it, and it counts as
 * free. Stretches of an elastic page without memory are not visited either. Each page is a
 * consistent snapshot; other threads may change the memory between two pages. `visit` may call
 * quire. Returning false ends the walk. Errors: INVALID_ARGUMENT, OUT_OF_HOST_MEMORY.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_memory_walk(
    const quire_memory *memory, bool (*visit)(void *user, const quire_item *item), void *user);

/* ---- report --------------------------------------------------------------------------------- */

/*
 * Writes text for people: the memory and its heap; the last refused allocation, with the request,
 * the steps that quire tried and the kinds that refused the same call; the ten pages with the
 * largest free ranges, and the allocations on both sides of each; how large a free range would be
 * if the live ranges of a page moved together, and what an elastic memory would reserve; the live
 * bytes grouped by the first part of the names, up to '/', '.' or ':', the twenty largest and the
 * sum of the rest. The form may change between versions. quire calls `sink` without holding a lock,
 * after it has collected everything. Errors: INVALID_ARGUMENT, OUT_OF_HOST_MEMORY, BAD_FILE (the
 * sink returned false).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_memory_write_report(const quire_memory *memory,
                                                                quire_sink sink, void *user);

/* The same for a device: its heaps, then the report of each memory. */
QUIRE_API QUIRE_MUST_USE quire_result quire_device_write_report(const quire_device *device,
                                                                quire_sink sink, void *user);

/*
 * The same as one JSON object with exact 64-bit integers, and null for what there is not;
 * docs/formats.md has its keys, and QUIRE_JSON_SCHEMA is its version. That of a device has its
 * heaps and the reports of all memories. Errors as quire_memory_write_report.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_memory_write_report_json(const quire_memory *memory,
                                                                     quire_sink sink, void *user);
QUIRE_API QUIRE_MUST_USE quire_result quire_device_write_report_json(const quire_device *device,
                                                                     quire_sink sink, void *user);

/* ---- JSON and picture ----------------------------------------------------------------------- */

/* The version of the JSON below. docs/formats.md describes it. */
#define QUIRE_JSON_SCHEMA 1

/*
 * Writes one JSON object with the memory, or the space, its statistics, its pages and all their
 * ranges; of a device with its statistics, its heaps and all memories. Numbers are exact 64-bit
 * integers. Errors as quire_memory_write_report.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_device_write_json(const quire_device *device,
                                                              quire_sink sink, void *user);
QUIRE_API QUIRE_MUST_USE quire_result quire_memory_write_json(const quire_memory *memory,
                                                              quire_sink sink, void *user);
QUIRE_API QUIRE_MUST_USE quire_result quire_space_write_json(const quire_space *space,
                                                             quire_sink sink, void *user);

/*
 * Writes an SVG picture. Each page is a bar of the same width with its size beside it: free bytes
 * light, left padding hatched, each allocation in the colour of the first part of its name, and
 * labelled when the pointer rests on it. A legend lists the first parts (up to '/', '.' or ':')
 * with the most bytes. The picture of a device has the pages of each memory below its name, and one
 * legend. Errors as quire_memory_write_report.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_device_write_svg(const quire_device *device,
                                                             quire_sink sink, void *user);
QUIRE_API QUIRE_MUST_USE quire_result quire_memory_write_svg(const quire_memory *memory,
                                                             quire_sink sink, void *user);

#ifdef __cplusplus
}
#endif

#endif
