/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * budget.h - shared by the unit tests of budgets: a memory of small pages on a fake backend, and
 * refusals that change nothing.
 */
#ifndef QUIRE_TESTS_SUPPORT_BUDGET_H
#define QUIRE_TESTS_SUPPORT_BUDGET_H

#include "tests/support/fixture.h"

#include "src/core/device/budget.h"

enum { PAGE = 65536 };

#define OVER QUIRE_ERROR_OVER_BUDGET

static const quire_page_policy POLICY = {.page_size = PAGE};

static inline void make(fixture *b)
{
    fixture_make(b, &(quire_memory_options){.name = "weights", .pages = POLICY});
}

/* Opens a backend that reports budgets: this one for heap 0, and the bytes that others use. */
static inline void make_with_options(fixture *b, uint64_t budget, uint64_t others,
                                     const quire_memory_options *options)
{
    fixture_prepare(b);
    fake_offer_budget(&b->fake);
    fake_set_budget(&b->fake, 0, budget, others);
    fixture_open(b, options);
}

/* A memory that stays within the budget. */
static inline void make_strict(fixture *b, uint64_t budget, uint64_t others)
{
    make_with_options(
        b, budget, others,
        &(quire_memory_options){.name = "weights", .pages = POLICY, .within_budget = true});
}

/* A memory to which the budget is advice. */
static inline void make_advised(fixture *b, uint64_t budget, uint64_t others)
{
    make_with_options(b, budget, others,
                      &(quire_memory_options){.name = "weights", .pages = POLICY});
}

static inline void refuse(fixture *b, quire_result code, const quire_allocation_options *options)
{
    quire_memory_stats before, after;
    quire_allocation none = {1};
    CHECK_OK(quire_memory_get_stats(b->memory, &before));
    CHECK_FAILS(quire_allocate(b->memory, options, &none), code);
    CHECK_EQ(none.id, 0);
    CHECK_OK(quire_memory_get_stats(b->memory, &after));
    CHECK_EQ(after.allocation_count, before.allocation_count);
    CHECK_EQ(after.live_bytes, before.live_bytes);
    CHECK_EQ(after.failures, before.failures + 1);
    CHECK_EQ(after.reserved_bytes - after.empty_bytes, before.reserved_bytes - before.empty_bytes);
    CHECK_OK(quire_memory_check(b->memory));
}

#define REFUSE(b, code, ...) refuse((b), (code), &(quire_allocation_options){__VA_ARGS__})

static inline quire_budget_info budget_of(fixture *b, uint32_t heap)
{
    quire_budget_info info;
    CHECK_OK(quire_device_get_budget(b->device, heap, &info));
    CHECK_EQ(info.reserved, b->fake.heap_bytes[heap]);
    return info;
}

static inline uint64_t page_size(fixture *b, quire_allocation allocation)
{
    quire_page_info page;
    CHECK_OK(quire_page_get_info(b->memory, fixture_info(b, allocation).page, &page));
    return page.size;
}

#endif
