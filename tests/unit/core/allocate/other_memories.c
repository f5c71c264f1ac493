/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * other_memories.c - empty pages of the device's other memories, which a request takes before it is
 * refused: which pages go, when, how many, and what the other memory sees.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/support/crew.h"
#include "tests/support/out_of_memory.h"

#define KEPT                                                                                       \
    .page_size = PAGE, .dedicated = QUIRE_DEDICATED_NEVER, .retention_nanoseconds = QUIRE_RETAIN_ALL

static const quire_page_policy POLICY = {KEPT};
static const quire_memory_options USUAL = {.name = "other", .pages = {KEPT}},
                                  IN_HEAP_1 = {.kind.required = QUIRE_HOST_VISIBLE,
                                               .kind.mask = 2,
                                               .pages = {KEPT}},
                                  ELASTIC = {.elastic = true,
                                             .address_space = 64 * PAGE,
                                             .pages.page_size = PAGE};

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
    return make_other(f, &USUAL, count);
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

/* ---- when they go, and when they stay ------------------------------------------------------- */

/* A request of a memory beside another one with empty pages. */
typedef struct row {
    const char *name;
    bool grows;      /* the backend offers elastic pages */
    uint64_t budget; /* pages of heap 0 that the backend reports; 0: it reports none */
    quire_memory_options own, other;
    bool fills;          /* the own memory has one page, which is full */
    uint64_t limit;      /* of the own memory, in pages; 0: none */
    uint64_t heap_limit; /* of heap 0, in pages */
    uint64_t empty;      /* pages of the other memory before */
    uint32_t page_limit; /* of the device */
    bool is_full;        /* the backend has no memory beyond `spare` pages */
    uint64_t spare;
    quire_allocation_options request;
    quire_result result;
    uint64_t left; /* pages of the other memory after */
} row;

static void try_row(const row *r)
{
    fixture f;
    quire_allocation made;
    printf("# %s\n", r->name);
    fixture_prepare(&f);
    if (r->grows)
        fake_offer_growth(&f.fake);
    if (r->budget) {
        fake_offer_budget(&f.fake);
        fake_set_budget(&f.fake, 0, r->budget * PAGE, 0);
    }
    fixture_open(&f, &r->own);
    if (r->fills)
        ALLOCATE(&f, .size = PAGE);
    CHECK_OK(quire_memory_set_limit(f.memory, r->limit * PAGE));
    CHECK_OK(quire_device_set_heap_limit(f.device, 0, r->heap_limit * PAGE));
    quire_memory *other = make_other(&f, &r->other, (uint32_t)r->empty);
    if (r->page_limit)
        CHECK_OK(quire_device_set_page_limit(f.device, r->page_limit));
    if (r->is_full)
        f.fake.page_budget = f.fake.page_bytes + r->spare * PAGE;
    uint64_t before = reserved_by(other);
    CHECK_EQ(quire_allocate(f.memory, &r->request, &made), r->result);
    if (r->result) {
        CHECK(!strstr(quire_last_error(), "other memories"));
        CHECK_EQ(reserved_by(other), before);
    } else {
        CHECK_EQ(reserved_by(other), r->left * PAGE);
    }
    CHECK(!r->budget || fixture_stats(&f).pages_over_budget == 0);
    finish(&f, other);
}

static void try_rows(const row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        try_row(&rows[i]);
}

UNIT(other_memories, they_go_where_they_make_room)
{
    const row rows[] = {
        {"a limit of the heap", .own = USUAL, .other = USUAL, .empty = 2, .heap_limit = 2,
         .request = {.size = PAGE}, .left = 1},
        {"a budget that is advice", .own = USUAL, .other = USUAL, .empty = 2, .budget = 2,
         .request = {.size = 2 * PAGE}},
        {"a request within the budget", .own = USUAL, .other = USUAL, .empty = 1, .budget = 2,
         .request = {.size = 2 * PAGE, .within_budget = true}},
        {"a limit of pages, to which other heaps count", .own = USUAL, .other = IN_HEAP_1,
         .empty = 2, .page_limit = 2, .request = {.size = PAGE}, .left = 1},
        {"free chunks of an elastic memory", .grows = true, .own = USUAL, .other = ELASTIC,
         .empty = 4, .is_full = true, .request = {.size = PAGE}, .left = 3},
        {"for an elastic memory", .grows = true, .own = ELASTIC, .other = USUAL, .fills = true,
         .empty = 3, .is_full = true, .request = {.size = 2 * PAGE}, .left = 1},
    };
    try_rows(rows, sizeof rows / sizeof *rows);
}

UNIT(other_memories, they_stay_where_they_cannot_help_or_are_not_needed)
{
    const quire_result over = QUIRE_ERROR_OVER_BUDGET, many = QUIRE_ERROR_TOO_MANY_PAGES,
                       none = QUIRE_ERROR_OUT_OF_DEVICE_MEMORY;
    const row rows[] = {
        {"a limit of bytes of the memory", .own = USUAL, .other = USUAL, .fills = true, .limit = 1,
         .empty = 2, .request = {.size = PAGE}, .result = over},
        {"a limit of pages of the memory", .own = {.pages = {.page_size = PAGE, .max_pages = 1}},
         .other = USUAL, .fills = true, .empty = 2, .request = {.size = PAGE}, .result = many},
        {"a fit with one page", .own = {.fit.algorithm = QUIRE_FIT_LINEAR, .pages = POLICY},
         .other = USUAL, .fills = true, .empty = 2, .request = {.size = PAGE}, .result = many},
        {"the end of an elastic memory's addresses", .grows = true,
         .own = {.elastic = true, .address_space = PAGE, .pages.page_size = PAGE}, .other = USUAL,
         .fills = true, .empty = 2, .request = {.size = PAGE}, .result = none},
        {"another heap", .own = USUAL, .other = IN_HEAP_1, .fills = true, .heap_limit = 1,
         .empty = 2, .request = {.size = PAGE}, .result = over},
        {"a smaller page serves", .own = {.pages.page_size = 4 * PAGE}, .other = USUAL, .empty = 2,
         .is_full = true, .spare = 2, .request = {.size = PAGE}, .left = 2},
        {"a request for existing pages", .own = USUAL, .other = USUAL, .empty = 1, .is_full = true,
         .request = {.size = PAGE, .existing_pages = true}, .result = none},
    };
    try_rows(rows, sizeof rows / sizeof *rows);
}

UNIT(other_memories, preallocated_pages_stay)
{
    fixture f;
    make(&f, 1, POLICY);
    quire_memory *other = make_usual_other(&f, 0);
    CHECK_OK(quire_memory_preallocate(other, UINT64_C(2) * PAGE));
    f.fake.page_budget = UINT64_C(2) * PAGE;
    ALLOCATE_FAILS(&f, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, .size = PAGE);
    CHECK_EQ(reserved_by(other), 2 * PAGE);
    finish(&f, other);
}

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

/* A hook that allocates takes the room that the request was to have. The request ends
   nevertheless: the page goes again. */
UNIT(other_memories, its_hook_is_called_and_may_allocate)
{
    for (uint32_t allocates = 0; allocates < 2; allocates++) {
        fixture f;
        watch w = {.may_leave = true, .allocates = allocates};
        const uint32_t pages = 2 - allocates;
        make(&f, 1, POLICY);
        quire_memory *other = make_usual_other(&f, pages);
        watch_gone(&w, other);
        f.fake.page_budget = UINT64_C(1) * pages * PAGE;
        ALLOCATE(&f, .size = UINT64_C(1) * pages * PAGE);
        CHECK_EQ(w.gone, 2);
        finish(&f, other);
    }
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
