/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * plan_page.h - one HTML page about a plan, which loads nothing: its figures, its picture, and what
 * is in use at any time.
 */
#ifndef QUIRE_SRC_TOOL_PLAN_PAGE_H
#define QUIRE_SRC_TOOL_PLAN_PAGE_H

#include "quire/trace.h"
#include "src/tool/plan_picture.h"

/*
 * Writes the page. trace: whose events are the times of the plan; NULL: they are numbers of a file.
 * Fails with OUT_OF_HOST_MEMORY, and BAD_FILE if the sink fails.
 */
quire_result write_plan_html(const plan_picture *picture, const quire_trace *trace, quire_sink sink,
                             void *user);

#endif
