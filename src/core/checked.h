/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * checked.h - checked builds (meson option `checked`): watched zones beside each allocation reveal
 * writes beyond it, and freed ranges in quarantine writes after the free (docs/checked.md). The
 * rest of the core calls these hooks.
 *
 *   range of the space   |left padding|front zone    | the caller's bytes |rear zone            |
 *                                                    ^offset              ^offset + tail        ^
 *                                                                                  offset + end
 *
 * The front zone is part of the reported left padding. The rear zone follows the requested bytes,
 * so that the bytes that rounding adds are watched too. It is not part of the reported size, except
 * in an item of a walk, where items are adjacent.
 *
 * A freed range waits in quarantine with its slot, which stays PRIVATE, and is released later. Its
 * records do not change until then; only statistics and walks leave it out.
 *
 * The lock of qi_checked protects the quarantine. It is taken after the shard lock and before the
 * locks of streams, pages, slots and the backend. Each hook states the locks that it requires.
 * Invariant: held_bytes, held_requested and held_count are the sums over the slots with is_held.
 *
 * Without QUIRE_CHECKED every hook is an inline function without effect: the default build has the
 * same instructions as if there were no hooks.
 */
#ifndef QUIRE_SRC_CORE_CHECKED_H
#define QUIRE_SRC_CORE_CHECKED_H

#include "quire/insight.h"
#include "src/base/lock.h"

struct qi_page;
struct qi_shard;
struct qi_asleep;
struct qi_slot;
struct qi_request;

#ifdef QUIRE_CHECKED

/* Disables the fast path and the groups of batches, which call no hooks. */
enum { QI_IS_CHECKED = 1 };

/* Bytes of a red zone: a cache line. */
#define QI_ZONE_SIZE UINT64_C(64)

/* Allocations with a larger alignment have no front zone, because it would be as large as that. */
#define QI_MAX_FRONT UINT64_C(256)

/* The quarantine holds at most so many bytes and ranges: the last few hundred frees. */
#define QI_QUARANTINE_BYTES (UINT64_C(16) << 20)
enum { QI_QUARANTINE_COUNT = 256 };

enum { QI_CORRUPTION_TEXT = 512 };

/* The part of a slot that checked builds add. */
typedef struct qi_watch {
    char *name;      /* in quarantine: the former name, for messages; no limit counts it */
    uint64_t tail;   /* bytes of the caller from offset; the rear zone begins after them */
    uint64_t end;    /* bytes from offset to the end of the range */
    uint32_t front;  /* bytes of the front zone, or 0 */
    bool is_written; /* the zones are written; set by the thread that creates the allocation */
    bool is_held;    /* in quarantine; protected by the lock of qi_checked */
} qi_watch;

/* The part of a memory that checked builds add: one for all its shards. */
typedef struct qi_checked {
    qi_lock lock;                       /* protects all fields below */
    uint32_t ring[QI_QUARANTINE_COUNT]; /* slots in the order of their frees */
    uint32_t first, count;
    uint32_t leaving;       /* slots taken out of the ring and not released yet */
    uint32_t last_attempts; /* allocations on their last attempt; no slot enters unless it is 0 */
    uint64_t held_bytes, held_requested, held_count; /* sums over all slots with is_held */
    uint32_t reading;  /* 1 + the slot whose zones quire_memory_check reads, or 0 */
    bool is_corrupted; /* a write after a free was found since the last check */
    char corruption[QI_CORRUPTION_TEXT]; /* the sentence of the first such finding */
} qi_checked;

/* Whether the memory is checked: its bytes can be written and read. */
bool qi_checked_is_on(const quire_memory *memory);

/* Called before every other hook of the memory. */
void qi_checked_init(quire_memory *memory);

/* Requires that no lock is held. Logs a warning if the memory is not checked. Called once. */
void qi_checked_report_state(const quire_memory *memory);

/* Returns the largest number of bytes that red zones and their rounding add to a request. */
uint64_t qi_checked_max_added(const quire_memory *memory);

/* Adds the red zones to a request. Returns true if that overflows. */
QUIRE_MUST_USE bool qi_checked_grow_overflows(const quire_memory *memory, uint64_t *alignment,
                                              uint64_t *size);

/* Returns the bytes that a request of `size`, red zones included, holds without the zones. */
uint64_t qi_checked_size_without(const quire_memory *memory, const struct qi_request *request,
                                 uint64_t size);

/*
 * Requires the shard lock. Divides the record of a placed range into zones and the caller's bytes.
 */
void qi_checked_mark(const quire_memory *memory, uint32_t slot, const struct qi_request *request,
                     uint64_t alignment);

/*
 * Requires the shard lock. Moves the zones with the offset of a record, which has grown by `bytes`
 * at the cost of the end. Returns false if the caller reduces the size: in builds without zones.
 */
bool qi_checked_moved(struct qi_slot *record, uint64_t bytes);

/*
 * Return the bytes of the front zone and of the rear zone of a placed range, and how many of its
 * `size` bytes the library may fill.
 */
uint64_t qi_checked_front(const struct qi_slot *record);
uint64_t qi_checked_behind(const struct qi_slot *record);
uint64_t qi_checked_usable(const struct qi_slot *record, uint64_t size);

/*
 * Requires that no lock is held. Writes the zones and, unless the range will be zeroed, the pattern
 * of fresh memory.
 */
void qi_checked_placed(quire_memory *memory, uint32_t slot, bool zero);

/* Requires that no lock is held. Waits until no check reads the zones of a slot that is freed. */
void qi_checked_await_reader(quire_memory *memory, uint32_t slot);

/*
 * Requires that no lock is held, and a slot that is being freed. Verifies its zones. If they were
 * overwritten, logs the finding, sets the thread's last error to CORRUPTED, restores the zones and
 * returns true.
 */
bool qi_checked_report_corruption(quire_memory *memory, uint32_t slot);

/*
 * Requires that no lock is held. Fills the bytes of a slot that is being freed and takes the slot
 * into quarantine. Returns false if the caller releases the slot at once.
 */
bool qi_checked_hold(quire_memory *memory, uint32_t slot);

/*
 * Requires the shard lock. Called for every slot that is released. Ends the quarantine of the slot
 * and makes its range inaccessible to the tools.
 */
void qi_checked_forget(quire_memory *memory, struct qi_slot *record);

/*
 * Both empty the quarantine, wait for slots that other threads are taking out, and drain the
 * inboxes that released slots pass through. qi_checked_drain requires that no lock is held.
 * qi_checked_make_room requires the shard lock. It releases and reacquires the lock, and returns
 * whether the caller should search for room again.
 */
void qi_checked_drain(quire_memory *memory);
bool qi_checked_make_room(struct qi_shard *shard);

/*
 * Require that no lock is held. Bracket the last attempt of an allocation that is about to be
 * refused. The first empties the quarantine, and no slot enters until the second, so that the
 * attempt can use all freed ranges. The first returns false, and the second must not be called, if
 * the memory is not checked.
 */
bool qi_checked_begin_out_of_memory(quire_memory *memory);
void qi_checked_end_out_of_memory(quire_memory *memory);

/* For the child of a fork. Resets what threads that no longer exist had in progress. */
void qi_checked_forked(quire_memory *memory);

/* Requires the locks of all shards. Subtracts the quarantine from the statistics. */
void qi_checked_correct(quire_memory *memory, quire_memory_stats *stats);

/* Requires the shard lock. Returns whether a slot is in quarantine. */
bool qi_checked_is_held(quire_memory *memory, uint32_t slot);

/*
 * Requires that no lock is held. Verifies all red zones and the quarantine, for quire_memory_check.
 * Fails with CORRUPTED.
 */
quire_result qi_checked_check(quire_memory *memory);

/*
 * Called when a page has been created and no thread uses it yet, and before it is destroyed.
 * Between the two calls the tools see its bytes as inaccessible unless they belong to an
 * allocation, also while the page is empty or moves to another shard.
 */
void qi_checked_page_made(const struct qi_page *page);
void qi_checked_page_leaving(const struct qi_page *page);

/* The same for bytes of an elastic page that get memory. */
void qi_checked_page_grown(const struct qi_page *page, uint64_t from, uint64_t to);

/* A lazy allocation, which has no red zones, uses bytes of its page; and has got or lost some. */
void qi_checked_page_used(const struct qi_page *page, uint64_t from, uint64_t to);
void qi_checked_resized(struct qi_slot *record);

/*
 * The zones of an allocation that falls asleep have no memory: asleep and awake require the shard
 * lock, and move what the record says of them to its `asleep` and back. Woken requires that no lock
 * is held, and a slot that only the caller uses: it writes the zones again, which count as written
 * from then on.
 */
void qi_checked_asleep(struct qi_slot *record, struct qi_asleep *asleep);
void qi_checked_awake(struct qi_slot *record, const struct qi_asleep *asleep);
void qi_checked_woken(quire_memory *memory, uint32_t slot, const struct qi_asleep *asleep);

/*
 * In quarantine.c. Verifies all ranges in quarantine. Returns whether a write after a free was
 * found since the last check; `corruption` receives the sentence of the first one.
 */
bool qi_quarantine_check(quire_memory *memory, char corruption[QI_CORRUPTION_TEXT]);

#else

enum { QI_IS_CHECKED = 0 };

static inline void qi_checked_init(quire_memory *memory)
{
    (void)memory;
}

static inline bool qi_checked_is_on(const quire_memory *memory)
{
    (void)memory;
    return false;
}

static inline void qi_checked_report_state(const quire_memory *memory)
{
    (void)memory;
}

static inline uint64_t qi_checked_max_added(const quire_memory *memory)
{
    (void)memory;
    return 0;
}

static inline bool qi_checked_grow_overflows(const quire_memory *memory, uint64_t *alignment,
                                             uint64_t *size)
{
    (void)memory;
    (void)alignment;
    (void)size;
    return false;
}

static inline uint64_t qi_checked_size_without(const quire_memory *memory,
                                               const struct qi_request *request, uint64_t size)
{
    (void)memory;
    (void)request;
    return size;
}

static inline void qi_checked_mark(const quire_memory *memory, uint32_t slot,
                                   const struct qi_request *request, uint64_t alignment)
{
    (void)memory;
    (void)slot;
    (void)request;
    (void)alignment;
}

static inline bool qi_checked_moved(struct qi_slot *record, uint64_t bytes)
{
    (void)record;
    (void)bytes;
    return false;
}

static inline uint64_t qi_checked_front(const struct qi_slot *record)
{
    (void)record;
    return 0;
}

static inline uint64_t qi_checked_behind(const struct qi_slot *record)
{
    (void)record;
    return 0;
}

static inline uint64_t qi_checked_usable(const struct qi_slot *record, uint64_t size)
{
    (void)record;
    return size;
}

static inline void qi_checked_placed(quire_memory *memory, uint32_t slot, bool zero)
{
    (void)memory;
    (void)slot;
    (void)zero;
}

static inline void qi_checked_await_reader(quire_memory *memory, uint32_t slot)
{
    (void)memory;
    (void)slot;
}

static inline bool qi_checked_report_corruption(quire_memory *memory, uint32_t slot)
{
    (void)memory;
    (void)slot;
    return false;
}

static inline bool qi_checked_hold(quire_memory *memory, uint32_t slot)
{
    (void)memory;
    (void)slot;
    return false;
}

static inline void qi_checked_forget(quire_memory *memory, struct qi_slot *record)
{
    (void)memory;
    (void)record;
}

static inline void qi_checked_drain(quire_memory *memory)
{
    (void)memory;
}

static inline bool qi_checked_make_room(struct qi_shard *shard)
{
    (void)shard;
    return false;
}

static inline bool qi_checked_begin_out_of_memory(quire_memory *memory)
{
    (void)memory;
    return false;
}

static inline void qi_checked_end_out_of_memory(quire_memory *memory)
{
    (void)memory;
}

static inline void qi_checked_forked(quire_memory *memory)
{
    (void)memory;
}

static inline void qi_checked_correct(quire_memory *memory, quire_memory_stats *stats)
{
    (void)memory;
    (void)stats;
}

static inline bool qi_checked_is_held(quire_memory *memory, uint32_t slot)
{
    (void)memory;
    (void)slot;
    return false;
}

static inline quire_result qi_checked_check(quire_memory *memory)
{
    (void)memory;
    return QUIRE_SUCCESS;
}

static inline void qi_checked_page_made(const struct qi_page *page)
{
    (void)page;
}

static inline void qi_checked_page_leaving(const struct qi_page *page)
{
    (void)page;
}

static inline void qi_checked_page_grown(const struct qi_page *page, uint64_t from, uint64_t to)
{
    (void)page;
    (void)from;
    (void)to;
}

static inline void qi_checked_page_used(const struct qi_page *page, uint64_t from, uint64_t to)
{
    (void)page;
    (void)from;
    (void)to;
}

static inline void qi_checked_asleep(struct qi_slot *record, struct qi_asleep *asleep)
{
    (void)record;
    (void)asleep;
}

static inline void qi_checked_awake(struct qi_slot *record, const struct qi_asleep *asleep)
{
    (void)record;
    (void)asleep;
}

static inline void qi_checked_woken(quire_memory *memory, uint32_t slot,
                                    const struct qi_asleep *asleep)
{
    (void)memory;
    (void)slot;
    (void)asleep;
}

static inline void qi_checked_resized(struct qi_slot *record)
{
    (void)record;
}

#endif

#endif
