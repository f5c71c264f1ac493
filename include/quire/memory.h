/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/memory.h - memories: pages of one memory kind with one page policy and one fit.
 *
 * Most programs set `kind.intent` or `kind.required` in quire_memory_options and leave the rest 0.
 * The page policy is in quire/page_policy.h.
 *
 * Thread-safety: any thread may call any function on a live memory, except quire_memory_destroy and
 * quire_memory_destroy_all, which require that no other call on the memory runs or follows.
 */
#ifndef QUIRE_MEMORY_H
#define QUIRE_MEMORY_H

#include "quire/device.h"
#include "quire/page_policy.h"
#include "quire/space.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quire_memory quire_memory;

/* ---- options and information ---------------------------------------------------------------- */

/*
 * The clock for retention_nanoseconds. `now` returns nanoseconds since any start. If the time
 * falls, pages that became empty at a later time stay until the clock reaches that time again.
 */
typedef struct quire_clock {
    uint64_t (*now)(void *user); /* Any thread calls it, under a lock. It must not call quire and
                                    must not fork. NULL: the system's monotonic clock. */
    void *user;
} quire_clock;

/* A request that fits into no page and for which no page can be created. */
typedef struct quire_out_of_memory {
    uint64_t size;       /* bytes to place */
    uint64_t alignment;  /* bytes */
    quire_result reason; /* OUT_OF_DEVICE_MEMORY, OVER_BUDGET, TOO_MANY_PAGES or OUT_OF_RANGE */
    uint32_t times;      /* number of this call for the same request, from 1 */
    const char *name;    /* of the allocation, valid during the call; NULL: it has none */
    uint64_t unused[4];
} quire_out_of_memory;

/* Maximum number of calls of quire_on_out_of_memory for one request. */
#define QUIRE_MAX_OUT_OF_MEMORY_CALLS 16

/*
 * A callback that frees memory before a request is refused for lack of it. The thread of the
 * request calls it without holding a lock. It may free, trim and allocate; its own allocations can
 * call it again. quire has released empty pages before, also those of the device's other memories.
 * Return true if something was freed: quire tries the request again. Return false to refuse the
 * request. It is not called for a request that exceeds the heap, or quire_limits.max_page, by
 * itself. NULL: no callback.
 */
typedef struct quire_on_out_of_memory {
    bool (*callback)(void *user, quire_memory *memory, const quire_out_of_memory *report);
    void *user;
} quire_on_out_of_memory;

/* A limit of a memory as a share of its heap: see quire_memory_set_limit. */
#define QUIRE_PERCENT_OF_HEAP(percent) (UINT64_MAX - 1000 + (percent))

/* The lowest value of quire_memory_options.priority: 0 in Vulkan's terms. */
#define QUIRE_PRIORITY_LOWEST (-1.0F)

/*
 * Each option that is 0 has a default, which the field states. The user of the program may set some
 * of them for all its memories, by the environment variable QUIRE_OPTIONS: docs/guide.md.
 */
typedef struct quire_memory_options {
    const char *name; /* copied, at most QUIRE_MAX_NAME bytes; NULL: "memory" */

    /*
     * Selects the memory kind. Without an intent and flags: a mask of one bit selects that kind,
     * otherwise the kind must be device-local, as with QUIRE_INTENT_DEVICE.
     */
    quire_kind_request kind;
    /*
     * The memory has one shared page that covers a range of addresses, of which the chunks in use
     * have memory. A request that no free range holds gets a place first, which is then given
     * memory: that of free chunks elsewhere in the page, and new memory for the rest. It fails only
     * if there is no memory, so that free ranges between live ones are never lost. Addresses,
     * offsets and pointers of allocations do not change. pages.page_size is the size of a chunk, a
     * power of two; 0: 256 KiB or the granularity of elastic pages, if that is larger. A chunk is
     * larger if the granule is, or if the addresses have more than 2^20 of them or than
     * quire_limits.max_chunks. Of the other fields of `pages`, those that say how large pages are
     * must be 0. Dedicated pages are created as in other memories. Retention keeps free bytes
     * instead of empty pages: by default those leave that were free for a second, beyond a tenth of
     * the memory; within retained_empty_bytes new memory comes before that of free chunks.
     * UNSUPPORTED for kinds whose pages cannot be elastic (quire_limits.elastic_kinds), with
     * several shards, with other fits than segregated, and if the request requires a host-visible
     * kind on a device whose elastic pages cannot be mapped (quire_limits.elastic_unmapped).
     */
    bool elastic;
    /*
     * Allocations are found by address: see quire_memory_find, quire_device_find and
     * quire_free_at_address. Every allocation and every free then updates a table. The table takes
     * up to 100 bytes of host memory for each allocation that was live at the peak, until the
     * memory is destroyed. A page takes one bit for each of its granules: an eighth of its size
     * with the fits first and linear, whose granule is 1 byte; in an elastic page only what has
     * memory takes them. Another page of 2^32 granules or more is UNSUPPORTED. Without the option
     * the three functions return UNSUPPORTED, and nothing is updated.
     */
    bool find_by_address;
    /* Host-visible pages are mapped only while an allocation in them is mapped or a call uses their
       bytes. quire_write and the like then map and unmap, and can fail with errors of the backend.
       Flush before an unmap where the kind is not coherent. Without effect on pages that keep their
       host address (host, CUDA, plugin). find_by_address: device addresses only. docs/guide.md */
    bool map_on_demand;
    /*
     * The memory stays within the budget that the backend reports for the heap: a page or a growth
     * that would exceed it is refused with OVER_BUDGET, and the backend is not called for it. A
     * page that exceeds it because the backend made it larger than requested is destroyed again.
     * Pages that exist stay when the budget falls. Without effect where the backend reports none.
     *
     * Without the option the budget is advice. quire first requests smaller pages within it and
     * searches every free range. Then it requests a page beyond the budget, counts it in
     * quire_memory_stats.pages_over_budget and reports QUIRE_EVENT_OVER_BUDGET. Such a page is as
     * large as the request needs. If the pages of the heap exceed the budget already, the page is
     * at least as large as that excess, up to the size of the policy. Limits set by the caller
     * always hold. Set the option if the next memory of a fallback list, or on_out_of_memory, is
     * better than a page beyond the budget.
     */
    bool within_budget;
    /* All raw allocations are movable, and all buffers of quire_buffer_options: see
       quire_allocation_options.movable. */
    bool movable;

    /*
     * The fit places allocations in the pages: see quire_fit_options. The linear fit uses one
     * shared page. Larger requests than page_size then get a dedicated page, and smaller ones that
     * do not fit fail with TOO_MANY_PAGES.
     */
    quire_fit_options fit;

    /*
     * Number of shards, at most 64. A shard has a lock and pages of its own, so that threads that
     * allocate at the same time do not wait for each other.
     *
     * 0: the memory begins with one shard. When allocating calls of several threads often wait for
     * each other, the number doubles, at most to the number of processors that the process may use
     * and to pages.max_pages. Frees and statistics do not cause this. Existing allocations do not
     * move. The hook gets QUIRE_EVENT_SHARDS. A memory in which only one thread allocates keeps one
     * shard. So do the fits first and linear, and elastic memories.
     *
     * 1: one shard always. With one shard, identical requests in the same order give identical
     * placements. With slabs, and while 250,000 ranges or more exist, live and free, statistics,
     * walks and trims influence later placements too; make them at the same places in that order.
     *
     * Other numbers: that many always. The linear fit and elastic memories support one shard
     * (otherwise UNSUPPORTED).
     *
     * Every shard in use has at least one page. It has 1 MiB by default, so that 16 shards with
     * little in them reserve 16 MiB; an explicit pages.page_size applies to each of them.
     */
    uint32_t shards;
    quire_page_policy pages;
    quire_clock clock;
    quire_on_out_of_memory on_out_of_memory;
    uint64_t limit; /* maximum bytes of pages, as in quire_memory_set_limit; 0: none */
    /* Eviction priority of the pages, above 0 and up to 1, or QUIRE_PRIORITY_LOWEST; 0: 0.5. A
       hint: a driver that runs out of device memory evicts pages of lower priority first. Backends
       without priorities ignore it. */
    float priority;
    /* Bytes of addresses reserved for the page of an elastic memory. 0: four times the size of the
       heap, and at most 2^20 chunks and quire_limits.max_elastic_page. UNSUPPORTED beyond that
       limit. If the system cannot reserve them (an address space limit, a
       sanitizer), the first allocation fails with OUT_OF_DEVICE_MEMORY. INVALID_ARGUMENT for other
       memories. */
    uint64_t address_space;
    uint64_t unused[4]; /* must be zero */
} quire_memory_options;

typedef struct quire_memory_info {
    const char *name; /* valid as long as the memory */
    quire_device *device;
    uint32_t kind;            /* index into quire_device_info.kinds */
    quire_memory_flags flags; /* of the kind; includes all required flags. Those of the host are
                                 left out where elastic pages cannot be mapped */
    bool mappable;            /* the flags have QUIRE_HOST_VISIBLE */
    bool checked;             /* has red zones and a quarantine: see docs/checked.md */
    bool within_budget;       /* as in the options */
    bool exportable;          /* its pages can be exported: see QUIRE_INTENT_EXPORT */
    quire_fit fit;
    uint64_t page_size;     /* bytes of the next page, unless its request needs another size; of an
                               elastic memory those of a chunk */
    uint64_t granule;       /* bytes */
    uint32_t page_count;    /* live pages; 0 in a new memory */
    uint32_t shards;        /* their number now */
    uint64_t limit;         /* maximum bytes of pages; 0: none */
    uint64_t address_space; /* bytes that the page of an elastic memory can have; 0: the memory
                               is not elastic */
    uint64_t unused[4];
} quire_memory_info;

typedef struct quire_page_info {
    uint32_t page; /* its number */
    bool dedicated;
    bool mappable; /* the kind is host-visible */
    uint64_t size; /* bytes, like the byte counts below */
    /* Native address of the first byte; 0 if the backend reports none when it creates a page, as
       the Vulkan backend: see quire_allocation_info.address. */
    uint64_t address;
    uint64_t live_bytes;
    uint64_t free_bytes;
    uint64_t largest_free; /* computed by a look at every range of the page */
    uint64_t allocation_count;
    uint64_t peak_live_bytes;
    uint64_t unused[4];
} quire_page_info;

/*
 * Creates a memory without pages. The first allocation creates the first page. NULL options mean
 * {0}. Errors: INVALID_ARGUMENT, UNSUPPORTED (no kind fits, the backend cannot export, or an option
 * is not available with the fit, the kind or the shards), OUT_OF_HOST_MEMORY.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_memory_create(quire_device *device,
                                                          const quire_memory_options *options,
                                                          quire_memory **memory);

/*
 * Destroys a memory and its pages. Returns BUSY while allocations live, while freed allocations
 * wait for a point of a stream, while a compaction has not ended (quire/compact.h), or while
 * objects of the backend belong to the memory. The error
 * names the first live allocations or objects, the log lists all of them at warning level. Nothing
 * changes then, and *memory stays valid. Waits while a call on another memory takes empty pages of
 * this one, and for the hook that it calls: hold no lock that the hook acquires.
 */
QUIRE_API quire_result quire_memory_destroy(quire_memory **memory);

/*
 * Destroys a memory with everything in it: live, mapped and reserved allocations, which no work
 * uses any more, objects of the backend, a compaction, and what hooks and log sinks allocate during
 * the call.
 * Never fails; *memory becomes NULL. Sleeps until the points that freed allocations wait for have
 * passed. If no point of a stream passes for one minute, the call frees the rest anyway and logs a
 * warning that names the stream. If work takes longer between two points, wait for it first.
 */
QUIRE_API void quire_memory_destroy_all(quire_memory **memory);

/*
 * Calls `visit` for each memory of a device in the order of creation, default memories included.
 * Returning false ends the walk. `visit` may call quire, and may destroy the memory. Memories that
 * are made meanwhile are visited too. A thread that destroys a memory, or sets its hook, waits for
 * visits of the memory by other threads. Errors: INVALID_ARGUMENT.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_device_walk(
    const quire_device *device, bool (*visit)(void *user, quire_memory *memory), void *user);

/* Writes the description of a memory. Errors: INVALID_ARGUMENT. */
QUIRE_API QUIRE_MUST_USE quire_result quire_memory_get_info(const quire_memory *memory,
                                                            quire_memory_info *info);

/*
 * Writes the description of one page. The number of a page does not change while it lives. A new
 * page gets the lowest free number. Errors: INVALID_ARGUMENT, OUT_OF_RANGE (no live page has this
 * number).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_page_get_info(const quire_memory *memory, uint32_t page,
                                                          quire_page_info *info);

/* ---- keeping and releasing pages ------------------------------------------------------------ */

/*
 * Frees what waits for points that have passed, as quire_collect. Then releases empty pages,
 * highest page numbers first, until at most `target` bytes of empty pages are left. Also releases,
 * whatever the target, pages that the policy's retention no longer keeps, and host memory that is
 * not needed. Cancels quire_memory_preallocate. Writes the released bytes of pages to *released,
 * which may be NULL. Errors: INVALID_ARGUMENT.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_memory_trim(quire_memory *memory, uint64_t target,
                                                        uint64_t *released);

/*
 * As quire_memory_trim for all memories of a device, in the order of their creation. At most
 * `target` bytes of empty pages are left in all of them together, first in those made first.
 * Errors: INVALID_ARGUMENT.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_device_trim(quire_device *device, uint64_t target,
                                                        uint64_t *released);

/*
 * Creates pages until the memory has at least `bytes` of them, in use or empty. Pages that follow
 * use then have the shard's part of `bytes`, at most 32 MiB. From then on the memory keeps that
 * many bytes, beyond what retention says; 0 keeps none. It does not release them for a request that
 * does not fit either: trim to allow that. A trim or another preallocation by any thread replaces
 * this one, even while it creates pages.
 * Errors: INVALID_ARGUMENT, UNSUPPORTED (QUIRE_DEDICATED_ALWAYS: no page exists before its
 * allocation), OUT_OF_DEVICE_MEMORY (also if `bytes` exceeds the heap), and the errors of creating
 * a page (see quire_allocate). On failure to create a page the previous amount is kept, and empty
 * pages beyond it are released.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_memory_preallocate(quire_memory *memory,
                                                               uint64_t bytes);

/* ---- budgets -------------------------------------------------------------------------------- */

/*
 * Limits the bytes of the memory's pages; 0: no limit. QUIRE_PERCENT_OF_HEAP(50) is a share of the
 * size of the heap, from 1 to 100 percent, rounded down to bytes. May be called at any time. A page
 * that would exceed the limit fails with OVER_BUDGET, and the backend is not called for it. quire
 * tries smaller pages first, and existing pages serve what fits in them. A limit below the current
 * use releases empty pages as quire_memory_trim does, until the rest is within the limit; it frees
 * nothing else. Running calls may still use the previous limit. A page must also respect the limits
 * of its heap and device (quire/device.h).
 * Errors: INVALID_ARGUMENT (also for a share above 100 percent).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_memory_set_limit(quire_memory *memory, uint64_t bytes);

/* The sum over all allocations whose names start with one prefix. */
typedef struct quire_name_usage {
    uint64_t limit;           /* bytes, set for exactly this prefix; 0: none */
    uint64_t held_bytes;      /* includes left padding */
    uint64_t requested_bytes; /* as the requests said */
    uint64_t allocation_count;
    uint64_t unused[4];
} quire_name_usage;

/*
 * Limits the bytes held by all allocations whose names start with `prefix`; 0 removes the limit.
 * May be called at any time. "" matches every name; an allocation without a name matches no prefix.
 * If several prefixes match a name, all their limits hold. An allocation, or a change of a name,
 * that would exceed a limit fails with OVER_BUDGET. A limit below the current use frees nothing.
 * Setting a limit takes time proportional to the number of allocations. Every later allocation,
 * free and change of a named allocation takes time proportional to the number of limits.
 * Errors: INVALID_ARGUMENT (also if the prefix is longer than a name can be), OUT_OF_HOST_MEMORY.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_memory_set_name_limit(quire_memory *memory,
                                                                  const char *prefix,
                                                                  uint64_t bytes);

/*
 * Writes what the allocations with this prefix hold now. Without a limit on the prefix this takes
 * time proportional to the number of allocations. Errors: INVALID_ARGUMENT.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_memory_get_name_usage(const quire_memory *memory,
                                                                  const char *prefix,
                                                                  quire_name_usage *usage);

#ifdef __cplusplus
}
#endif

#endif
