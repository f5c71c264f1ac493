/*
 * shard.h - a part of a memory with its own lock, space, slots and figures.
 *
 * A thread allocates in its shard. It frees what lies in another one without that shard's lock: the
 * slot, which it has won, goes to the shard's inbox, and a thread that works in the shard gives the
 * range back, soon and before room is looked for elsewhere. So threads in different shards share no
 * lock and no cache line but an inbox.
 *
 * The lock guards all but the inbox; the pages' comings and goings are guarded by qi_pages.lock.
 */
#ifndef QUIRE_SRC_CORE_STATE_SHARD_H
#define QUIRE_SRC_CORE_STATE_SHARD_H

#include "quire/insight.h"
#include "src/core/page/empty_pages.h"
#include "src/core/slot/inbox.h"
#include "src/core/page/page.h"
#include "src/core/allocate/oom_report.h"
#include "src/core/slot/slot.h"

/* Of a shard's first table of lanes, which takes no host memory. */
enum { QI_FIRST_QUEUE_BITS = 3 };

typedef struct qi_shard {
    qi_lock lock;
    uint32_t index;
    uint32_t shared;   /* live pages that are regions of the space */
    bool emptied;      /* a page became empty since the policy was applied, or it was cut short */
    uint32_t unlooked; /* placements and frees since somebody looked into the inbox */
    quire_memory *memory;
    quire_space *space; /* the shared pages are its regions; a range's user value is its slot */
    qi_table by_region; /* qi_tally: of the page behind each region of the space */
    qi_slot_queue queue;
    qi_empty_pages empty_pages;
    /* what allocations count: live, requested, empty, failures. Aligned, so that what each of them
       counts lies in two cache lines */
    _Alignas(QI_CACHE_LINE) quire_memory_stats stats;
    qi_oom_record last_oom;                   /* the last one */
    struct qi_stream_queue *queues;           /* what waits for points of streams: see lane.h */
    const struct quire_stream *recent_stream; /* whose lane was searched for last, or NULL */
    struct qi_stream_queue *recent_queue;     /* and the lane */
    struct qi_stream_queue **queue_buckets;   /* 2^queue_bits lists of lanes, by stream */
    uint32_t queue_bits;
    uint32_t queue_count;
    qi_table waits; /* qi_wait, of which this many were ever used */
    uint32_t wait_count;
    struct qi_wait *spare_waits;
    qi_atomic_u64 deferred; /* allocations that wait; changed under the lock alone */
    struct qi_stream_queue
        *first_buckets[1 << QI_FIRST_QUEUE_BITS]; /* until there are more lanes */

    _Alignas(QI_CACHE_LINE) qi_inbox inbox;
} qi_shard;

QUIRE_MUST_USE quire_result qi_shard_init(qi_shard *shard, quire_memory *memory, uint32_t index,
                                          const quire_space_options *options);
void qi_shard_finish(qi_shard *shard);

/* The locks of all shards, for what looks at a whole memory; what lies in inboxes is freed. */
void qi_shards_acquire(quire_memory *memory);
void qi_shards_release(quire_memory *memory);

/* With the shard's lock: frees what lies in its inbox. */
void qi_shard_drain(qi_shard *shard);

/*
 * With the shard's lock: whether there is something to do beside the operation at hand. The inbox,
 * whose cache line goes to and fro between those who put in and who looks, is looked into once in a
 * while; whoever needs room looks first.
 */
enum { QI_LOOK_EVERY = 16 };

static inline bool qi_shard_is_behind(qi_shard *shard)
{
    if (shard->emptied)
        return true;
    if (++shard->unlooked < QI_LOOK_EVERY)
        return false;
    shard->unlooked = 0;
    return !qi_inbox_is_empty(&shard->inbox);
}

/*
 * Does it. The pages that the policy keeps no longer are put in front of the list, to be destroyed
 * without the lock.
 */
qi_page *qi_shard_catch_up(qi_shard *shard, qi_page *leaving);

/*
 * With the shard's lock. Peaks are brought up to date before the figures fall and when they are
 * read, not when the figures rise: what was placed and could not be completed is taken back without
 * a trace in them.
 */
static inline void qi_shard_keep_peaks(quire_memory_stats *stats)
{
    qi_raise(&stats->peak_live_bytes, stats->live_bytes);
    qi_raise(&stats->peak_requested_bytes, stats->requested_bytes);
    qi_raise(&stats->peak_allocation_count, stats->allocation_count);
}

/* The tally of the page behind a region of the space. */
static inline qi_tally *qi_shard_tally(const qi_shard *shard, uint32_t region)
{
    return qi_table_at(&shard->by_region, region, sizeof(qi_tally));
}

#endif
