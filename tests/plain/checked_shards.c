/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * checked_shards.c - threads on a checked memory with several shards: they free each other's
 * allocations, in batches too, while pages are kept, moved and trimmed and everything is checked.
 * Only real corruption is reported, no request fails for lack of freed memory, nothing remains at
 * the end. Also for the thread sanitizer.
 *
 *     checked_shards [--steps N] [--seed N]
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "tests/support/plain.h"
#include "tests/support/random.h"
#include "tests/support/watched.h"

enum { THREADS = 6, SHARED = 48, BATCH = 20, PAGE = 65536, WHOLE = PAGE - 1000 };

static uint64_t steps, seed;
static watched w;
static _Atomic uint64_t shared[SHARED]; /* handles; the thread that takes one out frees it */
static _Atomic uint64_t spoiled, found;
static pthread_mutex_t at_zones = PTHREAD_MUTEX_INITIALIZER; /* a stray write or a check */

static void run(void *(*body)(void *))
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, body, (void *)i), 0);
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
}

/* ---- random work -------------------------------------------------------------------------- */

static void release(uint64_t id)
{
    quire_result result = id ? quire_free(w.memory, (quire_allocation){id}) : QUIRE_SUCCESS;
    CHECK(!result || result == QUIRE_ERROR_CORRUPTED);
    found += result == QUIRE_ERROR_CORRUPTED;
}

static void exchange(test_random *r)
{
    quire_allocation made;
    const quire_allocation_options options = {
        .size = random_size(r, 20000),
        .alignment = UINT64_C(1) << random_below(r, 10),
        .name = random_below(r, 4) ? NULL : "weights",
        .dedicated = random_below(r, 16) == 0,
        .zero = random_below(r, 8) == 0,
    };
    CHECK_OK(quire_allocate(w.memory, &options, &made));
    CHECK_OK(quire_write(w.memory, made, options.size - 1, "x", 1));
    if (random_below(r, 16) == 0) {
        quire_native native = watched_native(&w, made);
        pthread_mutex_lock(&at_zones);
        watched_spoil(&w, &native, (int64_t)(options.size + random_below(r, 64)));
        pthread_mutex_unlock(&at_zones);
        spoiled++;
    }
    release(atomic_exchange(&shared[random_below(r, SHARED)], made.id));
}

/* Allocates many at once; frees as many, made by any thread. */
static void exchange_many(test_random *r)
{
    quire_allocation many[BATCH];
    uint64_t first = random_below(r, SHARED), taken = 0;
    const quire_allocation_options options = {.size = random_size(r, 3000)};
    CHECK_OK(quire_allocate_batch(w.memory, &options, many, BATCH));
    for (int i = 0; i < BATCH; i++) {
        uint64_t id = atomic_exchange(&shared[(first + (unsigned)i) % SHARED], many[i].id);
        if (id)
            many[taken++].id = id;
    }
    quire_result result = quire_free_batch(w.memory, many, taken);
    CHECK(!result || result == QUIRE_ERROR_CORRUPTED);
}

static bool count_item(void *user, const quire_item *item)
{
    ++*(uint64_t *)user;
    return item->size != 0;
}

static void look_or_trim(test_random *r)
{
    uint64_t items = 0;
    quire_memory_stats stats;
    switch (random_below(r, 5)) {
    case 0:
        CHECK_OK(quire_memory_walk(w.memory, count_item, &items));
        break;
    case 1:
        CHECK_OK(quire_memory_get_stats(w.memory, &stats));
        CHECK(stats.requested_bytes <= stats.live_bytes);
        CHECK(stats.live_bytes <= stats.reserved_bytes);
        break;
    case 2:
        CHECK_OK(quire_memory_trim(w.memory, random_below(r, 4) * PAGE, NULL));
        break;
    case 3:
        CHECK_OK(quire_memory_preallocate(w.memory, random_below(r, 8) * PAGE));
        break;
    default: {
        pthread_mutex_lock(&at_zones);
        quire_result result = quire_memory_check(w.memory);
        pthread_mutex_unlock(&at_zones);
        CHECK(!result || (result == QUIRE_ERROR_CORRUPTED && spoiled));
    }
    }
}

static void *work(void *number)
{
    test_random r = {.state = seed + (uintptr_t)number};
    for (uint64_t i = 0; i < steps; i++) {
        uint64_t what = random_below(&r, 64);
        if (what < 58)
            exchange(&r);
        else if (what < 62)
            exchange_many(&r);
        else
            look_or_trim(&r);
    }
    return NULL;
}

static void random_work(uint32_t kind, uint32_t shards, uint64_t retained)
{
    quire_memory_stats stats;
    spoiled = found = 0;
    watched_prepare(&w);
    w.is_quiet = true; /* more lines than the log keeps, from many threads */
    watched_open(&w, &(quire_memory_options){
                         .kind.mask = UINT32_C(1) << kind,
                         .shards = shards,
                         .pages = {.page_size = PAGE, .retained_empty_bytes = retained}});
    CHECK_OK(quire_memory_set_name_limit(w.memory, "w", UINT64_C(1) << 30));
    run(work);
    for (int i = 0; i < SHARED; i++)
        release(atomic_exchange(&shared[i], 0));
    CHECK_OK(quire_memory_check(w.memory));
    CHECK_OK(quire_memory_get_stats(w.memory, &stats));
    CHECK_EQ(stats.allocation_count + stats.live_bytes + stats.requested_bytes, 0);
    /* the rest by batches; the batch with the spoiled ones fails as a whole */
    CHECK(found <= spoiled);
    CHECK(found > 0);
    CHECK_OK(quire_memory_trim(w.memory, 0, NULL));
    CHECK_EQ(w.fake.pages, 0);
    CHECK_OK(quire_memory_destroy(&w.memory));
    watched_end(&w);
}

static void device_kind(void)
{
    random_work(KIND_DEVICE, 3, 0);
}

static void coherent_kind(void)
{
    random_work(KIND_COHERENT, 3, 1);
}

static void cached_kind(void)
{
    random_work(KIND_CACHED, 2, UINT64_C(6) * PAGE);
}

static void one_shard(void)
{
    random_work(KIND_COHERENT, 1, 1);
}

/* ---- freed memory is available ------------------------------------------------------------- */

static void *take_one_and_give_it_back(void *number)
{
    for (uint64_t i = 0; i < steps / 4; i++) {
        quire_allocation made;
        const quire_allocation_options options = {.size = WHOLE,
                                                  .dedicated = ((uintptr_t)number + i) % 3 == 0};
        CHECK_OK(quire_allocate(w.memory, &options, &made));
        CHECK_OK(quire_free(w.memory, made));
    }
    return NULL;
}

static void a_page_for_each_thread(void)
{
    watched_prepare(&w);
    watched_open(&w, &(quire_memory_options){.kind.mask = 1 << KIND_COHERENT,
                                             .limit = (uint64_t)THREADS * PAGE,
                                             .pages = {.page_size = PAGE}});
    run(take_one_and_give_it_back);
    CHECK_OK(quire_memory_check(w.memory));
    CHECK_STR(w.log, "");
    watched_end(&w);
}

int main(int argc, char **argv)
{
    steps = plain_option(argc, argv, "steps", 2000);
    seed = plain_option(argc, argv, "seed", 1);
    printf("# --steps %" PRIu64 " --seed %" PRIu64 "\n", steps, seed);
    plain_case("three shards, device-local, pages kept", device_kind);
    plain_case("three shards, coherent, no empty pages", coherent_kind);
    plain_case("two shards, not coherent, some pages kept", cached_kind);
    plain_case("one shard", one_shard);
    plain_case("a page for each thread is never refused", a_page_for_each_thread);
    return plain_end();
}
