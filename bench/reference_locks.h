/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * reference_locks.h - locks that quire's lock is compared with: a mutex with three states, as in
 * many libraries, and the lock of quire's version 0.1.0.
 *
 * All of them sleep on a futex through src/base/sleep.h. Only the inline functions are on the path
 * of an uncontended lock.
 */
#ifndef QUIRE_BENCH_REFERENCE_LOCKS_H
#define QUIRE_BENCH_REFERENCE_LOCKS_H

#include <stdatomic.h>

#include "src/base/bits.h"
#include "src/base/sleep.h"

/* ---- three states: free, held, held and awaited. Released with an exchange ------------------- */

typedef struct three_lock {
    qi_atomic_u32 state;
} three_lock;

enum { THREE_FREE = 0, THREE_HELD, THREE_AWAITED };

/* Spins like quire's lock, then sleeps. */
void three_acquire_held(three_lock *lock);
/* Sleeps at once. */
void three_sleep(three_lock *lock);

static inline void three_acquire(three_lock *lock)
{
    if (qi_unlikely(!qi_atomic_take_u32(&lock->state, THREE_FREE, THREE_HELD)))
        three_acquire_held(lock);
}

static inline void three_acquire_asleep(three_lock *lock)
{
    if (qi_unlikely(!qi_atomic_take_u32(&lock->state, THREE_FREE, THREE_HELD)))
        three_sleep(lock);
}

static inline void three_release(three_lock *lock)
{
    if (qi_unlikely(qi_atomic_swap_release_u32(&lock->state, THREE_FREE) == THREE_AWAITED))
        qi_sleep_wake_one(&lock->state);
}

/* ---- version 0.1.0: released with a store, which can miss a sleeping thread: sleeps of 1 ms -- */

typedef struct napping_lock {
    qi_atomic_u32 state;
    qi_atomic_u32 is_awaited;
} napping_lock;

void napping_acquire_held(napping_lock *lock);
void napping_wake(napping_lock *lock);

static inline void napping_acquire(napping_lock *lock)
{
    if (qi_unlikely(!qi_atomic_take_u32(&lock->state, 0, 1)))
        napping_acquire_held(lock);
}

static inline void napping_release(napping_lock *lock)
{
    qi_atomic_store_release_u32(&lock->state, 0);
    if (qi_unlikely(qi_atomic_load_u32(&lock->is_awaited)))
        napping_wake(lock);
}

#endif
