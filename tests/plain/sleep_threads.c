/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * sleep_threads.c - several threads put allocations of their own names to sleep and wake them,
 * while they make, use and free ordinary and lazy ones, in one elastic memory with a limit.
 * Allocations of several threads share chunks. Further allocations belong to all threads: calls
 * that read them meet calls that put them to sleep. Every byte has a pattern. On the host backend,
 * and on the fake one with calls that fail.
 *
 *     sleep_threads [--steps N] [--seed N]
 */
#include <stdatomic.h>
#include <stdio.h>

#include "quire/elastic.h"
#include "quire/host.h"
#include "quire/quire.h"
#include "tests/support/failing_back.h"
#include "tests/support/fake.h"
#include "tests/support/plain.h"
#include "tests/support/random.h"

#define KIB UINT64_C(1024)

enum { THREADS = 4, ITEMS = 10, LENGTH = 6, SHARED = 2, LARGEST = 3 };
static const uint64_t CHUNK = 16 * KIB, ADDRESSES = 16 * 1024 * KIB, LIMIT = 40 * 16 * KIB;
static const uint64_t SHARED_SIZE = 40 * KIB;

typedef struct item {
    quire_allocation handle;
    uint64_t size, address;
    uint64_t keys[LENGTH]; /* of each chunk of a lazy one, 0: no memory; of another one the first */
    bool is_lazy, is_asleep, is_lost;
} item;

typedef struct worker {
    uint32_t number;
    test_random random;
    char prefix[4];
    item items[ITEMS];
} worker;

static uint64_t steps, seed;
static quire_device *device;
static quire_memory *memory;
static test_memory host_memory;
static fake_backend fake;
static quire_allocation shared[SHARED];
static atomic_uint_fast64_t sleeps, wakes, busy, unread;

/* ---- contents ------------------------------------------------------------------------------- */

static void write_pattern(quire_allocation handle, uint64_t offset, uint64_t size, uint64_t key)
{
    unsigned char bytes[LARGEST * 16 * 1024];
    random_bytes(bytes, size, key);
    CHECK_OK(quire_write(memory, handle, offset, bytes, size));
}

static void expect_pattern(const unsigned char *bytes, uint64_t size, uint64_t key)
{
    unsigned char expected[LARGEST * 16 * 1024];
    random_bytes(expected, size, key);
    CHECK(!memcmp(bytes, expected, size));
}

static void read_pattern(quire_allocation handle, uint64_t offset, uint64_t size, uint64_t key)
{
    unsigned char bytes[LARGEST * 16 * 1024];
    CHECK_OK(quire_read(memory, handle, offset, bytes, size));
    expect_pattern(bytes, size, key);
}

/* Writes all bytes that an awake allocation has. */
static void write_item(worker *w, item *i)
{
    i->is_lost = false;
    for (uint32_t at = 0; at < (i->is_lazy ? LENGTH : 1); at++)
        if (i->keys[at]) {
            i->keys[at] = random_next(&w->random) | 1;
            write_pattern(i->handle, at * CHUNK, i->is_lazy ? CHUNK : i->size, i->keys[at]);
        }
}

/* Verifies an allocation: its bytes, or that it has none. */
static void verify(const item *i)
{
    unsigned char byte;
    quire_allocation_info info;
    CHECK_OK(quire_allocation_get_info(memory, i->handle, &info));
    CHECK_EQ(info.address, i->address);
    CHECK(info.asleep == i->is_asleep);
    if (i->is_asleep)
        CHECK_FAILS(quire_read(memory, i->handle, 0, &byte, 1), QUIRE_ERROR_WRONG_STATE);
    for (uint32_t at = 0; !i->is_asleep && at < (i->is_lazy ? LENGTH : 1); at++)
        if (i->keys[at])
            read_pattern(i->handle, at * CHUNK, i->is_lazy ? CHUNK : i->size, i->keys[at]);
}

/* ---- allocations ---------------------------------------------------------------------------- */

static void make(worker *w, item *i)
{
    quire_allocation_info info;
    const bool is_lazy = random_below(&w->random, 3) == 0;
    const uint64_t size = is_lazy ? LENGTH * CHUNK : random_size(&w->random, LARGEST * CHUNK);
    const quire_allocation_options options = {
        .size = size, .lazy = is_lazy, .name = w->prefix, .info = &info};
    *i = (item){.size = size, .is_lazy = is_lazy};
    if (!is_served(quire_allocate(memory, &options, &i->handle))) {
        *i = (item){.size = 0};
        return;
    }
    i->address = info.address;
    i->keys[0] = !is_lazy;
    write_item(w, i);
}

static void end_item(item *i)
{
    verify(i);
    CHECK_OK(quire_free(memory, i->handle));
    *i = (item){.size = 0};
}

static void change_chunks(worker *w, item *i)
{
    const uint64_t first = random_below(&w->random, LENGTH);
    const uint64_t length = 1 + random_below(&w->random, LENGTH - first);
    const quire_view range = {i->handle, first * CHUNK, length * CHUNK};
    if (random_below(&w->random, 3) == 0) {
        CHECK_OK(quire_unback_range(memory, &range, 1, NULL));
        memset(&i->keys[first], 0, length * sizeof *i->keys);
        return;
    }
    if (!is_served(quire_back_range(memory, &range, 1)))
        return;
    for (uint64_t at = first; at < first + length; at++)
        if (!i->keys[at]) {
            i->keys[at] = random_next(&w->random) | 1;
            write_pattern(i->handle, at * CHUNK, CHUNK, i->keys[at]);
        }
}

/* ---- sleep ---------------------------------------------------------------------------------- */

/* No other thread uses allocations of this name: never BUSY. */
static void fall_asleep(worker *w)
{
    const bool discards = random_below(&w->random, 4) == 0;
    uint64_t bytes;
    CHECK_OK(quire_memory_sleep(memory, w->prefix,
                                discards ? QUIRE_SLEEP_DISCARD : QUIRE_SLEEP_KEEP, NULL, &bytes));
    CHECK_EQ(bytes % CHUNK, 0);
    atomic_fetch_add(&sleeps, 1);
    for (item *i = w->items; i < w->items + ITEMS; i++)
        if (i->handle.id && !i->is_asleep) {
            i->is_asleep = true;
            i->is_lost = discards;
        }
}

/* A refusal leaves all asleep, with their contents. */
static void wake(worker *w)
{
    uint64_t bytes;
    const bool is_awake = is_served(quire_memory_wake(memory, w->prefix, &bytes));
    CHECK(is_awake || !bytes);
    atomic_fetch_add(&wakes, is_awake);
    for (item *i = w->items; i < w->items + ITEMS; i++) {
        if (!i->handle.id)
            continue;
        i->is_asleep &= !is_awake;
        if (i->is_lost && !i->is_asleep)
            write_item(w, i);
        verify(i);
    }
}

/* Those of all threads: BUSY while another call reads them, or changes them. */
static void change_shared(worker *w)
{
    uint64_t bytes;
    const bool awake = random_below(&w->random, 2);
    quire_result result =
        awake ? quire_memory_wake(memory, "shared", &bytes)
              : quire_memory_sleep(memory, "shared", QUIRE_SLEEP_KEEP, NULL, &bytes);
    if (result == QUIRE_ERROR_BUSY) {
        CHECK_FAILS(result, QUIRE_ERROR_BUSY);
        CHECK_EQ(bytes, 0);
        atomic_fetch_add(&busy, 1);
    } else if (awake) {
        is_served(result);
    } else {
        CHECK_OK(result);
    }
}

static void read_shared(worker *w)
{
    unsigned char bytes[40 * 1024];
    const uint64_t number = random_below(&w->random, SHARED);
    quire_result result = quire_read(memory, shared[number], 0, bytes, SHARED_SIZE);
    if (result) {
        CHECK_FAILS(result, QUIRE_ERROR_WRONG_STATE);
        atomic_fetch_add(&unread, 1);
        return;
    }
    expect_pattern(bytes, SHARED_SIZE, 1 + number);
}

/* ---- threads -------------------------------------------------------------------------------- */

static void manage(worker *w)
{
    quire_memory_stats stats;
    switch (random_below(&w->random, 4)) {
    case 0:
        CHECK_OK(quire_memory_trim(memory, random_below(&w->random, LIMIT), NULL));
        break;
    case 1:
        CHECK_OK(quire_memory_set_limit(memory, LIMIT / 2 + random_below(&w->random, LIMIT / 2)));
        break;
    case 2:
        CHECK_OK(quire_memory_check(memory));
        break;
    default:
        CHECK_OK(quire_memory_get_stats(memory, &stats));
        CHECK(stats.reserved_bytes <= LIMIT);
        CHECK(stats.live_bytes <= stats.reserved_bytes);
        CHECK(stats.asleep_count <= THREADS * ITEMS + SHARED);
    }
}

static void step(worker *w)
{
    const uint64_t what = random_below(&w->random, 100);
    item *i = &w->items[random_below(&w->random, ITEMS)];
    if (what < 3)
        manage(w);
    else if (what < 8)
        fall_asleep(w);
    else if (what < 20)
        wake(w);
    else if (what < 25)
        change_shared(w);
    else if (what < 35)
        read_shared(w);
    else if (!i->handle.id)
        make(w, i);
    else if (what < 55)
        end_item(i);
    else if (i->is_asleep || what < 70)
        verify(i);
    else if (i->is_lazy)
        change_chunks(w, i);
    else
        write_item(w, i);
}

static void *work(void *worker_)
{
    worker *w = worker_;
    for (uint64_t i = 0; i < steps / THREADS; i++)
        step(w);
    for (item *i = w->items; i < w->items + ITEMS; i++)
        if (i->handle.id)
            end_item(i);
    return NULL;
}

/* ---- memories ------------------------------------------------------------------------------- */

static void begin(void)
{
    const quire_memory_options options = {.kind.required = QUIRE_HOST_VISIBLE,
                                          .elastic = true,
                                          .address_space = ADDRESSES,
                                          .pages.page_size = CHUNK,
                                          .limit = LIMIT};
    const quire_allocation_options all = {.size = SHARED_SIZE, .name = "shared"};
    open_device(&fake, &host_memory, &device);
    CHECK_OK(quire_memory_create(device, &options, &memory));
    served = refused = sleeps = wakes = busy = unread = 0;
    CHECK_OK(quire_memory_set_name_limit(memory, "0/", LIMIT)); /* checks compare its account */
    CHECK_OK(quire_memory_set_name_limit(memory, "shared", LIMIT));
    for (uint64_t i = 0; i < SHARED; i++) {
        CHECK_OK(quire_allocate(memory, &all, &shared[i]));
        write_pattern(shared[i], 0, SHARED_SIZE, 1 + i);
    }
}

static void end(void)
{
    quire_memory_stats stats;
    CHECK_OK(quire_memory_check(memory));
    CHECK_OK(quire_memory_set_limit(memory, 0));
    while (!is_served(quire_memory_wake(memory, "shared", NULL))) /* a call that fails */
        CHECK(on_fake);
    for (uint64_t i = 0; i < SHARED; i++) {
        read_pattern(shared[i], 0, SHARED_SIZE, 1 + i);
        CHECK_OK(quire_free(memory, shared[i]));
    }
    CHECK_OK(quire_memory_trim(memory, 0, NULL));
    CHECK_OK(quire_memory_check(memory));
    CHECK_OK(quire_memory_get_stats(memory, &stats));
    CHECK_EQ(stats.allocation_count + stats.live_bytes + stats.reserved_bytes, 0);
    CHECK_EQ(stats.asleep_count + stats.asleep_bytes, 0);
    CHECK(!on_fake || fake.page_bytes == 0);
    CHECK_OK(quire_memory_destroy(&memory));
    CHECK_OK(quire_device_destroy(&device));
    CHECK_EQ(host_memory.blocks, 0);
    CHECK(!on_fake || fake.pages == 0);
}

static void run_threads(void)
{
    static worker workers[THREADS];
    pthread_t threads[THREADS];
    begin();
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i] = (worker){.number = i, .random = {seed * 1000 + i}};
        snprintf(workers[i].prefix, sizeof workers[i].prefix, "%" PRIu32 "/", i);
        CHECK_EQ(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    printf("# %" PRIu64 " requests were served and %" PRIu64 " refused; %" PRIu64
           " sleeps and %" PRIu64 " wakes, %" PRIu64 " that met another call; %" PRIu64
           " reads of what slept\n",
           (uint64_t)served, (uint64_t)refused, (uint64_t)sleeps, (uint64_t)wakes, (uint64_t)busy,
           (uint64_t)unread);
    CHECK(served > steps / 8 && refused); /* the limit is tight, and not too tight */
    CHECK(wakes > steps / 50);
    end();
}

static void host_threads(void)
{
    on_fake = false;
    run_threads();
}

/* ---- calls that fail ------------------------------------------------------------------------ */

static void threads_with_failures(void)
{
    on_fake = true;
    fake_init(&fake);
    fake_offer_growth(&fake);
    real_back = fake.table.page_back;
    fake.table.page_back = failing_back;
    run_threads();
    CHECK(failed);
}

int main(int argc, char **argv)
{
    steps = plain_option(argc, argv, "steps", 20000);
    seed = plain_option(argc, argv, "seed", 1);
    printf("# --seed %" PRIu64 " --steps %" PRIu64 "\n", seed, steps);
    plain_case("threads put allocations of the host backend to sleep", host_threads);
    plain_case("threads put allocations of a backend that fails to sleep", threads_with_failures);
    return plain_end();
}
