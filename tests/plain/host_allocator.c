/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * host_allocator.c - the allocator of src/adapters/host_allocator with several threads: frees of
 * what others allocate, trims, traces and forks at any time.
 *
 *   --steps N: calls of each thread
 */
#include "src/adapters/host_allocator/host_allocator.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/support/child.h"
#include "tests/support/plain.h"
#include "tests/support/random.h"
#include "tests/support/thread_sanitizer.h"

enum { THREADS = 4, PLACES = 64, MAX_SMALL = 3000, MAX_LARGE = 60000 };

static int steps;
static void *_Atomic places[PLACES];

static host_allocator *make(uint32_t shards)
{
    host_allocator *allocator = NULL;
    CHECK_OK(host_allocator_create(&(host_allocator_options){.shards = shards}, &allocator));
    return allocator;
}

static host_allocator_stats stats_of(host_allocator *allocator)
{
    host_allocator_stats stats;
    CHECK_OK(host_allocator_get_stats(allocator, &stats));
    return stats;
}

/* Nothing is allocated and no other thread runs: every count agrees. */
static void finish(host_allocator *allocator)
{
    host_allocator_stats stats = stats_of(allocator);
    CHECK_EQ(stats.requested_bytes, 0);
    CHECK_EQ(stats.allocation_count, 0);
    CHECK_EQ(stats.frees, stats.allocations);
    CHECK_EQ(stats.memory.requested_bytes, stats.cached_bytes);
    CHECK_OK(quire_memory_check(host_allocator_memory(allocator)));
    host_allocator_destroy(&allocator);
}

static void start(pthread_t *threads, void *(*function)(void *), host_allocator *allocator)
{
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&threads[i], NULL, function, allocator));
}

static void join(const pthread_t *threads)
{
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_join(threads[i], NULL));
}

/* ---- frees by other threads ------------------------------------------------------------------ */

/* Puts blocks into places and frees what was there. */
static void *exchange(void *allocator)
{
    test_random random = {(uint64_t)(uintptr_t)&random};
    for (int i = 0; i < steps; i++) {
        uint64_t size = 8 + random_below(&random, i % 50 ? MAX_SMALL : MAX_LARGE);
        uint64_t *block = host_allocator_allocate(allocator, size, 0);
        CHECK(block != NULL);
        *block = (uint64_t)(uintptr_t)block;
        block = atomic_exchange(&places[random_below(&random, PLACES)], block);
        if (!block)
            continue;
        CHECK_EQ(*block, (uintptr_t)block);
        CHECK_OK(host_allocator_free(allocator, block));
    }
    return NULL;
}

static void exchange_in_shards(uint32_t shards)
{
    pthread_t threads[THREADS];
    host_allocator *a = make(shards);
    start(threads, exchange, a);
    for (int i = 0; i < 20; i++) {
        CHECK_OK(host_allocator_trim(a, NULL));
        CHECK(stats_of(a).thread_count <= THREADS);
        CHECK_OK(host_allocator_start_trace(a, "/dev/null"));
        CHECK_OK(host_allocator_stop_trace(a));
    }
    join(threads);
    for (int i = 0; i < PLACES; i++)
        CHECK_OK(host_allocator_free(a, atomic_exchange(&places[i], NULL)));
    CHECK_EQ(stats_of(a).allocations, (uint64_t)THREADS * (uint64_t)steps);
    finish(a);
}

static void threads_free_what_others_allocate(void)
{
    exchange_in_shards(0);
    exchange_in_shards(3);
}

/* ---- several frees of a block at once -------------------------------------------------------- */

enum { FREEING = 2 };

static host_allocator *shared;
static void *_Atomic target;
static atomic_int round_number, arrived, freed, left;

/* Frees the target of each round at the time at which the other thread does. */
static void *free_target(void *unused)
{
    for (int i = 1; i <= steps; i++) {
        while (atomic_load(&round_number) < i)
            sched_yield();
        atomic_fetch_add(&arrived, 1);
        for (int tries = 0; atomic_load(&arrived) < i * FREEING; tries++)
            if (tries > 1000) /* before that both threads run, and start at the same moment */
                sched_yield();
        if (!host_allocator_free(shared, atomic_load(&target)))
            atomic_fetch_add(&freed, 1);
        atomic_fetch_add(&left, 1);
    }
    return unused;
}

static void free_at_once(host_allocator_options options)
{
    pthread_t threads[FREEING];
    void *last = NULL;
    CHECK_OK(host_allocator_create(&options, &shared));
    atomic_store(&round_number, 0);
    atomic_store(&arrived, 0);
    atomic_store(&freed, 0);
    atomic_store(&left, 0);
    for (int i = 0; i < FREEING; i++)
        CHECK(!pthread_create(&threads[i], NULL, free_target, NULL));
    for (int i = 1; i <= steps; i++) {
        CHECK((last = host_allocator_allocate(shared, 500, 0)) != NULL);
        atomic_store(&target, last);
        atomic_store(&round_number, i);
        while (atomic_load(&left) < i * FREEING)
            sched_yield();
        if (i < steps) /* after the last round the threads end, which moves blocks */
            CHECK_EQ(stats_of(shared).frees, i);
    }
    for (int i = 0; i < FREEING; i++)
        CHECK(!pthread_join(threads[i], NULL));
    CHECK_EQ(stats_of(shared).frees, steps);
    CHECK_EQ(atomic_load(&freed), steps);
    CHECK_FAILS(host_allocator_free(shared, last), QUIRE_ERROR_INVALID_ARGUMENT);
    finish(shared);
}

/* Also while the page of the block is released by the thread that frees it. */
static void one_of_several_frees_at_once_succeeds(void)
{
    const host_allocator_options without_pages = {.cached_bytes = 1, .retained_empty_bytes = 1};
    host_allocator_options in_shards = without_pages;
    in_shards.shards = 2;
    free_at_once((host_allocator_options){0});
    free_at_once(without_pages);
    free_at_once(in_shards);
}

/* ---- forks ----------------------------------------------------------------------------------- */

static atomic_bool stop;
static atomic_uint ready; /* threads that have everything they need */

/* After some rounds it calls no malloc: a sanitizer's does not survive a fork during a call. */
static void *churn(void *allocator)
{
    for (int i = 0; !atomic_load(&stop); i++) {
        if (i == 200)
            atomic_fetch_add(&ready, 1);
        void *small = host_allocator_allocate(allocator, 900, 0);
        void *large = host_allocator_allocate(allocator, MAX_LARGE, 0);
        CHECK_OK(host_allocator_free(allocator, small));
        CHECK_OK(host_allocator_free(allocator, large));
    }
    return NULL;
}

static void *use_some(void *allocator)
{
    void *some[100];
    for (int i = 0; i < 100; i++)
        CHECK((some[i] = host_allocator_allocate(allocator, 900, 0)) != NULL);
    for (int i = 0; i < 100; i++)
        CHECK_OK(host_allocator_free(allocator, some[i]));
    return NULL;
}

/* In the child, where the threads of the parent do not exist. */
static bool child_works(host_allocator *a, void *small, void *large)
{
    pthread_t thread;
    host_allocator_stats before = stats_of(a);
    CHECK_EQ(before.thread_count, 1);
    CHECK_OK(host_allocator_free(a, small));
    CHECK_OK(host_allocator_free(a, large));
    CHECK(!pthread_create(&thread, NULL, use_some, a)); /* in the cache of a thread of the parent */
    CHECK(!pthread_join(thread, NULL));
    CHECK_EQ(stats_of(a).allocations, before.allocations + 100);
    CHECK_OK(host_allocator_trim(a, NULL));
    CHECK_EQ(stats_of(a).cached_count, 0);
    CHECK_OK(quire_memory_check(host_allocator_memory(a)));
    host_allocator_destroy(&a);
    return true;
}

static void fork_with_shards(uint32_t shards)
{
    pthread_t threads[THREADS];
    host_allocator *a = make(shards);
    void *small = host_allocator_allocate(a, 100, 0),
         *large = host_allocator_allocate(a, 100000, 0);
    atomic_store(&stop, false);
    atomic_store(&ready, 0);
    start(threads, churn, a);
    while (atomic_load(&ready) < THREADS)
        sched_yield();
    for (int i = 0; i < 10 + steps / 500; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (!child) {
            alarm(60); /* a lock that no thread gives back is a failure */
            child_end(child_works(a, small, large));
        }
        CHECK(child_was_well(child));
    }
    atomic_store(&stop, true);
    join(threads);
    CHECK_OK(host_allocator_free(a, small));
    CHECK_OK(host_allocator_free(a, large));
    finish(a);
}

static void a_child_uses_it_whatever_the_threads_did(void)
{
    fork_with_shards(0);
    fork_with_shards(2);
}

int main(int argc, char **argv)
{
    steps = (int)plain_option(argc, argv, "steps", 8000);
    plain_case("threads free what others allocate", threads_free_what_others_allocate);
    plain_case("one of several frees at once succeeds", one_of_several_frees_at_once_succeeds);
    if (HAS_THREAD_SANITIZER)
        plain_skip("a child uses it whatever the threads did",
                   "the thread sanitizer does not support forks beside threads");
    else
        plain_case("a child uses it whatever the threads did",
                   a_child_uses_it_whatever_the_threads_did);
    return plain_end();
}
