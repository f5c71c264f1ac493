/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * lock.h - replaces src/base/lock.h in the checker of pages: taking a lock is one step, which a
 * thread makes only while the lock is free. tests/model/lock.c checks the inside of that step.
 * Waiting and waking (src/base/lock.c) are the library's own.
 */
#ifndef QUIRE_TESTS_MODEL_PAGES_SRC_BASE_LOCK_H
#define QUIRE_TESTS_MODEL_PAGES_SRC_BASE_LOCK_H

#define qi_lock_try qi_lock_try_in_parts
#define qi_lock_acquire qi_lock_acquire_in_parts
#define qi_lock_release qi_lock_release_in_parts
#include "../../../../../src/base/lock.h"
#undef qi_lock_try
#undef qi_lock_acquire
#undef qi_lock_release

static inline void qi_lock_acquire(qi_lock *lock)
{
    model_acquire(&lock->state);
}

/* Waits instead of failing: what follows a failed try waits for the lock too. */
static inline bool qi_lock_try(qi_lock *lock)
{
    model_acquire(&lock->state);
    return true;
}

static inline void qi_lock_release(qi_lock *lock)
{
    model_release(&lock->state);
}

#endif
