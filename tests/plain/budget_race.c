/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * budget_race.c - threads that race for pages under budgets of every kind: the backend never holds
 * more than the budget at any moment, also while budgets fall; no request fails while its bytes are
 * free; and no budget stays taken at the end. For the thread sanitizer and for the release build.
 *
 *     budget_race [--seed N] [--steps N]
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#include "quire/quire.h"
#include "src/core/device/budget.h"
#include "tests/support/fake.h"
#include "tests/support/plain.h"
#include "tests/support/random.h"

#define KIB UINT64_C(1024)
#define PAGE (64 * KIB)

enum { THREADS = 8, OWN = 12, FALLS = 12, MAX_KEPT = 32, LEFT = 3 };

static uint64_t seed, steps;

/* The work of the threads of a case, and their results. */
static struct {
    fake_backend fake;
    quire_device *device;
    quire_memory *memories[2]; /* of one heap, shared by the threads; the second may be NULL */
    uint32_t one_in;           /* one of this many requests is dedicated */
    const char *names[2];      /* of the allocations, or NULL */
    quire_result expected;     /* the only error that may occur */
    _Atomic bool is_falling;   /* the threads continue until the budget has fallen */
    _Atomic uint64_t refused;
    quire_allocation kept[MAX_KEPT]; /* leave little for the threads */
    uint32_t kept_count;
    _Atomic uint64_t live_bytes[2]; /* a lower bound of the live bytes, by name */
    uint64_t max_live_bytes[2];     /* the limit of the name; 0 means none */
} scene;

/* A falling budget, not below the value that is in force: pages started later respect it. */
static _Atomic uint64_t in_force;
static _Thread_local uint64_t in_force_before;

typedef quire_result create_page(void *, const quire_page_request *, quire_native_page *);

static create_page *real_create;

/* Yields at the critical moment, and checks the sum with the new page. */
static quire_result watched_create(void *state, const quire_page_request *request,
                                   quire_native_page *page)
{
    sched_yield();
    quire_result result = real_create(state, request, page);
    pthread_mutex_lock(&scene.fake.lock);
    uint64_t bytes = scene.fake.heap_bytes[0];
    pthread_mutex_unlock(&scene.fake.lock);
    if (!result && in_force_before && bytes > in_force_before)
        check_failed(__FILE__, __LINE__, "%" PRIu64 " bytes of pages, the limit is %" PRIu64, bytes,
                     in_force_before);
    return result;
}

static quire_result flaky_create(void *state, const quire_page_request *request,
                                 quire_native_page *page)
{
    static const quire_result codes[] = {QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                                         QUIRE_ERROR_OUT_OF_HOST_MEMORY};
    static _Atomic uint64_t drawn;
    test_random r = {.state = seed + atomic_fetch_add(&drawn, 1)};
    if (random_below(&r, 3) == 0)
        return quire_backend_fail(codes[random_below(&r, 2)], -13, "flaky");
    return watched_create(state, request, page);
}

/* ---- scenes --------------------------------------------------------------------------------- */

static void begin(const quire_memory_options *options, int memories, create_page *create)
{
    memset(&scene, 0, sizeof scene);
    atomic_store(&in_force, 0);
    scene.expected = QUIRE_ERROR_OVER_BUDGET;
    fake_init(&scene.fake);
    fake_offer_budget(&scene.fake);
    real_create = scene.fake.table.page_create;
    scene.fake.table.page_create = create;
    CHECK_OK(fake_open(&scene.fake, NULL, &scene.device));
    for (int i = 0; i < memories; i++)
        CHECK_OK(quire_memory_create(scene.device, options, &scene.memories[i]));
}

/* Memories that stay within the backend's budget. */
static void begin_with_pages(uint32_t one_in)
{
    begin(&(quire_memory_options){.within_budget = true, .pages = {.page_size = PAGE}}, 2,
          watched_create);
    scene.one_in = one_in;
}

static quire_memory *memory_of(uintptr_t thread)
{
    return scene.memories[scene.memories[1] ? thread % 2 : 0];
}

static void look_at_names(void)
{
    for (int i = 0; i < 2; i++) {
        uint64_t bytes = atomic_load(&scene.live_bytes[i]), max = scene.max_live_bytes[i];
        if (max && bytes > max)
            check_failed(__FILE__, __LINE__, "'%s' has %" PRIu64 " bytes, the limit is %" PRIu64,
                         scene.names[i], bytes, max);
    }
}

static void try_to_allocate(test_random *r, quire_memory *memory, uint32_t name,
                            quire_allocation *at, uint64_t *bytes)
{
    const quire_allocation_options options = {
        .size = random_size(r, 40 * KIB),
        .name = scene.names[name],
        .dedicated = scene.one_in && random_below(r, scene.one_in) == 0,
    };
    in_force_before = atomic_load(&in_force);
    quire_result result = quire_allocate(memory, &options, at);
    CHECK_EQ(!result, at->id != 0);
    if (result) {
        bool flaky = scene.fake.table.page_create == flaky_create &&
                     (result == QUIRE_ERROR_OUT_OF_DEVICE_MEMORY ||
                      result == QUIRE_ERROR_OUT_OF_HOST_MEMORY);
        if (result != scene.expected && !flaky)
            check_failed(__FILE__, __LINE__, "failed with another error: %s", quire_last_error());
        atomic_fetch_add(&scene.refused, 1);
        return;
    }
    quire_allocation_info info;
    CHECK_OK(quire_allocation_get_info(memory, *at, &info));
    *bytes = info.size + info.left_padding;
    atomic_fetch_add(&scene.live_bytes[name], *bytes);
    look_at_names();
}

static void give_back(quire_memory *memory, uint32_t name, quire_allocation *at, uint64_t bytes)
{
    atomic_fetch_sub(&scene.live_bytes[name], bytes); /* before another thread may get its bytes */
    CHECK_OK(quire_free(memory, *at));
    at->id = 0;
}

static void *work(void *user)
{
    test_random r = {.state = seed + (uintptr_t)user};
    quire_memory *memory = memory_of((uintptr_t)user);
    quire_allocation own[OWN] = {{0}};
    uint64_t bytes[OWN];
    for (uint64_t i = 0; i < steps || atomic_load(&scene.is_falling); i++) {
        uint32_t at = (uint32_t)random_below(&r, OWN);
        if (own[at].id)
            give_back(memory, at % 2, &own[at], bytes[at]);
        else
            try_to_allocate(&r, memory, at % 2, &own[at], &bytes[at]);
        if (random_below(&r, 64) == 0)
            CHECK_OK(quire_memory_trim(memory, 0, NULL));
    }
    for (uint32_t at = 0; at < OWN; at++)
        if (own[at].id)
            give_back(memory, at % 2, &own[at], bytes[at]);
    return NULL;
}

static void run(void *(*body)(void *), void (*beside)(void))
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, body, (void *)i), 0);
    if (beside)
        beside();
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
}

/* Takes everything up to the limit, and frees a little of it for the threads to race for. */
static void keep_most(void)
{
    const quire_allocation_options half = {.size = PAGE / 2, .dedicated = true};
    quire_result result;
    do {
        CHECK(scene.kept_count < MAX_KEPT);
        result = quire_allocate(scene.memories[0], &half, &scene.kept[scene.kept_count]);
        scene.kept_count += !result;
    } while (!result);
    CHECK_EQ(result, scene.expected);
    for (int i = 0; i < LEFT; i++)
        CHECK_OK(quire_free(scene.memories[0], scene.kept[--scene.kept_count]));
}

static void end(void)
{
    quire_budget_info budget;
    while (scene.kept_count)
        CHECK_OK(quire_free(scene.memories[0], scene.kept[--scene.kept_count]));
    for (int i = 0; i < 2 && scene.memories[i]; i++) {
        CHECK_OK(quire_memory_check(scene.memories[i]));
        CHECK_OK(quire_memory_trim(scene.memories[i], 0, NULL));
    }
    CHECK_OK(quire_device_get_budget(scene.device, 0, &budget));
    CHECK_EQ(budget.reserved, 0);
    CHECK_EQ(scene.fake.pages, 0);
    printf("# %" PRIu64 " failed, %" PRIu64 " pages requested\n", atomic_load(&scene.refused),
           scene.fake.calls[FAKE_PAGE_CREATE]);
    for (int i = 0; i < 2 && scene.memories[i]; i++)
        CHECK_OK(quire_memory_destroy(&scene.memories[i]));
    CHECK_OK(quire_device_destroy(&scene.device));
    CHECK(scene.fake.ended);
    pthread_mutex_destroy(&scene.fake.lock);
}

/* The peak reaches the limit, or the case proves nothing, and never exceeds it. */
static void run_under(uint64_t max)
{
    keep_most();
    run(work, NULL);
    CHECK_EQ(scene.fake.peak_heap_bytes[0], max);
    end();
}

/* ---- the account alone ---------------------------------------------------------------------- */

enum { ACCOUNT = 4, TURNS = 2000000 }; /* enough for one amount of 3, or for two of 2 */

static qi_account account;
static _Atomic uint64_t surely_taken, max_taken;

static void *take_and_give(void *user)
{
    test_random r = {.state = seed + (uintptr_t)user};
    for (uint64_t i = 0; i < TURNS; i++) {
        uint64_t amount = 2 + random_below(&r, 2), used;
        if (!qi_account_take(&account, amount, ACCOUNT, &used)) {
            CHECK(used + amount > ACCOUNT);
            continue;
        }
        uint64_t taken = atomic_fetch_add(&surely_taken, amount) + amount;
        for (uint64_t max = atomic_load(&max_taken); taken > max;)
            if (atomic_compare_exchange_weak(&max_taken, &max, taken))
                break;
        atomic_fetch_sub(&surely_taken, amount);
        qi_account_give(&account, amount);
    }
    return NULL;
}

static void an_account(void)
{
    run(take_and_give, NULL);
    CHECK_EQ(qi_account_used(&account), 0);
    CHECK(max_taken <= ACCOUNT);
}

/* ---- one kind of budget after the other ----------------------------------------------------- */

static void heap_limit(uint32_t one_in)
{
    begin_with_pages(one_in);
    CHECK_OK(quire_device_set_heap_limit(scene.device, 0, 6 * PAGE + PAGE / 2));
    run_under(6 * PAGE + PAGE / 2);
}

static void shared_pages(void)
{
    heap_limit(0); /* the last half fits a smaller page only */
}

static void dedicated_pages(void)
{
    heap_limit(1);
}

static void shared_and_dedicated_pages(void)
{
    heap_limit(3);
}

static void the_backends_budget(void)
{
    begin_with_pages(3);
    fake_set_budget(&scene.fake, 0, 9 * PAGE, 3 * PAGE);
    run_under(6 * PAGE);
}

/* The budget is advice, the limit of the heap is exact: every thread may go beyond the first and
   none beyond the second. */
static void a_limit_above_the_backends_budget(void)
{
    begin(&(quire_memory_options){.pages = {.page_size = PAGE}}, 2, watched_create);
    scene.one_in = 3;
    fake_set_budget(&scene.fake, 0, 2 * PAGE, PAGE / 2);
    CHECK_OK(quire_device_set_heap_limit(scene.device, 0, 6 * PAGE));
    keep_most();
    run(work, NULL);
    quire_memory_stats stats[2];
    for (int i = 0; i < 2; i++)
        CHECK_OK(quire_memory_get_stats(scene.memories[i], &stats[i]));
    CHECK(stats[0].pages_over_budget + stats[1].pages_over_budget > 0);
    CHECK(scene.fake.peak_heap_bytes[0] > 2 * PAGE);
    CHECK(scene.fake.peak_heap_bytes[0] <= 6 * PAGE);
    end();
}

static void a_memorys_limit(void)
{
    begin(&(quire_memory_options){.limit = 4 * PAGE, .pages = {.page_size = PAGE}}, 1,
          watched_create);
    scene.one_in = 3;
    run_under(4 * PAGE);
}

static void pages_of_the_device(void)
{
    begin_with_pages(2);
    scene.expected = QUIRE_ERROR_TOO_MANY_PAGES;
    CHECK_OK(quire_device_set_page_limit(scene.device, 5));
    keep_most();
    run(work, NULL);
    CHECK_EQ(scene.fake.peak_pages, 5);
    end();
}

static void names(void)
{
    begin(&(quire_memory_options){.pages = {.page_size = PAGE}}, 1, watched_create);
    scene.one_in = 4;
    scene.names[0] = "weights";
    scene.names[1] = "weights/cache";
    scene.max_live_bytes[0] = 120 * KIB;
    scene.max_live_bytes[1] = 30 * KIB;
    CHECK_OK(quire_memory_set_name_limit(scene.memories[0], "weights/", 30 * KIB));
    CHECK_OK(quire_memory_set_name_limit(scene.memories[0], "w", 120 * KIB));
    run(work, NULL);
    CHECK(atomic_load(&scene.refused) > 0); /* some single requests exceed it */
    quire_name_usage usage;
    CHECK_OK(quire_memory_get_name_usage(scene.memories[0], "w", &usage));
    CHECK_EQ(usage.held_bytes + usage.allocation_count, 0);
    end();
}

static void pages_that_fail(void)
{
    begin(&(quire_memory_options){.within_budget = true,
                                  .limit = 5 * PAGE,
                                  .pages = {.page_size = PAGE}},
          2, flaky_create);
    scene.one_in = 3;
    fake_set_budget(&scene.fake, 0, 6 * PAGE, 0);
    run(work, NULL);
    CHECK(atomic_load(&scene.refused) > 0);
    CHECK(scene.fake.peak_heap_bytes[0] <= 6 * PAGE);
    end();
}

/* ---- budgets that fall ---------------------------------------------------------------------- */

static void (*set_budget)(uint64_t bytes);

static void set_heap_limit(uint64_t bytes)
{
    CHECK_OK(quire_device_set_heap_limit(scene.device, 0, bytes));
}

static void set_backends_budget(uint64_t bytes)
{
    fake_set_budget(&scene.fake, 0, bytes + PAGE, PAGE);
}

static uint64_t questions(void)
{
    pthread_mutex_lock(&scene.fake.lock);
    uint64_t count = scene.fake.calls[FAKE_HEAP_BUDGET];
    pthread_mutex_unlock(&scene.fake.lock);
    return count;
}

static void fall(void)
{
    for (uint64_t i = 1; i < FALLS; i++) {
        uint64_t asked = questions();
        for (int k = 0; k < 1000 && questions() < asked + 50; k++)
            sched_yield(); /* the threads run for a while */
        set_budget((FALLS - i) * PAGE);
        atomic_store(&in_force, (FALLS - i) * PAGE);
    }
    uint64_t refused = atomic_load(&scene.refused);
    while (atomic_load(&scene.refused) == refused)
        sched_yield();
    atomic_store(&scene.is_falling, false);
}

static void falling(void (*set)(uint64_t bytes))
{
    begin_with_pages(3);
    set_budget = set;
    for (int i = 0; i < 5; i++) {
        set(FALLS * PAGE);
        atomic_store(&in_force, FALLS * PAGE);
        atomic_store(&scene.is_falling, true);
        run(work, fall);
    }
    end();
}

static void a_heap_limit_that_falls(void)
{
    falling(set_heap_limit);
}

static void a_backends_budget_that_falls(void)
{
    falling(set_backends_budget);
}

/* ---- no request fails while memory is free -------------------------------------------------- */

static void *take_one_and_give_it_back(void *user)
{
    quire_memory *memory = memory_of((uintptr_t)user);
    in_force_before = 0;
    for (uint64_t i = 0; i < steps; i++) {
        quire_allocation made;
        CHECK_OK(quire_allocate(
            memory, &(quire_allocation_options){.size = PAGE, .dedicated = true}, &made));
        CHECK_OK(quire_free(memory, made));
    }
    return NULL;
}

static void a_page_for_each_thread(void)
{
    begin_with_pages(0);
    fake_set_budget(&scene.fake, 0, (THREADS + 5) * PAGE, 5 * PAGE);
    run(take_one_and_give_it_back, NULL);
    CHECK(scene.fake.peak_heap_bytes[0] <= THREADS * PAGE);
    /* both the usage of others and the budget changed */
    fake_set_budget(&scene.fake, 0, (THREADS + 2) * PAGE, 2 * PAGE);
    run(take_one_and_give_it_back, NULL);
    end();
}

int main(int argc, char **argv)
{
    seed = plain_option(argc, argv, "seed", 1);
    steps = plain_option(argc, argv, "steps", 2000);
    printf("# --seed %" PRIu64 " --steps %" PRIu64 "\n", seed, steps);
    plain_case("an account", an_account);
    plain_case("shared pages, and smaller ones, under a heap's limit", shared_pages);
    plain_case("dedicated pages under a heap's limit", dedicated_pages);
    plain_case("shared and dedicated pages under a heap's limit", shared_and_dedicated_pages);
    plain_case("under the backend's budget, with others on the heap", the_backends_budget);
    plain_case("beyond the backend's budget, under a heap's limit",
               a_limit_above_the_backends_budget);
    plain_case("under a memory's limit", a_memorys_limit);
    plain_case("under a limit of the device's pages", pages_of_the_device);
    plain_case("under limits of names", names);
    plain_case("with pages that fail", pages_that_fail);
    plain_case("a heap's limit that falls", a_heap_limit_that_falls);
    plain_case("a backend's budget that falls", a_backends_budget_that_falls);
    plain_case("a page for each thread is never refused", a_page_for_each_thread);
    return plain_end();
}
