/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * slot.h - the table behind the handles of a memory: which allocations live, and where they lie.
 *
 * Every slot has a state word and a record. Any thread may read the state word at any time: a
 * handle is checked without a lock. Concurrent changes of a state word are compare-and-exchange: if
 * several threads free one allocation, exactly one succeeds. A thread may use the record while it
 * has the allocation in use (qi_slot_begin_use), and while the slot is PRIVATE to it because it
 * creates the allocation or has claimed it for a free.
 *
 *   63          38 37 36 35                                   0
 *  +--------------+-----+--------------------------------------+
 *  |  generation  |phase| live: maps (18), uses (18)           |
 *  |              |     | asleep: no maps, uses (18)           |
 *  |              |     | moving: a live word with all bits    |
 *  |              |     | free, private: linked slot (26)      |
 *  +--------------+-----+--------------------------------------+
 *
 * Free slots wait in a queue, first in first out. A slot whose generations are used up never enters
 * the queue again. State words exist for the life of the memory. Records are released a chunk at a
 * time, when all slots of the chunk are free.
 *
 * A hold of a backend is a use that lasts until the hold is released. A separate table, created
 * with the first hold, counts how many of a slot's uses are holds. Releasing a hold that does not
 * exist therefore cannot end the use of a running call. Invariant: the holds of a slot do not
 * exceed its uses, so that a free slot has none.
 *
 * Locks: each shard takes slots from its own queue and returns them to it under its shard lock. New
 * slots reach a queue in blocks, so that threads of different shards do not write to one cache
 * line. The lock of qi_slots protects the growth of the tables. A PRIVATE slot can be linked to
 * another slot; inboxes use the link (inbox.h).
 */
#ifndef QUIRE_SRC_CORE_SLOT_SLOT_H
#define QUIRE_SRC_CORE_SLOT_SLOT_H

#include <stdbool.h>

#include "quire/allocation.h"
#include "quire/resource.h"
#include "src/base/handle.h"
#include "src/base/host_memory.h"
#include "src/base/lock.h"
#include "src/base/table.h"
#include "src/core/checked.h"
#include "src/core/device/disabled.h"

typedef enum qi_phase {
    QI_PHASE_FREE = 0,
    QI_PHASE_RESERVED, /* has a range, is not committed */
    QI_PHASE_LIVE,
    QI_PHASE_PRIVATE, /* being created, or claimed by a free or an abort: one thread owns it */
    QI_PHASE_ASLEEP   /* a RESERVED word with as many maps as fit: it has a range, and no memory */
} qi_phase;

/* What quire_image_info says of an image. Less than a cache line, so that its allocation is cheap:
   see qi_host_allocate. */
typedef struct qi_slot_image {
    uint64_t minimum_size, row_pitch, slice_pitch;
    uint32_t width, height, depth;
    uint32_t native_format;
    quire_usage usage;
    uint8_t channel_count, channel_type, tiling, dimensions;
} qi_slot_image;

/* What a sleeping allocation had (copy/sleep.h), or one that was evicted (compact/evict.h). */
typedef struct qi_asleep {
    char *bytes; /* its contents; of a lazy one, of its chunks with memory; NULL: not kept */
    uint64_t count;
    /* of an allocation that is not lazy, the fields of its record: */
    uint64_t size, requested;
    quire_range range; /* {0}: it was evicted, and has none */
    uint64_t behind;   /* bytes of the rear zone */
    uint64_t named;    /* bytes in the accounts of its name */
    uint32_t left_padding;
#ifdef QUIRE_CHECKED
    qi_watch watch;
#endif
} qi_asleep;

/* The addresses of a lazy allocation (page/lazy.h). */
typedef struct qi_lazy {
    uint64_t offset, size; /* in its region: whole chunks */
    uint32_t region, node; /* of its kept window */
    uint64_t requested;    /* bytes that the caller can use */
    uint64_t changing;     /* uses by calls that change chunks; protected by the shard lock */
} qi_lazy;

/*
 * Data that few allocations have, created when first needed. Most buffers have none: creating or
 * destroying one touches no cache line besides that of its record.
 */
typedef struct qi_slot_meta {
    char *name;           /* or NULL; protected by the shard lock */
    uint64_t user_data;   /* of an object; protected by the shard lock */
    struct qi_wait *uses; /* recorded uses, which a free waits for; protected by the shard lock */
    qi_slot_image *image; /* of an image, or NULL */
    qi_lazy *lazy;        /* of a lazy allocation, or NULL */
    qi_asleep *asleep;    /* of a sleeping allocation, or NULL; protected by the shard lock */
    uint8_t alignment;    /* log2 of that of a buffer that is MOVABLE */
} qi_slot_meta;

/* 64 bytes, one cache line; larger in checked builds. */
typedef struct qi_slot {
    uint64_t offset; /* in the page, in bytes */
    uint64_t size;
    uint64_t requested;
    union {
        uint64_t user_data; /* of a raw range; protected by the shard lock */
        uint64_t native;    /* of an object: the native object or 0; protected likewise */
        qi_lazy *lazy;      /* of a lazy allocation without a meta record: it is being released */
        quire_range asleep; /* of another sleeping allocation, likewise */
        uint64_t evicted;   /* of one that was evicted and has no range, likewise: its bytes */
    };
    quire_range range;      /* in the space; {0} in a dedicated page, and asleep */
    qi_slot_meta *meta;     /* or NULL; set under the shard lock */
    struct qi_tally *tally; /* of the page */
    uint32_t left_padding;  /* less than the largest alignment, which is at most 1 GiB */
    uint8_t shard;          /* of the page; a copy: a remote free does not touch the tally's line */
    uint8_t object;         /* a quire_object */
    uint8_t usage;          /* of a buffer; of an image: 1 if its tiling is optimal; of a raw
                               range that is MOVABLE: log2 of its alignment */
    uint8_t extras; /* what the release does besides giving back slot and range: QI_EXTRA_... */
#ifdef QUIRE_CHECKED
    qi_watch watch;
#endif
} qi_slot;

/* What the record of a slot says about its release, in `extras`. While the slot is taken it changes
   under the shard lock. Those from ADDRESS on are rare: range.c tests for them by one comparison,
   and for the last two. */
enum {
    QI_EXTRA_OBJECT = 1,    /* the slot has an object; a native one is destroyed */
    QI_EXTRA_BORROWED = 2,  /* the native object is the caller's and outlives the allocation */
    QI_EXTRA_MOVABLE = 4,   /* compaction may move the allocation (compact/move.h) */
    QI_EXTRA_ADDRESS = 8,   /* the allocation is found by address (find/addresses.h) */
    QI_EXTRA_MAPPED = 16,   /* the allocation is mapped while it lives (page/map.h) */
    QI_EXTRA_LAZY = 32,     /* its range is a kept window (page/lazy.h) */
    QI_EXTRA_ASLEEP = 64,   /* it has no memory until it wakes (copy/sleep.h, compact/evict.h) */
    QI_EXTRA_CHANGING = 128 /* a call puts it to sleep or wakes it */
};

/* All usages of buffers. */
#define QI_BUFFER_USAGES                                                                           \
    (QUIRE_USAGE_TRANSFER_SOURCE | QUIRE_USAGE_TRANSFER_TARGET | QUIRE_USAGE_STORAGE |             \
     QUIRE_USAGE_UNIFORM | QUIRE_USAGE_VERTEX | QUIRE_USAGE_INDEX)

_Static_assert(QI_MAX_SHARDS <= UINT8_MAX && QI_BUFFER_USAGES <= UINT8_MAX,
               "shard and usage fit in a byte");

typedef struct qi_slots {
    qi_table states; /* qi_atomic_u64 */
    qi_table records;
    uint32_t tag;
    qi_lock lock;        /* protects the growth of the tables, and `top` */
    qi_atomic_u32 top;   /* slots from this number on belong to no queue yet */
    qi_table holds;      /* qi_atomic_u32; a chunk exists once a slot in it was held */
    qi_table recency;    /* qi_atomic_u64, likewise once one was touched: recency.h */
    qi_atomic_u32 moves; /* that have ended; threads sleep on it until a slot moves no more */
    bool is_shut;        /* the memory is being destroyed: no slot may be taken any more */
    const char *owner;   /* the name of the memory, for errors; "" before the memory sets it */
} qi_slots;

/* The tag for a disabled device (fork.h). It exceeds QI_TAG_BITS, so that no handle has it. */
#define QI_TAG_DISABLED UINT32_MAX

#define QI_NO_SLOT (QI_SLOT_COUNT - 1) /* a slot with this number is never used */

/*
 * The free slots of a shard: those of the queue, and the unused rest of a block. Protected by the
 * shard lock.
 */
typedef struct qi_slot_queue {
    uint32_t first, last;      /* QI_NO_SLOT when empty */
    uint32_t fresh, fresh_end; /* slots of the block that were never used */
    uint32_t used;             /* taken and not returned */
    uint32_t used_by_chunk[QI_TABLE_CHUNKS];
} qi_slot_queue;

void qi_slots_init(qi_slots *slots, uint32_t tag);
void qi_slots_finish(qi_slots *slots, qi_host *host);
void qi_slot_queue_init(qi_slot_queue *queue);

/* Returns the number from which on no slot was ever used. */
static inline uint32_t qi_slots_top(const qi_slots *slots)
{
    return qi_atomic_load_acquire_u32(&slots->top);
}

/* ---- state words -------------------------------------------------------------------------- */

enum { QI_PHASE_SHIFT = 36, QI_GENERATION_SHIFT = 38 };

static inline uint64_t qi_slot_word(uint32_t generation, qi_phase phase, uint64_t rest)
{
    return (uint64_t)generation << QI_GENERATION_SHIFT | (uint64_t)phase << QI_PHASE_SHIFT | rest;
}

static inline uint32_t qi_slot_generation(uint64_t word)
{
    return (uint32_t)(word >> QI_GENERATION_SHIFT);
}

/* Returns the state word of a slot below qi_slots_top. */
static inline qi_atomic_u64 *qi_slot_state(const qi_slots *slots, uint32_t slot)
{
    return qi_table_at(&slots->states, slot, sizeof(qi_atomic_u64));
}

/* The same for any slot that a handle may name. Returns NULL if no shard ever had the slot. */
static inline qi_atomic_u64 *qi_slot_find_state(const qi_slots *slots, uint32_t slot)
{
    return qi_table_at_or_null(&slots->states, slot, sizeof(qi_atomic_u64));
}

/* Prefetches the state word and the record of any slot, whether they exist or not. */
static inline void qi_slot_fetch(const qi_slots *slots, uint32_t slot)
{
    qi_table_fetch(&slots->states, slot, sizeof(qi_atomic_u64));
    qi_table_fetch(&slots->records, slot, sizeof(qi_slot));
}

/* ---- what a record says ------------------------------------------------------------------- */

/* Whether an allocation is lazy. `size` and `requested` are then the bytes that have memory. */
static inline bool qi_slot_is_lazy(const qi_slot *record)
{
    return (record->extras & QI_EXTRA_LAZY) != 0;
}

/* Requires the shard lock. Whether compaction may move the allocation. */
static inline bool qi_slot_is_movable(const qi_slot *record)
{
    return record->extras & QI_EXTRA_MOVABLE && record->range.id;
}

/* Requires the same, of a movable allocation. Any place must be a multiple of it. */
static inline uint64_t qi_slot_alignment(const qi_slot *record)
{
    return UINT64_C(1) << (record->object ? record->meta->alignment : record->usage);
}

/* Requires a use of the slot, or the shard lock. The addresses of a lazy slot. */
static inline qi_lazy *qi_slot_lazy(const qi_slot *record)
{
    return record->meta ? record->meta->lazy : record->lazy;
}

/* Whether `size` and `requested` are not those of the addresses: it is lazy, or asleep. */
static inline bool qi_slot_is_partial(const qi_slot *record)
{
    return record->extras >= QI_EXTRA_LAZY;
}

/* Requires the same. What a sleeping allocation that is not lazy had; NULL for others. */
static inline const qi_asleep *qi_slot_asleep(const qi_slot *record)
{
    return record->extras & QI_EXTRA_ASLEEP && !qi_slot_is_lazy(record) && record->meta
               ? record->meta->asleep
               : NULL;
}

/* Require the same, for a partial one. */
static inline uint64_t qi_slot_partial_usable(const qi_slot *record)
{
    const qi_asleep *asleep = qi_slot_asleep(record);
    if (qi_slot_is_lazy(record))
        return qi_slot_lazy(record)->requested;
    return asleep ? asleep->requested : record->requested;
}

static inline uint64_t qi_slot_partial_extent(const qi_slot *record)
{
    const qi_asleep *asleep = qi_slot_asleep(record);
    if (qi_slot_is_lazy(record))
        return qi_slot_lazy(record)->size;
    return asleep ? asleep->size : record->size;
}

/* Require the same. Return the bytes that the caller can use, those of addresses from the offset
   on, and those of padding before it. */
static inline uint64_t qi_slot_usable(const qi_slot *record)
{
    return qi_unlikely(qi_slot_is_partial(record)) ? qi_slot_partial_usable(record)
                                                   : record->requested;
}

static inline uint64_t qi_slot_extent(const qi_slot *record)
{
    return qi_unlikely(qi_slot_is_partial(record)) ? qi_slot_partial_extent(record) : record->size;
}

static inline uint32_t qi_slot_padding(const qi_slot *record)
{
    const qi_asleep *asleep = qi_slot_asleep(record);
    return asleep ? asleep->left_padding : record->left_padding;
}

/* Requires the same. Bytes of the range behind the extent. */
static inline uint64_t qi_slot_behind(const qi_slot *record)
{
    const qi_asleep *asleep = qi_slot_asleep(record);
    return asleep ? asleep->behind : qi_checked_behind(record);
}

/* Requires the shard lock. Returns the native object, or 0. */
static inline uint64_t qi_slot_native(const qi_slot *record)
{
    return record->object ? record->native : 0;
}

/* Requires the shard lock. */
static inline uint64_t qi_slot_user_data(const qi_slot *record)
{
    if (qi_unlikely(qi_slot_is_partial(record)) && !record->meta)
        return 0; /* it is being released */
    if (!record->object)
        return record->user_data;
    return record->meta ? record->meta->user_data : 0;
}

/* Whether the slot has an image of optimal tiling. */
static inline bool qi_slot_is_optimal(const qi_slot *record)
{
    return record->object == QUIRE_OBJECT_IMAGE && record->usage;
}

/* Returns the record of a slot that is not free. */
static inline qi_slot *qi_slot_at(const qi_slots *slots, uint32_t slot)
{
    return qi_table_at(&slots->records, slot, sizeof(qi_slot));
}

/* ---- taking and returning slots ----------------------------------------------------------- */

/*
 * Requires the shard lock. Ensures that the queue has a first slot and that the slot has a record.
 * Fails with OUT_OF_HOST_MEMORY, TOO_MANY_ALLOCATIONS and WRONG_STATE.
 */
QUIRE_MUST_USE quire_result qi_slot_refill(qi_slots *slots, qi_slot_queue *queue, qi_host *host);

/*
 * Requires the shard lock. Takes a free slot and makes it PRIVATE; the caller fills its record.
 * Fails with OUT_OF_HOST_MEMORY, with TOO_MANY_ALLOCATIONS, and with WRONG_STATE while the memory
 * is being destroyed.
 */
QUIRE_MUST_USE static inline quire_result qi_slot_take(qi_slots *slots, qi_slot_queue *queue,
                                                       qi_host *host, uint32_t *out)
{
    uint32_t slot = queue->first;
    if (qi_unlikely(slot == QI_NO_SLOT || !qi_table_has(&slots->records, slot))) {
        quire_result result = qi_slot_refill(slots, queue, host);
        if (result)
            return result;
        slot = queue->first;
    }
    qi_atomic_u64 *state = qi_slot_state(slots, slot);
    uint64_t word = qi_atomic_load_u64(state);
    queue->first = (uint32_t)(word & (QI_SLOT_COUNT - 1));
    if (queue->first == QI_NO_SLOT)
        queue->last = QI_NO_SLOT;
    qi_atomic_store_release_u64(state,
                                qi_slot_word(qi_slot_generation(word) + 1, QI_PHASE_PRIVATE, 0));
    queue->used++;
    queue->used_by_chunk[qi_table_chunk_of(slot)]++;
    *out = slot;
    return QUIRE_SUCCESS;
}

/*
 * Publishes a PRIVATE slot as RESERVED or LIVE and returns its handle. Every use of the slot is
 * refused before.
 */
static inline quire_allocation qi_slot_publish(const qi_slots *slots, uint32_t slot, qi_phase phase)
{
    qi_atomic_u64 *state = qi_slot_state(slots, slot);
    uint32_t generation = qi_slot_generation(qi_atomic_load_u64(state));
    qi_atomic_store_release_u64(state, qi_slot_word(generation, phase, 0));
    return (quire_allocation){qi_handle(slots->tag, generation, slot)};
}

/* Returns the handle that qi_slot_publish will return for a PRIVATE slot. */
static inline quire_allocation qi_slot_future_handle(const qi_slots *slots, uint32_t slot)
{
    uint32_t generation = qi_slot_generation(qi_atomic_load_u64(qi_slot_state(slots, slot)));
    return (quire_allocation){qi_handle(slots->tag, generation, slot)};
}

/* Whether a PRIVATE slot has a further generation, so that qi_slot_renew may be called. */
static inline bool qi_slot_can_renew(const qi_slots *slots, uint32_t slot)
{
    return qi_slot_generation(qi_atomic_load_u64(qi_slot_state(slots, slot))) != QI_LAST_GENERATION;
}

/* Turns a PRIVATE slot into a new allocation. Handles of the former allocation stay stale. */
static inline void qi_slot_renew(const qi_slots *slots, uint32_t slot)
{
    qi_atomic_u64 *state = qi_slot_state(slots, slot);
    uint32_t generation = qi_slot_generation(qi_atomic_load_u64(state));
    qi_atomic_store_release_u64(state, qi_slot_word(generation + 1, QI_PHASE_PRIVATE, 0));
}

/* Requires the shard lock. Appends a free slot to the queue. */
static inline void qi_slot_enqueue(const qi_slots *slots, qi_slot_queue *queue, uint32_t slot)
{
    if (queue->last == QI_NO_SLOT) {
        queue->first = slot;
    } else { /* the last slot is free: no other thread changes its word */
        qi_atomic_u64 *last = qi_slot_state(slots, queue->last);
        uint64_t word = qi_atomic_load_u64(last);
        qi_atomic_store_release_u64(last, (word & ~(uint64_t)(QI_SLOT_COUNT - 1)) | slot);
    }
    queue->last = slot;
}

/*
 * Requires the shard lock. Returns a PRIVATE slot to the queue. A slot whose generations are used
 * up is retired instead.
 */
static inline void qi_slot_give(const qi_slots *slots, qi_slot_queue *queue, uint32_t slot)
{
    qi_atomic_u64 *state = qi_slot_state(slots, slot);
    uint32_t generation = qi_slot_generation(qi_atomic_load_u64(state));
    qi_atomic_store_release_u64(state, qi_slot_word(generation, QI_PHASE_FREE, QI_NO_SLOT));
    queue->used--;
    queue->used_by_chunk[qi_table_chunk_of(slot)]--;
    if (!qi_unlikely(generation == QI_LAST_GENERATION))
        qi_slot_enqueue(slots, queue, slot);
}

/* Requires the locks of both shards. A slot in use goes from one shard to another, and a second one
   the other way. */
static inline void qi_slot_exchange_queues(qi_slot_queue *from, uint32_t slot, qi_slot_queue *to,
                                           uint32_t second)
{
    from->used_by_chunk[qi_table_chunk_of(slot)]--;
    to->used_by_chunk[qi_table_chunk_of(slot)]++;
    to->used_by_chunk[qi_table_chunk_of(second)]--;
    from->used_by_chunk[qi_table_chunk_of(second)]++;
}

/*
 * Requires the locks of all shards. Releases the records of chunks without used slots, and rebuilds
 * the queues with the lowest slots first. `queues` are the queues of all shards in their order.
 */
void qi_slots_trim(qi_slots *slots, qi_slot_queue *const *queues, uint32_t count, qi_host *host);

/* Set and return the link of a PRIVATE slot. The thread that takes the slot over reads it. */
void qi_slot_set_next(const qi_slots *slots, uint32_t slot, uint32_t next);
uint32_t qi_slot_next(const qi_slots *slots, uint32_t slot);

/* Returns the handle of a slot that is RESERVED, LIVE or ASLEEP, otherwise {0}. No lock. */
quire_allocation qi_slot_public_handle(const qi_slots *slots, uint32_t slot);

/* Whether a handle that these slots once had names a live, committed allocation. No lock. */
static inline bool qi_slot_is_live(const qi_slots *slots, uint64_t id)
{
    uint64_t word = qi_atomic_load_acquire_u64(qi_slot_state(slots, qi_handle_slot(id)));
    return word >> QI_PHASE_SHIFT == ((uint64_t)qi_handle_generation(id) << 2 | QI_PHASE_LIVE);
}

/* The phases that a call accepts; a bit mask. */
enum { QI_ACCEPT_LIVE = 1, QI_ACCEPT_RESERVED = 2, QI_ACCEPT_ASLEEP = 4 };

/* Fails as handles do, and with WRONG_STATE for a phase that is not accepted. */
QUIRE_MUST_USE quire_result qi_slot_check(const qi_slots *slots, quire_allocation allocation,
                                          int accept);

/*
 * Raises the in-use count of an allocation. Until qi_slot_end_use it cannot be freed, and its
 * record and page stay. Fails as handles do (INVALID_ARGUMENT, STALE_HANDLE, FOREIGN_HANDLE,
 * NOT_PERMITTED), with WRONG_STATE for a phase that is not accepted, and with BUSY at 2^18 - 1
 * uses.
 */
QUIRE_MUST_USE quire_result qi_slot_begin_use(const qi_slots *slots, quire_allocation allocation,
                                              int accept, uint32_t *slot);
void qi_slot_end_use(const qi_slots *slots, uint32_t slot);

/*
 * Holds a live allocation: raises its in-use count until qi_slot_release. Fails as
 * qi_slot_begin_use, with BUSY at QI_MAX_HOLDS holds, and with OUT_OF_HOST_MEMORY. qi_slot_release
 * removes one hold. It fails with WRONG_STATE if the allocation has no hold, even if it has other
 * uses.
 */
enum { QI_MAX_HOLDS = (1 << 17) - 1 };
QUIRE_MUST_USE quire_result qi_slot_hold(qi_slots *slots, qi_host *host,
                                         quire_allocation allocation);
QUIRE_MUST_USE quire_result qi_slot_release(const qi_slots *slots, quire_allocation allocation);

/*
 * Count the maps of a slot that the caller has in use. Adding fails with OUT_OF_RANGE at 2^18 - 1
 * maps, removing with NOT_MAPPED at 0.
 */
QUIRE_MUST_USE quire_result qi_slot_add_map(const qi_slots *slots, uint32_t slot);
QUIRE_MUST_USE quire_result qi_slot_remove_map(const qi_slots *slots, uint32_t slot);
uint32_t qi_slot_map_count(const qi_slots *slots, uint32_t slot);

/* For the child of a fork, in which no call is running. Drops all uses that are not holds. Moves
   stay. */
void qi_slots_drop_uses(const qi_slots *slots);

qi_phase qi_slot_phase(const qi_slots *slots, uint32_t slot);

/* Changes RESERVED to LIVE. Fails as handles do, and with WRONG_STATE. */
QUIRE_MUST_USE quire_result qi_slot_commit(const qi_slots *slots, quire_allocation allocation);

/* Turns a slot that was claimed from LIVE or ASLEEP back into what it was. */
void qi_slot_unclaim(const qi_slots *slots, uint32_t slot);

/* How a call begins to change whether a slot is asleep. */
typedef enum qi_slot_begun {
    QI_SLOT_BEGUN = 0, /* the slot is ASLEEP, and has a use until qi_slot_end_sleep */
    QI_SLOT_BUSY,      /* it is mapped or in use */
    QI_SLOT_GONE       /* its phase is another one */
} qi_slot_begun;

/* From LIVE, and from ASLEEP. End: the slot becomes LIVE or ASLEEP. */
qi_slot_begun qi_slot_begin_sleep(const qi_slots *slots, uint32_t slot);
qi_slot_begun qi_slot_begin_wake(const qi_slots *slots, uint32_t slot);
void qi_slot_end_sleep(const qi_slots *slots, uint32_t slot, qi_phase phase);

/*
 * A slot moves while its record changes, and its contents with it: qi_slot_begin_use and the claims
 * of frees wait until that has ended, and hold no lock. Beginning returns false unless the slot is
 * LIVE without uses, and without maps if `maps` is NULL. Otherwise *maps receives them, and ending
 * restores as many.
 */
bool qi_slot_begin_move(const qi_slots *slots, uint32_t slot, uint32_t *maps);
void qi_slot_end_move(const qi_slots *slots, uint32_t slot, uint32_t maps);

/*
 * The same for an allocation that sleeps, after a move of another thread. GONE: it does not sleep,
 * or was freed; the slot of its handle exists. A slot whose record says that it sleeps is ASLEEP
 * once a move has ended.
 */
qi_slot_begun qi_slot_begin_waking_move(const qi_slots *slots, quire_allocation allocation);

/* For the child of a fork, in which the threads that moved slots have vanished. Ends all moves,
   unless the forking thread is in one: then none. */
void qi_slots_drop_moves(const qi_slots *slots);

/*
 * Changes LIVE or ASLEEP (for an abort RESERVED) to PRIVATE. The slot belongs to the caller, who
 * returns it. Fails as handles do, with WRONG_STATE, and with BUSY while the allocation is mapped
 * or in use. The inline function claims a slot without maps and uses; qi_slot_claim_or_fail does
 * the rest.
 */
QUIRE_MUST_USE quire_result qi_slot_claim_or_fail(const qi_slots *slots,
                                                  quire_allocation allocation, int accept);

QUIRE_MUST_USE static inline quire_result qi_slot_claim(const qi_slots *slots,
                                                        quire_allocation allocation, int accept,
                                                        uint32_t *out)
{
    uint64_t id = allocation.id;
    uint32_t slot = qi_handle_slot(id), generation = qi_handle_generation(id);
    qi_atomic_u64 *state = qi_slot_find_state(slots, slot);
    qi_table_fetch(&slots->records, slot, sizeof(qi_slot)); /* the free reads it next */
    uint64_t word =
        qi_slot_word(generation, accept & QI_ACCEPT_LIVE ? QI_PHASE_LIVE : QI_PHASE_RESERVED, 0);
    *out = slot;
    if (state && qi_handle_tag(id) == slots->tag &&
        qi_atomic_take_u64(state, word, qi_slot_word(generation, QI_PHASE_PRIVATE, 0)))
        return QUIRE_SUCCESS;
    return qi_slot_claim_or_fail(slots, allocation, accept);
}

/*
 * For a memory that is being destroyed. Claims a slot that is LIVE, RESERVED or ASLEEP in spite of
 * its maps, uses and holds. Returns false if the slot is free or PRIVATE. A PRIVATE slot, for
 * example one that a callback has freed, is already in an inbox, a stream queue or the quarantine.
 */
bool qi_slot_force_claim(const qi_slots *slots, uint32_t slot);

/* ---- the fields of a state word ----------------------------------------------------------- */

/*
 * These functions read a copy of the word and require no lock.
 */

enum { QI_WORD_MAP_SHIFT = 18 };

/* The largest number of uses, and of maps. */
#define QI_WORD_COUNT_MASK ((UINT64_C(1) << QI_WORD_MAP_SHIFT) - 1)
#define QI_WORD_ONE_MAP (UINT64_C(1) << QI_WORD_MAP_SHIFT)

/* A slot that is RESERVED is mapped less often: see qi_slot_add_map. */
#define QI_WORD_ASLEEP                                                                             \
    ((uint64_t)QI_PHASE_RESERVED << QI_PHASE_SHIFT | QI_WORD_COUNT_MASK << QI_WORD_MAP_SHIFT)

static inline bool qi_word_is_asleep(uint64_t word)
{
    const uint64_t fields = (UINT64_C(1) << QI_GENERATION_SHIFT) - 1 - QI_WORD_COUNT_MASK;
    return (word & fields) == QI_WORD_ASLEEP;
}

/* A LIVE word with more holds than there can be: see QI_MAX_HOLDS. */
#define QI_WORD_MOVING                                                                             \
    ((uint64_t)QI_PHASE_LIVE << QI_PHASE_SHIFT | QI_WORD_COUNT_MASK << QI_WORD_MAP_SHIFT |         \
     QI_WORD_COUNT_MASK)

static inline bool qi_word_is_moving(uint64_t word)
{
    return (word & ((UINT64_C(1) << QI_GENERATION_SHIFT) - 1)) == QI_WORD_MOVING;
}

static inline qi_phase qi_word_phase(uint64_t word)
{
    return qi_word_is_asleep(word) ? QI_PHASE_ASLEEP : (qi_phase)(word >> QI_PHASE_SHIFT & 3);
}

static inline uint64_t qi_word_maps(uint64_t word)
{
    return qi_word_is_asleep(word) || qi_word_is_moving(word)
               ? 0
               : word >> QI_WORD_MAP_SHIFT & QI_WORD_COUNT_MASK;
}

/* The in-use count, holds included. */
static inline uint64_t qi_word_uses(uint64_t word)
{
    return word & QI_WORD_COUNT_MASK;
}

/* The hold count of a slot. Its chunk must exist: qi_table_has(&slots->holds, slot). */
static inline qi_atomic_u32 *qi_slot_hold_count(const qi_slots *slots, uint32_t slot)
{
    return qi_table_at(&slots->holds, slot, sizeof(qi_atomic_u32));
}

/* Makes room for what an allocation has, with `bytes` of its contents, and a meta record if it has
   none. Fails with OUT_OF_HOST_MEMORY, about `what`; the caller releases what there is. */
QUIRE_MUST_USE quire_result qi_asleep_create(qi_host *host, const qi_slot *record, uint64_t bytes,
                                             const char *what, qi_asleep **asleep,
                                             qi_slot_meta **meta);

/* Releases what a sleeping allocation had. NULL is allowed. */
void qi_asleep_release(qi_host *host, qi_asleep *asleep);

/* ---- meta records ------------------------------------------------------------------------- */

/*
 * Only allocations with a name, images, objects with user data, lazy allocations, and those with
 * recorded uses have one. No function requires a lock. The caller owns the record until it is
 * stored in a slot.
 */

/* What needs a meta record besides name and user data. `lazy` of it is NULL at first. */
enum { QI_META_IMAGE = 1, QI_META_LAZY = 2, QI_META_ALIGNMENT = 4 };

/* `parts` is QI_META_... or 0. Fails with OUT_OF_HOST_MEMORY; then *meta is NULL. */
QUIRE_MUST_USE quire_result qi_slot_meta_create_some(qi_host *host, const char *name,
                                                     uint64_t user_data, uint32_t parts,
                                                     qi_slot_meta **meta);

/* The same, but sets *meta to NULL if nothing is to be stored in it, as for most allocations. */
QUIRE_MUST_USE static inline quire_result qi_slot_meta_create(qi_host *host, const char *name,
                                                              uint64_t user_data, uint32_t parts,
                                                              qi_slot_meta **meta)
{
    *meta = NULL;
    return name || user_data || parts ? qi_slot_meta_create_some(host, name, user_data, parts, meta)
                                      : QUIRE_SUCCESS;
}

/* Returns an empty record, or NULL if host memory is exhausted. */
qi_slot_meta *qi_slot_meta_create_empty(qi_host *host);

/* Requires the shard lock. Takes the meta record out. The addresses of a lazy allocation stay in
   the slot. */
static inline qi_slot_meta *qi_slot_detach_meta(qi_slot *record)
{
    qi_slot_meta *meta = record->meta;
    if (qi_slot_is_lazy(record)) {
        record->lazy = meta->lazy;
        meta->lazy = NULL;
    } else if (meta->asleep) {
        record->object = QUIRE_OBJECT_NONE; /* it has no native object */
        if (meta->asleep->range.id)
            record->asleep = meta->asleep->range;
        else
            record->evicted = meta->asleep->size + meta->asleep->left_padding;
    }
    record->meta = NULL;
    return meta;
}

/* Accepts NULL. */
void qi_slot_meta_release(qi_host *host, qi_slot_meta *meta);

/* ---- callbacks during a use --------------------------------------------------------------- */

/*
 * If such a callback forks, the call continues in the child after the callback returns, and its
 * uses must still count there. A use does not record its thread, so that the child then keeps the
 * uses of all threads. Otherwise the child drops every use that is not a hold. The counter is
 * thread-local and needs no lock.
 */

/* Around a callback. Calls nest: a callback may call quire, which calls another callback. */
void qi_uses_begin_callback(void);
void qi_uses_end_callback(void);

/* For the child of a fork. Whether the uses of slots are kept there. */
bool qi_uses_are_kept(void);

#endif
