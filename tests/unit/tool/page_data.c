/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * page_data.c - the tables of a page: which ranges of a large course are written, and the columns
 * that have the sums of all.
 */
#include <stdio.h>

#include "src/base/result.h"
#include "src/tool/page/data.h"
#include "tests/support/gather.h"
#include "tests/support/unit.h"

enum { EVENTS = 6 };

/* Bytes times moments: 60, 200, 5, 60. */
static course_range ranges[] = {
    {.begin = 1, .end = COURSE_ALWAYS, .size = 10, .requested = 9},
    {.begin = 2, .end = 4, .size = 100, .requested = 100, .name = 1},
    {.begin = 2, .end = COURSE_ALWAYS, .offset = 25, .size = 1, .requested = 1},
    {.begin = 3, .end = COURSE_ALWAYS, .offset = 10, .size = 15, .requested = 15},
};
/* Page 1 comes and goes within the event 5. */
static course_change changes[] = {{1, 64, 0}, {2, 128, 1}, {4, 0, 1}, {5, 256, 2}, {5, 0, 2}};
static course_page pages[] = {
    {.number = 0}, {.number = 1, .is_dedicated = true}, {.number = 1, .memory = 1}};
static const char *names[] = {"", "a<b"};
static const char *const memories[] = {"0: a<b", "1: c"};
static course all = {.last = EVENTS,
                     .ranges = ranges,
                     .range_count = 4,
                     .pages = pages,
                     .page_count = 3,
                     .changes = changes,
                     .change_count = 5,
                     .names = names,
                     .name_count = 2,
                     .memories = memories,
                     .memory_count = 2};

static void write_most(uint64_t most)
{
    qi_writer w;
    page_selection s;
    gather_anew(0);
    qi_writer_init(&w, gather, NULL);
    CHECK(page_select(&s, &all, most));
    CHECK(page_write_data(&w, &all, &s));
    CHECK_OK(qi_writer_finish(&w));
}

static void check_table(const char *name, const char *rows)
{
    char wanted[512];
    snprintf(wanted, sizeof wanted, "<pre hidden id=\"data-%s\">\n%s</pre>\n", name, rows);
    CHECK_HAS(gathered.text, wanted);
}

UNIT(page_data, all_ranges_of_a_small_course_are_written_without_columns)
{
    write_most(4);
    check_table("ranges", "1 0 0 0 10 9 0\n1 2 0 0 100 100 1\n0 0 0 25 1 1 0\n1 0 0 10 15 15 0\n");
    check_table("names", "\na&lt;b\n");
    check_table("pages", "0 0 0 0\n1 1 0 0\n1 0 0 1\n");
    check_table("memories", "0: a&lt;b\n1: c\n");
    check_table("columns", "");
}

UNIT(page_data, the_ranges_of_most_bytes_and_events_are_written)
{
    write_most(1);
    check_table("ranges", "2 2 0 0 100 100 1\n");
    write_most(3); /* two have the weight 60, and one of them has room */
    check_table("ranges", "1 0 0 0 10 9 0\n1 2 0 0 100 100 1\n1 0 0 10 15 15 0\n");
    write_most(2);
    check_table("ranges", "1 0 0 0 10 9 0\n1 2 0 0 100 100 1\n");
    check_table("names", "\na&lt;b\n");
}

UNIT(page_data, bytes_without_memory_are_not_held)
{
    course_range lazy[] = {
        {.end = COURSE_ALWAYS, .size = 10, .requested = 4, .unbacked = 6},
        {.end = COURSE_ALWAYS, .offset = 10, .size = 3, .requested = 3},
        {.end = COURSE_ALWAYS, .offset = 20, .size = 40, .unbacked = 40},
        {.end = COURSE_ALWAYS, .offset = 60, .size = 9, .requested = 5, .unbacked = 4}};
    const course kept = all;
    all = (course){.ranges = lazy, .range_count = 4, .names = names, .name_count = 1};
    write_most(4);
    check_table("ranges", "0 0 0 0 10 4 0\n0 0 0 10 3 3 0\n0 0 0 20 40 0 0\n0 0 0 60 9 5 0\n");
    check_table("backed", "0 4\n2 0\n3 5\n");
    write_most(2); /* the numbers are those of the rows that are written */
    check_table("ranges", "0 0 0 0 10 4 0\n0 0 0 60 9 5 0\n");
    check_table("backed", "0 4\n1 5\n");
    check_table("columns", "12 12 12 12 0 0\n");
    all = kept;
    write_most(4);
    check_table("backed", "");
}

/* Times of moments: the first, the last, and where the distance to the next one changes. */
static void check_times(uint64_t *times, uint64_t last, const char *rows)
{
    course ranked = {.last = last, .times = times};
    page_selection s;
    qi_writer w;
    gather_anew(0);
    qi_writer_init(&w, gather, NULL);
    CHECK(page_select(&s, &ranked, 1));
    CHECK(page_write_data(&w, &ranked, &s));
    CHECK_OK(qi_writer_finish(&w));
    check_table("times", rows);
}

UNIT(page_data, times_of_ranks_have_a_row_where_their_distance_changes)
{
    uint64_t sparse[] = {UINT64_MAX - 100, UINT64_MAX - 99, UINT64_MAX - 98, UINT64_MAX - 8,
                         UINT64_MAX};
    check_times(sparse, 4, "0 0\n2 2\n3 92\n4 100\n");
    check_times(sparse, 2, "0 0\n2 2\n");
    check_times(sparse, 0, "0 0\n");
}

/* Least and most of requested, held and reserved bytes; a column of a short course is a moment. */
UNIT(page_data, columns_have_the_sums_of_ranges_that_are_left_out)
{
    write_most(1);
    check_table("columns", "0 0 0 0 0 0\n"
                           "9 9 10 10 64 64\n"
                           "110 110 111 111 192 192\n"
                           "125 125 126 126 192 192\n"
                           "25 25 26 26 64 64\n"
                           "25 25 26 26 64 320\n"
                           "25 25 26 26 64 64\n");
}
