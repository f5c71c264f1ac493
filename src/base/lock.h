/*
 * lock.h - mutexes with a name and a rank.
 *
 * A thread may only take a lock whose rank is above those it holds, so that no two threads can wait
 * for each other. Debug builds (NDEBUG not defined) check it at every acquisition and also that a
 * lock is given back by its holder, and that no lock is held where the code leaves the library
 * (qi_lock_assert_none: backend calls, log and walk callbacks). Release builds are a plain mutex.
 */
#ifndef QUIRE_SRC_BASE_LOCK_H
#define QUIRE_SRC_BASE_LOCK_H

#include <pthread.h>

#include "quire/base.h"

typedef enum qi_lock_rank {
    QI_RANK_DEVICE = 10, /* a device: its list of memories */
    QI_RANK_MEMORY = 20, /* a memory: its space, pages and slots */
    QI_RANK_BACKEND = 30 /* a backend's own state */
} qi_lock_rank;

typedef struct qi_lock {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    const char *name; /* a literal */
    qi_lock_rank rank;
} qi_lock;

QUIRE_MUST_USE quire_result qi_lock_init(qi_lock *lock, const char *name, qi_lock_rank rank);
void qi_lock_finish(qi_lock *lock);
void qi_lock_acquire(qi_lock *lock);
void qi_lock_release(qi_lock *lock);

/*
 * Waits, with the lock given up meanwhile, until another thread wakes those who wait. May return
 * without cause: ask for what was waited for again.
 */
void qi_lock_wait(qi_lock *lock);
void qi_lock_wake_all(qi_lock *lock);

/* Debug builds stop the program when the calling thread holds any lock of the library. */
void qi_lock_assert_none(void);

#endif
