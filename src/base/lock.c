/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * lock.c - the slow paths of a lock: spinning, sleeping, waking. Debug builds also record here
 * which locks each thread holds.
 */
#include "src/base/lock.h"

#include "src/base/sleep.h"

#ifndef NDEBUG
#include <stdio.h>
#include <stdlib.h>

enum { MAX_HELD = QI_MAX_SHARDS + 4 }; /* one per rank */

static _Thread_local struct {
    const qi_lock *locks[MAX_HELD];
    int count;
} held;

/* Aborts the program; tests match the words. */
static void stop(const char *what, const qi_lock *lock)
{
    fprintf(stderr, "quire: lock '%s' (rank %d): %s", lock->name, (int)lock->rank, what);
    if (held.count)
        fprintf(stderr, "; the thread holds '%s'", held.locks[held.count - 1]->name);
    fprintf(stderr, "\n");
    abort();
}

void qi_lock_note_acquired(const qi_lock *lock)
{
    if (held.count && held.locks[held.count - 1]->rank >= lock->rank)
        stop("taken out of order", lock);
    if (held.count == MAX_HELD)
        stop("too many locks held", lock);
    held.locks[held.count++] = lock;
}

void qi_lock_note_released(const qi_lock *lock)
{
    int at = held.count;
    while (at > 0 && held.locks[at - 1] != lock)
        at--;
    if (!at)
        stop("given back by a thread that did not take it", lock);
    for (held.count--; at <= held.count; at++)
        held.locks[at - 1] = held.locks[at];
}

void qi_lock_assert_none(void)
{
    if (held.count)
        stop("still held where the library is left", held.locks[held.count - 1]);
}
#else
void qi_lock_assert_none(void)
{
}
#endif

/*
 * Attempts before a thread sleeps, each after 1, 2, 4 or, from the fourth on, 8 pauses: 263 pauses
 * in all, which take 4 to 16 microseconds depending on the processor. A sleep and a wake-up take
 * longer. Longer pauses between attempts miss a lock that is free only briefly. Model tests that
 * try every order of threads define a smaller number.
 */
#ifndef QI_LOCK_LOOKS
#define QI_LOCK_LOOKS 35
#endif

enum { LONGEST_PAUSES = 8 };

void qi_lock_init(qi_lock *lock, const char *name, qi_lock_rank rank)
{
    qi_atomic_init_u32(&lock->state, QI_LOCK_FREE);
    qi_atomic_init_u32(&lock->form, QI_LOCK_STORED);
    qi_atomic_init_u32(&lock->changes, 0);
    lock->name = name;
    lock->rank = rank;
}

/* Returns false if the lock stays held for longer than a thread spins. */
static bool spin(qi_lock *lock)
{
    int pauses = 1;
    for (int i = 0; i < QI_LOCK_LOOKS; i++) {
        for (int left = pauses; left; left--)
            qi_spin_pause();
        if (qi_atomic_load_u32(&lock->state) == QI_LOCK_FREE && qi_lock_take(lock))
            return true;
        pauses = pauses < LONGEST_PAUSES ? 2 * pauses : LONGEST_PAUSES;
    }
    return false;
}

/*
 * Acquires the lock if it is free, otherwise sleeps once. Sets QI_LOCK_AWAITED also when it
 * acquires, because other threads may still sleep. A load may return an old value: every step
 * compares again.
 */
static bool take_or_sleep(qi_lock *lock)
{
    uint32_t seen = qi_atomic_load_u32(&lock->state);
    if (seen == QI_LOCK_FREE)
        return qi_atomic_take_u32(&lock->state, QI_LOCK_FREE, QI_LOCK_AWAITED);
    if (seen == QI_LOCK_STORED)
        qi_sleep_poll(&lock->state, QI_LOCK_STORED);
    else if (seen == QI_LOCK_AWAITED ||
             qi_atomic_take_u32(&lock->state, QI_LOCK_EXCHANGED, QI_LOCK_AWAITED))
        qi_sleep_while(&lock->state, QI_LOCK_AWAITED);
    return false;
}

/*
 * A thread that has to sleep switches the lock to the second form. A lock that is held briefly when
 * another thread wants it, as a shard's is while all shards are added up, keeps the first form.
 */
void qi_lock_acquire_held(qi_lock *lock)
{
    if (spin(lock))
        return;
    if (qi_atomic_load_u32(&lock->form) != QI_LOCK_EXCHANGED)
        qi_atomic_store_release_u32(&lock->form, QI_LOCK_EXCHANGED);
    while (!take_or_sleep(lock)) {
    }
}

void qi_lock_release_exchanged(qi_lock *lock)
{
    if (qi_atomic_swap_release_u32(&lock->state, QI_LOCK_FREE) == QI_LOCK_AWAITED)
        qi_sleep_wake_one(&lock->state);
}

void qi_lock_freeze(qi_lock *lock)
{
    if (!qi_lock_take(lock))
        qi_lock_acquire_held(lock);
}

void qi_lock_thaw(qi_lock *lock)
{
    qi_lock_give(lock);
}

void qi_lock_wait(qi_lock *lock, qi_lock *other)
{
    uint32_t seen = qi_atomic_load_u32(&lock->changes);
    qi_lock_release(lock);
    if (other)
        qi_lock_release(other);
    qi_sleep_while(&lock->changes, seen);
    if (other)
        qi_lock_acquire(other);
    qi_lock_acquire(lock);
}

void qi_lock_wake_all(qi_lock *lock)
{
    qi_atomic_add_u32(&lock->changes, 1);
    qi_sleep_wake_all(&lock->changes);
}
