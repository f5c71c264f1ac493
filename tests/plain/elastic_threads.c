/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * elastic_threads.c - several threads on one elastic memory, within a limit so tight that requests
 * take the memory of free chunks and some are refused. Each allocation has a pattern at its start,
 * at its end and in each 4 KiB, which is verified before it is freed: a chunk that loses its memory
 * while it is in use is detected. On the host backend, on the fake one with calls that fail, and on
 * one whose calls take long, where a free must not wait for them.
 *
 *     elastic_threads [--steps N] [--seed N]
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "quire/host.h"
#include "quire/quire.h"
#include "tests/support/failing_back.h"
#include "tests/support/fake.h"
#include "tests/support/plain.h"
#include "tests/support/random.h"

#define KIB UINT64_C(1024)

enum { THREADS = 8, MAX_OWN = 16, STRIDE = 4096 };
static const uint64_t CHUNK = 16 * KIB, MAX_SIZE = 256 * KIB, MAX_LIMIT = 2048 * KIB;
static const uint64_t ADDRESSES = 16 * 1024 * KIB;

static uint64_t steps, seed;
static quire_device *device;
static quire_memory *memory;
static fake_backend fake;

/* ---- contents ------------------------------------------------------------------------------- */

typedef struct owned {
    quire_allocation allocation;
    unsigned char *bytes; /* of its mapping */
    uint64_t size, key;
} owned;

static uint64_t word_at(const owned *o, uint64_t offset)
{
    test_random r = {o->key ^ offset};
    return random_next(&r);
}

/* Writes or checks up to 8 bytes of the pattern. */
static void visit_word(const owned *o, uint64_t offset, bool writes)
{
    const uint64_t word = word_at(o, offset);
    const uint64_t size = o->size - offset < sizeof word ? o->size - offset : sizeof word;
    if (writes)
        memcpy(o->bytes + offset, &word, size);
    else
        CHECK(!memcmp(o->bytes + offset, &word, size));
}

static void visit_pattern(const owned *o, bool writes)
{
    const uint64_t word = sizeof(uint64_t);
    const uint64_t last = o->size > 2 * word ? o->size - word : 0; /* shares no word with others */
    for (uint64_t offset = 0; offset + word <= last; offset += STRIDE)
        visit_word(o, offset, writes);
    visit_word(o, last, writes);
}

/* ---- random work ---------------------------------------------------------------------------- */

static void verify_and_free(owned *o)
{
    visit_pattern(o, false);
    CHECK_OK(quire_unmap(memory, o->allocation));
    CHECK_OK(quire_free(memory, o->allocation));
    *o = (owned){0};
}

static void allocate(test_random *r, owned *o)
{
    void *pointer = NULL;
    const quire_allocation_options options = {
        .size = random_size(r, MAX_SIZE),
        .alignment = UINT64_C(1) << random_below(r, 13),
        .dedicated = random_below(r, 40) == 0,
    };
    if (!is_served(quire_allocate(memory, &options, &o->allocation)))
        return;
    CHECK_OK(quire_map(memory, o->allocation, &pointer));
    o->bytes = pointer;
    o->size = options.size;
    o->key = random_next(r);
    visit_pattern(o, true);
}

/* Trims, limits, promises and looks. */
static void manage(test_random *r)
{
    quire_memory_stats stats;
    switch (random_below(r, 5)) {
    case 0:
        CHECK_OK(quire_memory_trim(memory, random_below(r, MAX_LIMIT), NULL));
        break;
    case 1:
        CHECK_OK(quire_memory_set_limit(memory, MAX_LIMIT / 2 + random_below(r, MAX_LIMIT / 2)));
        break;
    case 2:
        is_served(quire_memory_preallocate(memory, random_below(r, MAX_LIMIT / 2)));
        break;
    case 3:
        CHECK_OK(quire_memory_check(memory));
        break;
    default:
        CHECK_OK(quire_memory_get_stats(memory, &stats));
        CHECK(stats.reserved_bytes <= MAX_LIMIT);
        CHECK(stats.live_bytes <= stats.reserved_bytes);
    }
}

static void *work(void *number)
{
    test_random r = {seed * 1000 + (uintptr_t)number};
    owned own[MAX_OWN] = {0};
    for (uint64_t i = 0; i < steps / THREADS; i++) {
        owned *o = &own[random_below(&r, MAX_OWN)];
        if (random_below(&r, 50) == 0)
            manage(&r);
        else if (o->allocation.id)
            verify_and_free(o);
        else
            allocate(&r, o);
    }
    for (int i = 0; i < MAX_OWN; i++)
        if (own[i].allocation.id)
            verify_and_free(&own[i]);
    return NULL;
}

/* ---- memories ------------------------------------------------------------------------------- */

static test_memory host_memory;

static void begin(void)
{
    const quire_memory_options options = {.kind.required = QUIRE_HOST_VISIBLE,
                                          .elastic = true,
                                          .address_space = ADDRESSES,
                                          .pages.page_size = CHUNK,
                                          .limit = MAX_LIMIT};
    open_device(&fake, &host_memory, &device);
    CHECK_OK(quire_memory_create(device, &options, &memory));
    served = refused = 0;
}

static void end(void)
{
    quire_memory_stats stats;
    CHECK_OK(quire_memory_check(memory));
    CHECK_OK(quire_memory_trim(memory, 0, NULL));
    CHECK_OK(quire_memory_get_stats(memory, &stats));
    CHECK_EQ(stats.allocation_count + stats.reserved_bytes, 0);
    CHECK(!on_fake || fake.page_bytes == 0);
    CHECK_OK(quire_memory_destroy(&memory));
    CHECK_OK(quire_device_destroy(&device));
    CHECK_EQ(host_memory.blocks, 0);
    CHECK(!on_fake || fake.pages == 0);
}

static void run_threads(void)
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, work, (void *)i), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    printf("# %" PRIu64 " requests were served and %" PRIu64 " refused\n", (uint64_t)served,
           (uint64_t)refused);
    CHECK(served > steps / 4 && refused); /* the limit is tight, and not too tight */
}

static void host_threads(void)
{
    on_fake = false;
    begin();
    run_threads();
    end();
}

/* ---- calls that fail ------------------------------------------------------------------------ */

static void (*real_unback)(void *, const quire_native_page *, const quire_span *, uint32_t, bool);
static atomic_bool is_busy; /* a call of the backend is running */

static void prepare_fake(void)
{
    on_fake = true;
    fake_init(&fake);
    fake_offer_growth(&fake);
    real_back = fake.table.page_back;
    real_unback = fake.table.page_unback;
}

static void threads_with_failures(void)
{
    prepare_fake();
    fake.table.page_back = failing_back;
    begin();
    run_threads();
    CHECK(failed);
    end();
}

/* ---- calls that take long ------------------------------------------------------------------- */

enum { SLOW_MS = 100, SAMPLES = 15, SMALL = 60 };

static atomic_bool enough;

static quire_result slow_back(void *state, const quire_native_page *page, const quire_span *spans,
                              uint32_t count)
{
    is_busy = true;
    quire_result result = real_back(state, page, spans, count);
    is_busy = false;
    return result;
}

static void slow_unback(void *state, const quire_native_page *page, const quire_span *spans,
                        uint32_t count, bool moves)
{
    is_busy = true;
    real_unback(state, page, spans, count, moves);
    is_busy = false;
}

static void *make_room(void *unused)
{
    quire_allocation made;
    while (!enough) {
        CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = MAX_SIZE}, &made));
        CHECK_OK(quire_free(memory, made));
        CHECK_OK(quire_memory_trim(memory, 0, NULL));
    }
    return unused;
}

static uint64_t now_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000u + (uint64_t)time.tv_nsec / 1000u;
}

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* Frees during a call of the backend. Returns false if the call has ended meanwhile, unless the
   free waited for it. */
static bool measure_free(quire_allocation allocation, uint64_t *us)
{
    while (!is_busy)
        sleep_ms(1);
    uint64_t begun = now_us();
    CHECK_OK(quire_free(memory, allocation));
    *us = now_us() - begun;
    bool counts = is_busy || *us > 1000;
    sleep_ms(SLOW_MS / 5);
    return counts;
}

static int compare(const void *left, const void *right)
{
    const uint64_t *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

static void no_free_waits(void)
{
    quire_allocation small[SMALL];
    uint64_t us[SMALL] = {0};
    uint32_t count = 0;
    pthread_t maker;
    prepare_fake();
    fake.table.page_back = slow_back;
    fake.table.page_unback = slow_unback;
    begin();
    for (int i = 0; i < SMALL; i++)
        CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 1000}, &small[i]));
    fake.slow_ms = SLOW_MS;
    enough = false;
    CHECK_EQ(pthread_create(&maker, NULL, make_room, NULL), 0);
    for (int i = 0; i < SMALL; i++) {
        if (count < SAMPLES)
            count += measure_free(small[i], &us[count]);
        else
            CHECK_OK(quire_free(memory, small[i]));
    }
    enough = true;
    CHECK_EQ(pthread_join(maker, NULL), 0);
    fake.slow_ms = 0;
    CHECK_EQ(count, SAMPLES);
    qsort(us, count, sizeof *us, compare);
    printf("# a free during a call takes %" PRIu64 " us in the median\n", us[count / 2]);
    CHECK(us[count / 2] < 1000);
    end();
}

int main(int argc, char **argv)
{
    steps = plain_option(argc, argv, "steps", 20000);
    seed = plain_option(argc, argv, "seed", 1);
    printf("# --seed %" PRIu64 " --steps %" PRIu64 "\n", seed, steps);
    plain_case("threads share an elastic memory of the host backend", host_threads);
    plain_case("threads share an elastic memory whose backend fails", threads_with_failures);
    plain_case("a free does not wait for the backend", no_free_waits);
    return plain_end();
}
