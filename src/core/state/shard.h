/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * shard.h - a shard: a part of a memory with its own lock, space, slots and statistics.
 *
 * A thread allocates in its own shard. It frees an allocation of another shard without that shard's
 * lock: it claims the slot and puts it into the shard's inbox. A thread that works in the shard
 * drains the inbox, at the latest before it looks for room elsewhere. Threads of different shards
 * therefore share no lock and no cache line except an inbox and, near the peak of the memory, the
 * words of qi_peaks.
 *
 * The lock protects everything except the inbox, which is atomic. The lock of qi_pages protects
 * which pages the shard has.
 */
#ifndef QUIRE_SRC_CORE_STATE_SHARD_H
#define QUIRE_SRC_CORE_STATE_SHARD_H

#include "quire/insight.h"
#include "src/base/result.h"
#include "src/core/slot/inbox.h"
#include "src/core/slot/slot.h"
#include "src/core/state/page.h"
#include "src/core/state/peaks.h"

/* The last refused allocation of a shard. Protected by the shard's lock. */

typedef struct qi_oom_record {
    uint64_t number; /* counts the memory's refusals from 1; 0: none so far */
    quire_result code;
    uint64_t size; /* requested bytes */
    uint64_t alignment;
    char name[QUIRE_MAX_NAME + 1]; /* "": none */
    bool is_dedicated;             /* free ranges could not serve it */
    uint32_t tried;                /* QI_TRIED_... (allocate/oom_report.h) */
    uint32_t kinds;                /* bit i: kind i of the device refused the same call */
    qi_limit limit;                /* that the request met */
    uint64_t limit_max;
    uint64_t largest_free, free_bytes, page_count; /* of the memory then */
    uint64_t compactable_pages, compactable_bytes; /* what compaction would have freed at most */
    const void *thread;                            /* qi_thread_self of the caller */
    uint64_t thread_number;                        /* counts the refusals of this thread */
    qi_error report;                               /* its words are made when they are read */
} qi_oom_record;

/*
 * A shard: a part of a memory with its own lock, space, slots and statistics.
 *
 * A thread allocates in its own shard. It frees an allocation of another shard without that shard's
 * lock: it claims the slot and puts it into the shard's inbox. A thread that works in the shard
 * drains the inbox, at the latest before it looks for room elsewhere. Threads of different shards
 * therefore share no lock and no cache line except an inbox and, near the peak of the memory, the
 * words of qi_peaks.
 *
 * The lock protects everything except the inbox, which is atomic. The lock of qi_pages protects
 * which pages the shard has.
 */

/* Size of a shard's first hash table of stream queues, which lies in the record itself. */
enum { QI_FIRST_QUEUE_BITS = 3 };

/* How often allocating calls waited for others in the shard: allocate/shard_growth.h. */
typedef struct qi_contention {
    uint64_t since;  /* system time in nanoseconds when the sum began */
    uint32_t weight; /* of the waits since then */
    bool is_high;    /* the memory should get more shards */
} qi_contention;

/* How long the default keeps empty pages: page/empty.c. Nanoseconds. */
typedef struct qi_retention {
    uint64_t age; /* 0: not raised yet */
    uint64_t changed_at;
    uint64_t since; /* when the page that left last had become empty */
    uint32_t given; /* pages that have left for their age and were not made again */
} qi_retention;

typedef struct qi_shard {
    qi_lock lock;
    uint32_t index;
    uint32_t shared;          /* LIVE pages that are regions of the space */
    uint8_t work;             /* QI_WORK_... */
    uint32_t unaged;          /* frees since the age of empty pages was last looked at */
    uint32_t ops_since_drain; /* operations since the last one that looked for other work */
    quire_memory *memory;
    quire_space *space; /* its regions are the shared pages; a range's user value is its slot */
    qi_atomic_u64 allocations; /* made so far; written under the lock, read without it */
    qi_shard_peaks peaks;
    qi_table by_region; /* qi_tally of the page of each region */
    qi_slot_queue queue;
    qi_empty_pages empty_pages;
    qi_retention retention;
    uint64_t shared_bytes; /* of its shared pages: sizes.h; protected by qi_pages */
    /* what allocations count: live and requested bytes, failures, deferred frees; aligned so that
       the counters of one operation lie in two cache lines. Its peaks are those of a memory with
       one shard: see state/peaks.h. */
    _Alignas(QI_CACHE_LINE) quire_memory_stats stats;
    qi_oom_record last_oom;
    bool has_had_movable;                     /* allocations in shared pages */
    struct qi_stream_queue *queues;           /* deferred frees by stream: stream_queue.h */
    const struct quire_stream *recent_stream; /* the stream looked up last, or NULL */
    struct qi_stream_queue *recent_queue;     /* and its queue */
    struct qi_stream_queue **queue_buckets;   /* 2^queue_bits lists of queues, by stream */
    uint32_t queue_bits;
    uint32_t queue_count;
    qi_table waits; /* qi_wait records; wait_count were used so far */
    uint32_t wait_count;
    struct qi_wait *spare_waits;
    qi_contention contention;
    qi_atomic_u64 deferred; /* waits in the queues; written under the lock only */
    /* queue_buckets points here until the table grows */
    struct qi_stream_queue *first_buckets[1 << QI_FIRST_QUEUE_BITS];
    qi_page nowhere; /* has no bytes and no region; its tally counts itself as an allocation */

    _Alignas(QI_CACHE_LINE) qi_inbox inbox;
} qi_shard;

/* What an operation does for the shard besides its own work. */
enum {
    QI_WORK_EMPTIED = 1, /* a page became empty after the policy was last applied completely */
    QI_WORK_AGING = 2    /* an empty page will have to leave for its age */
};

/* Requires the shard's lock. A range was given back; `emptied`: its page became empty. */
static inline void qi_shard_note_given(qi_shard *shard, bool emptied)
{
    if (emptied)
        shard->work |= QI_WORK_EMPTIED;
}

/* Looking into the inbox moves its cache line between threads, and the age of pages needs a clock:
   one operation in 16 looks. */
enum { QI_LOOK_EVERY = 16 };

/* Counts an operation; returns whether it is to drain the inbox. */
static inline bool qi_shard_poll_inbox(qi_shard *shard)
{
    if (++shard->ops_since_drain < QI_LOOK_EVERY)
        return false;
    shard->ops_since_drain = 0;
    return !qi_inbox_is_empty(&shard->inbox);
}

/*
 * Require the shard's lock. Each operation calls one of them once. Return whether the shard has
 * work besides the operation; the caller then calls qi_shard_catch_up. Frees look at the age of
 * pages, because every free comes by here and not every allocation: a replay gives the same pages
 * whether its allocations have names or not.
 */
static inline bool qi_shard_poll_work(qi_shard *shard)
{
    return (shard->work & QI_WORK_EMPTIED) || qi_shard_poll_inbox(shard);
}
static inline bool qi_shard_poll_work_of_free(qi_shard *shard)
{
    if (qi_unlikely(shard->work) &&
        (shard->work & QI_WORK_EMPTIED || ++shard->unaged >= QI_LOOK_EVERY)) {
        shard->work |= QI_WORK_EMPTIED;
        shard->unaged = 0;
        return true;
    }
    return qi_shard_poll_inbox(shard);
}

/*
 * Requires the shard's lock. Raises the peaks of a memory with one shard to the current values.
 * Called before a value falls and when the statistics are read, not when a value rises: an
 * allocation that cannot be completed is taken back without leaving a trace in the peaks.
 */
static inline void qi_shard_keep_peaks(quire_memory_stats *stats)
{
    qi_raise(&stats->peak_live_bytes, stats->live_bytes);
    qi_raise(&stats->peak_requested_bytes, stats->requested_bytes);
    qi_raise(&stats->peak_allocation_count, stats->allocation_count);
}

/*
 * Requires the shard's lock. Counts an allocation: +1, or -1 for one that is taken back. The frees
 * are the difference to the allocations that exist.
 */
static inline void qi_shard_count_allocation(qi_shard *shard, int change)
{
    uint64_t allocations = qi_atomic_load_u64(&shard->allocations) + (uint64_t)(int64_t)change;
    qi_atomic_store_release_u64(&shard->allocations, allocations);
}

/* Returns the tally of a region's page. */
static inline qi_tally *qi_shard_tally(const qi_shard *shard, uint32_t region)
{
    return qi_table_at(&shard->by_region, region, sizeof(qi_tally));
}

#endif
