/*
 * lock.h - locks with a name and a rank.
 *
 * A thread may only take a lock whose rank is above those it holds, so that no two threads can wait
 * for each other. Debug builds (NDEBUG not defined) check it at every acquisition and also that a
 * lock is given back by its holder, and that no lock is held where the code leaves the library
 * (qi_lock_assert_none: backend calls, log and walk callbacks).
 *
 * A free lock is taken and given back by one atomic operation each, here; a thread that finds it
 * held spins a little, because holders are quick, and then sleeps.
 */
#ifndef QUIRE_SRC_BASE_LOCK_H
#define QUIRE_SRC_BASE_LOCK_H

#include "src/base/atomic.h"

typedef enum qi_lock_rank {
    QI_RANK_DEVICE = 10,     /* a device: its list of memories */
    QI_RANK_SHARD = 20,      /* shards of a memory, each one above the last: space, figures */
    QI_RANK_QUARANTINE = 90, /* a memory of a checked build: what waits after its free */
    QI_RANK_PAGES = 100,     /* a memory: the numbers and the coming and going of its pages */
    QI_RANK_SLOTS = 101,     /* a memory: its slots while their tables grow */
    QI_RANK_BACKEND = 110    /* a backend's own state */
} qi_lock_rank;

enum { QI_MOST_SHARDS = 64 };

/* States of a lock: nobody waits for one that is HELD. */
enum { QI_LOCK_FREE = 0, QI_LOCK_HELD, QI_LOCK_AWAITED };

typedef struct qi_lock {
    qi_atomic_u32 state;
    qi_atomic_u32 changes; /* counted by qi_lock_wake_all */
    const char *name;      /* a literal */
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
    if (!qi_atomic_take_u32(&lock->state, QI_LOCK_FREE, QI_LOCK_HELD))
        qi_lock_acquire_held(lock);
}

static inline void qi_lock_release(qi_lock *lock)
{
    if (qi_atomic_swap_release_u32(&lock->state, QI_LOCK_FREE) == QI_LOCK_AWAITED)
        qi_lock_release_awaited(lock);
    qi_lock_note_released(lock);
}

#endif
