/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * floor.c - the bytes that quire_memory_preallocate keeps: with pages that no other rule keeps, and
 * in an elastic page.
 */
#include "tests/support/fixture.h"

enum { PAGE = 64 * 1024, CHUNK = 4 * 1024 };

#define CASE(name) UNIT_ON(floor, name, fixture, f, fixture_prepare(f), fixture_end)

CASE(a_tied_page_is_destroyed_though_fewer_bytes_than_preallocated_stay)
{
    quire_buffer tied;
    quire_allocation other;
    f->fake.object_needs.dedicated = true;
    fixture_open(f, &(quire_memory_options){.pages.page_size = PAGE});
    other = ALLOCATE(f, .size = PAGE);
    CHECK_OK(quire_buffer_create(f->memory, &(quire_buffer_options){.size = 1000}, &tied));
    CHECK_OK(quire_memory_preallocate(f->memory, PAGE + 1000)); /* these pages exist already */
    CHECK_EQ(f->fake.calls[FAKE_PAGE_CREATE], 2);
    CHECK_OK(quire_free(f->memory, other)); /* stays, although it is the older empty one */
    CHECK_EQ(f->fake.pages, 2);
    CHECK_OK(quire_free(f->memory, tied.allocation));
    CHECK_EQ(f->fake.page_bytes, PAGE);
    ALLOCATE(f, .size = PAGE, .dedicated = true); /* no other page is destroyed for it */
    CHECK_EQ(f->fake.page_bytes, 2 * PAGE);
}

CASE(a_tied_page_in_an_inbox_is_destroyed_when_memory_is_short)
{
    quire_buffer tied;
    f->fake.object_needs.dedicated = true;
    fixture_open(f, &(quire_memory_options){.shards = 2, .pages.page_size = PAGE});
    CHECK_OK(quire_buffer_create(f->memory, &(quire_buffer_options){.size = PAGE}, &tied));
    CHECK_OK(quire_memory_preallocate(f->memory, PAGE));
    f->fake.page_budget = PAGE;
    fixture_free_elsewhere(f, tied.allocation); /* its shard drains the inbox later */
    CHECK_EQ(f->fake.pages, 1);
    ALLOCATE_ELSEWHERE(f, .size = PAGE, .dedicated = true);
    CHECK_EQ(f->fake.page_bytes, PAGE);
}

/* The free chunks of an elastic page, with fewer and with more bytes than preallocated. */
CASE(free_chunks_stay_as_far_as_they_were_preallocated)
{
    quire_buffer tied;
    fake_offer_growth(&f->fake);
    f->fake.object_needs.dedicated = true;
    fixture_open(f, &(quire_memory_options){
                        .elastic = true, .address_space = 64 * PAGE, .pages.page_size = CHUNK});
    quire_allocation whole = ALLOCATE(f, .size = 2 * PAGE);
    CHECK_OK(quire_buffer_create(f->memory, &(quire_buffer_options){.size = PAGE}, &tied));
    CHECK_OK(quire_memory_preallocate(f->memory, 3 * PAGE));
    CHECK_OK(quire_free(f->memory, tied.allocation)); /* below the floor now */
    CHECK_OK(quire_free(f->memory, whole));
    CHECK_EQ(f->fake.page_bytes, 2 * PAGE);
    quire_allocation other = ALLOCATE(f, .size = CHUNK, .dedicated = true);
    CHECK_EQ(f->fake.page_bytes, 2 * PAGE + CHUNK); /* no free chunk left for it */
    CHECK_OK(quire_free(f->memory, other));
    CHECK_OK(quire_memory_preallocate(f->memory, PAGE)); /* now there is more */
    CHECK_OK(quire_memory_set_limit(f->memory, CHUNK));
    CHECK_EQ(f->fake.page_bytes, PAGE);
    CHECK_OK(quire_memory_check(f->memory));
}
