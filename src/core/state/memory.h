/*
 * state/memory.h - the record of a memory: its configuration, its pages, its slots, its shards.
 *
 * The fields up to max_fast_size are constant, with these exceptions. The hook and is_ending change
 * only while no other thread uses the memory. host, calls and account are atomic. slots, pages and
 * shards each have a lock. The other fields name the lock that protects them.
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
#include "src/core/state/shard.h"

struct quire_memory {
    quire_device *device;
    quire_memory *next_of_device;
    char *name;
    uint32_t kind;
    quire_memory_flags flags;
    bool exportable;
    float priority;           /* eviction priority of its pages, 0 to 1 */
    quire_page_extra extra;   /* what the backend wants to know of each page */
    quire_page_policy policy; /* resolved */
    quire_clock clock;
    quire_on_out_of_memory on_out_of_memory;
    quire_hook hook;        /* kinds 0: none */
    bool is_ending;         /* being destroyed: it makes no more pages */
    uint64_t address_space; /* bytes its only shared page may grow to; 0: not contiguous */
    uint64_t max_alignment;
    uint64_t granule;
    uint64_t atom; /* sizes and alignments are multiples of it; 1 unless mapped and not coherent */
    quire_fit fit;
    qi_host host;
    qi_calls calls;
    qi_account account; /* bytes of its pages, from before their creation until after their end */

    uint64_t max_fast_size; /* see qi_request_max_fast; 0 disables the fast path */

    qi_slots slots;
    qi_pages pages;
    uint32_t shard_count;
    qi_shard *shards;
    qi_names names;                      /* limits by name prefix */
    struct qi_stats_scope *stats_scopes; /* innermost first; protected by the locks of all shards */
    quire_attachment *attachments;       /* of the backend; protected by the device's lock */
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

/* Returns the shard of a slot and its page. Does not read the record where there is one shard. */
static inline qi_shard *qi_shard_of(const quire_memory *memory, const qi_slot *record)
{
    return &memory->shards[memory->shard_count == 1 ? 0 : record->shard];
}

static inline qi_shard *qi_shard_of_slot(const quire_memory *memory, uint32_t slot)
{
    return qi_shard_of(memory, qi_memory_slot(memory, slot));
}

/* Returns the shard that the calling thread allocates in. */
static inline qi_shard *qi_shard_mine(quire_memory *memory)
{
    uint32_t count = memory->shard_count;
    return &memory->shards[count == 1 ? 0 : qi_thread_number() % count];
}

#endif
