/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * backing.c - the page of an elastic memory: requests get a place first and memory after that, from
 * free chunks before new ones; what a failure leaves; and several threads.
 */
#include "src/core/page/backing.h"

#include <sched.h>

#include "tests/support/crew.h"
#include "tests/support/elastic_churn.h"
#include "tests/support/elastic_page.h"

#define CASE(name) UNIT_ON(backing, name, fixture, f, make(f), fixture_end)
#define CASE_WITH(name, ...)                                                                       \
    UNIT_ON(backing, name, fixture, f, make_with(f, __VA_ARGS__), fixture_end)

/* ---- places and memory ---------------------------------------------------------------------- */

CASE(a_request_gets_the_chunks_that_it_needs)
{
    quire_memory_info info;
    CHECK_OK(quire_memory_get_info(f->memory, &info));
    CHECK_EQ(info.page_size, CHUNK);
    CHECK_EQ(info.address_space, CHUNKS * CHUNK);
    quire_allocation first = ALLOCATE(f, .size = 20 * KIB);
    expect_chunks(f, 2);
    CHECK_EQ(f->fake.last_page.max_size, CHUNKS * CHUNK);
    CHECK_EQ(f->fake.last_page.chunk, CHUNK);
    ALLOCATE(f, .size = 12 * KIB); /* the rest of the second chunk */
    expect_chunks(f, 2);
    CHECK_EQ(f->fake.calls[FAKE_PAGE_BACK], 0);
    quire_allocation large = ALLOCATE(f, .size = 100 * KIB);
    expect_chunks(f, 2 + 7);
    CHECK_EQ(f->fake.calls[FAKE_PAGE_BACK], 1);
    CHECK_EQ(fixture_info(f, large).address, fixture_info(f, first).address + 32 * KIB);
}

/* A free range beside a hole serves together with new memory. */
CASE(free_neighbours_of_a_hole_are_used)
{
    quire_allocation small = ALLOCATE(f, .size = 4 * KIB);
    quire_allocation_info info = fixture_info(f, ALLOCATE(f, .size = 28 * KIB));
    CHECK_EQ(info.offset, 4 * KIB);
    expect_chunks(f, 2);
    CHECK_OK(quire_free(f->memory, small));
}

CASE(alignment_is_that_of_the_address)
{
    ALLOCATE(f, .size = 20 * KIB);
    quire_allocation_info info =
        fixture_info(f, ALLOCATE(f, .size = 100 * KIB, .alignment = 64 * KIB));
    CHECK_EQ(info.address % (64 * KIB), 0);
    CHECK_EQ(info.offset, 64 * KIB);
    expect_chunks(f, 2 + 7);
}

/* Twelve scattered free chunks lose their memory to a request of twelve chunks. */
CASE(free_chunks_give_their_memory)
{
    quire_allocation made[24];
    fill_chunks(f, made, 24);
    free_odd_ones(f, made, 24);
    uint64_t calls = f->fake.calls[FAKE_PAGE_BACK];
    quire_allocation_info info = fixture_info(f, ALLOCATE(f, .size = 12 * CHUNK));
    CHECK_EQ(info.offset, 23 * CHUNK); /* the last free one begins the place */
    expect_chunks(f, 24);
    CHECK_EQ(f->fake.calls[FAKE_PAGE_BACK], calls + 1);
    for (uint32_t i = 0; i < 24; i += 2)
        CHECK_EQ(fixture_info(f, made[i]).offset, i * CHUNK);
    CHECK_EQ(stats_of(f).peak_reserved_bytes, 24 * CHUNK);
}

CASE_WITH(a_hundred_scattered_chunks_take_one_call_each_way,
          &(quire_memory_options){.address_space = 512 * CHUNK})
{
    quire_allocation made[200];
    fill_chunks(f, made, 200);
    free_odd_ones(f, made, 200);
    const uint64_t backs = f->fake.calls[FAKE_PAGE_BACK];
    const uint64_t unbacks = f->fake.unbacks;
    ALLOCATE(f, .size = 100 * CHUNK);
    expect_chunks(f, 200);
    CHECK_EQ(f->fake.calls[FAKE_PAGE_BACK], backs + 1);
    CHECK_EQ(f->fake.unbacks, unbacks + 1);
}

/* More holes than one call backs: the window is backed in rounds. */
CASE_WITH(holes_of_a_window_are_backed_in_rounds,
          &(quire_memory_options){.address_space = 512 * CHUNK})
{
    quire_allocation made[300];
    fill_chunks(f, made, 300);
    free_odd_ones(f, made, 300);
    quire_allocation large = ALLOCATE(f, .size = 150 * CHUNK - KIB); /* takes all free chunks */
    CHECK_EQ(fixture_info(f, large).offset, 299 * CHUNK);
    expect_chunks(f, 300);
    for (uint32_t i = 0; i < 300; i += 2)
        CHECK_OK(quire_free(f->memory, made[i]));
    uint64_t calls = f->fake.calls[FAKE_PAGE_BACK];
    ALLOCATE(f, .size = 298 * CHUNK); /* over 149 holes with free chunks between them */
    CHECK(f->fake.calls[FAKE_PAGE_BACK] >= calls + 2);
    stats_of(f);
}

/* A batch gets its memory by one call, wherever it comes from. */
CASE(a_batch_gets_one_window)
{
    quire_allocation made[24], batch[20];
    fill_chunks(f, made, 24);
    free_odd_ones(f, made, 24);
    uint64_t calls = f->fake.calls[FAKE_PAGE_BACK];
    const quire_allocation_options options = {.size = CHUNK - 100};
    CHECK_OK(quire_allocate_batch(f->memory, &options, batch, 20));
    CHECK_EQ(f->fake.calls[FAKE_PAGE_BACK], calls + 1);
    expect_chunks(f, 12 + 20);
    CHECK_OK(quire_free_batch(f->memory, batch, 20));
    f->fake.page_budget = f->fake.page_bytes - CHUNK; /* no room for all: nothing is made */
    CHECK_OK(quire_memory_trim(f->memory, 0, NULL));
    CHECK_FAILS(quire_allocate_batch(f->memory, &options, batch, 20),
                QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_EQ(stats_of(f).allocation_count, 12);
    f->fake.page_budget = 0;
}

CASE(dedicated_pages_are_apart_from_it)
{
    ALLOCATE(f, .size = 40 * KIB);
    quire_allocation other = ALLOCATE(f, .size = 100 * KIB, .dedicated = true);
    CHECK_EQ(fixture_info(f, other).page, 1);
    CHECK_EQ(f->fake.last_page.max_size, 0);
    CHECK_EQ(stats_of(f).reserved_bytes, 3 * CHUNK + 112 * KIB);
}

CASE(preallocated_memory_serves_without_a_call)
{
    CHECK_OK(quire_memory_preallocate(f->memory, 10 * CHUNK));
    expect_chunks(f, 10);
    uint64_t calls = f->fake.calls[FAKE_PAGE_BACK] + f->fake.calls[FAKE_PAGE_CREATE];
    for (int i = 0; i < 5; i++)
        ALLOCATE(f, .size = 2 * CHUNK);
    CHECK_EQ(f->fake.calls[FAKE_PAGE_BACK] + f->fake.calls[FAKE_PAGE_CREATE], calls);
    CHECK_OK(quire_memory_preallocate(f->memory, 12 * CHUNK));
    expect_chunks(f, 12);
}

/* ---- what is seen of it --------------------------------------------------------------------- */

typedef struct seen {
    uint64_t bytes, end; /* of all ranges, and of the last one */
    quire_item last;
    uint32_t gaps;
} seen;

static bool see(void *user, const quire_item *item)
{
    seen *s = user;
    const uint64_t begin = item->offset - item->left_padding;
    CHECK(begin >= s->end);
    s->gaps += begin > s->end;
    s->bytes += item->size + item->left_padding;
    s->end = item->offset + item->size;
    s->last = *item;
    return true;
}

/* Ranges with memory only; the page ends with the last one. */
CASE(a_walk_leaves_out_what_has_no_memory)
{
    quire_allocation made[24];
    seen s = {.bytes = 0};
    fill_chunks(f, made, 24);
    free_odd_ones(f, made, 24);
    CHECK_OK(quire_memory_trim(f->memory, 6 * CHUNK, NULL));
    CHECK_OK(quire_memory_walk(f->memory, see, &s));
    CHECK_EQ(s.bytes, 18 * CHUNK);
    CHECK(s.gaps >= 5 && s.gaps <= 6);
    CHECK_EQ(s.last.page_bytes, 18 * CHUNK);
    CHECK_EQ(s.last.page_size, s.end);
    CHECK(s.end == 23 * CHUNK || s.end == 24 * CHUNK);
}

/* An address is found in memory that came to the page at any time, and not where there is none. */
CASE_WITH(allocations_are_found_by_address, &(quire_memory_options){.find_by_address = true})
{
    quire_allocation made[24], found;
    fill_chunks(f, made, 24);
    const uint64_t base = fixture_info(f, made[0]).address;
    free_odd_ones(f, made, 24);
    quire_allocation large = ALLOCATE(f, .size = 12 * CHUNK); /* takes the free chunks' memory */
    const uint64_t address = fixture_info(f, large).address;
    const uint64_t insides[] = {0, 1, 5 * CHUNK, 12 * CHUNK - 1};
    for (int i = 0; i < 4; i++) {
        CHECK_OK(quire_memory_find(f->memory, address + insides[i], &found));
        CHECK_EQ(found.id, large.id);
    }
    for (uint32_t i = 0; i < 23; i++) {
        quire_result result = quire_memory_find(f->memory, base + i * CHUNK + 77, &found);
        CHECK_EQ(result, i % 2 ? QUIRE_ERROR_OUT_OF_RANGE : QUIRE_SUCCESS);
        CHECK(i % 2 || found.id == made[i].id);
    }
    CHECK_FAILS(quire_memory_find(f->memory, address + 12 * CHUNK, &found),
                QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_OK(quire_memory_check(f->memory));
    CHECK_OK(quire_free(f->memory, large));
    CHECK_OK(quire_memory_trim(f->memory, 0, NULL));
    quire_allocation again = ALLOCATE(f, .size = 2 * CHUNK);
    CHECK_OK(quire_memory_find(f->memory, fixture_info(f, again).address + CHUNK, &found));
    CHECK_EQ(found.id, again.id);
}

/* The call that frees a dedicated page releases it, and then no free chunks below the promise. */
CASE_WITH(what_is_promised_stays_when_a_dedicated_page_leaves,
          &(quire_memory_options){.pages.retained_empty_bytes = CHUNK})
{
    CHECK_OK(quire_memory_preallocate(f->memory, 4 * CHUNK));
    quire_allocation other = ALLOCATE(f, .size = 4 * CHUNK, .dedicated = true);
    CHECK_OK(quire_free(f->memory, other));
    expect_chunks(f, 4);
}

/* A trim applies the retention first, which takes less than the trim's target. */
CASE_WITH(a_trim_takes_more_than_the_retention,
          &(quire_memory_options){.pages.retained_empty_bytes = 4 * CHUNK})
{
    quire_allocation made[16];
    uint64_t released = 0;
    fill_chunks(f, made, 16);
    free_odd_ones(f, made, 16);
    CHECK_OK(quire_memory_trim(f->memory, CHUNK, &released));
    expect_chunks(f, 9);
    CHECK_EQ(released, 7 * CHUNK);
}

/* A refused request has taken free chunks: they get memory again. */
CASE_WITH(what_is_promised_stays_after_a_refusal, &(quire_memory_options){.limit = 32 * CHUNK})
{
    quire_allocation made[32];
    CHECK_OK(quire_memory_preallocate(f->memory, 32 * CHUNK));
    fill_chunks(f, made, 32);
    free_odd_ones(f, made, 32);
    ALLOCATE_FAILS(f, QUIRE_ERROR_OVER_BUDGET, .size = 17 * CHUNK);
    CHECK_HAS(quire_last_error(), "272 KiB");
    expect_chunks(f, 32);
}

/* ---- refusals ------------------------------------------------------------------------------- */

/* A full memory refuses nothing that its free chunks can hold, wherever they are. */
CASE_WITH(within_a_limit_every_free_chunk_serves, &(quire_memory_options){.limit = 32 * CHUNK})
{
    quire_allocation made[32];
    fill_chunks(f, made, 32);
    ALLOCATE_FAILS(f, QUIRE_ERROR_OVER_BUDGET, .size = 1);
    expect_chunks(f, 32);
    free_odd_ones(f, made, 32);
    quire_allocation large = ALLOCATE(f, .size = 16 * CHUNK);
    expect_chunks(f, 32);
    ALLOCATE_FAILS(f, QUIRE_ERROR_OVER_BUDGET, .size = 1);
    CHECK_OK(quire_free(f->memory, large));
    CHECK_OK(quire_free(f->memory, made[0]));
    ALLOCATE_FAILS(f, QUIRE_ERROR_OVER_BUDGET, .size = 17 * CHUNK + 1);
    ALLOCATE(f, .size = 17 * CHUNK);
    expect_chunks(f, 32);
}

CASE_WITH(a_memory_that_is_nearly_full_refuses_nothing,
          &(quire_memory_options){.address_space = 4 * CHURN_CHUNKS * CHUNK,
                                  .limit = CHURN_CHUNKS * CHUNK})
{
    elastic_churn(f->memory, CHUNK, 10000);
}

/* Free bytes of several chunks, none of which is free as a whole: there is nothing to give. */
CASE_WITH(chunks_in_use_make_no_room_for_a_dedicated_page,
          &(quire_memory_options){.limit = 8 * CHUNK})
{
    quire_allocation made[16];
    for (uint32_t i = 0; i < 16; i++)
        made[i] = ALLOCATE(f, .size = CHUNK / 2);
    free_odd_ones(f, made, 16);
    ALLOCATE_FAILS(f, QUIRE_ERROR_OVER_BUDGET, .size = CHUNK, .dedicated = true);
    expect_chunks(f, 8);
}

CASE_WITH(addresses_can_be_exhausted, &(quire_memory_options){.address_space = 8 * CHUNK})
{
    quire_allocation made[8];
    fill_chunks(f, made, 8);
    ALLOCATE_FAILS(f, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, .size = 1);
    CHECK_HAS(quire_last_error(), "128 KiB of addresses");
    free_odd_ones(f, made, 8);
    ALLOCATE_FAILS(f, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, .size = CHUNK + 1);
    expect_chunks(f, 8);
    ALLOCATE(f, .size = CHUNK);
}

/* Requests that fill the page, with the number'th fallible call of the backend failing. */
static bool work_with_failure(uint64_t number, quire_result code)
{
    fixture f;
    quire_allocation made[24], large = {0};
    make(&f);
    fill_chunks(&f, made, 24);
    free_odd_ones(&f, made, 24);
    f.fake.fail_at = f.fake.fallible_calls + number;
    f.fake.fail_with = code;
    quire_result result =
        quire_allocate(f.memory, &(quire_allocation_options){.size = 14 * CHUNK}, &large);
    bool has_failed = f.fake.fallible_calls >= f.fake.fail_at;
    f.fake.fail_at = 0;
    uint64_t reserved = stats_of(&f).reserved_bytes;
    CHECK_EQ(f.fake.page_bytes, reserved);
    if (result)
        CHECK(reserved <= 24 * CHUNK);
    for (uint32_t i = 0; i < 24; i += 2)
        CHECK_EQ(fixture_info(&f, made[i]).offset, i * CHUNK);
    if (result)
        large = ALLOCATE(&f, .size = 14 * CHUNK);
    expect_chunks(&f, 12 + 14);
    CHECK_OK(quire_free(f.memory, large));
    fixture_end(&f);
    return has_failed;
}

UNIT(backing, a_call_that_fails_loses_nothing)
{
    static const quire_result codes[] = {QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                                         QUIRE_ERROR_BACKEND_FAILURE, QUIRE_ERROR_DEVICE_LOST};
    for (uint32_t i = 0; i < 3; i++) {
        uint64_t number = 1;
        while (work_with_failure(number, codes[i]))
            number++;
        CHECK(number > 1);
    }
}

/* The second round of a window fails: the holes of the first lose their memory again. */
CASE_WITH(what_a_round_backed_goes_with_the_next,
          &(quire_memory_options){.address_space = 512 * CHUNK})
{
    quire_allocation made[200];
    fill_chunks(f, made, 200);
    free_odd_ones(f, made, 200);
    quire_allocation large = ALLOCATE(f, .size = 100 * CHUNK - KIB);
    for (uint32_t i = 0; i < 200; i += 2)
        CHECK_OK(quire_free(f->memory, made[i]));
    uint64_t reserved = stats_of(f).reserved_bytes;
    f->fake.page_budget = reserved + 70 * CHUNK;
    quire_allocation none;
    quire_result result =
        quire_allocate(f->memory, &(quire_allocation_options){.size = 177 * CHUNK}, &none);
    CHECK_EQ(result, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_EQ(stats_of(f).reserved_bytes, f->fake.page_bytes);
    CHECK(stats_of(f).reserved_bytes <= reserved);
    f->fake.page_budget = 0;
    ALLOCATE(f, .size = 177 * CHUNK);
    CHECK_EQ(stats_of(f).reserved_bytes, f->fake.page_bytes);
    CHECK_OK(quire_free(f->memory, large));
}

UNIT(backing, without_host_memory_nothing_changes)
{
    for (uint64_t at = 1;; at++) {
        fixture f;
        quire_allocation made[24], large;
        make(&f);
        fill_chunks(&f, made, 24);
        free_odd_ones(&f, made, 24);
        test_memory_fail(unit_memory_state(), at, true);
        quire_result result =
            quire_allocate(f.memory, &(quire_allocation_options){.size = 20 * CHUNK}, &large);
        bool failed = unit_memory_state()->calls >= at;
        test_memory_fail(unit_memory_state(), 0, false);
        if (result)
            CHECK_EQ(result, QUIRE_ERROR_OUT_OF_HOST_MEMORY);
        CHECK_EQ(f.fake.page_bytes, stats_of(&f).reserved_bytes);
        fixture_end(&f);
        if (!failed)
            break;
        CHECK(at < 100);
    }
}

/* ---- options -------------------------------------------------------------------------------- */

UNIT_PREPARED(backing, what_it_cannot_be_is_refused_by_name, f)
{
    fake_offer_growth(&f->fake);
    fixture_open(f, NULL);
    const struct {
        quire_memory_options options;
        quire_result code;
        const char *part;
    } refused[] = {
        {{.shards = 2}, QUIRE_ERROR_UNSUPPORTED, "an elastic memory has one page"},
        {{.fit.algorithm = QUIRE_FIT_FIRST}, QUIRE_ERROR_UNSUPPORTED, "the fit first"},
        {{.fit.algorithm = QUIRE_FIT_BUDDY}, QUIRE_ERROR_UNSUPPORTED, "the fit buddy"},
        {{.fit.algorithm = QUIRE_FIT_LINEAR}, QUIRE_ERROR_UNSUPPORTED, "the fit linear"},
        {{.pages.page_size = 3 * CHUNK}, QUIRE_ERROR_INVALID_ARGUMENT, "power of two"},
        {{.pages.first_page_size = CHUNK}, QUIRE_ERROR_INVALID_ARGUMENT, "size of chunks"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        quire_memory *memory = f->memory; /* anything but NULL */
        quire_memory_options options = refused[i].options;
        options.elastic = true;
        CHECK_FAILS(quire_memory_create(f->device, &options, &memory), refused[i].code);
        CHECK_HAS(quire_last_error(), refused[i].part);
        CHECK(!memory);
    }
}

CASE_WITH(a_chunk_is_at_least_a_granule,
          &(quire_memory_options){.fit.granule = 4 * CHUNK, .find_by_address = true})
{
    quire_memory_info info;
    quire_allocation found;
    CHECK_OK(quire_memory_get_info(f->memory, &info));
    CHECK_EQ(info.page_size, 4 * CHUNK);
    ALLOCATE(f, .size = CHUNK);
    quire_allocation made = ALLOCATE(f, .size = 5 * CHUNK);
    CHECK_EQ(stats_of(f).reserved_bytes, (4 + 8) * CHUNK);
    CHECK_OK(quire_memory_find(f->memory, fixture_info(f, made).address, &found));
    CHECK_EQ(found.id, made.id);
    CHECK_OK(quire_memory_check(f->memory));
}

UNIT_PREPARED(backing, kinds_that_cannot_be_elastic_are_refused, f)
{
    fixture_open(f, NULL);
    quire_memory *memory = NULL;
    const quire_memory_options options = {.elastic = true};
    CHECK_FAILS(quire_memory_create(f->device, &options, &memory), QUIRE_ERROR_UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "an elastic memory: pages of memory kind");
}

UNIT_PREPARED(backing, a_page_at_an_odd_address_is_refused, f)
{
    fake_offer_growth(&f->fake);
    f->fake.address_step = 16;
    f->fake.info.limits.page_alignment = 16;
    fixture_open(f, &(quire_memory_options){
                        .elastic = true, .pages.page_size = CHUNK, .address_space = 8 * CHUNK});
    ALLOCATE_FAILS(f, QUIRE_ERROR_UNSUPPORTED, .size = 4 * KIB);
    CHECK_HAS(quire_last_error(), "not a multiple of the granule, 256 bytes");
    CHECK_EQ(f->fake.pages, 0);
    CHECK_EQ(stats_of(f).reserved_bytes, 0);
}

/* ---- threads -------------------------------------------------------------------------------- */

typedef struct request {
    quire_memory *memory;
    uint64_t size;
    quire_result result;
    quire_allocation allocation;
} request;

static void do_allocate(void *user)
{
    request *r = user;
    const quire_allocation_options options = {.size = r->size};
    r->result = quire_allocate(r->memory, &options, &r->allocation);
}

enum { COUNT = 4 };

static void allocate_together(fixture *f)
{
    crew c;
    request requests[COUNT];
    f->fake.slow_ms = 20;
    crew_start(&c, COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        requests[i] = (request){.memory = f->memory, .size = 50 * KIB};
        crew_tell(&c, i + 1, do_allocate, &requests[i]);
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        crew_await(&c, i + 1);
        CHECK_EQ(requests[i].result, QUIRE_SUCCESS);
        CHECK_EQ(fixture_info(f, requests[i].allocation).page, 0);
    }
    f->fake.slow_ms = 0;
    crew_end(&c);
}

CASE(several_threads_make_room_one_after_the_other)
{
    ALLOCATE(f, .size = 60 * KIB);
    allocate_together(f);
    CHECK(stats_of(f).reserved_bytes <= (4 + 4 * COUNT) * CHUNK);
}

CASE(several_threads_create_one_page)
{
    allocate_together(f);
    CHECK_EQ(stats_of(f).page_count, 1);
}

/* Making room is a call of the backend: a thread that has room does not wait for it. */
CASE(frees_and_other_requests_go_on_meanwhile)
{
    crew c;
    request large = {.memory = f->memory, .size = 20 * CHUNK};
    quire_allocation first = ALLOCATE(f, .size = 4 * KIB);
    ALLOCATE(f, .size = 4 * KIB);
    f->fake.slow_ms = 200;
    crew_start(&c, 1);
    crew_tell(&c, 1, do_allocate, &large);
    while (!qi_page_at(&f->memory->pages, 0)->resizing) /* the call has begun */
        sched_yield();
    CHECK_OK(quire_free(f->memory, first));
    CHECK_EQ(fixture_info(f, ALLOCATE(f, .size = 2 * KIB)).offset, 0);
    CHECK(qi_page_at(&f->memory->pages, 0)->resizing);
    f->fake.slow_ms = 0;
    crew_await(&c, 1);
    CHECK_EQ(large.result, QUIRE_SUCCESS);
    crew_end(&c);
    stats_of(f);
}
