/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * fork_map.c - forks while pages are mapped on demand, or while other threads map and unmap them:
 * the child has the maps of the parent's allocations, none of calls that ended with their threads,
 * and nothing hangs.
 *
 *     fork_map [--steps FORKS]
 */
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "quire/host.h"
#include "quire/quire.h"
#include "src/core/state/memory.h"
#include "tests/support/child.h"
#include "tests/support/fake.h"
#include "tests/support/plain.h"
#include "tests/support/thread_sanitizer.h"

enum { PATIENCE_S = 60, THREADS = 4, SIZE = 100 };

static uint64_t forks;
static fake_backend fake;
static quire_device *device;
static quire_memory *memory;
static quire_allocation live, lasting;
static qi_atomic_u32 is_over, is_there, may_go;

static void wait_a_little(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* ---- the memory ----------------------------------------------------------------------------- */

static void make_memory(void)
{
    const quire_memory_options options = {.kind.required = QUIRE_HOST_VISIBLE,
                                          .map_on_demand = true};
    CHECK_OK(quire_memory_create(device, &options, &memory));
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = SIZE}, &live));
}

/* The device survives a fork. */
static void open_fake(void)
{
    fake_init(&fake);
    fake_offer_fork(&fake);
    fake.info.survives_fork = true;
}

static void begin_fake(void)
{
    CHECK_OK(fake_open(&fake, NULL, &device));
    make_memory();
}

static void end(void)
{
    quire_memory_destroy_all(&memory);
    CHECK_OK(quire_device_destroy(&device));
}

static void map_and_unmap(void)
{
    void *pointer = NULL;
    CHECK_OK(quire_map(memory, live, &pointer));
    memset(pointer, 1, SIZE);
    CHECK_OK(quire_unmap(memory, live));
}

/* ---- maps that last beyond the fork --------------------------------------------------------- */

static void release_one_after_the_other(void)
{
    CHECK_EQ(fake.maps, 1);
    CHECK_OK(quire_unmap(memory, live));
    CHECK_EQ(fake.maps, 1);
    CHECK_OK(quire_free(memory, lasting));
    CHECK_EQ(fake.maps, 0);
    map_and_unmap();
    CHECK_EQ(fake.maps, 0);
    end();
}

static void maps_of_the_parent(void)
{
    void *pointer = NULL;
    const quire_allocation_options options = {.size = SIZE, .mapped = true};
    open_fake();
    begin_fake();
    CHECK_OK(quire_allocate(memory, &options, &lasting));
    CHECK_OK(quire_map(memory, live, &pointer));
    CHECK(child_calls(release_one_after_the_other, PATIENCE_S));
    CHECK_EQ(fake.maps, 1);
    end();
}

/* The child is made in the callback of a copy, whose maps it keeps. */
static bool fork_in_progress(void *user, uint64_t done, uint64_t total)
{
    bool *is_child = user;
    (void)total;
    if (done != SIZE / 2)
        return true;
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    *is_child = !child;
    if (child)
        CHECK(child_was_well(child));
    else
        alarm(PATIENCE_S);
    return true;
}

static void a_copy_that_forks(void)
{
    bool is_child = false;
    quire_allocation other;
    open_fake();
    begin_fake();
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = SIZE}, &other));
    const quire_copy_options copy = {
        .to = {.memory = memory, .allocation = live},
        .from = {.memory = memory, .allocation = other},
        .size = SIZE,
        .progress = {.goes_on = fork_in_progress, .user = &is_child, .step = SIZE / 2}};
    CHECK_OK(quire_copy(&copy, NULL));
    CHECK_EQ(fake.maps, 0);
    map_and_unmap();
    CHECK_EQ(fake.maps, 0);
    end();
    if (is_child)
        child_end(true);
}

/* ---- another thread in the backend ---------------------------------------------------------- */

static quire_result (*map_of_fake)(void *, const quire_native_page *, void **);
static void (*unmap_of_fake)(void *, const quire_native_page *);
static pthread_t standing;
static bool stands_in_unmap;

static void stand(void)
{
    qi_atomic_store_release_u32(&is_there, 1);
    while (!qi_atomic_load_acquire_u32(&may_go))
        wait_a_little();
}

static bool is_other_thread(void)
{
    return qi_atomic_load_acquire_u32(&is_over) == 2 && pthread_equal(pthread_self(), standing);
}

static quire_result slow_map(void *state, const quire_native_page *page, void **pointer)
{
    if (is_other_thread() && !stands_in_unmap)
        stand();
    return map_of_fake(state, page, pointer);
}

static void slow_unmap(void *state, const quire_native_page *page)
{
    unmap_of_fake(state, page);
    if (is_other_thread() && stands_in_unmap)
        stand();
}

static void *use_slowly(void *user)
{
    (void)user;
    standing = pthread_self();
    qi_atomic_store_release_u32(&is_over, 2);
    map_and_unmap();
    return NULL;
}

static void use_in_child(void)
{
    qi_atomic_store_release_u32(&is_over, 0); /* no thread stands in the child */
    map_and_unmap();
    CHECK_EQ(fake.maps, 0);
    CHECK_OK(quire_free(memory, live)); /* the use of the other thread does not exist here */
    end();
}

static void fork_amid(bool in_unmap)
{
    pthread_t thread;
    open_fake();
    map_of_fake = fake.table.map;
    unmap_of_fake = fake.table.unmap;
    fake.table.map = slow_map;
    fake.table.unmap = slow_unmap;
    stands_in_unmap = in_unmap;
    is_there = may_go = is_over = 0;
    begin_fake();
    CHECK(!pthread_create(&thread, NULL, use_slowly, NULL));
    while (!qi_atomic_load_acquire_u32(&is_there))
        wait_a_little();
    CHECK(child_calls(use_in_child, PATIENCE_S));
    qi_atomic_store_release_u32(&may_go, 1);
    CHECK(!pthread_join(thread, NULL));
    CHECK_EQ(fake.maps, 0);
    end();
}

static void a_page_being_mapped(void)
{
    fork_amid(false);
}

static void a_page_being_unmapped(void)
{
    fork_amid(true);
}

/* ---- threads in any state ------------------------------------------------------------------- */

static void *churn(void *user)
{
    (void)user;
    while (!qi_atomic_load_acquire_u32(&is_over)) {
        quire_allocation made;
        quire_allocation_info info;
        CHECK_OK(quire_allocate(
            memory, &(quire_allocation_options){.size = SIZE, .mapped = true, .info = &info},
            &made));
        memset(info.host, 2, SIZE);
        CHECK_OK(quire_write(memory, live, 0, "four", 4));
        CHECK_OK(quire_free(memory, made));
    }
    return NULL;
}

static void use_and_end(void)
{
    char bytes[SIZE];
    CHECK_OK(quire_read(memory, live, 0, bytes, SIZE));
    map_and_unmap();
    CHECK_OK(quire_free(memory, lasting));
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = SIZE, .mapped = true},
                            &lasting));
    CHECK_OK(quire_memory_check(memory));
    CHECK_OK(quire_free(memory, lasting));
    CHECK_OK(quire_free(memory, live));
    end();
}

static void threads_that_map(void)
{
    pthread_t threads[THREADS];
    CHECK_OK(quire_host_open(NULL, &device));
    make_memory();
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = SIZE, .mapped = true},
                            &lasting));
    is_over = 0;
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&threads[i], NULL, churn, NULL));
    for (uint64_t i = 0; i < forks; i++)
        CHECK(child_calls(use_and_end, PATIENCE_S));
    qi_atomic_store_release_u32(&is_over, 1);
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_join(threads[i], NULL));
    end();
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*body)(void);
    } beside[] = {
        {"a page that another thread maps", a_page_being_mapped},
        {"a page that another thread unmaps", a_page_being_unmapped},
        {"four threads that map", threads_that_map},
    };
    forks = plain_option(argc, argv, "steps", 30);
    plain_case("maps of the parent", maps_of_the_parent);
    plain_case("a copy that forks", a_copy_that_forks);
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++)
        if (HAS_THREAD_SANITIZER)
            plain_skip(beside[i].name,
                       "the thread sanitizer does not support forks beside threads");
        else
            plain_case(beside[i].name, beside[i].body);
    return plain_end();
}
