/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * stream_queue.h - the deferred frees of one shard that wait for one stream, in the order of their
 * points: those that have passed are taken from the front.
 *
 * A deferred free keeps its slot, which is PRIVATE, its range and its part of the statistics. A
 * *wait* names one point. An allocation with several waits waits for one after the other. A stream
 * queue has two parts:
 *   marked  waits whose value is known, in the order of the values; a late one, which arrives after
 *           waits with higher values, takes a step for each of these
 *   fresh   waits freed since the last mark of the stream; they get one common mark when the shard
 *           next queries the backend
 * An allocation at its last wait is also in a bin by its size, so that an allocation on the same
 * stream can reuse the range. If the freed one had a native object, its wait then becomes an
 * *object wait*: it has no slot, and the object is destroyed once the point has passed. The page
 * stays until then: it counts the object like an allocation. A *chunk wait* has no slot either:
 * some chunks of a lazy allocation lose their memory at the point (page/lazy.h).
 *
 * Recorded uses of live allocations are waits as well, in no queue and not counted there. Those
 * that quire recorded for its own work (copies) are in the list `own`, so that they end with
 * the stream: a wait without a stream has passed.
 *
 * The shard finds the queue of a stream in a hash table. The table grows with the number of queues;
 * without host memory it keeps its size and lookups take longer.
 *
 * The shard's lock protects everything. The list next_of_stream is protected by the stream's lock.
 * Invariant: over all queues of a shard, the waits add up to shard->deferred. Those with a slot add
 * up to deferred_count, and the bytes of their slots to deferred_bytes, of the shard's statistics.
 */
#ifndef QUIRE_SRC_CORE_DEFERRED_STREAM_QUEUE_H
#define QUIRE_SRC_CORE_DEFERRED_STREAM_QUEUE_H

#include "src/base/bits.h"
#include "src/core/deferred/stream.h"
#include "src/core/state/memory.h"

typedef struct qi_wait qi_wait;

/* Eight bins for each power of two: see qi_stream_queue_bin_of. */
enum { QI_STREAM_QUEUE_BINS = 496 };

struct qi_wait {
    quire_stream *stream;     /* NULL: an own use whose stream was destroyed */
    qi_wait *then;            /* the next wait of the same allocation */
    qi_wait *next, *previous; /* in their list; next also links spare records */
    union {
        struct {
            qi_wait *bin_next, *bin_previous;
        };
        struct { /* of an object wait, which is in no bin */
            qi_page *page;
            uint64_t native;
        };
        struct {                 /* of a chunk wait, likewise */
            uint64_t allocation; /* a handle, which may be stale by then */
            uint32_t number;     /* of the point, in the marks of the chunks */
        };
    };
    uint64_t value; /* 0: after all work submitted before the next mark */
    uint32_t slot;  /* QI_NO_SLOT: an object wait or a chunk wait */
    uint16_t bin;   /* 1 + the number of its bin; 0: in no bin */
    uint8_t object; /* of an object wait: a quire_object; of a chunk wait: QUIRE_OBJECT_NONE */
    bool is_own;    /* a recorded use, by quire's own work only */
};

typedef struct qi_wait_list {
    qi_wait *first, *last;
} qi_wait_list;

typedef struct qi_stream_queue {
    struct qi_stream_queue *next_of_shard;
    struct qi_stream_queue *next_of_stream; /* protected by the stream's lock */
    struct qi_stream_queue *next_in_bucket; /* in the shard's hash table */
    qi_shard *shard;
    quire_stream *stream;
    qi_wait_list marked, fresh, own;
    qi_wait *bins[QI_STREAM_QUEUE_BINS]; /* the wait put in last is first */
} qi_stream_queue;

/* What a request on a stream accepts: a range of at least `size`, at most an eighth larger. */
typedef struct qi_fitting {
    uint64_t size;
    uint64_t alignment;
    bool dedicated; /* in dedicated pages, otherwise in shared pages */
    bool optimal;   /* for an image of optimal tiling */
} qi_fitting;

/*
 * The functions below require the shard's lock, except while the memory is created or destroyed.
 *
 * Returns a wait for a point of the stream, and creates the shard's queue for the stream if it has
 * none. Returns NULL if host memory is exhausted.
 */
qi_wait *qi_stream_queue_take_wait(qi_shard *shard, quire_stream *stream);

/* Releases a wait that is in no queue. Returns the allocation's next wait, or NULL. */
qi_wait *qi_stream_queue_end_wait(qi_shard *shard, qi_wait *wait);

/* The same for a record that no longer counts as a wait of its stream. */
void qi_stream_queue_give_record(qi_shard *shard, qi_wait *wait);

/* Put a recorded use into the list of own uses of its queue, and take it out. */
void qi_stream_queue_own(qi_shard *shard, qi_wait *use);
void qi_stream_queue_disown(qi_shard *shard, qi_wait *use);

/* Puts a wait into its list, and counts it. */
void qi_stream_queue_put(qi_shard *shard, qi_wait *wait);

/*
 * Takes out the first wait whose value is at most `passed`, or NULL. QI_ALL_PASSED also takes fresh
 * waits.
 */
qi_wait *qi_stream_queue_take_passed(qi_stream_queue *queue, uint64_t passed);

/*
 * Takes out all fresh waits, linked by `next` in the order of their frees. The caller marks the
 * stream and puts them back.
 */
qi_wait *qi_stream_queue_take_fresh(qi_stream_queue *queue);

/*
 * Take out a wait whose range fits, or return NULL. The second looks in the shard's queue of a
 * stream, which need not exist.
 */
qi_wait *qi_stream_queue_take_fitting(qi_stream_queue *queue, const qi_fitting *fitting);
qi_wait *qi_stream_queue_take_fitting_on(qi_shard *shard, const quire_stream *stream,
                                         const qi_fitting *fitting);

/*
 * Searches the hash table for the queue of a stream. Remembers the queue that it finds, so that
 * qi_stream_queue_find returns it without a search.
 */
qi_stream_queue *qi_stream_queue_search(qi_shard *shard, const quire_stream *stream);

/* Returns the shard's queue of a stream, or NULL. */
static inline qi_stream_queue *qi_stream_queue_find(qi_shard *shard, const quire_stream *stream)
{
    if (qi_unlikely(shard->recent_stream != stream))
        return qi_stream_queue_search(shard, stream);
    return shard->recent_queue;
}

static inline bool qi_stream_queue_is_empty(const qi_stream_queue *queue)
{
    return !queue->marked.first && !queue->fresh.first;
}

/* Returns the highest value of a marked wait, or 0. */
static inline uint64_t qi_stream_queue_highest(const qi_stream_queue *queue)
{
    return queue->marked.last ? queue->marked.last->value : 0;
}

/* Returns the bin of a size: eight bins for each power of two, one for each size below 8. */
static inline uint32_t qi_stream_queue_bin_of(uint64_t size)
{
    if (size < 8)
        return (uint32_t)size;
    uint32_t high = qi_highest_bit(size);
    return (high - 2) * 8 + (uint32_t)(size >> (high - 3) & 7);
}

/* Whether a wait has no slot: it is for the end of a native object whose range was reused, or for
   chunks of a lazy allocation that are to lose their memory. */
static inline bool qi_wait_is_of_object(const qi_wait *wait)
{
    return qi_unlikely(wait->slot == QI_NO_SLOT);
}

static inline bool qi_wait_is_of_chunks(const qi_wait *wait)
{
    return qi_wait_is_of_object(wait) && wait->object == QUIRE_OBJECT_NONE;
}

/* Returns the bytes that a deferred free keeps. */
static inline uint64_t qi_stream_queue_held_by(const qi_slot *record)
{
    return record->size + record->left_padding + qi_checked_behind(record);
}

/*
 * Requires no lock. Returns the first queue of a stream, or NULL. New queues are added at the
 * front, and a queue stays while the stream lives: the caller may follow next_of_stream without a
 * lock.
 */
qi_stream_queue *qi_stream_first_queue(quire_stream *stream);

/* Removes an empty queue from its shard and its stream, and releases it. */
void qi_stream_queue_release(qi_stream_queue *queue);

/* For a memory whose records are lost in the child of a fork. Removes its queues from streams. */
void qi_stream_queues_leave_streams(const qi_shard *shard);

/* Initialises an empty hash table. */
void qi_stream_queues_init(qi_shard *shard);

/* Releases all queues, which are empty, and the records of waits. */
void qi_stream_queues_finish(qi_shard *shard);

/* Whether the queues are consistent: see there. */
bool qi_stream_queues_agree(const qi_shard *shard);

/* Returns the bucket of a stream in the shard's hash table. */
static inline qi_stream_queue **qi_stream_queue_bucket(const qi_shard *shard,
                                                       const quire_stream *stream)
{
    uint64_t mixed = (uintptr_t)stream * UINT64_C(0x9e3779b97f4a7c15);
    return &shard->queue_buckets[mixed >> (64 - shard->queue_bits)];
}

#endif
