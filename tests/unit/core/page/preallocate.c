/*
 * preallocate.c - quire_memory_preallocate: pages that a memory creates ahead and keeps.
 */
#include "tests/support/fixture.h"

enum { PAGE = 4096 };

static void make(fixture *f, quire_page_policy pages)
{
    fixture_make(f, &(quire_memory_options){.pages = pages});
}

static void expect_reserved(fixture *f, uint64_t bytes, uint64_t empty)
{
    quire_memory_stats stats = fixture_stats(f);
    CHECK_OK(quire_memory_check(f->memory));
    CHECK_EQ(stats.reserved_bytes, bytes);
    CHECK_EQ(stats.empty_bytes, empty);
    CHECK_EQ(f->fake.page_bytes, bytes);
    CHECK_EQ(f->fake.pages, stats.page_count);
}

#define CASE(name, ...) UNIT_ON(preallocate, name, fixture, f, make(f, __VA_ARGS__), fixture_end)

CASE(creates_pages_of_the_policys_sizes_until_the_goal_is_reached,
     (quire_page_policy){.page_size = PAGE})
{
    CHECK_OK(quire_memory_preallocate(f->memory, 1));
    expect_reserved(f, PAGE, PAGE);
    CHECK_OK(quire_memory_preallocate(f->memory, 4 * PAGE));
    expect_reserved(f, 4 * PAGE, 4 * PAGE);
    CHECK_OK(quire_memory_preallocate(f->memory, 4 * PAGE + 1));
    expect_reserved(f, 5 * PAGE, 5 * PAGE);
    CHECK_EQ(f->fake.calls[FAKE_PAGE_CREATE], 5);
}

CASE(growth_continues_from_the_preallocated_pages,
     (quire_page_policy){.page_size = PAGE, .growth_percent = 100, .max_page = 64 * PAGE})
{
    CHECK_OK(quire_memory_preallocate(f->memory, 7 * PAGE));
    expect_reserved(f, 7 * PAGE, 7 * PAGE); /* 1 + 2 + 4 */
    quire_memory_info info;
    CHECK_OK(quire_memory_get_info(f->memory, &info));
    CHECK_EQ(info.page_size, 8 * PAGE);
}

CASE(existing_pages_and_pages_in_use_count, (quire_page_policy){.page_size = PAGE})
{
    ALLOCATE(f, .size = PAGE);
    ALLOCATE(f, .size = PAGE, .dedicated = true);
    CHECK_OK(quire_memory_preallocate(f->memory, 2 * PAGE));
    CHECK_EQ(f->fake.calls[FAKE_PAGE_CREATE], 2);
    CHECK_OK(quire_memory_preallocate(f->memory, 3 * PAGE));
    expect_reserved(f, 3 * PAGE, PAGE);
}

CASE(allocations_within_it_create_no_page, (quire_page_policy){.page_size = PAGE})
{
    CHECK_OK(quire_memory_preallocate(f->memory, 4 * PAGE));
    uint64_t calls = f->fake.fallible_calls;
    for (int i = 0; i < 4; i++)
        ALLOCATE(f, .size = PAGE);
    CHECK_EQ(f->fake.fallible_calls, calls);
    expect_reserved(f, 4 * PAGE, 0);
}

CASE(preallocated_bytes_are_kept_when_pages_are_created, (quire_page_policy){.page_size = PAGE})
{
    CHECK_OK(quire_memory_preallocate(f->memory, 3 * PAGE));
    quire_allocation large =
        ALLOCATE(f, .size = 2 * PAGE); /* does not fit into one of those pages */
    expect_reserved(f, 5 * PAGE, 3 * PAGE);
    ALLOCATE(f, .size = 2 * PAGE); /* two of them are above the floor by now */
    expect_reserved(f, 5 * PAGE, PAGE);
    CHECK_OK(quire_free(f->memory, large));
    expect_reserved(f, 5 * PAGE, 3 * PAGE);
}

CASE(preallocated_bytes_are_kept_beyond_the_bounds_of_retention,
     (quire_page_policy){.page_size = PAGE, .retained_empty_bytes = 1})
{
    CHECK_OK(quire_memory_preallocate(f->memory, 2 * PAGE));
    quire_allocation full[4];
    for (int i = 0; i < 4; i++)
        full[i] = ALLOCATE(f, .size = PAGE);
    for (int i = 0; i < 4; i++)
        CHECK_OK(quire_free(f->memory, full[i]));
    expect_reserved(f, 2 * PAGE, 2 * PAGE);
}

CASE(a_lower_or_cancelled_floor_applies_the_bounds_at_once,
     (quire_page_policy){.page_size = PAGE, .retained_empty_bytes = 1})
{
    CHECK_OK(quire_memory_preallocate(f->memory, 4 * PAGE));
    CHECK_OK(quire_memory_preallocate(f->memory, 3 * PAGE));
    expect_reserved(f, 3 * PAGE, 3 * PAGE);
    CHECK_OK(quire_memory_preallocate(f->memory, 0));
    expect_reserved(f, 0, 0);
}

CASE(zero_cancels_the_floor_and_releases_no_page, (quire_page_policy){.page_size = PAGE})
{
    CHECK_OK(quire_memory_preallocate(f->memory, 3 * PAGE));
    CHECK_OK(quire_memory_preallocate(f->memory, 0));
    expect_reserved(f, 3 * PAGE, 3 * PAGE); /* retained like any empty page */
    ALLOCATE(f, .size = 2 * PAGE);
    expect_reserved(f, 2 * PAGE, 0);
}

CASE(a_trim_cancels_it, (quire_page_policy){.page_size = PAGE})
{
    uint64_t released = 0;
    CHECK_OK(quire_memory_preallocate(f->memory, 3 * PAGE));
    CHECK_OK(quire_memory_trim(f->memory, PAGE, &released));
    CHECK_EQ(released, 2 * PAGE);
    ALLOCATE(f, .size = 2 * PAGE);
    expect_reserved(f, 2 * PAGE, 0);
}

CASE(more_than_the_heap_is_refused_at_once, (quire_page_policy){.page_size = PAGE})
{
    CHECK_OK(quire_memory_preallocate(f->memory, PAGE));
    CHECK_FAILS(quire_memory_preallocate(f->memory, (UINT64_C(1) << 30) + 1),
                QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_HAS(quire_last_error(), "the heap of memory kind 0 has 1 GiB in all");
    CHECK_EQ(f->fake.calls[FAKE_PAGE_CREATE], 1);
    ALLOCATE(f, .size = 2 * PAGE);
    expect_reserved(f, 3 * PAGE, PAGE); /* the previous floor still holds */
}

CASE(it_creates_at_most_the_policys_page_limit,
     (quire_page_policy){.page_size = PAGE, .max_pages = 3})
{
    CHECK_OK(quire_memory_preallocate(f->memory, PAGE));
    CHECK_FAILS(quire_memory_preallocate(f->memory, 4 * PAGE), QUIRE_ERROR_TOO_MANY_PAGES);
    CHECK_HAS(quire_last_error(), "the maximum of its policy");
    expect_reserved(f, PAGE, PAGE);
    CHECK_OK(quire_memory_preallocate(f->memory, 3 * PAGE));
    expect_reserved(f, 3 * PAGE, 3 * PAGE);
}

CASE(it_creates_at_most_the_memorys_limit, (quire_page_policy){.page_size = PAGE})
{
    CHECK_OK(quire_memory_preallocate(f->memory, PAGE));
    CHECK_OK(quire_memory_set_limit(f->memory, 3 * PAGE));
    CHECK_FAILS(quire_memory_preallocate(f->memory, 4 * PAGE), QUIRE_ERROR_OVER_BUDGET);
    expect_reserved(f, PAGE, PAGE);
    CHECK_OK(quire_memory_preallocate(f->memory, 3 * PAGE));
    expect_reserved(f, 3 * PAGE, 3 * PAGE);
}

CASE(one_page_per_object_is_refused, (quire_page_policy){.dedicated = QUIRE_DEDICATED_ALWAYS})
{
    CHECK_FAILS(quire_memory_preallocate(f->memory, 1), QUIRE_ERROR_UNSUPPORTED);
    CHECK_OK(quire_memory_preallocate(f->memory, 0));
    ALLOCATE(f, .size = PAGE);
    expect_reserved(f, PAGE, 0);
}

#define MEMORY(name, ...)                                                                          \
    UNIT_ON(preallocate, name, fixture, f, fixture_make(f, __VA_ARGS__), fixture_end)

MEMORY(the_linear_fit_has_one_page,
       &(quire_memory_options){.fit.algorithm = QUIRE_FIT_LINEAR, .pages.page_size = PAGE})
{
    CHECK_OK(quire_memory_preallocate(f->memory, PAGE));
    expect_reserved(f, PAGE, PAGE);
    CHECK_FAILS(quire_memory_preallocate(f->memory, PAGE + 1), QUIRE_ERROR_TOO_MANY_PAGES);
    expect_reserved(f, PAGE, PAGE);
    ALLOCATE(f, .size = PAGE);
    CHECK_EQ(f->fake.calls[FAKE_PAGE_CREATE], 1);
}

MEMORY(shards_take_turns_and_each_serves_the_others,
       &(quire_memory_options){.shards = 3, .pages.page_size = PAGE})
{
    CHECK_OK(quire_memory_preallocate(f->memory, 6 * PAGE));
    expect_reserved(f, 6 * PAGE, 6 * PAGE);
    for (int i = 0; i < 6; i++)
        ALLOCATE(f, .size = PAGE);
    CHECK_EQ(f->fake.calls[FAKE_PAGE_CREATE], 6);
    expect_reserved(f, 6 * PAGE, 0);
}

/* ---- failures ------------------------------------------------------------------------------- */

/* The state is the same as with one preallocated page in use and one above the floor, or better. */
static void expect_as_before(fixture *f)
{
    expect_reserved(f, 2 * PAGE, PAGE); /* one in use, one kept by the floor */
    quire_allocation half = ALLOCATE(f, .size = PAGE);
    CHECK_OK(quire_free(f->memory, half));
    expect_reserved(f, 2 * PAGE, PAGE);
    ALLOCATE(f, .size = 2 * PAGE); /* destroys the pages above the floor */
    expect_reserved(f, 4 * PAGE, PAGE);
}

UNIT(preallocate, each_failing_backend_call_changes_nothing)
{
    for (int from_then = 0; from_then < 2; from_then++) {
        for (uint64_t call = 1; call <= 8; call++) {
            fixture f;
            fixture_make(&f, &(quire_memory_options){.kind.required = QUIRE_HOST_VISIBLE,
                                                     .pages.page_size = PAGE});
            ALLOCATE(&f, .size = PAGE);
            CHECK_OK(quire_memory_preallocate(f.memory, 2 * PAGE));
            fake_fail(&f.fake, call, from_then, QUIRE_ERROR_BACKEND_FAILURE);
            CHECK_FAILS(quire_memory_preallocate(f.memory, 6 * PAGE), QUIRE_ERROR_BACKEND_FAILURE);
            CHECK_EQ(quire_last_native_code(), -13);
            fake_fail(&f.fake, 0, false, QUIRE_SUCCESS);
            expect_as_before(&f);
            fixture_end(&f);
        }
    }
}

CASE(nothing_stays_preallocated_if_the_backend_has_too_little,
     (quire_page_policy){.page_size = PAGE})
{
    f->fake.page_budget = 7 * PAGE - 256;
    CHECK_FAILS(quire_memory_preallocate(f->memory, 7 * PAGE), QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_HAS(quire_last_error(), "the fake is full");
    expect_reserved(f, 0, 0);
    CHECK_OK(quire_memory_preallocate(f->memory, 6 * PAGE + 256)); /* the last pages are smaller */
    CHECK(f->fake.page_bytes >= 6 * PAGE + 256);
}

CASE(a_refused_request_keeps_the_floor, (quire_page_policy){.page_size = PAGE, .max_pages = 2})
{
    CHECK_OK(quire_memory_preallocate(f->memory, 2 * PAGE));
    ALLOCATE_FAILS(f, QUIRE_ERROR_TOO_MANY_PAGES, .size = 2 * PAGE);
    expect_reserved(f, 2 * PAGE, 2 * PAGE);
    CHECK_OK(quire_memory_trim(f->memory, 0, NULL));
    ALLOCATE(f, .size = 2 * PAGE);
}

static uint64_t lines;

static void count_lines(void *user, quire_log_level level, const char *line)
{
    (void)user, (void)level;
    lines += strstr(line, "made, 4 KiB, preallocated") != NULL;
}

UNIT_PREPARED(preallocate, the_log_reports_each_page, f)
{
    lines = 0;
    const quire_device_options options = {.host_memory = unit_memory(),
                                          .log = {count_lines, NULL, QUIRE_LOG_DEBUG}};
    CHECK_OK(quire_device_create(&f->fake.table, &f->fake, &options, &f->device));
    CHECK_OK(quire_memory_create(f->device, &(quire_memory_options){.pages.page_size = PAGE},
                                 &f->memory));
    CHECK_OK(quire_memory_preallocate(f->memory, 3 * PAGE));
    CHECK_EQ(lines, 3);
}

/* As another thread may do at any time. */
static void trim_all(void *user, quire_memory *memory, const quire_event *event)
{
    (void)user, (void)event;
    CHECK_OK(quire_memory_trim(memory, 0, NULL));
}

MEMORY(a_concurrent_trim_cancels_it, &(quire_memory_options){.pages.page_size = 4096})
{
    const quire_hook hook = {.event = trim_all, .kinds = QUIRE_EVENT_PAGE_MADE};
    CHECK_OK(quire_memory_set_hook(f->memory, &hook));
    CHECK_OK(quire_memory_preallocate(f->memory, 8 * 4096));
    CHECK_EQ(f->fake.calls[FAKE_PAGE_CREATE], 1);
    CHECK_EQ(f->fake.pages, 0);
    CHECK_OK(quire_memory_set_hook(f->memory, NULL));
}
