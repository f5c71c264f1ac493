/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * within_budget.c - requests to which the budget of the backend is a limit, in memories to which it
 * is advice.
 */
#include "tests/support/budget.h"

#include "quire/default_memory.h"
#include "tests/support/on_stream.h"
#include "tests/support/streams.h"

#define WITHIN .within_budget = true

static uint64_t over(fixture *b)
{
    return fixture_stats(b).pages_over_budget;
}

#define CASE(name, ...)                                                                            \
    UNIT_ON(within_budget, name, fixture, b, make_advised(b, __VA_ARGS__), fixture_end)

/* ---- one memory ----------------------------------------------------------------------------- */

CASE(a_page_beyond_the_budget_is_refused_to_the_request_alone, PAGE, 0)
{
    ALLOCATE(b, .size = PAGE, WITHIN);
    uint64_t calls = b->fake.calls[FAKE_PAGE_CREATE];
    REFUSE(b, OVER, .size = 1000, WITHIN);
    CHECK_HAS(quire_last_error(), "would exceed the 64 KiB budget of heap 0");
    CHECK(!strstr(quire_last_error(), "a page beyond the budget"));
    CHECK_EQ(b->fake.calls[FAKE_PAGE_CREATE], calls);
    ALLOCATE(b, .size = 1000);
    CHECK_EQ(over(b), 1);
}

CASE(smaller_pages_and_existing_ones_serve_it, PAGE + PAGE / 4 + 100, 0)
{
    ALLOCATE(b, .size = PAGE, WITHIN);
    CHECK_EQ(page_size(b, ALLOCATE(b, .size = 1000, WITHIN)), PAGE / 4);
    REFUSE(b, OVER, .size = PAGE / 4, WITHIN);
    quire_allocation beyond = ALLOCATE(b, .size = PAGE / 4);
    CHECK_EQ(over(b), 1);
    CHECK_OK(quire_free(b->memory, beyond));
    ALLOCATE(b, .size = PAGE / 4, WITHIN); /* the page is there, although the budget is exceeded */
    CHECK_EQ(over(b), 1);
}

CASE(every_kind_of_page_follows_it, 1, 0)
{
    quire_buffer buffer;
    quire_image image;
    const quire_buffer_options of_buffer = {.size = 10, WITHIN};
    REFUSE(b, OVER, .size = 100, .dedicated = true, WITHIN);
    CHECK_FAILS(quire_buffer_create(b->memory, &of_buffer, &buffer), OVER);
    CHECK_FAILS(quire_image_create(b->memory, &(quire_image_options){.width = 16, WITHIN}, &image),
                OVER);
    b->fake.object_needs =
        (quire_requirements){.size = 4096, .alignment = 256, .kind_mask = 1, .dedicated = true};
    CHECK_FAILS(quire_buffer_create(b->memory, &of_buffer, &buffer), OVER);
    b->fake.object_needs.dedicated = false;
    b->fake.object_needs.prefers_dedicated = true;
    CHECK_FAILS(quire_buffer_create(b->memory, &of_buffer, &buffer), OVER);
    CHECK_EQ(b->fake.calls[FAKE_PAGE_CREATE], 0);
    CHECK_EQ(b->fake.objects, 0);
    CHECK_OK(quire_free(b->memory, ALLOCATE(b, .size = PAGE)));
    ALLOCATE(b, .size = 100);
    CHECK_OK(quire_buffer_create(b->memory, &of_buffer, &buffer)); /* shares the page */
    CHECK_EQ(b->fake.calls[FAKE_PAGE_CREATE], 1);
}

UNIT_PREPARED(within_budget, an_elastic_memory_gets_no_chunk_beyond_the_budget, b)
{
    fake_offer_growth(&b->fake);
    fake_offer_budget(&b->fake);
    fake_set_budget(&b->fake, 0, PAGE + PAGE / 2, 0);
    fixture_open(b, &(quire_memory_options){
                        .elastic = true, .address_space = 16 * PAGE, .pages.page_size = PAGE / 4});
    ALLOCATE(b, .size = PAGE, WITHIN);
    ALLOCATE(b, .size = PAGE / 2, WITHIN);
    REFUSE(b, OVER, .size = 1000, WITHIN);
    CHECK_EQ(b->fake.calls[FAKE_PAGE_BACK], 1);
    ALLOCATE(b, .size = 1000);
    CHECK_EQ(over(b), 1);
}

CASE(a_page_that_turns_out_larger_is_destroyed, PAGE, 0)
{
    b->fake.page_rounding = PAGE + 1000;
    REFUSE(b, OVER, .size = PAGE, WITHIN);
    CHECK_EQ(b->fake.calls[FAKE_PAGE_CREATE], 1);
    CHECK_EQ(budget_of(b, 0).reserved, 0);
}

UNIT_PREPARED(within_budget, an_earlier_answer_of_the_backend_does_not_serve_it, b)
{
    fake_offer_budget(&b->fake);
    b->fake.budget_lifetime = UINT64_C(3600000000000);
    fake_set_budget(&b->fake, 0, 1024 * PAGE, 0);
    fixture_open(b, &(quire_memory_options){.name = "weights", .pages = POLICY});
    ALLOCATE(b, .size = PAGE);
    fake_set_budget(&b->fake, 0, PAGE, 0);
    ALLOCATE(b, .size = PAGE);
    CHECK_EQ(b->fake.calls[FAKE_HEAP_BUDGET], 1);
    REFUSE(b, OVER, .size = PAGE, WITHIN);
    CHECK(b->fake.calls[FAKE_HEAP_BUDGET] > 1);
}

CASE(limits_of_the_caller_hold_as_well, 4 * PAGE, 0)
{
    CHECK_OK(quire_memory_set_limit(b->memory, PAGE));
    ALLOCATE(b, .size = PAGE, WITHIN);
    REFUSE(b, OVER, .size = 1000, WITHIN);
    CHECK_HAS(quire_last_error(), "limit of memory 'weights'");
}

/* Without a budget of the backend there is nothing to stay within. */
UNIT_ON(within_budget, has_no_effect_where_the_backend_reports_none, fixture, b, make(b),
        fixture_end)
{
    ALLOCATE(b, .size = 100 * PAGE, WITHIN);
}

CASE(existing_pages_excludes_every_new_page, 4 * PAGE, 0)
{
    REFUSE(b, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, .size = 1000, WITHIN, .existing_pages = true);
    CHECK_EQ(b->fake.calls[FAKE_HEAP_BUDGET], 0);
    ALLOCATE(b, .size = PAGE / 2, WITHIN);
    ALLOCATE(b, .size = PAGE / 2, WITHIN, .existing_pages = true);
}

/* ---- groups, shards, streams ---------------------------------------------------------------- */

CASE(a_batch_is_refused_whole, 2 * PAGE, 0)
{
    quire_allocation made[9];
    const quire_allocation_options options = {.size = PAGE / 4, WITHIN};
    CHECK_FAILS(quire_allocate_batch(b->memory, &options, made, 9), OVER);
    CHECK_EQ(fixture_stats(b).allocation_count, 0);
    CHECK_EQ(over(b), 0);
    CHECK_OK(quire_allocate_batch(b->memory, &options, made, 8));
}

UNIT_ON(within_budget, ranges_of_other_shards_serve_it, fixture, b,
        make_with_options(b, PAGE, 0,
                          &(quire_memory_options){.name = "weights", .pages = POLICY, .shards = 2}),
        fixture_end)
{
    quire_allocation there = ALLOCATE_ELSEWHERE(b, .size = PAGE / 2, WITHIN);
    quire_allocation here = ALLOCATE(b, .size = PAGE / 2, WITHIN);
    CHECK_EQ(fixture_info(b, here).page, fixture_info(b, there).page);
    REFUSE(b, OVER, .size = 1, WITHIN);
    CHECK_EQ(over(b), 0);
}

UNIT(within_budget, ranges_of_deferred_frees_serve_it_once_their_points_have_passed)
{
    fixture b;
    quire_stream *stream = NULL;
    fixture_prepare(&b);
    streams_offer(&b.fake.table);
    fake_offer_budget(&b.fake);
    fake_set_budget(&b.fake, 0, PAGE, 0);
    fixture_open(&b, &(quire_memory_options){.name = "weights", .pages = POLICY});
    CHECK_OK(quire_stream_create(b.device, NULL, &stream));
    CHECK_OK(quire_free_on_stream(b.memory, ALLOCATE(&b, .size = PAGE, .stream = stream), stream));
    REFUSE(&b, OVER, .size = PAGE, WITHIN);
    streams_pass(stream);
    ALLOCATE(&b, .size = PAGE, WITHIN);
    CHECK_EQ(over(&b), 0);
    quire_memory_destroy_all(&b.memory);
    CHECK_OK(quire_stream_destroy(&stream));
    CHECK_OK(quire_device_destroy(&b.device));
    CHECK_EQ(b.fake.pages, 0);
}

/* ---- several memories, and the callback ----------------------------------------------------- */

typedef struct giver {
    quire_allocation held;
    int calls;
    quire_result reason;
} giver;

static bool give(void *user, quire_memory *memory, const quire_out_of_memory *report)
{
    giver *g = user;
    g->calls++;
    g->reason = report->reason;
    return g->held.id && !quire_free(memory, g->held);
}

UNIT(within_budget, on_out_of_memory_is_called_before_the_refusal)
{
    fixture b;
    giver g = {.calls = 0};
    make_with_options(&b, PAGE, 0,
                      &(quire_memory_options){
                          .name = "weights", .pages = POLICY, .on_out_of_memory = {give, &g}});
    g.held = ALLOCATE(&b, .size = PAGE);
    ALLOCATE(&b, .size = PAGE, WITHIN);
    CHECK_EQ(g.calls, 1);
    CHECK_EQ(g.reason, OVER);
    CHECK_EQ(over(&b), 0);
    fixture_end(&b);
}

CASE(the_next_memory_or_kind_serves_it, 1, 0)
{
    quire_memory *memories[2] = {NULL}, *own = NULL;
    quire_allocation made;
    uint32_t chosen = 9;
    const quire_allocation_options options = {.size = PAGE, WITHIN};
    memories[0] = b->memory;
    CHECK_OK(quire_memory_create(
        b->device, &(quire_memory_options){.kind.required = QUIRE_HOST_VISIBLE}, &memories[1]));
    CHECK_OK(quire_allocate_fallback(memories, 2, &options, &chosen, &made));
    CHECK_EQ(chosen, 1);
    CHECK_OK(quire_device_allocate(b->device, NULL, &options, &own, &made));
    CHECK_EQ(over(b), 0);
    CHECK_OK(quire_free(own, made));
    quire_memory_info info;
    CHECK_OK(quire_memory_get_info(own, &info));
    CHECK(!(info.flags & QUIRE_DEVICE_LOCAL));
    quire_memory_destroy_all(&memories[1]);
}
