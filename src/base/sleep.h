/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * sleep.h - sleeps until a word changes; used by a lock that is held for long.
 *
 * Linux: a futex, which costs nothing while no thread sleeps. Other systems, and builds with
 * QI_PORTABLE_SLEEP: as qi_sleep_poll.
 */
#ifndef QUIRE_SRC_BASE_SLEEP_H
#define QUIRE_SRC_BASE_SLEEP_H

#include "src/base/atomic.h"

/* Sleeps until woken, or returns at once if *word is not `seen`. May return spuriously. */
void qi_sleep_while(qi_atomic_u32 *word, uint32_t seen);
/* Sleeps while *word is `seen`, without a wake-up: compares after sleeps that double up to 1 ms. */
void qi_sleep_poll(qi_atomic_u32 *word, uint32_t seen);
void qi_sleep_wake_one(qi_atomic_u32 *word);
void qi_sleep_wake_all(qi_atomic_u32 *word);

/* A short pause of a spinning thread. */
static inline void qi_spin_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb"); /* yield does not pause on most processors */
#endif
}

#endif
