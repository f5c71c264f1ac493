/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * source.h - the record of a compaction, and the page that it empties: its source (compact.h).
 */
#ifndef QUIRE_SRC_CORE_COMPACT_SOURCE_H
#define QUIRE_SRC_CORE_COMPACT_SOURCE_H

#include "src/core/compact/compact.h"
#include "src/core/compact/move.h"
#include "src/core/state/memory.h"

struct quire_compaction {
    quire_memory *memory;
    uint32_t shard;       /* whose pages are looked at */
    uint32_t round;       /* in `compacted` of the pages that were looked at; 0: it has not begun */
    uint32_t first_round; /* 0: none has begun */
    qi_source source;
    uint64_t offset;    /* in the source: everything below was looked at since the last failure */
    uint64_t page_size; /* of the source */
    uint64_t to_give;   /* bytes of pages that are freed, and may wait for points */
    bool has_freed;     /* a page, in this round */
    uint64_t wanted;    /* bytes of a free range that is to exist; 0: none */
    bool clears;        /* no page can be freed, and stretches are looked for (stretch.c) */
    bool has_cleared;   /* one of them */
    bool by_caller;     /* the caller executes the moves */
    const quire_stream *own;     /* that copies; NULL: the calling thread, or the caller */
    bool is_round_over;          /* and the next one waits for the end of what is offered */
    quire_compact_move *offered; /* moves that have not ended */
    uint64_t offered_count, offered_room;
    quire_compact_stats stats;
};

/* What a step may still do. */
typedef struct qi_allowance {
    uint64_t moves, bytes, records;
    bool has_moved;
} qi_allowance;

/* NULL means no limit. */
qi_allowance qi_allowance_from(const quire_compact_limits *limits);

/* Lowers a number to no less than 0. */
static inline void qi_use_up(uint64_t *left, uint64_t amount)
{
    *left -= amount < *left ? amount : *left;
}

static inline qi_shard *qi_compact_shard(const quire_compaction *c)
{
    return c->memory->shards[c->shard];
}

/* Moves that begin under one hold of the shard's lock. */
enum { QI_LOT = 32 };

typedef struct qi_lot {
    qi_move moves[QI_LOT];
    uint32_t count;
    bool is_end; /* all of the source was looked at, or it is gone */
} qi_lot;

/* Requires no lock. Begins a step, whose moves the caller executes or quire. `limits`: or NULL. */
void qi_source_resume(quire_compaction *c, const quire_compact_limits *limits, bool by_caller,
                      const quire_stream *own);

/*
 * Requires no lock. Selects a source if there is none, and begins moves out of it by a function
 * like qi_move_begin. The round is over if c->round is 0 then. Fails as that function, with the
 * moves that had begun before.
 */
typedef quire_result qi_begin_move(qi_shard *shard, const qi_source *source, uint32_t slot,
                                   const quire_stream *own, qi_move *move);
QUIRE_MUST_USE quire_result qi_lot_begin(quire_compaction *c, qi_allowance *left,
                                         qi_begin_move *begin, qi_lot *l);

/* Everything has left the source, or what could. */
void qi_source_end(quire_compaction *c);

/* Requires no lock. Called when no page can be freed. Returns whether another sweep over the shards
   follows, for a stretch. */
bool qi_stretch_begin(quire_compaction *c);

/* Requires the shard's lock. The next page to look at, none if `page` is NULL, and the stretch of
   it that is to become free, none if `end` is 0. */
qi_source qi_stretch_next(const quire_compaction *c, qi_allowance *left);

/* Requires the lock of the shard. Whether there is a source, and it still has allocations. */
bool qi_source_is_left(const quire_compaction *c);

/* Requires the lock of the shard. Whether an allocation lives in a page, beside what a free has
   claimed. */
bool qi_source_has_live(const quire_memory *memory, const qi_page *page);

/*
 * Requires no lock. Sets the compaction of a memory, and the thread that is in a step of it, or
 * NULL. The child of a fork has forgotten the compaction, so that it is set again. Fails with BUSY
 * if the memory has another one.
 */
QUIRE_MUST_USE quire_result qi_compact_claim(quire_compaction *c, const void *mover);

/* Requires no lock. Declines all that is offered. */
void qi_compact_decline_all(quire_compaction *c);

/*
 * A page from which all has moved, and whose old places wait for points, is closed: nothing moves
 * into it, so that it becomes empty. Requires the lock of its shard. A compaction opens all at its
 * end, without a lock.
 */
void qi_source_close(const qi_page *page);
void qi_source_open_all(const quire_compaction *c);

/* Requires no lock. Counts a page from which all has moved, and gives empty pages back. */
void qi_source_count_freed(quire_compaction *c, uint64_t bytes);

/* Requires no lock. Frees what waits for points that have passed, and gives pages back that have
   become empty since they were counted. */
void qi_source_give_back(quire_compaction *c);

/* After a round: the next one, the next shard, or the end. */
void qi_round_end(quire_compaction *c);

#endif
