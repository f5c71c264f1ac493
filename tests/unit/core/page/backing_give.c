/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * backing_give.c - when free chunks of an elastic page lose their memory: trims, limits, the
 * policy's retention, other memories, and what keeps them.
 */
#include "tests/support/elastic_page.h"
#include "tests/support/event_log.h"

#define CASE(name) UNIT_ON(backing_give, name, fixture, f, make(f), fixture_end)

static const uint64_t SECOND = UINT64_C(1000000000);

/* 24 chunks, of which 12 are free and do not touch. */
static void make_half_free(fixture *f, quire_allocation made[24])
{
    fill_chunks(f, made, 24);
    free_odd_ones(f, made, 24);
    expect_chunks(f, 24);
}

/* ---- trims and limits ----------------------------------------------------------------------- */

CASE(a_trim_takes_the_free_chunks)
{
    quire_allocation made[24];
    uint64_t released = 0;
    make_half_free(f, made);
    CHECK_OK(quire_memory_trim(f->memory, 4 * CHUNK, &released));
    CHECK_EQ(released, 8 * CHUNK);
    expect_chunks(f, 16);
    CHECK_OK(quire_memory_trim(f->memory, 0, &released));
    CHECK_EQ(released, 4 * CHUNK);
    expect_chunks(f, 12);
    for (uint32_t i = 0; i < 24; i += 2)
        CHECK_EQ(fixture_info(f, made[i]).offset, i * CHUNK);
    for (uint32_t i = 0; i < 12; i++)
        ALLOCATE(f, .size = CHUNK);
    expect_chunks(f, 24);
}

/* The page stays with its addresses when all of its memory has gone. */
CASE(all_memory_can_go_and_come_back)
{
    quire_allocation first = ALLOCATE(f, .size = 10 * CHUNK);
    uint64_t address = fixture_info(f, first).address;
    CHECK_OK(quire_free(f->memory, first));
    CHECK_OK(quire_memory_trim(f->memory, 0, NULL));
    expect_chunks(f, 0);
    CHECK_EQ(fixture_info(f, ALLOCATE(f, .size = 3 * CHUNK)).address, address);
    expect_chunks(f, 3);
    CHECK_EQ(f->fake.calls[FAKE_PAGE_CREATE], 1);
}

CASE(a_lower_limit_takes_what_is_beyond_it)
{
    quire_allocation made[24];
    make_half_free(f, made);
    CHECK_OK(quire_memory_set_limit(f->memory, 20 * CHUNK - 1));
    expect_chunks(f, 19);
    CHECK_OK(quire_memory_set_limit(f->memory, CHUNK));
    expect_chunks(f, 12); /* what is used stays */
    ALLOCATE_FAILS(f, QUIRE_ERROR_OVER_BUDGET, .size = CHUNK);
    CHECK_OK(quire_memory_set_limit(f->memory, 0));
    ALLOCATE(f, .size = CHUNK);
}

CASE(preallocated_memory_stays)
{
    CHECK_OK(quire_memory_preallocate(f->memory, 10 * CHUNK));
    quire_allocation made = ALLOCATE(f, .size = 14 * CHUNK);
    expect_chunks(f, 14);
    CHECK_OK(quire_free(f->memory, made));
    CHECK_OK(quire_memory_set_limit(f->memory, CHUNK));
    expect_chunks(f, 10);
    CHECK_OK(quire_memory_trim(f->memory, 0, NULL)); /* removes the floor */
    expect_chunks(f, 0);
}

/* ---- retention ------------------------------------------------------------------------------ */

static uint64_t clock_now;

static uint64_t read_clock(void *user)
{
    (void)user;
    return clock_now;
}

static void make_with_clock(fixture *f, quire_page_policy pages)
{
    clock_now = SECOND;
    make_with(f, &(quire_memory_options){.clock = {.now = read_clock}, .pages = pages});
}

/* Frees look at free chunks now and then. */
static void look(fixture *f)
{
    for (int i = 0; i < 20; i++)
        CHECK_OK(quire_free(f->memory, ALLOCATE(f, .size = 100)));
}

UNIT_ON(backing_give, by_default_chunks_leave_that_were_free_for_a_second, fixture, f,
        make_with_clock(f, (quire_page_policy){.page_size = CHUNK}), fixture_end)
{
    quire_allocation made[24];
    make_half_free(f, made);
    look(f);
    clock_now += SECOND / 2;
    quire_allocation some = ALLOCATE(f, .size = 5 * CHUNK); /* 7 chunks were free all the time */
    look(f);
    CHECK_OK(quire_free(f->memory, some));
    clock_now += SECOND / 2;
    look(f);
    /* of 24 chunks a tenth stays, and a chunk is not cut */
    expect_chunks(f, 24 - 5);
    clock_now += SECOND;
    look(f);
    clock_now += SECOND;
    look(f);
    CHECK(stats_of(f).reserved_bytes <= 15 * CHUNK);
    CHECK(stats_of(f).reserved_bytes >= 13 * CHUNK);
}

UNIT_ON(backing_give, bytes_that_the_policy_keeps_stay, fixture, f,
        make_with_clock(f, (quire_page_policy){.retained_empty_bytes = 6 * CHUNK}), fixture_end)
{
    quire_allocation made[24];
    fill_chunks(f, made, 24);
    free_odd_ones(f, made, 24);
    look(f);
    expect_chunks(f, 12 + 6);
    clock_now += 100 * SECOND;
    look(f);
    expect_chunks(f, 12 + 6);
}

/* Within these bytes new memory is requested, and free chunks stay where they are. */
UNIT_ON(backing_give, bytes_that_the_policy_keeps_do_not_move, fixture, f,
        make_with_clock(f, (quire_page_policy){.retained_empty_bytes = 20 * CHUNK}), fixture_end)
{
    quire_allocation made[24];
    make_half_free(f, made);
    ALLOCATE(f, .size = 9 * CHUNK); /* begins in the last free chunk: 11 stay free */
    expect_chunks(f, 24 + 8);
    ALLOCATE(f, .size = 9 * CHUNK); /* 9 new ones beside these 11 are 20 */
    expect_chunks(f, 24 + 17);
    ALLOCATE(f, .size = 10 * CHUNK);
    expect_chunks(f, 24 + 17);
}

UNIT_ON(backing_give, free_chunks_leave_at_the_age_of_the_policy, fixture, f,
        make_with_clock(f, (quire_page_policy){.retention_nanoseconds = 5 * UINT64_C(1000000000)}),
        fixture_end)
{
    quire_allocation made[24];
    make_half_free(f, made);
    look(f);
    clock_now += 4 * SECOND;
    look(f);
    expect_chunks(f, 24);
    clock_now += SECOND;
    look(f);
    CHECK(stats_of(f).reserved_bytes <= 13 * CHUNK);
}

/* ---- other memories ------------------------------------------------------------------------- */

/* A memory that the device has no room for gets the free chunks of this one. */
CASE(another_memory_gets_the_free_chunks)
{
    quire_memory *other = NULL;
    quire_allocation made[24], taken;
    make_half_free(f, made);
    CHECK_OK(quire_memory_create(f->device, &(quire_memory_options){.pages.page_size = 10 * CHUNK},
                                 &other));
    CHECK_OK(quire_device_set_heap_limit(f->device, 0, 26 * CHUNK));
    CHECK_OK(quire_allocate(other, &(quire_allocation_options){.size = 10 * CHUNK}, &taken));
    CHECK(stats_of(f).reserved_bytes <= 16 * CHUNK);
    ALLOCATE_FAILS(f, QUIRE_ERROR_OVER_BUDGET, .size = 5 * CHUNK);
    CHECK_OK(quire_free(other, taken));
    ALLOCATE(f, .size = 5 * CHUNK); /* and the other way round */
    CHECK_OK(quire_memory_destroy(&other));
}

/* ---- reports -------------------------------------------------------------------------------- */

CASE(the_hook_receives_each_size)
{
    event_log log;
    event_log_start(&log, f->memory, QUIRE_EVENT_PAGE_MADE | QUIRE_EVENT_PAGE_RESIZED);
    quire_allocation first = ALLOCATE(f, .size = 2 * CHUNK);
    quire_allocation second = ALLOCATE(f, .size = 3 * CHUNK);
    CHECK_OK(quire_free(f->memory, first));
    CHECK_OK(quire_memory_trim(f->memory, 0, NULL));
    CHECK_OK(quire_free(f->memory, second));
    CHECK_OK(quire_memory_trim(f->memory, 0, NULL));
    static const uint64_t sizes[] = {2, 5, 3, 0};
    CHECK_EQ(log.count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        CHECK_EQ(log.events[i].kind, i ? QUIRE_EVENT_PAGE_RESIZED : QUIRE_EVENT_PAGE_MADE);
        CHECK_EQ(log.events[i].size, sizes[i] * CHUNK);
    }
}
