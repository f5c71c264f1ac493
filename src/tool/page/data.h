/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * data.h - a course as text inside a page, for the script of the page and for tests. Each table is
 * an element <pre> that is not shown; a row is a line of decimal numbers between blanks:
 *
 *     names     a label, one in each line, in the order of their indices; "" has an empty line
 *     pages     number, 1 if dedicated, 1 if elastic
 *     changes   moment, page, bytes from then on
 *     ranges    moment it begins, after that of the row before; moments it lives, 0: to the end;
 *               page; offset; size; requested bytes; name
 *     refusals  moment, bytes requested, name
 *
 * Pages and names are indices. Ranges are in the order of their beginnings.
 */
#ifndef QUIRE_SRC_TOOL_PAGE_DATA_H
#define QUIRE_SRC_TOOL_PAGE_DATA_H

#include "src/base/json.h"
#include "src/tool/page/course.h"

/* A page with more ranges opens slowly. Those that hold most bytes for most events are written. */
enum { PAGE_MOST_RANGES = 500000 };

typedef struct page_selection {
    uint64_t count;      /* of ranges that are written */
    double least;        /* bytes times moments; ranges below it are left out */
    uint64_t most_least; /* how many with exactly `least` are written; the first ones */
} page_selection;

/* Chooses at most `most` ranges of a course. Returns false without host memory. */
bool page_select(page_selection *s, const course *c, uint64_t most);

/* Writes the tables. */
void page_write_data(qi_writer *w, const course *c, const page_selection *s);

#endif
