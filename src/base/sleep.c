/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * sleep.c - the futex form, and a portable form that polls the word and needs no wake-ups.
 */
#include "src/base/sleep.h"

#include <time.h>

enum { SHORTEST_NS = 1000, LONGEST_NS = 1000000 };

void qi_sleep_poll(qi_atomic_u32 *word, uint32_t seen)
{
    struct timespec time = {.tv_nsec = SHORTEST_NS};
    while (qi_atomic_load_u32(word) == seen) {
        nanosleep(&time, NULL);
        time.tv_nsec = time.tv_nsec * 2 < LONGEST_NS ? time.tv_nsec * 2 : LONGEST_NS;
    }
}

#if defined(__linux__) && !defined(QI_PORTABLE_SLEEP)
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

static void futex(qi_atomic_u32 *word, int operation, uint32_t value)
{
    syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

void qi_sleep_while(qi_atomic_u32 *word, uint32_t seen)
{
    futex(word, FUTEX_WAIT, seen);
}

void qi_sleep_wake_one(qi_atomic_u32 *word)
{
    futex(word, FUTEX_WAKE, 1);
}

void qi_sleep_wake_all(qi_atomic_u32 *word)
{
    futex(word, FUTEX_WAKE, INT_MAX);
}

#else
void qi_sleep_while(qi_atomic_u32 *word, uint32_t seen)
{
    qi_sleep_poll(word, seen);
}

/* Sleepers poll the word: no wake-up is needed. */
void qi_sleep_wake_one(qi_atomic_u32 *word)
{
    (void)word;
}

void qi_sleep_wake_all(qi_atomic_u32 *word)
{
    (void)word;
}
#endif
