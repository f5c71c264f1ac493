/*
 * checked.h - checked builds (meson option `checked`): what the rest of the memory calls so that
 * writes beyond an allocation and after its free are found. docs/checked.md says what that is.
 *
 *   range of the space   |left padding|zone in front| the caller's bytes |zone behind          |
 *                                                   ^offset              ^offset + tail        ^
 *                                                                                 offset + end
 *
 * The zone in front is part of the left padding that is told; the zone behind follows the bytes
 * asked for, so that what rounding adds is watched too, and is not part of the size that is told
 * (of an item of a walk it is, so that items lie end to end).
 * A freed range waits in the quarantine with its slot, PRIVATE as before, and is given back later:
 * all records stay as they are until then, and only figures and walks leave it out.
 *
 * Without QUIRE_CHECKED every hook is an inline function without effect, and the default build has
 * the same instructions as if there were none. With it, locks and threads are said at each hook.
 */
#ifndef QUIRE_SRC_CORE_STATE_CHECKED_H
#define QUIRE_SRC_CORE_STATE_CHECKED_H

#include "quire/insight.h"
#include "src/base/lock.h"

struct qi_page;
struct qi_shard;
struct qi_slot;
struct qi_request;

#ifdef QUIRE_CHECKED

/* Nothing is done without a look at what is watched: no usual case, no group of a batch. */
enum { QI_IS_CHECKED = 1 };

/* Bytes of a red zone: a cache line. */
#define QI_ZONE_SIZE UINT64_C(64)

/* In front of allocations of larger alignment there is none: it would be as large as that. */
#define QI_MAX_FRONT UINT64_C(256)

/* Ranges that wait at most, and bytes in them: a few hundred frees are looked back on. */
#define QI_QUARANTINE_BYTES (UINT64_C(16) << 20)
enum { QI_QUARANTINE_COUNT = 256 };

enum { QI_CORRUPTION_TEXT = 512 };

/* Of a slot. */
typedef struct qi_watch {
    char *name;      /* in quarantine: what it was called, no longer counted */
    uint64_t tail;   /* bytes from offset on that are the caller's; the zone behind begins there */
    uint64_t end;    /* bytes from offset on to the end of the range */
    uint32_t front;  /* bytes of the zone in front, 0 where there is none */
    bool is_written; /* the zones are in place; set by the thread that makes the allocation */
    bool is_held;    /* in quarantine; under its lock */
} qi_watch;

/* Of a memory: one for all its shards. */
typedef struct qi_checked {
    qi_lock lock; /* of all that follows; taken last but for those of pages, slots and backend */
    uint32_t ring[QI_QUARANTINE_COUNT]; /* slots in the order of their frees */
    uint32_t first, count;
    uint32_t leaving;   /* slots taken out of the ring and looked at just now */
    uint32_t shortages; /* allocations on their last attempt: nothing comes in meanwhile */
    uint64_t held_bytes, held_requested, held_count; /* of all slots with is_held */
    uint32_t reading;  /* 1 + the slot whose zones quire_memory_check reads; 0: none */
    bool is_corrupted; /* since the last check, by a write after a free: */
    char corruption[QI_CORRUPTION_TEXT]; /* the first one */
} qi_checked;

/* Whether the bytes of this memory can be written and read, so that it is watched. */
bool qi_checked_is_on(const quire_memory *memory);

/* Before anything else. */
void qi_checked_init(quire_memory *memory);

/* Without a lock, once: a warning where it is not. */
void qi_checked_report_state(const quire_memory *memory);

/* What red zones add to a request at most. */
uint64_t qi_checked_max_added(const quire_memory *memory);

/* Adds the red zones to a request. */
QUIRE_MUST_USE bool qi_checked_grow_overflows(const quire_memory *memory, uint64_t *alignment,
                                              uint64_t *size);

/* What a request of `size`, red zones included, holds without them. */
uint64_t qi_checked_size_without(const quire_memory *memory, const struct qi_request *request,
                                 uint64_t size);

/* With the shard's lock: parts the record of a placed range into zones and the caller's bytes. */
void qi_checked_mark(const quire_memory *memory, uint32_t slot, const struct qi_request *request,
                     uint64_t alignment);

/* Bytes of the zones of a placed range, and bytes that may be filled of one of `size`. */
uint64_t qi_checked_front(const struct qi_slot *record);
uint64_t qi_checked_behind(const struct qi_slot *record);
uint64_t qi_checked_usable(const struct qi_slot *record, uint64_t size);

/* Without a lock: writes zones and, unless it will be zeroed, the pattern of fresh memory. */
void qi_checked_placed(quire_memory *memory, uint32_t slot, bool zero);

/* Without a lock: a check may be reading the zones of a slot that goes; returns when it is done. */
void qi_checked_await_reader(quire_memory *memory, uint32_t slot);

/*
 * Without a lock, for a slot being freed: whether its zones were written to, which is told to the
 * log then and is the thread's last error, CORRUPTED.
 */
bool qi_checked_is_corrupted(quire_memory *memory, uint32_t slot);

/*
 * Without a lock: fills a slot being freed and takes it into quarantine. False: give it back at
 * once.
 */
bool qi_checked_hold(quire_memory *memory, uint32_t slot);

/* With the shard's lock: the slot is given back, in quarantine or not. */
void qi_checked_forget(quire_memory *memory, struct qi_slot *record);

/*
 * Empties the quarantine, also of what other threads are just taking out, and the inboxes that this
 * goes through. The first without a lock; the second with the shard's, given up meanwhile: whether
 * it is worth looking for room again.
 */
void qi_checked_drain(quire_memory *memory);
bool qi_checked_make_room(struct qi_shard *shard);

/*
 * Without a lock: an allocation is about to be refused. Until the end the quarantine is empty, so
 * that another attempt finds all that was freed. False: there is none, and nothing to end.
 */
bool qi_checked_begin_out_of_memory(quire_memory *memory);
void qi_checked_end_out_of_memory(quire_memory *memory);

/* In the child of a fork: what other threads were at is nobody's any more. */
void qi_checked_forked(quire_memory *memory);

/* With the locks of all shards: takes what is in quarantine out of figures. */
void qi_checked_correct(quire_memory *memory, quire_memory_stats *stats);

/* With the shard's lock: whether a slot is in quarantine; whether a byte of its page is in use. */
bool qi_checked_is_held(quire_memory *memory, uint32_t slot);
bool qi_checked_owns(quire_memory *memory, uint32_t slot, uint64_t offset);

/* Without a lock: all red zones and the quarantine, for quire_memory_check. */
quire_result qi_checked_check(quire_memory *memory);

/*
 * A page is ready and nobody uses it yet; it is about to be given back. Between the two its bytes
 * are shut unless an allocation has them: also while it is empty, or goes from shard to shard.
 */
void qi_checked_page_made(const struct qi_page *page);
void qi_checked_page_leaving(const struct qi_page *page);

/* Likewise for what comes at a page's end, and what goes there. */
void qi_checked_page_grown(const struct qi_page *page, uint64_t from, uint64_t to);
void qi_checked_page_cut(const struct qi_page *page, uint64_t to, uint64_t from);

/* quarantine.c: the same for what is in quarantine; the sentence goes into `harm`, if first. */
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

static inline bool qi_checked_is_corrupted(quire_memory *memory, uint32_t slot)
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

static inline bool qi_checked_owns(quire_memory *memory, uint32_t slot, uint64_t offset)
{
    (void)memory;
    (void)slot;
    (void)offset;
    return true;
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

static inline void qi_checked_page_cut(const struct qi_page *page, uint64_t to, uint64_t from)
{
    (void)page;
    (void)from;
    (void)to;
}

#endif

#endif
