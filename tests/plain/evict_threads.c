/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * evict_threads.c - threads make, use and free more than their memory holds: what they hold is
 * awake, requests evict what nobody holds, and a further thread compacts. Several threads wake the
 * same allocations, or free what sleeps. With one shard, with several, with look-ups of addresses,
 * and on the fake backend with copies that fail.
 *
 *     evict_threads [--steps N] [--seed N]
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#include "quire/compact.h"
#include "quire/elastic.h"
#include "quire/evict.h"
#include "quire/host.h"
#include "quire/quire.h"
#include "src/core/state/memory.h"
#include "tests/support/failing_call.h"
#include "tests/support/movable_items.h"
#include "tests/support/plain.h"
#include "tests/support/random.h"

enum { KIB = 1024, PAGE = 64 * KIB, SMALLEST = 16, LARGEST = PAGE / 16 };
enum { THREADS = 4, SHARED = 32 };
static const uint64_t LIMIT = 6 * PAGE;

static uint64_t steps, seed;
static quire_device *device;
static quire_memory *memory;
static test_memory host_memory;
static fake_backend fake;
static bool finds;
static item shared[SHARED]; /* which no thread takes */
static atomic_bool is_over;
static atomic_uint_fast64_t evictions, wakes, met, freed_asleep;

/* ---- contents ------------------------------------------------------------------------------- */

/* A copy of the fake backend may fail. */
static void write_pattern(quire_allocation handle, const item *i)
{
    unsigned char bytes[LARGEST];
    random_bytes(bytes, i->size, i->key);
    quire_result result;
    while ((result = quire_write(memory, handle, 0, bytes, i->size)) && on_fake)
        continue;
    CHECK_OK(result);
}

static void read_pattern(quire_allocation handle, const item *i)
{
    unsigned char bytes[LARGEST], expected[LARGEST];
    quire_result result;
    while ((result = quire_read(memory, handle, 0, bytes, i->size)) && on_fake)
        continue;
    CHECK_OK(result);
    random_bytes(expected, i->size, i->key);
    CHECK(!memcmp(bytes, expected, i->size));
}

/* ---- holding -------------------------------------------------------------------------------- */

/* Returns false if the limit, or a call that fails, refuses its place. Another thread may evict it
   again at once, or read it at this moment. */
static bool hold(quire_allocation handle)
{
    quire_result result;
    while ((result = quire_allocation_hold(memory, handle))) {
        CHECK_FAILS(result, QUIRE_ERROR_WRONG_STATE);
        result = quire_wake(memory, handle);
        atomic_fetch_add(result == QUIRE_ERROR_BUSY ? &met : &wakes, 1);
        if (result == QUIRE_ERROR_BUSY)
            sched_yield();
        else if (!is_served(result))
            return false;
    }
    return true;
}

static void release(quire_allocation handle)
{
    CHECK_OK(quire_allocation_release(memory, handle));
}

/* Returns whether anything has left. */
static bool evict(quire_memory *of, const quire_evict_options *options)
{
    uint64_t bytes;
    const quire_result result = quire_memory_evict(of, options, &bytes);
    CHECK(!result || on_fake);
    atomic_fetch_add(&evictions, bytes != 0);
    return bytes != 0;
}

/* Evicts as much as a request needs, until nothing is left that may leave. */
static bool make_room(void *user, quire_memory *of, const quire_out_of_memory *event)
{
    (void)user;
    return evict(of, &(quire_evict_options){.bytes = event->size * event->times});
}

/* ---- items ---------------------------------------------------------------------------------- */

/* BUSY while another thread reads or looks at it. */
static void end_item(quire_allocation handle)
{
    quire_allocation_info info;
    CHECK_OK(quire_allocation_get_info(memory, handle, &info));
    atomic_fetch_add(&freed_asleep, info.asleep);
    quire_result result;
    while ((result = quire_free(memory, handle))) {
        CHECK_FAILS(result, QUIRE_ERROR_BUSY);
        sched_yield();
    }
}

/* It may leave before it is written. */
static quire_allocation make(test_random *r, item *i)
{
    quire_allocation made;
    i->size = SMALLEST + random_below(r, LARGEST - SMALLEST);
    i->key = random_next(r);
    if (!is_served(request(memory, r, i->size, &made)))
        return (quire_allocation){0};
    if (!hold(made)) {
        end_item(made);
        return (quire_allocation){0};
    }
    write_pattern(made, i);
    release(made);
    return made;
}

static void use(test_random *r, item *i, quire_allocation handle)
{
    quire_allocation other;
    quire_allocation_info info;
    if (!hold(handle))
        return;
    read_pattern(handle, i);
    if (random_below(r, 2)) {
        i->key = random_next(r);
        write_pattern(handle, i);
    }
    CHECK_OK(quire_allocation_get_info(memory, handle, &info));
    CHECK(!info.asleep && info.page != QUIRE_NO_PAGE);
    CHECK_EQ(info.requested, i->size);
    if (finds) {
        CHECK_OK(quire_memory_find(memory, info.address + random_below(r, i->size), &other));
        CHECK_EQ(other.id, handle.id);
    }
    if (random_below(r, 4) == 0)
        CHECK_OK(quire_touch(memory, handle));
    release(handle);
}

/* All threads wake and read these. */
static void read_shared(test_random *r)
{
    const item *i = &shared[random_below(r, SHARED)];
    const quire_allocation handle = {atomic_load(&i->id)};
    if (!hold(handle))
        return;
    read_pattern(handle, i);
    release(handle);
}

/* Another thread may free it meanwhile. */
static void look_at_any(test_random *r)
{
    const quire_allocation handle = {atomic_load(&items[random_below(r, ITEMS)].id)};
    quire_allocation_info info;
    if (!handle.id || handle.id == TAKEN)
        return;
    const quire_result result = quire_allocation_get_info(memory, handle, &info);
    if (result)
        CHECK_FAILS(result, QUIRE_ERROR_STALE_HANDLE);
    else
        CHECK_EQ(info.asleep, info.page == QUIRE_NO_PAGE);
}

/* ---- threads -------------------------------------------------------------------------------- */

static void wake_named(void)
{
    const quire_result result = quire_memory_wake(memory, "named", NULL);
    CHECK(!result || on_fake || result == QUIRE_ERROR_OVER_BUDGET || result == QUIRE_ERROR_BUSY);
}

static void manage(test_random *r)
{
    CHECK_OK(quire_memory_frame(memory));
    if (random_below(r, 2))
        evict(memory, &(quire_evict_options){.bytes = random_below(r, LIMIT / 4),
                                             .recent_frames = random_below(r, 3)});
    else
        wake_named();
}

static void step(test_random *r)
{
    const uint64_t what = random_below(r, 100);
    quire_allocation handle;
    if (what < 1)
        CHECK_OK(quire_memory_check(memory));
    else if (what < 4)
        manage(r);
    else if (what < 10)
        read_shared(r);
    else if (what < 16)
        look_at_any(r);
    if (what < 16)
        return;
    item *i = take(r, &handle);
    if (!i)
        return;
    if (!handle.id) {
        handle = make(r, i);
    } else if (what < 34) {
        end_item(handle);
        handle.id = 0;
    } else {
        use(r, i, handle);
    }
    put_back(i, handle);
}

static void *work(void *seed_)
{
    test_random r = {(uintptr_t)seed_};
    for (uint64_t i = 0; i < steps / THREADS; i++)
        step(&r);
    return NULL;
}

static void *compact(void *seed_)
{
    test_random r = {(uintptr_t)seed_};
    while (!atomic_load(&is_over)) {
        quire_compaction *c;
        CHECK_OK(quire_compact_begin(memory, &c));
        const quire_compact_limits limits = {.moves = 1 + random_below(&r, 20)};
        const quire_result result = quire_compact_step(c, &limits, NULL);
        CHECK(!result || on_fake);
        quire_compact_end(&c);
        sched_yield();
    }
    return NULL;
}

/* ---- memories ------------------------------------------------------------------------------- */

static void begin(uint32_t shards)
{
    const quire_memory_options options = {
        .kind.mask = on_fake ? 1 : 0,
        .kind.required = on_fake ? 0 : QUIRE_HOST_VISIBLE,
        .pages.page_size = PAGE,
        .shards = shards,
        .find_by_address = finds,
        .limit = LIMIT,
        .on_out_of_memory.callback = make_room,
    };
    open_device(&fake, &host_memory, &device);
    CHECK_OK(quire_memory_create(device, &options, &memory));
    served = refused = evictions = wakes = met = freed_asleep = 0;
    is_over = false;
    for (uint64_t i = 0; i < SHARED; i++) {
        quire_allocation made;
        shared[i].size = SMALLEST + 60 * i;
        shared[i].key = i;
        CHECK_OK(quire_allocate(
            memory, &(quire_allocation_options){.size = shared[i].size, .movable = true}, &made));
        write_pattern(made, &shared[i]);
        shared[i].id = made.id;
    }
}

/* One after the other: all together exceed the limit. */
static void end_all(item *all, uint64_t count)
{
    for (item *i = all; i < all + count; i++) {
        const quire_allocation handle = {i->id};
        if (handle.id && hold(handle)) {
            read_pattern(handle, i);
            release(handle);
        }
        if (handle.id)
            end_item(handle);
        i->id = 0;
    }
}

static void end(void)
{
    quire_memory_stats stats;
    CHECK_OK(quire_memory_check(memory));
    end_all(items, ITEMS);
    end_all(shared, SHARED);
    CHECK_OK(quire_memory_trim(memory, 0, NULL));
    CHECK_OK(quire_memory_check(memory));
    CHECK_OK(quire_memory_get_stats(memory, &stats));
    CHECK_EQ(stats.allocation_count + stats.live_bytes + stats.reserved_bytes, 0);
    CHECK_EQ(stats.asleep_count + stats.asleep_bytes, 0);
    CHECK_EQ(stats.allocations, stats.frees);
    CHECK_OK(quire_memory_destroy(&memory));
    CHECK_OK(quire_device_destroy(&device));
    CHECK_EQ(host_memory.blocks, 0);
    CHECK(!on_fake || fake.pages == 0);
}

static void run_threads(uint32_t shards)
{
    pthread_t threads[THREADS], compactor;
    begin(shards);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&threads[i], NULL, work, (void *)(uintptr_t)(seed * 1000 + i)));
    CHECK(!pthread_create(&compactor, NULL, compact, (void *)(uintptr_t)(seed * 1000 + THREADS)));
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_join(threads[i], NULL));
    atomic_store(&is_over, true);
    CHECK(!pthread_join(compactor, NULL));
    printf("# %" PRIu64 " requests were served and %" PRIu64 " refused; %" PRIu64
           " evictions, %" PRIu64 " wakes and %" PRIu64 " that met another call; %" PRIu64
           " were freed asleep\n",
           (uint64_t)served, (uint64_t)refused, (uint64_t)evictions, (uint64_t)wakes, (uint64_t)met,
           (uint64_t)freed_asleep);
    CHECK(steps < 1000 || (evictions > steps / 200 && wakes > steps / 200));
    end();
}

static void run_host(uint32_t shards, bool by_address)
{
    on_fake = false;
    finds = by_address;
    run_threads(shards);
}

static void one_shard(void)
{
    run_host(1, false);
}

static void several_shards(void)
{
    run_host(4, false);
}

static void look_ups(void)
{
    run_host(2, true);
}

/* ---- copies that fail ----------------------------------------------------------------------- */

static quire_result (*real_copy)(void *, const quire_native_page *, uint64_t, void *, uint64_t);

/* Every eviction calls it, and every read. */
static quire_result failing_copy(void *state, const quire_native_page *page, uint64_t offset,
                                 void *data, uint64_t size)
{
    sched_yield(); /* so that calls meet what moves */
    quire_result result = fail_now_and_then();
    return result ? result : real_copy(state, page, offset, data, size);
}

static void with_failures(void)
{
    on_fake = true;
    finds = false;
    fake_init(&fake);
    fake_offer_copies(&fake);
    real_copy = fake.table.copy_from_page;
    fake.table.copy_from_page = failing_copy;
    failed = 0;
    run_threads(2);
    CHECK(steps < 1000 || failed);
}

int main(int argc, char **argv)
{
    steps = plain_option(argc, argv, "steps", 20000);
    seed = plain_option(argc, argv, "seed", 1);
    printf("# --seed %" PRIu64 " --steps %" PRIu64 "\n", seed, steps);
    if (QI_IS_CHECKED) {
        plain_skip("threads beside evictions", "checked builds move nothing");
        return plain_end();
    }
    plain_case("threads hold what evictions leave, in one shard", one_shard);
    plain_case("threads hold what evictions leave, in several shards", several_shards);
    plain_case("threads find addresses beside evictions", look_ups);
    plain_case("threads beside evictions whose copies fail", with_failures);
    return plain_end();
}
