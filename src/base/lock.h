/*
 * lock.h - locks with a name and a rank.
 *
 * A thread may acquire a lock only if its rank is above the ranks of all locks that the thread
 * holds, so that no two threads can wait for each other. Debug builds (NDEBUG not defined) check
 * this at every acquisition. They also check that the holder releases the lock, and that a thread
 * holds no lock where the library calls foreign code (qi_lock_assert_none: backend functions, log
 * sinks, walk callbacks).
 *
 * Acquiring a free lock is one compare-and-exchange. Releasing is a plain store, which costs a
 * fifth of an exchange and does not delay the next operation until the loads of this one are
 * complete. A thread that finds the lock held retries after pauses that double, because holders are
 * quick, and then sleeps. The cost of the plain store: a releasing thread may check for sleepers
 * before its store is visible, and then does not wake a thread that is about to sleep. Sleeps are
 * therefore limited to one millisecond.
 */
#ifndef QUIRE_SRC_BASE_LOCK_H
#define QUIRE_SRC_BASE_LOCK_H

#include "src/base/atomic.h"
#include "src/base/bits.h"

typedef enum qi_lock_rank {
    QI_RANK_DEVICE = 10,     /* a device: its list of memories */
    QI_RANK_SHARD = 20,      /* + shard index: a shard of a memory, its space and statistics */
    QI_RANK_QUARANTINE = 90, /* a memory of a checked build: freed allocations in quarantine */
    QI_RANK_STREAM = 95,     /* a stream: the list of frees that wait for it */
    QI_RANK_PAGES = 100,     /* a memory: page numbers, creation and destruction of its pages */
    QI_RANK_SLOTS = 101,     /* a memory: growth of the tables of its slots */
    QI_RANK_BACKEND = 110    /* a backend's own state */
} qi_lock_rank;

enum { QI_MAX_SHARDS = 64 };

enum { QI_LOCK_FREE = 0, QI_LOCK_HELD };

typedef struct qi_lock {
    qi_atomic_u32 state;
    qi_atomic_u32 is_awaited; /* 1 if a thread may sleep until the lock is free */
    qi_atomic_u32 changes;    /* number of qi_lock_wake_all calls */
    const char *name;         /* a string literal */
    qi_lock_rank rank;
} qi_lock;

void qi_lock_init(qi_lock *lock, const char *name, qi_lock_rank rank);

/*
 * Releases the lock, sleeps until another thread calls qi_lock_wake_all, and reacquires the lock.
 * May return spuriously: the caller checks its condition again. `other`, a held lock of a lower
 * rank or null, is released after `lock` and reacquired before it.
 */
void qi_lock_wait(qi_lock *lock, qi_lock *other);
void qi_lock_wake_all(qi_lock *lock);

/*
 * Acquire and release without the check of ranks, only for the fork handlers: they acquire every
 * lock, including several of one rank. The child thaws locks too; it has no other thread that could
 * hold one.
 */
void qi_lock_freeze(qi_lock *lock);
void qi_lock_thaw(qi_lock *lock);

/* Debug builds abort the program if the calling thread holds any lock of the library. */
void qi_lock_assert_none(void);

/* ---- the hot path --------------------------------------------------------------------------- */

/* Waits for a held lock. Wakes one thread that sleeps on the lock. */

void qi_lock_acquire_held(qi_lock *lock);
void qi_lock_release_awaited(qi_lock *lock);

#ifndef NDEBUG
void qi_lock_note_acquired(const qi_lock *lock);
void qi_lock_note_released(const qi_lock *lock);
#else
static inline void qi_lock_note_acquired(const qi_lock *lock)
{
    (void)lock;
}

static inline void qi_lock_note_released(const qi_lock *lock)
{
    (void)lock;
}
#endif

static inline void qi_lock_acquire(qi_lock *lock)
{
    qi_lock_note_acquired(lock);
    if (qi_unlikely(!qi_atomic_take_u32(&lock->state, QI_LOCK_FREE, QI_LOCK_HELD)))
        qi_lock_acquire_held(lock);
}

static inline void qi_lock_release(qi_lock *lock)
{
    qi_lock_note_released(lock);
    qi_atomic_store_release_u32(&lock->state, QI_LOCK_FREE);
    if (qi_unlikely(qi_atomic_load_u32(&lock->is_awaited)))
        qi_lock_release_awaited(lock);
}

#endif
