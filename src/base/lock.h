/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * lock.h - locks with a name and a rank: a thread acquires them in the order of the ranks, so that
 * no two threads can wait for each other.
 *
 * A lock may be acquired only if its rank is above the ranks of all locks that the thread holds.
 * Debug builds (NDEBUG not defined) check this at every acquisition. They also check that the
 * holder releases the lock, and that a thread holds no lock where the library calls foreign code
 * (qi_lock_assert_none: backend functions, log sinks, walk callbacks).
 *
 * Acquiring a free lock is one compare-and-exchange. A thread that finds the lock held retries
 * after short pauses, because holders are quick, and then sleeps.
 *
 * A lock has two forms of release, and the state of a held lock says which one its holder uses.
 *
 * First form, until a thread has slept for the lock: a plain store, which takes about 3 ns less
 * than an exchange. Such a holder wakes nobody. If it looked for sleeping threads, it could do so
 * before its store is visible, and miss a thread that is about to sleep. A thread that waits for
 * such a holder sleeps for short times, at most 1 ms, and looks again.
 *
 * Second form: an exchange, which tells whether a thread sleeps, and a wake-up if one does. The
 * exchange also makes the free lock visible before the same thread can reacquire it, so that other
 * threads wait for fewer holders in succession.
 *
 * A thread that has to sleep switches the lock to the second form for all later holders. A lock
 * never returns to the first form: a thread that acquires it meanwhile could announce one form and
 * use the other. docs/benchmarks.md compares both forms with other locks.
 */
#ifndef QUIRE_SRC_BASE_LOCK_H
#define QUIRE_SRC_BASE_LOCK_H

#include "src/base/atomic.h"
#include "src/base/bits.h"

typedef enum qi_lock_rank {
    QI_RANK_DEVICE = 10,     /* a device: its list of memories */
    QI_RANK_SHARD = 20,      /* + shard index: a shard of a memory, its space and statistics */
    QI_RANK_ADDRESSES = 84,  /* a memory: which pages have which addresses */
    QI_RANK_PAGE_STARTS,     /* a memory: the starts in some of its pages */
    QI_RANK_STARTS,          /* a memory: a stripe of its start addresses */
    QI_RANK_QUARANTINE = 90, /* a memory of a checked build: freed allocations in quarantine */
    QI_RANK_STREAM = 95,     /* a stream: the list of frees that wait for it */
    QI_RANK_PAGES = 100,     /* a memory: page numbers, creation and destruction of its pages */
    QI_RANK_SLOTS = 101,     /* a memory: growth of the tables of its slots */
    QI_RANK_RECORDER = 105,  /* a recorder of events */
    QI_RANK_BACKEND = 110    /* a backend's own state */
} qi_lock_rank;

enum { QI_MAX_SHARDS = 64 };

enum {
    QI_LOCK_FREE = 0,
    QI_LOCK_STORED,    /* held; the holder releases it with a store. Only the holder changes it */
    QI_LOCK_EXCHANGED, /* held; the holder releases it with an exchange */
    QI_LOCK_AWAITED    /* as QI_LOCK_EXCHANGED, and threads may sleep until they are woken */
};

typedef struct qi_lock {
    qi_atomic_u32 state;
    qi_atomic_u32 form;    /* the state that an acquisition sets: STORED, later EXCHANGED */
    qi_atomic_u32 changes; /* number of qi_lock_wake_all calls */
    const char *name;      /* a string literal */
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

/* Waits for a held lock. */
void qi_lock_acquire_held(qi_lock *lock);
/* Releases a lock that is held in the second form. Wakes a thread that sleeps. */
void qi_lock_release_exchanged(qi_lock *lock);

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

/* Acquires a free lock; returns false if it is held. */
static inline bool qi_lock_take(qi_lock *lock)
{
    return qi_atomic_take_u32(&lock->state, QI_LOCK_FREE, qi_atomic_load_u32(&lock->form));
}

/* A holder that announced the second form sees it here. Any other may use either. */
static inline void qi_lock_give(qi_lock *lock)
{
    if (qi_unlikely(qi_atomic_load_u32(&lock->form) != QI_LOCK_STORED))
        qi_lock_release_exchanged(lock);
    else
        qi_atomic_store_release_u32(&lock->state, QI_LOCK_FREE);
}

/* As qi_lock_take, with the check of ranks. */
static inline bool qi_lock_try(qi_lock *lock)
{
    bool is_taken = qi_lock_take(lock);
    if (is_taken)
        qi_lock_note_acquired(lock);
    return is_taken;
}

static inline void qi_lock_acquire(qi_lock *lock)
{
    qi_lock_note_acquired(lock);
    if (qi_unlikely(!qi_lock_take(lock)))
        qi_lock_acquire_held(lock);
}

static inline void qi_lock_release(qi_lock *lock)
{
    qi_lock_note_released(lock);
    qi_lock_give(lock);
}

#endif
