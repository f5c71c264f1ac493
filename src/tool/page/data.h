/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * data.h - a course as text inside a page, for the script of the page and for tests. Each table is
 * an element <pre> that is not shown; a row is a line of decimal numbers between blanks:
 *
 *     names     a label, one in each line, in the order of their indices; "" has an empty line
 *     memories  a name, one in each line, in the order of their indices; empty for one memory
 *     pages     number, 1 if dedicated, 1 if elastic, memory
 *     changes   moment, page, bytes from then on
 *     stretches moment, page, begin, end, 1 if this part of an elastic page has memory then, or 0
 *     ranges    moment it begins, after that of the row before; moments it lives, 0: to the end;
 *               page; offset; size; requested bytes; name
 *     backed    number of a row of `ranges`, from 0, and its bytes that have memory; all bytes of
 *               the other ranges have memory
 *     refusals  moment, bytes requested, name
 *     frames    moment at which a frame ends; of many frames every n-th
 *     times     moment, nanoseconds of the trace; of many events every n-th, and the last. If
 *               moments are ranks of times: moment, its time after the first time; the times
 *               between two rows lie on a straight line, without rounding
 *     free      moment, free bytes in pages that also have ranges, the largest free range; of many
 *               events every n-th
 *     columns   only if ranges are left out: the least and the most requested bytes of some
 *               successive moments, then those of held and of reserved bytes
 *
 * Pages, names and memories are indices. Ranges are in the order of their beginnings. Each column
 * has the same number of moments, from 0; the last one may have fewer.
 */
#ifndef QUIRE_SRC_TOOL_PAGE_DATA_H
#define QUIRE_SRC_TOOL_PAGE_DATA_H

#include "src/base/json.h"
#include "src/tool/page/course.h"

/* A page with more ranges opens slowly. Those that hold most bytes for most events are written. */
enum { PAGE_MOST_RANGES = 500000 };
enum { PAGE_MOST_FRAMES = 1000, PAGE_MOST_TIMES = 2000, PAGE_MOST_COLUMNS = 8192 };

typedef struct page_selection {
    uint64_t count;      /* of ranges that are written */
    double least;        /* bytes times moments; ranges below it are left out */
    uint64_t most_least; /* how many with exactly `least` are written; the first ones */
} page_selection;

/* Chooses at most `most` ranges of a course. Returns false without host memory. */
bool page_select(page_selection *s, const course *c, uint64_t most);

/* The moments of a column; 0 if the ranges tell all sums. */
uint64_t page_column(const course *c, const page_selection *s);

/* Writes the tables. Returns false without host memory. */
bool page_write_data(qi_writer *w, const course *c, const page_selection *s);

#endif
