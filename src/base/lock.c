/*
 * lock.c - see lock.h.
 */
#include "src/base/lock.h"

#include "src/base/result.h"

#ifndef NDEBUG
#include <stdio.h>
#include <stdlib.h>

enum { MOST_HELD = 4 }; /* one per rank, and one to spare */

static _Thread_local struct {
    const qi_lock *locks[MOST_HELD];
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

static void note_acquired(const qi_lock *lock)
{
    if (held.count && held.locks[held.count - 1]->rank >= lock->rank)
        stop("taken out of order", lock);
    if (held.count == MOST_HELD)
        stop("too many locks held", lock);
    held.locks[held.count++] = lock;
}

static void note_released(const qi_lock *lock)
{
    if (!held.count || held.locks[held.count - 1] != lock)
        stop("given back by a thread that did not take it last", lock);
    held.count--;
}

void qi_lock_assert_none(void)
{
    if (held.count)
        stop("still held where the library is left", held.locks[held.count - 1]);
}
#else
static void note_acquired(const qi_lock *lock)
{
    (void)lock;
}

static void note_released(const qi_lock *lock)
{
    (void)lock;
}

void qi_lock_assert_none(void)
{
}
#endif

quire_result qi_lock_init(qi_lock *lock, const char *name, qi_lock_rank rank)
{
    lock->name = name;
    lock->rank = rank;
    int error = pthread_mutex_init(&lock->mutex, NULL);
    if (!error) {
        error = pthread_cond_init(&lock->changed, NULL);
        if (error)
            pthread_mutex_destroy(&lock->mutex);
    }
    if (error)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "a mutex cannot be made: errno %u",
                            (uint64_t)error);
    return QUIRE_SUCCESS;
}

void qi_lock_finish(qi_lock *lock)
{
    pthread_cond_destroy(&lock->changed);
    pthread_mutex_destroy(&lock->mutex);
}

void qi_lock_acquire(qi_lock *lock)
{
    note_acquired(lock);
    pthread_mutex_lock(&lock->mutex);
}

void qi_lock_release(qi_lock *lock)
{
    pthread_mutex_unlock(&lock->mutex);
    note_released(lock);
}

void qi_lock_wait(qi_lock *lock)
{
    pthread_cond_wait(&lock->changed, &lock->mutex);
}

void qi_lock_wake_all(qi_lock *lock)
{
    pthread_cond_broadcast(&lock->changed);
}
