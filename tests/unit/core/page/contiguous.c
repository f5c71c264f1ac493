/*
 * contiguous.c - the page of a contiguous memory: when and by how much it grows and shrinks, what
 * keeps its offset, and several threads that grow it. When it must not grow: contiguous_bounds.c.
 */
#include "tests/support/contiguous_page.h"
#include "tests/support/event_log.h"

#define CASE(name) UNIT_ON(contiguous, name, fixture, f, make(f), fixture_end)

/* ---- growing -------------------------------------------------------------------------------- */

CASE(the_free_end_and_the_growth_serve_one_request)
{
    quire_allocation_info first = fixture_info(f, ALLOCATE(f, .size = 40 * KIB));
    expect_page(f, PAGE);
    CHECK_EQ(f->fake.last_page.max_size, MAX_SIZE);
    quire_memory_info info;
    CHECK_OK(quire_memory_get_info(f->memory, &info));
    CHECK_EQ(info.address_space, MAX_SIZE);
    quire_allocation_info second = fixture_info(f, ALLOCATE(f, .size = 40 * KIB));
    CHECK_EQ(second.page, first.page);
    CHECK_EQ(second.offset, first.offset + 40 * KIB);
    CHECK_EQ(second.address, first.address + 40 * KIB);
    expect_page(f, 2 * PAGE);
    CHECK_EQ(f->fake.calls[FAKE_PAGE_CREATE], 1);
    CHECK_EQ(f->fake.calls[FAKE_PAGE_BACK], 1);
    ALLOCATE(f, .size = 48 * KIB);
    CHECK_EQ(f->fake.calls[FAKE_PAGE_BACK], 1);
}

CASE(it_grows_as_much_as_a_large_request_needs)
{
    ALLOCATE(f, .size = 60 * KIB);
    CHECK_EQ(fixture_info(f, ALLOCATE(f, .size = 500 * KIB)).offset, 60 * KIB);
    expect_page(f, 560 * KIB);
}

CASE(alignment_is_counted_from_the_start_of_the_free_end)
{
    ALLOCATE(f, .size = 33 * KIB);
    quire_allocation_info info =
        fixture_info(f, ALLOCATE(f, .size = 100 * KIB, .alignment = 32 * KIB));
    CHECK_EQ(info.offset, 64 * KIB);
    CHECK_EQ(info.address % (32 * KIB), 0);
    expect_page(f, 164 * KIB);
}

#define CASE_WITH(name, ...)                                                                       \
    UNIT_ON(contiguous, name, fixture, f, make_with(f, __VA_ARGS__), fixture_end)

CASE_WITH(within_a_limit_it_grows_by_less, &(quire_memory_options){.limit = 100 * KIB})
{
    ALLOCATE(f, .size = 40 * KIB);
    ALLOCATE(f, .size = 40 * KIB);
    expect_page(f, 96 * KIB); /* not 128: growth by half of the step */
    ALLOCATE_FAILS(f, QUIRE_ERROR_OVER_BUDGET, .size = 24 * KIB);
    expect_page(f, 96 * KIB);
    ALLOCATE(f, .size = 20 * KIB); /* the rest of the limit */
    expect_page(f, 100 * KIB);
}

CASE_WITH(growth_ends_at_the_last_address, &(quire_memory_options){.address_space = 100 * KIB})
{
    ALLOCATE(f, .size = 60 * KIB);
    ALLOCATE_FAILS(f, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, .size = 41 * KIB);
    CHECK_HAS(quire_last_error(), "100 KiB");
    expect_page(f, PAGE);
    ALLOCATE(f, .size = 40 * KIB);
    expect_page(f, 100 * KIB);
}

CASE_WITH(a_first_request_above_the_address_space_gets_a_page_that_holds_it,
          &(quire_memory_options){.address_space = 32 * KIB})
{
    ALLOCATE(f, .size = 200 * KIB);
    expect_page(f, 200 * KIB);
    CHECK_EQ(f->fake.last_page.max_size, 200 * KIB);
}

CASE(dedicated_pages_are_apart_from_it)
{
    ALLOCATE(f, .size = 40 * KIB);
    quire_allocation other = ALLOCATE(f, .size = 100 * KIB, .dedicated = true);
    CHECK_EQ(fixture_info(f, other).page, 1);
    CHECK_EQ(f->fake.last_page.max_size, 0);
    quire_memory_stats stats = stats_of(f);
    CHECK_EQ(stats.page_count, 2);
    CHECK_EQ(stats.reserved_bytes, 140 * KIB); /* the page released its free end for it */
}

/* ---- failures ------------------------------------------------------------------------------- */

UNIT(contiguous, without_host_memory_the_size_stays)
{
    for (uint64_t at = 1;; at++) {
        fixture f;
        quire_allocation made;
        make(&f);
        for (int i = 0; i < 15; i++)
            ALLOCATE(&f, .size = 4 * KIB + 1);
        uint64_t before = stats_of(&f).reserved_bytes;
        test_memory_fail(unit_memory_state(), at, true);
        quire_result result =
            quire_allocate(f.memory, &(quire_allocation_options){.size = 800 * KIB}, &made);
        bool failed = unit_memory_state()->calls >= at;
        test_memory_fail(unit_memory_state(), 0, false);
        if (result) {
            CHECK_EQ(result, QUIRE_ERROR_OUT_OF_HOST_MEMORY);
            CHECK_EQ(f.fake.page_bytes, before);
            CHECK_EQ(stats_of(&f).reserved_bytes, before);
        }
        fixture_end(&f);
        if (!failed)
            break;
        CHECK(at < 100);
    }
}

/* ---- reports -------------------------------------------------------------------------------- */

CASE(the_hook_receives_each_size)
{
    event_log log;
    event_log_start(&log, f->memory, QUIRE_EVENT_PAGE_RESIZED);
    ALLOCATE(f, .size = 60 * KIB);
    CHECK_EQ(log.count, 0);
    CHECK_OK(quire_free(f->memory, ALLOCATE(f, .size = 20 * KIB)));
    CHECK_OK(quire_memory_preallocate(f->memory, 3 * PAGE));
    CHECK_OK(quire_memory_trim(f->memory, 0, NULL));
    CHECK_EQ(log.count, 3);
    event_log_expect(&log, 0, QUIRE_EVENT_PAGE_RESIZED, 2 * PAGE);
    event_log_expect(&log, 1, QUIRE_EVENT_PAGE_RESIZED, 3 * PAGE);
    event_log_expect(&log, 2, QUIRE_EVENT_PAGE_RESIZED, 60 * KIB);
    CHECK_OK(quire_memory_set_hook(f->memory, NULL));
}

/* ---- shrinking ------------------------------------------------------------------------------ */

CASE(a_trim_releases_the_free_end)
{
    uint64_t released = 0;
    ALLOCATE(f, .size = 40 * KIB);
    quire_allocation second = ALLOCATE(f, .size = 80 * KIB);
    CHECK_OK(quire_free(f->memory, second));
    expect_page(f, 128 * KIB);
    CHECK_OK(quire_memory_trim(f->memory, 50 * KIB, &released));
    CHECK_EQ(released, 38 * KIB);
    expect_page(f, 90 * KIB);
    CHECK_OK(quire_memory_trim(f->memory, 0, &released));
    CHECK_EQ(released, 50 * KIB);
    expect_page(f, 40 * KIB);
    CHECK_OK(quire_memory_trim(f->memory, 0, &released));
    CHECK_EQ(released, 0);
    CHECK_EQ(fixture_info(f, ALLOCATE(f, .size = 8 * KIB)).offset, 40 * KIB);
}

CASE(an_allocation_at_the_end_keeps_the_free_range_before_it)
{
    uint64_t released = 1;
    quire_allocation low = ALLOCATE(f, .size = 60 * KIB);
    ALLOCATE(f, .size = 60 * KIB);
    CHECK_OK(quire_free(f->memory, low));
    CHECK_OK(quire_memory_trim(f->memory, 0, &released));
    CHECK_EQ(released, 8 * KIB);
    expect_page(f, 120 * KIB);
}

CASE(the_empty_page_is_destroyed_and_another_is_created)
{
    uint64_t released = 0;
    CHECK_OK(quire_free(f->memory, ALLOCATE(f, .size = 100 * KIB)));
    CHECK_OK(quire_memory_trim(f->memory, 0, &released));
    CHECK_EQ(released, 100 * KIB);
    CHECK_EQ(f->fake.pages, 0);
    CHECK_EQ(stats_of(f).reserved_bytes, 0);
    ALLOCATE(f, .size = 10 * KIB);
    expect_page(f, PAGE);
}

CASE(the_free_end_is_released_before_others_lack_memory)
{
    f->fake.page_budget = 200 * KIB;
    ALLOCATE(f, .size = 20 * KIB);
    CHECK_OK(quire_free(f->memory, ALLOCATE(f, .size = 150 * KIB)));
    ALLOCATE(f, .size = 180 * KIB, .dedicated = true);
    CHECK_EQ(f->fake.page_bytes, 200 * KIB);
    stats_of(f);
}

CASE(a_lower_limit_releases_the_free_end)
{
    ALLOCATE(f, .size = 40 * KIB);
    CHECK_OK(quire_free(f->memory, ALLOCATE(f, .size = 80 * KIB)));
    CHECK_OK(quire_memory_set_limit(f->memory, 50 * KIB));
    expect_page(f, 40 * KIB);
}

CASE(preallocated_bytes_are_at_its_end)
{
    CHECK_OK(quire_memory_preallocate(f->memory, 300 * KIB));
    expect_page(f, 5 * PAGE);
    ALLOCATE(f, .size = 20 * KIB);
    quire_allocation other = ALLOCATE(f, .size = 10 * KIB, .dedicated = true);
    CHECK_EQ(f->fake.page_bytes,
             310 * KIB); /* the rest of its free end was released for the other page */
    CHECK_OK(quire_free(f->memory, other));
    uint64_t resizes = f->fake.calls[FAKE_PAGE_BACK];
    ALLOCATE(f, .size = 280 * KIB);
    CHECK_EQ(f->fake.calls[FAKE_PAGE_BACK], resizes);
    CHECK_OK(quire_memory_trim(f->memory, 0, NULL));
    CHECK_EQ(stats_of(f).reserved_bytes, 300 * KIB);
}

/* ---- threads -------------------------------------------------------------------------------- */

typedef struct request {
    quire_memory *memory;
    uint64_t size;
    quire_allocation allocation;
    quire_result result;
} request;

static void do_allocate(void *user)
{
    request *r = user;
    const quire_allocation_options options = {.size = r->size};
    r->result = quire_allocate(r->memory, &options, &r->allocation);
}

/* Four threads allocate 50 KiB each while the backend is slow. */
static void allocate_together(fixture *f)
{
    enum { COUNT = 4 };
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

UNIT_ON(contiguous, several_threads_grow_it_one_after_the_other, fixture, f, make(f), fixture_end)
{
    ALLOCATE(f, .size = 60 * KIB);
    allocate_together(f);
    CHECK_EQ(stats_of(f).page_count, 1);
    CHECK(stats_of(f).reserved_bytes >= 260 * KIB);
    CHECK(stats_of(f).reserved_bytes <= 260 * KIB + PAGE);
}

UNIT_ON(contiguous, several_threads_create_one_page, fixture, f, make(f), fixture_end)
{
    allocate_together(f);
    CHECK_EQ(stats_of(f).page_count, 1);
}

/* A thread whose request lets the page grow, which takes the backend 200 ms. */
typedef struct growing {
    crew c;
    request large;
} growing;

static void begin_growth(growing *g, fixture *f)
{
    f->fake.slow_ms = 200;
    crew_start(&g->c, 1);
    g->large = (request){.memory = f->memory, .size = 50 * KIB};
    crew_tell(&g->c, 1, do_allocate, &g->large);
    while (!qi_page_at(&f->memory->pages, 0)->resizing) /* the call has begun */
        sched_yield();
}

static void end_growth(growing *g, fixture *f)
{
    f->fake.slow_ms = 0;
    crew_await(&g->c, 1);
    CHECK_EQ(g->large.result, QUIRE_SUCCESS);
    crew_end(&g->c);
}

/* Growing a page is a call of the backend: a thread that has room does not wait for it. */
CASE(frees_and_requests_that_fit_continue_during_growth)
{
    growing g;
    uint64_t released = 1;
    quire_allocation small = ALLOCATE(f, .size = KIB);
    ALLOCATE(f, .size = 60 * KIB);
    begin_growth(&g, f);
    CHECK_OK(quire_free(f->memory, small));
    ALLOCATE(f, .size = KIB);
    CHECK_EQ(stats_of(f).reserved_bytes, PAGE);           /* before the other call returned */
    CHECK_OK(quire_memory_trim(f->memory, 0, &released)); /* another thread is moving the end */
    CHECK_EQ(released, 0);
    end_growth(&g, f);
    CHECK_EQ(stats_of(f).reserved_bytes, 2 * PAGE);
}

/* Another thread may take the new range before the thread that grew the page. */
CASE_WITH(it_grows_again_if_another_thread_took_the_range,
          &(quire_memory_options){.limit = 120 * KIB})
{
    growing g;
    ALLOCATE(f, .size = 60 * KIB);
    begin_growth(&g, f);
    ALLOCATE(f, .size = 4 * KIB); /* from the range that the other thread needs */
    end_growth(&g, f);
    expect_page(f, 118 * KIB); /* four more, and the smallest of the halved steps was eight */
}
