/*
 * lane.h - what was freed in one shard and waits for points of one stream.
 *
 * An allocation that waits keeps its slot, which is PRIVATE, its range and its place in the
 * figures. A *wait* names the point; the waits of one allocation are gone through one after the
 * other. A lane has those whose point is known, in the order of the stream, and behind them the
 * fresh ones, which were freed since the stream's last mark and get one mark together when somebody
 * asks. A raw range at its last wait also hangs in a bin by its size, for whoever allocates on the
 * same stream.
 *
 * Everything is under the shard's lock. Invariant: the lanes' counts and bytes add up to the
 * waiting figures of the shard.
 */
#ifndef QUIRE_SRC_MEMORY_LANE_H
#define QUIRE_SRC_MEMORY_LANE_H

#include "src/memory/memory.h"
#include "src/memory/stream.h"

/* Eight to each power of two. */
enum { QI_LANE_BINS = 496 };

typedef struct qi_wait {
    quire_stream *stream;
    struct qi_wait *then;            /* the next one of the same allocation */
    struct qi_wait *next, *previous; /* in the lane; next also links the spare ones */
    struct qi_wait *bin_next, *bin_previous;
    uint64_t value; /* 0: behind what was submitted when somebody asks */
    uint32_t slot;
    uint32_t bin; /* 1 + its bin's number; 0: in none */
} qi_wait;

typedef struct qi_wait_list {
    qi_wait *first, *last;
} qi_wait_list;

typedef struct qi_lane {
    struct qi_lane *next_of_shard;
    struct qi_lane *next_of_stream; /* under the stream's lock */
    qi_shard *shard;
    quire_stream *stream;
    qi_wait_list marked, fresh;
    qi_wait *bins[QI_LANE_BINS]; /* the one put in last first */
} qi_lane;

/* What a request on a stream can do with: a range that is larger by an eighth at most. */
typedef struct qi_fitting {
    uint64_t size;
    uint64_t alignment;
    bool dedicated; /* in pages of their own, or in shared ones */
} qi_fitting;

/* A wait for a point of the stream, and its lane. NULL: no host memory. */
qi_wait *qi_lane_take_wait(qi_shard *shard, quire_stream *stream);
/* Ends it: the allocation's next one, or NULL. */
qi_wait *qi_lane_end_wait(qi_shard *shard, qi_wait *wait);

/* Puts a wait where it belongs; `is_raw` when nothing but the range is to be given back. */
void qi_lane_put(qi_shard *shard, qi_wait *wait, bool is_raw);

/* Takes the first one out whose value is at most `passed`; NULL: none. */
qi_wait *qi_lane_take_passed(qi_lane *lane, uint64_t passed);

/* Takes all fresh ones out, to be marked and put again. */
qi_wait *qi_lane_take_fresh(qi_lane *lane);

/* Takes one out that fits; NULL: none. */
qi_wait *qi_lane_take_fitting(qi_lane *lane, const qi_fitting *fitting);

/* The shard's lane of a stream, or NULL. */
qi_lane *qi_lane_find(const qi_shard *shard, const quire_stream *stream);

static inline bool qi_lane_is_empty(const qi_lane *lane)
{
    return !lane->marked.first && !lane->fresh.first;
}

/* Takes an empty lane out of its shard and gives it back; it is no stream's any more. */
void qi_lane_release(qi_lane *lane);

/* All of them, and the records of waits; nothing waits any more. */
void qi_lanes_finish(qi_shard *shard);

/* Whether the lanes agree with themselves and the shard's figures. */
bool qi_lanes_agree(const qi_shard *shard);

#endif
