/*
 * lock.c - see lock.h.
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

/* Looks at a held lock, each after twice the pauses of the one before: 255 of them in all, which
   are two to ten microseconds by processor. */
#ifndef QI_LOCK_LOOKS /* few where every order of threads is tried */
#define QI_LOCK_LOOKS 8
#endif

void qi_lock_init(qi_lock *lock, const char *name, qi_lock_rank rank)
{
    qi_atomic_init_u32(&lock->state, QI_LOCK_FREE);
    qi_atomic_init_u32(&lock->is_awaited, 0);
    qi_atomic_init_u32(&lock->changes, 0);
    lock->name = name;
    lock->rank = rank;
}

static bool take(qi_lock *lock)
{
    return qi_atomic_take_u32(&lock->state, QI_LOCK_FREE, QI_LOCK_HELD);
}

void qi_lock_acquire_held(qi_lock *lock)
{
    for (int i = 0; i < QI_LOCK_LOOKS; i++) {
        for (int pauses = 1 << i; pauses; pauses--)
            qi_spin_pause();
        if (qi_atomic_load_u32(&lock->state) == QI_LOCK_FREE && take(lock))
            return;
    }
    /* whoever slept puts the sign up again, for others that may still sleep; where somebody takes
       it down before this one sleeps, it looks again */
    while (qi_atomic_swap_acquire_u32(&lock->is_awaited, 1), !take(lock))
        qi_sleep_a_while(&lock->is_awaited, 1);
}

void qi_lock_freeze(qi_lock *lock)
{
    if (!take(lock))
        qi_lock_acquire_held(lock);
}

void qi_lock_thaw(qi_lock *lock)
{
    qi_atomic_store_release_u32(&lock->state, QI_LOCK_FREE);
    qi_lock_release_awaited(lock);
}

void qi_lock_release_awaited(qi_lock *lock)
{
    if (qi_atomic_swap_acquire_u32(&lock->is_awaited, 0))
        qi_sleep_wake_one(&lock->is_awaited);
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
