/*
 * other_memories.c - empty pages of the device's other memories, which a request takes before it is
 * refused: which pages go, when, how many, and what the other memory sees.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "tests/support/crew.h"
#include "tests/support/out_of_memory.h"

static const quire_page_policy POLICY = {.page_size = PAGE,
                                         .dedicated = QUIRE_DEDICATED_NEVER,
                                         .retention_nanoseconds = QUIRE_RETAIN_ALL};

/* Another memory of the device with `count` pages, all of them empty. */
static quire_memory *make_other(fixture *f, const quire_memory_options *options, uint32_t count)
{
    quire_memory *other = NULL;
    quire_allocation made[8];
    CHECK(count <= 8);
    CHECK_OK(quire_memory_create(f->device, options, &other));
    for (uint32_t i = 0; i < count; i++)
        CHECK_OK(quire_allocate(other, &(quire_allocation_options){.size = PAGE}, &made[i]));
    for (uint32_t i = 0; i < count; i++)
        CHECK_OK(quire_free(other, made[i]));
    return other;
}

static quire_memory *make_usual_other(fixture *f, uint32_t count)
{
    return make_other(f, &(quire_memory_options){.name = "other", .pages = POLICY}, count);
}

static uint64_t reserved_by(quire_memory *memory)
{
    quire_memory_stats stats;
    CHECK_OK(quire_memory_get_stats(memory, &stats));
    CHECK_OK(quire_memory_check(memory));
    return stats.reserved_bytes;
}

static void finish(fixture *f, quire_memory *other)
{
    quire_memory_destroy_all(&other);
    fixture_end(f);
}

/* ---- when they go --------------------------------------------------------------------------- */

UNIT(other_memories, their_empty_pages_go_if_the_backend_has_no_memory)
{
    fixture f;
    make(&f, 1, POLICY);
    quire_memory *other = make_usual_other(&f, 3);
    f.fake.page_budget = UINT64_C(4) * PAGE;
    ALLOCATE(&f, .size = PAGE);
    CHECK_EQ(reserved_by(other), 3 * PAGE);
    ALLOCATE(&f, .size = PAGE);
    CHECK_EQ(reserved_by(other), 2 * PAGE); /* no more than the request needs */
    ALLOCATE(&f, .size = 2 * PAGE);
    CHECK_EQ(reserved_by(other), 0);
    expect_refused(&f, (quire_allocation_options){.size = PAGE}, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                   "Tried: empty pages given back, a full pass");
    finish(&f, other);
}

UNIT(other_memories, the_report_of_a_refusal_names_them)
{
    fixture f;
    make(&f, 1, POLICY);
    quire_memory *other = make_usual_other(&f, 2);
    f.fake.page_budget = UINT64_C(2) * PAGE;
    expect_refused(&f, (quire_allocation_options){.size = 3 * PAGE},
                   QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                   "Tried: empty pages given back, empty pages of other memories, a full pass");
    CHECK_EQ(reserved_by(other), 0);
    finish(&f, other);
}

UNIT(other_memories, they_go_at_a_limit_of_the_heap)
{
    fixture f;
    make(&f, 1, POLICY);
    quire_memory *other = make_usual_other(&f, 2);
    CHECK_OK(quire_device_set_heap_limit(f.device, 0, UINT64_C(2) * PAGE));
    ALLOCATE(&f, .size = PAGE);
    CHECK_EQ(reserved_by(other), PAGE);
    finish(&f, other);
}

UNIT(other_memories, they_go_before_a_page_exceeds_the_budget)
{
    fixture f;
    fixture_prepare(&f);
    fake_offer_budget(&f.fake);
    fake_set_budget(&f.fake, 0, UINT64_C(2) * PAGE, 0);
    fixture_open(&f, &(quire_memory_options){.pages = POLICY});
    quire_memory *other = make_usual_other(&f, 2);
    ALLOCATE(&f, .size = 2 * PAGE);
    CHECK_EQ(fixture_stats(&f).pages_over_budget, 0);
    CHECK_EQ(reserved_by(other), 0);
    finish(&f, other);
}

UNIT(other_memories, they_go_for_memories_and_requests_within_the_budget)
{
    fixture f;
    fixture_prepare(&f);
    fake_offer_budget(&f.fake);
    fake_set_budget(&f.fake, 0, UINT64_C(2) * PAGE, 0);
    fixture_open(&f, &(quire_memory_options){.pages = POLICY});
    quire_memory *other = make_usual_other(&f, 1);
    ALLOCATE(&f, .size = 2 * PAGE, .within_budget = true);
    CHECK_EQ(reserved_by(other), 0);
    finish(&f, other);
}

/* The pages of another heap count against the limit of pages, too. */
UNIT(other_memories, they_go_from_any_heap_at_a_limit_of_pages)
{
    fixture f;
    make(&f, 1, POLICY);
    quire_memory *other =
        make_other(&f,
                   &(quire_memory_options){
                       .kind.required = QUIRE_HOST_VISIBLE, .kind.mask = 2, .pages = POLICY},
                   2);
    CHECK_OK(quire_device_set_page_limit(f.device, 2));
    ALLOCATE(&f, .size = PAGE);
    CHECK_EQ(reserved_by(other), PAGE);
    finish(&f, other);
}

UNIT(other_memories, they_go_for_dedicated_pages_and_preallocated_ones)
{
    fixture f;
    make(&f, 1, (quire_page_policy){.page_size = PAGE});
    quire_memory *other = make_usual_other(&f, 4);
    f.fake.page_budget = UINT64_C(4) * PAGE;
    ALLOCATE(&f, .size = 2 * PAGE, .dedicated = true);
    CHECK_EQ(reserved_by(other), 2 * PAGE);
    CHECK_OK(quire_memory_preallocate(f.memory, UINT64_C(4) * PAGE));
    CHECK_EQ(reserved_by(other), 0);
    CHECK_FAILS(quire_memory_preallocate(f.memory, UINT64_C(5) * PAGE),
                QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    finish(&f, other);
}

UNIT(other_memories, the_free_end_of_a_contiguous_memory_goes)
{
    fixture f;
    fixture_prepare(&f);
    fake_offer_growth(&f.fake);
    fixture_open(&f, &(quire_memory_options){.pages = POLICY});
    quire_memory *other = make_other(
        &f, &(quire_memory_options){.contiguous = true, .pages = {.page_size = PAGE}}, 4);
    f.fake.page_budget = reserved_by(other);
    CHECK(reserved_by(other) >= 4 * PAGE);
    ALLOCATE(&f, .size = PAGE);
    CHECK(reserved_by(other) <= 3 * PAGE);
    finish(&f, other);
}

UNIT(other_memories, they_go_for_a_contiguous_memory)
{
    fixture f;
    fixture_prepare(&f);
    fake_offer_growth(&f.fake);
    fixture_open(&f, &(quire_memory_options){.contiguous = true, .pages = {.page_size = PAGE}});
    quire_memory *other = make_usual_other(&f, 3);
    ALLOCATE(&f, .size = PAGE);
    f.fake.page_budget = fixture_stats(&f).reserved_bytes + 3 * PAGE;
    ALLOCATE(&f, .size = 2 * PAGE);
    CHECK(reserved_by(other) <= 2 * PAGE);
    finish(&f, other);
}

/* The other memory does not know yet that its page is empty. */
UNIT(other_memories, a_page_that_another_thread_has_emptied_goes)
{
    fixture f;
    make(&f, 2, POLICY);
    quire_memory *first = f.memory;
    quire_memory *second = make_other(&f, &(quire_memory_options){.pages = POLICY}, 0);
    quire_allocation kept = ALLOCATE_ELSEWHERE(&f, .size = PAGE);
    CHECK_OK(quire_free(first, kept)); /* into the inbox of the other thread's shard */
    f.fake.page_budget = PAGE;
    CHECK_OK(quire_allocate(second, &(quire_allocation_options){.size = PAGE}, &kept));
    CHECK_EQ(reserved_by(first), 0);
    finish(&f, second);
}

/* ---- when they stay ------------------------------------------------------------------------- */

static void expect_they_stay(fixture *f, quire_memory *other, quire_result code)
{
    uint64_t before = reserved_by(other);
    ALLOCATE_FAILS(f, code, .size = PAGE);
    CHECK(!strstr(quire_last_error(), "other memories"));
    CHECK_EQ(reserved_by(other), before);
    finish(f, other);
}

UNIT(other_memories, they_stay_at_a_limit_of_bytes_of_the_memory)
{
    fixture f;
    make(&f, 1, POLICY);
    ALLOCATE(&f, .size = PAGE);
    CHECK_OK(quire_memory_set_limit(f.memory, PAGE));
    expect_they_stay(&f, make_usual_other(&f, 2), QUIRE_ERROR_OVER_BUDGET);
}

UNIT(other_memories, they_stay_at_a_limit_of_pages_of_the_memory)
{
    fixture f;
    make(&f, 1, (quire_page_policy){.page_size = PAGE, .max_pages = 1});
    ALLOCATE(&f, .size = PAGE);
    expect_they_stay(&f, make_usual_other(&f, 2), QUIRE_ERROR_TOO_MANY_PAGES);
}

UNIT(other_memories, they_stay_where_the_fit_takes_no_further_page)
{
    fixture f;
    fixture_make(&f, &(quire_memory_options){.fit.algorithm = QUIRE_FIT_LINEAR, .pages = POLICY});
    ALLOCATE(&f, .size = PAGE);
    expect_they_stay(&f, make_usual_other(&f, 2), QUIRE_ERROR_TOO_MANY_PAGES);
}

UNIT(other_memories, they_stay_at_the_end_of_a_contiguous_memorys_addresses)
{
    fixture f;
    fixture_prepare(&f);
    fake_offer_growth(&f.fake);
    fixture_open(&f, &(quire_memory_options){
                         .contiguous = true, .address_space = PAGE, .pages.page_size = PAGE});
    ALLOCATE(&f, .size = PAGE);
    expect_they_stay(&f, make_usual_other(&f, 2), QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
}

UNIT(other_memories, they_stay_in_another_heap)
{
    fixture f;
    make(&f, 1, POLICY);
    CHECK_OK(quire_device_set_heap_limit(f.device, 0, PAGE));
    ALLOCATE(&f, .size = PAGE);
    quire_memory *other =
        make_other(&f,
                   &(quire_memory_options){
                       .kind.required = QUIRE_HOST_VISIBLE, .kind.mask = 2, .pages = POLICY},
                   2);
    expect_they_stay(&f, other, QUIRE_ERROR_OVER_BUDGET);
}

UNIT(other_memories, preallocated_pages_stay)
{
    fixture f;
    make(&f, 1, POLICY);
    quire_memory *other = make_usual_other(&f, 0);
    CHECK_OK(quire_memory_preallocate(other, UINT64_C(2) * PAGE));
    f.fake.page_budget = UINT64_C(2) * PAGE;
    expect_they_stay(&f, other, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
}

UNIT(other_memories, they_stay_if_a_smaller_page_serves_the_request)
{
    fixture f;
    make(&f, 1, (quire_page_policy){.page_size = 4 * PAGE});
    quire_memory *other = make_usual_other(&f, 2);
    f.fake.page_budget = UINT64_C(4) * PAGE;
    ALLOCATE(&f, .size = PAGE);
    CHECK_EQ(reserved_by(other), 2 * PAGE);
    finish(&f, other);
}

UNIT(other_memories, they_stay_for_a_request_with_existing_pages)
{
    fixture f;
    make(&f, 1, POLICY);
    quire_memory *other = make_usual_other(&f, 1);
    f.fake.page_budget = PAGE;
    ALLOCATE_FAILS(&f, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, .size = PAGE, .existing_pages = true);
    CHECK_EQ(reserved_by(other), PAGE);
    finish(&f, other);
}

/* ---- what the other memory sees ------------------------------------------------------------- */

/* The hook of the other memory. */
typedef struct watch {
    uint32_t gone;
    bool allocates;
    _Atomic bool is_in, may_leave, has_left;
} watch;

static void on_event(void *user, quire_memory *memory, const quire_event *event)
{
    watch *w = user;
    quire_allocation made;
    CHECK_EQ(event->kind, QUIRE_EVENT_PAGE_GONE);
    w->gone++;
    if (w->allocates) {
        w->allocates = false;
        CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 1}, &made));
        CHECK_OK(quire_free(memory, made));
    }
    atomic_store(&w->is_in, true);
    while (!atomic_load(&w->may_leave))
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    atomic_store(&w->has_left, true);
}

static void watch_gone(watch *w, quire_memory *memory)
{
    CHECK_OK(quire_memory_set_hook(
        memory, &(quire_hook){.event = on_event, .user = w, .kinds = QUIRE_EVENT_PAGE_GONE}));
}

UNIT(other_memories, its_hook_is_called)
{
    fixture f;
    watch w = {.may_leave = true};
    make(&f, 1, POLICY);
    quire_memory *other = make_usual_other(&f, 2);
    watch_gone(&w, other);
    f.fake.page_budget = UINT64_C(2) * PAGE;
    ALLOCATE(&f, .size = 2 * PAGE);
    CHECK_EQ(w.gone, 2);
    finish(&f, other);
}

/* The hook takes the room that the request was to have. The request ends nevertheless. */
UNIT(other_memories, its_hook_may_allocate)
{
    fixture f;
    watch w = {.may_leave = true, .allocates = true};
    make(&f, 1, POLICY);
    quire_memory *other = make_usual_other(&f, 1);
    watch_gone(&w, other);
    f.fake.page_budget = PAGE;
    ALLOCATE(&f, .size = PAGE);
    CHECK_EQ(w.gone, 2);
    finish(&f, other);
}

typedef struct call {
    fixture *f;
    quire_memory **other;
    watch *watch;
    bool had_left;
} call;

static void do_allocate(void *user)
{
    call *c = user;
    quire_allocation made;
    if (quire_allocate(c->f->memory, &(quire_allocation_options){.size = PAGE}, &made))
        abort();
}

static void do_destroy(void *user)
{
    call *c = user;
    quire_memory_destroy_all(c->other);
    c->had_left = atomic_load(&c->watch->has_left);
}

static void do_set_hook(void *user)
{
    call *c = user;
    if (quire_memory_set_hook(*c->other, NULL))
        abort();
    c->had_left = atomic_load(&c->watch->has_left);
}

/* Another thread's request is in the hook of a memory while this memory is destroyed, or loses the
   hook: `task` does not return before the hook has. */
static void expect_waits(void (*task)(void *user))
{
    fixture f;
    crew threads;
    watch w = {0};
    make(&f, 1, POLICY);
    quire_memory *other = make_usual_other(&f, 1);
    watch_gone(&w, other);
    f.fake.page_budget = PAGE;
    call c = {&f, &other, &w, false};
    crew_start(&threads, 2);
    crew_tell(&threads, 1, do_allocate, &c);
    while (!atomic_load(&w.is_in))
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    crew_tell(&threads, 2, task, &c);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    atomic_store(&w.may_leave, true);
    crew_await(&threads, 1);
    crew_await(&threads, 2);
    CHECK(c.had_left);
    crew_end(&threads);
    if (other)
        quire_memory_destroy_all(&other);
    fixture_end(&f);
}

UNIT(other_memories, its_destruction_waits_for_the_hook)
{
    expect_waits(do_destroy);
}

UNIT(other_memories, setting_its_hook_waits_for_the_hook)
{
    expect_waits(do_set_hook);
}

/* ---- many at once --------------------------------------------------------------------------- */

enum { ROUNDS = 400, THREADS = 4 };

/* Makes a memory of its own, uses it under pressure and destroys it, while others do so. */
static void make_and_destroy(void *user)
{
    quire_device *device = user;
    for (int i = 0; i < ROUNDS; i++) {
        quire_memory *memory = NULL;
        quire_allocation made[2] = {{0}};
        if (quire_memory_create(device, &(quire_memory_options){.pages = POLICY}, &memory))
            abort();
        for (int j = 0; j < 2; j++) {
            quire_result result =
                quire_allocate(memory, &(quire_allocation_options){.size = PAGE}, &made[j]);
            if (result && result != QUIRE_ERROR_OUT_OF_DEVICE_MEMORY)
                abort();
        }
        for (int j = 0; j < 2; j++)
            if (made[j].id && quire_free(memory, made[j]))
                abort();
        if (quire_memory_destroy(&memory))
            abort();
    }
}

UNIT_ON(other_memories, threads_make_and_destroy_memories_under_pressure, fixture, f,
        make(f, 1, POLICY), fixture_end)
{
    crew threads;
    f->fake.page_budget = UINT64_C(5) * PAGE;
    crew_start(&threads, THREADS);
    for (uint32_t i = 1; i <= THREADS; i++)
        crew_tell(&threads, i, make_and_destroy, f->device);
    for (uint32_t i = 1; i <= THREADS; i++)
        crew_await(&threads, i);
    crew_end(&threads);
    CHECK_EQ(f->fake.pages, 0);
}
