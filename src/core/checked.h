/*
 * checked.h - the hooks of checked builds (meson option `checked`), which find writes outside of an
 * allocation and writes after its free. docs/checked.md describes checked builds.
 *
 *   range of the space   |left padding|front zone| the caller's bytes |zone behind               |
 *                                                ^offset              ^offset + tail             ^
 *                                                                                    offset + end
 *
 * The front zone is part of the left padding that is reported. The zone behind begins after the
 * requested bytes, so that the bytes added by rounding are checked as well. It is not part of the
 * size that is reported, except in the items of a walk, so that these have no gaps.
 *
 * A freed range stays in the quarantine with its slot, which remains PRIVATE, and is released
 * later. Until then no record of it changes; only statistics and walks leave it out.
 *
 * Each hook says which locks it requires. The lock of qi_checked protects the quarantine; the
 * thread that owns a slot writes and reads its zones without a lock. Invariant: without
 * QUIRE_CHECKED every hook is an empty inline function, and the default build has the same
 * instructions as without hooks.
 */
#ifndef QUIRE_SRC_CORE_CHECKED_H
#define QUIRE_SRC_CORE_CHECKED_H

#include "quire/insight.h"
#include "src/base/lock.h"

struct qi_page;
struct qi_shard;
struct qi_slot;
struct qi_request;

#ifdef QUIRE_CHECKED

/* Every allocation is checked: the fast path and the groups of a batch are off. */
enum { QI_IS_CHECKED = 1 };

/* Bytes of a red zone: one cache line. A front zone is at least as large as the alignment. */
#define QI_ZONE_SIZE UINT64_C(64)

/* Allocations of a larger alignment have no front zone, because it would be as large as that. */
#define QI_MAX_FRONT UINT64_C(256)

/* The most bytes and ranges in the quarantine: a few hundred frees are checked for later writes. */
#define QI_QUARANTINE_BYTES (UINT64_C(16) << 20)
enum { QI_QUARANTINE_COUNT = 256 };

enum { QI_CORRUPTION_TEXT = 512 };

/* What a checked build keeps for a slot. */
typedef struct qi_watch {
    char *name;      /* in quarantine: the name at the free; limits no longer count it */
    uint64_t tail;   /* bytes from `offset` that belong to the caller; the zone behind follows */
    uint64_t end;    /* bytes from `offset` to the end of the range */
    uint32_t front;  /* bytes of the front zone; 0: none */
    bool is_written; /* the zones are written; set by the thread that makes the allocation */
    bool is_held;    /* in quarantine; protected by the lock of qi_checked */
} qi_watch;

/* What a checked build keeps for a memory, once for all shards. `lock` protects the other
   fields. */
typedef struct qi_checked {
    qi_lock lock; /* acquired last, except for the locks of pages, slots and the backend */
    uint32_t ring[QI_QUARANTINE_COUNT]; /* slots in the order of their frees */
    uint32_t first, count;
    uint32_t leaving;       /* slots that threads have taken out of the ring and not yet released */
    uint32_t last_attempts; /* allocations in their last attempt: until they end, no slot enters */
    uint64_t held_bytes, held_requested, held_count; /* sums over all slots with is_held */
    uint32_t reading;  /* 1 + the slot whose zones quire_memory_check reads; 0: none */
    bool is_corrupted; /* a write after a free was found since the last check */
    char corruption[QI_CORRUPTION_TEXT]; /* the sentence for the first such write */
} qi_checked;

/* ---- whether a memory is checked ------------------------------------------------------------- */

/* Whether the bytes of this memory can be written and read, so that zones are possible. */
bool qi_checked_is_on(const quire_memory *memory);

/* Initializes memory->checked. Called before any other hook. */
void qi_checked_init(quire_memory *memory);

/* Requires no lock. Logs a warning if the memory has no red zones. Called once. */
void qi_checked_report_state(const quire_memory *memory);

/* ---- sizes ----------------------------------------------------------------------------------- */

/* Returns the most bytes that red zones add to a request. */
uint64_t qi_checked_max_added(const quire_memory *memory);

/* Adds the red zones to a request. Returns true if the size exceeds 64 bits. */
QUIRE_MUST_USE bool qi_checked_grow_overflows(const quire_memory *memory, uint64_t *alignment,
                                              uint64_t *size);

/* Returns the bytes that a request of `size`, red zones included, holds without red zones. */
uint64_t qi_checked_size_without(const quire_memory *memory, const struct qi_request *request,
                                 uint64_t size);

/* Requires the shard's lock. Divides the record of a placed range into zones and the caller's
   bytes. */
void qi_checked_mark(const quire_memory *memory, uint32_t slot, const struct qi_request *request,
                     uint64_t alignment);

/*
 * For a placed range: the bytes of its front zone, the bytes between its reported size and its end,
 * and how many of its first `size` bytes belong to the caller.
 */
uint64_t qi_checked_front(const struct qi_slot *record);
uint64_t qi_checked_behind(const struct qi_slot *record);
uint64_t qi_checked_usable(const struct qi_slot *record, uint64_t size);

/* ---- allocation and free --------------------------------------------------------------------- */

/* Requires no lock. Writes the zones and, unless `zero`, the pattern of fresh memory. */
void qi_checked_placed(quire_memory *memory, uint32_t slot, bool zero);

/* Requires no lock. Waits until no check reads the zones of this slot. */
void qi_checked_await_reader(quire_memory *memory, uint32_t slot);

/*
 * Requires no lock, for a slot that is being freed. Returns whether its zones were overwritten. If
 * so, the finding is logged and becomes the thread's last error, CORRUPTED.
 */
bool qi_checked_is_corrupted(quire_memory *memory, uint32_t slot);

/*
 * Requires no lock, for a slot that is being freed. Fills its bytes and puts it into the
 * quarantine. Returns false if it did not enter; the caller then releases it at once.
 */
bool qi_checked_hold(quire_memory *memory, uint32_t slot);

/* Requires the shard's lock. The slot is released, from the quarantine or directly. */
void qi_checked_forget(quire_memory *memory, struct qi_slot *record);

/* ---- the quarantine -------------------------------------------------------------------------- */

/*
 * Requires no lock. Releases everything in the quarantine, waits for slots that other threads have
 * taken out, and drains the inboxes through which the slots return to their shards.
 */
void qi_checked_drain(quire_memory *memory);

/*
 * Requires the shard's lock. Releases and reacquires it. Drains the quarantine. Returns false if it
 * was empty; otherwise the caller searches again.
 */
bool qi_checked_make_room(struct qi_shard *shard);

/*
 * Requires no lock. Called when an allocation is about to be refused: drains the quarantine, and
 * keeps it empty until the end, so that another attempt finds every freed range. Returns false for
 * a memory that is not checked; there is then nothing to end.
 */
bool qi_checked_begin_out_of_memory(quire_memory *memory);
void qi_checked_end_out_of_memory(quire_memory *memory);

/* In the child of a fork: resets what threads of the parent were doing. */
void qi_checked_forked(quire_memory *memory);

/* ---- statistics and checks ------------------------------------------------------------------- */

/* Requires the locks of all shards. Subtracts the quarantine from the statistics. */
void qi_checked_correct(quire_memory *memory, quire_memory_stats *stats);

/* Require the shard's lock. Whether a slot is in quarantine; whether its caller owns a byte of the
   page. */
bool qi_checked_is_held(quire_memory *memory, uint32_t slot);
bool qi_checked_owns(quire_memory *memory, uint32_t slot, uint64_t offset);

/* Requires no lock. Verifies all red zones and the quarantine. Fails with CORRUPTED. */
quire_result qi_checked_check(quire_memory *memory);

/* quarantine.c: verifies the quarantine. Returns whether it found a write after a free, now or
   since the last check; `corruption` receives the sentence for the first one. */
bool qi_quarantine_check(quire_memory *memory, char corruption[QI_CORRUPTION_TEXT]);

/* ---- pages ----------------------------------------------------------------------------------- */

/*
 * Called before a new page is used, and before a page is destroyed. Between the two calls, tools
 * that watch host memory report every access to bytes that no allocation has, also while the page
 * is empty or moves between shards.
 */
void qi_checked_page_made(const struct qi_page *page);
void qi_checked_page_leaving(const struct qi_page *page);

/* The same for bytes that are added at the end of a page, and for bytes that are cut off there. */
void qi_checked_page_grown(const struct qi_page *page, uint64_t from, uint64_t to);
void qi_checked_page_cut(const struct qi_page *page, uint64_t to, uint64_t from);

#else /* the default build: every hook is empty */

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
