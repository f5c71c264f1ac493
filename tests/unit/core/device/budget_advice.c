/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * budget_advice.c - the backend's budget as advice: pages beyond it where nothing within it serves
 * the request, their size, statistics and events, and limits of the caller, which stay exact;
 * answers that serve further pages, and budgets above the size of a heap.
 */
#include "tests/support/budget.h"

static uint64_t over(fixture *b)
{
    return fixture_stats(b).pages_over_budget;
}

#define CASE(name, ...)                                                                            \
    UNIT_ON(budget_advice, name, fixture, b, make_advised(b, __VA_ARGS__), fixture_end)

/* ---- pages beyond the budget ---------------------------------------------------------------- */

CASE(smaller_pages_come_before_pages_beyond_the_budget, PAGE + PAGE / 4 + 100, 0)
{
    ALLOCATE(b, .size = PAGE);
    CHECK_EQ(page_size(b, ALLOCATE(b, .size = 1000)), PAGE / 4);
    CHECK_EQ(over(b), 0);
    ALLOCATE(b, .size = 10000); /* a free range comes first, too */
    CHECK_EQ(b->fake.calls[FAKE_PAGE_CREATE], 2);
    CHECK_EQ(page_size(b, ALLOCATE(b, .size = 10000)), 10240); /* as little as it needs */
    CHECK_EQ(over(b), 1);
    CHECK_EQ(b->fake.calls[FAKE_PAGE_CREATE], 3);
    CHECK_EQ(budget_of(b, 0).available, 0);
}

UNIT_ON(budget_advice, many_requests_beyond_the_budget_need_few_pages, fixture, b,
        make_with_options(b, 1, 0, &(quire_memory_options){.name = "weights"}), fixture_end)
{
    for (int i = 0; i < 256; i++)
        ALLOCATE(b, .size = PAGE);
    CHECK(b->fake.calls[FAKE_PAGE_CREATE] < 32);
    CHECK_EQ(over(b), b->fake.calls[FAKE_PAGE_CREATE]);
    CHECK(b->fake.heap_bytes[0] <= 2 * 256 * PAGE);
    CHECK(b->fake.calls[FAKE_HEAP_BUDGET] <= 2 * b->fake.calls[FAKE_PAGE_CREATE]);
}

CASE(every_kind_of_page_may_exceed_the_budget, 1, 0)
{
    ALLOCATE(b, .size = 100);
    CHECK_EQ(over(b), 1);
    ALLOCATE(b, .size = 100, .dedicated = true);
    CHECK_EQ(over(b), 2);
    b->fake.object_needs =
        (quire_requirements){.size = 4096, .alignment = 256, .kind_mask = 1, .dedicated = true};
    BUFFER(b, .size = 10);
    CHECK_EQ(over(b), 3);
}

UNIT(budget_advice, preallocated_pages_may_exceed_the_budget)
{
    fixture b;
    make_advised(&b, PAGE, 0);
    CHECK_OK(quire_memory_preallocate(b.memory, 4 * PAGE));
    CHECK_EQ(over(&b), b.fake.pages - 1);
    CHECK(over(&b) > 0);
    fixture_end(&b);

    make_strict(&b, PAGE, 0);
    CHECK_FAILS(quire_memory_preallocate(b.memory, 4 * PAGE), OVER);
    CHECK_EQ(over(&b), 0);
    CHECK(b.fake.calls[FAKE_PAGE_CREATE] <= 1);
    fixture_end(&b);
}

UNIT(budget_advice, an_elastic_memory_gets_chunks_beyond_the_budget)
{
    const quire_memory_options options = {
        .elastic = true, .address_space = 16 * PAGE, .pages.page_size = PAGE / 4};
    for (int is_strict = 0; is_strict < 2; is_strict++) {
        fixture b;
        quire_memory_options one = options;
        one.within_budget = is_strict;
        fixture_prepare(&b);
        fake_offer_growth(&b.fake);
        fake_offer_budget(&b.fake);
        fake_set_budget(&b.fake, 0, PAGE + PAGE / 2, 0);
        fixture_open(&b, &one);
        ALLOCATE(&b, .size = PAGE);
        ALLOCATE(&b, .size = PAGE / 2);
        CHECK_EQ(over(&b), 0);
        CHECK_EQ(budget_of(&b, 0).reserved, PAGE + PAGE / 2);
        if (is_strict) {
            REFUSE(&b, OVER, .size = 1000);
            CHECK_EQ(b.fake.calls[FAKE_PAGE_BACK], 1);
            CHECK_FAILS(quire_memory_preallocate(b.memory, 4 * PAGE), OVER);
        } else {
            ALLOCATE(&b, .size = 1000);
            CHECK_EQ(over(&b), 1);
            CHECK_EQ(budget_of(&b, 0).reserved, PAGE + PAGE / 2 + PAGE / 4);
            CHECK_OK(quire_memory_preallocate(b.memory, 4 * PAGE));
            CHECK(over(&b) > 1);
        }
        fixture_end(&b);
    }
}

UNIT(budget_advice, a_page_that_turns_out_larger_is_counted_or_destroyed)
{
    fixture b;
    make_advised(&b, PAGE, 0);
    b.fake.page_rounding = PAGE + 1000;
    ALLOCATE(&b, .size = PAGE);
    CHECK_EQ(over(&b), 1);
    CHECK_EQ(b.fake.calls[FAKE_PAGE_CREATE], 1);
    CHECK_EQ(budget_of(&b, 0).reserved, PAGE + 1000);
    fixture_end(&b);

    make_strict(&b, PAGE, 0);
    b.fake.page_rounding = PAGE + 1000;
    REFUSE(&b, OVER, .size = PAGE);
    CHECK_EQ(b.fake.calls[FAKE_PAGE_CREATE], 1);
    CHECK_EQ(budget_of(&b, 0).reserved, 0);
    fixture_end(&b);
}

CASE(the_driver_has_the_last_word, PAGE, 0)
{
    ALLOCATE(b, .size = PAGE);
    b->fake.page_budget = PAGE;
    REFUSE(b, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, .size = 1000);
    CHECK_HAS(quire_last_error(), "cannot allocate 1000 B: the fake is full; memory 'weights'");
    CHECK_HAS(quire_last_error(), "a page beyond the budget");
    CHECK_EQ(b->fake.calls[FAKE_PAGE_CREATE], 2);
    CHECK_EQ(over(b), 0);
}

CASE(a_page_beyond_the_budget_keeps_the_last_error, PAGE, 0)
{
    quire_allocation none;
    CHECK_FAILS(quire_allocate(b->memory, &(quire_allocation_options){.size = 0}, &none),
                QUIRE_ERROR_INVALID_ARGUMENT);
    ALLOCATE(b, .size = PAGE);
    ALLOCATE(b, .size = PAGE);
    CHECK_EQ(quire_last_result(), QUIRE_ERROR_INVALID_ARGUMENT);
}

/* ---- a memory that stays within the budget -------------------------------------------------- */

UNIT_ON(budget_advice, the_option_is_per_memory_and_reported, fixture, b, make_strict(b, PAGE, 0),
        fixture_end)
{
    quire_memory *other = NULL;
    quire_memory_info info;
    quire_allocation made;
    CHECK_OK(quire_memory_get_info(b->memory, &info));
    CHECK(info.within_budget);
    CHECK_OK(quire_memory_create(b->device, &(quire_memory_options){.pages = POLICY}, &other));
    CHECK_OK(quire_memory_get_info(other, &info));
    CHECK(!info.within_budget);
    ALLOCATE(b, .size = PAGE);
    REFUSE(b, OVER, .size = 1);
    CHECK_OK(quire_allocate(other, &(quire_allocation_options){.size = PAGE}, &made));
    REFUSE(b, OVER, .size = 1);
    quire_memory_destroy_all(&other);
}

UNIT_ON(budget_advice, a_refusal_within_the_budget_asks_for_it_twice_and_for_no_page, fixture, b,
        make_with_options(b, 256 * PAGE, 0,
                          &(quire_memory_options){.name = "weights", .within_budget = true}),
        fixture_end)
{
    quire_allocation made;
    for (uint64_t size = PAGE; size >= 256; size /= 2)
        while (!quire_allocate(b->memory, &(quire_allocation_options){.size = size}, &made)) {
        }
    uint64_t pages = b->fake.calls[FAKE_PAGE_CREATE], asked = b->fake.calls[FAKE_HEAP_BUDGET];
    for (int i = 0; i < 256; i++)
        REFUSE(b, OVER, .size = 1000);
    CHECK_EQ(b->fake.calls[FAKE_PAGE_CREATE], pages);
    CHECK_EQ(b->fake.calls[FAKE_HEAP_BUDGET], asked + 2 * 256);
}

UNIT_ON(budget_advice, the_next_memory_of_a_list_serves_what_would_exceed_the_budget, fixture, b,
        make_strict(b, PAGE, 0), fixture_end)
{
    quire_memory *host = NULL;
    CHECK_OK(quire_memory_create(
        b->device, &(quire_memory_options){.kind.mask = 1 << 1, .pages = POLICY}, &host));
    quire_memory *list[] = {b->memory, host};
    quire_allocation made;
    uint32_t index;
    for (uint32_t i = 0; i < 2; i++) {
        CHECK_OK(quire_allocate_fallback(list, 2, &(quire_allocation_options){.size = PAGE}, &index,
                                         &made));
        CHECK_EQ(index, i);
    }
    quire_memory_destroy_all(&host);
}

CASE(limits_of_the_caller_stay_exact, PAGE, 0)
{
    CHECK_OK(quire_device_set_heap_limit(b->device, 0, 2 * PAGE));
    ALLOCATE(b, .size = PAGE);
    ALLOCATE(b, .size = PAGE / 2);
    CHECK_EQ(over(b), 1);
    REFUSE(b, OVER, .size = PAGE);
    CHECK_HAS(quire_last_error(), "limit of heap 0");
    ALLOCATE(b, .size = PAGE / 2);
    REFUSE(b, OVER, .size = 1);
    REFUSE(b, OVER, .size = 1, .dedicated = true);
    CHECK_EQ(budget_of(b, 0).reserved, 2 * PAGE);
    CHECK_OK(quire_device_set_heap_limit(b->device, 0, 0));
    CHECK_OK(quire_memory_set_limit(b->memory, 2 * PAGE + 512));
    ALLOCATE(b, .size = 512);
    REFUSE(b, OVER, .size = 1);
    CHECK_HAS(quire_last_error(), "limit of memory 'weights'");
    CHECK_OK(quire_memory_set_limit(b->memory, 0));
    CHECK_OK(quire_device_set_page_limit(b->device, b->fake.pages));
    REFUSE(b, QUIRE_ERROR_TOO_MANY_PAGES, .size = 1);
    CHECK_OK(quire_memory_set_name_limit(b->memory, "few", 100));
    CHECK_OK(quire_device_set_page_limit(b->device, 0));
    REFUSE(b, OVER, .size = 1000, .name = "few/own");
    ALLOCATE(b, .size = 1000, .name = "many/own");
}

/* ---- statistics and events ------------------------------------------------------------------ */

typedef struct seen {
    quire_event events[8];
    uint32_t count;
} seen;

static void note(void *user, quire_memory *memory, const quire_event *event)
{
    seen *s = user;
    quire_memory_stats stats;
    CHECK_OK(quire_memory_get_stats(memory, &stats)); /* no lock is held */
    CHECK(s->count < 8);
    s->events[s->count++] = *event;
}

UNIT_ON(budget_advice, an_event_follows_the_event_of_the_page, fixture, b, make_advised(b, PAGE, 0),
        fixture_end)
{
    seen s = {.count = 0};
    CHECK_OK(quire_memory_set_hook(
        b->memory, &(quire_hook){.event = note,
                                 .user = &s,
                                 .kinds = QUIRE_EVENT_PAGE_MADE | QUIRE_EVENT_OVER_BUDGET}));
    ALLOCATE(b, .size = PAGE);
    CHECK_EQ(s.count, 1);
    ALLOCATE(b, .size = 3000);
    CHECK_EQ(s.count, 3);
    CHECK_EQ(s.events[1].kind, QUIRE_EVENT_PAGE_MADE);
    CHECK_EQ(s.events[2].kind, QUIRE_EVENT_OVER_BUDGET);
    CHECK_EQ(s.events[2].page, s.events[1].page);
    CHECK_EQ(s.events[2].size, 3072);
}

UNIT_ON(budget_advice, an_event_follows_memory_for_an_elastic_page, fixture, b, fixture_prepare(b),
        fixture_end)
{
    seen s = {.count = 0};
    fake_offer_growth(&b->fake);
    fake_offer_budget(&b->fake);
    fake_set_budget(&b->fake, 0, PAGE, 0);
    fixture_open(b, &(quire_memory_options){
                        .elastic = true, .address_space = 16 * PAGE, .pages.page_size = PAGE / 4});
    CHECK_OK(quire_memory_set_hook(
        b->memory, &(quire_hook){.event = note,
                                 .user = &s,
                                 .kinds = QUIRE_EVENT_PAGE_RESIZED | QUIRE_EVENT_OVER_BUDGET}));
    ALLOCATE(b, .size = PAGE);
    ALLOCATE(b, .size = 512);
    CHECK_EQ(s.count, 2);
    CHECK_EQ(s.events[0].kind, QUIRE_EVENT_PAGE_RESIZED);
    CHECK_EQ(s.events[1].kind, QUIRE_EVENT_OVER_BUDGET);
    CHECK_EQ(s.events[1].size, PAGE + PAGE / 4);
    fake_set_budget(&b->fake, 0, 0, 0);
    ALLOCATE(b, .size = PAGE);
    CHECK_EQ(s.count, 3); /* within the budget again */
}

CASE(a_stats_scope_counts_its_own_pages, 1, 0)
{
    quire_memory_stats stats;
    ALLOCATE(b, .size = PAGE);
    CHECK_OK(quire_memory_push_stats(b->memory));
    ALLOCATE(b, .size = PAGE, .dedicated = true);
    CHECK_EQ(over(b), 2);
    CHECK_OK(quire_memory_pop_stats(b->memory, &stats));
    CHECK_EQ(stats.pages_over_budget, 1);
}

/* ---- answers that serve further pages ------------------------------------------------------- */

/* An answer that ends by bytes or by a failure only. */
#define ENDLESS UINT64_MAX

static uint64_t asked(fixture *b)
{
    return b->fake.calls[FAKE_HEAP_BUDGET];
}

CASE(an_answer_serves_a_sixteenth_of_what_was_left, 64 * PAGE, 0)
{
    b->fake.budget_lifetime = ENDLESS;
    ALLOCATE(b, .size = PAGE); /* the first of four */
    uint64_t before = asked(b);
    for (int i = 0; i < 3; i++)
        ALLOCATE(b, .size = PAGE);
    CHECK_EQ(asked(b), before);
    ALLOCATE(b, .size = PAGE);
    CHECK_EQ(asked(b), before + 1);
}

CASE(an_answer_without_a_lifetime_serves_one_page, 64 * PAGE, 0)
{
    for (uint64_t i = 1; i <= 3; i++) {
        ALLOCATE(b, .size = PAGE);
        CHECK_EQ(asked(b), i);
    }
}

UNIT_ON(budget_advice, a_memory_within_the_budget_asks_before_each_page, fixture, b,
        make_strict(b, 64 * PAGE, 0), fixture_end)
{
    b->fake.budget_lifetime = ENDLESS;
    for (uint64_t i = 1; i <= 3; i++) {
        ALLOCATE(b, .size = PAGE);
        CHECK_EQ(asked(b), i);
    }
}

CASE(an_answer_ends_where_the_backend_makes_no_page, 1024 * PAGE, 0)
{
    quire_allocation none;
    b->fake.budget_lifetime = ENDLESS;
    ALLOCATE(b, .size = PAGE);
    ALLOCATE(b, .size = PAGE);
    CHECK_EQ(asked(b), 1);
    b->fake.page_budget = 2 * PAGE; /* the backend has no more */
    CHECK(quire_allocate(b->memory, &(quire_allocation_options){.size = PAGE}, &none));
    b->fake.page_budget = 0;
    ALLOCATE(b, .size = PAGE);
    CHECK(asked(b) > 1);
}

CASE(a_query_of_the_caller_is_always_asked, 64 * PAGE, 0)
{
    b->fake.budget_lifetime = ENDLESS;
    for (uint64_t i = 1; i <= 3; i++) {
        fake_set_budget(&b->fake, 0, 64 * PAGE, i * PAGE);
        CHECK_EQ(budget_of(b, 0).usage, i * PAGE);
        CHECK_EQ(asked(b), i);
    }
}

/* Memory that others took since the answer: the answer of the next query counts. */
CASE(the_next_answer_replaces_the_last, 64 * PAGE, 0)
{
    b->fake.budget_lifetime = ENDLESS;
    ALLOCATE(b, .size = PAGE);
    fake_set_budget(&b->fake, 0, 64 * PAGE, 63 * PAGE);
    CHECK_EQ(budget_of(b, 0).available, 0);
    uint64_t before = asked(b);
    ALLOCATE(b, .size = PAGE); /* beyond the budget, which was asked for anew */
    CHECK(asked(b) > before);
    CHECK_EQ(fixture_stats(b).pages_over_budget, 1);
}

/* As that of a virtual machine that got more memory. */
CASE(a_budget_above_the_size_of_the_heap_is_its_size, 0, 0)
{
    quire_device_info info;
    CHECK_OK(quire_device_get_info(b->device, &info));
    uint64_t size = info.heaps[0].size;
    REFUSE(b, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, .size = size + PAGE);
    CHECK_HAS(quire_last_error(), "can never fit");
    CHECK_FAILS(quire_memory_preallocate(b->memory, size + PAGE), QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    fake_set_budget(&b->fake, 0, 2 * size, 0);
    CHECK_EQ(budget_of(b, 0).budget, 2 * size);
    b->fake.page_budget = PAGE; /* the fake backend has no bytes for such a page */
    REFUSE(b, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, .size = size + PAGE);
    CHECK(!strstr(quire_last_error(), "can never fit"));
}
