/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * limits.c - the contract: budgets hold, a refused request changes nothing, and every page is
 * returned.
 */
#include "tests/contract/kit.h"
#include "tests/support/state.h"

enum { MAX_PAGES = 600 };

static uint32_t heap_of(const contract_world *w, uint32_t kind)
{
    return w->info.kinds[kind].heap;
}

static quire_budget_info budget_of(const contract_world *w, uint32_t kind)
{
    quire_budget_info info;
    CHECK_OK(quire_device_get_budget(w->device, heap_of(w, kind), &info));
    return info;
}

/*
 * Makes dedicated allocations of `size` bytes, at least 256, until one is refused with `code`.
 * Returns how many were made.
 */
static uint32_t fill(const contract_world *w, quire_memory *memory, uint64_t size,
                     quire_allocation *made, quire_result code)
{
    quire_memory_info info;
    quire_allocation_options options = {.size = size, .dedicated = true};
    CHECK_OK(quire_memory_get_info(memory, &info));
    for (uint32_t count = 0; count < MAX_PAGES; count++) {
        uint64_t before = state_of_memory(memory);
        quire_result result = quire_allocate(memory, &options, &made[count]);
        if (result) {
            CHECK_FAILS(result, code);
            CHECK(!made[count].id);
            CHECK_EQ(state_of_memory(memory), before);
            return count;
        }
        if (kit_can_both(w, info.kind))
            kit_write(memory, made[count], 256, count);
    }
    check_failed(__FILE__, __LINE__, "%d pages and no end", MAX_PAGES);
}

static void drain(const contract_world *w, quire_memory *memory, quire_allocation *made,
                  uint32_t count)
{
    quire_memory_info info;
    CHECK_OK(quire_memory_get_info(memory, &info));
    for (uint32_t i = 0; i < count; i++) {
        if (kit_can_both(w, info.kind))
            kit_read(memory, made[i], 256, i);
        CHECK_OK(quire_free(memory, made[i]));
    }
    CHECK_OK(quire_memory_trim(memory, 0, NULL));
    CHECK_EQ(kit_stats(memory).page_count, 0);
}

/* ---- limits ------------------------------------------------------------------------------- */

static void heap_limit_holds(contract_world *w, uint32_t kind)
{
    quire_memory *memory = kit_memory(w, kind, NULL);
    quire_allocation made[MAX_PAGES];
    uint64_t size = kit_page_size(w), limit = 4 * size + size / 2;
    CHECK_OK(quire_device_set_heap_limit(w->device, heap_of(w, kind), limit));
    uint32_t count = fill(w, memory, size / 2, made, QUIRE_ERROR_OVER_BUDGET);
    CHECK(count >= 2); /* at least with pages of half the size */
    quire_budget_info budget = budget_of(w, kind);
    CHECK_EQ(budget.limit, limit);
    CHECK_EQ(budget.reserved, kit_stats(memory).reserved_bytes);
    CHECK(budget.reserved <= limit);
    CHECK_OK(quire_device_set_heap_limit(w->device, heap_of(w, kind), 0));
    made[count++] = ALLOCATE(memory, .size = size / 2, .dedicated = true);
    if (kit_can_both(w, kind))
        kit_write(memory, made[count - 1], 256, count - 1);
    drain(w, memory, made, count);
    CHECK_EQ(budget_of(w, kind).reserved, 0);
    kit_end(&memory);
}

static void page_limit_holds(contract_world *w, uint32_t kind)
{
    quire_memory *memory = kit_memory(w, kind, NULL);
    quire_allocation made[MAX_PAGES];
    CHECK_OK(quire_device_set_page_limit(w->device, 3));
    CHECK_EQ(fill(w, memory, 1000, made, QUIRE_ERROR_TOO_MANY_PAGES), 3);
    CHECK_EQ(kit_stats(memory).page_count, 3);
    CHECK_OK(quire_device_set_page_limit(w->device, 0));
    drain(w, memory, made, 3);
    kit_end(&memory);
}

static bool reports_budgets(const contract_world *w)
{
    return w->subject->set_budget && kit_offers(w, QUIRE_BACKEND_BUDGET);
}

static void backends_budget_holds(contract_world *w, uint32_t kind)
{
    const quire_memory_options strict = {.within_budget = true};
    quire_memory *memory = kit_memory(w, kind, &strict);
    quire_allocation made[MAX_PAGES];
    uint64_t size = kit_page_size(w);
    CHECK_OK(w->subject->set_budget(w->opened.own, heap_of(w, kind), 5 * size));
    CHECK_EQ(budget_of(w, kind).budget, 5 * size);
    uint32_t count = fill(w, memory, size / 2, made, QUIRE_ERROR_OVER_BUDGET);
    CHECK(count >= 5);
    quire_budget_info budget = budget_of(w, kind);
    CHECK(budget.reserved <= budget.budget);
    CHECK(w->subject->is_shared || budget.usage == budget.reserved);
    CHECK_OK(w->subject->set_budget(w->opened.own, heap_of(w, kind), 0));
    drain(w, memory, made, count);
    kit_end(&memory);
}

/* Without the option within_budget pages are made beyond the budget, and counted. */
static void backends_budget_is_advice(contract_world *w, uint32_t kind)
{
    quire_memory *memory = kit_memory(w, kind, NULL);
    uint64_t size = kit_page_size(w);
    CHECK_OK(w->subject->set_budget(w->opened.own, heap_of(w, kind), size));
    quire_allocation made[3];
    for (int i = 0; i < 3; i++)
        made[i] = ALLOCATE(memory, .size = size / 2, .dedicated = true);
    quire_budget_info budget = budget_of(w, kind);
    CHECK_EQ(budget.budget, size);
    CHECK(budget.reserved > size);
    CHECK_EQ(budget.available, 0);
    CHECK(kit_stats(memory).pages_over_budget >= 1);
    CHECK(kit_stats(memory).pages_over_budget <= 3);
    CHECK_OK(w->subject->set_budget(w->opened.own, heap_of(w, kind), 0));
    for (int i = 0; i < 3; i++)
        CHECK_OK(quire_free(memory, made[i]));
    kit_end(&memory);
}

/* The bytes in use that the backend reports include quire's pages. */
static void usage_has_the_pages_in_it(contract_world *w, uint32_t kind)
{
    quire_memory *memory = kit_memory(w, kind, NULL);
    quire_budget_info before = budget_of(w, kind);
    quire_allocation made = ALLOCATE(memory, .size = kit_page_size(w), .dedicated = true);
    quire_budget_info with = budget_of(w, kind);
    CHECK_EQ(before.size, w->info.heaps[heap_of(w, kind)].size);
    CHECK_EQ(with.reserved - before.reserved, kit_stats(memory).reserved_bytes);
    CHECK(with.usage >= with.reserved);
    if (!w->subject->is_shared)
        CHECK_EQ(with.usage - before.usage, kit_stats(memory).reserved_bytes);
    CHECK_OK(quire_free(memory, made));
    CHECK_OK(quire_memory_trim(memory, 0, NULL));
    CHECK_EQ(budget_of(w, kind).reserved, before.reserved);
    kit_end(&memory);
}

/* ---- full heaps --------------------------------------------------------------------------- */

static void more_than_the_heap(contract_world *w, uint32_t kind)
{
    quire_memory *memory = kit_memory(w, kind, NULL);
    quire_allocation keeps = ALLOCATE(memory, .size = 1000), none;
    uint64_t heap = w->info.heaps[heap_of(w, kind)].size, before = state_of_memory(memory);
    for (int dedicated = 0; dedicated < 2; dedicated++) {
        quire_allocation_options options = {.size = heap + 1, .dedicated = dedicated};
        quire_result result = quire_allocate(memory, &options, &none);
        CHECK(result == QUIRE_ERROR_OUT_OF_DEVICE_MEMORY || result == QUIRE_ERROR_OVER_BUDGET ||
              result == QUIRE_ERROR_OUT_OF_RANGE);
        CHECK_EQ(quire_last_result(), result);
        CHECK(!none.id);
        CHECK_EQ(state_of_memory(memory), before);
    }
    CHECK_OK(quire_free(memory, keeps));
    kit_end(&memory);
}

/* If the backend's own budget is at most the heap, a memory that stays within it is refused before
   the backend is called. */
static quire_result code_when_full(const contract_world *w, uint32_t kind, bool is_strict)
{
    quire_heap_budget reported = {0};
    if (kit_offers(w, QUIRE_BACKEND_BUDGET))
        CHECK_OK(w->table->heap_budget(w->state, heap_of(w, kind), &reported));
    bool is_reported = reported.budget && reported.budget <= w->info.heaps[heap_of(w, kind)].size;
    return is_strict && is_reported ? QUIRE_ERROR_OVER_BUDGET : QUIRE_ERROR_OUT_OF_DEVICE_MEMORY;
}

/* Fills a small heap twice: the second time it holds as much as the first time. */
static void fill_twice(contract_world *w, uint32_t kind, bool is_strict)
{
    const quire_memory_options options = {.within_budget = is_strict};
    uint64_t heap = w->info.heaps[heap_of(w, kind)].size;
    uint64_t most = w->subject->max_fill ? w->subject->max_fill : 64 * MIB;
    uint64_t size = heap / 40 > kit_page_size(w) ? heap / 40 : kit_page_size(w);
    if (heap > most)
        return;
    quire_memory *memory = kit_memory(w, kind, &options);
    quire_allocation made[MAX_PAGES];
    quire_result full = code_when_full(w, kind, is_strict);
    uint32_t first = fill(w, memory, size, made, full);
    CHECK(first > 0);
    CHECK_OK(quire_memory_check(memory));
    drain(w, memory, made, first);
    for (int i = 0; i < 3; i++) {
        uint32_t again = fill(w, memory, size, made, full);
        CHECK(w->subject->is_shared || again == first);
        drain(w, memory, made, again);
    }
    kit_end(&memory);
}

static void a_heap_that_is_full(contract_world *w, uint32_t kind)
{
    fill_twice(w, kind, true);
    fill_twice(w, kind, false);
}

/* ---- pages are created and destroyed ------------------------------------------------------ */

static void trim_gives_every_page_back(contract_world *w, uint32_t kind)
{
    for (int keeps = 0; keeps < 2; keeps++) {
        quire_memory_options options = {.pages.retained_empty_bytes = keeps ? 0 : 1};
        quire_memory *memory = kit_memory(w, kind, &options);
        quire_allocation made[10];
        for (uint64_t i = 0; i < 10; i++)
            made[i] = ALLOCATE(memory, .size = kit_page_size(w) / 4 + i, .dedicated = i % 4 == 0);
        uint64_t reserved = kit_stats(memory).reserved_bytes, released = 0;
        CHECK(reserved > 0);
        for (int i = 0; i < 10; i++)
            CHECK_OK(quire_free(memory, made[i]));
        CHECK(keeps ? kit_stats(memory).reserved_bytes > 0 : true);
        CHECK_OK(quire_memory_trim(memory, 0, &released));
        CHECK(!keeps || released == reserved);
        quire_memory_stats stats = kit_stats(memory);
        CHECK_EQ(stats.page_count + stats.reserved_bytes, 0);
        CHECK_EQ(stats.pages_created, stats.pages_destroyed);
        CHECK_EQ(budget_of(w, kind).reserved, 0);
        kit_end(&memory);
    }
}

static void a_round(const contract_world *w, quire_memory *memory, uint32_t kind)
{
    quire_allocation made[16];
    void *pointer;
    for (uint64_t i = 0; i < 16; i++) {
        uint64_t size = i == 7 ? kit_page_size(w) : 100 + 1000 * i;
        made[i] =
            ALLOCATE(memory, .size = size, .alignment = UINT64_C(1) << i % 9, .dedicated = i == 7);
        if (!kit_is_visible(w, kind))
            continue;
        CHECK_OK(quire_map(memory, made[i], &pointer));
        CHECK_OK(quire_unmap(memory, made[i]));
    }
    for (uint64_t i = 0; i < 16; i++)
        CHECK_OK(quire_free(memory, made[i * 5 % 16]));
}

static void steady_state_makes_no_call(contract_world *w, uint32_t kind)
{
    quire_memory *memory = kit_memory(w, kind, NULL);
    quire_memory_info info;
    CHECK_OK(quire_memory_get_info(memory, &info));
    a_round(w, memory, kind);
    a_round(w, memory, kind);
    uint64_t calls = kit_stats(memory).backend_calls, made = kit_stats(memory).pages_created;
    for (int i = 0; i < 20; i++)
        a_round(w, memory, kind);
    CHECK(info.checked ||
          kit_stats(memory).backend_calls == calls); /* checked builds write red zones */
    CHECK(info.checked || kit_stats(memory).pages_created == made);
    kit_end(&memory);
}

static void reserved_pages_serve(contract_world *w, uint32_t kind)
{
    quire_memory *memory = kit_memory(w, kind, NULL);
    uint64_t size = kit_page_size(w);
    CHECK_OK(quire_memory_preallocate(memory, 3 * size));
    quire_memory_stats before = kit_stats(memory);
    CHECK(before.reserved_bytes >= 3 * size);
    quire_allocation made[3];
    for (int i = 0; i < 3; i++)
        made[i] = ALLOCATE(memory, .size = size / 2 + 1000);
    CHECK_EQ(kit_stats(memory).pages_created, before.pages_created);
    for (int i = 0; i < 3; i++)
        CHECK_OK(quire_free(memory, made[i]));
    CHECK_OK(quire_memory_preallocate(memory, 0));
    kit_end(&memory);
}

const contract_scenario contract_limits[] = {
    {.name = "a heap's limit holds", .of_kind = heap_limit_holds},
    {.name = "a limit of pages holds", .of_kind = page_limit_holds},
    {.name = "the backend's budget holds",
     .of_kind = backends_budget_holds,
     .applies = reports_budgets},
    {.name = "the backend's budget is advice",
     .of_kind = backends_budget_is_advice,
     .applies = reports_budgets},
    {.name = "the bytes in use include the pages", .of_kind = usage_has_the_pages_in_it},
    {.name = "more than the heap is refused without a change", .of_kind = more_than_the_heap},
    {.name = "a heap is full after the same number of pages each time",
     .of_kind = a_heap_that_is_full},
    {.name = "a trim destroys every page, and so do bounds on retained bytes",
     .of_kind = trim_gives_every_page_back},
    {.name = "a steady state creates no page and makes no backend call",
     .of_kind = steady_state_makes_no_call},
    {.name = "preallocated pages serve without a new one", .of_kind = reserved_pages_serve},
    {0},
};
