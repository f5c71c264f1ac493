/*
 * memory.h - a memory: its configuration, its pages and slots, and the shards that share them.
 *
 * No lock is ever held across a backend call, a log line or a callback. What takes long (making a
 * page, giving one back, binding, copying) is prepared under a lock, done without it, and published
 * under it again. The slots' state words are atomic, and a page's native side does not change while
 * an allocation in the page is pinned.
 *
 * Invariant: reserved_bytes of the pages is the sum of the live ones; over all shards, live_bytes
 * is the sum of the allocations' size and left padding, and the empty_pages that of the live pages
 * without allocations.
 */
#ifndef QUIRE_SRC_CORE_STATE_MEMORY_H
#define QUIRE_SRC_CORE_STATE_MEMORY_H

#include "src/base/thread.h"
#include "src/core/device/device.h"
#include "src/core/page/empty_pages.h"
#include "src/core/slot/name_limit.h"
#include "src/core/page/page.h"
#include "src/core/stats/stats_scope.h"
#include "src/core/state/shard.h"
#include "src/core/slot/slot.h"

struct quire_memory {
    quire_device *device;
    quire_memory *next_of_device;
    char *name;
    uint32_t kind;
    quire_memory_flags flags;
    bool exportable;
    float priority;           /* of its pages */
    quire_page_extra extra;   /* likewise: what the backend wants to know of each */
    quire_page_policy policy; /* resolved */
    quire_clock clock;
    quire_on_out_of_memory on_out_of_memory;
    quire_hook hook; /* kinds 0: none */
    bool is_ending;  /* it is being destroyed, and makes no page for a hook or a log sink */
    uint64_t
        address_space; /* bytes that its only shared page may grow to; 0: it is not contiguous */
    uint64_t max_alignment;
    uint64_t granule;
    uint64_t atom; /* sizes and alignments are multiples of it: 1 unless mapped and not coherent */
    quire_fit fit;
    qi_host host;
    qi_calls calls;
    qi_account account; /* bytes of its pages, from before they are made until they are gone */

    uint64_t max_fast_size; /* see qi_request_max_fast */

    qi_slots slots;
    qi_pages pages;
    uint32_t shard_count;
    qi_shard *shards;
    qi_names names;                /* the limits of names */
    qi_stats_scope *stats_scopes;  /* innermost first; under the locks of all shards */
    quire_attachment *attachments; /* the backend's; under the device's lock */
    qi_atomic_u64 oom_reports;     /* so far: their numbers */
    const void *
        destroying_thread; /* the thread that ends it, once nothing can keep it from that; see fork.h */
    uint32_t tag;          /* of its slots, which have another one where the device is cut */
    bool has_orphans;      /* slots and ranges may be left that threads before a fork had in hand */
#ifdef QUIRE_CHECKED
    qi_checked checked;
#endif
};

/* Fails with INVALID_ARGUMENT. */
quire_result qi_refuse_null_memory(void);

/* The record of a slot that the caller has pinned, reserved or won. */
static inline qi_slot *qi_memory_slot(const quire_memory *memory, uint32_t slot)
{
    return qi_slot_at(&memory->slots, slot);
}

/* The page of such a slot, and the shard that both are of. */
static inline qi_page *qi_memory_page(const quire_memory *memory, uint32_t slot)
{
    return qi_memory_slot(memory, slot)->tally->page;
}

/* Without a look at the record where there is only one. */
static inline qi_shard *qi_shard_of(const quire_memory *memory, const qi_slot *record)
{
    return &memory->shards[memory->shard_count == 1 ? 0 : record->shard];
}

static inline qi_shard *qi_shard_of_slot(const quire_memory *memory, uint32_t slot)
{
    return qi_shard_of(memory, qi_memory_slot(memory, slot));
}

/* The shard the calling thread works in. */
static inline qi_shard *qi_shard_mine(quire_memory *memory)
{
    uint32_t count = memory->shard_count;
    return &memory->shards[count == 1 ? 0 : qi_thread_number() % count];
}

#endif
