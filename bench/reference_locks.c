/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * reference_locks.c - the slow paths: spinning, sleeping, waking.
 */
#include "bench/reference_locks.h"

#include <time.h>

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

enum { LOOKS = 35, LONGEST_PAUSES = 8, NAPPING_LOOKS = 8, NAP_NS = 1000000 };

static bool take(qi_atomic_u32 *state)
{
    return qi_atomic_load_u32(state) == 0 && qi_atomic_take_u32(state, 0, 1);
}

static void pause_times(int pauses)
{
    while (pauses--)
        qi_spin_pause();
}

/* ---- three states --------------------------------------------------------------------------- */

void three_acquire_held(three_lock *lock)
{
    int pauses = 1;
    for (int i = 0; i < LOOKS; i++) {
        pause_times(pauses);
        if (take(&lock->state))
            return;
        pauses = pauses < LONGEST_PAUSES ? 2 * pauses : LONGEST_PAUSES;
    }
    three_sleep(lock);
}

void three_sleep(three_lock *lock)
{
    while (atomic_exchange_explicit(&lock->state, THREE_AWAITED, memory_order_acquire))
        qi_sleep_while(&lock->state, THREE_AWAITED);
}

/* ---- version 0.1.0 -------------------------------------------------------------------------- */

/* Sleeps for at most a millisecond while the word is 1. */
static void nap(qi_atomic_u32 *word)
{
    struct timespec time = {.tv_nsec = NAP_NS};
#if defined(__linux__)
    syscall(SYS_futex, word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 1, &time, NULL, 0);
#else
    (void)word;
    nanosleep(&time, NULL);
#endif
}

void napping_acquire_held(napping_lock *lock)
{
    for (int i = 0; i < NAPPING_LOOKS; i++) {
        pause_times(1 << i);
        if (take(&lock->state))
            return;
    }
    while (atomic_exchange_explicit(&lock->is_awaited, 1, memory_order_acquire),
           !qi_atomic_take_u32(&lock->state, 0, 1))
        nap(&lock->is_awaited);
}

void napping_wake(napping_lock *lock)
{
    if (atomic_exchange_explicit(&lock->is_awaited, 0, memory_order_acquire))
        qi_sleep_wake_one(&lock->is_awaited);
}
