/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * threads.c - many threads on one memory, for the thread sanitizer and for the release build:
 * contents stay, exactly one of racing frees succeeds, walks see no overlap, and no thread waits
 * for a page.
 *
 *     threads [--threads N] [--steps N] [--seed N]
 */
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "tests/support/random.h"
#include "tests/support/state.h"

#define KIB UINT64_C(1024)

enum { MAX_THREADS = 32, MAX_OWN = 24, SHARED = 32, EDGE = 128 };

static bench b;
static uint64_t thread_count, steps, seed;

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static uint64_t now_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000u + (uint64_t)time.tv_nsec / 1000u;
}

static void run_threads(uint64_t count, void *(*body)(void *))
{
    pthread_t threads[MAX_THREADS];
    for (uint64_t i = 0; i < count; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, body, (void *)(uintptr_t)i), 0);
    for (uint64_t i = 0; i < count; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
}

/* ---- contents ------------------------------------------------------------------------------- */

/* Both ends of an allocation hold its user data, repeated. */
static uint64_t edge_of(uint64_t size, uint64_t starts[2])
{
    starts[0] = 0;
    starts[1] = size < EDGE ? 0 : size - EDGE;
    return size < EDGE ? size : EDGE;
}

static void fill_edge(char *bytes, uint64_t start, uint64_t edge, uint64_t user)
{
    for (uint64_t i = 0; i < edge; i++)
        bytes[i] = (char)(user >> (start + i) % 8 * 8);
}

static void write_contents(quire_allocation allocation, uint64_t size, uint64_t user)
{
    char bytes[EDGE];
    uint64_t starts[2], edge = edge_of(size, starts);
    for (int i = 0; i < 2; i++) {
        fill_edge(bytes, starts[i], edge, user);
        CHECK_OK(quire_write(b.memory, allocation, starts[i], bytes, edge));
    }
}

/* Returns false if the allocation was freed during the call, which only its owner can prevent. */
static bool contents_are_right(quire_allocation allocation, uint64_t size, uint64_t user)
{
    char wanted[EDGE], found[EDGE];
    uint64_t starts[2], edge = edge_of(size, starts);
    for (int i = 0; i < 2; i++) {
        quire_result result = quire_read(b.memory, allocation, starts[i], found, edge);
        if (result == QUIRE_ERROR_STALE_HANDLE)
            return false;
        CHECK_OK(result);
        fill_edge(wanted, starts[i], edge, user);
        CHECK(!memcmp(wanted, found, edge));
    }
    return true;
}

/* ---- random work ---------------------------------------------------------------------------- */

typedef struct owned {
    quire_allocation allocation;
    uint64_t size, user;
} owned;

typedef struct worker {
    test_random r;
    owned own[MAX_OWN];
} worker;

/* Handles that any thread may read; the thread that takes one out owns it. */
static _Atomic uint64_t shared[SHARED];

/* Other threads may be reading: BUSY until they have finished. */
static void free_when_idle(quire_allocation allocation)
{
    quire_result result;
    while ((result = quire_free(b.memory, allocation)) == QUIRE_ERROR_BUSY) {
    }
    CHECK_OK(result);
}

static void verify_and_free(owned *o)
{
    quire_allocation_info info;
    CHECK(contents_are_right(o->allocation, o->size, o->user));
    CHECK_OK(quire_allocation_get_info(b.memory, o->allocation, &info));
    if (o->user % 2 || quire_free_at_address(b.memory, info.address, NULL))
        free_when_idle(o->allocation); /* another thread may be using it */
    o->allocation.id = 0;
}

static quire_result make(test_random *r, owned *o)
{
    static const char *const names[] = {NULL, "weights", "activations"};
    quire_allocation_options options = {
        .size = o->size,
        .name = names[random_below(r, 3)],
        .user_data = o->user,
        .alignment = UINT64_C(1) << random_below(r, 10),
        .zero = random_below(r, 8) == 0,
        .dedicated = random_below(r, 16) == 0,
    };
    quire_buffer buffer;
    quire_result result;
    switch (random_below(r, 4)) {
    case 0:
        result = quire_buffer_create(
            b.memory,
            &(quire_buffer_options){.size = o->size, .name = "buffer", .user_data = o->user},
            &buffer);
        o->allocation = buffer.allocation;
        return result;
    case 1:
        result = quire_reserve(b.memory, &options, &o->allocation);
        return result ? result : quire_commit(b.memory, o->allocation);
    default:
        return quire_allocate(b.memory, &options, &o->allocation);
    }
}

static void allocate_or_free(worker *w, owned *o)
{
    if (o->allocation.id) {
        verify_and_free(o);
        return;
    }
    o->size = random_size(&w->r, 12 * KIB);
    o->user = random_next(&w->r);
    CHECK_OK(make(&w->r, o));
    write_contents(o->allocation, o->size, o->user);
}

/* Reads the size and user data of a handle of the table; returns false if it is stale now. */
static bool look_up(uint64_t id, owned *o)
{
    quire_allocation_info info;
    o->allocation.id = id;
    quire_result result = quire_allocation_get_info(b.memory, o->allocation, &info);
    if (result == QUIRE_ERROR_STALE_HANDLE)
        return false;
    CHECK_OK(result);
    o->size = info.requested;
    o->user = info.user_data;
    return true;
}

/* Puts an own allocation into the table; takes out and frees the one that was there. */
static void publish(worker *w, owned *o)
{
    uint64_t old = atomic_exchange(&shared[random_below(&w->r, SHARED)], o->allocation.id);
    o->allocation.id = 0;
    owned taken;
    if (old) {
        CHECK(look_up(old, &taken)); /* no other thread can have freed it */
        verify_and_free(&taken);
    }
}

/* Looks up the addresses of an allocation that its owner may free at any moment. */
static void look_around(worker *w, const owned *o)
{
    quire_allocation_info info;
    quire_allocation found;
    if (quire_allocation_get_info(b.memory, o->allocation, &info))
        return;
    uint64_t address = info.address + random_below(&w->r, info.size);
    quire_result result =
        quire_memory_find(b.memory, random_below(&w->r, 2) ? info.address : address, &found);
    CHECK(!result || result == QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_EQ(!found.id, result != QUIRE_SUCCESS);
    /* the same one, or one that has taken its place since */
    CHECK(result || found.id == o->allocation.id ||
          quire_allocation_get_info(b.memory, o->allocation, &info));
}

/* Reads an allocation that its owner may free at any moment. */
static void look_at_shared(worker *w)
{
    owned o;
    char name[64];
    void *pointer = NULL;
    uint64_t id = atomic_load(&shared[random_below(&w->r, SHARED)]);
    if (!id || !look_up(id, &o) || !contents_are_right(o.allocation, o.size, o.user))
        return;
    look_around(w, &o);
    quire_result result = quire_map(b.memory, o.allocation, &pointer);
    if (!result) {
        CHECK(*(volatile char *)pointer == (char)o.user);
        CHECK_OK(quire_unmap(b.memory, o.allocation));
    }
    CHECK(!result || result == QUIRE_ERROR_STALE_HANDLE);
    result = random_below(&w->r, 2)
                 ? quire_allocation_set_name(b.memory, o.allocation, "seen by others")
                 : quire_allocation_get_name(b.memory, o.allocation, name, sizeof name);
    CHECK(!result || result == QUIRE_ERROR_STALE_HANDLE);
}

static void look_at_own(const owned *o)
{
    quire_allocation_info info;
    quire_allocation found;
    quire_memory *memory = NULL;
    CHECK_OK(quire_allocation_get_info(b.memory, o->allocation, &info));
    CHECK_OK(quire_memory_find(b.memory, info.address, &found));
    CHECK_EQ(found.id, o->allocation.id);
    CHECK_OK(quire_device_find(b.device, info.address + o->size - 1, &memory, &found));
    CHECK_EQ(found.id, o->allocation.id);
    CHECK(memory == b.memory);
}

/* One visit of a page: its ranges follow each other, with gaps where an elastic page has no
   memory. */
typedef struct picture {
    bool any;
    uint32_t page;
    uint64_t end, page_size;
} picture;

static bool check_item(void *user, const quire_item *item)
{
    picture *p = user;
    if (!p->any || p->page != item->page) {
        CHECK(!p->any || p->end == p->page_size);
        p->end = 0;
    }
    const uint64_t begin = item->offset - item->left_padding;
    CHECK(begin == p->end || (begin > p->end && item->page_bytes < item->page_size));
    *p = (picture){true, item->page, item->offset + item->size, item->page_size};
    return true;
}

static bool drop_text(void *user, const char *text, size_t size)
{
    (void)user;
    (void)text;
    return size != 0;
}

static void look_at_all(worker *w)
{
    picture p = {0};
    quire_memory_stats stats;
    quire_device_stats device;
    switch (random_below(&w->r, 5)) {
    case 0:
        CHECK_OK(quire_memory_walk(b.memory, check_item, &p));
        break;
    case 1:
        CHECK_OK(quire_memory_write_json(b.memory, drop_text, NULL));
        CHECK_OK(quire_memory_write_report(b.memory, drop_text, NULL));
        CHECK_OK(quire_memory_write_report_json(b.memory, drop_text, NULL));
        break;
    case 2:
        CHECK_OK(quire_memory_check(b.memory));
        break;
    case 3:
        CHECK_OK(quire_memory_trim(b.memory, 64 * KIB, NULL));
        break;
    default:
        CHECK_OK(quire_memory_get_stats(b.memory, &stats));
        CHECK_OK(quire_device_get_stats(b.device, &device));
        CHECK(stats.live_bytes <= stats.reserved_bytes);
        CHECK(stats.requested_bytes <= stats.live_bytes);
    }
}

static void *work(void *number)
{
    worker w = {.r = {.state = seed + (uintptr_t)number}};
    for (uint64_t i = 0; i < steps; i++) {
        owned *o = &w.own[random_below(&w.r, MAX_OWN)];
        uint64_t choice = random_below(&w.r, 64);
        if (choice < 32 || (choice < 56 && !o->allocation.id))
            allocate_or_free(&w, o);
        else if (choice < 40)
            publish(&w, o);
        else if (choice < 48)
            look_at_own(o);
        else if (choice < 63)
            look_at_shared(&w);
        else
            look_at_all(&w);
    }
    for (int i = 0; i < MAX_OWN; i++)
        if (w.own[i].allocation.id)
            verify_and_free(&w.own[i]);
    return NULL;
}

static void begin(bool on_fake, const quire_memory_options *options)
{
    quire_memory_options finding = options ? *options : (quire_memory_options){0};
    finding.find_by_address = true;
    b.fail_at = 0;
    bench_begin(&b, on_fake);
    CHECK(bench_open(&b) && bench_memory(&b, &finding));
}

static void empty_shared(void)
{
    for (int i = 0; i < SHARED; i++) {
        owned o;
        uint64_t id = atomic_exchange(&shared[i], 0);
        if (!id)
            continue;
        CHECK(look_up(id, &o));
        verify_and_free(&o);
    }
}

/* Without shards: an elastic memory. */
static void random_work(bool on_fake, quire_fit fit, uint32_t shards)
{
    begin(on_fake, &(quire_memory_options){.kind.required = QUIRE_HOST_VISIBLE,
                                           .fit.algorithm = fit,
                                           .shards = shards,
                                           .elastic = !shards,
                                           .address_space = shards ? 0 : 64 * 1024 * KIB,
                                           .pages.page_size = 64 * KIB});
    run_threads(thread_count, work);
    (void)bench_fingerprint(&b);
    empty_shared();
    bench_end(&b);
}

static void work_on_host(void)
{
    random_work(false, QUIRE_FIT_SEGREGATED, 1);
    random_work(false, QUIRE_FIT_SEGREGATED, 3);
    random_work(false, QUIRE_FIT_FIRST, 2);
    random_work(false, QUIRE_FIT_BUDDY, 7);
    random_work(false, QUIRE_FIT_SEGREGATED, 0);
}

static void work_on_fake(void)
{
    random_work(true, QUIRE_FIT_SEGREGATED, 1);
    random_work(true, QUIRE_FIT_SEGREGATED, 3);
    random_work(true, QUIRE_FIT_FIRST, 2);
    random_work(true, QUIRE_FIT_BUDDY, 7);
    random_work(true, QUIRE_FIT_SEGREGATED, 0);
}

/* ---- racing frees --------------------------------------------------------------------------- */

enum { RACED = 64, ROUNDS = 100 };

static quire_allocation raced[RACED];
static _Atomic uint32_t winners[RACED];
static pthread_barrier_t barrier;

static void prepare_round(void)
{
    for (int i = 0; i < RACED; i++) {
        winners[i] = 0;
        CHECK_OK(quire_allocate(b.memory,
                                &(quire_allocation_options){.size = 100, .dedicated = i % 8 == 0},
                                &raced[i]));
    }
}

static void *free_all(void *number)
{
    for (int round = 0; round < ROUNDS; round++) {
        if (!number)
            prepare_round();
        pthread_barrier_wait(&barrier);
        for (int i = 0; i < RACED; i++) {
            quire_result result = quire_free(b.memory, raced[i]);
            CHECK(!result || result == QUIRE_ERROR_STALE_HANDLE);
            atomic_fetch_add(&winners[i], !result);
        }
        pthread_barrier_wait(&barrier);
        for (int i = 0; !number && i < RACED; i++)
            CHECK_EQ(winners[i], 1);
    }
    return NULL;
}

static void one_free_wins(void)
{
    begin(true, &(quire_memory_options){.pages.page_size = 64 * KIB});
    CHECK_EQ(pthread_barrier_init(&barrier, NULL, (unsigned)thread_count), 0);
    run_threads(thread_count, free_all);
    pthread_barrier_destroy(&barrier);
    bench_end(&b);
}

/* ---- walks beside frees --------------------------------------------------------------------- */

static _Atomic uint32_t working;

static void *walk_or_work(void *number)
{
    if (number) {
        work(number);
        working--;
        return NULL;
    }
    do {
        picture p = {0};
        CHECK_OK(quire_memory_walk(b.memory, check_item, &p));
    } while (working);
    return NULL;
}

static void walks_see_no_overlap(void)
{
    begin(true, &(quire_memory_options){.kind.required = QUIRE_HOST_VISIBLE,
                                        .pages.page_size = 32 * KIB});
    working = 3;
    run_threads(4, walk_or_work);
    empty_shared();
    bench_end(&b);
}

/* ---- no thread waits for a page ------------------------------------------------------------- */

enum { SLOW_MS = 100, TIMEOUT_US = 50000, TRIES = 100 };

static quire_result (*real_create)(void *, const quire_page_request *, quire_native_page *);
static _Atomic bool making, enough;

static quire_result noted_create(void *state, const quire_page_request *request,
                                 quire_native_page *page)
{
    making = true;
    quire_result result = real_create(state, request, page);
    making = false;
    return result;
}

static void *make_pages(void *unused)
{
    while (!enough) {
        quire_allocation made;
        CHECK_OK(quire_allocate(
            b.memory, &(quire_allocation_options){.size = 100, .dedicated = true}, &made));
        CHECK_OK(quire_free(b.memory, made));
        /* otherwise the next one would reuse the same page */
        CHECK_OK(quire_memory_trim(b.memory, 0, NULL));
    }
    return unused;
}

/* One allocation and one free while a page is being created; returns whether both were quick. */
static bool both_are_quick(void)
{
    quire_allocation made;
    while (!making)
        sleep_ms(1);
    uint64_t begun = now_us();
    CHECK_OK(quire_allocate(b.memory, &(quire_allocation_options){.size = 1000}, &made));
    uint64_t allocated = now_us();
    CHECK_OK(quire_free(b.memory, made));
    uint64_t freed = now_us();
    sleep_ms(SLOW_MS / 10);
    return allocated - begun < TIMEOUT_US && freed - allocated < TIMEOUT_US;
}

static void no_thread_waits_for_a_page(void)
{
    b.fail_at = 0;
    bench_begin(&b, true);
    real_create = b.fake.table.page_create;
    b.fake.table.page_create = noted_create;
    CHECK(bench_open(&b) && bench_memory(&b, NULL) &&
          bench_allocate(&b, 1, &(quire_allocation_options){.size = 1000}));
    b.fake.slow_ms = SLOW_MS;
    enough = false;
    pthread_t maker;
    CHECK_EQ(pthread_create(&maker, NULL, make_pages, NULL), 0);
    int quick = 0;
    for (int i = 0; i < TRIES; i++)
        quick += both_are_quick();
    enough = true;
    CHECK_EQ(pthread_join(maker, NULL), 0);
    CHECK(quick >= TRIES * 99 / 100);
    bench_end(&b);
}

/* ---- memories are created and destroyed ----------------------------------------------------- */

static void *come_and_go(void *number)
{
    for (uint64_t i = 0; i < steps / 20; i++) {
        quire_memory *memory = NULL, *owner;
        quire_allocation made;
        quire_allocation found;
        quire_device_stats stats;
        CHECK_OK(quire_memory_create(
            b.device,
            &(quire_memory_options){.name = number ? "odd" : "even", .find_by_address = true},
            &memory));
        CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 1000}, &made));
        CHECK_OK(quire_device_get_stats(b.device, &stats));
        CHECK(stats.memory_count >= 2 && stats.page_count >= 1);
        CHECK_FAILS(quire_device_find(b.device, 1, NULL, &found), QUIRE_ERROR_OUT_OF_RANGE);
        CHECK_FAILS(quire_memory_destroy(&memory), QUIRE_ERROR_BUSY);
        CHECK_OK(quire_device_owner(b.device, made, &owner));
        CHECK(owner == memory);
        CHECK_OK(quire_device_free(b.device, made));
        CHECK_OK(quire_memory_destroy(&memory));
    }
    return NULL;
}

static bool visit(void *user, quire_memory *memory)
{
    quire_memory_info info;
    CHECK_OK(quire_memory_get_info(memory, &info));
    return info.device == user;
}

static bool take_text(void *user, const char *text, size_t size)
{
    uint64_t *bytes = user;
    *bytes += size;
    return text[0];
}

/* What reaches the memories by their device, and recordings that come and go. */
static void *look_at_device(void *number)
{
    for (uint64_t i = 0; i < steps / 40; i++) {
        quire_recorder *recorder = NULL;
        uint64_t bytes = 0;
        const quire_record_options options = {
            .device = b.device, .sink = take_text, .user = &bytes};
        CHECK_OK(quire_record_start(&options, &recorder));
        CHECK_OK(quire_device_walk(b.device, visit, b.device));
        CHECK_OK(quire_device_trim(b.device, (uintptr_t)number, NULL));
        CHECK_OK(quire_record_stop(&recorder));
        CHECK(bytes);
    }
    return NULL;
}

static void *come_go_or_look(void *number)
{
    return (uintptr_t)number < 4 ? come_and_go(number) : look_at_device(number);
}

static void memories_come_and_go(void)
{
    begin(false, NULL);
    run_threads(6, come_go_or_look);
    bench_end(&b);
}

/* ---- an unfinished allocation ---------------------------------------------------------------- */

/*
 * A walk shows allocations to every thread, also one that another thread is still filling with
 * zeros. Here a thread names it while the filling fails: the naming waits in the host memory
 * callback until the other thread has undone the allocation.
 */
static _Atomic int phase; /* 1: being filled, 2: the filling may fail, 3: it has failed */
static _Atomic bool hook_armed;
enum { MAX_BLOCK = 16 * 1024 * 1024 };

static void wait_for_phase(int wanted)
{
    for (int i = 0; i < 500 && phase < wanted; i++)
        sleep_ms(1);
}

static quire_result failing_copy(void *state, const quire_native_page *page, uint64_t offset,
                                 const void *data, uint64_t size)
{
    (void)state, (void)page, (void)offset, (void)data, (void)size;
    phase = 1;
    wait_for_phase(2);
    return quire_backend_fail(QUIRE_ERROR_DEVICE_LOST, -13, "the copy fails");
}

static void *hooked_allocate(void *user, size_t size, size_t alignment)
{
    if (atomic_exchange(&hook_armed, false)) {
        phase = 2;
        wait_for_phase(3);
    }
    if (size > MAX_BLOCK)
        return NULL; /* damaged records would request gigabytes */
    return b.host.callbacks.allocate(user, size, alignment);
}

static void *fill_in_vain(void *unused)
{
    quire_allocation made;
    CHECK_FAILS(
        quire_allocate(b.memory, &(quire_allocation_options){.size = 1000, .zero = true}, &made),
        QUIRE_ERROR_DEVICE_LOST);
    phase = 3;
    return unused;
}

static bool find_live(void *user, const quire_item *item)
{
    *(quire_allocation *)user = item->allocation;
    return item->is_free;
}

static void not_made_yet(void)
{
    b.fail_at = 0;
    bench_begin(&b, true);
    b.fake.table.copy_to_page = failing_copy;
    quire_host_memory hooked = {hooked_allocate, b.host.callbacks.release, &b.host};
    CHECK_OK(fake_open(&b.fake, &hooked, &b.device));
    CHECK(bench_memory(&b, NULL));
    pthread_t maker;
    CHECK_EQ(pthread_create(&maker, NULL, fill_in_vain, NULL), 0);
    wait_for_phase(1);
    quire_allocation found = {0};
    CHECK_OK(quire_memory_walk(b.memory, find_live, &found));
    hook_armed = found.id != 0;
    quire_result result = quire_allocation_set_name(b.memory, found, "seen by others");
    CHECK(!result || result == QUIRE_ERROR_STALE_HANDLE || !found.id);
    hook_armed = false;
    phase = phase < 2 ? 2 : phase;
    CHECK_EQ(pthread_join(maker, NULL), 0);
    CHECK(bench_allocate(&b, 5, &(quire_allocation_options){.size = 100}));
    (void)bench_fingerprint(&b);
    bench_end(&b);
}

int main(int argc, char **argv)
{
    thread_count = plain_option(argc, argv, "threads", 8);
    steps = plain_option(argc, argv, "steps", 8000);
    seed = plain_option(argc, argv, "seed", 1);
    CHECK(thread_count && thread_count <= MAX_THREADS);
    printf("# --threads %" PRIu64 " --steps %" PRIu64 " --seed %" PRIu64 "\n", thread_count, steps,
           seed);
    plain_case("random work on the host backend", work_on_host);
    plain_case("random work on the fake backend", work_on_fake);
    plain_case("exactly one of racing frees succeeds", one_free_wins);
    plain_case("walks beside frees see no overlap", walks_see_no_overlap);
    plain_case("no thread waits for a page", no_thread_waits_for_a_page);
    plain_case("memories are created and destroyed", memories_come_and_go);
    plain_case("naming an unfinished allocation", not_made_yet);
    return plain_end();
}
