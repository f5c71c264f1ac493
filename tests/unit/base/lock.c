/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * lock.c - a lock admits one thread at a time; builds without NDEBUG stop the program, with a
 * message, at each breach of the rules in lock.h.
 */
#include "src/base/lock.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/atomic.h"
#include "tests/support/unit.h"

static qi_lock device, memory, backend;

static void make_locks(void)
{
    qi_lock_init(&device, "device", QI_RANK_DEVICE);
    qi_lock_init(&memory, "memory", QI_RANK_SHARD);
    qi_lock_init(&backend, "backend", QI_RANK_BACKEND);
}

/* ---- mutual exclusion ---------------------------------------------------------------------- */

static qi_atomic_u64 entered;

static void *enter(void *unused)
{
    qi_lock_acquire(&memory);
    qi_atomic_store_release_u64(&entered, 1);
    qi_lock_release(&memory);
    return unused;
}

UNIT(lock, another_thread_waits_until_the_lock_is_released)
{
    make_locks();
    pthread_t thread;
    qi_lock_acquire(&memory);
    CHECK_EQ(pthread_create(&thread, NULL, enter, NULL), 0);
    usleep(50000); /* long enough for a thread that does not wait */
    CHECK_EQ(qi_atomic_load_acquire_u64(&entered), 0);
    qi_lock_release(&memory);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(qi_atomic_load_acquire_u64(&entered), 1);
}

static void *try_once(void *result)
{
    *(bool *)result = qi_lock_try(&memory);
    if (*(bool *)result)
        qi_lock_release(&memory);
    return NULL;
}

UNIT(lock, a_try_does_not_wait)
{
    make_locks();
    pthread_t thread;
    bool is_taken = true;
    CHECK(qi_lock_try(&memory));
    CHECK_EQ(pthread_create(&thread, NULL, try_once, &is_taken), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK(!is_taken);
    qi_lock_release(&memory);
    CHECK_EQ(pthread_create(&thread, NULL, try_once, &is_taken), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK(is_taken);
}

enum { THREADS = 4, ROUNDS = 100000 };

/* Only the lock prevents lost counts; volatile, so that each step really happens. */
static volatile uint64_t counted;

static void *count(void *unused)
{
    for (int i = 0; i < ROUNDS; i++) {
        qi_lock_acquire(&memory);
        counted = counted + 1;
        qi_lock_release(&memory);
    }
    return unused;
}

UNIT(lock, one_thread_at_a_time_holds_the_lock)
{
    make_locks();
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, count, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(counted, THREADS * ROUNDS);
}

/* ---- the two forms of release --------------------------------------------------------------- */

static void await_value(qi_atomic_u32 *word, uint32_t value)
{
    while (qi_atomic_load_acquire_u32(word) != value)
        usleep(100);
}

/* Another thread finds the lock held. It waits until the word has the value that shows this. */
static void be_waited_for(qi_atomic_u32 *word, uint32_t value)
{
    pthread_t thread;
    qi_atomic_store_release_u64(&entered, 0);
    qi_lock_acquire(&memory);
    CHECK_EQ(pthread_create(&thread, NULL, enter, NULL), 0);
    await_value(word, value);
    CHECK_EQ(qi_atomic_load_acquire_u64(&entered), 0);
    qi_lock_release(&memory);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(qi_atomic_load_acquire_u64(&entered), 1);
}

UNIT(lock, a_wait_switches_to_the_second_form)
{
    make_locks();
    CHECK_EQ(qi_atomic_load_u32(&memory.form), QI_LOCK_STORED);
    be_waited_for(&memory.form, QI_LOCK_EXCHANGED);
    qi_lock_acquire(&memory);
    CHECK_EQ(qi_atomic_load_u32(&memory.state), QI_LOCK_EXCHANGED);
    qi_lock_release(&memory);
    CHECK_EQ(qi_atomic_load_u32(&memory.state), QI_LOCK_FREE);
}

UNIT(lock, a_thread_that_sleeps_in_the_second_form_is_woken)
{
    make_locks();
    be_waited_for(&memory.form, QI_LOCK_EXCHANGED);
    be_waited_for(&memory.state, QI_LOCK_AWAITED);
    CHECK_EQ(qi_atomic_load_u32(&memory.state), QI_LOCK_FREE);
}

/* ---- waiting for a wake --------------------------------------------------------------------- */

static int waiting, woken;

static void *wait_for_the_sign(void *sign)
{
    qi_lock_acquire(&memory);
    waiting++;
    while (!*(const bool *)sign)
        qi_lock_wait(&memory, NULL);
    woken++;
    qi_lock_release(&memory);
    return NULL;
}

/* Waits until that many threads wait. They can only have come so far if each released the lock. */
static void await_waiting(int threads)
{
    for (int seen = 0; seen < threads;) {
        qi_lock_acquire(&memory);
        seen = waiting;
        qi_lock_release(&memory);
        usleep(1000);
    }
}

UNIT(lock, waiting_threads_release_the_lock_and_are_all_woken)
{
    make_locks();
    pthread_t threads[THREADS];
    bool sign = false;
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, wait_for_the_sign, &sign), 0);
    await_waiting(THREADS);
    qi_lock_acquire(&memory);
    CHECK_EQ(woken, 0);
    sign = true;
    qi_lock_wake_all(&memory);
    qi_lock_release(&memory);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(woken, THREADS);
}

UNIT(lock, locks_are_taken_by_rising_rank_repeatedly)
{
    make_locks();
    for (int i = 0; i < 3; i++) {
        qi_lock_acquire(&device);
        qi_lock_acquire(&memory);
        qi_lock_acquire(&backend);
        qi_lock_release(&backend);
        qi_lock_release(&memory);
        qi_lock_acquire(&backend); /* a rank may be left out */
        qi_lock_release(&backend);
        qi_lock_release(&device);
        qi_lock_assert_none();
    }
}

/* ---- breaches that stop the program -------------------------------------------------------- */

#ifndef NDEBUG

/* Reads everything that a child writes before it ends. */
static void read_all(int from, char *text, size_t size)
{
    size_t length = 0;
    for (ssize_t got; (got = read(from, text + length, size - 1 - length)) > 0;)
        length += (size_t)got;
    text[length] = '\0';
    close(from);
}

/* The breach, made in a child process, aborts with the message. */
static void expect_stop(void (*breach)(void), const char *message)
{
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        breach();
        _exit(0);
    }
    close(ends[1]);
    char text[2048];
    read_all(ends[0], text, sizeof text);
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    CHECK_HAS(text, message);
}

static void take_a_lower_rank(void)
{
    qi_lock_acquire(&memory);
    qi_lock_acquire(&device);
}

static void take_the_same_rank(void)
{
    qi_lock other;
    qi_lock_init(&other, "other", QI_RANK_SHARD);
    qi_lock_acquire(&memory);
    qi_lock_acquire(&other);
}

static void take_it_twice(void)
{
    qi_lock_acquire(&memory);
    qi_lock_acquire(&memory);
}

UNIT(lock, a_rank_not_above_those_held_stops_the_program)
{
    make_locks();
    expect_stop(take_a_lower_rank, "lock 'device' (rank 10): taken out of order; the thread holds "
                                   "'memory'");
    expect_stop(take_the_same_rank, "lock 'other' (rank 20): taken out of order");
    expect_stop(take_it_twice, "lock 'memory' (rank 20): taken out of order");
}

static void take_too_many(void)
{
    static qi_lock locks[QI_MAX_SHARDS + 5];
    for (int i = 0; i < QI_MAX_SHARDS + 5; i++) {
        qi_lock_init(&locks[i], "one of many", (qi_lock_rank)(i + 1));
        qi_lock_acquire(&locks[i]);
    }
}

UNIT(lock, more_locks_at_once_than_ranks_stop_the_program)
{
    expect_stop(take_too_many, "lock 'one of many' (rank 69): too many locks held");
}

static void give_back_nothing(void)
{
    qi_lock_release(&memory);
}

static void give_back_another(void)
{
    qi_lock_acquire(&device);
    qi_lock_release(&memory);
}

static void *take_memory(void *unused)
{
    qi_lock_acquire(&memory);
    return unused;
}

static void give_back_another_threads(void)
{
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, take_memory, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    qi_lock_release(&memory);
}

UNIT(lock, releasing_a_lock_that_is_not_held_stops_the_program)
{
    make_locks();
    expect_stop(give_back_nothing, "lock 'memory' (rank 20): given back by a thread that did not");
    expect_stop(give_back_another, "the thread holds 'device'");
    expect_stop(give_back_another_threads, "lock 'memory' (rank 20): given back by a thread");
}

static void leave_with_a_lock(void)
{
    qi_lock_acquire(&backend);
    qi_lock_assert_none();
}

static void leave_with_the_first_of_two(void)
{
    qi_lock_acquire(&device);
    qi_lock_acquire(&memory);
    qi_lock_release(&memory);
    qi_lock_assert_none();
}

UNIT(lock, returning_to_the_caller_with_a_lock_stops_the_program)
{
    make_locks();
    expect_stop(leave_with_a_lock, "lock 'backend' (rank 110): still held");
    expect_stop(leave_with_the_first_of_two, "lock 'device' (rank 10): still held");
}

static void *leave_elsewhere(void *unused)
{
    qi_lock_assert_none();
    return unused;
}

UNIT(lock, locks_of_another_thread_do_not_count)
{
    make_locks();
    qi_lock_acquire(&device);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, leave_elsewhere, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    qi_lock_release(&device);
}

#endif
