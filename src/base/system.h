/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * system.h - what the library asks of the operating system: the clock, the number of processors,
 * memory that other processes can map, and a call around each fork. Sleeping is in sleep.h. A port
 * to another system replaces system.c and sleep.c.
 */
#ifndef QUIRE_SRC_BASE_SYSTEM_H
#define QUIRE_SRC_BASE_SYSTEM_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* ---- the clock ---------------------------------------------------------------------------- */

/* Nanoseconds of the monotonic clock. */
static inline uint64_t qi_clock(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/*
 * A counter of the processor, which costs less than the clock. It rises at a constant rate, which
 * only the clock can tell; processors may differ a little.
 */
static inline uint64_t qi_ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return qi_clock();
#endif
}

/* ---- processors --------------------------------------------------------------------------- */

/*
 * Returns how many processors the calling thread may run on now, at least 1: those of its affinity
 * mask if the system has one, otherwise those that are online. Thread-safe.
 */
uint32_t qi_processor_count(void);

/* ---- memory files ------------------------------------------------------------------------- */

/*
 * Memory with a file descriptor that another process can map. The size is sealed: no holder of the
 * descriptor can change it, because a process that touches bytes that were cut off dies of SIGBUS.
 *
 * Creates memory of exactly `size` bytes. The descriptor is close-on-exec; `flags` are further
 * flags of memfd_create. Returns -1 and sets errno on failure. The caller closes the descriptor.
 */
int qi_memfd_make(const char *name, uint64_t size, unsigned flags);

/* Whether a descriptor names memory of at least `size` bytes that nobody can shrink. */
bool qi_memfd_has(int descriptor, uint64_t size);

/* ---- forks -------------------------------------------------------------------------------- */

/*
 * The handlers that run around each fork. They are functions of the library; when the library is
 * unloaded, the C library removes them. They run with the fork lock held. The fork lock also
 * protects the list of devices that they visit. It is acquired before every other lock of the
 * library.
 */
typedef struct qi_fork_handlers {
    void (*prepare)(void); /* before the fork */
    void (*parent)(void);  /* after the fork, in the parent */
    void (*child)(void);   /* in the child, whose only thread is the one that forked */
} qi_fork_handlers;

/*
 * Registers the handlers. The process has one set of handlers; a later call with the same set has
 * no effect. Returns false if host memory is exhausted. Requires that the fork lock is not held.
 */
bool qi_fork_watch(const qi_fork_handlers *handlers);

void qi_fork_lock(void);
void qi_fork_unlock(void);

#endif
