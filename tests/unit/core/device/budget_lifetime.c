/*
 * budget_lifetime.c - answers of the backend about its budget that serve further pages, and heaps
 * whose budget exceeds the size that the device had when it was created.
 */
#include "tests/support/budget.h"

/* An answer that ends by bytes or by a failure only. */
#define ENDLESS UINT64_MAX

static uint64_t asked(fixture *b)
{
    return b->fake.calls[FAKE_HEAP_BUDGET];
}

#define CASE(name, ...)                                                                            \
    UNIT_ON(budget_lifetime, name, fixture, b, make_advised(b, __VA_ARGS__), fixture_end)

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

UNIT_ON(budget_lifetime, a_memory_within_the_budget_asks_before_each_page, fixture, b,
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
