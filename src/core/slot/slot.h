/*
 * slot.h - the table behind the handles of a memory: which allocations live, and where they lie.
 *
 * Every slot has a state word that any thread may read at any time, so that a handle is found live
 * or not without a lock; who changes it against others does so by compare-and-exchange: of several
 * threads that free one allocation exactly one wins. The record behind the word may be used between
 * a pin and its unpin, or by the thread that makes the allocation or won its free.
 *
 *   63          38 37 36 35                                   0
 *  +--------------+-----+--------------------------------------+
 *  |  generation  |phase| live: maps (18) and pins (18)         |
 *  |              |     | free, private: next slot linked (26)  |
 *  +--------------+-----+--------------------------------------+
 *
 * Freed slots wait in a queue, first in first out. A slot whose generation is used up never enters
 * it again. State words stay for the memory's life; records are given back a chunk at a time when
 * all slots of the chunk are free.
 *
 * A hold of a backend is a pin that stays until it is released. How many of a slot's pins are holds
 * is counted in a table of its own, made when something is held: a release without a hold cannot
 * take away the pin of a running call. Invariant: the holds of a slot are at most its pins, so that
 * a free slot has none.
 *
 * Each shard of a memory takes slots from a queue of its own and gives them back there, under its
 * lock; new ones come in blocks, so that threads in different shards do not write to one cache
 * line. A private slot can be linked to another one: how a shard is told of frees (inbox.h).
 */
#ifndef QUIRE_SRC_CORE_SLOT_SLOT_H
#define QUIRE_SRC_CORE_SLOT_SLOT_H

#include "quire/allocation.h"
#include "quire/resource.h"
#include "src/base/handle.h"
#include "src/base/lock.h"
#include "src/base/table.h"
#include "src/core/device/disabled.h"
#include "src/core/checked.h"

typedef enum qi_phase {
    QI_PHASE_FREE = 0,
    QI_PHASE_RESERVED, /* placed, not committed */
    QI_PHASE_LIVE,
    QI_PHASE_PRIVATE /* being made, or won by a free or an abort: one thread owns it */
} qi_phase;

/*
 * What few allocations have, made when first needed. Buffers have none of it, most often: to make
 * or to end one costs no line of host memory but its record's.
 */
typedef struct qi_slot_meta {
    char *name;              /* under the memory's lock */
    uint64_t user_data;      /* of an object; under the lock */
    struct qi_wait *uses;    /* by streams, to be waited for once it is freed; under the lock */
    quire_image_info *image; /* of an image; `place` unused */
} qi_slot_meta;

/* 64 bytes: one cache line; more in checked builds. */
typedef struct qi_slot {
    uint64_t offset; /* in the page */
    uint64_t size;
    uint64_t requested;
    union {
        uint64_t user_data; /* of a raw range; under the memory's lock */
        uint64_t native;    /* of an object: the backend's, or 0; likewise */
    };
    quire_range range;      /* in the space; {0} on a dedicated page */
    qi_slot_meta *meta;     /* or NULL; set under the memory's lock */
    struct qi_tally *tally; /* of the page */
    uint32_t left_padding;  /* below the largest alignment, 1 GiB */
    uint8_t shard;          /* of the page: to free it elsewhere its busy line is not looked at */
    uint8_t object;         /* a quire_object */
    uint8_t usage;          /* of a buffer */
    bool borrowed;          /* the native object outlives the allocation */
#ifdef QUIRE_CHECKED
    qi_watch watch;
#endif
} qi_slot;

/* All that buffers know. */
#define QI_BUFFER_USAGES                                                                           \
    (QUIRE_USAGE_TRANSFER_SOURCE | QUIRE_USAGE_TRANSFER_TARGET | QUIRE_USAGE_STORAGE |             \
     QUIRE_USAGE_UNIFORM | QUIRE_USAGE_VERTEX | QUIRE_USAGE_INDEX)

_Static_assert(QI_MAX_SHARDS <= UINT8_MAX && QI_BUFFER_USAGES <= UINT8_MAX, "a byte has room");

typedef struct qi_slots {
    qi_table states; /* qi_atomic_u64 */
    qi_table records;
    uint32_t tag;
    qi_lock lock;      /* while the tables grow */
    qi_atomic_u32 top; /* slots from here on belong to no queue yet */
    qi_table holds;    /* qi_atomic_u32; only chunks in which something was held are there */
    bool is_shut;      /* the memory ends, and nobody takes a slot of it */
} qi_slots;

/* The tag where the device is cut (fork.h): more than QI_TAG_BITS, no handle has it. */
#define QI_TAG_DISABLED UINT32_MAX

#define QI_NO_SLOT (QI_SLOT_COUNT - 1) /* this one is never used */

/* The free slots of a shard: first those of the queue, then the rest of a block never used. */
typedef struct qi_slot_queue {
    uint32_t first, last; /* QI_NO_SLOT when empty */
    uint32_t fresh, fresh_end;
    uint32_t used; /* taken and not given back */
    uint32_t used_by_chunk[QI_TABLE_CHUNKS];
} qi_slot_queue;

void qi_slots_init(qi_slots *slots, uint32_t tag);
void qi_slots_finish(qi_slots *slots, qi_host *host);
void qi_slot_queue_init(qi_slot_queue *queue);

/* No slot from here on was ever used. */
static inline uint32_t qi_slots_top(const qi_slots *slots)
{
    return qi_atomic_load_acquire_u32(&slots->top);
}

/* ---- state words ---------------------------------------------------------------------------- */

enum { QI_PHASE_SHIFT = 36, QI_GENERATION_SHIFT = 38 };

static inline uint64_t qi_slot_word(uint32_t generation, qi_phase phase, uint64_t rest)
{
    return (uint64_t)generation << QI_GENERATION_SHIFT | (uint64_t)phase << QI_PHASE_SHIFT | rest;
}

static inline uint32_t qi_slot_generation(uint64_t word)
{
    return (uint32_t)(word >> QI_GENERATION_SHIFT);
}

/* The state word of a slot that a shard has or had. */
static inline qi_atomic_u64 *qi_slot_state(const qi_slots *slots, uint32_t slot)
{
    return qi_table_at(&slots->states, slot, sizeof(qi_atomic_u64));
}

/* Of any slot that a handle may name: NULL where no shard ever had it. */
static inline qi_atomic_u64 *qi_slot_find_state(const qi_slots *slots, uint32_t slot)
{
    return qi_table_has(&slots->states, slot) ? qi_slot_state(slots, slot) : NULL;
}

/* Asks for state and record ahead of their use; any slot may be given. */
static inline void qi_slot_fetch(const qi_slots *slots, uint32_t slot)
{
    qi_table_fetch(&slots->states, slot, sizeof(qi_atomic_u64));
    qi_table_fetch(&slots->records, slot, sizeof(qi_slot));
}

/* With the lock: the backend's object, or 0. */
static inline uint64_t qi_slot_native(const qi_slot *record)
{
    return record->object ? record->native : 0;
}

/* With the lock. */
static inline uint64_t qi_slot_user_data(const qi_slot *record)
{
    if (!record->object)
        return record->user_data;
    return record->meta ? record->meta->user_data : 0;
}

/* The record of a slot that is not free. */
static inline qi_slot *qi_slot_at(const qi_slots *slots, uint32_t slot)
{
    return qi_table_at(&slots->records, slot, sizeof(qi_slot));
}

/* ---- taking and giving ---------------------------------------------------------------------- */

/* Sees to it that the queue has a first slot, with a record. */
QUIRE_MUST_USE quire_result qi_slot_refill(qi_slots *slots, qi_slot_queue *queue, qi_host *host);

/*
 * Takes a free slot into phase PRIVATE, for the caller to fill its record. Fails with
 * OUT_OF_HOST_MEMORY, TOO_MANY_ALLOCATIONS or WRONG_STATE (the memory ends).
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
 * Hands a private slot out as RESERVED or LIVE, and tells its handle; until here every use of it is
 * refused.
 */
static inline quire_allocation qi_slot_publish(const qi_slots *slots, uint32_t slot, qi_phase phase)
{
    qi_atomic_u64 *state = qi_slot_state(slots, slot);
    uint32_t generation = qi_slot_generation(qi_atomic_load_u64(state));
    qi_atomic_store_release_u64(state, qi_slot_word(generation, phase, 0));
    return (quire_allocation){qi_handle(slots->tag, generation, slot)};
}

/*
 * Makes a private slot another allocation, to be handed out: handles of the last one stay stale.
 * Not where its generation is used up.
 */
static inline bool qi_slot_can_renew(const qi_slots *slots, uint32_t slot)
{
    return qi_slot_generation(qi_atomic_load_u64(qi_slot_state(slots, slot))) != QI_LAST_GENERATION;
}

static inline void qi_slot_renew(const qi_slots *slots, uint32_t slot)
{
    qi_atomic_u64 *state = qi_slot_state(slots, slot);
    uint32_t generation = qi_slot_generation(qi_atomic_load_u64(state));
    qi_atomic_store_release_u64(state, qi_slot_word(generation + 1, QI_PHASE_PRIVATE, 0));
}

/* Puts a free slot at the end of a queue. */
static inline void qi_slot_enqueue(const qi_slots *slots, qi_slot_queue *queue, uint32_t slot)
{
    if (queue->last == QI_NO_SLOT) {
        queue->first = slot;
    } else { /* the last one is free: nobody else changes its word */
        qi_atomic_u64 *last = qi_slot_state(slots, queue->last);
        uint64_t word = qi_atomic_load_u64(last);
        qi_atomic_store_release_u64(last, (word & ~(uint64_t)(QI_SLOT_COUNT - 1)) | slot);
    }
    queue->last = slot;
}

/* Gives a private slot back. One whose generation is used up is never queued again. */
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

/*
 * Gives back the records of chunks without a used slot, and queues the lowest slots first. With the
 * queues of all shards, in their order, and under their locks.
 */
void qi_slots_trim(qi_slots *slots, qi_slot_queue *const *queues, uint32_t count, qi_host *host);

/* The link of a private slot, to be read by whoever takes it over. */
void qi_slot_set_next(const qi_slots *slots, uint32_t slot, uint32_t next);
uint32_t qi_slot_next(const qi_slots *slots, uint32_t slot);

/* The same for others than the one thread that owns it: {0} while it is private. */
quire_allocation qi_slot_public_handle(const qi_slots *slots, uint32_t slot);

/* Phases a call accepts. */
enum { QI_ACCEPT_LIVE = 1, QI_ACCEPT_RESERVED = 2 };

/*
 * Pins an allocation: until the unpin it cannot be freed, and its record and page stay. Fails as
 * handles do, and with WRONG_STATE for a phase that is not accepted.
 */
QUIRE_MUST_USE quire_result qi_slot_begin_use(const qi_slots *slots, quire_allocation allocation,
                                              int accept, uint32_t *slot);
void qi_slot_end_use(const qi_slots *slots, uint32_t slot);

/*
 * Holds a live allocation: a pin that the caller leaves there. Fails as pins do, with BUSY where it
 * is held QI_MAX_HOLDS times, and with OUT_OF_HOST_MEMORY. Release takes one hold away;
 * WRONG_STATE where there is none, whoever pins it.
 */
enum { QI_MAX_HOLDS = (1 << 17) - 1 };
QUIRE_MUST_USE quire_result qi_slot_hold(qi_slots *slots, qi_host *host,
                                         quire_allocation allocation);
QUIRE_MUST_USE quire_result qi_slot_release(const qi_slots *slots, quire_allocation allocation);

/* Counts maps of a pinned slot. OUT_OF_RANGE above 2^18 - 1, NOT_MAPPED below 0. */
QUIRE_MUST_USE quire_result qi_slot_add_map(const qi_slots *slots, uint32_t slot);
QUIRE_MUST_USE quire_result qi_slot_remove_map(const qi_slots *slots, uint32_t slot);
uint32_t qi_slot_map_count(const qi_slots *slots, uint32_t slot);

/* For the child of a fork, in which no call is running: pins that are not holds go. */
void qi_slots_drop_uses(const qi_slots *slots);

qi_phase qi_slot_phase(const qi_slots *slots, uint32_t slot);

/* RESERVED to LIVE. Fails as handles do, and with WRONG_STATE. */
QUIRE_MUST_USE quire_result qi_slot_commit(const qi_slots *slots, quire_allocation allocation);

/*
 * To PRIVATE from LIVE (or, for an abort, from RESERVED): the caller has won and gives the slot
 * back. Fails as handles do, with WRONG_STATE, and with BUSY while mapped or pinned.
 */
QUIRE_MUST_USE quire_result qi_slot_claim_or_fail(const qi_slots *slots,
                                                  quire_allocation allocation, int accept,
                                                  uint32_t *slot);

QUIRE_MUST_USE static inline quire_result qi_slot_claim(const qi_slots *slots,
                                                        quire_allocation allocation, int accept,
                                                        uint32_t *out)
{
    uint64_t id = allocation.id;
    uint32_t slot = qi_handle_slot(id), generation = qi_handle_generation(id);
    qi_atomic_u64 *state = qi_slot_find_state(slots, slot);
    qi_table_fetch(&slots->records, slot, sizeof(qi_slot)); /* for whoever wins the free */
    uint64_t word =
        qi_slot_word(generation, accept & QI_ACCEPT_LIVE ? QI_PHASE_LIVE : QI_PHASE_RESERVED, 0);
    *out = slot;
    if (state && qi_handle_tag(id) == slots->tag &&
        qi_atomic_take_u64(state, word, qi_slot_word(generation, QI_PHASE_PRIVATE, 0)))
        return QUIRE_SUCCESS;
    return qi_slot_claim_or_fail(slots, allocation, accept, out);
}

/*
 * The same of a live or reserved slot, whatever maps and pins there are, for a memory that ends.
 * False: it is free, or PRIVATE, as what a callback has freed: that lies in an inbox, a lane or a
 * quarantine already.
 */
bool qi_slot_force_claim(const qi_slots *slots, uint32_t slot);

#endif
