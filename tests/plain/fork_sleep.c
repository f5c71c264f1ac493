/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * fork_sleep.c - forks while other threads put allocations to sleep and wake them: in the child
 * each allocation is awake or asleep as a whole, can be woken with its contents and freed, and the
 * accounts of names are right.
 *
 *     fork_sleep [--steps FORKS]
 */
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "quire/elastic.h"
#include "quire/host.h"
#include "quire/quire.h"
#include "src/base/atomic.h"
#include "tests/support/child.h"
#include "tests/support/fake.h"
#include "tests/support/mapped_blocks.h"
#include "tests/support/plain.h"
#include "tests/support/thread_sanitizer.h"

/* The allocations of a thread: ordinary ones, and the last, which is lazy. */
enum { PATIENCE_S = 60, THREADS = 4, OWN = 4, LENGTH = 4, CHUNK = 64 * 1024, LARGEST = 90000 };
static const uint64_t SIZES[OWN] = {1000, LARGEST, 30000, LENGTH *CHUNK};

static uint64_t forks;
static fake_backend fake;
static quire_device *device;
static quire_memory *memory;
static quire_allocation made[THREADS][OWN];
static qi_atomic_u32 is_over;

/* ---- the memory ----------------------------------------------------------------------------- */

static void write_bytes(uint32_t thread, uint32_t own, uint64_t offset, uint64_t size)
{
    static unsigned char bytes[LARGEST];
    memset(bytes, (int)(1 + thread * OWN + own), size);
    CHECK_OK(quire_write(memory, made[thread][own], offset, bytes, size));
}

static void expect_bytes(uint32_t thread, uint32_t own, uint64_t offset, uint64_t size)
{
    static unsigned char bytes[LARGEST], expected[LARGEST];
    memset(expected, (int)(1 + thread * OWN + own), size);
    CHECK_OK(quire_read(memory, made[thread][own], offset, bytes, size));
    CHECK(!memcmp(bytes, expected, size));
}

/* Chunks 0 and 2 of the lazy one have memory. */
static void make_own(uint32_t thread)
{
    char name[] = "0/name";
    name[0] = (char)('0' + thread);
    for (uint32_t i = 0; i < OWN; i++) {
        const quire_allocation_options options = {
            .size = SIZES[i], .lazy = i == OWN - 1, .name = name};
        CHECK_OK(quire_allocate(memory, &options, &made[thread][i]));
        if (i < OWN - 1)
            write_bytes(thread, i, 0, SIZES[i]);
    }
    for (uint64_t at = 0; at < LENGTH; at += 2) {
        const quire_view range = {made[thread][OWN - 1], at * CHUNK, CHUNK};
        CHECK_OK(quire_back_range(memory, &range, 1));
        write_bytes(thread, OWN - 1, range.offset, CHUNK);
    }
}

static void make_all(uint32_t kind)
{
    CHECK_OK(quire_memory_create(device,
                                 &(quire_memory_options){.kind.mask = UINT32_C(1) << kind,
                                                         .elastic = true,
                                                         .address_space = 256 * CHUNK,
                                                         .pages.page_size = CHUNK},
                                 &memory));
    for (uint32_t thread = 0; thread < THREADS; thread++)
        make_own(thread);
    CHECK_OK(quire_memory_set_name_limit(memory, "0/", 64 * CHUNK));
    CHECK_OK(quire_memory_set_name_limit(memory, "1", 64 * CHUNK));
}

static void end_all(void)
{
    quire_memory_stats stats;
    CHECK_OK(quire_memory_check(memory));
    for (uint32_t i = 0; i < THREADS * OWN; i++)
        CHECK_OK(quire_free(memory, made[i / OWN][i % OWN]));
    CHECK_OK(quire_memory_trim(memory, 0, NULL));
    CHECK_OK(quire_memory_check(memory));
    CHECK_OK(quire_memory_get_stats(memory, &stats));
    CHECK_EQ(stats.allocation_count + stats.live_bytes + stats.asleep_bytes, 0);
    CHECK_EQ(stats.reserved_bytes, 0);
    CHECK_OK(quire_memory_destroy(&memory));
    CHECK_OK(quire_device_destroy(&device));
}

/* ---- the child ------------------------------------------------------------------------------ */

static void look_at(uint32_t thread)
{
    for (uint32_t i = 0; i < OWN - 1; i++)
        expect_bytes(thread, i, 0, SIZES[i]);
    for (uint64_t at = 0; at < LENGTH; at += 2)
        expect_bytes(thread, OWN - 1, at * CHUNK, CHUNK);
}

/* A call sleeps and wakes all allocations of a thread, or none. */
static void expect_one_state(uint32_t thread)
{
    quire_allocation_info info, first;
    CHECK_OK(quire_allocation_get_info(memory, made[thread][0], &first));
    for (uint32_t i = 0; i < OWN; i++) {
        CHECK_OK(quire_allocation_get_info(memory, made[thread][i], &info));
        CHECK(info.asleep == first.asleep);
        CHECK_EQ(info.requested, SIZES[i]);
    }
    if (!first.asleep)
        look_at(thread);
}

static void wake_and_end(void)
{
    fake.slow_ms = 0;
    CHECK_OK(quire_memory_check(memory));
    for (uint32_t thread = 0; thread < THREADS; thread++)
        expect_one_state(thread);
    CHECK_OK(quire_free(memory, made[0][1])); /* as it is */
    CHECK_OK(quire_memory_check(memory));
    CHECK_OK(quire_memory_wake(memory, NULL, NULL));
    CHECK_OK(quire_memory_check(memory));
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = SIZES[1], .name = "0/new"},
                            &made[0][1]));
    write_bytes(0, 1, 0, SIZES[1]);
    for (int round = 0; round < 2; round++) {
        for (uint32_t thread = 0; thread < THREADS; thread++)
            look_at(thread);
        CHECK_OK(quire_memory_sleep(memory, NULL, QUIRE_SLEEP_KEEP, NULL, NULL));
        if (round)
            break;
        CHECK_OK(quire_memory_wake(memory, NULL, NULL));
    }
    end_all();
}

/* ---- forks ---------------------------------------------------------------------------------- */

static void *sleep_and_wake(void *number)
{
    const uint32_t thread = (uint32_t)(uintptr_t)number;
    const char prefix[] = {(char)('0' + thread), '/', '\0'};
    while (!qi_atomic_load_acquire_u32(&is_over)) {
        CHECK_OK(quire_memory_sleep(memory, prefix, QUIRE_SLEEP_KEEP, NULL, NULL));
        CHECK_OK(quire_memory_wake(memory, prefix, NULL));
        CHECK_OK(quire_memory_check(memory));
    }
    return NULL;
}

static void beside_threads(void)
{
    pthread_t threads[THREADS];
    CHECK_OK(quire_host_open(&(quire_host_options){.device.host_memory = &MAPPED_BLOCKS}, &device));
    make_all(0);
    qi_atomic_store_release_u32(&is_over, 0);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&threads[i], NULL, sleep_and_wake, (void *)i));
    for (uint64_t i = 0; i < forks; i++)
        CHECK(child_calls(wake_and_end, PATIENCE_S));
    qi_atomic_store_release_u32(&is_over, 1);
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_join(threads[i], NULL));
    wake_and_end();
}

static void *sleep_slowly(void *unused)
{
    CHECK_OK(quire_memory_sleep(memory, "0", QUIRE_SLEEP_KEEP, NULL, NULL));
    return unused;
}

static void *wake_slowly(void *unused)
{
    CHECK_OK(quire_memory_wake(memory, "0", NULL));
    return unused;
}

/* Forks while a thread waits for the backend. */
static void fork_amid(void *(*call)(void *))
{
    pthread_t thread;
    fake.slow_ms = 150;
    CHECK(!pthread_create(&thread, NULL, call, NULL));
    nanosleep(&(struct timespec){.tv_nsec = 50 * 1000000}, NULL);
    CHECK(child_calls(wake_and_end, PATIENCE_S));
    CHECK(!pthread_join(thread, NULL));
    fake.slow_ms = 0;
}

static void amid_calls_of_the_backend(void)
{
    fake_init(&fake);
    fake_offer_growth(&fake);
    fake.info.survives_fork = true;
    fake_offer_fork(&fake);
    CHECK_OK(fake_open(&fake, &MAPPED_BLOCKS, &device));
    make_all(1);
    fork_amid(sleep_slowly);
    CHECK_OK(quire_memory_sleep(memory, "1/", QUIRE_SLEEP_KEEP, NULL, NULL));
    fork_amid(wake_slowly);
    wake_and_end();
}

int main(int argc, char **argv)
{
    forks = plain_option(argc, argv, "steps", 30);
    if (HAS_THREAD_SANITIZER) {
        plain_skip("forks beside threads that sleep and wake allocations",
                   "the thread sanitizer does not support forks beside threads");
        return plain_end();
    }
    plain_case("forks amid calls of the backend", amid_calls_of_the_backend);
    plain_case("forks beside threads that sleep and wake allocations", beside_threads);
    return plain_end();
}
