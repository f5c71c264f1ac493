/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* plan_course.h - the course of a plan: its arenas are pages, its items are ranges. */
#ifndef QUIRE_SRC_TOOL_PAGE_PLAN_COURSE_H
#define QUIRE_SRC_TOOL_PAGE_PLAN_COURSE_H

#include "quire/plan.h"
#include "src/tool/page/course.h"

/*
 * Makes the course of a plan, which quire_plan_check has accepted. `peaks` has the bytes of each
 * arena; one without bytes is no page. With a trace, times are numbers of its events, from 0, and
 * an item whose last use is the last event lives to the end. Otherwise moments are ranks of the
 * times at which items begin, and of those after their last uses.
 *
 * Returns false without host memory. The caller ends the course in any case. It refers to the trace
 * and to the names of the items.
 */
bool plan_course_make(course *c, const quire_plan_problem *problem, const quire_plan_place *places,
                      const uint64_t *peaks, const quire_trace *trace);

#endif
