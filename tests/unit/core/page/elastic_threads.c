/*
 * elastic_threads.c - several threads that grow the page of an elastic memory: which thread waits
 * for which, and which calls continue during growth.
 */
#include "tests/support/elastic_page.h"

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

UNIT_ON(elastic_threads, several_threads_grow_it_one_after_the_other, fixture, f, make(f),
        fixture_end)
{
    ALLOCATE(f, .size = 60 * KIB);
    allocate_together(f);
    CHECK_EQ(stats_of(f).page_count, 1);
    CHECK(stats_of(f).reserved_bytes >= 260 * KIB);
    CHECK(stats_of(f).reserved_bytes <= 260 * KIB + PAGE);
}

UNIT_ON(elastic_threads, several_threads_create_one_page, fixture, f, make(f), fixture_end)
{
    allocate_together(f);
    CHECK_EQ(stats_of(f).page_count, 1);
}

/* Growing a page is a call of the backend: a thread that has room does not wait for it. */
UNIT(elastic_threads, frees_and_requests_that_fit_continue_during_growth)
{
    fixture f;
    crew c;
    make(&f);
    quire_allocation small = ALLOCATE(&f, .size = KIB);
    ALLOCATE(&f, .size = 60 * KIB);
    f.fake.slow_ms = 200;
    crew_start(&c, 1);
    request large = {.memory = f.memory, .size = 50 * KIB};
    crew_tell(&c, 1, do_allocate, &large);
    while (!f.memory->pages.records.chunks[0] ||
           !qi_page_at(&f.memory->pages, 0)->resizing) /* the call has begun */
        sched_yield();
    CHECK_OK(quire_free(f.memory, small));
    ALLOCATE(&f, .size = KIB);
    CHECK_EQ(stats_of(&f).reserved_bytes, PAGE); /* before the other call returned */
    uint64_t released = 1;
    CHECK_OK(quire_memory_trim(f.memory, 0, &released)); /* another thread is moving the end */
    CHECK_EQ(released, 0);
    f.fake.slow_ms = 0;
    crew_await(&c, 1);
    CHECK_EQ(large.result, QUIRE_SUCCESS);
    crew_end(&c);
    CHECK_EQ(stats_of(&f).reserved_bytes, 2 * PAGE);
    fixture_end(&f);
}

/* Another thread may take the new range before the thread that grew the page. */
UNIT(elastic_threads, it_grows_again_if_another_thread_took_the_range)
{
    fixture f;
    crew c;
    make_with(&f, &(quire_memory_options){.limit = 120 * KIB});
    ALLOCATE(&f, .size = 60 * KIB);
    f.fake.slow_ms = 200;
    crew_start(&c, 1);
    request large = {.memory = f.memory, .size = 50 * KIB};
    crew_tell(&c, 1, do_allocate, &large);
    while (!qi_page_at(&f.memory->pages, 0)->resizing)
        sched_yield();
    ALLOCATE(&f, .size = 4 * KIB); /* from the range that the other thread needs */
    f.fake.slow_ms = 0;
    crew_await(&c, 1);
    CHECK_EQ(large.result, QUIRE_SUCCESS);
    crew_end(&c);
    expect_page(
        &f, 118 * KIB); /* it needed four more, and the smallest of the halved steps was eight */
    fixture_end(&f);
}
