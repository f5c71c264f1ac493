/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * report.c - the text report of a memory: its head, the last failed request, the pages with the
 * largest free ranges and the bytes by name; in any state, with any name.
 */
#include <stdio.h>

#include "src/core/checked.h"
#include "tests/support/fixture.h"
#include "tests/support/gather.h"
#include "tests/support/lazy.h"

enum { PAGE = 4096 };

static const char *report(fixture *f)
{
    gather_anew(0);
    CHECK_OK(quire_memory_write_report(f->memory, gather, NULL));
    CHECK_EQ(gathered.text[gathered.length - 1], '\n');
    return gathered.text;
}

static void make(fixture *f, quire_page_policy pages)
{
    fixture_make(f, &(quire_memory_options){.name = "weights", .pages = pages});
}

/* Returns how often a text occurs. */
static int count(const char *text, const char *part)
{
    int found = 0;
    for (; (text = strstr(text, part)) != NULL; text++)
        found++;
    return found;
}

#define CASE(name, ...)                                                                            \
    UNIT_ON(report, name, fixture, f, make(f, (quire_page_policy){__VA_ARGS__}), fixture_end)

/* ---- the head and the last failed request --------------------------------------------------- */

CASE(a_new_memory, .page_size = PAGE)
{
    CHECK_STR(report(f),
              "memory 'weights': kind 0 (DEVICE_LOCAL) of device 'fake device'\n"
              "  live:  0 B in 0 allocations, 0 B requested\n"
              "  pages: 0, 0 B reserved, 0 B free, 0 B of the free bytes in empty pages\n"
              "  heap:  number 0, 1 GiB, 0 B in pages of quire\n"
              "         0 B in use, 1 GiB left of a budget of 1 GiB\n"
              "\n"
              "no allocation failed\n"
              "\n"
              "pages by their largest free range: 0 of 0\n"
              "\n"
              "live bytes by name: 0 of 0\n");
}

CASE(statistics_pages_and_names, .page_size = PAGE)
{
    quire_allocation full = ALLOCATE(f, .size = PAGE);
    ALLOCATE(f, .size = 1024, .name = "encoder/layer.0");
    ALLOCATE(f, .size = 1024, .name = "encoder/layer.1");
    ALLOCATE(f, .size = 512, .name = "decoder");
    ALLOCATE(f, .size = 5000, .dedicated = true);
    CHECK_OK(quire_free(f->memory, full));
    const char *text = report(f);
    CHECK_HAS(text,
              "  live:  7.38 KiB in 4 allocations, 7.38 KiB requested\n"
              "  pages: 3, 13 KiB reserved, 5.62 KiB free, 4 KiB of the free bytes in empty pages\n"
              "  heap:  number 0, 1 GiB, 13 KiB in pages of quire\n");
    CHECK_HAS(text, "pages by their largest free range: 3 of 3\n"
                    "    page         size         live  largest free\n"
                    "       0        4 KiB          0 B         4 KiB\n"
                    "       1        4 KiB     2.50 KiB      1.50 KiB  after 'decoder' (512 B)\n"
                    "       2        5 KiB     4.88 KiB           0 B  dedicated\n");
    CHECK_HAS(text, "live bytes by name: 3 of 3\n"
                    "        live  allocations  name\n"
                    "    4.88 KiB            1  (unnamed)\n"
                    "       2 KiB            2  encoder\n"
                    "       512 B            1  decoder\n");
}

CASE(the_heap_is_shared_by_the_memories_of_the_device, .page_size = PAGE)
{
    quire_memory *other = NULL;
    quire_allocation allocation;
    CHECK_OK(quire_memory_create(f->device, &(quire_memory_options){.pages.page_size = 3 * PAGE},
                                 &other));
    CHECK_OK(quire_allocate(other, &(quire_allocation_options){.size = 1}, &allocation));
    CHECK_HAS(report(f), "heap:  number 0, 1 GiB, 12 KiB in pages of quire\n");
    quire_memory_destroy_all(&other);
}

UNIT(report, budgets_and_limits)
{
    fixture f;
    fixture_prepare(&f);
    fake_offer_budget(&f.fake);
    fake_set_budget(&f.fake, 0, 300 * 1024, 40 * 1024);
    fixture_open(&f, &(quire_memory_options){.pages.page_size = PAGE});
    CHECK_OK(quire_device_set_heap_limit(f.device, 0, 200 * 1024));
    CHECK_OK(quire_memory_set_limit(f.memory, 100 * 1024));
    ALLOCATE(&f, .size = 1);
    const char *text = report(&f);
    CHECK_HAS(text, "  heap:  number 0, 1 GiB, 4 KiB in pages of quire\n"
                    "         44 KiB in use, 196 KiB left of a budget of 300 KiB\n"
                    "  limit: 200 KiB for the pages of the heap\n"
                    "  limit: 100 KiB for the pages of the memory\n");
    fake_fail(&f.fake, 1, true, QUIRE_ERROR_DEVICE_LOST);
    text = report(&f); /* without the values that the backend does not report */
    CHECK_HAS(text, "4 KiB in pages of quire\n  limit: 200 KiB for the pages of the heap\n");
    CHECK_EQ(quire_last_result(), QUIRE_SUCCESS);
    fixture_end(&f);
}

UNIT(report, pages_beyond_the_budget)
{
    fixture f;
    fixture_prepare(&f);
    fake_offer_budget(&f.fake);
    fake_set_budget(&f.fake, 0, 8 * 1024, 0);
    fixture_open(&f, &(quire_memory_options){.pages.page_size = PAGE});
    CHECK(!strstr(report(&f), "beyond"));
    for (int i = 0; i < 3; i++)
        ALLOCATE(&f, .size = PAGE);
    CHECK_HAS(report(&f),
              "0 B left of a budget of 8 KiB\n         1 page made beyond the budget\n");
    fixture_end(&f);
}

CASE(the_last_failed_request_with_its_options_and_attempts, .page_size = PAGE, .max_pages = 1)
{
    quire_allocation none;
    ALLOCATE(f, .size = 1000);
    const quire_allocation_options large = {.size = 4000, .alignment = 256};
    CHECK_FAILS(quire_allocate(f->memory, &(quire_allocation_options){.size = 3999}, &none),
                QUIRE_ERROR_TOO_MANY_PAGES);
    CHECK_FAILS(quire_allocate(f->memory, &large, &none), QUIRE_ERROR_TOO_MANY_PAGES);
    char message[1024];
    snprintf(
        message, sizeof message,
        "last of 2 failed allocations: QUIRE_ERROR_TOO_MANY_PAGES, 4000 bytes at alignment 256\n"
        "  %s\n",
        quire_last_error());
    CHECK_HAS(message, "Tried: empty pages given back, a full pass");
    /* a later, different error */
    CHECK_FAILS(quire_memory_check(NULL), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_HAS(report(f), message);
}

UNIT(report, the_last_failed_request_of_all_shards)
{
    fixture f;
    quire_allocation none;
    fixture_make(
        &f, &(quire_memory_options){.shards = 2, .pages = {.page_size = PAGE, .max_pages = 1}});
    ALLOCATE_ELSEWHERE(&f, .size = 1);
    CHECK_FAILS(quire_allocate(f.memory, &(quire_allocation_options){.size = PAGE}, &none),
                QUIRE_ERROR_TOO_MANY_PAGES);
    CHECK_HAS(report(&f), "last of 1 failed allocation: QUIRE_ERROR_TOO_MANY_PAGES, 4096 bytes");
    fixture_end(&f);
}

CASE(other_errors_are_not_reported, .page_size = PAGE)
{
    quire_allocation none;
    CHECK_FAILS(quire_allocate(f->memory, &(quire_allocation_options){.size = 0}, &none),
                QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_HAS(report(f), "no allocation failed");
}

/* ---- pages ---------------------------------------------------------------------------------- */

CASE(ten_pages_at_most_the_largest_free_ranges_first, .page_size = PAGE)
{
    char line[80];
    for (uint64_t i = 0; i < 15;
         i++) /* each needs its own page, because the rest is too small for the next */
        ALLOCATE(f, .size = PAGE - 256 * (i % 5), .alignment = PAGE);
    const char *text = report(f), *at = text;
    CHECK_HAS(text, "pages by their largest free range: 10 of 15\n");
    static const uint32_t order[] = {4, 9, 14, 3, 8, 13, 2, 7, 12, 1};
    for (int i = 0; i < 10; i++) {
        snprintf(line, sizeof line, "\n%8u        4 KiB", (unsigned)order[i]);
        const char *found = strstr(text, line);
        CHECK(found && found >= at);
        at = found;
    }
    CHECK_EQ(count(text, "        4 KiB  "), 10);
}

/* Fills a page with ranges 'a' to 'h' of an eighth each. */
static void fill_in_eighths(fixture *f, quire_allocation made[8])
{
    for (int i = 0; i < 8; i++) {
        const char name[] = {(char)('a' + i), '\0'};
        made[i] = ALLOCATE(f, .size = PAGE / 8, .name = i == 5 ? NULL : name);
    }
}

static void free_some(fixture *f, const quire_allocation *made, const char *names)
{
    for (; *names; names++)
        CHECK_OK(quire_free(f->memory, made[*names - 'a']));
}

#define ROW "\n       0        4 KiB "

CASE(what_lies_beside_the_largest_free_range, .page_size = PAGE)
{
    quire_allocation made[8];
    fill_in_eighths(f, made);
    CHECK_HAS(report(f), ROW "       4 KiB           0 B\n"); /* nothing is free */
    free_some(f, made, "bc");
    CHECK_HAS(report(f), ROW "       3 KiB         1 KiB  between 'a' (512 B) and 'd' (512 B)\n");
    free_some(f, made, "a");
    CHECK_HAS(report(f), ROW "    2.50 KiB      1.50 KiB  before 'd' (512 B)\n");
    free_some(f, made, "dgh"); /* the first range has four eighths and is larger than the last */
    CHECK_HAS(report(f), ROW "       1 KiB         2 KiB  before 'e' (512 B)\n");
    free_some(f, made, "e");
    CHECK_HAS(report(f), ROW "       512 B      2.50 KiB  before (unnamed) (512 B)\n");
    free_some(f, made, "f");
    CHECK_HAS(report(f), ROW "         0 B         4 KiB\n");
}

/* Of equal ranges the first one; the names of earlier ranges do not stay. */
CASE(the_sides_of_the_first_of_equal_ranges, .page_size = PAGE)
{
    quire_allocation made[8];
    fill_in_eighths(f, made);
    free_some(f, made, "ceg");
    CHECK_HAS(report(f), "512 B  between 'b' (512 B) and 'd' (512 B)\n");
    free_some(f, made, "h");
    CHECK_HAS(report(f), "  1 KiB  after (unnamed) (512 B)\n");
}

CASE(a_name_beside_a_range_cannot_break_a_line, .page_size = PAGE)
{
    ALLOCATE(f, .size = PAGE / 2, .name = "a\nb");
    CHECK_HAS(report(f), "2 KiB  after 'a?b' (2 KiB)\n");
}

CASE(what_moving_live_ranges_would_free, .page_size = PAGE)
{
    quire_allocation made[8];
    fill_in_eighths(f, made);
    free_some(f, made, "ab");
    CHECK(!strstr(report(f), "moved together")); /* the free bytes are one range already */
    free_some(f, made, "dg");
    CHECK_HAS(report(f), "  if the live ranges moved together: largest free range would be 2 KiB, "
                         "in page 0\n");
    CHECK(!strstr(report(f), "elastic")); /* pages of this kind cannot be elastic */
}

CASE(what_a_compaction_would_free, .page_size = PAGE)
{
    quire_allocation made[12];
    if (QI_IS_CHECKED)
        unit_skip("checked builds move nothing");
    for (int i = 0; i < 12; i++)
        made[i] = ALLOCATE(f, .size = PAGE / 4, .movable = true);
    CHECK(!strstr(report(f), "compaction"));
    free_some(f, made, "afghi");
    CHECK_HAS(report(f), "  a compaction would free up to 1 page (4 KiB) by 1 move (1 KiB)\n");
}

UNIT(report, a_lazy_allocation_counts_the_bytes_with_memory)
{
    fixture f;
    lazy_begin(&f);
    CHECK_HAS(report(&f), "  live:  48.25 KiB in 3 allocations");
    CHECK_HAS(gathered.text, "      48 KiB            2  cache\n");
    CHECK_HAS(gathered.text, "       0       64 KiB    48.25 KiB");
    CHECK(!strstr(gathered.text, "asleep"));
    CHECK_OK(quire_memory_sleep(f.memory, NULL, QUIRE_SLEEP_DISCARD, NULL, NULL));
    CHECK_HAS(report(&f), "  live:  0 B in 3 allocations");
    CHECK_HAS(gathered.text, "  asleep: 48.25 KiB in 3 of these allocations, without memory\n");
    fixture_end(&f);
}

UNIT(report, what_an_elastic_memory_would_reserve)
{
    enum { MIB = 1 << 20 };
    fixture f;
    fixture_prepare(&f);
    fake_offer_growth(&f.fake);
    fixture_open(&f, &(quire_memory_options){.pages.page_size = MIB});
    const quire_allocation first = ALLOCATE(&f, .size = 300 << 10);
    ALLOCATE(&f, .size = 300 << 10);
    ALLOCATE(&f, .size = MIB, .dedicated = true);
    /* 600 KiB live: one whole chunk of 256 KiB is free behind them */
    CHECK_HAS(report(&f), "  an elastic memory would reserve 1.75 MiB, 256 KiB less\n");
    CHECK_OK(quire_free(f.memory, first)); /* and the first chunk of the freed range */
    CHECK_HAS(report(&f), "  an elastic memory would reserve 1.50 MiB, 512 KiB less\n");
    const quire_allocation whole = ALLOCATE(&f, .size = MIB, .alignment = 256);
    CHECK_OK(quire_free(f.memory, whole));
    CHECK_HAS(report(&f), "  an elastic memory would reserve 1.50 MiB, 1.50 MiB less\n");
    fixture_end(&f);
}

/* ---- kinds ---------------------------------------------------------------------------------- */

CASE(the_kinds_that_refused_the_same_call, .page_size = PAGE, .max_pages = 1)
{
    quire_memory *memories[2] = {f->memory, NULL};
    quire_allocation none;
    uint32_t chosen = 0;
    const quire_allocation_options large = {.size = 2 * PAGE};
    CHECK_OK(quire_memory_create(
        f->device,
        &(quire_memory_options){.kind.mask = 4, .pages = {.page_size = PAGE, .max_pages = 1}},
        &memories[1]));
    for (int i = 0; i < 2; i++)
        CHECK_OK(quire_allocate(memories[i], &(quire_allocation_options){.size = 1}, &none));
    CHECK_FAILS(quire_allocate(f->memory, &large, &none), QUIRE_ERROR_TOO_MANY_PAGES);
    CHECK(!strstr(report(f), "kinds that"));
    CHECK_FAILS(quire_allocate_fallback(memories, 2, &large, &chosen, &none),
                QUIRE_ERROR_TOO_MANY_PAGES);
    CHECK_HAS(report(f), "\n  kinds that refused it: 0, 2\n");
    quire_memory_destroy_all(&memories[1]);
}

/* ---- names ---------------------------------------------------------------------------------- */

CASE(names_end_at_the_first_separator, .page_size = PAGE)
{
    static const char *const names[] = {"a/b", "a.c", "a:d", "a", "/a/b", "/a", "::", "b/"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        ALLOCATE(f, .size = 16, .name = names[i]);
    CHECK_HAS(report(f), "live bytes by name: 4 of 4\n"
                         "        live  allocations  name\n"
                         "       1 KiB            4  a\n"
                         "       512 B            2  /a\n"
                         "       256 B            1  ::\n"
                         "       256 B            1  b\n");
}

CASE(twenty_names_and_the_rest_in_one, .page_size = 1 << 24)
{
    char name[16];
    for (unsigned i = 1; i <= 300; i++) {
        snprintf(name, sizeof name, "n%u.x", i);
        ALLOCATE(f, .size = i * 256, .name = name);
    }
    const char *text = report(f);
    CHECK_HAS(text, "live bytes by name: 20 of 300\n");
    CHECK_HAS(text, "      75 KiB            1  n300\n   74.75 KiB            1  n299\n");
    CHECK_HAS(text, "            1  n281\n");
    CHECK(!strstr(text, "  n280\n"));
    CHECK_HAS(text, "    9.60 MiB          280  (others)\n");
}

UNIT(report, names_cannot_break_a_line)
{
    fixture f;
    char longest[QUIRE_MAX_NAME + 1];
    memset(longest, 'x', sizeof longest);
    longest[QUIRE_MAX_NAME] = '\0';
    fixture_make(&f, &(quire_memory_options){.name = "two\nlines", .pages.page_size = PAGE});
    ALLOCATE(&f, .size = 16, .name = "a\nb\x1b[31m");
    ALLOCATE(&f, .size = 16, .name = longest);
    const char *text = report(&f);
    CHECK_HAS(text, "memory 'two?lines'");
    CHECK_HAS(text, "  a?b?[31m\n");
    CHECK_HAS(text, longest);
    fixture_end(&f);
}

/* ---- a device ------------------------------------------------------------------------------- */

CASE(a_device_lists_its_heaps_and_reports_its_memories, .page_size = PAGE)
{
    char own[8192];
    quire_memory *second;
    CHECK_OK(quire_memory_create(f->device, &(quire_memory_options){.name = "second"}, &second));
    ALLOCATE(f, .size = 1000, .name = "encoder");
    CHECK_OK(quire_device_set_heap_limit(f->device, 1, 1 << 20));
    snprintf(own, sizeof own, "%s", report(f));
    gather_anew(0);
    CHECK_OK(quire_device_write_report(f->device, gather, NULL));
    CHECK_HAS(gathered.text, "device 'fake device': backend fake, 2 memories\n"
                             "  live:  1 KiB in 1 allocation, 1000 B requested\n"
                             "  pages: 1, 4 KiB reserved, 3 KiB free, 0 B of the free bytes in "
                             "empty pages\n"
                             "  heap:  number 0, 1 GiB, 4 KiB in pages of quire\n");
    CHECK_HAS(gathered.text, "  heap:  number 1, ");
    CHECK_EQ(count(gathered.text, "  limit: 1 MiB for the pages of the heap\n"), 1);
    CHECK_HAS(gathered.text, own);
    CHECK_HAS(gathered.text, "\n\nmemory 'second': kind ");
    CHECK_OK(quire_memory_destroy(&second));
}

UNIT(report, a_device_without_a_budget_of_the_backend)
{
    fixture f;
    fixture_prepare(&f);
    fake_offer_budget(&f.fake);
    fixture_open(&f, &(quire_memory_options){.name = "one"});
    CHECK_FAILS(quire_free(f.memory, (quire_allocation){0}), QUIRE_ERROR_INVALID_ARGUMENT);
    fake_fail(&f.fake, 1, true, QUIRE_ERROR_BACKEND_FAILURE);
    gather_anew(0);
    CHECK_OK(quire_device_write_report(f.device, gather, NULL));
    CHECK_EQ(count(gathered.text, " left of a budget of "), 0);
    CHECK_HAS(quire_last_error(), "is {0}"); /* the report succeeds: the error before it stays */
    fake_fail(&f.fake, 0, false, QUIRE_SUCCESS);
    fixture_end(&f);
}
