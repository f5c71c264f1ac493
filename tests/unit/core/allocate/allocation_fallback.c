/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * allocation_fallback.c - one allocation in the first of several memories that can serve it.
 */
#include "tests/support/fixture.h"

enum { PAGE = 4096 };

/* Two memories on one device, each with one page at most. */
typedef struct pair {
    fixture f;
    quire_memory *memories[2];  /* the first one belongs to the fixture */
    uint32_t callback_calls[2]; /* calls of their on_out_of_memory */
    quire_allocation to_free; /* the callback of the second memory frees this; {0} means nothing */
} pair;

static bool count_call(void *user, quire_memory *memory, const quire_out_of_memory *report)
{
    pair *p = user;
    const bool is_second = memory == p->memories[1];
    CHECK((is_second || memory == p->memories[0]) && report->size == PAGE);
    p->callback_calls[is_second]++;
    if (!is_second || !p->to_free.id)
        return false;
    CHECK_OK(quire_free(memory, p->to_free));
    p->to_free.id = 0;
    return true;
}

static void make(pair *p)
{
    const quire_page_policy one_page = {.page_size = PAGE, .max_pages = 1};
    *p = (pair){.to_free = {0}};
    fixture_make(&p->f, &(quire_memory_options){.name = "first",
                                                .pages = one_page,
                                                .on_out_of_memory = {count_call, p}});
    p->memories[0] = p->f.memory;
    CHECK_OK(quire_memory_create(p->f.device,
                                 &(quire_memory_options){.name = "second",
                                                         .pages = one_page,
                                                         .on_out_of_memory = {count_call, p}},
                                 &p->memories[1]));
}

static void end(pair *p)
{
    quire_memory_destroy_all(&p->memories[1]);
    fixture_end(&p->f);
}

#define CASE(name) UNIT_ON(allocation_fallback, name, pair, p, make(p), end)

/* Allocates a whole page from either memory; returns which one. */
static uint32_t place(pair *p, quire_allocation *allocation)
{
    uint32_t chosen = 77;
    const quire_allocation_options options = {.size = PAGE};
    CHECK_OK(quire_allocate_fallback(p->memories, 2, &options, &chosen, allocation));
    quire_allocation_info info;
    CHECK_OK(quire_allocation_get_info(p->memories[chosen], *allocation, &info));
    CHECK_EQ(info.size, PAGE);
    CHECK(info.committed);
    return chosen;
}

CASE(the_first_memory_with_room_serves)
{
    quire_allocation first, second, third;
    CHECK_EQ(place(p, &first), 0);
    CHECK_EQ(place(p, &second), 1);
    CHECK_OK(quire_free(p->memories[0], first));
    CHECK_EQ(place(p, &third), 0);
    CHECK_EQ(p->callback_calls[0] + p->callback_calls[1], 0);
}

CASE(a_success_keeps_the_last_error)
{
    quire_allocation first, second;
    CHECK_FAILS(quire_free(p->memories[0], (quire_allocation){0}), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(place(p, &first), 0);
    CHECK_EQ(place(p, &second), 1); /* the refusal of the first memory is not reported */
    CHECK_EQ(quire_last_result(), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_HAS(quire_last_error(), "no handle");
}

CASE(callbacks_are_called_after_all_memories_were_tried)
{
    quire_allocation first, third;
    CHECK_EQ(place(p, &first), 0);
    CHECK_EQ(place(p, &p->to_free), 1);
    CHECK_EQ(place(p, &third), 1);
    CHECK_EQ(p->callback_calls[0], 1);
    CHECK_EQ(p->callback_calls[1], 1);
    CHECK_EQ(p->to_free.id, 0);
}

CASE(the_first_memory_reports_a_refusal_by_all)
{
    quire_allocation first, second, none = {1};
    const quire_allocation_options options = {.size = PAGE};
    uint32_t chosen = 77;
    place(p, &first);
    place(p, &second);
    CHECK_FAILS(quire_allocate_fallback(p->memories, 2, &options, &chosen, &none),
                QUIRE_ERROR_TOO_MANY_PAGES);
    CHECK_HAS(quire_last_error(), "'first'");
    CHECK_HAS(quire_last_error(), "the caller's callback"); /* the last attempt called it */
    CHECK_EQ(chosen, 0);
    CHECK_EQ(none.id, 0);
    CHECK_EQ(p->callback_calls[0], 1);
    CHECK_EQ(p->callback_calls[1], 1);
    for (int i = 0; i < 2; i++)
        CHECK_OK(quire_memory_check(p->memories[i]));
}

UNIT_PREPARED(allocation_fallback, the_second_memory_does_what_the_first_cannot, f)
{
    fixture_open(f,
                 &(quire_memory_options){.kind.required = QUIRE_DEVICE_LOCAL, .kind.exact = true});
    quire_memory *memories[] = {f->memory, NULL};
    quire_allocation made;
    uint32_t chosen = 77;
    CHECK_OK(quire_memory_create(
        f->device, &(quire_memory_options){.kind.required = QUIRE_HOST_VISIBLE}, &memories[1]));
    const quire_allocation_options written = {.size = PAGE, .host_write = true};
    CHECK_OK(quire_allocate_fallback(memories, 2, &written, &chosen, &made));
    CHECK_EQ(chosen, 1);
    CHECK_FAILS(quire_allocate_fallback(memories, 1, &written, &chosen, &made),
                QUIRE_ERROR_NOT_HOST_VISIBLE);
    CHECK_EQ(chosen, 0);
    quire_memory_destroy_all(&memories[1]);
}

UNIT(allocation_fallback, memories_of_two_devices_without_callbacks)
{
    fixture f[2];
    quire_memory *memories[2];
    quire_allocation made[3];
    uint32_t chosen = 77;
    const quire_allocation_options options = {.size = PAGE};
    for (int i = 0; i < 2; i++) {
        fixture_make(&f[i], &(quire_memory_options){.pages = {.page_size = PAGE, .max_pages = 1}});
        memories[i] = f[i].memory;
    }
    for (uint32_t i = 0; i < 2; i++) {
        CHECK_OK(quire_allocate_fallback(memories, 2, &options, &chosen, &made[i]));
        CHECK_EQ(chosen, i);
    }
    CHECK_FAILS(quire_allocate_fallback(memories, 2, &options, &chosen, &made[2]),
                QUIRE_ERROR_TOO_MANY_PAGES);
    for (int i = 0; i < 2; i++)
        fixture_end(&f[i]);
}

CASE(wrong_options_end_the_search)
{
    quire_allocation none = {1};
    uint32_t chosen = 77;
    const quire_allocation_options cases[] = {
        {.size = 0}, {.size = 8, .alignment = 3}, {.size = 8, .unused[1] = 1}};
    for (int i = 0; i < 3; i++) {
        CHECK_FAILS(quire_allocate_fallback(p->memories, 2, &cases[i], &chosen, &none),
                    QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK_EQ(none.id, 0);
    }
    quire_memory_stats stats;
    CHECK_OK(quire_memory_get_stats(p->memories[1], &stats));
    CHECK_EQ(stats.failures, 0);
    quire_memory *const holed[] = {p->memories[0], NULL};
    const quire_allocation_options good = {.size = PAGE};
    CHECK_FAILS(quire_allocate_fallback(holed, 2, &good, &chosen, &none),
                QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_FAILS(quire_allocate_fallback(p->memories, 0, &good, &chosen, &none),
                QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(p->f.fake.pages, 0);
}
