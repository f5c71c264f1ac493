/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * shards.c - memories of 1, 2 and 7 shards, and memories whose number of shards grows, under 2 to
 * 24 threads that free allocations of other threads, while pages are created and destroyed, memory
 * runs short, and threads end and begin. On the fake backend allocations and frees also use
 * streams. For the thread sanitizer and for the release build.
 *
 *     shards [--threads N] [--steps N] [--seed N]
 */
#include <stdatomic.h>
#include <stdio.h>

#include "tests/support/grow_shards.h"
#include "tests/support/random.h"
#include "tests/support/state.h"
#include "tests/support/streams.h"

#define KIB UINT64_C(1024)

enum { MAX_THREADS = 32, TABLE = 192, ROUNDS = 3, MAX_BATCH = 24, STREAMS = 6 };

static bench b;
static uint64_t thread_count, steps, seed;
static bool is_short; /* pages are limited: requests may fail */
static uint64_t page_size;
static _Atomic uint64_t made, refused;
static quire_stream *streams[STREAMS]; /* NULL on a backend without streams */

/*
 * Live allocations, by handle; the thread that takes one out owns it. Its content follows from its
 * user data, a number of the thread that allocated it.
 */
static _Atomic uint64_t table[TABLE];
static _Atomic uint64_t next_user;

static void run_threads(uint64_t count, void *(*body)(void *))
{
    pthread_t threads[MAX_THREADS];
    for (uint64_t i = 0; i < count; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, body, (void *)(uintptr_t)i), 0);
    for (uint64_t i = 0; i < count; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
}

/* ---- the work of threads -------------------------------------------------------------------- */

static uint64_t last_word_at(uint64_t size)
{
    return size - sizeof(uint64_t);
}

static void fill(quire_allocation allocation, uint64_t size, uint64_t user)
{
    CHECK_OK(quire_write(b.memory, allocation, 0, &user, sizeof user));
    CHECK_OK(quire_write(b.memory, allocation, last_word_at(size), &user, sizeof user));
}

/* The caller owns it: it exists, with the content of the allocating thread. */
static void verify(quire_allocation allocation)
{
    quire_allocation_info info;
    uint64_t first = 0, last = 0;
    CHECK_OK(quire_allocation_get_info(b.memory, allocation, &info));
    CHECK_OK(quire_read(b.memory, allocation, 0, &first, sizeof first));
    CHECK_OK(quire_read(b.memory, allocation, last_word_at(info.requested), &last, sizeof last));
    CHECK_EQ(first, info.user_data);
    CHECK_EQ(last, info.user_data);
}

/* Frees in one of all possible ways; a stream's point may pass at any time, or never. */
static void verify_and_free(test_random *r, quire_allocation allocation)
{
    quire_stream *stream = streams[random_below(r, STREAMS)];
    uint64_t kind = stream ? random_below(r, 6) : 0;
    verify(allocation);
    if (kind == 1)
        CHECK_OK(quire_record_use(b.memory, allocation, streams[random_below(r, STREAMS)]));
    if (kind >= 2)
        CHECK_OK(quire_record_use(b.memory, allocation, stream));
    if (kind >= 3)
        CHECK_OK(quire_free_on_stream(b.memory, allocation, stream));
    else
        CHECK_OK(quire_free(b.memory, allocation));
    if (kind == 5)
        streams_pass(stream);
}

/* Publishes one for other threads; frees the one that was there. */
static void exchange(test_random *r, quire_allocation allocation)
{
    uint64_t old = atomic_exchange(&table[random_below(r, TABLE)], allocation.id);
    if (old)
        verify_and_free(r, (quire_allocation){old});
}

static bool is_made(quire_result result)
{
    if (result) {
        CHECK(is_short);
        CHECK(result == QUIRE_ERROR_OUT_OF_DEVICE_MEMORY || result == QUIRE_ERROR_TOO_MANY_PAGES);
        refused++;
        return false;
    }
    made++;
    return true;
}

static quire_allocation_options random_options(test_random *r)
{
    static const char *const names[] = {NULL, NULL, NULL, "named"};
    return (quire_allocation_options){
        .size = 16 + random_size(r, random_below(r, 32) ? page_size / 8 : page_size * 2),
        .alignment = UINT64_C(1) << random_below(r, 9),
        .offset_alignment = random_below(r, 16) ? 0 : 1 + random_below(r, 3000),
        .name = names[random_below(r, 4)],
        .user_data = ++next_user,
        .dedicated = random_below(r, 24) == 0,
        .zero = random_below(r, 16) == 0,
    };
}

/* Changes nothing where the number of shards is fixed. */
static void grow_now_and_then(uint64_t step)
{
    if (step % 50 == 0)
        grow_shards_soon(b.memory);
}

static void make_one(test_random *r)
{
    quire_allocation allocation;
    quire_allocation_options options = random_options(r);
    quire_stream *stream = random_below(r, 2) ? streams[random_below(r, STREAMS)] : NULL;
    options.stream = stream;
    if (!is_made(quire_allocate(b.memory, &options, &allocation)))
        return;
    fill(allocation, options.size, options.user_data);
    exchange(r, allocation);
}

static void make_batch(test_random *r)
{
    quire_allocation allocations[MAX_BATCH];
    quire_allocation_options options = {.size = 16 + random_below(r, 500),
                                        .user_data = ++next_user};
    uint64_t count = 1 + random_below(r, MAX_BATCH);
    if (!is_made(quire_allocate_batch(b.memory, &options, allocations, count)))
        return;
    for (uint64_t i = 0; i < count; i++) {
        fill(allocations[i], options.size, options.user_data);
        exchange(r, allocations[i]);
    }
}

static void free_batch(test_random *r)
{
    quire_allocation allocations[MAX_BATCH];
    uint64_t count = 0;
    for (uint64_t tries = 1 + random_below(r, MAX_BATCH); tries; tries--) {
        uint64_t id = atomic_exchange(&table[random_below(r, TABLE)], 0);
        if (!id)
            continue;
        allocations[count].id = id;
        verify(allocations[count++]);
    }
    CHECK_OK(quire_free_batch(b.memory, allocations, count));
}

static bool count_item(void *user, const quire_item *item)
{
    uint64_t *end = user; /* of the item before in the same page */
    if (item->offset == item->left_padding)
        *end = 0;
    CHECK_EQ(item->offset - item->left_padding, *end);
    *end = item->offset + item->size;
    return true;
}

static void look(test_random *r)
{
    quire_memory_stats stats;
    uint64_t end = 0;
    switch (random_below(r, 6)) {
    case 5:
        CHECK_OK(quire_collect(b.memory, NULL));
        break;
    case 0:
        CHECK_OK(quire_memory_check(b.memory));
        break;
    case 1:
        CHECK_OK(quire_memory_walk(b.memory, count_item, &end));
        break;
    case 2:
        CHECK_OK(quire_memory_trim(b.memory, random_below(r, 3) * page_size, NULL));
        break;
    case 3:
        CHECK(quire_memory_preallocate(b.memory, random_below(r, 3) * page_size) == QUIRE_SUCCESS ||
              is_short);
        break;
    default:
        CHECK_OK(quire_memory_get_stats(b.memory, &stats));
        CHECK(stats.live_bytes <= stats.reserved_bytes);
        CHECK(stats.empty_bytes <= stats.free_bytes);
        CHECK(stats.frees + stats.allocation_count == stats.allocations);
    }
}

static void *work(void *number)
{
    test_random r = {.state = seed + (uintptr_t)number * UINT64_C(7919)};
    for (uint64_t i = 0; i < steps; i++) {
        uint64_t choice = random_below(&r, 128);
        grow_now_and_then(i);
        if (choice < 90)
            make_one(&r);
        else if (choice < 96)
            make_batch(&r);
        else if (choice < 116)
            exchange(&r, (quire_allocation){0});
        else if (choice < 126)
            free_batch(&r);
        else
            look(&r);
    }
    return NULL;
}

/* ---- runs ----------------------------------------------------------------------------------- */

static void free_all(void)
{
    test_random r = {.state = seed};
    for (int i = 0; i < TABLE; i++) {
        uint64_t id = atomic_exchange(&table[i], 0);
        if (id)
            verify_and_free(&r, (quire_allocation){id});
    }
    /* the steps use the items one after the other */
    for (int round = 0; round < 2 * STREAMS; round++) {
        CHECK_OK(quire_collect(b.memory, NULL));
        for (int i = 0; i < STREAMS && streams[i]; i++)
            streams_pass(streams[i]);
    }
    CHECK_OK(quire_collect(b.memory, NULL));
}

static void begin_streams(void)
{
    for (int i = 0; i < STREAMS; i++)
        CHECK_OK(quire_stream_create(b.device, NULL, &streams[i]));
}

static void end_streams(void)
{
    for (int i = 0; i < STREAMS; i++)
        CHECK_OK(quire_stream_destroy(&streams[i]));
}

/* Nothing is lost and nothing remains, after frees by any thread. */
static void check_the_end(void)
{
    quire_memory_stats stats;
    quire_memory_info info;
    free_all();
    CHECK_OK(quire_memory_get_info(b.memory, &info));
    CHECK_OK(quire_memory_get_stats(b.memory, &stats));
    CHECK_EQ(stats.allocation_count, 0);
    CHECK_EQ(stats.live_bytes, 0);
    CHECK_EQ(stats.requested_bytes, 0);
    CHECK_EQ(stats.allocations, stats.frees);
    if (!info.checked) /* with streams some ranges are deferred */
        CHECK_EQ(stats.empty_bytes, stats.reserved_bytes);
    CHECK_OK(quire_memory_trim(b.memory, 0, NULL));
    CHECK_OK(quire_memory_check(b.memory));
    CHECK_OK(quire_memory_get_stats(b.memory, &stats));
    CHECK_EQ(stats.page_count, 0);
}

/* Rounds of new threads on one memory: each round frees what the last one left. */
static void run(bool on_fake, uint64_t budget, const quire_memory_options *options)
{
    static const uint64_t counts[ROUNDS] = {2, 5, 0};
    b.fail_at = 0;
    bench_begin(&b, on_fake);
    streams_offer(&b.fake.table);
    b.fake.page_budget = budget;
    is_short = budget || options->pages.max_pages;
    page_size = options->pages.page_size;
    CHECK(bench_open(&b) && bench_memory(&b, options));
    if (!options->shards && b.memory->max_shards > 1) /* not with the fit first */
        allow_shards(b.memory, 7);
    if (on_fake)
        begin_streams();
    for (int round = 0; round < ROUNDS; round++) {
        run_threads(counts[round] ? counts[round] : thread_count, work);
        CHECK_OK(quire_memory_check(b.memory));
        seed++;
    }
    CHECK(options->shards || b.memory->max_shards == 1 || is_short || qi_shard_count(b.memory) > 1);
    check_the_end();
    end_streams();
    bench_end(&b);
}

static const uint32_t shard_counts[] = {0, 1, 2, 7};
enum { SHARD_COUNTS = sizeof shard_counts / sizeof *shard_counts };

static void run_each(bool on_fake, uint64_t budget, quire_memory_options options)
{
    options.kind.required = QUIRE_HOST_VISIBLE;
    for (int i = 0; i < SHARD_COUNTS; i++) {
        options.shards = shard_counts[i];
        run(on_fake, budget, &options);
    }
}

static void on_the_host(void)
{
    run_each(false, 0, (quire_memory_options){.pages.page_size = 64 * KIB});
    run_each(false, 0,
             (quire_memory_options){.pages.page_size = 64 * KIB, .fit.algorithm = QUIRE_FIT_FIRST});
}

static void on_the_fake(void)
{
    run_each(true, 0, (quire_memory_options){.pages.page_size = 64 * KIB});
    run_each(true, 0,
             (quire_memory_options){.pages.page_size = 64 * KIB, .fit.algorithm = QUIRE_FIT_BUDDY});
}

static void empty_pages_go_at_once(void)
{
    quire_memory_options options = {.pages = {.page_size = 32 * KIB, .retained_empty_bytes = 1}};
    run_each(true, 0, options);
    options.pages.retained_empty_bytes = 0;
    options.pages.retention_nanoseconds = 100000;
    run_each(true, 0, options);
}

static void pages_are_short(void)
{
    refused = 0;
    run_each(true, 10 * 64 * KIB, (quire_memory_options){.pages.page_size = 64 * KIB});
    run_each(true, 0,
             (quire_memory_options){
                 .pages = {.page_size = 64 * KIB, .max_pages = 7, .retained_empty_bytes = 1}});
    CHECK(refused > 0);
}

/* ---- no failure while memory is free -------------------------------------------------------- */

/* The memory has one page, which moves from shard to shard and always has room for all threads. */
static void *hold_one(void *unused)
{
    for (uint64_t i = 0; i < steps; i++) {
        quire_allocation allocation;
        grow_now_and_then(i);
        CHECK_OK(quire_allocate(b.memory, &(quire_allocation_options){.size = KIB}, &allocation));
        CHECK_OK(quire_free(b.memory, allocation));
    }
    return unused;
}

static void run_for_one_page(uint32_t max_pages, uint64_t budget, uint64_t retained)
{
    static const uint64_t counts[ROUNDS] = {2, 3, 0};
    for (int i = 0; i < SHARD_COUNTS; i++)
        for (int round = 0; round < ROUNDS; round++) {
            quire_memory_options options = {.shards = shard_counts[i],
                                            .pages = {.page_size = 64 * KIB,
                                                      .max_pages = max_pages,
                                                      .retained_empty_bytes = retained}};
            b.fail_at = 0;
            bench_begin(&b, true);
            b.fake.page_budget = budget;
            CHECK(bench_open(&b) && bench_memory(&b, &options));
            if (!options.shards)
                allow_shards(b.memory, 7);
            run_threads(counts[round] ? counts[round] : thread_count, hold_one);
            /* in checked builds frees are deferred until then, and may request host memory */
            CHECK_OK(quire_memory_trim(b.memory, 64 * KIB, NULL));
            bench_end(&b);
        }
}

static void no_request_fails_while_memory_is_free(void)
{
    run_for_one_page(1, 0, 0);
    run_for_one_page(1, 0, 1);
    run_for_one_page(0, 64 * KIB, 0);
    run_for_one_page(0, 64 * KIB, 1);
}

/* ---- peaks -------------------------------------------------------------------------------- */

enum { MEETERS = 5, MAX_HELD = 200, MEETINGS = 40 };

static pthread_barrier_t meeting;

static uint32_t held_at(uint32_t round)
{
    return 1 + round * 37 % MAX_HELD;
}

/* Holds at most `most`, frees some in between, and ends with exactly `most`. */
static void rise_to(test_random *r, quire_allocation *held, uint32_t most)
{
    for (uint32_t count = 0; count < most;) {
        if (count && random_below(r, 3) == 0) {
            CHECK_OK(quire_free(b.memory, held[--count]));
            continue;
        }
        CHECK_OK(
            quire_allocate(b.memory, &(quire_allocation_options){.size = KIB}, &held[count++]));
    }
}

/* At each meeting every thread holds its most: the peak is then the sum, and never more. */
static void *meet(void *number)
{
    test_random r = {.state = seed + (uintptr_t)number};
    quire_allocation held[MAX_HELD];
    for (uint32_t round = 0; round < MEETINGS; round++) {
        rise_to(&r, held, held_at(round));
        pthread_barrier_wait(&meeting);
        for (uint32_t i = 0; i < held_at(round); i++)
            CHECK_OK(quire_free(b.memory, held[i]));
        pthread_barrier_wait(&meeting);
    }
    return NULL;
}

static void meet_in(uint32_t shards)
{
    uint32_t most = 0;
    quire_memory_stats stats;
    b.fail_at = 0;
    bench_begin(&b, true);
    CHECK(bench_open(&b) && bench_memory(&b, &(quire_memory_options){.shards = shards}));
    CHECK(!pthread_barrier_init(&meeting, NULL, MEETERS));
    run_threads(MEETERS, meet);
    pthread_barrier_destroy(&meeting);
    for (uint32_t round = 0; round < MEETINGS; round++)
        most = most < held_at(round) ? held_at(round) : most;
    CHECK_OK(quire_memory_check(b.memory));
    CHECK_OK(quire_memory_get_stats(b.memory, &stats));
    CHECK_EQ(stats.peak_allocation_count, MEETERS * most);
    CHECK_EQ(stats.peak_requested_bytes, MEETERS * most * KIB);
    bench_end(&b);
}

/* A thread frees in its own shard, so that no free waits in an inbox. In checked builds frees wait
   in the quarantine. */
static void peaks_are_exact(void)
{
    if (QI_IS_CHECKED)
        return;
    for (int i = 0; i < SHARD_COUNTS; i++)
        if (shard_counts[i])
            meet_in(shard_counts[i]);
}

int main(int argc, char **argv)
{
    thread_count = plain_option(argc, argv, "threads", 8);
    steps = plain_option(argc, argv, "steps", 8000) / 32;
    seed = plain_option(argc, argv, "seed", 1);
    CHECK(thread_count >= 1 && thread_count <= MAX_THREADS);
    printf("# threads %" PRIu64 " seed %" PRIu64 "\n", thread_count, seed);
    plain_case("frees by other threads on the host backend", on_the_host);
    plain_case("frees by other threads on the fake backend", on_the_fake);
    plain_case("frees by other threads without empty pages", empty_pages_go_at_once);
    plain_case("frees by other threads with few pages", pages_are_short);
    plain_case("no request fails while memory is free", no_request_fails_while_memory_is_free);
    plain_case("peaks of threads that meet are exact", peaks_are_exact);
    printf("# allocated %" PRIu64 " failed %" PRIu64 "\n", made, refused);
    return plain_end();
}
