/*
 * lock.h - locks with a name and a rank.
 *
 * A thread may only take a lock whose rank is above those it holds, so that no two threads can wait
 * for each other. Debug builds (NDEBUG not defined) check it at every acquisition and also that a
 * lock is given back by its holder, and that no lock is held where the code leaves the library
 * (qi_lock_assert_none: backend calls, log and walk callbacks).
 *
 * A free lock is taken by one compare-and-exchange and given back by a plain store, which costs a
 * fifth of another exchange and lets the next operation begin before this one's last loads are in.
 * A thread that finds it held looks again after pauses that double, because holders are quick and
 * work best undisturbed, and then sleeps. The price of the plain store: whoever gives the lock back
 * may look for sleepers before its store is seen, and a sleeper that was about to fall asleep then
 * is not woken. So sleeps are naps of a millisecond at most.
 */
#ifndef QUIRE_SRC_BASE_LOCK_H
#define QUIRE_SRC_BASE_LOCK_H

#include "src/base/atomic.h"
#include "src/base/bits.h"

typedef enum qi_lock_rank {
    QI_RANK_DEVICE = 10,     /* a device: its list of memories */
    QI_RANK_SHARD = 20,      /* shards of a memory, each one above the last: space, figures */
    QI_RANK_QUARANTINE = 90, /* a memory of a checked build: what waits after its free */
    QI_RANK_STREAM = 95,     /* a stream: the list of what waits for it */
    QI_RANK_PAGES = 100,     /* a memory: the numbers and the coming and going of its pages */
    QI_RANK_SLOTS = 101,     /* a memory: its slots while their tables grow */
    QI_RANK_BACKEND = 110    /* a backend's own state */
} qi_lock_rank;

enum { QI_MAX_SHARDS = 64 };

enum { QI_LOCK_FREE = 0, QI_LOCK_HELD };

typedef struct qi_lock {
    qi_atomic_u32 state;
    qi_atomic_u32 is_awaited; /* 1: somebody may be asleep until it is free */
    qi_atomic_u32 changes;    /* counted by qi_lock_wake_all */
    const char *name;         /* a literal */
    qi_lock_rank rank;
} qi_lock;

void qi_lock_init(qi_lock *lock, const char *name, qi_lock_rank rank);

/*
 * Waits, with the lock given up meanwhile, until another thread wakes those who wait. May return
 * without cause: ask for what was waited for again. The other lock, which may be NULL and is given
 * up after the first and taken again before it, has a lower rank.
 */
void qi_lock_wait(qi_lock *lock, qi_lock *other);
void qi_lock_wake_all(qi_lock *lock);

/*
 * For the handlers of a fork alone, which take every lock there is, several of one rank: without
 * the check of ranks. Thawing also serves in the child, where nobody else is left to hold the lock.
 */
void qi_lock_freeze(qi_lock *lock);
void qi_lock_thaw(qi_lock *lock);

/* Debug builds stop the program when the calling thread holds any lock of the library. */
void qi_lock_assert_none(void);

/* ---- the two that are called at every operation --------------------------------------------- */

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
