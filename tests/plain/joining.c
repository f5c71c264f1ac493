/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * joining.c - threads that need a page while another thread creates one: they wait if it will have
 * room for them, create their own if not, and do not fail because of a limit that is about to be
 * met.
 */
#include <pthread.h>
#include <stdio.h>

#include "quire/quire.h"
#include "src/base/atomic.h"
#include "tests/support/fake.h"
#include "tests/support/plain.h"

enum { THREADS = 4, SLOW_MS = 40, ROUNDS = 10 };

typedef struct scene {
    fake_backend fake;
    quire_device *device;
    quire_memory *memory;
    pthread_barrier_t start;
    uint64_t size;
    bool dedicated, lazy;
    quire_result results[THREADS];
    quire_allocation allocations[THREADS];
} scene;

typedef struct actor {
    scene *scene;
    int number;
} actor;

static void *allocate(void *user)
{
    const actor *a = user;
    scene *s = a->scene;
    quire_allocation_options options = {
        .size = s->size, .dedicated = s->dedicated, .lazy = s->lazy};
    pthread_barrier_wait(&s->start);
    s->results[a->number] = quire_allocate(s->memory, &options, &s->allocations[a->number]);
    return NULL;
}

static void *allocate_and_free(void *user)
{
    const actor *a = user;
    allocate(user);
    if (!a->scene->results[a->number])
        CHECK_OK(quire_free(a->scene->memory, a->scene->allocations[a->number]));
    return NULL;
}

static void begin_with(scene *s, const quire_memory_options *options)
{
    memset(s, 0, sizeof *s);
    fake_init(&s->fake);
    s->fake.slow_ms = SLOW_MS;
    if (options->elastic)
        fake_offer_growth(&s->fake);
    CHECK_OK(fake_open(&s->fake, NULL, &s->device));
    CHECK_OK(quire_memory_create(s->device, options, &s->memory));
    pthread_barrier_init(&s->start, NULL, THREADS);
}

static void begin(scene *s, quire_page_policy pages)
{
    begin_with(s, &(quire_memory_options){.pages = pages});
}

static void play(scene *s, void *(*act)(void *))
{
    pthread_t threads[THREADS];
    actor actors[THREADS];
    for (int i = 0; i < THREADS; i++) {
        actors[i] = (actor){s, i};
        CHECK(!pthread_create(&threads[i], NULL, act, &actors[i]));
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_OK(quire_memory_check(s->memory));
}

static void end(scene *s)
{
    quire_memory_destroy_all(&s->memory);
    CHECK_OK(quire_device_destroy(&s->device));
    CHECK_EQ(s->fake.pages + s->fake.maps, 0);
    pthread_barrier_destroy(&s->start);
}

static void small_ones_share_the_page_being_made(void)
{
    static scene s;
    begin(&s, (quire_page_policy){.page_size = 1 << 20});
    s.size = 1000;
    play(&s, allocate);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(s.results[i], QUIRE_SUCCESS);
    CHECK_EQ(s.fake.calls[FAKE_PAGE_CREATE], 1);
    end(&s);
}

static void large_ones_do_not_wait_for_each_other(void)
{
    static scene s;
    begin(&s, (quire_page_policy){.page_size = 1 << 20});
    s.size = 900 * 1024;
    play(&s, allocate);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(s.results[i], QUIRE_SUCCESS);
    CHECK_EQ(s.fake.calls[FAKE_PAGE_CREATE], THREADS);
    end(&s);
}

/* One page by the policy, by the fit, or by a budget. */
static void play_for_the_only_page(const quire_memory_options *options, uint64_t size,
                                   int expected_failures)
{
    quire_result expected = options->limit ? QUIRE_ERROR_OVER_BUDGET : QUIRE_ERROR_TOO_MANY_PAGES;
    static scene s;
    begin_with(&s, options);
    s.size = size;
    play(&s, allocate);
    int refused = 0;
    for (int i = 0; i < THREADS; i++) {
        CHECK(!s.results[i] || s.results[i] == expected);
        refused += s.results[i] != QUIRE_SUCCESS;
    }
    CHECK_EQ(refused, expected_failures);
    CHECK_EQ(s.fake.calls[FAKE_PAGE_CREATE], 1);
    end(&s);
}

static void no_request_fails_while_the_only_page_is_being_created(void)
{
    static const quire_memory_options by_policy = {.pages = {.page_size = 1 << 20, .max_pages = 1}},
                                      by_fit = {.fit.algorithm = QUIRE_FIT_LINEAR,
                                                .pages = {.page_size = 1 << 20}},
                                      by_budget = {.limit = 1 << 20,
                                                   .pages = {.page_size = 1 << 20}};
    play_for_the_only_page(&by_policy, 300 * 1024, 1);
    play_for_the_only_page(&by_fit, 300 * 1024, 1);
    play_for_the_only_page(&by_budget, 300 * 1024, 1);
    /* the last request fits too, although no share of the page could be promised before it existed
       */
    play_for_the_only_page(&by_policy, 256 * 1024, 0);
    play_for_the_only_page(&by_fit, 256 * 1024, 0);
    play_for_the_only_page(&by_budget, 256 * 1024, 0);
}

/* They need its addresses, and no memory. */
static void lazy_ones_share_the_elastic_page_being_made(void)
{
    static scene s;
    begin_with(&s, &(quire_memory_options){
                       .elastic = true, .address_space = 1 << 20, .pages = {.page_size = 1 << 16}});
    s.size = 1 << 17;
    s.lazy = true;
    play(&s, allocate);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(s.results[i], QUIRE_SUCCESS);
    end(&s);
}

static void dedicated_ones_take_turns_under_a_limit(void)
{
    static scene s;
    begin(&s, (quire_page_policy){.max_pages = 2});
    s.size = 1000;
    s.dedicated = true;
    s.fake.slow_ms = 1;
    for (int i = 0; i < ROUNDS; i++) {
        play(&s, allocate_and_free);
        /* a live page is no reason to wait: some requests may fail, never all */
        int placed = 0;
        for (int k = 0; k < THREADS; k++)
            placed += s.results[k] == QUIRE_SUCCESS;
        CHECK(placed >= 2);
        CHECK(s.fake.pages <= 2); /* kept, and reused by the next round */
        CHECK_OK(quire_memory_trim(s.memory, 0, NULL));
        CHECK_EQ(s.fake.pages, 0);
    }
    end(&s);
}

static void the_waiting_go_on_when_the_making_fails(void)
{
    static scene s;
    begin(&s, (quire_page_policy){.page_size = 1 << 20});
    s.size = 1000;
    fake_fail(&s.fake, 1, true, QUIRE_ERROR_NOT_PERMITTED);
    play(&s, allocate);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(s.results[i], QUIRE_ERROR_NOT_PERMITTED);
    fake_fail(&s.fake, 0, false, QUIRE_SUCCESS);
    play(&s, allocate);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(s.results[i], QUIRE_SUCCESS);
    end(&s);
}

static void *trim(void *user)
{
    scene *s = user;
    CHECK_OK(quire_memory_trim(s->memory, 0, NULL));
    return NULL;
}

/* The memory may have one page, and it is being destroyed: requests must wait for that. */
static void a_page_that_leaves_is_awaited(void)
{
    for (int dedicated = 0; dedicated < 2; dedicated++) {
        static scene s;
        quire_allocation allocation;
        quire_allocation_options options = {.size = 1000};
        pthread_t thread;
        begin(&s, (quire_page_policy){.page_size = 1 << 20});
        s.fake.page_budget = 1 << 20;
        CHECK_OK(quire_allocate(s.memory, &options, &allocation));
        CHECK_OK(quire_free(s.memory, allocation));
        CHECK(!pthread_create(&thread, NULL, trim, &s));
        quire_memory_stats stats;
        do
            CHECK_OK(quire_memory_get_stats(s.memory, &stats));
        while (stats.page_count);
        options = (quire_allocation_options){.size = 1 << 20, .dedicated = dedicated};
        CHECK_OK(quire_allocate(s.memory, &options, &allocation));
        pthread_join(thread, NULL);
        end(&s);
    }
}

typedef struct dedicated_maker {
    scene *scene;
    qi_atomic_u64 done;
} dedicated_maker;

static void *make_dedicated(void *user)
{
    dedicated_maker *m = user;
    quire_allocation allocation;
    quire_allocation_options options = {.size = 1000, .dedicated = true};
    CHECK_OK(quire_allocate(m->scene->memory, &options, &allocation));
    qi_atomic_store_release_u64(&m->done, 1);
    return NULL;
}

static void no_request_waits_for_a_page_that_is_not_shared(void)
{
    static scene s;
    dedicated_maker maker = {.scene = &s};
    pthread_t thread;
    quire_allocation allocation;
    begin(&s, (quire_page_policy){.page_size = 1 << 20});
    s.fake.slow_ms = 0;
    s.fake.slow_dedicated_ms = 2000;
    CHECK(!pthread_create(&thread, NULL, make_dedicated, &maker));
    for (uint64_t i = 0; i < 40; i++) {
        quire_allocation_options options = {.size = (i % 4 + 2) * 150 * 1024};
        CHECK_OK(quire_allocate(s.memory, &options, &allocation));
    }
    CHECK(!qi_atomic_load_acquire_u64(&maker.done));
    pthread_join(thread, NULL);
    end(&s);
}

/* Allocates once at each log line about a page: the request must not wait for that page. */
static void allocate_at_line(void *user, quire_log_level level, const char *line)
{
    scene *s = user;
    (void)level;
    if (!s->memory || s->size == 0 || !strstr(line, "page"))
        return;
    quire_allocation_options options = {.size = s->size};
    s->size = 0;
    s->results[0] = quire_allocate(s->memory, &options, &s->allocations[0]);
    s->size = options.size;
}

static void a_sink_may_allocate_when_it_hears_of_pages(void)
{
    static scene s;
    memset(&s, 0, sizeof s);
    fake_init(&s.fake);
    quire_device_options device = {
        .log = {.write = allocate_at_line, .user = &s, .level = QUIRE_LOG_DEBUG}};
    quire_memory_options options = {.pages = {.page_size = 1 << 20, .max_pages = 1}};
    CHECK_OK(quire_device_create(&s.fake.table, &s.fake, &device, &s.device));
    CHECK_OK(quire_memory_create(s.device, &options, &s.memory));
    pthread_barrier_init(&s.start, NULL, THREADS);
    s.size = 1024;
    quire_allocation allocation;
    CHECK_OK(quire_allocate(s.memory, &(quire_allocation_options){.size = 1}, &allocation));
    CHECK_OK(s.results[0]);
    CHECK(s.allocations[0].id);
    CHECK_OK(quire_free(s.memory, allocation));
    CHECK_OK(quire_free(s.memory, s.allocations[0]));
    s.allocations[0].id = 0;
    CHECK_OK(quire_memory_trim(s.memory, 0, NULL));
    CHECK_OK(s.results[0]);
    CHECK(s.allocations[0].id);
    s.size = 0;
    end(&s);
}

int main(void)
{
    plain_case("small requests share the page being created", small_ones_share_the_page_being_made);
    plain_case("large requests do not wait for each other", large_ones_do_not_wait_for_each_other);
    plain_case("no request fails while the only page is being created",
               no_request_fails_while_the_only_page_is_being_created);
    plain_case("lazy requests share the elastic page being created",
               lazy_ones_share_the_elastic_page_being_made);
    plain_case("dedicated requests take turns under a limit",
               dedicated_ones_take_turns_under_a_limit);
    plain_case("waiting requests continue when the creation fails",
               the_waiting_go_on_when_the_making_fails);
    plain_case("requests wait for a page that is being destroyed", a_page_that_leaves_is_awaited);
    plain_case("no request waits for a page that is not shared",
               no_request_waits_for_a_page_that_is_not_shared);
    plain_case("a sink may allocate at a line about a page",
               a_sink_may_allocate_when_it_hears_of_pages);
    return plain_end();
}
