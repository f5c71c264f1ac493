/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * host_allocator_cache.c - the caches of small blocks: bounds, threads that end, refusals.
 * tests/plain/host_allocator.c has several threads at a time, and forks.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "src/adapters/host_allocator/host_allocator.h"
#include "tests/support/child.h"
#include "tests/support/unit.h"
#include "tests/support/valgrind.h"

enum { MANY = 5000 };

static void *pointers[MANY];

static host_allocator *make(host_allocator_options options)
{
    host_allocator *allocator = NULL;
    CHECK_OK(host_allocator_create(&options, &allocator));
    return allocator;
}

static host_allocator_stats stats_of(host_allocator *allocator)
{
    host_allocator_stats stats;
    CHECK_OK(host_allocator_get_stats(allocator, &stats));
    return stats;
}

static void allocate_all(host_allocator *allocator, uint64_t size, int count)
{
    for (int i = 0; i < count; i++)
        CHECK((pointers[i] = host_allocator_allocate(allocator, size, 0)) != NULL);
}

static void free_all(host_allocator *allocator, int count)
{
    for (int i = 0; i < count; i++)
        CHECK_OK(host_allocator_free(allocator, pointers[i]));
}

/* Runs a function with the allocator in another thread until its end. */
static void in_thread(void *(*function)(void *), host_allocator *allocator)
{
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, function, allocator));
    CHECK(!pthread_join(thread, NULL));
}

UNIT(host_allocator_cache, a_freed_block_serves_the_next_request_of_its_class)
{
    host_allocator *a = make((host_allocator_options){0});
    void *first = host_allocator_allocate(a, 1000, 0);
    CHECK_OK(host_allocator_free(a, first));
    CHECK_EQ(stats_of(a).cached_count, 1);
    CHECK(stats_of(a).cached_bytes >= 1000);
    CHECK(host_allocator_allocate(a, 1001, 0) == first);
    CHECK_EQ(stats_of(a).cache_hits, 1);
    CHECK_EQ(stats_of(a).cached_bytes, 0);
    CHECK_EQ(stats_of(a).requested_bytes, 1001);
    CHECK_EQ(stats_of(a).memory.allocations, 1);
    host_allocator_destroy(&a);
}

UNIT(host_allocator_cache, a_cache_has_at_most_its_bytes)
{
    const uint64_t bounds[] = {0, 1, 4096, 1 << 20};
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        host_allocator *a = make((host_allocator_options){.cached_bytes = bounds[i]});
        uint64_t bound = bounds[i] ? bounds[i] : HOST_ALLOCATOR_CACHED_BYTES;
        allocate_all(a, 500, MANY);
        for (int j = 0; j < MANY; j++) {
            CHECK_OK(host_allocator_free(a, pointers[j]));
            CHECK(stats_of(a).cached_bytes <= bound);
        }
        host_allocator_stats stats = stats_of(a);
        CHECK_EQ(stats.memory.requested_bytes, stats.cached_bytes);
        CHECK_EQ(stats.memory.allocation_count, stats.cached_count);
        CHECK_EQ(stats.cached_bytes > bound / 4, bound > 1);
        CHECK_OK(quire_memory_check(host_allocator_memory(a)));
        host_allocator_destroy(&a);
    }
}

UNIT(host_allocator_cache, a_trim_empties_it_and_releases_the_pages)
{
    uint64_t released;
    host_allocator *a = make((host_allocator_options){.cached_bytes = 8 << 20});
    allocate_all(a, 500, MANY);
    free_all(a, MANY);
    uint64_t reserved = stats_of(a).memory.reserved_bytes;
    CHECK_EQ(stats_of(a).cached_count, MANY);
    CHECK_OK(host_allocator_trim(a, &released));
    CHECK_EQ(stats_of(a).cached_count, 0);
    CHECK_EQ(stats_of(a).memory.reserved_bytes, 0);
    CHECK_EQ(released, reserved);
    CHECK_EQ(stats_of(a).frees, MANY);
    host_allocator_destroy(&a);
}

UNIT(host_allocator_cache, it_is_emptied_before_a_request_is_refused)
{
    host_allocator *a = make((host_allocator_options){.cached_bytes = 8 << 20, .limit = 4 << 20});
    allocate_all(a, 500, MANY);
    free_all(a, MANY);
    CHECK(stats_of(a).cached_bytes > 2 << 20);
    void *large = host_allocator_allocate(a, 3 << 20, 0);
    CHECK(large != NULL);
    CHECK_EQ(stats_of(a).cached_bytes, 0);
    CHECK(!host_allocator_allocate(a, 3 << 20, 0)); /* nothing is left to empty */
    host_allocator_destroy(&a);
}

static void stale_frees_change_nothing(host_allocator_options options, bool trims)
{
    host_allocator *a = make(options);
    allocate_all(a, 1000, MANY);
    free_all(a, MANY);
    if (trims)
        CHECK_OK(host_allocator_trim(a, NULL));
    CHECK_EQ(stats_of(a).memory.reserved_bytes, 0);
    for (int i = 0; i < MANY; i++) {
        CHECK_FAILS(host_allocator_free(a, pointers[i]), QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK_HAS(quire_last_error(), "was freed before");
    }
    CHECK_EQ(stats_of(a).frees, MANY);
    CHECK_OK(host_allocator_free(a, host_allocator_allocate(a, 1000, 0)));
    CHECK_OK(quire_memory_check(host_allocator_memory(a)));
    host_allocator_destroy(&a);
}

/* The page of the block does not exist any more: its bytes cannot be read. */
UNIT(host_allocator_cache, a_stale_free_after_the_end_of_the_page_changes_nothing)
{
    for (uint32_t shards = 0; shards <= 2; shards += 2) {
        stale_frees_change_nothing((host_allocator_options){.shards = shards}, true);
        stale_frees_change_nothing((host_allocator_options){.shards = shards,
                                                            .cached_bytes = 1,
                                                            .retained_empty_bytes = 1},
                                   false);
    }
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *use_some(void *allocator)
{
    void *some[100];
    for (int i = 0; i < 100; i++)
        CHECK((some[i] = host_allocator_allocate(allocator, 700, 0)) != NULL);
    for (int i = 0; i < 100; i++)
        CHECK_OK(host_allocator_free(allocator, some[i]));
    CHECK(stats_of(allocator).cached_count >= 100);
    return NULL;
}

UNIT(host_allocator_cache, the_end_of_a_thread_empties_its_cache)
{
    host_allocator *a = make((host_allocator_options){0});
    for (int i = 0; i < 20; i++) {
        in_thread(use_some, a);
        CHECK_EQ(stats_of(a).cached_count, 0);
        CHECK_EQ(stats_of(a).thread_count, 0);
        CHECK_EQ(stats_of(a).memory.allocation_count, 0);
    }
    CHECK_EQ(stats_of(a).frees, 2000);
    host_allocator_destroy(&a);
}

static pthread_key_t late_key;
static host_allocator *late_allocator;

/* A destructor of another key, which runs after that of the cache. */
static void free_late(void *pointer)
{
    CHECK_OK(host_allocator_free(late_allocator, pointer));
    CHECK_OK(host_allocator_free(late_allocator, host_allocator_allocate(late_allocator, 50, 0)));
}

static void *leave_one_behind(void *allocator)
{
    CHECK(!pthread_setspecific(late_key, host_allocator_allocate(allocator, 700, 0)));
    return NULL;
}

UNIT(host_allocator_cache, a_destructor_may_free_after_the_end_of_the_cache)
{
    late_allocator = make((host_allocator_options){0});
    CHECK(!pthread_key_create(&late_key, free_late));
    in_thread(leave_one_behind, late_allocator);
    CHECK_EQ(stats_of(late_allocator).allocations, 2);
    CHECK_EQ(stats_of(late_allocator).frees, 2);
    CHECK_EQ(stats_of(late_allocator).cached_count, 0);
    CHECK_EQ(stats_of(late_allocator).memory.allocation_count, 0);
    CHECK_EQ(stats_of(late_allocator).thread_count, 0);
    pthread_key_delete(late_key);
    host_allocator_destroy(&late_allocator);
}

UNIT(host_allocator_cache, a_process_without_a_free_key_is_refused)
{
    enum { MAX_KEYS = 4096 };
    static pthread_key_t keys[MAX_KEYS];
    int count = 0;
    host_allocator *a = NULL;
    CHECK_OK(host_allocator_create(NULL, &a)); /* quire has its own key */
    CHECK_OK(host_allocator_free(a, host_allocator_allocate(a, 1, 0)));
    host_allocator_destroy(&a);
    while (count < MAX_KEYS && !pthread_key_create(&keys[count], NULL))
        count++;
    CHECK_FAILS(host_allocator_create(NULL, &a), QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    CHECK(!a);
    while (count)
        pthread_key_delete(keys[--count]);
}

/* ---- without addresses for one page ---------------------------------------------------------- */

static bool works_without_addresses(void)
{
    const struct rlimit limit = {UINT64_C(4) << 30, UINT64_C(4) << 30};
    quire_memory_info info;
    CHECK(!setrlimit(RLIMIT_AS, &limit));
    host_allocator *a = make((host_allocator_options){0});
    CHECK_OK(quire_memory_get_info(host_allocator_memory(a), &info));
    CHECK_EQ(info.address_space, 0);
    CHECK_OK(host_allocator_free(a, host_allocator_allocate(a, 1 << 20, 0)));
    host_allocator_destroy(&a);
    return true;
}

UNIT_ALONE(host_allocator_cache, a_limit_of_addresses_gives_pages)
{
    quire_memory_info info;
    if (under_valgrind())
        unit_skip("valgrind has no addresses for the elastic page");
    host_allocator *a = make((host_allocator_options){0});
    CHECK_OK(quire_memory_get_info(host_allocator_memory(a), &info));
    CHECK(info.address_space > 0);
    host_allocator_destroy(&a);
#ifndef TEST_IS_SANITIZED /* which need more addresses themselves */
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child)
        child_end(works_without_addresses());
    CHECK(child_was_well(child));
#else
    (void)works_without_addresses;
#endif
}

/* Large allocations need no mark; nothing stays behind of a small one that is refused. */
static bool refuses_small_ones_without_marks(void)
{
    struct rlimit limit;
    host_allocator *a = make((host_allocator_options){0});
    CHECK_OK(host_allocator_free(a, host_allocator_allocate(a, 1 << 20, 0)));
    CHECK(!getrlimit(RLIMIT_AS, &limit));
    const struct rlimit none = {1 << 20, limit.rlim_max};
    CHECK(!setrlimit(RLIMIT_AS, &none));
    CHECK(!host_allocator_allocate(a, 1000, 0));
    CHECK_HAS(quire_last_error(), "no host memory for the mark");
    CHECK_EQ(stats_of(a).memory.allocation_count, 0);
    CHECK_OK(host_allocator_free(a, host_allocator_allocate(a, 1 << 19, 0)));
    CHECK(!setrlimit(RLIMIT_AS, &limit));
    CHECK_OK(host_allocator_free(a, host_allocator_allocate(a, 1000, 0)));
    host_allocator_destroy(&a);
    return true;
}

UNIT_ALONE(host_allocator_cache, without_addresses_for_marks_small_requests_are_refused)
{
#ifndef TEST_IS_SANITIZED /* which need more addresses themselves */
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child)
        child_end(refuses_small_ones_without_marks());
    CHECK(child_was_well(child));
#else
    (void)refuses_small_ones_without_marks;
#endif
}
