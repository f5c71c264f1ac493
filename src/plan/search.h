/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * search.h - a depth-first search for a plan of at most a given peak.
 */
#ifndef QUIRE_SRC_PLAN_SEARCH_H
#define QUIRE_SRC_PLAN_SEARCH_H

#include "src/plan/effort.h"
#include "src/plan/order.h"

typedef struct qi_plan_search qi_plan_search;

typedef enum qi_plan_outcome {
    QI_PLAN_FOUND,
    QI_PLAN_IMPOSSIBLE, /* no plan has a peak of at most the capacity */
    QI_PLAN_STOPPED     /* the try has had its nodes, or the effort is over */
} qi_plan_outcome;

/* Whether the search can treat the line: it has at most 3,000 ranges, and its ranges live in at
   most 200,000 sections in sum. */
bool qi_plan_can_search(const qi_plan_line *line);

/* The line is prepared, and `sorter` is of it; both outlive the search. Returns NULL if host memory
   is exhausted; the caller records the error. */
qi_plan_search *qi_plan_search_make(const qi_plan_line *line, qi_plan_sorter *sorter,
                                    qi_host *host);
void qi_plan_search_release(qi_plan_search *search);

/*
 * Tries for a plan of at most `capacity` until one is found, none is possible, or about `nodes`
 * nodes are visited. Every try begins anew, in another order, which follows from its number;
 * *next_try is 0 at first. Writes the offsets of a plan that is found. Fails with
 * OUT_OF_HOST_MEMORY.
 */
QUIRE_MUST_USE quire_result qi_plan_search_run(qi_plan_search *search, uint64_t capacity,
                                               uint64_t nodes, uint32_t *next_try, uint64_t *random,
                                               qi_plan_effort *effort, uint64_t *offsets,
                                               qi_plan_outcome *outcome);

#endif
