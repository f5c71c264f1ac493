/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * many_pages.c - the cost of thousands of pages: creating them ahead takes time proportional to
 * their number, and no call destroys all empty ones at once unless memory is needed.
 */
#include "tests/support/fixture.h"

#include <string.h>
#include <time.h>

#include "src/core/page/empty.h"

enum { PAGE = 4096, FEW = 1000, TIMES = 16, AT_ONCE = QI_EMPTY_PAGES_PER_CALL };

/* ---- time ----------------------------------------------------------------------------------- */

static double thread_seconds(void)
{
    struct timespec t;
    CHECK(!clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t));
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* With pages of 256 bytes the system gives few of its own, whose faults would take most time. */
static double reserve(uint32_t count)
{
    enum { SMALL = 256 };
    fixture f;
    fixture_make(&f, &(quire_memory_options){.pages.page_size = SMALL});
    double begin = thread_seconds();
    CHECK_OK(quire_memory_preallocate(f.memory, (uint64_t)count * SMALL));
    ALLOCATE(&f, .size = SMALL, .dedicated = true);
    double seconds = thread_seconds() - begin;
    CHECK_EQ(fixture_stats(&f).page_count, count + 1);
    fixture_end(&f);
    return seconds;
}

/* Host memory whose pages the system has given: a page fault can cost more than a region. */
static uint64_t touched[10 << 20];
static size_t taken_bytes;

static void *take_touched(void *user, size_t size, size_t alignment)
{
    (void)user, (void)alignment; /* at most 64 */
    size_t offset = taken_bytes;
    taken_bytes += (size + 63) / 64 * 64;
    CHECK(taken_bytes <= sizeof touched);
    return (char *)touched + offset;
}

static void give_back(void *user, void *pointer, size_t size, size_t alignment)
{
    (void)user, (void)pointer, (void)size, (void)alignment;
}

static const quire_host_memory TOUCHED_MEMORY = {take_touched, give_back, NULL};

static double add_regions(uint32_t count)
{
    memset(touched, 1, sizeof touched);
    taken_bytes = 64 - (uintptr_t)touched % 64;
    quire_space *space = NULL;
    quire_space_options options = {.fit.granule = 256, .host_memory = &TOUCHED_MEMORY};
    CHECK_OK(quire_space_create(&options, &space));
    double begin = thread_seconds();
    for (uint32_t i = 0; i < count; i++) {
        uint32_t region = 0;
        CHECK_OK(quire_space_add_region(space, PAGE, 0, &region));
        CHECK_EQ(region, i);
    }
    double seconds = thread_seconds() - begin;
    quire_space_destroy(&space);
    return seconds;
}

/*
 * Sixteen times as many pages take less than 80 times as long: caches account for a factor of two,
 * of three and more beside other programs, and a scan of all pages for each page would take 256
 * times as long. One of a few tries is enough.
 */
static void check_proportion(double (*measure)(uint32_t), uint32_t count)
{
    bool is_proportional = false;
    for (int i = 0; i < 8 && !is_proportional; i++)
        is_proportional = measure(count * TIMES) < 5 * TIMES * measure(count);
    CHECK(is_proportional);
}

UNIT(many_pages, preallocation_takes_time_proportional_to_their_number)
{
    check_proportion(reserve, 4 * FEW);
}

UNIT(many_pages, adding_regions_takes_time_proportional_to_their_number)
{
    check_proportion(add_regions, 4 * FEW);
}

/* ---- empty ones ----------------------------------------------------------------------------- */

static uint64_t test_time;

static uint64_t read_time(void *user)
{
    (void)user;
    return test_time;
}

#define CASE(name, ...)                                                                            \
    UNIT_ON(many_pages, name, fixture, f, make_empty_pages(f, __VA_ARGS__), fixture_end)

/* A memory with this many empty dedicated pages. */
static void make_empty_pages(fixture *f, quire_page_policy pages, uint32_t count)
{
    static quire_allocation all[1000];
    CHECK(count <= 1000);
    test_time = 1000;
    pages.page_size = PAGE;
    fixture_make(f, &(quire_memory_options){.pages = pages, .clock = {read_time, NULL}});
    for (uint32_t i = 0; i < count; i++)
        all[i] = ALLOCATE(f, .size = PAGE, .dedicated = true);
    for (uint32_t i = 0; i < count; i++)
        CHECK_OK(quire_free(f->memory, all[i]));
    CHECK_EQ(f->fake.pages, count);
}

CASE(a_request_destroys_as_many_as_it_needs_and_few_more, (quire_page_policy){0}, 1000)
{
    uint64_t there = 1000;
    ALLOCATE(f, .size = PAGE);
    there -= AT_ONCE + 1; /* one for its page */
    CHECK_EQ(f->fake.pages, there + 1);
    ALLOCATE(f, .size = 100 * PAGE);
    there -= AT_ONCE + 100;
    CHECK_EQ(f->fake.pages, there + 2);
    CHECK_EQ(fixture_stats(f).empty_bytes, there * PAGE);
    CHECK_OK(quire_memory_check(f->memory));
    CHECK_OK(quire_memory_trim(f->memory, 0, NULL));
    CHECK_EQ(f->fake.pages, 2);
}

CASE(all_empty_pages_are_destroyed_before_a_request_is_refused,
     (quire_page_policy){.max_pages = 1000}, 1000)
{
    ALLOCATE(f, .size = PAGE); /* at the limit of the number of pages */
    CHECK(f->fake.pages < 1000);
    uint64_t left = f->fake.pages - 1;
    f->fake.page_budget = f->fake.page_bytes; /* so that all but one page must be destroyed */
    ALLOCATE(f, .size = left * PAGE);
    CHECK_EQ(f->fake.pages, 2);
}

UNIT(many_pages, pages_that_must_stay_do_not_hide_pages_that_may_be_destroyed)
{
    enum { LARGE = 10 * PAGE, COUNT = AT_ONCE + 1 };
    fixture f;
    quire_allocation large[COUNT], small[2];
    fixture_make(&f, &(quire_memory_options){.pages = {.page_size = PAGE, .max_pages = COUNT + 2}});
    for (int i = 0; i < COUNT; i++)
        large[i] = ALLOCATE(&f, .size = LARGE, .dedicated = true);
    for (int i = 0; i < 2; i++)
        small[i] = ALLOCATE(&f, .size = PAGE, .dedicated = true);
    for (int i = 0; i < COUNT; i++)
        CHECK_OK(quire_free(f.memory, large[i]));
    for (int i = 0; i < 2; i++)
        CHECK_OK(quire_free(f.memory, small[i]));
    CHECK_OK(
        quire_memory_preallocate(f.memory, COUNT * LARGE + PAGE)); /* all but a small one stay */
    ALLOCATE(&f, .size = 2 * LARGE, .dedicated = true);
    CHECK_EQ(f.fake.pages, COUNT + 2);
    CHECK_EQ(fixture_stats(&f).reserved_bytes, COUNT * LARGE + PAGE + 2 * LARGE);
    fixture_end(&f);
}

CASE(old_pages_are_destroyed_a_few_per_call, (quire_page_policy){.retention_nanoseconds = 100},
     3 * AT_ONCE)
{
    quire_allocation mine = ALLOCATE(f, .size = PAGE, .dedicated = true), small[2];
    for (int i = 0; i < 2; i++)
        small[i] = ALLOCATE(f, .size = PAGE / 4);
    uint64_t there = f->fake.pages;
    CHECK_EQ(there, 3 * AT_ONCE - (AT_ONCE + 1) + 1); /* the shared page needed room */
    test_time += 1000;
    CHECK_OK(quire_free(f->memory, mine));
    there -= AT_ONCE;
    CHECK_EQ(f->fake.pages, there);
    CHECK_OK(quire_free(f->memory, small[0])); /* continues, although this free empties no page */
    CHECK_EQ(f->fake.pages, 2);
    CHECK_OK(quire_memory_trim(f->memory, 0, NULL));
    CHECK_EQ(f->fake.pages, 1);
}

CASE(a_clock_that_steps_back_destroys_none, (quire_page_policy){.retention_nanoseconds = 100}, 3)
{
    quire_allocation mine = ALLOCATE(f, .size = PAGE, .dedicated = true);
    test_time -= 5;
    CHECK_OK(quire_free(f->memory, mine));
    CHECK_EQ(f->fake.pages, 3);
    test_time += 105 + 5;
    ALLOCATE(f, .size = PAGE);
    CHECK_EQ(f->fake.pages, 1);
}
