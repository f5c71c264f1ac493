/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * fork.c - forks while other threads are in any state: the child continues to use host memories and
 * destroys them, nothing hangs, and devices that do not survive can be destroyed.
 *
 *     fork [--steps FORKS]
 *
 * Each child has a watchdog (an alarm) and ends with a dedicated signal on success.
 */
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "quire/host.h"
#include "quire/quire.h"
#include "src/base/atomic.h"
#include "src/core/allocate/shard_growth.h"
#include "src/core/state/memory.h"
#include "tests/support/child.h"
#include "tests/support/fake.h"
#include "tests/support/grow_shards.h"
#include "tests/support/plain.h"
#include "tests/support/streams.h"
#include "tests/support/thread_sanitizer.h"

#define KIB UINT64_C(1024)
#define MIB (UINT64_C(1) << 20)
#define DENIED QUIRE_ERROR_NOT_PERMITTED

enum { PATIENCE_S = 60, SLOW_MS = 150, CHURNERS = 4 };

static uint64_t forks;

/* ---- children ----------------------------------------------------------------------------- */

/* Forks; the child runs the body with a watchdog. */
static void in_child(void (*body)(void *user), void *user)
{
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child) {
        alarm(PATIENCE_S);
        body(user);
        child_end(true);
    }
    CHECK(child_was_well(child));
}

static void wait_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* A thread that is at a known place during the fork. */
typedef struct gate {
    qi_atomic_u32 is_there, may_go;
} gate;

static void gate_wait(gate *g)
{
    qi_atomic_store_release_u32(&g->is_there, 1);
    while (!qi_atomic_load_acquire_u32(&g->may_go))
        wait_ms(1);
}

static void gate_await(gate *g)
{
    while (!qi_atomic_load_acquire_u32(&g->is_there))
        wait_ms(1);
}

static void gate_open(gate *g)
{
    qi_atomic_store_release_u32(&g->may_go, 1);
}

/* ---- a memory to fork with ---------------------------------------------------------------- */

typedef struct scene {
    fake_backend fake;
    quire_device *device;
    quire_memory *memory;
    quire_allocation live;
    quire_stream *stream;
    gate gate;
    uint64_t reserved; /* bytes, before another thread changes the memory */
    qi_atomic_u32 is_over;
    bool has_forked; /* in the child of a callback */
    void (*end)(void *user);
} scene;

static void open_host(scene *s, const quire_host_options *options,
                      const quire_memory_options *memory)
{
    memset(s, 0, sizeof *s);
    CHECK_OK(quire_host_open(options, &s->device));
    CHECK_OK(quire_memory_create(s->device, memory, &s->memory));
}

static void open_fake(scene *s, bool survives, const quire_memory_options *memory)
{
    memset(s, 0, sizeof *s);
    fake_init(&s->fake);
    fake_offer_growth(&s->fake);
    s->fake.info.survives_fork = survives;
    if (survives)
        fake_offer_fork(&s->fake);
    CHECK_OK(fake_open(&s->fake, NULL, &s->device));
    CHECK_OK(quire_memory_create(s->device, memory, &s->memory));
}

static void close_all(scene *s)
{
    quire_memory_destroy_all(&s->memory);
    CHECK_OK(quire_device_destroy(&s->device));
}

static quire_allocation allocate(quire_memory *memory, uint64_t size)
{
    quire_allocation made;
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = size}, &made));
    return made;
}

static bool visit(void *user, const quire_item *item)
{
    (void)item;
    ++*(uint64_t *)user;
    return true;
}

/* Frees an allocation; every other one by address, where the memory finds addresses. */
static void free_by_address(quire_memory *memory, quire_allocation allocation, int number)
{
    quire_allocation found;
    quire_allocation_info info;
    CHECK_OK(quire_allocation_get_info(memory, allocation, &info));
    quire_result result = quire_memory_find(memory, info.address + info.size / 2, &found);
    if (result != QUIRE_ERROR_UNSUPPORTED)
        CHECK(!result && found.id == allocation.id);
    if (result || number % 2)
        CHECK_OK(quire_free(memory, allocation));
    else
        CHECK_OK(quire_free_at_address(memory, info.address, NULL));
}

/* What a case of the table at the end varies. */
static struct variant {
    uint32_t shards; /* 0 means more and more */
    bool elastic;
    quire_event_kinds event;
} variant;

/* Uses a memory in every way and destroys it. */
static void use_and_end(void *user)
{
    scene *s = user;
    char bytes[64] = {1}, back[64];
    uint64_t items = 0;
    quire_allocation some[20];
    for (int i = 0; i < 20; i++)
        some[i] = allocate(s->memory, 4 * KIB << i % 8);
    CHECK_OK(quire_write(s->memory, some[3], 0, bytes, sizeof bytes));
    CHECK_OK(quire_read(s->memory, some[3], 0, back, sizeof back));
    CHECK(!memcmp(bytes, back, sizeof back));
    CHECK_OK(quire_memory_check(s->memory));
    CHECK_OK(quire_memory_walk(s->memory, visit, &items));
    CHECK(items >= 20);
    for (int i = 0; i < 20; i++)
        free_by_address(s->memory, some[i], i);
    if (s->live.id)
        CHECK_OK(quire_free(s->memory, s->live));
    CHECK_OK(quire_memory_trim(s->memory, 0, NULL));
    CHECK_OK(quire_memory_check(s->memory));
    if (s->stream)
        CHECK_OK(quire_stream_destroy(&s->stream));
    quire_memory_destroy_all(&s->memory);
    CHECK_OK(quire_device_destroy(&s->device));
}

/* ---- threads that allocate ---------------------------------------------------------------- */

/* Gives and takes memory of a lazy allocation of 16 chunks, and uses it. */
static void change_chunks(quire_memory *memory, quire_allocation lazy, uint32_t number)
{
    const uint64_t chunk = 64 * KIB, first = number * 5 % 16, count = number % 5 + 1;
    const quire_view range = {lazy, first * chunk, (first + count < 16 ? count : 1) * chunk};
    CHECK_OK(quire_back_range(memory, &range, 1));
    CHECK_OK(quire_write(memory, lazy, range.offset + range.size - 4, "four", 4));
    if (number % 3)
        CHECK_OK(quire_unback_range(memory, &range, 1, NULL));
}

static quire_allocation allocate_lazy(quire_memory *memory)
{
    quire_allocation made;
    const quire_allocation_options options = {.size = 16 * 64 * KIB, .lazy = true};
    CHECK_OK(quire_allocate(memory, &options, &made));
    return made;
}

static void *churn(void *user)
{
    scene *s = user;
    quire_allocation live[8] = {{0}};
    const quire_allocation lazy =
        variant.elastic ? allocate_lazy(s->memory) : (quire_allocation){0};
    for (uint32_t i = 0; !qi_atomic_load_acquire_u32(&s->is_over); i++) {
        quire_allocation *a = &live[i * 7 % 8];
        const quire_allocation_options options = {.size = (UINT64_C(64) << i % 13) + i % 5,
                                                  .name = i % 3 ? NULL : "churned"};
        if (a->id)
            CHECK_OK(i % 4 || !s->stream ? quire_free(s->memory, *a)
                                         : quire_free_on_stream(s->memory, *a, s->stream));
        CHECK_OK(quire_allocate(s->memory, &options, a));
        if (i % 64 == 0)
            CHECK_OK(quire_memory_trim(s->memory, 0, NULL));
        if (i % 16 == 0)
            CHECK_OK(quire_write(s->memory, *a, 0, "four", 4));
        if (variant.elastic && i % 4 == 3)
            change_chunks(s->memory, lazy, i);
    }
    return NULL;
}

static void fork_beside_threads(void)
{
    const uint32_t shards = variant.shards;
    const uint64_t count = shards == 1 && !variant.elastic ? forks : forks / 2;
    scene s;
    pthread_t threads[CHURNERS];
    open_host(&s, NULL,
              &(quire_memory_options){
                  .kind.required = QUIRE_HOST_VISIBLE,
                  .shards = shards,
                  .elastic = variant.elastic,
                  .address_space = variant.elastic ? 1024 * MIB : 0, /* valgrind has few */
                  .find_by_address = true,
                  .pages = {.page_size = variant.elastic ? 64 * KIB : 256 * KIB}});
    CHECK_OK(quire_stream_create(s.device, NULL, &s.stream));
    if (!shards)
        allow_shards(s.memory, 5);
    s.live = allocate(s.memory, 100);
    for (int i = 0; i < CHURNERS; i++)
        CHECK(!pthread_create(&threads[i], NULL, churn, &s));
    for (uint64_t i = 0; i < count; i++) {
        if (i % 4 == 1)
            grow_shards_soon(s.memory);
        in_child(use_and_end, &s);
    }
    CHECK(shards || count < 8 || qi_shard_count(s.memory) > 1);
    qi_atomic_store_release_u32(&s.is_over, 1);
    for (int i = 0; i < CHURNERS; i++)
        pthread_join(threads[i], NULL);
    CHECK_OK(quire_memory_check(s.memory));
    CHECK_OK(quire_free(s.memory, s.live));
    quire_memory_destroy_all(&s.memory);
    CHECK_OK(quire_stream_destroy(&s.stream));
    CHECK_OK(quire_device_destroy(&s.device));
}

/*
 * A memory gets more shards while the fork handlers release its first lock. They did not acquire
 * the locks of these shards and must not release them. They visit the locks of many other memories
 * in between, which gives the thread time to get there.
 */
enum { OTHER_MEMORIES = 1000, MANY_SHARDS = QI_MAX_SHARDS };

typedef struct newcomer {
    quire_memory *memory;
    qi_atomic_u32 is_ready, is_forked;
    bool has_lost_lock;
} newcomer;

static qi_atomic_u32 is_frozen; /* the handlers of the library hold all locks */

static void note_frozen(void)
{
    qi_atomic_store_release_u32(&is_frozen, 1);
}

/* Adds shards as soon as the first lock is released. Holds the last one's lock beyond the fork. */
static void *add_shards(void *user)
{
    newcomer *n = user;
    quire_memory *memory = n->memory;
    qi_lock *first = &memory->shards[0]->lock;
    qi_atomic_store_release_u32(&n->is_ready, 1);
    while (!qi_atomic_load_acquire_u32(&is_frozen) || !qi_lock_try(first)) {
    }
    qi_lock_release(first);
    while (qi_shard_count(memory) < MANY_SHARDS) {
        grow_shards_soon(memory);
        qi_memory_do_due(memory);
    }
    qi_lock *last = &memory->shards[MANY_SHARDS - 1]->lock;
    qi_lock_acquire(last);
    while (!qi_atomic_load_acquire_u32(&n->is_forked))
        n->has_lost_lock |= qi_atomic_load_u32(&last->state) == QI_LOCK_FREE;
    n->has_lost_lock |= qi_atomic_load_u32(&last->state) == QI_LOCK_FREE;
    qi_lock_release(last);
    return NULL;
}

static void end_at_once(void *user)
{
    (void)user;
}

static void fork_beside_newcomer(quire_device *device)
{
    newcomer n = {.memory = NULL};
    pthread_t thread;
    CHECK_OK(quire_memory_create(device, NULL, &n.memory));
    allow_shards(n.memory, MANY_SHARDS);
    qi_atomic_store_release_u32(&is_frozen, 0);
    CHECK(!pthread_create(&thread, NULL, add_shards, &n));
    while (!qi_atomic_load_acquire_u32(&n.is_ready))
        wait_ms(1);
    in_child(end_at_once, NULL);
    qi_atomic_store_release_u32(&n.is_forked, 1);
    CHECK(!pthread_join(thread, NULL));
    CHECK(!n.has_lost_lock);
    CHECK_OK(quire_memory_check(n.memory));
    CHECK_OK(quire_memory_destroy(&n.memory));
}

static void a_thread_that_adds_shards(void)
{
    static quire_memory *others[OTHER_MEMORIES];
    scene s;
    open_host(&s, NULL, NULL);
    for (int i = 0; i < OTHER_MEMORIES; i++)
        CHECK_OK(quire_memory_create(s.device, NULL, &others[i]));
    for (int round = 0; round < 5; round++)
        fork_beside_newcomer(s.device);
    for (int i = 0; i < OTHER_MEMORIES; i++)
        quire_memory_destroy_all(&others[i]);
    close_all(&s);
}

/* ---- pages in creation and destruction ---------------------------------------------------- */

static void *allocate_slowly(void *user)
{
    scene *s = user;
    allocate(s->memory, 100);
    return NULL;
}

static void *trim_slowly(void *user)
{
    scene *s = user;
    CHECK_OK(quire_memory_trim(s->memory, 0, NULL));
    return NULL;
}

/* The only page of the memory is available; the unfinished one is not counted. */
static void have_the_only_page(void *user)
{
    scene *s = user;
    quire_memory_stats stats;
    quire_device_stats device;
    CHECK_EQ(s->fake.forks, 1);
    s->fake.slow_ms = 0;
    quire_allocation a = allocate(s->memory, 100);
    CHECK_OK(quire_memory_get_stats(s->memory, &stats));
    CHECK_EQ(stats.page_count, 1);
    CHECK_EQ(stats.reserved_bytes, MIB);
    CHECK_OK(quire_device_get_stats(s->device, &device));
    CHECK_EQ(device.reserved_bytes, MIB);
    CHECK_OK(quire_memory_check(s->memory));
    CHECK_OK(quire_free(s->memory, a));
    CHECK_OK(quire_memory_destroy(&s->memory));
    CHECK_OK(quire_device_destroy(&s->device));
}

static const quire_memory_options ONE_PAGE = {
    .kind.mask = 2, .limit = MIB, .pages = {.page_size = MIB, .max_pages = 1}};

/* Forks while threads do the call, which is slow in the backend. */
static void fork_amid(scene *s, int count, void *(*call)(void *), void (*body)(void *user))
{
    pthread_t threads[CHURNERS];
    s->fake.slow_ms = SLOW_MS;
    for (int i = 0; i < count; i++)
        CHECK(!pthread_create(&threads[i], NULL, call, s));
    wait_ms(SLOW_MS / 3);
    in_child(body, s);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    s->fake.slow_ms = 0;
}

static void a_page_being_made(void)
{
    scene s;
    open_fake(&s, true, &ONE_PAGE);
    CHECK_OK(quire_device_set_page_limit(s.device, 1));
    CHECK_OK(quire_device_set_heap_limit(s.device, 1, MIB));
    fork_amid(&s, 3, allocate_slowly, have_the_only_page); /* two wait for the third's page */
    CHECK_OK(quire_memory_check(s.memory));
    close_all(&s);
}

static void a_page_being_given_back(void)
{
    scene s;
    open_fake(&s, true, &ONE_PAGE);
    CHECK_OK(quire_free(s.memory, allocate(s.memory, 100)));
    fork_amid(&s, 1, trim_slowly, have_the_only_page);
    close_all(&s);
}

/* The backend is destroying the first of two pages, and the thread owns the second. */
static void have_one_page_less(void *user)
{
    scene *s = user;
    CHECK_EQ(s->fake.pages, 1);
    s->fake.slow_ms = 0;
    allocate(s->memory, 100);
    CHECK_OK(quire_memory_check(s->memory));
    quire_memory_destroy_all(&s->memory);
    CHECK_OK(quire_device_destroy(&s->device));
}

static void pages_being_given_back(void)
{
    scene s;
    open_fake(&s, true, &(quire_memory_options){.kind.mask = 2, .pages = {.page_size = MIB}});
    quire_allocation first = allocate(s.memory, 700 * KIB), second = allocate(s.memory, 700 * KIB);
    CHECK_OK(quire_free(s.memory, first));
    CHECK_OK(quire_free(s.memory, second));
    CHECK_EQ(s.fake.pages, 2);
    fork_amid(&s, 1, trim_slowly, have_one_page_less);
    close_all(&s);
}

static const quire_memory_options ELASTIC = {
    .kind.mask = 2, .elastic = true, .address_space = 64 * MIB, .pages = {.page_size = MIB}};

/* The window of the other thread is holes again, and the chunk that it took has no memory. */
static void make_room_again(void *user)
{
    scene *s = user;
    quire_memory_stats stats;
    s->fake.slow_ms = 0;
    CHECK_OK(quire_memory_get_stats(s->memory, &stats));
    CHECK_OK(quire_memory_check(s->memory));
    CHECK(stats.reserved_bytes == s->reserved || stats.reserved_bytes == s->reserved - MIB);
    quire_allocation a = allocate(s->memory, 5 * MIB);
    CHECK_OK(quire_memory_check(s->memory));
    CHECK_OK(quire_free(s->memory, a));
    CHECK_OK(quire_free(s->memory, s->live));
    CHECK_OK(quire_memory_trim(s->memory, 0, NULL));
    quire_memory_destroy_all(&s->memory);
    CHECK_OK(quire_device_destroy(&s->device));
}

static void *grow_slowly(void *user)
{
    scene *s = user;
    allocate(s->memory, 3 * MIB);
    return NULL;
}

/* One free chunk between two live ones, which the other thread's request takes. */
static void a_page_that_gets_memory(void)
{
    scene s;
    quire_memory_stats stats;
    open_fake(&s, true, &ELASTIC);
    s.live = allocate(s.memory, MIB);
    quire_allocation free = allocate(s.memory, MIB), last = allocate(s.memory, MIB);
    CHECK_OK(quire_free(s.memory, free));
    CHECK_OK(quire_memory_get_stats(s.memory, &stats));
    s.reserved = stats.reserved_bytes;
    fork_amid(&s, 2, grow_slowly, make_room_again);
    CHECK_OK(quire_free(s.memory, last));
    close_all(&s);
}

/* ---- calls in progress -------------------------------------------------------------------- */

static void stand_in_hook(void *user, quire_memory *memory, const quire_event *event)
{
    scene *s = user;
    (void)memory;
    (void)event;
    gate_wait(&s->gate);
}

static bool stand_in_progress(void *user, uint64_t done, uint64_t total)
{
    scene *s = user;
    (void)done;
    (void)total;
    gate_wait(&s->gate);
    return true;
}

static void *copy_with_progress(void *user)
{
    scene *s = user;
    char bytes[100] = {0};
    const quire_copy_options copy = {.to = {.memory = s->memory, .allocation = s->live},
                                     .host_from = bytes,
                                     .size = sizeof bytes,
                                     .progress = {.goes_on = stand_in_progress, .user = s}};
    CHECK_OK(quire_copy(&copy, NULL));
    return NULL;
}

static void *allocate_and_free(void *user)
{
    scene *s = user;
    CHECK_OK(quire_free(s->memory, allocate(s->memory, 1000)));
    return NULL;
}

static void *end_memory(void *user)
{
    scene *s = user;
    quire_memory_destroy_all(&s->memory);
    return NULL;
}

/* Forks while another thread stands in a callback of the call. */
static void fork_behind(scene *s, void *(*call)(void *), void (*body)(void *user))
{
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, call, s));
    gate_await(&s->gate);
    in_child(body, s);
    gate_open(&s->gate);
    pthread_join(thread, NULL);
}

static const quire_memory_options VISIBLE = {.kind.required = QUIRE_HOST_VISIBLE,
                                             .pages = {.page_size = MIB}};

/* Frees everything that this process has a handle of; no other reference keeps the memory. */
static void free_and_destroy(void *user)
{
    scene *s = user;
    CHECK_OK(quire_memory_set_hook(s->memory, NULL));
    quire_allocation a = allocate(s->memory, 100);
    CHECK_OK(quire_free(s->memory, a));
    if (s->live.id)
        CHECK_OK(quire_free(s->memory, s->live));
    CHECK_OK(quire_memory_check(s->memory));
    CHECK_OK(quire_memory_destroy(&s->memory));
    CHECK_OK(quire_device_destroy(&s->device));
}

static void an_allocation_in_a_copy(void)
{
    scene s;
    open_host(&s, NULL, &VISIBLE);
    s.live = allocate(s.memory, 100);
    fork_behind(&s, copy_with_progress, free_and_destroy);
    CHECK_OK(quire_free(s.memory, s.live));
    close_all(&s);
}

static void a_slot_in_hand(void)
{
    scene s;
    open_host(&s, NULL, &VISIBLE);
    CHECK_OK(quire_memory_set_hook(
        s.memory, &(quire_hook){.event = stand_in_hook, .user = &s, .kinds = variant.event}));
    fork_behind(&s, allocate_and_free, free_and_destroy);
    close_all(&s);
}

static void destroy_device(void *user)
{
    scene *s = user;
    CHECK_OK(quire_device_destroy(&s->device));
}

static void a_memory_that_ends(void)
{
    scene s;
    open_host(&s, NULL, &VISIBLE);
    allocate(s.memory, 100);
    CHECK_OK(quire_memory_set_hook(
        s.memory,
        &(quire_hook){.event = stand_in_hook, .user = &s, .kinds = QUIRE_EVENT_PAGE_GONE}));
    fork_behind(&s, end_memory, destroy_device);
    CHECK_OK(quire_device_destroy(&s.device));
}

/* ---- forks within callbacks --------------------------------------------------------------- */

static void fork_once(scene *s)
{
    if (s->has_forked || !s->end)
        return;
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child) {
        alarm(PATIENCE_S);
        s->has_forked = true; /* the call continues, in the child too */
        return;
    }
    CHECK(child_was_well(child));
}

static void fork_in_hook(void *user, quire_memory *memory, const quire_event *event)
{
    (void)memory;
    (void)event;
    fork_once(user);
}

static void fork_in_sink(void *user, quire_log_level level, const char *line)
{
    (void)level;
    (void)line;
    fork_once(user);
}

static bool fork_in_progress(void *user, uint64_t done, uint64_t total)
{
    (void)done;
    (void)total;
    fork_once(user);
    return true;
}

static bool fork_when_out_of_memory(void *user, quire_memory *memory,
                                    const quire_out_of_memory *report)
{
    (void)memory;
    (void)report;
    fork_once(user);
    return false;
}

static void end_if_child(scene *s)
{
    if (s->has_forked) {
        s->end(s);
        child_end(true);
    }
}

/* Every call that runs a callback, one after the other; a child ends after its call. */
static void call_everything(scene *s)
{
    char bytes[300] = {0};
    quire_allocation a, b, many[20];
    s->live = allocate(s->memory, 200);
    end_if_child(s);
    a = allocate(s->memory, 300);
    end_if_child(s);
    const quire_copy_options copy = {.to = {.memory = s->memory, .allocation = a},
                                     .host_from = bytes,
                                     .size = sizeof bytes,
                                     .progress = {.goes_on = fork_in_progress, .user = s}};
    CHECK_OK(quire_copy(&copy, NULL));
    s->live = s->has_forked ? a : s->live;
    end_if_child(s);
    CHECK_OK(quire_free(s->memory, a));
    end_if_child(s);
    CHECK_OK(quire_allocate_batch(s->memory, &(quire_allocation_options){.size = 10}, many, 20));
    end_if_child(s);
    CHECK_OK(quire_free_batch(s->memory, many, 20));
    end_if_child(s);
    CHECK_OK(quire_free(s->memory, s->live));
    s->live = (quire_allocation){0};
    end_if_child(s);
    CHECK_OK(quire_memory_trim(s->memory, 0, NULL));
    end_if_child(s);
    CHECK(quire_allocate(s->memory, &(quire_allocation_options){.size = 100 * MIB}, &b));
    end_if_child(s);
}

static void end_after_callback(void *user)
{
    scene *s = user;
    s->end = NULL; /* no forks from here on */
    CHECK_OK(quire_memory_check(s->memory));
    if (s->live.id)
        CHECK_OK(quire_free(s->memory, s->live));
    allocate(s->memory, 100);
    quire_memory_destroy_all(&s->memory);
    CHECK_OK(quire_device_destroy(&s->device));
}

static void forks_in_callbacks(void)
{
    scene s;
    memset(&s, 0, sizeof s);
    const quire_host_options options = {
        .device.log = {.level = QUIRE_LOG_DEBUG, .write = fork_in_sink, .user = &s}};
    CHECK_OK(quire_host_open(&options, &s.device));
    CHECK_OK(quire_memory_create(
        s.device,
        &(quire_memory_options){.kind.required = QUIRE_HOST_VISIBLE,
                                .limit = 8 * MIB,
                                .on_out_of_memory = {fork_when_out_of_memory, &s},
                                .pages = {.page_size = MIB}},
        &s.memory));
    CHECK_OK(quire_memory_set_hook(s.memory, &(quire_hook){.event = fork_in_hook, .user = &s}));
    s.end = end_after_callback;
    call_everything(&s);
    s.end = NULL;
    close_all(&s);
}

/* ---- streams ------------------------------------------------------------------------------ */

static void stand(void *user)
{
    gate_wait(user);
}

/* The stream has ended: no thread waits for it, and nothing runs on it. */
static void streams_in_child(void *user)
{
    scene *s = user;
    quire_point point;
    quire_stream *own = NULL;
    quire_memory_stats stats;
    CHECK_OK(quire_collect(s->memory, NULL));
    CHECK_OK(quire_memory_get_stats(s->memory, &stats));
    CHECK_EQ(stats.deferred_count, 0);
    CHECK_FAILS(quire_stream_mark(s->stream, &point), DENIED);
    CHECK_FAILS(quire_fill(s->memory, s->live,
                           &(quire_fill_options){.value = 1, .stream = s->stream}, NULL),
                DENIED);
    CHECK_FAILS(quire_host_stream_submit(s->stream, stand, &s->gate), DENIED);
    CHECK_OK(quire_stream_destroy(&s->stream));
    CHECK_OK(quire_stream_create(s->device, NULL, &own));
    CHECK_OK(
        quire_fill(s->memory, s->live, &(quire_fill_options){.value = 7, .stream = own}, &point));
    CHECK_OK(quire_point_await(&point, QUIRE_FOREVER));
    CHECK_OK(quire_stream_destroy(&own));
    free_and_destroy(s);
}

static void streams_with_work(void)
{
    scene s;
    open_host(&s, NULL, &VISIBLE);
    s.live = allocate(s.memory, 100);
    CHECK_OK(quire_stream_create(s.device, NULL, &s.stream));
    CHECK_OK(quire_host_stream_submit(s.stream, stand, &s.gate));
    CHECK_OK(
        quire_fill(s.memory, s.live, &(quire_fill_options){.value = 3, .stream = s.stream}, NULL));
    CHECK_OK(quire_free_on_stream(s.memory, allocate(s.memory, 100), s.stream));
    gate_await(&s.gate);
    in_child(streams_in_child, &s);
    gate_open(&s.gate);
    CHECK_OK(quire_stream_destroy(&s.stream));
    close_all(&s);
}

/* ---- devices that do not survive ---------------------------------------------------------- */

/* Only destruction is allowed. */
static void only_ends(void *user)
{
    scene *s = user;
    quire_allocation a;
    quire_allocation_info place;
    quire_memory_info info;
    quire_memory_stats stats;
    quire_memory *other;
    quire_stream *stream;
    uint64_t items = 0;
    void *pointer;
    char byte = 0;
    CHECK_FAILS(quire_allocate(s->memory, &(quire_allocation_options){.size = 8}, &a), DENIED);
    CHECK_FAILS(quire_allocate_batch(s->memory, &(quire_allocation_options){.size = 8}, &a, 1),
                DENIED);
    CHECK_FAILS(quire_free(s->memory, s->live), DENIED);
    CHECK_FAILS(quire_free_batch(s->memory, &s->live, 1), DENIED);
    CHECK_FAILS(quire_map(s->memory, s->live, &pointer), DENIED);
    CHECK_FAILS(quire_write(s->memory, s->live, 0, &byte, 1), DENIED);
    CHECK_FAILS(quire_read(s->memory, s->live, 0, &byte, 1), DENIED);
    CHECK_FAILS(quire_allocation_get_info(s->memory, s->live, &place), DENIED);
    CHECK_FAILS(quire_memory_find(s->memory, 1, &a), DENIED);
    CHECK_FAILS(quire_device_find(s->device, 1, NULL, &a), DENIED);
    CHECK_FAILS(quire_free_at_address(s->memory, 1, NULL), DENIED);
    CHECK_FAILS(quire_memory_get_info(s->memory, &info), DENIED);
    CHECK_FAILS(quire_memory_get_stats(s->memory, &stats), DENIED);
    CHECK_FAILS(quire_memory_walk(s->memory, visit, &items), DENIED);
    CHECK_FAILS(quire_memory_check(s->memory), DENIED);
    CHECK_FAILS(quire_memory_trim(s->memory, 0, NULL), DENIED);
    CHECK_FAILS(quire_memory_create(s->device, NULL, &other), DENIED);
    CHECK_FAILS(quire_stream_create(s->device, &(quire_stream_options){.capture = true}, &stream),
                DENIED);
    CHECK_HAS(quire_last_error(), "fork");
    CHECK_FAILS(quire_device_destroy(&s->device), QUIRE_ERROR_BUSY);
    CHECK_OK(quire_memory_destroy(&s->memory));
    CHECK_OK(quire_device_destroy(&s->device));
}

static void ends_without_the_backend(void *user)
{
    scene *s = user;
    only_ends(s);
    CHECK_EQ(s->fake.pages, 1);
    CHECK(!s->fake.ended);
}

static void shared_pages(void)
{
    scene s;
    quire_device_info info;
    open_host(&s, &(quire_host_options){.backing = QUIRE_HOST_MEMFD}, &VISIBLE);
    s.live = allocate(s.memory, 100);
    CHECK_OK(quire_device_get_info(s.device, &info));
    CHECK(!info.survives_fork);
    in_child(only_ends, &s);
    CHECK_OK(quire_write(s.memory, s.live, 0, "four", 4));
    close_all(&s);
}

static void a_backend_that_says_nothing(void)
{
    scene s;
    open_fake(&s, false, &ONE_PAGE);
    s.live = allocate(s.memory, 100);
    in_child(ends_without_the_backend, &s);
    CHECK_OK(quire_free(s.memory, s.live));
    close_all(&s);
}

/* ------------------------------------------------------------------------------------------- */

static void use_it(void *user)
{
    scene *s = user;
    quire_allocation more = allocate(s->memory, MIB);
    CHECK_OK(quire_free(s->memory, more));
    close_all(s);
}

/* Another thread has begun to destroy it, and the call may fail because allocations live. */
static void a_memory_whose_end_has_begun(void)
{
    scene s;
    open_fake(&s, true, NULL);
    s.memory->is_ending = true;
    in_child(use_it, &s);
    s.memory->is_ending = false;
    close_all(&s);
}

/* The lost memory is in no list and owns no handle. */
static void make_another_memory(scene *s)
{
    quire_memory *other;
    quire_device_stats stats;
    CHECK_EQ(quire_device_free(s->device, s->live), QUIRE_ERROR_STALE_HANDLE);
    CHECK_OK(quire_memory_create(s->device, &(quire_memory_options){0}, &other));
    CHECK_OK(quire_device_get_stats(s->device, &stats));
    CHECK_EQ(stats.memory_count, 1);
    CHECK_OK(quire_device_free(s->device, allocate(other, 100)));
    CHECK_OK(quire_memory_destroy(&other));
}

static void ends_the_stream(void *user)
{
    scene *s = user;
    quire_device_stats stats;
    make_another_memory(s);
    CHECK_OK(quire_stream_destroy(&s->stream));
    CHECK_OK(quire_device_get_stats(s->device, &stats));
    CHECK_EQ(stats.page_count, 0);
    CHECK_EQ(stats.reserved_bytes, 0);
    CHECK_EQ(s->fake.pages, 1); /* the lost allocation */
    CHECK_OK(quire_device_destroy(&s->device));
}

/* Another thread destroys the memory, and sleeps until the stream has reached the point. */
static void a_memory_that_ends_and_waits(void)
{
    scene s;
    quire_point point;
    memset(&s, 0, sizeof s);
    fake_init(&s.fake);
    streams_offer(&s.fake.table);
    s.fake.info.survives_fork = true;
    fake_offer_fork(&s.fake);
    CHECK_OK(fake_open(&s.fake, NULL, &s.device));
    CHECK_OK(quire_memory_create(s.device, &(quire_memory_options){.pages.retained_empty_bytes = 1},
                                 &s.memory));
    CHECK_OK(quire_stream_create(s.device, NULL, &s.stream));
    s.live = allocate(s.memory, 100);
    CHECK_OK(quire_stream_mark(s.stream, &point));
    CHECK_OK(quire_free_after_point(s.memory, s.live, &point));
    s.memory->is_ending = true;
    s.memory->destroying_thread = &point; /* belongs to no thread */
    in_child(ends_the_stream, &s);
    s.memory->is_ending = false;
    s.memory->destroying_thread = NULL;
    streams_pass(s.stream);
    CHECK_OK(quire_stream_destroy(&s.stream));
    close_all(&s);
}

/* ---- default memories --------------------------------------------------------------------- */

static void use_defaults(void *user)
{
    scene *s = user;
    quire_memory *memory = NULL, *other = NULL;
    CHECK_OK(quire_device_default_memory(s->device, 1, &memory));
    CHECK(memory == s->memory);
    CHECK_OK(quire_memory_check(memory));
    CHECK_FAILS(quire_device_destroy(&s->device), QUIRE_ERROR_BUSY);
    CHECK_OK(quire_free(memory, s->live));
    CHECK_OK(quire_device_default_memory(s->device, 0, &other));
    CHECK_OK(quire_free(other, allocate(other, 4 * KIB)));
    CHECK_OK(quire_device_destroy(&s->device));
}

static void end_disabled_defaults(void *user)
{
    scene *s = user;
    quire_memory *memory = s->memory;
    quire_allocation made = {1};
    CHECK_FAILS(quire_device_default_memory(s->device, 1, &memory), DENIED);
    CHECK(!memory);
    memory = s->memory;
    CHECK_FAILS(quire_device_allocate(s->device, NULL, &(quire_allocation_options){.size = 1},
                                      &memory, &made),
                DENIED);
    CHECK(!memory && !made.id);
    CHECK_FAILS(quire_free(s->memory, s->live), DENIED);
    CHECK_OK(quire_device_destroy(&s->device)); /* with the allocations of the parent */
}

static void default_memories(void)
{
    for (int survives = 0; survives < 2; survives++) {
        scene s;
        quire_memory *own;
        open_fake(&s, survives, NULL);
        own = s.memory;
        CHECK_OK(quire_device_default_memory(s.device, 1, &s.memory));
        s.live = allocate(s.memory, 100);
        CHECK_OK(quire_memory_destroy(&own));
        in_child(survives ? use_defaults : end_disabled_defaults, &s);
        CHECK_OK(quire_memory_check(s.memory));
        CHECK_OK(quire_free(s.memory, s.live));
        CHECK_OK(quire_device_destroy(&s.device));
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*body)(void);
        struct variant variant;
    } beside[] = {
        {"four threads that allocate", fork_beside_threads, {.shards = 1}},
        {"four threads in three shards", fork_beside_threads, {.shards = 3}},
        {"four threads in more and more shards", fork_beside_threads, {.shards = 0}},
        {"a thread that adds shards", a_thread_that_adds_shards, {0}},
        {"four threads in an elastic page", fork_beside_threads, {.shards = 1, .elastic = true}},
        {"a page that another thread creates", a_page_being_made, {0}},
        {"a page that another thread destroys", a_page_being_given_back, {0}},
        {"two pages that another thread destroys", pages_being_given_back, {0}},
        {"an elastic page that another thread gives memory", a_page_that_gets_memory, {0}},
        {"an allocation that another thread copies to", an_allocation_in_a_copy, {0}},
        {"an allocation that another thread creates",
         a_slot_in_hand,
         {.event = QUIRE_EVENT_ALLOCATED}},
        {"an allocation that another thread frees", a_slot_in_hand, {.event = QUIRE_EVENT_FREED}},
        {"a memory that another thread destroys", a_memory_that_ends, {0}},
        {"a stream with a running worker", streams_with_work, {0}},
    };
    forks = plain_option(argc, argv, "steps", 30);
    CHECK(!pthread_atfork(note_frozen, NULL, NULL)); /* before the library's: runs after them */
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
        variant = beside[i].variant;
        if (HAS_THREAD_SANITIZER)
            plain_skip(beside[i].name,
                       "the thread sanitizer does not support forks beside threads");
        else
            plain_case(beside[i].name, beside[i].body);
    }
    plain_case("forks in callbacks", forks_in_callbacks);
    plain_case("a memory whose destruction has begun", a_memory_whose_end_has_begun);
    plain_case("a memory whose destruction waits for a stream", a_memory_that_ends_and_waits);
    plain_case("pages that are shared with the parent", shared_pages);
    plain_case("default memories", default_memories);
    plain_case("a backend that does not state that it survives", a_backend_that_says_nothing);
    return plain_end();
}
