/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * state/memory.h - the record of a memory: its configuration, its pages, its slots, its shards.
 *
 * The fields up to max_fast_size, max_shards and space are constant, with these exceptions. hook
 * changes only while no other thread uses the memory, and waits for visitors. event_kinds,
 * is_ending, host, calls and account are atomic. slots, pages and shards each have a
 * lock. The list of the shards grows under the locks of all of them. The other fields name the lock
 * that protects them.
 *
 * No lock is ever held during a backend call, a log line or a callback. Slow work (creating or
 * destroying a page, binding, copying) is prepared under a lock, done without it, and published
 * under it again. The slots' state words are atomic. The native side of a page does not change
 * while an allocation in it is in use.
 *
 * Invariants: reserved_bytes of the pages is the sum over the LIVE pages. Summed over the shards,
 * live_bytes is the sum of size and left padding over the allocations, and the bytes of the empty
 * pages are those of the LIVE pages without allocations.
 */
#ifndef QUIRE_SRC_CORE_STATE_MEMORY_H
#define QUIRE_SRC_CORE_STATE_MEMORY_H

#include "src/base/thread.h"
#include "src/core/device/device.h"
#include "src/core/slot/name_limit.h"
#include "src/core/slot/slot.h"
#include "src/core/state/page.h"
#include "src/core/state/peaks.h"
#include "src/core/state/shard.h"

/* What a compaction would do at most. */
typedef struct qi_compactable {
    uint64_t pages, page_bytes;
    uint64_t moves, move_bytes; /* of the allocations, with left padding */
} qi_compactable;

struct quire_memory {
    quire_device *device;
    quire_memory *next_of_device;
    char *name;
    uint32_t kind;
    quire_memory_flags flags;
    bool exportable;
    bool maps_on_demand;      /* host-visible pages are mapped while they are used: page/map.h */
    bool is_default;          /* the device owns it: see memory/default_memory.h */
    bool within_budget;       /* its pages never exceed the backend's budget */
    float priority;           /* eviction priority of its pages, 0 to 1 */
    quire_page_extra extra;   /* what the backend wants to know of each page */
    quire_page_policy policy; /* resolved */
    quire_clock clock;
    quire_on_out_of_memory on_out_of_memory;
    quire_hook hook;           /* kinds 0: none */
    qi_atomic_u32 event_kinds; /* that this hook, that of the device, or a watcher wants */
    void *_Atomic watchers;    /* the first qi_watcher (event.h), or NULL; with the device's lock */
    qi_atomic_u32 is_ending;   /* 1: being destroyed, makes no more pages; visitors read it */
    qi_atomic_u32 frame;       /* the current one, from 1 on: slot/recency.h */
    bool is_movable;           /* raw allocations are movable by default */
    bool is_elastic;           /* its only shared page has holes (page/backing.h) */
    uint64_t address_space;    /* bytes of addresses of its only shared page; 0: it has pages */
    uint64_t chunk;            /* bytes, a power of two: see resolve_chunk; 0: it has pages */
    uint64_t max_alignment;
    uint64_t granule;
    uint64_t atom; /* sizes and alignments are multiples of it; 1 unless mapped and not coherent */
    quire_fit fit;
    qi_host host;
    qi_calls calls;
    qi_account account; /* bytes of its pages, from before their creation until after their end */

    qi_compactable compactable; /* as the last refusal found it; protected by the pages' lock */
    uint64_t compactable_at;    /* sum of the counters then: stats/compactable.c; likewise */
    struct quire_compaction *compaction; /* that has not ended; protected by the pages' lock */
    const void *mover; /* qi_thread_self of the thread that is in a step of it; likewise; or NULL */
    uint64_t max_fast_size;         /* see qi_request_max_fast; 0 disables the fast path */
    uint8_t extras;                 /* of all its allocations: QI_EXTRA_ADDRESS, or 0 */
    struct qi_addresses *addresses; /* find/addresses.h; NULL without find_by_address; constant */

    qi_slots slots;
    qi_pages pages;
    qi_atomic_u32 shard_count; /* see qi_shard_count */
    /* 1: an allocating call does what it could not do under a lock (allocate/shard_growth.h); set
       under the lock of a shard, cleared under the locks of all */
    qi_atomic_u32 has_left_work;
    qi_shard *shards[QI_MAX_SHARDS];
    uint32_t max_shards; /* shard_count grows up to this */
    /*
     * 1: images of optimal tiling have shard 0 and its pages for themselves, so that they need not
     * begin and end at multiples of the buffer-image granularity. The threads have the other
     * shards. 0: there is no such shard.
     */
    uint32_t first_shard;
    quire_space_options space;           /* of the space of each shard */
    qi_peaks peaks;                      /* of several shards together */
    qi_names names;                      /* limits by name prefix */
    struct qi_stats_scope *stats_scopes; /* innermost first; protected by the locks of all shards */
    quire_attachment *attachments;       /* of the backend; protected by the device's lock */
    uint32_t visitors;                   /* likewise; see state/visitors.h */
    bool is_closed;                      /* likewise: no visit begins any more */
    qi_atomic_u64 oom_reports;           /* refused allocations so far; numbers them */
    /* the thread that destroys it, set once the destruction cannot fail any more (memory/fork.h) */
    const void *destroying_thread;
    uint32_t tag; /* of its slots, which have QI_TAG_DISABLED instead if the device is disabled */
    bool
        has_orphans; /* in the child of a fork: PRIVATE slots of threads without a copy may exist */
#ifdef QUIRE_CHECKED
    qi_checked checked;
#endif
};

/* Bytes of a chunk, where the options of an elastic memory have none. */
enum { QI_DEFAULT_CHUNK = 256 << 10 };

/* Returns the bytes of a chunk; of a memory with pages, those that an elastic one would have. */
static inline uint64_t qi_memory_elastic_chunk(const quire_memory *memory)
{
    uint64_t chunk = memory->chunk;
    if (chunk)
        return chunk;
    chunk = memory->device->info.limits.elastic_granularity;
    qi_raise(&chunk, QI_DEFAULT_CHUNK);
    qi_raise(&chunk, memory->granule);
    return chunk;
}

/* Returns the memory of a query, which takes it const: its locks and counters change. */
static inline quire_memory *qi_memory_queried(const quire_memory *memory)
{
    return (quire_memory *)(uintptr_t)memory;
}

/* Returns the record of a slot that the caller has in use, has claimed or has PRIVATE. */
static inline qi_slot *qi_memory_slot(const quire_memory *memory, uint32_t slot)
{
    return qi_slot_at(&memory->slots, slot);
}

/* Returns the page of such a slot. */
static inline qi_page *qi_memory_page(const quire_memory *memory, uint32_t slot)
{
    return qi_memory_slot(memory, slot)->tally->page;
}

/*
 * Returns the number of shards. It only grows, and only under the locks of all shards that exist:
 * while a thread holds the lock of a shard, the number does not change.
 */
static inline uint32_t qi_shard_count(const quire_memory *memory)
{
    return qi_atomic_load_acquire_u32(&memory->shard_count);
}

/*
 * Returns the shard of a slot and its page. Does not read the record if there is one shard. The
 * caller has the slot from a thread that knew its shard, and therefore knows that it exists.
 */
static inline qi_shard *qi_shard_of(const quire_memory *memory, const qi_slot *record)
{
    return memory->shards[qi_shard_count(memory) == 1 ? 0 : record->shard];
}

static inline qi_shard *qi_shard_of_slot(const quire_memory *memory, uint32_t slot)
{
    return qi_shard_of(memory, qi_memory_slot(memory, slot));
}

/*
 * Returns the shard that the calling thread allocates in. The number of shards may grow before the
 * thread takes the lock: the shard is as good as another.
 */
static inline qi_shard *qi_shard_mine(quire_memory *memory)
{
    uint32_t count = qi_shard_count(memory);
    if (count == 1)
        return memory->shards[0];
    uint32_t first = memory->first_shard, number = first + qi_thread_number();
    if (number >= count) /* a division takes long */
        number = first + (number - first) % (count - first);
    return memory->shards[number];
}

/* Returns among how many shards the bytes of a policy are divided. That of images counts from its
   first allocation on. */
static inline uint32_t qi_shard_shares(const quire_memory *memory)
{
    uint32_t count = qi_shard_count(memory);
    bool is_unused = memory->first_shard && !qi_atomic_load_u64(&memory->shards[0]->allocations);
    return is_unused ? count - 1 : count;
}

/* Whether the pages of a shard are for images of optimal tiling alone. */
static inline bool qi_shard_is_for_images(const quire_memory *memory, const qi_shard *shard)
{
    return shard->index < memory->first_shard;
}

#endif
