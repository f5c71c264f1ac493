/*
 * sleep.h - sleeping until a word changes: what a lock does when it has to wait for long.
 *
 * Linux: a futex, which costs nothing while nobody sleeps. Elsewhere, and with QI_PORTABLE_SLEEP, a
 * sleep that grows to a millisecond.
 */
#ifndef QUIRE_SRC_BASE_SLEEP_H
#define QUIRE_SRC_BASE_SLEEP_H

#include "src/base/atomic.h"

/* Returns at once when *word is not `seen`; else sleeps until woken. May return without cause. */
void qi_sleep_while(qi_atomic_u32 *word, uint32_t seen);
/* The same for a millisecond at most. */
void qi_sleep_a_while(qi_atomic_u32 *word, uint32_t seen);
void qi_sleep_wake_one(qi_atomic_u32 *word);
void qi_sleep_wake_all(qi_atomic_u32 *word);

/* A moment's pause of a thread that spins. */
static inline void qi_spin_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
