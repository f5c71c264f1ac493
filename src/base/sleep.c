/*
 * sleep.c - the futex form, and a portable form without wake-ups that polls the word.
 */
#include "src/base/sleep.h"

#include <time.h>

enum { A_WHILE_NS = 1000000 }; /* the bound that lock.h relies on */

#if defined(__linux__) && !defined(QI_PORTABLE_SLEEP)
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

static void futex(qi_atomic_u32 *word, int operation, uint32_t value,
                  const struct timespec *timeout)
{
    syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, timeout, NULL, 0);
}

void qi_sleep_while(qi_atomic_u32 *word, uint32_t seen)
{
    futex(word, FUTEX_WAIT, seen, NULL);
}

void qi_sleep_a_while(qi_atomic_u32 *word, uint32_t seen)
{
    futex(word, FUTEX_WAIT, seen, &(struct timespec){.tv_nsec = A_WHILE_NS});
}

void qi_sleep_wake_one(qi_atomic_u32 *word)
{
    futex(word, FUTEX_WAKE, 1, NULL);
}

void qi_sleep_wake_all(qi_atomic_u32 *word)
{
    futex(word, FUTEX_WAKE, INT_MAX, NULL);
}

#else
enum { SHORTEST_NS = 1000 };

void qi_sleep_while(qi_atomic_u32 *word, uint32_t seen)
{
    struct timespec time = {.tv_nsec = SHORTEST_NS};
    while (qi_atomic_load_acquire_u32(word) == seen) {
        nanosleep(&time, NULL);
        time.tv_nsec = time.tv_nsec * 2 < A_WHILE_NS ? time.tv_nsec * 2 : A_WHILE_NS;
    }
}

void qi_sleep_a_while(qi_atomic_u32 *word, uint32_t seen)
{
    struct timespec time = {.tv_nsec = SHORTEST_NS};
    for (; time.tv_nsec < A_WHILE_NS && qi_atomic_load_acquire_u32(word) == seen; time.tv_nsec *= 2)
        nanosleep(&time, NULL);
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
