/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * top.h - what quire top prints of a recording.
 */
#ifndef QUIRE_SRC_TOOL_TOP_TOP_H
#define QUIRE_SRC_TOOL_TOP_TOP_H

#include "src/tool/top/watch.h"

/* The figures of one look that the watch does not have. */
typedef struct top_look {
    const watch *watch;
    const name_sum **names; /* the most bytes first */
    size_t name_count;
    size_t shown;   /* names to print, at most name_count */
    bool has_rates; /* false: no time has passed */
    double per_second_allocs, per_second_frees;
    bool has_age;    /* false: there is no event */
    uint64_t age_ns; /* of the last event */
} top_look;

/* Several lines for people. On a terminal they replace those of the look before. */
void print_view(const top_look *look, bool is_terminal);

/* The names of the columns, and one line. */
void print_columns(void);
void print_line(const top_look *look);

/* One JSON object in one line. */
QUIRE_MUST_USE quire_result print_json_line(const top_look *look);

#endif
