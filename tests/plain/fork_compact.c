/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * fork_compact.c - forks while another thread compacts a memory, also amid the copy of a move, or
 * evicts and wakes: in the child each allocation has its contents, wakes if it sleeps, is found at
 * its address, can be freed, and another compaction can begin, or the former go on.
 *
 *     fork_compact [--steps FORKS]
 */
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "quire/compact.h"
#include "quire/elastic.h"
#include "quire/evict.h"
#include "quire/host.h"
#include "quire/quire.h"
#include "src/base/atomic.h"
#include "src/core/state/memory.h"
#include "tests/support/child.h"
#include "tests/support/fake.h"
#include "tests/support/mapped_blocks.h"
#include "tests/support/plain.h"
#include "tests/support/random.h"
#include "tests/support/thread_sanitizer.h"

enum { KIB = 1024, PAGE = 64 * KIB, LARGEST = 4 * KIB, PATIENCE_S = 60, SLOW_MS = 150 };
enum { MADE = 150, FILLERS = 2, FILL = 100 };

static uint64_t forks;
static fake_backend fake;
static quire_device *device;
static quire_memory *memory;
static quire_allocation made[MADE];
static quire_compaction *former; /* that the vanished thread was in a step of */
static qi_atomic_u32 is_over, is_slow, copies, moved;

/* ---- the memory ----------------------------------------------------------------------------- */

static uint64_t size_of(uint64_t i)
{
    return 16 + i * 977 % (LARGEST - 16);
}

static void write_bytes(uint64_t i)
{
    unsigned char bytes[LARGEST];
    memset(bytes, (int)(1 + i), size_of(i));
    CHECK_OK(quire_write(memory, made[i], 0, bytes, size_of(i)));
}

static void expect_bytes(uint64_t i)
{
    unsigned char bytes[LARGEST], expected[LARGEST];
    memset(expected, (int)(1 + i), size_of(i));
    CHECK_OK(quire_read(memory, made[i], 0, bytes, size_of(i)));
    CHECK(!memcmp(bytes, expected, size_of(i)));
}

static void create(quire_memory_flags required, uint32_t shards)
{
    CHECK_OK(quire_memory_create(device,
                                 &(quire_memory_options){.kind.required = required,
                                                         .shards = shards,
                                                         .movable = true,
                                                         .find_by_address = true,
                                                         .pages.page_size = PAGE},
                                 &memory));
}

static void make(uint64_t i)
{
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = size_of(i)}, &made[i]));
    write_bytes(i);
}

/* ---- the child ------------------------------------------------------------------------------ */

static void look_at_all(void)
{
    quire_allocation_info info;
    quire_allocation found;
    qi_atomic_store_release_u32(&is_slow, 0);
    CHECK_OK(quire_memory_check(memory));
    CHECK_OK(quire_memory_wake(memory, NULL, NULL));
    for (uint64_t i = 0; i < MADE; i++) {
        if (!made[i].id)
            continue;
        expect_bytes(i);
        CHECK_OK(quire_allocation_get_info(memory, made[i], &info));
        CHECK_OK(quire_memory_find(memory, info.address, &found));
        CHECK_EQ(found.id, made[i].id);
    }
    CHECK_OK(quire_memory_check(memory));
}

static uint64_t compact_to_the_end(quire_compaction *c)
{
    quire_compact_stats stats = {.moves = 0};
    while (!stats.is_complete)
        CHECK_OK(quire_compact_step(c, &(quire_compact_limits){.moves = 7}, &stats));
    look_at_all();
    return stats.moves;
}

/* What vanished threads had in hand stays taken until the memory is destroyed. */
static void end_all(void)
{
    for (uint64_t i = 0; i < MADE; i++)
        if (made[i].id)
            CHECK_OK(quire_free(memory, made[i]));
    CHECK_OK(quire_memory_check(memory));
    quire_memory_destroy_all(&memory);
    CHECK_OK(quire_device_destroy(&device));
    CHECK(!fake.pages);
}

/* Another compaction begins. Some are freed before it. */
static void begin_another(void)
{
    quire_compaction *c;
    look_at_all();
    CHECK_OK(quire_compact_begin(memory, &c));
    for (uint64_t i = 0; i < MADE; i += 3)
        if (made[i].id) {
            CHECK_OK(quire_free(memory, made[i]));
            made[i].id = 0;
        }
    compact_to_the_end(c);
    make(0);
    quire_compact_end(&c);
    end_all();
}

/* The former one goes on, as soon as there is no other. */
static void go_on(void)
{
    quire_compaction *c;
    look_at_all();
    CHECK_OK(quire_compact_begin(memory, &c));
    CHECK_FAILS(quire_compact_step(former, NULL, NULL), QUIRE_ERROR_BUSY);
    quire_compact_end(&c);
    CHECK(compact_to_the_end(former));
    CHECK_FAILS(quire_compact_begin(memory, &c), QUIRE_ERROR_BUSY);
    quire_compact_end(&former);
    begin_another();
}

/* Ending the former one does not end another. */
static void end_former(void)
{
    quire_compaction *c, *second;
    look_at_all();
    CHECK_OK(quire_compact_begin(memory, &c));
    quire_compact_end(&former);
    CHECK_FAILS(quire_compact_begin(memory, &second), QUIRE_ERROR_BUSY);
    compact_to_the_end(c);
    quire_compact_end(&c);
    for (uint64_t i = 0; i < MADE; i++) {
        if (made[i].id)
            CHECK_OK(quire_free(memory, made[i]));
        made[i].id = 0;
    }
    CHECK_OK(quire_memory_destroy(&memory)); /* also what the vanished thread had taken */
    CHECK_OK(quire_device_destroy(&device));
    CHECK(!fake.pages);
}

/* ---- beside threads ------------------------------------------------------------------------- */

static void evict_and_wake(void)
{
    CHECK_OK(quire_memory_evict(memory, &(quire_evict_options){.bytes = 8 * LARGEST}, NULL));
    CHECK_OK(quire_memory_wake(memory, NULL, NULL));
}

static void *compact(void *unused)
{
    while (!qi_atomic_load_acquire_u32(&is_over)) {
        evict_and_wake();
        quire_compaction *c;
        quire_compact_stats stats = {.moves = 0};
        CHECK_OK(quire_compact_begin(memory, &c));
        while (!stats.is_complete)
            CHECK_OK(quire_compact_step(c, &(quire_compact_limits){.moves = 5}, &stats));
        quire_compact_end(&c);
        qi_atomic_add_release_u32(&moved, (uint32_t)stats.moves);
    }
    return unused;
}

/* Makes holes between the others all the time. */
static void *make_holes(void *number)
{
    test_random r = {(uintptr_t)number};
    quire_allocation fillers[FILL];
    while (!qi_atomic_load_acquire_u32(&is_over)) {
        for (int i = 0; i < FILL; i++)
            CHECK_OK(quire_allocate(memory,
                                    &(quire_allocation_options){.size = random_size(&r, LARGEST)},
                                    &fillers[i]));
        for (int i = 0; i < FILL; i++)
            CHECK_OK(quire_free(memory, fillers[i]));
    }
    return NULL;
}

static void beside(uint32_t shards)
{
    pthread_t threads[FILLERS], compactor;
    CHECK_OK(quire_host_open(&(quire_host_options){.device.host_memory = &MAPPED_BLOCKS}, &device));
    create(QUIRE_HOST_VISIBLE, shards);
    qi_atomic_store_release_u32(&is_over, 0);
    qi_atomic_store_release_u32(&moved, 0);
    for (uintptr_t i = 0; i < FILLERS; i++)
        CHECK(!pthread_create(&threads[i], NULL, make_holes, (void *)i));
    for (uint64_t i = 0; i < MADE; i++)
        make(i); /* between those of the threads */
    CHECK(!pthread_create(&compactor, NULL, compact, NULL));
    for (uint64_t i = 0; i < forks; i++)
        CHECK(child_calls(begin_another, PATIENCE_S));
    while (!qi_atomic_load_acquire_u32(&moved))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    qi_atomic_store_release_u32(&is_over, 1);
    for (int i = 0; i < FILLERS; i++)
        CHECK(!pthread_join(threads[i], NULL));
    CHECK(!pthread_join(compactor, NULL));
    printf("# %" PRIu32 " moves\n", qi_atomic_load_acquire_u32(&moved));
    begin_another();
}

static void in_one_shard(void)
{
    beside(1);
}

static void in_several_shards(void)
{
    beside(3);
}

/* ---- amid a copy ---------------------------------------------------------------------------- */

static quire_result (*real_copy)(void *, const quire_copy_job *);

static quire_result slow_copy(void *state, const quire_copy_job *job)
{
    qi_atomic_add_release_u32(&copies, 1);
    if (qi_atomic_load_acquire_u32(&is_slow))
        nanosleep(&(struct timespec){.tv_nsec = SLOW_MS * 1000000L}, NULL);
    return real_copy(state, job);
}

static void *step(void *unused)
{
    CHECK_OK(quire_compact_step(former, &(quire_compact_limits){.moves = 3}, NULL));
    return unused;
}

static bool never_ends(void *user, uint64_t done, uint64_t total)
{
    (void)done;
    (void)total;
    CHECK(child_calls(begin_another, PATIENCE_S));
    return *(bool *)user = true;
}

/* The uses of a copy stay in its child. What the other thread moved does not move there. */
static void fork_in_progress(void)
{
    bool is_called = false;
    unsigned char byte;
    const quire_allocation kept = made[1];
    made[1].id = 0; /* in use in the child */
    CHECK_OK(
        quire_copy(&(quire_copy_options){.from = {.memory = memory, .allocation = kept},
                                         .host_to = &byte,
                                         .size = 1,
                                         .progress = {.goes_on = never_ends, .user = &is_called}},
                   NULL));
    made[1] = kept;
    CHECK(is_called);
}

static void do_begin_another(void)
{
    CHECK(child_calls(begin_another, PATIENCE_S));
}

static void do_go_on(void)
{
    CHECK(child_calls(go_on, PATIENCE_S));
}

static void do_end_former(void)
{
    CHECK(child_calls(end_former, PATIENCE_S));
}

static void amid_copies(void)
{
    static void (*const cases[])(void) = {do_begin_another, do_go_on, do_end_former,
                                          fork_in_progress};
    fake_init(&fake);
    fake_offer_copies(&fake);
    fake.info.survives_fork = true;
    fake_offer_fork(&fake);
    real_copy = fake.table.copy_pages;
    fake.table.copy_pages = slow_copy;
    CHECK_OK(fake_open(&fake, &MAPPED_BLOCKS, &device));
    create(QUIRE_DEVICE_LOCAL, 1);
    for (uint64_t i = 0; i < MADE; i++)
        make(i);
    for (uint64_t i = 2; i < MADE; i += 2) {
        CHECK_OK(quire_free(memory, made[i]));
        made[i].id = 0;
    }
    CHECK_OK(quire_compact_begin(memory, &former));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint32_t before = qi_atomic_load_acquire_u32(&copies);
        pthread_t thread;
        qi_atomic_store_release_u32(&is_slow, 1);
        CHECK(!pthread_create(&thread, NULL, step, NULL));
        while (qi_atomic_load_acquire_u32(&copies) == before)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        cases[i]();
        qi_atomic_store_release_u32(&is_slow, 0);
        CHECK(!pthread_join(thread, NULL));
        look_at_all();
    }
    quire_compact_end(&former);
    begin_another();
}

int main(int argc, char **argv)
{
    forks = plain_option(argc, argv, "steps", 30);
    if (HAS_THREAD_SANITIZER) {
        plain_skip("forks beside a compaction",
                   "the thread sanitizer does not support forks beside threads");
        return plain_end();
    }
    if (QI_IS_CHECKED) {
        plain_skip("forks beside a compaction", "checked builds move nothing");
        return plain_end();
    }
    plain_case("forks amid the copies of moves", amid_copies);
    plain_case("forks beside a compaction, in one shard", in_one_shard);
    plain_case("forks beside a compaction, in several shards", in_several_shards);
    return plain_end();
}
