/*
 * lane.h - what was freed in one shard and waits for points of one stream.
 *
 * An allocation that waits keeps its slot, which is PRIVATE, its range and its place in the
 * figures. A *wait* names the point; the waits of one allocation are gone through one after the
 * other. A lane has those whose point is known, and behind them the fresh ones, which were freed
 * since the stream's last mark and get one mark together when somebody asks. Those whose point is
 * known lie in a list, in the order of the stream; the late ones, which are put while a later point
 * is at the list's end, lie in a heap (wait_heap.h). A raw range at its last wait also hangs in a
 * bin by its size, for whoever allocates on the same stream. The shard finds the lane of a stream
 * by a table of buckets, which is made larger where host memory can be had.
 *
 * Everything is under the shard's lock. Invariant: the lanes' counts and bytes add up to the
 * waiting figures of the shard.
 */
#ifndef QUIRE_SRC_CORE_DEFERRED_STREAM_QUEUE_H
#define QUIRE_SRC_CORE_DEFERRED_STREAM_QUEUE_H

#include "src/base/bits.h"
#include "src/core/state/memory.h"
#include "src/core/deferred/stream.h"
#include "src/core/deferred/queue_heap.h"

/* Eight to each power of two. */
enum { QI_STREAM_QUEUE_BINS = 496 };

struct qi_wait {
    quire_stream *stream;
    qi_wait *then;            /* the next one of the same allocation */
    qi_wait *next, *previous; /* in the lane; next also links the spare ones */
    qi_wait *bin_next, *bin_previous;
    uint64_t value; /* 0: behind what was submitted when somebody asks */
    uint32_t slot;
    uint32_t bin;   /* 1 + its bin's number; 0: in none */
    qi_wait *above; /* of a late one: the one above it in the heap */
    uint64_t order; /* of a late one: its place among equals; 0: it lies in a list */
};

typedef struct qi_wait_list {
    qi_wait *first, *last;
} qi_wait_list;

typedef struct qi_stream_queue {
    struct qi_stream_queue *next_of_shard;
    struct qi_stream_queue *next_of_stream; /* under the stream's lock */
    struct qi_stream_queue *next_in_bucket; /* of the shard's table */
    qi_shard *shard;
    quire_stream *stream;
    qi_wait_list marked, fresh;
    qi_queue_heap heap;
    qi_wait *bins[QI_STREAM_QUEUE_BINS]; /* the one put in last first */
} qi_stream_queue;

/* What a request on a stream can do with: a range that is larger by an eighth at most. */
typedef struct qi_fitting {
    uint64_t size;
    uint64_t alignment;
    bool dedicated; /* in pages of their own, or in shared ones */
} qi_fitting;

/* A wait for a point of the stream, and its lane. NULL: no host memory. */
qi_wait *qi_stream_queue_take_wait(qi_shard *shard, quire_stream *stream);
/* Ends it: the allocation's next one, or NULL. */
qi_wait *qi_stream_queue_end_wait(qi_shard *shard, qi_wait *wait);

/* Puts a wait where it belongs; `is_raw` when nothing but the range is to be given back. */
void qi_stream_queue_put(qi_shard *shard, qi_wait *wait, bool is_raw);

/* Takes the first one out whose value is at most `passed`; NULL: none. */
qi_wait *qi_stream_queue_take_passed(qi_stream_queue *queue, uint64_t passed);

/* Takes all fresh ones out, to be marked and put again. */
qi_wait *qi_stream_queue_take_fresh(qi_stream_queue *queue);

/* Takes one out that fits; NULL: none. The second, of the shard's lane of a stream, if any. */
qi_wait *qi_stream_queue_take_fitting(qi_stream_queue *queue, const qi_fitting *fitting);
qi_wait *qi_stream_queue_take_fitting_on(qi_shard *shard, const quire_stream *stream,
                                         const qi_fitting *fitting);

/* The same by the shard's table, and whom it finds is found at once the next time. */
qi_stream_queue *qi_stream_queue_search(qi_shard *shard, const quire_stream *stream);

/* The shard's lane of a stream, or NULL. */
static inline qi_stream_queue *qi_stream_queue_find(qi_shard *shard, const quire_stream *stream)
{
    if (qi_unlikely(shard->recent_stream != stream))
        return qi_stream_queue_search(shard, stream);
    return shard->recent_queue;
}

static inline bool qi_stream_queue_is_empty(const qi_stream_queue *queue)
{
    return !queue->marked.first && !queue->fresh.first && !queue->heap.first;
}

/* The highest value that something waits for; 0 where none is known. Looks at all late ones. */
uint64_t qi_stream_queue_highest(const qi_stream_queue *queue);

/* The bin of ranges of a size: eight to each power of two, below 8 one each. */
static inline uint32_t qi_stream_queue_bin_of(uint64_t size)
{
    if (size < 8)
        return (uint32_t)size;
    uint32_t high = qi_highest_bit(size);
    return (high - 2) * 8 + (uint32_t)(size >> (high - 3) & 7);
}

/* Bytes that a slot that waits holds. */
static inline uint64_t qi_stream_queue_held_by(const qi_slot *record)
{
    return record->size + record->left_padding + qi_checked_behind(record);
}

/* Takes an empty lane out of its shard and gives it back; it is no stream's any more. */
void qi_stream_queue_release(qi_stream_queue *queue);

/* For a memory that is lost in the child of a fork: its streams know nothing of it any more. */
void qi_stream_queues_leave_streams(const qi_shard *shard);

/* The table of lanes, without any. */
void qi_stream_queues_init(qi_shard *shard);

/* All of them, and the records of waits; nothing waits any more. */
void qi_stream_queues_finish(qi_shard *shard);

/* lane_check.c: whether the lanes agree with themselves, the shard's table and its figures. */
bool qi_stream_queues_agree(const qi_shard *shard);

/* The bucket of a stream in the shard's table. */
static inline qi_stream_queue **qi_stream_queue_bucket(const qi_shard *shard,
                                                       const quire_stream *stream)
{
    uint64_t mixed = (uintptr_t)stream * UINT64_C(0x9e3779b97f4a7c15);
    return &shard->queue_buckets[mixed >> (64 - shard->queue_bits)];
}

#endif
