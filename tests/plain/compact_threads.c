/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * compact_threads.c - threads make, use and free allocations, movable ones and others, while a
 * further thread compacts their memory in small steps. An allocation belongs to a different thread
 * at each use. Its bytes are a pattern that changes with every write. Further allocations are read
 * by all threads at once. With one shard, with several, with look-ups of addresses, and on the fake
 * backend with copies that fail.
 *
 *     compact_threads [--steps N] [--seed N]
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

#include "quire/compact.h"
#include "quire/host.h"
#include "quire/quire.h"
#include "src/core/state/memory.h"
#include "tests/support/failing_call.h"
#include "tests/support/movable_items.h"
#include "tests/support/plain.h"
#include "tests/support/random.h"

enum { KIB = 1024, PAGE = 64 * KIB, SMALLEST = 16, LARGEST = PAGE / 16 };
enum { THREADS = 4, SHARED = 32, SHARED_SIZE = 1000, BATCH = 12, PATIENCE_S = 120 };
static const uint64_t LIMIT = 6 * PAGE;

static uint64_t steps, seed;
static quire_device *device;
static quire_memory *memory;
static test_memory host_memory;
static fake_backend fake;
static bool finds; /* by address; then threads also look at allocations that they do not have */
static quire_allocation shared[SHARED];
static atomic_bool is_growing, is_over;
static atomic_uint_fast64_t moves, compactions, pages_freed, found, outdated, hooks;

/* ---- contents ------------------------------------------------------------------------------- */

static void expect_pattern(const unsigned char *bytes, uint64_t size, uint64_t key)
{
    unsigned char expected[LARGEST];
    random_bytes(expected, size, key);
    CHECK(!memcmp(bytes, expected, size));
}

static void write_pattern(quire_allocation handle, uint64_t size, uint64_t key)
{
    unsigned char bytes[LARGEST];
    random_bytes(bytes, size, key);
    CHECK_OK(quire_write(memory, handle, 0, bytes, size));
}

static void read_pattern(quire_allocation handle, uint64_t size, uint64_t key)
{
    unsigned char bytes[LARGEST];
    CHECK_OK(quire_read(memory, handle, 0, bytes, size));
    expect_pattern(bytes, size, key);
}

/* ---- items ---------------------------------------------------------------------------------- */

static uint64_t any_size(test_random *r)
{
    return SMALLEST - 1 + random_size(r, LARGEST - SMALLEST + 1);
}

static quire_allocation make(test_random *r, item *i)
{
    quire_allocation made;
    i->size = any_size(r);
    if (!is_served(request(memory, r, i->size, &made)))
        return (quire_allocation){0};
    i->key = random_next(r);
    write_pattern(made, i->size, i->key);
    return made;
}

static void map(test_random *r, item *i, quire_allocation handle)
{
    void *pointer;
    CHECK_OK(quire_map(memory, handle, &pointer));
    expect_pattern(pointer, i->size, i->key);
    i->key = random_next(r);
    random_bytes(pointer, i->size, i->key);
    sched_yield(); /* it stays meanwhile */
    expect_pattern(pointer, i->size, i->key);
    CHECK_OK(quire_unmap(memory, handle));
}

/* Whether an allocation is live that another thread may free. */
static bool is_live(quire_allocation handle, quire_allocation_info *info)
{
    quire_result result = quire_allocation_get_info(memory, handle, info);
    if (result)
        CHECK_FAILS(result, QUIRE_ERROR_STALE_HANDLE);
    return !result;
}

/* A hold keeps an allocation at its address. Without one the address may be outdated at once. */
static void look_up(test_random *r, const item *i, quire_allocation handle)
{
    const bool is_held = random_below(r, 2);
    quire_allocation other;
    quire_allocation_info info;
    if (is_held)
        CHECK_OK(quire_allocation_hold(memory, handle));
    CHECK_OK(quire_allocation_get_info(memory, handle, &info));
    const uint64_t at = random_below(r, 2) ? random_below(r, i->size) : 0;
    sched_yield(); /* so that it moves */
    const quire_result result = quire_memory_find(memory, info.address + at, &other);
    const bool is_same = !result && other.id == handle.id;
    if (is_held) {
        CHECK(is_same);
        CHECK_OK(quire_allocation_release(memory, handle));
    } else if (result) {
        CHECK_FAILS(result, QUIRE_ERROR_OUT_OF_RANGE);
    } else if (!is_same) {
        is_live(other, &info);
    }
    atomic_fetch_add(is_same ? &found : &outdated, 1);
}

static void use(test_random *r, item *i, quire_allocation handle)
{
    quire_allocation_info info;
    switch (random_below(r, 5)) {
    case 0:
        i->key = random_next(r);
        write_pattern(handle, i->size, i->key);
        break;
    case 1:
        if (!on_fake)
            map(r, i, handle);
        break;
    case 2:
        if (finds)
            look_up(r, i, handle);
        break;
    case 3:
        CHECK_OK(quire_allocation_get_info(memory, handle, &info));
        CHECK_EQ(info.requested, i->size);
        CHECK(info.offset + info.size <= PAGE);
        break;
    default:
        read_pattern(handle, i->size, i->key);
    }
}

/* A free waits for a move. It is BUSY only while another thread looks at the allocation. */
static void free_all(const quire_allocation *handles, uint64_t count)
{
    quire_result result;
    while ((result = quire_free_batch(memory, handles, count))) {
        CHECK(finds);
        CHECK_FAILS(result, QUIRE_ERROR_BUSY);
        sched_yield();
    }
}

static void end_item(item *i, quire_allocation handle)
{
    read_pattern(handle, i->size, i->key);
    if (finds)
        free_all(&handle, 1);
    else
        CHECK_OK(quire_free(memory, handle));
}

/* ---- several at once ------------------------------------------------------------------------ */

static void free_batch(test_random *r)
{
    item *taken[BATCH];
    quire_allocation handles[BATCH];
    uint32_t count = 0;
    for (uint32_t tries = 0; tries < BATCH; tries++) {
        item *i = take(r, &handles[count]);
        if (i && handles[count].id)
            taken[count++] = i;
        else if (i)
            put_back(i, handles[count]);
    }
    for (uint32_t at = 0; at < count; at++)
        read_pattern(handles[at], taken[at]->size, taken[at]->key);
    free_all(handles, count);
    for (uint32_t at = 0; at < count; at++)
        put_back(taken[at], (quire_allocation){0});
}

static void make_batch(test_random *r)
{
    item *taken[BATCH];
    quire_allocation handles[BATCH];
    const uint64_t size = any_size(r), key = random_next(r);
    uint32_t count = 0;
    for (uint32_t tries = 0; tries < BATCH; tries++) {
        item *i = take(r, &handles[count]);
        if (i && !handles[count].id)
            taken[count++] = i;
        else if (i)
            put_back(i, handles[count]);
    }
    const quire_allocation_options options = {.size = size, .movable = true};
    const bool is_made = is_served(quire_allocate_batch(memory, &options, handles, count));
    for (uint32_t at = 0; at < count; at++) {
        taken[at]->size = size;
        taken[at]->key = key + at;
        if (is_made)
            write_pattern(handles[at], size, key + at);
        put_back(taken[at], is_made ? handles[at] : (quire_allocation){0});
    }
}

/* ---- what no thread has --------------------------------------------------------------------- */

static void read_shared(test_random *r)
{
    const uint64_t number = random_below(r, SHARED);
    void *pointer;
    read_pattern(shared[number], SHARED_SIZE, 1 + number);
    if (on_fake)
        return;
    CHECK_OK(quire_map(memory, shared[number], &pointer));
    expect_pattern(pointer, SHARED_SIZE, 1 + number);
    CHECK_OK(quire_unmap(memory, shared[number]));
}

/* Also in the thread that moves allocations. */
static void read_in_hook(void *user, quire_memory *of, const quire_event *event)
{
    (void)user;
    (void)of;
    (void)event;
    for (uint64_t i = 0; i < SHARED; i++)
        read_pattern(shared[i], SHARED_SIZE, 1 + i);
    atomic_fetch_add(&hooks, 1);
}

/* Another thread may free it meanwhile. */
static void look_at_any(test_random *r)
{
    const quire_allocation handle = {atomic_load(&items[random_below(r, ITEMS)].id)};
    quire_allocation_info info;
    if (!finds || !handle.id || handle.id == TAKEN)
        return;
    if (is_live(handle, &info))
        CHECK(info.requested <= LARGEST && info.offset + info.size <= PAGE);
}

static void manage(test_random *r)
{
    quire_memory_stats stats;
    switch (random_below(r, 3)) {
    case 0:
        CHECK_OK(quire_memory_trim(memory, random_below(r, LIMIT), NULL));
        break;
    case 1:
        CHECK_OK(quire_memory_check(memory));
        break;
    default:
        CHECK_OK(quire_memory_get_stats(memory, &stats));
        CHECK(stats.reserved_bytes <= LIMIT);
        CHECK(stats.live_bytes <= stats.reserved_bytes);
    }
}

/* ---- threads -------------------------------------------------------------------------------- */

/* The memory grows and shrinks in turns, so that holes arise. */
static void step(test_random *r)
{
    const uint64_t what = random_below(r, 100);
    const bool grows = atomic_load(&is_growing);
    quire_allocation handle;
    if (random_below(r, 400) == 0)
        atomic_store(&is_growing, !grows);
    if (what < 2)
        manage(r);
    else if (what < 6)
        grows ? make_batch(r) : free_batch(r);
    else if (what < 12)
        read_shared(r);
    else if (what < 20)
        look_at_any(r);
    if (what < 20)
        return;
    item *i = take(r, &handle);
    if (!i)
        return;
    if (!handle.id) {
        if (what < (grows ? 90 : 40))
            handle = make(r, i);
    } else if (what < (grows ? 30 : 50)) {
        end_item(i, handle);
        handle.id = 0;
    } else {
        use(r, i, handle);
    }
    put_back(i, handle);
}

/* Enough that moves meet calls, whatever the schedule. */
static bool has_moved_enough(void)
{
    return atomic_load(&moves) >= 1 + steps / 20;
}

static void *work(void *seed_)
{
    test_random r = {(uintptr_t)seed_};
    const time_t begun = time(NULL);
    for (uint64_t i = 0; i < steps / THREADS || !has_moved_enough(); i++) {
        CHECK(time(NULL) - begun < PATIENCE_S);
        step(&r);
    }
    return NULL;
}

/* A step that fails leaves all allocations as its stats say, and the next one goes on. */
static void compact_once(test_random *r)
{
    quire_compaction *c, *second;
    quire_compact_stats stats = {.moves = 0};
    CHECK_OK(quire_compact_begin(memory, &c));
    CHECK_FAILS(quire_compact_begin(memory, &second), QUIRE_ERROR_BUSY);
    for (uint64_t left = 1 + random_below(r, 200); left && !stats.is_complete; left--) {
        const quire_compact_limits limits = {
            .moves = 1 + random_below(r, 20),
            .bytes = random_below(r, 4) ? 0 : 1 + random_below(r, 4 * LARGEST),
            .records = random_below(r, 4) ? 0 : 1 + random_below(r, 50),
            .largest_free = random_below(r, 2) ? 0 : 1 + random_below(r, 4 * LARGEST)};
        const uint64_t before = stats.moves;
        const quire_result result = quire_compact_step(c, &limits, &stats);
        if (result) {
            CHECK(on_fake);
            CHECK_FAILS(result, failed % 2 ? QUIRE_ERROR_OUT_OF_DEVICE_MEMORY
                                           : QUIRE_ERROR_BACKEND_FAILURE);
        }
        CHECK(stats.moves - before <= limits.moves);
        atomic_fetch_add(&moves, stats.moves - before);
    }
    atomic_fetch_add(&pages_freed, stats.pages_freed);
    atomic_fetch_add(&compactions, 1);
    quire_compact_end(&c);
}

static void *compact(void *seed_)
{
    test_random r = {(uintptr_t)seed_};
    while (!atomic_load(&is_over))
        compact_once(&r);
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
    };
    const quire_allocation_options all = {.size = SHARED_SIZE, .movable = true};
    open_device(&fake, &host_memory, &device);
    CHECK_OK(quire_memory_create(device, &options, &memory));
    served = refused = moves = compactions = pages_freed = found = outdated = hooks = 0;
    is_growing = true;
    is_over = false;
    for (uint64_t i = 0; i < SHARED; i++) {
        CHECK_OK(quire_allocate(memory, &all, &shared[i]));
        write_pattern(shared[i], SHARED_SIZE, 1 + i);
    }
    CHECK_OK(quire_memory_set_hook(
        memory, &(quire_hook){.event = read_in_hook, .kinds = QUIRE_EVENT_PAGE_GONE}));
}

static void end(void)
{
    quire_memory_stats stats;
    CHECK_OK(quire_memory_set_hook(memory, NULL));
    CHECK_OK(quire_memory_check(memory));
    for (item *i = items; i < items + ITEMS; i++) {
        if (i->id)
            end_item(i, (quire_allocation){i->id});
        i->id = 0;
    }
    for (uint64_t i = 0; i < SHARED; i++) {
        read_pattern(shared[i], SHARED_SIZE, 1 + i);
        CHECK_OK(quire_free(memory, shared[i]));
    }
    CHECK_OK(quire_memory_trim(memory, 0, NULL));
    CHECK_OK(quire_memory_check(memory));
    CHECK_OK(quire_memory_get_stats(memory, &stats));
    CHECK_EQ(stats.allocation_count + stats.live_bytes + stats.reserved_bytes, 0);
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
    printf("# %" PRIu64 " calls were served and %" PRIu64 " refused; %" PRIu64
           " compactions made %" PRIu64 " moves and freed %" PRIu64 " pages; %" PRIu64
           " addresses were found and %" PRIu64 " outdated; %" PRIu64 " hooks\n",
           (uint64_t)served, (uint64_t)refused, (uint64_t)compactions, (uint64_t)moves,
           (uint64_t)pages_freed, (uint64_t)found, (uint64_t)outdated, (uint64_t)hooks);
    CHECK(!finds || found);
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

static quire_result (*real_copy)(void *, const quire_copy_job *);

static quire_result failing_copy(void *state, const quire_copy_job *job)
{
    sched_yield(); /* so that calls meet what moves */
    quire_result result = fail_now_and_then();
    return result ? result : real_copy(state, job);
}

static void with_failures(void)
{
    on_fake = true;
    finds = true;
    failed = 0;
    fake_init(&fake);
    fake_offer_copies(&fake);
    real_copy = fake.table.copy_pages;
    fake.table.copy_pages = failing_copy;
    run_threads(2);
    CHECK(failed);
}

int main(int argc, char **argv)
{
    steps = plain_option(argc, argv, "steps", 20000);
    seed = plain_option(argc, argv, "seed", 1);
    printf("# --seed %" PRIu64 " --steps %" PRIu64 "\n", seed, steps);
    if (QI_IS_CHECKED) {
        plain_skip("threads beside a compaction", "checked builds move nothing");
        return plain_end();
    }
    plain_case("threads beside a compaction, in one shard", one_shard);
    plain_case("threads beside a compaction, in several shards", several_shards);
    plain_case("threads find addresses beside a compaction", look_ups);
    plain_case("threads beside a compaction whose copies fail", with_failures);
    return plain_end();
}
