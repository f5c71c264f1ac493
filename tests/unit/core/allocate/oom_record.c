/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * oom_record.c - what a memory keeps of its last refused request: the request, the steps, the limit
 * that it met, the free bytes, and the kinds that refused the same call.
 */
#include "src/core/allocate/oom_report.h"

#include <pthread.h>
#include <string.h>

#include "tests/support/fixture.h"

enum { PAGE = 4096 };

static qi_oom_record last_of(quire_memory *memory)
{
    qi_oom_record last;
    qi_oom_last(memory, &last);
    return last;
}

/* A refusal of a memory whose pages are limited in number. */
static void make(fixture *f)
{
    fixture_make(f, &(quire_memory_options){.pages = {.page_size = PAGE, .max_pages = 1}});
}

#define CASE(name) UNIT_ON(oom_record, name, fixture, f, make(f), fixture_end)

CASE(no_request_was_refused)
{
    CHECK_EQ(last_of(f->memory).number, 0);
}

CASE(the_request_the_steps_and_the_free_bytes)
{
    ALLOCATE(f, .size = 1024);
    ALLOCATE_FAILS(f, QUIRE_ERROR_TOO_MANY_PAGES, .size = 4000, .alignment = 512, .name = "head/w");
    const qi_oom_record last = last_of(f->memory);
    CHECK_EQ(last.number, 1);
    CHECK_EQ(last.code, QUIRE_ERROR_TOO_MANY_PAGES);
    CHECK_EQ(last.size, 4000);
    CHECK_EQ(last.alignment, 512);
    CHECK_STR(last.name, "head/w");
    CHECK(!last.is_dedicated);
    CHECK_EQ(last.tried, QI_TRIED_EMPTY_PAGES | QI_TRIED_FULL_SEARCH);
    CHECK_EQ(last.kinds, 1);
    CHECK_EQ(last.limit, QI_LIMIT_MEMORY_PAGES);
    CHECK_EQ(last.limit_max, 1);
    CHECK_EQ(last.largest_free, PAGE - 1024);
    CHECK_EQ(last.free_bytes, PAGE - 1024);
    CHECK_EQ(last.page_count, 1);
}

CASE(a_later_refusal_replaces_all_of_it)
{
    ALLOCATE(f, .size = PAGE);
    ALLOCATE_FAILS(f, QUIRE_ERROR_TOO_MANY_PAGES, .size = PAGE, .name = "first");
    ALLOCATE_FAILS(f, QUIRE_ERROR_TOO_MANY_PAGES, .size = 100, .dedicated = true);
    qi_oom_record last = last_of(f->memory);
    CHECK_EQ(last.number, 2);
    CHECK_EQ(last.size, 100);
    CHECK_STR(last.name, "");
    CHECK(last.is_dedicated);
    fake_fail(&f->fake, 1, true, QUIRE_ERROR_DEVICE_LOST);
    ALLOCATE_FAILS(f, QUIRE_ERROR_TOO_MANY_PAGES, .size = 200);
    last = last_of(f->memory);
    CHECK(!last.is_dedicated);
    CHECK_EQ(last.largest_free, 0);
}

CASE(the_longest_name_is_kept_whole)
{
    char name[QUIRE_MAX_NAME + 1];
    memset(name, 'n', sizeof name);
    name[QUIRE_MAX_NAME] = '\0';
    ALLOCATE(f, .size = PAGE);
    ALLOCATE_FAILS(f, QUIRE_ERROR_TOO_MANY_PAGES, .size = PAGE, .name = name);
    const qi_oom_record last = last_of(f->memory);
    CHECK_STR(last.name, name);
}

/* ---- limits --------------------------------------------------------------------------------- */

static void expect_limit(fixture *f, quire_result code, uint64_t size, qi_limit limit, uint64_t max)
{
    ALLOCATE_FAILS(f, code, .size = size, .name = "net/x");
    const qi_oom_record last = last_of(f->memory);
    CHECK_EQ(last.limit, limit);
    CHECK_EQ(last.limit_max, max);
    CHECK_EQ(last.report.limit, limit); /* the error that the caller reads has it as well */
}

static void prepare_limits(fixture *f)
{
    fixture_make(f, &(quire_memory_options){.pages.page_size = PAGE});
}

#define LIMIT(name) UNIT_ON(oom_record, name, fixture, f, prepare_limits(f), fixture_end)

LIMIT(limits_of_the_caller)
{
    CHECK_OK(quire_memory_set_limit(f->memory, 2 * PAGE));
    ALLOCATE(f, .size = PAGE);
    expect_limit(f, QUIRE_ERROR_OVER_BUDGET, 2 * PAGE, QI_LIMIT_MEMORY, 2 * PAGE);
    expect_limit(f, QUIRE_ERROR_OVER_BUDGET, 3 * PAGE, QI_LIMIT_MEMORY, 2 * PAGE);
    CHECK_OK(quire_memory_set_limit(f->memory, 0));
    CHECK_OK(quire_device_set_heap_limit(f->device, 0, 3 * PAGE));
    expect_limit(f, QUIRE_ERROR_OVER_BUDGET, 3 * PAGE, QI_LIMIT_HEAP, 3 * PAGE);
    expect_limit(f, QUIRE_ERROR_OVER_BUDGET, 4 * PAGE, QI_LIMIT_HEAP, 3 * PAGE);
    CHECK_OK(quire_device_set_heap_limit(f->device, 0, 0));
    CHECK_OK(quire_device_set_page_limit(f->device, 1));
    expect_limit(f, QUIRE_ERROR_TOO_MANY_PAGES, PAGE, QI_LIMIT_DEVICE_PAGES, 1);
    CHECK_OK(quire_memory_set_name_limit(f->memory, "net/", 100));
    expect_limit(f, QUIRE_ERROR_OVER_BUDGET, 200, QI_LIMIT_NAMES, 100);
}

LIMIT(sizes_that_no_page_has)
{
    const uint64_t heap = UINT64_C(1) << 30;
    expect_limit(f, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, 2 * heap, QI_LIMIT_HEAP_SIZE, heap);
}

LIMIT(the_backend_refuses_without_a_limit_of_quire)
{
    CHECK_OK(quire_memory_set_limit(f->memory, PAGE));
    expect_limit(f, QUIRE_ERROR_OVER_BUDGET, 2 * PAGE, QI_LIMIT_MEMORY, PAGE);
    CHECK_OK(quire_memory_set_limit(f->memory, 0));
    f->fake.page_budget = 1;
    expect_limit(f, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, PAGE, QI_LIMIT_NONE, 0);
}

UNIT(oom_record, the_budget_of_the_backend)
{
    fixture f;
    fixture_prepare(&f);
    fake_offer_budget(&f.fake);
    fake_set_budget(&f.fake, 0, 2 * PAGE, 0);
    fixture_open(&f, &(quire_memory_options){.pages.page_size = PAGE, .within_budget = true});
    ALLOCATE(&f, .size = PAGE);
    expect_limit(&f, QUIRE_ERROR_OVER_BUDGET, 2 * PAGE, QI_LIMIT_BUDGET, 2 * PAGE);
    fixture_end(&f);
}

UNIT(oom_record, the_one_page_of_a_linear_memory)
{
    fixture f;
    fixture_make(
        &f, &(quire_memory_options){.fit.algorithm = QUIRE_FIT_LINEAR, .pages.page_size = PAGE});
    ALLOCATE(&f, .size = PAGE);
    expect_limit(&f, QUIRE_ERROR_TOO_MANY_PAGES, PAGE, QI_LIMIT_MEMORY_PAGES, 1);
    fixture_end(&f);
}

/* ---- calls that try several memories -------------------------------------------------------- */

/* Memories of the kinds 0 and 1, each with one page that is full. */
static void fill_two(fixture *f, quire_memory *memories[2], quire_allocation *second)
{
    const quire_page_policy one_page = {.page_size = PAGE, .max_pages = 1};
    const quire_allocation_options whole = {.size = PAGE};
    fixture_make(f, &(quire_memory_options){.pages = one_page});
    memories[0] = f->memory;
    CHECK_OK(quire_memory_create(
        f->device, &(quire_memory_options){.kind.mask = 2, .pages = one_page}, &memories[1]));
    for (int i = 0; i < 2; i++)
        CHECK_OK(quire_allocate(memories[i], &whole, second));
}

static void allocate_in_two(quire_memory *const *memories, quire_result code)
{
    uint32_t chosen = 9;
    quire_allocation allocation;
    const quire_allocation_options options = {.size = PAGE};
    quire_result result = quire_allocate_fallback(memories, 2, &options, &chosen, &allocation);
    CHECK_EQ(result, code);
}

UNIT(oom_record, every_kind_that_refused_a_call_of_several_memories)
{
    fixture f;
    quire_memory *memories[2];
    quire_allocation second;
    quire_allocation none;
    fill_two(&f, memories, &second);
    allocate_in_two(memories, QUIRE_ERROR_TOO_MANY_PAGES);
    CHECK_EQ(last_of(memories[0]).kinds, 3);
    CHECK_EQ(last_of(memories[1]).kinds, 3);
    /* a request of one memory has one kind again */
    CHECK_FAILS(
        quire_allocate(memories[1], &(quire_allocation_options){.size = PAGE, .name = "x"}, &none),
        QUIRE_ERROR_TOO_MANY_PAGES);
    CHECK_EQ(last_of(memories[1]).kinds, 2);
    quire_memory_destroy_all(&memories[1]);
    fixture_end(&f);
}

/* The first memory refuses, the second serves: nothing refused the whole call. */
UNIT(oom_record, a_call_that_succeeds_notes_no_kinds)
{
    fixture f;
    quire_memory *memories[2];
    quire_allocation second;
    fill_two(&f, memories, &second);
    CHECK_OK(quire_free(memories[1], second));
    allocate_in_two(memories, QUIRE_SUCCESS);
    CHECK_EQ(last_of(memories[0]).kinds, 1);
    CHECK_EQ(last_of(memories[1]).number, 0);
    quire_memory_destroy_all(&memories[1]);
    fixture_end(&f);
}

static void *refuse_elsewhere(void *argument)
{
    quire_allocation none;
    CHECK_FAILS(quire_allocate(argument, &(quire_allocation_options){.size = PAGE}, &none),
                QUIRE_ERROR_TOO_MANY_PAGES);
    return NULL;
}

/* A later call must not mark the record of another thread, or an older one of its own thread. */
UNIT(oom_record, the_record_of_another_request_stays)
{
    fixture f;
    quire_memory *memories[2];
    quire_allocation second;
    pthread_t thread;
    fill_two(&f, memories, &second);
    uint64_t since = qi_oom_thread_count();
    CHECK(!pthread_create(&thread, NULL, refuse_elsewhere, memories[0]));
    CHECK(!pthread_join(thread, NULL));
    qi_oom_note_kinds(memories[0], 3, since);
    CHECK_EQ(last_of(memories[0]).kinds, 1);
    allocate_in_two(memories, QUIRE_ERROR_TOO_MANY_PAGES);
    qi_oom_note_kinds(memories[0], 4, qi_oom_thread_count());
    CHECK_EQ(last_of(memories[0]).kinds, 3);
    qi_oom_note_kinds(memories[0], 4, since);
    CHECK_EQ(last_of(memories[0]).kinds, 7);
    quire_memory_destroy_all(&memories[1]);
    fixture_end(&f);
}
