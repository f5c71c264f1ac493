/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * lazy_threads.c - several threads give and take the memory of lazy allocations, and allocate
 * ordinary ones, in one elastic memory whose limit makes them take each other's free chunks. Some
 * lazy allocations belong to one thread, others to all, of which each thread changes chunks of its
 * own. Every byte of a chunk and of an allocation has a pattern, which its owner verifies before it
 * leaves. On the host backend, and on the fake one with calls that fail.
 *
 *     lazy_threads [--steps N] [--seed N]
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

/* Chunks of a shared allocation go to the threads in pairs. */
enum { THREADS = 4, LENGTH = 24, OWN = 4, SHARED = 3, SINGLES = 6, MAX_LIST = 4, PAIR = 2 };
static const uint64_t CHUNK = 16 * KIB, ADDRESSES = 16 * 1024 * KIB, LIMIT = 80 * 16 * KIB;

typedef struct lazy {
    quire_allocation handle;
    unsigned char *bytes;  /* of its map */
    uint64_t keys[LENGTH]; /* of the pattern of each chunk; 0: the chunk has no memory */
} lazy;

typedef struct single {
    quire_allocation handle;
    unsigned char *bytes;
    uint64_t size, key;
} single;

typedef struct worker {
    uint32_t number;
    test_random random;
    lazy own[OWN];
    single singles[SINGLES];
} worker;

static uint64_t steps, seed;
static quire_device *device;
static quire_memory *memory;
static test_memory host_memory;
static fake_backend fake;
static lazy shared[SHARED];
static atomic_uint_fast64_t busy;

/* ---- contents ------------------------------------------------------------------------------- */

static void expect_pattern(const unsigned char *bytes, uint64_t size, uint64_t key)
{
    test_random r = {key};
    for (uint64_t i = 0; i < size; i += 8) {
        const uint64_t word = random_next(&r);
        CHECK(!memcmp(bytes + i, &word, size - i < 8 ? size - i : 8));
    }
}

static uint64_t new_key(worker *w)
{
    return random_next(&w->random) | 1;
}

/* ---- ranges --------------------------------------------------------------------------------- */

typedef struct range {
    lazy *of;
    uint32_t first, length;
} range;

/* Chunks of an allocation of the thread, or those of the thread in a shared one. */
static range random_range(worker *w)
{
    test_random *r = &w->random;
    if (random_below(r, 2)) {
        const uint32_t pairs = LENGTH / PAIR / THREADS;
        const uint32_t first = PAIR * (w->number + THREADS * (uint32_t)random_below(r, pairs));
        return (range){&shared[random_below(r, SHARED)], first,
                       1 + (uint32_t)random_below(r, PAIR)};
    }
    const uint32_t first = (uint32_t)random_below(r, LENGTH);
    return (range){&w->own[random_below(r, OWN)], first,
                   1 + (uint32_t)random_below(r, LENGTH - first)};
}

/* A list of ranges, which may overlap. Returns its length; 0: an allocation is not there. */
static uint32_t random_list(worker *w, range *ranges, quire_view *views)
{
    const uint32_t count = 1 + (uint32_t)random_below(&w->random, MAX_LIST);
    for (uint32_t i = 0; i < count; i++) {
        ranges[i] = random_range(w);
        views[i] =
            (quire_view){ranges[i].of->handle, ranges[i].first * CHUNK, ranges[i].length * CHUNK};
        if (!views[i].allocation.id)
            return 0;
    }
    return count;
}

static void back(worker *w)
{
    range ranges[MAX_LIST];
    quire_view views[MAX_LIST];
    const uint32_t count = random_list(w, ranges, views);
    if (!is_served(quire_back_range(memory, views, count)))
        return;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t at = ranges[i].first; at < ranges[i].first + ranges[i].length; at++) {
            lazy *l = ranges[i].of;
            if (l->keys[at])
                continue;
            l->keys[at] = new_key(w);
            random_bytes(l->bytes + at * CHUNK, CHUNK, l->keys[at]);
        }
}

static void verify(const range *r)
{
    for (uint32_t at = r->first; at < r->first + r->length; at++)
        if (r->of->keys[at])
            expect_pattern(r->of->bytes + at * CHUNK, CHUNK, r->of->keys[at]);
}

/* Another thread may read a shared allocation meanwhile: then all chunks stay. */
static void unback(worker *w)
{
    range ranges[MAX_LIST];
    quire_view views[MAX_LIST];
    const uint32_t count = random_list(w, ranges, views);
    for (uint32_t i = 0; i < count; i++)
        verify(&ranges[i]);
    quire_result result = quire_unback_range(memory, views, count, NULL);
    if (result) {
        CHECK_FAILS(result, QUIRE_ERROR_BUSY);
        atomic_fetch_add(&busy, 1);
        for (uint32_t i = 0; i < count; i++)
            verify(&ranges[i]);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t at = ranges[i].first; at < ranges[i].first + ranges[i].length; at++)
            ranges[i].of->keys[at] = 0;
}

/* By a call, which has the allocation in use. */
static void read_chunk(worker *w)
{
    unsigned char bytes[16 * 1024];
    const range r = random_range(w);
    if (!r.of->handle.id)
        return;
    quire_result result = quire_read(memory, r.of->handle, r.first * CHUNK, bytes, sizeof bytes);
    if (r.of->keys[r.first]) {
        CHECK_OK(result);
        expect_pattern(bytes, CHUNK, r.of->keys[r.first]);
    } else {
        CHECK_FAILS(result, QUIRE_ERROR_WRONG_STATE);
    }
}

/* ---- allocations ---------------------------------------------------------------------------- */

/* Without a page, even addresses need memory. */
static void make_lazy(lazy *l)
{
    void *pointer = NULL;
    const quire_allocation_options options = {.size = LENGTH * CHUNK, .lazy = true};
    if (!is_served(quire_allocate(memory, &options, &l->handle)))
        return;
    CHECK_OK(quire_map(memory, l->handle, &pointer));
    l->bytes = pointer;
}

static void end_lazy(lazy *l)
{
    verify(&(range){l, 0, LENGTH});
    CHECK_OK(quire_unmap(memory, l->handle));
    CHECK_OK(quire_free(memory, l->handle));
    *l = (lazy){0};
}

static void make_single(worker *w, single *s)
{
    void *pointer = NULL;
    const quire_allocation_options options = {.size = random_size(&w->random, 5 * CHUNK)};
    if (!is_served(quire_allocate(memory, &options, &s->handle)))
        return;
    CHECK_OK(quire_map(memory, s->handle, &pointer));
    s->bytes = pointer;
    s->size = options.size;
    s->key = new_key(w);
    random_bytes(s->bytes, s->size, s->key);
}

static void end_single(single *s)
{
    expect_pattern(s->bytes, s->size, s->key);
    CHECK_OK(quire_unmap(memory, s->handle));
    CHECK_OK(quire_free(memory, s->handle));
    *s = (single){0};
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
    }
}

static void step(worker *w)
{
    const uint64_t what = random_below(&w->random, 100);
    lazy *l = &w->own[random_below(&w->random, OWN)];
    single *s = &w->singles[random_below(&w->random, SINGLES)];
    if (what < 2)
        manage(w);
    else if (!l->handle.id)
        make_lazy(l);
    else if (what < 5)
        end_lazy(l);
    else if (what < 35)
        back(w);
    else if (what < 55)
        unback(w);
    else if (what < 70)
        read_chunk(w);
    else if (s->handle.id)
        end_single(s);
    else
        make_single(w, s);
}

static void *work(void *worker_)
{
    worker *w = worker_;
    for (uint64_t i = 0; i < steps / THREADS; i++)
        step(w);
    for (int i = 0; i < OWN; i++)
        if (w->own[i].handle.id)
            end_lazy(&w->own[i]);
    for (int i = 0; i < SINGLES; i++)
        if (w->singles[i].handle.id)
            end_single(&w->singles[i]);
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
    open_device(&fake, &host_memory, &device);
    CHECK_OK(quire_memory_create(device, &options, &memory));
    served = refused = busy = 0;
    for (int i = 0; i < SHARED; i++)
        make_lazy(&shared[i]);
}

static uint64_t shared_bytes(void)
{
    uint64_t bytes = 0;
    for (int i = 0; i < SHARED; i++)
        for (int at = 0; at < LENGTH; at++)
            bytes += shared[i].keys[at] ? CHUNK : 0;
    return bytes;
}

static void end(void)
{
    quire_memory_stats stats;
    CHECK_OK(quire_memory_check(memory));
    CHECK_OK(quire_memory_get_stats(memory, &stats));
    CHECK_EQ(stats.live_bytes, shared_bytes());
    for (int i = 0; i < SHARED; i++)
        end_lazy(&shared[i]);
    CHECK_OK(quire_memory_trim(memory, 0, NULL));
    CHECK_OK(quire_memory_check(memory));
    CHECK_OK(quire_memory_get_stats(memory, &stats));
    CHECK_EQ(stats.allocation_count + stats.live_bytes + stats.reserved_bytes, 0);
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
        CHECK_EQ(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    printf("# %" PRIu64 " requests were served and %" PRIu64 " refused, %" PRIu64
           " ranges were in use\n",
           (uint64_t)served, (uint64_t)refused, (uint64_t)busy);
    CHECK(served > steps / 8 && refused); /* the limit is tight, and not too tight */
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
    plain_case("threads change lazy allocations of the host backend", host_threads);
    plain_case("threads change lazy allocations of a backend that fails", threads_with_failures);
    return plain_end();
}
