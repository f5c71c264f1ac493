/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * thread.c - thread numbers: dense, constant for the life of a thread, released at its end, and
 * shared if more threads than numbers exist. tests/model/thread.c tries every interleaving.
 */
#include "src/base/thread.h"

#include <pthread.h>

#include "tests/support/unit.h"

static void *request_number(void *number)
{
    *(uint32_t *)number = qi_thread_number();
    CHECK_EQ(qi_thread_number(), *(uint32_t *)number);
    return NULL;
}

UNIT(thread, a_thread_keeps_its_number_and_the_next_thread_reuses_it)
{
    uint32_t mine = qi_thread_number();
    CHECK_EQ(mine, 0);
    for (int i = 0; i < 100; i++) {
        pthread_t thread;
        uint32_t number = 99;
        CHECK_EQ(pthread_create(&thread, NULL, request_number, &number), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        CHECK_EQ(number, 1); /* the lowest free number */
    }
    CHECK_EQ(qi_thread_number(), mine);
}

/* ---- many threads at once ------------------------------------------------------------------- */

static pthread_barrier_t barrier;

static void *ask_and_stay(void *number)
{
    request_number(number);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return NULL;
}

/* Starts the threads; all of them request a number before the first one ends. */
static void ask_all(uint32_t *numbers, pthread_t *threads, uint32_t count)
{
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 << 10);
    pthread_barrier_init(&barrier, NULL, count + 1);
    for (uint32_t i = 0; i < count; i++)
        CHECK_EQ(pthread_create(&threads[i], &small, ask_and_stay, &numbers[i]), 0);
    pthread_attr_destroy(&small);
    pthread_barrier_wait(&barrier);
}

static void end_all(pthread_t *threads, uint32_t count)
{
    pthread_barrier_wait(&barrier);
    for (uint32_t i = 0; i < count; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    pthread_barrier_destroy(&barrier);
}

/* How many threads have each number. */
static void count_numbers(const uint32_t *numbers, uint32_t count, uint32_t *times)
{
    memset(times, 0, QI_MAX_THREADS * sizeof *times);
    for (uint32_t i = 0; i < count; i++) {
        CHECK(numbers[i] < QI_MAX_THREADS);
        times[numbers[i]]++;
    }
}

UNIT(thread, numbers_of_live_threads_are_dense_and_distinct)
{
    enum { THREADS = 100 };
    uint32_t numbers[THREADS], times[QI_MAX_THREADS];
    pthread_t threads[THREADS];
    CHECK_EQ(qi_thread_number(), 0);
    for (int round = 0; round < 3; round++) {
        ask_all(numbers, threads, THREADS);
        end_all(threads, THREADS);
        count_numbers(numbers, THREADS, times);
        for (uint32_t i = 1; i <= THREADS; i++)
            CHECK_EQ(times[i], 1);
    }
}

UNIT(thread, above_1024_the_first_number_is_shared)
{
    enum { THREADS = QI_MAX_THREADS + 20 };
    static uint32_t numbers[THREADS], times[QI_MAX_THREADS];
    static pthread_t threads[THREADS];
    CHECK_EQ(qi_thread_number(), 0);
    ask_all(numbers, threads, THREADS);
    end_all(threads, THREADS);
    count_numbers(numbers, THREADS, times);
    CHECK_EQ(times[0], THREADS - (QI_MAX_THREADS - 1));
    for (uint32_t i = 1; i < QI_MAX_THREADS; i++)
        CHECK_EQ(times[i], 1);
    ask_all(numbers, threads, 1); /* the threads that shared a number released nothing */
    end_all(threads, 1);
    CHECK_EQ(numbers[0], 1);
}

/* ---- the end of a thread -------------------------------------------------------------------- */

static pthread_key_t last_key;
static uint32_t late_number;

/* Runs in a later round of destructors than the one that releases the number. */
static void request_late(void *rounds)
{
    uintptr_t left = (uintptr_t)rounds - 1;
    late_number = qi_thread_number();
    if (left)
        pthread_setspecific(last_key, (void *)left);
}

static void *leave_late(void *number)
{
    request_number(number);
    pthread_setspecific(last_key, (void *)(uintptr_t)2);
    return NULL;
}

UNIT(thread, a_number_requested_in_a_destructor_is_released_too)
{
    pthread_t thread;
    uint32_t number = 99;
    CHECK_EQ(qi_thread_number(), 0);
    CHECK_EQ(pthread_key_create(&last_key, request_late), 0);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(pthread_create(&thread, NULL, leave_late, &number), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        CHECK_EQ(number, 1);
        CHECK_EQ(late_number, 1);
    }
    pthread_key_delete(last_key);
}
