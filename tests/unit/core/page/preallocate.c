/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * preallocate.c - quire_memory_preallocate: pages that a memory creates ahead and keeps.
 */
#include "tests/support/fixture.h"

#include <stdio.h>

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

typedef enum action { END = 0, KEEP, TAKE, OWN, TRIM } action;

/* Pages of a memory after a call. A call that is refused changes nothing. */
typedef struct step {
    action action;  /* preallocate, allocate, allocate with a page of its own, trim */
    uint64_t bytes; /* of the call; the target of a trim */
    quire_result result;
    uint64_t reserved, empty; /* pages afterwards */
} step;

static const struct {
    const char *name;
    quire_memory_options memory;
    uint64_t created; /* pages in all; 0: any number */
    step steps[5];
    const char *says; /* the last refusal */
} rows[] = {
    {"pages of the policy's sizes are created until the goal is reached",
     {.pages.page_size = PAGE},
     5,
     {{KEEP, 1, 0, 1, 1}, {KEEP, 4 * PAGE, 0, 4, 4}, {KEEP, 4 * PAGE + 1, 0, 5, 5}},
     NULL},
    {"growth continues from the preallocated pages: 1 + 2 + 4, and 8",
     {.pages = {.page_size = PAGE, .growth_percent = 100, .max_page = 64 * PAGE}},
     4,
     {{KEEP, 7 * PAGE, 0, 7, 7}, {KEEP, 8 * PAGE, 0, 15, 15}},
     NULL},
    {"existing pages and pages in use count",
     {.pages.page_size = PAGE},
     3,
     {{TAKE, PAGE, 0, 1, 0},
      {OWN, PAGE, 0, 2, 0},
      {KEEP, 2 * PAGE, 0, 2, 0},
      {KEEP, 3 * PAGE, 0, 3, 1}},
     NULL},
    {"they are kept when pages are created",
     {.pages.page_size = PAGE},
     5,
     {{KEEP, 3 * PAGE, 0, 3, 3}, {TAKE, 2 * PAGE, 0, 5, 3}, {TAKE, 2 * PAGE, 0, 5, 1}},
     NULL},
    {"a lower or cancelled floor applies the bounds at once",
     {.pages = {.page_size = PAGE, .retained_empty_bytes = 1}},
     4,
     {{KEEP, 4 * PAGE, 0, 4, 4}, {KEEP, 3 * PAGE, 0, 3, 3}, {KEEP, 0, 0, 0, 0}},
     NULL},
    {"zero cancels the floor and releases no page",
     {.pages.page_size = PAGE},
     4,
     {{KEEP, 3 * PAGE, 0, 3, 3}, {KEEP, 0, 0, 3, 3}, {TAKE, 2 * PAGE, 0, 2, 0}},
     NULL},
    {"a trim cancels it",
     {.pages.page_size = PAGE},
     4,
     {{KEEP, 3 * PAGE, 0, 3, 3}, {TRIM, PAGE, 0, 1, 1}, {TAKE, 2 * PAGE, 0, 2, 0}},
     NULL},
    {"more than the heap is refused at once, and the floor holds",
     {.pages.page_size = PAGE},
     2,
     {{KEEP, PAGE, 0, 1, 1},
      {KEEP, (UINT64_C(1) << 30) + 1, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, 1, 1},
      {TAKE, 2 * PAGE, 0, 3, 1}},
     "the heap of memory kind 0 has 1 GiB in all"},
    {"the policy's limit of pages",
     {.pages = {.page_size = PAGE, .max_pages = 3}},
     0,
     {{KEEP, PAGE, 0, 1, 1},
      {KEEP, 4 * PAGE, QUIRE_ERROR_TOO_MANY_PAGES, 1, 1},
      {KEEP, 3 * PAGE, 0, 3, 3}},
     "the maximum of its policy"},
    {"the memory's limit of bytes",
     {.pages.page_size = PAGE, .limit = 3 * PAGE},
     0,
     {{KEEP, PAGE, 0, 1, 1},
      {KEEP, 4 * PAGE, QUIRE_ERROR_OVER_BUDGET, 1, 1},
      {KEEP, 3 * PAGE, 0, 3, 3}},
     NULL},
    {"a refused request keeps the floor",
     {.pages = {.page_size = PAGE, .max_pages = 2}},
     3,
     {{KEEP, 2 * PAGE, 0, 2, 2},
      {TAKE, 2 * PAGE, QUIRE_ERROR_TOO_MANY_PAGES, 2, 2},
      {TRIM, 0, 0, 0, 0},
      {TAKE, 2 * PAGE, 0, 2, 0}},
     NULL},
    {"one page per object",
     {.pages.dedicated = QUIRE_DEDICATED_ALWAYS},
     1,
     {{KEEP, 1, QUIRE_ERROR_UNSUPPORTED, 0, 0}, {KEEP, 0, 0, 0, 0}, {TAKE, PAGE, 0, 1, 0}},
     NULL},
    {"the linear fit has one page",
     {.fit.algorithm = QUIRE_FIT_LINEAR, .pages.page_size = PAGE},
     1,
     {{KEEP, PAGE, 0, 1, 1},
      {KEEP, PAGE + 1, QUIRE_ERROR_TOO_MANY_PAGES, 1, 1},
      {TAKE, PAGE, 0, 1, 0}},
     NULL},
    {"shards take turns, and each serves the others",
     {.shards = 3, .pages.page_size = PAGE},
     4,
     {{KEEP, 4 * PAGE, 0, 4, 4},
      {TAKE, PAGE, 0, 4, 3},
      {TAKE, PAGE, 0, 4, 2},
      {TAKE, PAGE, 0, 4, 1},
      {TAKE, PAGE, 0, 4, 0}},
     NULL},
};

static quire_result take_step(fixture *f, const step *s)
{
    quire_allocation made;
    const quire_allocation_options options = {.size = s->bytes, .dedicated = s->action == OWN};
    if (s->action == KEEP)
        return quire_memory_preallocate(f->memory, s->bytes);
    if (s->action == TRIM)
        return quire_memory_trim(f->memory, s->bytes, NULL);
    return quire_allocate(f->memory, &options, &made);
}

UNIT(preallocate, pages_are_made_ahead_and_kept)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fixture f;
        printf("# %s\n", rows[i].name);
        fixture_make(&f, &rows[i].memory);
        for (int k = 0; k < 5 && rows[i].steps[k].action; k++) {
            const step *s = &rows[i].steps[k];
            CHECK_EQ(take_step(&f, s), s->result);
            expect_reserved(&f, s->reserved * PAGE, s->empty * PAGE);
        }
        CHECK(!rows[i].created || f.fake.calls[FAKE_PAGE_CREATE] == rows[i].created);
        CHECK(!rows[i].says || strstr(quire_last_error(), rows[i].says));
        fixture_end(&f);
    }
}

#define CASE(name, ...) UNIT_ON(preallocate, name, fixture, f, make(f, __VA_ARGS__), fixture_end)

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

#define MEMORY(name, ...)                                                                          \
    UNIT_ON(preallocate, name, fixture, f, fixture_make(f, __VA_ARGS__), fixture_end)

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
